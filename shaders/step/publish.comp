// publish.comp - published = decay * published + (1 - decay) * param over a range of the arenas, in place. `published`
// has the parameters for inference (vkt_publish in vktrain/optim.h). A run that completes no step writes nothing.
//   The kernel copies the parameter if this is the first step, if the decay is 0, or if the parameter is frozen.
//   The code adds a correction to the operand with the larger weight. The correction is small, and so is its rounding error.
// grid: each work group processes one contiguous range; any group count is right.
// source: PyTorch documentation of torch.optim.swa_utils.AveragedModel and get_ema_multi_avg_fn; torch.lerp
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/publish.abi.h"
#include "lib/load.glsl"
#include "lib/groups.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = PUBLISH_SPEC_AVERAGE) const bool AVERAGE = false;
VKT_IN4(PUBLISH_PARAM, param);
VKT_IN4(PUBLISH_OLD, old);
layout(binding = UPDATE_STEP, std430) readonly buffer Step { uint step[]; };
VKT_F32_OUT4(PUBLISH_NEW, published);

void main()
{
    if (step[STEP_HOLD] != 0u) return;
    const bool copies = !AVERAGE || step[STEP_T] <= 1u;
    const uvec2 share = share_of(pc.n4);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        vec4 v = LOAD4(param, i);
        if (!copies && !is_frozen(i)) {
            const vec4 o = LOAD4(old, i);
            v = pc.decay > 0.5 ? o + pc.rest * (v - o) : v - pc.decay * (v - o);
        }
        STORE4(published, i, v);
    }
}
