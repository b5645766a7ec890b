/* tiny.h - the tiny language models of golden/lm: files, rows of tokens, and the model that a trainer trains. */
#ifndef VKT_TEST_TINY_H
#define VKT_TEST_TINY_H

#include "train/golden.h"
#include "vktrain/lm.h"

enum { TINY_ROWS = 14, TINY_BATCH = 4, TINY_CONTEXT = 24, TINY_WORDS = 272, TINY_RANK = 4 };

/* All seven projections, as PEFT's target_modules. */
enum { TINY_TARGETS = 7 };
extern const char *const tiny_targets[TINY_TARGETS];

/* A model with adapters, as the user of tiny_forward and tiny_loss. */
typedef struct tiny {
    vkt_lm *lm;
    vkt_lora_params lora;
    vkt_lm_params params;
} tiny;

/* Writes the path of golden/lm/<architecture>.gguf. */
const char *tiny_path(const char *architecture, char path[512]);
/* Writes a copy of a GGUF file to the rig's folder: with `n` more values of metadata, and without its divisors of the
 * rotary embedding. Returns the path. */
const char *tiny_rewrite(const rig *r, const char *from, const char *name, const vkt_gguf_meta *more, size_t n);
/* Opens the file, copies the model to the device, and closes the file. The lora has rank 4 and alpha 8. */
tiny tiny_open(const rig *r, const char *architecture);
/* Makes the rows of golden/README.md: CONTEXT ids, then CONTEXT labels. */
vkt_dataset *tiny_data(const vkt_host *h);
/* Forward gets rows of ids and labels, and returns (B,T,D). The loss counts the labels that are not UINT32_MAX. `user`
 * is a tiny. */
vkt_tensor tiny_forward(vkt_builder *b, vkt_tensor rows, void *user);
vkt_tensor tiny_loss(vkt_builder *b, vkt_tensor hidden, vkt_tensor rows, vkt_tensor labels, vkt_tensor targets,
                     void *user);
/* Returns params of a trainer: Adam, lr 0.003, seed 7, without validation. */
vkt_trainer_params tiny_trainer(tiny *t, const vkt_dataset *data);
/* Writes the adapters of golden/README.md to a store that has nothing else. */
void tiny_set_adapters(vkt_store *store);

#endif
