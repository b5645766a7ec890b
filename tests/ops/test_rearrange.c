/* Tests permute, slice, concat, pad and similar ops: Python's rules for indices, layouts with the batch last, unchanged
 * bits, and the kernel that a shape should get. (test_ops.c checks these ops at random shapes.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "kernel/ids.h"
#include "ops/harness.h"
#include "record/debug.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)
enum { MOST = 4096 };

/* Runs the graph with the 32-bit words `in` as input x, copies y to `out`, and destroys the graph. */
static void run(vkt_graph *g, vkt_tensor x, vkt_tensor y, const uint32_t *in, uint32_t *out)
{
    vkt_program *p = NULL;
    OK(vkt_graph_status(g));
    vkt_keep(g, y);
    OK(vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &p));
    OK(vkt_program_write(p, x, in, 4 * vkt_shape_elements(vkt_tensor_shape(g, x))));
    OK(vkt_program_run(p, NULL, NULL));
    OK(vkt_program_read(p, y, out, 4 * vkt_shape_elements(vkt_tensor_shape(g, y))));
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

static void count_up(float *f, size_t n)
{
    for (size_t i = 0; i < n; i++) f[i] = (float)i;
}

/* ---- Python's rules ---- */

static const struct {
    int64_t start, stop;
    uint32_t step, n, want[7];
} slices[] = {
    { 0, VKT_END, 2, 4, { 0, 2, 4, 6 } },
    { 1, -1, 1, 5, { 1, 2, 3, 4, 5 } },
    { -3, VKT_END, 1, 3, { 4, 5, 6 } },
    { -100, 2, 1, 2, { 0, 1 } },
    { 5, 100, 4, 1, { 5 } },
    { 2, 6, 3, 2, { 2, 5 } },
    { INT64_MIN, INT64_MAX, 1, 7, { 0, 1, 2, 3, 4, 5, 6 } },
};

/* Slices a tensor (7,7,7) along every dimension, by rows or with the batch last. */
static void slices_follow_pythons_rules(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static float in[343], out[343];
    count_up(in, 343);
    for (size_t k = 0; k < VKT_COUNT(slices); k++)
        for (int32_t axis = -3; axis < 3; axis++) {
            const vkt_layout layout = k % 2 ? VKT_BATCH_LAST : VKT_ROWS;
            vkt_graph *g = harness_graph();
            const vkt_tensor x = vkt_input(g, "x", VKT_F32, layout, vkt_shape3(7, 7, 7));
            const vkt_tensor y = vkt_slice(g, x, axis, slices[k].start, slices[k].stop, slices[k].step);
            vkt_shape want = vkt_shape3(7, 7, 7);
            const uint32_t d = (uint32_t)(axis + 3) % 3;
            want.dim[d] = slices[k].n;
            assert_true(vkt_shape_equal(vkt_tensor_shape(g, y), want));
            assert_int_equal(vkt_value_of(g, y)->layout, layout);
            run(g, x, vkt_relu(g, y), (const uint32_t *)(const void *)in, (uint32_t *)(void *)out);
            for (uint32_t i = 0, e = 0; i < want.dim[0]; i++)
                for (uint32_t j = 0; j < want.dim[1]; j++)
                    for (uint32_t l = 0; l < want.dim[2]; l++, e++) {
                        uint32_t at[] = { i, j, l };
                        at[d] = slices[k].want[at[d]];
                        assert_true(out[e] == (float)(at[0] * 49 + at[1] * 7 + at[2]));
                    }
        }
}

static void what_is_split_and_joined_is_the_same(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static float in[5 * 9 * 4], out[5 * 9 * 4];
    count_up(in, VKT_COUNT(in));
    for (int32_t axis = 0; axis < 3; axis++)
        for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++) {
            static const uint32_t sizes[3][3] = { { 1, 3, 1 }, { 2, 3, 4 }, { 2, 1, 1 } };
            vkt_graph *g = harness_graph();
            const vkt_tensor x = vkt_input(g, "x", VKT_F32, (vkt_layout)layout, vkt_shape3(5, 9, 4));
            vkt_tensor parts[3];
            OK(vkt_split_sizes(g, x, axis, sizes[axis], 3, parts));
            const vkt_tensor y = vkt_concat(g, parts, 3, axis - 3);
            assert_int_equal(vkt_value_of(g, y)->layout, layout);
            run(g, x, y, (const uint32_t *)(const void *)in, (uint32_t *)(void *)out);
            assert_memory_equal(in, out, sizeof in);
        }
}

/* ---- batch last ---- */

/* Flips dimension 0 of x, the batch, and then swaps it with the last dimension. The result has the layout VKT_ROWS for
 * both layouts of x. The test itself computes from which element of x each element of the result comes. */
static void a_batch_that_moves_comes_back_by_rows(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { N = 5, C = 3, H = 7 };
    static float in[N * C * H], out[N * C * H];
    count_up(in, VKT_COUNT(in));
    for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++) {
        vkt_graph *g = harness_graph();
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, (vkt_layout)layout, vkt_shape3(N, C, H));
        const vkt_tensor y = vkt_transpose(g, vkt_flip(g, x, 0), 0, -1); /* (H,C,N) */
        assert_int_equal(vkt_value_of(g, y)->layout, VKT_ROWS);
        run(g, x, y, (const uint32_t *)(const void *)in, (uint32_t *)(void *)out);
        for (uint32_t i = 0; i < N * C * H; i++) {
            const uint32_t h = i / (C * N), c = i / N % C, n = i % N;
            assert_true(out[i] == (float)(((N - 1 - n) * C + c) * H + h));
        }
    }
}

/* Pads with -inf, as users of torch.nn.functional.pad do before a maximum. */
static void padding_with_infinity(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static float in[5 * 2 * 3], out[6 * 4 * 3];
    count_up(in, VKT_COUNT(in));
    for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++)
        for (uint32_t batch = 0; batch < 2; batch++) {
            vkt_graph *g = harness_graph();
            const vkt_tensor x = vkt_input(g, "x", VKT_F32, (vkt_layout)layout, vkt_shape3(5, 2, 3));
            const vkt_tensor y = vkt_pad(g, x, (uint32_t[]){ batch, 1, 0 }, (uint32_t[]){ 0, 1, 0 }, -INFINITY);
            assert_int_equal(vkt_value_of(g, y)->layout, layout);
            run(g, x, y, (const uint32_t *)(const void *)in, (uint32_t *)(void *)out);
            for (uint32_t i = 0; i < (5 + batch) * 12; i++) {
                const uint32_t n = i / 12, c = i / 3 % 4, k = i % 3;
                const bool inside = n >= batch && c >= 1 && c < 3;
                assert_true(out[i] == (inside ? in[(n - batch) * 6 + (c - 1) * 3 + k] : -INFINITY));
            }
        }
}

/* ---- bits ---- */

/* The kernels keep NaNs with a payload, denormals and -0. Integers with the same bits also stay unchanged. */
static void bits_stay_as_they_are(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const uint32_t odd[] = {
        0x7fc12345, 0x80000000, 0x00000001, 0xffffffff, 0x7f800000, 0x807fffff, 0x3f800000
    };
    static uint32_t in[MOST], out[MOST];
    for (uint32_t i = 0; i < MOST; i++) in[i] = odd[i % VKT_COUNT(odd)];
    for (uint32_t odd_size = 0; odd_size < 2; odd_size++)
        for (vkt_dtype type = VKT_F32; type <= VKT_U32; type++) {
            const uint32_t a = 8 - odd_size, b = 12 + odd_size, ab = a * b;
            vkt_graph *g = harness_graph();
            const vkt_tensor x = vkt_input(g, "x", type, VKT_ROWS, vkt_shape3(3, a, b));
            const vkt_tensor transposed = vkt_transpose(g, x, 1, 2);
            const vkt_tensor framed = vkt_pad(g, transposed, (uint32_t[]){ 1, 0, 0 }, (uint32_t[]){ 0, 0, 0 }, 5);
            run(g, x, vkt_flip(g, framed, 0), in, out);
            for (uint32_t i = 0; i < 4 * ab; i++) {
                const float five = 5;
                uint32_t want = 5;
                if (type == VKT_F32) memcpy(&want, &five, sizeof want);
                if (i < 3 * ab) want = in[(2 - i / ab) * ab + i % a * b + i / a % b];
                assert_int_equal(out[i], want);
            }
        }
}

/* ---- dimensions of 1 ---- */

/* Applies function number `how` of nine functions to x (N,C,H). Functions 0 to 7 change dimension 0. Function 8 changes
 * the layout. */
static vkt_tensor rearranged(vkt_graph *g, vkt_tensor x, int how)
{
    const vkt_shape s = vkt_tensor_shape(g, x);
    switch (how) {
    case 0: return vkt_slice(g, x, 0, 1, VKT_END, 2);
    case 1: return vkt_flip(g, x, 0);
    case 2: return vkt_permute(g, x, (uint32_t[]){ 2, 0, 1 });
    case 3: return vkt_transpose(g, x, 0, 1);
    case 4: return vkt_concat(g, (vkt_tensor[]){ x, vkt_flip(g, x, 1), x }, 3, 0);
    case 5: return vkt_pad(g, x, (uint32_t[]){ 1, 0, 2 }, (uint32_t[]){ 2, 1, 0 }, 9);
    case 6: return vkt_reshape(g, x, vkt_shape2(s.dim[0] * s.dim[1], s.dim[2]));
    case 7: return vkt_unsqueeze(g, x, 0);
    case 8: return vkt_to_layout(g, vkt_to_layout(g, x, VKT_ROWS), VKT_BATCH_LAST);
    default: return (vkt_tensor){ 0 };
    }
}

/* For integers, both layouts of x give the same result. Some integers have the bits of denormal floats or of signalling
 * NaNs. */
static void integers_go_through_rows_and_back(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const uint32_t words[] = { 0, 1, 7, 0x7f800001, 0x80000000, 0xffffffff, 0x00400000, 0xff812345 };
    static uint32_t in[9 * 3 * 8], out[2][4 * 9 * 3 * 8];
    for (size_t i = 0; i < VKT_COUNT(in); i++) in[i] = words[i % VKT_COUNT(words)] ^ (uint32_t)(i / VKT_COUNT(words));
    for (uint32_t N = 8; N <= 9; N++)
        for (uint32_t H = 7; H <= 8; H++)
            for (int how = 0; how < 9; how++) {
                size_t n = 0;
                for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++) {
                    vkt_graph *g = harness_graph();
                    const vkt_tensor x = vkt_input(g, "x", VKT_U32, (vkt_layout)layout, vkt_shape3(N, 3, H));
                    const vkt_tensor y = rearranged(g, x, how);
                    OK(vkt_graph_status(g));
                    n = vkt_shape_elements(vkt_tensor_shape(g, y));
                    if (how == 0 || how == 1 || how == 4 || how == 5)
                        assert_int_equal(vkt_value_of(g, y)->layout, layout);
                    run(g, x, vkt_flip(g, y, -1), in, out[layout]); /* flips, because a reshape alone has no dispatch */
                }
                assert_memory_equal(out[0], out[1], n * sizeof *in);
            }
}

/* After an error, no part is a tensor of the graph: the first slice is legal, the second is empty. */
static void a_split_that_fails_has_no_parts(void **state)
{
    (void)state;
    vkt_graph *g = harness_graph();
    vkt_tensor parts[2] = { { 1 }, { 1 } };
    vkt_test_expect_errors(true);
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(5));
    assert_int_equal(vkt_split_sizes(g, x, 0, (uint32_t[]){ 5, 0 }, 2, parts), VKT_E_ARG);
    vkt_test_expect_errors(false);
    assert_true(parts[0].id == 0 && parts[1].id == 0);
    vkt_graph_destroy(&g);
}

static void squeezing_moves_nothing(void **state)
{
    (void)state;
    vkt_graph *g = harness_graph();
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape3(5, 3, 4));
    static const struct {
        int32_t axis;
        vkt_shape shape;
    } wants[] = { { 1, { 4, { 5, 1, 3, 4 } } },
                  { 3, { 4, { 5, 3, 4, 1 } } },
                  { -1, { 4, { 5, 3, 4, 1 } } },
                  { -3, { 4, { 5, 1, 3, 4 } } } };
    for (size_t i = 0; i < VKT_COUNT(wants); i++) {
        const vkt_tensor y = vkt_unsqueeze(g, x, wants[i].axis), z = vkt_squeeze(g, y, wants[i].axis);
        assert_true(vkt_shape_equal(vkt_tensor_shape(g, y), wants[i].shape));
        assert_true(vkt_shape_equal(vkt_tensor_shape(g, z), vkt_tensor_shape(g, x)));
        assert_int_equal(vkt_root(g, z), x.id);
    }
    const vkt_tensor first = vkt_unsqueeze(g, x, 0);
    assert_true(vkt_shape_equal(vkt_tensor_shape(g, first), vkt_shape4(1, 5, 3, 4)));
    assert_int_equal(vkt_value_of(g, first)->layout, VKT_ROWS);
    OK(vkt_graph_status(g));
    vkt_graph_destroy(&g);
}

/* ---- kernels ---- */

static vkt_tensor heads(vkt_graph *g, vkt_tensor x)
{
    return vkt_permute(g, x, (uint32_t[]){ 0, 2, 1, 3 });
}

static vkt_tensor keys(vkt_graph *g, vkt_tensor x)
{
    return vkt_permute(g, x, (uint32_t[]){ 0, 2, 3, 1 });
}

static vkt_tensor window(vkt_graph *g, vkt_tensor x)
{
    return vkt_slice(g, x, 1, 1, 3, 1);
}

static vkt_tensor every_other(vkt_graph *g, vkt_tensor x)
{
    return vkt_slice(g, x, -1, 0, VKT_END, 2);
}

static vkt_tensor frame(vkt_graph *g, vkt_tensor x)
{
    return vkt_pad(g, x, (uint32_t[]){ 0, 0, 1, 1 }, (uint32_t[]){ 0, 0, 1, 1 }, 0);
}

static const struct {
    vkt_tensor (*build)(vkt_graph *g, vkt_tensor x);
    vkt_layout layout;
    vkt_shape x;
    vkt_kernel_id kernel;
} kernels[] = {
    { heads, VKT_ROWS, { 4, { 2, 7, 3, 8 } }, VKT_K_MOVE4 },
    { heads, VKT_ROWS, { 4, { 2, 7, 3, 9 } }, VKT_K_MOVE },
    { heads, VKT_BATCH_LAST, { 4, { 3, 7, 3, 9 } }, VKT_K_MOVE4 },
    { keys, VKT_BATCH_LAST, { 4, { 3, 7, 3, 9 } }, VKT_K_MOVE4 },
    { keys, VKT_ROWS, { 4, { 2, 8, 3, 8 } }, VKT_K_TRANSPOSE4 },
    { keys, VKT_ROWS, { 4, { 2, 7, 3, 8 } }, VKT_K_TRANSPOSE_LOAD4 },
    { keys, VKT_ROWS, { 4, { 2, 8, 3, 7 } }, VKT_K_TRANSPOSE_STORE4 },
    { keys, VKT_ROWS, { 4, { 2, 7, 3, 7 } }, VKT_K_TRANSPOSE },
    { window, VKT_ROWS, { 4, { 2, 5, 2, 6 } }, VKT_K_MOVE4 },
    { window, VKT_BATCH_LAST, { 4, { 2, 5, 3, 3 } }, VKT_K_MOVE4 },
    { every_other, VKT_ROWS, { 4, { 2, 5, 2, 8 } }, VKT_K_MOVE },
    { every_other, VKT_BATCH_LAST, { 4, { 2, 5, 2, 7 } }, VKT_K_MOVE4 },
    { frame, VKT_ROWS, { 4, { 2, 5, 2, 8 } }, VKT_K_PAD },
    { frame, VKT_BATCH_LAST, { 4, { 3, 5, 2, 7 } }, VKT_K_PAD4 },
};

static void whole_vectors_move_where_memory_has_them(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (size_t i = 0; i < VKT_COUNT(kernels); i++) {
        vkt_graph *g = harness_graph();
        vkt_program *p = NULL;
        vkt_keep(g, kernels[i].build(g, vkt_input(g, "x", VKT_F32, kernels[i].layout, kernels[i].x)));
        OK(vkt_program_create(harness_ctx, g, NULL, NULL, &p));
        if (p->lowered.n != 1 || p->lowered.list[0].kernel != kernels[i].kernel)
            fail_msg("case %zu: %zu dispatches, the first by %s", i, p->lowered.n,
                     vkt_kernel_get((vkt_kernel_id)p->lowered.list[0].kernel)->name);
        vkt_program_destroy(&p);
        vkt_graph_destroy(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_follow_pythons_rules),
        cmocka_unit_test(what_is_split_and_joined_is_the_same),
        cmocka_unit_test(a_batch_that_moves_comes_back_by_rows),
        cmocka_unit_test(padding_with_infinity),
        cmocka_unit_test(bits_stay_as_they_are),
        cmocka_unit_test(integers_go_through_rows_and_back),
        cmocka_unit_test(a_split_that_fails_has_no_parts),
        cmocka_unit_test(squeezing_moves_nothing),
        cmocka_unit_test(whole_vectors_move_where_memory_has_them),
    };
    return cmocka_run_group_tests_name("rearrange", tests, harness_setup, harness_teardown);
}
