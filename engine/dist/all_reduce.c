/* dist/all_reduce.c - sums over all ranks by one binary tree: recursive halving, then recursive doubling (Thakur,
 * Rabenseifner & Gropp, Optimization of Collective Communication Operations in MPICH, 2005).
 *
 * In round s, a rank and its peer, rank xor 2^s, have summands for the same range of numbers. The two share the work:
 * the rank whose bit s is 0 adds up the lower half, the other rank the upper half. If the range has an odd length, its
 * middle number is in both halves. So both messages always have the same size, and both ranks compute the same sum of
 * the middle number. Recursive doubling does the rounds in reverse order: the ranks exchange their finished halves,
 * without the middle number. */
#include "dist/dist.h"

#define MAX_ROUNDS 12 /* number of rounds for VKT_MAX_SHARDS ranks */
_Static_assert(VKT_MAX_SHARDS == 1 << MAX_ROUNDS, "a round for each bit of a rank's number");

#define INF_BITS 0x7f800000
#define NAN_BITS 0x7fc00000u
#define NORMAL_BITS 0x00800000 /* 2^-126 */

/* ---- functions of single numbers, without branches, so that compilers can vectorise loops ---- */

static inline uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline int32_t magnitude(uint32_t u)
{
    return (int32_t)(u & 0x7fffffff);
}

/* Returns 0xffffffff for true, else 0. */
static inline uint32_t mask(bool b)
{
    return 0u - (uint32_t)b;
}

static inline uint32_t flushed(uint32_t u)
{
    return u & mask(magnitude(u) >= NORMAL_BITS);
}

/* Returns NAN_BITS if u is a NaN, else `otherwise`. */
static inline uint32_t one_nan(uint32_t u, uint32_t otherwise)
{
    const uint32_t nan = mask(magnitude(u) > INF_BITS);
    return (NAN_BITS & nan) | (otherwise & ~nan);
}

/* Rounds a flushed number to bfloat16: to nearest, ties to even. The lower 16 bits of the result are 0. */
static inline uint32_t rounded(uint32_t u)
{
    return one_nan(u, u + 0x7fff + (u >> 16 & 1)) & 0xffff0000u; /* a carry moves into the exponent, up to infinity */
}

static inline float sum_f32(float a, float b)
{
    const uint32_t sum = bits_of(float_of(flushed(bits_of(a))) + float_of(flushed(bits_of(b))));
    return float_of(flushed(one_nan(sum, sum)));
}

static inline float end_f32(float f)
{
    return float_of(flushed(one_nan(bits_of(f), bits_of(f))));
}

static inline float round_bf16(float f)
{
    return float_of(rounded(flushed(bits_of(f))));
}

static inline uint16_t to_bf16(float f)
{
    return (uint16_t)(rounded(flushed(bits_of(f))) >> 16);
}

static inline float from_bf16(uint16_t b)
{
    return float_of((uint32_t)b << 16);
}

/* ---- arrays ---- */

void vkt_tree_add(float *restrict into, const float *restrict summand, size_t n, vkt_wire wire)
{
    if (wire == VKT_WIRE_BF16)
        for (size_t i = 0; i < n; i++) into[i] = sum_f32(round_bf16(into[i]), round_bf16(summand[i]));
    else
        for (size_t i = 0; i < n; i++) into[i] = sum_f32(into[i], summand[i]);
}

void vkt_tree_end(float *data, size_t n, vkt_wire wire)
{
    if (wire == VKT_WIRE_BF16)
        for (size_t i = 0; i < n; i++) data[i] = round_bf16(data[i]);
    else
        for (size_t i = 0; i < n; i++) data[i] = end_f32(data[i]);
}

/* Does the same as vkt_tree_add for a summand from a message of VKT_WIRE_BF16. */
static void add_bf16(float *restrict into, const uint16_t *restrict summand, size_t n)
{
    for (size_t i = 0; i < n; i++) into[i] = sum_f32(round_bf16(into[i]), from_bf16(summand[i]));
}

static void pack(uint16_t *restrict out, const float *restrict data, size_t n)
{
    for (size_t i = 0; i < n; i++) out[i] = to_bf16(data[i]);
}

static void unpack(float *restrict data, const uint16_t *restrict in, size_t n)
{
    for (size_t i = 0; i < n; i++) data[i] = from_bf16(in[i]);
}

/* ---- messages ---- */

/* One call of vkt_all_reduce. */
typedef struct reduction {
    const vkt_transport *t;
    float *data;
    vkt_wire wire;
    float *scratch;           /* VKT_WIRE_F32: received numbers */
    uint16_t *in, *out;       /* VKT_WIRE_BF16, in the memory of scratch. in: received numbers; out: numbers to send */
    size_t first[MAX_ROUNDS]; /* [s]: index of the first number of the range of round s */
    size_t n[MAX_ROUNDS];     /* [s]: length of the range of round s */
    vkt_traffic *traffic;     /* may be NULL */
} reduction;

static vkt_result exchange(const vkt_transport *t, uint32_t peer, const void *send, void *receive, size_t bytes,
                           vkt_traffic *traffic)
{
    if (bytes == 0) return VKT_OK;
    if (!traffic) return t->exchange(t->user, peer, send, receive, bytes);
    const uint64_t start_ns = vkt_now_ns();
    const vkt_result r = t->exchange(t->user, peer, send, receive, bytes);
    traffic->exchange_ns += vkt_now_ns() - start_ns;
    traffic->messages++;
    traffic->sent_bytes += bytes;
    return r;
}

/* Computes round s of the sum: sends the half that the peer adds up, and adds the peer's summands to the other half. */
static vkt_result add_half(const reduction *a, uint32_t s)
{
    const bool upper = a->t->rank >> s & 1;
    const size_t down = a->first[s], up = down + a->n[s] / 2, half = a->n[s] - a->n[s] / 2;
    float *mine = a->data + (upper ? up : down);
    const float *other = a->data + (upper ? down : up);
    const uint32_t peer = a->t->rank ^ 1u << s;
    if (a->wire == VKT_WIRE_BF16) {
        pack(a->out, other, half);
        VKT_TRY(exchange(a->t, peer, a->out, a->in, half * sizeof *a->in, a->traffic));
        add_bf16(mine, a->in, half);
    } else {
        VKT_TRY(exchange(a->t, peer, other, a->scratch, half * sizeof *mine, a->traffic));
        vkt_tree_add(mine, a->scratch, half, a->wire);
    }
    return VKT_OK;
}

/* Does round s in reverse: sends the sums that the peer lacks, and receives the sums that this rank lacks. */
static vkt_result fetch_half(const reduction *a, uint32_t s)
{
    const bool upper = a->t->rank >> s & 1;
    const size_t rest = a->n[s] / 2, down = a->first[s], up = down + a->n[s] - rest;
    const float *mine = a->data + (upper ? up : down);
    float *other = a->data + (upper ? down : up);
    const uint32_t peer = a->t->rank ^ 1u << s;
    if (a->wire == VKT_WIRE_F32) return exchange(a->t, peer, mine, other, rest * sizeof *mine, a->traffic);
    pack(a->out, mine, rest);
    VKT_TRY(exchange(a->t, peer, a->out, a->in, rest * sizeof *a->in, a->traffic));
    unpack(other, a->in, rest);
    return VKT_OK;
}

static vkt_result check_transport(const char *function, const vkt_transport *t)
{
    const vkt_host h = vkt_host_resolve(NULL);
    if (!t) return vkt_fail_null(NULL, function, "t");
    if (t->ranks == 0 || t->ranks > VKT_MAX_SHARDS || (t->ranks & (t->ranks - 1)) != 0 || t->rank >= t->ranks)
        return vkt_fail(&h, VKT_E_ARG, "%s: want a rank of a power of two of at most %d ranks, got rank %u of %u",
                        function, VKT_MAX_SHARDS, t->rank, t->ranks);
    if (!t->exchange && t->ranks > 1) return vkt_fail_null(NULL, function, "t->exchange");
    return VKT_OK;
}

vkt_result vkt_all_reduce_counted(const vkt_transport *t, float *data, size_t n, vkt_wire wire, float *scratch,
                                  vkt_traffic *traffic)
{
    VKT_TRY(check_transport("vkt_all_reduce", t));
    const vkt_host h = vkt_host_resolve(NULL);
    if (wire != VKT_WIRE_F32 && wire != VKT_WIRE_BF16)
        return vkt_fail(&h, VKT_E_ARG, "vkt_all_reduce: want a vkt_wire, got number %u", (unsigned)wire);
    if (n == 0) return VKT_OK;
    if (n > SIZE_MAX / sizeof *data) return vkt_fail(&h, VKT_E_ARG, "vkt_all_reduce: no memory has %zu numbers", n);
    if (!data) return vkt_fail_null(NULL, "vkt_all_reduce", "data");
    if (!scratch && t->ranks > 1) return vkt_fail_null(NULL, "vkt_all_reduce", "scratch");

    reduction a = { .t = t, .data = data, .wire = wire, .scratch = scratch, .traffic = traffic };
    if (scratch) {
        a.in = (uint16_t *)(void *)scratch;
        a.out = a.in + (n - n / 2);
    }
    uint32_t rounds = 0;
    size_t first = 0;
    for (; 1u << rounds < t->ranks; rounds++) {
        a.first[rounds] = first;
        a.n[rounds] = n;
        VKT_TRY(add_half(&a, rounds));
        if (t->rank >> rounds & 1) first += n / 2;
        n -= n / 2;
    }
    if (rounds == 0 || wire != VKT_WIRE_F32) vkt_tree_end(data + first, n, wire);
    while (rounds-- > 0) VKT_TRY(fetch_half(&a, rounds));
    return VKT_OK;
}

vkt_result vkt_all_reduce(const vkt_transport *t, float *data, size_t n, vkt_wire wire, float *scratch)
{
    return vkt_all_reduce_counted(t, data, n, wire, scratch, NULL);
}

vkt_result vkt_all_gather(const vkt_transport *t, void *records, size_t bytes)
{
    VKT_TRY(check_transport(__func__, t));
    const vkt_host h = vkt_host_resolve(NULL);
    if (bytes == 0) return VKT_OK;
    if (bytes > SIZE_MAX / t->ranks)
        return vkt_fail(&h, VKT_E_ARG, "vkt_all_gather: no memory has %u records of %zu bytes", t->ranks, bytes);
    VKT_WANT(NULL, records);
    for (uint32_t have = 1; have < t->ranks; have *= 2) { /* this rank has the records first .. first + have - 1 */
        const uint32_t first = t->rank & ~(have - 1), theirs = first ^ have;
        uint8_t *all = records;
        VKT_TRY(exchange(t, t->rank ^ have, all + first * bytes, all + theirs * bytes, have * bytes, NULL));
    }
    return VKT_OK;
}
