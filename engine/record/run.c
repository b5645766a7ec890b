/* record/run.c - what happens per run: a few words of step state, one submission; and reading what it left. */
#include "record/record.h"

#include "abi/step.abi.h"

_Static_assert(RING_SLOTS == VKT_RUN_RING, "the public header and the shaders agree on the ring");

/* Waits until run r is done, if it is one of those still remembered. */
static vkt_result wait_run(vkt_program *p, uint64_t r)
{
    return vkt_wait(p->ctx, p->values[r % VKT_RUN_RING]);
}

vkt_result vkt_run_words(const vkt_program *p, const vkt_run *run, uint32_t *words)
{
    if (run && p->most_rows && run->rows > p->most_rows)
        return vkt_fail(&p->ctx->host, VKT_E_ARG, "program: want at most the batch of %u rows, got %u", p->most_rows,
                        run->rows);
    const float lr = run ? run->lr : 0.0f;
    memset(words, 0, RING_WORDS * sizeof *words);
    words[RING_ROWS] = run && run->rows ? run->rows : p->g->batch ? p->g->batch : ROWS_UNTOLD;
    words[RING_FIRST] = run ? run->first : 0;
    memcpy(&words[RING_LR], &lr, sizeof lr);
    return VKT_OK;
}

vkt_result vkt_run_begin(vkt_program *p, const vkt_run *run)
{
    uint32_t words[RING_WORDS];
    const uint64_t r = p->runs;
    VKT_TRY(vkt_run_words(p, run, words));
    if (r >= VKT_RUN_RING) VKT_TRY(wait_run(p, r - VKT_RUN_RING)); /* its slots are about to be used again */
    VKT_TRY(vkt_parts_prepare(p));
    if (p->words) memcpy((uint32_t *)p->words->mapped + r % RING_SLOTS * RING_WORDS, words, sizeof words);
    return VKT_OK;
}

void vkt_run_end(vkt_program *p, uint64_t value, uint64_t *run_index)
{
    p->values[p->runs % VKT_RUN_RING] = value;
    if (run_index) *run_index = p->runs;
    p->runs++;
}

/* Half a run is vkt_step_budget's to go on with. */
static vkt_result check_idle(const vkt_program *p)
{
    VKT_TRY(vkt_lost_check(p->ctx, p->name));
    if (!p->budget.next) return VKT_OK;
    return vkt_fail(&p->ctx->host, VKT_E_STATE, "%s: a run that vkt_step_budget began is under way", p->name);
}

vkt_result vkt_run_submit(vkt_program *p, const vkt_run *run, const vkt_sync *sync, bool profiled, uint64_t *run_index)
{
    uint64_t value;
    VKT_TRY(check_idle(p));
    VKT_TRY(vkt_run_begin(p, run));
    vkt_series *s = !p->parts.n ? &p->pieces : profiled ? &p->profiled : &p->parts;
    VKT_TRY(vkt_series_submit(p->ctx, s, 0, s->n, sync, p->name, &value));
    vkt_run_end(p, value, run_index);
    return VKT_OK;
}

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

static vkt_result check_run(const vkt_program *p, uint64_t run_index)
{
    if (run_index >= p->runs || p->runs - run_index > VKT_RUN_RING)
        return vkt_fail(&p->ctx->host, VKT_E_ARG, "program: run %llu is none of the last %d of %llu",
                        (unsigned long long)run_index, VKT_RUN_RING, (unsigned long long)p->runs);
    return VKT_OK;
}

/* What lies in a slot of the ring; the run that wrote it is done. */
static void take_metrics(const vkt_program *p, uint64_t slot, vkt_metrics *out)
{
    const uint32_t *m = (const uint32_t *)p->metrics->mapped + slot * METRIC_WORDS;
    memcpy(&out->loss, &m[METRIC_LOSS], sizeof out->loss);
    memcpy(&out->correct, &m[METRIC_CORRECT], sizeof out->correct);
    out->rows = m[METRIC_ROWS] == ROWS_UNTOLD ? 0 : m[METRIC_ROWS]; /* as submit writes "all" */
    out->t = m[METRIC_T];
    memcpy(&out->loss_scale, &m[METRIC_SCALE], sizeof out->loss_scale);
    out->skipped = m[METRIC_SKIPPED];
    memcpy(&out->grad_norm, &m[METRIC_NORM], sizeof out->grad_norm);
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
    VKT_TRY(check_run(p, run_index));
    VKT_TRY(check_metrics(p, true));
    VKT_TRY(wait_run(p, run_index));
    take_metrics(p, run_index % RING_SLOTS, out);
    return VKT_OK;
}

vkt_result vkt_program_recorded_metrics(vkt_program *p, vkt_metrics *out)
{
    VKT_WANT(NULL, p);
    VKT_WANT(&p->ctx->host, out);
    *out = (vkt_metrics){ 0 };
    VKT_TRY(vkt_lost_check(p->ctx, p->name));
    VKT_TRY(check_metrics(p, p->recorded));
    take_metrics(p, RING_SLOTS, out);
    return VKT_OK;
}

bool vkt_program_done(vkt_program *p, uint64_t run_index)
{
    if (!p) return false;
    return run_index < p->runs &&
           (p->runs - run_index > VKT_RUN_RING || vkt_reached(p->ctx, p->values[run_index % VKT_RUN_RING]));
}

vkt_result vkt_program_wait_run(vkt_program *p, uint64_t run_index)
{
    VKT_WANT(NULL, p);
    VKT_TRY(check_run(p, run_index));
    return wait_run(p, run_index);
}

vkt_result vkt_program_wait(vkt_program *p)
{
    VKT_WANT(NULL, p);
    return p->runs ? wait_run(p, p->runs - 1) : VKT_OK;
}

/* ---- host data ---- */

static vkt_result check_access(const vkt_program *p, vkt_tensor t, bool write)
{
    const vkt_host *h = &p->ctx->host;
    if (t.id == 0 || t.id >= p->g->n_values) return vkt_fail(h, VKT_E_ARG, "program: that tensor is not of its graph");
    const vkt_value *v = &p->g->values[t.id];
    const vkt_role role = p->g->values[vkt_root(p->g, t)].role;
    const bool readable = v->keep || (role != VKT_ROLE_ACTIVATION && role != VKT_ROLE_SCRATCH);
    if (write ? role == VKT_ROLE_INPUT : readable) return VKT_OK;
    return vkt_fail(h, VKT_E_ARG, "program: '%s' is no %s", v->name, write ? "input" : "kept value: see vkt_keep");
}

vkt_result vkt_check_readable(const vkt_program *p, vkt_tensor t)
{
    return check_access(p, t, false);
}

static vkt_result check_value(const vkt_program *p, vkt_tensor t, uint64_t bytes, bool write)
{
    VKT_TRY(check_access(p, t, write));
    const vkt_host *h = &p->ctx->host;
    const vkt_value *v = &p->g->values[t.id];
    const uint64_t want = vkt_shape_elements(v->shape) * vkt_dtype_bytes(v->dtype);
    if (bytes != want)
        return vkt_fail(h, VKT_E_ARG, "program: '%s' has %llu bytes, got %llu", v->name, (unsigned long long)want,
                        (unsigned long long)bytes);
    return VKT_OK;
}

vkt_range vkt_range_of_value(const vkt_program *p, vkt_tensor t)
{
    const vkt_bind b = { .t = t, .bytes = p->lowered.values[t.id].bytes };
    vkt_range r = vkt_range_of(p, &b);
    r.bytes = vkt_round_up(b.bytes, 4);
    return r;
}

/* A layout that host memory has already is moved without a detour. */
static bool is_plain(const vkt_value *v)
{
    return v->layout == VKT_ROWS && v->storage == VKT_PRECISION_F32 && v->bytes % 4 == 0;
}

vkt_result vkt_program_write(vkt_program *p, vkt_tensor t, const void *data, uint64_t bytes)
{
    VKT_WANT(NULL, p);
    VKT_TRY(check_value(p, t, bytes, true));
    VKT_TRY(check_idle(p));
    const vkt_value *v = &p->lowered.values[t.id];
    const vkt_range at = vkt_range_of_value(p, t);
    vkt_buffer *buffer = p->inputs[vkt_root(p->g, t)];
    if (is_plain(v)) return vkt_upload(p->ctx, buffer, at.offset_bytes, data, bytes);
    void *physical = vkt_alloc(&p->ctx->host, at.bytes);
    if (!physical) return vkt_fail_nomem(&p->ctx->host, v->name, at.bytes);
    vkt_pack_value(v, data, physical);
    const vkt_result r = vkt_upload(p->ctx, buffer, at.offset_bytes, physical, at.bytes);
    vkt_free(&p->ctx->host, physical);
    return r;
}

vkt_result vkt_program_fetch(vkt_program *p, vkt_tensor t, void *data)
{
    const vkt_value *v = &p->lowered.values[t.id];
    const vkt_range at = vkt_range_of_value(p, t);
    if (is_plain(v)) return vkt_readback(p->ctx, (vkt_buffer *)(uintptr_t)at.buffer, at.offset_bytes, data, v->bytes);
    void *physical = vkt_alloc(&p->ctx->host, at.bytes);
    if (!physical) return vkt_fail_nomem(&p->ctx->host, v->name, at.bytes);
    const vkt_result r = vkt_readback(p->ctx, (vkt_buffer *)(uintptr_t)at.buffer, at.offset_bytes, physical, at.bytes);
    if (r == VKT_OK) vkt_unpack_value(v, physical, data);
    vkt_free(&p->ctx->host, physical);
    return r;
}

vkt_result vkt_program_read(vkt_program *p, vkt_tensor t, void *data, uint64_t bytes)
{
    VKT_WANT(NULL, p);
    VKT_TRY(check_value(p, t, bytes, false));
    return vkt_program_fetch(p, t, data);
}

/* ---- profile ---- */

vkt_result vkt_program_profile(vkt_program *p, const vkt_run *run, vkt_kernel_time *times, uint32_t capacity,
                               uint32_t *count)
{
    VKT_WANT(NULL, p);
    VKT_WANT(&p->ctx->host, count);
    *count = 0;
    if (!p->profile) return vkt_fail(&p->ctx->host, VKT_E_STATE, "program: it was not made with `profile`");
    const size_t n = p->lowered.n;
    uint64_t index = 0, *ns = vkt_alloc_array(&p->ctx->host, 2 * n, sizeof *ns);
    if (!ns) return vkt_fail_nomem(&p->ctx->host, "timestamps", 2 * n * sizeof *ns);
    vkt_result r = vkt_run_submit(p, run, NULL, true, &index);
    if (r == VKT_OK) r = wait_run(p, index);
    if (r == VKT_OK) r = vkt_timer_read(p->ctx, &p->timer, ns);
    for (size_t i = 0; r == VKT_OK && i < n && i < capacity; i++) {
        const vkt_dispatch *d = &p->lowered.list[i];
        const vkt_node *node = p->g->nodes[d->node];
        times[i] = (vkt_kernel_time){ .kernel = vkt_kernel_get((vkt_kernel_id)d->kernel)->name,
                                      .node = node->n_out ? p->g->values[node->out[0].id].name : node->op->name,
                                      .start_ns = ns[2 * i] - ns[0],
                                      .end_ns = ns[2 * i + 1] - ns[0] };
    }
    if (r == VKT_OK) *count = (uint32_t)n;
    vkt_free(&p->ctx->host, ns);
    return r;
}
