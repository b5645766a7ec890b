/* Tests vkt_all_reduce and vkt_all_gather on 1 to 16 threads. On every rank, a sum must have the bits of a reference,
 * which also adds along the binary tree of dist/dist.h. The messages are f32 or bf16. Some summands are NaN, infinite
 * or denormal. Guard bytes must not change, and each rank must send the number of bytes that vktrain/dist.h states. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/philox.h"
#include "dist/crew.h"
#include "dist/dist.h"
#include "support/host.h"

enum { MOST = 100003, GUARDS = 64, GUARD = 0x5a };

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* ---- the reference adds one number at a time, by the definition in dist/dist.h ---- */

static float plain(float f, vkt_wire wire)
{
    if (isnan(f)) return float_of(0x7fc00000);
    if (fabsf(f) < FLT_MIN) return 0.0f;
    return wire == VKT_WIRE_BF16 ? vkt_f32_from_bf16(vkt_bf16_from_f32(f)) : f;
}

static float tree_sum(const float *summands, size_t stride, uint32_t n, vkt_wire wire)
{
    if (n == 1) return summands[0];
    const float left = tree_sum(summands, stride, n / 2, wire);
    const float right = tree_sum(summands + n / 2 * stride, stride, n / 2, wire);
    const volatile float sum = plain(left, wire) + plain(right, wire);
    return plain(sum, VKT_WIRE_F32);
}

/* ---- summands: most are in [-1, 1], the others are special numbers or random bits ---- */

static float number(vkt_rng *rng)
{
    static const uint32_t special[] = { 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f812345, 0x00000001,
                                        0x807fffff, 0x00800000, 0x80800001, 0x80000000, 0x7f7fffff, 0xff7fffff,
                                        0x3f808000, 0x3f818000, 0x3f808001, 0xbf808000, 0x00c00000, 0x80a00000 };
    const uint32_t kind = vkt_rng_range(rng, 0, 15);
    if (kind == 0) return float_of(special[vkt_rng_range(rng, 0, VKT_COUNT(special) - 1)]);
    if (kind == 1) return float_of(vkt_rng_u32(rng) & 0x81ffffff); /* magnitudes below 2^-123, also denormal ones */
    if (kind == 2) return float_of(vkt_rng_u32(rng));
    return vkt_rng_uniform(rng, -1, 1);
}

/* The array and the scratch of each rank, both between guard bytes, and the expected sum. */
typedef struct field {
    uint32_t ranks;
    size_t n;
    vkt_wire wire;
    unsigned char *data[CREW_MOST], *scratch[CREW_MOST];
    float *want;
    vkt_traffic traffic[CREW_MOST];
} field;

static float *inside(unsigned char *memory)
{
    return (float *)(void *)(memory + GUARDS);
}

static unsigned char *guarded(size_t bytes)
{
    unsigned char *memory = test_malloc(bytes + 2 * GUARDS);
    memset(memory, GUARD, bytes + 2 * GUARDS);
    return memory;
}

static void check_guards(const unsigned char *memory, size_t bytes)
{
    for (size_t i = 0; i < GUARDS; i++) {
        assert_int_equal(memory[i], GUARD);
        assert_int_equal(memory[GUARDS + bytes + i], GUARD);
    }
}

static size_t scratch_bytes(const field *f)
{
    return (f->n + 1) / 2 * sizeof(float);
}

static field make_field(uint32_t ranks, size_t n, vkt_wire wire)
{
    field f = { .ranks = ranks, .n = n, .wire = wire };
    const size_t stride = n ? n : 1;
    float *all = test_malloc(stride * ranks * sizeof *all);
    f.want = test_malloc(stride * sizeof *f.want);
    vkt_rng rng = vkt_rng_make(n, VKT_STREAM_TEST, ranks, wire);
    for (size_t i = 0; i < n * ranks; i++) all[i] = number(&rng);
    for (size_t i = 0; i < n; i++) f.want[i] = plain(tree_sum(all + i, n, ranks, wire), wire);
    for (uint32_t r = 0; r < ranks; r++) {
        f.data[r] = guarded(n * sizeof *all);
        f.scratch[r] = guarded(scratch_bytes(&f));
        memcpy(inside(f.data[r]), all + r * n, n * sizeof *all);
    }
    test_free(all);
    return f;
}

static void check_and_free_field(field *f)
{
    for (uint32_t r = 0; r < f->ranks; r++) {
        const float *got = inside(f->data[r]);
        for (size_t i = 0; i < f->n; i++) {
            if (bits_of(got[i]) == bits_of(f->want[i])) continue;
            print_error("rank %u of %u, wire %d, [%zu] of %zu: want %a, got %a\n", r, f->ranks, f->wire, i, f->n,
                        (double)f->want[i], (double)got[i]);
            fail();
        }
        check_guards(f->data[r], f->n * sizeof *got);
        check_guards(f->scratch[r], scratch_bytes(f));
        test_free(f->data[r]);
        test_free(f->scratch[r]);
    }
    test_free(f->want);
}

static vkt_result reduce(const vkt_transport *t, void *user)
{
    field *f = user;
    return vkt_all_reduce_counted(t, inside(f->data[t->rank]), f->n, f->wire, inside(f->scratch[t->rank]),
                                  &f->traffic[t->rank]);
}

static void sums_have_the_bits_of_the_tree(void **state)
{
    static const size_t sizes[] = { 0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 97, 1024, 4099, MOST };
    const vkt_host h = vkt_test_host();
    (void)state;
    for (uint32_t ranks = 1; ranks <= CREW_MOST; ranks *= 2)
        for (size_t s = 0; s < VKT_COUNT(sizes); s++)
            for (int wire = VKT_WIRE_F32; wire <= VKT_WIRE_BF16; wire++) {
                field f = make_field(ranks, sizes[s], (vkt_wire)wire);
                crew_run_ok(&h, ranks, reduce, &f);
                check_and_free_field(&f);
            }
}

static void a_rank_sends_the_promised_bytes(void **state)
{
    const vkt_host h = vkt_test_host();
    (void)state;
    for (uint32_t ranks = 1, rounds = 0; ranks <= CREW_MOST; ranks *= 2, rounds++)
        for (int wire = VKT_WIRE_F32; wire <= VKT_WIRE_BF16; wire++) {
            field f = make_field(ranks, 4096, (vkt_wire)wire);
            const uint64_t bytes = 2 * 4096 * (ranks - 1) / ranks * (wire == VKT_WIRE_F32 ? 4 : 2);
            crew_run_ok(&h, ranks, reduce, &f);
            for (uint32_t r = 0; r < ranks; r++) {
                assert_int_equal(f.traffic[r].sent_bytes, bytes);
                assert_int_equal(f.traffic[r].messages, 2 * rounds);
                assert_int_equal(f.traffic[r].exchange_ns > 0, ranks > 1);
            }
            check_and_free_field(&f);
        }
}

/* ---- the number of ranks does not matter ---- */

enum { SHARDS = 16, SHARD_SIZE = 333 };

typedef struct shards {
    float data[SHARDS][SHARD_SIZE]; /* the sum of all shards overwrites the first shard of each rank */
    vkt_wire wire;
} shards;

/* Adds the shards of this rank, in the order of the binary tree, into the rank's first shard. Then vkt_all_reduce adds
 * the first shards of all ranks. */
static vkt_result reduce_shards(const vkt_transport *t, void *user)
{
    shards *s = user;
    float scratch[(SHARD_SIZE + 1) / 2];
    const uint32_t n = SHARDS / t->ranks, first = t->rank * n;
    for (uint32_t step = 1; step < n; step *= 2)
        for (uint32_t i = 0; i < n; i += 2 * step)
            vkt_tree_add(s->data[first + i], s->data[first + i + step], SHARD_SIZE, s->wire);
    return vkt_all_reduce(t, s->data[first], SHARD_SIZE, s->wire, scratch);
}

static void any_number_of_ranks_has_the_same_bits(void **state)
{
    const vkt_host h = vkt_test_host();
    (void)state;
    for (int wire = VKT_WIRE_F32; wire <= VKT_WIRE_BF16; wire++) {
        float want[SHARD_SIZE];
        for (uint32_t ranks = 1; ranks <= SHARDS; ranks *= 2) {
            static shards s;
            s.wire = (vkt_wire)wire;
            vkt_rng rng = vkt_rng_make(7, VKT_STREAM_TEST, 0, 0);
            for (int k = 0; k < SHARDS; k++)
                for (int i = 0; i < SHARD_SIZE; i++) s.data[k][i] = number(&rng);
            crew_run_ok(&h, ranks, reduce_shards, &s);
            if (ranks == 1) memcpy(want, s.data[0], sizeof want);
            for (uint32_t r = 0; r < ranks; r++) assert_memory_equal(s.data[r * SHARDS / ranks], want, sizeof want);
        }
    }
}

static void the_end_of_a_tree_is_one_for_all(void **state)
{
    (void)state;
    vkt_rng rng = vkt_rng_make(3, VKT_STREAM_TEST, 0, 0);
    for (int wire = VKT_WIRE_F32; wire <= VKT_WIRE_BF16; wire++)
        for (int k = 0; k < 5000; k++) {
            float x = number(&rng);
            const float want = plain(x, (vkt_wire)wire);
            vkt_tree_end(&x, 1, (vkt_wire)wire);
            assert_int_equal(bits_of(x), bits_of(want));
        }
}

/* ---- records ---- */

enum { RECORD = 11 };

static vkt_result gather(const vkt_transport *t, void *user)
{
    unsigned char(*all)[CREW_MOST * RECORD] = user;
    memset(all[t->rank] + t->rank * RECORD, (int)t->rank + 1, RECORD);
    VKT_TRY(vkt_all_gather(t, all[t->rank], 0));
    return vkt_all_gather(t, all[t->rank], RECORD);
}

static void every_rank_gets_every_record(void **state)
{
    const vkt_host h = vkt_test_host();
    (void)state;
    for (uint32_t ranks = 1; ranks <= CREW_MOST; ranks *= 2) {
        static unsigned char all[CREW_MOST][CREW_MOST * RECORD];
        memset(all, 0, sizeof all);
        crew_run_ok(&h, ranks, gather, all);
        for (uint32_t r = 0; r < ranks; r++)
            for (uint32_t i = 0; i < CREW_MOST * RECORD; i++)
                assert_int_equal(all[r][i], i / RECORD < ranks ? i / RECORD + 1 : 0);
    }
}

/* ---- errors ---- */

static vkt_result refuse(void *user, uint32_t peer, const void *send, void *receive, size_t bytes)
{
    (void)user, (void)peer, (void)send, (void)receive, (void)bytes;
    return VKT_E_PEER;
}

static void wrong_arguments_are_errors(void **state)
{
    float data[4] = { 0 }, scratch[4];
    const vkt_transport good = { .ranks = 2, .exchange = refuse }, alone = { .ranks = 1 };
    const vkt_transport bad[] = { { 0 },
                                  { .ranks = 3, .exchange = refuse },
                                  { .ranks = 2 * VKT_MAX_SHARDS, .exchange = refuse },
                                  { .ranks = 2, .rank = 2, .exchange = refuse },
                                  { .ranks = 2 } };
    (void)state;
    for (size_t i = 0; i < VKT_COUNT(bad); i++) {
        assert_int_equal(vkt_all_reduce(&bad[i], data, 4, VKT_WIRE_F32, scratch), VKT_E_ARG);
        assert_int_equal(vkt_all_gather(&bad[i], data, 1), VKT_E_ARG);
    }
    assert_int_equal(vkt_all_reduce(NULL, data, 4, VKT_WIRE_F32, scratch), VKT_E_ARG);
    assert_int_equal(vkt_all_reduce(&good, NULL, 4, VKT_WIRE_F32, scratch), VKT_E_ARG);
    assert_int_equal(vkt_all_reduce(&good, data, 4, VKT_WIRE_F32, NULL), VKT_E_ARG);
    assert_int_equal(vkt_all_reduce(&good, data, 4, (vkt_wire)2, scratch), VKT_E_ARG);
    assert_int_equal(vkt_all_reduce(&good, data, SIZE_MAX, VKT_WIRE_F32, scratch), VKT_E_ARG);
    assert_int_equal(vkt_all_gather(NULL, data, 4), VKT_E_ARG);
    assert_int_equal(vkt_all_gather(&good, NULL, 4), VKT_E_ARG);
    assert_int_equal(vkt_all_gather(&good, data, SIZE_MAX), VKT_E_ARG);
    assert_int_equal(vkt_all_reduce(&good, NULL, 0, VKT_WIRE_F32, NULL), VKT_OK);
    assert_int_equal(vkt_all_reduce(&alone, data, 4, VKT_WIRE_BF16, NULL), VKT_OK);
    assert_int_equal(vkt_all_reduce(&good, data, 4, VKT_WIRE_F32, scratch), VKT_E_PEER);
    assert_int_equal(vkt_all_gather(&good, data, 4), VKT_E_PEER);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sums_have_the_bits_of_the_tree),        TEST(a_rank_sends_the_promised_bytes),
        TEST(any_number_of_ranks_has_the_same_bits), TEST(the_end_of_a_tree_is_one_for_all),
        TEST(every_rank_gets_every_record),          TEST(wrong_arguments_are_errors),
    };
    return cmocka_run_group_tests_name("all-reduce", tests, NULL, NULL);
}
