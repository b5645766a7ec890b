// self_test.comp - tests the features that fast kernels need, on small integers, so that no result is rounded.
// The test has loads whose addresses differ by lane, in a do .. while loop with vec4 sums. One load is texelFetch. No
// kernel of a network uses texelFetch, but this load finds an error of Mesa 25.0.7: with vectors of 512 bits, only
// texelFetch returns wrong numbers. The test also has shuffles by lane ^ m, from the next lane and from a constant
// lane. It has branches and trip counts that differ by lane, with loads inside. It has stores of four floats (two
// 64-bit words in the texel variant). Only every third lane executes the last store. kernel/self_test.c computes the
// same on the host.
// grid: x over subgroups; a work group is one full subgroup
// in: x (n) vec4    out: y (work groups, SG, SELF_TEST_PARTS) vec4; a lane writes at index lane ^ 1
// Deterministic: integers.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/self_test.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint SG = 8;
layout(binding = SELF_TEST_FETCHED) uniform samplerBuffer fetched_x;
VKT_IN4(SELF_TEST_X, x4);
VKT_F32_OUT4(SELF_TEST_Y, y4);

void main()
{
    const uint lane = gl_SubgroupInvocationID, group = gl_WorkGroupID.x, last = pc.n - 1u;
    uint iteration = pc.iterations, a = 5u * lane + 11u * group, b = 3u * lane + 7u * group;
    vec4 sum[4] = vec4[](vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0)), fetched = vec4(0.0);
    do {
        const vec4 va = LOAD4(x4, a & last), vb = LOAD4(x4, b & last);
        [[unroll]] for (uint m = 0; m < 4; m++) sum[m] += subgroupShuffleXor(va[m], m) * vb;
        fetched += texelFetch(fetched_x, int(a & last));
        a += lane + 1u;
        b += 2u;
    } while (--iteration != 0u);
    vec4 apart = vec4(0.0);
    if ((lane & 1u) != 0u)
        apart = LOAD4(x4, lane * lane & last);
    else
        [[dont_unroll]] for (uint i = 0; i <= lane; i++) apart += LOAD4(x4, group + i & last);
    const vec4 next = subgroupShuffle(sum[0], (lane + 1u) % SG), known = subgroupShuffle(sum[1], 2u);
    const uint at = (group * SG + (lane ^ 1u)) * SELF_TEST_PARTS;
    [[unroll]] for (uint m = 0; m < 4; m++) STORE4(y4, at + m, sum[m]);
    STORE4(y4, at + 4u, apart);
    STORE4(y4, at + 5u, next);
    STORE4(y4, at + 6u, known);
    STORE4(y4, at + 7u, fetched);
    if (lane % 3u == 0u) STORE4(y4, at + 8u, apart + next);
}
