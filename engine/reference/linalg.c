/* reference/linalg.c - matrix products.
 *   matmul:  c[z,m,n] = sum_k op(a)[z,m,k] op(b)[z,k,n],  op(x) = x or its transpose
 *            an operand of rank 2 is used for every z
 *   linear:  y[b,o] = sum_i x[b,i] w[o,i] + bias[o] */
#include "reference/families.h"

/* One operand of a product: element (row, column) of op(x) in batch z is at z * batch + row * down + column * right. */
typedef struct operand {
    size_t batch, down, right;
} operand;

typedef struct product {
    size_t batches, M, N, K;
    operand a, b;
} product;

static operand operand_of(vkt_shape s, bool transposed)
{
    const size_t columns = s.dim[s.rank - 1], rows = s.dim[s.rank - 2];
    return (operand){ .batch = s.rank > 2 ? rows * columns : 0,
                      .down = transposed ? 1 : columns,
                      .right = transposed ? columns : 1 };
}

static product product_of(const vkt_ref_call *c)
{
    const vkt_matmul_attr *t = c->attr;
    const vkt_shape a = c->in[0].shape, out = c->out[0].shape;
    product p = { .batches = 1,
                  .M = out.dim[out.rank - 2],
                  .N = out.dim[out.rank - 1],
                  .K = a.dim[a.rank - (t->trans_a ? 2 : 1)],
                  .a = operand_of(a, t->trans_a),
                  .b = operand_of(c->in[1].shape, t->trans_b) };
    for (uint32_t i = 0; i + 2 < out.rank; i++) p.batches *= out.dim[i];
    return p;
}

static void matmul_forward(const vkt_ref_call *c)
{
    const product p = product_of(c);
    double *out = c->out[0].f;
    for (size_t z = 0; z < p.batches; z++)
        for (size_t m = 0; m < p.M; m++)
            for (size_t n = 0; n < p.N; n++) {
                const double *a = c->in[0].f + z * p.a.batch + m * p.a.down;
                const double *b = c->in[1].f + z * p.b.batch + n * p.b.right;
                double sum = 0;
                for (size_t k = 0; k < p.K; k++) sum += a[k * p.a.right] * b[k * p.b.down];
                *out++ = sum;
            }
}

/* Adds the gradients: every product of the sum adds to the gradients of both factors. */
static void matmul_backward(const vkt_ref_call *c)
{
    const product p = product_of(c);
    const double *dc = c->dout[0];
    for (size_t z = 0; z < p.batches; z++)
        for (size_t m = 0; m < p.M; m++)
            for (size_t n = 0; n < p.N; n++, dc++) {
                const size_t a = z * p.a.batch + m * p.a.down, b = z * p.b.batch + n * p.b.right;
                for (size_t k = 0; k < p.K; k++) {
                    const size_t ak = a + k * p.a.right, bk = b + k * p.b.down;
                    if (c->din[0]) c->din[0][ak] += *dc * c->in[1].f[bk];
                    if (c->din[1]) c->din[1][bk] += *dc * c->in[0].f[ak];
                }
            }
}

const vkt_ref_op vkt_ref_matmul = { "matmul", 1, matmul_forward, matmul_backward };

static void linear_forward(const vkt_ref_call *c)
{
    const size_t B = c->in[0].shape.dim[0], I = c->in[0].shape.dim[1], O = c->in[1].shape.dim[0];
    const double *bias = c->n_in > 2 ? c->in[2].f : NULL;
    for (size_t b = 0; b < B; b++)
        for (size_t o = 0; o < O; o++) {
            double sum = bias ? bias[o] : 0;
            for (size_t i = 0; i < I; i++) sum += c->in[0].f[b * I + i] * c->in[1].f[o * I + i];
            c->out[0].f[b * O + o] = sum;
        }
}

static void linear_backward(const vkt_ref_call *c)
{
    const size_t B = c->in[0].shape.dim[0], I = c->in[0].shape.dim[1], O = c->in[1].shape.dim[0];
    for (size_t b = 0; b < B; b++)
        for (size_t o = 0; o < O; o++) {
            const double dy = c->dout[0][b * O + o];
            for (size_t i = 0; i < I; i++) {
                if (c->din[0]) c->din[0][b * I + i] += dy * c->in[1].f[o * I + i];
                if (c->din[1]) c->din[1][o * I + i] += dy * c->in[0].f[b * I + i];
            }
            if (c->n_in > 2 && c->din[2]) c->din[2][o] += dy;
        }
}

const vkt_ref_op vkt_ref_linear = { "linear", 1, linear_forward, linear_backward };
