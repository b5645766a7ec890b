/* ops/subject.c - see subject.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "ops/subject.h"
#include "support/host.h"

static void *allocate(size_t n, size_t size)
{
    void *p = calloc(n, size);
    assert_non_null(p);
    return p;
}

size_t side_count(const side *v)
{
    return (size_t)vkt_shape_elements(v->ref.shape);
}

double side_get(const side *v, size_t i)
{
    return v->ref.u ? v->ref.u[i] : v->ref.f[i];
}

static void side_make(side *v, vkt_dtype dtype, vkt_layout layout, vkt_shape shape)
{
    v->ref = (vkt_ref_tensor){ .shape = shape, .dtype = dtype, .layout = layout };
    if (dtype == VKT_U32)
        v->ref.u = allocate(side_count(v), sizeof *v->ref.u);
    else
        v->ref.f = allocate(side_count(v), sizeof *v->ref.f);
}

/* The side of a value that the graph has already. */
static void side_of(side *v, const vkt_graph *g, vkt_tensor t)
{
    const vkt_value *value = vkt_value_of(g, t);
    v->t = t;
    side_make(v, value->dtype, value->layout, value->shape);
}

/* ---- data ---- */

/* A random order of 0 .. n-1 (Fisher & Yates; Knuth, The Art of Computer Programming 2, 3.4.2, algorithm P). */
static uint32_t *permutation(vkt_rng *r, size_t n)
{
    uint32_t *p = allocate(n, sizeof *p);
    for (size_t i = 0; i < n; i++) {
        const uint32_t k = vkt_rng_range(r, 0, (uint32_t)i);
        p[i] = p[k];
        p[k] = (uint32_t)i;
    }
    return p;
}

static void draw_floats(vkt_rng *r, const vkt_case_input *c, side *v)
{
    const size_t n = side_count(v);
    uint32_t *level = c->distinct ? permutation(r, n) : NULL;
    float *data = v->data = allocate(n, sizeof *data);
    for (size_t i = 0; i < n; i++) {
        const float u = vkt_rng_unit(r);
        data[i] = c->lo + (c->hi - c->lo) * (level ? ((float)level[i] + 0.5f * u) / (float)n : u);
        v->ref.f[i] = (double)data[i];
    }
    free(level);
}

static void draw_integers(vkt_rng *r, const vkt_case_input *c, side *v)
{
    const size_t n = side_count(v);
    v->data = allocate(n, vkt_dtype_bytes(c->dtype));
    for (size_t i = 0; i < n; i++) {
        const uint32_t k = vkt_rng_range(r, 0, c->bound - 1);
        if (c->dtype == VKT_U8) {
            ((uint8_t *)v->data)[i] = (uint8_t)k;
            v->ref.f[i] = k;
        } else {
            ((uint32_t *)v->data)[i] = v->ref.u[i] = k;
        }
    }
}

/* Draws from a stream of its own, so that one input's size does not move the others' numbers. */
static void make_input(subject *s, side *v, const char *name, uint32_t stream, const vkt_case_input *c)
{
    vkt_rng r = vkt_rng_make(s->seed, VKT_STREAM_TEST, 1, stream);
    v->t = vkt_input(s->g, name, c->dtype, c->layout, c->shape);
    assert_int_not_equal(v->t.id, 0);
    side_make(v, c->dtype, c->layout, c->shape);
    if (c->dtype == VKT_F32)
        draw_floats(&r, c, v);
    else
        draw_integers(&r, c, v);
}

void subject_set(side *v, const float *data, size_t n)
{
    assert_int_equal(n, side_count(v));
    for (size_t i = 0; i < n; i++) {
        if (v->ref.u) {
            ((uint32_t *)v->data)[i] = v->ref.u[i] = (uint32_t)data[i];
        } else {
            ((float *)v->data)[i] = data[i];
            v->ref.f[i] = (double)data[i];
        }
    }
}

void subject_begin(subject *s, uint64_t seed)
{
    const vkt_host h = vkt_test_host();
    *s = (subject){ .seed = seed };
    assert_int_equal(vkt_graph_create(&h, &s->g), VKT_OK);
}

/* Input i of the case, which is described already. */
static void add_input(subject *s, uint32_t i)
{
    char name[16];
    snprintf(name, sizeof name, "in%u", i);
    if (!s->c.in[i].absent) make_input(s, &s->in[i], name, i, &s->c.in[i]);
}

void subject_input(subject *s, const vkt_case_input *c, const float *data)
{
    const uint32_t i = s->c.n_in++;
    s->c.in[i] = *c;
    add_input(s, i);
    if (data) subject_set(&s->in[i], data, side_count(&s->in[i]));
}

/* ---- the graph ---- */

static void describe(subject *s)
{
    char shape[80];
    size_t n = 0;
    for (uint32_t i = 0; i < s->c.n_in && n < sizeof s->c.text; i++) {
        const vkt_case_input *in = &s->c.in[i];
        const char *layout = in->layout == VKT_BATCH_LAST ? " batch last" : "";
        const char *text = in->absent ? "none" : vkt_shape_text(in->shape, shape);
        n += (size_t)snprintf(s->c.text + n, sizeof s->c.text - n, "%s%s%s", i ? ", " : "", text, layout);
    }
    if (s->run.rows && n < sizeof s->c.text)
        snprintf(s->c.text + n, sizeof s->c.text - n, "; rows %u, first %u", s->run.rows, s->run.first);
}

/* What the step state says. The clock needs a store, and a store a parameter. */
static void draw_step(subject *s, const vkt_op *op, vkt_rng *r)
{
    vkt_param(s->g, "clock's", vkt_shape1(1));
    s->run.lr = vkt_rng_uniform(r, 1e-3f, 1);
    s->t = vkt_rng_range(r, 0, 1) ? vkt_rng_range(r, 1, 5000) : 0;
    s->key = vkt_rng_u32(r) | (uint64_t)vkt_rng_u32(r) << 32;
    if (op->side_effect) { /* an optimizer: the clock advances by its betas */
        memcpy(&s->g->optimizer, s->c.attr, sizeof s->g->optimizer);
        s->g->has_optimizer = true;
    }
}

/* The outputs of the node that makes `out`. */
static void take_outputs(subject *s, vkt_tensor out)
{
    const vkt_node *n = s->g->nodes[vkt_value_of(s->g, out)->producer - 1];
    s->op = n->op;
    s->ref = vkt_ref_find(n->op->name);
    if (!s->ref) fail_msg("%s has no reference", s->op->name);
    if (!s->ref->backward != !s->op->diff) fail_msg("%s: only one of row and reference has a gradient", s->op->name);
    if (s->op->attr_bytes) vkt_case_attr(&s->c, n->attr, s->op->attr_bytes);
    for (; s->n_out < n->n_out; s->n_out++) {
        vkt_keep(s->g, n->out[s->n_out]);
        side_of(&s->out[s->n_out], s->g, n->out[s->n_out]);
    }
}

/* Seeds for the outputs that have a meaning, and the gradients of all inputs that have one. */
static void differentiate(subject *s)
{
    vkt_tensor outs[VKT_MAX_OUT], seeds[VKT_MAX_OUT], wrt[VKT_MAX_IN], grads[VKT_MAX_IN];
    uint32_t n_outs = 0, n_wrt = 0, input_of[VKT_MAX_IN];
    for (uint32_t i = 0; i < s->n_out && i < s->ref->n_out; i++) {
        const vkt_ref_tensor *y = &s->out[i].ref;
        if (y->dtype != VKT_F32) continue;
        const vkt_case_input seed = { .layout = y->layout, .shape = y->shape, .lo = -1, .hi = 1 };
        char name[16];
        snprintf(name, sizeof name, "dy%u", i);
        make_input(s, &s->dout[i], name, VKT_MAX_IN + i, &seed);
        outs[n_outs] = s->out[i].t;
        seeds[n_outs++] = s->dout[i].t;
    }
    for (uint32_t i = 0; i < s->c.n_in; i++)
        if (s->in[i].t.id && (s->op->diff >> i & 1)) {
            input_of[n_wrt] = i;
            wrt[n_wrt++] = s->in[i].t;
        }
    assert_int_equal(vkt_gradients(s->g, outs, seeds, n_outs, wrt, n_wrt, grads), VKT_OK);
    for (uint32_t i = 0; i < n_wrt; i++) {
        assert_int_not_equal(grads[i].id, 0);
        vkt_keep(s->g, grads[i]);
        side_of(&s->din[input_of[i]], s->g, grads[i]);
    }
}

/* A row that is free (its result is its input's memory) leaves nothing to run: this reads the result. */
static void read_alias(subject *s)
{
    const bool is_free = s->g->values[s->out[0].t.id].alias != 0;
    if (is_free && !s->op->side_effect) vkt_keep(s->g, vkt_sum(s->g, s->out[0].t));
}

void subject_take(subject *s, vkt_tensor out)
{
    assert_int_equal(vkt_graph_status(s->g), VKT_OK);
    take_outputs(s, out);
    if (s->op->diff) differentiate(s);
    read_alias(s);
    describe(s);
}

void subject_make(subject *s, const vkt_op *op, uint64_t seed)
{
    vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 0, 0);
    vkt_tensor in[VKT_MAX_IN] = { { 0 } };
    subject_begin(s, seed);
    op->sample(&r, &s->c);
    if (s->c.attr_bytes != op->attr_bytes)
        fail_msg("%s: the sample has %zu bytes of attributes, the row %zu", op->name, s->c.attr_bytes, op->attr_bytes);
    s->run.rows = s->c.rows;
    if (op->uses_step) draw_step(s, op, &r);
    for (uint32_t i = 0; i < s->c.n_in; i++) {
        add_input(s, i);
        in[i] = s->in[i].t;
    }
    const vkt_tensor out = vkt_apply(s->g, op, in, s->c.n_in, s->c.attr, NULL);
    if (strncmp(op->name, "gather", 6) == 0 && out.id) /* the batch may start anywhere in the order */
        s->run.first = vkt_rng_range(&r, 0, s->c.in[1].shape.dim[0] - vkt_tensor_shape(s->g, out).dim[0]);
    subject_take(s, out);
    subject_forward(s);
    subject_backward(s);
}

static void side_free(side *v)
{
    free(v->ref.f);
    free(v->ref.u);
    free(v->data);
}

void subject_free(subject *s)
{
    for (int i = 0; i < VKT_MAX_IN; i++) {
        side_free(&s->in[i]);
        side_free(&s->din[i]);
    }
    for (int i = 0; i < VKT_MAX_OUT; i++) {
        side_free(&s->out[i]);
        side_free(&s->dout[i]);
    }
    vkt_graph_destroy(&s->g);
}

/* ---- the reference ---- */

typedef struct call {
    vkt_ref_call c;
    vkt_ref_tensor in[VKT_MAX_IN], out[VKT_MAX_OUT];
    const double *dout[VKT_MAX_OUT];
    double *din[VKT_MAX_IN];
} call;

static void prepare(const subject *s, call *c)
{
    *c = (call){ .c = { .attr = s->c.attr,
                        .n_in = s->c.n_in,
                        .n_out = s->n_out,
                        .in = c->in,
                        .out = c->out,
                        .dout = c->dout,
                        .din = c->din,
                        .rows = s->run.rows ? s->run.rows : s->c.in[0].shape.dim[0],
                        .first = s->run.first,
                        .seed = s->key,
                        .t = (uint32_t)s->t + (s->g->has_optimizer ? 1 : 0),
                        .lr = (double)s->run.lr } };
    for (uint32_t i = 0; i < s->c.n_in; i++) {
        c->in[i] = s->in[i].ref;
        c->din[i] = s->din[i].ref.f;
    }
    for (uint32_t i = 0; i < s->n_out; i++) {
        c->out[i] = s->out[i].ref;
        c->dout[i] = s->dout[i].ref.f;
    }
}

void subject_forward(subject *s)
{
    call c;
    prepare(s, &c);
    s->ref->forward(&c.c);
}

void subject_backward(subject *s)
{
    if (!s->ref->backward) return;
    call c;
    prepare(s, &c);
    for (uint32_t i = 0; i < s->c.n_in; i++)
        if (c.din[i]) memset(c.din[i], 0, side_count(&s->din[i]) * sizeof *c.din[i]);
    s->ref->backward(&c.c);
}
