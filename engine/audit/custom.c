/* audit/custom.c - see custom.h.
 *
 * Each element y of the f32 outputs gets a random number w, and L is the sum of all w y. With dy = w, the gradient
 * shader computes dL/dx for each element x of an input. The difference quotient is
 * q(h) = (L(x + h) - L(x - h)) / (2 h). dL/dx is compared with (4 q(h / 2) - q(h)) / 3. The error of this value is
 * proportional to h^4 (Richardson extrapolation; Press et al., Numerical Recipes, 3rd ed. 2007, section 5.7). The
 * outputs are rounded to f32. For a small h, the rounding errors would be larger than L(x + h) - L(x - h). So h is not
 * small, and L is summed in double precision. */
#include "audit/custom.h"

#include <math.h>
#include <stdio.h>

#include "ops/custom.h"
#include "record/debug.h"

#define POISON 0x7fc5a5a5u /* a NaN, which fills the memory of all computed values before the run */
#define GRAIN 128          /* h = (width of the range of an input's numbers) / GRAIN */
#define ALLOWED 3e-3       /* tolerance, relative to the largest element of the gradient */
/* An op may have a kink near the element x: a jump of its derivative, as relu has at 0. Two numbers show a kink:
 * |q(h) - q(h / 2)|, and the sum of |right quotient - left quotient| over all output elements. (The right quotient is
 * from x to x + h, the left one from x - h to x.) The bound for both is BEND times the largest element of the gradient.
 * To the bound of the first number, the possible rounding error of q(h / 2) is added. The second number shows a kink
 * only if its value for h / 2 is also above 3/4 of its value for h: without a kink, it becomes about half. */
#define BEND 2e-2

/* A value of the op, and the elements of this value in row-major order. */
typedef struct side {
    vkt_tensor t;
    size_t n;
    float *data; /* n elements of f32, or the bits of n elements of u32; owned */
} side;

typedef struct subject {
    const vkt_host *h;
    const vkt_custom_op *op;
    vkt_custom_finding *f;
    vkt_graph *g;
    vkt_program *p;
    side x[VKT_CUSTOM_INPUTS], dx[VKT_CUSTOM_INPUTS];
    side y[VKT_CUSTOM_OUTPUTS], dy[VKT_CUSTOM_OUTPUTS];
    double *room; /* memory for y * dy of all output elements at five points: at x, and at four points near x */
} subject;

static void found(subject *s, const char *fault)
{
    vkt_log_line(s->h, VKT_LOG_ERROR, "custom op %s: %s", s->f->text, fault);
    if (!s->f->fault[0]) snprintf(s->f->fault, sizeof s->f->fault, "%s", fault);
}

/* ---- the graph and its numbers ---- */

static vkt_result side_of(subject *s, side *v, vkt_tensor t)
{
    v->t = t;
    v->n = (size_t)vkt_shape_elements(vkt_tensor_shape(s->g, t));
    v->data = vkt_alloc_array(s->h, v->n, sizeof *v->data);
    return v->data ? VKT_OK : vkt_fail_nomem(s->h, "an audit", v->n * sizeof *v->data);
}

static float low_of(const vkt_custom_input *in)
{
    return in->low < in->high ? in->low : -1;
}

static float step_of(const vkt_custom_input *in)
{
    return (in->low < in->high ? in->high - in->low : 2) / GRAIN;
}

static vkt_result add_input(subject *s, uint32_t i, vkt_rng *r)
{
    const vkt_custom_input *in = &s->op->inputs[i];
    const vkt_value *v = &s->op->values[i];
    char name[16];
    snprintf(name, sizeof name, "x%u", i);
    const vkt_tensor t = vkt_input(s->g, name, v->dtype, v->layout, v->shape);
    VKT_TRY(vkt_graph_status(s->g));
    VKT_TRY(side_of(s, &s->x[i], t));
    for (size_t e = 0; e < s->x[i].n; e++) {
        const uint32_t u = v->dtype == VKT_U32 && in->bound ? vkt_rng_range(r, 0, in->bound - 1) : 0;
        const float h = step_of(in), x = low_of(in) + h + h * (GRAIN - 2) * vkt_rng_unit(r);
        memcpy(&s->x[i].data[e], v->dtype == VKT_U32 ? (const void *)&u : &x, sizeof x);
    }
    return VKT_OK;
}

/* Adds a random gradient for output k. */
static vkt_result add_seed(subject *s, uint32_t k, vkt_rng *r)
{
    const vkt_custom_output *y = &s->op->outputs[k];
    char name[16];
    snprintf(name, sizeof name, "dy%u", k);
    const vkt_tensor t = vkt_input(s->g, name, VKT_F32, y->layout, y->shape);
    VKT_TRY(vkt_graph_status(s->g));
    VKT_TRY(side_of(s, &s->dy[k], t));
    for (size_t e = 0; e < s->dy[k].n; e++) s->dy[k].data[e] = 2 * vkt_rng_unit(r) - 1;
    return VKT_OK;
}

static bool has_gradient(const vkt_custom_op *op, uint32_t i)
{
    bool has = false;
    for (uint32_t b = 0; b < VKT_CUSTOM_BINDINGS; b++) has |= op->gradient.bind[b] == VKT_CUSTOM_DX(i);
    return has;
}

/* Adds to the graph the gradients of all inputs for which the op computes a gradient. */
static vkt_result differentiate(subject *s, vkt_rng *r)
{
    vkt_tensor outs[VKT_CUSTOM_OUTPUTS], seeds[VKT_CUSTOM_OUTPUTS], wrt[VKT_CUSTOM_INPUTS], grads[VKT_CUSTOM_INPUTS];
    uint32_t n_outs = 0, n_wrt = 0, input_of[VKT_CUSTOM_INPUTS];
    for (uint32_t k = 0; k < s->op->n_outputs; k++) {
        if (s->op->outputs[k].dtype != VKT_F32) continue;
        VKT_TRY(add_seed(s, k, r));
        outs[n_outs] = s->y[k].t;
        seeds[n_outs++] = s->dy[k].t;
    }
    for (uint32_t i = 0; i < s->op->n_inputs; i++)
        if (has_gradient(s->op, i)) {
            input_of[n_wrt] = i;
            wrt[n_wrt++] = s->x[i].t;
        }
    if (n_outs) VKT_TRY(vkt_gradients(s->g, outs, seeds, n_outs, wrt, n_wrt, grads));
    for (uint32_t i = 0; n_outs && i < n_wrt; i++) {
        vkt_keep(s->g, grads[i]);
        VKT_TRY(side_of(s, &s->dx[input_of[i]], grads[i]));
        s->f->gradients |= 1u << input_of[i];
    }
    return VKT_OK;
}

static void describe(subject *s)
{
    char shape[80];
    vkt_text t = { .h = s->h };
    vkt_text_add(&t, "%s", s->op->name);
    for (uint32_t i = 0; i < s->op->n_inputs; i++)
        vkt_text_add(&t, " %s%s%s", s->op->values[i].dtype == VKT_U32 ? "u32" : "",
                     vkt_shape_text(s->op->values[i].shape, shape),
                     s->op->values[i].layout == VKT_BATCH_LAST ? "b" : "");
    snprintf(s->f->text, sizeof s->f->text, "%s", t.s ? t.s : "");
    vkt_text_free(&t);
}

static vkt_result build(subject *s, const vkt_node *n, uint64_t seed)
{
    vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 0, 0);
    vkt_tensor in[VKT_MAX_IN], outs[VKT_MAX_OUT];
    size_t elements = 0;
    VKT_TRY(vkt_graph_create(s->h, &s->g));
    for (uint32_t i = 0; i < s->op->n_inputs; i++) {
        VKT_TRY(add_input(s, i, &r));
        in[i] = s->x[i].t;
    }
    if (n->n_in > s->op->n_inputs) in[s->op->n_inputs] = vkt_graph_step(s->g);
    vkt_apply(s->g, n->op, in, n->n_in, n->attr, outs);
    VKT_TRY(vkt_graph_status(s->g));
    for (uint32_t k = 0; k < s->op->n_outputs; k++) {
        vkt_keep(s->g, outs[k]);
        VKT_TRY(side_of(s, &s->y[k], outs[k]));
        elements += s->y[k].n;
    }
    s->room = vkt_alloc_array(s->h, elements, 5 * sizeof *s->room);
    if (!s->room) return vkt_fail_nomem(s->h, "an audit", elements * 5 * sizeof *s->room);
    return s->op->gradient.shader.bytes ? differentiate(s, &r) : VKT_OK;
}

/* ---- runs ---- */

static vkt_result write_side(const subject *s, const side *v)
{
    const bool is_used = v->t.id && s->p->inputs[v->t.id];
    return is_used ? vkt_program_write(s->p, v->t, v->data, v->n * sizeof *v->data) : VKT_OK;
}

static vkt_result read_side(const subject *s, const side *v)
{
    return v->t.id ? vkt_program_read(s->p, v->t, v->data, v->n * sizeof *v->data) : VKT_OK;
}

static vkt_result run(const subject *s)
{
    VKT_TRY(vkt_program_run(s->p, &(vkt_run){ .rows = 0 }, NULL));
    for (uint32_t k = 0; k < s->op->n_outputs; k++) VKT_TRY(read_side(s, &s->y[k]));
    return VKT_OK;
}

/* Checks that the shaders have written all elements of a value, and that f32 elements are finite. */
static void check_written(subject *s, const side *v, const char *what)
{
    const bool is_float = v->t.id && vkt_tensor_dtype(s->g, v->t) == VKT_F32;
    char index[80], fault[200];
    size_t e = 0;
    for (; v->t.id && e < v->n; e++) {
        uint32_t bits;
        memcpy(&bits, &v->data[e], sizeof bits);
        if (bits == POISON || (is_float && !isfinite(v->data[e]))) break;
    }
    if (!v->t.id || e == v->n) return;
    snprintf(fault, sizeof fault, "%s%s was not written, or is not finite", what,
             vkt_index_text(vkt_tensor_shape(s->g, v->t), e, index));
    found(s, fault);
}

/* Checks the padding behind the batch. The padding must be finite in an output, and zero in a gradient. */
static vkt_result check_padding(subject *s, const side *v, bool gradient, const char *what)
{
    const vkt_value *value = vkt_value_of(s->g, v->t);
    const vkt_phys at = vkt_phys_of(value);
    const uint32_t batch = value->shape.rank ? value->shape.dim[0] : 0;
    if (!v->t.id || value->layout != VKT_BATCH_LAST || value->dtype != VKT_F32 || at.pitch == batch) return VKT_OK;
    float *all = vkt_alloc(s->h, (size_t)value->bytes);
    if (!all) return vkt_fail_nomem(s->h, "an audit", (size_t)value->bytes);
    const vkt_result r = vkt_program_read_raw(s->p, v->t, all, value->bytes);
    bool right = true;
    for (uint64_t e = 0; r == VKT_OK && e < at.elements; e++)
        if (e % at.pitch >= batch && (gradient ? all[e] != 0 : !isfinite(all[e]))) right = false;
    vkt_free(s->h, all);
    char fault[160];
    snprintf(fault, sizeof fault, "%s: elements past the batch are not %s", what, gradient ? "zero" : "finite");
    if (!right) found(s, fault);
    return r;
}

static vkt_result check_memory(subject *s)
{
    bool intact;
    const char *bad;
    char text[160];
    for (uint32_t k = 0; k < s->op->n_outputs; k++) {
        snprintf(text, sizeof text, "output %u", k);
        check_written(s, &s->y[k], text);
        VKT_TRY(check_padding(s, &s->y[k], false, text));
    }
    for (uint32_t i = 0; i < s->op->n_inputs; i++) {
        snprintf(text, sizeof text, "the gradient of input %u", i);
        check_written(s, &s->dx[i], text);
        VKT_TRY(check_padding(s, &s->dx[i], true, text));
    }
    VKT_TRY(vkt_program_check_guards(s->p, POISON, &intact, &bad));
    snprintf(text, sizeof text, "a shader has written behind the end of '%s'", bad ? bad : "");
    if (!intact) found(s, text);
    return VKT_OK;
}

/* ---- difference quotients ---- */

/* Runs the program with `by` added to element `at` of input i. Writes to `weighted` each element of the f32 outputs
 * times the element of dy with the same index. *width is the change of the input's element. It may differ from `by`,
 * because the sum is rounded to f32. */
static vkt_result moved(subject *s, uint32_t i, size_t at, float by, double *weighted, double *width)
{
    float *x = &s->x[i].data[at];
    const float was = *x;
    *x = was + by;
    *width = (double)*x - (double)was;
    vkt_result r = write_side(s, &s->x[i]);
    *x = was;
    if (r == VKT_OK) r = run(s);
    for (uint32_t k = 0; r == VKT_OK && k < s->op->n_outputs; k++)
        for (size_t e = 0; s->dy[k].t.id && e < s->y[k].n; e++)
            *weighted++ = (double)s->y[k].data[e] * (double)s->dy[k].data[e];
    return r;
}

static double largest(const side *v)
{
    double most = 0;
    for (size_t e = 0; e < v->n; e++) most = fmax(most, fabs((double)v->data[e]));
    return most > 0 ? most : 1;
}

typedef struct quotients {
    double by_h, by_half;     /* q(h) and q(h / 2) */
    double bend_h, bend_half; /* sum of |right quotient - left quotient| over all output elements, for h and h / 2 */
    double noise;             /* possible error of `by_half` from rounding of the outputs */
    bool exist;               /* false: in f32, element + h / 2 or element - h / 2 equals the element */
} quotients;

static vkt_result find_quotients(subject *s, uint32_t i, size_t at, quotients *q)
{
    const float h = step_of(&s->op->inputs[i]), by[5] = { 0, -h, h, -h / 2, h / 2 };
    double width[5], *value[5];
    size_t n = 0;
    for (uint32_t k = 0; k < s->op->n_outputs; k++) n += s->dy[k].t.id ? s->y[k].n : 0;
    for (int m = 0; m < 5; m++) {
        value[m] = s->room + (size_t)m * n;
        VKT_TRY(moved(s, i, at, by[m], value[m], &width[m]));
    }
    VKT_TRY(write_side(s, &s->x[i]));
    *q = (quotients){ .exist = width[3] < 0 && width[4] > 0 };
    for (size_t e = 0; e < n; e++) {
        const double here = value[0][e], here_h = value[1][e], plus_h = value[2][e];
        const double minus = value[3][e], plus = value[4][e], w_h = width[2] - width[1], w = width[4] - width[3];
        q->by_h += (plus_h - here_h) / w_h;
        q->by_half += (plus - minus) / w;
        q->bend_h += fabs((plus_h - here) / width[2] - (here_h - here) / width[1]);
        q->bend_half += fabs((plus - here) / width[4] - (minus - here) / width[3]);
        if (plus != minus) q->noise += 0x1p-21 * (fabs(plus) + fabs(minus)) / w;
    }
    return VKT_OK;
}

static vkt_result check_element(subject *s, uint32_t i, size_t at, double scale, double got)
{
    quotients q;
    char index[80], fault[sizeof s->f->fault];
    VKT_TRY(find_quotients(s, i, at, &q));
    const bool bends = q.bend_h > BEND * scale && q.bend_half > 0.75 * q.bend_h;
    if (!q.exist || bends || fabs(q.by_h - q.by_half) > BEND * scale + q.noise) {
        s->f->kinks++;
        return VKT_OK;
    }
    const double want = (4 * q.by_half - q.by_h) / 3, excess = fabs(got - want) / (ALLOWED * scale + 2 * q.noise);
    s->f->differences++;
    if (!(excess <= s->f->gradient[i]) && !isnan(s->f->gradient[i])) s->f->gradient[i] = excess; /* a NaN stays */
    if (excess <= 1) return VKT_OK;
    snprintf(fault, sizeof fault, "the gradient of input %u%s is %.6g, the difference quotient %.6g", i,
             vkt_index_text(s->op->values[i].shape, at, index), got, want);
    found(s, fault);
    return VKT_OK;
}

static vkt_result check_gradients(subject *s, uint64_t seed, uint32_t elements)
{
    vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 1, 0);
    for (uint32_t i = 0; i < s->op->n_inputs; i++) {
        const double scale = largest(&s->dx[i]);
        for (uint32_t k = 0; s->dx[i].t.id && k < elements; k++) {
            const size_t at = vkt_rng_range(&r, 0, (uint32_t)VKT_MIN(s->dx[i].n - 1, (size_t)UINT32_MAX - 1));
            VKT_TRY(check_element(s, i, at, scale, (double)s->dx[i].data[at]));
        }
    }
    return VKT_OK;
}

/* ---- the whole ---- */

static vkt_result audit(vkt_ctx *ctx, subject *s, const vkt_node *n, uint64_t seed, uint32_t elements)
{
    VKT_TRY(build(s, n, seed));
    VKT_TRY(vkt_program_create_guarded(ctx, s->g, NULL, NULL, &s->p));
    VKT_TRY(vkt_program_poison(s->p, POISON));
    for (uint32_t i = 0; i < s->op->n_inputs; i++) VKT_TRY(write_side(s, &s->x[i]));
    for (uint32_t k = 0; k < s->op->n_outputs; k++) VKT_TRY(write_side(s, &s->dy[k]));
    VKT_TRY(run(s));
    for (uint32_t i = 0; i < s->op->n_inputs; i++) VKT_TRY(read_side(s, &s->dx[i]));
    VKT_TRY(check_memory(s));
    return s->f->fault[0] ? VKT_OK : check_gradients(s, seed, elements);
}

static void free_sides(const subject *s, side *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) vkt_free(s->h, list[i].data);
}

vkt_result vkt_audit_custom(vkt_ctx *ctx, const vkt_node *n, uint64_t seed, uint32_t elements, vkt_custom_finding *f)
{
    subject s = { .h = &ctx->host, .op = vkt_custom_of(n), .f = f };
    *f = (vkt_custom_finding){ .gradients = 0 };
    describe(&s);
    const vkt_result r = audit(ctx, &s, n, seed, elements);
    vkt_program_destroy(&s.p);
    vkt_graph_destroy(&s.g);
    free_sides(&s, s.x, VKT_CUSTOM_INPUTS);
    free_sides(&s, s.dx, VKT_CUSTOM_INPUTS);
    free_sides(&s, s.y, VKT_CUSTOM_OUTPUTS);
    free_sides(&s, s.dy, VKT_CUSTOM_OUTPUTS);
    vkt_free(s.h, s.room);
    return r;
}
