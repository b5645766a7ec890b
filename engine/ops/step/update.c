/* ops/step/update.c - vkt_update, groups of parameters, and freezing. */
#include "ops/step/optimizer.h"

#include "abi/update.abi.h"

_Static_assert(UPDATE_BLOCK * sizeof(float) == VKT_ALIGN_BYTES, "each parameter starts at a block of its own");
_Static_assert((int)VKT_ROLE_PUBLISHED - (int)VKT_ROLE_PARAM == (int)VKT_PART_PUBLISHED &&
                   VKT_PART_PUBLISHED + 1 == VKT_ARENAS,
               "roles and parts of a store have one order");

/* ---- groups of parameters, and freezing ---- */

typedef struct mark {
    bool freeze;
    uint8_t group;
} mark;

static vkt_result mark_params(vkt_graph *g, const char *pattern, mark m, const char *what)
{
    size_t found = 0;
    for (size_t i = 0; i < g->n_params; i++) {
        vkt_value *v = &g->values[g->params[i]];
        if (v->state || !vkt_name_matches(pattern, v->name)) continue;
        found++;
        if (m.freeze)
            v->frozen = true;
        else
            v->group = m.group;
    }
    return found ? VKT_OK : vkt_fail(&g->host, VKT_E_NOT_FOUND, "%s: no parameter is named '%s'", what, pattern);
}

vkt_result vkt_set_group(vkt_graph *g, const char *pattern, uint32_t group)
{
    VKT_WANT(NULL, g);
    VKT_WANT(&g->host, pattern);
    vkt_result r = g->status;
    if (r == VKT_OK && g->has_optimizer) r = vkt_fail(&g->host, VKT_E_STATE, "set_group: call it before vkt_update");
    if (r == VKT_OK && group >= VKT_PARAM_GROUPS)
        r = vkt_fail(&g->host, VKT_E_ARG, "set_group: want a group below %d, got %u", VKT_PARAM_GROUPS, group);
    if (r == VKT_OK) r = mark_params(g, pattern, (mark){ .group = (uint8_t)(group + 1) }, "set_group");
    vkt_graph_error(g, r);
    return r;
}

vkt_result vkt_freeze(vkt_graph *g, const char *pattern)
{
    VKT_WANT(NULL, g);
    VKT_WANT(&g->host, pattern);
    vkt_result r = g->status;
    if (r == VKT_OK && g->arena[VKT_PART_GRADIENT].id)
        r = vkt_fail(&g->host, VKT_E_STATE, "freeze: parameters are frozen before vkt_backward");
    if (r == VKT_OK) r = mark_params(g, pattern, (mark){ .freeze = true }, "freeze");
    vkt_graph_error(g, r);
    return r;
}

/* Makes the table of groups (abi/update.abi.h). Returns {0} if every parameter is trained and in no group. In this
 * case all parameters have the same settings, so no table is needed. */
static vkt_tensor make_groups(vkt_graph *g)
{
    bool any = false;
    for (size_t i = 0; i < g->n_params; i++) {
        const vkt_value *v = &g->values[g->params[i]];
        any |= vkt_is_fixed(v) || v->group;
    }
    if (!any) return (vkt_tensor){ 0 };
    const uint64_t blocks = g->arena_bytes / VKT_ALIGN_BYTES;
    float(*pairs)[2] = vkt_alloc_array(&g->host, blocks, sizeof *pairs);
    if (!pairs) {
        vkt_graph_error(g, vkt_fail_nomem(&g->host, "parameter groups", blocks * sizeof *pairs));
        return (vkt_tensor){ 0 };
    }
    for (size_t i = 0; i < g->n_params; i++) {
        const vkt_value *v = &g->values[g->params[i]];
        const vkt_optimizer *o = &g->optimizer;
        const vkt_param_group own = { 1, o->weight_decay }, *p = v->group ? &o->groups[v->group - 1] : &own;
        const uint64_t first = v->arena_offset_bytes / VKT_ALIGN_BYTES,
                       n = vkt_round_up(v->bytes, VKT_ALIGN_BYTES) / VKT_ALIGN_BYTES;
        for (uint64_t b = first; b < first + n; b++) {
            pairs[b][0] = vkt_is_fixed(v) ? -1 : p->lr_factor;
            pairs[b][1] = p->weight_decay;
        }
    }
    const vkt_tensor t = vkt_graph_const(g, "groups", VKT_F32, vkt_shape2((uint32_t)blocks, 2), pairs);
    vkt_free(&g->host, pairs);
    return t;
}

/* ---- vkt_update ---- */

vkt_result vkt_update_from(vkt_graph *g, const vkt_optimizer *o, vkt_tensor gradients)
{
    VKT_TRY(g->status);
    if (!o) return vkt_fail(&g->host, VKT_E_ARG, "update: want an optimizer, got NULL");
    if (g->has_optimizer) return vkt_fail(&g->host, VKT_E_STATE, "update: this graph has its update already");
    if (!gradients.id)
        return vkt_fail(&g->host, VKT_E_STATE, "update: there are no gradients; call vkt_backward first");
    g->optimizer = *o;
    vkt_optimizer_fill_in(&g->optimizer);
    VKT_TRY(vkt_optimizer_check(&g->host, &g->optimizer));
    g->has_optimizer = true;
    static const vkt_role roles[] = { VKT_ROLE_MOMENT1, VKT_ROLE_MOMENT2, VKT_ROLE_MOMENT3 };
    uint32_t n;
    const vkt_op *op = vkt_optimizer_op(o->kind, &n);
    const uint32_t present = vkt_optimizer_moments(&g->optimizer);
    vkt_tensor in[7] = { vkt_graph_arena(g, VKT_ROLE_PARAM), gradients };
    for (uint32_t i = 0; i < n; i++)
        if (present >> i & 1) in[2 + i] = vkt_graph_arena(g, roles[i]);
    in[2 + n] = g->groups = make_groups(g);
    if (g->optimizer.micro_batches > 1) in[3 + n] = vkt_graph_arena(g, VKT_ROLE_GRAD_SUM);
    vkt_apply(g, op, in, 4 + n, &g->optimizer, NULL);
    return g->status;
}

vkt_result vkt_update(vkt_graph *g, const vkt_optimizer *o)
{
    VKT_WANT(NULL, g);
    const vkt_result r = vkt_update_from(g, o, g->arena[VKT_PART_GRADIENT]);
    if (r != VKT_OK) vkt_graph_error(g, r);
    return r;
}
