// gather_labels.comp - out[b] = table[order[first + b]] for b < rows, else 0. Row indices outside the table give 0.
//   rows: number of real rows of the batch. first: index of the batch's first row in `order`.
// grid: x over the batch with a stride; any group count is right.
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/gather_labels.abi.h"
layout(local_size_x_id = 0) in;
layout(binding = LABELS_TABLE, std430) readonly buffer Table { uint table[]; };
layout(binding = LABELS_ORDER, std430) readonly buffer Order { uint order[]; };
#define BATCH_STEP LABELS_STEP
#define BATCH_WORDS LABELS_WORDS
#define BATCH_RUN LABELS_RUN
#include "lib/batch_place.glsl"
layout(binding = LABELS_OUT, std430) writeonly buffer Out { uint labels[]; };

void main()
{
    const uvec2 place = batch_place();
    const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x, rows = place.x, first = place.y;
    for (uint b = gl_GlobalInvocationID.x; b < pc.batch; b += stride) {
        const bool real = b < rows && first + b >= first && first + b < pc.n_order;
        const uint row = real ? order[first + b] : 0u;
        labels[b] = real && row < pc.n_table ? table[row] : 0u;
    }
}
