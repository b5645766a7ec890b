/* vktrain/nn.h - layers made of ops, initialisers, and the summary table.
 *
 * A model is a function that builds its layers with a builder. A trainer calls this function once for the training
 * graph and once for each graph that evaluates. Some layers differ between the two kinds of graphs, for instance
 * dropout. Such a layer asks the builder whether it builds a training graph.
 *
 *   static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
 *   {
 *       (void)user;
 *       x = vkt_nn_conv2d(b, "conv1", x, &(vkt_nn_conv2d_params){ .out_channels = 32, .kernel = { 3, 3 } });
 *       x = vkt_nn_max_pool2d(b, x, 2);
 *       x = vkt_nn_flatten(b, x);
 *       return vkt_nn_linear(b, "fc", x, &(vkt_nn_linear_params){ .out_features = 10 });
 *   }
 *
 * Errors are sticky in the graph, as in graph.h. */
#ifndef VKTRAIN_NN_H
#define VKTRAIN_NN_H

#include "vktrain/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A graph with its layers, their names, and the initial distribution of each parameter. */
typedef struct vkt_builder vkt_builder;

/* Distributions of initial values. fan_in and fan_out are those of the layer, computed as in torch. */
typedef enum vkt_init_kind {
    VKT_INIT_DEFAULT = 0,      /* the default of the layer in the builder's preset. For linear layers and convolutions
                                * of torch it is uniform in +-1/sqrt(fan_in) */
    VKT_INIT_CONSTANT,         /* the constant a */
    VKT_INIT_UNIFORM,          /* in [a, b) */
    VKT_INIT_NORMAL,           /* mean a, standard deviation b */
    VKT_INIT_XAVIER_UNIFORM,   /* uniform in +-sqrt(6 / (fan_in + fan_out)); Glorot & Bengio 2010 */
    VKT_INIT_XAVIER_NORMAL,    /* normal, mean 0, variance 2 / (fan_in + fan_out), not truncated (torch) */
    VKT_INIT_KAIMING_UNIFORM,  /* uniform in +-sqrt(6 / fan_in), for ReLU; He et al. 2015 */
    VKT_INIT_KAIMING_NORMAL,   /* normal, mean 0, variance 2 / fan_in */
    VKT_INIT_TRUNCATED_NORMAL, /* as VKT_INIT_NORMAL, but numbers more than 2 b away from a are replaced by new random
                                * numbers (Keras; torch's trunc_normal_ with bounds a -+ 2 b) */
    VKT_INIT_GLOROT_NORMAL,    /* as VKT_INIT_TRUNCATED_NORMAL, with a = 0. b is such that the variance is
                                * 2 / (fan_in + fan_out) after the truncation (Keras) */
    VKT_INIT_ORTHOGONAL        /* a random matrix with orthonormal rows, or with orthonormal columns if there are
                                * fewer columns than rows, multiplied by the gain a (0 means 1). The number of rows
                                * is dimension 0. The number of columns is the product of all other dimensions. All
                                * such matrices are equally likely; Saxe et al. 2014 */
} vkt_init_kind;
/* The initial distribution of a parameter. All members 0: the default of the layer in the builder's preset. */
typedef struct vkt_init {
    vkt_init_kind kind; /* the distribution */
    float a, b;         /* the numbers a and b in the comments of vkt_init_kind */
} vkt_init;

/* A model: builds the layers for a batch x and returns the output. A trainer passes vkt_model.user as `user`. */
typedef vkt_tensor (*vkt_forward_fn)(vkt_builder *b, vkt_tensor x, void *user);

/* Makes a builder over g. g must outlive the builder. Owner: the caller. `training`: dropout is active, and batch norms
 * use the statistics of the batch, unless vkt_nn_batch_norm_params.use_running is set. */
VKT_API vkt_result vkt_builder_create(vkt_graph *g, bool training, vkt_builder **out);
VKT_API void vkt_builder_destroy(vkt_builder **b);       /* the graph stays */
VKT_API vkt_graph *vkt_builder_graph(vkt_builder *b);    /* the graph that was passed to vkt_builder_create */
VKT_API bool vkt_builder_training(const vkt_builder *b); /* the `training` that was passed to vkt_builder_create */

/* Sets the preset for the layers that are made from now on. In these layers, a member of params that is 0 gets the
 * default of the preset's library. A new builder has the preset of torch. The Keras presets have the defaults of
 * keras.layers, which are listed here. The layers of the two Keras presets differ only in the running variance: see
 * VKT_PRESET_TF_KERAS.
 *   linear, convolutions   weight VKT_INIT_XAVIER_UNIFORM (glorot_uniform), bias 0
 *   embedding              uniform in [-0.05, 0.05)
 *   batch norm             eps 1e-3, momentum 0.01 (0.99 in Keras: weight of the old value), biased running variance
 *   layer and group norm   eps 1e-3
 *   RMS norm               eps 1e-6
 *   PReLU                  slope 0 at first */
VKT_API void vkt_builder_set_preset(vkt_builder *b, vkt_preset preset);

/* Push and pop prefixes of parameter names. After push "layer1" and push "0", a convolution "conv1" has the parameter
 * "layer1.0.conv1.weight". */
VKT_API void vkt_nn_push(vkt_builder *b, const char *scope);
VKT_API void vkt_nn_pop(vkt_builder *b);

/* Makes a parameter "<scopes>.<name>". The formulas of vkt_init_kind use fan_in and fan_out. Here
 * VKT_INIT_DEFAULT is uniform in +-1/sqrt(fan_in) with every preset. */
VKT_API vkt_tensor vkt_nn_param(vkt_builder *b, const char *name, vkt_shape shape, vkt_init init, uint32_t fan_in,
                                uint32_t fan_out);

/* Makes a vkt_state "<scopes>.<name>". vkt_nn_parameters does not count it. */
VKT_API vkt_tensor vkt_nn_state(vkt_builder *b, const char *name, vkt_shape shape, vkt_init init);

/* ---- layers ---- The pointer to the params may be NULL: this means that all members are 0. A member that is 0 selects
 * its default. But these members have no default, and 0 or NULL is VKT_E_ARG: out_channels, kernel, out_features,
 * weight, num_embeddings, embedding_dim, and `heads` of vkt_nn_multi_head_attention_params. In vkt_upsample2d_params,
 * `size` or `scale` must be set. In an array kernel[2], only kernel[0] = 0 is VKT_E_ARG. kernel[1] = 0 means
 * kernel[0]. */

/* The options of a convolution. A member that is 0 selects the default of the builder's preset. out_channels and
 * kernel[0] have no default. */
typedef struct vkt_nn_conv2d_params {
    uint32_t out_channels;           /* O */
    uint32_t kernel[2];              /* R, S; S: 0 means R */
    uint32_t stride[2], dilation[2]; /* [0] along H: 0 means 1. [1] along W: 0 means the value along H */
    uint32_t pad[2];                 /* [0] along H, [1] along W. If kernel[1] is 0, pad[1] = 0 means pad[0]. Otherwise
                                      * pad[1] = 0 means no padding */
    uint32_t groups;                 /* 0 means 1 */
    bool no_bias;                    /* torch: bias=False */
    vkt_init weight_init, bias_init; /* zero: the preset's default */
} vkt_nn_conv2d_params;
/* Adds parameters <name>.weight (O, C/groups, R, S) and <name>.bias (O). x (N,C,H,W). */
VKT_API vkt_tensor vkt_nn_conv2d(vkt_builder *b, const char *name, vkt_tensor x, const vkt_nn_conv2d_params *p);

/* The options of a 1d convolution. A member that is 0 selects the default of the builder's preset. out_channels and
 * kernel have no default. */
typedef struct vkt_nn_conv1d_params {
    uint32_t out_channels, kernel;          /* O, K */
    uint32_t stride, pad, dilation, groups; /* stride, dilation and groups: 0 means 1 */
    bool no_bias;                           /* torch: bias=False */
    vkt_init weight_init, bias_init;        /* zero: the preset's default */
} vkt_nn_conv1d_params;
/* Adds parameters <name>.weight (O, C/groups, K) and <name>.bias (O). x (N,C,L). */
VKT_API vkt_tensor vkt_nn_conv1d(vkt_builder *b, const char *name, vkt_tensor x, const vkt_nn_conv1d_params *p);

/* The options of a transposed convolution. A member that is 0 selects the default of the builder's preset. out_channels
 * and kernel[0] have no default. */
typedef struct vkt_nn_conv_transpose2d_params {
    uint32_t out_channels;                                      /* O */
    uint32_t kernel[2], stride[2], dilation[2], pad[2], groups; /* as in vkt_nn_conv2d_params */
    uint32_t output_pad[2];          /* [0] along H, [1] along W. If stride[1] is 0, output_pad[1] = 0 means
                                      * output_pad[0]. Otherwise output_pad[1] = 0 means no padding */
    bool no_bias;                    /* torch: bias=False */
    vkt_init weight_init, bias_init; /* zero: the preset's default */
} vkt_nn_conv_transpose2d_params;
/* The options of a 1d transposed convolution. A member that is 0 selects the default of the builder's preset.
 * out_channels and kernel have no default. */
typedef struct vkt_nn_conv_transpose1d_params {
    uint32_t out_channels, kernel;                      /* O, K */
    uint32_t stride, pad, dilation, groups, output_pad; /* stride, dilation and groups: 0 means 1 */
    bool no_bias;                                       /* torch: bias=False */
    vkt_init weight_init, bias_init;                    /* zero: the preset's default */
} vkt_nn_conv_transpose1d_params;
/* Add the parameters of a transposed convolution:
 *   2d  x (N,C,H,W), <name>.weight (C, O/groups, R, S), <name>.bias (O); fan_in of the initialisers is O/groups * R * S
 *   1d  x (N,C,L), <name>.weight (C, O/groups, K), <name>.bias (O); fan_in of the initialisers is O/groups * K
 * fan_in is computed as in torch. */
VKT_API vkt_tensor vkt_nn_conv_transpose2d(vkt_builder *b, const char *name, vkt_tensor x,
                                           const vkt_nn_conv_transpose2d_params *p);
VKT_API vkt_tensor vkt_nn_conv_transpose1d(vkt_builder *b, const char *name, vkt_tensor x,
                                           const vkt_nn_conv_transpose1d_params *p);

/* The options of a linear layer. A member that is 0 selects the default of the builder's preset. out_features has no
 * default. */
typedef struct vkt_nn_linear_params {
    uint32_t out_features;           /* number of rows of the weight */
    bool no_bias;                    /* torch: bias=False */
    vkt_init weight_init, bias_init; /* zero: the preset's default */
} vkt_nn_linear_params;
/* Adds parameters <name>.weight (out, in) and <name>.bias (out). x (B, in), or (.., in) of more than two dimensions:
 * see vkt_linear. */
VKT_API vkt_tensor vkt_nn_linear(vkt_builder *b, const char *name, vkt_tensor x, const vkt_nn_linear_params *p);

/* The options of a linear layer whose weights are in an array and are never trained. weight and out_features have no
 * default. */
typedef struct vkt_nn_linear_quantized_params {
    vkt_array *weight;     /* u32: the quantized weights, packed as vkt_linear_quantized wants. With `format` 0: f32
                            * (out,in). The array must outlive the programs. A program of another context uses the copy
                            * of the array in that context (vkt_array_copy) */
    vkt_quant format;      /* 0: f32 */
    uint32_t out_features; /* number of rows of the weight */
    vkt_array *bias;       /* f32 (out). It must outlive the programs. NULL: no bias */
} vkt_nn_linear_quantized_params;
/* Applies a linear layer with frozen weights: see vkt_linear_quantized. x (..,in). The arrays become external values
 * "<scopes>.<name>.weight" and "<scopes>.<name>.bias" (vkt_external_array). These values are not in the store. The
 * summary counts their elements as frozen parameters. */
VKT_API vkt_tensor vkt_nn_linear_quantized(vkt_builder *b, const char *name, vkt_tensor x,
                                           const vkt_nn_linear_quantized_params *p);

/* ---- low-rank adapters ---- Hu et al., LoRA, 2021; the names and initial values are those of PEFT 0.17. */

/* The options of adapters. targets has no default. In a target, '*' stands for any text. A target with a '*' is
 * compared with the whole name of a layer, with its scopes. A target without a '*' must be the whole name, or the last
 * parts of the name. For instance, q_proj and self_attn.q_proj match the layer model.layers.0.self_attn.q_proj (PEFT's
 * target_modules). */
typedef struct vkt_lora_params {
    const char *const *targets; /* which layers have an adapter */
    uint32_t n_targets;         /* number of targets */
    uint32_t rank;              /* r; 0 means 8 */
    float alpha;                /* an adapter's output is multiplied by alpha / r. An alpha of 0 counts as r, and
                                 * VKT_ZERO as the number 0 */
    float dropout;              /* dropout of the adapter's input, in training; below 1; 0: none */
} vkt_lora_params;
/* Adds adapters to the linear layers (vkt_nn_linear, vkt_nn_linear_quantized) that are made from now on and whose names
 * match a target:
 *   y = layer(x) + alpha / r * lora_B lora_A dropout(x)
 * An adapter has two parameters. <name>.lora_A.weight (r, in) is uniform in +-1/sqrt(in) at first. <name>.lora_B.weight
 * (out, r) is 0 at first. Weight and bias of a vkt_nn_linear with an adapter are frozen (vkt_freeze). If p is NULL, the
 * layers from now on have no adapters. p is copied. VKT_E_ARG: there is no target, a target is empty, alpha is not
 * finite, or dropout is not in [0,1). */
VKT_API void vkt_builder_set_lora(vkt_builder *b, const vkt_lora_params *p);
/* Checks the graph and the targets. Returns VKT_OK or the error of the graph. VKT_E_NOT_FOUND: a target of the last
 * vkt_builder_set_lora matches no layer so far; the message names the target. Call this function when the model is
 * built. Trainers, predictors, generators and vkt_nn_init call it, too. */
VKT_API vkt_result vkt_builder_check(const vkt_builder *b);
/* vkt_lora_merge adds the adapters of a store to its weights: <name>.weight += alpha / r * lora_B lora_A, for all
 * layers whose weight and adapter are both in the store. A merged layer without its adapter computes what the layer
 * with the adapter computed, up to rounding. vkt_lora_unmerge subtracts the same products. Sums are computed
 * in double precision, and each call rounds each weight once. So after both calls a weight may differ from its first
 * value by up to one unit in the last place of the merged or the unmerged weight, whichever is larger.
 *     p  the params of vkt_builder_set_lora; only rank and alpha are used
 * VKT_E_NOT_FOUND: no layer has both weight and adapter in the store. VKT_E_SHAPE: an adapter has another rank. After
 * these two errors, no weight has changed. VKT_E_ARG, VKT_E_NOMEM. */
VKT_API vkt_result vkt_lora_merge(vkt_store *s, const vkt_lora_params *p);
VKT_API vkt_result vkt_lora_unmerge(vkt_store *s, const vkt_lora_params *p);

/* ---- more layers ---- */

/* The options of a batch norm. A member that is 0 selects the preset's default. */
typedef struct vkt_nn_batch_norm_params {
    float eps, momentum; /* eps is added to the variance. momentum is the weight of the new statistics. For both, 0
                          * means the preset's default (torch: eps 1e-5, momentum 0.1), and VKT_ZERO means 0 */
    bool no_affine;      /* no weight and no bias */
    bool biased;         /* the running variance is biased (ONNX). With Keras' presets it is always biased, except for
                          * (N,C,H,W) with VKT_PRESET_TF_KERAS */
    bool use_running;    /* normalise with the running statistics in training too, and do not change them */
} vkt_nn_batch_norm_params;
/* Adds the parameters <name>.weight (C) and <name>.bias (C), and the states <name>.running_mean and
 * <name>.running_var. weight and running_var start as 1, and bias and running_mean start as 0. x (N,C,...): torch's
 * BatchNorm1d, 2d and 3d. Outside training the layer uses the running statistics. */
VKT_API vkt_tensor vkt_nn_batch_norm(vkt_builder *b, const char *name, vkt_tensor x, const vkt_nn_batch_norm_params *p);

/* The options of vkt_nn_layer_norm, vkt_nn_rms_norm and vkt_nn_group_norm. */
typedef struct vkt_nn_norm_params {
    float eps;      /* 0: the preset's default (torch: the default of the op in ops.h); VKT_ZERO: 0 */
    bool no_affine; /* no weight and no bias */
} vkt_nn_norm_params;
/* Normalise over the last dimension of x. Both layers add a parameter <name>.weight, 1 at first. vkt_nn_layer_norm also
 * adds <name>.bias, 0 at first. */
VKT_API vkt_tensor vkt_nn_layer_norm(vkt_builder *b, const char *name, vkt_tensor x, const vkt_nn_norm_params *p);
VKT_API vkt_tensor vkt_nn_rms_norm(vkt_builder *b, const char *name, vkt_tensor x, const vkt_nn_norm_params *p);
/* Normalises groups of channels of each sample, x (N,C,...). Adds the parameters of vkt_nn_layer_norm, of shape (C). */
VKT_API vkt_tensor vkt_nn_group_norm(vkt_builder *b, const char *name, vkt_tensor x, uint32_t groups,
                                     const vkt_nn_norm_params *p);

/* Pool square windows side by side: stride = kernel, no padding. x (N,C,H,W). */
VKT_API vkt_tensor vkt_nn_max_pool2d(vkt_builder *b, vkt_tensor x, uint32_t kernel);
VKT_API vkt_tensor vkt_nn_avg_pool2d(vkt_builder *b, vkt_tensor x, uint32_t kernel);
/* The options of pooling with a stride, padding and dilation: see vkt_max_pool2d. */
typedef struct vkt_nn_pool2d_params {
    uint32_t kernel[2];   /* [0] along H, [1] along W; kernel[1] = 0 means kernel[0] */
    uint32_t stride[2];   /* [0] along H, [1] along W. If both are 0, they mean the size of the kernel. If only
                           * stride[0] is 0, it means kernel[0]. If only stride[1] is 0, it means stride[0] */
    uint32_t pad[2];      /* as in vkt_nn_conv2d_params */
    uint32_t dilation[2]; /* as in vkt_nn_conv2d_params; see vkt_pool2d_params */
    bool ceil_mode;       /* see vkt_pool2d_params */
    bool exclude_pad;     /* average pooling: divide by the number of elements of the window that are in the image
                           * (torch: count_include_pad = False) */
} vkt_nn_pool2d_params;
VKT_API vkt_tensor vkt_nn_max_pool2d_with(vkt_builder *b, vkt_tensor x, const vkt_nn_pool2d_params *p);
VKT_API vkt_tensor vkt_nn_avg_pool2d_with(vkt_builder *b, vkt_tensor x, const vkt_nn_pool2d_params *p);

/* Each function adds the op of the same name (ops.h), and a line in the summary. */
VKT_API vkt_tensor vkt_nn_max_pool1d(vkt_builder *b, vkt_tensor x, const vkt_pool1d_params *p);
VKT_API vkt_tensor vkt_nn_avg_pool1d(vkt_builder *b, vkt_tensor x, const vkt_pool1d_params *p);
VKT_API vkt_tensor vkt_nn_adaptive_max_pool1d(vkt_builder *b, vkt_tensor x, uint32_t out);
VKT_API vkt_tensor vkt_nn_adaptive_avg_pool1d(vkt_builder *b, vkt_tensor x, uint32_t out);
VKT_API vkt_tensor vkt_nn_global_max_pool(vkt_builder *b, vkt_tensor x); /* (N,C,H,W) or (N,C,L) -> (N,C) */
VKT_API vkt_tensor vkt_nn_global_avg_pool(vkt_builder *b, vkt_tensor x);
VKT_API vkt_tensor vkt_nn_adaptive_max_pool2d(vkt_builder *b, vkt_tensor x, uint32_t out_h, uint32_t out_w);
VKT_API vkt_tensor vkt_nn_adaptive_avg_pool2d(vkt_builder *b, vkt_tensor x, uint32_t out_h, uint32_t out_w);
/* Adds x and y by vkt_add, for instance around a block of a residual network, with a line in the summary. */
VKT_API vkt_tensor vkt_nn_add(vkt_builder *b, vkt_tensor x, vkt_tensor y);
/* Each function adds the op of the same name (ops.h), and a line in the summary. */
VKT_API vkt_tensor vkt_nn_relu(vkt_builder *b, vkt_tensor x);
VKT_API vkt_tensor vkt_nn_leaky_relu(vkt_builder *b, vkt_tensor x, float slope);
VKT_API vkt_tensor vkt_nn_elu(vkt_builder *b, vkt_tensor x, float alpha);
VKT_API vkt_tensor vkt_nn_gelu(vkt_builder *b, vkt_tensor x);
VKT_API vkt_tensor vkt_nn_gelu_tanh(vkt_builder *b, vkt_tensor x);
VKT_API vkt_tensor vkt_nn_silu(vkt_builder *b, vkt_tensor x);
VKT_API vkt_tensor vkt_nn_swiglu(vkt_builder *b, vkt_tensor gate, vkt_tensor up); /* silu(gate) * up: see vkt_swiglu */
VKT_API vkt_tensor vkt_nn_hardswish(vkt_builder *b, vkt_tensor x);
VKT_API vkt_tensor vkt_nn_sigmoid(vkt_builder *b, vkt_tensor x);
VKT_API vkt_tensor vkt_nn_tanh(vkt_builder *b, vkt_tensor x);
VKT_API vkt_tensor vkt_nn_softplus(vkt_builder *b, vkt_tensor x, float beta, float threshold);
/* Adds parameter <name>.weight. Its shape is (1), or (C) if per_channel is true and x is (N,C,..). The weight starts as
 * 0.25 (He et al. 2015) with torch's preset, and as 0 with a preset of Keras. */
VKT_API vkt_tensor vkt_nn_prelu(vkt_builder *b, const char *name, vkt_tensor x, bool per_channel);
VKT_API vkt_tensor vkt_nn_dropout(vkt_builder *b, vkt_tensor x, float p);   /* identity outside training */
VKT_API vkt_tensor vkt_nn_dropout2d(vkt_builder *b, vkt_tensor x, float p); /* identity outside training */
/* Each function adds the op of the same name (ops.h), and a line in the summary. */
VKT_API vkt_tensor vkt_nn_softmax(vkt_builder *b, vkt_tensor x, int32_t axis);
VKT_API vkt_tensor vkt_nn_log_softmax(vkt_builder *b, vkt_tensor x, int32_t axis);
VKT_API vkt_tensor vkt_nn_flatten(vkt_builder *b, vkt_tensor x);
/* Resizes x (N,C,H,W): see vkt_upsample2d. */
VKT_API vkt_tensor vkt_nn_upsample2d(vkt_builder *b, vkt_tensor x, const vkt_upsample2d_params *p);
/* Pads x (N,C,H,W) with `value` -> (N, C, H + top + bottom, W + left + right). The arguments are in torch's order. */
VKT_API vkt_tensor vkt_nn_constant_pad2d(vkt_builder *b, vkt_tensor x, uint32_t left, uint32_t right, uint32_t top,
                                         uint32_t bottom, float value);

/* The options of an embedding. A member that is 0 selects the default of the builder's preset. num_embeddings and
 * embedding_dim have no default. */
typedef struct vkt_nn_embedding_params {
    uint32_t num_embeddings, embedding_dim; /* V, D */
    bool has_padding;                       /* row padding_id starts as zeros and gets no gradient */
    uint32_t padding_id;                    /* below V; used with has_padding only */
    bool channels;                          /* the result is (B,D,..) BATCH_LAST, for a convolution, instead of (..,D)
                                             * ROWS */
    vkt_init weight_init; /* VKT_INIT_DEFAULT: the preset's default; for torch it is standard normal */
} vkt_nn_embedding_params;
/* Adds parameter <name>.weight (V, D). ids u32 of any rank; see vkt_embedding. */
VKT_API vkt_tensor vkt_nn_embedding(vkt_builder *b, const char *name, vkt_tensor ids, const vkt_nn_embedding_params *p);

/* The options of a hash grid layer. A member that is 0 selects the default. */
typedef struct vkt_nn_hash_grid_params {
    vkt_hash_grid_params grid; /* levels, features of an entry, table size and resolutions */
    vkt_init table_init;       /* VKT_INIT_DEFAULT: uniform in [-1e-4, 1e-4), as in Mueller et al. 2022 */
} vkt_nn_hash_grid_params;
/* Adds parameter <name>.table (E, F). x (B,2) or (B,3) in [0,1] -> (B, L * F), for E entries of F numbers, and L
 * levels: see vkt_hash_grid. */
VKT_API vkt_tensor vkt_nn_hash_grid(vkt_builder *b, const char *name, vkt_tensor x, const vkt_nn_hash_grid_params *p);
VKT_API vkt_tensor vkt_nn_frequency(vkt_builder *b, vkt_tensor x, uint32_t frequencies); /* see vkt_frequency */
VKT_API vkt_tensor vkt_nn_rope(vkt_builder *b, vkt_tensor x, const vkt_rope_params *p);  /* see vkt_rope */

/* The options of vkt_nn_multi_head_attention. The comment of that function explains D and the layers c_attn and c_proj.
 * A member that is 0 selects the default. `heads` has no default. */
typedef struct vkt_nn_multi_head_attention_params {
    uint32_t heads;                  /* divides D */
    bool causal;                     /* a token sees itself and earlier tokens only */
    bool no_bias;                    /* neither c_attn nor c_proj has a bias */
    float dropout;                   /* dropout of the attention weights, in training */
    vkt_init weight_init, bias_init; /* initial values of c_attn and c_proj; zero: as in vkt_nn_linear */
    vkt_init proj_init;              /* initial values of c_proj.weight; VKT_INIT_DEFAULT: weight_init */
    uint32_t kv_heads;               /* number of heads of k and v; divides `heads`; 0 means `heads` */
} vkt_nn_multi_head_attention_params;
/* Adds self-attention of x (B,T,D) -> (B,T,D), ROWS, with GPT-2's names. One layer <name>.c_attn, with weight (3D, D)
 * and bias (3D), computes q, k and v. A head has D / heads numbers of q, of k and of v (see vkt_attention_packed). The
 * layer <name>.c_proj has weight (D, D) and bias (D). With kv_heads = K, c_attn has D + 2 K D / heads outputs instead
 * of 3D: q of all heads, then k and v of K heads. */
VKT_API vkt_tensor vkt_nn_multi_head_attention(vkt_builder *b, const char *name, vkt_tensor x,
                                               const vkt_nn_multi_head_attention_params *p);

/* Initialises every parameter and state that was made with the builder. Random numbers come from Philox. The values of
 * a parameter depend only on the seed, on the parameter's shape and distribution, and on how many parameters and states
 * were made before it. (In an embedding with has_padding, row padding_id is 0.) VKT_E_NOT_FOUND: the store lacks a
 * parameter or state of the builder, or has it with another shape. Also returns the errors of vkt_builder_check. */
VKT_API vkt_result vkt_nn_init(const vkt_builder *b, vkt_store *store, uint64_t seed);

/* Prints the table of layers: name, output shape, parameters, and memory of parameters and output together. Below the
 * table the function prints the number of parameters, and how many of them are trainable and frozen. The arrays of
 * vkt_nn_linear_quantized count as frozen parameters. vkt_text_release frees *text. */
VKT_API vkt_result vkt_nn_summary(const vkt_builder *b, const char *title, char **text);
VKT_API uint64_t vkt_nn_parameters(const vkt_builder *b); /* number of elements of all parameters. States,
                                                           * and arrays of vkt_nn_linear_quantized, do
                                                           * not count */

#ifdef __cplusplus
}
#endif
#endif
