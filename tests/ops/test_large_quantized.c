/* Tests quantized weights that are larger than a binding of the device (128 MiB on lavapipe). In one test, the
 * quantized words are larger than a binding. In the other test, the words fit, but the unpacked numbers do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/half.h"
#include "ops/large.h"
#include "record/record.h"
#include "vktrain/gguf.h"

#define OK(call) assert_int_equal((call), VKT_OK)

/* Creates the program of g. Returns false after a message if there is not enough memory. */
static bool make_program(vkt_graph *g, vkt_program **p)
{
    const vkt_result r = vkt_program_create(harness_ctx, g, NULL, NULL, p);
    if (r == VKT_E_MEMORY_CAP || r == VKT_E_DEVICE_MEMORY) {
        puts("SKIPPED: quantized weights larger than a binding: not enough memory");
        return false;
    }
    OK(r);
    return true;
}

/* If a binding has room for the n bytes of `tensor`, prints that the case tests no tensor larger than a binding. */
static void report_room(const char *tensor, size_t n)
{
    if (n <= harness_ctx->limits.max_storage_range_bytes)
        printf("SKIPPED: %s larger than a binding: a binding of this device has room for it\n", tensor);
}

/* Reads rows of a table of 158 MB, whose numbers are f16. The ids are spread over the table. The last id is larger than
 * any row's index, so its result is 0. */
static void a_table_larger_than_a_binding(void **state)
{
    (void)state;
    large_skip_if_small();
    enum { ROWS = 77003, COLUMNS = 1024, IDS = 500 };
    const size_t n = (size_t)ROWS * COLUMNS;
    uint16_t *table = malloc(n * sizeof *table);
    uint32_t ids[IDS];
    float *y = malloc((size_t)IDS * COLUMNS * sizeof *y);
    assert_true(table && y);
    for (size_t i = 0; i < n; i++) table[i] = vkt_half_from_f32((float)(i % 30011) / 64 - 200);
    for (uint32_t i = 0; i < IDS; i++) ids[i] = (uint32_t)((uint64_t)i * (ROWS + 2) / (IDS - 1));
    assert_true(ids[IDS - 1] > ROWS);
    report_room("a table of f16", n * sizeof *table);
    vkt_graph *g = harness_graph();
    vkt_program *p;
    const vkt_tensor list = vkt_input(g, "ids", VKT_U32, VKT_ROWS, vkt_shape1(IDS));
    const vkt_tensor words = vkt_input(g, "words", VKT_U32, VKT_ROWS, vkt_shape1((uint32_t)(n / 2)));
    const vkt_tensor rows = vkt_embedding_quantized(g, list, words, VKT_QUANT_F16, ROWS, COLUMNS);
    vkt_keep(g, rows);
    const bool made = make_program(g, &p);
    if (made) {
        OK(vkt_program_write(p, list, ids, sizeof ids));
        OK(vkt_program_write(p, words, table, n * sizeof *table));
        OK(vkt_program_run(p, NULL, NULL));
        harness_read_f32(p, g, rows, y);
        for (uint32_t i = 0; i < IDS; i++)
            for (uint32_t c = 0; c < COLUMNS; c++) {
                const float want = ids[i] < ROWS ? vkt_f32_from_half(table[(size_t)ids[i] * COLUMNS + c]) : 0;
                if (y[(size_t)i * COLUMNS + c] != want)
                    fail_msg("row %u, column %u: %g, want %g", ids[i], c, (double)y[(size_t)i * COLUMNS + c],
                             (double)want);
            }
        vkt_program_destroy(&p);
    }
    vkt_graph_destroy(&g);
    free(table);
    free(y);
    if (!made) skip();
}

/* Compares `got` with the dot product of a and b in double precision. The elements of b are `step_b` apart. The bound
 * is the same as in check_product of test_large.c. */
static void check_sum(const char *what, size_t at, float got, const float *a, const float *b, size_t step_b, uint32_t n)
{
    double sum = 0, size = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double term = (double)a[i] * (double)b[i * step_b];
        sum += term;
        size += fabs(term);
    }
    if (!(fabs((double)got - sum) <= 4 * sqrt((double)n) * 0x1p-24 * size))
        fail_msg("%s: element %zu is %g, wanted %g", what, at, (double)got, sum);
}

/* Returns whether the layer that reads x unpacks its weights. */
static bool unpacks(const vkt_program *p, vkt_tensor x)
{
    for (size_t i = 0; i < p->lowered.n_picked; i++) {
        const vkt_picked *picked = &p->lowered.picked[i];
        const vkt_node *n = p->g->nodes[picked->node];
        if (n->op == &vkt_op_linear_quantized && vkt_root(p->g, n->in[0]) == x.id && picked->variant == VKT_V_UNPACKED)
            return true;
    }
    return false;
}

/* Checks a layer whose unpacked weights have 148 MB, and its gradient. A second layer has the same weights, but only
 * the first FEW rows of x. For so few rows, a layer does not unpack its weights. */
static void a_layer_larger_than_a_binding(void **state)
{
    (void)state;
    large_skip_if_small();
    enum { OUT = 6020, IN = 6144, BATCH = 9, FEW = 3, BLOCK = 34 };
    const size_t bytes = (size_t)vkt_quantized_bytes(VKT_QUANT_Q8_0, OUT, IN), n = (size_t)OUT * IN;
    unsigned char *words = malloc(bytes);
    float *w = malloc(n * sizeof *w), *x = large_random(BATCH * IN, 1), *dy = large_random(BATCH * OUT, 2);
    float *y = malloc(BATCH * OUT * sizeof *y), *dx = malloc(BATCH * IN * sizeof *dx);
    float *few_y = malloc(FEW * OUT * sizeof *few_y);
    assert_true(words && w && y && dx && few_y);
    report_room("a matrix of Q8_0", n * sizeof *w);
    vkt_rng r = vkt_rng_make(4, VKT_STREAM_TEST, 0, 0);
    for (size_t i = 0; i < bytes / BLOCK; i++) { /* a block is a scale and 32 numbers */
        const uint16_t scale = vkt_half_from_f32(vkt_rng_uniform(&r, 0.001f, 0.01f));
        memcpy(words + i * BLOCK, &scale, sizeof scale);
        for (uint32_t k = 2; k < BLOCK; k++) words[i * BLOCK + k] = (unsigned char)vkt_rng_range(&r, 0, 255);
    }
    OK(vkt_gguf_dequantize(NULL, (vkt_gguf_type)VKT_QUANT_Q8_0, words, bytes / BLOCK, w));
    vkt_graph *g = harness_graph();
    vkt_program *p;
    const vkt_tensor in = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(BATCH, IN));
    const vkt_tensor seed = vkt_input(g, "dy", VKT_F32, VKT_ROWS, vkt_shape2(BATCH, OUT));
    const vkt_tensor weights = vkt_input(g, "w", VKT_U32, VKT_ROWS, vkt_shape1((uint32_t)(bytes / 4)));
    const vkt_tensor out = vkt_linear_quantized(g, in, weights, (vkt_tensor){ 0 }, VKT_QUANT_Q8_0, OUT);
    const vkt_tensor few = vkt_input(g, "few", VKT_F32, VKT_ROWS, vkt_shape2(FEW, IN));
    const vkt_tensor few_out = vkt_linear_quantized(g, few, weights, (vkt_tensor){ 0 }, VKT_QUANT_Q8_0, OUT);
    vkt_tensor gradient;
    OK(vkt_gradients(g, &out, &seed, 1, &in, 1, &gradient));
    vkt_keep(g, out);
    vkt_keep(g, few_out);
    vkt_keep(g, gradient);
    const bool made = make_program(g, &p);
    if (made) {
        assert_true(unpacks(p, in) && !unpacks(p, few));
        OK(vkt_program_write(p, in, x, BATCH * IN * sizeof *x));
        OK(vkt_program_write(p, few, x, FEW * IN * sizeof *x));
        OK(vkt_program_write(p, seed, dy, BATCH * OUT * sizeof *dy));
        OK(vkt_program_write(p, weights, words, bytes));
        OK(vkt_program_run(p, NULL, NULL));
        harness_read_f32(p, g, out, y);
        harness_read_f32(p, g, few_out, few_y);
        harness_read_f32(p, g, gradient, dx);
        for (size_t i = 0; i < BATCH * OUT; i += 7) check_sum("y", i, y[i], x + i / OUT * IN, w + i % OUT * IN, 1, IN);
        for (size_t i = 0; i < FEW * OUT; i += 7)
            check_sum("few", i, few_y[i], x + i / OUT * IN, w + i % OUT * IN, 1, IN);
        for (size_t i = 0; i < BATCH * IN; i += 13) check_sum("dx", i, dx[i], dy + i / IN * OUT, w + i % IN, IN, OUT);
        vkt_program_destroy(&p);
    }
    vkt_graph_destroy(&g);
    free(words);
    free(w);
    free(x);
    free(dy);
    free(y);
    free(dx);
    free(few_y);
    if (!made) skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_table_larger_than_a_binding),
                                        cmocka_unit_test(a_layer_larger_than_a_binding) };
    return cmocka_run_group_tests_name("large quantized weights", tests, harness_setup, harness_teardown);
}
