/* Tests the kernels of cooperative matrices of bf16 on a device that has only cooperative matrices of f16. The test
 * reverses the change of cmake/bfloat.c: before the driver gets a module, the matrices of bf16 in the module become
 * matrices of f16. A kernel of this module still rounds its operands to bf16 and stores them as bf16, but multiplies
 * their bits as if they were f16. A second program, in f16, gets the f16 numbers with these bits as inputs. Both
 * programs must compute the same sums, to the bit. (Other tests compare the kernels of f16 with references.) So this
 * test covers everything but the element type. test_ops.c, test_shared.c and test_coop.c test devices with matrices of
 * bf16. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/half.h"
#include "base/philox.h"
#include "ops/harness.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)

/* ---- modules with elements of f16 ---- */

/* Constants from the SPIR-V specification 1.6, sections 2.3 (HEADER) and 3, and from SPV_KHR_bfloat16. */
enum { HEADER = 5, OP_EXTENSION = 10, OP_CAPABILITY = 17, OP_TYPE_FLOAT = 22 };
enum { FLOAT16 = 9, BFLOAT16_TYPE = 5116, BFLOAT16_COOPERATIVE_MATRIX = 5118 };

static PFN_vkCreateShaderModule create_module;

/* Replaces bf16 by f16 in a module of n words. Returns the number of words that are left. */
static size_t to_f16(uint32_t *words, size_t n)
{
    size_t left = HEADER;
    for (size_t at = HEADER, length; at < n; at += length) {
        const uint32_t op = words[at] & 0xffff;
        length = words[at] >> 16;
        uint32_t kept = words[at] >> 16;
        assert_true(length > 0 && length <= n - at);
        if (op == OP_CAPABILITY && words[at + 1] == BFLOAT16_TYPE) words[at + 1] = FLOAT16;
        if (op == OP_CAPABILITY && words[at + 1] == BFLOAT16_COOPERATIVE_MATRIX) kept = 0;
        if (op == OP_EXTENSION && strcmp((const char *)&words[at + 1], "SPV_KHR_bfloat16") == 0) kept = 0;
        if (op == OP_TYPE_FLOAT) kept = 3;
        memmove(words + left, words + at, kept * sizeof *words);
        if (kept) words[left] = kept << 16 | op;
        left += kept;
    }
    return left;
}

/* Replaces vkCreateShaderModule. Modules without bf16 do not change. */
static VKAPI_ATTR VkResult VKAPI_CALL create_as_f16(VkDevice device, const VkShaderModuleCreateInfo *info,
                                                    const VkAllocationCallbacks *allocation, VkShaderModule *out)
{
    uint32_t *words = malloc(info->codeSize);
    assert_non_null(words);
    memcpy(words, info->pCode, info->codeSize);
    VkShaderModuleCreateInfo own = *info;
    own.codeSize = to_f16(words, info->codeSize / 4) * 4;
    own.pCode = words;
    const VkResult r = create_module(device, &own, allocation, out);
    free(words);
    return r;
}

static vkt_traits traits;

/* Opens harness_ctx as a device with matrices of bf16. Tiles are as on a GPU that needs 128 work groups to be busy. */
static int open_as_f16(void **state)
{
    harness_setup(state);
    if (!harness_ctx) return 0;
    vkt_limits *lim = &harness_ctx->limits;
    if (harness_has_matrices()) lim->coop_bf16 = lim->coop;
    traits = *lim->traits;
    traits.groups_shared = 128;
    traits.tile_side = 128;
    traits.tile_sums = 64;
    lim->traits = &traits;
    create_module = harness_ctx->vk.CreateShaderModule;
    harness_ctx->vk.CreateShaderModule = create_as_f16;
    return 0;
}

/* ---- products ---- */

enum { X, W, BIAS, DY, INPUTS };
enum { Y, DX, DW, DB, OUTPUTS };

/* A matrix product y = x w, or with `conv` a convolution of x. A convolution has a bias unless `no_bias` is true. */
typedef struct product {
    const char *name;
    vkt_shape x, w;
    int trans; /* the operands that a matrix product transposes: 0: none, 1: x, 2: w, 3: both */
    bool conv, no_bias;
    vkt_conv2d_params p;
} product;

/* The product in a graph, with all its gradients. */
typedef struct graph {
    vkt_graph *g;
    vkt_tensor in[INPUTS], out[OUTPUTS];
} graph;

/* Makes the graph of a product. If `wide` is true, the graph has one more op for each output: a sum for a convolution,
 * a slice for a matrix product. Such an op can read the output only as f32, so the output is stored as f32. */
static graph graph_make(const product *c, bool wide)
{
    graph s = { .g = harness_graph() };
    const vkt_layout layout = c->conv ? VKT_BATCH_LAST : VKT_ROWS;
    s.in[X] = vkt_input(s.g, "x", VKT_F32, layout, c->x);
    s.in[W] = vkt_input(s.g, "w", VKT_F32, VKT_ROWS, c->w);
    if (c->conv && !c->no_bias) s.in[BIAS] = vkt_input(s.g, "bias", VKT_F32, VKT_ROWS, vkt_shape1(c->w.dim[0]));
    s.out[Y] = c->conv ? vkt_conv2d(s.g, s.in[X], s.in[W], s.in[BIAS], &c->p)
                       : vkt_matmul(s.g, s.in[X], s.in[W], c->trans & 1, c->trans & 2);
    s.in[DY] = vkt_input(s.g, "dy", VKT_F32, layout, vkt_tensor_shape(s.g, s.out[Y]));
    OK(vkt_gradients(s.g, &s.out[Y], &s.in[DY], 1, s.in, s.in[BIAS].id ? 3 : 2, &s.out[DX]));
    for (int i = 0; i < OUTPUTS; i++) {
        if (s.out[i].id && wide)
            vkt_keep(s.g, c->conv ? vkt_sum(s.g, s.out[i]) : vkt_slice(s.g, s.out[i], -1, 0, 1, 1));
        if (s.out[i].id) vkt_keep(s.g, s.out[i]);
    }
    return s;
}

static size_t elements(const graph *s, vkt_tensor t)
{
    return t.id ? vkt_shape_elements(vkt_tensor_shape(s->g, t)) : 0;
}

/* Rounds v to bf16. Returns the f16 number with the same 16 bits. */
static float bits_as_f16(float v)
{
    return vkt_f32_from_half(vkt_bf16_from_f32(v));
}

/* Returns an element of input k. The elements of dy are integers from -2 to 2. Their bf16 bits, read as f16, are
 * multiples of 1/8, so sums of them are exact: see check_same. The elements of other inputs are from about -1 to 1.
 * Many of them are ties between two bf16 numbers, or neighbours of a tie. */
static float element(vkt_rng *r, int k)
{
    if (k == DY) return (float)vkt_rng_range(r, 0, 4) - 2;
    const float tie = ((float)vkt_rng_range(r, 0, 1024) - 512) / 512;
    return tie + ((float)vkt_rng_range(r, 0, 2) - 1) * 0x1p-20f;
}

/* Runs the product with the variant COOP in a program of this precision. out[i] gets the elements of output i as
 * floats; the caller frees them. in_16[i] gets whether output i was stored in 16 bits. Returns the number of dispatches
 * whose kernel multiplies matrices of bf16. */
static size_t run(const product *c, vkt_precision precision, bool wide, float *out[OUTPUTS], bool in_16[OUTPUTS])
{
    graph s = graph_make(c, wide);
    vkt_program *p = NULL;
    vkt_rng r = vkt_rng_make(5, 0, 0, 0);
    const vkt_choices own = harness_ctx->limits.choices;
    size_t n = 0;
    harness_ctx->limits.choices.force = VKT_V(COOP);
    OK(vkt_program_create(harness_ctx, s.g, NULL, &(vkt_program_params){ .precision = precision }, &p));
    harness_ctx->limits.choices = own;
    for (int k = 0; k < INPUTS; k++) {
        const size_t count = elements(&s, s.in[k]);
        float *v = malloc((count + 1) * sizeof *v);
        assert_non_null(v);
        for (size_t i = 0; i < count; i++) v[i] = element(&r, k);
        for (size_t i = 0; i < count && precision == VKT_PRECISION_F16 && k != BIAS; i++) v[i] = bits_as_f16(v[i]);
        if (count) OK(vkt_program_write(p, s.in[k], v, count * sizeof *v));
        free(v);
    }
    OK(vkt_program_run(p, NULL, NULL));
    for (int k = 0; k < OUTPUTS; k++) {
        const size_t count = elements(&s, s.out[k]);
        out[k] = malloc((count + 1) * sizeof *out[k]);
        assert_non_null(out[k]);
        if (count) OK(vkt_program_read(p, s.out[k], out[k], count * sizeof *out[k]));
        in_16[k] = count && p->lowered.values[s.out[k].id].storage != VKT_PRECISION_F32;
    }
    for (size_t i = 0; i < p->lowered.n; i++)
        n += (vkt_kernel_get((vkt_kernel_id)p->lowered.list[i].kernel)->flags & VKT_KF_BFLOAT) != 0;
    vkt_program_destroy(&p);
    vkt_graph_destroy(&s.g);
    harness_forget(harness_ctx);
    return n;
}

/* Checks that `got` is equal to `want`, except db, and that `narrow` is `got`, rounded to bf16 where in_16 is true.
 * `want` has the outputs of the kernels of f16. `got` and `narrow` have the outputs of the kernels of bf16. `got` was
 * stored as f32. in_16: this output of `narrow` was stored in 16 bits. The db of `got` must be 1.875 times the db of
 * `want`: for db, a kernel multiplies dy by ones, which it makes itself. A kernel of bf16 makes the bits of 1 in bf16.
 * Read as f16, these bits are 1.875. */
static void check_same(const product *c, float *const want[], float *const got[], float *const narrow[],
                       const bool in_16[])
{
    graph s = graph_make(c, false);
    for (int k = 0; k < OUTPUTS; k++) {
        const float factor = k == DB ? bits_as_f16(1) : 1;
        for (size_t i = 0; i < elements(&s, s.out[k]); i++) {
            const float stored = in_16[k] ? vkt_f32_from_bf16(vkt_bf16_from_f32(got[k][i])) : got[k][i];
            if (got[k][i] != want[k][i] * factor || narrow[k][i] != stored)
                fail_msg("%s, output %d, element %zu: want %a, got %a and, stored, %a", c->name, k, i,
                         (double)(want[k][i] * factor), (double)got[k][i], (double)narrow[k][i]);
        }
    }
    vkt_graph_destroy(&s.g);
}

static void check(const product *c)
{
    float *want[OUTPUTS], *got[OUTPUTS], *narrow[OUTPUTS];
    bool in_16[OUTPUTS], narrow_in_16[OUTPUTS];
    assert_int_equal(run(c, VKT_PRECISION_F16, true, want, in_16), 0);
    assert_int_equal(run(c, VKT_PRECISION_BF16, true, got, in_16), 3);
    for (int k = 0; k < OUTPUTS; k++) assert_false(in_16[k]);
    assert_int_equal(run(c, VKT_PRECISION_BF16, false, narrow, narrow_in_16), 3);
    check_same(c, want, got, narrow, narrow_in_16);
    for (int k = 0; k < OUTPUTS; k++) {
        free(want[k]);
        free(got[k]);
        free(narrow[k]);
    }
}

#define S3 vkt_shape3
#define S4 vkt_shape4

static void products_of_the_same_bits_are_the_same(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    if (!harness_has_matrices()) return;
    static const uint32_t sizes[][3] = { { 70, 67, 83 }, { 64, 96, 128 }, { 13, 300, 20 } };
    for (size_t i = 0; i < VKT_COUNT(sizes); i++)
        for (int trans = 0; trans < 4; trans++) {
            const uint32_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
            check(&(product){ .name = "a product",
                              .x = trans & 1 ? S3(2, k, m) : S3(2, m, k),
                              .w = trans & 2 ? S3(2, n, k) : S3(2, k, n),
                              .trans = trans });
        }
}

static void convolutions_of_the_same_bits_are_the_same(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    if (!harness_has_matrices()) return;
    const product cases[] = {
        { "padded", S4(17, 7, 9, 8), S4(36, 7, 3, 3), .conv = true, .p = { .pad = { 1, 1 } } },
        { "strided", S4(8, 10, 13, 9), S4(20, 5, 3, 2), .conv = true, .p = { .stride = { 2, 1 }, .groups = 2 } },
        { "1 x 1", S4(33, 32, 4, 4), S4(64, 32, 1, 1), .conv = true, .no_bias = true },
        { "whole tiles", S4(32, 32, 6, 6), S4(32, 32, 3, 3), .conv = true, .no_bias = true, .p = { .pad = { 1, 1 } } },
        { "in slices", S4(3, 130, 5, 5), S4(70, 130, 3, 3), .conv = true, .p = { .pad = { 1, 1 } } },
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) check(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_the_same_bits_are_the_same),
        cmocka_unit_test(convolutions_of_the_same_bits_are_the_same),
    };
    return cmocka_run_group_tests_name("matrices of bf16", tests, open_as_f16, harness_teardown);
}
