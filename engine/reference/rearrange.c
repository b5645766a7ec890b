/* reference/rearrange.c - moves elements: for each element of the result, finds the element of x that it comes from.
 *   permute: the index on axis k of the result is the index on axis perm[k] of x
 *   slice: along an axis, index i of the result is index start + step * i of x; with `flip`, i counts from the end
 *   pad: along an axis, index i of the result is index (i - before) / gap of x; if x has no such index, the element is
 *     `value`
 *   concat: along the axis, the result has the elements of input 0, then those of input 1, and so on */
#include "reference/families.h"

#define NOWHERE SIZE_MAX

typedef size_t (*source_fn)(const vkt_ref_call *c, const uint32_t *at);

/* Returns the row-major position of an index in a tensor of shape s. */
static size_t position(vkt_shape s, const uint32_t *at)
{
    size_t p = 0;
    for (uint32_t i = 0; i < s.rank; i++) p = p * s.dim[i] + at[i];
    return p;
}

static void index_of(vkt_shape s, size_t i, uint32_t *at)
{
    for (uint32_t d = s.rank; d-- > 0; i /= s.dim[d]) at[d] = (uint32_t)(i % s.dim[d]);
}

static void move(const vkt_ref_call *c, source_fn source, double elsewhere)
{
    const vkt_shape y = c->out[0].shape;
    uint32_t at[VKT_MAX_RANK] = { 0 };
    for (size_t i = 0; i < vkt_ref_count(y); i++) {
        index_of(y, i, at);
        const size_t from = source(c, at);
        if (c->in[0].u)
            c->out[0].u[i] = from == NOWHERE ? (uint32_t)elsewhere : c->in[0].u[from];
        else
            c->out[0].f[i] = from == NOWHERE ? elsewhere : c->in[0].f[from];
    }
}

static void move_back(const vkt_ref_call *c, source_fn source)
{
    const vkt_shape y = c->out[0].shape;
    uint32_t at[VKT_MAX_RANK] = { 0 };
    for (size_t i = 0; i < vkt_ref_count(y); i++) {
        index_of(y, i, at);
        const size_t from = source(c, at);
        if (from != NOWHERE) c->din[0][from] += c->dout[0][i];
    }
}

static size_t permute_source(const vkt_ref_call *c, const uint32_t *at)
{
    const vkt_permute_attr *a = c->attr;
    const vkt_shape x = c->in[0].shape;
    uint32_t from[VKT_MAX_RANK] = { 0 };
    for (uint32_t i = 0; i < x.rank; i++) from[a->perm[i]] = at[i];
    return position(x, from);
}

static void permute_forward(const vkt_ref_call *c)
{
    move(c, permute_source, 0);
}

static void permute_backward(const vkt_ref_call *c)
{
    move_back(c, permute_source);
}

const vkt_ref_op vkt_ref_permute = { "permute", 1, permute_forward, permute_backward };

static size_t slice_source(const vkt_ref_call *c, const uint32_t *at)
{
    const vkt_slice_attr *a = c->attr;
    const vkt_shape x = c->in[0].shape;
    uint32_t from[VKT_MAX_RANK] = { 0 };
    for (uint32_t i = 0; i < x.rank; i++)
        from[i] = a->start[i] + a->step[i] * (a->flip[i] ? a->size[i] - 1 - at[i] : at[i]);
    return position(x, from);
}

static void slice_forward(const vkt_ref_call *c)
{
    move(c, slice_source, 0);
}

static void slice_backward(const vkt_ref_call *c)
{
    move_back(c, slice_source);
}

const vkt_ref_op vkt_ref_slice = { "slice", 1, slice_forward, slice_backward };

static size_t pad_source(const vkt_ref_call *c, const uint32_t *at)
{
    const vkt_pad_attr *a = c->attr;
    const vkt_shape x = c->in[0].shape;
    uint32_t from[VKT_MAX_RANK] = { 0 };
    for (uint32_t i = 0; i < x.rank; i++) {
        const int64_t away = (int64_t)at[i] - a->before[i];
        if (away < 0 || away % a->gap[i] || away / a->gap[i] >= x.dim[i]) return NOWHERE;
        from[i] = (uint32_t)(away / a->gap[i]);
    }
    return position(x, from);
}

static void pad_forward(const vkt_ref_call *c)
{
    move(c, pad_source, (double)((const vkt_pad_attr *)c->attr)->value);
}

static void pad_backward(const vkt_ref_call *c)
{
    move_back(c, pad_source);
}

const vkt_ref_op vkt_ref_pad = { "pad", 1, pad_forward, pad_backward };

/* Returns the index of the input that has element `at` of the result. Changes `at` to the element's index in this
 * input. *from gets the row-major position of the element in this input. */
static uint32_t part_of(const vkt_ref_call *c, uint32_t *at, size_t *from)
{
    const uint32_t axis = ((const vkt_concat_attr *)c->attr)->axis;
    uint32_t k = 0;
    while (at[axis] >= c->in[k].shape.dim[axis]) at[axis] -= c->in[k++].shape.dim[axis];
    *from = position(c->in[k].shape, at);
    return k;
}

static void concat_forward(const vkt_ref_call *c)
{
    const vkt_shape y = c->out[0].shape;
    uint32_t at[VKT_MAX_RANK] = { 0 };
    size_t from;
    for (size_t i = 0; i < vkt_ref_count(y); i++) {
        index_of(y, i, at);
        const vkt_ref_tensor *x = &c->in[part_of(c, at, &from)];
        if (x->u)
            c->out[0].u[i] = x->u[from];
        else
            c->out[0].f[i] = x->f[from];
    }
}

static void concat_backward(const vkt_ref_call *c)
{
    const vkt_shape y = c->out[0].shape;
    uint32_t at[VKT_MAX_RANK] = { 0 };
    size_t from;
    for (size_t i = 0; i < vkt_ref_count(y); i++) {
        index_of(y, i, at);
        const uint32_t k = part_of(c, at, &from);
        if (c->din[k]) c->din[k][from] += c->dout[0][i];
    }
}

const vkt_ref_op vkt_ref_concat = { "concat", 1, concat_forward, concat_backward };
