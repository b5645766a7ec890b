/* reference/unary.c - functions of one number. Each has value(x) and its derivative slope(x). */
#include "reference/families.h"

#include <math.h>

typedef double (*map)(double x, const void *attr);

static void forward(const vkt_ref_call *c, map value)
{
    const size_t n = vkt_ref_count(c->in[0].shape);
    for (size_t i = 0; i < n; i++) c->out[0].f[i] = value(c->in[0].f[i], c->attr);
}

static void backward(const vkt_ref_call *c, map slope)
{
    const size_t n = vkt_ref_count(c->in[0].shape);
    for (size_t i = 0; i < n; i++) c->din[0][i] += c->dout[0][i] * slope(c->in[0].f[i], c->attr);
}

/* Defines the op `name`. `value` and `slope` are expressions of x and of the attributes `a`, a pointer to `type`. */
#define MAP(name, type, value, slope)                      \
    static double name##_value(double x, const void *attr) \
    {                                                      \
        const type *a = attr;                              \
        return (void)a, (void)x, value;                    \
    }                                                      \
    static double name##_slope(double x, const void *attr) \
    {                                                      \
        const type *a = attr;                              \
        return (void)a, (void)x, slope;                    \
    }                                                      \
    static void name##_forward(const vkt_ref_call *c)      \
    {                                                      \
        forward(c, name##_value);                          \
    }                                                      \
    static void name##_backward(const vkt_ref_call *c)     \
    {                                                      \
        backward(c, name##_slope);                         \
    }                                                      \
    const vkt_ref_op vkt_ref_##name = { #name, 1, name##_forward, name##_backward };

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double tanh_of_gelu(double x)
{
    return tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x));
}

MAP(relu, void, x > 0 || isnan(x) ? x : 0, !(x <= 0))
MAP(leaky_relu, vkt_leaky_relu_attr, x > 0 ? x : (double)a->slope * x, x > 0 ? 1 : (double)a->slope)
MAP(elu, vkt_elu_attr, x > 0 ? x : (double)a->alpha * expm1(x), x > 0 ? 1 : (double)a->alpha * exp(x))
MAP(gelu, void, x *erfc(-x *sqrt(0.5)) / 2, erfc(-x *sqrt(0.5)) / 2 + x * exp(-x * x / 2) / sqrt(2 * acos(-1)))
MAP(gelu_tanh, void, x *(1 + tanh_of_gelu(x)) / 2,
    (1 + tanh_of_gelu(x)) / 2 +
        x * (1 - tanh_of_gelu(x) * tanh_of_gelu(x)) / 2 * sqrt(2 / acos(-1)) * (1 + 3 * 0.044715 * x * x))
MAP(silu, void, x *sigmoid(x), sigmoid(x) * (1 + x * sigmoid(-x)))
MAP(sigmoid, void, sigmoid(x), sigmoid(x) * sigmoid(-x))
MAP(tanh, void, tanh(x), 1 / (cosh(x) * cosh(x)))
MAP(softplus, vkt_softplus_attr,
    (double)a->beta *x > (double)a->threshold ? x : log1p(exp((double)a->beta * x)) / (double)a->beta,
    (double)a->beta *x > (double)a->threshold ? 1 : sigmoid((double)a->beta * x))
MAP(hardswish, void, x *fmin(fmax(x + 3, 0), 6) / 6, x <= -3 ? 0 : x < 3 ? x / 3 + 0.5 : 1)
MAP(exp, void, exp(x), exp(x))
MAP(log, void, log(x), 1 / x)
MAP(sqrt, void, sqrt(x), 0.5 / sqrt(x))
MAP(abs, void, fabs(x), (x > 0) - (x < 0))
MAP(clamp, vkt_clamp_attr, fmin(fmax(x, (double)a->min), (double)a->max), x > (double)a->min && x < (double)a->max)
MAP(scale, vkt_scale_attr, (double)a->scale *x + (double)a->shift, (double)a->scale)
