// reduce.comp - y[o] = scale * the sum, the maximum or the minimum of the elements of x that belong to output o. These
// elements form rows (abi/reduce.abi.h). With WIDTH 4 and without ALONG, a few elements may be in no row. The rows of
// an output may be divided into splits, and y has a result for each split.
//   ALONG: a row is along x's fastest dimension. A work group computes one split of one output at a time. Its lanes loop over
//   the rows together, and combine their results after the last row (lib/lanes.glsl). Without ALONG, neighbouring lanes compute
//   neighbouring outputs.
//   WIDTH 4: a lane processes four neighbouring elements at once. With ALONG they belong to one output, else to four outputs.
//   The four elements are along one dimension, with stride 1. All other dimensions have strides that are multiples of 4.
// grid: x over outputs, y over splits, both with a stride.
// Deterministic: the order of additions depends only on shape, splits, lanes and subgroup size.
// Each row has its own sum, and the rows' sums are added. So the error grows with rows per split plus iterations per row, not
// with their product. ops/elementwise/reduce.c limits rows per split and iterations per row.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/reduce.abi.h"
#include "lib/load.glsl"
#define INFINITY uintBitsToFloat(0x7f800000u)
layout(local_size_x_id = 0) in;
layout(constant_id = REDUCE_SPEC_FUNCTION) const uint FUNCTION = REDUCE_SUM;
#ifdef ALONG
#include "lib/lanes.glsl"
#endif
#if WIDTH == 4
#define NUMBER vec4
VKT_IN4(REDUCE_X, x4);
#define LOAD(i) LOAD4(x4, (i) / 4)
#else
#define NUMBER float
layout(binding = REDUCE_X, std430) readonly buffer X { float x[]; };
#define LOAD(i) x[i]
#endif
#ifdef ALONG
#define FIRST (WIDTH * gl_LocalInvocationID.x)
#define STEP (WIDTH * gl_WorkGroupSize.x)
#define STRIDE 1
#define ELEMENTS WIDTH // elements of a row per load
#else
#define FIRST 0
#define STEP 1
#define STRIDE pc.t4
#define ELEMENTS 1
#endif
#if WIDTH == 4 && !defined(ALONG)
VKT_F32_OUT4(REDUCE_Y, y4);
#else
layout(binding = REDUCE_Y, std430) writeonly buffer Y { float y[]; };
#endif

#define NONE (FUNCTION == REDUCE_SUM ? 0.0 : FUNCTION == REDUCE_MAX ? -INFINITY : INFINITY)

float both(float a, float b)
{
    if (FUNCTION == REDUCE_SUM) return a + b;
    return mix(mix(b, a, FUNCTION == REDUCE_MAX ? a > b : a < b), a, a != a);
}

#if WIDTH == 4
vec4 both(vec4 a, vec4 b)
{
    if (FUNCTION == REDUCE_SUM) return a + b;
    return mix(mix(b, a, FUNCTION == REDUCE_MAX ? greaterThan(a, b) : lessThan(a, b)), a, notEqual(a, a));
}
#endif

#ifdef ALONG
float of_lanes(float v)
{
    if (FUNCTION == REDUCE_SUM) return sum_of_lanes(v);
    const float sign = FUNCTION == REDUCE_MAX ? 1.0 : -1.0;
    const float most = max_of_lanes(v != v ? -INFINITY : sign * v), is_nan = max_of_lanes(v != v ? 1.0 : 0.0);
    return is_nan != 0.0 ? uintBitsToFloat(0x7fc00000u) : sign * most;
}
#endif

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

// Returns this lane's result for the row of `run` elements that starts at x[at]. With WIDTH 4 and without ALONG,
// returns four results, for the rows that start at x[at] .. x[at + 3].
NUMBER row_result(uint at, uint run)
{
    NUMBER v = NUMBER(NONE);
    uint i = FIRST;
    for (; i + 3 * STEP + ELEMENTS <= run; i += 4 * STEP)
        v = both(v, both(both(LOAD(at + i * STRIDE), LOAD(at + (i + STEP) * STRIDE)),
                         both(LOAD(at + (i + 2 * STEP) * STRIDE), LOAD(at + (i + 3 * STEP) * STRIDE))));
    for (; i + ELEMENTS <= run; i += STEP) v = both(v, LOAD(at + i * STRIDE));
#if ELEMENTS == 4
    if (i < run) v = both(v, mix(vec4(NONE), LOAD(at + i), lessThan(i + uvec4(0, 1, 2, 3), uvec4(run))));
#endif
    return v;
}

NUMBER split_result(uint o, uint split)
{
    const uint base = base_of(o), block = (pc.rows + pc.splits - 1) / pc.splits, first = split * block;
    const uint end = min(first + block, pc.rows);
    NUMBER v = NUMBER(NONE);
    for (uint r = first; r < end; r++)
        v = both(v, row_result(base + row_of(r), r % pc.r3 == pc.r3 - 1 ? pc.last : pc.run));
#if WIDTH == 4 && !defined(ALONG)
    if (split == 0 && pc.rest + o < pc.total)
        v = both(v, mix(vec4(NONE), LOAD(pc.rest + o), lessThan(pc.rest + o + uvec4(0, 1, 2, 3), uvec4(pc.total))));
#endif
    return v * pc.scale;
}

void main()
{
    for (uint split = gl_WorkGroupID.y; split < pc.splits; split += gl_NumWorkGroups.y) {
        const uint to = split * pc.outputs;
#ifdef ALONG
        for (uint o = gl_WorkGroupID.x; o < pc.outputs; o += gl_NumWorkGroups.x) {
            const NUMBER n = split_result(o, split);
#if WIDTH == 4
            float v = both(both(n.x, n.y), both(n.z, n.w));
#else
            float v = n;
#endif
            v = of_lanes(v);
            if (gl_LocalInvocationID.x == 0) y[to + o] = v;
        }
#else
        const uint stride = WIDTH * gl_NumWorkGroups.x * gl_WorkGroupSize.x;
        for (uint o = WIDTH * gl_GlobalInvocationID.x; o < pc.outputs; o += stride)
#if WIDTH == 4
            STORE4(y4, (to + o) / 4, split_result(o, split));
#else
            y[to + o] = split_result(o, split);
#endif
#endif
    }
}
