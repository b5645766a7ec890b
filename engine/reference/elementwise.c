/* reference/elementwise.c - dropout, and ops that copy elements in logical order.
 *   dropout: x * scale if the mask keeps x, else 0
 *   to_f32, reshape, stop_gradient, to_layout, write: the same logical elements in the same logical order */
#include "reference/families.h"

/* ---- dropout: see vkt_dropout_attr ---- */

/* Returns the physical index of logical element i. ROWS: i itself. BATCH_LAST: the batch is the fastest dimension, and
 * its size is rounded up to a multiple of 4. */
static size_t physical(vkt_shape s, vkt_layout layout, size_t i)
{
    if (layout == VKT_ROWS || s.rank == 0) return i;
    const size_t inner = vkt_ref_count(s) / s.dim[0], pitch = (s.dim[0] + 3u) / 4u * 4u;
    return i % inner * pitch + i / inner;
}

/* Returns the factor by which dropout multiplies logical element i. */
static double factor(const vkt_ref_call *c, size_t i)
{
    const vkt_dropout_attr *a = c->attr;
    const vkt_shape s = c->in[0].shape;
    size_t e;
    if (a->planes) {
        const size_t plane = i / ((size_t)s.dim[2] * s.dim[3]);
        e = physical(vkt_shape2(s.dim[0], s.dim[1]), VKT_BATCH_LAST, plane);
    } else {
        e = physical(s, c->in[0].layout, i);
    }
    const vkt_philox counter = { { (uint32_t)(e / 4), c->t, a->salt, VKT_STREAM_DROPOUT } };
    return vkt_philox4x32(counter, c->seed).w[e % 4] >= a->threshold ? (double)a->scale : 0;
}

static void dropout_forward(const vkt_ref_call *c)
{
    const size_t n = vkt_ref_count(c->in[0].shape);
    for (size_t i = 0; i < n; i++) c->out[0].f[i] = c->in[0].f[i] * factor(c, i);
}

static void dropout_backward(const vkt_ref_call *c)
{
    const size_t n = vkt_ref_count(c->in[0].shape);
    for (size_t i = 0; i < n; i++) c->din[0][i] += c->dout[0][i] * factor(c, i);
}

const vkt_ref_op vkt_ref_dropout = { "dropout", 1, dropout_forward, dropout_backward };

/* ---- copies ---- */

static void copy_forward(const vkt_ref_call *c)
{
    const size_t n = vkt_ref_count(c->in[0].shape);
    if (c->in[0].dtype == VKT_U32)
        memcpy(c->out[0].u, c->in[0].u, n * sizeof *c->out[0].u);
    else
        memcpy(c->out[0].f, c->in[0].f, n * sizeof *c->out[0].f);
}

const vkt_ref_op vkt_ref_to_f32 = { "to_f32", 1, copy_forward, NULL };

static void copy_backward(const vkt_ref_call *c)
{
    const size_t n = vkt_ref_count(c->in[0].shape);
    for (size_t i = 0; i < n; i++) c->din[0][i] += c->dout[0][i];
}

const vkt_ref_op vkt_ref_reshape = { "reshape", 1, copy_forward, copy_backward };
const vkt_ref_op vkt_ref_stop_gradient = { "stop_gradient", 1, copy_forward, NULL };
const vkt_ref_op vkt_ref_to_layout = { "to_layout", 1, copy_forward, copy_backward };
const vkt_ref_op vkt_ref_write = { "write", 1, copy_forward, NULL };
