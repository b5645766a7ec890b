/* audit/audit.c - see vktrain/audit.h. */
#include "vktrain/audit.h"

#include <math.h>
#include <stdio.h>

#include "audit/custom.h"
#include "audit/verify.h"
#include "check/case.h"
#include "check/differences.h"

_Static_assert(VKT_AUDIT_INPUTS == VKT_MAX_IN, "an entry has room for every input");

enum { RANDOM_CASES = 3, ELEMENTS = 4 /* how many elements of each gradient are checked by difference quotients */ };
enum { ELEMENTS_ON_DEVICE = 16 /* like ELEMENTS, but for an op that the application defines */ };
#define MAX_COST 3e8 /* default of vkt_audit_params.max_cost: the largest cost of a case (vkt_case_cost) */
/* The largest cost of a case that difference quotients check. It is smaller than MAX_COST, because for each input
 * difference quotients need 3 * ELEMENTS forward passes. */
#define DIFFERENCES_COST 1.2e7

typedef struct audit {
    vkt_ctx *ctx;
    vkt_host host, quiet; /* host: the context's host; quiet: the same host without messages */
    vkt_audit_params p;   /* with all defaults filled in */
    vkt_audit_totals *out;
} audit;

static audit begin(vkt_ctx *ctx, const vkt_audit_params *params, vkt_audit_totals *out)
{
    audit a = { .ctx = ctx, .host = vkt_ctx_host(ctx), .quiet = vkt_ctx_host(ctx), .out = out };
    a.quiet.log_level = VKT_LOG_NONE;
    if (params) a.p = *params;
    if (a.p.seed == 0) a.p.seed = 1;
    if (!(a.p.max_cost > 0)) a.p.max_cost = MAX_COST;
    return a;
}

static bool ends_it(vkt_result r)
{
    return r == VKT_E_NOMEM || r == VKT_E_DEVICE_LOST;
}

/* Makes the case smaller until the reference's cost is at most `most`. Sets *was_reduced if it changes the case.
 * Returns false if the case cannot be made small enough. */
static bool reduce(const audit *a, const vkt_op *op, vkt_case *c, double most, bool *was_reduced)
{
    double cost, less_cost;
    while (vkt_case_cost(&a->quiet, op, c, &cost) == VKT_OK && cost > most) {
        vkt_case less = *c;
        if (!vkt_case_halve_batch(&less) || vkt_case_cost(&a->quiet, op, &less, &less_cost) != VKT_OK) {
            less = *c;
            if (!vkt_case_halve(op, &less) || vkt_case_cost(&a->quiet, op, &less, &less_cost) != VKT_OK) return false;
        }
        *c = less;
        *was_reduced = true;
    }
    return true;
}

/* ---- one case ---- */

typedef struct finding {
    vkt_audit_entry e;
    char text[160], fault[240];
} finding;

static vkt_result beside_the_reference(const audit *a, vkt_subject *s, finding *f)
{
    vkt_verdict v;
    const vkt_phase all = { .forward = true, .grads = UINT32_MAX };
    VKT_TRY(vkt_verify(a->ctx, s, all, a->ctx->limits.choices.force, &v));
    f->e.forward = v.forward;
    f->e.gradients = v.grads;
    memcpy(f->e.gradient, v.grad, sizeof v.grad);
    f->e.right = !v.wrong;
    memcpy(f->fault, v.fault, sizeof f->fault);
    return VKT_OK;
}

/* Compares the reference's gradients with difference quotients, on the case or a smaller one. Two kinds of cases are
 * replaced by a random case: a case that cannot be made small enough, and a case whose attributes stop a gradient, so
 * that the gradient is not the derivative (vkt_ref_op.is_stopped). Does nothing for an op without gradient. */
static vkt_result beside_differences(const audit *a, const vkt_op *op, const vkt_case *c, uint64_t seed, finding *f)
{
    vkt_differences d = { .tried = 0 };
    vkt_subject s = { .g = NULL };
    vkt_case small = *c;
    bool was_reduced = false;
    const vkt_ref_op *ref = vkt_ref_find(op->name);
    const bool stopped = ref && ref->is_stopped && ref->is_stopped(c->attr);
    if (!op->diff) return VKT_OK;
    vkt_result r = !stopped && reduce(a, op, &small, DIFFERENCES_COST, &was_reduced)
                       ? vkt_subject_of_case(&a->host, &s, op, &small, seed)
                       : vkt_subject_make(&a->host, &s, op, seed);
    if (r == VKT_OK) r = vkt_subject_differences(&s, ELEMENTS, &d);
    f->e.differences = d.tried - d.kinks;
    f->e.kinks = d.kinks;
    f->e.difference = d.excess;
    if (r == VKT_OK && !(d.excess <= 1)) {
        char index[80], text[sizeof f->fault];
        snprintf(text, sizeof text, "the reference's own gradient d%u%s is %.9g, the difference quotient %.9g", d.input,
                 vkt_index_text(s.din[d.input].ref.shape, d.at, index), d.got, d.quotient);
        vkt_log_line(&a->host, VKT_LOG_ERROR, "%s %s: %s", op->name, s.c.text, text);
        if (f->e.right) memcpy(f->fault, text, sizeof text);
        f->e.right = false;
    }
    vkt_subject_free(&s);
    return r;
}

/* Completes the entry with the status `r` of its case, adds the entry to the totals and passes it to on_entry. If `r`
 * is VKT_E_NOMEM or VKT_E_DEVICE_LOST, only returns `r`. Any other error becomes a part of the entry. */
static vkt_result deliver(const audit *a, const vkt_op *op, finding *f, vkt_result r)
{
    if (ends_it(r)) return r;
    if (r != VKT_OK) {
        f->e.right = false;
        snprintf(f->fault, sizeof f->fault, "it could not be run: %s", vkt_result_text(r));
    }
    f->e.op = op->name;
    f->e.text = f->text;
    f->e.fault = f->fault;
    f->e.status = r;
    a->out->cases++;
    a->out->nodes += f->e.times;
    a->out->reduced += f->e.reduced;
    a->out->sampled += f->e.sampled;
    a->out->failed += !f->e.right;
    if (a->p.on_entry) a->p.on_entry(a->p.user, &f->e);
    return VKT_OK;
}

/* Audits the case. The entry starts as a copy of `proto`, which says where the case comes from. Returns what
 * `deliver` returns. */
static vkt_result audit_case(const audit *a, const vkt_op *op, const vkt_case *c, uint64_t seed,
                             const vkt_audit_entry *proto)
{
    vkt_subject s;
    finding f = { .e = *proto };
    vkt_case_text(&a->host, op, c, f.text);
    vkt_result r = vkt_subject_of_case(&a->host, &s, op, c, seed);
    if (r == VKT_OK) r = beside_the_reference(a, &s, &f);
    vkt_subject_free(&s);
    if (r == VKT_OK) r = beside_differences(a, op, c, seed, &f);
    return deliver(a, op, &f, r);
}

static vkt_result audit_random(const audit *a, const vkt_op *op, uint64_t seed, const vkt_audit_entry *proto)
{
    vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 0, 0);
    vkt_case c = { .n_in = 0 };
    op->sample(&r, &c);
    return audit_case(a, op, &c, seed, proto);
}

/* ---- graphs ---- */

static vkt_result audit_node(const audit *a, const vkt_node *n, uint32_t times)
{
    vkt_case c;
    vkt_audit_entry e = { .name = n->n_out ? vkt_node_out(n, 0)->name : "", .node = n->index, .times = times };
    if (vkt_case_of_node(n, &c) && reduce(a, n->op, &c, a->p.max_cost, &e.reduced))
        return audit_case(a, n->op, &c, a->p.seed, &e);
    e.reduced = false;
    e.sampled = true;
    for (uint64_t i = 0; i < RANDOM_CASES; i++) {
        e.times = i == 0 ? times : 0;
        VKT_TRY(audit_random(a, n->op, a->p.seed + i, &e));
    }
    return VKT_OK;
}

/* Audits a node whose op the application defines. */
static vkt_result audit_custom(const audit *a, const vkt_node *n)
{
    vkt_custom_finding c;
    finding f = { .e = { .name = vkt_node_out(n, 0)->name, .node = n->index, .times = 1 } };
    const vkt_result r = vkt_audit_custom(a->ctx, n, a->p.seed, ELEMENTS_ON_DEVICE, &c);
    f.e.gradients = c.gradients;
    memcpy(f.e.gradient, c.gradient, sizeof c.gradient);
    f.e.differences = c.differences;
    f.e.kinks = c.kinks;
    for (uint32_t i = 0; i < VKT_AUDIT_INPUTS; i++)
        if (!(c.gradient[i] <= f.e.difference) && !isnan(f.e.difference)) f.e.difference = c.gradient[i];
    f.e.right = !c.fault[0];
    memcpy(f.text, c.text, sizeof f.text);
    memcpy(f.fault, c.fault, sizeof f.fault);
    return deliver(a, n->op, &f, r);
}

/* Returns the number of nodes with the same work as node `first`, or 0 if an earlier node has the same work. */
static uint32_t times_of(const uint64_t *keys, size_t n, size_t first)
{
    uint32_t times = 0;
    for (size_t i = 0; i < n; i++) {
        if (keys[i] != keys[first]) continue;
        if (i < first) return 0;
        times++;
    }
    return times;
}

static vkt_result audit_nodes(const audit *a, const vkt_graph *g, uint64_t *keys)
{
    for (size_t i = 0; i < g->n_nodes; i++) keys[i] = vkt_node_key(g->nodes[i]);
    for (size_t i = 0; i < g->n_nodes; i++) {
        const uint32_t times = times_of(keys, g->n_nodes, i);
        if (g->nodes[i]->op->custom)
            VKT_TRY(audit_custom(a, g->nodes[i]));
        else if (!g->nodes[i]->op->sample)
            a->out->parts++;
        else if (times)
            VKT_TRY(audit_node(a, g->nodes[i], times));
    }
    return VKT_OK;
}

vkt_result vkt_audit_graph(vkt_ctx *ctx, const vkt_graph *g, const vkt_audit_params *params, vkt_audit_totals *totals)
{
    VKT_WANT(NULL, ctx);
    VKT_WANT(&ctx->host, totals);
    const audit a = begin(ctx, params, totals);
    *totals = (vkt_audit_totals){ .nodes = 0 };
    VKT_TRY(vkt_graph_status(g));
    uint64_t *keys = vkt_alloc_array(&a.host, g->n_nodes, sizeof *keys);
    if (!keys && g->n_nodes) return vkt_fail_nomem(&a.host, "an audit", g->n_nodes * sizeof *keys);
    const vkt_result r = audit_nodes(&a, g, keys);
    vkt_free(&a.host, keys);
    return r == VKT_OK && totals->failed ? VKT_E_WRONG : r;
}

/* ---- ops ---- */

vkt_result vkt_audit_op(vkt_ctx *ctx, const char *name, uint64_t count, const vkt_audit_params *params,
                        vkt_audit_totals *totals)
{
    VKT_WANT(NULL, ctx);
    VKT_WANT(&ctx->host, name);
    VKT_WANT(&ctx->host, totals);
    const audit a = begin(ctx, params, totals);
    const uint32_t failed = totals->failed;
    char text[32];
    size_t i = 0;
    while (vkt_ops[i] && (!vkt_ops[i]->sample || strcmp(vkt_ops[i]->name, name) != 0)) i++;
    if (!vkt_ops[i]) return vkt_fail(&a.host, VKT_E_NOT_FOUND, "audit: there is no op '%s' with random cases", name);
    for (uint64_t k = 0; k < count; k++) {
        snprintf(text, sizeof text, "seed %llu", (unsigned long long)(a.p.seed + k));
        const vkt_audit_entry e = { .name = text, .times = 1 };
        VKT_TRY(audit_random(&a, vkt_ops[i], a.p.seed + k, &e));
    }
    return totals->failed > failed ? VKT_E_WRONG : VKT_OK;
}

const char *vkt_audit_op_name(uint32_t wanted)
{
    for (uint32_t i = 0, n = 0; vkt_ops[i]; i++)
        if (vkt_ops[i]->sample && n++ == wanted) return vkt_ops[i]->name;
    return NULL;
}
