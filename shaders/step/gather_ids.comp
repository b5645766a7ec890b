// gather_ids.comp - out[b][i] = table[order[first + b]][i] for b < rows, else 0
//   rows: number of real rows of the batch. first: index of the batch's first row in `order`.
//   table: u32 (n_table, numbers). PACKED: u32 (n_table, ceil(numbers / 2)) with two numbers per word, the first number in the
//   low 16 bits.  order: u32 (n_order)  ->  out: u32 (batch, numbers)
// A row is divided into `parts` parts of WIDTH numbers. A lane copies one part at a time. WIDTH is 4 only if `numbers`
// is a multiple of 4, so that rows are aligned. Otherwise a part is one word of the table: WIDTH is 2 with PACKED, 1
// without PACKED. (With PACKED and an odd `numbers`, the last part of a row has one number.) A table that is larger
// than a binding is split into ranges of rows, one dispatch per range. A row index outside the table gives 0, and so
// does a position outside `order`.
// grid: x over batch * parts with a stride; any group count is right.
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/gather_ids.abi.h"
layout(local_size_x_id = 0) in;
layout(constant_id = IDS_SPEC_KEEP) const uint KEEP = 0;
#if WIDTH == 4 && defined PACKED
#define WORDS uvec2
#elif WIDTH == 4
#define WORDS uvec4
#else
#define WORDS uint
#endif
layout(binding = IDS_TABLE, std430) readonly buffer Table { WORDS table[]; };
layout(binding = IDS_ORDER, std430) readonly buffer Order { uint order[]; };
#define BATCH_STEP IDS_STEP
#define BATCH_WORDS IDS_WORDS
#define BATCH_RUN IDS_RUN
#include "lib/batch_place.glsl"
#if WIDTH == 4
layout(binding = IDS_OUT, std430) writeonly buffer Out { uvec4 ids[]; };
#else
layout(binding = IDS_OUT, std430) writeonly buffer Out { uint ids[]; };
#endif

void put(uint b, uint part, WORDS w)
{
#if WIDTH == 4 && defined PACKED
    ids[b * pc.parts + part] = uvec4(w.x & 0xffffu, w.x >> 16, w.y & 0xffffu, w.y >> 16);
#elif WIDTH == 4
    ids[b * pc.parts + part] = w;
#elif defined PACKED
    const uint i = b * pc.numbers + 2 * part;
    ids[i] = w & 0xffffu;
    if (2 * part + 1 < pc.numbers) ids[i + 1] = w >> 16;
#else
    ids[b * pc.numbers + part] = w;
#endif
}

void main()
{
    const uvec2 place = batch_place();
    const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x, rows = place.x, first = place.y;
    for (uint i = gl_GlobalInvocationID.x; i < pc.batch * pc.parts; i += stride) {
        const uint b = i / pc.parts, part = i % pc.parts;
        const bool real = b < rows && first + b >= first && first + b < pc.n_order;
        const uint row = real ? order[first + b] : 0u;
        if (real && row >= pc.row_begin && row < pc.row_end) put(b, part, table[(row - pc.row_begin) * pc.parts + part]);
        else if (KEEP == 0u) put(b, part, WORDS(0u));
    }
}
