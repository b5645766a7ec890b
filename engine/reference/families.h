/* reference/families.h - all references (vkt_ref_op), for the table in reference.c, and functions that several files of
 * this folder use. */
#ifndef VKT_REFERENCE_FAMILIES_H
#define VKT_REFERENCE_FAMILIES_H

#include "reference/reference.h"

extern const vkt_ref_op vkt_ref_matmul, vkt_ref_linear, vkt_ref_conv2d, vkt_ref_conv_transpose2d, vkt_ref_pool2d;
extern const vkt_ref_op vkt_ref_conv2d_max_pool;
extern const vkt_ref_op vkt_ref_relu, vkt_ref_leaky_relu, vkt_ref_elu, vkt_ref_gelu, vkt_ref_gelu_tanh, vkt_ref_silu;
extern const vkt_ref_op vkt_ref_sigmoid, vkt_ref_tanh, vkt_ref_softplus, vkt_ref_hardswish, vkt_ref_exp, vkt_ref_log;
extern const vkt_ref_op vkt_ref_sqrt, vkt_ref_abs, vkt_ref_clamp, vkt_ref_scale;
extern const vkt_ref_op vkt_ref_add, vkt_ref_sub, vkt_ref_mul, vkt_ref_div, vkt_ref_minimum, vkt_ref_maximum;
extern const vkt_ref_op vkt_ref_pow, vkt_ref_prelu, vkt_ref_where;
extern const vkt_ref_op vkt_ref_stop_gradient, vkt_ref_dropout, vkt_ref_to_f32, vkt_ref_reshape, vkt_ref_to_layout,
    vkt_ref_write;
extern const vkt_ref_op vkt_ref_permute, vkt_ref_slice, vkt_ref_concat, vkt_ref_pad, vkt_ref_upsample2d;
extern const vkt_ref_op vkt_ref_sum, vkt_ref_mean, vkt_ref_sum_to, vkt_ref_max_to, vkt_ref_min_to, vkt_ref_expand;
extern const vkt_ref_op vkt_ref_softmax_xent, vkt_ref_cross_entropy, vkt_ref_nll, vkt_ref_argmax, vkt_ref_count_correct;
extern const vkt_ref_op vkt_ref_mse, vkt_ref_l1, vkt_ref_smooth_l1, vkt_ref_huber, vkt_ref_bce, vkt_ref_bce_logits,
    vkt_ref_kl_div, vkt_ref_relative_l2;
extern const vkt_ref_op vkt_ref_batch_norm, vkt_ref_batch_norm_given, vkt_ref_running_stats, vkt_ref_row_norm;
extern const vkt_ref_op vkt_ref_mlp, vkt_ref_mlp_mse;
extern const vkt_ref_op vkt_ref_gather_rows, vkt_ref_gather_labels, vkt_ref_gather_ids;
extern const vkt_ref_op vkt_ref_append, vkt_ref_attention_cached;
extern const vkt_ref_op vkt_ref_embedding, vkt_ref_softmax, vkt_ref_attention, vkt_ref_hash_grid, vkt_ref_frequency;
extern const vkt_ref_op vkt_ref_linear_cross_entropy, vkt_ref_linear_cross_entropy_dx;
extern const vkt_ref_op vkt_ref_linear_quantized, vkt_ref_embedding_quantized;
extern const vkt_ref_op vkt_ref_latent_grid, vkt_ref_quantize, vkt_ref_rope, vkt_ref_swiglu;
extern const vkt_ref_op vkt_ref_op_sgd, vkt_ref_op_adam, vkt_ref_op_rmsprop, vkt_ref_op_adagrad, vkt_ref_op_publish;

/* Returns the number of elements, as size_t. */
static inline size_t vkt_ref_count(vkt_shape s)
{
    size_t n = 1;
    for (uint32_t i = 0; i < s.rank; i++) n *= s.dim[i];
    return n;
}

/* Returns the row-major position of (a,b,c,d) in a tensor of rank 4. */
static inline size_t vkt_ref_at4(vkt_shape s, size_t a, size_t b, size_t c, size_t d)
{
    return ((a * s.dim[1] + b) * s.dim[2] + c) * s.dim[3] + d;
}

/* Returns the weight in row `row` and column `column` of a quantized matrix. */
double vkt_ref_quantized(const vkt_quantized_attr *a, const uint32_t *words, size_t row, size_t column);
/* Broadcasting copies an element of a tensor of shape `small` to element i of a tensor of shape `large`. Returns the
 * index of that element of the small tensor. The shapes are aligned at the right. Where `small` has dimension 1, the
 * index along this dimension is 0. */
size_t vkt_ref_broadcast(vkt_shape large, vkt_shape small, size_t i);

#endif
