/* record/budget.c - vkt_step_budget: distributes a run over frames of the application. Each frame gets as much of the
 * run as the frame's budget allows. slices.c divides the run into slices and finds their expected times. */
#include "record/record.h"

/* Larger budgets are reduced to this budget. It stands for no limit, because no run takes this long. A sum of up to 8
 * durations of this size does not overflow. */
#define MAX_BUDGET_NS (UINT64_MAX / 8)

static bool idle(const vkt_program *p)
{
    return p->budget.now.ns == 0 && p->budget.before.ns == 0;
}

/* Sets the pending time of the earlier frames to 0 if their work is done, and the pending time of this frame to 0 if
 * its work is done. */
static void settle(vkt_program *p)
{
    vkt_pending *const each[] = { &p->budget.before, &p->budget.now };
    for (int i = 0; i < 2; i++)
        if (each[i]->ns && vkt_reached(p->ctx, each[i]->value)) each[i]->ns = 0;
}

/* Sets *room to whether this call may submit. If the last call ended a run, left_ns is the rest of that call's
 * budget. If budget_ns equals left_ns, this call goes on with the frame of the last call. Otherwise a call that may
 * submit begins a frame. But a call without limit (MAX_BUDGET_NS) begins no frame. */
static vkt_result has_room(vkt_program *p, uint64_t budget_ns, bool *room)
{
    p->budget.goes_on = budget_ns == p->budget.left_ns;
    p->budget.left_ns = UINT64_MAX;
    settle(p);
    *room = budget_ns > 0;
    if (budget_ns == 0 || p->budget.goes_on) return VKT_OK;
    p->budget.unlimited = budget_ns == MAX_BUDGET_NS;
    const uint64_t pending_ns = p->budget.before.ns + p->budget.now.ns;
    *room = pending_ns <= budget_ns;
    if (*room && p->budget.slices.n && !p->budget.unlimited)
        VKT_TRY(vkt_slices_turn(p, budget_ns, &p->budget.next, room));
    if (!*room) return VKT_OK;
    if (pending_ns) p->budget.before = (vkt_pending){ p->budget.now.value, pending_ns };
    p->budget.now.ns = 0;
    return VKT_OK;
}

/* Prepares a run: writes the words of the run (abi/step.abi.h). From the third run on, makes the slices if there are
 * none yet. If the call would have to wait, does nothing and sets *ready to false. */
static vkt_result begin(vkt_program *p, const vkt_run *run, uint64_t budget_ns, bool *ready)
{
    const uint64_t r = p->runs, *values = p->values;
    const bool measured = !p->parts[0].n && r >= 2; /* vkt_run_begin will read the times of the second run */
    *ready = (!measured || vkt_reached(p->ctx, values[(r - 1) % VKT_RUN_RING])) &&
             (r < VKT_RUN_RING || vkt_reached(p->ctx, values[r % VKT_RUN_RING]));
    if (!*ready) return VKT_OK;
    VKT_TRY(vkt_run_begin(p, run));
    return p->parts[0].n && !p->budget.slices.n ? vkt_slices_make(p, budget_ns, &p->budget.next) : VKT_OK;
}

/* Finds the slices, from p->budget.next on, that fit into the budget. Returns the index of the first slice behind them.
 * *cost_ns gets their expected time. If nothing is pending and the frame has submitted nothing yet, the next slice
 * counts as fitting even if it is longer than the budget. Without this rule, such a slice would never run, because it
 * would be too long in each later frame, too. */
static uint32_t fit(const vkt_program *p, const vkt_series *s, uint64_t budget_ns, uint64_t *cost_ns)
{
    const uint64_t *ns = p->budget.slices.ns;
    uint32_t end = p->budget.next;
    *cost_ns = 0;
    if (!p->parts[0].n) {
        /* There are no parts yet (parts.c). So the run submits pieces, one for each dispatch. Their times are not
         * known, so the frame gets only one piece. */
        *cost_ns = budget_ns;
        return end + 1;
    }
    while (end < s->n && ns[end] <= budget_ns - *cost_ns) *cost_ns += ns[end++];
    if (end == p->budget.next && idle(p) && !p->budget.goes_on)
        *cost_ns = ns[end++]; /* the next slice takes longer than the budget */
    return end;
}

static vkt_result submit(vkt_program *p, vkt_series *s, uint32_t end, uint64_t cost_ns, const vkt_sync *sync,
                         vkt_step_progress *out)
{
    uint64_t value;
    vkt_sync rest = sync ? *sync : (vkt_sync){ .n_waits = 0 };
    if (p->budget.next == 0) VKT_TRY(vkt_given_submit(p, sync, &rest));
    VKT_TRY(vkt_series_submit(p->ctx, s, p->budget.next, end, &rest, p->name, &value));
    if (s != vkt_parts_now(p)) vkt_slices_submitted(&p->budget.slices, p->budget.next, end, value, p->budget.unlimited);
    p->budget.now = (vkt_pending){ value, p->budget.now.ns + cost_ns };
    out->slice = end % s->n;
    out->submitted_ns = cost_ns;
    out->completed = end == s->n;
    p->budget.next = end % s->n;
    if (!out->completed) return VKT_OK;
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

/* Does the work of vkt_step_budget. After an error, *budget_ns and *out have no meaning. */
static vkt_result step(vkt_program *p, const vkt_run *run, const vkt_sync *sync, uint64_t *budget_ns,
                       vkt_step_progress *out)
{
    VKT_TRY(vkt_lost_check(p->ctx, p->name));
    if (!p->timer.pool || (p->parts[0].n && !p->ns))
        return vkt_fail(&p->ctx->host, VKT_E_UNSUPPORTED,
                        "%s: a budget wants a queue with timestamps, and a context with a max_submission_ns", p->name);
    bool ready;
    VKT_TRY(has_room(p, *budget_ns, &ready));
    if (ready && p->budget.next == 0) VKT_TRY(begin(p, run, *budget_ns, &ready));
    vkt_slices *slices = &p->budget.slices;
    vkt_series *s = p->parts[0].n ? &slices->set[slices->turn].series[p->side] : vkt_parts_now(p);
    out->slice = p->budget.next;
    out->slices = s->n;
    out->measured_frames = slices->measured_frames;
    out->measured_ns = slices->measured_ns;
    out->measured_budget_ns = slices->measured_budget_ns;
    if (!ready || s->n == 0) return submit_nothing(p, sync);
    uint64_t cost_ns;
    const uint32_t end = fit(p, s, *budget_ns, &cost_ns);
    if (end == p->budget.next) return submit_nothing(p, sync);
    VKT_TRY(submit(p, s, end, cost_ns, sync, out));
    *budget_ns -= VKT_MIN(cost_ns, *budget_ns);
    if (out->completed) p->budget.left_ns = *budget_ns;
    return VKT_OK;
}

vkt_result vkt_step_budget(vkt_program *p, const vkt_run *run, const vkt_sync *sync, uint64_t *budget_ns,
                           vkt_step_progress *out)
{
    VKT_WANT(NULL, p);
    VKT_WANT(&p->ctx->host, budget_ns);
    VKT_WANT(&p->ctx->host, out);
    *out = (vkt_step_progress){ 0 };
    vkt_step_progress progress = { .run_index = p->runs };
    uint64_t left_ns = VKT_MIN(*budget_ns, MAX_BUDGET_NS);
    VKT_TRY(step(p, run, sync, &left_ns, &progress));
    *out = progress;
    *budget_ns = left_ns;
    return VKT_OK;
}
