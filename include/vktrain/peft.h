/* vktrain/peft.h - files of LoRA adapters: the folders of Hugging Face's PEFT, GGUF adapters, merged GGUF models.
 *
 *     vkt_peft_config *config;                                  an adapter that PEFT, or vkt_peft_save, has written
 *     vkt_peft_config_open(NULL, "folder", &config);
 *     vkt_builder_set_lora(b, vkt_peft_config_lora(config));    in the forward function of the model
 *     vkt_peft_load(NULL, store, vkt_peft_config_lora(config), "folder");
 *     ...
 *     vkt_peft_save(NULL, store, VKT_PART_VALUE, &(vkt_peft_params){ .lora = *vkt_peft_config_lora(config) }, "tuned");
 *     vkt_peft_config_destroy(&config);
 *
 * The adapters of a store are its parameters "<layer>.lora_A.weight" (rank, in) and "<layer>.lora_B.weight" (out,
 * rank), which vkt_builder_set_lora makes. A layer computes W x + (alpha / rank) B (A x). Other parameters of a store
 * are ignored.
 *
 * A folder of PEFT has adapter_config.json and adapter_model.safetensors, whose tensors have the names of the
 * parameters with "base_model.model." in front. Source: https://github.com/huggingface/peft, src/peft/tuners/lora/
 * config.py and src/peft/utils/save_and_load.py.
 *
 * `host` may be NULL. Files are replaced as a whole. Threads: one at a time per store. Reading and writing folders
 * needs jansson: a library without it returns VKT_E_UNSUPPORTED. */
#ifndef VKTRAIN_PEFT_H
#define VKTRAIN_PEFT_H

#include "vktrain/gguf_model.h"
#include "vktrain/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- folders of PEFT ---- */

/* The options of a file of adapters. */
typedef struct vkt_peft_config vkt_peft_config;

/* Reads adapter_config.json of a folder. Used are r, lora_alpha, lora_dropout, target_modules,
 * base_model_name_or_path and use_rslora (then alpha is lora_alpha * sqrt(r), so that alpha / rank is PEFT's factor).
 * Names of target_modules become vkt_lora_params.targets; "all-linear" becomes q_proj, k_proj, v_proj, o_proj,
 * gate_proj, up_proj and down_proj. VKT_E_NOT_FOUND, VKT_E_IO. VKT_E_FORMAT: no JSON object, or a value of the
 * wrong kind or out of range. VKT_E_UNSUPPORTED: another peft_type than LORA; another task_type than CAUSAL_LM or null;
 * a regular expression as target_modules; an init_lora_weights that changes the base model (pissa, olora, corda,
 * loftq); any other option that is on, for instance use_dora, bias, modules_to_save, rank_pattern or an option that
 * this function does not know. The message names the option. VKT_E_NOMEM. After an error *out = NULL. Owner: the
 * caller. */
VKT_API vkt_result vkt_peft_config_open(const vkt_host *host, const char *folder, vkt_peft_config **out);
VKT_API void vkt_peft_config_destroy(vkt_peft_config **c);
/* Return the options for vkt_builder_set_lora, and the name of the base model ("": the file has none). Both are valid
 * as long as c. NULL: c is NULL. */
VKT_API const vkt_lora_params *vkt_peft_config_lora(const vkt_peft_config *c);
VKT_API const char *vkt_peft_config_base(const vkt_peft_config *c);

/* Loads the adapters of a folder into the values of a store. `lora` has the options with which the network was built.
 * Tensors may be F32, F16, BF16 or F64. VKT_E_ARG: a NULL, or `lora` has another rank than the store, or alpha 0.
 * VKT_E_STATE: the folder has another rank, or another alpha / rank. VKT_E_SHAPE: a tensor has another shape.
 * VKT_E_NOT_FOUND: a file is missing, the folder lacks an adapter of the store, or the store has no adapters.
 * VKT_E_UNSUPPORTED: the folder has a tensor that is no adapter of the store, or as for vkt_peft_config_open.
 * VKT_E_DTYPE, VKT_E_FORMAT, VKT_E_IO, VKT_E_NOMEM. After an error the store has its old values, unless the device
 * failed. */
VKT_API vkt_result vkt_peft_load(const vkt_host *host, vkt_store *s, const vkt_lora_params *lora, const char *folder);

/* The options that a folder has beside the tensors. */
typedef struct vkt_peft_params {
    vkt_lora_params lora;   /* the options with which the network was built. If a target has a '*', or there are none,
                             * target_modules lists the whole names of the layers */
    const char *base_model; /* base_model_name_or_path: a folder or a name at Hugging Face; NULL: null */
} vkt_peft_params;
/* Saves the adapters of a store, for PEFT (PeftModel.from_pretrained) or vkt_peft_load. `part` is VKT_PART_VALUE or
 * VKT_PART_PUBLISHED. Makes the folder if it does not exist. The tensors are written first, as F32, then
 * adapter_config.json. VKT_E_NOT_FOUND: the store has no adapters. VKT_E_ARG: params->lora has another rank than the
 * adapters, or alpha is 0. VKT_E_DIVERGED: a number is not finite; nothing is written. VKT_E_STATE: the store does not
 * have the part. VKT_E_IO, VKT_E_NOMEM. */
VKT_API vkt_result vkt_peft_save(const vkt_host *host, vkt_store *s, vkt_store_part part, const vkt_peft_params *params,
                                 const char *folder);

/* ---- GGUF files ---- */

/* The functions below also return VKT_E_UNSUPPORTED for an adapter of a layer that has no tensor in a GGUF file.
 * "model.layers.3.self_attn.q_proj" is "blk.3.attn_q.weight"; o_proj is attn_output, gate_proj ffn_gate, up_proj
 * ffn_up, down_proj ffn_down. GGUF files of the architecture llama have the rows of query and key in another order than
 * Hugging Face's models; the functions permute the rows of B likewise. */

/* Saves the adapters of a store as llama.cpp reads them (--lora FILE): the metadata general.architecture, general.type
 * "adapter", adapter.type "lora" and adapter.lora.alpha, and for each layer "<tensor>.lora_a" (rank, in) and
 * "<tensor>.lora_b" (out, rank) in F32. Source: https://github.com/ggml-org/llama.cpp, convert_lora_to_gguf.py.
 * `model` is the description of the base model. VKT_E_ARG: it has no architecture. VKT_E_SHAPE: an adapter does not fit
 * the model's heads. Other errors as for vkt_peft_save. */
VKT_API vkt_result vkt_lora_save_gguf(const vkt_host *host, vkt_store *s, vkt_store_part part,
                                      const vkt_gguf_model *model, const vkt_lora_params *lora, const char *path);

/* Reads the options of a GGUF adapter for the model `model`, before its network is built: rank, alpha and targets;
 * dropout is 0 and the base model "". A matrix that has an adapter in all blocks of the model gives a short target, for
 * instance q_proj. Otherwise the targets are the whole names of the layers, for instance
 * "model.layers.3.self_attn.q_proj". Refused is what would make the adapter compute something else than this library
 * does. VKT_E_UNSUPPORTED: general.type is not "adapter", or adapter.type not "lora"; an architecture that is not the
 * model's; another option "adapter.*" (task_name and prompt_prefix have no effect); a tensor that is no half of an
 * adapter, or belongs to a layer that the model does not have; adapters of several ranks, or of a rank above 65536.
 * VKT_E_FORMAT: general.type, adapter.type or general.architecture is missing or no text; alpha is missing, 0, not
 * finite or above 1e6 in magnitude; one half is missing; halves do not fit together; there are no adapters. VKT_E_ARG:
 * `model` has no architecture. Other errors as for vkt_gguf_open. After an error *out = NULL. Owner: the caller
 * (vkt_peft_config_destroy). */
VKT_API vkt_result vkt_lora_gguf_config(const vkt_host *host, const vkt_gguf_model *model, const char *path,
                                        vkt_peft_config **out);

/* Loads the adapters of a GGUF file into the values of a store: the inverse of vkt_lora_save_gguf. `lora` has the
 * options with which the network was built. Tensors may have all types that vkt_gguf_read_f32 reads. VKT_E_ARG: a NULL,
 * or `lora` has another rank than the store, or alpha 0. VKT_E_STATE: the file has another rank, or another
 * alpha / rank. VKT_E_SHAPE: a tensor has another shape, or an adapter does not fit the model's heads. VKT_E_NOT_FOUND:
 * the file is missing or lacks an adapter of the store, or the store has no adapters. VKT_E_UNSUPPORTED: the file has
 * an adapter that the store does not have. VKT_E_FORMAT: a number is not finite. Other errors as for
 * vkt_lora_gguf_config. After an error the store has its old values, unless the device failed. */
VKT_API vkt_result vkt_lora_load_gguf(const vkt_host *host, vkt_store *s, const vkt_gguf_model *model,
                                      const vkt_lora_params *lora, const char *path);

/* Writes the model `g` with its adapters merged: a file in which each matrix with an adapter is W + (alpha / rank) B A
 * in the type `type`, and all else is as in g (but general.file_type, if g has it, names `type`). The sum over the rank
 * is in double precision and is rounded to float once. VKT_GGUF_F32: this number. VKT_GGUF_F16: rounded to nearest,
 * ties to even. VKT_GGUF_Q8_0: for 32 numbers of a row with the largest magnitude m, d = m / 127 is stored as float16,
 * and each number as the integer nearest to x / d with that d before its rounding, ties away from 0 (as ggml does).
 * Memory on the host: one merged matrix. VKT_E_UNSUPPORTED: another type, or a matrix that is not read.
 * VKT_E_NOT_FOUND: g lacks a matrix. VKT_E_SHAPE: sizes of g and the adapters differ. VKT_E_DIVERGED: a result is not
 * finite in `type`; nothing is written. Other errors as for vkt_peft_save and vkt_gguf_read_model. */
VKT_API vkt_result vkt_lora_merge_gguf(const vkt_host *host, const vkt_gguf *g, vkt_store *s, vkt_store_part part,
                                       const vkt_lora_params *lora, vkt_gguf_type type, const char *path);

#ifdef __cplusplus
}
#endif
#endif
