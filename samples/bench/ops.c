/* bench/ops.c - see ops.h. */
#include "bench/ops.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "bench/case.h"
#include "bench/measure.h"
#include "bench/verify.h"
#include "common/message.h"
#include "passes/passes.h"

enum { MAX_PHASES = 1 + VKT_MAX_IN };

/* ---- phases ---- */

static void phase_name(bench_phase *p)
{
    size_t n = (size_t)snprintf(p->name, sizeof p->name, "%s", p->what.forward ? "forward" : "");
    for (uint32_t i = 0; i < VKT_MAX_IN; i++)
        if (p->what.grads >> i & 1) n += (size_t)snprintf(p->name + n, sizeof p->name - n, "%sd%u", n ? "+" : "", i);
}

/* Sets timed[i] to whether the time of the phase (verify.h) includes the time of node i. */
static void find_timed(const vkt_subject *s, const bench_phase *p, bool *timed)
{
    vkt_find_live(s->g, timed);
    for (size_t i = 0; i < s->g->n_nodes; i++)
        timed[i] = timed[i] && (i < s->n_forward) == p->what.forward && !s->g->nodes[i]->op->prologue &&
                   !bench_is_free(s->g->nodes[i]);
}

/* Finds the phases of a case: the forward pass, and the gradient of each input that has one. Gradients that the same
 * nodes compute (for instance of weight and bias of a convolution) are one phase. */
static vkt_result find_phases(vkt_subject *s, bench_phase *list, uint32_t *n)
{
    const size_t nodes = s->g->n_nodes;
    bool *sets = calloc(MAX_PHASES * nodes, sizeof *sets);
    if (!sets) return VKT_E_NOMEM;
    list[0] = (bench_phase){ .what.forward = true };
    *n = 1;
    for (uint32_t i = 0; i < VKT_MAX_IN; i++) {
        if (!s->din[i].t.id) continue;
        const bench_phase p = { .what.grads = 1u << i };
        vkt_phase_apply(s, p.what);
        find_timed(s, &p, sets + *n * nodes);
        uint32_t same = 1;
        while (same < *n && memcmp(sets + same * nodes, sets + *n * nodes, nodes * sizeof *sets) != 0) same++;
        if (same < *n)
            list[same].what.grads |= p.what.grads;
        else
            list[(*n)++] = p;
    }
    free(sets);
    for (uint32_t i = 0; i < *n; i++) phase_name(&list[i]);
    return VKT_OK;
}

/* ---- one phase with one variant ---- */

typedef struct experiment {
    bench *b;
    const vkt_op *op;
    const vkt_case *c;
    vkt_subject *s;
    const bench_phase *phase;
    bool *timed;
    vkt_store *store;
    bench_job job;
} experiment;

/* Returns whether `word` is in `list`. Single spaces separate the words of `list`. */
static bool is_listed(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0)) return true;
    return false;
}

static void describe_kernels(const experiment *x, bench_result *r)
{
    const vkt_program *p = x->job.programs[0];
    size_t n = 0;
    for (size_t i = 0; i < p->lowered.n && n < sizeof r->kernels; i++) {
        if (!x->timed[p->lowered.list[i].node]) continue;
        const char *name = vkt_kernel_get((vkt_kernel_id)p->lowered.list[i].kernel)->name;
        if (!is_listed(r->kernels, name))
            n += (size_t)snprintf(r->kernels + n, sizeof r->kernels - n, "%s%s", n ? " " : "", name);
    }
}

/* Finds the variants that the timed nodes use. Writes their names to r->variant, each name once. *taken: the set of
 * these variants. *usable: the set of all variants that the nodes could use. */
static void describe_picks(const experiment *x, bench_result *r, uint64_t *usable, uint64_t *taken)
{
    const vkt_emit *e = &x->job.programs[0]->lowered;
    size_t n = 0;
    *usable = *taken = 0;
    for (size_t i = 0; i < e->n_picked; i++) {
        if (!x->timed[e->picked[i].node]) continue;
        *usable |= e->picked[i].usable;
        *taken |= (uint64_t)1 << e->picked[i].variant;
    }
    for (int v = 0; v < VKT_V_COUNT && n < sizeof r->variant; v++)
        if (*taken >> v & 1)
            n += (size_t)snprintf(r->variant + n, sizeof r->variant - n, "%s%s", n ? "+" : "",
                                  vkt_variant_name((vkt_variant)v));
}

static void destroy_programs(experiment *x)
{
    for (uint32_t i = 0; i < x->job.n; i++) vkt_program_destroy(&x->job.programs[i]);
    x->job.n = 0;
}

static vkt_result add_program(experiment *x)
{
    vkt_ctx *ctx = x->b->ctx;
    const vkt_program_params params = { .name = x->op->name, .profile = ctx->timestamp_period_ns != 0 };
    VKT_TRY(vkt_program_create(ctx, x->s->g, x->store, &params, &x->job.programs[x->job.n]));
    x->job.n++;
    return VKT_OK;
}

static vkt_result make_copies(experiment *x, bench_result *r)
{
    const vkt_plan *plan = &x->job.programs[0]->plan;
    r->working_bytes = plan->packed_bytes + plan->const_bytes + plan->input_bytes;
    r->copies = bench_copies(x->b->ctx, r->working_bytes);
    while (x->job.n < r->copies) VKT_TRY(add_program(x));
    for (uint32_t i = 0; i < x->job.n; i++) VKT_TRY(vkt_phase_write(x->job.programs[i], x->s));
    return VKT_OK;
}

static void count_cost(const experiment *x, bench_result *r)
{
    for (size_t i = 0; i < x->s->g->n_nodes; i++) {
        if (!x->timed[i]) continue;
        const vkt_cost cost = vkt_node_cost(x->s->g->nodes[i]);
        r->flops += cost.flops;
        r->bytes += cost.bytes;
    }
}

/* Verifies, measures and reports a phase, if the filter accepts the result's name. If the numbers are wrong, reports
 * the phase without a time. x->job.programs[0] must exist. */
static vkt_result measure(experiment *x, bench_result *r, uint64_t force)
{
    char name[320];
    if (!bench_wanted(x->b, bench_name(r, name))) return VKT_OK;
    bench_progress(x->b, name);
    describe_kernels(x, r);
    count_cost(x, r);
    const bench_verify_params v = { .op = x->op, .c = x->c, .phase = x->phase, .force = force };
    VKT_TRY(bench_verify(x->b->ctx, x->s, &v, r));
    if (r->check != BENCH_WRONG) {
        VKT_TRY(make_copies(x, r));
        x->job.run = x->s->run;
        x->job.timed = x->timed;
        x->job.min_ns = x->b->o->min_ns;
        VKT_TRY(bench_measure(&x->job, &r->gpu, &r->wall));
    }
    return bench_report(x->b, r);
}

/* Measures the phase. `force` is 1 << v for the variant v to use; 0: the variants that the ops prefer. If the phase
 * cannot use variant v, nothing is measured. *others: the set of the usable variants that the phase did not use. */
static vkt_result run_variant(experiment *x, bench_result r, uint64_t force, uint64_t *others)
{
    vkt_limits *lim = &x->b->ctx->limits;
    uint64_t usable, taken;
    r.preferred = force == 0;
    lim->choices.force = force;
    vkt_result status = add_program(x);
    bool ran = false;
    if (status == VKT_OK) {
        for (size_t i = 0; i < x->job.programs[0]->lowered.n; i++)
            ran |= x->timed[x->job.programs[0]->lowered.list[i].node];
        describe_picks(x, &r, &usable, &taken);
        *others = usable & ~taken;
        if (ran && (taken & force) == force) status = measure(x, &r, force);
    }
    destroy_programs(x);
    lim->choices.force = 0;
    return status;
}

static vkt_result run_phase(experiment *x, const bench_result *proto)
{
    bench_result r = *proto;
    uint64_t others = 0, ignored;
    snprintf(r.phase, sizeof r.phase, "%s", x->phase->name);
    vkt_phase_apply(x->s, x->phase->what);
    x->timed = calloc(x->s->g->n_nodes + 1, sizeof *x->timed); /* + 1: a program may add a node */
    if (!x->timed) return VKT_E_NOMEM;
    find_timed(x->s, x->phase, x->timed);
    const uint64_t only = x->b->o->variant;
    vkt_result status = VKT_OK;
    /* A phase without timed nodes, for instance of reshape, has no time to measure. */
    if (memchr(x->timed, true, x->s->g->n_nodes)) status = run_variant(x, r, only, &others);
    for (int v = 0; v < VKT_V_COUNT && status == VKT_OK && !only && !x->b->o->preferred; v++)
        if (others >> v & 1) status = run_variant(x, r, (uint64_t)1 << v, &ignored);
    free(x->timed);
    return status;
}

/* ---- one case ---- */

static vkt_result run_phases(bench *b, const vkt_op *op, const vkt_case *c, vkt_subject *s)
{
    bench_phase phases[MAX_PHASES];
    uint32_t n;
    bench_result r = { .kind = BENCH_OP };
    snprintf(r.op, sizeof r.op, "%s", op->name);
    vkt_case_text(&b->ctx->host, op, c, r.shape);
    VKT_TRY(find_phases(s, phases, &n));
    experiment x = { .b = b, .op = op, .c = c, .s = s };
    if (s->g->n_params) {
        VKT_TRY(vkt_store_create(b->ctx, s->g, &x.store));
        VKT_TRY(vkt_store_set_clock(x.store, s->t, s->key));
    }
    vkt_result status = VKT_OK;
    for (uint32_t i = 0; i < n && status == VKT_OK; i++) {
        x.phase = &phases[i];
        status = run_phase(&x, &r);
    }
    vkt_store_destroy(&x.store);
    return status;
}

/* Tries the name of the result without a variant, with each variant, and with each pair of variants. Returns whether
 * the filter accepts one of these names. Changes r->variant. */
static bool accepts(const bench *b, bench_result *r)
{
    char name[320];
    *r->variant = '\0';
    if (bench_wanted(b, bench_name(r, name))) return true;
    for (int second = 0; second < VKT_V_COUNT; second++)
        for (int first = 0; first <= second; first++) {
            const bool two = first < second;
            snprintf(r->variant, sizeof r->variant, "%s%s%s", two ? vkt_variant_name((vkt_variant)first) : "",
                     two ? "+" : "", vkt_variant_name((vkt_variant)second));
            if (bench_wanted(b, bench_name(r, name))) return true;
        }
    return false;
}

/* Sets *could to whether the filter accepts a name that a result of the case may get (see `accepts`). Builds only the
 * graph of the case, and generates no inputs. */
static vkt_result could_match(const bench *b, const vkt_op *op, const vkt_case *c, bool *could)
{
    bench_phase phases[MAX_PHASES];
    bench_result result = { .kind = BENCH_OP };
    uint32_t n = 0;
    vkt_subject s;
    *could = !b->o->filter;
    if (*could) return VKT_OK;
    snprintf(result.op, sizeof result.op, "%s", op->name);
    vkt_case_text(&b->ctx->host, op, c, result.shape);
    vkt_result r = vkt_subject_graph_of_case(&b->ctx->host, &s, op, c);
    if (r == VKT_OK) r = find_phases(&s, phases, &n);
    vkt_subject_free(&s);
    for (uint32_t i = 0; r == VKT_OK && i < n && !*could; i++) {
        memcpy(result.phase, phases[i].name, sizeof result.phase);
        *could = accepts(b, &result);
    }
    return r;
}

/* Runs a case, if the filter could accept a result of it. A lost device, or no memory, ends the whole run. Another
 * error ends only this case. */
static vkt_result run_case(bench *b, const vkt_op *op, const vkt_case *c, uint64_t seed)
{
    char shape[160], name[320];
    vkt_case_text(&b->ctx->host, op, c, shape);
    snprintf(name, sizeof name, "%s %s", op->name, shape);
    bool could;
    vkt_result r = could_match(b, op, c, &could);
    if (r == VKT_OK && !could) return VKT_OK;
    vkt_subject s = { .seed = 0 };
    if (r == VKT_OK) r = vkt_subject_of_case(&b->ctx->host, &s, op, c, seed);
    if (r == VKT_OK) r = run_phases(b, op, c, &s);
    vkt_subject_free(&s);
    if (r == VKT_OK || r == VKT_E_NOMEM || r == VKT_E_DEVICE_LOST) return r;
    complain("%s: %s", name, vkt_result_text(r));
    b->failed++;
    return VKT_OK;
}

static vkt_result run_samples(bench *b)
{
    enum { SAMPLES = 3 };
    for (size_t i = 0; vkt_ops[i]; i++)
        for (uint64_t seed = 1; seed <= SAMPLES && vkt_ops[i]->sample; seed++) {
            vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 0, 0);
            vkt_case c = { .n_in = 0 };
            vkt_ops[i]->sample(&r, &c);
            VKT_TRY(run_case(b, vkt_ops[i], &c, seed));
        }
    return VKT_OK;
}

static vkt_result run_line(bench *b, const char *line)
{
    const vkt_op *op;
    vkt_case c;
    VKT_TRY(bench_case_parse(&b->ctx->host, line, &op, &c));
    return op ? run_case(b, op, &c, 1) : VKT_OK;
}

static vkt_result run_file(bench *b, const char *path)
{
    void *text;
    size_t n;
    vkt_result r = vkt_file_read(&b->ctx->host, path, 1 << 20, &text, &n);
    if (r != VKT_OK) return r;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line && r == VKT_OK; line = strtok_r(NULL, "\n", &rest))
        r = run_line(b, line);
    vkt_free(&b->ctx->host, text);
    return r;
}

vkt_result bench_run_ops(bench *b)
{
    static const struct {
        bench_sizes set;
        const char *line;
    } lines[] = {
#define BENCH_SIZE(set, line) { BENCH_SIZES_##set, line },
#include "bench/sizes.def"
#undef BENCH_SIZE
    };
    if (b->o->shapes) return run_file(b, b->o->shapes);
    if (b->o->sizes == BENCH_SIZES_SMALL) return run_samples(b);
    for (size_t i = 0; i < VKT_COUNT(lines); i++)
        if (lines[i].set == b->o->sizes) VKT_TRY(run_line(b, lines[i].line));
    return VKT_OK;
}
