/* reference/binary.c - functions of two operands with NumPy's broadcasting, defined by the value and the two
 * derivatives. The file also has the ops `where` and swiglu. */
#include "reference/families.h"

#include <math.h>

typedef double (*map)(double a, double b);

/* Returns the element of input k for element i of the output. */
static double operand(const vkt_ref_call *c, uint32_t k, size_t i)
{
    return c->in[k].f[vkt_ref_broadcast(c->out[0].shape, c->in[k].shape, i)];
}

static void forward(const vkt_ref_call *c, map value)
{
    const size_t n = vkt_ref_count(c->out[0].shape);
    for (size_t i = 0; i < n; i++) c->out[0].f[i] = value(operand(c, 0, i), operand(c, 1, i));
}

static void backward(const vkt_ref_call *c, map da, map db)
{
    const map slope[] = { da, db };
    const size_t n = vkt_ref_count(c->out[0].shape);
    for (uint32_t k = 0; k < 2; k++)
        for (size_t i = 0; c->din[k] && i < n; i++)
            c->din[k][vkt_ref_broadcast(c->out[0].shape, c->in[k].shape, i)] +=
                c->dout[0][i] * slope[k](operand(c, 0, i), operand(c, 1, i));
}

/* Defines the op `name` by three expressions of the operands a and b: the value, and its derivatives da and db. */
#define MAP(name, value, da, db)                       \
    static double name##_value(double a, double b)     \
    {                                                  \
        return (void)a, (void)b, value;                \
    }                                                  \
    static double name##_da(double a, double b)        \
    {                                                  \
        return (void)a, (void)b, da;                   \
    }                                                  \
    static double name##_db(double a, double b)        \
    {                                                  \
        return (void)a, (void)b, db;                   \
    }                                                  \
    static void name##_forward(const vkt_ref_call *c)  \
    {                                                  \
        forward(c, name##_value);                      \
    }                                                  \
    static void name##_backward(const vkt_ref_call *c) \
    {                                                  \
        backward(c, name##_da, name##_db);             \
    }                                                  \
    const vkt_ref_op vkt_ref_##name = { #name, 1, name##_forward, name##_backward };

/* Returns the part of dy that an operand of a maximum or minimum gets: 1 if the operand is the result, 0.5 at a tie,
 * else 0. For a maximum, `won` is the operand and `lost` the other operand. For a minimum, `lost` is the operand and
 * `won` the other operand. */
static double share(double won, double lost)
{
    return won == lost ? 0.5 : won > lost;
}

MAP(add, a + b, 1, 1)
MAP(sub, a - b, 1, -1)
MAP(mul, a *b, b, a)
MAP(div, a / b, 1 / b, -a / (b * b))
MAP(minimum, fmin(a, b), share(b, a), share(a, b))
MAP(maximum, fmax(a, b), share(a, b), share(b, a))
MAP(pow, pow(a, b), b == 0 ? 0 : b * pow(a, b - 1), a == 0 && b >= 0 ? 0 : pow(a, b) * log(a))
MAP(prelu, a > 0 ? a : a * b, a > 0 ? 1 : b, a > 0 ? 0 : a)

/* ---- where ---- */

static bool holds(const vkt_ref_call *c, size_t i)
{
    return c->in[0].u[vkt_ref_broadcast(c->out[0].shape, c->in[0].shape, i)] != 0;
}

static void where_forward(const vkt_ref_call *c)
{
    const size_t n = vkt_ref_count(c->out[0].shape);
    for (size_t i = 0; i < n; i++) c->out[0].f[i] = operand(c, holds(c, i) ? 1 : 2, i);
}

static void where_backward(const vkt_ref_call *c)
{
    const size_t n = vkt_ref_count(c->out[0].shape);
    for (size_t i = 0; i < n; i++) {
        const uint32_t k = holds(c, i) ? 1 : 2;
        if (c->din[k]) c->din[k][vkt_ref_broadcast(c->out[0].shape, c->in[k].shape, i)] += c->dout[0][i];
    }
}

/* ---- swiglu: its operands a and b are two tensors, or the two halves of each row of one tensor ---- */

/* Finds element i of operand k (0: operand a; 1: operand b). Sets *input to the index of the operand's tensor in c->in,
 * and returns the index of the element in this tensor. */
static size_t half_index(const vkt_ref_call *c, size_t i, uint32_t k, uint32_t *input)
{
    const bool two = c->n_in > 1 && c->in[1].f;
    const vkt_shape s = c->out[0].shape;
    const size_t run = s.rank ? s.dim[s.rank - 1] : 1;
    *input = two ? k : 0;
    return two ? i : (i / run * 2 + k) * run + i % run;
}

static void swiglu_forward(const vkt_ref_call *c)
{
    uint32_t of_a, of_b;
    for (size_t i = 0; i < vkt_ref_count(c->out[0].shape); i++) {
        const size_t at_a = half_index(c, i, 0, &of_a), at_b = half_index(c, i, 1, &of_b);
        const double a = c->in[of_a].f[at_a];
        c->out[0].f[i] = a / (1 + exp(-a)) * c->in[of_b].f[at_b];
    }
}

static void swiglu_backward(const vkt_ref_call *c)
{
    uint32_t of_a, of_b;
    for (size_t i = 0; i < vkt_ref_count(c->out[0].shape); i++) {
        const size_t at_a = half_index(c, i, 0, &of_a), at_b = half_index(c, i, 1, &of_b);
        const double a = c->in[of_a].f[at_a], b = c->in[of_b].f[at_b], s = 1 / (1 + exp(-a)), dy = c->dout[0][i];
        if (c->din[of_a]) c->din[of_a][at_a] += dy * b * (s + a * s * (1 - s));
        if (c->din[of_b]) c->din[of_b][at_b] += dy * a * s;
    }
}

const vkt_ref_op vkt_ref_swiglu = { "swiglu", 1, swiglu_forward, swiglu_backward };
const vkt_ref_op vkt_ref_where = { "where", 1, where_forward, where_backward };
