/* record/run.c - starts runs of a program, and returns their metrics and the times of their dispatches. */
#include "record/record.h"

#include "abi/step.abi.h"

vkt_result vkt_program_run_synced(vkt_program *p, const vkt_run *run, const vkt_sync *sync, uint64_t *run_index)
{
    VKT_WANT(NULL, p);
    if (p->debug.level >= 2) return vkt_debug_run(p, run, sync, run_index);
    return vkt_run_submit(p, run, sync, false, run_index);
}

vkt_result vkt_program_run(vkt_program *p, const vkt_run *run, uint64_t *run_index)
{
    VKT_WANT(NULL, p);
    return vkt_program_run_synced(p, run, NULL, run_index);
}

/* Reads the metrics from a slot of the metrics ring (abi/step.abi.h). The run that wrote them must be done. */
static void read_metrics(const vkt_program *p, uint64_t slot, vkt_metrics *out)
{
    const uint32_t *m = (const uint32_t *)p->metrics->mapped + slot * METRIC_WORDS;
    memcpy(&out->loss, &m[METRIC_LOSS], sizeof out->loss);
    memcpy(&out->correct, &m[METRIC_CORRECT], sizeof out->correct);
    out->rows = m[METRIC_ROWS] == ROWS_ALL ? 0 : m[METRIC_ROWS]; /* ROWS_ALL: all rows are real; see vkt_metrics.rows */
    out->t = m[METRIC_T];
    memcpy(&out->loss_scale, &m[METRIC_SCALE], sizeof out->loss_scale);
    out->skipped = m[METRIC_SKIPPED];
    memcpy(&out->grad_norm, &m[METRIC_NORM], sizeof out->grad_norm);
    out->terms = m[METRIC_TERMS];
}

static vkt_result check_metrics(const vkt_program *p, bool there)
{
    if (!p->metrics) return vkt_fail(&p->ctx->host, VKT_E_STATE, "program: the graph has no vkt_report");
    return there ? VKT_OK : vkt_fail(&p->ctx->host, VKT_E_STATE, "program: no run of it was recorded");
}

vkt_result vkt_program_metrics(vkt_program *p, uint64_t run_index, vkt_metrics *out)
{
    VKT_WANT(NULL, p);
    VKT_WANT(&p->ctx->host, out);
    *out = (vkt_metrics){ 0 };
    VKT_TRY(vkt_check_run(p, run_index));
    VKT_TRY(check_metrics(p, true));
    VKT_TRY(vkt_wait_run(p, run_index));
    read_metrics(p, run_index % RING_SLOTS, out);
    return VKT_OK;
}

vkt_result vkt_program_recorded_metrics(vkt_program *p, vkt_metrics *out)
{
    VKT_WANT(NULL, p);
    VKT_WANT(&p->ctx->host, out);
    *out = (vkt_metrics){ 0 };
    VKT_TRY(vkt_lost_check(p->ctx, p->name));
    VKT_TRY(check_metrics(p, p->recorded));
    read_metrics(p, RING_SLOTS, out);
    return VKT_OK;
}

vkt_result vkt_program_profile(vkt_program *p, const vkt_run *run, vkt_kernel_time *times, uint32_t capacity,
                               uint32_t *count)
{
    VKT_WANT(NULL, p);
    VKT_WANT(&p->ctx->host, count);
    *count = 0;
    if (capacity) VKT_WANT(&p->ctx->host, times);
    if (!p->profile)
        return vkt_fail(&p->ctx->host, VKT_E_STATE, "program: want one that was made with `profile` and has kernels");
    const size_t n = p->lowered.n;
    uint64_t index = 0, *ns = vkt_alloc_array(&p->ctx->host, 2 * n, sizeof *ns);
    if (!ns) return vkt_fail_nomem(&p->ctx->host, "timestamps", 2 * n * sizeof *ns);
    vkt_result r = vkt_run_submit(p, run, NULL, true, &index);
    if (r == VKT_OK) r = vkt_wait_run(p, index);
    if (r == VKT_OK) r = vkt_timer_read(p->ctx, &p->timer, ns);
    for (size_t i = 0; r == VKT_OK && i < n && i < capacity; i++) {
        const vkt_dispatch *d = &p->lowered.list[i];
        const vkt_node *node = p->g->nodes[d->node];
        times[i] = (vkt_kernel_time){ .kernel = vkt_dispatch_name(d),
                                      .node = node->n_out ? p->g->values[node->out[0].id].name : node->op->name,
                                      .start_ns = ns[2 * i] - ns[0],
                                      .end_ns = ns[2 * i + 1] - ns[0] };
    }
    if (r == VKT_OK) *count = (uint32_t)n;
    vkt_free(&p->ctx->host, ns);
    return r;
}
