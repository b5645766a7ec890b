// gather_rows.comp - out[f][b] = scale[c] * table[order[first + b]][f] + shift[c] for b < rows, else 0
//   rows: number of real rows of the batch. first: index of the batch's first row in `order`. c: the channel of element f.
//   table (n_table, words): a word has four u8 (U8), two f16 (F16) or one f32;  order: u32 (n_order)
//   ->  out (F, batch4): vec4s of four samples
// The scale is a sum of two floats, and so is the shift. The rounding error of a single float would bias all pixels.
// `parts` lanes share the words of one channel of four neighbouring samples. With U8, a lane transposes 4 x 4 elements
// per word in registers. If channels share a word, the word is read once for each channel. A table that is larger than
// a binding is split into ranges of rows, one dispatch per range. A row index outside the table gives 0, and so does a
// position outside `order`.
// grid: x over batch4 * parts with a stride, y over channels; any group count in x is right.
// Deterministic: elementwise.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/gather_rows.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = GATHER_SPEC_KEEP) const uint KEEP = 0;
#ifdef U8
const uint PER_WORD = 4;
layout(binding = GATHER_TABLE, std430) readonly buffer Table { uint table[]; };
vec4 unpack(uint i) { return vec4(uvec4(table[i]) >> uvec4(0u, 8u, 16u, 24u) & 0xffu); }
#elif defined F16
const uint PER_WORD = 2;
layout(binding = GATHER_TABLE, std430) readonly buffer Table { uint table[]; };
vec4 unpack(uint i) { return vec4(unpackHalf2x16(table[i]), 0.0, 0.0); }
#else
const uint PER_WORD = 1;
layout(binding = GATHER_TABLE, std430) readonly buffer Table { float table[]; };
vec4 unpack(uint i) { return vec4(table[i], 0.0, 0.0, 0.0); }
#endif
layout(binding = GATHER_ORDER, std430) readonly buffer Order { uint order[]; };
#define BATCH_STEP GATHER_STEP
#define BATCH_WORDS GATHER_WORDS
#define BATCH_RUN GATHER_RUN
#include "lib/batch_place.glsl"
layout(binding = GATHER_AFFINE, std430) readonly buffer Affine { vec4 affine[]; };
VKT_INOUT4(GATHER_OUT, samples);

// Returns x times the low part of the scale, plus the low part of the shift. For an infinite x, returns 0, because the low
// part may be 0 or have another sign than the scale. (Bits are tested, because a compiler may remove isinf().)
vec4 low_part(vec4 x, vec4 a)
{
    const vec4 low = x * a.y + a.w;
#ifdef U8
    return low;
#else
    return mix(low, vec4(0.0), equal(floatBitsToUint(x) & 0x7fffffffu, uvec4(0x7f800000u)));
#endif
}

void main()
{
    const uvec2 place = batch_place();
    const uint rows = place.x, first = place.y;
    const uint begin = gl_WorkGroupID.y * pc.plane, end = begin + pc.plane; // this channel's elements
    const vec4 a = affine[gl_WorkGroupID.y];
    for (uint i = gl_GlobalInvocationID.x; i < pc.batch4 * pc.parts; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
        const uint part = i / pc.batch4, b4 = i % pc.batch4;
        uint base[4]; // index in `table` of each row's first word
        bvec4 here;
        [[unroll]] for (uint b = 0; b < 4; b++) {
            const uint at = first + 4 * b4 + b;
            const bool real = 4 * b4 + b < rows && at >= first && at < pc.n_order;
            const uint row = real ? order[at] : 0u;
            here[b] = real && row >= pc.row_begin && row < pc.row_end;
            base[b] = here[b] ? (row - pc.row_begin) * pc.words : 0u;
        }
        for (uint word = begin / PER_WORD + part; word * PER_WORD < end; word += pc.parts) {
            vec4 pixels[4]; // pixels[b]: the elements in word `word` of sample b
            [[unroll]] for (uint b = 0; b < 4; b++) pixels[b] = unpack(base[b] + word);
            [[unroll]] for (uint k = 0; k < PER_WORD; k++) {
                const uint f = word * PER_WORD + k, o = f * pc.batch4 + b4;
                const vec4 x = vec4(pixels[0][k], pixels[1][k], pixels[2][k], pixels[3][k]);
                const vec4 y = (x * a.x + a.z) + low_part(x, a);
                if (f >= begin && f < end) STORE4(samples, o, mix(KEEP != 0u ? LOAD4(samples, o) : vec4(0.0), y, here));
            }
        }
    }
}
