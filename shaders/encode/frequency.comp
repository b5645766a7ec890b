// frequency.comp - y[d][k][0][n] = sin(2^k pi x[d][n]), y[d][k][1][n] = cos(2^k pi x[d][n])
// DX: dx[d][n] = sum over k of 2^k pi (cos(..) dy[d][k][0][n] - sin(..) dy[d][k][1][n])
//     sin and cos are computed again from x instead of read from y, because x is smaller, and y may be rounded to 16 bits.
// grid: x over vec4s of the batch in contiguous shares, y over dimensions with a stride; any group count is right.
// source: Mildenhall et al., NeRF: Representing Scenes as Neural Radiance Fields for View Synthesis (2020), equation 4
// Deterministic: one lane computes an element.
// Elements past the batch become 0 in dx, because they are 0 in dy.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/frequency.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
#define VKT_KERNEL
#include "vktrain/vktrain.glsl"
layout(local_size_x_id = 0) in;
VKT_IN4(FREQUENCY_X, x4);
#ifdef DX
VKT_IN4(FREQUENCY_Y, dy4);
VKT_OUT4(FREQUENCY_DX, dx4);
#else
VKT_OUT4(FREQUENCY_Y, y4);
#endif

void main()
{
    const uvec2 share = share_of(pc.n4);
    for (uint d = gl_WorkGroupID.y; d < pc.dims; d += gl_NumWorkGroups.y)
        for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
            const vec4 x = LOAD4(x4, pc.x_base + d * pc.n4 + i);
#ifdef DX
            vec4 sum = vec4(0.0);
#endif
            for (uint k = 0; k < pc.frequencies; k++) {
                const uint at = pc.y_base + 2 * (d * pc.frequencies + k) * pc.n4 + i;
                const float power = uintBitsToFloat(k + 127 << 23); // 2^k
                vec4 s, c;
                vkt_sin_cos_pi(power * x, s, c);
#ifdef DX
                sum += power * 3.14159265358979 * (c * LOAD4(dy4, at) - s * LOAD4(dy4, at + pc.n4));
#else
                STORE4(y4, at, s);
                STORE4(y4, at + pc.n4, c);
#endif
            }
#ifdef DX
            STORE4(dx4, pc.dx_base + d * pc.n4 + i, sum);
#endif
        }
}
