// bench/fma.comp - computes only multiply-adds. vkt-bench measures the highest arithmetic rate of a device with this kernel,
// and compares other kernels with the result.
//   Every lane has SUMS vec4s s, and computes s = s * factor + addend for each s, BENCH_UNROLL times per round. The SUMS chains
//   do not depend on each other, so they hide the latency. The host tries several values of SUMS. At the end a lane writes the
//   sum of its vec4s, so that the compiler removes nothing.
// grid: x over lanes
// out: y (lanes) vec4
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/bench.abi.h"
layout(local_size_x_id = 0) in;
layout(constant_id = BENCH_SPEC_SUMS) const uint SUMS = 4;
layout(binding = BENCH_Y) writeonly buffer Y { vec4 y[]; };

void main()
{
    const uint i = gl_GlobalInvocationID.x;
    vec4 s[SUMS];
    [[unroll]] for (uint k = 0; k < SUMS; k++) s[k] = vec4(i, i + 1, i + 2, i + 3) * 0.001 + float(k);
    [[dont_unroll]] for (uint r = 0; r < pc.rounds; r++)
        [[unroll]] for (uint u = 0; u < BENCH_UNROLL; u++)
            [[unroll]] for (uint k = 0; k < SUMS; k++) s[k] = s[k] * pc.factor + pc.addend;
    vec4 sum = vec4(0);
    [[unroll]] for (uint k = 0; k < SUMS; k++) sum += s[k];
    if (i < pc.n) y[i] = sum;
}
