/* Tests quantized weights in each format. The device's numbers are compared with those of vkt_gguf_dequantize, which
 * io/test_gguf_blocks.c compares with those of PyPI's gguf package. Scales are as large as in real weights, or below
 * 2^-14. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/philox.h"
#include "check/case.h"
#include "ops/harness.h"
#include "kernel/ids.h"
#include "ops/ops.h"
#include "record/record.h"
#include "support/host.h"
#include "vktrain/gguf.h"

#include "abi/abi.h"
#include "abi/dequantize.abi.h"
#include "abi/gemm_shared.abi.h"

#define OK(call) assert_int_equal((call), VKT_OK)
enum { ROWS = 11, BATCH = 5, MOST_COLUMNS = 512 };

static const struct format {
    vkt_quant quant;
    /* columns: columns of the weights. bytes: size of a block. scales: byte offsets of the two 16-bit scales in a
     * block; equal offsets: the block has one scale. A block of F16 or BF16 is one number, written like a scale. */
    uint32_t columns, bytes, scales[2];
} formats[] = {
    { VKT_QUANT_F16, 36, 2, { 0 } },        { VKT_QUANT_BF16, 36, 2, { 0 } },
    { VKT_QUANT_Q4_0, 96, 18, { 0 } },      { VKT_QUANT_Q4_1, 96, 20, { 0, 2 } },
    { VKT_QUANT_Q8_0, 96, 34, { 0 } },      { VKT_QUANT_Q4_K, 512, 144, { 0, 2 } },
    { VKT_QUANT_Q5_K, 512, 176, { 0, 2 } }, { VKT_QUANT_Q6_K, 512, 210, { 208, 208 } },
};

/* Writes the number `size` as f16 (rounded) or as bf16 (truncated). */
static void put_scale(uint8_t *at, vkt_quant quant, float size)
{
    uint32_t bits;
    memcpy(&bits, &size, sizeof bits);
    const uint16_t h = quant == VKT_QUANT_BF16 ? (uint16_t)(bits >> 16) : vkt_half_from_f32(size);
    at[0] = (uint8_t)h;
    at[1] = (uint8_t)(h >> 8);
}

/* Fills the bytes of weights with random blocks. In every third block, the scales are subnormal in f16. */
static void fill(const struct format *f, uint8_t *bytes, size_t n, vkt_rng *r)
{
    for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)vkt_rng_range(r, 0, 255);
    for (size_t b = 0; b * f->bytes < n; b++)
        for (int i = 0; i < 2; i++) {
            const float sign = vkt_rng_range(r, 0, 1) ? 1 : -1, size = b % 3 == 0 ? 0x1p-16f : 0x1p-7f;
            put_scale(bytes + b * f->bytes + f->scales[i], f->quant, sign * size * (1 + vkt_rng_unit(r)));
        }
}

static void read_rows(vkt_program *p, const vkt_graph *g, vkt_tensor y, float *out)
{
    OK(vkt_program_run(p, NULL, NULL));
    harness_read_f32(p, g, y, out);
}

/* Compares y, which is element `at` of the result, with the dot product of a and b in double precision. `rounding`: the
 * device may round each element of a, of b and of the result with a relative error of at most this number. */
static void check_product(const char *what, size_t at, float y, const float *a, const float *b, uint32_t n,
                          double rounding)
{
    double sum = 0, size = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double term = (double)a[i] * (double)b[i];
        sum += term;
        size += fabs(term);
    }
    if (!(fabs((double)y - sum) <= (1e-6 + 2.1 * rounding) * size + rounding * fabs(sum)))
        fail_msg("%s: element %zu is %.9g, want %.9g", what, at, (double)y, sum);
}

static void every_format_is_unpacked_as_by_the_host(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static float want[ROWS * MOST_COLUMNS], got[(ROWS + 2) * MOST_COLUMNS], x[BATCH * MOST_COLUMNS], y[BATCH * ROWS];
    static uint32_t words[ROWS * MOST_COLUMNS / 2];
    for (size_t k = 0; k < VKT_COUNT(formats); k++) {
        const struct format *f = &formats[k];
        const uint32_t columns = f->columns, ids[] = { 3, 0, 10, 11, 7, UINT32_MAX, 3, 1, 2, 4, 5, 6, 8 };
        const size_t bytes = (size_t)vkt_quantized_bytes(f->quant, ROWS, columns), n = ROWS * (size_t)columns;
        vkt_rng r = vkt_rng_make(17 + k, 0, 0, 0);
        memset(words, 0, sizeof words);
        fill(f, (uint8_t *)words, bytes, &r);
        OK(vkt_gguf_dequantize(NULL, (vkt_gguf_type)f->quant, words,
                               n / vkt_gguf_block_elements((vkt_gguf_type)f->quant), want));
        for (size_t i = 0; i < BATCH * (size_t)columns; i++) x[i] = vkt_rng_uniform(&r, -1, 1);
        vkt_graph *g = harness_graph();
        const vkt_shape shape = vkt_shape1((uint32_t)(bytes + 3) / 4);
        const vkt_tensor w = vkt_input(g, "w", VKT_U32, VKT_ROWS, shape);
        const vkt_tensor list = vkt_input(g, "ids", VKT_U32, VKT_ROWS, vkt_shape1(VKT_COUNT(ids)));
        const vkt_tensor in = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(BATCH, columns));
        const vkt_tensor rows = vkt_embedding_quantized(g, list, w, f->quant, ROWS, columns);
        const vkt_tensor product = vkt_linear_quantized(g, in, w, (vkt_tensor){ 0 }, f->quant, ROWS);
        vkt_program *p = NULL;
        vkt_keep(g, rows);
        vkt_keep(g, product);
        OK(vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &p));
        OK(vkt_program_write(p, w, words, 4ull * shape.dim[0]));
        OK(vkt_program_write(p, list, ids, sizeof ids));
        OK(vkt_program_write(p, in, x, 4ull * BATCH * columns));
        read_rows(p, g, rows, got);
        for (size_t i = 0; i < VKT_COUNT(ids); i++)
            for (uint32_t c = 0; c < columns; c++) {
                const float value = got[i * columns + c], right = ids[i] < ROWS ? want[ids[i] * columns + c] : 0;
                if (!(fabsf(value - right) <= 2.4e-7f * fabsf(right) + 1e-9f))
                    fail_msg("format %d, row %u, number %u: %.9g, want %.9g", (int)f->quant, ids[i], c, (double)value,
                             (double)right);
            }
        harness_read_f32(p, g, product, y);
        for (size_t i = 0; i < BATCH * ROWS; i++)
            check_product(vkt_gguf_type_name((vkt_gguf_type)f->quant), i, y[i], x + i / ROWS * columns,
                          want + i % ROWS * columns, columns, 0);
        vkt_program_destroy(&p);
        vkt_graph_destroy(&g);
    }
}

/* The weights of Q8_0 have 41 KB, and a binding has 8 KiB. So each of the two variants for few rows of x needs several
 * dispatches. Most dispatches read a range of rows of the weights that does not begin at a multiple of 256 bytes. */
static void few_rows_and_small_bindings(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { OUT = 201, IN = 192, FEW = 3 };
    static const uint64_t variants[] = { VKT_V(ROW_LANES), VKT_V(ROW_ACROSS) };
    static float w[OUT * IN], x[FEW * IN], y[FEW * OUT];
    static uint32_t words[OUT * IN / 2];
    const struct format *f = &formats[4];
    const size_t bytes = (size_t)vkt_quantized_bytes(f->quant, OUT, IN);
    vkt_rng r = vkt_rng_make(41, 0, 0, 0);
    fill(f, (uint8_t *)words, bytes, &r);
    OK(vkt_gguf_dequantize(NULL, (vkt_gguf_type)f->quant, words, OUT * IN / 32, w));
    for (size_t i = 0; i < FEW * IN; i++) x[i] = vkt_rng_uniform(&r, -1, 1);
    for (size_t k = 0; k < VKT_COUNT(variants); k++) {
        const vkt_limits real = harness_ctx->limits;
        vkt_graph *g = harness_graph();
        vkt_program *p = NULL;
        const vkt_tensor in = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(FEW, IN));
        const vkt_tensor weights = vkt_input(g, "w", VKT_U32, VKT_ROWS, vkt_shape1((uint32_t)(bytes + 3) / 4));
        const vkt_tensor out = vkt_linear_quantized(g, in, weights, (vkt_tensor){ 0 }, f->quant, OUT);
        vkt_keep(g, out);
        harness_ctx->limits.choices.force = variants[k];
        harness_ctx->limits.max_storage_range_bytes = 8192;
        harness_ctx->limits.max_texel_elements = VKT_MIN(real.max_texel_elements, 512u);
        const vkt_result made = vkt_program_create_guarded(harness_ctx, g, NULL, NULL, &p);
        harness_ctx->limits = real;
        OK(made);
        assert_true(p->lowered.n >= 5 && variants[k] == (uint64_t)1 << p->lowered.picked[0].variant);
        OK(vkt_program_write(p, weights, words, 4 * (size_t)vkt_tensor_shape(g, weights).dim[0]));
        OK(vkt_program_write(p, in, x, sizeof x));
        read_rows(p, g, out, y);
        for (size_t i = 0; i < FEW * OUT; i++) check_product("y", i, y[i], x + i / OUT * IN, w + i % OUT * IN, IN, 0);
        vkt_program_destroy(&p);
        vkt_graph_destroy(&g);
    }
}

/* A layer that computes y (rows,out) from x (rows,in). dy is the gradient of y. */
typedef struct layer {
    uint32_t out, in, rows;
    vkt_quant format;
    uint32_t *words;
    float *x, *dy;
} layer;

/* A way to compute the layer and the gradient of x. */
typedef struct way {
    const char *name;
    uint64_t force;
    uint16_t kernel; /* vkt_kernel_id of its products */
    vkt_precision precision;
    double rounding; /* the largest relative rounding error of an operand and of a result */
    bool slices;     /* short slices are allowed (trait slice_shared), so a sum may have several slices */
    uint32_t fit;    /* a binding holds at least this number of rows of unpacked weights; 0: all rows */
} way;

/* Values of `fit`. PARTS: the product for y pads the weights to more rows than a binding holds. So each sum for y is
 * computed in parts, and a part can begin in the middle of a row of the weights. SMALL: if the rows of the weights are
 * long, the sums for dx are computed in parts, and the product for y unpacks the weights to memory. With the variant
 * PACKED, the product for y copies the unpacked weights to panels (ops/product/gemm.h). Even with SMALL, a binding
 * holds the rows of one panel: four rows of the weights for each lane of a subgroup. */
enum { PARTS = 76, SMALL = 33 };
static const way ways[] = {
    { "unpacked", VKT_V(UNPACKED) | VKT_V(SHARED), VKT_K_GEMM_SHARED, .fit = 0 },
    { "blocks", VKT_V(BLOCKS) | VKT_V(SHARED), VKT_K_GEMM_QUANTIZED, .fit = 0 },
    { "in slices", VKT_V(BLOCKS) | VKT_V(SPLIT_K), VKT_K_GEMM_QUANTIZED, .slices = true },
    { "in parts of rows", VKT_V(BLOCKS) | VKT_V(SHARED), VKT_K_GEMM_QUANTIZED, .fit = PARTS },
    { "in small bindings", VKT_V(BLOCKS) | VKT_V(SHARED), VKT_K_GEMM_QUANTIZED, .fit = SMALL },
    { "in panels", VKT_V(BLOCKS) | VKT_V(PACKED), VKT_K_GEMM_TILE, .fit = 0 },
    { "in small panels", VKT_V(BLOCKS) | VKT_V(PACKED), VKT_K_GEMM_TILE, .fit = SMALL },
    { "f16", VKT_V(BLOCKS) | VKT_V(COOP), VKT_K_GEMM_QUANTIZED_COOP, VKT_PRECISION_F16, 0x1p-11 },
    { "bf16", VKT_V(BLOCKS) | VKT_V(COOP), VKT_K_GEMM_QUANTIZED_BFLOAT, VKT_PRECISION_BF16, 0x1p-8 },
    { "f32-split", VKT_V(BLOCKS) | VKT_V(COOP), VKT_K_GEMM_QUANTIZED_SPLIT, VKT_PRECISION_F32_SPLIT, 0x1p-21 },
};

static bool can(const way *o)
{
    const vkt_limits *lim = &harness_ctx->limits;
    if (o->precision == VKT_PRECISION_F32) return true;
    return o->precision == VKT_PRECISION_BF16 ? lim->coop_bf16.m != 0 : harness_needed(lim->coop.m);
}

/* Makes the program. rows_first_kib is low, so gemm_tile orders the tiles as for a large operand B. */
static vkt_program *layer_program(const layer *l, const way *o, vkt_graph *g)
{
    const vkt_limits real = harness_ctx->limits;
    vkt_limits *lim = &harness_ctx->limits;
    vkt_traits traits = *real.traits;
    vkt_program *p = NULL;
    lim->choices.force = o->force;
    if (o->slices) traits.slice_shared = 8, lim->cores = 64;
    traits.rows_first_kib = 1;
    lim->traits = &traits;
    if (o->fit) {
        const uint64_t rows = VKT_MAX(o->fit, o->fit == SMALL ? 4 * lim->subgroup_size + 1 : 0);
        lim->max_storage_range_bytes = VKT_MAX(4 * rows * l->in + 256, o->fit == SMALL ? 12288 : 4096);
        lim->max_texel_elements = VKT_MIN(real.max_texel_elements, (uint32_t)lim->max_storage_range_bytes / 16);
    }
    const vkt_result made =
        vkt_program_create_guarded(harness_ctx, g, NULL, &(vkt_program_params){ .precision = o->precision }, &p);
    harness_ctx->limits = real;
    OK(made);
    return p;
}

/* Checks that the program computes the products as the way says. */
static void check_dispatches(const vkt_program *p, const way *o)
{
    uint32_t products = 0, unpackings = 0, panels = 0, parts = 0;
    for (size_t i = 0; i < p->lowered.n; i++) {
        const vkt_dispatch *d = &p->lowered.list[i];
        vkt_gemm_shared_push push = { 0 };
        if (d->kernel == VKT_K_GEMM_QUANTIZED) memcpy(&push, d->push, d->push_bytes);
        products += d->kernel == o->kernel;
        unpackings += d->kernel == VKT_K_DEQUANTIZE && !d->spec[DEQUANTIZE_SPEC_PANEL];
        panels += d->kernel == VKT_K_DEQUANTIZE && d->spec[DEQUANTIZE_SPEC_PANEL];
        parts += push.b_first > 0;
    }
    assert_true(products >= 2);
    if (o->kernel != VKT_K_GEMM_TILE && o->fit != SMALL) assert_true((unpackings != 0) == !(o->force & VKT_V(BLOCKS)));
    assert_true((panels != 0) == (o->kernel == VKT_K_GEMM_TILE) && (parts != 0 || o->fit != PARTS));
}

/* Computes y (rows,out) and dx (rows,in). */
static void layer_run(const layer *l, const way *o, float *y, float *dx)
{
    const uint32_t words = (uint32_t)((vkt_quantized_bytes(l->format, l->out, l->in) + 3) / 4);
    vkt_graph *g = harness_graph();
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(l->rows, l->in));
    const vkt_tensor dy = vkt_input(g, "dy", VKT_F32, VKT_ROWS, vkt_shape2(l->rows, l->out));
    const vkt_tensor w = vkt_input(g, "w", VKT_U32, VKT_ROWS, vkt_shape1(words));
    const vkt_tensor out = vkt_linear_quantized(g, x, w, (vkt_tensor){ 0 }, l->format, l->out);
    vkt_tensor gradient;
    OK(vkt_gradients(g, &out, &dy, 1, &x, 1, &gradient));
    vkt_keep(g, out);
    vkt_keep(g, gradient);
    vkt_program *p = layer_program(l, o, g);
    check_dispatches(p, o);
    OK(vkt_program_write(p, w, l->words, 4ull * words));
    OK(vkt_program_write(p, x, l->x, 4ull * l->rows * l->in));
    OK(vkt_program_write(p, dy, l->dy, 4ull * l->rows * l->out));
    read_rows(p, g, out, y);
    harness_read_f32(p, g, gradient, dx);
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

/* Compares y and dx with sums in double precision. w: the weights, unpacked on the host. */
static void layer_check(const layer *l, const way *o, const float *w, const float *y, const float *dx)
{
    char what[80];
    snprintf(what, sizeof what, "%s, %s", vkt_gguf_type_name((vkt_gguf_type)l->format), o->name);
    for (size_t i = 0; i < (size_t)l->rows * l->out; i++)
        check_product(what, i, y[i], l->x + i / l->out * l->in, w + i % l->out * l->in, l->in, o->rounding);
    for (size_t i = 0; i < (size_t)l->rows * l->in; i++) {
        float column[128];
        for (uint32_t c = 0; c < l->out; c++) column[c] = w[c * (size_t)l->in + i % l->in];
        check_product(what, i, dx[i], l->dy + i / l->in * l->out, column, l->out, o->rounding);
    }
}

/* Computes products with weights of each format in each way. The ways "unpacked" and "blocks" use the same tiles, so
 * their results must have the same bits. OUT and COUNT are no multiples of the size of a tile. A run with few cases
 * (vkt_test_leaves_out) has these two ways for each format, but only about a third of the other f32 ways. */
static void products_unpack_every_format(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { OUT = 71, COUNT = 37, MOST = OUT * MOST_COLUMNS };
    static float x[COUNT * MOST_COLUMNS], dy[COUNT * OUT], y[2][COUNT * OUT], dx[2][COUNT * MOST_COLUMNS], w[MOST];
    static uint32_t words[MOST / 2];
    for (size_t k = 0; k < VKT_COUNT(formats); k++) {
        const struct format *f = &formats[k];
        const layer l = { OUT, f->columns, COUNT, f->quant, words, x, dy };
        const size_t bytes = (size_t)vkt_quantized_bytes(f->quant, OUT, l.in), n = OUT * (size_t)l.in;
        vkt_rng r = vkt_rng_make(43 + k, 0, 0, 0);
        memset(words, 0, sizeof words);
        fill(f, (uint8_t *)words, bytes, &r);
        OK(vkt_gguf_dequantize(NULL, (vkt_gguf_type)f->quant, words,
                               n / vkt_gguf_block_elements((vkt_gguf_type)f->quant), w));
        for (size_t i = 0; i < COUNT * (size_t)l.in; i++) x[i] = vkt_rng_uniform(&r, -1, 1);
        for (size_t i = 0; i < COUNT * OUT; i++) dy[i] = vkt_rng_uniform(&r, -1, 1);
        for (size_t v = 0; v < VKT_COUNT(ways); v++) {
            float *to = y[v != 0], *to_dx = dx[v != 0];
            if (!can(&ways[v])) continue;
            if (v > 1 && ways[v].precision == VKT_PRECISION_F32 && vkt_test_leaves_out(k + v, 3)) continue;
            layer_run(&l, &ways[v], to, to_dx);
            layer_check(&l, &ways[v], w, to, to_dx);
            if (v != 1) continue;
            assert_memory_equal(y[0], y[1], sizeof y[0]);
            assert_memory_equal(dx[0], dx[1], 4ull * COUNT * l.in);
        }
    }
}

/* The variants for few rows of x need subgroups of at least 4 lanes. With fewer lanes, the weights are unpacked before
 * the product. */
static void small_subgroups_unpack(void **state)
{
    (void)state;
    for (uint32_t lanes = 1; lanes <= 4; lanes *= 2) {
        vkt_graph *g = harness_graph();
        const vkt_limits lim = { .traits = &vkt_class_traits[VKT_CLASS_CPU],
                                 .subgroup_size = lanes,
                                 .max_workgroup_lanes = 256,
                                 .max_groups = 65535,
                                 .max_push_bytes = 128,
                                 .shared_bytes = 16384,
                                 .max_storage_range_bytes = 1u << 27,
                                 .max_texel_elements = 1u << 27 };
        vkt_emit e;
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(1, 64));
        const vkt_tensor w = vkt_input(g, "w", VKT_U32, VKT_ROWS, vkt_shape1(34 * 2 * 7 / 4));
        vkt_keep(g, vkt_linear_quantized(g, x, w, (vkt_tensor){ 0 }, VKT_QUANT_Q8_0, 7));
        OK(vkt_graph_status(g));
        OK(vkt_lower(g, &lim, NULL, (vkt_storage){ .precision = VKT_PRECISION_F32 }, &e));
        assert_int_equal(e.picked[0].variant, lanes < 4 ? VKT_V_UNPACKED : VKT_V_ROW_LANES);
        vkt_lower_free(&e);
        vkt_graph_destroy(&g);
    }
}

/* An audit of a lookup must read rows of the whole table. So the test case (vkt_case) of the audit has random ids from
 * 0 to the number of rows - 1. The number of rows is an attribute of the op. */
static void an_audit_reads_the_whole_table(void **state)
{
    (void)state;
    vkt_graph *g = harness_graph();
    vkt_case c;
    const uint32_t words = (uint32_t)(vkt_quantized_bytes(VKT_QUANT_Q8_0, 1000, 64) / 4);
    const vkt_tensor ids = vkt_input(g, "ids", VKT_U32, VKT_ROWS, vkt_shape2(4, 7));
    const vkt_tensor w = vkt_input(g, "w", VKT_U32, VKT_ROWS, vkt_shape1(words));
    vkt_embedding_quantized(g, ids, w, VKT_QUANT_Q8_0, 1000, 64);
    OK(vkt_graph_status(g));
    assert_true(vkt_case_of_node(g->nodes[g->n_nodes - 1], &c));
    assert_int_equal(c.in[0].bound, 1000);
    vkt_graph_destroy(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_format_is_unpacked_as_by_the_host),
                                        cmocka_unit_test(few_rows_and_small_bindings),
                                        cmocka_unit_test(products_unpack_every_format),
                                        cmocka_unit_test(small_subgroups_unpack),
                                        cmocka_unit_test(an_audit_reads_the_whole_table) };
    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
