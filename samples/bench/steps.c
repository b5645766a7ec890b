/* bench/steps.c - see steps.h. */
#include "bench/steps.h"

#include <math.h>
#include <stdio.h>

#include "bench/measure.h"
#include "bench/nets.h"
#include "common/message.h"
#include "passes/passes.h"

/* ---- check of the training ---- */

enum { FEW_STEPS = 30, FEWER_STEPS = 8 };

/* Trains `steps` steps from the initial weights. losses[i] becomes the loss of step i. */
static vkt_result train(const bench *b, const bench_net *net, float *losses, int steps)
{
    bench_step s;
    vkt_metrics m;
    uint64_t run;
    vkt_result r = bench_step_create(b->ctx, net, b->o->precision, false, &s);
    for (int i = 0; i < steps && r == VKT_OK; i++) {
        r = vkt_program_run(s.program, &s.run, &run);
        if (r == VKT_OK) r = vkt_program_metrics(s.program, run, &m);
        if (r == VKT_OK) losses[i] = m.loss;
    }
    bench_step_destroy(&s);
    return r;
}

static double mean(const float *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)x[i];
    return sum / n;
}

/* Checks the training. The batch is the same in every step, so the loss must fall, also with dropout. A second training
 * from the same start must have the same losses, bit by bit. */
static vkt_result check_training(const bench *b, const bench_net *net, bench_result *r)
{
    float first[FEW_STEPS], second[FEW_STEPS];
    const int steps = net->large ? FEWER_STEPS : FEW_STEPS;
    VKT_TRY(train(b, net, first, steps));
    VKT_TRY(train(b, net, second, steps));
    const double before = mean(first, 5), after = mean(first + steps - 5, 5);
    const bool same = memcmp(first, second, (size_t)steps * sizeof *first) == 0;
    r->check = same && isfinite(after) && after < before ? BENCH_CHECKED_STEP : BENCH_WRONG;
    if (r->check == BENCH_WRONG)
        vkt_log_line(&b->ctx->host, VKT_LOG_ERROR, "%s: %s; its loss goes from %.6g to %.6g in %d steps", net->name,
                     same ? "it does not train" : "two runs from one start differ", before, after, steps);
    return VKT_OK;
}

/* ---- time ---- */

static vkt_result count_cost(const bench_step *s, bench_result *r)
{
    bool *live = vkt_alloc_array(&s->g->host, s->g->n_nodes, sizeof *live);
    if (!live) return VKT_E_NOMEM;
    vkt_find_live(s->g, live);
    for (size_t i = 0; i < s->g->n_nodes; i++) {
        if (!live[i] || bench_is_free(s->g->nodes[i])) continue;
        const vkt_cost cost = vkt_node_cost(s->g->nodes[i]);
        r->flops += cost.flops;
        r->bytes += cost.bytes;
    }
    vkt_free(&s->g->host, live);
    return VKT_OK;
}

static vkt_result measure(bench *b, const bench_net *net, bench_result *r)
{
    bench_step s;
    bench_stat wall;
    vkt_result status = bench_step_create(b->ctx, net, b->o->precision, b->ctx->timestamp_period_ns != 0, &s);
    if (status == VKT_OK) status = count_cost(&s, r);
    if (status == VKT_OK) {
        const bench_job job = { .programs = { s.program }, .n = 1, .run = s.run, .min_ns = b->o->min_ns };
        r->copies = 1;
        r->packed_bytes = s.program->plan.packed_bytes;
        r->lower_bound_bytes = s.program->plan.lower_bound_bytes;
        r->working_bytes = r->packed_bytes + s.program->plan.const_bytes + s.program->plan.input_bytes;
        status = bench_measure(&job, &r->gpu, &wall);
        if (status == VKT_OK) status = bench_measure_loop(&job, &r->wall, &r->host_ns);
    }
    bench_step_destroy(&s);
    return status;
}

vkt_result bench_run_steps(bench *b)
{
    for (const bench_net *net = bench_nets; net->name; net++) {
        if (net->large != (b->o->sizes == BENCH_SIZES_LARGE)) continue;
        bench_result r = { .kind = BENCH_STEP, .preferred = b->o->variant == 0 };
        char name[320];
        snprintf(r.op, sizeof r.op, "%s", net->name);
        snprintf(r.phase, sizeof r.phase, "train");
        snprintf(r.shape, sizeof r.shape, "%s", net->what);
        if (b->o->precision) snprintf(r.variant, sizeof r.variant, "%s", bench_precision_name(b->o->precision));
        if (!bench_wanted(b, bench_name(&r, name))) continue;
        bench_progress(b, name);
        b->ctx->limits.choices.force = b->o->variant;
        vkt_result status = check_training(b, net, &r);
        if (status == VKT_OK && r.check != BENCH_WRONG) status = measure(b, net, &r);
        b->ctx->limits.choices.force = 0;
        if (status == VKT_E_NOMEM || status == VKT_E_DEVICE_LOST) return status;
        if (status != VKT_OK) {
            complain("%s: %s", name, vkt_result_text(status));
            b->failed++;
            continue;
        }
        VKT_TRY(bench_report(b, &r));
    }
    return VKT_OK;
}
