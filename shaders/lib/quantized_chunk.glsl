// quantized_chunk.glsl - 32 neighbouring numbers (a chunk) of a row of quantized weights at once. A block of Q4_0, Q4_1 or Q8_0
// is loaded and shifted as a whole: 5 or 9 words. Eight calls of quantized4 would load at least 16 words. The file is for CPU
// drivers, and for kernels whose lanes read neighbouring chunks. Include lib/quantized.glsl before this file, and declare
// FORMAT and pc.last. pc.last is the index in the binding of the last word that has bytes of the weights.
const uint CHUNK = QUANT_CHUNK; // vec4s
const uint MOST_WORDS = 9;      // words that a block of 32 numbers may touch

// Loads n <= 9 words. The first word contains byte `at`. Shifts the words, so that s begins with byte `at`. `at` is
// even. Words behind the weights are arbitrary.
void stream_of(uint at, uint n, out uint s[MOST_WORDS])
{
#ifdef VKT_TEXEL
    // t[] gets the words of up to three texels. Byte `at` may be in any of the four words of the first texel. So t[] is
    // shifted by 0 or 2 words, and then by 0 or 1 word.
    const uint texel = at >> 4;
    uint t[12];
    [[unroll]] for (uint i = 0; i < 3; i++) {
        uvec4 four = uvec4(0u);
        if (4 * i < n + 3) four = imageLoad(words, int(min(texel + i, pc.last >> 2)));
        [[unroll]] for (uint j = 0; j < 4; j++) t[4 * i + j] = four[j];
    }
    const bool two = (at & 8u) != 0u, one = (at & 4u) != 0u;
    [[unroll]] for (uint i = 0; i < 10; i++) t[i] = two ? t[i + 2] : t[i];
    [[unroll]] for (uint i = 0; i < 9; i++) s[i] = one ? t[i + 1] : t[i];
#else
    [[unroll]] for (uint i = 0; i < MOST_WORDS; i++) s[i] = i < n ? LOAD1(words, min((at >> 2) + i, pc.last)) : 0u;
#endif
    const bool half_word = (at & 2u) != 0u;
    [[unroll]] for (uint i = 0; i < 8; i++) s[i] = half_word ? s[i] >> 16 | s[i + 1] << 16 : s[i];
    s[8] = half_word ? s[8] >> 16 : s[8];
}

// Returns d and m of chunk c of the row that begins at byte `row`, and sets q: the 32 numbers of the chunk are d q + m. In
// formats other than Q4_0, Q4_1 and Q8_0, d is 1 and m is 0. Numbers behind the row's end are 0.
vec2 numbers_of(uint row, uint c, uint width4, out vec4 q[CHUNK])
{
    uint s[MOST_WORDS];
    if (FORMAT == QUANT_Q8_0) {
        stream_of(row + c * 34, 9, s);
        [[unroll]] for (uint k = 0; k < 8; k++) q[k] = vec4(signed_of(s[k] >> 16 | s[k + 1] << 16));
        return vec2(exact_half(s[0] & 0xffffu), 0.0);
    }
    if (FORMAT == QUANT_Q4_0 || FORMAT == QUANT_Q4_1) {
        const bool offset = FORMAT == QUANT_Q4_1;
        stream_of(row + c * (offset ? 20 : 18), 5, s);
        [[unroll]] for (uint k = 0; k < 4; k++) {
            const uint four = offset ? s[k + 1] : s[k] >> 16 | s[k + 1] << 16;
            q[k] = vec4(split_of(four, 15u));
            q[k + 4] = vec4(split_of(four >> 4, 15u));
        }
        const vec2 d = halves_of(s[0]);
        return vec2(d.x, offset ? d.y : -8.0 * d.x);
    }
    [[unroll]] for (uint k = 0; k < CHUNK; k++) {
        const uint i = CHUNK * c + k;
        const vec4 v = quantized4(FORMAT, row, 4 * min(i, width4 - 1));
        q[k] = i < width4 ? v : vec4(0.0);
    }
    return vec2(1.0, 0.0);
}
