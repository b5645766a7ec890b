// quantized.glsl - four neighbouring numbers of a row of quantized weights. Include lib/load.glsl before this file, and declare
// VKT_WORDS(.., words). Byte offsets count from the start of the binding. Blocks and rows begin at even offsets.
//   quantized4(format, row, i)   numbers i .. i+3 of the row that begins at byte `row`; i is a multiple of 4
// source: the block formats of GGUF (ggml-quants.c of llama.cpp, and the page "GGUF" of ggml's documentation). d and m are the
// f16 numbers of a block. q is the small integer of one number. The formula at the end of a line gives this number:
//   Q4_0   32 numbers in 18 bytes: d; q in 4 bits.                          d (q - 8)
//   Q4_1   32 numbers in 20 bytes: d, m; q in 4 bits.                       d q + m
//   Q8_0   32 numbers in 34 bytes: d; q in 8 bits with sign.                d q
//   Q4_K   256 numbers in 144 bytes: d, m; for each 32 numbers, scale s and offset t in 6 bits each; q in 4 bits.  d s q - m t
//   Q5_K   256 numbers in 176 bytes: like Q4_K, with 32 more bytes before the four-bit parts: the fifth bits of all q.
//   Q6_K   256 numbers in 210 bytes: q in 4 + 2 bits; for each 16 numbers, scale s in 8 bits with sign; d.   d s (q - 32)
// In Q4_0 and Q4_1, byte j of the integers has numbers j and j + 16. In Q4_K and Q5_K, each 32 bytes have 64 numbers: the low
// four bits of the bytes are the first 32 numbers.

uint byte_of(uint at) { return LOAD1(words, at >> 2) >> 8u * (at & 3u) & 0xffu; }

// Converts the bits of an f16 number to a float, exactly. unpackHalf2x16 may return 0 for numbers below 2^-14, and the
// scale of a block is often below 2^-14.
float exact_half(uint bits)
{
    const uint m = bits & 0x7fffu;
    const float large = uintBitsToFloat((m << 13) + ((m < 0x7c00u ? 112u : 224u) << 23)); // exponent bias 15 -> 127
    return uintBitsToFloat(floatBitsToUint(m < 0x400u ? float(m) * 5.9604644775390625e-8 : large) | (bits & 0x8000u) << 16);
}

float half_of(uint at) { return exact_half(LOAD1(words, at >> 2) >> 8u * (at & 2u) & 0xffffu); }

vec2 halves_of(uint two) { return vec2(exact_half(two & 0xffffu), exact_half(two >> 16)); }

// Returns the four bytes from byte `at` on. `at` is even.
uint bytes_of(uint at)
{
    const uint low = LOAD1(words, at >> 2);
    return (at & 2u) == 0u ? low : low >> 16 | LOAD1(words, (at >> 2) + 1) << 16;
}

// Returns the four bytes of `four`, each with only the bits of `mask`.
uvec4 split_of(uint four, uint mask) { return uvec4(four, four >> 8, four >> 16, four >> 24) & mask; }

ivec4 signed_of(uint four) { return ivec4(four << 24, four << 16, four << 8, four) >> 24; }

uvec4 nibbles_of(uint at, uint shift) { return split_of(bytes_of(at) >> shift, 15u); }

// Returns scale s and offset t of the numbers 32 j .. 32 j + 31 of a block, from the 12 bytes at `at`. j is 0 to 7.
vec2 scale_of(uint at, uint j)
{
    const uint a = byte_of(at + j), b = byte_of(at + (j ^ 4u));
    if (j < 4) return vec2(a & 63u, b & 63u);
    const uint c = byte_of(at + j + 4);
    return vec2(c & 15u | b >> 6 << 4, c >> 4 | a >> 6 << 4);
}

vec4 k_numbers(bool five, uint at, uint i)
{
    const uint j = i / 32, l = i % 32, low = at + (five ? 48 : 16) + 32 * (j / 2) + l;
    const vec2 s = vec2(half_of(at), half_of(at + 2)) * scale_of(at + 4, j);
    uvec4 q = nibbles_of(low, 4 * (j & 1u));
    if (five) q |= split_of(bytes_of(at + 16 + l) >> j, 1u) << 4;
    return s.x * vec4(q) - s.y;
}

vec4 q6_numbers(uint at, uint i)
{
    const uint part = i / 128, t = i % 128 / 32, l = i % 32;
    const uvec4 low = nibbles_of(at + 64 * part + 32 * (t & 1u) + l, 4 * (t >> 1));
    const uvec4 high = split_of(bytes_of(at + 128 + 32 * part + l) >> 2 * t, 3u);
    const int scale = int(byte_of(at + 192 + 8 * part + l / 16 + 2 * t) << 24) >> 24;
    return half_of(at + 208) * float(scale) * vec4(ivec4(low | high << 4) - 32);
}

vec4 quantized4(uint format, uint row, uint i)
{
    const uint j = i % 32, k = i % 256;
    switch (format) {
    case QUANT_F16: return vec4(halves_of(bytes_of(row + 2 * i)), halves_of(bytes_of(row + 2 * i + 4)));
    case QUANT_BF16: return widen(uvec2(bytes_of(row + 2 * i), bytes_of(row + 2 * i + 4)), STORAGE_BF16);
    case QUANT_Q4_0: row += i / 32 * 18; return half_of(row) * (vec4(nibbles_of(row + 2 + j % 16, j / 16 * 4)) - 8.0);
    case QUANT_Q4_1:
        row += i / 32 * 20;
        return half_of(row) * vec4(nibbles_of(row + 4 + j % 16, j / 16 * 4)) + half_of(row + 2);
    case QUANT_Q8_0: row += i / 32 * 34; return half_of(row) * vec4(signed_of(bytes_of(row + 2 + j)));
    case QUANT_Q4_K: return k_numbers(false, row + i / 256 * 144, k);
    case QUANT_Q5_K: return k_numbers(true, row + i / 256 * 176, k);
    case QUANT_Q6_K: return q6_numbers(row + i / 256 * 210, k);
    }
    return vec4(uintBitsToFloat(0x7fc00000u)); // NaN, so that a format that is missing above is noticed
}
