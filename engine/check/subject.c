/* check/subject.c - see subject.h. */
#include "check/subject.h"

#include "base/half.h"
#include "check/case.h"

#include <math.h>
#include <stdio.h>

size_t vkt_side_count(const vkt_side *v)
{
    return (size_t)vkt_shape_elements(v->ref.shape);
}

double vkt_side_get(const vkt_side *v, size_t i)
{
    return v->ref.u ? v->ref.u[i] : v->ref.f[i];
}

static vkt_result side_make(vkt_subject *s, vkt_side *v, vkt_dtype dtype, vkt_layout layout, vkt_shape shape)
{
    v->ref = (vkt_ref_tensor){ .shape = shape, .dtype = dtype, .layout = layout };
    if (s->graph_only) return VKT_OK;
    const size_t n = vkt_side_count(v);
    if (dtype == VKT_U32)
        v->ref.u = vkt_alloc_array(&s->host, n, sizeof *v->ref.u);
    else
        v->ref.f = vkt_alloc_array(&s->host, n, sizeof *v->ref.f);
    return v->ref.u || v->ref.f ? VKT_OK : vkt_fail_nomem(&s->host, "a reference", n * sizeof(double));
}

/* Makes the side of a value that the graph has already. */
static vkt_result side_of(vkt_subject *s, vkt_side *v, vkt_tensor t)
{
    const vkt_value *value = vkt_value_of(s->g, t);
    v->t = t;
    return side_make(s, v, value->dtype, value->layout, value->shape);
}

/* ---- data ---- */

/* Fills p with a random permutation of 0 .. n-1 (Fisher & Yates; Knuth, The Art of Computer Programming 2, 3.4.2,
 * algorithm P). */
static void permute(vkt_rng *r, uint32_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t k = vkt_rng_range(r, 0, (uint32_t)i);
        p[i] = p[k];
        p[k] = (uint32_t)i;
    }
}

static void draw_floats(vkt_rng *r, const vkt_case_input *c, vkt_side *v, const uint32_t *level)
{
    const size_t n = vkt_side_count(v);
    float *data = v->data;
    for (size_t i = 0; i < n; i++) {
        const float u = vkt_rng_unit(r);
        data[i] = c->lo + (c->hi - c->lo) * (level ? ((float)level[i] + 0.5f * u) / (float)n : u);
        if (c->grid > 0) data[i] = c->grid * floorf(data[i] / c->grid);
        v->ref.f[i] = (double)data[i];
    }
}

/* Rounds the reference's numbers to f16, and writes the rounded numbers to v->data as f16. */
static void round_to_half(vkt_side *v)
{
    const size_t n = vkt_side_count(v);
    for (size_t i = 0; i < n; i++) {
        const uint16_t h = vkt_half_from_f32((float)v->ref.f[i]);
        memcpy((char *)v->data + 2 * i, &h, sizeof h);
        v->ref.f[i] = (double)vkt_f32_from_half(h);
    }
}

static void draw_integers(vkt_rng *r, const vkt_case_input *c, vkt_side *v)
{
    const size_t n = vkt_side_count(v);
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

static vkt_result draw(vkt_subject *s, vkt_rng *r, const vkt_case_input *c, vkt_side *v)
{
    const size_t n = vkt_side_count(v);
    uint32_t *level = NULL;
    if (s->graph_only) return VKT_OK;
    v->data = vkt_alloc_array(&s->host, n, VKT_MAX(vkt_dtype_bytes(c->dtype), c->dtype == VKT_F16 ? 4u : 1u));
    if (!v->data) return vkt_fail_nomem(&s->host, "random numbers", n * 4);
    if (c->distinct) {
        level = vkt_alloc_array(&s->host, n, sizeof *level);
        if (!level) return vkt_fail_nomem(&s->host, "random numbers", n * sizeof *level);
        permute(r, level, n);
    }
    if (vkt_is_integer(c->dtype))
        draw_integers(r, c, v);
    else
        draw_floats(r, c, v, level);
    if (c->dtype == VKT_F16) round_to_half(v);
    vkt_free(&s->host, level);
    return VKT_OK;
}

/* Makes an input, or a gradient with respect to an output (`dout`). Each input and each gradient has its own stream of
 * random numbers, so that the size of one tensor does not change the numbers of another one. */
static vkt_result make_input(vkt_subject *s, vkt_side *v, const char *name, uint32_t stream, const vkt_case_input *c)
{
    vkt_rng r = vkt_rng_make(s->seed, VKT_STREAM_TEST, 1, stream);
    v->t = vkt_input(s->g, name, c->dtype, c->layout, c->shape);
    if (!v->t.id) return s->g->status;
    VKT_TRY(side_make(s, v, c->dtype, c->layout, c->shape));
    return draw(s, &r, c, v);
}

void vkt_side_set(vkt_side *v, const float *data, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (v->ref.u) {
            ((uint32_t *)v->data)[i] = v->ref.u[i] = (uint32_t)data[i];
        } else {
            ((float *)v->data)[i] = data[i];
            v->ref.f[i] = (double)data[i];
        }
    }
    if (v->ref.dtype == VKT_F16) round_to_half(v);
}

vkt_result vkt_subject_begin(const vkt_host *h, vkt_subject *s, uint64_t seed)
{
    *s = (vkt_subject){ .host = *h, .seed = seed };
    return vkt_graph_create(h, &s->g);
}

/* Adds input i, as s->c.in[i] describes it. */
static vkt_result add_input(vkt_subject *s, uint32_t i)
{
    char name[16];
    snprintf(name, sizeof name, "in%u", i);
    return s->c.in[i].absent ? VKT_OK : make_input(s, &s->in[i], name, i, &s->c.in[i]);
}

vkt_result vkt_subject_input(vkt_subject *s, const vkt_case_input *c, const float *data)
{
    const uint32_t i = s->c.n_in++;
    s->c.in[i] = *c;
    VKT_TRY(add_input(s, i));
    if (data) vkt_side_set(&s->in[i], data, vkt_side_count(&s->in[i]));
    return VKT_OK;
}

/* ---- the graph ---- */

static void describe(vkt_subject *s)
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

/* Chooses a random step state. Adds a parameter, because the clock needs a store, and a store needs a parameter. */
static void draw_step(vkt_subject *s, const vkt_op *op, vkt_rng *r)
{
    vkt_param(s->g, "clock's", vkt_shape1(1));
    s->run.lr = vkt_rng_uniform(r, 1e-3f, 1);
    s->t = vkt_rng_range(r, 0, 1) ? vkt_rng_range(r, 1, 5000) : 0;
    s->key = vkt_rng_u32(r) | (uint64_t)vkt_rng_u32(r) << 32;
    if (op->side_effect && op->attr_bytes == sizeof(vkt_optimizer)) { /* the clock needs the betas of the optimizer */
        memcpy(&s->g->optimizer, s->c.attr, sizeof s->g->optimizer);
        s->g->has_optimizer = true;
    }
}

/* Sets the op, reference and attributes of the subject from the producer of `out`, and adds the producer's outputs. */
static vkt_result add_outputs(vkt_subject *s, vkt_tensor out)
{
    const vkt_node *n = s->g->nodes[vkt_value_of(s->g, out)->producer - 1];
    s->op = n->op;
    s->ref = vkt_ref_find(n->op->name);
    if (!s->ref)
        return vkt_fail(&s->host, VKT_E_NOT_FOUND,
                        "%s has no reference: add one to engine/reference/reference.c and families.h", s->op->name);
    if (!s->ref->backward != !s->op->diff)
        return vkt_fail(&s->host, VKT_E_STATE, "%s: only one of row and reference has a gradient", s->op->name);
    if (s->op->attr_bytes) vkt_case_attr(&s->c, n->attr, s->op->attr_bytes);
    for (; s->n_out < n->n_out; s->n_out++) {
        vkt_keep(s->g, n->out[s->n_out]);
        VKT_TRY(side_of(s, &s->out[s->n_out], n->out[s->n_out]));
    }
    return VKT_OK;
}

/* Adds a seed (`dout`) for each f32 output that the reference computes, and the gradient of each f32 input for which
 * the op has a gradient. */
static vkt_result differentiate(vkt_subject *s)
{
    vkt_tensor outs[VKT_MAX_OUT], seeds[VKT_MAX_OUT], wrt[VKT_MAX_IN], grads[VKT_MAX_IN];
    uint32_t n_outs = 0, n_wrt = 0, input_of[VKT_MAX_IN];
    for (uint32_t i = 0; i < s->n_out && i < s->ref->n_out; i++) {
        const vkt_ref_tensor *y = &s->out[i].ref;
        if (y->dtype != VKT_F32) continue;
        const vkt_case_input seed = {
            .layout = y->layout, .shape = y->shape, .lo = s->c.one_sign ? 0.5f : -1, .hi = 1
        };
        char name[16];
        snprintf(name, sizeof name, "dy%u", i);
        VKT_TRY(make_input(s, &s->dout[i], name, VKT_MAX_IN + i, &seed));
        outs[n_outs] = s->out[i].t;
        seeds[n_outs++] = s->dout[i].t;
    }
    for (uint32_t i = 0; i < s->c.n_in; i++)
        if (s->in[i].t.id && s->c.in[i].dtype == VKT_F32 && (s->op->diff >> i & 1)) {
            input_of[n_wrt] = i;
            wrt[n_wrt++] = s->in[i].t;
        }
    VKT_TRY(vkt_gradients(s->g, outs, seeds, n_outs, wrt, n_wrt, grads));
    for (uint32_t i = 0; i < n_wrt; i++) {
        if (!grads[i].id)
            return vkt_fail(&s->host, VKT_E_STATE, "%s: input %u got no gradient", s->op->name, input_of[i]);
        vkt_keep(s->g, grads[i]);
        VKT_TRY(side_of(s, &s->din[input_of[i]], grads[i]));
    }
    return VKT_OK;
}

/* If the result is an alias of an input, an op without side effect has no dispatch. In this case, adds a node that
 * reads the result, so that the graph has a dispatch. */
static void read_alias(vkt_subject *s)
{
    const vkt_tensor y = s->out[0].t;
    const bool is_free = s->g->values[y.id].alias != 0, is_float = s->g->values[y.id].dtype == VKT_F32;
    if (!is_free || s->op->side_effect) return;
    vkt_keep(s->g, is_float ? vkt_sum(s->g, y) : vkt_flip(s->g, vkt_flatten(s->g, y), -1));
}

vkt_result vkt_subject_set_output(vkt_subject *s, vkt_tensor out)
{
    VKT_TRY(vkt_graph_status(s->g));
    VKT_TRY(add_outputs(s, out));
    s->n_forward = (uint32_t)s->g->n_nodes;
    if (s->op->diff) VKT_TRY(differentiate(s));
    read_alias(s);
    describe(s);
    return vkt_graph_status(s->g);
}

/* Calls the op's amend (vkt_op) for the random u32 numbers of input i. */
static void amend(vkt_subject *s, const vkt_op *op, uint32_t i)
{
    vkt_side *v = &s->in[i];
    const size_t n = v->data && v->ref.u ? vkt_side_count(v) : 0;
    if (!op->amend || op->amended != i || n == 0) return;
    op->amend(s->c.attr, v->data, n);
    memcpy(v->ref.u, v->data, n * sizeof *v->ref.u);
}

/* Builds the graph of the case s->c. `r` gives the random numbers of the step state. */
static vkt_result build(vkt_subject *s, const vkt_op *op, vkt_rng *r)
{
    vkt_tensor in[VKT_MAX_IN] = { { 0 } };
    if (s->c.attr_bytes != op->attr_bytes)
        return vkt_fail(&s->host, VKT_E_STATE, "%s: the case has %zu bytes of attributes, the row %zu", op->name,
                        s->c.attr_bytes, op->attr_bytes);
    s->run.rows = s->c.rows;
    s->run.first = s->c.first;
    if (op->uses_step) draw_step(s, op, r);
    for (uint32_t i = 0; i < s->c.n_in; i++) {
        VKT_TRY(add_input(s, i));
        amend(s, op, i);
        in[i] = s->in[i].t;
    }
    return vkt_subject_set_output(s, vkt_apply(s->g, op, in, s->c.n_in, s->c.attr, NULL));
}

vkt_result vkt_subject_make(const vkt_host *h, vkt_subject *s, const vkt_op *op, uint64_t seed)
{
    vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 0, 0);
    VKT_TRY(vkt_subject_begin(h, s, seed));
    op->sample(&r, &s->c);
    return build(s, op, &r);
}

static vkt_result of_case(const vkt_host *h, vkt_subject *s, const vkt_op *op, const vkt_case *c, uint64_t seed,
                          bool graph_only)
{
    vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 0, 0);
    VKT_TRY(vkt_subject_begin(h, s, seed));
    s->graph_only = graph_only;
    s->c = *c;
    VKT_TRY(vkt_case_check(h, op, c));
    return build(s, op, &r);
}

vkt_result vkt_subject_of_case(const vkt_host *h, vkt_subject *s, const vkt_op *op, const vkt_case *c, uint64_t seed)
{
    return of_case(h, s, op, c, seed, false);
}

vkt_result vkt_subject_graph_of_case(const vkt_host *h, vkt_subject *s, const vkt_op *op, const vkt_case *c)
{
    return of_case(h, s, op, c, 0, true);
}

static void side_free(vkt_subject *s, vkt_side *v)
{
    vkt_free(&s->host, v->ref.f);
    vkt_free(&s->host, v->ref.u);
    vkt_free(&s->host, v->data);
}

void vkt_subject_free(vkt_subject *s)
{
    for (int i = 0; i < VKT_MAX_IN; i++) {
        side_free(s, &s->in[i]);
        side_free(s, &s->din[i]);
    }
    for (int i = 0; i < VKT_MAX_OUT; i++) {
        side_free(s, &s->out[i]);
        side_free(s, &s->dout[i]);
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

static void prepare(const vkt_subject *s, call *c)
{
    *c = (call){ .c = { .attr = s->c.attr,
                        .n_in = s->c.n_in,
                        .n_out = s->n_out,
                        .in = c->in,
                        .out = c->out,
                        .constant = s->constant,
                        .stored = s->stored,
                        .f16 = s->f16,
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

void vkt_subject_forward(vkt_subject *s)
{
    call c;
    prepare(s, &c);
    s->ref->forward(&c.c);
}

void vkt_subject_backward(vkt_subject *s)
{
    if (!s->ref->backward) return;
    call c;
    bool any = false; /* at least one input has a gradient; integers have none */
    prepare(s, &c);
    for (uint32_t i = 0; i < s->c.n_in; i++) {
        if (c.din[i]) memset(c.din[i], 0, vkt_side_count(&s->din[i]) * sizeof *c.din[i]);
        any = any || c.din[i];
    }
    if (any) s->ref->backward(&c.c);
}

/* ---- comparing ---- */

static double scale_of(const double *ref, size_t n)
{
    double scale = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(ref[i])) scale = fmax(scale, fabs(ref[i]));
    return scale > 0 ? scale : 1;
}

vkt_worst vkt_worst_of(const float *got, const double *ref, size_t n, double rel_tol, double abs_tol)
{
    const double scale = scale_of(ref, n);
    vkt_worst w = { .at = 0 };
    for (size_t i = 0; i < n; i++) {
        const double allowed = abs_tol * scale + rel_tol * fabs(ref[i]), error = fabs((double)got[i] - ref[i]);
        const double excess = (double)got[i] == ref[i] ? 0 : error / allowed; /* 0 also for equal infinities */
        if (!(excess <= w.excess)) w = (vkt_worst){ i, excess, allowed };
        if (isnan(excess)) break;
    }
    return w;
}
