/* lora_files.h - a store of adapters for a model of golden/gguf, and where a GGUF file has their rows. */
#ifndef VKT_TEST_LORA_FILES_H
#define VKT_TEST_LORA_FILES_H

#include "lm/tiny.h"
#include "vktrain/peft.h"

#define GOLDEN(name) VKT_TEST_DIR "/golden/gguf/" name

enum { N = 7, RANK = 3 };
/* The seven layers of block 0, and the tensors of a GGUF file. */
typedef struct lora_layer {
    const char *layer, *tensor;
} lora_layer;
extern const lora_layer layers[N];
extern const vkt_lora_params lora; /* RANK, alpha 1.5 */

/* The objects of a test. */
typedef struct files {
    vkt_gguf *g;
    vkt_gguf_model m;
    vkt_store *s;
} files;

/* Opens a model, and makes a store with an adapter for each layer. */
files open_files(const rig *r, const char *path, bool averaged);
void close_files(files *f);
/* Writes a llama model that rotates 4 of the 8 numbers of a head, and that has a general.file_type. Returns its path.
 */
const char *partly_rotated(const rig *r);

/* Returns dims[dim] of the weight of a layer. */
uint32_t size_of(const vkt_gguf *g, uint32_t layer, uint32_t dim);
/* Returns a number of A (which = 0) or B (which = 1) of a layer. */
float number(uint32_t layer, uint32_t which, uint32_t i);
/* Makes a store with an adapter for each of the first n layers of block 0. With `averaged`, the store has a published
 * part, which has the numbers, and the values are zero. */
vkt_store *make_store(const rig *r, const vkt_gguf *g, uint32_t n, bool averaged);
/* Returns the row of the file for row `row` of Hugging Face: convert_hf_to_gguf.py reshapes (out, in) to (heads, 2,
 * w / 2, in), swaps the two dimensions in the middle, and reshapes back. If only a part of a head is rotated, w is this
 * part: the file rotates its numbers 2 i and 2 i + 1. */
uint32_t file_row(const vkt_gguf_model *m, uint32_t layer, uint32_t out, uint32_t row);

#endif
