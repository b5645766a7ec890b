// shard_state.comp - for a step that is split into shards: averages the states of the graph (running statistics) over
// the runs of the step.
//   BEGIN, before a run: a rank's first run of a step saves the states. The later runs of the step restore them.
//   GIVE, after the forward pass of a run: copies the states to the gradient arena, at the states' own offset. This
//   range is free, because states have no gradients. There, shard_sum.comp adds up STEP_WEIGHT * states like gradients.
//   TAKE, with the update: sets the states to the sum divided by the weight of the step.
// grid: each work group processes one contiguous range; any group count is right.
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/shard_state.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = SHARD_STATE_SPEC_WAY) const uint WAY = 0;
VKT_IN4(SHARD_STATE_STATE, state);
VKT_IN4(SHARD_STATE_COPY, copy);
layout(binding = SHARD_STATE_STEP, std430) readonly buffer Step { uint step[]; };
VKT_F32_OUT4(SHARD_STATE_STATE_OUT, state_out);
VKT_F32_OUT4(SHARD_STATE_COPY_OUT, copy_out);

void main()
{
    const uint n4 = pc.n4;
    const bool saves = step[STEP_SHARD] == 0u && step[STEP_PART] == 0u;
    const float weight = uintBitsToFloat(step[STEP_WEIGHT]);
    const uvec2 share = share_of(n4);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        if (WAY == SHARD_STATE_TAKE) STORE4(state_out, i, LOAD4(copy, i) / weight);
        else if (WAY == SHARD_STATE_GIVE || saves) STORE4(copy_out, i, LOAD4(state, i));
        else STORE4(state_out, i, LOAD4(copy, i));
    }
}
