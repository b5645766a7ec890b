// accumulate.comp - multiplies the gradients of a micro-batch by STEP_WEIGHT, and adds them to a sum. The update divides the
// sum by the sum of the weights.
//   sum = (first micro-batch of the step ? 0 : sum) + STEP_WEIGHT * g
// The loss of a micro-batch is a mean, and STEP_WEIGHT is the number of terms of this mean: by default, the number of rows. So
// k micro-batches give the gradient of one batch that has the rows of all k.
// grid: each work group processes one contiguous range; any group count is right.
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/update.abi.h"
#include "abi/accumulate.abi.h"
#include "lib/load.glsl"
#include "lib/groups.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
VKT_IN4(ACCUMULATE_SUM, sum);
VKT_IN4(UPDATE_GRAD, grad);
layout(binding = UPDATE_STEP, std430) readonly buffer Step { uint step[]; };
VKT_F32_OUT4(ACCUMULATE_SUM_OUT, sum_out);

void main()
{
    const bool first = step[STEP_MICRO] == 1u;
    const float weight = uintBitsToFloat(step[STEP_WEIGHT]);
    const uvec2 share = share_of(pc.n4);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        if (is_frozen(i)) continue;
        const vec4 g = weight * LOAD4(grad, i);
        STORE4(sum_out, i, first ? g : LOAD4(sum, i) + g); // if `first`, the old sum is not added: it may be NaN
    }
}
