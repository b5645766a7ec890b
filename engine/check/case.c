/* check/case.c - see case.h. */
#include "check/case.h"

#include <stdio.h>

void vkt_case_text(const vkt_host *h, const vkt_op *op, const vkt_case *c, char out[160])
{
    vkt_text t = { .h = h };
    char shape[80];
    for (uint32_t i = 0; i < c->n_in; i++) {
        const vkt_case_input *in = &c->in[i];
        if (i) vkt_text_add(&t, " ");
        if (in->absent) {
            vkt_text_add(&t, "-");
            continue;
        }
        if (in->dtype == VKT_F16) vkt_text_add(&t, "f16");
        if (vkt_is_integer(in->dtype)) vkt_text_add(&t, "%s<%u", vkt_dtype_name(in->dtype), in->bound);
        vkt_text_add(&t, "%s%s%s", in->dtype == VKT_F32 && in->lo > 0 ? "+" : "", vkt_shape_text(in->shape, shape),
                     in->layout == VKT_BATCH_LAST ? "b" : "");
    }
    if (op->fields) {
        vkt_text attrs = { .h = h };
        vkt_attr_text(op, c->attr, &attrs);
        if (attrs.s && *attrs.s) vkt_text_add(&t, " %s", attrs.s);
        vkt_text_free(&attrs);
    }
    snprintf(out, 160, "%s", t.s ? t.s : "");
    vkt_text_free(&t);
}

/* ---- smaller cases ---- */

static uint32_t half(uint32_t n)
{
    return n % 8 == 0 ? n / 2 : (uint32_t)vkt_round_up(n / 2, n % 4 == 0 ? 4 : 1);
}

/* Limits c->rows to the batch: dimension 0 of input 0. */
static void limit_rows(vkt_case *c)
{
    if (c->in[0].shape.rank) c->rows = VKT_MIN(c->rows, c->in[0].shape.dim[0]);
}

bool vkt_case_halve(const vkt_op *op, vkt_case *c)
{
    uint32_t most = 16;
    for (uint32_t i = 0; i < c->n_in; i++)
        for (uint32_t k = 0; k < c->in[i].shape.rank; k++) most = VKT_MAX(most, c->in[i].shape.dim[k]);
    if (most == 16) return false;
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (c->in[i].bound == most) c->in[i].bound = half(most);
        for (uint32_t k = 0; k < c->in[i].shape.rank; k++)
            if (c->in[i].shape.dim[k] == most) c->in[i].shape.dim[k] = half(most);
    }
    limit_rows(c);
    if (op->settle) op->settle(c->attr, c->in);
    return true;
}

bool vkt_case_halve_batch(vkt_case *c)
{
    const uint32_t batch = c->n_in && c->in[0].shape.rank ? c->in[0].shape.dim[0] : 0;
    if (batch <= 4) return false;
    for (uint32_t i = 0; i < c->n_in; i++) {
        vkt_case_input *in = &c->in[i];
        const bool weight = c->in[0].layout == VKT_BATCH_LAST && in->layout == VKT_ROWS && in->dtype == VKT_F32;
        if (!weight && in->shape.rank && in->shape.dim[0] == batch) in->shape.dim[0] = half(batch);
    }
    limit_rows(c);
    return true;
}

static double elements_of(const vkt_node *n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n->n_in; i++) sum += vkt_elements_in(n, i);
    for (uint32_t i = 0; i < n->n_out; i++) sum += vkt_elements_out(n, i);
    return sum;
}

/* Makes a graph with the case as its only node. The caller destroys the graph, also after a failure. */
static vkt_result graph_of(const vkt_host *h, const vkt_op *op, const vkt_case *c, vkt_graph **g)
{
    vkt_tensor in[VKT_MAX_IN] = { { 0 } };
    VKT_TRY(vkt_graph_create(h, g));
    for (uint32_t i = 0; i < c->n_in; i++)
        if (!c->in[i].absent) in[i] = vkt_input(*g, "in", c->in[i].dtype, c->in[i].layout, c->in[i].shape);
    vkt_apply(*g, op, in, c->n_in, c->attr, NULL);
    return vkt_graph_status(*g);
}

vkt_result vkt_case_cost(const vkt_host *h, const vkt_op *op, const vkt_case *c, double *cost)
{
    enum { BACKWARD = 2, AN_ELEMENT = 16 };
    vkt_graph *g;
    const vkt_result r = graph_of(h, op, c, &g);
    if (r == VKT_OK) {
        const vkt_node *n = g->nodes[g->n_nodes - 1];
        const double times = op->diff ? 1 + BACKWARD : 1;
        *cost = times * op->flops(n) + AN_ELEMENT * (op->diff ? 2 : 1) * elements_of(n);
    }
    vkt_graph_destroy(&g);
    return r;
}

/* ---- cases of nodes ---- */

/* The range or bound of an input's numbers is found from SAMPLES random cases of the op. */
enum { SAMPLES = 64 };
/* An input of ids contains indices along a dimension. The ids are below vkt_case_input.bound. This bound may exceed the
 * size of the dimension by up to SLACK, so a case may have invalid ids. */
enum { SLACK = 2 };
/* Only the first FIELDS attributes of an op may give a bound. */
enum { FIELDS = 32 };

/* Generates the op's random case for `seed`. */
static void draw(const vkt_op *op, uint64_t seed, vkt_case *c)
{
    vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 0, 0);
    *c = (vkt_case){ .n_in = 0 };
    op->sample(&r, c);
}

/* Returns whether the same inputs are absent in both cases, and the other inputs have the same types in both cases. */
static bool has_such_inputs(const vkt_case *a, const vkt_case *b)
{
    for (uint32_t i = 0; i < VKT_MAX_IN; i++) {
        const bool in_a = i < a->n_in && !a->in[i].absent, in_b = i < b->n_in && !b->in[i].absent;
        if (in_a != in_b || (in_a && a->in[i].dtype != b->in[i].dtype)) return false;
    }
    return true;
}

/* Returns how many bytes of the attributes are equal in both cases. */
static size_t likeness(const vkt_case *a, const vkt_case *b)
{
    size_t same = 0;
    for (size_t i = 0; i < a->attr_bytes; i++) same += a->attr[i] == b->attr[i];
    return same;
}

/* The facts that the random cases of an op show about the bound of one input of integers. All integers of the input are
 * below this bound. */
typedef struct bound {
    bool same;                              /* all cases have the same bound: `least` */
    bool follows[VKT_MAX_IN][VKT_MAX_RANK]; /* [k][d]: in all cases the bound is at least the size of dimension d of
                                             * input k, and at most this size + slack[k][d] */
    uint32_t least, slack[VKT_MAX_IN][VKT_MAX_RANK];
    bool follows_field[FIELDS]; /* [f]: in all cases the bound is at least the attribute vkt_op.fields[f], and at most
                                 * this attribute + SLACK */
} bound;

/* Returns the attribute of field f in a case; 0 if the attribute is not a single u32. */
static uint32_t field_value(const vkt_field *f, const vkt_case *c)
{
    uint32_t value = 0;
    if (f->kind == VKT_FIELD_U32 && f->count == 1) memcpy(&value, c->attr + f->offset, sizeof value);
    return value;
}

static void add_sample(bound *b, const vkt_op *op, const vkt_case *s, uint32_t i)
{
    const uint32_t it = s->in[i].bound;
    b->same = b->same && (b->least == 0 || it == b->least);
    b->least = b->least ? VKT_MIN(b->least, it) : it;
    for (uint32_t k = 0; k < VKT_MAX_IN; k++)
        for (uint32_t d = 0; d < VKT_MAX_RANK; d++) {
            const uint32_t dim = k < s->n_in && d < s->in[k].shape.rank ? s->in[k].shape.dim[d] : 0;
            b->follows[k][d] = b->follows[k][d] && dim && it >= dim && it - dim <= SLACK;
            if (b->follows[k][d]) b->slack[k][d] = VKT_MAX(b->slack[k][d], it - dim);
        }
    for (uint32_t f = 0; op->fields && op->fields[f].name && f < FIELDS; f++) {
        const uint32_t value = field_value(&op->fields[f], s);
        b->follows_field[f] = b->follows_field[f] && value && it >= value && it - value <= SLACK;
    }
}

static bound find_bound(const vkt_op *op, const vkt_case *c, uint32_t i)
{
    bound b = { .same = true };
    memset(b.follows, 1, sizeof b.follows);
    memset(b.follows_field, 1, sizeof b.follows_field);
    for (uint64_t seed = 1; seed <= SAMPLES; seed++) {
        vkt_case s;
        draw(op, seed, &s);
        if (i < s.n_in && s.in[i].dtype == c->in[i].dtype && !s.in[i].absent) add_sample(&b, op, &s, i);
    }
    return b;
}

/* Finds a dimension of an input of `c` that the bound follows (b->follows). Returns false if there is no such
 * dimension, or if all random cases have the same bound (b->same). */
static bool find_dimension(const bound *b, const vkt_case *c, uint32_t *in, uint32_t *dim)
{
    for (uint32_t k = 0; k < c->n_in && !b->same; k++)
        for (uint32_t d = 0; d < c->in[k].shape.rank; d++)
            if (b->follows[k][d]) return *in = k, *dim = d, true;
    return false;
}

/* Returns the bound of the integers in input i. If all random cases of the op have the same bound, returns this bound.
 * If in all random cases the bound equals one dimension or one attribute, or is larger by up to SLACK, returns the
 * value of this dimension or attribute in `c`. Otherwise returns the smallest bound of the random cases. */
static uint32_t bound_of(const vkt_op *op, const vkt_case *c, uint32_t i)
{
    const bound b = find_bound(op, c, i);
    uint32_t k, d;
    if (find_dimension(&b, c, &k, &d)) return c->in[k].shape.dim[d];
    for (uint32_t f = 0; !b.same && op->fields && op->fields[f].name && f < FIELDS; f++)
        if (b.follows_field[f]) return field_value(&op->fields[f], c);
    return b.least;
}

static vkt_result check_bounds(const vkt_host *h, const vkt_op *op, const vkt_case *c)
{
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (c->in[i].absent || !vkt_is_integer(c->in[i].dtype)) continue;
        const bound b = find_bound(op, c, i);
        uint32_t k, d;
        if (!find_dimension(&b, c, &k, &d)) continue;
        const uint64_t most = (uint64_t)c->in[k].shape.dim[d] + b.slack[k][d];
        if (c->in[i].bound > most)
            return vkt_fail(h, VKT_E_ARG, "%s: input %u has numbers below %u; dimension %u of input %u allows %llu",
                            op->name, i, c->in[i].bound, d, k, (unsigned long long)most);
    }
    return VKT_OK;
}

vkt_result vkt_case_check(const vkt_host *h, const vkt_op *op, const vkt_case *c)
{
    vkt_graph *g;
    const vkt_result r = graph_of(h, op, c, &g);
    vkt_graph_destroy(&g);
    return r == VKT_OK ? check_bounds(h, op, c) : r;
}

bool vkt_case_of_node(const vkt_node *n, vkt_case *c)
{
    vkt_case best = { .n_in = 0 };
    size_t most = 0;
    *c = (vkt_case){ .n_in = VKT_MIN(n->n_in, n->op->max_in) };
    if (n->op->attr_bytes) vkt_case_attr(c, n->attr, n->op->attr_bytes);
    for (uint32_t i = 0; i < c->n_in; i++) {
        const vkt_value *v = vkt_node_in(n, i);
        c->in[i] = (vkt_case_input){ .dtype = v->dtype, .layout = v->layout, .shape = v->shape };
        c->in[i].absent = n->in[i].id == 0;
    }
    for (uint64_t seed = 1; seed <= SAMPLES; seed++) {
        vkt_case s;
        draw(n->op, seed, &s);
        if (!has_such_inputs(c, &s) || likeness(c, &s) + 1 <= most) continue;
        most = likeness(c, &s) + 1;
        best = s;
    }
    c->one_sign = best.one_sign;
    for (uint32_t i = 0; i < c->n_in; i++) {
        c->in[i].lo = best.in[i].lo;
        c->in[i].hi = best.in[i].hi;
        c->in[i].grid = best.in[i].grid;
        c->in[i].distinct = best.in[i].distinct;
        if (!c->in[i].absent && vkt_is_integer(c->in[i].dtype)) c->in[i].bound = bound_of(n->op, c, i);
    }
    if (!most) *c = (vkt_case){ .n_in = 0 };
    return most != 0;
}
