/* record/slices.c - the slices of a run that is distributed over several frames (budget.c): how long each slice takes,
 * and where a step is divided. A slice is some consecutive dispatches. The budget is the device time that the run may
 * use in one frame of the application (vkt_step_budget).
 *
 * The limit for the expected time of a new slice is a quarter of the budget, or 0.1 ms if the quarter is less than
 * 0.1 ms. Only a slice of one kernel may exceed the limit. If possible, a slice ends at the end of a stage of the
 * memory plan (vkt_plan.stage). Each slice has its own timestamps, which the device copies to memory of the host. So
 * the host can read the times of a slice as soon as the slice is done, and never waits.
 *
 * Other work on the device makes times vary. A frame that is too long is worse than a frame that trains less, so
 * expected times are rather too long than too short. If a slice takes longer than expected, its expected time rises to
 * the measured time at once. If the slice takes less time, the expected time falls by a quarter of the difference. The
 * expected time is never below the time of the slice's conditional dispatches in the program's second run, in which all
 * of them ran (parts.c). In later runs, conditional dispatches may be skipped, or may run again. */
#include "record/record.h"

/* The grain is the limit for the time of a slice. It is a quarter of the budget, so that little of the budget stays
 * unused. It is at least a tenth of a millisecond, because shorter slices are not worth the cost of a submission. */
enum { GRAINS = 4, MIN_GRAIN_NS = 100000 };

/* The expected time of a slice is at least MIN_SLICE_NS, even if the slice's two timestamps are equal. So each slice
 * reduces the rest of the budget, and a caller that submits slices until the budget is used up does not loop
 * forever. */
enum { MIN_SLICE_NS = 1000 };

/* The step is divided anew if a slice of several kernels takes longer than TOO_LONG grains. It is also divided anew if
 * the number of slices is more than TOO_MANY times the number of grains in the step's expected time, and new slices
 * would be fewer. These two conditions are not checked in the first MIN_FRAMES frames after a division. They are also
 * not checked while the newest measured frame shows another load (see MUCH). If there is no memory for new slices, the
 * next attempt is at least RETRY_FRAMES frames later. */
enum { TOO_LONG = 2, TOO_MANY = 2, MIN_FRAMES = 8, RETRY_FRAMES = 256 };

/* The load on the device counts as changed if the slices of two frames in a row take more than MUCH times their mean
 * time. The same holds if the slices of two frames in a row take less than their mean time / MUCH. */
#define MUCH 1.25

static uint64_t grain_of(uint64_t budget_ns)
{
    return VKT_MAX(budget_ns / GRAINS, MIN_GRAIN_NS);
}

/* ---- recordings ---- */

static void set_free(vkt_ctx *ctx, vkt_slice_set *s)
{
    for (int side = 0; side < 2; side++) vkt_series_destroy(ctx, &s->series[side]);
    if (s->timer.pool) vkt_timer_destroy(ctx, &s->timer);
    if (s->times) vkt_buffer_destroy(ctx, &s->times);
    vkt_free(&ctx->host, s->values);
    vkt_free(&ctx->host, s->count);
    *s = (vkt_slice_set){ .value = 0 };
}

static vkt_result record_set(vkt_program *p, uint32_t side, const uint32_t *ends, uint32_t n, vkt_slice_set *s)
{
    vkt_ctx *ctx = p->ctx;
    vkt_series *series = &s->series[side];
    VKT_TRY(vkt_series_create(ctx, p->name, n, series));
    for (uint32_t i = 0; i < n; i++) {
        VkCommandBuffer cmd = series->cmds[i];
        VKT_TRY(vkt_series_begin(ctx, series, i));
        vkt_timer_reset(ctx, cmd, &s->timer, 2 * i, 2);
        vkt_timer_mark(ctx, cmd, &s->timer, 2 * i);
        vkt_record_range(p, cmd, side, i ? ends[i - 1] : 0, ends[i], NULL, false);
        vkt_timer_mark(ctx, cmd, &s->timer, 2 * i + 1);
        vkt_timer_copy_pair(ctx, cmd, &s->timer, 2 * i, s->times);
        VKT_TRY(vkt_series_end(ctx, series, i));
    }
    return VKT_OK;
}

static vkt_result set_make(vkt_program *p, const uint32_t *ends, uint32_t n, vkt_slice_set *s)
{
    vkt_ctx *ctx = p->ctx;
    s->values = vkt_alloc_array(&ctx->host, n, sizeof *s->values);
    s->count = vkt_alloc_array(&ctx->host, n, sizeof *s->count);
    if (!s->values || !s->count) return vkt_fail_nomem(&ctx->host, "a budget", n * sizeof *s->values);
    VKT_TRY(vkt_timer_create(ctx, 2 * n, &s->timer));
    VKT_TRY(vkt_buffer_create(ctx, VKT_MEMORY_READBACK, VKT_MEM_STAGING, 16ull * n, "slices", &s->times));
    for (uint32_t side = 0; side < p->sides; side++) VKT_TRY(record_set(p, side, ends, n, s));
    return VKT_OK;
}
static bool is_done(vkt_program *p, const vkt_slice_set *s)
{
    return s->value == 0 || vkt_reached(p->ctx, s->value);
}

/* Frees replaced sets that are done. Returns whether none is left. */
static bool free_old(vkt_program *p)
{
    vkt_slice_set *old = p->budget.slices.old;
    for (int i = 0; i < 2; i++)
        if (old[i].series[0].n && is_done(p, &old[i])) set_free(p->ctx, &old[i]);
    return !old[0].series[0].n && !old[1].series[0].n;
}

static void free_arrays(const vkt_host *h, vkt_slices *s)
{
    vkt_free(h, s->ends);
    vkt_free(h, s->ns);
    vkt_free(h, s->unloaded_ns);
    vkt_free(h, s->least_ns);
    vkt_free(h, s->kernel_ns);
    s->ends = NULL;
    s->ns = NULL;
    s->unloaded_ns = NULL;
    s->least_ns = NULL;
    s->kernel_ns = NULL;
}

void vkt_slices_free(vkt_program *p)
{
    vkt_slices *s = &p->budget.slices;
    for (int i = 0; i < 2; i++) {
        set_free(p->ctx, &s->set[i]);
        set_free(p->ctx, &s->old[i]);
    }
    free_arrays(&p->ctx->host, s);
    *s = (vkt_slices){ .n = 0 };
}

/* ---- division ---- */

/* Returns the lower limit of the expected time of dispatch d. For a conditional dispatch, the limit is the time of d in
 * the program's second run. For any other dispatch, the limit is 0. */
static uint64_t least_of(const vkt_program *p, uint32_t d)
{
    return p->lowered.list[d].conditional ? p->ns[d] : 0;
}

/* Sets the expected time of each slice to the sum of the expected times of its kernels, but at least MIN_SLICE_NS. Sets
 * the lower limit of each slice's time, and sets the load to 1. */
static void expect(vkt_program *p)
{
    vkt_slices *s = &p->budget.slices;
    for (uint32_t i = 0, d = 0; i < s->n; i++) {
        s->ns[i] = s->least_ns[i] = 0;
        for (; d < s->ends[i]; d++) {
            s->ns[i] += s->kernel_ns[d];
            s->least_ns[i] += least_of(p, d);
        }
        s->ns[i] = VKT_MAX(s->ns[i], MIN_SLICE_NS);
        s->unloaded_ns[i] = (double)s->ns[i];
    }
    s->load = s->last_load = 1;
}

/* Scales the times of the kernels of each slice, so that their sum is the slice's expected time. If the times become
 * smaller, scales only the part of each time that is above the lower limit (least_of). */
static void spread(vkt_program *p)
{
    vkt_slices *s = &p->budget.slices;
    for (uint32_t i = 0, first = 0; i < s->n; first = s->ends[i++]) {
        uint64_t sum = 0;
        for (uint32_t d = first; d < s->ends[i]; d++) sum += s->kernel_ns[d];
        const bool falls = s->ns[i] < sum;
        const uint64_t kept = falls ? s->least_ns[i] : 0;
        for (uint32_t d = first; d < s->ends[i]; d++) {
            const uint64_t least = least_of(p, d), keep = falls ? least : 0;
            const double ns = sum ? (double)(s->kernel_ns[d] - keep) * (double)(s->ns[i] - kept) / (double)(sum - kept)
                                  : (double)s->ns[i] / (s->ends[i] - first);
            s->kernel_ns[d] = VKT_MAX(keep + (uint64_t)ns, least); /* a product of float64 values may be rounded down */
        }
    }
}

/* Divides the step into new slices, and writes their ends to s->ends + p->lowered.n. One of the new slices begins where
 * the old slice *next begins, and *next becomes the index of this new slice. Returns the number of new slices. */
static uint32_t divide(const vkt_program *p, uint64_t grain_ns, uint32_t *next)
{
    const vkt_slices *s = &p->budget.slices;
    const uint64_t *ns = s->kernel_ns;
    const uint32_t *stage = p->plan.stage, n = (uint32_t)p->lowered.n, at = *next ? s->ends[*next - 1] : 0;
    uint32_t *ends = s->ends + n;
    *next = vkt_split_submissions(ns, stage, at, grain_ns, ends);
    const uint32_t more = vkt_split_submissions(ns + at, stage + at, n - at, grain_ns, ends + *next);
    for (uint32_t i = 0; i < more; i++) ends[*next + i] += at;
    return *next + more;
}

/* Allocates the arrays of the slices at the first use. The kernels' times in the second run are the first expected
 * times. */
static vkt_result make_arrays(vkt_program *p)
{
    vkt_slices *s = &p->budget.slices;
    const vkt_host *h = &p->ctx->host;
    const size_t n = p->lowered.n;
    if (s->kernel_ns) return VKT_OK;
    s->ends = vkt_alloc_array(h, 2 * n, sizeof *s->ends); /* the second half is for new ends */
    s->ns = vkt_alloc_array(h, n, sizeof *s->ns);
    s->unloaded_ns = vkt_alloc_array(h, n, sizeof *s->unloaded_ns);
    s->least_ns = vkt_alloc_array(h, n, sizeof *s->least_ns);
    s->kernel_ns = vkt_alloc_array(h, n, sizeof *s->kernel_ns);
    if (!s->ends || !s->ns || !s->unloaded_ns || !s->least_ns || !s->kernel_ns) {
        free_arrays(h, s);
        return vkt_fail_nomem(h, "a budget", n * 5 * sizeof *s->ns);
    }
    memcpy(s->kernel_ns, p->ns, n * sizeof *s->kernel_ns);
    return VKT_OK;
}

vkt_result vkt_slices_make(vkt_program *p, uint64_t budget_ns, uint32_t *next)
{
    vkt_slices *s = &p->budget.slices;
    vkt_slice_set fresh[2] = { { .value = 0 } };
    uint32_t from = *next;
    VKT_TRY(make_arrays(p));
    if (s->n) spread(p);
    const uint32_t n = divide(p, grain_of(budget_ns), &from), *ends = s->ends + p->lowered.n;
    vkt_result r = VKT_OK;
    for (int i = 0; i < 2 && r == VKT_OK; i++) r = set_make(p, ends, n, &fresh[i]);
    if (r != VKT_OK) {
        for (int i = 0; i < 2; i++) set_free(p->ctx, &fresh[i]);
        return r;
    }
    memcpy(s->old, s->set, sizeof s->old);
    memcpy(s->set, fresh, sizeof s->set);
    memcpy(s->ends, ends, n * sizeof *ends);
    s->n = n;
    s->grain_ns = grain_of(budget_ns);
    s->frames = s->turn = s->retry = 0;
    s->set[0].budget_ns = budget_ns;
    *next = from;
    expect(p);
    return VKT_OK;
}

/* ---- times ---- */

/* Returns the measured time of slice i. If the next slice was submitted in the same frame, adds the gap between the two
 * slices, because the gap is the cost of a submission. If a call of vkt_step_budget without limit submitted the next
 * slice, does not add the gap, because such a call may come any time later. */
static uint64_t measured(const vkt_program *p, const vkt_slice_set *s, uint32_t i)
{
    const uint64_t *times = s->times->mapped;
    const uint32_t behind = (i + 1) % p->budget.slices.n;
    const uint64_t own = VKT_MAX(vkt_timer_between(p->ctx, times[2 * i], times[2 * i + 1]), MIN_SLICE_NS);
    if (s->values[behind] <= s->values[i] || s->values[behind] > s->frame_value) return own;
    return VKT_MAX(vkt_timer_between(p->ctx, times[2 * i], times[2 * behind]), own);
}

static uint64_t follow(uint64_t expected, uint64_t now)
{
    return now > expected ? now : expected - (expected - now) / 4;
}

/* Moves a mean time towards the time `now`, by a quarter of the difference. The difference is limited, because a time
 * that differs much may be an outlier. */
static void follow_slowly(double *mean_ns, double now)
{
    const double near = VKT_MIN(VKT_MAX(now, *mean_ns / MUCH), *mean_ns * MUCH);
    *mean_ns += (near - *mean_ns) / 4;
}

/* Updates all->load, the load on the device, with the load `now` that one frame has measured. Times vary, so all->load
 * changes only if two frames in a row have measured a load that differs much from it. The load slows all slices, so a
 * change also concerns the expected times of the slices that the frame has not submitted. If the load rises, these
 * times rise to the slices' mean times under the new load. If the load falls, these times fall in proportion. */
static void follow_load(vkt_slices *all, const vkt_slice_set *s, double now)
{
    const double least = VKT_MIN(now, all->last_load), most = VKT_MAX(now, all->last_load), before = all->load;
    all->last_load = now;
    if (least > MUCH * before)
        all->load = least;
    else if (most < before / MUCH)
        all->load -= (before - most) / 4;
    else
        return;
    for (uint32_t i = 0; i < all->n; i++) {
        const double ns =
            all->load > before ? all->unloaded_ns[i] * all->load : (double)all->ns[i] * all->load / before;
        if (s->values[i] || (all->load > before && ns < (double)all->ns[i])) continue;
        all->ns[i] = VKT_MAX(VKT_MAX((uint64_t)ns, MIN_SLICE_NS), all->least_ns[i]);
    }
}

/* Reads the times of a set whose frame is done, and updates the expected times and the load. */
static void learn(vkt_program *p, vkt_slice_set *s)
{
    vkt_slices *all = &p->budget.slices;
    double expected = 0, sum = 0;
    uint64_t frame_ns = 0;
    if (s->value == 0) return;
    for (uint32_t i = 0; i < all->n; i++) {
        if (!s->values[i]) continue;
        const uint64_t now = measured(p, s, i);
        frame_ns += s->count[i] * now;
        all->ns[i] = follow(all->ns[i], VKT_MAX(now, all->least_ns[i]));
        if (all->least_ns[i]) continue; /* slice i has conditional dispatches, which may not have run */
        expected += all->unloaded_ns[i];
        sum += (double)now;
    }
    if (expected > 0) follow_load(all, s, sum / expected);
    for (uint32_t i = 0; i < all->n; i++)
        if (s->values[i] && !all->least_ns[i])
            follow_slowly(&all->unloaded_ns[i], (double)measured(p, s, i) / all->load);
    if (frame_ns) {
        all->measured_frames++;
        all->measured_ns = frame_ns;
        all->measured_budget_ns = s->budget_ns;
    }
    memset(s->values, 0, all->n * sizeof *s->values);
    memset(s->count, 0, all->n * sizeof *s->count);
    s->value = s->frame_value = 0;
}

/* Returns whether the newest frame has measured a load that differs much from s->load. The next frame will show whether
 * the load has changed. Until then, some slices have expected times under the new load, and other slices have expected
 * times under the old load. A new division would mix these times. */
static bool is_unsettled(const vkt_slices *s)
{
    return s->last_load > MUCH * s->load || s->last_load < s->load / MUCH;
}

/* Returns whether the number of slices is more than TOO_MANY times the number of grains in the step's expected time,
 * and a new division would have fewer slices. */
static bool is_too_fine(vkt_program *p, uint64_t grain_ns, uint32_t next)
{
    const vkt_slices *s = &p->budget.slices;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->n; i++) sum += s->ns[i];
    if (s->n <= TOO_MANY * (sum / grain_ns + 1)) return false;
    spread(p);
    return divide(p, grain_ns, &next) < s->n;
}

/* Returns whether new slices would fit this budget and the expected times better. */
static bool is_outdated(vkt_program *p, uint64_t budget_ns, uint32_t next)
{
    const vkt_slices *s = &p->budget.slices;
    const uint64_t grain = grain_of(budget_ns);
    if (grain < s->grain_ns / 2) return true;
    if (grain / 4 > s->grain_ns && s->n > 1) return true;
    if (s->frames < MIN_FRAMES || is_unsettled(s)) return false;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->ends[i] - (i ? s->ends[i - 1] : 0) > 1 && s->ns[i] > TOO_LONG * grain) return true;
    return is_too_fine(p, grain, next);
}

vkt_result vkt_slices_turn(vkt_program *p, uint64_t budget_ns, uint32_t *next, bool *ready)
{
    vkt_slices *s = &p->budget.slices;
    const bool is_free = free_old(p);
    vkt_slice_set *now = &s->set[s->turn], *other = &s->set[1 - s->turn];
    *ready = is_done(p, other);
    if (!*ready) return VKT_OK;
    learn(p, other);
    if (is_done(p, now)) learn(p, now);
    s->turn = 1 - s->turn;
    s->frames++;
    s->set[s->turn].budget_ns = budget_ns;
    if (!is_free || s->frames < s->retry || !is_outdated(p, budget_ns, *next)) return VKT_OK;
    const vkt_result r = vkt_slices_make(p, budget_ns, next);
    if (r != VKT_E_NOMEM && r != VKT_E_MEMORY_CAP && r != VKT_E_DEVICE_MEMORY) return r;
    s->retry = s->frames + RETRY_FRAMES; /* no memory for new slices: the old slices stay in use */
    return VKT_OK;
}

void vkt_slices_submitted(vkt_slices *s, uint32_t first, uint32_t end, uint64_t value, bool unlimited)
{
    vkt_slice_set *set = &s->set[s->turn];
    for (uint32_t i = first; i < end; i++) {
        set->values[i] = value - (end - 1 - i); /* each slice has a timeline value of its own */
        set->count[i] += !unlimited;
    }
    set->value = value;
    if (!unlimited) set->frame_value = value;
    set->last = end - 1;
}
