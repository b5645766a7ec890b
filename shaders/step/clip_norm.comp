// clip_norm.comp - computes the norm of the gradients (without those of frozen parameters) from the partial sums of
// grad_norm.comp, and the factor that limits the norm:
//   norm = STEP_FACTOR * sqrt(sum of g^2);  STEP_FACTOR *= min(1, max_norm / (norm + 1e-6))
// Before this kernel, STEP_FACTOR is 1 / loss scale. If the gradients are sums over micro-batches or shards, STEP_FACTOR is
// also divided by the sum of the weights. A NaN norm makes all gradients NaN.
// grid: one work group.
// source: PyTorch documentation of torch.nn.utils.clip_grad_norm_; Pascanu, Mikolov & Bengio, ICML 2013.
// Deterministic: the order depends only on n, the number of lanes and the subgroup size.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/clip_norm.abi.h"
layout(local_size_x_id = 0) in;
#include "lib/lanes.glsl"
const float HUGE = 3.0948500982134507e26, TINY = 3.2311742677852644e-27, SMALL = 8.271806125530277e-25; // 2^88, 2^-88, 2^-80
layout(binding = CLIP_NORM_PARTIAL, std430) readonly buffer Partial { vec4 partial[]; };
layout(binding = CLIP_NORM_STEP, std430) buffer Step { uint step[]; };

void main()
{
    if (step[STEP_HOLD] != 0u) return;
    // Sums of squares of gradients. sum.x: magnitudes below 2^-40; the squares are multiplied by 2^160. sum.y: magnitudes up
    // to 2^40. sum.z: larger magnitudes; the squares are multiplied by 2^-176.
    vec3 sum = vec3(0);
    for (uint i = gl_LocalInvocationID.x; i < pc.n; i += gl_WorkGroupSize.x) sum += partial[i].xyz;
    sum = vec3(sum_of_lanes(sum.x), sum_of_lanes(sum.y), sum_of_lanes(sum.z));
    if (gl_LocalInvocationID.x != 0u) return;
    const float factor = uintBitsToFloat(step[STEP_FACTOR]);
    // Without `precise`, a compiler may compute TINY * TINY or SMALL * SMALL first, and this product underflows.
    precise float rest = sum.z != 0.0 ? sum.y * TINY : sum.x * SMALL;
    rest *= sum.z != 0.0 ? TINY : SMALL;
    // sqrt(..) * HUGE may overflow, so `factor` is multiplied first.
    float norm = sum.z != 0.0 ? sqrt(sum.z + rest) * factor * HUGE
                 : sum.y != 0.0 ? sqrt(sum.y + rest) * factor : sqrt(sum.x) * factor * SMALL;
    const float clip = pc.max_norm / (norm + 1e-6);
    step[STEP_NORM] = floatBitsToUint(norm);
    step[STEP_FACTOR] = floatBitsToUint(clip > 1.0 ? factor : factor * clip);
}
