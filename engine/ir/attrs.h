/* ir/attrs.h - attributes of nodes, for ops/ and reference/. Defaults are filled in. Where a 0 still means a default,
 * the comment of the member says so. */
#ifndef VKT_ATTRS_H
#define VKT_ATTRS_H

#include "vktrain/ops.h"

typedef struct vkt_matmul_attr {
    bool trans_a, trans_b;
} vkt_matmul_attr;

typedef struct vkt_conv2d_attr {
    uint32_t stride[2], pad[2], dilation[2], groups; /* `groups` groups of channels. stride, dilation, groups >= 1 */
} vkt_conv2d_attr;

typedef struct vkt_conv_transpose2d_attr {
    uint32_t stride[2], pad[2], dilation[2], groups; /* `groups` groups of channels. stride, dilation, groups >= 1 */
    uint32_t output_pad[2];                          /* less than max(stride, dilation), along each axis */
} vkt_conv_transpose2d_attr;

typedef struct vkt_pool2d_attr {
    bool average, adaptive;
    uint32_t kernel[2], stride[2], pad[2]; /* 0 if adaptive */
    uint32_t dilation[2];                  /* max pooling: distance between the elements of a window; 0 means 1 */
    bool ceil_mode, exclude_pad;
    bool relu;       /* max pooling of max(x, 0) instead of x */
    uint32_t out[2]; /* height and width of the output. Adaptive pooling: the user sets them. Else they are computed
                      * from the size of x, before vkt_op.infer runs */
} vkt_pool2d_attr;

/* A convolution with the output z, and the max pooling y of z. `cell` is the height and width of a pooling window. The
 * windows neither overlap nor reach into padding. `relu` is a uint32_t so that the struct has no padding bytes: see
 * vkt_op.attr_bytes. */
typedef struct vkt_conv2d_max_pool_attr {
    vkt_conv2d_attr conv;
    uint32_t cell[2];
    uint32_t relu; /* 1: y is the maximum of max(z, 0), not of z */
} vkt_conv2d_max_pool_attr;

/* philox(counter, key) returns four random words. The element at index e in memory is kept if word e % 4 of
 * philox((e / 4, t, salt, VKT_STREAM_DROPOUT), seed) is at least `threshold`; otherwise it becomes 0. t is the word
 * STEP_DRAW of the step state (abi/step.abi.h). With `planes`, all elements of the plane of sample n and channel c use
 * the word for e = c * N' + n, where N' is the number of samples, rounded up to a multiple of 4. */
typedef struct vkt_dropout_attr {
    uint32_t threshold; /* round(p * 2^32), at most 0xffffffff */
    float scale;        /* 1 / (1 - p); 0 for p = 1 */
    uint32_t salt;      /* distinguishes the dropouts of a graph */
    bool planes;
} vkt_dropout_attr;

/* Each of the next five structs is one or two floats. ops/elementwise/unary.c reads each as an array of floats. */
typedef struct vkt_leaky_relu_attr {
    float slope;
} vkt_leaky_relu_attr;

typedef struct vkt_elu_attr {
    float alpha;
} vkt_elu_attr;

typedef struct vkt_softplus_attr {
    float beta, threshold;
} vkt_softplus_attr;

typedef struct vkt_clamp_attr {
    float min, max;
} vkt_clamp_attr;

typedef struct vkt_scale_attr {
    float scale, shift;
} vkt_scale_attr;

typedef struct vkt_batch_norm_attr {
    float eps;
    uint32_t given; /* 1: the node is the gradient of a batch_norm_given, so mean and variance are constants. 0: any
                     * other node */
} vkt_batch_norm_attr;

/* x, in VKT_ROWS, is read as a tensor of shape (samples, groups, channels, inner). Each group of channels of
 * each sample is normalised alone. */
typedef struct vkt_row_norm_attr {
    uint32_t groups, channels, inner;
    uint32_t rms; /* 1: the mean is not subtracted */
    float eps;
} vkt_row_norm_attr;

/* `batch` is the number of samples of the batch. In each sample, a channel has `positions` elements. The new statistics
 * of a channel are computed from its n elements in the real samples (vkt_run.rows). */
typedef struct vkt_running_stats_attr {
    uint32_t batch, positions;
    uint32_t unbiased; /* 1: the new variance is multiplied by n / max(n - 1, 1), so that it is unbiased */
    float momentum;    /* weight of the new statistics */
} vkt_running_stats_attr;

typedef struct vkt_publish_attr {
    double decay; /* weight of the old published value when the op averages (publish.c). 0: the op always copies */
} vkt_publish_attr;

/* For the ops shard_begin, shard_give and shard_take (ops/step/shard.c). A range of the parameter arena that has only
 * states (vkt_state). */
typedef struct vkt_shard_state_attr {
    uint64_t offset_bytes, bytes; /* in the arena; multiples of VKT_ALIGN_BYTES */
    uint64_t copy_bytes;          /* offset, in input 1, of the copy of the range; a multiple of VKT_ALIGN_BYTES */
} vkt_shard_state_attr;

/* For the op shard_sum (ops/step/shard.c). A bucket of the gradient arena. */
typedef struct vkt_shard_sum_attr {
    uint64_t offset_bytes, bytes; /* in the arena; multiples of VKT_ALIGN_BYTES */
    uint32_t levels;              /* this rank has 2^levels shards */
    uint32_t parts;               /* number of runs that compute one shard */
    uint32_t bf16;   /* 1: when gradients of shards are added, each summand is rounded to bfloat16. Summands
                      * of states are not rounded */
    uint32_t unused; /* 0; without this member the struct would have padding bytes */
} vkt_shard_sum_attr;

/* Input number `params` + 2 i of the node is the weight of layer i. The next input is the bias of layer i, or {0} if
 * the layer has no bias. */
typedef struct vkt_mlp_attr {
    uint32_t layers, params;
    uint32_t grads; /* bit i: the node computes the gradient of input i. The gradients are outputs, in the order of the
                     * inputs. 0 in the op mlp, which computes no gradient */
} vkt_mlp_attr;

typedef struct vkt_pair_loss_attr {
    uint32_t reduction;  /* vkt_loss_reduction */
    uint32_t log_target; /* kl_div: the targets are log-probabilities */
    float beta;    /* smooth_l1, huber: largest |y - t| with a quadratic loss; relative_l2: epsilon; other losses: 1 */
    uint32_t kind; /* pair_loss_dx: the loss that the op differentiates (LOSS_MSE .. of abi/loss.abi.h); other ops: 0 */
} vkt_pair_loss_attr;

typedef struct vkt_cross_entropy_attr {
    uint32_t ignore; /* rows with this label do not count */
    uint32_t sum;    /* 1: the loss is the sum over the rows; 0: the mean over the rows, unless `each` is 1 */
    uint32_t group;  /* number of rows of z for each sample of the batch, for instance the tokens of a text */
    float smoothing;
    uint32_t each; /* 1: one loss for each row of z, neither added nor divided */
} vkt_cross_entropy_attr;

typedef struct vkt_shape_attr {
    vkt_shape shape;
} vkt_shape_attr;

typedef struct vkt_expand_attr {
    vkt_shape shape;
    vkt_layout layout;
} vkt_expand_attr;

typedef struct vkt_layout_attr {
    vkt_layout layout;
} vkt_layout_attr;

/* Dimension i of the result is dimension perm[i] of the input. Entries beyond the rank are 0. */
typedef struct vkt_permute_attr {
    uint32_t perm[VKT_MAX_RANK];
} vkt_permute_attr;

/* For each dimension: y[i] = x[start + step * i]. If `flip` is set, y[i] = x[start + step * (size - 1 - i)]. Entries
 * beyond the rank are not used: start 0, step 1, size 0. */
typedef struct vkt_slice_attr {
    uint32_t start[VKT_MAX_RANK], step[VKT_MAX_RANK], size[VKT_MAX_RANK]; /* step >= 1 */
    bool flip[VKT_MAX_RANK];
} vkt_slice_attr;

/* For each dimension: y[before + gap * i] = x[i], gap >= 1. All other elements of y are `value`; `after` of them follow
 * the last element of x. */
typedef struct vkt_pad_attr {
    uint32_t before[VKT_MAX_RANK], after[VKT_MAX_RANK], gap[VKT_MAX_RANK];
    float value; /* a whole number for u32 */
} vkt_pad_attr;

typedef struct vkt_concat_attr {
    uint32_t axis;
} vkt_concat_attr;

typedef struct vkt_upsample2d_attr {
    uint32_t out[2]; /* height and width of the output */
    bool bilinear, align_corners;
} vkt_upsample2d_attr;

typedef struct vkt_softmax_attr {
    uint32_t axis;
    uint32_t log;    /* 1: the logarithm of the softmax */
    uint32_t causal; /* 1: x is (.., T, S), and row t of (T, S) uses columns 0 .. t only. In this case `log` is 0 */
    float scale;
} vkt_softmax_attr;

typedef struct vkt_attention_attr {
    uint32_t heads;  /* number of heads of q, if q, k and v are in one tensor (B,T,(heads + 2 * heads / group) * D).
                      * 1 if q, k and v are three tensors */
    uint32_t group;  /* number of heads of q that read the same head of k and v; at least 1 */
    uint32_t causal; /* 1: query t uses keys 0 .. t only */
    float scale;
} vkt_attention_attr;

/* q (..,H,T,D), k and v (..,H / group,C,D). C is the largest number of keys. Query t uses keys 0 to
 * min(past + t, C - 1). The number `past` is the op's input 3. */
typedef struct vkt_attention_cached_attr {
    uint32_t group;
    float scale;
} vkt_attention_cached_attr;

typedef struct vkt_embedding_attr {
    uint32_t padding;  /* the row of this id gets no gradient. VKT_NO_PADDING: there is no such row */
    uint32_t channels; /* 1: y is (B,D,..) in VKT_BATCH_LAST. 0: y is in VKT_ROWS, and has a row of the table for each
                        * id. In embedding_dw, this is the form of dy */
    vkt_shape table;   /* shape of embedding_dw's result; rank 0 in `embedding` */
} vkt_embedding_attr;

/* Quantized weights (rows,columns). */
typedef struct vkt_quantized_attr {
    uint32_t format; /* vkt_quant */
    uint32_t rows, columns;
    uint32_t transposed; /* linear_quantized: 1: y = x w; 0: y = x w^T */
} vkt_quantized_attr;

/* The weights are f32 or quantized, (rows,columns). The struct has no padding bytes: see vkt_op.attr_bytes. */
typedef struct vkt_linear_xent_attr {
    uint32_t format; /* vkt_quant; 0: f32 */
    uint32_t rows, columns;
    uint32_t ignore; /* rows with this label do not count */
    uint32_t sum;    /* 1: the loss is the sum over the rows; 0: the mean over the rows */
    uint32_t group;  /* number of labels of each sample of the batch */
    uint32_t grads;  /* the gradients that linear_cross_entropy_dx computes. 1: dx, 2: dw, 3: both. 0 in the op
                      * linear_cross_entropy */
} vkt_linear_xent_attr;

/* vkt_hash_grid_params with all defaults filled in. The struct has no padding bytes: see vkt_op.attr_bytes. */
typedef struct vkt_hash_grid_attr {
    uint32_t levels, features, log2_table_size, base_resolution;
    double per_level_scale;
} vkt_hash_grid_attr;

typedef struct vkt_frequency_attr {
    uint32_t frequencies;
} vkt_frequency_attr;

/* x and y are (..,T,D) if `heads` is 0. Else x_split and y_split select their shapes. */
typedef struct vkt_rope_attr {
    uint32_t heads;
    uint32_t x_split, y_split; /* if heads > 0: the shape of x, or of y. 0: (B,T,heads * D). 1: (B,heads,T,D) */
    uint32_t rotated;          /* if heads > 0: the first `rotated` heads are rotated, and the others are copied */
    uint32_t halves;           /* input 1 has frequencies for P pairs. 1: pair i is the elements i and i + P of a head;
                                * 0: the elements 2i and 2i + 1 */
    uint32_t position;         /* position of token 0. The optional input 2 is added to the position */
    uint32_t inverse;          /* 1: rotates back */
} vkt_rope_attr;

typedef struct vkt_latent_grid_attr {
    uint32_t tile[2]; /* rows and columns of texels in the tile */
    uint32_t scale;   /* number of texels of a cell along each axis */
    uint32_t corners; /* 1: a texel gets the features of all four cells around it; 0: it gets features that are
                       * interpolated bilinearly from the four cells */
} vkt_latent_grid_attr;

typedef struct vkt_quantize_attr {
    uint32_t bits;  /* 2^bits levels */
    uint32_t noise; /* 1: adds noise instead of rounding */
    uint32_t salt;  /* the noise of the element at index e in memory is computed from word e % 4 of philox((e / 4, t,
                     * salt, VKT_STREAM_QUANTIZE), seed). t is the word STEP_DRAW of the step state */
} vkt_quantize_attr;

#define VKT_GATHER_CHANNELS 16
typedef struct vkt_gather_attr {
    uint32_t batch;
    vkt_shape sample;  /* (C,H,W) or (F); rank 0 for labels */
    uint32_t channels; /* C for a sample (C,H,W); 1 for a sample (F); not used for labels */
    double scale[VKT_GATHER_CHANNELS], shift[VKT_GATHER_CHANNELS];
} vkt_gather_attr;

typedef struct vkt_gather_ids_attr {
    uint32_t batch, length;
    bool packed;
} vkt_gather_ids_attr;

#endif
