// rope.comp - rotates pairs (a, b) of elements of a head by an angle that grows with the token's position:
//   a' = a cos - b sin,  b' = b cos + a sin.  The gradient is the inverse rotation, with the opposite sign of the sine.
// The angle in turns is position * TURNS modulo 1. TURNS, the turns per position, has 64 bits behind the binary point. The
// kernel multiplies integers and keeps the lower 64 bits. So the product modulo 1 is exact, and an angle of 131072 radians is
// as exact as one of 0.1 radians.
// Whole quarter turns are removed exactly. Only the rest becomes a float, so sine and cosine have an error of a few
// ulp.
// A head has two kinds of units. Units 0 .. pc.pairs - 1 have two vec4s each, that is four pairs (WIDTH 1: one pair).
// The other units have one vec4 each (WIDTH 1: one element). The kernel rotates units 0 .. pc.pairs - 1 of the first
// pc.rotated heads, and copies all other units.
// grid: x over samples, tokens and units in contiguous shares, y over heads with a stride; any group count is right.
// source: Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding (2021), equation 34
// Deterministic: one lane computes a pair. It reads both elements of the pair before it writes them, so y may have x's memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/rope.abi.h"
#include "lib/load.glsl"
#include "lib/share.glsl"
#define VKT_KERNEL
#include "vktrain/vktrain.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = ROPE_SPEC_HALVES) const uint HALVES = 0;
layout(constant_id = ROPE_SPEC_FIRST) const uint FIRST = 0;
layout(binding = ROPE_FIRST, std430) readonly buffer First { uint first[]; };
#if WIDTH == 4
#define REAL vec4
#define WORDS uvec4
VKT_IN4(ROPE_X, x4);
VKT_OUT4(ROPE_Y, y4);
#define LOAD(i) LOAD4(x4, i)
#define STORE(i, v) STORE4(y4, i, v)
#ifdef VKT_TEXEL
layout(binding = ROPE_TURNS, rgba32ui) uniform readonly uimageBuffer turns;
#define TURNS(i) imageLoad(turns, int(i))
#else
layout(binding = ROPE_TURNS, std430) readonly buffer Turns { uvec4 turns[]; };
#define TURNS(i) turns[i]
#endif
#else
#define REAL float
#define WORDS uint
layout(binding = ROPE_X, std430) readonly buffer X { float x[]; };
layout(binding = ROPE_Y, std430) writeonly buffer Y { float y[]; };
layout(binding = ROPE_TURNS, std430) readonly buffer Turns { uint turns[]; };
#define LOAD(i) x[i]
#define STORE(i, v) y[i] = v
#define TURNS(i) turns[i]
#endif

// Computes sine and cosine of the angles of unit u at a position.
void rotation(uint u, uint position, uint pairs, out REAL s, out REAL c)
{
    const WORDS high = TURNS(u), low = TURNS(pairs + u);
    WORDS carry, rest; // the angle in turns, modulo 1: the upper 32 bits are high * position + carry, the lower are rest
    umulExtended(low, WORDS(position), carry, rest);
    const WORDS turn = high * position + carry, quarter = turn + 0x20000000u >> 30;
#if WIDTH == 4
    const vec4 left = vec4(ivec4(turn - (quarter << 30))) * 4.656612873077393e-10 + vec4(rest) * 1.0842021724855044e-19;
    vkt_sin_cos_pi(left, s, c);
    const bvec4 odd = notEqual(quarter & 1u, uvec4(0u)), far = notEqual(quarter & 2u, uvec4(0u));
#else
    const float left = float(int(turn - (quarter << 30))) * 4.656612873077393e-10 + float(rest) * 1.0842021724855044e-19;
    vec4 s4, c4;
    vkt_sin_cos_pi(vec4(left), s4, c4);
    s = s4.x, c = c4.x;
    const bool odd = (quarter & 1u) != 0u, far = (quarter & 2u) != 0u;
#endif
    const REAL t = mix(s, c, odd);
    c = mix(c, -s, odd);
    s = mix(t, -t, far);
    c = mix(c, -c, far);
}

void main()
{
    const uint pairs = pc.pairs, units = pc.units, tokens = pc.tokens, heads = pc.heads, rotated = pc.rotated;
    const uint x_head = pc.x_head, y_head = pc.y_head, x_token = pc.x_token, y_token = pc.y_token;
    const uint x_sample = pc.x_sample, y_sample = pc.y_sample, x_first = pc.x, y_first = pc.y;
    const uint position = pc.position, first_sample = pc.sample0, s0 = pc.s0, s1 = pc.s1, s2 = pc.s2;
    const float sign = pc.sign;
    const uvec2 share = share_of(pc.n);
    uint i = share.x + gl_LocalInvocationID.x;
    uint u = i % units, t = i / units % tokens, b = i / units / tokens;
    for (; i < share.y; i += gl_WorkGroupSize.x) {
        const bool rotates = u < pairs;
        const uint to_a = rotates && HALVES == 0 ? 2 * u : rotates ? u : pairs + u;
        const uint to_b = rotates ? HALVES == 0 ? 2 * u + 1 : pairs + u : to_a;
        uint from = x_first + b * x_sample + t * x_token, to = y_first + b * y_sample + t * y_token;
        REAL s = REAL(0.0), c = REAL(1.0);
        if (rotates) {
            const uint more = FIRST == 0 ? 0 : first[FIRST == 1 ? 0 : first_sample + b];
            rotation(u, position + more + t, pairs, s, c);
            s *= sign;
        }
        from += gl_WorkGroupID.y * x_head, to += gl_WorkGroupID.y * y_head;
        for (uint h = gl_WorkGroupID.y; h < heads; h += gl_NumWorkGroups.y) {
            const REAL v = LOAD(from + to_a);
            if (rotates) {
                const REAL w = LOAD(from + to_b);
                REAL p = v, q = w;
                if (h < rotated) {
#if WIDTH == 4
                    const vec4 a = HALVES != 0 ? v : vec4(v.xz, w.xz), d = HALVES != 0 ? w : vec4(v.yw, w.yw);
                    const vec4 e = a * c - d * s, f = d * c + a * s;
                    p = HALVES != 0 ? e : vec4(e.x, f.x, e.y, f.y);
                    q = HALVES != 0 ? f : vec4(e.z, f.z, e.w, f.w);
#else
                    p = v * c - w * s, q = w * c + v * s;
#endif
                }
                STORE(to + to_a, p);
                STORE(to + to_b, q);
            } else STORE(to + to_a, v);
            from += gl_NumWorkGroups.y * x_head, to += gl_NumWorkGroups.y * y_head;
        }
        u += s2;
        const uint carry = uint(u >= units);
        u -= carry != 0 ? units : 0;
        t += s1 + carry;
        const uint over = uint(t >= tokens);
        t -= over != 0 ? tokens : 0;
        b += s0 + over;
    }
}
