// hash_grid_fixed.comp - computes dtable (see hash_grid_dw.comp) by sums of 64-bit fixed-point numbers. Lanes add to one table
// with integer atomics. A sum of integers does not depend on the order of additions, so each run gives the same bits.
//   The unit of the numbers is a power of two. Let M be the largest finite |dy| of the dispatch. An element is the sum of at
//   most points * 2^dims products, and 2^pc.addends is at least this number. A weight is at most 1. The unit is chosen such
//   that M is below 2^(62 - pc.addends) units. So no sum overflows. A unit is at most 2^(pc.addends - 61) M, unless M is tiny
//   (see scale_of_sums).
//   Error of an element that is the sum of k products, unless M is tiny: each product is rounded to f32, and then to a
//   multiple of the unit. The error of the second rounding is at most half a unit, 2^(pc.addends - 62) M. The sum is
//   rounded to f32 in two steps, with an error of at most 2^-23 of the sum. If pc.addends is 17, half a unit is at most
//   2^-45 M. A sum of floats would be rounded k times, each time with an error of up to 2^-24 of the sum so far.
//   A product that is infinite or NaN sets the flag of its element. END stores NaN for this element.
// SUMS, in words: two words (low, high) for each float of the table. From pc.flags on, a bit for each float, padded to vec4s.
//   Then HASH_GRID_MAXIMA words. Each has the bits of the largest finite |dy| that a work group of BEGIN found.
// BEGIN: clears sums and flags, and finds the maxima. grid: x over vec4s of SUMS, and over vec4s of dy, each in contiguous
//   shares; at most HASH_GRID_MAXIMA work groups.
// END: converts sums to floats. grid: x over vec4s of the table (stride loop).
// Without BEGIN and END: adds to the sums. grid: x over points and corners (stride loop), y over levels with a stride;
//   any group count is right.
// A 64-bit addition is two 32-bit atomics with a carry, because 64-bit atomics are an optional feature of a device.
// Deterministic: no order of additions changes a sum.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/hash_grid.abi.h"
layout(local_size_x_id = 0) in;

const uint INFINITE = 0x7f800000u; // bits of infinity; larger numbers up to 0x7fffffff are the bits of NaNs

#ifdef BEGIN
#include "lib/load.glsl"
#include "lib/share.glsl"
layout(constant_id = HASH_GRID_SPEC_FEATURES) const uint FEATURES = 2;
VKT_IN4(HASH_GRID_Y, dy4);
layout(binding = HASH_GRID_SUMS, std430) writeonly buffer Sums4 { uvec4 sums4[]; };
layout(binding = HASH_GRID_SUMS, std430) writeonly buffer Sums { uint sums[]; };
shared uint most_of_group;

void main()
{
    const uint maxima = pc.flags + (pc.floats + 127) / 128 * 4;
    const uvec2 clear = share_of(maxima / 4), share = share_of(pc.levels * FEATURES * pc.n4);
    if (gl_LocalInvocationID.x == 0) most_of_group = 0u;
    for (uint i = clear.x + gl_LocalInvocationID.x; i < clear.y; i += gl_WorkGroupSize.x) sums4[i] = uvec4(0u);
    uvec4 most = uvec4(0u);
    for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) {
        const uvec4 m = floatBitsToUint(LOAD4(dy4, pc.y_base + i)) & 0x7fffffffu;
        most = max(most, mix(m, uvec4(0u), greaterThanEqual(m, uvec4(INFINITE))));
    }
    barrier();
    atomicMax(most_of_group, max(max(most.x, most.y), max(most.z, most.w)));
    barrier();
    if (gl_LocalInvocationID.x == 0)
        for (uint g = gl_WorkGroupID.x; g < HASH_GRID_MAXIMA; g += gl_NumWorkGroups.x) sums[maxima + g] = most_of_group;
}
#else
#ifdef END
layout(binding = HASH_GRID_SUMS, std430) readonly buffer Sums { uint sums[]; };
#else
layout(binding = HASH_GRID_SUMS, std430) buffer Sums { uint sums[]; };
#endif
shared uint most_of_all;

// Returns an exponent e. A product is multiplied by 2^e as a float, and then by 2^32 as it becomes an integer (fixed_of). So
// the unit is 2^-(e + 32). With the largest M and 2^27 products (the op allows no more), e is -125. If M is tiny, e is 126, and
// all finite floats are multiples of the unit. So e is from -125 to 126, and 2^e and 2^-e are normal floats.
int scale_of_sums()
{
    if (gl_LocalInvocationID.x == 0) most_of_all = 0u;
    barrier();
    uint most = 0u;
    for (uint i = gl_LocalInvocationID.x; i < HASH_GRID_MAXIMA; i += gl_WorkGroupSize.x)
        most = max(most, sums[pc.flags + (pc.floats + 127) / 128 * 4 + i]);
    atomicMax(most_of_all, most);
    barrier();
    const int exponent = max(int(most_of_all >> 23), 1) - 127; // M < 2^(exponent + 1)
    return min(29 - int(pc.addends) - exponent, 126);
}

float power_of_two(int e)
{
    return uintBitsToFloat(uint(e + 127) << 23);
}

#ifdef END
layout(binding = HASH_GRID_TABLE, std430) writeonly buffer Table { vec4 table[]; };
layout(binding = HASH_GRID_SUMS, std430) readonly buffer Sums4 { uvec4 sums4[]; };

// Returns a sum (low word, high word) divided by 2^32.
float value_of(uvec2 sum)
{
    const bool negative = int(sum.y) < 0;
    if (negative) sum = uvec2(~sum.x + 1u, ~sum.y + (sum.x == 0u ? 1u : 0u));
    const float v = float(sum.y) + float(sum.x) / 4294967296.0;
    return negative ? -v : v;
}

void main()
{
    const float unit = power_of_two(-scale_of_sums());
    for (uint i = gl_GlobalInvocationID.x; i < pc.floats / 4; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const uvec4 a = sums4[2 * i], b = sums4[2 * i + 1];
        const uvec4 flag = uvec4(sums[pc.flags + i / 8]) >> (4 * (i & 7u) + uvec4(0, 1, 2, 3)) & 1u;
        const vec4 v = vec4(value_of(a.xy), value_of(a.zw), value_of(b.xy), value_of(b.zw)) * unit;
        table[pc.table_base / 4 + i] = mix(v, uintBitsToFloat(uvec4(INFINITE | 1u << 22)), notEqual(flag, uvec4(0u)));
    }
}
#else
#include "lib/load.glsl"
#include "lib/hash_grid.glsl"
VKT_IN4(HASH_GRID_Y, dy4);
const uint MAX_FEATURES = 8;

// Returns x * 2^32 as a two's complement number (low word, high word). |x| < 2^31. Rounds to the nearest integer, ties to even.
// No other operation of this function rounds.
uvec2 fixed_of(float x)
{
    const float m = abs(x), high = floor(m);
    const uvec2 v = uvec2(uint(roundEven((m - high) * 4294967296.0)), uint(high)); // below 2^32: m - high <= 1 - 2^-24
    return x < 0.0 ? uvec2(~v.x + 1u, ~v.y + (v.x == 0u ? 1u : 0u)) : v;
}

// Returns the number to add to element `at` for the product x. If x is infinite or NaN, sets the element's flag and returns 0.
uvec2 addend_of(uint at, float x)
{
    if ((floatBitsToUint(x) & INFINITE) != INFINITE) return fixed_of(x);
    atomicOr(sums[pc.flags + at / 32], 1u << (at & 31u));
    return uvec2(0u);
}

// Adds v to the features of an entry: elements `at`, at + 1, .. The function adds all low words first. So the lane
// waits only once for the old low words, from which the lane computes the carries.
void add(uint at, uvec2 v[MAX_FEATURES])
{
    uint carry[MAX_FEATURES];
    [[unroll]] for (uint f = 0; f < FEATURES; f++) carry[f] = atomicAdd(sums[2 * (at + f)], v[f].x);
    [[unroll]] for (uint f = 0; f < FEATURES; f++) {
        uaddCarry(carry[f], v[f].x, carry[f]);
        atomicAdd(sums[2 * (at + f) + 1], v[f].y + carry[f]);
    }
}

void main()
{
    const float scale = power_of_two(scale_of_sums());
    const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint l = gl_WorkGroupID.y; l < pc.levels; l += gl_NumWorkGroups.y) {
        const uvec4 level = level_of[pc.level + l];
        for (uint t = gl_GlobalInvocationID.x; t < 4 * pc.n4 << DIMS; t += stride) {
            const uint n = t >> DIMS, k = t & CORNERS - 1, j = n & 3u;
            vec4 x = vec4(0.0), fraction;
            uvec4 corner;
            [[unroll]] for (uint d = 0; d < DIMS; d++) x[d] = LOAD4(x4, d * pc.n4 + n / 4)[j];
            vkt_hash_grid_cell(x, level.x, corner, fraction);
            const uvec3 side = uvec3(k, k >> 1, k >> 2) & 1u;
            const vec3 part = mix(1.0 - fraction.xyz, fraction.xyz, bvec3(side));
            const float w = DIMS == 3 ? part.x * part.y * part.z : part.x * part.y;
            const uint at = (level.z - pc.first + vkt_hash_grid_entry(corner.xyz + side, level)) * FEATURES;
            uvec2 v[MAX_FEATURES];
            uint some = 0u;
            [[unroll]] for (uint f = 0; f < FEATURES; f++) {
                const float dy = LOAD4(dy4, pc.y_base + (l * FEATURES + f) * pc.n4 + n / 4)[j];
                v[f] = addend_of(at + f, w * (scale * dy));
                some |= v[f].x | v[f].y;
            }
            if (some != 0u) add(at, v);
        }
    }
}
#endif
#endif
