// dropout.comp - y = keep ? x * scale : 0, the mask a pure function of (seed; step, salt, element): backward runs it again on dy.
//   Element e takes word e % 4 of philox((e / 4, t, salt, 3), seed) and is kept when it is >= threshold.
//   PLANES: x is [C][plane][columns4] vec4 over the batch (BATCH_LAST); e counts (c,n) planes, so a lane's four samples share
//   one block. PLANES_ROWS: x is (N C, plane) by rows; e = c pitch + n of its plane's (n,c), the same numbers.
// n: elements in this window, which begins at element `begin` of the tensor (begin % 4 == 0).
// grid: x over n / 4 in contiguous shares. Deterministic. Source: Srivastava et al., JMLR 15 (2014), in the inverted form.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/dropout.abi.h"
#include "lib/load.glsl"
#include "lib/philox.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
VKT_IN4(DROPOUT_X, x4);
layout(binding = DROPOUT_Y, std430) writeonly buffer Y4 { vec4 y4[]; };
layout(binding = DROPOUT_Y, std430) writeonly buffer Y1 { float y[]; };
layout(binding = DROPOUT_STEP, std430) readonly buffer Step { uint step[]; };

uvec4 block(uint e4)
{
    return philox4x32(uvec4(e4, step[STEP_T], pc.salt, 3u), uvec2(step[STEP_KEY0], step[STEP_KEY1]));
}

// The four words for elements 4i .. 4i+3 of the window.
uvec4 words(uint i)
{
#if defined(PLANES)
    const uint g = pc.begin / 4 + i, row = g / pc.columns4, column = g % pc.columns4;
    return block(row / pc.plane * pc.columns4 + column);
#elif defined(PLANES_ROWS)
    uvec4 w;
    for (uint k = 0; k < 4; k++) {
        const uint plane = (pc.begin + 4 * i + k) / pc.plane; // n C + c
        const uint e = plane % pc.rows * (4 * pc.columns4) + plane / pc.rows;
        w[k] = block(e / 4)[e % 4];
    }
    return w;
#else
    return block(pc.begin / 4 + i);
#endif
}

vec4 f(uint i)
{
    return mix(vec4(0.0), LOAD4(x4, i) * pc.scale, greaterThanEqual(words(i), uvec4(pc.threshold)));
}

void main()
{
    const uint whole = pc.n / 4;
    const uvec2 share = share_of(whole);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) y4[i] = f(i);
    if (gl_GlobalInvocationID.x == 0 && pc.n % 4 != 0) {
        const vec4 tail = f(whole);
        for (uint k = 0; k < pc.n % 4; k++) y[4 * whole + k] = tail[k];
    }
}
