// swiglu.comp - y = silu(a) b, where silu(a) = a / (1 + e^-a)
// DX: da = dy b silu'(a), db = dy silu(a), where silu'(a) = s (1 + a (1 - s)) and s = 1 / (1 + e^-a)
// a and b are two tensors, or the two halves of the rows of one tensor.
// grid: x over vec4s of y in contiguous shares; any group count is right.
// source: Shazeer, GLU Variants Improve Transformer (2020), equation 6
// Deterministic: elementwise. A lane reads all operands of a vec4 before it writes, so a result may overwrite an
// operand of the same size.
// The elements past the batch need no mask. They are finite in a and b, so they are finite in y. They are 0 in dy, so they are
// 0 in da and db.
// The last n % 4 elements are stored one by one, because the memory behind the tensor may belong to another tensor.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/swiglu.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
#include "lib/special.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = SWIGLU_SPEC_HALVES) const uint HALVES = 0;
VKT_IN4(SWIGLU_A, a4);
VKT_IN4(SWIGLU_B, b4);
#ifdef DX
VKT_IN4(SWIGLU_DY, dy4);
VKT_OUT4(SWIGLU_DA, da4);
VKT_OUT4(SWIGLU_DB, db4);
layout(binding = SWIGLU_DA, std430) writeonly buffer Da1 { float da[]; };
layout(binding = SWIGLU_DB, std430) writeonly buffer Db1 { float db[]; };

// Returns da, and stores db in `of_b`.
vec4 result(uint a_at, uint b_at, uint y_at, out vec4 of_b)
{
    const vec4 a = LOAD4(a4, a_at), b = LOAD4(b4, b_at), dy = LOAD4(dy4, y_at);
    // s and 1 - s are computed from one exponential, without a subtraction that loses digits. The larger of s and 1 - s is
    // 1 / (1 + e^-|a|). The smaller is e^-|a| times the larger.
    const vec4 e = exp_any(-abs(a)), large = 1.0 / (1.0 + e), small = e * large;
    const bvec4 negative = lessThan(a, vec4(0.0));
    const vec4 s = mix(large, small, negative), rest = mix(small, large, negative);
    of_b = dy * (a * s);
    return dy * b * (s * (1.0 + a * rest));
}
#else
VKT_OUT4(SWIGLU_Y, y4);
layout(binding = SWIGLU_Y, std430) writeonly buffer Y1 { float y[]; };

vec4 result(uint a_at, uint b_at)
{
    const vec4 a = LOAD4(a4, a_at);
    return a * sigmoid(a) * LOAD4(b4, b_at);
}
#endif

void main()
{
    const uint whole = pc.n / 4, lanes = gl_WorkGroupSize.x, row4 = pc.row4, to_b = pc.b;
    const uint x_first = pc.x, y_first = pc.y, dx_first = pc.dx;
    const uint hop = HALVES != 0 ? lanes % row4 : 0, rows_hop = HALVES != 0 ? lanes / row4 : 0;
    const uvec2 share = share_of(whole);
    uint i = share.x + gl_LocalInvocationID.x;
    uint column = HALVES != 0 ? i % row4 : 0, row = HALVES != 0 ? i / row4 : 0;
    for (; i < share.y; i += lanes) {
        const uint at = i + row * row4; // HALVES: `row` rows of b are stored before this row of a. Else row is 0
#ifdef DX
        vec4 of_b;
        const vec4 of_a = result(x_first + at, x_first + to_b + at, y_first + i, of_b);
        STORE4(da4, dx_first + at, of_a);
        STORE4(db4, dx_first + to_b + at, of_b);
#else
        STORE4(y4, y_first + i, result(x_first + at, x_first + to_b + at));
#endif
        if (HALVES != 0) {
            column += hop;
            const uint carry = uint(column >= row4);
            column -= carry != 0 ? row4 : 0;
            row += rows_hop + carry;
        }
    }
    if (gl_GlobalInvocationID.x == 0 && pc.n % 4 != 0) { // only without HALVES, where x_first, y_first, dx_first are 0
#ifdef DX
        vec4 of_b;
        const vec4 of_a = result(whole, whole, whole, of_b);
        for (uint k = 0; k < pc.n % 4; k++) da[4 * whole + k] = of_a[k], db[4 * whole + k] = of_b[k];
#else
        const vec4 tail = result(whole, whole);
        for (uint k = 0; k < pc.n % 4; k++) y[4 * whole + k] = tail[k];
#endif
    }
}
