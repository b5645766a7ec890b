// batch_norm_finish.comp - combines the statistics of a channel's blocks, first to last
//   n is the count, and M2 is the sum of squares about the mean. a means the blocks so far, b the next block:
//   n = n_a + n_b, delta = mean_b - mean_a, mean = mean_a + delta * n_b / n, M2 = M2_a + M2_b + delta^2 * n_a * n_b / n
//   The biased variance is M2 / n, or 0 if n is 0.
//   SUMS: dbeta = sum of dy, dgamma = sum of dy * xhat
// grid: x over channels with a stride.
// source: Chan, Golub & LeVeque 1983
// Deterministic: one lane adds in one order.
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

void main()
{
    const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint c = gl_GlobalInvocationID.x; c < pc.all_channels; c += stride) {
        vec4 all = part[c];
        for (uint block = 1; block < pc.blocks; block++) {
            const vec4 next = part[block * pc.all_channels + c];
#ifdef SUMS
            all += next;
#else
            const float n = all.x + next.x, delta = next.y - all.y;
            if (next.x > 0.0)
                all = vec4(n, all.y + delta * (next.x / n), all.z + next.z + delta * delta * (all.x * next.x / n), 0.0);
#endif
        }
#ifdef SUMS
        dbeta[c] = all.x;
        dgamma[c] = all.y;
#else
        mean_of[c] = all.y;
        var_of[c] = all.x > 0.0 ? all.z / all.x : 0.0;
#endif
    }
}
