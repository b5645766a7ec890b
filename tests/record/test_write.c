/* Tests vkt_write: what a program stores in arrays. test_ops.c checks the op itself, and test_errors.c checks wrong
 * uses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ops/harness.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)

static vkt_graph *graph(void)
{
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    OK(vkt_graph_create(&h, &g));
    return g;
}

static vkt_array *array(vkt_dtype dtype, vkt_shape shape, const void *data)
{
    vkt_array *a;
    OK(vkt_array_create(harness_ctx, &(vkt_array_params){ .dtype = dtype, .shape = shape, .data = data }, &a));
    return a;
}

static void read_array(vkt_array *a, void *data)
{
    OK(vkt_readback(harness_ctx, a->buffer, 0, data, a->bytes));
}

enum { ROWS = 7, COLUMNS = 5 };

/* One program writes squares and classes to two arrays. In its graph, the squares have the layout batch last; in the
 * array, they have the layout rows. Another program reads the squares. The array of squares has one row more than the
 * program writes, and this row must not change. */
static void arrays_go_from_program_to_program(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_shape shape = vkt_shape2(ROWS, COLUMNS);
    vkt_graph *first = graph(), *second = graph();
    const vkt_tensor x = vkt_input(first, "x", VKT_F32, VKT_BATCH_LAST, shape);
    const vkt_tensor squares = vkt_external(first, "squares", VKT_F32, shape);
    const vkt_tensor classes = vkt_external(first, "classes", VKT_U32, vkt_shape1(ROWS));
    vkt_write(first, vkt_mul(first, x, x), squares);
    vkt_write(first, vkt_argmax(first, x), classes);
    const vkt_tensor given = vkt_external(second, "given", VKT_F32, shape), sum = vkt_sum(second, given);
    vkt_keep(second, sum);

    float room[(ROWS + 1) * COLUMNS], in[ROWS * COLUMNS], got[(ROWS + 1) * COLUMNS], total;
    for (int i = 0; i < (ROWS + 1) * COLUMNS; i++) room[i] = -1;
    vkt_array *a = array(VKT_F32, vkt_shape2(ROWS + 1, COLUMNS), room), *b = array(VKT_U32, vkt_shape1(ROWS), NULL);
    const vkt_binding out[] = { { squares, a }, { classes, b } }, from = { given, a };
    vkt_program *write, *read;
    OK(vkt_program_create(harness_ctx, first, NULL, &(vkt_program_params){ .arrays = out, .n_arrays = 2 }, &write));
    OK(vkt_program_create(harness_ctx, second, NULL, &(vkt_program_params){ .arrays = &from, .n_arrays = 1 }, &read));
    for (int run = 0; run < 4; run++) { /* runs 2 and 3 may submit other command buffers than runs 0 and 1 */
        uint32_t best[ROWS];
        float want = 0;
        for (int i = 0; i < ROWS * COLUMNS; i++) in[i] = (float)((i * 11 + run * 3) % 37); /* integers: no rounding */
        OK(vkt_program_write(write, x, in, sizeof in));
        OK(vkt_program_run(write, NULL, NULL));
        OK(vkt_program_run(read, NULL, NULL));
        OK(vkt_program_read(read, sum, &total, sizeof total));
        read_array(a, got);
        read_array(b, best);
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            assert_true(got[i] == in[i] * in[i]);
            want += in[i] * in[i];
            assert_true(in[best[i / COLUMNS] + (uint32_t)(i / COLUMNS * COLUMNS)] >= in[i]);
        }
        assert_memory_equal(got + ROWS * COLUMNS, room, COLUMNS * sizeof *got);
        assert_true(total == want);
    }
    vkt_program_destroy(&write);
    vkt_program_destroy(&read);
    vkt_array_destroy(&a);
    vkt_array_destroy(&b);
    vkt_graph_destroy(&first);
    vkt_graph_destroy(&second);
}

/* Bindings of 4096 bytes split each write into at least 5 dispatches. Dispatches that write parts of one array need no
 * barrier between them. Between the writes to two external values, the plan has a barrier, because the plan is made
 * before the program checks that the arrays of the two values share no memory. */
static void barriers_stand_between_arrays_alone(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_shape shape = vkt_shape1(5000);
    for (uint32_t n = 1; n <= 2; n++) {
        vkt_graph *g = graph();
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, shape);
        vkt_binding out[2];
        for (uint32_t i = 0; i < n; i++) {
            out[i] = (vkt_binding){ vkt_external(g, "out", VKT_F32, shape), array(VKT_F32, shape, NULL) };
            vkt_write(g, x, out[i].tensor);
        }
        const vkt_limits real = harness_ctx->limits;
        harness_ctx->limits.max_storage_range_bytes = 4096;
        vkt_program *p;
        OK(vkt_program_create(harness_ctx, g, NULL, &(vkt_program_params){ .arrays = out, .n_arrays = n }, &p));
        harness_ctx->limits = real;
        vkt_plan_info plan;
        vkt_program_plan(p, &plan);
        assert_true(plan.dispatches >= 5 * n);
        assert_int_equal(plan.barriers, n - 1);
        vkt_program_destroy(&p);
        for (uint32_t i = 0; i < n; i++) vkt_array_destroy(&out[i].array);
        vkt_graph_destroy(&g);
    }
}

static void one_array_is_not_written_and_read(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_shape shape = vkt_shape1(6);
    vkt_graph *g = graph();
    const vkt_tensor in = vkt_external(g, "in", VKT_F32, shape), out = vkt_external(g, "out", VKT_F32, shape);
    vkt_array *a = array(VKT_F32, shape, NULL);
    const vkt_binding both[] = { { in, a }, { out, a } };
    vkt_program *p;
    vkt_write(g, vkt_relu(g, in), out);
    vkt_test_expect_errors(true);
    assert_int_equal(
        vkt_program_create(harness_ctx, g, NULL, &(vkt_program_params){ .arrays = both, .n_arrays = 2 }, &p),
        VKT_E_STATE);
    vkt_test_expect_errors(false);
    vkt_test_error_contains("'out', which is written, and to 'in'");
    vkt_array_destroy(&a);
    vkt_graph_destroy(&g);
}

/* A graph may name an array for a value (vkt_external_array). A program of this graph needs no binding for the value.
 * If the program has a binding for the value, the array of the binding is used instead. vkt_program_create refuses an
 * array of another type, and an array that the program both writes and reads. */
static void graphs_have_arrays_of_their_own(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const vkt_shape shape = vkt_shape1(COLUMNS);
    const float one[COLUMNS] = { 1, 2, 3, 4, 5 }, two[COLUMNS] = { 10, 20, 30, 40, 50 };
    vkt_array *a = array(VKT_F32, shape, one), *b = array(VKT_F32, shape, two);
    vkt_graph *g = graph();
    const vkt_tensor x = vkt_external_array(g, "x", a, VKT_F32, shape);
    assert_int_equal(vkt_external_array(g, "again", a, VKT_F32, shape).id, x.id);
    const vkt_tensor y = vkt_add(g, x, x);
    vkt_keep(g, y);
    const vkt_binding other = { x, b };
    const vkt_program_params params[] = { { .name = "own" }, { .name = "bound", .arrays = &other, .n_arrays = 1 } };
    for (int k = 0; k < 2; k++) {
        vkt_program *p;
        float got[COLUMNS];
        OK(vkt_program_create(harness_ctx, g, NULL, &params[k], &p));
        OK(vkt_program_run(p, NULL, NULL));
        OK(vkt_program_read(p, y, got, sizeof got));
        for (int i = 0; i < COLUMNS; i++) assert_true(got[i] == 2 * (k ? two : one)[i]);
        vkt_program_destroy(&p);
    }
    vkt_graph_destroy(&g);

    vkt_program *p = NULL;
    vkt_test_expect_errors(true);
    g = graph();
    assert_int_equal(vkt_external_array(g, "none", NULL, VKT_F32, shape).id, 0);
    assert_int_equal(vkt_graph_status(g), VKT_E_ARG);
    vkt_graph_destroy(&g);

    g = graph();
    vkt_keep(g, vkt_embedding(g, vkt_external_array(g, "ids", a, VKT_U32, shape),
                              vkt_external_array(g, "table", b, VKT_F32, shape), UINT32_MAX));
    assert_int_equal(vkt_program_create(harness_ctx, g, NULL, NULL, &p), VKT_E_ARG);
    vkt_test_error_contains("'ids' wants an array of its type");
    vkt_graph_destroy(&g);

    g = graph();
    const vkt_tensor read = vkt_external_array(g, "read", a, VKT_F32, shape);
    const vkt_tensor target = vkt_external(g, "target", VKT_F32, shape);
    vkt_write(g, vkt_mul(g, read, read), target);
    const vkt_binding same = { target, a };
    assert_int_equal(
        vkt_program_create(harness_ctx, g, NULL, &(vkt_program_params){ .arrays = &same, .n_arrays = 1 }, &p),
        VKT_E_STATE);
    vkt_test_error_contains("'target', which is written, and to 'read'");
    vkt_test_expect_errors(false);
    vkt_graph_destroy(&g);
    vkt_array_destroy(&a);
    vkt_array_destroy(&b);
}

/* A graph may name an array or any copy of the array. A program uses the array or the copy that is in the vkt_ctx of
 * the program. The array and its copies may be destroyed in any order. */
static void arrays_have_copies_in_other_contexts(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { N = (1 << 18) + 3 }; /* vkt_array_copy makes copies in pieces of 1 MiB: N floats are more than one piece */
    static float data[N], got[N];
    const vkt_host h = vkt_test_host();
    const vkt_shape shape = vkt_shape1(N);
    vkt_ctx *other, *third;
    vkt_array *copies[2], *more;
    OK(vkt_ctx_create(NULL, &h, &other));
    OK(vkt_ctx_create(NULL, &h, &third));
    for (int i = 0; i < N; i++) data[i] = (float)i;
    vkt_array *a = array(VKT_F32, shape, data);
    OK(vkt_array_copy(a, other, &copies[0]));
    OK(vkt_array_copy(copies[0], third, &copies[1]));
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_array_copy(copies[1], harness_ctx, &more), VKT_E_ARG);
    vkt_test_error_contains("want a context without this array");
    assert_null(more);
    const float changed = -5;
    OK(vkt_array_write(a, 4, &changed, sizeof changed)); /* the copies stay as they are */
    for (int k = 0; k < 3; k++) {
        vkt_graph *g = graph();
        vkt_program *p;
        const vkt_tensor x = vkt_external_array(g, "x", k < 2 ? a : copies[1], VKT_F32, shape);
        const vkt_tensor y = vkt_add(g, x, x);
        vkt_keep(g, y);
        if (k == 1) vkt_array_destroy(&copies[0]);
        if (k == 2) vkt_array_destroy(&a);
        if (k == 1) {
            assert_int_equal(vkt_program_create(other, g, NULL, NULL, &p), VKT_E_ARG);
            vkt_test_error_contains("the array of 'x' is in another context, and this one has no copy of it");
        }
        OK(vkt_program_create(k == 0 ? other : third, g, NULL, NULL, &p));
        OK(vkt_program_run(p, NULL, NULL));
        OK(vkt_program_read(p, y, got, sizeof got));
        for (int i = 0; i < N; i++) assert_true(got[i] == 2 * data[i]);
        vkt_program_destroy(&p);
        vkt_graph_destroy(&g);
    }
    vkt_test_expect_errors(false);
    vkt_array_destroy(&copies[1]);
    /* The last bytes of an array need not fill a 32-bit word. */
    const uint8_t seven[] = { 1, 2, 3, 4, 5, 6, 7 };
    uint8_t back[8] = { 0 };
    a = array(VKT_U8, vkt_shape1(sizeof seven), seven);
    OK(vkt_array_copy(a, other, &copies[0]));
    OK(vkt_readback(other, copies[0]->buffer, 0, back, sizeof back));
    assert_memory_equal(back, seven, sizeof seven);
    vkt_array_destroy(&a);
    vkt_array_destroy(&copies[0]);
    vkt_ctx_destroy(&third);
    vkt_ctx_destroy(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_go_from_program_to_program),    cmocka_unit_test(barriers_stand_between_arrays_alone),
        cmocka_unit_test(one_array_is_not_written_and_read),    cmocka_unit_test(graphs_have_arrays_of_their_own),
        cmocka_unit_test(arrays_have_copies_in_other_contexts),
    };
    return cmocka_run_group_tests_name("write", tests, harness_setup, harness_teardown);
}
