/* ops/step/optim_common.c - see optim_common.h.
 *
 * All arenas have the same size. A parameter, its gradient and its moments are at the same offset of their arenas.
 * Padding between parameters has gradients of zero, which change nothing. So one elementwise kernel updates any number
 * of parameters. The settings that differ among parameters are in the table `groups`, which has an entry for each block
 * of the arena (abi/update.abi.h).
 *
 * Some kernels run before the update, if they are needed. With micro-batches, one kernel adds the gradients to the sum
 * of gradients. The update then uses the sum as the gradient. If the loss is scaled, one kernel searches for gradients
 * that are not finite, and a second kernel sets the optimizer's clock and the next scale. With clip_norm, one kernel
 * adds up squares, and a second kernel computes the norm from these sums. If a kernel reads an arena, each of its
 * dispatches processes a range that a binding can hold. In the step state, STEP_FACTOR is the number by which the
 * update multiplies the gradients, and STEP_HOLD says whether this run updates the parameters. */
#include "ops/step/optim_common.h"

#include "kernel/ids.h"

#include "abi/accumulate.abi.h"
#include "abi/clip_norm.abi.h"
#include "abi/grad_norm.abi.h"
#include "abi/loss_scale.abi.h"
#include "abi/overflow.abi.h"

/* ---- inputs and outputs ---- */

enum { MAX_BINDINGS = UPDATE_MOMENT3_OUT + 1, BLOCK_BYTES = UPDATE_BLOCK * 4 };

/* Returns how many blocks of the arena `bytes` bytes are. The table `groups` has an entry for each block. */
static uint64_t blocks_of(uint64_t bytes)
{
    return vkt_round_up(bytes, BLOCK_BYTES) / BLOCK_BYTES;
}

/* groups_at returns the index of the input `groups`. sum_at returns the index of the input that is the sum of
 * gradients. The moments are inputs 2 .. groups_at - 1. */
static uint32_t groups_at(const vkt_op *op)
{
    return op->max_in - 2u;
}

static uint32_t sum_at(const vkt_op *op)
{
    return op->max_in - 1u;
}

static vkt_tensor step_of(const vkt_node *n)
{
    return n->in[n->n_in - 1];
}

/* Returns the tensor that the update uses as the gradient. */
static vkt_tensor gradient_of(const vkt_node *n)
{
    const vkt_tensor sum = n->in[sum_at(n->op)];
    return sum.id ? sum : n->in[1];
}

static vkt_result check_arena(vkt_infer *f, uint32_t i, bool wanted)
{
    const vkt_shape s = vkt_in(f, 0)->shape;
    const vkt_value *v = vkt_in(f, i);
    char want[80], got[80];
    VKT_REQUIRE(f, vkt_has(f, i) == wanted, VKT_E_ARG, "%s: input %u is %s", f->n->op->name, i,
                wanted ? "wanted, but absent" : "given, but not wanted");
    if (!wanted) return VKT_OK;
    VKT_REQUIRE(f, v->dtype == VKT_F32 && v->layout == VKT_ROWS && vkt_shape_equal(v->shape, s),
                v->dtype == VKT_F32 ? VKT_E_SHAPE : VKT_E_DTYPE, "%s: want input %u f32 %s by rows, got %s %s",
                f->n->op->name, i, vkt_shape_text(s, want), vkt_dtype_name(v->dtype), vkt_shape_text(v->shape, got));
    return VKT_OK;
}

vkt_result vkt_optim_infer(vkt_infer *f)
{
    const vkt_op *op = f->n->op;
    const vkt_optimizer *o = f->n->attr;
    const vkt_shape s = vkt_in(f, 0)->shape;
    const uint64_t elements = vkt_shape_elements(s), blocks = blocks_of(4 * elements);
    const uint32_t present = vkt_optimizer_moments(o), groups = groups_at(op);
    char got[80];
    VKT_TRY(check_arena(f, 0, true));
    VKT_TRY(check_arena(f, 1, true));
    for (uint32_t i = 2; i < groups; i++) VKT_TRY(check_arena(f, i, present >> (i - 2) & 1));
    VKT_TRY(check_arena(f, sum_at(op), o->micro_batches > 1));
    VKT_REQUIRE(f, elements % 4 == 0, VKT_E_SHAPE, "%s: want an arena of whole vec4s, got %llu elements", op->name,
                (unsigned long long)elements);
    const vkt_value *table = vkt_in(f, groups);
    VKT_REQUIRE(f,
                !vkt_has(f, groups) || (table->dtype == VKT_F32 && table->layout == VKT_ROWS &&
                                        vkt_shape_equal(table->shape, vkt_shape2((uint32_t)blocks, 2))),
                table->dtype == VKT_F32 ? VKT_E_SHAPE : VKT_E_DTYPE, "%s: want groups f32 (%llu,2) by rows, got %s %s",
                op->name, (unsigned long long)blocks, vkt_dtype_name(table->dtype), vkt_shape_text(table->shape, got));
    vkt_out_alias(f, 0, VKT_ROWS, s);
    for (uint32_t i = 2; i < op->max_in; i++)
        if (i != groups && vkt_has(f, i)) vkt_out_alias(f, i, VKT_ROWS, s);
    return VKT_OK;
}

/* A kernel that processes the whole arena. Each of its dispatches processes a range that a binding can hold. */
typedef struct sweep {
    uint16_t kernel;
    uint32_t lanes, n_bind;
    uint32_t groups; /* number of work groups of the dispatch that emit_range added last */
    vkt_bind bind[MAX_BINDINGS];
    uint32_t ranged; /* mask of the bindings that get the dispatch's range */
    uint32_t extra;  /* specialisation constant 4 */
    void *push;      /* push constants. The first two are `n4` and `block` of abi/update.abi.h */
    size_t push_bytes;
} sweep;

static uint32_t update_lanes(const vkt_emit *e)
{
    return vkt_lanes(e->lim, e->lim->traits->lanes_update);
}

/* Returns the number of work groups for n4 vec4s. */
static uint32_t groups_for(const vkt_emit *e, uint64_t n4, uint32_t lanes)
{
    const uint64_t most = VKT_MIN(e->lim->traits->groups_flat_most, e->lim->max_groups);
    return (uint32_t)VKT_MIN(vkt_groups(n4, lanes, e->lim->traits->items_update), most);
}

/* Emits the dispatch for `bytes` bytes of the arena, from byte `at` on. */
static void emit_range(const vkt_node *n, vkt_emit *e, sweep *s, uint64_t at, uint64_t bytes)
{
    const vkt_optimizer *o = n->attr;
    const vkt_tensor table = n->in[groups_at(n->op)];
    const uint64_t block = at / BLOCK_BYTES, blocks = blocks_of(bytes);
    uint32_t head[2] = { (uint32_t)(bytes / 16), 0 };
    for (uint32_t i = 0; i < s->n_bind; i++)
        if (s->ranged >> i & 1 && s->bind[i].t.id) {
            s->bind[i].offset_bytes = at;
            s->bind[i].bytes = bytes;
        }
    s->bind[UPDATE_GROUPS] = VKT_WHOLE(step_of(n)); /* any buffer: without a table, no kernel reads it */
    if (table.id) {
        s->bind[UPDATE_GROUPS] = vkt_bind_range(e, table, 2 * block, 2 * blocks, &head[1]);
        head[1] /= 2;
    }
    memcpy(s->push, head, sizeof head);
    const bool factor = e->scaled || o->micro_batches > 1 || o->clip_norm != 0 || e->g->sums;
    const uint32_t spec[] = { s->lanes, factor, table.id != 0, o->clip_value != 0, s->extra };
    s->groups = groups_for(e, head[0], s->lanes);
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = s->kernel,
                                       .bind = s->bind,
                                       .n_bind = s->n_bind,
                                       .push = s->push,
                                       .push_bytes = s->push_bytes,
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { s->groups, 1, 1 } });
}

static uint64_t arena_bytes(const vkt_node *n)
{
    return vkt_node_in(n, 0)->bytes;
}

/* Emits the dispatches for bytes first .. end - 1 of the arena, in ranges that a binding holds. */
static void emit_bucket(const vkt_node *n, vkt_emit *e, sweep *s, uint64_t first, uint64_t end)
{
    const uint64_t most = vkt_bind_range_bytes(e->lim);
    for (uint64_t at = first; at < end; at += most) emit_range(n, e, s, at, VKT_MIN(end - at, most));
}

static void emit_sweep(const vkt_node *n, vkt_emit *e, sweep *s)
{
    const vkt_graph *g = e->g;
    if (!g->n_buckets) emit_bucket(n, e, s, 0, arena_bytes(n));
    for (uint32_t i = g->n_buckets; i-- > 0;) emit_bucket(n, e, s, i ? g->bucket_ends[i - 1] : 0, g->bucket_ends[i]);
}

/* ---- before the update ---- */

static void accumulate(const vkt_node *n, vkt_emit *e)
{
    const vkt_tensor sum = n->in[sum_at(n->op)];
    if (!sum.id) return;
    vkt_accumulate_push push;
    sweep s = { .kernel = VKT_K_ACCUMULATE,
                .lanes = update_lanes(e),
                .n_bind = ACCUMULATE_SUM_OUT + 1,
                .bind = { [ACCUMULATE_SUM] = VKT_WHOLE(sum),
                          [UPDATE_GRAD] = VKT_WHOLE(n->in[1]),
                          [UPDATE_STEP] = VKT_WHOLE(step_of(n)),
                          [ACCUMULATE_SUM_OUT] = VKT_WHOLE(sum) },
                .ranged = 1u << ACCUMULATE_SUM | 1u << UPDATE_GRAD | 1u << ACCUMULATE_SUM_OUT,
                .push = &push,
                .push_bytes = sizeof push };
    emit_sweep(n, e, &s);
}

static void settle_loss_scale(const vkt_node *n, vkt_emit *e)
{
    if (!e->scaled) return;
    vkt_overflow_push push;
    sweep s = { .kernel = VKT_K_OVERFLOW,
                .lanes = update_lanes(e),
                .n_bind = UPDATE_GROUPS + 1,
                .bind = { [UPDATE_GRAD] = VKT_WHOLE(gradient_of(n)), [UPDATE_STEP] = VKT_WHOLE(step_of(n)) },
                .ranged = 1u << UPDATE_GRAD,
                .push = &push,
                .push_bytes = sizeof push };
    emit_sweep(n, e, &s);
    const vkt_bind bind[] = { [LOSS_SCALE_CLOCK] = VKT_WHOLE(e->g->clock), [LOSS_SCALE_STEP] = VKT_WHOLE(step_of(n)) };
    const uint32_t spec[] = { 1 };
    vkt_dispatch_add(
        e, &(vkt_launch){
               .kernel = VKT_K_LOSS_SCALE, VKT_LAUNCH_BIND(bind), VKT_LAUNCH_SPEC(spec), .groups = { 1, 1, 1 } });
}

static void clip_norm(const vkt_node *n, vkt_emit *e)
{
    const vkt_optimizer *o = n->attr;
    if (o->clip_norm == 0) return;
    const uint64_t bytes = arena_bytes(n), most = vkt_bind_range_bytes(e->lim), n4 = VKT_MIN(bytes, most) / 16;
    const uint32_t lanes = vkt_lanes_for(e->lim, VKT_K_GRAD_NORM, n4);
    const uint64_t parts = groups_for(e, n4, lanes) * ((bytes + most - 1) / most); /* at most this many partial sums */
    const vkt_tensor partial = vkt_scratch(e, "squares", parts * 16);
    vkt_grad_norm_push push = { .first = 0 };
    sweep s = { .kernel = VKT_K_GRAD_NORM,
                .lanes = lanes,
                .n_bind = UPDATE_GROUPS + 1,
                .bind = { [GRAD_NORM_PARTIAL] = VKT_WHOLE(partial),
                          [UPDATE_GRAD] = VKT_WHOLE(gradient_of(n)),
                          [UPDATE_STEP] = VKT_WHOLE(step_of(n)) },
                .ranged = 1u << UPDATE_GRAD,
                .push = &push,
                .push_bytes = sizeof push };
    for (uint64_t at = 0; at < bytes; at += most, push.first += s.groups)
        emit_range(n, e, &s, at, VKT_MIN(bytes - at, most));
    const vkt_clip_norm_push clip = { .n = push.first, .max_norm = o->clip_norm };
    const vkt_bind bind[] = { [CLIP_NORM_PARTIAL] = VKT_WHOLE(partial), [CLIP_NORM_STEP] = VKT_WHOLE(step_of(n)) };
    const uint32_t spec[] = { vkt_lanes_for(e->lim, VKT_K_CLIP_NORM, push.first) };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_CLIP_NORM,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(clip),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { 1, 1, 1 } });
}

/* ---- the update ---- */

void vkt_optim_emit(const vkt_node *n, vkt_emit *e, uint16_t kernel, void *push, size_t push_bytes, uint32_t extra)
{
    sweep s = { .kernel = kernel,
                .lanes = update_lanes(e),
                .n_bind = UPDATE_PARAM_OUT + 1,
                .bind = { [UPDATE_PARAM] = VKT_WHOLE(n->in[0]),
                          [UPDATE_GRAD] = VKT_WHOLE(gradient_of(n)),
                          [UPDATE_STEP] = VKT_WHOLE(step_of(n)),
                          [UPDATE_PARAM_OUT] = VKT_WHOLE(n->in[0]) },
                .ranged = ~(1u << UPDATE_STEP | 1u << UPDATE_GROUPS),
                .extra = extra,
                .push = push,
                .push_bytes = push_bytes };
    for (uint32_t i = 2; i < groups_at(n->op); i++) {
        const uint32_t at = UPDATE_MOMENT1 + 2 * (i - 2);
        if (!n->in[i].id || at + 1 >= MAX_BINDINGS) continue; /* gcc 12 does not see that `at` is small enough */
        s.bind[at] = s.bind[at + 1] = VKT_WHOLE(n->in[i]);
        s.n_bind = at + 2;
    }
    accumulate(n, e);
    settle_loss_scale(n, e);
    clip_norm(n, e);
    emit_sweep(n, e, &s);
}

/* ---- cases and costs ---- */

void vkt_optim_sample(vkt_rng *r, vkt_case *c, vkt_optimizer *o, const float (*range)[2], uint32_t moments)
{
    const vkt_shape s = vkt_shape1(4 * vkt_rng_range(r, 1, 1500));
    const uint32_t present = vkt_optimizer_moments(o), clip = vkt_rng_range(r, 0, 2);
    o->micro_batches = 1;
    o->weight_decay = vkt_rng_range(r, 0, 1) ? vkt_rng_uniform(r, 0, 0.1f) : 0;
    o->decoupled = vkt_rng_range(r, 0, 1) != 0;
    if (clip == 1) o->clip_value = vkt_rng_uniform(r, 0.1f, 1);
    if (clip == 2) o->clip_norm = vkt_rng_uniform(r, 0.5f, 30);
    vkt_case_f32(c, VKT_ROWS, s, -1, 1);
    vkt_case_f32(c, VKT_ROWS, s, -1, 1);
    for (uint32_t i = 0; i < moments; i++)
        if (present >> i & 1)
            vkt_case_f32(c, VKT_ROWS, s, range[i][0], range[i][1]);
        else
            vkt_case_absent(c);
    if (vkt_rng_range(r, 0, 1)) /* a fifth of the blocks are frozen: their factor of the learning rate is negative */
        vkt_case_f32(c, VKT_ROWS, vkt_shape2((uint32_t)blocks_of(4 * (uint64_t)s.dim[0]), 2), -0.25f, 1);
    else
        vkt_case_absent(c);
    vkt_case_attr(c, o, sizeof *o);
}

double vkt_optim_flops(const vkt_optimizer *o)
{
    return 2 * (o->weight_decay != 0) + 2 * (o->clip_value != 0) + 3 * (o->clip_norm != 0);
}
