// label_rows.comp - out[0 .. count - 1] = the indices of the rows whose labels count, in ascending order
//   found = (count, number of wrong labels). A label of a real row is wrong if it is neither a class nor ignored.
//   Each lane has a span of the labels. It finds how many of its labels count, and waits for the other lanes. After that, it
//   writes the row indices of its labels that count, behind the row indices of the lanes before it.
// grid: one work group.
// Deterministic: the output has the order of the rows.
// source: Blelloch, Prefix Sums and Their Applications (1990): the compaction of a vector
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/label_found.abi.h"
#include "abi/label_rows.abi.h"
layout(local_size_x_id = 0) in;
layout(binding = LABEL_ROWS_T, std430) readonly buffer T { uint t[]; };
layout(binding = LABEL_ROWS_STEP, std430) readonly buffer Step { uint step[]; };
layout(binding = LABEL_ROWS_OUT, std430) writeonly buffer Out { uint rows[]; };
layout(binding = LABEL_ROWS_FOUND, std430) writeonly buffer Found { uint found[]; };
layout(binding = LABEL_ROWS_COUNT, std430) writeonly buffer Count { float count[]; };
shared uvec2 of_lane[LABEL_ROWS_MOST_LANES]; // x: number of labels that count; y: number of wrong labels

void main()
{
    const uint lane = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x, span = (pc.n + lanes - 1) / lanes;
    const uint real = min(step[STEP_ROWS], pc.n / pc.group) * pc.group;
    const uint begin = min(lane * span, real), end = min(begin + span, real);
    uvec2 own = uvec2(0);
    for (uint i = begin; i < end; i++) {
        const uint label = t[i];
        if (label != pc.ignore) own += label < pc.classes ? uvec2(1, 0) : uvec2(0, 1);
    }
    of_lane[lane] = own;
    barrier();
    uvec2 before = uvec2(0), all = uvec2(0);
    for (uint k = 0; k < lanes; k++) {
        if (k < lane) before += of_lane[k];
        all += of_lane[k];
    }
    uint at = before.x;
    for (uint i = begin; i < end; i++) {
        const uint label = t[i];
        if (label != pc.ignore && label < pc.classes) rows[at++] = i;
    }
    if (lane == 0) {
        found[FOUND_COUNT] = all.x;
        found[FOUND_WRONG] = all.y;
        count[0] = float(all.x);
    }
}
