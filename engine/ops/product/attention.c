/* ops/product/attention.c - scaled dot-product attention: see vktrain/ops.h. It is one node if the attention kernels
 * can compute it. Otherwise it consists of nodes of other ops, and the softmax of the scores is stored. */
#include "ops/product/attention_tiles.h"

#include <math.h>
#include <stdio.h>

/* The largest width of a head that the kernels can compute: the sums of a row must stay in registers. */
#define MAX_WIDTH 128u

static bool has_kernels(uint32_t width)
{
    return width % 4 == 0 && width != 0 && width <= MAX_WIDTH;
}

/* ---- attention: q, k, v, or all three in one tensor -> y, lse (log sum exp of each row of scores) ---- */

/* The shapes of q, k and v. H is a multiple of K.
 *   three tensors: q (..,H,T,D), k and v (..,K,S,D). Here, a sample is one head of k and v, with the group of H / K
 *     heads of q that read this head
 *   one tensor (`packed`): (B,T,(H + 2 K) D), with H heads of q, K heads of k and K heads of v side by side. A sample
 *     has all heads */
typedef struct form {
    bool packed;
    uint64_t samples;
    uint32_t heads, kv_heads; /* of a sample */
    uint32_t queries, keys, width;
} form;

static form form_of(const vkt_attention_attr *a, const vkt_value *q, const vkt_value *k)
{
    const vkt_shape s = q->shape;
    form f = { .packed = !k, .samples = 1, .queries = s.dim[s.rank - 2], .width = s.dim[s.rank - 1] };
    for (uint32_t i = 0; i + 2 < s.rank; i++) f.samples *= s.dim[i];
    f.heads = f.packed ? a->heads : a->group;
    f.kv_heads = f.heads / a->group;
    if (f.packed)
        f.width /= f.heads + 2 * f.kv_heads;
    else
        f.samples /= a->group;
    f.keys = f.packed ? f.queries : k->shape.dim[k->shape.rank - 2];
    return f;
}

/* Returns optional input i of attention or attention_dx: k (i = 0) or v (i = 1). {0}: q, k and v are one tensor. */
static vkt_tensor optional_in(const vkt_node *n, uint32_t i)
{
    return n->n_in > n->op->min_in + i ? n->in[n->op->min_in + i] : (vkt_tensor){ 0 };
}

static form form_of_node(const vkt_node *n)
{
    const vkt_tensor k = optional_in(n, 0);
    return form_of(n->attr, vkt_node_in(n, 0), k.id ? vkt_value_of(n->g, k) : NULL);
}

/* Returns the number of elements of a sample of y. */
static uint64_t y_sample(const form *f)
{
    return (uint64_t)f->queries * f->heads * f->width;
}

/* Returns the number of elements of a sample of q, or of the tensor that has q, k and v. */
static uint64_t q_sample(const form *f)
{
    return f->packed ? (uint64_t)f->queries * (f->heads + 2 * f->kv_heads) * f->width : y_sample(f);
}

static bool is_plain(const vkt_value *v)
{
    return v->dtype == VKT_F32 && v->layout == VKT_ROWS && v->shape.rank >= 2;
}

static vkt_result check_packed(const vkt_infer *f)
{
    const vkt_attention_attr *a = f->n->attr;
    const vkt_shape s = vkt_in(f, 0)->shape;
    char text[80];
    VKT_REQUIRE(f, s.rank == 3 && a->heads && a->heads % a->group == 0, VKT_E_SHAPE,
                "%s: want (B,T,..) and heads in groups of %u, got %s and %u", f->n->op->name, a->group,
                vkt_shape_text(s, text), a->heads);
    VKT_REQUIRE(f, s.dim[2] % (a->heads + 2ull * (a->heads / a->group)) == 0, VKT_E_SHAPE,
                "%s: want (B,T,(H + 2 K) D) with H = %u heads of q and K = %u of k and v, got %s", f->n->op->name,
                a->heads, a->heads / a->group, vkt_shape_text(s, text));
    return VKT_OK;
}

/* Returns whether the leading dimensions of q (..,H,T,D) and k (..,H / group,S,D) fit. */
static bool heads_fit(vkt_shape q, vkt_shape k, uint32_t group)
{
    if (q.rank < 2 || k.rank != q.rank) return false;
    if (q.rank == 2) return group == 1;
    const uint32_t head = q.rank - 3;
    return (uint64_t)k.dim[head] * group == q.dim[head] && memcmp(q.dim, k.dim, head * sizeof q.dim[0]) == 0;
}

static vkt_result check_apart(const vkt_infer *f)
{
    const vkt_attention_attr *a = f->n->attr;
    const vkt_value *k = vkt_value_of(f->g, optional_in(f->n, 0)), *v = vkt_value_of(f->g, optional_in(f->n, 1));
    const vkt_shape s = vkt_in(f, 0)->shape, t = k->shape;
    char st[80], tt[80], ut[80];
    const bool same = is_plain(k) && is_plain(v) && vkt_shape_equal(t, v->shape) && heads_fit(s, t, a->group) &&
                      t.dim[t.rank - 1] == s.dim[s.rank - 1];
    VKT_REQUIRE(f, same && a->heads == 1, VKT_E_SHAPE,
                "%s: want q (..,H,T,D), k and v (..,H / %u,S,D) by rows and heads=1, got %s, %s, %s and heads=%u",
                f->n->op->name, a->group, vkt_shape_text(s, st), vkt_shape_text(t, tt), vkt_shape_text(v->shape, ut),
                a->heads);
    return VKT_OK;
}

static vkt_result check(const vkt_infer *f)
{
    const vkt_attention_attr *a = f->n->attr;
    const vkt_value *q = vkt_in(f, 0);
    const char *name = f->n->op->name;
    char text[80];
    VKT_REQUIRE(f, is_plain(q), VKT_E_DTYPE, "%s: want f32 by rows, got %s of %s", name, vkt_shape_text(q->shape, text),
                vkt_dtype_name(q->dtype));
    VKT_REQUIRE(f, a->group != 0, VKT_E_ARG, "%s: want a group of at least 1 head, got 0", name);
    VKT_TRY(optional_in(f->n, 0).id ? check_apart(f) : check_packed(f));
    const form o = form_of_node(f->n);
    VKT_REQUIRE(f, a->causal <= 1, VKT_E_ARG, "%s: want causal 0 or 1, got %u", name, a->causal);
    VKT_REQUIRE(f, isfinite(a->scale) && a->scale > 0, VKT_E_ARG, "%s: want a scale above 0, got %g", name,
                (double)a->scale);
    VKT_REQUIRE(f, has_kernels(o.width), VKT_E_SHAPE, "%s: want heads of 4, 8, .. or %u numbers, got %u", name,
                MAX_WIDTH, o.width);
    VKT_REQUIRE(f, o.samples * o.heads * o.queries <= UINT32_MAX, VKT_E_UNSUPPORTED, "%s: want at most 2^32 rows",
                name);
    return VKT_OK;
}

static vkt_result infer(vkt_infer *f)
{
    VKT_TRY(check(f));
    const form o = form_of_node(f->n);
    vkt_shape y = vkt_in(f, 0)->shape;
    if (o.packed) y.dim[2] = o.heads * o.width;
    vkt_out(f, VKT_F32, VKT_ROWS, y);
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape1((uint32_t)(o.samples * o.heads * o.queries)));
    return VKT_OK;
}

/* ---- dispatches ---- */

/* Returns the bytes that one sample has in the largest of the n tensors t. */
static uint64_t sample_bytes(const vkt_emit *e, const form *f, const vkt_tensor *t, uint32_t n)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < n; i++)
        if (t[i].id) most = VKT_MAX(most, vkt_lowered_value(e, t[i])->bytes / f->samples);
    return most;
}

/* Returns how many samples every binding can hold. If a binding cannot hold one sample, sets the emission's error and
 * returns 0. */
static uint64_t samples_at_once(const vkt_node *n, vkt_emit *e, const form *f)
{
    const uint64_t read = sample_bytes(e, f, n->in, n->n_in), written = sample_bytes(e, f, n->out, n->n_out);
    const uint64_t most = VKT_MIN(vkt_steps_in(vkt_bind_range_bytes(e->lim), written, f->samples),
                                  vkt_steps_in(vkt_read_range(e->lim), read, f->samples));
    if (most == 0)
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                                   "%s: %u queries and %u keys, %u heads of %u numbers, do not fit into bindings of "
                                   "%llu bytes",
                                   e->node->op->name, f->queries, f->keys, f->heads, f->width,
                                   (unsigned long long)e->lim->max_storage_range_bytes));
    return most;
}

/* Some samples of a node, and their bindings. */
typedef struct part {
    form f;
    uint64_t first, count;
    vkt_attention_push pc;
    vkt_bind bind[ATTENTION_BINDINGS];
} part;

static part part_of(const vkt_node *n, uint64_t first, uint64_t most)
{
    const form f = form_of_node(n);
    part p = { .f = f, .first = first, .count = VKT_MIN(most, f.samples - first) };
    const vkt_attention_attr *a = n->attr;
    p.pc = (vkt_attention_push){ .rows = f.queries,
                                 .others = f.keys,
                                 .heads = f.packed ? f.heads : 1,
                                 .kv_heads = f.kv_heads,
                                 .group = a->group,
                                 .d4 = f.width / 4,
                                 .ld = f.width / 4 * (f.packed ? f.heads + 2 * f.kv_heads : 1),
                                 .causal = a->causal,
                                 .scale = a->scale };
    return p;
}

/* Binds the part's samples of t, `sample` elements each. Returns the index of the first element in the binding. */
static uint32_t bind_samples(const vkt_emit *e, part *p, uint32_t slot, vkt_tensor t, uint64_t sample)
{
    uint32_t at;
    p->bind[slot] = vkt_bind_range(e, t, p->first * sample, p->count * sample, &at);
    return at;
}

/* Binds q, k and v, or their gradients. These three are t[0], t[1] and t[2], or parts of t[0] if the form is packed.
 * Sets *at[0], *at[1] and *at[2] to the indices of their first vec4s in the bindings. */
static void bind_three(const vkt_emit *e, part *p, uint32_t slot, const vkt_tensor t[3], uint32_t *const at[3])
{
    const form *f = &p->f;
    const uint32_t before[] = { 0, f->heads, f->heads + f->kv_heads }; /* heads before q, k and v in a packed row */
    for (uint32_t i = 0; i < 3; i++) {
        const uint64_t rows = i ? f->keys : (uint64_t)f->queries * f->heads;
        if (f->packed)
            *at[i] = bind_samples(e, p, slot + i, t[0], q_sample(f)) / 4 + before[i] * p->pc.d4;
        else
            *at[i] = bind_samples(e, p, slot + i, t[i], rows * f->width) / 4;
    }
}

static void bind_operands(const vkt_node *n, const vkt_emit *e, part *p)
{
    const vkt_tensor in[] = { n->in[0], optional_in(n, 0), optional_in(n, 1) };
    bind_three(e, p, ATTENTION_Q, in, (uint32_t *const[]){ &p->pc.q0, &p->pc.k0, &p->pc.v0 });
}

static void emit(const vkt_node *n, vkt_emit *e)
{
    const form f = form_of_node(n);
    const uint64_t most = samples_at_once(n, e, &f);
    if (most == 0) return;
    const part first = part_of(n, 0, most);
    const vkt_variant v =
        vkt_attention_pick(e, VKT_ATTENTION_FORWARD, VKT_ATTENTION_FORWARD, &first.pc, first.count * f.heads);
    for (uint64_t s = 0; s < f.samples; s += most) {
        part p = part_of(n, s, most);
        bind_operands(n, e, &p);
        p.pc.y0 = bind_samples(e, &p, ATTENTION_Y, n->out[0], y_sample(&f)) / 4;
        p.pc.lse0 = bind_samples(e, &p, ATTENTION_LSE, n->out[1], (uint64_t)f.heads * f.queries);
        vkt_attention_emit(e, VKT_ATTENTION_FORWARD, v, &p.pc, p.count * f.heads, p.bind);
    }
}

static void backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_tensor in[] = { n->in[0], n->out[0], n->out[1], dy[0], optional_in(n, 0), optional_in(n, 1) };
    vkt_tensor outs[VKT_MAX_OUT] = { { 0 } };
    vkt_apply(g, &vkt_op_attention_dx, in, VKT_COUNT(in), n->attr, outs);
    for (uint32_t i = 0; i < n->n_in; i++) dx[i] = outs[i];
}

/* Generates a case whose scores are a few units apart. So the weights of a row differ, but not so much that only the
 * largest weight matters. There are few widths, because the kernels with tiles in shared memory need pipelines of
 * their own for each width. Long heads (with many queries or keys) would need more pipelines, so there are none.
 * test_attention_tiles.c has other widths and long heads. In half of the cases, a group of 2, 3 or 5 heads of q reads
 * the same head of k and v. */
static void sample(vkt_rng *r, vkt_case *c)
{
    static const uint32_t widths[] = { 4, 8, 20, 32, 36 }, groups[] = { 1, 1, 1, 2, 3, 5 };
    const uint32_t width = widths[vkt_rng_range(r, 0, VKT_COUNT(widths) - 1)];
    const uint32_t samples = vkt_rng_range(r, 1, 3), kv_heads = vkt_rng_range(r, 1, 3);
    const uint32_t queries = vkt_rng_range(r, 1, 45), keys = vkt_rng_range(r, 1, 45);
    vkt_attention_attr a = { .heads = 1, .causal = vkt_rng_range(r, 0, 1) };
    a.scale = vkt_rng_uniform(r, 0.2f, 1.5f) / sqrtf((float)width);
    const bool packed = vkt_rng_range(r, 0, 1);
    a.group = groups[vkt_rng_range(r, 0, VKT_COUNT(groups) - 1)];
    const uint32_t heads = kv_heads * a.group;
    if (packed) {
        a.heads = heads;
        vkt_case_f32(c, VKT_ROWS, vkt_shape3(samples, queries, (heads + 2 * kv_heads) * width), -2, 2);
    } else {
        vkt_case_f32(c, VKT_ROWS, vkt_shape4(samples, heads, queries, width), -2, 2);
        for (int i = 0; i < 2; i++) vkt_case_f32(c, VKT_ROWS, vkt_shape4(samples, kv_heads, keys, width), -2, 2);
    }
    vkt_case_attr(c, &a, sizeof a);
}

/* Returns the number of pairs of a query and a key that this query uses. */
static double pairs_of(const vkt_node *n)
{
    const form f = form_of_node(n);
    const double heads = (double)f.samples * f.heads, queries = f.queries, keys = f.keys;
    if (!((const vkt_attention_attr *)n->attr)->causal) return heads * queries * keys;
    const double most = VKT_MIN(queries, keys);
    return heads * (most * (most + 1) / 2 + (queries - most) * keys);
}

/* Counts for each score: `width` multiply-adds, `width` more for the weighted sum, and five operations (scale, maximum,
 * difference, exponential, sum). */
static double flops(const vkt_node *n)
{
    return pairs_of(n) * (4.0 * form_of_node(n).width + 5);
}

static const vkt_field fields[] = { VKT_FIELD(vkt_attention_attr, heads, U32, 1, 1),
                                    VKT_FIELD(vkt_attention_attr, group, U32, 1, 1),
                                    VKT_FIELD(vkt_attention_attr, causal, U32, 1, 0),
                                    VKT_FIELD(vkt_attention_attr, scale, F32, 1, 1),
                                    { .name = NULL } };

const vkt_op vkt_op_attention = {
    .name = "attention",
    .min_in = 1,
    .max_in = 3,
    .diff = 7,
    .attr_bytes = sizeof(vkt_attention_attr),
    .infer = infer,
    .emit = emit,
    .half_rows = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_IN(2) | VKT_HALF_OUT(0),
    .backward = backward,
    .sample = sample,
    .rel_tol = 1e-5f,
    .abs_tol = 1e-5f,
    .tol_why =
        "a score is a sum of at most 36 products, rounded by some 2^-24 of their size (scaled, 50 at most), and with "
        "it a weight relatively; sums of at most 45 weighted numbers; gradients are differences of such sums",
    .flops = flops,
    .fields = fields,
    .formula =
        "y = softmax(scale q k^T) v by heads; a group of heads of q shares k and v; causal: query t sees keys 0 .. t",
};

/* ---- attention_dx: q, y, lse, dy, k, v -> dq, dk, dv; `packed`: [q k v], y, lse, dy -> [dq dk dv] ---- */

static vkt_result dx_infer(vkt_infer *f)
{
    VKT_TRY(check(f));
    const form o = form_of_node(f->n);
    const vkt_value *y = vkt_in(f, 1), *lse = vkt_in(f, 2), *dy = vkt_in(f, 3);
    const bool fits = is_plain(dy) && vkt_shape_equal(y->shape, dy->shape) &&
                      vkt_shape_elements(y->shape) == o.samples * y_sample(&o) &&
                      vkt_shape_elements(lse->shape) == o.samples * o.heads * o.queries;
    VKT_REQUIRE(f, fits, VKT_E_SHAPE, "attention_dx: want attention's results and a gradient");
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_in(f, 0)->shape);
    for (uint32_t i = 0; i < 2 && !o.packed; i++)
        vkt_out(f, VKT_F32, VKT_ROWS, vkt_value_of(f->g, optional_in(f->n, i))->shape);
    return VKT_OK;
}

static void dx_emit(const vkt_node *n, vkt_emit *e)
{
    const form f = form_of_node(n);
    const uint64_t most = samples_at_once(n, e, &f), rows = (uint64_t)f.heads * f.queries;
    if (most == 0) return;
    const part first = part_of(n, 0, most);
    const vkt_variant v = vkt_attention_pick(e, VKT_ATTENTION_DQ, VKT_ATTENTION_DKV, &first.pc, first.count * f.heads);
    const vkt_tensor delta = vkt_scratch(e, "delta", 4 * f.samples * rows);
    for (uint64_t s = 0; s < f.samples; s += most) {
        part p = part_of(n, s, most);
        const uint64_t heads = p.count * f.heads;
        bind_operands(n, e, &p);
        bind_three(e, &p, ATTENTION_DQ, n->out, (uint32_t *const[]){ &p.pc.dq0, &p.pc.dk0, &p.pc.dv0 });
        p.pc.y0 = bind_samples(e, &p, ATTENTION_Y, n->in[1], y_sample(&f)) / 4;
        p.pc.lse0 = bind_samples(e, &p, ATTENTION_LSE, n->in[2], rows);
        p.pc.dy0 = bind_samples(e, &p, ATTENTION_DY, n->in[3], y_sample(&f)) / 4;
        p.pc.delta0 = bind_samples(e, &p, ATTENTION_DELTA, delta, rows);
        vkt_attention_emit(e, VKT_ATTENTION_DQ, v, &p.pc, heads, p.bind);
        p.bind[ATTENTION_Y] = p.bind[ATTENTION_DQ] = (vkt_bind){ .bytes = 0 };
        vkt_attention_emit(e, VKT_ATTENTION_DKV, v, &p.pc, heads, p.bind);
    }
}

/* Counts for each score five products of `width` multiply-adds each, and five operations. One of the five products
 * computes the score again. */
static double dx_flops(const vkt_node *n)
{
    return pairs_of(n) * (10.0 * form_of_node(n).width + 5);
}

/* delta is the sum of dy * y over a row of y. The gradient of the scores is ds = p (dy v^T - delta), where p is the
 * softmax of the scores. If y is stored in 16 bits, delta is computed from the rounded y. In this case the sum of ds
 * over a row is not 0: it is the sum of dy times the rounding errors of y. If v is stored in 16 bits, its rounding
 * causes errors of the same magnitude in ds, because no y is larger than the largest v. So y may be stored in 16
 * bits. */
const vkt_op vkt_op_attention_dx = {
    .name = "attention_dx",
    .min_in = 4,
    .max_in = 6,
    .attr_bytes = sizeof(vkt_attention_attr),
    .infer = dx_infer,
    .emit = dx_emit,
    .half_rows = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_IN(3) | VKT_HALF_IN(4) | VKT_HALF_IN(5) | VKT_HALF_OUT(0) |
                 VKT_HALF_OUT(1) | VKT_HALF_OUT(2),
    .forward_only = true,
    .tested_by = "attention",
    .flops = dx_flops,
    .fields = fields,
    .formula =
        "dv = p^T dy, ds = p (dy v^T - sum dy y), dq = scale ds k, dk = scale ds^T q; dk and dv: sums over a group",
};

/* ---- building ---- */

static const vkt_attention_params defaults;
static const uint32_t heads_second[] = { 0, 2, 1, 3 }; /* (B,T,H,D) to (B,H,T,D), and back */

static float scale_of(const vkt_attention_params *p, uint32_t width)
{
    return vkt_or_f32(p->scale, (float)(1 / sqrt((double)width)));
}

/* Returns true if the attention kernels can compute these options and this width of a head. */
static bool is_plain_attention(const vkt_attention_params *p, uint32_t width)
{
    return vkt_or_f32(p->dropout, 0) == 0 && !p->mask.id && has_kernels(width);
}

/* Returns scale * s + mask. The mask must broadcast to the shape of the scores s; else the graph's error is set. */
static vkt_tensor masked_scores(vkt_graph *g, vkt_tensor s, float scale, vkt_tensor mask)
{
    if (g->status != VKT_OK || mask.id >= g->n_values) return (vkt_tensor){ 0 };
    const vkt_shape whole = vkt_tensor_shape(g, s), own = vkt_tensor_shape(g, mask);
    const uint32_t missing = whole.rank - own.rank;
    bool ok = own.rank <= whole.rank && vkt_value_of(g, mask)->dtype == VKT_F32;
    for (uint32_t i = 0; ok && i < own.rank; i++) ok = own.dim[i] == 1 || own.dim[i] == whole.dim[i + missing];
    char wt[80], pt[80];
    if (!ok) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE,
                                    "attention: want a mask f32 that broadcasts to the scores %s, got %s %s",
                                    vkt_shape_text(whole, wt), vkt_dtype_name(vkt_value_of(g, mask)->dtype),
                                    vkt_shape_text(own, pt)));
        return (vkt_tensor){ 0 };
    }
    return vkt_add(g, vkt_scale(g, s, scale, 0), vkt_to_layout(g, mask, VKT_ROWS));
}

/* Returns the number of heads of q (..,H,T,D); 1 if there is no such dimension. */
static uint32_t heads_of(vkt_shape q)
{
    return q.rank >= 3 ? q.dim[q.rank - 3] : 1;
}

/* Returns how many heads of q read the same head of k and v. If there is no such whole number, sets the graph's error
 * and returns 0. */
static uint32_t group_of(vkt_graph *g, const vkt_attention_params *p, uint32_t heads)
{
    if (p->kv_heads == 0 || heads == 0) return 1;
    if (heads % p->kv_heads == 0) return heads / p->kv_heads;
    vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE, "attention: want kv_heads that divide the %u heads, got %u",
                                heads, p->kv_heads));
    return 0;
}

/* Returns true if the leading dimensions of q, k and v fit, q and k have equal widths, and k and v have equal lengths.
 * Else sets the graph's error and returns false. */
static bool fits(vkt_graph *g, vkt_tensor q, vkt_tensor k, vkt_tensor v, uint32_t group)
{
    const vkt_shape s = vkt_tensor_shape(g, q), t = vkt_tensor_shape(g, k), u = vkt_tensor_shape(g, v);
    if (heads_fit(s, t, group) && heads_fit(s, u, group) && s.dim[s.rank - 1] == t.dim[s.rank - 1] &&
        t.dim[s.rank - 2] == u.dim[s.rank - 2])
        return true;
    char st[80], tt[80], ut[80], heads[16] = "";
    if (group != 1) snprintf(heads, sizeof heads, "%u,", heads_of(s) / group);
    vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE,
                                "attention: want q (..,T,D), k (..,%sS,D) and v (..,%sS,E), got %s, %s and %s", heads,
                                heads, vkt_shape_text(s, st), vkt_shape_text(t, tt), vkt_shape_text(u, ut)));
    return false;
}

/* Computes attention by nodes of other ops. The `group` heads of q that read the same head of k and v are one matrix of
 * group * T rows in the products. So k and v are not repeated. */
static vkt_tensor composed(vkt_graph *g, const vkt_tensor in[3], uint32_t group, float scale,
                           const vkt_attention_params *p)
{
    const vkt_shape s = vkt_tensor_shape(g, in[0]), k = vkt_tensor_shape(g, in[1]), v = vkt_tensor_shape(g, in[2]);
    const uint32_t last = s.rank - 1;
    vkt_shape rows = s, scores_of = s, y = s;
    vkt_tensor q = in[0];
    if (group > 1) {
        rows.dim[last - 2] = k.dim[last - 2];
        rows.dim[last - 1] = group * s.dim[last - 1];
        q = vkt_reshape(g, q, rows);
    }
    vkt_tensor scores = vkt_matmul(g, q, in[1], false, true);
    rows.dim[last] = scores_of.dim[last] = k.dim[last - 1];
    y.dim[last] = v.dim[last];
    if (group > 1) scores = vkt_reshape(g, scores, scores_of);
    if (p->mask.id) scores = masked_scores(g, scores, scale, p->mask);
    vkt_tensor weights = vkt_softmax_of_scores(g, scores, p->mask.id ? 1 : scale, p->causal);
    if (vkt_or_f32(p->dropout, 0) != 0) weights = vkt_dropout(g, weights, p->dropout);
    if (group > 1) weights = vkt_reshape(g, weights, rows);
    const vkt_tensor out = vkt_matmul(g, weights, in[2], false, false);
    return group > 1 ? vkt_reshape(g, out, y) : out;
}

vkt_tensor vkt_attention(vkt_graph *g, vkt_tensor q, vkt_tensor k, vkt_tensor v, const vkt_attention_params *p)
{
    if (!g) return (vkt_tensor){ 0 };
    if (!p) p = &defaults;
    if (!vkt_is_usable(g, "attention", q) || !vkt_is_usable(g, "attention", k) || !vkt_is_usable(g, "attention", v))
        return (vkt_tensor){ 0 };
    const uint32_t group = group_of(g, p, heads_of(vkt_tensor_shape(g, q)));
    if (group == 0 || !fits(g, q, k, v, group)) return (vkt_tensor){ 0 };
    vkt_tensor in[] = { q, k, v };
    for (int i = 0; i < 3; i++) in[i] = vkt_to_layout(g, in[i], VKT_ROWS);
    const vkt_shape s = vkt_tensor_shape(g, q), u = vkt_tensor_shape(g, v);
    const uint32_t width = s.dim[s.rank - 1];
    const float scale = scale_of(p, width);
    if (!is_plain_attention(p, width) || u.dim[u.rank - 1] != width) return composed(g, in, group, scale, p);
    const vkt_attention_attr a = { .heads = 1, .group = group, .causal = p->causal, .scale = scale };
    return vkt_apply(g, &vkt_op_attention, in, 3, &a, NULL);
}

/* Splits qkv (B,T,3 D) into three parts (B,H,T,D/H). One permutation is enough, because the three parts are
 * neighbouring slices of the permuted tensor. */
static vkt_result split_heads(vkt_graph *g, vkt_tensor qkv, uint32_t heads, vkt_tensor parts[3])
{
    static const uint32_t part_first[] = { 2, 0, 3, 1, 4 }, one_each[] = { 1, 1, 1 };
    const vkt_shape s = vkt_tensor_shape(g, qkv);
    const vkt_shape by_head = { 5, { s.dim[0], s.dim[1], 3, heads, s.dim[2] / 3 / heads } };
    const vkt_tensor permuted = vkt_permute(g, vkt_reshape(g, qkv, by_head), part_first);
    VKT_TRY(vkt_split_sizes(g, permuted, 0, one_each, 3, parts));
    for (int i = 0; i < 3; i++) parts[i] = vkt_squeeze(g, parts[i], 0);
    return VKT_OK;
}

/* Splits qkv (B,T,(H + 2 K) D) into q (B,H,T,D), k and v (B,K,T,D). */
static vkt_result split_groups(vkt_graph *g, vkt_tensor qkv, uint32_t heads, uint32_t kv_heads, vkt_tensor parts[3])
{
    const uint32_t all = heads + 2 * kv_heads;
    const vkt_shape s = vkt_tensor_shape(g, qkv), by_head = vkt_shape4(s.dim[0], s.dim[1], all, s.dim[2] / all);
    const vkt_tensor permuted = vkt_permute(g, vkt_reshape(g, qkv, by_head), heads_second);
    return vkt_split_sizes(g, permuted, 1, (uint32_t[]){ heads, kv_heads, kv_heads }, 3, parts);
}

/* Returns whether qkv is (B,T,(heads + 2 heads / group) D). Else sets the graph's error. */
static bool packed_fits(vkt_graph *g, vkt_shape s, uint32_t heads, uint32_t group)
{
    const uint64_t all = heads + 2ull * (heads / group);
    char text[80], want[64] = "(B,T,3 D) and heads that divide D";
    if (s.rank == 3 && heads != 0 && s.dim[2] % all == 0) return true;
    if (group != 1) snprintf(want, sizeof want, "(B,T,(%u + 2 x %u) D) and heads", heads, heads / group);
    vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE, "attention: want q, k and v as %s, got %s and %u", want,
                                vkt_shape_text(s, text), heads));
    return false;
}

vkt_tensor vkt_attention_packed(vkt_graph *g, vkt_tensor qkv, uint32_t heads, const vkt_attention_params *p)
{
    if (!g) return (vkt_tensor){ 0 };
    if (!p) p = &defaults;
    if (!vkt_is_usable(g, "attention", qkv)) return (vkt_tensor){ 0 };
    vkt_shape s = vkt_tensor_shape(g, qkv);
    const uint32_t group = group_of(g, p, heads);
    if (group == 0 || !packed_fits(g, s, heads, group)) return (vkt_tensor){ 0 };
    const uint32_t kv_heads = heads / group, width = s.dim[2] / (heads + 2 * kv_heads);
    s.dim[2] = heads * width;
    if (is_plain_attention(p, width)) {
        const vkt_attention_attr a = {
            .heads = heads, .group = group, .causal = p->causal, .scale = scale_of(p, width)
        };
        return vkt_apply(g, &vkt_op_attention, (vkt_tensor[]){ vkt_to_layout(g, qkv, VKT_ROWS) }, 1, &a, NULL);
    }
    vkt_tensor parts[3];
    const vkt_result split =
        group == 1 ? split_heads(g, qkv, heads, parts) : split_groups(g, qkv, heads, kv_heads, parts);
    if (split != VKT_OK) return (vkt_tensor){ 0 };
    vkt_attention_params own = *p;
    own.kv_heads = kv_heads;
    const vkt_tensor y = vkt_attention(g, parts[0], parts[1], parts[2], &own);
    return vkt_reshape(g, vkt_permute(g, y, heads_second), s);
}
