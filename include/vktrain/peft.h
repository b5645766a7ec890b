/* vktrain/peft.h - files of LoRA adapters: the folders of Hugging Face's PEFT, GGUF adapters, merged GGUF models.
 *
 *     vkt_peft_config *config;
 *     vkt_peft_config_open(NULL, "folder", &config);            a folder that PEFT or vkt_peft_save has written
 *     vkt_builder_set_lora(b, vkt_peft_config_lora(config));    in the forward function of the model
 *     vkt_peft_load(NULL, store, vkt_peft_config_lora(config), "folder");
 *     ...                                                       training
 *     vkt_peft_save(NULL, store, VKT_PART_VALUE, &(vkt_peft_params){ .lora = *vkt_peft_config_lora(config) }, "tuned");
 *     vkt_peft_config_destroy(&config);
 *
 * The adapter of a layer is two parameters in the store: A = "<layer>.lora_A.weight" (rank, in) and
 * B = "<layer>.lora_B.weight" (out, rank). vkt_builder_set_lora selects the layers that get an adapter. For an input x,
 * the adapter adds (alpha / rank) B (A x) to the layer's output. In training, A gets dropout(x) instead of x. Other
 * parameters of a store are ignored.
 *
 * A folder of PEFT has adapter_config.json and adapter_model.safetensors. The name of a tensor in the second file is
 * "base_model.model." and the name of the parameter. Source: https://github.com/huggingface/peft,
 * src/peft/tuners/lora/config.py and src/peft/utils/save_and_load.py.
 *
 * `host` may be NULL. Files are replaced as a whole. Threads: one at a time per store. The functions that read or write
 * folders need jansson. In a library without jansson they return VKT_E_UNSUPPORTED. */
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

/* Reads adapter_config.json of a folder: r, lora_alpha, lora_dropout, target_modules, base_model_name_or_path and
 * use_rslora. With use_rslora, alpha becomes lora_alpha * sqrt(r), so that alpha / rank is PEFT's factor. Names of
 * target_modules become vkt_lora_params.targets; "all-linear" becomes q_proj, k_proj, v_proj, o_proj, gate_proj,
 * up_proj and down_proj. Options that do not change what an adapter computes are ignored, for instance inference_mode.
 *
 * VKT_E_NOT_FOUND, VKT_E_IO. VKT_E_FORMAT: no JSON object, or a value is missing, of the wrong kind or out of range.
 * VKT_E_UNSUPPORTED: another peft_type than LORA; another task_type than CAUSAL_LM or null; a regular expression as
 * target_modules, or a name with a '*'; an init_lora_weights other than true, false, null, gaussian, orthogonal and eva
 * (pissa, olora, corda and loftq change the base model); a `bias` other than "none" or null; any other option whose
 * value is not null, false, [] or {}, for instance use_dora, modules_to_save, rank_pattern or an unknown option. The
 * message names the option. VKT_E_NOMEM. After an error *out = NULL. Owner: the caller. */
VKT_API vkt_result vkt_peft_config_open(const vkt_host *host, const char *folder, vkt_peft_config **out);
VKT_API void vkt_peft_config_destroy(vkt_peft_config **c);
/* vkt_peft_config_lora returns the options for vkt_builder_set_lora. vkt_peft_config_base returns the name of the base
 * model ("": the file has none). Both pointers are valid until c is destroyed. If c is NULL, both functions return
 * NULL. */
VKT_API const vkt_lora_params *vkt_peft_config_lora(const vkt_peft_config *c);
VKT_API const char *vkt_peft_config_base(const vkt_peft_config *c);

/* Loads the adapters of a folder into the values of a store. `lora` has the options with which the network was built.
 * Tensors may be F32, F16, BF16 or F64. VKT_E_ARG: a NULL, or `lora` has another rank than the store, or lora->alpha is
 * VKT_ZERO. VKT_E_STATE: the folder has another rank or another alpha / rank than `lora`. VKT_E_SHAPE: a tensor has
 * another shape than in the store. VKT_E_NOT_FOUND: a file is missing, the folder lacks an adapter of the store, or the
 * store has no adapters. VKT_E_UNSUPPORTED: the folder has a tensor that is no adapter of the store, or an option that
 * vkt_peft_config_open refuses. VKT_E_DTYPE, VKT_E_FORMAT, VKT_E_IO, VKT_E_NOMEM. After an error the store has its old
 * values, unless the device failed. */
VKT_API vkt_result vkt_peft_load(const vkt_host *host, vkt_store *s, const vkt_lora_params *lora, const char *folder);

/* The options that vkt_peft_save writes to adapter_config.json. */
typedef struct vkt_peft_params {
    vkt_lora_params lora;   /* the options with which the network was built. If there are no targets, or if a target
                             * has a '*', target_modules lists the whole names of all layers with an adapter */
    const char *base_model; /* the option base_model_name_or_path: a folder or a name at Hugging Face. NULL becomes
                             * JSON's null */
} vkt_peft_params;
/* Saves the adapters of a store, for PEFT (PeftModel.from_pretrained) or vkt_peft_load. `part` is VKT_PART_VALUE or
 * VKT_PART_PUBLISHED. Makes the folder if it does not exist. The tensors are written first, as F32, then
 * adapter_config.json. VKT_E_NOT_FOUND: the store has no adapters, or the folder above `folder` does not exist.
 * VKT_E_ARG: params->lora has another rank than the adapters, its alpha is VKT_ZERO or not finite, a target is NULL or
 * empty, or a name is not UTF-8. VKT_E_DIVERGED: a number is not finite. After VKT_E_ARG and VKT_E_DIVERGED nothing is
 * written. VKT_E_STATE: the store does not have the part. VKT_E_IO, VKT_E_NOMEM. */
VKT_API vkt_result vkt_peft_save(const vkt_host *host, vkt_store *s, vkt_store_part part, const vkt_peft_params *params,
                                 const char *folder);

/* ---- GGUF files ---- */

/* In GGUF files, the layers have other names: the weight of "model.layers.3.self_attn.q_proj" is the tensor
 * "blk.3.attn_q.weight". The other layers of block 3 of the network:
 *     self_attn.k_proj  blk.3.attn_k.weight         mlp.gate_proj  blk.3.ffn_gate.weight
 *     self_attn.v_proj  blk.3.attn_v.weight         mlp.up_proj    blk.3.ffn_up.weight
 *     self_attn.o_proj  blk.3.attn_output.weight    mlp.down_proj  blk.3.ffn_down.weight
 * If a store has an adapter of any other layer, the functions below that take a store return VKT_E_UNSUPPORTED. In GGUF
 * files of the architecture llama, the weights of query and key have their rows in another order than in Hugging Face's
 * models. So these functions permute the rows of the matrix B of q_proj and of k_proj. */

/* Saves the adapters of a store to a GGUF file, which llama.cpp reads with --lora FILE. The metadata are
 * general.architecture, general.type = "adapter", adapter.type = "lora" and adapter.lora.alpha. The adapter of a layer
 * is stored as "<tensor>.lora_a" (rank, in) and "<tensor>.lora_b" (out, rank), in F32; <tensor> is for instance
 * blk.3.attn_q.weight. Source: https://github.com/ggml-org/llama.cpp, convert_lora_to_gguf.py. `model` is the
 * description of the base model. VKT_E_ARG: `model` has no architecture. VKT_E_SHAPE: an adapter does not fit the
 * model's heads. The other errors are those of vkt_peft_save. */
VKT_API vkt_result vkt_lora_save_gguf(const vkt_host *host, vkt_store *s, vkt_store_part part,
                                      const vkt_gguf_model *model, const vkt_lora_params *lora, const char *path);

/* Reads the options of a GGUF file of adapters for `model`. Call vkt_lora_gguf_config first, then build the network
 * with these options. *out gets rank, alpha and targets from the file; the dropout is 0, and the base model is "". If
 * q_proj, for instance, has an adapter in all blocks of the model, one target "q_proj" stands for q_proj of all blocks.
 * Otherwise each layer with an adapter is a target with its whole name, for instance
 * "model.layers.3.self_attn.q_proj".
 *
 * VKT_E_UNSUPPORTED: general.type is not "adapter", or adapter.type is not "lora"; an architecture that is not the
 * model's; an unknown option whose name starts with "adapter." (adapter.lora.task_name and adapter.lora.prompt_prefix
 * are known and have no effect); a tensor that is neither the A nor the B of an adapter, or that belongs to a layer
 * that the model does not have; adapters of several ranks, or of a rank above 65536. VKT_E_FORMAT: general.type,
 * adapter.type or general.architecture is missing or no text; alpha is missing, no number, 0 or not finite; the A or
 * the B of an adapter is missing, or the two do not fit together; there are no adapters. VKT_E_ARG: `model` has no
 * architecture. The other errors are those of vkt_gguf_open. After an error *out = NULL. Owner: the caller
 * (vkt_peft_config_destroy). */
VKT_API vkt_result vkt_lora_gguf_config(const vkt_host *host, const vkt_gguf_model *model, const char *path,
                                        vkt_peft_config **out);

/* Loads the adapters of a GGUF file into the values of a store: the inverse of vkt_lora_save_gguf. `lora` has the
 * options with which the network was built. Tensors may have all types that vkt_gguf_read_f32 reads. VKT_E_ARG: a NULL,
 * or `lora` has another rank than the store, or lora->alpha is VKT_ZERO. VKT_E_STATE: the file has another rank or
 * another alpha / rank than `lora`. VKT_E_SHAPE: a tensor has another shape than in the store, or an adapter does not
 * fit the model's heads. VKT_E_NOT_FOUND: the file is missing or lacks an adapter of the store, or the store has no
 * adapters. VKT_E_UNSUPPORTED: the file has an adapter that the store does not have. VKT_E_FORMAT: a number is not
 * finite. The other errors are those of vkt_lora_gguf_config. After an error the store has its old values, unless the
 * device failed. */
VKT_API vkt_result vkt_lora_load_gguf(const vkt_host *host, vkt_store *s, const vkt_gguf_model *model,
                                      const vkt_lora_params *lora, const char *path);

/* Writes the model `g`, merged with the adapters of a store, to the file `path`. Each matrix W that has an adapter
 * becomes W + (alpha / rank) B A, stored as `type`. If g has the key general.file_type, its value in the written file
 * is llama.cpp's number for `type`. All else is as in g. Each number of a merged matrix is computed in double precision
 * and rounded to float once. Let x be this float:
 *     VKT_GGUF_F32    x
 *     VKT_GGUF_F16    x, rounded to nearest, ties to even
 *     VKT_GGUF_Q8_0   for 32 numbers of a row: d = (largest |x|) / 127, stored as float16, and the integers nearest to
 *                     x * (1 / d) in float, ties away from 0. 1 / d uses d before its rounding to float16, as in ggml.
 *                     If d as float16 is 0, all 32 integers are 0
 * Memory on the host: one merged matrix and its adapter. VKT_E_UNSUPPORTED: another `type`; a matrix of a type that
 * vkt_gguf_read_f32 does not read; with Q8_0, a matrix whose number of columns is no multiple of 32. VKT_E_NOT_FOUND: g
 * lacks a matrix. VKT_E_SHAPE: a matrix of g has another shape than B A. VKT_E_DIVERGED: a result is not finite in
 * `type`; nothing is written. The other errors are those of vkt_peft_save and vkt_gguf_read_model. */
VKT_API vkt_result vkt_lora_merge_gguf(const vkt_host *host, const vkt_gguf *g, vkt_store *s, vkt_store_part part,
                                       const vkt_lora_params *lora, vkt_gguf_type type, const char *path);

#ifdef __cplusplus
}
#endif
#endif
