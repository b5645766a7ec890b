/* bench/measure.c - see measure.h. */
#include "bench/measure.h"

#include <stdlib.h>

enum { WARM_UP = 2, LEAST = 5, MOST = 2000 };

/* The samples of a measurement. Each sample is a time in ns. The measurement ends when min_ns have passed and there are
 * LEAST samples. With 1 to LEAST - 1 samples it ends after 20 * min_ns. With MOST samples it always ends. */
typedef struct collection {
    double list[MOST];
    size_t n;
    uint64_t start_ns, min_ns;
} collection;

static bool wants_more(const collection *c)
{
    const uint64_t spent = vkt_now_ns() - c->start_ns;
    if (c->n >= MOST) return false;
    return spent < c->min_ns || (c->n < LEAST && (c->n < 1 || spent < 20 * c->min_ns));
}

static vkt_result run_once(const bench_job *job, vkt_program *p)
{
    VKT_TRY(vkt_program_run(p, &job->run, NULL));
    return vkt_program_wait(p);
}

/* Returns for how many ns at least one of the timed dispatches (see job->timed) ran. `times` are in the order of
 * submission. */
static double busy_ns(const bench_job *job, const vkt_program *p, const vkt_kernel_time *times, uint32_t n)
{
    uint64_t total = 0, end = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (job->timed && !job->timed[p->lowered.list[i].node]) continue;
        const uint64_t from = VKT_MAX(times[i].start_ns, end);
        if (times[i].end_ns > from) total += times[i].end_ns - from;
        end = VKT_MAX(end, times[i].end_ns);
    }
    return (double)total;
}

static vkt_result collect_gpu(const bench_job *job, collection *c)
{
    const uint32_t n = (uint32_t)job->programs[0]->lowered.n;
    vkt_kernel_time *times = calloc(n, sizeof *times);
    vkt_result r = times ? VKT_OK : VKT_E_NOMEM;
    for (uint32_t i = 0; r == VKT_OK && wants_more(c); i++) {
        vkt_program *p = job->programs[i % job->n];
        uint32_t got = 0;
        r = vkt_program_profile(p, &job->run, times, n, &got);
        if (r == VKT_OK) c->list[c->n++] = busy_ns(job, p, times, got);
    }
    free(times);
    return r;
}

static vkt_result collect_wall(const bench_job *job, collection *c)
{
    for (uint32_t i = 0; wants_more(c); i++) {
        const uint64_t start = vkt_now_ns();
        VKT_TRY(run_once(job, job->programs[i % job->n]));
        c->list[c->n++] = (double)(vkt_now_ns() - start);
    }
    return VKT_OK;
}

static vkt_result with_collection(const bench_job *job, vkt_result (*collect)(const bench_job *, collection *),
                                  bench_stat *out)
{
    collection *c = malloc(sizeof *c);
    if (!c) return VKT_E_NOMEM;
    c->n = 0;
    c->min_ns = job->min_ns;
    c->start_ns = vkt_now_ns();
    const vkt_result r = collect(job, c);
    if (r == VKT_OK) *out = bench_stat_of(c->list, c->n);
    free(c);
    return r;
}

vkt_result bench_measure(const bench_job *job, bench_stat *gpu, bench_stat *wall)
{
    *gpu = *wall = (bench_stat){ 0 };
    const uint64_t start = vkt_now_ns();
    for (uint32_t i = 0; i < VKT_MAX(job->n, WARM_UP) && (i < 1 || vkt_now_ns() - start < 10 * job->min_ns); i++)
        VKT_TRY(run_once(job, job->programs[i % job->n]));
    if (job->programs[0]->timer.pool) VKT_TRY(with_collection(job, collect_gpu, gpu));
    return with_collection(job, collect_wall, wall);
}

/* ---- back to back ---- */

/* Submits `runs` runs and waits until the device is idle. *loop_ns is the time from the first submission to the end of
 * the wait. *host_ns is the host's time in the calls that submit, without the waits inside these calls. */
static vkt_result loop_group(const bench_job *job, uint32_t runs, uint64_t *loop_ns, uint64_t *host_ns)
{
    vkt_ctx *ctx = job->programs[0]->ctx;
    const uint64_t waited = ctx->counters.wait_ns, start = vkt_now_ns();
    for (uint32_t i = 0; i < runs; i++) VKT_TRY(vkt_program_run(job->programs[i % job->n], &job->run, NULL));
    *host_ns = vkt_now_ns() - start - (ctx->counters.wait_ns - waited);
    VKT_TRY(vkt_ctx_wait_idle(ctx));
    *loop_ns = vkt_now_ns() - start;
    return VKT_OK;
}

vkt_result bench_measure_loop(const bench_job *job, bench_stat *wall, double *host_ns)
{
    uint64_t loop, host, runs_done = 0, host_total = 0;
    for (int i = 0; i < WARM_UP; i++) VKT_TRY(loop_group(job, 4, &loop, &host));
    const uint64_t wanted = job->min_ns / 20 / VKT_MAX(loop / 4, 1);
    const uint32_t runs = (uint32_t)VKT_MIN(VKT_MAX(wanted, 4), 1000);
    collection *c = malloc(sizeof *c);
    if (!c) return VKT_E_NOMEM;
    *c = (collection){ .min_ns = job->min_ns, .start_ns = vkt_now_ns() };
    vkt_result r = VKT_OK;
    while (r == VKT_OK && wants_more(c)) {
        r = loop_group(job, runs, &loop, &host);
        c->list[c->n++] = (double)loop / runs;
        host_total += host;
        runs_done += runs;
    }
    if (r == VKT_OK) *wall = bench_stat_of(c->list, c->n);
    *host_ns = (double)host_total / (double)VKT_MAX(runs_done, 1);
    free(c);
    return r;
}

uint32_t bench_copies(const vkt_ctx *ctx, uint64_t bytes)
{
    vkt_memory_stats m;
    vkt_ctx_memory(ctx, &m);
    const uint64_t room = (m.cap_bytes - VKT_MIN(m.cap_bytes, m.used_total_bytes)) / 3;
    const uint64_t wanted = 1 + 2 * ((uint64_t)ctx->limits.traits->cache_kib << 10) / VKT_MAX(bytes, 1);
    const uint64_t most = VKT_MIN(VKT_COUNT(((bench_job *)0)->programs), room / VKT_MAX(bytes, 1));
    return (uint32_t)VKT_MAX(VKT_MIN(wanted, most), 1);
}
