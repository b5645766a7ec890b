// reduce.comp - y[split][o] = scale * sum over a share of the reduced elements of x belonging to output o
//   ALONG: the fastest reduced dimension is the fastest of x: the lanes of a subgroup walk along it, then add up by a shuffle
//   tree; one work group an output and split. Otherwise neighbouring lanes take neighbouring outputs.
//   Rows (runs of the fastest reduced dimension) go to splits in blocks; sums of a row are kept apart from the running sum, so
//   the error grows with the number of rows plus the length of one, not with their product.
// grid: x over outputs (ALONG: one group each; else one lane each) with a stride, y over splits. Deterministic: the order of
// additions depends on the shape and the subgroup size alone.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/reduce.abi.h"
layout(local_size_x_id = 0) in;
layout(binding = REDUCE_X, std430) readonly buffer X { float x[]; };
layout(binding = REDUCE_Y, std430) writeonly buffer Y { float y[]; };

uint base_of(uint o)
{
    const uint i4 = o % pc.k4; o /= pc.k4;
    const uint i3 = o % pc.k3; o /= pc.k3;
    const uint i2 = o % pc.k2; o /= pc.k2;
    return o / pc.k1 * pc.s0 + o % pc.k1 * pc.s1 + i2 * pc.s2 + i3 * pc.s3 + i4 * pc.s4;
}

uint row_of(uint r)
{
    const uint i3 = r % pc.r3; r /= pc.r3;
    const uint i2 = r % pc.r2; r /= pc.r2;
    return r / pc.r1 * pc.t0 + r % pc.r1 * pc.t1 + i2 * pc.t2 + i3 * pc.t3;
}

float share(uint base, uint lane, uint lanes)
{
    const uint block = (pc.rows + pc.splits - 1) / pc.splits, first = gl_WorkGroupID.y * block;
    const uint end = min(first + block, pc.rows);
    float total = 0.0;
    for (uint r = first; r < end; r++) {
        const uint at = base + row_of(r);
        float row = 0.0;
        for (uint i = lane; i < pc.run; i += lanes) row += x[at + i * pc.t4];
        total += row;
    }
    return total;
}

void main()
{
#ifdef ALONG
    for (uint o = gl_WorkGroupID.x; o < pc.outputs; o += gl_NumWorkGroups.x) {
        float v = share(base_of(o), gl_LocalInvocationID.x, gl_WorkGroupSize.x);
        for (uint k = gl_WorkGroupSize.x / 2; k > 0; k /= 2) v += subgroupShuffleXor(v, k);
        if (gl_LocalInvocationID.x == 0) y[gl_WorkGroupID.y * pc.outputs + o] = v * pc.scale;
    }
#else
    const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint o = gl_GlobalInvocationID.x; o < pc.outputs; o += stride)
        y[gl_WorkGroupID.y * pc.outputs + o] = share(base_of(o), 0, 1) * pc.scale;
#endif
}
