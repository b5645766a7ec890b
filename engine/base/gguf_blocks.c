/* base/gguf_blocks.c - types of GGUF tensors, and the conversion of their blocks to float.
 *
 * The layouts are from ggml's src/ggml-common.h. f16 is a float16. A block has an integer q for each element. In Q4_K
 * and Q5_K, for example, the value of the element is d s q - e m. The factors d and e are for the whole block. The
 * factor s and the offset m are for a part of the block. (In Q4_1, m is for the whole block.)
 *
 * Bytes are in this order:
 *   Q4_0  f16 d | 16 bytes: the low half of byte j is q of element j, the high half is q of element j + 16
 *   Q4_1  f16 d, m | 16 bytes as in Q4_0
 *   Q8_0  f16 d | 32 signed bytes: q
 *   Q4_K  f16 d, e | 12 bytes: eight pairs of 6-bit integers s, m | 128 bytes: q, four bits each
 *   Q5_K  f16 d, e | 12 bytes as in Q4_K | 32 bytes: the fifth bits | 128 bytes: the low four bits
 *   Q6_K  128 bytes: the low four bits | 64 bytes: the high two bits | 16 signed bytes s | f16 d */
#include "base/gguf_blocks.h"

#include "base/half.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "F32 is copied from little-endian files");

typedef struct type_info {
    const char *name;
    uint32_t elements, bytes;
    bool read;
} type_info;

static const type_info types[] = {
#define ROW(name, number, elements, bytes, read) [number] = { #name, elements, bytes, read },
    VKT_GGUF_TYPES(ROW)
#undef ROW
};

static type_info info_of(vkt_gguf_type type)
{
    const type_info none = { .name = "?" };
    return (unsigned)type < VKT_COUNT(types) && types[type].name ? types[type] : none;
}

const char *vkt_gguf_type_name(vkt_gguf_type type)
{
    return info_of(type).name;
}

uint32_t vkt_gguf_block_elements(vkt_gguf_type type)
{
    return info_of(type).elements;
}

uint32_t vkt_gguf_block_bytes(vkt_gguf_type type)
{
    return info_of(type).bytes;
}

bool vkt_gguf_can_read(vkt_gguf_type type)
{
    return info_of(type).read;
}

/* ---- blocks ---- */

static uint16_t u16_at(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static float half_at(const uint8_t *p)
{
    return vkt_f32_from_half(u16_at(p));
}

/* Returns the low half of a byte, or with `high` the high half. */
static int nibble(uint8_t byte, size_t high)
{
    return high ? byte >> 4 : byte & 15;
}

static void q4_0(const uint8_t *b, float *out)
{
    const float d = half_at(b);
    for (size_t i = 0; i < 32; i++) out[i] = d * (float)(nibble(b[2 + i % 16], i / 16) - 8);
}

static void q4_1(const uint8_t *b, float *out)
{
    const float d = half_at(b), m = half_at(b + 2);
    for (size_t i = 0; i < 32; i++) out[i] = d * (float)nibble(b[4 + i % 16], i / 16) + m;
}

static void q8_0(const uint8_t *b, float *out)
{
    const float d = half_at(b);
    for (size_t i = 0; i < 32; i++) out[i] = d * (float)(int8_t)b[2 + i];
}

/* Unpacks pair `k` of the eight pairs (s, m) in 12 bytes. For k < 4, s is the low six bits of byte k, and m is the low
 * six bits of byte k + 4. For k >= 4, the low half of byte k + 4 is the low four bits of s, and the high half is the
 * low four bits of m. The high two bits of s are the high two bits of byte k - 4. The high two bits of m are the high
 * two bits of byte k. */
static void unpack_pair(const uint8_t *p, size_t k, int *s, int *m)
{
    if (k < 4) {
        *s = p[k] & 63;
        *m = p[4 + k] & 63;
    } else {
        *s = nibble(p[4 + k], 0) | p[k - 4] >> 6 << 4;
        *m = nibble(p[4 + k], 1) | p[k] >> 6 << 4;
    }
}

/* Converts a block of Q4_K or Q5_K. Pair k is for the elements 32 k to 32 k + 31. `low` has the low four bits of each
 * q. The elements of pairs 2 j and 2 j + 1 share 32 bytes of `low`: the low four bits of a byte are for pair 2 j,
 * the high four bits for pair 2 j + 1. `fifth` has the fifth bits of Q5_K: bit k of byte i is for element 32 k + i. For
 * Q4_K, `fifth` is NULL. */
static void q45_k(const uint8_t *b, const uint8_t *fifth, const uint8_t *low, float *out)
{
    const float d = half_at(b), e = half_at(b + 2);
    for (size_t k = 0; k < 8; k++) {
        int s, m;
        unpack_pair(b + 4, k, &s, &m);
        const float scale = d * (float)s, offset = e * (float)m;
        for (size_t i = 0; i < 32; i++) {
            const int bit = fifth ? fifth[i] >> k & 1 : 0;
            out[32 * k + i] = scale * (float)(nibble(low[32 * (k / 2) + i], k % 2) | bit << 4) - offset;
        }
    }
}

/* Converts a block of Q6_K. A half of the block has 128 elements: four groups of 32. Groups 0 and 2 share 32 bytes of
 * low bits, and so do groups 1 and 3. All four groups share 32 bytes of high bits. 16 elements share a scale. */
static void q6_k(const uint8_t *b, float *out)
{
    const uint8_t *low = b, *high = b + 128, *scales = b + 192;
    const float d = half_at(b + 208);
    for (size_t i = 0; i < 256; i++) {
        const size_t half = i / 128, group = i / 32 % 4, j = i % 32;
        const int q =
            nibble(low[64 * half + 32 * (group % 2) + j], group / 2) | (high[32 * half + j] >> (2 * group) & 3) << 4;
        out[i] = d * (float)(int8_t)scales[i / 16] * (float)(q - 32);
    }
}

void vkt_gguf_blocks_to_f32(vkt_gguf_type type, const void *blocks, size_t n_blocks, float *out)
{
    const type_info info = info_of(type);
    const uint8_t *b = blocks;
    for (size_t n = 0; n < n_blocks; n++, b += info.bytes, out += info.elements) {
        switch (type) {
        case VKT_GGUF_F32: memcpy(out, b, sizeof *out); break;
        case VKT_GGUF_F16: *out = half_at(b); break;
        case VKT_GGUF_BF16: *out = vkt_f32_from_bf16(u16_at(b)); break;
        case VKT_GGUF_Q4_0: q4_0(b, out); break;
        case VKT_GGUF_Q4_1: q4_1(b, out); break;
        case VKT_GGUF_Q8_0: q8_0(b, out); break;
        case VKT_GGUF_Q4_K: q45_k(b, NULL, b + 16, out); break;
        case VKT_GGUF_Q5_K: q45_k(b, b + 16, b + 48, out); break;
        case VKT_GGUF_Q6_K: q6_k(b, out); break;
        default: return;
        }
    }
}

vkt_result vkt_gguf_dequantize(const vkt_host *host, vkt_gguf_type type, const void *blocks, size_t n_blocks,
                               float *out)
{
    VKT_WANT(host, blocks);
    VKT_WANT(host, out);
    const vkt_host h = vkt_host_resolve(host);
    if (!vkt_gguf_can_read(type))
        return vkt_fail(&h, VKT_E_UNSUPPORTED, "dequantize: type %s (number %d) is not read", vkt_gguf_type_name(type),
                        (int)type);
    vkt_gguf_blocks_to_f32(type, blocks, n_blocks, out);
    return VKT_OK;
}
