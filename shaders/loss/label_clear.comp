// label_clear.comp - out[r] = 0 for the rows whose labels do not count (label_rows.abi.h). ALL: out[r] = 0 for every row
// grid: x over vec4s in contiguous shares; any group count is right.
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/label_clear.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = LABEL_CLEAR_SPEC_ALL) const bool ALL = false;
layout(binding = LABEL_CLEAR_T, std430) readonly buffer T { uint t[]; };
layout(binding = LABEL_CLEAR_STEP, std430) readonly buffer Step { uint step[]; };
VKT_OUT4(LABEL_CLEAR_OUT, out4)

void main()
{
    const uint width4 = pc.width4, first = pc.first, base = pc.base, classes = pc.classes, ignore = pc.ignore;
    const uint real = min(step[STEP_ROWS], pc.n / pc.group) * pc.group;
    const uvec2 share = share_of(pc.rows * width4);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        const uint row = first + i / width4, label = ALL || row >= real ? ignore : t[row];
        if (label == ignore || label >= classes) STORE4(out4, base + i, vec4(0.0));
    }
}
