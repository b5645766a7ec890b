/* ops/product/attention.c - scaled dot-product attention: see vktrain/ops.h. It is one node if the attention kernels
 * can compute it. Otherwise it consists of nodes of other ops, and the weights are stored. */
#include "ops/product/attention_tiles.h"

#include <math.h>

/* The largest width of a head that the kernels can compute, because the sums of a row must stay in registers. */
#define MAX_WIDTH 128u

static bool has_kernels(uint32_t width)
{
    return width % 4 == 0 && width != 0 && width <= MAX_WIDTH;
}

/* ---- attention: q, k, v, or all in one -> y, lse ---- */

/* The shapes of q, k and v. There are either three tensors with one head, q (..,T,D), k and v (..,S,D), or one tensor
 * (B,T,3 H D), which has q, k and v of all H heads side by side (`packed`). */
typedef struct form {
    bool packed;
    uint64_t samples;
    uint32_t heads, queries, keys, width;
} form;

static form form_of(const vkt_attention_attr *a, const vkt_value *q, const vkt_value *k)
{
    const vkt_shape s = q->shape;
    form f = {
        .packed = !k, .samples = 1, .heads = a->heads, .queries = s.dim[s.rank - 2], .width = s.dim[s.rank - 1]
    };
    for (uint32_t i = 0; i + 2 < s.rank; i++) f.samples *= s.dim[i];
    if (f.packed) f.width /= 3 * f.heads;
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
    return y_sample(f) * (f->packed ? 3 : 1);
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
    VKT_REQUIRE(f, s.rank == 3 && a->heads && s.dim[2] % (3ull * a->heads) == 0, VKT_E_SHAPE,
                "%s: want (B,T,3 D) and heads that divide D, got %s and %u", f->n->op->name, vkt_shape_text(s, text),
                a->heads);
    return VKT_OK;
}

static vkt_result check_apart(const vkt_infer *f)
{
    const vkt_attention_attr *a = f->n->attr;
    const vkt_value *k = vkt_value_of(f->g, optional_in(f->n, 0)), *v = vkt_value_of(f->g, optional_in(f->n, 1));
    const vkt_shape s = vkt_in(f, 0)->shape, t = k->shape;
    char st[80], tt[80], ut[80];
    const bool same = is_plain(k) && is_plain(v) && t.rank == s.rank && vkt_shape_equal(t, v->shape) &&
                      t.dim[t.rank - 1] == s.dim[s.rank - 1] &&
                      memcmp(s.dim, t.dim, (s.rank - 2) * sizeof s.dim[0]) == 0;
    VKT_REQUIRE(f, same && a->heads == 1, VKT_E_SHAPE,
                "%s: want q (..,T,D), k and v (..,S,D) by rows and one head, got %s, %s, %s and %u", f->n->op->name,
                vkt_shape_text(s, st), vkt_shape_text(t, tt), vkt_shape_text(v->shape, ut), a->heads);
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
    if (o.packed) y.dim[2] /= 3;
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
    p.pc = (vkt_attention_push){ .rows = f.queries,
                                 .others = f.keys,
                                 .heads = f.heads,
                                 .d4 = f.width / 4,
                                 .ld = f.width / 4 * (f.packed ? 3 * f.heads : 1),
                                 .causal = ((const vkt_attention_attr *)n->attr)->causal,
                                 .scale = ((const vkt_attention_attr *)n->attr)->scale };
    return p;
}

/* Binds the part's samples of t, `sample` elements each. Returns the index of the first element in the binding. */
static uint32_t bind_samples(const vkt_emit *e, part *p, uint32_t slot, vkt_tensor t, uint64_t sample)
{
    uint32_t at;
    p->bind[slot] = vkt_bind_range(e, t, p->first * sample, p->count * sample, &at);
    return at;
}

/* Binds q, k and v, or their gradients, which are three tensors or one tensor with all three. Sets *at[0], *at[1] and
 * *at[2] to the indices of their first vec4s in the bindings. */
static void bind_three(const vkt_emit *e, part *p, uint32_t slot, const vkt_tensor t[3], uint32_t *const at[3])
{
    const uint32_t width4 = p->f.heads * p->pc.d4;
    for (uint32_t i = 0; i < 3; i++) {
        const uint64_t rows = i ? p->f.keys : p->f.queries;
        if (p->f.packed)
            *at[i] = bind_samples(e, p, slot + i, t[0], q_sample(&p->f)) / 4 + i * width4;
        else
            *at[i] = bind_samples(e, p, slot + i, t[i], rows * p->f.width) / 4;
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
 * largest one counts. Widths are few and heads are short, because each width, and each long head, needs pipelines of
 * its own. test_attention.c has other widths and long heads. */
static void sample(vkt_rng *r, vkt_case *c)
{
    static const uint32_t widths[] = { 4, 8, 20, 32, 36 };
    const uint32_t width = widths[vkt_rng_range(r, 0, VKT_COUNT(widths) - 1)];
    const uint32_t samples = vkt_rng_range(r, 1, 3), heads = vkt_rng_range(r, 1, 3);
    const uint32_t queries = vkt_rng_range(r, 1, 45), keys = vkt_rng_range(r, 1, 45);
    vkt_attention_attr a = { .heads = 1, .causal = vkt_rng_range(r, 0, 1) };
    a.scale = vkt_rng_uniform(r, 0.2f, 1.5f) / sqrtf((float)width);
    if (vkt_rng_range(r, 0, 1)) {
        a.heads = heads;
        vkt_case_f32(c, VKT_ROWS, vkt_shape3(samples, queries, 3 * heads * width), -2, 2);
    } else {
        vkt_case_f32(c, VKT_ROWS, vkt_shape4(samples, heads, queries, width), -2, 2);
        for (int i = 0; i < 2; i++) vkt_case_f32(c, VKT_ROWS, vkt_shape4(samples, heads, keys, width), -2, 2);
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
    .formula = "y = softmax(scale q k^T) v by heads; causal: query t sees keys 0 .. t",
};

/* ---- attention_dx: q (or q, k and v), y, lse, dy, k, v -> gradients of q, k and v ---- */

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

/* Counts for each score five times `width` multiply-adds (once to compute the score again), and five operations. */
static double dx_flops(const vkt_node *n)
{
    return pairs_of(n) * (10.0 * form_of_node(n).width + 5);
}

/* delta is the sum of dy * y over a row of y. If y is stored in 16 bits, delta is computed from the rounded y. Then the
 * sum of ds over a row is not 0, but the sum of dy times the rounding errors of y. The rounding of v to 16 bits changes
 * ds by as much, because no y is larger than the largest v. */
const vkt_op vkt_op_attention_dx = {
    .name = "attention_dx",
    .min_in = 4,
    .max_in = 6,
    .attr_bytes = sizeof(vkt_attention_attr),
    .infer = dx_infer,
    .emit = dx_emit,
    .half_rows = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_IN(3) | VKT_HALF_IN(4) | VKT_HALF_IN(5) | VKT_HALF_OUT(0) |
                 VKT_HALF_OUT(1) | VKT_HALF_OUT(2),
    .tested_by = "attention",
    .flops = dx_flops,
    .fields = fields,
    .formula = "dv = p^T dy, ds = p (dy v^T - sum dy y), dq = scale ds k, dk = scale ds^T q",
};

/* ---- building ---- */

static const vkt_attention_params defaults;

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

/* Returns true if q, k and v have equal leading dimensions, q and k have equal widths, and k and v have equal lengths.
 * Else sets the graph's error and returns false. */
static bool fits(vkt_graph *g, vkt_tensor q, vkt_tensor k, vkt_tensor v)
{
    const vkt_shape s = vkt_tensor_shape(g, q), t = vkt_tensor_shape(g, k), u = vkt_tensor_shape(g, v);
    bool ok = s.rank >= 2 && t.rank == s.rank && u.rank == s.rank;
    if (ok) {
        const size_t lead = (s.rank - 2) * sizeof s.dim[0];
        ok = memcmp(s.dim, t.dim, lead) == 0 && memcmp(s.dim, u.dim, lead) == 0 &&
             s.dim[s.rank - 1] == t.dim[s.rank - 1] && t.dim[s.rank - 2] == u.dim[s.rank - 2];
    }
    char st[80], tt[80], ut[80];
    if (!ok)
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE,
                                    "attention: want q (..,T,D), k (..,S,D) and v (..,S,E), got %s, %s and %s",
                                    vkt_shape_text(s, st), vkt_shape_text(t, tt), vkt_shape_text(u, ut)));
    return ok;
}

vkt_tensor vkt_attention(vkt_graph *g, vkt_tensor q, vkt_tensor k, vkt_tensor v, const vkt_attention_params *p)
{
    if (!g) return (vkt_tensor){ 0 };
    if (!p) p = &defaults;
    if (!vkt_is_usable(g, "attention", q) || !vkt_is_usable(g, "attention", k) || !vkt_is_usable(g, "attention", v))
        return (vkt_tensor){ 0 };
    if (!fits(g, q, k, v)) return (vkt_tensor){ 0 };
    q = vkt_to_layout(g, q, VKT_ROWS);
    k = vkt_to_layout(g, k, VKT_ROWS);
    v = vkt_to_layout(g, v, VKT_ROWS);
    const vkt_shape s = vkt_tensor_shape(g, q), u = vkt_tensor_shape(g, v);
    const uint32_t width = s.dim[s.rank - 1];
    const float scale = scale_of(p, width);
    if (is_plain_attention(p, width) && u.dim[u.rank - 1] == width) {
        const vkt_attention_attr a = { .heads = 1, .causal = p->causal, .scale = scale };
        return vkt_apply(g, &vkt_op_attention, (vkt_tensor[]){ q, k, v }, 3, &a, NULL);
    }
    vkt_tensor scores = vkt_matmul(g, q, k, false, true);
    if (p->mask.id) scores = masked_scores(g, scores, scale, p->mask);
    vkt_tensor weights = vkt_softmax_of_scores(g, scores, p->mask.id ? 1 : scale, p->causal);
    if (vkt_or_f32(p->dropout, 0) != 0) weights = vkt_dropout(g, weights, p->dropout);
    return vkt_matmul(g, weights, v, false, false);
}

/* Splits qkv (B,T,3 D) into three parts (B,H,T,D/H). One transposition serves all three parts, because they are
 * neighbouring slices of its result. */
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

vkt_tensor vkt_attention_packed(vkt_graph *g, vkt_tensor qkv, uint32_t heads, const vkt_attention_params *p)
{
    if (!g) return (vkt_tensor){ 0 };
    static const uint32_t heads_second[] = { 0, 2, 1, 3 };
    if (!p) p = &defaults;
    if (!vkt_is_usable(g, "attention", qkv)) return (vkt_tensor){ 0 };
    vkt_shape s = vkt_tensor_shape(g, qkv);
    char text[80];
    if (s.rank != 3 || heads == 0 || s.dim[2] % (3 * (uint64_t)heads) != 0) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE,
                                    "attention: want q, k and v as (B,T,3 D) and heads that divide D, got %s and %u",
                                    vkt_shape_text(s, text), heads));
        return (vkt_tensor){ 0 };
    }
    s.dim[2] /= 3;
    const uint32_t width = s.dim[2] / heads;
    if (is_plain_attention(p, width)) {
        const vkt_attention_attr a = { .heads = heads, .causal = p->causal, .scale = scale_of(p, width) };
        return vkt_apply(g, &vkt_op_attention, (vkt_tensor[]){ vkt_to_layout(g, qkv, VKT_ROWS) }, 1, &a, NULL);
    }
    vkt_tensor parts[3];
    if (split_heads(g, qkv, heads, parts) != VKT_OK) return (vkt_tensor){ 0 };
    const vkt_tensor y = vkt_attention(g, parts[0], parts[1], parts[2], p);
    return vkt_reshape(g, vkt_permute(g, y, heads_second), s);
}
