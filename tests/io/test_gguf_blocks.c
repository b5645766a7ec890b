/* Tests the conversion of quantized blocks to float. The results equal those of the Python package gguf, to the bit. On
 * random blocks, the results equal the rounded results of a second implementation, which is exact. The tensors of a
 * real model have the recorded checksums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/file.h"
#include "base/half.h"
#include "base/philox.h"
#include "io/safetensors.h"
#include "support/find_data.h"
#include "support/host.h"
#include "vktrain/gguf.h"
#include "vktrain/ops.h"

#define GOLDEN(name) VKT_TEST_DIR "/golden/gguf/" name

static const vkt_gguf_type readable[] = { VKT_GGUF_F32,  VKT_GGUF_F16,  VKT_GGUF_Q4_0, VKT_GGUF_Q4_1, VKT_GGUF_Q8_0,
                                          VKT_GGUF_Q4_K, VKT_GGUF_Q5_K, VKT_GGUF_Q6_K, VKT_GGUF_BF16 };

/* ---- types ---- */

/* The library passes the type of a file's tensor to the ops unchanged. So a type must have the same number in
 * vkt_gguf_type and vkt_quant. */
#define IS_SAME(name) ((int)VKT_GGUF_##name == (int)VKT_QUANT_##name)
_Static_assert(IS_SAME(F16) && IS_SAME(Q4_0) && IS_SAME(Q4_1) && IS_SAME(Q8_0) && IS_SAME(Q4_K) && IS_SAME(Q5_K) &&
                   IS_SAME(Q6_K) && IS_SAME(BF16),
               "the numbers of GGUF");

static void types_have_the_sizes_of_the_package(void **state)
{
    (void)state;
    FILE *f = fopen(GOLDEN("types.txt"), "r");
    char name[32];
    unsigned number, elements, bytes, n = 0, n_readable = 0, n_known = 0;
    assert_non_null(f);
    while (fscanf(f, "%31s %u %u %u", name, &number, &elements, &bytes) == 4) {
        assert_string_equal(vkt_gguf_type_name((vkt_gguf_type)number), name);
        assert_int_equal(vkt_gguf_block_elements((vkt_gguf_type)number), elements);
        assert_int_equal(vkt_gguf_block_bytes((vkt_gguf_type)number), bytes);
        n_readable += vkt_gguf_can_read((vkt_gguf_type)number);
        n++;
    }
    fclose(f);
    for (int i = 0; i < 1000; i++) n_known += vkt_gguf_block_elements((vkt_gguf_type)i) > 0;
    assert_int_equal(n, 34);
    assert_int_equal(n_known, n);
    assert_int_equal(n_readable, VKT_COUNT(readable));
    static const int others[] = { -1, 4, 5, 31, 38, 42, 9999, INT32_MAX };
    for (size_t i = 0; i < VKT_COUNT(others); i++) {
        assert_string_equal(vkt_gguf_type_name((vkt_gguf_type)others[i]), "?");
        assert_int_equal(vkt_gguf_block_elements((vkt_gguf_type)others[i]), 0);
        assert_int_equal(vkt_gguf_block_bytes((vkt_gguf_type)others[i]), 0);
        assert_false(vkt_gguf_can_read((vkt_gguf_type)others[i]));
    }
}

static void what_cannot_be_dequantized_is_refused(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const uint8_t block[256] = { 0 };
    float x[256];
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_gguf_dequantize(&h, (vkt_gguf_type)6, block, 1, x), VKT_E_UNSUPPORTED);
    vkt_test_error_contains("Q5_0");
    assert_int_equal(vkt_gguf_dequantize(&h, (vkt_gguf_type)77, block, 1, x), VKT_E_UNSUPPORTED);
    assert_int_equal(vkt_gguf_dequantize(&h, VKT_GGUF_Q4_0, NULL, 1, x), VKT_E_ARG);
    assert_int_equal(vkt_gguf_dequantize(&h, VKT_GGUF_Q4_0, block, 1, NULL), VKT_E_ARG);
}

/* ---- values from the Python package gguf ---- */

enum { GUARDS = 8, MOST = 1024 };

/* Fills x with a NaN that no result has. */
static void poison(float *x, size_t n)
{
    static const uint32_t nan = 0x7fc0dead;
    for (size_t i = 0; i < n; i++) memcpy(&x[i], &nan, sizeof nan);
}

static void assert_poison(const float *x, size_t n)
{
    float want[GUARDS];
    poison(want, n);
    assert_memory_equal(x, want, n * sizeof *x);
}

static void tensors_have_the_values_of_the_package(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_gguf *g;
    vkt_safetensors *st;
    static float want[MOST], got[GUARDS + MOST + GUARDS];
    bool seen[64] = { false };
    assert_int_equal(vkt_gguf_open(&h, GOLDEN("types.gguf"), &g), VKT_OK);
    assert_int_equal(vkt_safetensors_open(&h, GOLDEN("values.safetensors"), &st), VKT_OK);
    for (size_t i = 0; i < vkt_safetensors_count(st); i++) {
        const vkt_st_entry *e = vkt_safetensors_entry(st, i);
        const vkt_gguf_tensor *t = vkt_gguf_find_tensor(g, e->name);
        assert_non_null(t);
        assert_true(t->elements == e->elements && e->elements <= MOST);
        for (uint32_t k = 0; k < t->rank; k++) assert_int_equal(t->dims[k], e->dims[t->rank - 1 - k]);
        assert_int_equal(vkt_safetensors_read_f32(st, e, want, e->elements), VKT_OK);
        const size_t n = (size_t)e->elements, block = vkt_gguf_block_elements(t->type);
        for (size_t part = n; part >= block; part = part > block ? block : 0) { /* all at once, then block by block */
            poison(got, VKT_COUNT(got));
            for (size_t at = 0; at < n; at += part)
                assert_int_equal(vkt_gguf_read_f32(g, e->name, at, part, got + GUARDS + at), VKT_OK);
            assert_memory_equal(got + GUARDS, want, n * sizeof *want);
            assert_poison(got, GUARDS);
            assert_poison(got + GUARDS + n, GUARDS);
        }
        seen[t->type] = true;
    }
    for (size_t i = 0; i < VKT_COUNT(readable); i++) assert_true(seen[readable[i]]);
    vkt_safetensors_close(&st);
    vkt_gguf_destroy(&g);
}

/* ---- a second implementation ---- */

static double half_of(const uint8_t *p)
{
    const int bits = p[0] + 256 * p[1], exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double size = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return bits >> 15 ? -size : size; /* the blocks here have no infinity and no NaN */
}

/* Returns bit `k` of the bytes at p. Bit 0 is the lowest bit of the first byte. */
static int bit_of(const uint8_t *p, int k)
{
    return p[k / 8] >> k % 8 & 1;
}

/* Returns `n` bits of the bytes at p as an integer. Bit `k` of the bytes is the lowest bit of the integer. */
static int bits_of(const uint8_t *p, int k, int n)
{
    int x = 0;
    for (int i = 0; i < n; i++) x |= bit_of(p, k + i) << i;
    return x;
}

/* Returns an integer of pair k in a block of Q4_K or Q5_K: s if `second` is 0, t if `second` is 1 (vktrain/gguf.h).
 * The twelve bytes `p` have eight pairs of six-bit integers. For k < 4, bits 0 to 5 of byte k are s, and bits 0 to 5 of
 * byte k + 4 are t. For k >= 4, byte k + 4 has the four low bits of s, then the four low bits of t. The two high bits
 * of s are bits 6 and 7 of byte k - 4. The two high bits of t are bits 6 and 7 of byte k. */
static int six_bits(const uint8_t *p, int k, int second)
{
    if (k < 4) return bits_of(p, 8 * (k + 4 * second), 6);
    return bits_of(p, 8 * (k + 4) + 4 * second, 4) + 16 * bits_of(p, 8 * (k - 4 + 4 * second) + 6, 2);
}

/* Computes element i of a block, exactly. */
static double exact(vkt_gguf_type type, const uint8_t *b, int i)
{
    const int j = i % 32, pair = i / 32;
    int q;
    switch (type) {
    case VKT_GGUF_Q4_0: return half_of(b) * (bits_of(b + 2, 8 * (i % 16) + 4 * (i / 16), 4) - 8);
    case VKT_GGUF_Q4_1: return half_of(b) * bits_of(b + 4, 8 * (i % 16) + 4 * (i / 16), 4) + half_of(b + 2);
    case VKT_GGUF_Q8_0: return half_of(b) * (b[2 + i] - 256 * bit_of(b + 2 + i, 7));
    case VKT_GGUF_Q4_K:
        q = bits_of(b + 16 + 32 * (pair / 2), 8 * j + 4 * (pair % 2), 4);
        return half_of(b) * six_bits(b + 4, pair, 0) * q - half_of(b + 2) * six_bits(b + 4, pair, 1);
    case VKT_GGUF_Q5_K:
        q = bits_of(b + 48 + 32 * (pair / 2), 8 * j + 4 * (pair % 2), 4) + 16 * bit_of(b + 16, 8 * j + pair);
        return half_of(b) * six_bits(b + 4, pair, 0) * q - half_of(b + 2) * six_bits(b + 4, pair, 1);
    case VKT_GGUF_Q6_K: {
        const int group = pair % 4, half = pair / 4;
        q = bits_of(b + 64 * half + 32 * (group & 1), 8 * j + 4 * (group >> 1), 4);
        q += 16 * bits_of(b + 128 + 32 * half, 8 * j + 2 * group, 2);
        return half_of(b + 208) * (b[192 + i / 16] - 256 * bit_of(b + 192 + i / 16, 7)) * (q - 32);
    }
    default: return NAN;
    }
}

static void random_blocks_are_rounded_once(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    static const struct {
        vkt_gguf_type type;
        int halves[2]; /* offsets of the float16 numbers in a block; -1: none */
    } cases[] = { { VKT_GGUF_Q4_0, { 0, -1 } }, { VKT_GGUF_Q4_1, { 0, 2 } }, { VKT_GGUF_Q8_0, { 0, -1 } },
                  { VKT_GGUF_Q4_K, { 0, 2 } },  { VKT_GGUF_Q5_K, { 0, 2 } }, { VKT_GGUF_Q6_K, { 208, -1 } } };
    for (size_t c = 0; c < VKT_COUNT(cases); c++) {
        const vkt_gguf_type type = cases[c].type;
        vkt_rng r = vkt_rng_make((uint32_t)c, VKT_STREAM_TEST, 0, 0);
        for (int n = 0; n < 500; n++) {
            uint8_t block[256 + 1];
            float got[256 + GUARDS];
            uint8_t *b = block + n % 2; /* also at an odd address */
            for (uint32_t i = 0; i < vkt_gguf_block_bytes(type); i++) b[i] = (uint8_t)vkt_rng_u32(&r);
            for (int k = 0; k < 2 && cases[c].halves[k] >= 0; k++) /* replaces infinity and NaN */
                if ((b[cases[c].halves[k] + 1] & 0x7c) == 0x7c) b[cases[c].halves[k] + 1] ^= 0x40;
            poison(got, VKT_COUNT(got));
            assert_int_equal(vkt_gguf_dequantize(&h, type, b, 1, got), VKT_OK);
            const int elements = (int)vkt_gguf_block_elements(type);
            for (int i = 0; i < elements; i++) assert_true(got[i] == (float)exact(type, b, i));
            assert_poison(got + elements, GUARDS);
        }
    }
}

/* ---- a real model ---- */

/* Returns the checksum of a tensor's values, which are read in parts. */
static uint32_t checksum(const vkt_gguf *g, const vkt_gguf_tensor *t)
{
    enum { PART = 1 << 16 }; /* elements; a multiple of the elements of each type's block */
    float *values = malloc(PART * sizeof *values);
    uLong crc = crc32(0, NULL, 0);
    for (uint64_t at = 0; at < t->elements; at += PART) {
        const size_t n = (size_t)VKT_MIN(t->elements - at, PART);
        assert_int_equal(vkt_gguf_read_f32(g, t->name, at, n, values), VKT_OK);
        crc = crc32(crc, (const Bytef *)values, (uInt)(n * sizeof *values));
    }
    free(values);
    return (uint32_t)crc;
}

static void smollm2_has_the_recorded_checksums(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    char folder[512], path[600], name[80], type[16], dims[80], line[200];
    vkt_gguf *g;
    unsigned crc, n = 0;
    if (!vkt_test_find_data("smollm2", folder)) skip();
    snprintf(path, sizeof path, "%s/SmolLM2-135M-Instruct.Q4_1.gguf", folder);
    assert_int_equal(vkt_gguf_open(&h, path, &g), VKT_OK);
    FILE *f = fopen(GOLDEN("smollm2.txt"), "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        assert_int_equal(sscanf(line, "%79s %15s %79s %x", name, type, dims, &crc), 4);
        const vkt_gguf_tensor *t = vkt_gguf_tensor_at(g, n++);
        assert_non_null(t);
        assert_string_equal(t->name, name);
        assert_string_equal(vkt_gguf_type_name(t->type), type);
        char got[80];
        size_t at = 0;
        for (uint32_t k = 0; k < t->rank; k++)
            at += (size_t)snprintf(got + at, sizeof got - at, "%s%llu", k ? "x" : "", (unsigned long long)t->dims[k]);
        assert_string_equal(got, dims);
        assert_int_equal(checksum(g, t), crc);
    }
    fclose(f);
    assert_int_equal(n, 272);
    assert_int_equal(vkt_gguf_n_tensors(g), 272);
    vkt_gguf_destroy(&g);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(types_have_the_sizes_of_the_package),    TEST(what_cannot_be_dequantized_is_refused),
        TEST(tensors_have_the_values_of_the_package), TEST(random_blocks_are_rounded_once),
        TEST(smollm2_has_the_recorded_checksums),
    };
    return cmocka_run_group_tests_name("gguf_blocks", tests, NULL, NULL);
}
