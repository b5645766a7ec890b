// load.glsl - loads and stores four neighbouring floats of a binding. The binding stores f32 or 16-bit values
// (abi/storage.abi.h). Four 16-bit values are one uvec2 of the same binding. A specialisation constant selects the format, so
// the compiler keeps one path. Widening is exact, but a device may change subnormal f16 values to 0. Narrowing rounds to
// nearest, ties to even, as base/half.c does. packHalf2x16 is not used, because it may round in either direction. With COOP
// and without BFLOAT, the hardware converts to f16, in the mode that lib/rounding.glsl declares.
//   VKT_IN4(binding, name)     LOAD4(name, i) reads floats 4i .. 4i+3. A kernel may have a texel variant, which reads a texel
//                              buffer instead of a storage buffer. Texel variants are for CPU drivers. These drivers load from
//                              a storage buffer in a loop over lanes. They need no such loop for a texel buffer. The index must
//                              be inside the binding, because the two variants return different values for an index outside.
//   VKT_WORDS(binding, name)   LOAD1(name, i) reads word i, a 32-bit uint. In a texel variant the word is a component of a
//                              texel.
//   VKT_IN1(binding, name)     LOAD1(name, i) reads float i of a binding that stores f32
//   VKT_OUT4(binding, name)    STORE4(name, i, v) writes floats 4i .. 4i+3
//   VKT_INOUT4(binding, name)  LOAD4 and STORE4
//   VKT_F32_OUT4(binding, name)   STORE4 to a binding that is always f32
//   VKT_STORED(binding, access, name)     declares the binding as vec4s of f32. name_put(i, v) writes vec4 i, and
//                                         name_stored[i] reads vec4 i. VKT_OUT4, VKT_INOUT4 and VKT_F32_OUT4 use this macro
// A texel variant stores a vec4 of f32 as two 64-bit words, unless STORAGE_NO_WORDS64 is set. llvmpipe stores word by word and
// lane by lane, so fewer words are faster.
#include "abi/storage.abi.h"
// MATRIX_STORAGE: how the operands of cooperative matrices are stored in shared memory. With BFLOAT, this file does not use
// float16, because cmake/bfloat.c changes the type float16 of the module to bfloat16.
#ifdef BFLOAT
#define MATRIX_STORAGE STORAGE_BF16
#else
#define MATRIX_STORAGE STORAGE_F16
#ifdef COOP
#include "lib/rounding.glsl"
#endif
#endif
#ifdef VKT_TEXEL
#extension GL_ARB_gpu_shader_int64 : require
#endif
layout(constant_id = STORAGE_SPEC) const uint STORAGE = 0;
#define STORED_AS(slot) (STORAGE >> (2 * (slot)) & 3u)

vec4 widen(uvec2 h, uint kind)
{
    return kind == STORAGE_F16 ? vec4(unpackHalf2x16(h.x), unpackHalf2x16(h.y))
                               : uintBitsToFloat(uvec4(h.x << 16, h.x & 0xffff0000u, h.y << 16, h.y & 0xffff0000u));
}

uvec2 narrow(vec4 v, uint kind)
{
#if defined(COOP) && !defined(BFLOAT)
    if (kind == STORAGE_F16) return uvec2(packFloat2x16(f16vec2(v.xy)), packFloat2x16(f16vec2(v.zw)));
#endif
    const uvec4 u = floatBitsToUint(v), m = u & 0x7fffffffu;
    const bvec4 nan = greaterThan(m, uvec4(0x7f800000u));
    uvec4 h;
    if (kind == STORAGE_F16) {
        h = m - (112u << 23) + 0xfffu + (m >> 13 & 1u) >> 13; // exponent bias 127 -> 15; rounding may carry into the exponent
        // Subnormal f16 values are multiples of 2^-24. Floats in [0.5,1) are multiples of 2^-24 too, so this addition rounds.
        const uvec4 tiny = floatBitsToUint(uintBitsToFloat(m) + 0.5) - 0x3f000000u;
        h = mix(h, tiny, lessThan(m, uvec4(113u << 23)));
        h = mix(h, uvec4(0x7c00u), greaterThanEqual(m, uvec4(143u << 23)));
        h = mix(h, 0x7e00u | (m >> 13 & 0x3ffu), nan) | (u >> 16 & 0x8000u);
    } else h = mix(u + 0x7fffu + (u >> 16 & 1u) >> 16, u >> 16 | 0x40u, nan);
    return h.xz | h.yw << 16;
}

// A texel is always 16 bytes of raw bits, whatever the binding stores. So one buffer view is enough for all number formats, and
// no load can change the bits of a float.
#ifdef VKT_TEXEL
#define VKT_IN4(slot, name)                                                         \
    layout(binding = slot, rgba32ui) uniform readonly uimageBuffer name;            \
    vec4 name##_load(uint i)                                                        \
    {                                                                               \
        if (STORED_AS(slot) == STORAGE_F32) return uintBitsToFloat(imageLoad(name, int(i))); \
        const uvec4 two = imageLoad(name, int(i >> 1));                             \
        return widen((i & 1u) != 0u ? two.zw : two.xy, STORED_AS(slot));            \
    }
#else
#define VKT_IN4(slot, name)                                                         \
    layout(binding = slot, std430) readonly buffer name##_block { vec4 name[]; };   \
    layout(binding = slot, std430) readonly buffer name##_block2 { uvec2 name##_half[]; }; \
    vec4 name##_load(uint i)                                                        \
    {                                                                               \
        if (STORED_AS(slot) == STORAGE_F32) return name[i];                         \
        return widen(name##_half[i], STORED_AS(slot));                              \
    }
#endif
#define LOAD4(name, i) name##_load(i)

#ifdef VKT_TEXEL
uint word_of(uvec4 v, uint i)
{
    const bool odd = (i & 1u) != 0u;
    return (i & 2u) != 0u ? (odd ? v.w : v.z) : (odd ? v.y : v.x);
}
#define VKT_WORDS(slot, name)                                            \
    layout(binding = slot, rgba32ui) uniform readonly uimageBuffer name; \
    uint name##_word(uint i) { return word_of(imageLoad(name, int(i / 4)), i); }
#define VKT_IN1(slot, name)                                              \
    layout(binding = slot, rgba32ui) uniform readonly uimageBuffer name; \
    float name##_word(uint i) { return uintBitsToFloat(word_of(imageLoad(name, int(i / 4)), i)); }
#else
#define VKT_WORDS(slot, name)                                                     \
    layout(binding = slot, std430) readonly buffer name##_block { uint name[]; }; \
    uint name##_word(uint i) { return name[i]; }
#define VKT_IN1(slot, name)                                                        \
    layout(binding = slot, std430) readonly buffer name##_block { float name[]; }; \
    float name##_word(uint i) { return name[i]; }
#endif
#define LOAD1(name, i) name##_word(i)

#define VKT_VEC4S(slot, access, name) \
    layout(binding = slot, std430) access buffer name##_block { vec4 name##_stored[]; };
#ifdef VKT_TEXEL
#define VKT_STORED(slot, access, name)                                                               \
    VKT_VEC4S(slot, access, name)                                                                    \
    layout(binding = slot, std430) access buffer name##_block1 { u64vec2 name##_words[]; };          \
    void name##_put(uint i, vec4 v)                                                                  \
    {                                                                                                \
        const uvec4 u = floatBitsToUint(v);                                                          \
        if ((STORAGE & STORAGE_NO_WORDS64) != 0u) name##_stored[i] = v;                               \
        else name##_words[i] = u64vec2(packUint2x32(u.xy), packUint2x32(u.zw));                      \
    }
#else
#define VKT_STORED(slot, access, name) \
    VKT_VEC4S(slot, access, name)      \
    void name##_put(uint i, vec4 v) { name##_stored[i] = v; }
#endif

#define VKT_F32_OUT4(slot, name)      \
    VKT_STORED(slot, writeonly, name) \
    void name##_store(uint i, vec4 v) { name##_put(i, v); }

// Applies the fused relu, if there is one.
vec4 as_stored(vec4 v)
{
    return (STORAGE & STORAGE_RELU) != 0u ? mix(v, vec4(0.0), lessThan(v, vec4(0.0))) : v;
}

#define VKT_OUT4(slot, name)                                                              \
    VKT_STORED(slot, writeonly, name)                                                     \
    layout(binding = slot, std430) writeonly buffer name##_block2 { uvec2 name##_half[]; }; \
    void name##_store(uint i, vec4 v)                                                     \
    {                                                                                     \
        v = as_stored(v);                                                                 \
        if (STORED_AS(slot) == STORAGE_F32) name##_put(i, v);                             \
        else name##_half[i] = narrow(v, STORED_AS(slot));                                 \
    }
#define STORE4(name, i, v) name##_store(i, v)

#define VKT_INOUT4(slot, name)                                                      \
    VKT_STORED(slot, , name)                                                        \
    layout(binding = slot, std430) buffer name##_block2 { uvec2 name##_half[]; };   \
    vec4 name##_load(uint i)                                                        \
    {                                                                               \
        if (STORED_AS(slot) == STORAGE_F32) return name##_stored[i];                 \
        return widen(name##_half[i], STORED_AS(slot));                              \
    }                                                                               \
    void name##_store(uint i, vec4 v)                                               \
    {                                                                               \
        v = as_stored(v);                                                           \
        if (STORED_AS(slot) == STORAGE_F32) name##_put(i, v);                       \
        else name##_half[i] = narrow(v, STORED_AS(slot));                           \
    }
