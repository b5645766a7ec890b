/* bench/verify.c - see verify.h. */
#include "bench/verify.h"

#include <math.h>

#include "bench/case.h"

/* A case with more floating-point operations than this is checked with smaller dimensions, because the reference
 * computes only about 3e8 operations a second. */
#define MAX_FLOPS 4e8
/* A case with a larger dimension is checked with smaller dimensions, too. The tolerance of an op is a share of the
 * result. It is meant for sums as long as those of the op's random cases. In a sum of a million numbers of both signs,
 * the rounding errors may exceed it, because the numbers cancel. */
#define MAX_LENGTH (1u << 17)

static vkt_result verify_subject(vkt_ctx *ctx, vkt_subject *s, const bench_phase *phase, uint64_t force,
                                 bench_result *r)
{
    vkt_verdict v;
    VKT_TRY(vkt_verify(ctx, s, phase->what, force, &v));
    r->excess = v.forward;
    for (uint32_t i = 0; i < VKT_MAX_IN; i++)
        if (!(v.grad[i] <= r->excess) && !isnan(r->excess)) r->excess = v.grad[i]; /* a NaN stays */
    if (v.wrong) r->check = BENCH_WRONG;
    return VKT_OK;
}

/* ---- smaller cases ---- */

static double total_flops(const vkt_subject *s, bool forward)
{
    double flops = 0;
    for (uint32_t i = 0; i < s->g->n_nodes; i++)
        if ((i < s->n_forward) == forward) flops += vkt_node_cost(s->g->nodes[i]).flops;
    return flops;
}

static bool is_small(const vkt_subject *s, const vkt_case *c, bool forward)
{
    for (uint32_t i = 0; i < c->n_in; i++)
        for (uint32_t k = 0; k < c->in[i].shape.rank; k++)
            if (c->in[i].shape.dim[k] > MAX_LENGTH) return false;
    return total_flops(s, forward) <= MAX_FLOPS;
}

vkt_result bench_verify(vkt_ctx *ctx, vkt_subject *s, const bench_verify_params *v, bench_result *r)
{
    r->excess = 0;
    r->check = BENCH_CHECKED;
    if (is_small(s, v->c, v->phase->what.forward)) return verify_subject(ctx, s, v->phase, v->force, r);
    r->check = BENCH_CHECKED_REDUCED;
    vkt_case c = *v->c;
    vkt_subject reduced;
    vkt_result status = VKT_OK;
    for (bool fits = false; !fits && status == VKT_OK;) {
        if (!vkt_case_halve(v->op, &c)) return vkt_fail(&s->host, VKT_E_STATE, "%s: no smaller case", v->op->name);
        status = vkt_subject_of_case(&s->host, &reduced, v->op, &c, s->seed);
        fits = status == VKT_OK && is_small(&reduced, &c, v->phase->what.forward);
        if (fits) status = verify_subject(ctx, &reduced, v->phase, v->force, r);
        vkt_subject_free(&reduced);
    }
    return status;
}
