// batch_norm_finish.comp - combines the statistics of a channel's blocks: mean and biased variance
//   SUMS: dbeta = sum of dy, dgamma = sum of dy * xhat
// grid: x over channels with a stride.
// Deterministic: one lane combines all blocks of a channel, first to last.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/batch_norm.abi.h"
layout(local_size_x_id = 0) in;
layout(binding = BATCH_NORM_PART, std430) readonly buffer Part { vec4 part[]; };
#ifdef SUMS
layout(binding = BATCH_NORM_DGAMMA, std430) writeonly buffer Dgamma { float dgamma[]; };
layout(binding = BATCH_NORM_DBETA, std430) writeonly buffer Dbeta { float dbeta[]; };
#else
layout(binding = BATCH_NORM_MEAN, std430) writeonly buffer Mean { float mean_of[]; };
layout(binding = BATCH_NORM_VAR, std430) writeonly buffer Var { float var_of[]; };
#endif
#include "lib/channel_blocks.glsl"

void main()
{
    const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint c = gl_GlobalInvocationID.x; c < pc.all_channels; c += stride) {
        vec4 all = part[c];
        for (uint block = 1; block < pc.blocks; block++) all = with_block(all, part[block * pc.all_channels + c]);
#ifdef SUMS
        dbeta[c] = all.x;
        dgamma[c] = all.y;
#else
        mean_of[c] = all.y;
        var_of[c] = variance_of(all);
#endif
    }
}
