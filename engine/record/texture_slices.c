/* record/texture_slices.c - copies between images and arrays, in slices that several frames submit. A call submits the
 * slices that fit into its budget, which is a device time (vkt_texture_read_budget). The rectangle is divided once,
 * into slices of the same size; only the last slice may be smaller. So one expected time is enough for all slices. If
 * a slice takes longer than expected, the expected time rises to the measured time at once. If a slice takes less
 * time, the expected time falls by a quarter of the difference, as in slices.c. */
#include "record/texture.h"

/* A copy has at most MOST_SLICES slices, and at most pixels / LEAST_PIXELS, rounded up. More slices are not worth the
 * cost of their submissions. */
enum { MOST_SLICES = 64, LEAST_PIXELS = 4096 };

/* Larger budgets are reduced to this budget. The sum of a few durations of this length does not overflow. */
#define MAX_BUDGET_NS (UINT64_MAX / 8)

/* The lower limit of a slice's expected time. So each slice uses some of the budget, and a caller that submits slices
 * until the budget is used up does not loop forever. */
#define MIN_SLICE_NS 1000

static vkt_result record_slices(vkt_texture *t, int which, uint32_t n, vkt_texture_slices *s)
{
    vkt_ctx *ctx = t->ctx;
    const uint32_t pixels = t->push.pixels, each = vkt_div_up(pixels, n);
    s->values = vkt_alloc_array(&ctx->host, n, sizeof *s->values);
    if (!s->values) return vkt_fail_nomem(&ctx->host, "a budget", n * sizeof *s->values);
    VKT_TRY(vkt_timer_create(ctx, 2 * n, &s->timer));
    VKT_TRY(vkt_buffer_create(ctx, VKT_MEMORY_READBACK, VKT_MEM_STAGING, 16ull * n, "slices", &s->times));
    VKT_TRY(vkt_series_create(ctx, "texture", n, &s->series));
    for (uint32_t i = 0; i < n; i++) {
        VkCommandBuffer cmd = s->series.cmds[i];
        VKT_TRY(vkt_series_begin(ctx, &s->series, i));
        vkt_timer_reset(ctx, cmd, &s->timer, 2 * i, 2);
        vkt_timer_mark(ctx, cmd, &s->timer, 2 * i);
        vkt_texture_dispatch(t, which, cmd, i * each, VKT_MIN(each, pixels - i * each));
        vkt_timer_mark(ctx, cmd, &s->timer, 2 * i + 1);
        vkt_timer_copy_pair(ctx, cmd, &s->timer, 2 * i, s->times);
        VKT_TRY(vkt_series_end(ctx, &s->series, i));
    }
    return VKT_OK;
}

/* Makes the slices at the first use. */
static vkt_result make(vkt_texture *t, int which)
{
    vkt_ctx *ctx = t->ctx;
    vkt_texture_slices *s = &t->directions[which].slices;
    if (s->series.n) return VKT_OK;
    if (ctx->timestamp_period_ns == 0)
        return vkt_fail(&ctx->host, VKT_E_UNSUPPORTED, "texture: a budget wants a queue with timestamps");
    const uint32_t pixels = t->push.pixels, wanted = VKT_MIN(vkt_div_up(pixels, LEAST_PIXELS), MOST_SLICES);
    const uint32_t n = vkt_div_up(pixels, vkt_div_up(pixels, wanted)); /* so that no slice is empty */
    const vkt_result r = record_slices(t, which, n, s);
    if (r != VKT_OK) vkt_texture_slices_free(ctx, s);
    return r;
}

/* Reads the times that have arrived. */
static void learn(vkt_ctx *ctx, vkt_texture_slices *s)
{
    const uint64_t *times = s->times->mapped;
    uint64_t sum = 0;
    if (s->pending.ns && vkt_reached(ctx, s->pending.value)) s->pending.ns = 0;
    for (uint32_t i = 0; i < s->series.n; i++) {
        if (!s->values[i] || !vkt_reached(ctx, s->values[i])) continue;
        const uint64_t now = VKT_MAX(vkt_timer_between(ctx, times[2 * i], times[2 * i + 1]), MIN_SLICE_NS);
        s->ns = now > s->ns ? now : s->ns - (s->ns - now) / 4;
        s->values[i] = 0;
        sum += now;
    }
    if (sum == 0) return;
    s->measured_ns = sum;
    s->measured_budget_ns = s->budget_ns;
}

/* Returns how many slices fit into the budget; 0 if the budget is 0, or if the pending slices take longer than the
 * budget. *cost_ns gets the expected time of the slices that fit. As long as no time is known, at most one slice
 * is pending, and its cost is the whole budget. If nothing is pending, one slice counts as fitting into any budget
 * above 0, even if the slice is longer than the budget. Without this rule, such a slice would never run, because it
 * would be too long in each later frame, too. */
static uint32_t fit(const vkt_texture_slices *s, uint64_t budget_ns, uint64_t *cost_ns)
{
    const uint32_t left = s->series.n - s->next;
    *cost_ns = 0;
    if (budget_ns == 0 || s->pending.ns > budget_ns || (s->ns == 0 && s->pending.ns)) return 0;
    *cost_ns = budget_ns;
    if (s->ns == 0) return 1;
    uint64_t n = VKT_MIN(budget_ns / s->ns, left);
    if (n == 0 && s->pending.ns == 0) n = 1;
    *cost_ns = n * s->ns;
    return (uint32_t)n;
}

/* Does the work of vkt_texture_read_budget or vkt_texture_write_budget. After an error, *budget_ns and *out have no
 * meaning. */
static vkt_result copy(vkt_texture *t, int which, const vkt_sync *sync, uint64_t *budget_ns, vkt_step_progress *out)
{
    vkt_ctx *ctx = t->ctx;
    vkt_texture_slices *s = &t->directions[which].slices;
    uint64_t cost_ns, value;
    VKT_TRY(vkt_lost_check(ctx, "a texture"));
    VKT_TRY(vkt_texture_check(t, which));
    VKT_TRY(make(t, which));
    learn(ctx, s);
    const uint32_t n = fit(s, *budget_ns, &cost_ns), end = s->next + n;
    out->run_index = s->copies;
    out->slice = s->next;
    out->slices = s->series.n;
    out->measured_ns = s->measured_ns;
    out->measured_budget_ns = s->measured_budget_ns;
    if (n == 0)
        return sync && sync->n_waits + sync->n_signals ? vkt_submit_synced(ctx, VK_NULL_HANDLE, sync, "texture", &value)
                                                       : VKT_OK;
    VKT_TRY(vkt_series_submit(ctx, &s->series, s->next, end, sync, "texture", &value));
    for (uint32_t i = s->next; i < end; i++) s->values[i] = value - (end - 1 - i); /* one timeline value per slice */
    s->pending = (vkt_pending){ value, s->pending.ns + cost_ns };
    s->budget_ns = *budget_ns;
    s->next = end % s->series.n;
    out->slice = s->next;
    out->submitted_ns = cost_ns;
    out->completed = s->next == 0;
    s->copies += out->completed;
    *budget_ns -= VKT_MIN(cost_ns, *budget_ns);
    return VKT_OK;
}

static vkt_result copy_within(vkt_texture *t, int which, const vkt_sync *sync, uint64_t *budget_ns,
                              vkt_step_progress *out)
{
    VKT_WANT(&t->ctx->host, budget_ns);
    VKT_WANT(&t->ctx->host, out);
    *out = (vkt_step_progress){ 0 };
    vkt_step_progress progress = { 0 };
    uint64_t left_ns = VKT_MIN(*budget_ns, MAX_BUDGET_NS);
    VKT_TRY(copy(t, which, sync, &left_ns, &progress));
    *out = progress;
    *budget_ns = left_ns;
    return VKT_OK;
}

vkt_result vkt_texture_read_budget(vkt_texture *t, const vkt_sync *sync, uint64_t *budget_ns, vkt_step_progress *out)
{
    VKT_WANT(NULL, t);
    return copy_within(t, VKT_TEXTURE_READ, sync, budget_ns, out);
}

vkt_result vkt_texture_write_budget(vkt_texture *t, const vkt_sync *sync, uint64_t *budget_ns, vkt_step_progress *out)
{
    VKT_WANT(NULL, t);
    return copy_within(t, VKT_TEXTURE_WRITE, sync, budget_ns, out);
}
