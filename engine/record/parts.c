/* record/parts.c - the command buffers of a program. A step is split into submissions that are short enough.
 *
 * The watchdog of an operating system ends a submission that takes too long. The time of a kernel is unknown before the
 * kernel has run. So the first two runs submit each dispatch alone, as a piece with timestamps. The second run is
 * measured. The first run is not, because a driver may compile kernels in it. After the second run, the step is
 * recorded for all later runs, in parts of at most max_submission_ns. A part may take longer only if it is one
 * dispatch. The first two runs do all conditional dispatches (vkt_when_begin). So each dispatch has a measured time,
 * and no later run does more dispatches than the measured run.
 *
 * If submissions have no limit, or the device has no timestamps, there are no pieces. In this case all runs submit the
 * same parts, which end only at marks (marks.h). */
#include "record/record.h"

static vkt_result record_side(vkt_program *p, uint32_t side, const uint32_t *ends, uint32_t n, vkt_timer *timer,
                              bool all, vkt_series *out)
{
    VKT_TRY(vkt_series_create(p->ctx, p->name, n, out));
    for (uint32_t i = 0; i < n; i++) {
        VKT_TRY(vkt_series_begin(p->ctx, out, i));
        if (timer && i == 0) vkt_timer_reset(p->ctx, out->cmds[0], timer, 0, timer->count);
        vkt_record_range(p, out->cmds[i], side, i ? ends[i - 1] : 0, ends[i], timer, all);
        VKT_TRY(vkt_series_end(p->ctx, out, i));
    }
    return VKT_OK;
}

static void free_sides(vkt_program *p, vkt_series s[2])
{
    for (int side = 0; side < 2; side++) vkt_series_destroy(p->ctx, &s[side]);
}

/* Records one series for each side of the program (vkt_program.sides). A series is n command buffers, which together
 * have all dispatches. Command buffer i ends before dispatch ends[i]. timer NULL: there are no timestamps. `all`:
 * conditional dispatches always run. */
static vkt_result record_series(vkt_program *p, const uint32_t *ends, uint32_t n, vkt_timer *timer, bool all,
                                vkt_series out[2])
{
    vkt_series s[2] = { { .n = 0 } };
    vkt_result r = VKT_OK;
    for (uint32_t side = 0; side < p->sides && r == VKT_OK; side++)
        r = record_side(p, side, ends, n, timer, all, &s[side]);
    if (r == VKT_OK)
        memcpy(out, s, sizeof s);
    else
        free_sides(p, s);
    return r;
}

vkt_series *vkt_parts_now(vkt_program *p)
{
    return p->parts[0].n ? &p->parts[p->side] : &p->pieces[p->side];
}

/* Records the n parts. Frees the pieces. */
static vkt_result record_parts(vkt_program *p, uint32_t n)
{
    vkt_series parts[2];
    if (p->profile && !p->profiled[0].n) VKT_TRY(record_series(p, p->ends, n, &p->timer, false, p->profiled));
    VKT_TRY(record_series(p, p->ends, n, NULL, false, parts));
    memcpy(p->parts, parts, sizeof parts);
    free_sides(p, p->pieces);
    return VKT_OK;
}

/* Sets p->ends so that each section (marks.h) is one part. Returns the number of parts. */
static uint32_t find_sections(vkt_program *p)
{
    for (uint32_t i = 0; i < p->n_marks; i++) p->ends[i] = p->marks[i];
    p->ends[p->n_marks] = (uint32_t)p->lowered.n;
    return p->n_marks + 1;
}

/* Records the barrier that is submitted before each section that waits for the host. */
static vkt_result record_arrival(vkt_program *p)
{
    if (p->arrival.cmd) return VKT_OK;
    VKT_TRY(vkt_commands_create(p->ctx, "arrival", &p->arrival));
    VKT_TRY(vkt_commands_begin(p->ctx, &p->arrival, true));
    vkt_host_barrier(p->ctx, p->arrival.cmd);
    return vkt_commands_end(p->ctx, &p->arrival);
}

vkt_result vkt_parts_mark(vkt_program *p)
{
    VKT_TRY(record_arrival(p));
    if (p->pieces[0].n) return VKT_OK; /* every dispatch is a piece of its own, so pieces end at all marks */
    free_sides(p, p->parts);
    free_sides(p, p->profiled);
    return record_parts(p, find_sections(p));
}

vkt_result vkt_parts_create(vkt_program *p)
{
    vkt_ctx *ctx = p->ctx;
    const uint32_t n = (uint32_t)p->lowered.n;
    const bool split = n && ctx->max_submission_ns != UINT64_MAX && ctx->timestamp_period_ns > 0;
    p->ends = vkt_alloc_array(&ctx->host, n + 1, sizeof *p->ends);
    if (!p->ends) return vkt_fail_nomem(&ctx->host, "a program", n * sizeof *p->ends);
    if (split || p->profile) VKT_TRY(vkt_timer_create(ctx, 2 * n, &p->timer));
    if (!split) return record_parts(p, find_sections(p));
    for (uint32_t i = 0; i < n; i++) p->ends[i] = i + 1;
    return record_series(p, p->ends, n, &p->timer, true, p->pieces);
}

static void warn_of_long_kernels(const vkt_program *p, const uint64_t *ns)
{
    uint32_t longest = 0, n = 0;
    for (uint32_t i = 0; i < p->lowered.n; i++) {
        n += ns[i] > p->ctx->max_submission_ns;
        if (ns[i] > ns[longest]) longest = i;
    }
    if (n)
        vkt_log_line(&p->ctx->host, p->ctx->limits.traits->watchdog ? VKT_LOG_WARN : VKT_LOG_DEBUG,
                     "%s: %u kernels take longer than a submission should (%.1f ms); dispatch %u, %s, takes %.1f ms",
                     p->name, n, (double)p->ctx->max_submission_ns * 1e-6, longest,
                     vkt_dispatch_name(&p->lowered.list[longest]), (double)ns[longest] * 1e-6);
}

vkt_result vkt_parts_prepare(vkt_program *p)
{
    if (p->parts[0].n || p->runs < 2) return VKT_OK;
    const uint32_t n = (uint32_t)p->lowered.n;
    VKT_TRY(vkt_wait(p->ctx, p->values[(p->runs - 1) % VKT_RUN_RING]));
    uint64_t *ns = p->ns ? p->ns : vkt_alloc_array(&p->ctx->host, 2 * (size_t)n, sizeof *ns);
    if (!ns) return vkt_fail_nomem(&p->ctx->host, "timestamps", 2 * n * sizeof *ns);
    p->ns = ns;
    VKT_TRY(vkt_timer_read(p->ctx, &p->timer, ns));
    for (uint32_t i = 0; i < n; i++) ns[i] = ns[2 * i + 1] - ns[2 * i];
    warn_of_long_kernels(p, ns);
    uint32_t parts = 0;
    for (uint32_t i = 0, first = 0; i <= p->n_marks; i++) {
        const uint32_t end = i < p->n_marks ? p->marks[i] : n, before = parts;
        parts += vkt_split_submissions(ns + first, p->plan.stage + first, end - first, p->ctx->max_submission_ns,
                                       p->ends + parts);
        for (uint32_t k = before; k < parts; k++) p->ends[k] += first;
        first = end;
    }
    return record_parts(p, parts);
}

void vkt_parts_free(vkt_program *p)
{
    free_sides(p, p->pieces);
    free_sides(p, p->parts);
    free_sides(p, p->profiled);
    if (p->timer.pool) vkt_timer_destroy(p->ctx, &p->timer);
    vkt_commands_destroy(p->ctx, &p->arrival);
    vkt_free(&p->ctx->host, p->ends);
    vkt_free(&p->ctx->host, p->marks);
    vkt_free(&p->ctx->host, p->ns);
}
