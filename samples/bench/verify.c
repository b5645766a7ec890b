/* bench/verify.c - see verify.h. */
#include "bench/verify.h"

#include <math.h>
#include <stdio.h>

#include "bench/case.h"
#include "record/record.h"

/* The reference does some 3e8 operations a second. */
#define MOST_FLOPS 4e8

void bench_phase_apply(vkt_subject *s, const bench_phase *p)
{
    for (uint32_t i = 0; i < VKT_MAX_OUT; i++)
        if (s->out[i].t.id) s->g->values[s->out[i].t.id].keep = p->forward;
    for (uint32_t i = 0; i < VKT_MAX_IN; i++)
        if (s->din[i].t.id) s->g->values[s->din[i].t.id].keep = p->grads >> i & 1;
}

static vkt_result write_side(vkt_program *p, const vkt_subject *s, const vkt_side *v)
{
    const uint64_t bytes = vkt_side_count(v) * vkt_dtype_bytes(v->ref.dtype);
    return v->t.id && p->inputs[vkt_root(s->g, v->t)] ? vkt_program_write(p, v->t, v->data, bytes) : VKT_OK;
}

vkt_result bench_write_inputs(vkt_program *p, const vkt_subject *s)
{
    for (uint32_t i = 0; i < VKT_MAX_IN; i++) VKT_TRY(write_side(p, s, &s->in[i]));
    for (uint32_t i = 0; i < VKT_MAX_OUT; i++) VKT_TRY(write_side(p, s, &s->dout[i]));
    return VKT_OK;
}

/* ---- comparing ---- */

static void compare(const vkt_subject *s, const vkt_side *v, const void *got, const char *what, bench_result *r)
{
    const size_t n = vkt_side_count(v);
    vkt_worst w = { .at = 0 };
    if (v->ref.u) {
        const uint32_t *u = got;
        for (size_t i = 0; i < n && w.excess == 0; i++)
            if (u[i] != v->ref.u[i]) w = (vkt_worst){ i, INFINITY, 0 };
    } else {
        w = vkt_worst_of(got, v->ref.f, n, (double)s->op->rel_tol, (double)s->op->abs_tol);
    }
    if (!(w.excess <= r->excess)) r->excess = w.excess;
    if (w.excess <= 1) return;
    r->check = BENCH_WRONG;
    const double value = v->ref.u ? ((const uint32_t *)got)[w.at] : (double)((const float *)got)[w.at];
    vkt_say(&s->host, VKT_LOG_ERROR, "%s %s: element %zu of %s is %.9g, the reference %.9g; allowed: %.3g", s->op->name,
            s->c.text, w.at, what, value, vkt_side_get(v, w.at), w.allowed);
}

static vkt_result read_and_compare(vkt_program *p, const vkt_subject *s, const vkt_side *v, const char *what,
                                   bench_result *r)
{
    const uint64_t bytes = vkt_side_count(v) * 4;
    void *got = vkt_alloc(&s->host, bytes);
    if (!got) return vkt_fail_nomem(&s->host, what, bytes);
    const vkt_result status = vkt_program_read(p, v->t, got, bytes);
    if (status == VKT_OK) compare(s, v, got, what, r);
    vkt_free(&s->host, got);
    return status;
}

static vkt_result run_and_compare(vkt_program *p, vkt_subject *s, const bench_phase *phase, bench_result *r)
{
    char what[24];
    VKT_TRY(bench_write_inputs(p, s));
    VKT_TRY(vkt_program_run(p, &s->run, NULL));
    if (phase->forward)
        vkt_subject_forward(s);
    else
        vkt_subject_backward(s);
    for (uint32_t i = 0; i < s->ref->n_out && phase->forward; i++) {
        snprintf(what, sizeof what, "output %u", i);
        if (s->out[i].t.id) VKT_TRY(read_and_compare(p, s, &s->out[i], what, r));
    }
    for (uint32_t i = 0; i < VKT_MAX_IN; i++) {
        snprintf(what, sizeof what, "d%u", i);
        if (phase->grads >> i & 1) VKT_TRY(read_and_compare(p, s, &s->din[i], what, r));
    }
    return VKT_OK;
}

/* On a program and a store of its own, so that clocks and values in place start where the reference does. */
static vkt_result verify_subject(vkt_ctx *ctx, vkt_subject *s, const bench_phase *phase, uint64_t force,
                                 bench_result *r)
{
    vkt_store *store = NULL;
    vkt_program *p = NULL;
    vkt_result status = VKT_OK;
    bench_phase_apply(s, phase);
    if (s->g->n_params) status = vkt_store_create(ctx, s->g, &store);
    if (store) status = vkt_store_set_clock(store, s->t, s->key);
    const uint64_t before = ctx->limits.choices.force;
    ctx->limits.choices.force = force;
    if (status == VKT_OK) status = vkt_program_create(ctx, s->g, store, NULL, &p);
    ctx->limits.choices.force = before;
    if (status == VKT_OK) status = run_and_compare(p, s, phase, r);
    vkt_program_destroy(&p);
    vkt_store_destroy(&store);
    return status;
}

/* ---- how much of it ---- */

static double total_flops(const vkt_subject *s, bool forward)
{
    double flops = 0;
    for (uint32_t i = 0; i < s->g->n_nodes; i++)
        if ((i < s->n_forward) == forward) flops += vkt_node_cost(s->g->nodes[i]).flops;
    return flops;
}

vkt_result bench_verify(vkt_ctx *ctx, vkt_subject *s, const bench_verify_params *v, bench_result *r)
{
    r->excess = 0;
    r->check = BENCH_CHECKED;
    if (total_flops(s, v->phase->forward) <= MOST_FLOPS) return verify_subject(ctx, s, v->phase, v->force, r);
    r->check = BENCH_CHECKED_CUT;
    vkt_case c = *v->c;
    vkt_subject cut;
    vkt_result status = VKT_OK;
    for (bool fits = false; !fits && status == VKT_OK;) {
        if (!bench_case_halve(&c)) return vkt_fail(&s->host, VKT_E_STATE, "%s: no smaller case", v->op->name);
        status = vkt_subject_of_case(&s->host, &cut, v->op, &c, s->seed);
        fits = status == VKT_OK && total_flops(&cut, v->phase->forward) <= MOST_FLOPS;
        if (fits) status = verify_subject(ctx, &cut, v->phase, v->force, r);
        vkt_subject_free(&cut);
    }
    return status;
}
