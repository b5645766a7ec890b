/* lora/model.h - the model of vkt-lora: its file, tokenizer, weights and adapters. */
#ifndef LORA_MODEL_H
#define LORA_MODEL_H

#include "common/session.h"
#include "lora/options.h"
#include "vktrain/lm.h"
#include "vktrain/peft.h"

typedef struct model {
    char path[1024];
    vkt_gguf *gguf; /* open until the end: --merge copies it */
    vkt_tokenizer *tokenizer;
    vkt_chat_template form; /* 0: not known */
    vkt_lm *lm;
    vkt_peft_config *config; /* of --adapter; NULL: none */
    vkt_lora_params lora;    /* n_targets 0: no adapters */
    uint32_t context;
    bool recompute;
} model;

/* Finds a file: `path` itself, or the first one of $VKT_DATA/<path>, data/<path> and ../shared/data/<path>. Returns
 * `path` if no such file exists. The result may be in `room`. */
const char *find_file(const char *path, char room[1024]);

/* Opens the file, makes the tokenizer, reads the rank, alpha and targets of --adapter, and copies the weights to the
 * devices. Prints a line, unless --quiet. */
vkt_result model_open(const session *s, const lora_options *o, model *m);
void model_close(model *m); /* call it after programs and trainers are destroyed */
/* Writes a text that identifies the base model and the context: name, hash of parts of the weights, context length. */
void model_identity(const model *m, char out[160]);

/* The functions of a vkt_model. `user` points to the model. A sample has 2 * context numbers: see rows.h. */
vkt_tensor model_forward(vkt_builder *b, vkt_tensor rows, void *user);
vkt_tensor model_loss(vkt_builder *b, vkt_tensor hidden, vkt_tensor rows, vkt_tensor labels, vkt_tensor targets,
                      void *user);

/* Loads the adapter of --adapter, if there is one, into the values of a store. */
vkt_result model_load(const session *s, const model *m, const lora_options *o, vkt_store *store);
/* Makes a store with the adapter of --adapter or --load. If neither option is given, *out becomes NULL and
 * m->lora.n_targets becomes 0. */
vkt_result model_adapter(const session *s, model *m, const lora_options *o, vkt_store **out);
/* Makes the folder of --save-adapter. Tests whether the files of model_save can be written. */
vkt_result model_try_outputs(const session *s, const lora_options *o);
/* Writes the files of --save-adapter, --save-gguf and --merge. VKT_E_ARG: one of these options is given, but
 * `store` is NULL. */
vkt_result model_save(const session *s, const model *m, const lora_options *o, vkt_store *store);

/* Describes what is in the memory of a device at the same time as a training step. */
typedef struct beside {
    uint32_t checked;    /* number of rows on which the trainer validates; 0: none */
    uint32_t validators; /* number of programs that validate; not used if `checked` is 0 */
    uint64_t data;       /* bytes of the data sets in the memory of the device; 0 with --stream */
} beside;
/* Prints what a training step with a batch of `batch` rows needs on each device, unless --quiet. `batch` is a multiple
 * of the number of shards. The limit is --memory-limit; if that is not given, it is the memory of the device.
 * Errors: VKT_E_MEMORY_CAP if the step, together with what `with` describes, needs more memory than the limit. If the
 * device cannot run the step: VKT_E_MEMORY_CAP if a smaller batch or context fits, otherwise VKT_E_UNSUPPORTED. A
 * message names the batch or context that fits, if there is one. */
vkt_result model_plan(const session *s, model *m, uint32_t batch, const beside *with);

#endif
