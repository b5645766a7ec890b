/* ops/step/publish.c - a copy of the parameters for other programs, `published`. The copy changes only when a step is
 * complete. Inputs: published, param, groups or null, step. The op updates published in place.
 *
 * published = decay published + (1 - decay) param
 *
 * But published = param in three cases: at the first completed step; always, if decay is 0; and in blocks that the
 * table of groups (abi/update.abi.h) marks as frozen. These blocks have frozen parameters or running statistics. A run
 * that completes no step changes nothing. */
#include "ops/ops.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/publish.abi.h"

enum { IN_PUBLISHED = 0, IN_PARAM, IN_GROUPS, IN_STEP };

static vkt_result infer(vkt_infer *f)
{
    const vkt_value *p = vkt_in(f, IN_PUBLISHED), *q = vkt_in(f, IN_PARAM), *table = vkt_in(f, IN_GROUPS);
    const uint64_t elements = vkt_shape_elements(p->shape), blocks = (elements + UPDATE_BLOCK - 1) / UPDATE_BLOCK;
    const double decay = ((const vkt_publish_attr *)f->n->attr)->decay;
    char want[80], got[80];
    VKT_REQUIRE(f, decay >= 0 && decay < 1, VKT_E_ARG, "publish: want a decay in [0,1), got %g", decay);
    VKT_REQUIRE(f, p->dtype == VKT_F32 && q->dtype == VKT_F32 && (!vkt_has(f, IN_GROUPS) || table->dtype == VKT_F32),
                VKT_E_DTYPE, "publish: want all of it f32, got %s and %s", vkt_dtype_name(p->dtype),
                vkt_dtype_name(q->dtype));
    VKT_REQUIRE(
        f, p->layout == VKT_ROWS && q->layout == VKT_ROWS && elements % 4 == 0 && vkt_shape_equal(p->shape, q->shape),
        VKT_E_SHAPE, "publish: want two arenas of whole vec4s by rows, got %s and %s", vkt_shape_text(p->shape, want),
        vkt_shape_text(q->shape, got));
    VKT_REQUIRE(f, !vkt_has(f, IN_GROUPS) || vkt_shape_equal(table->shape, vkt_shape2((uint32_t)blocks, 2)),
                VKT_E_SHAPE, "publish: want groups (%llu,2), got %s", (unsigned long long)blocks,
                vkt_shape_text(table->shape, got));
    vkt_out_alias(f, IN_PUBLISHED, VKT_ROWS, p->shape);
    return VKT_OK;
}

static void emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_publish_attr *a = n->attr;
    const uint64_t total = vkt_node_in(n, IN_PARAM)->bytes, most = vkt_bind_range_bytes(e->lim);
    const uint32_t lanes = vkt_lanes(e->lim, e->lim->traits->lanes_update);
    const vkt_tensor table = n->in[IN_GROUPS];
    for (uint64_t at = 0; at < total; at += most) {
        const uint64_t bytes = VKT_MIN(total - at, most),
                       blocks = vkt_round_up(bytes, 4 * UPDATE_BLOCK) / 4 / UPDATE_BLOCK;
        const vkt_bind range = { n->in[IN_PUBLISHED], at, bytes };
        vkt_publish_push pc = { .n4 = (uint32_t)(bytes / 16), .decay = (float)a->decay, .rest = (float)(1 - a->decay) };
        vkt_bind groups = VKT_WHOLE(n->in[IN_STEP]); /* any buffer: without a table, the kernel does not read it */
        if (table.id) groups = vkt_bind_range(e, table, 2 * (at / 4 / UPDATE_BLOCK), 2 * blocks, &pc.block);
        pc.block /= 2;
        const vkt_bind bind[] = { [PUBLISH_PARAM] = { n->in[IN_PARAM], at, bytes },
                                  [PUBLISH_OLD] = range,
                                  [UPDATE_STEP] = VKT_WHOLE(n->in[IN_STEP]),
                                  [UPDATE_GROUPS] = groups,
                                  [PUBLISH_NEW] = range };
        const uint32_t spec[] = { lanes, [UPDATE_SPEC_GROUPS] = table.id != 0, [PUBLISH_SPEC_AVERAGE] = a->decay != 0 };
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_PUBLISH,
                                           VKT_LAUNCH_BIND(bind),
                                           VKT_LAUNCH_PUSH(pc),
                                           VKT_LAUNCH_SPEC(spec),
                                           .groups = { VKT_MIN(vkt_groups(pc.n4, lanes, e->lim->traits->items_update),
                                                               e->lim->traits->groups_flat_most),
                                                       1, 1 } });
    }
}

/* Generates parameters of one sign and similar magnitude, so that terms of a sum do not cancel. */
static void sample(vkt_rng *r, vkt_case *c)
{
    const vkt_shape s = vkt_shape1(4 * vkt_rng_range(r, 1, 1500));
    const vkt_publish_attr a = { vkt_rng_range(r, 0, 3) ? (double)vkt_rng_uniform(r, 0, 0.9999f) : 0 };
    const float lo = vkt_rng_range(r, 0, 1) ? 0.5f : -2;
    for (int i = 0; i < 2; i++) vkt_case_f32(c, VKT_ROWS, s, lo, lo + 1.5f);
    if (vkt_rng_range(r, 0, 1)) /* a fifth of the blocks are frozen: their factor of the learning rate is negative */
        vkt_case_f32(c, VKT_ROWS, vkt_shape2(vkt_div_up(s.dim[0], UPDATE_BLOCK), 2), -0.25f, 1);
    else
        vkt_case_absent(c);
    vkt_case_attr(c, &a, sizeof a);
}

static double flops(const vkt_node *n)
{
    const vkt_publish_attr *a = n->attr;
    return a->decay != 0 ? 3 * vkt_elements_in(n, IN_PARAM) : 0;
}

static const vkt_field fields[] = { VKT_FIELD(vkt_publish_attr, decay, F64, 1, 0), { .name = NULL } };

const vkt_op vkt_op_publish = {
    .name = "publish",
    .min_in = 2,
    .max_in = 3,
    .uses_step = true,
    .side_effect = true,
    .attr_bytes = sizeof(vkt_publish_attr),
    .infer = infer,
    .emit = emit,
    .sample = sample,
    .rel_tol = 4e-7f,
    .tol_why = "a sum of two rounded to 2^-24, and a difference of at most 1.5 that three roundings have been through, "
               "at most half of it: against results from 0.5 on, 2^-24 (1 + 3 * 1.5 / 2 / 0.5) = 3.3e-7",
    .flops = flops,
    .fields = fields,
    .formula = "published = decay published + (1 - decay) param, by completed steps",
};

static vkt_result publish(vkt_graph *g, double decay)
{
    VKT_TRY(g->status);
    if (!g->has_optimizer)
        return vkt_fail(&g->host, VKT_E_STATE, "publish: want completed steps; call vkt_update first");
    if (g->has_publish) return vkt_fail(&g->host, VKT_E_STATE, "publish: this graph publishes already");
    g->has_publish = true;
    const vkt_tensor in[] = { vkt_graph_arena(g, VKT_ROLE_PUBLISHED), vkt_graph_arena(g, VKT_ROLE_PARAM), g->groups };
    vkt_apply(g, &vkt_op_publish, in, VKT_COUNT(in), &(vkt_publish_attr){ decay }, NULL);
    return g->status;
}

vkt_result vkt_publish(vkt_graph *g, double decay)
{
    VKT_WANT(NULL, g);
    const vkt_result r = publish(g, decay);
    if (r != VKT_OK) vkt_graph_error(g, r);
    return r;
}
