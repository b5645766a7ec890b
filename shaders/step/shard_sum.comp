// shard_sum.comp - adds the gradients of this rank's shards by a binary tree. Each run adds its own gradient.
//   g = STEP_WEIGHT * gradient, added up over the runs of a shard. A plane has one partial sum for each gradient of
//   the range. If a shard has several runs, the sum of its runs so far is in the last plane.
//   For shard s, the kernel adds planes to g: plane 0 if bit 0 of s is set, then plane 1 if bit 1 is set too, and so on up to
//   the first bit that is not set. It writes g to the plane of that bit. So planes are the digits of a binary counter, and the
//   sum of shards 0 to 3 is (g0 + g1) + (g2 + g3). For the last shard, g is the whole sum.
//   A magnitude below 2^-126 becomes +0. So a host that adds the same numbers gets the same bits, whether or not this device
//   flushes such small numbers to 0. A run without rows adds zeros, whatever its gradient is.
// grid: each work group processes one contiguous range; any group count is right.
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/shard_sum.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = SHARD_SUM_SPEC_BF16) const bool BF16 = false;
layout(constant_id = SHARD_SUM_SPEC_STATES) const bool STATES = false;
VKT_IN4(SHARD_SUM_GRAD, grad);
layout(binding = SHARD_SUM_STEP, std430) readonly buffer Step { uint step[]; };
VKT_IN4(SHARD_SUM_PLANES, planes);
VKT_F32_OUT4(SHARD_SUM_PLANES_OUT, planes_out);
VKT_F32_OUT4(SHARD_SUM_SUM, sum);
layout(binding = SHARD_SUM_STATES, std430) readonly buffer States { uint states[]; };

vec4 flushed(vec4 v)
{
    return mix(v, vec4(0.0), lessThan(abs(v), vec4(uintBitsToFloat(0x00800000u)))); // NaN stays NaN
}

// Returns whether the summands of vec4 i of the range are rounded.
bool is_rounded(uint i)
{
    const uint block = pc.block + i / SHARD_SUM_BLOCK;
    return BF16 && !(STATES && bitfieldExtract(states[block / 32u], int(block % 32u), 1) != 0u);
}

vec4 summand(vec4 v, bool rounded)
{
    return rounded ? widen(narrow(v, STORAGE_BF16), STORAGE_BF16) : v;
}

void main()
{
    const uint n4 = pc.n4, levels = pc.levels, parts = pc.parts, shard = step[STEP_SHARD], part = step[STEP_PART];
    const float weight = uintBitsToFloat(step[STEP_WEIGHT]);
    // level: the number of planes to add. If level < levels, it is also the index of the plane to write.
    const uint level = min(uint(findLSB(~shard)), levels);
    const uvec2 share = share_of(n4);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        precise vec4 g = vec4(0.0);
        if (weight != 0.0) g = flushed(weight * LOAD4(grad, i));
        if (part != 0u) {
            g = LOAD4(planes, levels * n4 + i) + g;
            g = flushed(g);
        }
        if (part + 1u < parts) {
            STORE4(planes_out, levels * n4 + i, g);
            continue;
        }
        const bool rounded = is_rounded(i);
        for (uint k = 0u; k < level; k++) {
            g = summand(LOAD4(planes, k * n4 + i), rounded) + summand(g, rounded);
            g = flushed(g);
        }
        if (level < levels) STORE4(planes_out, level * n4 + i, g);
        else STORE4(sum, i, g);
    }
}
