/* lora_files.h - makes a store of adapters for a model of golden/gguf, and finds rows of weights in a GGUF file. */
#ifndef VKT_TEST_LORA_FILES_H
#define VKT_TEST_LORA_FILES_H

#include "lm/tiny.h"
#include "vktrain/peft.h"

#define GOLDEN(name) VKT_TEST_DIR "/golden/gguf/" name

enum { N = 7, RANK = 3 };
/* A layer of the model's block 0. Example: `layer` is "self_attn.q_proj" if a Hugging Face model calls the layer
 * model.layers.0.self_attn.q_proj, and `tensor` is "attn_q" if a GGUF file has the layer's weight as
 * blk.0.attn_q.weight. */
typedef struct lora_layer {
    const char *layer, *tensor;
} lora_layer;
extern const lora_layer layers[N];
extern const vkt_lora_params lora; /* RANK, alpha 1.5 */

/* A GGUF file, the model that it describes, and a store of adapters for this model. */
typedef struct files {
    vkt_gguf *g;
    vkt_gguf_model m;
    vkt_store *s;
} files;

/* Opens a model, and makes a store with an adapter for each layer of block 0. For `averaged`, see make_store. */
files open_files(const rig *r, const char *path, bool averaged);
void close_files(files *f);
/* Writes a llama model that rotates 4 of the 8 numbers of a head, and that has a general.file_type. Returns the path of
 * the file. */
const char *partly_rotated(const rig *r);

/* Returns how many inputs (dim = 0) or outputs (dim = 1) layers[layer] has. */
uint32_t size_of(const vkt_gguf *g, uint32_t layer, uint32_t dim);
/* Returns element i of A (which = 0) or B (which = 1) of a layer. */
float number(uint32_t layer, uint32_t which, uint32_t i);
/* Makes a store with an adapter for each of the first n layers of block 0. number() gives the values of the adapters.
 * With `averaged`, the values are zero, and number() gives VKT_PART_PUBLISHED. (In a trained store, this part has
 * averages of the values.) */
vkt_store *make_store(const rig *r, const vkt_gguf *g, uint32_t n, bool averaged);
/* Returns the index that row `row` of a Hugging Face weight has in the GGUF file. The weight has `out` rows. The rows
 * of most layers keep their order. The rows of query and key of a llama model have another order in the file. RoPE
 * rotates the first n rows of a head (n is vkt_gguf_model.rope_width). In a head, row i becomes row 2 i, and row
 * i + n / 2 becomes row 2 i + 1, for i < n / 2. The other rows of a head keep their order. If n is the width of a head,
 * convert_hf_to_gguf.py writes this order. */
uint32_t file_row(const vkt_gguf_model *m, uint32_t layer, uint32_t out, uint32_t row);

#endif
