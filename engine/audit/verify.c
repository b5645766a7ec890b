/* audit/verify.c - see verify.h. */
#include "audit/verify.h"

#include <math.h>
#include <stdio.h>

void vkt_phase_apply(vkt_subject *s, vkt_phase p)
{
    for (uint32_t i = 0; i < VKT_MAX_OUT; i++)
        if (s->out[i].t.id) s->g->values[s->out[i].t.id].keep = p.forward;
    for (uint32_t i = 0; i < VKT_MAX_IN; i++)
        if (s->din[i].t.id) s->g->values[s->din[i].t.id].keep = p.grads >> i & 1;
}

static vkt_result write_side(vkt_program *p, const vkt_subject *s, const vkt_side *v)
{
    const uint64_t bytes = vkt_side_count(v) * vkt_dtype_bytes(v->ref.dtype);
    return v->t.id && p->inputs[vkt_root(s->g, v->t)] ? vkt_program_write(p, v->t, v->data, bytes) : VKT_OK;
}

vkt_result vkt_phase_write(vkt_program *p, const vkt_subject *s)
{
    for (uint32_t i = 0; i < VKT_MAX_IN; i++) VKT_TRY(write_side(p, s, &s->in[i]));
    for (uint32_t i = 0; i < VKT_MAX_OUT; i++) VKT_TRY(write_side(p, s, &s->dout[i]));
    return VKT_OK;
}

/* Compares `got`, the elements that the device computed, with their reference side->ref (check/subject.h). If the worst
 * error / tolerance is NaN or above *excess, stores it in *excess. If the worst error / tolerance is NaN or above 1,
 * also logs the element and sets v->wrong. */
static void compare(const vkt_subject *s, const vkt_side *side, const void *got, const char *what, vkt_verdict *v,
                    double *excess)
{
    const size_t n = vkt_side_count(side);
    vkt_worst w = { .at = 0 };
    if (side->ref.u) {
        const uint32_t *u = got;
        for (size_t i = 0; i < n && w.excess == 0; i++)
            if (u[i] != side->ref.u[i]) w = (vkt_worst){ i, INFINITY, 0 };
    } else {
        w = vkt_worst_of(got, side->ref.f, n, (double)s->op->rel_tol, (double)s->op->abs_tol);
    }
    if (!(w.excess <= *excess) && !isnan(*excess)) *excess = w.excess; /* a NaN stays */
    if (w.excess <= 1) return;
    char index[80], fault[sizeof v->fault];
    const double value = side->ref.u ? ((const uint32_t *)got)[w.at] : (double)((const float *)got)[w.at];
    snprintf(fault, sizeof fault, "%s%s is %.9g, the reference %.9g; allowed: %.3g", what,
             vkt_index_text(side->ref.shape, w.at, index), value, vkt_side_get(side, w.at), w.allowed);
    vkt_log_line(&s->host, VKT_LOG_ERROR, "%s %s: %s", s->op->name, s->c.text, fault);
    if (!v->wrong) memcpy(v->fault, fault, sizeof fault);
    v->wrong = true;
}

static vkt_result read_and_compare(vkt_program *p, const vkt_subject *s, const vkt_side *side, const char *what,
                                   vkt_verdict *v, double *excess)
{
    const uint64_t bytes = vkt_side_count(side) * 4;
    void *got = vkt_alloc(&s->host, bytes);
    if (!got) return vkt_fail_nomem(&s->host, what, bytes);
    const vkt_result status = vkt_program_read(p, side->t, got, bytes);
    if (status == VKT_OK) compare(s, side, got, what, v, excess);
    vkt_free(&s->host, got);
    return status;
}

static vkt_result run_and_compare(vkt_program *p, vkt_subject *s, vkt_phase phase, vkt_verdict *v)
{
    char what[24];
    VKT_TRY(vkt_phase_write(p, s));
    VKT_TRY(vkt_program_run(p, &s->run, NULL));
    if (phase.forward) vkt_subject_forward(s);
    if (phase.grads) vkt_subject_backward(s);
    for (uint32_t i = 0; i < s->ref->n_out && phase.forward; i++) {
        snprintf(what, sizeof what, "output %u", i);
        if (s->out[i].t.id) VKT_TRY(read_and_compare(p, s, &s->out[i], what, v, &v->forward));
    }
    for (uint32_t i = 0; i < VKT_MAX_IN; i++) {
        if (!(phase.grads >> i & 1) || !s->din[i].t.id) continue;
        snprintf(what, sizeof what, "d%u", i);
        v->grads |= 1u << i;
        VKT_TRY(read_and_compare(p, s, &s->din[i], what, v, &v->grad[i]));
    }
    return VKT_OK;
}

vkt_result vkt_verify(vkt_ctx *ctx, vkt_subject *s, vkt_phase phase, uint64_t force, vkt_verdict *v)
{
    vkt_store *store = NULL;
    vkt_program *p = NULL;
    vkt_result status = VKT_OK;
    *v = (vkt_verdict){ .forward = 0 };
    vkt_phase_apply(s, phase);
    if (s->g->n_params) status = vkt_store_create(ctx, s->g, &store);
    if (store) status = vkt_store_set_clock(store, s->t, s->key);
    const uint64_t before = ctx->limits.choices.force;
    ctx->limits.choices.force = force;
    if (status == VKT_OK) status = vkt_program_create(ctx, s->g, store, NULL, &p);
    ctx->limits.choices.force = before;
    if (status == VKT_OK) status = run_and_compare(p, s, phase, v);
    vkt_program_destroy(&p);
    vkt_store_destroy(&store);
    return status;
}
