/* record/budget.c - distributes a run over frames: each frame gets as much of the run as the frame's budget allows.
 *
 * The step is recorded once more, as slices. A slice is short in comparison with the budget, and it ends at a barrier
 * of the plan. Each slice has its own timestamps. So its time is known from the last run, even if clock rates or other
 * work change this time. */
#include "record/record.h"

/* The grain, the longest time of a slice, is a quarter of the budget, so that little of the budget stays unused. It is
 * at least a tenth of a millisecond, because shorter slices are not worth the cost of a submission. */
enum { GRAINS = 4, MIN_GRAIN_NS = 100000 };

/* The least time that a slice counts, even if its two timestamps are equal. So a loop over a budget ends. */
enum { MIN_SLICE_NS = 1000 };

/* The largest budget. No run takes so long, and a few such times can be added without overflow. */
#define MAX_BUDGET_NS (UINT64_MAX / 8)

static uint64_t grain_of(uint64_t budget_ns)
{
    return VKT_MAX(budget_ns / GRAINS, MIN_GRAIN_NS);
}

void vkt_budget_free(vkt_program *p)
{
    vkt_series_destroy(p->ctx, &p->budget.slices);
    if (p->budget.timer.pool) vkt_timer_destroy(p->ctx, &p->budget.timer);
    vkt_free(&p->ctx->host, p->budget.ns);
    p->budget.ns = NULL;
}

/* Sets the expected time of each slice: the sum of its kernels' times. */
static void expect(vkt_program *p, const uint32_t *ends, uint32_t n)
{
    for (uint32_t i = 0, d = 0; i < n; i++) {
        for (p->budget.ns[i] = 0; d < ends[i]; d++) p->budget.ns[i] += p->ns[d];
        p->budget.ns[i] = VKT_MAX(p->budget.ns[i], MIN_SLICE_NS);
    }
}

static vkt_result record(vkt_program *p, const uint32_t *ends, uint32_t n)
{
    vkt_ctx *ctx = p->ctx;
    vkt_series *s = &p->budget.slices;
    p->budget.ns = vkt_alloc_array(&ctx->host, 3 * (size_t)n, sizeof *p->budget.ns);
    if (!p->budget.ns) return vkt_fail_nomem(&ctx->host, "a budget", 3 * n * sizeof *p->budget.ns);
    expect(p, ends, n);
    VKT_TRY(vkt_timer_create(ctx, 2 * n, &p->budget.timer));
    VKT_TRY(vkt_series_create(ctx, p->name, n, s));
    for (uint32_t i = 0; i < n; i++) {
        VKT_TRY(vkt_series_begin(ctx, s, i));
        vkt_timer_reset(ctx, s->cmds[i], &p->budget.timer, 2 * i, 2);
        vkt_timer_mark(ctx, s->cmds[i], &p->budget.timer, 2 * i);
        vkt_record_range(p, s->cmds[i], i ? ends[i - 1] : 0, ends[i], NULL);
        vkt_timer_mark(ctx, s->cmds[i], &p->budget.timer, 2 * i + 1);
        VKT_TRY(vkt_series_end(ctx, s, i));
    }
    return VKT_OK;
}

/* Records the slices for this budget, and frees the slices of another budget. No slice may be pending. */
static vkt_result split(vkt_program *p, uint64_t budget_ns)
{
    const uint32_t n = (uint32_t)p->lowered.n;
    uint32_t *ends = vkt_alloc_array(&p->ctx->host, n, sizeof *ends);
    if (!ends) return vkt_fail_nomem(&p->ctx->host, "a budget", n * sizeof *ends);
    vkt_budget_free(p);
    p->budget.grain_ns = grain_of(budget_ns);
    const vkt_result r = record(p, ends, vkt_split_submissions(p->ns, p->plan.stage, n, p->budget.grain_ns, ends));
    vkt_free(&p->ctx->host, ends);
    if (r != VKT_OK) vkt_budget_free(p);
    return r;
}

/* Reads the times of the last run by slices, which is done. The timestamps are stored behind the times of the
 * slices. */
static vkt_result learn(vkt_program *p)
{
    const uint32_t n = p->budget.slices.n;
    uint64_t *ns = p->budget.ns, *marks = ns + n;
    if (!p->budget.has_times) return VKT_OK;
    p->budget.has_times = false;
    VKT_TRY(vkt_timer_read(p->ctx, &p->budget.timer, marks));
    for (uint32_t i = 0; i < n; i++) ns[i] = VKT_MAX(marks[2 * i + 1] - marks[2 * i], MIN_SLICE_NS);
    return VKT_OK;
}

static bool idle(const vkt_program *p)
{
    return p->budget.now.ns == 0 && p->budget.before.ns == 0;
}

/* Forgets submitted work that is done by now. */
static void settle(vkt_program *p)
{
    vkt_pending *const each[] = { &p->budget.before, &p->budget.now };
    for (int i = 0; i < 2; i++)
        if (each[i]->ns && vkt_reached(p->ctx, each[i]->value)) each[i]->ns = 0;
}

/* Returns whether this frame may submit. A budget equal to left_ns means that the frame of the last call goes on. */
static bool has_room(vkt_program *p, uint64_t budget_ns)
{
    const bool goes_on = budget_ns == p->budget.left_ns;
    p->budget.left_ns = UINT64_MAX;
    settle(p);
    if (budget_ns == 0) return false;
    if (goes_on) return true;
    const uint64_t pending_ns = p->budget.before.ns + p->budget.now.ns;
    if (pending_ns > budget_ns) return false;
    if (pending_ns) p->budget.before = (vkt_pending){ p->budget.now.value, pending_ns };
    p->budget.now.ns = 0;
    return true;
}

/* Prepares a run: its words, and slices that fit the budget. *ready is false if this would have to wait; then nothing
 * is done. */
static vkt_result begin(vkt_program *p, const vkt_run *run, uint64_t budget_ns, bool *ready)
{
    const uint64_t r = p->runs, *values = p->values;
    const bool measured = !p->parts.n && r >= 2; /* vkt_run_begin will read the times of the second run */
    *ready = (!measured || vkt_reached(p->ctx, values[(r - 1) % VKT_RUN_RING])) &&
             (r < VKT_RUN_RING || vkt_reached(p->ctx, values[r % VKT_RUN_RING]));
    if (!*ready) return VKT_OK;
    VKT_TRY(vkt_run_begin(p, run));
    if (!p->parts.n || !idle(p)) return VKT_OK;
    VKT_TRY(learn(p));
    if (p->budget.slices.n && grain_of(budget_ns) >= p->budget.grain_ns / 2) return VKT_OK;
    return split(p, budget_ns);
}

/* Returns the end of the slices, from `next` on, that fit into the budget. If nothing is pending, the next slice is
 * always among them, because a slice that is too long now is too long later too. */
static uint32_t fit(const vkt_program *p, const vkt_series *s, uint64_t budget_ns, uint64_t *cost_ns)
{
    uint32_t end = p->budget.next;
    *cost_ns = 0;
    if (s == &p->pieces) { /* the time of a piece is not known: the frame gets one piece and no more */
        *cost_ns = budget_ns;
        return end + 1;
    }
    while (end < s->n && p->budget.ns[end] <= budget_ns - *cost_ns) *cost_ns += p->budget.ns[end++];
    if (end == p->budget.next && idle(p)) *cost_ns = p->budget.ns[end++]; /* this slice takes more than the budget */
    return end;
}

static vkt_result submit(vkt_program *p, vkt_series *s, uint32_t end, uint64_t cost_ns, const vkt_sync *sync,
                         vkt_step_progress *out)
{
    uint64_t value;
    VKT_TRY(vkt_series_submit(p->ctx, s, p->budget.next, end, sync, p->name, &value));
    p->budget.now = (vkt_pending){ value, p->budget.now.ns + cost_ns };
    *out = (vkt_step_progress){
        .run_index = p->runs, .slice = end % s->n, .slices = s->n, .submitted_ns = cost_ns, .completed = end == s->n
    };
    p->budget.next = end % s->n;
    if (!out->completed) return VKT_OK;
    p->budget.has_times = s == &p->budget.slices;
    vkt_run_end(p, value, NULL);
    return VKT_OK;
}

/* Submits only the application's semaphores, if there are any. */
static vkt_result submit_nothing(vkt_program *p, const vkt_sync *sync)
{
    uint64_t value;
    return sync && sync->n_waits + sync->n_signals ? vkt_submit_synced(p->ctx, VK_NULL_HANDLE, sync, p->name, &value)
                                                   : VKT_OK;
}

vkt_result vkt_step_budget(vkt_program *p, const vkt_run *run, const vkt_sync *sync, uint64_t *budget_ns,
                           vkt_step_progress *out)
{
    VKT_WANT(NULL, p);
    VKT_WANT(&p->ctx->host, budget_ns);
    VKT_WANT(&p->ctx->host, out);
    *out = (vkt_step_progress){ .run_index = p->runs, .slice = p->budget.next };
    VKT_TRY(vkt_lost_check(p->ctx, p->name));
    if (!p->timer.pool || (p->parts.n && !p->ns))
        return vkt_fail(&p->ctx->host, VKT_E_UNSUPPORTED,
                        "%s: a budget wants a queue with timestamps, and a context with a max_submission_ns", p->name);
    *budget_ns = VKT_MIN(*budget_ns, MAX_BUDGET_NS);
    bool ready = has_room(p, *budget_ns);
    if (ready && p->budget.next == 0) VKT_TRY(begin(p, run, *budget_ns, &ready));
    vkt_series *s = p->parts.n ? &p->budget.slices : &p->pieces;
    out->slices = s->n;
    if (!ready || s->n == 0) return submit_nothing(p, sync);
    uint64_t cost_ns;
    const uint32_t end = fit(p, s, *budget_ns, &cost_ns);
    if (end == p->budget.next) return submit_nothing(p, sync);
    VKT_TRY(submit(p, s, end, cost_ns, sync, out));
    *budget_ns -= VKT_MIN(cost_ns, *budget_ns);
    if (out->completed) p->budget.left_ns = *budget_ns;
    return VKT_OK;
}
