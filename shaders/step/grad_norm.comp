// grad_norm.comp - adds the squares of the gradients that a work group processes. clip_norm.comp adds the results of all work
// groups. Frozen parameters are left out.
// Squares of floats can overflow and underflow, so there are three sums. Magnitudes below 2^-40 are multiplied by 2^80,
// magnitudes up to 2^40 are not scaled, and larger ones are multiplied by 2^-88. No square and no sum of 2^32 squares
// overflows, and no square that matters is lost. A lane first adds up 32 squares, and then adds this partial sum to its sum. So
// rounding errors stay small in large arenas.
// grid: each work group processes one contiguous range and writes one entry.
// source: Blue, A portable Fortran program to find the Euclidean norm of a vector, ACM TOMS 4 (1978).
// Deterministic: the order depends only on how many work groups and lanes there are, and on the subgroup size.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/update.abi.h"
#include "abi/grad_norm.abi.h"
#include "lib/load.glsl"
#include "lib/groups.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
#include "lib/lanes.glsl"
VKT_IN4(UPDATE_GRAD, grad);
layout(binding = UPDATE_STEP, std430) readonly buffer Step { uint step[]; };
layout(binding = GRAD_NORM_PARTIAL, std430) writeonly buffer Partial { vec4 partial[]; };
const vec4 LEAST = vec4(9.094947017729282e-13), MOST = vec4(1.099511627776e12);

vec3 squares(vec4 g)
{
    const bvec4 small = lessThan(abs(g), LEAST), large = greaterThan(abs(g), MOST);
    const vec4 s = mix(vec4(0), g * 1.2089258196146292e24, small), l = mix(vec4(0), g * 3.2311742677852644e-27, large);
    const vec4 m = mix(g, vec4(0), equal(uvec4(small) | uvec4(large), uvec4(1))); // a NaN is neither small nor large
    return vec3(dot(s, s), dot(m, m), dot(l, l));
}

void main()
{
    if (step[STEP_HOLD] != 0u) return;
    const uvec2 share = share_of(pc.n4);
    const uint lanes = gl_WorkGroupSize.x;
    vec3 sum = vec3(0);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += 8 * lanes) {
        vec3 some = vec3(0);
        for (uint k = i; k < min(i + 8 * lanes, share.y); k += lanes)
            if (!is_frozen(k)) some += squares(LOAD4(grad, k));
        sum += some;
    }
    sum = vec3(sum_of_lanes(sum.x), sum_of_lanes(sum.y), sum_of_lanes(sum.z));
    if (gl_LocalInvocationID.x == 0u) partial[pc.first + gl_WorkGroupID.x] = vec4(sum, 0);
}
