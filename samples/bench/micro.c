/* bench/micro.c - see micro.h. */
#include "bench/micro.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/measure.h"
#include "bench/nets.h"
#include "tools/tools.h"

#include "abi/abi.h"
#include "abi/bench.abi.h"

/* ---- op descriptors of the kernels BENCH_FMA and BENCH_COPY ---- */

typedef struct fma_attr {
    uint32_t lanes, groups, rounds, sums;
} fma_attr;

static vkt_result fma_infer(vkt_infer *f)
{
    const fma_attr *a = f->n->attr;
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape1(4 * a->lanes * a->groups));
    return VKT_OK;
}

static void fma_emit(const vkt_node *n, vkt_emit *e)
{
    const fma_attr *a = n->attr;
    const vkt_bench_push push = { .n = a->lanes * a->groups, .rounds = a->rounds, .factor = 0.999f, .addend = 0.001f };
    const vkt_bind bind[] = { [BENCH_Y] = VKT_WHOLE(n->out[0]) };
    const uint32_t spec[] = { a->lanes, [BENCH_SPEC_SUMS] = a->sums };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_BENCH_FMA,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(push),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { a->groups, 1, 1 } });
}

static double fma_flops(const vkt_node *n)
{
    const fma_attr *a = n->attr;
    return 2.0 * 4 * BENCH_UNROLL * a->sums * a->rounds * a->lanes * a->groups;
}

static const vkt_op fma_op = {
    .name = "fma", .attr_bytes = sizeof(fma_attr), .infer = fma_infer, .emit = fma_emit, .flops = fma_flops
};

static vkt_result copy_infer(vkt_infer *f)
{
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_in(f, 0)->shape);
    return VKT_OK;
}

static void copy_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_bench_push push = { .n = (uint32_t)(vkt_node_in(n, 0)->bytes / 16) };
    const vkt_bind bind[] = { [BENCH_X] = VKT_WHOLE(n->in[0]), [BENCH_Y] = VKT_WHOLE(n->out[0]) };
    const uint32_t spec[] = { vkt_lanes(e->lim, e->lim->traits->lanes_copy) };
    vkt_dispatch_add(
        e,
        &(vkt_launch){ .kernel = VKT_K_BENCH_COPY,
                       VKT_LAUNCH_BIND(bind),
                       VKT_LAUNCH_PUSH(push),
                       VKT_LAUNCH_SPEC(spec),
                       .groups = { VKT_MIN(vkt_groups(push.n, spec[0], 4), e->lim->traits->groups_copy_most), 1, 1 } });
}

static const vkt_op copy_op = {
    .name = "copy", .min_in = 1, .max_in = 1, .infer = copy_infer, .emit = copy_emit, .flops = vkt_flops_none
};

/* ---- programs of these ops ---- */

/* Limits of bench_job.min_ns (measure.h) in this file. The ceilings must be accurate, because the results of ops and
 * steps are compared with them. So min_ns is at least MIN_NS. The ceilings must not take long, because each run that
 * measures ops or steps also measures the ceilings. So min_ns is at most MAX_NS. */
#define MIN_NS 20000000u
#define MAX_NS 100000000u

typedef struct rig {
    vkt_graph *g;
    vkt_tensor x;
    bench_job job;
} rig;

static vkt_result rig_open(bench *b, rig *t)
{
    *t = (rig){ .job = { .min_ns = VKT_MIN(VKT_MAX(b->o->min_ns, MIN_NS), MAX_NS) } };
    return vkt_graph_create(&b->ctx->host, &t->g);
}

static vkt_result rig_programs(bench *b, rig *t, uint32_t copies)
{
    const vkt_program_params params = { .name = "bench", .profile = b->ctx->timestamp_period_ns != 0 };
    for (; t->job.n < copies; t->job.n++)
        VKT_TRY(vkt_program_create(b->ctx, t->g, NULL, &params, &t->job.programs[t->job.n]));
    return VKT_OK;
}

static void rig_close(rig *t)
{
    for (uint32_t i = 0; i < t->job.n; i++) vkt_program_destroy(&t->job.programs[i]);
    vkt_graph_destroy(&t->g);
}

static bench_result micro(const char *op, const char *what)
{
    bench_result r = { .kind = BENCH_MICRO, .preferred = true };
    snprintf(r.op, sizeof r.op, "%s", op);
    snprintf(r.shape, sizeof r.shape, "%s", what);
    return r;
}

static vkt_result report(bench *b, const bench_result *r)
{
    char name[320];
    return bench_wanted(b, bench_name(r, name)) ? bench_report(b, r) : VKT_OK;
}

static bool wanted(const bench *b, const bench_result *r)
{
    char name[320];
    return bench_wanted(b, bench_name(r, name));
}

/* ---- ceilings ---- */

/* Returns the rate of the fastest sample, per second; 0 if no time was measured. A ceiling is the best rate, because
 * other programs on the machine can only make a sample slower. */
static double best_rate(double amount, const bench_result *r)
{
    const bench_stat *t = bench_time(r);
    return t->n && t->min > 0 ? amount / t->min * 1e9 : 0;
}

static vkt_result time_fma(bench *b, const fma_attr *a, bench_result *r)
{
    rig t;
    vkt_result status = rig_open(b, &t);
    if (status == VKT_OK) {
        vkt_keep(t.g, vkt_apply(t.g, &fma_op, &t.x, 0, a, NULL)); /* fma has no input */
        status = vkt_graph_status(t.g);
        if (status == VKT_OK) r->flops = fma_flops(t.g->nodes[0]);
    }
    if (status == VKT_OK) status = rig_programs(b, &t, 1);
    if (status == VKT_OK) status = bench_measure(&t.job, &r->gpu, &r->wall);
    rig_close(&t);
    return status;
}

/* Measures the rate of multiply-adds with 1 to 8 sums per lane (`sums`) and uses the best rate. A multiply-add waits
 * for the previous multiply-add of the same sum, so few sums do not hide the latency. Many sums may not fit into the
 * registers. */
static vkt_result fma_ceiling(bench *b)
{
    static const uint32_t sums[] = { 1, 2, 3, 4, 6, 8 };
    const vkt_traits *t = b->ctx->limits.traits;
    bench_result best = { 0 };
    for (size_t i = 0; i < VKT_COUNT(sums); i++) {
        bench_result r = micro("fma", "multiply-adds of registers");
        const uint32_t lanes = vkt_lanes(&b->ctx->limits, t->lanes_elementwise);
        const fma_attr a = { .lanes = lanes,
                             .groups = vkt_groups_wanted(&b->ctx->limits, lanes),
                             .rounds = t->iterations_fma,
                             .sums = sums[i] };
        bench_progress(b, "micro fma");
        VKT_TRY(time_fma(b, &a, &r));
        if (best_rate(r.flops, &r) > best_rate(best.flops, &best)) best = r;
    }
    b->results.roof.flops_per_s = best_rate(best.flops, &best);
    return report(b, &best);
}

/* Measures a kernel that copies 32 MiB. bench_copies returns the number of programs of this kernel. The programs run in
 * rotation, each with its own data. If there is enough memory, all data together exceed the caches. */
static vkt_result copy_ceiling(bench *b)
{
    enum { FLOATS = 8 << 20 };
    bench_result r = micro("copy", "32 MiB by a kernel, read and written");
    rig t;
    bench_progress(b, "micro copy");
    r.bytes = 8.0 * FLOATS;
    r.working_bytes = 8ull * FLOATS;
    float *data = malloc(4ull * FLOATS);
    if (!data) return VKT_E_NOMEM;
    vkt_rng rng = vkt_rng_make(1, VKT_STREAM_TEST, 4, 0);
    for (size_t i = 0; i < FLOATS; i++) data[i] = vkt_rng_unit(&rng);
    vkt_result status = rig_open(b, &t);
    if (status == VKT_OK) {
        t.x = vkt_input(t.g, "x", VKT_F32, VKT_ROWS, vkt_shape1(FLOATS));
        vkt_keep(t.g, vkt_apply(t.g, &copy_op, &t.x, 1, NULL, NULL));
        status = vkt_graph_status(t.g);
    }
    r.copies = bench_copies(b->ctx, r.working_bytes);
    if (status == VKT_OK) status = rig_programs(b, &t, r.copies);
    for (uint32_t i = 0; i < t.job.n && status == VKT_OK; i++)
        status = vkt_program_write(t.job.programs[i], t.x, data, 4ull * FLOATS);
    if (status == VKT_OK) status = bench_measure(&t.job, &r.gpu, &r.wall);
    rig_close(&t);
    free(data);
    b->results.roof.bytes_per_s = best_rate(r.bytes, &r);
    return status == VKT_OK ? report(b, &r) : status;
}

vkt_result bench_run_roofline(bench *b)
{
    vkt_tools_begin();
    VKT_TRY(fma_ceiling(b));
    return copy_ceiling(b);
}

/* ---- costs of commands ---- */

/* The number of dispatches or barriers that are added to a program. The additional time of this program, divided by
 * MANY, is the cost of one dispatch or barrier. */
enum { MANY = 256 };

/* Measures the wall time of a program of n dispatches, each of which copies 64 numbers. `chained`: each dispatch but
 * the first copies the result of the previous dispatch. Otherwise all dispatches copy the same source. */
static vkt_result time_copies(bench *b, uint32_t n, bool chained, bench_stat *wall)
{
    rig t;
    bench_stat gpu;
    vkt_result status = rig_open(b, &t);
    if (status == VKT_OK) {
        vkt_tensor x = vkt_input(t.g, "x", VKT_F32, VKT_ROWS, vkt_shape1(64)), y = x;
        for (uint32_t i = 0; i < n; i++) {
            y = vkt_apply(t.g, &copy_op, chained ? &y : &x, 1, NULL, NULL);
            vkt_keep(t.g, y);
        }
        status = vkt_graph_status(t.g);
    }
    if (status == VKT_OK) status = rig_programs(b, &t, 1);
    if (status == VKT_OK) status = bench_measure(&t.job, &gpu, wall);
    rig_close(&t);
    return status;
}

static bench_stat slope(const bench_stat *few, const bench_stat *many, double n)
{
    return (bench_stat){ .median = (many->median - few->median) / n,
                         .q1 = (many->q1 - few->median) / n,
                         .q3 = (many->q3 - few->median) / n,
                         .min = (many->min - few->min) / n,
                         .n = many->n };
}

static vkt_result command_costs(bench *b)
{
    bench_result submit = micro("submit", "one small dispatch, from submission to its end");
    bench_result dispatch = micro("dispatch", "one more in a submission, without a barrier");
    bench_result barrier = micro("barrier", "one between two dispatches");
    bench_stat many, chained;
    if (!wanted(b, &submit) && !wanted(b, &dispatch) && !wanted(b, &barrier)) return VKT_OK;
    bench_progress(b, "micro dispatch");
    VKT_TRY(time_copies(b, 1, false, &submit.wall));
    VKT_TRY(time_copies(b, 1 + MANY, false, &many));
    VKT_TRY(time_copies(b, 1 + MANY, true, &chained));
    dispatch.wall = slope(&submit.wall, &many, MANY);
    barrier.wall = slope(&many, &chained, MANY);
    VKT_TRY(report(b, &submit));
    VKT_TRY(report(b, &dispatch));
    return report(b, &barrier);
}

/* ---- transfers ---- */

static vkt_result transfers(bench *b)
{
    enum { BYTES = 32 << 20, ROUNDS = 9 };
    bench_result up = micro("upload", "32 MiB to the device"), down = micro("readback", "32 MiB to the host");
    double up_ns[ROUNDS], down_ns[ROUNDS];
    vkt_buffer *buffer = NULL;
    if (!wanted(b, &up) && !wanted(b, &down)) return VKT_OK;
    bench_progress(b, "micro upload");
    uint32_t *host = malloc(BYTES);
    if (!host) return VKT_E_NOMEM;
    vkt_rng rng = vkt_rng_make(1, VKT_STREAM_TEST, 5, 0);
    for (size_t i = 0; i < BYTES / 4; i++) host[i] = vkt_rng_u32(&rng);
    vkt_result r = vkt_buffer_create(b->ctx, VKT_MEMORY_DEVICE, VKT_MEM_OTHER, BYTES, "transfer", &buffer);
    for (int i = 0; i < ROUNDS && r == VKT_OK; i++) {
        const uint64_t start = vkt_now_ns();
        r = vkt_upload(b->ctx, buffer, 0, host, BYTES);
        if (r == VKT_OK) r = vkt_ctx_wait_idle(b->ctx);
        const uint64_t between = vkt_now_ns();
        if (r == VKT_OK) r = vkt_readback(b->ctx, buffer, 0, host, BYTES);
        up_ns[i] = (double)(between - start);
        down_ns[i] = (double)(vkt_now_ns() - between);
    }
    vkt_buffer_destroy(b->ctx, &buffer);
    free(host);
    if (r != VKT_OK) return r;
    up.bytes = down.bytes = BYTES;
    up.wall = bench_stat_of(up_ns, ROUNDS);
    down.wall = bench_stat_of(down_ns, ROUNDS);
    VKT_TRY(report(b, &up));
    return report(b, &down);
}

/* ---- pipeline creation and first step ---- */

/* Creates another context on the same device. */
static vkt_result open_again(const bench *b, bool cache, vkt_ctx **out)
{
    char index[16];
    snprintf(index, sizeof index, "%u", b->ctx->info.index);
    return vkt_ctx_create(&(vkt_ctx_params){ .device = index, .no_pipeline_cache = !cache }, NULL, out);
}

static vkt_result pipelines(bench *b)
{
    enum { ROUNDS = 7 };
    bench_result r = micro("pipeline", "creation of a small one, no cache");
    double ns[ROUNDS];
    vkt_ctx *ctx;
    if (!wanted(b, &r)) return VKT_OK;
    VKT_TRY(open_again(b, false, &ctx));
    vkt_result status = VKT_OK;
    for (uint32_t i = 0; i < ROUNDS && status == VKT_OK; i++) {
        const uint32_t spec[] = { ctx->limits.subgroup_size, [BENCH_SPEC_SUMS] = i + 1 };
        const vkt_pipeline *p;
        const uint64_t start = vkt_now_ns();
        status = vkt_pipeline_get(ctx, VKT_K_BENCH_FMA, false, 0, spec, VKT_COUNT(spec), &p);
        ns[i] = (double)(vkt_now_ns() - start);
    }
    vkt_ctx_destroy(&ctx);
    if (status != VKT_OK) return status;
    r.wall = bench_stat_of(ns, ROUNDS);
    return report(b, &r);
}

static vkt_result first_step_once(const bench *b, bool cache, double *ns)
{
    const bench_net *net = bench_nets;
    while (net->name && strncmp(net->name, "mnist", 5) != 0) net++;
    const uint64_t start = vkt_now_ns();
    vkt_ctx *ctx;
    bench_step s = { .g = NULL };
    VKT_TRY(open_again(b, cache, &ctx));
    vkt_result r = bench_step_create(ctx, net, VKT_PRECISION_F32, false, &s);
    if (r == VKT_OK) r = vkt_program_run(s.program, &s.run, NULL);
    if (r == VKT_OK) r = vkt_program_wait(s.program);
    *ns = (double)(vkt_now_ns() - start);
    bench_step_destroy(&s);
    vkt_ctx_destroy(&ctx); /* if `cache` is true, writes new pipelines to the cache file */
    return r;
}

static vkt_result first_step(bench *b, bool cache, const char *what)
{
    enum { ROUNDS = 3 };
    bench_result r = micro("first-step", what);
    double ns[ROUNDS], ignored;
    if (!wanted(b, &r)) return VKT_OK;
    bench_progress(b, "micro first-step");
    if (cache) VKT_TRY(first_step_once(b, true, &ignored));
    for (int i = 0; i < ROUNDS; i++) VKT_TRY(first_step_once(b, cache, &ns[i]));
    r.wall = bench_stat_of(ns, ROUNDS);
    return report(b, &r);
}

vkt_result bench_run_micro(bench *b)
{
    vkt_tools_begin();
    VKT_TRY(command_costs(b));
    VKT_TRY(transfers(b));
    VKT_TRY(pipelines(b));
    VKT_TRY(first_step(b, false, "MNIST network, from opening the device, no pipeline cache"));
    return first_step(b, true, "MNIST network, from opening the device, warm pipeline cache");
}
