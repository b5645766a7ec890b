/* ops/encode/rope.c - rotary position embedding: see vktrain/ops.h. The gradient is the inverse rotation, and the same
 * op computes it.
 *
 * The frequencies are a constant input. Their unit is turns per position, with 64 bits behind the binary point. The
 * host computes the frequencies when the graph is built, so results do not depend on the device's pow. rope.comp
 * computes sine and cosine of an angle itself, because Vulkan allows an error of 2^-11 in a device's sine. There is no
 * table of sines and cosines, because it would need a row for each position of the context. */
#include "kernel/ids.h"
#include "ops/move/move.h"

#include <math.h>

#include "abi/abi.h"
#include "abi/rope.abi.h"

enum { X = 0, TURNS, FIRST };

/* ---- geometry ---- */

typedef struct form {
    uint64_t samples;
    uint32_t heads, tokens, width, pairs;
} form;

static form form_of(const vkt_rope_attr *a, vkt_shape s, uint32_t pairs)
{
    form f = { s.rank > 2 ? s.dim[0] : 1, 1, s.dim[s.rank - 2], s.dim[s.rank - 1], pairs };
    for (uint32_t i = 1; i + 2 < s.rank; i++) f.heads *= s.dim[i];
    if (a->heads && !a->x_split) f = (form){ s.dim[0], a->heads, s.dim[1], s.dim[2] / a->heads, pairs };
    return f;
}

static form form_of_node(const vkt_node *n)
{
    return form_of(n->attr, vkt_node_in(n, X)->shape, vkt_node_in(n, TURNS)->shape.dim[1]);
}

static uint64_t sample_of(const form *f)
{
    return (uint64_t)f->heads * f->tokens * f->width;
}

static bool is_wide(const form *f)
{
    return f->width % 4 == 0 && f->pairs % 4 == 0;
}

static bool is_half(const vkt_node *n)
{
    const form f = form_of_node(n);
    return is_wide(&f);
}

/* ---- rope: x, turns, first -> y ---- */

static vkt_result check_x(const vkt_infer *f)
{
    const vkt_rope_attr *a = f->n->attr;
    const vkt_value *x = vkt_in(f, X);
    const vkt_shape s = x->shape;
    char text[80];
    VKT_REQUIRE(f, x->dtype == VKT_F32 && x->layout == VKT_ROWS, VKT_E_DTYPE, "rope: want f32 by rows, got %s of %s",
                vkt_shape_text(s, text), vkt_dtype_name(x->dtype));
    VKT_REQUIRE(f, a->x_split <= 1 && a->y_split <= 1 && a->halves <= 1 && a->inverse <= 1 && a->rotated <= a->heads,
                VKT_E_ARG, "rope: want flags 0 or 1 and at most %u rotated heads, got %u, %u, %u, %u and %u", a->heads,
                a->x_split, a->y_split, a->halves, a->inverse, a->rotated);
    if (!a->heads)
        VKT_REQUIRE(f, s.rank >= 2 && !a->x_split && !a->y_split, VKT_E_SHAPE, "rope: want x (..,T,D), got %s",
                    vkt_shape_text(s, text));
    else if (a->x_split)
        VKT_REQUIRE(f, s.rank == 4 && s.dim[1] == a->heads && (uint64_t)a->heads * s.dim[3] <= UINT32_MAX, VKT_E_SHAPE,
                    "rope: want x (B,%u,T,D), got %s", a->heads, vkt_shape_text(s, text));
    else
        VKT_REQUIRE(f, s.rank == 3 && s.dim[2] % a->heads == 0, VKT_E_SHAPE,
                    "rope: want x (B,T,D) and heads that divide D, got %s and %u", vkt_shape_text(s, text), a->heads);
    VKT_REQUIRE(f, vkt_shape_elements(s) <= UINT32_MAX, VKT_E_UNSUPPORTED, "rope: want at most 2^32 elements");
    return VKT_OK;
}

/* Returns VKT_OK if input i is u32 in ROWS. */
static vkt_result check_words(const vkt_infer *f, uint32_t i, const char *what)
{
    const vkt_value *v = vkt_in(f, i);
    VKT_REQUIRE(f, v->dtype == VKT_U32 && v->layout == VKT_ROWS, VKT_E_DTYPE, "rope: want %s u32 by rows, got %s", what,
                vkt_dtype_name(v->dtype));
    return VKT_OK;
}

static vkt_result infer(vkt_infer *f)
{
    VKT_TRY(check_x(f));
    VKT_TRY(check_words(f, TURNS, "frequencies"));
    const vkt_rope_attr *a = f->n->attr;
    const vkt_shape turns = vkt_in(f, TURNS)->shape;
    char text[80];
    VKT_REQUIRE(f, turns.rank == 2 && turns.dim[0] == 2, VKT_E_SHAPE, "rope: want frequencies (2,pairs), got %s",
                vkt_shape_text(turns, text));
    const form o = form_of(a, vkt_in(f, X)->shape, turns.dim[1]);
    VKT_REQUIRE(f, o.pairs >= 1 && o.pairs <= o.width / 2, VKT_E_SHAPE,
                "rope: want at most %u pairs of a head of %u numbers, got %u", o.width / 2, o.width, o.pairs);
    if (vkt_has(f, FIRST)) {
        VKT_TRY(check_words(f, FIRST, "first positions"));
        const vkt_shape first = vkt_in(f, FIRST)->shape;
        VKT_REQUIRE(f, first.rank == 1 && (first.dim[0] == 1 || first.dim[0] == o.samples), VKT_E_SHAPE,
                    "rope: want first positions (1) or (%llu), got %s", (unsigned long long)o.samples,
                    vkt_shape_text(first, text));
    }
    vkt_shape y = vkt_in(f, X)->shape;
    if (a->heads)
        y = a->y_split ? vkt_shape4((uint32_t)o.samples, o.heads, o.tokens, o.width)
                       : vkt_shape3((uint32_t)o.samples, o.tokens, o.heads * o.width);
    vkt_out(f, VKT_F32, VKT_ROWS, y);
    return VKT_OK;
}

/* Sets `groups` to the numbers of work groups for n units of each head. A unit is a pair of floats that is rotated, or
 * a float that is copied. In the kernel for vec4s, a unit is a pair of vec4s or one vec4. groups[0] work groups share
 * the units, and groups[1] work groups share the heads. A lane computes the sine and cosine of a unit once for all
 * heads of its work group, so with a larger groups[1] this work is repeated. Therefore groups[1] is above 1 only if the
 * units are too few to keep the device busy. */
static void find_groups(const vkt_emit *e, uint32_t lanes, uint64_t n, uint32_t heads, uint64_t groups[3])
{
    const uint64_t wanted = vkt_groups_wanted(e->lim, lanes), full = vkt_groups(n, lanes, 1);
    groups[0] = VKT_MIN(full, wanted);
    groups[1] = VKT_MIN(VKT_MAX(wanted / groups[0], 1u), VKT_MIN(heads, e->lim->max_groups));
    groups[2] = 1;
    const uint64_t passes = vkt_div_up(heads, (uint32_t)groups[1]) + 2; /* iterations of a lane for one unit */
    groups[0] = VKT_MAX(groups[0], vkt_groups(n, lanes, (uint32_t)VKT_MAX(vkt_rough_loop(e->lim) / passes, 1u)));
}

/* Returns the push constants that do not depend on the dispatch. `width`: number of floats in an element of the kernel,
 * 1 or 4 (abi/rope.abi.h). */
static vkt_rope_push push_of(const vkt_rope_attr *a, const form *f, uint32_t width, uint32_t lanes)
{
    const bool x_split = !a->heads || a->x_split, y_split = !a->heads || a->y_split;
    const uint32_t head = f->width / width, row = f->heads * head, plane = f->tokens * head;
    vkt_rope_push pc = { .tokens = f->tokens,
                         .units = head - f->pairs / width,
                         .pairs = f->pairs / width,
                         .heads = f->heads,
                         .rotated = a->heads ? a->rotated : f->heads,
                         .position = a->position,
                         .x_sample = (uint32_t)(sample_of(f) / width),
                         .x_token = x_split ? head : row,
                         .x_head = x_split ? plane : head,
                         .y_sample = (uint32_t)(sample_of(f) / width),
                         .y_token = y_split ? head : row,
                         .y_head = y_split ? plane : head,
                         .sign = a->inverse ? -1 : 1 };
    uint32_t step[3];
    vkt_position_step(lanes, (const uint32_t[]){ 1, f->tokens, pc.units }, 3, step);
    pc.s0 = step[0];
    pc.s1 = step[1];
    pc.s2 = step[2];
    return pc;
}

static void emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_rope_attr *a = n->attr;
    const form f = form_of_node(n);
    const vkt_tensor first = n->n_in > FIRST ? n->in[FIRST] : (vkt_tensor){ 0 };
    const uint32_t width = is_wide(&f) ? 4 : 1, lanes = vkt_lanes(e->lim, e->lim->traits->lanes_gather);
    const uint32_t each = first.id && vkt_value_of(e->g, first)->shape.dim[0] > 1;
    const uint32_t spec[] = { lanes, [ROPE_SPEC_HALVES] = a->halves, [ROPE_SPEC_FIRST] = first.id ? 1 + each : 0 };
    const uint64_t sample = sample_of(&f), most = vkt_steps_in(e->lim->max_storage_range_bytes, 4 * sample, f.samples);
    if (most == 0)
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                                   "rope: a sample of %llu numbers does not fit into a binding of %llu bytes",
                                   (unsigned long long)sample, (unsigned long long)e->lim->max_storage_range_bytes));
    vkt_rope_push pc = push_of(a, &f, width, lanes);
    for (uint64_t s = 0; most && s < f.samples; s += most) {
        const uint64_t count = VKT_MIN(most, f.samples - s);
        vkt_bind bind[ROPE_Y + 1] = { [ROPE_TURNS] = VKT_WHOLE(n->in[TURNS]) };
        bind[ROPE_FIRST] = VKT_WHOLE(first.id ? first : n->in[TURNS]); /* without `first`, the binding is not read */
        bind[ROPE_X] = vkt_bind_range(e, n->in[X], s * sample, count * sample, &pc.x);
        bind[ROPE_Y] = vkt_bind_range(e, n->out[0], s * sample, count * sample, &pc.y);
        pc.x /= width;
        pc.y /= width;
        pc.sample0 = (uint32_t)s;
        pc.n = (uint32_t)(count * f.tokens * pc.units);
        vkt_launch launch = { .kernel = width == 4 ? VKT_K_ROPE4 : VKT_K_ROPE,
                              VKT_LAUNCH_BIND(bind),
                              VKT_LAUNCH_PUSH(pc),
                              VKT_LAUNCH_SPEC(spec) };
        find_groups(e, lanes, pc.n, f.heads, launch.groups);
        vkt_dispatch_add(e, &launch);
    }
}

static void backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    vkt_rope_attr a = *(const vkt_rope_attr *)n->attr;
    const uint32_t x_split = a.x_split;
    const vkt_tensor in[] = { dy[0], n->in[TURNS], n->n_in > FIRST ? n->in[FIRST] : (vkt_tensor){ 0 } };
    a.x_split = a.y_split;
    a.y_split = x_split;
    a.inverse = !a.inverse;
    dx[0] = vkt_apply(g, &vkt_op_rope, in, in[FIRST].id ? 3 : 2, &a, NULL);
}

static void sample(vkt_rng *r, vkt_case *c)
{
    const uint32_t B = vkt_rng_range(r, 1, 3), T = vkt_rng_range(r, 1, 23), H = vkt_rng_range(r, 1, 5);
    const bool wide = vkt_rng_range(r, 0, 2) != 0;
    const uint32_t D = wide ? 4 * vkt_rng_range(r, 2, 12) : vkt_rng_range(r, 2, 20);
    const uint32_t pairs = vkt_rng_range(r, 0, 1) ? D / 2
                           : wide                 ? 4 * vkt_rng_range(r, 1, D / 8)
                                                  : vkt_rng_range(r, 1, D / 2);
    vkt_rope_attr a = { .halves = vkt_rng_range(r, 0, 1), .inverse = vkt_rng_range(r, 0, 3) == 0 };
    a.position = vkt_rng_range(r, 0, 1) ? vkt_rng_range(r, 0, 131072) : 0;
    if (vkt_rng_range(r, 0, 2)) {
        a.heads = H;
        a.rotated = vkt_rng_range(r, 0, 2) ? H : vkt_rng_range(r, 0, H);
        a.x_split = vkt_rng_range(r, 0, 1);
        a.y_split = vkt_rng_range(r, 0, 1);
    }
    vkt_case_f32(c, VKT_ROWS, a.heads && !a.x_split ? vkt_shape3(B, T, H * D) : vkt_shape4(B, H, T, D), -2, 2);
    vkt_case_u32(c, VKT_ROWS, vkt_shape2(2, pairs), UINT32_MAX);
    if (vkt_rng_range(r, 0, 1)) vkt_case_u32(c, VKT_ROWS, vkt_shape1(vkt_rng_range(r, 0, 1) ? B : 1), 131072);
    vkt_case_attr(c, &a, sizeof a);
}

/* Counts four products and two sums for each pair that is rotated, and sine and cosine once for all heads. */
static double flops(const vkt_node *n)
{
    const vkt_rope_attr *a = n->attr;
    const form f = form_of_node(n);
    return (double)f.samples * f.tokens * f.pairs * (6.0 * (a->heads ? a->rotated : f.heads) + 2);
}

static const vkt_field fields[] = {
    VKT_FIELD(vkt_rope_attr, heads, U32, 1, 0),   VKT_FIELD(vkt_rope_attr, x_split, U32, 1, 0),
    VKT_FIELD(vkt_rope_attr, y_split, U32, 1, 0), VKT_FIELD(vkt_rope_attr, rotated, U32, 1, 0),
    VKT_FIELD(vkt_rope_attr, halves, U32, 1, 0),  VKT_FIELD(vkt_rope_attr, position, U32, 1, 0),
    VKT_FIELD(vkt_rope_attr, inverse, U32, 1, 0), { .name = NULL }
};

const vkt_op vkt_op_rope = {
    .name = "rope",
    .min_in = 2,
    .max_in = 3,
    .cheap = true,
    .in_place = 1,
    .diff = 1,
    .attr_bytes = sizeof(vkt_rope_attr),
    .infer = infer,
    .emit = emit,
    .half_rows = VKT_HALF_IN(X) | VKT_HALF_OUT(0),
    .half_when = is_half,
    .backward = backward,
    .sample = sample,
    .abs_tol = 6e-7f,
    .tol_why = "sine and cosine are off by 3.6 2^-24 at most; with two products and a sum 7.5 2^-24 of the length of a "
               "pair, whose larger element has 0.7 of this length",
    .flops = flops,
    .fields = fields,
    .formula = "(a, b) -> (a cos - b sin, b cos + a sin) for pairs of a head; angle = position turns[pair]",
};

/* ---- building ---- */

/* Sets `turns` to the frequencies of p. The frequency of pair j is base^(-2 j / dims), divided by `factor` and by
 * factors[j]. Each step of this formula is rounded to f32, as in PyTorch and in Python's package transformers. The
 * conversion of the frequency to turns per position adds almost no error. Returns false if a frequency is infinite. */
static bool find_turns(const vkt_rope_params *p, uint32_t pairs, uint32_t *turns)
{
    const float base = vkt_or_f32(p->base, 10000), factor = vkt_or_f32(p->factor, 1);
    for (uint32_t j = 0; j < pairs; j++) {
        const float exponent = (float)(2 * j) / (float)(2 * pairs);
        float frequency = 1.0f / (float)pow((double)base, (double)exponent);
        if (factor != 1) frequency /= factor;
        if (p->factors) frequency /= p->factors[j];
        if (!isfinite(frequency)) return false;
        const double each = (double)frequency / (2 * acos(-1)), whole = floor(each);
        const uint64_t fraction = (uint64_t)((each - whole) * 0x1p64);
        turns[j] = (uint32_t)(fraction >> 32);
        turns[pairs + j] = (uint32_t)fraction;
    }
    return true;
}

/* Returns the constant with the frequencies of p. Nodes of a graph with the same frequencies share the constant. */
static vkt_tensor turns_of(vkt_graph *g, const vkt_rope_params *p, uint32_t pairs)
{
    const vkt_shape shape = vkt_shape2(2, pairs);
    uint32_t *turns = vkt_alloc_array(&g->host, 2 * (size_t)pairs, sizeof *turns);
    vkt_tensor t = { 0 };
    if (!turns) {
        vkt_graph_error(g, vkt_fail_nomem(&g->host, "rope", 8 * (size_t)pairs));
        return t;
    }
    const bool finite = find_turns(p, pairs, turns);
    if (!finite) vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG, "rope: want factors that keep frequencies finite"));
    for (uint32_t i = 1; finite && i < g->n_values && !t.id; i++) {
        const vkt_value *v = &g->values[i];
        if (v->role == VKT_ROLE_CONST && v->dtype == VKT_U32 && vkt_shape_equal(v->shape, shape) &&
            memcmp(v->data, turns, 8 * (size_t)pairs) == 0)
            t.id = i;
    }
    if (finite && !t.id) t = vkt_graph_const(g, "frequencies", VKT_U32, shape, turns);
    vkt_free(&g->host, turns);
    return t;
}

static bool fits(vkt_graph *g, vkt_shape s, const vkt_rope_params *p, uint32_t width)
{
    char text[80];
    const float base = vkt_or_f32(p->base, 10000), factor = vkt_or_f32(p->factor, 1);
    const uint32_t dims = p->dims ? p->dims : width;
    bool ok = width >= 2 && dims % 2 == 0 && dims <= width;
    if (!ok)
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE,
                                    "rope: want x (..,T,D) or (B,T,heads D), and an even number of at most D numbers "
                                    "to rotate, got %s, %u heads and %u numbers",
                                    vkt_shape_text(s, text), p->heads, dims));
    const bool finite = isfinite(base) && base > 0 && isfinite(factor) && factor > 0;
    if (!finite)
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG, "rope: want base and factor above 0, got %g and %g",
                                    (double)base, (double)factor));
    ok = ok && finite;
    for (uint32_t j = 0; ok && p->factors && j < dims / 2; j++)
        if (!(isfinite(p->factors[j]) && p->factors[j] > 0)) {
            vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG, "rope: want factors above 0, got %g for pair %u",
                                        (double)p->factors[j], j));
            ok = false;
        }
    const bool order = p->order == VKT_ROPE_HALVES || p->order == VKT_ROPE_NEIGHBOURS;
    if (!order) vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG, "rope: %d is no vkt_rope_order", (int)p->order));
    return ok && order;
}

vkt_tensor vkt_rope(vkt_graph *g, vkt_tensor x, const vkt_rope_params *p)
{
    static const vkt_rope_params defaults;
    if (!vkt_is_usable(g, "rope", x)) return (vkt_tensor){ 0 };
    if (!p) p = &defaults;
    const vkt_shape s = vkt_tensor_shape(g, x);
    const uint32_t last = s.rank >= 2 ? s.dim[s.rank - 1] : 0;
    const uint32_t width = !p->heads ? last : last % p->heads == 0 ? last / p->heads : 0;
    if (!fits(g, s, p, width)) return (vkt_tensor){ 0 };
    const vkt_rope_attr a = { .heads = p->heads,
                              .y_split = p->heads && p->split,
                              .rotated = p->rotated ? p->rotated : p->heads,
                              .halves = p->order == VKT_ROPE_HALVES,
                              .position = p->position };
    const vkt_tensor in[] = { vkt_to_layout(g, x, VKT_ROWS), turns_of(g, p, (p->dims ? p->dims : width) / 2),
                              p->first };
    return vkt_apply(g, &vkt_op_rope, in, p->first.id ? 3 : 2, &a, NULL);
}
