// loss.comp - computes partial sums of a loss: part[j] is the sum of term(y, target) over the elements of block j, divided
// by `elements`. If `by_rows` is 1, part[j] is also divided by the number of real rows. Elements past the real rows do not
// count.
//   A dispatch processes a range of n elements, from vec4 begin4 of y and target on. The two tensors have the same layout.
// grid: x over blocks with a stride, one work group per block.
// Deterministic: the order of additions depends only on the shape, the lanes and the subgroup size.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/loss.abi.h"
#include "lib/explog.glsl"
#include "lib/load.glsl"
#include "lib/loss.glsl"
layout(local_size_x_id = 0) in;
#include "lib/lanes.glsl"
VKT_IN4(LOSS_Y, y4);
VKT_IN4(LOSS_TARGET, target4);
layout(binding = LOSS_STEP, std430) readonly buffer Step { uint step[]; };
layout(binding = LOSS_PART, std430) writeonly buffer Part { float part[]; };

void main()
{
    const uint rows = min(step[STEP_ROWS], pc.batch), limit = rows * pc.per_row;
    const uint vec4s = (pc.n + 3) / 4;
    const uint lane = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x, hop = lanes % pc.period4;
    for (uint j = gl_WorkGroupID.x; j < pc.blocks; j += gl_NumWorkGroups.x) {
        const uint first = j * pc.per_block, end = min(first + pc.per_block, vec4s);
        uint column = (pc.begin4 + first + lane) % pc.period4;
        vec4 sum = vec4(0.0);
        for (uint i = first + lane; i < end; i += lanes) {
            const vec4 term = term_of(LOAD4(y4, i), LOAD4(target4, i), weights_at(pc.begin4 + i));
            sum += mix(vec4(0.0), term, lessThan(4 * column + uvec4(0, 1, 2, 3), uvec4(limit)));
            column += hop;
            column -= column >= pc.period4 ? pc.period4 : 0u;
        }
        float v = (sum.x + sum.y) + (sum.z + sum.w);
        v = sum_of_lanes(v);
        if (lane == 0) part[pc.first_block + j] = v / ((pc.by_rows != 0 ? float(rows) : 1.0) * float(pc.elements));
    }
}
