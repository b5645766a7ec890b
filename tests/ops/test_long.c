/* Tests sums, norms, losses and softmax of long lines. The sizes reach the special paths of ops/elementwise/reduce.c
 * and ops/loss/loss.c: several work groups, rows that are split, and columns that are folded. Some lines have more
 * elements than the 65,535 iterations that a loop on Mesa 22.3 may have. Results are compared with double precision. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/philox.h"
#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)

static void *allocated(size_t bytes)
{
    void *p = malloc(bytes);
    assert_non_null(p);
    return p;
}

static float *random_floats(size_t n, float lo, float hi)
{
    vkt_rng r = vkt_rng_make(5, VKT_STREAM_TEST, 0, 0);
    float *f = allocated(n * sizeof *f);
    for (size_t i = 0; i < n; i++) f[i] = vkt_rng_uniform(&r, lo, hi);
    return f;
}

static float *read_floats(vkt_program *p, const vkt_graph *g, vkt_tensor t)
{
    const size_t bytes = vkt_shape_elements(vkt_tensor_shape(g, t)) * sizeof(float);
    float *f = allocated(bytes);
    OK(vkt_program_read(p, t, f, bytes));
    return f;
}

/* ---- sums ---- */

/* Checks sum_to of x (R,K,S) to the shape (K,1). If K is 1, checks sum instead. */
static void check_sum(vkt_layout layout, uint32_t R, uint32_t K, uint32_t S)
{
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const size_t n = (size_t)R * K * S;
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, layout, vkt_shape3(R, K, S));
    const vkt_tensor y = K == 1 ? vkt_sum(g, x) : vkt_sum_to(g, x, vkt_shape2(K, 1));
    vkt_keep(g, y);
    OK(vkt_program_create(harness_ctx, g, NULL, NULL, &p));
    float *data = random_floats(n, 0.5f, 1.5f);
    double *want = allocated(K * sizeof *want);
    for (uint32_t k = 0; k < K; k++) want[k] = 0;
    for (size_t i = 0; i < n; i++) want[i / S % K] += (double)data[i];
    OK(vkt_program_write(p, x, data, n * sizeof *data));
    OK(vkt_program_run(p, NULL, NULL));
    float *got = read_floats(p, g, y);
    char what[80];
    snprintf(what, sizeof what, "sum of (%u,%u,%u) in layout %d", R, K, S, (int)layout);
    /* In reduce.c, an invocation adds up each of its rows of terms, and adds the sums of its rows. A row has at most
     * 128 iterations, and all rows of an invocation have at most about 16384 iterations (LONG). If a row has at least
     * 64 iterations, an invocation adds at most about 16384 / 64 = 256 rows. So a term passes through at most about
     * 128 + 256 = 384 additions. Each addition has an error of at most 2^-24 of its partial sum. All terms are
     * positive, so partial sums are on average about half of the result. The error is then at most
     * 384 / 2 * 2^-24 = 1.1e-5 of the result. Shorter rows need more additions, but their errors partly cancel. */
    assert_true(harness_close(what, got, want, K, 2e-5, 0));
    free(got);
    free(want);
    free(data);
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

static void long_sums(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const uint32_t shapes[][3] = { { 10000019, 1, 1 }, { 1000003, 2, 1 }, { 700001, 3, 1 }, { 3, 4, 300007 },
                                          { 70001, 129, 1 },  { 129, 5, 1024 },  { 37, 1000, 49 }, { 2, 70001, 3 },
                                          { 128, 64, 169 },   { 1, 200003, 8 },  { 66000, 1, 5 } };
    for (size_t i = 0; i < VKT_COUNT(shapes); i++)
        for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++)
            check_sum((vkt_layout)layout, shapes[i][0], shapes[i][1], shapes[i][2]);
}

/* In most of these cases, elements with neighbouring indices of one dimension are at least a binding (8 KiB) apart.
 * Some sums keep this dimension, others reduce it. */
static void sums_over_steps_larger_than_a_binding(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const uint64_t real = harness_ctx->limits.max_storage_range_bytes, texels = harness_ctx->limits.max_texel_elements;
    harness_ctx->limits.max_storage_range_bytes = 8192;
    harness_ctx->limits.max_texel_elements = VKT_MIN(texels, 512u);
    for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++) {
        check_sum((vkt_layout)layout, 64, 3, 64);
        check_sum((vkt_layout)layout, 3, 2, 4096);
        check_sum((vkt_layout)layout, 5, 7, 2560);
        check_sum((vkt_layout)layout, 3, 2048, 1); /* the outputs fill a whole binding */
    }
    harness_ctx->limits.max_storage_range_bytes = real;
    harness_ctx->limits.max_texel_elements = texels;
}

/* Checks x (R,K,S) + b (S) and the gradient of b, with bindings of 8 KiB. */
static void broadcasts_over_steps_larger_than_a_binding(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { R = 8, K = 3, S = 2048, ALL = R * K * S };
    const uint64_t real = harness_ctx->limits.max_storage_range_bytes, texels = harness_ctx->limits.max_texel_elements;
    for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++) {
        vkt_graph *g = harness_graph();
        vkt_program *p = NULL;
        const vkt_tensor x = vkt_input(g, "x", VKT_F32, (vkt_layout)layout, vkt_shape3(R, K, S));
        const vkt_tensor b = vkt_input(g, "b", VKT_F32, VKT_ROWS, vkt_shape1(S)), y = vkt_add(g, x, b);
        vkt_tensor grad[2];
        OK(vkt_gradients(g, &y, &x, 1, (vkt_tensor[]){ x, b }, 2, grad));
        vkt_keep(g, y);
        vkt_keep(g, grad[1]);
        harness_ctx->limits.max_storage_range_bytes = 8192;
        harness_ctx->limits.max_texel_elements = VKT_MIN(texels, 512u);
        const vkt_result r = vkt_program_create(harness_ctx, g, NULL, NULL, &p);
        harness_ctx->limits.max_storage_range_bytes = real;
        harness_ctx->limits.max_texel_elements = texels;
        OK(r);
        float *in = random_floats(ALL + S, 0.5f, 1.5f);
        OK(vkt_program_write(p, x, in, ALL * sizeof *in));
        OK(vkt_program_write(p, b, in + ALL, S * sizeof *in));
        OK(vkt_program_run(p, NULL, NULL));
        float *got = read_floats(p, g, y), *db = read_floats(p, g, grad[1]);
        double want[S] = { 0 };
        for (size_t i = 0; i < ALL; i++) {
            assert_true(got[i] == in[i] + in[ALL + i % S]);
            want[i % S] += (double)in[i];
        }
        assert_true(harness_close("gradient of a broadcast operand", db, want, S, 2e-5, 0));
        free(got);
        free(db);
        free(in);
        vkt_program_destroy(&p);
        vkt_graph_destroy(&g);
    }
}

static void long_mean_squares(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    enum { B = 1000003, F = 3 };
    for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++) {
        vkt_graph *g = harness_graph();
        vkt_program *p = NULL;
        const vkt_tensor y = vkt_input(g, "y", VKT_F32, (vkt_layout)layout, vkt_shape2(B, F));
        const vkt_tensor target = vkt_input(g, "target", VKT_F32, VKT_ROWS, vkt_shape2(B, F));
        const vkt_tensor loss = vkt_mse(g, y, target);
        vkt_keep(g, loss);
        OK(vkt_program_create(harness_ctx, g, NULL, NULL, &p));
        float *a = random_floats(2 * B * F, -1, 1), *b = a + B * F;
        OK(vkt_program_write(p, y, a, sizeof(float) * B * F));
        OK(vkt_program_write(p, target, b, sizeof(float) * B * F));
        OK(vkt_program_run(p, &(vkt_run){ .rows = B - 2 }, NULL));
        double want = 0;
        for (size_t i = 0; i < (size_t)(B - 2) * F; i++) want += pow((double)a[i] - (double)b[i], 2);
        want /= (double)(B - 2) * F;
        float *got = read_floats(p, g, loss);
        assert_true(harness_close("mse", got, &want, 1, 2e-5, 0));
        free(got);
        free(a);
        vkt_program_destroy(&p);
        vkt_graph_destroy(&g);
    }
}

/* ---- norms of long rows ---- */

/* Compares group_norm of x (N,C,L) with one group, and its gradients, with double precision. All numbers of dy are
 * positive, so that dbeta is not near 0. */
static void check_norm(uint32_t N, uint32_t C, uint32_t L)
{
    enum { X = 0, GAMMA, BETA, WRT };
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const size_t run = (size_t)C * L, n = N * run;
    vkt_tensor in[WRT], grad[WRT];
    in[X] = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape3(N, C, L));
    in[GAMMA] = vkt_input(g, "gamma", VKT_F32, VKT_ROWS, vkt_shape1(C));
    in[BETA] = vkt_input(g, "beta", VKT_F32, VKT_ROWS, vkt_shape1(C));
    const vkt_tensor dy = vkt_input(g, "dy", VKT_F32, VKT_ROWS, vkt_shape3(N, C, L));
    const vkt_tensor y = vkt_group_norm(g, in[X], 1, in[GAMMA], in[BETA], 0);
    OK(vkt_gradients(g, &y, &dy, 1, in, WRT, grad));
    for (int i = 0; i < WRT; i++) vkt_keep(g, grad[i]);
    vkt_keep(g, y);
    OK(vkt_program_create(harness_ctx, g, NULL, NULL, &p));
    float *x = random_floats(n, -1, 3), *d = random_floats(n, 0.5f, 1), *affine = random_floats(2 * (size_t)C, 0.5f, 2);
    for (size_t i = 0; i < n; i++) d[i] *= x[i] > 1 ? 1.0f : 0.25f; /* so that dgamma is not near 0 */
    OK(vkt_program_write(p, in[X], x, n * sizeof *x));
    OK(vkt_program_write(p, dy, d, n * sizeof *d));
    OK(vkt_program_write(p, in[GAMMA], affine, C * sizeof *affine));
    OK(vkt_program_write(p, in[BETA], affine + C, C * sizeof *affine));
    OK(vkt_program_run(p, NULL, NULL));
    double *want = allocated(2 * n * sizeof *want), *dx = want + n, *dw = allocated(2 * (size_t)C * sizeof *dw);
    for (uint32_t c = 0; c < 2 * C; c++) dw[c] = 0;
    for (uint32_t s = 0; s < N; s++) {
        const size_t at = s * run;
        double mean = 0, var = 0, m0 = 0, m1 = 0;
        for (size_t k = 0; k < run; k++) mean += (double)x[at + k] / (double)run;
        for (size_t k = 0; k < run; k++) var += pow((double)x[at + k] - mean, 2) / (double)run;
        const double scale = 1 / sqrt(var + 1e-5);
        for (size_t k = 0; k < run; k++) {
            const double xhat = ((double)x[at + k] - mean) * scale, gy = (double)(d[at + k] * affine[k / L]);
            want[at + k] = xhat * (double)affine[k / L] + (double)affine[C + k / L];
            m0 += gy / (double)run;
            m1 += gy * xhat / (double)run;
            dw[k / L] += (double)d[at + k] * xhat;
            dw[C + k / L] += (double)d[at + k];
        }
        for (size_t k = 0; k < run; k++)
            dx[at + k] =
                scale * ((double)d[at + k] * (double)affine[k / L] - m0 - ((double)x[at + k] - mean) * scale * m1);
    }
    char what[80];
    snprintf(what, sizeof what, "group_norm of (%u,%u,%u)", N, C, L);
    float *got[] = { read_floats(p, g, y), read_floats(p, g, grad[X]), read_floats(p, g, grad[GAMMA]),
                     read_floats(p, g, grad[BETA]) };
    const double *const wants[] = { want, dx, dw, dw + C };
    /* A lane may add many thousands of terms. Their roundings of 2^-24 add up like a random walk. */
    for (int i = 0; i < 4; i++) assert_true(harness_close(what, got[i], wants[i], i < 2 ? n : C, 3e-5, 3e-5));
    for (int i = 0; i < 4; i++) free(got[i]);
    free(want);
    free(dw);
    free(x);
    free(d);
    free(affine);
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

static void norms_of_long_rows(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    /* dgamma is computed in slices of the samples (ops/norm/row_norm.c). If one slice had all 64 samples, each lane
     * of a work group of 8 lanes would loop 133,000 times. */
    check_norm(64, 1, 16641);
    check_norm(2, 3, 100003);  /* a row has 300,009 numbers, which are read one by one */
    check_norm(1, 2, 1000000); /* a row has 2,000,000 numbers, which are read by vec4s */
}

/* ---- losses over many rows or classes ---- */

typedef struct scores {
    vkt_graph *g;
    vkt_program *p;
    vkt_tensor z, t, loss, dz, correct, index;
    /* counted: the result of vkt_cross_entropy; dcounted: the gradient of `counted`; nll: the result of vkt_nll_loss */
    vkt_tensor counted, dcounted, nll;
    uint32_t B, K;
    float *logits;
    uint32_t *labels;
} scores;

static void scores_begin(scores *s, vkt_layout layout, uint32_t B, uint32_t K)
{
    *s = (scores){ .g = harness_graph(), .B = B, .K = K };
    const vkt_tensor one = vkt_graph_const(s->g, "one", VKT_F32, vkt_shape0(), &(float){ 1 });
    s->z = vkt_input(s->g, "z", VKT_F32, layout, vkt_shape2(B, K));
    s->t = vkt_input(s->g, "t", VKT_U32, VKT_ROWS, vkt_shape1(B));
    s->loss = vkt_softmax_cross_entropy(s->g, s->z, s->t);
    s->correct = vkt_count_correct(s->g, s->z, s->t);
    s->index = vkt_argmax(s->g, s->z);
    s->counted = vkt_cross_entropy(s->g, s->z, s->t, NULL);
    s->nll = vkt_nll_loss(s->g, s->z, s->t, NULL);
    OK(vkt_gradients(s->g, &s->loss, &one, 1, &s->z, 1, &s->dz));
    OK(vkt_gradients(s->g, &s->counted, &one, 1, &s->z, 1, &s->dcounted));
    vkt_keep(s->g, s->loss);
    vkt_keep(s->g, s->counted);
    vkt_keep(s->g, s->dcounted);
    vkt_keep(s->g, s->nll);
    vkt_keep(s->g, s->correct);
    vkt_keep(s->g, s->index);
    vkt_keep(s->g, s->dz);
    OK(vkt_program_create(harness_ctx, s->g, NULL, NULL, &s->p));
    s->logits = random_floats((size_t)B * K, -3, 3);
    s->labels = allocated(B * sizeof *s->labels);
    for (uint32_t b = 0; b < B; b++) s->labels[b] = (uint32_t)((uint64_t)b * 2654435761u % K);
}

static void scores_run(scores *s, uint32_t rows)
{
    OK(vkt_program_write(s->p, s->z, s->logits, (uint64_t)s->B * s->K * sizeof(float)));
    OK(vkt_program_write(s->p, s->t, s->labels, s->B * sizeof(uint32_t)));
    OK(vkt_program_run(s->p, &(vkt_run){ .rows = rows }, NULL));
}

static void scores_end(scores *s)
{
    vkt_program_destroy(&s->p);
    vkt_graph_destroy(&s->g);
    free(s->logits);
    free(s->labels);
}

/* Returns the loss of row b. Writes the gradient of this loss, divided by `rows`, to dz. The gradient is 0 if b is not
 * less than `rows`. Writes the argmax of the row to *best. */
static double row_loss(const scores *s, uint32_t b, uint32_t rows, double *dz, uint32_t *best)
{
    const float *z = s->logits + (size_t)b * s->K;
    double sum = 0;
    *best = 0;
    for (uint32_t k = 0; k < s->K; k++) {
        sum += exp((double)z[k]);
        if (z[k] > z[*best]) *best = k;
    }
    for (uint32_t k = 0; k < s->K; k++) dz[k] = b < rows ? (exp((double)z[k]) / sum - (k == s->labels[b])) / rows : 0;
    return log(sum) - (double)z[s->labels[b]];
}

static void check_scores(vkt_layout layout, uint32_t B, uint32_t K)
{
    scores s;
    scores_begin(&s, layout, B, K);
    const uint32_t rows = B > 2 ? B - 1 : B;
    double loss = 0, nll = 0, correct = 0, *dz = allocated((size_t)B * K * sizeof *dz);
    uint32_t *best = allocated(B * sizeof *best), *index = allocated(B * sizeof *index);
    for (uint32_t b = 0; b < B; b++) {
        const double l = row_loss(&s, b, rows, dz + (size_t)b * K, &best[b]);
        if (b >= rows) continue;
        if (b % 3 == 0) s.labels[b] = best[b]; /* makes every third label right */
        loss += b % 3 == 0 ? row_loss(&s, b, rows, dz + (size_t)b * K, &best[b]) : l;
        correct += best[b] == s.labels[b];
        nll -= (double)s.logits[(size_t)b * K + s.labels[b]] / rows;
    }
    loss /= rows;
    scores_run(&s, rows);
    char what[80];
    snprintf(what, sizeof what, "cross-entropy of (%u,%u) in layout %d", B, K, (int)layout);
    float *got_loss = read_floats(s.p, s.g, s.loss), *got_dz = read_floats(s.p, s.g, s.dz);
    float *got_correct = read_floats(s.p, s.g, s.correct), *got_nll = read_floats(s.p, s.g, s.nll);
    float *got_counted = read_floats(s.p, s.g, s.counted), *got_dcounted = read_floats(s.p, s.g, s.dcounted);
    assert_true(harness_close(what, got_loss, &loss, 1, 1e-5, 0));
    assert_true(harness_close(what, got_dz, dz, (size_t)B * K, 1e-5, 1e-6));
    assert_true(harness_close(what, got_counted, &loss, 1, 1e-5, 0));
    assert_memory_equal(got_dcounted, got_dz, (size_t)B * K * sizeof *got_dz);
    assert_true(fabs((double)*got_nll - nll) < 3e-5); /* no relative bound: terms of both signs may cancel */
    assert_true(harness_close("count_correct", got_correct, &correct, 1, 0, 0));
    OK(vkt_program_read(s.p, s.index, index, B * sizeof *index));
    assert_memory_equal(index, best, B * sizeof *index);
    free(got_loss);
    free(got_dz);
    free(got_correct);
    free(got_nll);
    free(got_counted);
    free(got_dcounted);
    free(dz);
    free(best);
    free(index);
    scores_end(&s);
}

static void losses_of_many_rows_or_classes(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++) {
        check_scores((vkt_layout)layout, 20011, 10);
        check_scores((vkt_layout)layout, 70, 1000);
        check_scores((vkt_layout)layout, 3, 100000);
        check_scores((vkt_layout)layout, 3, 151936); /* the size of a current model's vocabulary */
        /* On a CPU driver, 16 lanes share a row: with 8 lanes, a lane would have more iterations than largest_loop. */
        check_scores((vkt_layout)layout, 2, 260003);
    }
}

static void scores_larger_than_a_binding(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    if (vkt_env_int("VKT_TEST_SMALL", 0)) {
        puts("SKIPPED: the longest sums: VKT_TEST_SMALL is set");
        skip();
    }
    check_scores(VKT_ROWS, 700, 50257); /* 141 MB */
    check_scores(VKT_BATCH_LAST, 700, 50257);
}

/* ---- softmax of long lines ---- */

/* Compares softmax, or log_softmax, and its gradient with double precision, line by line. */
static void check_softmax(vkt_layout layout, vkt_shape s, int32_t axis, bool logarithm)
{
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    const size_t n = vkt_shape_elements(s), K = s.dim[axis];
    size_t inner = 1;
    for (uint32_t i = (uint32_t)axis + 1; i < s.rank; i++) inner *= s.dim[i];
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, layout, s), dy = vkt_input(g, "dy", VKT_F32, layout, s);
    const vkt_tensor y = logarithm ? vkt_log_softmax(g, x, axis) : vkt_softmax(g, x, axis);
    vkt_tensor dx;
    assert_int_equal(vkt_value_of(g, y)->layout, layout);
    OK(vkt_gradients(g, &y, &dy, 1, &x, 1, &dx));
    vkt_keep(g, y);
    vkt_keep(g, dx);
    OK(vkt_program_create(harness_ctx, g, NULL, NULL, &p));
    float *in = random_floats(2 * n, -3, 3), *seed = in + n;
    OK(vkt_program_write(p, x, in, n * sizeof *in));
    OK(vkt_program_write(p, dy, seed, n * sizeof *seed));
    OK(vkt_program_run(p, NULL, NULL));
    double *want = allocated(2 * n * sizeof *want), *grad = want + n;
    for (size_t line = 0; line < n / K; line++) {
        const size_t first = line / inner * inner * K + line % inner;
        double sum = 0, dot = 0;
        for (size_t k = 0; k < K; k++) sum += exp((double)in[first + k * inner]);
        for (size_t k = 0; k < K; k++) {
            const size_t i = first + k * inner;
            want[i] = logarithm ? (double)in[i] - log(sum) : exp((double)in[i]) / sum;
            dot += logarithm ? (double)seed[i] : (double)seed[i] * want[i];
        }
        for (size_t k = 0; k < K; k++) {
            const size_t i = first + k * inner;
            grad[i] = logarithm ? (double)seed[i] - exp(want[i]) * dot : want[i] * ((double)seed[i] - dot);
        }
    }
    char what[80];
    snprintf(what, sizeof what, "softmax over axis %d in layout %d", axis, (int)layout);
    float *got = read_floats(p, g, y), *got_grad = read_floats(p, g, dx);
    assert_true(harness_close(what, got, want, n, 8e-6, 3e-6)); /* the op's own tolerances */
    assert_true(harness_close(what, got_grad, grad, n, 8e-6, 3e-6));
    free(got);
    free(got_grad);
    free(want);
    free(in);
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
}

static void softmax_of_long_lines(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (int logarithm = 0; logarithm <= 1; logarithm++) {
        check_softmax(VKT_BATCH_LAST, vkt_shape2(5, 100003), 1, logarithm);
        check_softmax(VKT_BATCH_LAST, vkt_shape3(2, 80003, 3), 1, logarithm);
        check_softmax(VKT_ROWS, vkt_shape3(2, 80003, 3), 1, logarithm);
        check_softmax(VKT_ROWS, vkt_shape2(100003, 3), 0, logarithm);
    }
}

/* argmax cannot split a row of scores, so a row must fit into a binding. */
static void classes_beyond_a_binding_are_refused(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    const uint64_t real = harness_ctx->limits.max_storage_range_bytes;
    vkt_graph *g = harness_graph();
    vkt_program *p = NULL;
    vkt_keep(g, vkt_argmax(g, vkt_input(g, "z", VKT_F32, VKT_ROWS, vkt_shape2(2, 100001))));
    harness_ctx->limits.max_storage_range_bytes = 400000;
    vkt_test_expect_errors(true);
    const vkt_result r = vkt_program_create(harness_ctx, g, NULL, NULL, &p);
    vkt_test_expect_errors(false);
    harness_ctx->limits.max_storage_range_bytes = real;
    assert_int_equal(r, VKT_E_UNSUPPORTED);
    vkt_test_error_contains("want rows in 400000 bytes");
    assert_null(p);
    vkt_graph_destroy(&g);
}

/* For a label that is no class, no kernel may read past the row. The loss is NaN, and all gradients stay finite. */
static void a_label_that_is_no_class_shows(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    for (int layout = VKT_ROWS; layout <= VKT_BATCH_LAST; layout++)
        for (uint32_t K = 5; K <= 105; K += 100) {
            scores s;
            scores_begin(&s, (vkt_layout)layout, 6, K);
            s.labels[4] = K;
            scores_run(&s, 6);
            float *loss = read_floats(s.p, s.g, s.loss), *dz = read_floats(s.p, s.g, s.dz);
            assert_true(isnan(loss[0]));
            for (uint32_t i = 0; i < 6 * K; i++) assert_true(isfinite(dz[i]));
            free(loss);
            scores_run(&s, 4); /* uses only rows 0 to 3, so the label of row 4 has no effect */
            loss = read_floats(s.p, s.g, s.loss);
            assert_true(isfinite(loss[0]));
            free(loss);
            free(dz);
            scores_end(&s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_sums),
        cmocka_unit_test(sums_over_steps_larger_than_a_binding),
        cmocka_unit_test(broadcasts_over_steps_larger_than_a_binding),
        cmocka_unit_test(long_mean_squares),
        cmocka_unit_test(norms_of_long_rows),
        cmocka_unit_test(losses_of_many_rows_or_classes),
        cmocka_unit_test(scores_larger_than_a_binding),
        cmocka_unit_test(softmax_of_long_lines),
        cmocka_unit_test(classes_beyond_a_binding_are_refused),
        cmocka_unit_test(a_label_that_is_no_class_shows),
    };
    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
