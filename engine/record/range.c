/* record/range.c - returns the buffer, offset and size in bytes of each binding and of each value of a program. */
#include "record/record.h"

static const vkt_buffer *buffer_at(const vkt_program *p, vkt_region at, uint32_t side)
{
    switch (at.role) {
    case VKT_ROLE_ACTIVATION:
    case VKT_ROLE_SCRATCH: return p->blocks[at.index];
    case VKT_ROLE_INPUT: return p->inputs[at.index];
    case VKT_ROLE_EXTERNAL: return p->arrays[side][at.index]->buffer;
    case VKT_ROLE_PARAM: return p->store->part[p->published ? VKT_PART_PUBLISHED : VKT_PART_VALUE];
    case VKT_ROLE_GRAD: return p->store->part[VKT_PART_GRADIENT];
    case VKT_ROLE_MOMENT1: return p->store->part[VKT_PART_MOMENT1];
    case VKT_ROLE_MOMENT2: return p->store->part[VKT_PART_MOMENT2];
    case VKT_ROLE_MOMENT3: return p->store->part[VKT_PART_MOMENT3];
    case VKT_ROLE_GRAD_SUM: return p->store->part[VKT_PART_GRADIENT_SUM];
    case VKT_ROLE_PUBLISHED: return p->store->part[VKT_PART_PUBLISHED];
    case VKT_ROLE_CLOCK: return p->store ? p->store->clock : p->own_clock;
    case VKT_ROLE_STEP: return p->step;
    case VKT_ROLE_WORDS: return p->words;
    case VKT_ROLE_METRICS: return p->metrics;
    case VKT_ROLE_CONST: return p->consts;
    }
    return NULL;
}

vkt_range vkt_range_of(const vkt_program *p, const vkt_bind *b, uint32_t side)
{
    const vkt_region at = vkt_region_of(&p->plan, b);
    return (vkt_range){ buffer_at(p, at, side), at.offset_bytes, at.bytes };
}

vkt_range vkt_range_of_value(const vkt_program *p, vkt_tensor t)
{
    const vkt_bind b = { .t = t, .bytes = p->lowered.values[t.id].bytes };
    vkt_range r = vkt_range_of(p, &b, 0);
    r.bytes = vkt_round_up(b.bytes, 4);
    return r;
}
