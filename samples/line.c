/* line.c - vkt-line: the graph API in one page. Finds w and b of t = w0 x0 + w1 x1 + b from noisy points, by full
 * batches of Adam on the mean squared error. Ends with 0 when it found what was hidden in the points. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "vktrain/ops.h"
#include "vktrain/optim.h"

enum { POINTS = 100000, STEPS = 300 };

#define TRY(call)                                                                   \
    do {                                                                            \
        const vkt_result try_r = (call);                                            \
        if (try_r != VKT_OK) return try_r; /* the library has told why on stderr */ \
    } while (0)

/* t = 2 x0 - 3 x1 + 10, give or take 2. */
static void draw_points(float *x, float *t)
{
    srand(1);
    for (int i = 0; i < POINTS; i++) {
        float u[3];
        for (int k = 0; k < 3; k++) u[k] = 10.0f * (float)rand() / (float)RAND_MAX - 5.0f;
        x[2 * i] = u[0];
        x[2 * i + 1] = u[1];
        t[i] = 2 * u[0] - 3 * u[1] + 10 + 0.4f * u[2];
    }
}

/* What was made is freed by main, whatever happened. */
typedef struct fit {
    vkt_graph *g;
    vkt_store *store;
    vkt_program *step;
} fit;

static vkt_result find_line(vkt_ctx *ctx, fit *f, const float *xs, const float *ts, float w[3])
{
    vkt_metrics m;
    uint64_t run = 0;

    TRY(vkt_graph_create(NULL, &f->g));
    vkt_graph *g = f->g;
    vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(POINTS, 2));
    vkt_tensor t = vkt_input(g, "t", VKT_F32, VKT_BATCH_LAST, vkt_shape2(POINTS, 1));
    vkt_tensor weight = vkt_param(g, "weight", vkt_shape2(1, 2)), bias = vkt_param(g, "bias", vkt_shape1(1));
    vkt_tensor loss = vkt_mse(g, vkt_linear(g, x, weight, bias), t);
    TRY(vkt_backward(g, loss));
    TRY(vkt_update(g, &(vkt_optimizer){ .kind = VKT_ADAM }));
    vkt_report(g, loss, (vkt_tensor){ 0 });

    TRY(vkt_store_create(ctx, g, &f->store)); /* parameters, gradients, moments: zeros at first */
    TRY(vkt_program_create(ctx, g, f->store, NULL, &f->step));
    vkt_program *step = f->step;
    TRY(vkt_program_write(step, x, xs, 2 * POINTS * sizeof *xs));
    TRY(vkt_program_write(step, t, ts, POINTS * sizeof *ts));
    for (int i = 0; i < STEPS; i++) TRY(vkt_program_run(step, &(vkt_run){ .lr = 0.1f }, &run));
    TRY(vkt_program_metrics(step, run, &m));
    TRY(vkt_store_read(f->store, 0, VKT_PART_VALUE, w));
    TRY(vkt_store_read(f->store, 1, VKT_PART_VALUE, w + 2));
    printf("loss %.3f   t = %.3f x0 %+.3f x1 %+.3f\n", m.loss, w[0], w[1], w[2]);
    return VKT_OK;
}

int main(void)
{
    vkt_ctx *ctx;
    float w[3] = { 0 }, *x = malloc(2 * POINTS * sizeof *x), *t = malloc(POINTS * sizeof *t);
    bool found = false;
    if (x && t && vkt_ctx_create(NULL, NULL, &ctx) == VKT_OK) {
        draw_points(x, t);
        fit f = { NULL, NULL, NULL };
        found = find_line(ctx, &f, x, t, w) == VKT_OK && fabsf(w[0] - 2) < 0.05f && fabsf(w[1] + 3) < 0.05f &&
                fabsf(w[2] - 10) < 0.05f;
        vkt_program_destroy(&f.step);
        vkt_store_destroy(&f.store);
        vkt_graph_destroy(&f.g);
        vkt_ctx_destroy(&ctx);
    }
    free(x);
    free(t);
    return found ? 0 : 1;
}
