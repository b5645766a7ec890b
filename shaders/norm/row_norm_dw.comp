// row_norm_dw.comp - computes each slice's part of dgamma = sum of dy * xhat and dbeta = sum of dy. A slice is a range
// of samples.
//   A sample has `groups` rows. Without ALONG, inner is 1, and a lane processes WIDTH neighbouring channels. With ALONG, the
//   lanes of a work group loop over the `inner` elements of one channel, and after the loop their sums are added up.
// grid: x over channels, y over slices, both with a stride.
// Deterministic: the order of additions depends only on the shape, the lanes and the subgroup size.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/row_norm.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
#ifdef ALONG
#include "lib/lanes.glsl"
#define LANES 1
#else
#define LANES (WIDTH * gl_WorkGroupSize.x)
#endif
#define WITH_DY
#include "lib/row_norm.glsl"
layout(constant_id = ROW_NORM_SPEC_GROUPED) const uint GROUPED = 1; // 0: all lanes use the mean and scale of one row
layout(binding = ROW_NORM_MEAN, std430) readonly buffer Mean { float mean_of[]; };
layout(binding = ROW_NORM_SCALE, std430) readonly buffer Scale { float scale_of[]; };
layout(binding = ROW_NORM_PART, std430) writeonly buffer Part { float part[]; };

#ifdef ALONG
// Adds up one channel of a slice: `inner` elements of each sample.
void add(uint c, uint group, uint first, uint end, inout NUMBER dgamma, inout NUMBER dbeta)
{
    for (uint s = first; s < end; s++) {
        const uint at = (s * (pc.groups * pc.channels) + c) * pc.inner, row = pc.first + s * pc.groups + group;
        const float mean = RMS != 0 ? 0.0 : mean_of[row], scale = scale_of[row];
        for (uint k = WIDTH * gl_LocalInvocationID.x; k < pc.inner; k += WIDTH * gl_WorkGroupSize.x) {
            const NUMBER d = DY(pc.dy0 + at + k);
            dgamma += d * ((X(pc.x0 + at + k) - mean) * scale);
            dbeta += d;
        }
    }
}
#else
// Adds up neighbouring channels of a slice. If GROUPED is 0, a sample is one row, and all lanes need the mean and scale
// of this row. So each lane loads the mean and scale of one of the next samples, and shuffles pass them to the other
// lanes. On llvmpipe, a load that all lanes repeat would cost more than the rest of the kernel.
void add(uint c, uint group, uint first, uint end, inout NUMBER dgamma, inout NUMBER dbeta)
{
    const uint all = pc.groups * pc.channels, lanes = gl_WorkGroupSize.x;
    for (uint s0 = first; s0 < end; s0 += lanes) {
        const uint own = pc.first + min(s0 + gl_SubgroupInvocationID, end - 1);
        const float means = RMS != 0 || GROUPED != 0 ? 0.0 : mean_of[own], scales = GROUPED != 0 ? 0.0 : scale_of[own];
        for (uint s = s0; s < min(s0 + lanes, end); s++) {
            const uint row = pc.first + s * pc.groups + group, at = s * all + c;
            const float mean = RMS != 0 ? 0.0 : GROUPED != 0 ? mean_of[row] : subgroupShuffle(means, s - s0);
            const float scale = GROUPED != 0 ? scale_of[row] : subgroupShuffle(scales, s - s0);
            const NUMBER d = DY(pc.dy0 + at);
            dgamma += d * ((X(pc.x0 + at) - mean) * scale);
            dbeta += d;
        }
    }
}
#endif

void main()
{
    const uint all = pc.groups * pc.channels, samples = pc.rows / pc.groups;
    for (uint slice = gl_WorkGroupID.y; slice < pc.slices; slice += gl_NumWorkGroups.y)
    for (uint c0 = gl_WorkGroupID.x * LANES; c0 < all; c0 += gl_NumWorkGroups.x * LANES) {
#ifdef ALONG
        const uint c = c0;
#else
        const uint own = c0 + WIDTH * gl_LocalInvocationID.x, c = min(own, all - WIDTH); // all lanes stay active, for shuffles
#endif
        const uint first = slice * pc.slice_samples, end = min(first + pc.slice_samples, samples);
        NUMBER dgamma = NUMBER(0.0), dbeta = NUMBER(0.0);
        add(c, GROUPED != 0 ? c / pc.channels : 0u, first, end, dgamma, dbeta);
        const uint to = (pc.first_slice + slice) * 2 * all + c;
#ifdef ALONG
        const float sum0 = sum_of_lanes(across(dgamma)), sum1 = sum_of_lanes(across(dbeta));
        if (gl_LocalInvocationID.x == 0) {
            part[to] = sum0;
            part[to + all] = sum1;
        }
#elif WIDTH == 4
        if (own < all)
            for (uint i = 0; i < 4; i++) {
                part[to + i] = dgamma[i];
                part[to + all + i] = dbeta[i];
            }
#else
        if (own < all) {
            part[to] = dgamma;
            part[to + all] = dbeta;
        }
#endif
    }
}
