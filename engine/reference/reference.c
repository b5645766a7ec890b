/* reference/reference.c - the table of all references. */
#include "reference/families.h"

static const vkt_ref_op *const table[] = {
    /* clang-format off */
    &vkt_ref_matmul,
    &vkt_ref_linear,
    &vkt_ref_conv2d,
    &vkt_ref_conv2d_max_pool,
    &vkt_ref_conv_transpose2d,
    &vkt_ref_pool2d,
    &vkt_ref_relu,
    &vkt_ref_leaky_relu,
    &vkt_ref_elu,
    &vkt_ref_gelu,
    &vkt_ref_gelu_tanh,
    &vkt_ref_silu,
    &vkt_ref_sigmoid,
    &vkt_ref_tanh,
    &vkt_ref_softplus,
    &vkt_ref_hardswish,
    &vkt_ref_exp,
    &vkt_ref_log,
    &vkt_ref_sqrt,
    &vkt_ref_abs,
    &vkt_ref_clamp,
    &vkt_ref_scale,
    &vkt_ref_dropout,
    &vkt_ref_add,
    &vkt_ref_sub,
    &vkt_ref_mul,
    &vkt_ref_div,
    &vkt_ref_minimum,
    &vkt_ref_maximum,
    &vkt_ref_pow,
    &vkt_ref_prelu,
    &vkt_ref_where,
    &vkt_ref_reshape,
    &vkt_ref_to_layout,
    &vkt_ref_write,
    &vkt_ref_permute,
    &vkt_ref_slice,
    &vkt_ref_concat,
    &vkt_ref_pad,
    &vkt_ref_upsample2d,
    &vkt_ref_sum,
    &vkt_ref_mean,
    &vkt_ref_sum_to,
    &vkt_ref_max_to,
    &vkt_ref_min_to,
    &vkt_ref_expand,
    &vkt_ref_softmax_xent,
    &vkt_ref_cross_entropy,
    &vkt_ref_nll,
    &vkt_ref_mse,
    &vkt_ref_l1,
    &vkt_ref_smooth_l1,
    &vkt_ref_huber,
    &vkt_ref_bce,
    &vkt_ref_bce_logits,
    &vkt_ref_kl_div,
    &vkt_ref_relative_l2,
    &vkt_ref_argmax,
    &vkt_ref_count_correct,
    &vkt_ref_gather_rows,
    &vkt_ref_gather_labels,
    &vkt_ref_gather_ids,
    &vkt_ref_embedding,
    &vkt_ref_hash_grid,
    &vkt_ref_frequency,
    &vkt_ref_softmax,
    &vkt_ref_attention,
    &vkt_ref_mlp,
    &vkt_ref_mlp_mse,
    &vkt_ref_op_sgd,
    &vkt_ref_op_adam,
    &vkt_ref_op_rmsprop,
    &vkt_ref_op_adagrad,
    &vkt_ref_op_publish,
    &vkt_ref_batch_norm,
    &vkt_ref_batch_norm_given,
    &vkt_ref_running_stats,
    &vkt_ref_row_norm,
    /* clang-format on */
};

const vkt_ref_op *vkt_ref_find(const char *name)
{
    for (size_t i = 0; i < VKT_COUNT(table); i++)
        if (strcmp(table[i]->name, name) == 0) return table[i];
    return NULL;
}

size_t vkt_ref_broadcast(vkt_shape large, vkt_shape small, size_t i)
{
    size_t at = 0, stride = 1;
    for (uint32_t k = 0; k < small.rank; k++) { /* k counts dimensions from the right */
        const size_t n = small.dim[small.rank - 1 - k], index = i % large.dim[large.rank - 1 - k];
        i /= large.dim[large.rank - 1 - k];
        if (n > 1) at += index * stride;
        stride *= n;
    }
    return at;
}
