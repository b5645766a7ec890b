// upsample2d_dx.comp - gradient of upsample2d by gathering: dx[c][h][w][n] = sum over (p, q), in ascending order, of
// dy[c][p][q][n] * (weight of pixel (h, w) of x in pixel (p, q) of y).
//   nearest: the weight is 1 if (p, q) is a copy of (h, w), else 0
//   BILINEAR: the weight is a product of two factors. The factor of the height is max(0, 1 - |s - h|), where s is the
//   source point of p. The factor of the width is computed in the same way.
// grid: x over channels * H rows of dx, y over the vec4s of a row, both with a stride; any group count is right.
// Deterministic: one lane computes an element.
// Elements past the batch become 0, because they are 0 in dy.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/upsample2d.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = UPSAMPLE_SPEC_N4) const uint N4 = 32;
VKT_IN4(UPSAMPLE_Y, y4);
VKT_OUT4(UPSAMPLE_X, x4);
#include "lib/upsample.glsl"

#ifdef BILINEAR
// Returns the weight of pixel h of x in pixel p of y, along one axis.
float weight(uint p, uint h, Axis a)
{
    return float(max(a.below - abs(point(p, a) - int(h) * a.below), 0)) / float(a.below);
}

// Returns the first pixel p with up * p + offset > limit, at most `most`. up must be above 0.
uint behind(int limit, Axis a, uint most)
{
    return limit < a.offset ? 0 : min(uint((limit - a.offset) / a.up) + 1, most);
}

// Returns (first, end): along one axis, pixels first .. end - 1 of y use pixel h of x. y has `most` pixels along this axis. A
// pixel of y whose source point is outside x uses the edge pixel of x.
uvec2 takers(uint h, Axis a, uint most)
{
    const int here = int(h) * a.below;
    if (a.up == 0) return uvec2(0, h == 0 ? most : 0);
    return uvec2(h == 0 ? 0 : behind(here - a.below, a, most),
                 h == a.size - 1 ? most : behind(here + a.below - 1, a, most));
}
#else
// Returns the first pixel of y that is a copy of pixel h of x or of a later pixel of x. Returns `most` if y has no such pixel.
// The search starts at h / scale - 1, which is never past the result.
uint shows(uint h, float scale, uint size, uint most)
{
    uint p = uint(max(float(h) / scale - 1.0, 0.0));
    while (p < most && nearest(p, scale, size) < h) p++;
    return p;
}
uvec2 takers(uint h, float scale, uint size, uint most)
{
    return uvec2(shows(h, scale, size, most), h == size - 1 ? most : shows(h + 1, scale, size, most));
}
#endif

void main()
{
    const uint lanes = gl_WorkGroupSize.x, row_items = pc.W * N4;
    for (uint row = gl_WorkGroupID.x; row < pc.channels * pc.H; row += gl_NumWorkGroups.x) {
        const uint plane = row / pc.H * pc.P, h = row % pc.H;
#ifdef BILINEAR
        const uvec2 ps = takers(h, height(), pc.P);
#else
        const uvec2 ps = takers(h, pc.scale_h, pc.H, pc.P);
#endif
        for (uint i = gl_WorkGroupID.y * lanes + gl_LocalInvocationID.x; i < row_items; i += lanes * gl_NumWorkGroups.y) {
            const uint n = i % N4, w = i / N4;
#ifdef BILINEAR
            const uvec2 qs = takers(w, width(), pc.Q);
#else
            const uvec2 qs = takers(w, pc.scale_w, pc.W, pc.Q);
#endif
            vec4 sum = vec4(0.0);
            for (uint p = ps.x; p < ps.y; p++) {
                vec4 line = vec4(0.0);
                for (uint q = qs.x; q < qs.y; q++) {
                    const vec4 g = LOAD4(y4, pc.y + ((plane + p) * pc.Q + q) * N4 + n);
#ifdef BILINEAR
                    line += weight(q, w, width()) * g;
#else
                    line += g;
#endif
                }
#ifdef BILINEAR
                sum += weight(p, h, height()) * line;
#else
                sum += line;
#endif
            }
            STORE4(x4, pc.x + row * row_items + i, sum);
        }
    }
}
