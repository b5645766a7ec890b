/* ops/step/step.c - the first node of a program, which computes the step state from the host's words for the run, and
 * the node that reports: it copies scalars to the metrics ring. abi/step.abi.h has the words, the step state and the
 * ring. */
#include "ops/ops.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/report.abi.h"
#include "abi/step.abi.h"
#include "abi/step_advance.abi.h"

/* ---- step_advance: words, clock, step -> step and clock, in place ---- */

typedef struct step_attr {
    uint32_t micro; /* number of micro-batches of a step; 0: the program does not update the parameters */
    vkt_clock_rates rates;
    uint32_t draws; /* number of runs that make one step, on all ranks together; 0 if this is not a graph of shards */
    uint32_t sums;  /* 1: the gradient is a sum over the runs of a step. Each run adds its weight times its gradient */
} step_attr;

static vkt_result step_infer(vkt_infer *f)
{
    static const uint32_t words[] = { RING_ALL * RING_WORDS, CLOCK_WORDS, STEP_WORDS };
    for (uint32_t i = 0; i < 3; i++) {
        const vkt_value *v = vkt_in(f, i);
        char text[80];
        VKT_REQUIRE(f, v->dtype == VKT_U32 && vkt_shape_equal(v->shape, vkt_shape1(words[i])), VKT_E_SHAPE,
                    "step_advance: want input %u u32 (%u), got %s %s", i, words[i], vkt_dtype_name(v->dtype),
                    vkt_shape_text(v->shape, text));
    }
    vkt_out_alias(f, 2, VKT_ROWS, vkt_in(f, 2)->shape);
    vkt_out_alias(f, 1, VKT_ROWS, vkt_in(f, 1)->shape);
    return VKT_OK;
}

static void step_emit(const vkt_node *n, vkt_emit *e)
{
    const step_attr *a = n->attr;
    const vkt_step_advance_push push = { .micro = a->micro,
                                         .scaled = e->scaled,
                                         .beta1_low = (uint32_t)a->rates.beta1,
                                         .beta1_high = (uint32_t)(a->rates.beta1 >> 32),
                                         .beta2_low = (uint32_t)a->rates.beta2,
                                         .beta2_high = (uint32_t)(a->rates.beta2 >> 32),
                                         .decay_low = (uint32_t)a->rates.decay,
                                         .decay_high = (uint32_t)(a->rates.decay >> 32),
                                         .draws = a->draws,
                                         .sums = a->sums };
    const vkt_bind bind[] = { [ADVANCE_WORDS] = VKT_WHOLE(n->in[0]),
                              [ADVANCE_CLOCK] = VKT_WHOLE(n->in[1]),
                              [ADVANCE_STEP] = VKT_WHOLE(n->in[2]) };
    const uint32_t spec[] = { 1 };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_STEP_ADVANCE,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(push),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { 1, 1, 1 } });
}

const vkt_op vkt_op_step_advance = {
    .name = "step_advance",
    .min_in = 3,
    .max_in = 3,
    .side_effect = true,
    .prologue = true,
    .attr_bytes = sizeof(step_attr),
    .infer = step_infer,
    .emit = step_emit,
    .flops = vkt_flops_none,
    .formula = "run += 1; rows, first, lr, weight = words[run]; last micro-batch: t += 1, c = 1 - beta^t",
};

void vkt_step_advance(vkt_graph *g, bool update)
{
    step_attr a = { .draws = g->draws, .sums = g->sums };
    if (update) {
        a.micro = VKT_MAX(g->optimizer.micro_batches, 1u);
        a.rates = vkt_optimizer_rates(&g->optimizer);
    }
    const vkt_tensor in[] = { vkt_graph_words(g), vkt_graph_clock(g), vkt_graph_step(g) };
    vkt_apply(g, &vkt_op_step_advance, in, VKT_COUNT(in), &a, NULL);
}

/* ---- report: metrics, loss, correct or null, step -> metrics, in place ---- */

static vkt_result report_infer(vkt_infer *f)
{
    for (uint32_t i = 1; i < 3; i++) {
        if (!vkt_has(f, i)) continue;
        const vkt_value *v = vkt_in(f, i);
        char text[80];
        VKT_REQUIRE(f, v->dtype == VKT_F32 && vkt_shape_elements(v->shape) == 1, VKT_E_SHAPE,
                    "report: want %s a f32 scalar, got %s %s", i == 1 ? "loss" : "correct", vkt_dtype_name(v->dtype),
                    vkt_shape_text(v->shape, text));
    }
    vkt_out_alias(f, 0, VKT_ROWS, vkt_in(f, 0)->shape);
    return VKT_OK;
}

static void report_emit(const vkt_node *n, vkt_emit *e)
{
    const bool has_correct = n->in[2].id != 0;
    const vkt_report_push push = { .has_correct = has_correct };
    const vkt_bind bind[] = { [REPORT_METRICS] = VKT_WHOLE(n->in[0]),
                              [REPORT_LOSS] = VKT_WHOLE(n->in[1]),
                              [REPORT_CORRECT] = VKT_WHOLE(has_correct ? n->in[2] : n->in[1]),
                              [REPORT_STEP] = VKT_WHOLE(n->in[3]),
                              [REPORT_RUN] = VKT_WHOLE(e->g->run) };
    const uint32_t spec[] = { 1 };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_REPORT,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(push),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { 1, 1, 1 } });
}

const vkt_op vkt_op_report = {
    .name = "report",
    .min_in = 2,
    .max_in = 3,
    .uses_step = true,
    .side_effect = true,
    .infer = report_infer,
    .emit = report_emit,
    .flops = vkt_flops_none,
    .formula = "metrics[run] = loss, correct, rows, t",
};

void vkt_report(vkt_graph *g, vkt_tensor loss, vkt_tensor correct)
{
    if (!g) return;
    const vkt_tensor in[] = { vkt_graph_metrics(g), loss, correct };
    if (vkt_apply(g, &vkt_op_report, in, VKT_COUNT(in), NULL, NULL).id) vkt_graph_run(g);
}
