// upsample2d.comp - computes y[c][p][q][n] from x[c][h][w][n], four samples per vec4:
//   nearest: y is x at row min(floor(p * scale_h), H - 1) and column min(floor(q * scale_w), W - 1). The products are rounded
//   to float32, as in torch.
//   BILINEAR: y is the sum of the four pixels around the source point, with linear weights along each axis. Each coordinate of
//   a source point is a quotient of two integers. So the distance from the source point to a pixel has only one rounding error,
//   also in large images.
// grid: x over channels * P rows of y, y over the vec4s of a row, both with a stride; any group count is right.
// Deterministic: one lane computes an element.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/upsample2d.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = UPSAMPLE_SPEC_N4) const uint N4 = 32;
VKT_IN4(UPSAMPLE_X, x4);
VKT_OUT4(UPSAMPLE_Y, y4);
#include "lib/upsample.glsl"

#ifdef BILINEAR
// `first` is the last pixel at or before the source point of p. `second` is the pixel after `first`, or `first` again
// at the far edge. `fraction` is the distance of the source point from `first`, 0 <= fraction < 1.
struct Between {
    uint first, second;
    float fraction;
};
Between between(uint p, Axis a)
{
    const int at = point(p, a), first = at / a.below;
    return Between(uint(first), min(uint(first) + 1, a.size - 1), float(at - first * a.below) / float(a.below));
}
#endif

void main()
{
    const uint lanes = gl_WorkGroupSize.x, row_items = pc.Q * N4;
    for (uint row = gl_WorkGroupID.x; row < pc.channels * pc.P; row += gl_NumWorkGroups.x) {
        const uint plane = row / pc.P * pc.H;
#ifdef BILINEAR
        const Between v = between(row % pc.P, height());
        const uint top = pc.x + (plane + v.first) * pc.W * N4, bottom = pc.x + (plane + v.second) * pc.W * N4;
#else
        const uint top = pc.x + (plane + nearest(row % pc.P, pc.scale_h, pc.H)) * pc.W * N4;
#endif
        for (uint i = gl_WorkGroupID.y * lanes + gl_LocalInvocationID.x; i < row_items; i += lanes * gl_NumWorkGroups.y) {
            const uint n = i % N4, to = pc.y + row * row_items + i;
#ifdef BILINEAR
            const Between u = between(i / N4, width());
            const uint left = u.first * N4 + n, right = u.second * N4 + n;
            const vec4 above = (1.0 - u.fraction) * LOAD4(x4, top + left) + u.fraction * LOAD4(x4, top + right);
            const vec4 under = (1.0 - u.fraction) * LOAD4(x4, bottom + left) + u.fraction * LOAD4(x4, bottom + right);
            STORE4(y4, to, (1.0 - v.fraction) * above + v.fraction * under);
#else
            STORE4(y4, to, LOAD4(x4, top + nearest(i / N4, pc.scale_w, pc.W) * N4 + n));
#endif
        }
    }
}
