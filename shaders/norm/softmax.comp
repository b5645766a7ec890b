// softmax.comp - y = exp(z - m) / sum exp(z - m), z = scale * x, m = max z; LOG: y = z - m - log sum exp(z - m)
//   LOG computes the logarithm as log(1 + s), where s is the sum of all terms except one that is exactly 1. So a logarithm near
//   0 keeps its digits.
//   DX: dx = scale * y * (dy - sum of dy * y);  LOG: dx = scale * (dy - exp(y) * sum of dy)
//   A line is the classes of one softmax. CAUSAL: each line belongs to a query (abi/softmax.abi.h). The classes whose
//   index is above the query's index are ignored. They are 0 in y and dx.
//   A lane processes one line, or with WIDTH 4 four neighbouring lines. With WIDTH 4 and LINE it processes one line,
//   four classes at a time. With ALONG a work group processes one line, and each of its lanes processes WIDTH
//   neighbouring classes at a time. With HELD a lane keeps its classes in registers, so the line is read once. The
//   results have the same bits as without HELD.
// grid: x over lines in contiguous shares, ALONG with a stride.
// source: Goodfellow, Bengio & Courville, Deep Learning (2016), section 4.1; gradients from
//         dy_i/dz_k = y_i * ((i == k) - y_k)
// Deterministic: the order of additions depends only on the shape, the lanes and the subgroup size.
// A sum adds partial sums of SPAN terms, so the error grows with classes / SPAN + SPAN.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/softmax.abi.h"
#include "lib/explog.glsl"
#include "lib/load.glsl"
#include "lib/share.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = SOFTMAX_SPEC_LOG) const uint LOG = 0;
layout(constant_id = SOFTMAX_SPEC_CAUSAL) const uint CAUSAL = 0;
#if WIDTH == 4
#define VEC vec4
#define SAME(a, b) equal(a, b)
VKT_IN4(SOFTMAX_X, x4);
VKT_OUT4(SOFTMAX_Y, y4);
#define LOAD(i) LOAD4(x4, i)
#define STORE(i, v) STORE4(y4, i, v)
#ifdef DX
VKT_IN4(SOFTMAX_DY, dy4);
#define LOAD_DY(i) LOAD4(dy4, i)
#endif
#else
#define VEC float
#define SAME(a, b) ((a) == (b))
layout(binding = SOFTMAX_X, std430) readonly buffer X { float x[]; };
layout(binding = SOFTMAX_Y, std430) writeonly buffer Y { float y[]; };
#define LOAD(i) x[i]
#define STORE(i, v) y[i] = v
#ifdef DX
layout(binding = SOFTMAX_DY, std430) readonly buffer Dy { float dy[]; };
#define LOAD_DY(i) dy[i]
#endif
#endif
#define LOWEST uintBitsToFloat(0xff800000u) // -infinity
const uint SPAN = 64, ITERATIONS = 4;

#ifdef ALONG
#include "lib/lanes.glsl"
#define FIRST gl_LocalInvocationID.x
#define STEP gl_WorkGroupSize.x
#else
#define FIRST 0
#define STEP 1
#define sum_of_lanes(v) (v)
#define max_of_lanes(v) (v)
#endif
#if WIDTH == 4 && (defined(ALONG) || defined(LINE))
float total(vec4 v) { return sum_of_lanes((v.x + v.y) + (v.z + v.w)); }
float largest(vec4 v) { return max_of_lanes(max(max(v.x, v.y), max(v.z, v.w))); }
// Returns v, with `other` instead of v[j] if class 4k + j is not visible.
vec4 seen(vec4 v, uint k, uint visible, float other)
{
    return mix(vec4(other), v, lessThan(4 * k + uvec4(0, 1, 2, 3), uvec4(visible)));
}
#else
VEC total(VEC v) { return sum_of_lanes(v); }
VEC largest(VEC v) { return max_of_lanes(v); }
VEC seen(VEC v, uint k, uint visible, float other) { return k < visible ? v : VEC(other); }
#endif

// Processes the line that starts at index `at`. If a VEC has four lines (abi/softmax.abi.h), all four are processed. A
// line has `all` VECs, and VEC k is at index at + k * pc.inner. The classes below `visible` are the ones that are not
// ignored. They are in the first n VECs.
#ifdef DX
void line(uint at, uint all, uint n, uint visible)
{
    VEC sum = VEC(0.0);
    for (uint c = FIRST; c < n; c += SPAN * STEP) {
        const uint end = min(c + SPAN * STEP, n);
        VEC span = VEC(0.0);
        for (uint k = c; k < end; k += ITERATIONS * STEP)
            [[unroll]] for (uint j = 0; j < ITERATIONS; j++) {
                const uint i = at + min(k + j * STEP, n - 1) * pc.inner;
                const VEC dy = LOAD_DY(i);
                const VEC term = LOG != 0 ? dy : dy * LOAD(i);
                span += k + j * STEP < end ? seen(term, k + j * STEP, visible, 0.0) : VEC(0.0);
            }
        sum += span;
    }
    sum = VEC(total(sum));
    for (uint k = FIRST; k < all; k += ITERATIONS * STEP)
        [[unroll]] for (uint j = 0; j < ITERATIONS; j++)
            if (k + j * STEP < all) {
                const uint i = at + (k + j * STEP) * pc.inner;
                const VEC v = LOAD(i), dy = LOAD_DY(i), dx = LOG != 0 ? dy - exp_1ulp(v) * sum : v * (dy - sum);
                STORE(i, seen(pc.scale * dx, k + j * STEP, visible, 0.0));
            }
}
#else
VEC z(uint at, uint k, uint visible)
{
    const VEC v = pc.scale * LOAD(at + k * pc.inner);
    return CAUSAL != 0 ? seen(v, k, visible, LOWEST) : v;
}

void line(uint at, uint all, uint n, uint visible)
{
    VEC m = VEC(LOWEST), rest = VEC(0.0), top = VEC(0.0); // rest: sum of exp(z - m) over z < m; top: how many z equal m
    for (uint k = FIRST; k < n; k += ITERATIONS * STEP)
        [[unroll]] for (uint j = 0; j < ITERATIONS; j++) m = max(m, z(at, min(k + j * STEP, n - 1), visible));
    m = VEC(largest(m));
    for (uint c = FIRST; c < n; c += SPAN * STEP) {
        const uint end = min(c + SPAN * STEP, n);
        VEC span = VEC(0.0);
        for (uint k = c; k < end; k += ITERATIONS * STEP)
            [[unroll]] for (uint j = 0; j < ITERATIONS; j++) {
                const VEC v = z(at, min(k + j * STEP, n - 1), visible);
                const VEC term = mix(exp_1ulp(v - m), v - m, SAME(v, m)); // if v = m, term is 0, or NaN for infinite v
                span += k + j * STEP < end ? term : VEC(0.0);
                top += k + j * STEP < end ? mix(VEC(0.0), VEC(1.0), SAME(v, m)) : VEC(0.0);
            }
        rest += span;
    }
    rest = VEC(total(rest));
    top = VEC(total(top));
    const VEC inverse = 1.0 / (top + rest), logarithm = log1p_1ulp(top - 1.0 + rest);
    for (uint k = FIRST; k < all; k += ITERATIONS * STEP)
        [[unroll]] for (uint j = 0; j < ITERATIONS; j++)
            if (k + j * STEP < all) {
                const VEC v = z(at, k + j * STEP, visible) - m;
                STORE(at + (k + j * STEP) * pc.inner, LOG != 0 ? v - logarithm : exp_1ulp(v) * inverse);
            }
}
#endif

#ifdef ALONG
#include "lib/softmax_held.glsl"
#endif

void lines(uint u)
{
    const uint visible = CAUSAL != 0 ? min((pc.first + u) % pc.queries + 1, pc.classes) : pc.classes;
#ifdef ALONG
    if (HELD != 0) {
        held_line(u * (pc.classes / WIDTH), pc.classes / WIDTH, (visible + WIDTH - 1) / WIDTH, visible);
        return;
    }
#endif
#if defined(ALONG) || defined(LINE)
    line(u * (pc.classes / WIDTH), pc.classes / WIDTH, (visible + WIDTH - 1) / WIDTH, visible);
#else
    line(u / pc.inner * (pc.classes * pc.inner) + u % pc.inner, pc.classes, visible, visible);
#endif
}

void main()
{
#ifdef ALONG
    for (uint u = gl_WorkGroupID.x; u < pc.units; u += gl_NumWorkGroups.x) lines(u);
#else
    const uvec2 share = share_of(pc.units);
    for (uint u = share.x + gl_LocalInvocationID.x; u < share.y; u += gl_WorkGroupSize.x) lines(u);
#endif
}
