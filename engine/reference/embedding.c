/* reference/embedding.c - y[i] = table[ids[i]], a row of D numbers. If the table has no row ids[i], y[i] is 0. For ids
 * (B,..), y is (B,..,D), or (B,D,..) if `channels` is set. */
#include "reference/families.h"

/* Returns the index in y to which element d of row ids[i] is copied. */
static size_t index_of(const vkt_ref_call *c, size_t i, size_t d)
{
    const vkt_embedding_attr *a = c->attr;
    const size_t rows = c->in[1].shape.dim[0], width = vkt_ref_count(c->in[1].shape) / rows;
    if (!a->channels) return i * width + d;
    const size_t length = vkt_ref_count(c->in[0].shape) / c->in[0].shape.dim[0];
    return (i / length * width + d) * length + i % length;
}

static void embedding_forward(const vkt_ref_call *c)
{
    const size_t n = vkt_ref_count(c->in[0].shape), rows = c->in[1].shape.dim[0];
    const size_t width = vkt_ref_count(c->in[1].shape) / rows;
    for (size_t i = 0; i < n; i++)
        for (size_t d = 0; d < width; d++) {
            const size_t id = c->in[0].u[i];
            c->out[0].f[index_of(c, i, d)] = id < rows ? c->in[1].f[id * width + d] : 0;
        }
}

static void embedding_backward(const vkt_ref_call *c)
{
    const vkt_embedding_attr *a = c->attr;
    const size_t n = vkt_ref_count(c->in[0].shape), rows = c->in[1].shape.dim[0];
    const size_t width = vkt_ref_count(c->in[1].shape) / rows;
    for (size_t i = 0; i < n; i++)
        for (size_t d = 0; d < width; d++) {
            const size_t id = c->in[0].u[i];
            if (id < rows && id != a->padding) c->din[1][id * width + d] += c->dout[0][index_of(c, i, d)];
        }
}

static bool is_padded(const void *attr)
{
    const vkt_embedding_attr *a = attr;
    return a->padding != VKT_NO_PADDING;
}

const vkt_ref_op vkt_ref_embedding = { "embedding", 1, embedding_forward, embedding_backward, is_padded };
