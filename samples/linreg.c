/* linreg.c - vkt-linreg: the graph API in a few lines. Finds w and b of t = w0 x0 + w1 x1 + b from noisy points. By
 * default there are a million points, and Adam minimises the mean squared error. Each batch has all points.
 *
 * A trainer gathers the samples of each batch by their indices. The gather would take far longer than a step of this
 * program, which reads all points where they are stored. For this reason, the points are inputs of a vkt_program. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/message.h"
#include "common/random.h"
#include "common/report.h"
#include "common/session.h"
#include "common/terminal.h"

#define TRY(call)                                                                                     \
    do {                                                                                              \
        const vkt_result try_r = (call);                                                              \
        if (try_r != VKT_OK) return try_r; /* session_end prints the error if there was no message */ \
    } while (0)

enum { SHOWN_EVERY = 50, MAX_ROWS = 100000000, OPT_ROWS = 512 };

/* ---- the points: t = 2 x0 - 3 x1 + 10, and noise of standard deviation 2 ---- */

typedef struct points {
    uint32_t n;
    float *x, *t; /* (n,2), (n,1) */
} points;

static bool draw_points(points *p, uint64_t *seed)
{
    p->x = malloc(2 * (size_t)p->n * sizeof *p->x);
    p->t = malloc(p->n * sizeof *p->t);
    for (uint32_t i = 0; p->x && p->t && i < p->n; i++) {
        float *x = p->x + 2 * (size_t)i;
        for (int k = 0; k < 2; k++) x[k] = 10 * random_unit(seed) - 5;
        p->t[i] = 2 * x[0] - 3 * x[1] + 10 + 2 * (float)random_normal(seed);
    }
    if (!p->x || !p->t) complain("no memory for %u points", p->n);
    return p->x && p->t;
}

/* ---- the fit: run() frees all members of `fit`, also after an error ---- */

typedef struct fit {
    uint32_t rows;
    vkt_graph *g;
    vkt_store *store;
    vkt_program *step;
    json_t *epochs; /* the results of each epoch whose loss the host reads */
    double loss;    /* the loss that the host read last; NaN: none */
    double first_step_ms, ms_per_step;
    float w[3]; /* w0, w1, b. At first, w0 and w1 are random, from N(0,1), and b is 0 */
} fit;

static vkt_result prepare(const session *s, const points *p, fit *f)
{
    TRY(vkt_graph_create(&s->host, &f->g));
    vkt_graph *g = f->g;
    vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape2(p->n, 2));
    vkt_tensor t = vkt_input(g, "t", VKT_F32, VKT_BATCH_LAST, vkt_shape2(p->n, 1));
    vkt_tensor weight = vkt_param(g, "weight", vkt_shape2(1, 2)), bias = vkt_param(g, "bias", vkt_shape1(1));
    vkt_tensor loss = vkt_mse(g, vkt_linear(g, x, weight, bias), t);
    TRY(vkt_backward(g, loss));
    TRY(vkt_update(g, &s->o.optimizer));
    vkt_report(g, loss, (vkt_tensor){ 0 });

    TRY(vkt_store_create(s->ctx, g, &f->store)); /* parameters, gradients, moments: zeros at first */
    TRY(vkt_store_write(f->store, 0, VKT_PART_VALUE, f->w));
    TRY(vkt_program_create(s->ctx, g, f->store, NULL, &f->step));
    TRY(vkt_program_write(f->step, x, p->x, 2 * (uint64_t)p->n * sizeof *p->x));
    TRY(vkt_program_write(f->step, t, p->t, (uint64_t)p->n * sizeof *p->t));
    return VKT_OK;
}

static void show(const session *s, fit *f, uint32_t epoch, uint64_t ns)
{
    json_array_append_new(f->epochs,
                          json_pack("{s:I, s:o, s:f, s:f}", "epoch", (json_int_t)epoch, "train_loss",
                                    real_or_null(f->loss), "lr", (double)s->o.lr, "seconds", (double)ns * 1e-9));
    if (!s->o.quiet) printf("epoch %u/%u  loss %.4f\n", epoch, s->o.epochs, f->loss);
}

/* Runs the steps. The host waits for the device after the first step, and when it reads a loss or the weights.
 * Otherwise it waits only in vkt_program_run, for instance if VKT_RUN_RING runs are pending. */
static vkt_result descend(const session *s, fit *f)
{
    uint64_t run, first = 0, shown = session_now_ns();
    uint32_t done = 0;
    while (done < s->o.epochs && !session_interrupted()) {
        TRY(vkt_program_run(f->step, &(vkt_run){ .lr = s->o.lr }, &run)); /* one run per step */
        if (++done == 1) {
            TRY(vkt_program_wait(f->step));
            first = session_now_ns();
        }
        if (done % SHOWN_EVERY && done < s->o.epochs && !session_interrupted()) continue;
        vkt_metrics m;
        TRY(vkt_program_metrics(f->step, run, &m));
        const uint64_t now = session_now_ns();
        f->loss = (double)m.loss;
        show(s, f, done, now - shown);
        shown = now;
    }
    f->first_step_ms = done ? (double)(first - s->start_ns) * 1e-6 : NAN;
    f->ms_per_step = done > 1 ? (double)(shown - first) * 1e-6 / (done - 1) : NAN;
    TRY(vkt_store_read(f->store, 0, VKT_PART_VALUE, f->w));
    return vkt_store_read(f->store, 1, VKT_PART_VALUE, f->w + 2);
}

/* ---- results ---- */

static vkt_result finish(const session *s, const fit *f)
{
    if (!s->o.quiet) {
        const double x1 = (double)f->w[1], b = (double)f->w[2];
        printf("\nfound   t = %.4f x0 %c %.4f x1 %c %.4f\n", (double)f->w[0], x1 < 0 ? '-' : '+', fabs(x1),
               b < 0 ? '-' : '+', fabs(b));
        printf("speed   %.3f ms per step\n", f->ms_per_step);
        session_print_memory(s);
    }
    if (session_interrupted()) remark("ended by a signal: these are the results so far");
    if (!s->o.json) return VKT_OK;
    json_t *results = json_pack("{s:{s:s, s:b, s:I}, s:i, s:O, s:o, s:o, s:o, s:[o,o], s:o}", "data", "source",
                                "points of t = 2 x0 - 3 x1 + 10, with noise of standard deviation 2", "made_up", 1,
                                "train", (json_int_t)f->rows, "parameters", 3, "epochs", f->epochs, "final_loss",
                                real_or_null(f->loss), "ms_per_step", real_or_null(f->ms_per_step), "first_step_ms",
                                real_or_null(f->first_step_ms), "weight", real_or_null((double)f->w[0]),
                                real_or_null((double)f->w[1]), "bias", real_or_null((double)f->w[2]));
    return write_results(s, results) ? VKT_OK : VKT_E_IO;
}

static vkt_result run(const session *s, uint32_t rows)
{
    uint64_t seed = s->o.seed;
    points p = { .n = rows };
    fit f = { .rows = rows, .epochs = json_array(), .loss = NAN };
    vkt_result r = draw_points(&p, &seed) ? VKT_OK : VKT_E_NOMEM;
    for (int k = 0; k < 2; k++) f.w[k] = (float)random_normal(&seed);
    if (r == VKT_OK && !s->o.quiet)
        terminal_printf(stdout, "data    %u points of t = 2 x0 - 3 x1 + 10, with noise of standard deviation 2\n\n",
                        rows);
    if (r == VKT_OK) r = prepare(s, &p, &f);
    if (r == VKT_OK) r = descend(s, &f);
    if (r == VKT_OK) r = finish(s, &f);
    vkt_program_destroy(&f.step);
    vkt_store_destroy(&f.store);
    vkt_graph_destroy(&f.g);
    json_decref(f.epochs);
    free(p.x);
    free(p.t);
    return r;
}

/* ---- the command line ---- */

static error_t on_option(int key, char *text, struct argp_state *state)
{
    if (key != OPT_ROWS) return ARGP_ERR_UNKNOWN;
    *(uint32_t *)state->input = (uint32_t)option_integer(state, "rows", text, 1, MAX_ROWS);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp_option options[] = { { "rows", OPT_ROWS, "N", 0, "points (1000000)", 1 }, { 0 } };
    static const struct argp more = { .options = options, .parser = on_option };
    uint32_t rows = 1000000;
    const train_cli cli = {
        .doc = "Finds the plane that a million noisy points lie on, by full batches, on a Vulkan device.",
        .scope = TRAIN_BY_PROGRAM,
        .more = &more,
        .input = &rows
    };
    session s = { .o = { .epochs = 500, .optimizer = { .kind = VKT_ADAM }, .lr = 0.1f, .seed = 1 } };
    session_begin(&s, &cli, argc, argv);
    return session_end(&s, session_open(&s) ? run(&s, rows) : VKT_E_NO_DEVICE);
}
