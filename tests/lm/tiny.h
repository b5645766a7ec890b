/* tiny.h - the tiny language models of golden/lm: files, samples of tokens, and the model that a trainer trains. */
#ifndef VKT_TEST_TINY_H
#define VKT_TEST_TINY_H

#include "train/golden.h"
#include "vktrain/lm.h"

enum { TINY_ROWS = 14, TINY_BATCH = 4, TINY_CONTEXT = 24, TINY_WORDS = 272, TINY_RANK = 4 };

/* The names of the seven projections of a block, in the form of PEFT's target_modules. */
enum { TINY_TARGETS = 7 };
extern const char *const tiny_targets[TINY_TARGETS];

/* A model with adapters. Pass a pointer to it as `user` of tiny_forward and tiny_loss. */
typedef struct tiny {
    vkt_lm *lm;
    vkt_lora_params lora;
    vkt_lm_params params;
} tiny;

/* Writes the path of golden/lm/<architecture>.gguf to `path`, and returns `path`. */
const char *tiny_path(const char *architecture, char path[512]);
/* Writes a copy of the GGUF file `from` to the file `name` in the rig's folder. The copy has `n` more values of
 * metadata, and no rope_freqs.weight (divisors of the rotary embedding's frequencies). Returns the path of the copy. */
const char *tiny_rewrite(const rig *r, const char *from, const char *name, const vkt_gguf_meta *more, size_t n);
/* Opens golden/lm/<architecture>.gguf, copies the model to the device, and closes the file. The adapters have rank
 * TINY_RANK and alpha 8. */
tiny tiny_open(const rig *r, const char *architecture);
/* Makes the TINY_ROWS samples that golden/README.md defines. A sample is TINY_CONTEXT ids, then TINY_CONTEXT labels.
 * A label that is no term of the loss is UINT32_MAX. */
vkt_dataset *tiny_data(const vkt_host *h);
/* The functions `forward` and `loss` of a vkt_model. `rows` has samples in the form of tiny_data, `user` is a tiny *.
 * tiny_forward returns vkt_lm_hidden of the ids, (B,T,D). tiny_loss computes the loss from the labels in `rows`, and
 * does not use `labels` and `targets`. */
vkt_tensor tiny_forward(vkt_builder *b, vkt_tensor rows, void *user);
vkt_tensor tiny_loss(vkt_builder *b, vkt_tensor hidden, vkt_tensor rows, vkt_tensor labels, vkt_tensor targets,
                     void *user);
/* Returns params of a trainer: Adam, lr 0.003, seed 7, no validation. */
vkt_trainer_params tiny_trainer(tiny *t, const vkt_dataset *data);
/* Writes the initial values of the adapters, as golden/README.md defines them. The store must have only adapters. */
void tiny_set_adapters(vkt_store *store);

#endif
