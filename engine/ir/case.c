/* ir/case.c - fills in a random case: see struct vkt_case. */
#include "ir/ir.h"

static vkt_case_input *next(vkt_case *c)
{
    return &c->in[c->n_in < VKT_MAX_IN ? c->n_in++ : VKT_MAX_IN - 1];
}

vkt_case_input *vkt_case_f32(vkt_case *c, vkt_layout layout, vkt_shape shape, float lo, float hi)
{
    vkt_case_input *in = next(c);
    *in = (vkt_case_input){ .dtype = VKT_F32, .layout = layout, .shape = shape, .lo = lo, .hi = hi };
    return in;
}

vkt_case_input *vkt_case_u32(vkt_case *c, vkt_layout layout, vkt_shape shape, uint32_t bound)
{
    vkt_case_input *in = next(c);
    *in = (vkt_case_input){ .dtype = VKT_U32, .layout = layout, .shape = shape, .bound = bound };
    return in;
}

void vkt_case_absent(vkt_case *c)
{
    next(c)->absent = true;
}

void vkt_case_attr(vkt_case *c, const void *attr, size_t bytes)
{
    if (bytes > sizeof c->attr) return;
    memcpy(c->attr, attr, bytes);
    c->attr_bytes = bytes;
}
