/* Tests what random cases do not reach: ties and NaN, the statistics of dropout, tables that are stored in a vkt_array,
 * a tensor that is used three times, reductions over any axes, infinite scores, and embeddings with frequent or wrong
 * ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

static vkt_ctx *ctx;

#define OK(call) assert_int_equal((call), VKT_OK)
enum { POISON = 0x7fc5a5a5 }; /* a NaN */

/* Makes a program whose values have guard words behind them. The memory of activations, scratch and guard words begins
 * as NaN. */
static void make_guarded(vkt_graph *g, vkt_store *store, const vkt_program_params *params, vkt_program **p)
{
    OK(vkt_program_create_guarded(ctx, g, store, params, p));
    OK(vkt_program_poison(*p, POISON));
}

/* Checks the guard words, and destroys the program. */
static void free_guarded(vkt_program **p)
{
    bool intact;
    const char *bad;
    OK(vkt_program_check_guards(*p, POISON, &intact, &bad));
    if (!intact) fail_msg("words behind %s were written to", bad);
    vkt_program_destroy(p);
}

/* ---- ties and NaN ---- */

/* Row b of K logits has its maximum at the positions b, b + 1, b + 5 and K - 1. The result must be b, whichever lanes
 * read these positions. */
static void the_first_maximum_wins(void **state)
{
    (void)state;
    harness_needs(ctx);
    enum { B = 37, K = 53 };
    for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++) {
        static float z[B * K];
        static uint32_t labels[B], got[B];
        float correct;
        for (uint32_t b = 0; b < B; b++) {
            for (uint32_t k = 0; k < K; k++) z[b * K + k] = k == b || k == b + 1 || k == b + 5 || k == K - 1 ? 3 : 1;
            labels[b] = b % 2 ? b : b + 1; /* odd rows: the first maximum; even rows: the second */
        }
        vkt_graph *g = harness_graph();
        vkt_program *p = NULL;
        const vkt_tensor in = vkt_input(g, "z", VKT_F32, (vkt_layout)layout, vkt_shape2(B, K));
        const vkt_tensor t = vkt_input(g, "t", VKT_U32, VKT_ROWS, vkt_shape1(B));
        const vkt_tensor index = vkt_argmax(g, in), count = vkt_count_correct(g, in, t);
        vkt_keep(g, index);
        vkt_keep(g, count);
        make_guarded(g, NULL, NULL, &p);
        OK(vkt_program_write(p, in, z, sizeof z));
        OK(vkt_program_write(p, t, labels, sizeof labels));
        OK(vkt_program_run(p, NULL, NULL));
        OK(vkt_program_read(p, index, got, sizeof got));
        harness_read_f32(p, g, count, &correct);
        for (uint32_t b = 0; b < B; b++) assert_int_equal(got[b], b);
        assert_true(correct == B / 2); /* rows 1, 3, .. are right */
        free_guarded(&p);
        vkt_graph_destroy(&g);
    }
}

/* In the first run all numbers of x are equal, so the gradient of each window goes to the first element of the window.
 * In the second run one element of x is NaN: the output of this element's window is NaN, and the element gets the
 * gradient of the window. */
static void pooling_breaks_ties_and_passes_nan_as_torch_does(void **state)
{
    (void)state;
    harness_needs(ctx);
    enum { N = 3, H = 6, W = 8, P = 3, Q = 4 };
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const vkt_pool2d_params two = { .kernel = { 2, 2 } };
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape4(N, 1, H, W));
    const vkt_tensor dy = vkt_input(g, "dy", VKT_F32, VKT_BATCH_LAST, vkt_shape4(N, 1, P, Q));
    const vkt_tensor y = vkt_relu(g, vkt_max_pool2d(g, x, &two));
    vkt_tensor dx;
    OK(vkt_gradients(g, &y, &dy, 1, &x, 1, &dx));
    vkt_keep(g, y);
    vkt_keep(g, dx);
    make_guarded(g, NULL, NULL, &p);
    float in[N * H * W], seed[N * P * Q], out[N * P * Q], grad[N * H * W];
    for (size_t i = 0; i < VKT_COUNT(in); i++) in[i] = 1;
    for (size_t i = 0; i < VKT_COUNT(seed); i++) seed[i] = (float)i + 1;
    OK(vkt_program_write(p, x, in, sizeof in));
    OK(vkt_program_write(p, dy, seed, sizeof seed));
    OK(vkt_program_run(p, NULL, NULL));
    harness_read_f32(p, g, dx, grad);
    for (uint32_t i = 0; i < N * H * W; i++) {
        const uint32_t n = i / (H * W), h = i / W % H, w = i % W;
        const float want = h % 2 || w % 2 ? 0 : seed[(n * P + h / 2) * Q + w / 2];
        assert_true(grad[i] == want);
    }
    in[(1 * H + 3) * W + 5] = NAN;
    OK(vkt_program_write(p, x, in, sizeof in));
    OK(vkt_program_run(p, NULL, NULL));
    harness_read_f32(p, g, y, out);
    for (uint32_t i = 0; i < N * P * Q; i++) assert_int_equal(isnan(out[i]) != 0, i == (1 * P + 1) * Q + 2);
    harness_read_f32(p, g, dx, grad); /* the gradient passes relu at a NaN, and the pooling gives it to the NaN in x */
    assert_true(grad[(1 * H + 3) * W + 5] == seed[(1 * P + 1) * Q + 2]);
    assert_true(grad[(1 * H + 2) * W + 4] == 0);
    free_guarded(&p);
    vkt_graph_destroy(&g);
}

/* ---- fan-out ---- */

/* y = x * x + x, so dy/dx = 2 x + 1: the gradients of three uses of one tensor add up. An input that y does not depend
 * on has no gradient. */
static void gradients_of_a_tensor_used_twice_add_up(void **state)
{
    (void)state;
    harness_needs(ctx);
    enum { N = 77 };
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(N));
    const vkt_tensor dy = vkt_input(g, "dy", VKT_F32, VKT_ROWS, vkt_shape1(N));
    const vkt_tensor idle = vkt_input(g, "idle", VKT_F32, VKT_ROWS, vkt_shape1(N));
    const vkt_tensor y = vkt_add(g, vkt_mul(g, x, x), x), wrt[] = { x, idle };
    vkt_tensor dx[2];
    OK(vkt_gradients(g, &y, &dy, 1, wrt, 2, dx));
    assert_int_equal(dx[1].id, 0);
    vkt_keep(g, dx[0]);
    make_guarded(g, NULL, NULL, &p);
    float in[N], seed[N], got[N];
    double want[N];
    for (int i = 0; i < N; i++) {
        in[i] = (float)i / 8 - 4;
        seed[i] = (float)(i % 5) - 2;
        want[i] = (double)seed[i] * (2 * (double)in[i] + 1);
    }
    OK(vkt_program_write(p, x, in, sizeof in));
    OK(vkt_program_write(p, dy, seed, sizeof seed));
    OK(vkt_program_run(p, NULL, NULL));
    harness_read_f32(p, g, dx[0], got);
    assert_true(harness_close("2 x + 1", got, want, N, 1e-6, 1e-6));
    free_guarded(&p);
    vkt_graph_destroy(&g);
}

/* ---- dropout ---- */

enum { DROP_N = 64, DROP_C = 13, DROP_HW = 49, DROPPED = DROP_N * DROP_C * DROP_HW };

/* A graph with two dropouts. All elements of their input are 1. */
typedef struct drop {
    vkt_graph *g;
    vkt_store *store;
    vkt_program *p;
    vkt_tensor x, y[2];
} drop;

static void drop_make(drop *d, float prob, bool planes)
{
    d->g = harness_graph();
    vkt_param(d->g, "clock's", vkt_shape1(1));
    d->x = vkt_input(d->g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape4(DROP_N, DROP_C, 7, 7));
    for (int i = 0; i < 2; i++) {
        d->y[i] = planes ? vkt_dropout2d(d->g, d->x, prob) : vkt_dropout(d->g, d->x, prob);
        vkt_keep(d->g, d->y[i]);
    }
    OK(vkt_store_create(ctx, d->g, &d->store));
    make_guarded(d->g, d->store, NULL, &d->p);
    static float ones[DROPPED];
    for (int i = 0; i < DROPPED; i++) ones[i] = 1;
    OK(vkt_program_write(d->p, d->x, ones, sizeof ones));
}

static void drop_run(drop *d, uint64_t t, uint64_t seed, float *a, float *b)
{
    OK(vkt_store_set_clock(d->store, t, seed));
    OK(vkt_program_run(d->p, NULL, NULL));
    harness_read_f32(d->p, d->g, d->y[0], a);
    if (b) harness_read_f32(d->p, d->g, d->y[1], b);
}

static void drop_free(drop *d)
{
    free_guarded(&d->p);
    vkt_store_destroy(&d->store);
    vkt_graph_destroy(&d->g);
}

/* Checks that `hits` of n is within 5 standard deviations of the mean of a binomial distribution. A correct generator
 * is outside of this range once in 1.7 million checks. The seeds are fixed, so the test fails always or never. */
static void check_rate(unsigned hits, unsigned n, double prob, const char *what)
{
    const double mean = n * prob, deviation = sqrt(n * prob * (1 - prob));
    if (!(fabs(hits - mean) <= 5 * deviation))
        fail_msg("%s: %u of %u, wanted %.0f +- %.0f", what, hits, n, mean, 5 * deviation);
}

static unsigned count_kept(const float *y)
{
    unsigned n = 0;
    for (int i = 0; i < DROPPED; i++) n += y[i] != 0;
    return n;
}

static unsigned count_equal(const float *a, const float *b)
{
    unsigned n = 0;
    for (int i = 0; i < DROPPED; i++) n += a[i] == b[i];
    return n;
}

static void dropout_keeps_its_share_anew_in_each_step(void **state)
{
    (void)state;
    harness_needs(ctx);
    static float a[DROPPED], other[DROPPED], next[DROPPED], again[DROPPED];
    static const float probs[] = { 0.1f, 0.5f, 0.9f };
    for (size_t k = 0; k < VKT_COUNT(probs); k++) {
        const double drop_p = (double)probs[k], same = drop_p * drop_p + (1 - drop_p) * (1 - drop_p);
        drop d = { NULL };
        drop_make(&d, probs[k], false);
        drop_run(&d, 7, 1234567890123, a, other);
        check_rate(count_kept(a), DROPPED, 1 - drop_p, "kept");
        for (int i = 0; i < DROPPED; i++) assert_true(a[i] == 0 || fabs((double)a[i] * (1 - drop_p) - 1) < 1e-6);
        check_rate(count_equal(a, other), DROPPED, same, "the same in another dropout of the graph");
        drop_run(&d, 8, 1234567890123, next, NULL);
        check_rate(count_equal(a, next), DROPPED, same, "the same in the next step");
        drop_run(&d, 7, 1234567890123 + (1ull << 40), next, NULL);
        check_rate(count_equal(a, next), DROPPED, same, "the same under another seed");
        drop_run(&d, 7, 1234567890123, again, NULL);
        assert_int_equal(count_equal(a, again), DROPPED);
        drop_free(&d);
    }
}

static void dropout2d_drops_whole_planes(void **state)
{
    (void)state;
    harness_needs(ctx);
    static float y[DROPPED];
    unsigned kept = 0;
    drop d = { NULL };
    drop_make(&d, 0.25f, true);
    drop_run(&d, 3, 99, y, NULL);
    for (int i = 0; i < DROPPED; i += DROP_HW) {
        kept += y[i] != 0;
        for (int k = 0; k < DROP_HW; k++) assert_true(y[i + k] == y[i] && (y[i] == 0 || y[i] == 1 / 0.75f));
    }
    check_rate(kept, DROP_N * DROP_C, 0.75, "planes kept");
    drop_free(&d);
}

static void dropout_of_all_or_nothing(void **state)
{
    (void)state;
    harness_needs(ctx);
    static float y[DROPPED];
    drop d = { NULL };
    drop_make(&d, 1, false);
    drop_run(&d, 1, 1, y, NULL);
    assert_int_equal(count_kept(y), 0);
    drop_free(&d);
    vkt_graph *g = harness_graph();
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(5));
    assert_int_equal(vkt_dropout(g, x, 0).id, x.id);
    vkt_graph_destroy(&g);
}

/* ---- tables that are stored in a vkt_array ---- */

/* Gathers an epoch from a table of u8 in a vkt_array: 50 samples in three batches of 16 and one batch of 2. Sample i
 * has 3 channels of 5 elements. Element k of sample i is i * 5 + k, modulo 256. The label of sample i is i % 7. */
static void an_epoch_is_gathered_from_arrays(void **state)
{
    (void)state;
    harness_needs(ctx);
    enum { ROWS = 50, BATCH = 16, F = 15, PITCH = 16 };
    static uint8_t table[ROWS * PITCH];
    uint32_t labels[ROWS], order[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t k = 0; k < F; k++) table[i * PITCH + k] = (uint8_t)(i * 5 + k);
        order[i] = (i * 7 + 3) % ROWS;
        labels[i] = i % 7;
    }
    const vkt_array_params params[] = { { .dtype = VKT_U8, .shape = vkt_shape2(ROWS, PITCH), .data = table },
                                        { .dtype = VKT_U32, .shape = vkt_shape1(ROWS), .data = order },
                                        { .dtype = VKT_U32, .shape = vkt_shape1(ROWS), .data = labels } };
    vkt_array *array[3] = { NULL };
    for (int i = 0; i < 3; i++) OK(vkt_array_create(ctx, &params[i], &array[i]));
    const double scale[] = { 0.5, 1, 2 }, shift[] = { 0, -1, 10 };
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const vkt_tensor rows = vkt_external(g, "rows", VKT_U8, params[0].shape);
    const vkt_tensor indices = vkt_external(g, "order", VKT_U32, params[1].shape);
    const vkt_tensor classes = vkt_external(g, "labels", VKT_U32, params[2].shape);
    const vkt_tensor x = vkt_gather_rows(g, rows, indices, BATCH, vkt_shape3(3, 1, 5), scale, shift);
    const vkt_tensor t = vkt_gather_labels(g, classes, indices, BATCH);
    vkt_keep(g, x);
    vkt_keep(g, t);
    const vkt_binding bindings[] = { { rows, array[0] }, { indices, array[1] }, { classes, array[2] } };
    const vkt_program_params with_arrays = { .arrays = bindings, .n_arrays = 3 };
    make_guarded(g, NULL, &with_arrays, &p);
    for (uint32_t first = 0; first < ROWS; first += BATCH) {
        const vkt_run run = { .first = first, .rows = VKT_MIN((uint32_t)BATCH, ROWS - first) };
        float got[BATCH * F];
        uint32_t got_labels[BATCH];
        OK(vkt_program_run(p, &run, NULL));
        harness_read_f32(p, g, x, got);
        OK(vkt_program_read(p, t, got_labels, sizeof got_labels));
        for (uint32_t b = 0; b < BATCH; b++) {
            const uint32_t row = b < run.rows ? order[first + b] : 0;
            assert_int_equal(got_labels[b], b < run.rows ? row % 7 : 0);
            for (uint32_t k = 0; k < F; k++) {
                const float want = (float)(scale[k / 5] * table[row * PITCH + k] + shift[k / 5]);
                assert_true(got[b * F + k] == (b < run.rows ? want : 0));
            }
        }
    }
    free_guarded(&p);
    vkt_graph_destroy(&g);
    for (int i = 0; i < 3; i++) vkt_array_destroy(&array[i]);
}

/* The input `order` has two row indices outside of the table. The rows of the result for these indices are zero. */
static void row_numbers_outside_the_table_give_zeros(void **state)
{
    (void)state;
    harness_needs(ctx);
    enum { ROWS = 5, BATCH = 4, F = 3 };
    float table[ROWS * F], got[BATCH * F];
    const uint32_t order[BATCH] = { 4, 5, 0xffffffffu, 0 };
    for (uint32_t i = 0; i < ROWS * F; i++) table[i] = (float)i + 1;
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const vkt_tensor rows = vkt_input(g, "rows", VKT_F32, VKT_ROWS, vkt_shape2(ROWS, F));
    const vkt_tensor indices = vkt_input(g, "order", VKT_U32, VKT_ROWS, vkt_shape1(BATCH));
    const vkt_tensor x = vkt_gather_rows(g, rows, indices, BATCH, vkt_shape1(F), NULL, NULL);
    vkt_keep(g, x);
    make_guarded(g, NULL, NULL, &p);
    OK(vkt_program_write(p, rows, table, sizeof table));
    OK(vkt_program_write(p, indices, order, sizeof order));
    OK(vkt_program_run(p, NULL, NULL));
    harness_read_f32(p, g, x, got);
    for (uint32_t k = 0; k < F; k++) {
        assert_true(got[k] == table[4 * F + k] && got[3 * F + k] == table[k]);
        assert_true(got[F + k] == 0 && got[2 * F + k] == 0);
    }
    free_guarded(&p);
    vkt_graph_destroy(&g);
}

/* Compares sums, means and variances of x (3,4,5,6) over each set of axes, and their gradients, with double precision.
 * The mean is about 2,000 standard deviations, so a variance computed as a difference of squares would have no correct
 * digit. */
static void reductions_over_every_set_of_axes(void **state)
{
    (void)state;
    harness_needs(ctx);
    enum { RANK = 4, N = 3 * 4 * 5 * 6 };
    const vkt_shape s = vkt_shape4(3, 4, 5, 6);
    float x[N], got[3][N], dx[3][N];
    for (int i = 0; i < N; i++) x[i] = 1000 + (float)((i * 37 + i * i % 11) % 101) / 64;
    for (uint32_t axes = 1; axes < 1u << RANK; axes++) {
        const vkt_layout layout = axes % 3 ? VKT_ROWS : VKT_BATCH_LAST;
        const uint32_t correction = axes % 2;
        const bool keepdim = axes & 2;
        vkt_graph *g = harness_graph();
        vkt_program *p = NULL;
        const vkt_tensor in = vkt_input(g, "x", VKT_F32, layout, s);
        const vkt_tensor y[] = { vkt_sum_over(g, in, axes, keepdim), vkt_mean_over(g, in, axes, keepdim),
                                 vkt_var(g, in, axes, correction, keepdim) };
        vkt_tensor grad[3];
        for (int k = 0; k < 3; k++) {
            const vkt_shape ys = vkt_tensor_shape(g, y[k]);
            const float one = 1;
            const vkt_tensor seed = vkt_expand(g, vkt_graph_const(g, "one", VKT_F32, vkt_shape0(), &one), ys, VKT_ROWS);
            assert_int_equal(ys.rank, keepdim ? RANK : RANK - (uint32_t)__builtin_popcount(axes));
            OK(vkt_gradients(g, &y[k], &seed, 1, &in, 1, &grad[k]));
            vkt_keep(g, y[k]);
            vkt_keep(g, grad[k]);
        }
        make_guarded(g, NULL, NULL, &p);
        OK(vkt_program_write(p, in, x, sizeof x));
        OK(vkt_program_run(p, NULL, NULL));
        double sum[N] = { 0 }, mean[N], squares[N] = { 0 }, dvar[N];
        uint32_t at[N], outs = 1, n = 1;
        for (uint32_t d = 0; d < RANK; d++) *(axes >> d & 1 ? &n : &outs) *= s.dim[d];
        for (uint32_t i = 0; i < N; i++) {
            uint32_t rest = i, stride = 1;
            at[i] = 0;
            for (uint32_t d = RANK; d-- > 0; rest /= s.dim[d]) {
                if (axes >> d & 1) continue;
                at[i] += rest % s.dim[d] * stride;
                stride *= s.dim[d];
            }
            sum[at[i]] += (double)x[i];
        }
        for (uint32_t o = 0; o < outs; o++) mean[o] = sum[o] / n;
        for (uint32_t i = 0; i < N; i++) squares[at[i]] += pow((double)x[i] - mean[at[i]], 2) / (n - correction);
        for (uint32_t i = 0; i < N; i++) dvar[i] = 2 * ((double)x[i] - mean[at[i]]) / (n - correction);
        for (int k = 0; k < 3; k++) {
            harness_read_f32(p, g, y[k], got[k]);
            harness_read_f32(p, g, grad[k], dx[k]);
        }
        /* A mean near 1000 is rounded by at most 2^-15. So x - mean has the same error, which is about 2^-14 of a
         * typical difference, 0.5. */
        assert_true(harness_close("sum", got[0], sum, outs, 2e-6, 0));
        assert_true(harness_close("mean", got[1], mean, outs, 2e-6, 0));
        assert_true(harness_close("var", got[2], squares, outs, 0, 2e-4));
        assert_true(harness_close("dvar", dx[2], dvar, N, 0, 1e-3));
        for (int i = 0; i < N; i++) assert_true(dx[0][i] == 1 && dx[1][i] == (float)(1.0 / n));
        free_guarded(&p);
        vkt_graph_destroy(&g);
    }
}

/* Softmax of lines with infinities, as in torch: a line with a +inf, with a NaN, or with nothing but -inf gives NaN. A
 * -inf among numbers gives 0. A line has 6, 130 or 132 numbers. x has the layout rows or batch last. */
static void softmax_of_infinities(void **state)
{
    (void)state;
    harness_needs(ctx);
    enum { B = 5 };
    static const uint32_t sizes[] = { 6, 130, 132 };
    for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++)
        for (size_t k = 0; k < VKT_COUNT(sizes); k++) {
            const uint32_t K = sizes[k];
            float x[B * 132], y[B * 132], logs[B * 132];
            for (uint32_t i = 0; i < B * K; i++) x[i] = i / K == 3 ? -INFINITY : 0;
            x[0 * K + 4] = -INFINITY;
            x[1 * K + 5] = INFINITY;
            x[2 * K + 3] = NAN;
            vkt_graph *g = harness_graph();
            vkt_program *p = NULL;
            const vkt_tensor in = vkt_input(g, "x", VKT_F32, (vkt_layout)layout, vkt_shape2(B, K));
            const vkt_tensor out = vkt_softmax(g, in, -1), log = vkt_log_softmax(g, in, -1);
            vkt_keep(g, out);
            vkt_keep(g, log);
            make_guarded(g, NULL, NULL, &p);
            OK(vkt_program_write(p, in, x, B * K * sizeof *x));
            OK(vkt_program_run(p, NULL, NULL));
            harness_read_f32(p, g, out, y);
            harness_read_f32(p, g, log, logs);
            for (uint32_t i = 0; i < B * K; i++) {
                const bool nan = i / K >= 1 && i / K <= 3;
                const float n = (float)(i / K == 0 ? K - 1 : K), want = i == 4 ? 0 : 1 / n;
                assert_true(nan ? isnan(y[i]) : fabsf(y[i] - want) <= 2e-7f * want);
                assert_true(nan ? isnan(logs[i]) : i == 4 ? logs[i] == -INFINITY : fabsf(logs[i] + logf(n)) <= 1e-6f);
            }
            free_guarded(&p);
            vkt_graph_destroy(&g);
        }
}

/* Checks an embedding with a table of 3 rows of D numbers. The op adds the gradients of an id in blocks of 64
 * gradients. Id 1 occurs so often that its gradients fill several blocks. Id 2 is the padding, and two ids are out of
 * range. Gradients are integers, so their sums are exact. */
static void frequent_rows(uint32_t D, bool channels)
{
    enum { V = 3, B = 50, L = 20, N = B * L, PADDING = 2, MOST = 301 };
    static const uint32_t kinds[] = { 1, 1, 3, 1, PADDING, 1, 0xffffffffu, 1, 0, 1, 1, 1 };
    static uint32_t ids[N];
    static float dy[N * MOST], y[N * MOST];
    float table[V * MOST], got[V * MOST], want[V * MOST] = { 0 };
    for (uint32_t i = 0; i < V * D; i++) table[i] = (float)i + 1;
    for (uint32_t i = 0; i < N; i++) {
        ids[i] = kinds[i % VKT_COUNT(kinds)];
        for (uint32_t d = 0; d < D; d++) {
            const uint32_t at = channels ? (i / L * D + d) * L + i % L : i * D + d;
            dy[at] = (float)(i % 97 + d);
            if (ids[i] < V && ids[i] != PADDING) want[ids[i] * D + d] += dy[at];
        }
    }
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const vkt_tensor t = vkt_input(g, "table", VKT_F32, VKT_ROWS, vkt_shape2(V, D));
    const vkt_tensor at = vkt_input(g, "ids", VKT_U32, VKT_ROWS, vkt_shape2(B, L));
    const vkt_tensor seed = channels ? vkt_input(g, "dy", VKT_F32, VKT_BATCH_LAST, vkt_shape3(B, D, L))
                                     : vkt_input(g, "dy", VKT_F32, VKT_ROWS, vkt_shape3(B, L, D));
    const vkt_tensor out = channels ? vkt_embedding_channels(g, at, t, PADDING) : vkt_embedding(g, at, t, PADDING);
    vkt_tensor dt;
    OK(vkt_gradients(g, &out, &seed, 1, &t, 1, &dt));
    vkt_keep(g, out);
    vkt_keep(g, dt);
    make_guarded(g, NULL, NULL, &p);
    OK(vkt_program_write(p, t, table, V * D * sizeof *table));
    OK(vkt_program_write(p, at, ids, sizeof ids));
    OK(vkt_program_write(p, seed, dy, (uint64_t)N * D * sizeof *dy));
    OK(vkt_program_run(p, NULL, NULL));
    harness_read_f32(p, g, out, y);
    harness_read_f32(p, g, dt, got);
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t d = 0; d < D; d++)
            assert_true(y[channels ? (i / L * D + d) * L + i % L : i * D + d] ==
                        (ids[i] < V ? table[ids[i] * D + d] : 0));
    for (uint32_t i = 0; i < V * D; i++) assert_true(got[i] == want[i]);
    free_guarded(&p);
    vkt_graph_destroy(&g);
}

static void frequent_rows_padding_and_wrong_ids_of_an_embedding(void **state)
{
    (void)state;
    harness_needs(ctx);
    /* A row of the table has 1 to 76 vec4s. To compute the gradient, the op copies the rows of dy, sorted by id, if the
     * width is not a multiple of 4, or if dy has the batch last. */
    static const uint32_t widths[] = { 1, 3, 4, 68, 301 };
    for (size_t i = 0; i < VKT_COUNT(widths); i++) {
        frequent_rows(widths[i], false);
        frequent_rows(widths[i], true);
    }
}

/* vkt_gather_ids gives zeros for indices outside of the table. Rows have 3 or 4 ids of 32 or 16 bits. */
static void ids_outside_the_table_are_zeros(void **state)
{
    (void)state;
    harness_needs(ctx);
    enum { ROWS = 5, BATCH = 4 };
    const uint32_t order[BATCH] = { 4, 5, 0xffffffffu, 0 };
    for (uint32_t length = 3; length <= 4; length++)
        for (uint32_t packed = 0; packed < 2; packed++) {
            uint32_t table[ROWS * 4], got[BATCH * 4];
            const uint32_t words = packed ? 2 : length;
            for (uint32_t i = 0; i < ROWS * words; i++) table[i] = 0xabcd0001u + i * 0x10001u;
            vkt_graph *g = harness_graph();
            vkt_program *p = NULL;
            const vkt_tensor rows = vkt_input(g, "rows", VKT_U32, VKT_ROWS, vkt_shape2(ROWS, words));
            const vkt_tensor indices = vkt_input(g, "order", VKT_U32, VKT_ROWS, vkt_shape1(BATCH));
            const vkt_tensor x = vkt_gather_ids(g, rows, indices, BATCH, length, packed);
            vkt_keep(g, x);
            make_guarded(g, NULL, NULL, &p);
            OK(vkt_program_write(p, rows, table, ROWS * words * 4));
            OK(vkt_program_write(p, indices, order, sizeof order));
            OK(vkt_program_run(p, NULL, NULL));
            OK(vkt_program_read(p, x, got, BATCH * length * 4));
            for (uint32_t b = 0; b < BATCH; b++)
                for (uint32_t k = 0; k < length; k++) {
                    const uint32_t row = order[b] % ROWS, w = table[row * words + (packed ? k / 2 : k)];
                    const uint32_t want = packed ? w >> 16 * (k % 2) & 0xffff : w;
                    assert_int_equal(got[b * length + k], order[b] < ROWS ? want : 0);
                }
            free_guarded(&p);
            vkt_graph_destroy(&g);
        }
}

static void nothing_leaks(void **state)
{
    (void)state;
    vkt_ctx_destroy(&ctx);
    vkt_test_no_messages_and_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_maximum_wins),
        cmocka_unit_test(pooling_breaks_ties_and_passes_nan_as_torch_does),
        cmocka_unit_test(gradients_of_a_tensor_used_twice_add_up),
        cmocka_unit_test(dropout_keeps_its_share_anew_in_each_step),
        cmocka_unit_test(dropout2d_drops_whole_planes),
        cmocka_unit_test(dropout_of_all_or_nothing),
        cmocka_unit_test(an_epoch_is_gathered_from_arrays),
        cmocka_unit_test(row_numbers_outside_the_table_give_zeros),
        cmocka_unit_test(reductions_over_every_set_of_axes),
        cmocka_unit_test(softmax_of_infinities),
        cmocka_unit_test(frequent_rows_padding_and_wrong_ids_of_an_embedding),
        cmocka_unit_test(ids_outside_the_table_are_zeros),
        cmocka_unit_test(nothing_leaks),
    };
    harness_open(&ctx);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
