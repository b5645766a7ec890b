/* Tests wrong uses of ops and of optimizers. Each wrong use sets the expected status and logs one message. The graph
 * keeps the status, and nothing leaks. No device is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "ops/ops.h"
#include "support/host.h"

/* ---- every op: the checks of vkt_apply ---- */

/* Applies `op` to n inputs in a graph of its own. Checks that the status is `want`, and that one message names the op.
 * null_input: input 0 is the null tensor. foreign: input 0 is no value of the graph. */
static void apply_wrongly(const vkt_op *op, uint32_t n, bool null_input, bool foreign, vkt_result want)
{
    const vkt_host h = vkt_test_host();
    static const unsigned char attr[512]; /* not read, because the inputs are refused first */
    vkt_graph *g = NULL;
    vkt_tensor in[VKT_MAX_IN + 1], out[VKT_MAX_OUT];
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    for (uint32_t i = 0; i < VKT_COUNT(in); i++) in[i] = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(4));
    if (null_input) in[0].id = 0;
    if (foreign) in[0].id = 1000;
    const unsigned before = vkt_test_errors();
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_apply(g, op, in, n, attr, out).id, 0);
    assert_int_equal(vkt_apply(g, op, in, n, attr, out).id, 0); /* the error is sticky; there are no further messages */
    vkt_test_expect_errors(false);
    assert_int_equal(vkt_graph_status(g), want);
    assert_int_equal(vkt_test_errors(), before + 1);
    vkt_test_error_contains(op->name);
    vkt_graph_destroy(&g);
}

static void wrong_inputs_of_every_op_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; vkt_ops[i]; i++) {
        const vkt_op *op = vkt_ops[i];
        apply_wrongly(op, op->min_in - 1u, false, false, VKT_E_ARG);
        apply_wrongly(op, op->max_in + 1u, false, false, VKT_E_ARG);
        apply_wrongly(op, op->min_in, true, false, VKT_E_ARG);
        apply_wrongly(op, op->min_in, false, true, VKT_E_ARG);
    }
}

/* Applies `op` to a legal case, except that input `wrong` has the element type `type`. Returns the graph's status. */
static vkt_result apply_with_type(const vkt_op *op, vkt_case *c, uint32_t wrong, vkt_dtype type)
{
    const vkt_host h = vkt_test_host();
    vkt_graph *g = NULL;
    vkt_tensor in[VKT_MAX_IN] = { { 0 } };
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    for (uint32_t i = 0; i < c->n_in; i++)
        if (!c->in[i].absent)
            in[i] = vkt_input(g, "x", i == wrong ? type : c->in[i].dtype, c->in[i].layout, c->in[i].shape);
    vkt_test_expect_errors(true);
    vkt_apply(g, op, in, c->n_in, c->attr, NULL);
    vkt_test_expect_errors(false);
    const vkt_result r = vkt_graph_status(g);
    vkt_graph_destroy(&g);
    return r;
}

/* Returns whether an op accepts u32 as well as f32 for its only input. */
static bool moves_integers(const vkt_op *op)
{
    static const char *const names[] = { "to_layout", "permute", "slice", "pad" };
    bool is_one = false;
    for (size_t i = 0; i < VKT_COUNT(names); i++) is_one = is_one || strcmp(op->name, names[i]) == 0;
    return is_one;
}

static void other_element_types_are_refused(void **state)
{
    (void)state;
    unsigned faults = 0, tried = 0;
    for (size_t k = 0; vkt_ops[k]; k++) {
        const vkt_op *op = vkt_ops[k];
        vkt_rng r = vkt_rng_make(7, VKT_STREAM_TEST, 0, 0);
        vkt_case c = { .n_in = 0 };
        if (!op->sample || strcmp(op->name, "reshape") == 0) continue; /* reshape moves any type */
        op->sample(&r, &c);
        for (uint32_t i = 0; i < c.n_in; i++) {
            if (c.in[i].absent) continue;
            const vkt_dtype other = c.in[i].dtype != VKT_U32 && !moves_integers(op) ? VKT_U32 : VKT_U8;
            const vkt_result status = apply_with_type(op, &c, i, other);
            tried++;
            if (status == VKT_E_DTYPE && strstr(vkt_test_last_error(), op->name)) continue;
            print_error("%s: input %u as %s gives %s: %s\n", op->name, i, vkt_dtype_name(other),
                        vkt_result_name(status), vkt_test_last_error());
            faults++;
        }
    }
    assert_true(tried > 20);
    assert_int_equal(faults, 0);
}

/* ---- shapes and attributes, through the public functions ---- */

#define S(n, ...) ((vkt_shape){ n, { __VA_ARGS__ } })
#define F(n, ...) vkt_input(g, "f", VKT_F32, VKT_ROWS, S(n, __VA_ARGS__))
#define P(...) vkt_input(g, "p", VKT_F32, VKT_BATCH_LAST, S(4, __VA_ARGS__)) /* images */
#define U(n, ...) vkt_input(g, "u", VKT_U32, VKT_ROWS, S(n, __VA_ARGS__))
#define B(n, ...) vkt_input(g, "b", VKT_U8, VKT_ROWS, S(n, __VA_ARGS__))
#define CONV(...) (&(vkt_conv2d_params){ __VA_ARGS__ })
#define MASK(m) (&(vkt_attention_params){ .mask = (m) })
#define HEADS(k) (&(vkt_attention_params){ .kv_heads = (k) })
#define POOL(...) (&(vkt_pool2d_params){ __VA_ARGS__ })
#define LABELS(...) (&(vkt_cross_entropy_params){ __VA_ARGS__ })
#define UP(...) (&(vkt_upsample2d_params){ __VA_ARGS__ })
#define NONE ((vkt_tensor){ 0 })

/* Returns the gradients' squares, added up, as a gradient penalty does: the gradient of sum(y) by the only parameter of
 * the graph. */
static vkt_tensor penalty_of(vkt_graph *g, vkt_tensor y)
{
    const vkt_tensor w = { g->params[0] },
                     ones = vkt_expand(g, vkt_graph_const(g, "one", VKT_F32, vkt_shape0(), &(float){ 1 }),
                                       vkt_tensor_shape(g, y), VKT_ROWS);
    vkt_tensor dw = NONE;
    if (vkt_gradients(g, &y, &ones, 1, &w, 1, &dw) != VKT_OK) return NONE;
    return vkt_sum(g, vkt_mul(g, dw, dw));
}

/* Returns a loss and, added to it, the sum of its gradient's squares. */
static vkt_tensor penalty_of_labels(vkt_graph *g)
{
    const vkt_tensor w = vkt_param(g, "w", vkt_shape2(8, 4)),
                     one = vkt_graph_const(g, "one", VKT_F32, vkt_shape0(), &(float){ 1 });
    const vkt_tensor x = vkt_input(g, "f", VKT_F32, VKT_ROWS, vkt_shape2(3, 4));
    const vkt_tensor loss =
        vkt_linear_cross_entropy(g, x, w, vkt_input(g, "u", VKT_U32, VKT_ROWS, vkt_shape1(3)), NULL);
    vkt_tensor dx = { 0 };
    if (vkt_gradients(g, &loss, &one, 1, &x, 1, &dx) != VKT_OK) return dx;
    return vkt_add(g, loss, vkt_sum(g, vkt_mul(g, dx, dx)));
}

/* Uses one external value once for each letter of `order`: w writes the value, r reads it, s reads it with another
 * shape. */
static void touch(vkt_graph *g, const char *order)
{
    const vkt_tensor out = vkt_external(g, "out", VKT_F32, S(1, 4));
    for (; *order; order++) {
        if (*order == 'w') vkt_write(g, F(1, 4), out);
        if (*order == 'r') vkt_relu(g, out);
        if (*order == 's') vkt_reshape(g, out, S(2, 2, 2));
    }
}

/* Lists wrong calls, as X(name, status, part of the message, call). */
/* clang-format off */
#define WRONG(X) \
    X(matmul_inner, VKT_E_SHAPE, "inner", vkt_matmul(g, F(2, 3, 4), F(2, 5, 6), false, false)) \
    X(matmul_inner_transposed, VKT_E_SHAPE, "inner", vkt_matmul(g, F(2, 3, 4), F(2, 4, 5), true, false)) \
    X(matmul_vector, VKT_E_SHAPE, "matri", vkt_matmul(g, F(1, 3), F(2, 3, 4), false, false)) \
    X(matmul_batches, VKT_E_SHAPE, "leading", vkt_matmul(g, F(3, 2, 3, 4), F(3, 5, 4, 3), false, false)) \
    X(matmul_ranks, VKT_E_SHAPE, "leading", vkt_matmul(g, F(3, 2, 3, 4), F(4, 1, 3, 4, 3), false, false)) \
    X(linear_inner, VKT_E_SHAPE, "linear", vkt_linear(g, F(2, 3, 4), F(2, 5, 6), NONE)) \
    X(linear_rank, VKT_E_SHAPE, "linear", vkt_linear(g, F(1, 4), F(2, 5, 4), NONE)) \
    X(mlp_layers, VKT_E_UNSUPPORTED, "layers", vkt_mlp(g, F(2, 3, 4), NULL, 0)) \
    X(mlp_no_weight, VKT_E_ARG, "weight", vkt_mlp(g, F(2, 3, 4), &(vkt_mlp_layer){ NONE, NONE }, 1)) \
    X(mlp_inner, VKT_E_SHAPE, "layer 0", vkt_mlp(g, F(2, 3, 4), &(vkt_mlp_layer){ F(2, 5, 6), NONE }, 1)) \
    X(mlp_width, VKT_E_UNSUPPORTED, "129", vkt_mlp(g, F(2, 3, 4), &(vkt_mlp_layer){ F(2, 129, 4), NONE }, 1)) \
    X(mlp_bias, VKT_E_SHAPE, "bias", vkt_mlp(g, F(2, 3, 4), &(vkt_mlp_layer){ F(2, 5, 4), F(1, 4) }, 1)) \
    X(linear_bias, VKT_E_SHAPE, "bias", vkt_linear(g, F(2, 3, 4), F(2, 5, 4), F(1, 4))) \
    X(conv_transpose2d_channels, VKT_E_SHAPE, "(C,O/groups,R,S)", \
      vkt_conv_transpose2d(g, P(2, 3, 4, 5), F(4, 2, 3, 1, 1), NONE, NULL)) \
    X(conv_transpose2d_bias, VKT_E_SHAPE, "bias", \
      vkt_conv_transpose2d(g, P(2, 3, 4, 5), F(4, 3, 2, 1, 1), F(1, 3), NULL)) \
    X(conv_transpose2d_output_pad, VKT_E_ARG, "output_pad", \
      vkt_conv_transpose2d(g, P(2, 3, 4, 5), F(4, 3, 2, 1, 1), NONE, \
                           &(vkt_conv_transpose2d_params){ .stride = { 2, 2 }, .output_pad = { 1, 2 } })) \
    X(conv_transpose2d_nothing, VKT_E_SHAPE, "leaves no image", \
      vkt_conv_transpose2d(g, P(2, 3, 1, 1), F(4, 3, 2, 2, 2), NONE, \
                           &(vkt_conv_transpose2d_params){ .pad = { 1, 1 } })) \
    X(conv1d_rank, VKT_E_SHAPE, "conv1d: want x", vkt_conv1d(g, F(2, 2, 3), F(3, 1, 1, 1), NONE, NULL)) \
    X(conv1d_weights, VKT_E_SHAPE, "conv1d: want w", vkt_conv1d(g, F(3, 2, 3, 4), F(2, 1, 3), NONE, NULL)) \
    X(max_pool1d_rank, VKT_E_SHAPE, "max_pool1d", vkt_max_pool1d(g, F(2, 2, 3), NULL)) \
    X(global_avg_pool_rank, VKT_E_SHAPE, "global_avg_pool", vkt_global_avg_pool(g, F(2, 2, 3))) \
    X(global_avg_pool_null, VKT_E_ARG, "global_avg_pool: want a tensor of this graph, got the null tensor", \
      vkt_global_avg_pool(g, NONE)) \
    X(global_max_pool_null, VKT_E_ARG, "global_max_pool: want a tensor of this graph, got the null tensor", \
      vkt_global_max_pool(g, NONE)) \
    X(conv2d_rank, VKT_E_SHAPE, "conv2d", vkt_conv2d(g, F(3, 1, 2, 3), F(4, 1, 1, 1, 1), NONE, NULL)) \
    X(conv2d_channels, VKT_E_SHAPE, "conv2d", vkt_conv2d(g, P(1, 3, 5, 5), F(4, 2, 4, 3, 3), NONE, NULL)) \
    X(conv2d_weight_rank, VKT_E_SHAPE, "conv2d", vkt_conv2d(g, P(1, 3, 5, 5), F(3, 2, 3, 3), NONE, NULL)) \
    X(conv2d_groups_in, VKT_E_SHAPE, "groups", vkt_conv2d(g, P(1, 3, 5, 5), F(4, 2, 1, 3, 3), NONE, CONV(.groups = 2))) \
    X(conv2d_groups_out, VKT_E_SHAPE, "groups", vkt_conv2d(g, P(1, 4, 5, 5), F(4, 3, 2, 3, 3), NONE, CONV(.groups = 2))) \
    X(conv2d_bias, VKT_E_SHAPE, "bias", vkt_conv2d(g, P(1, 3, 5, 5), F(4, 2, 3, 3, 3), F(1, 3), NULL)) \
    X(conv2d_kernel, VKT_E_SHAPE, "does not fit", vkt_conv2d(g, P(1, 1, 5, 5), F(4, 1, 1, 6, 1), NONE, NULL)) \
    X(conv2d_dilation, VKT_E_SHAPE, "does not fit", vkt_conv2d(g, P(1, 1, 5, 5), F(4, 1, 1, 3, 3), NONE, CONV(.dilation = { 1, 3 }))) \
    X(pool_rank, VKT_E_SHAPE, "pool2d", vkt_max_pool2d(g, F(3, 1, 2, 3), POOL(.kernel = { 1, 1 }))) \
    X(pool_kernel_missing, VKT_E_ARG, "kernel", vkt_max_pool2d(g, P(1, 1, 4, 4), POOL(.kernel = { 2, 0 }))) \
    X(pool_pad, VKT_E_ARG, "pad", vkt_avg_pool2d(g, P(1, 1, 4, 4), POOL(.kernel = { 3, 3 }, .pad = { 2, 0 }))) \
    X(pool_kernel, VKT_E_SHAPE, "does not fit", vkt_avg_pool2d(g, P(1, 1, 4, 4), POOL(.kernel = { 2, 5 }))) \
    X(pool_dilation, VKT_E_SHAPE, "dilation 3", \
      vkt_max_pool2d(g, P(1, 1, 4, 4), POOL(.kernel = { 1, 3 }, .dilation = { 9, 3 }))) \
    X(pool_average_dilation, VKT_E_ARG, "no dilation", \
      vkt_avg_pool2d(g, P(1, 1, 4, 4), POOL(.kernel = { 2, 2 }, .dilation = { 2, 1 }))) \
    X(attention_mask, VKT_E_SHAPE, "the scores (2,3,4), got f32 (2,4)", \
      vkt_attention(g, F(3, 2, 3, 8), F(3, 2, 4, 8), F(3, 2, 4, 8), MASK(F(2, 2, 4)))) \
    X(attention_mask_rank, VKT_E_SHAPE, "the scores (3,4), got", \
      vkt_attention(g, F(2, 3, 8), F(2, 4, 8), F(2, 4, 8), MASK(F(3, 1, 3, 4)))) \
    X(attention_mask_type, VKT_E_SHAPE, "mask f32", \
      vkt_attention(g, F(2, 3, 8), F(2, 4, 8), F(2, 4, 8), MASK(U(2, 3, 4)))) \
    X(attention_groups, VKT_E_SHAPE, "kv_heads that divide the 6 heads, got 4", \
      vkt_attention(g, F(4, 2, 6, 3, 8), F(4, 2, 4, 5, 8), F(4, 2, 4, 5, 8), HEADS(4))) \
    X(attention_groups_keys, VKT_E_SHAPE, "k (..,3,S,D) and v (..,3,S,E), got (6,3,8), (2,5,8)", \
      vkt_attention(g, F(3, 6, 3, 8), F(3, 2, 5, 8), F(3, 2, 5, 8), HEADS(3))) \
    X(attention_groups_values, VKT_E_SHAPE, "v (..,3,S,E), got (6,3,8), (3,5,8) and (6,5,8)", \
      vkt_attention(g, F(3, 6, 3, 8), F(3, 3, 5, 8), F(3, 6, 5, 8), HEADS(3))) \
    X(attention_groups_batch, VKT_E_SHAPE, "k (..,3,S,D)", \
      vkt_attention(g, F(4, 2, 6, 3, 8), F(4, 1, 3, 5, 8), F(4, 1, 3, 5, 8), HEADS(3))) \
    X(attention_groups_rank, VKT_E_SHAPE, "divide the 1 heads, got 2", \
      vkt_attention(g, F(2, 3, 8), F(2, 5, 8), F(2, 5, 8), HEADS(2))) \
    X(attention_fewer_keys, VKT_E_SHAPE, "k (..,S,D) and v (..,S,E), got (6,3,8), (2,5,8)", \
      vkt_attention(g, F(3, 6, 3, 8), F(3, 2, 5, 8), F(3, 2, 5, 8), NULL)) \
    X(attention_packed_groups, VKT_E_SHAPE, "kv_heads that divide the 6 heads, got 4", \
      vkt_attention_packed(g, F(3, 2, 5, 112), 6, HEADS(4))) \
    X(attention_packed_groups_width, VKT_E_SHAPE, "(B,T,(6 + 2 x 3) D) and heads, got (2,5,100) and 6", \
      vkt_attention_packed(g, F(3, 2, 5, 100), 6, HEADS(3))) \
    X(attention_packed_no_heads, VKT_E_SHAPE, "heads that divide D, got (2,5,96) and 0", \
      vkt_attention_packed(g, F(3, 2, 5, 96), 0, HEADS(3))) \
    X(attention_scale, VKT_E_ARG, "above 0, got 0", \
      vkt_attention(g, F(2, 3, 8), F(2, 4, 8), F(2, 4, 8), &(vkt_attention_params){ .scale = VKT_ZERO })) \
    X(pool_adaptive, VKT_E_ARG, "adaptive", vkt_adaptive_max_pool2d(g, P(1, 1, 4, 4), 0, 1)) \
    X(dropout_negative, VKT_E_ARG, "dropout", vkt_dropout(g, F(1, 3), -0.1f)) \
    X(dropout_above_one, VKT_E_ARG, "dropout", vkt_dropout(g, F(1, 3), 1.5f)) \
    X(dropout_nan, VKT_E_ARG, "dropout", vkt_dropout(g, F(1, 3), NAN)) \
    X(dropout2d_rank, VKT_E_SHAPE, "dropout2d", vkt_dropout2d(g, F(2, 3, 4), 0.5f)) \
    X(add_shapes, VKT_E_SHAPE, "broadcast", vkt_add(g, F(2, 3, 4), F(2, 3, 5))) \
    X(mul_shapes, VKT_E_SHAPE, "broadcast", vkt_mul(g, F(2, 3, 4), F(1, 3))) \
    X(reshape_elements, VKT_E_SHAPE, "reshape", vkt_reshape(g, F(2, 3, 4), S(1, 11))) \
    X(squeeze_size, VKT_E_SHAPE, "squeeze", vkt_squeeze(g, F(2, 3, 1), 0)) \
    X(squeeze_axis, VKT_E_ARG, "squeeze", vkt_squeeze(g, F(2, 3, 1), 2)) \
    X(unsqueeze_axis, VKT_E_ARG, "unsqueeze", vkt_unsqueeze(g, F(2, 3, 4), -4)) \
    X(unsqueeze_rank, VKT_E_ARG, "unsqueeze", vkt_unsqueeze(g, F(6, 1, 2, 3, 4, 5, 6), 0)) \
    X(permute_twice, VKT_E_ARG, "permute", vkt_permute(g, F(2, 3, 4), (uint32_t[]){ 1, 1 })) \
    X(permute_beyond, VKT_E_ARG, "permute", vkt_permute(g, F(2, 3, 4), (uint32_t[]){ 0, 2 })) \
    X(transpose_axis, VKT_E_ARG, "transpose", vkt_transpose(g, F(2, 3, 4), 0, -3)) \
    X(slice_axis, VKT_E_ARG, "slice", vkt_slice(g, F(2, 3, 4), 2, 0, 1, 1)) \
    X(slice_nothing, VKT_E_ARG, "nothing", vkt_slice(g, F(2, 3, 4), 1, 3, -1, 1)) \
    X(slice_step, VKT_E_ARG, "steps of 0", vkt_slice(g, F(2, 3, 4), 1, 0, VKT_END, 0)) \
    X(split_sizes, VKT_E_SHAPE, "split", vkt_split_sizes(g, F(2, 3, 4), 1, (uint32_t[]){ 1, 2 }, 2, (vkt_tensor[2]){ NONE })) \
    X(split_axis, VKT_E_ARG, "split", vkt_split_sizes(g, F(2, 3, 4), 5, (uint32_t[]){ 4 }, 1, (vkt_tensor[1]){ NONE })) \
    X(concat_none, VKT_E_ARG, "1 to 12", vkt_concat(g, NULL, 0, 0)) \
    X(concat_shape, VKT_E_SHAPE, "tensor 1", vkt_concat(g, (vkt_tensor[]){ F(2, 3, 4), F(2, 3, 5) }, 2, 0)) \
    X(concat_rank, VKT_E_SHAPE, "tensor 1", vkt_concat(g, (vkt_tensor[]){ F(2, 3, 4), F(1, 4) }, 2, 1)) \
    X(concat_null, VKT_E_ARG, "tensor 2", vkt_concat(g, (vkt_tensor[]){ F(1, 4), F(1, 4), NONE }, 3, 0)) \
    X(pad_ids, VKT_E_ARG, "whole number", vkt_pad(g, U(1, 4), (uint32_t[]){ 1 }, (uint32_t[]){ 0 }, 0.5f)) \
    X(pad_size, VKT_E_SHAPE, "pad", vkt_pad(g, F(1, 4), (uint32_t[]){ 0x7fffffff }, (uint32_t[]){ 0 }, 0)) \
    X(upsample_rank, VKT_E_SHAPE, "upsample2d", vkt_upsample2d(g, F(3, 1, 2, 3), UP(.size = { 2, 2 }))) \
    X(upsample_size, VKT_E_ARG, "a width", vkt_upsample2d(g, P(1, 1, 4, 4), UP(.size = { 2, 0 }))) \
    X(upsample_large, VKT_E_ARG, "32767", vkt_upsample2d(g, P(1, 1, 4, 4), UP(.scale = { 1, 8192 }))) \
    X(upsample_corners, VKT_E_ARG, "bilinear", vkt_upsample2d(g, P(1, 1, 4, 4), UP(.scale = { 2, 2 }, .align_corners = true))) \
    X(sum_to_shape, VKT_E_SHAPE, "sum_to", vkt_sum_to(g, F(2, 3, 4), S(1, 3))) \
    X(expand_shape, VKT_E_SHAPE, "expand", vkt_expand(g, F(2, 3, 4), S(3, 2, 3, 5), VKT_ROWS)) \
    X(xent_rank, VKT_E_SHAPE, "softmax_xent", vkt_softmax_cross_entropy(g, F(3, 2, 3, 4), U(1, 2))) \
    X(xent_labels, VKT_E_SHAPE, "labels", vkt_softmax_cross_entropy(g, F(2, 3, 4), U(1, 4))) \
    X(xent_label_rank, VKT_E_SHAPE, "labels", vkt_softmax_cross_entropy(g, F(2, 3, 4), U(2, 3, 4))) \
    X(mse_shapes, VKT_E_SHAPE, "mse", vkt_mse(g, F(2, 3, 4), F(2, 4, 3))) \
    X(mse_scalar, VKT_E_SHAPE, "mse", vkt_mse(g, F(0, 0), F(0, 0))) \
    X(cross_entropy_weight, VKT_E_SHAPE, "weights (4)", vkt_cross_entropy(g, F(2, 3, 4), U(1, 3), LABELS(.weight = F(1, 3)))) \
    X(cross_entropy_smoothing, VKT_E_ARG, "0 to 1", vkt_cross_entropy(g, F(2, 3, 4), U(1, 3), LABELS(.label_smoothing = 1.5f))) \
    X(cross_entropy_reduction, VKT_E_ARG, "mean, sum or none", \
      vkt_cross_entropy(g, F(2, 3, 4), U(1, 3), LABELS(.reduction = VKT_LOSS_BATCHMEAN))) \
    X(cross_entropy_second, VKT_E_SHAPE, "(2,4,3), got (2,3)", \
      vkt_cross_entropy(g, F(3, 2, 3, 4), U(2, 2, 3), LABELS(.classes_second = true))) \
    X(cross_entropy_tokens, VKT_E_SHAPE, "(2,3,4), got (2,4)", vkt_cross_entropy(g, F(3, 2, 3, 4), U(2, 2, 4), NULL)) \
    X(nll_smoothing, VKT_E_ARG, "0 to 0", vkt_nll_loss(g, F(2, 3, 4), U(1, 3), LABELS(.label_smoothing = 0.1f))) \
    X(huber_delta, VKT_E_ARG, "positive", vkt_huber_loss(g, F(2, 3, 4), F(2, 3, 4), 0, VKT_LOSS_MEAN)) \
    X(relative_epsilon, VKT_E_ARG, "positive", vkt_relative_l2_loss(g, F(2, 3, 4), F(2, 3, 4), -1, VKT_LOSS_MEAN)) \
    X(relative_target, VKT_E_UNSUPPORTED, "no gradient of 't'", vkt_backward(g, vkt_relative_l2_loss(g, \
      vkt_param(g, "y", S(2, 3, 4)), vkt_param(g, "t", S(2, 3, 4)), 0, VKT_LOSS_MEAN))) \
    X(loss_reduction, VKT_E_ARG, "vkt_loss_reduction", vkt_l1_loss(g, F(2, 3, 4), F(2, 3, 4), (vkt_loss_reduction)4)) \
    X(pos_weight, VKT_E_SHAPE, "expand", \
      vkt_binary_cross_entropy_with_logits(g, F(2, 3, 4), F(2, 3, 4), F(1, 3), VKT_LOSS_MEAN)) \
    X(loss_of_target, VKT_E_UNSUPPORTED, "no gradient of 'p'", vkt_backward(g, \
      vkt_kl_div(g, vkt_param(g, "y", S(2, 3, 4)), vkt_param(g, "p", S(2, 3, 4)), false, VKT_LOSS_MEAN))) \
    X(loss_of_target_alone, VKT_E_UNSUPPORTED, "no gradient of 'p'", vkt_backward(g, vkt_add(g, vkt_sum(g, vkt_param(g, "y", S(1, 4))), \
      vkt_kl_div(g, F(2, 3, 4), vkt_param(g, "p", S(2, 3, 4)), false, VKT_LOSS_MEAN)))) \
    X(loss_of_weight_alone, VKT_E_UNSUPPORTED, "no gradient of 'expand.0'", vkt_backward(g, vkt_binary_cross_entropy_with_logits(g, \
      F(2, 3, 4), F(2, 3, 4), vkt_param(g, "w", S(1, 4)), VKT_LOSS_MEAN))) \
    X(loss_of_classes_weight, VKT_E_UNSUPPORTED, "no gradient of 'w'", vkt_backward(g, \
      vkt_cross_entropy(g, F(2, 3, 4), U(1, 3), LABELS(.weight = vkt_param(g, "w", S(1, 4)))))) \
    X(gradient_penalty_of_labels, VKT_E_UNSUPPORTED, "linear_cross_entropy_dx has no gradient of its own", \
      vkt_backward(g, penalty_of_labels(g))) \
    X(gradient_penalty, VKT_E_UNSUPPORTED, "unary_dx has no gradient of its own", \
      vkt_backward(g, penalty_of(g, vkt_tanh(g, vkt_param(g, "w", S(1, 4)))))) \
    X(stop_gradient_type, VKT_E_DTYPE, "stop_gradient: want f32", vkt_stop_gradient(g, U(1, 4))) \
    X(argmax_rank, VKT_E_SHAPE, "argmax", vkt_argmax(g, F(1, 4))) \
    X(count_labels, VKT_E_SHAPE, "labels", vkt_count_correct(g, F(2, 3, 4), U(1, 2))) \
    X(gather_batch, VKT_E_ARG, "batch", vkt_gather_rows(g, F(2, 9, 4), U(1, 9), 0, S(1, 4), NULL, NULL)) \
    X(gather_sample, VKT_E_SHAPE, "gather_rows", vkt_gather_rows(g, F(2, 9, 4), U(1, 9), 2, S(1, 5), NULL, NULL)) \
    X(gather_sample_rank, VKT_E_SHAPE, "gather_rows", vkt_gather_rows(g, F(2, 9, 4), U(1, 9), 2, S(2, 2, 2), NULL, NULL)) \
    X(gather_pitch, VKT_E_SHAPE, "gather_rows", vkt_gather_rows(g, B(2, 9, 5), U(1, 9), 2, S(1, 5), NULL, NULL)) \
    X(gather_channels, VKT_E_ARG, "channels", vkt_gather_rows(g, F(2, 9, 34), U(1, 9), 2, S(3, 17, 1, 2), NULL, NULL)) \
    X(gather_order, VKT_E_SHAPE, "order", vkt_gather_rows(g, F(2, 9, 4), U(2, 9, 1), 2, S(1, 4), NULL, NULL)) \
    X(labels_table, VKT_E_SHAPE, "gather_labels", vkt_gather_labels(g, U(2, 9, 1), U(1, 9), 2)) \
    X(labels_batch, VKT_E_ARG, "batch", vkt_gather_labels(g, U(1, 9), U(1, 9), 0)) \
    X(sum_over_axes, VKT_E_SHAPE, "0x4", vkt_sum_over(g, F(2, 3, 4), VKT_AXIS(2), false)) \
    X(mean_over_none, VKT_E_SHAPE, "mean_over", vkt_mean_over(g, F(2, 3, 4), 0, false)) \
    X(max_over_axes, VKT_E_SHAPE, "max_over", vkt_max_over(g, F(2, 3, 4), VKT_AXIS(2), true)) \
    X(min_over_none, VKT_E_SHAPE, "min_over", vkt_min_over(g, F(2, 3, 4), 0, false)) \
    X(max_over_type, VKT_E_DTYPE, "max_to: want f32", vkt_max_over(g, U(2, 3, 4), VKT_AXIS(1), false)) \
    X(argmax_over_axis, VKT_E_SHAPE, "axis -3 of (3,4)", vkt_argmax_over(g, F(2, 3, 4), -3, false)) \
    X(var_of_one, VKT_E_SHAPE, "more than 1", vkt_var(g, F(2, 3, 1), VKT_AXIS(1), 1, false)) \
    X(softmax_axis, VKT_E_SHAPE, "no axis", vkt_softmax(g, F(2, 3, 4), 2)) \
    X(log_softmax_axis, VKT_E_SHAPE, "no axis", vkt_log_softmax(g, F(2, 3, 4), -3)) \
    X(softmax_scale, VKT_E_ARG, "scale", vkt_softmax_of_scores(g, F(2, 3, 4), 0, false)) \
    X(softmax_causal, VKT_E_SHAPE, "causal", vkt_softmax_of_scores(g, F(1, 4), 1, true)) \
    X(embedding_rank, VKT_E_SHAPE, "embedding", vkt_embedding(g, U(4, 1, 2, 3, 4), F(4, 9, 2, 3, 4), VKT_NO_PADDING)) \
    X(embedding_scalar, VKT_E_SHAPE, "embedding", vkt_embedding(g, U(1, 4), F(0, 0), VKT_NO_PADDING)) \
    X(embedding_channels, VKT_E_SHAPE, "channels", vkt_embedding_channels(g, U(2, 4, 3), F(3, 9, 2, 3), 0)) \
    X(embedding_layout, VKT_E_ARG, "by rows", vkt_embedding(g, vkt_input(g, "u", VKT_U32, VKT_BATCH_LAST, S(2, 4, 3)), F(2, 9, 2), 0)) \
    X(embedding_ids, VKT_E_UNSUPPORTED, "at most", vkt_embedding(g, U(2, 2048, 1025), F(2, 9, 2), 0)) \
    X(hash_grid_points, VKT_E_SHAPE, "(B,2) or (B,3)", vkt_hash_grid(g, F(2, 5, 4), F(2, 8, 2), NULL)) \
    X(hash_grid_table, VKT_E_SHAPE, "want a table (16,4) by rows, got (8,4)", \
      vkt_hash_grid(g, F(2, 5, 2), F(2, 8, 4), &(vkt_hash_grid_params){ 2, 4, 3, 1, 1.5 })) \
    X(hash_grid_features, VKT_E_ARG, "of 3 features", vkt_hash_grid(g, F(2, 5, 2), F(2, 8, 3), &(vkt_hash_grid_params){ 2, 3, 3, 1, 1 })) \
    X(hash_grid_levels, VKT_E_ARG, "33 levels", vkt_hash_grid(g, F(2, 5, 2), F(2, 8, 2), &(vkt_hash_grid_params){ 33, 2, 3, 1, 1 })) \
    X(hash_grid_scale, VKT_E_ARG, "scale nan", vkt_hash_grid(g, F(2, 5, 2), F(2, 8, 2), &(vkt_hash_grid_params){ 2, 2, 3, 1, NAN })) \
    X(hash_grid_fine, VKT_E_ARG, "resolutions up to", vkt_hash_grid(g, F(2, 5, 2), F(2, 8, 2), &(vkt_hash_grid_params){ 32, 2, 3, 2, 2 })) \
    X(latent_grid_shape, VKT_E_SHAPE, "(F,H,W) by rows, got (5,4)", vkt_latent_grid(g, F(2, 5, 4), U(2, 1, 2), &(vkt_latent_grid_params){ { 4, 4 } })) \
    X(latent_grid_origin, VKT_E_SHAPE, "origin (1,2)", vkt_latent_grid(g, F(3, 2, 5, 4), U(1, 2), &(vkt_latent_grid_params){ { 4, 4 } })) \
    X(latent_grid_type, VKT_E_DTYPE, "origin u32", vkt_latent_grid(g, F(3, 2, 5, 4), F(2, 1, 2), &(vkt_latent_grid_params){ { 4, 4 } })) \
    X(latent_grid_tile, VKT_E_ARG, "got 4 x 6", vkt_latent_grid(g, F(3, 2, 5, 4), U(2, 1, 2), &(vkt_latent_grid_params){ { 4, 6 } })) \
    X(latent_grid_none, VKT_E_ARG, "got 0 x 0", vkt_latent_grid(g, F(3, 2, 5, 4), U(2, 1, 2), NULL)) \
    X(latent_grid_large, VKT_E_ARG, "at most 5 x 4 texels, got 6 x 4", vkt_latent_grid(g, F(3, 2, 5, 4), U(2, 1, 2), &(vkt_latent_grid_params){ { 6, 4 } })) \
    X(latent_grid_scale, VKT_E_ARG, "scale 4194304", vkt_latent_grid(g, F(3, 2, 5, 4), U(2, 1, 2), &(vkt_latent_grid_params){ { 4, 4 }, 4194304 })) \
    X(quantize_none, VKT_E_ARG, "1 to 16 bits", vkt_quantize(g, F(1, 4), 0, false)) \
    X(quantize_bits, VKT_E_ARG, "got 17", vkt_quantize(g, F(1, 4), 17, true)) \
    X(linear_xent_labels, VKT_E_SHAPE, "a label for each row", vkt_linear_cross_entropy(g, F(3, 2, 3, 4), F(2, 5, 4), U(1, 3), NULL)) \
    X(linear_xent_rank, VKT_E_SHAPE, "a label for each row", vkt_linear_cross_entropy(g, F(1, 4), F(2, 5, 4), U(1, 4), NULL)) \
    X(linear_xent_width, VKT_E_SHAPE, "want w (classes,4)", vkt_linear_cross_entropy(g, F(2, 3, 4), F(2, 5, 8), U(1, 3), NULL)) \
    X(linear_xent_odd, VKT_E_SHAPE, "a multiple of 4", vkt_linear_cross_entropy(g, F(2, 3, 5), F(2, 7, 5), U(1, 3), NULL)) \
    X(linear_xent_float, VKT_E_DTYPE, "labels u32", vkt_linear_cross_entropy(g, F(2, 3, 4), F(2, 5, 4), F(1, 3), NULL)) \
    X(linear_xent_words, VKT_E_SHAPE, "want at least 17 words", \
      vkt_linear_cross_entropy_quantized(g, F(2, 3, 32), U(1, 16), VKT_QUANT_Q8_0, 2, U(1, 3), NULL)) \
    X(linear_xent_format, VKT_E_ARG, "want a vkt_quant", \
      vkt_linear_cross_entropy_quantized(g, F(2, 3, 32), U(1, 17), (vkt_quant)0, 2, U(1, 3), NULL)) \
    X(quant_none, VKT_E_ARG, "want a vkt_quant, got 5", vkt_linear_quantized(g, F(2, 3, 32), U(1, 8), NONE, (vkt_quant)5, 1)) \
    X(quant_block, VKT_E_SHAPE, "want rows of a multiple of 256 numbers of Q4_K, got 7 rows of 32", \
      vkt_linear_quantized(g, F(2, 3, 32), U(1, 999), NONE, VKT_QUANT_Q4_K, 7)) \
    X(quant_words, VKT_E_SHAPE, "want at least 17 words for (2,32) of Q8_0, got 16", \
      vkt_linear_quantized(g, F(2, 3, 32), U(1, 16), NONE, VKT_QUANT_Q8_0, 2)) \
    X(quant_f32, VKT_E_DTYPE, "want the words of the weights", \
      vkt_embedding_quantized(g, U(1, 3), F(1, 17), VKT_QUANT_Q8_0, 2, 32)) \
    X(quant_ids, VKT_E_DTYPE, "want ids u32", vkt_embedding_quantized(g, F(1, 3), U(1, 17), VKT_QUANT_Q8_0, 2, 32)) \
    X(quant_bias, VKT_E_SHAPE, "want bias (2)", vkt_linear_quantized(g, F(2, 3, 32), U(1, 17), F(1, 3), VKT_QUANT_Q8_0, 2)) \
    X(frequency_points, VKT_E_SHAPE, "(B,D)", vkt_frequency(g, F(3, 5, 2, 2), 1)) \
    X(frequency_count, VKT_E_ARG, "33", vkt_frequency(g, F(2, 5, 2), 33)) \
    X(rope_vector, VKT_E_SHAPE, "rope: want x", vkt_rope(g, F(1, 8), NULL)) \
    X(rope_type, VKT_E_DTYPE, "rope: want f32", vkt_rope(g, U(2, 3, 8), NULL)) \
    X(rope_heads, VKT_E_SHAPE, "(2,3,8), 3 heads", vkt_rope(g, F(3, 2, 3, 8), &(vkt_rope_params){ .heads = 3 })) \
    X(rope_heads_rank, VKT_E_SHAPE, "got (2,2,3,8) and 4", vkt_rope(g, F(4, 2, 2, 3, 8), &(vkt_rope_params){ .heads = 4 })) \
    X(rope_rotated, VKT_E_ARG, "at most 2 rotated heads", vkt_rope(g, F(3, 2, 3, 8), &(vkt_rope_params){ .heads = 2, .rotated = 3 })) \
    X(rope_rotated_alone, VKT_E_ARG, "at most 0 rotated heads", vkt_rope(g, F(3, 2, 3, 8), &(vkt_rope_params){ .rotated = 1 })) \
    X(rope_odd, VKT_E_SHAPE, "even number", vkt_rope(g, F(2, 3, 8), &(vkt_rope_params){ .dims = 5 })) \
    X(rope_dims, VKT_E_SHAPE, "10 numbers", vkt_rope(g, F(2, 3, 8), &(vkt_rope_params){ .dims = 10 })) \
    X(rope_base, VKT_E_ARG, "got -1 and 1", vkt_rope(g, F(2, 3, 8), &(vkt_rope_params){ .base = -1 })) \
    X(rope_base_infinite, VKT_E_ARG, "got inf", vkt_rope(g, F(2, 3, 8), &(vkt_rope_params){ .base = INFINITY })) \
    X(rope_factor, VKT_E_ARG, "and nan", vkt_rope(g, F(2, 3, 8), &(vkt_rope_params){ .factor = NAN })) \
    X(rope_factors, VKT_E_ARG, "got 0 for pair 2", vkt_rope(g, F(2, 3, 8), &(vkt_rope_params){ .factors = (const float[]){ 1, 8, 0, 1 } })) \
    X(rope_order, VKT_E_ARG, "7 is no vkt_rope_order", vkt_rope(g, F(2, 3, 8), &(vkt_rope_params){ .order = (vkt_rope_order)7 })) \
    X(rope_first, VKT_E_SHAPE, "(1) or (2)", vkt_rope(g, F(3, 2, 3, 8), &(vkt_rope_params){ .first = U(1, 3) })) \
    X(rope_first_type, VKT_E_DTYPE, "first positions u32", vkt_rope(g, F(3, 2, 3, 8), &(vkt_rope_params){ .first = F(1, 2) })) \
    X(swiglu_shapes, VKT_E_SHAPE, "(2,3) and (3,2)", vkt_swiglu(g, F(2, 2, 3), F(2, 3, 2))) \
    X(swiglu_type, VKT_E_DTYPE, "f32 and u32", vkt_swiglu(g, F(1, 3), U(1, 3))) \
    X(swiglu_packed_odd, VKT_E_SHAPE, "(..,2 F), got (2,3)", vkt_swiglu_packed(g, F(2, 2, 3))) \
    X(swiglu_packed_scalar, VKT_E_SHAPE, "got ()", vkt_swiglu_packed(g, F(0, 0))) \
    X(index_select_rank, VKT_E_SHAPE, "index_select", vkt_index_select(g, F(2, 9, 2), U(2, 4, 3))) \
    X(ids_table, VKT_E_SHAPE, "(rows,3)", vkt_gather_ids(g, U(2, 9, 5), U(1, 9), 2, 5, true)) \
    X(ids_length, VKT_E_SHAPE, "0 numbers", vkt_gather_ids(g, U(2, 9, 5), U(1, 9), 2, 0, false)) \
    X(ids_type, VKT_E_DTYPE, "u32", vkt_gather_ids(g, F(2, 9, 5), U(1, 9), 2, 5, false)) \
    X(ids_batch, VKT_E_ARG, "batch", vkt_gather_ids(g, U(2, 9, 5), U(1, 9), 0, 5, false)) \
    X(report_loss, VKT_E_SHAPE, "report", vkt_report(g, F(1, 2), NONE)) \
    X(write_input, VKT_E_ARG, "made by vkt_external, got f", vkt_write(g, F(1, 4), F(1, 4))) \
    X(write_null, VKT_E_ARG, "got the null tensor", vkt_write(g, F(1, 4), NONE)) \
    X(write_shape, VKT_E_SHAPE, "(4) into (2,2)", vkt_write(g, F(1, 4), vkt_external(g, "e", VKT_F32, S(2, 2, 2)))) \
    X(write_type, VKT_E_DTYPE, "f32 into u32", vkt_write(g, F(1, 4), vkt_external(g, "e", VKT_U32, S(1, 4)))) \
    X(write_read, VKT_E_STATE, "'out' is an input of relu already", touch(g, "rw")) \
    X(write_shaped, VKT_E_STATE, "'out' is an input of reshape already", touch(g, "sw")) \
    X(write_twice, VKT_E_STATE, "'out' is an input of write already", touch(g, "ww")) \
    X(read_written, VKT_E_STATE, "relu: input 0, 'out', is written", touch(g, "wr")) \
    X(shape_written, VKT_E_STATE, "reshape: input 0, 'out', is written", touch(g, "ws")) \
    X(unary_type, VKT_E_DTYPE, "gelu: want f32, got u32", vkt_gelu(g, U(1, 3))) \
    X(clamp_nan, VKT_E_ARG, "bounds", vkt_clamp(g, F(1, 3), 0, NAN)) \
    X(softplus_beta, VKT_E_ARG, "beta", vkt_softplus(g, F(1, 3), 0, 20)) \
    X(sub_shapes, VKT_E_SHAPE, "(2) and (3)", vkt_sub(g, F(1, 2), F(1, 3))) \
    X(pow_type, VKT_E_DTYPE, "f32 and u32", vkt_pow(g, F(1, 3), U(1, 3))) \
    X(prelu_weight, VKT_E_SHAPE, "want a weight", vkt_prelu(g, F(3, 2, 5, 4), F(1, 4))) \
    X(prelu_weight_rank, VKT_E_SHAPE, "want a weight", vkt_prelu(g, F(2, 3, 3), F(2, 3, 1))) \
    X(prelu_type, VKT_E_DTYPE, "prelu", vkt_prelu(g, F(2, 3, 5), U(1, 5))) \
    X(where_type, VKT_E_DTYPE, "u32", vkt_where(g, F(1, 3), F(1, 3), F(1, 3))) \
    X(where_shapes, VKT_E_SHAPE, "broadcast", vkt_where(g, U(1, 2), F(1, 3), F(1, 3))) \
    X(masked_fill_shape, VKT_E_SHAPE, "mask", vkt_masked_fill(g, F(1, 3), U(2, 2, 3), 0)) \
    X(input_shape, VKT_E_SHAPE, "dimensions", vkt_relu(g, F(2, 3, 0))) \
    X(input_size, VKT_E_SHAPE, "2^63", vkt_relu(g, F(4, 65536, 65536, 65536, 65536))) \
    X(param_name_twice, VKT_E_ARG, "is used already", (vkt_param(g, "w", S(1, 2)), vkt_param(g, "w", S(1, 2)))) \
    X(param_name_long, VKT_E_ARG, "too long", vkt_param(g, "a234567890123456789012345678901234567890123456789", S(1, 2))) \
    X(backward_of_vector, VKT_E_SHAPE, "scalar", vkt_backward(g, F(1, 2))) \
    X(backward_no_influence, VKT_E_ARG, "idle", (vkt_param(g, "idle", S(1, 2)), vkt_backward(g, vkt_sum(g, F(1, 2)))))
/* clang-format on */

#define FUNCTION(name, status, says, call) \
    static void name(vkt_graph *g)         \
    {                                      \
        (void)(call);                      \
    }
#define ROW(name, status, says, call) { #name, name, status, says },
#define vkt_report(g, a, b) (vkt_report(g, a, b), 0)
WRONG(FUNCTION)

typedef struct mistake {
    const char *name;
    void (*make)(vkt_graph *g);
    vkt_result status;
    const char *says;
} mistake;
static const mistake mistakes[] = { WRONG(ROW) };

static void a_mistake_is_named(void **state)
{
    const mistake *m = *state;
    const vkt_host h = vkt_test_host();
    vkt_graph *g = NULL;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    vkt_test_expect_errors(true);
    m->make(g);
    vkt_test_expect_errors(false);
    assert_string_equal(vkt_result_name(vkt_graph_status(g)), vkt_result_name(m->status));
    assert_int_equal(vkt_test_errors(), 1);
    vkt_test_error_contains(m->says);
    /* The error of the graph is sticky. */
    assert_int_equal(vkt_relu(g, vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(1))).id, 0);
    assert_int_equal(vkt_test_errors(), 1);
    vkt_graph_destroy(&g);
}

/* ---- optimizers ---- */

#define UPDATES(X)                                                                  \
    X(VKT_E_ARG, "kind", .kind = VKT_OPTIMIZER_KIND_COUNT)                          \
    X(VKT_E_ARG, "weight_decay", .weight_decay = -1)                                \
    X(VKT_E_ARG, "weight_decay", .weight_decay = NAN)                               \
    X(VKT_E_ARG, "momentum", .momentum = -0.5f)                                     \
    X(VKT_E_ARG, "dampening", .momentum = 0.5f, .dampening = INFINITY)              \
    X(VKT_E_ARG, "nesterov", .nesterov = true)                                      \
    X(VKT_E_ARG, "nesterov", .momentum = 0.9f, .dampening = 0.1f, .nesterov = true) \
    X(VKT_E_ARG, "betas", .kind = VKT_ADAM, .beta1 = 1)                             \
    X(VKT_E_ARG, "betas", .kind = VKT_ADAM, .beta2 = -0.1)                          \
    X(VKT_E_ARG, "eps", .kind = VKT_ADAM, .eps = -1e-8f)

static const struct {
    vkt_result status;
    const char *says;
    vkt_optimizer o;
} updates[] = {
#define ROW_OF_UPDATE(status, says, ...) { status, says, { __VA_ARGS__ } },
    UPDATES(ROW_OF_UPDATE)
};

static void wrong_optimizers_are_refused(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    for (size_t i = 0; i < VKT_COUNT(updates); i++) {
        vkt_graph *g = NULL;
        assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
        assert_int_equal(vkt_backward(g, vkt_sum(g, vkt_param(g, "w", vkt_shape1(3)))), VKT_OK);
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_update(g, &updates[i].o), updates[i].status);
        vkt_test_expect_errors(false);
        assert_int_equal(vkt_graph_status(g), updates[i].status);
        assert_int_equal(vkt_test_errors(), i + 1);
        vkt_test_error_contains(updates[i].says);
        vkt_graph_destroy(&g);
    }
    /* An unknown kind of optimizer does not get Adam's moments. */
    assert_int_equal(vkt_optimizer_moments(&(vkt_optimizer){ .kind = VKT_OPTIMIZER_KIND_COUNT }), 0);
}

static void an_update_comes_once_and_after_backward(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_optimizer o = { .kind = VKT_ADAM };
    for (int twice = 0; twice < 2; twice++) {
        vkt_graph *g = NULL;
        assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
        const vkt_tensor loss = vkt_sum(g, vkt_param(g, "w", vkt_shape1(3)));
        if (twice) {
            assert_int_equal(vkt_backward(g, loss), VKT_OK);
            assert_int_equal(vkt_update(g, &o), VKT_OK);
        }
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_update(g, &o), VKT_E_STATE);
        vkt_test_expect_errors(false);
        vkt_test_error_contains(twice ? "already" : "vkt_backward");
        vkt_graph_destroy(&g);
    }
}

int main(void)
{
    static const struct CMUnitTest others[] = {
        cmocka_unit_test(wrong_inputs_of_every_op_are_refused),
        cmocka_unit_test(other_element_types_are_refused),
        cmocka_unit_test(wrong_optimizers_are_refused),
        cmocka_unit_test(an_update_comes_once_and_after_backward),
    };
    static struct CMUnitTest tests[VKT_COUNT(others) + VKT_COUNT(mistakes)];
    size_t n = 0;
    for (size_t i = 0; i < VKT_COUNT(others); i++) tests[n++] = others[i];
    for (size_t i = 0; i < VKT_COUNT(mistakes); i++)
        tests[n++] = (struct CMUnitTest){ .name = mistakes[i].name,
                                          .test_func = a_mistake_is_named,
                                          .initial_state = (void *)(uintptr_t)&mistakes[i] };
    for (size_t i = 0; i < n; i++) {
        tests[i].setup_func = vkt_test_setup;
        tests[i].teardown_func = vkt_test_teardown;
    }
    return _cmocka_run_group_tests("mistakes", tests, n, NULL, NULL);
}
