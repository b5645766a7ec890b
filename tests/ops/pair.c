/* ops/pair.c - see pair.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "base/half.h"
#include "kernel/ids.h"
#include "ops/pair.h"
#include "support/host.h"

#define OK(call) assert_int_equal((call), VKT_OK)
#define POISON 0x7fc5a5a5u /* a NaN */

typedef pair_net net;
typedef pair_spec spec;

static void as_it_is(vkt_limits *lim)
{
    (void)lim;
}

const harness_view pair_whole = { "as it is", as_it_is };

/* ---- numbers ---- */

static float number(vkt_rng *r, pair_values kind, bool variance)
{
    static const float rare[] = { NAN, INFINITY, -INFINITY, 0.0f, -0.0f };
    const uint32_t k = kind == SPECIAL ? vkt_rng_range(r, 0, 19) : UINT32_MAX;
    if (variance) return kind == WHOLE ? 1 : vkt_rng_uniform(r, 0.25f, 2);
    if (kind == WHOLE) return (float)vkt_rng_range(r, 0, 8) - 4;
    return k < VKT_COUNT(rare) ? rare[k] : vkt_rng_uniform(r, -1, 1);
}

static float get(const vkt_value *v, const unsigned char *at)
{
    uint16_t h;
    float f;
    memcpy(&h, at, sizeof h);
    memcpy(&f, at, v->storage == VKT_PRECISION_F32 ? sizeof f : 0);
    if (v->storage == VKT_PRECISION_F16) f = vkt_f32_from_half(h);
    if (v->storage == VKT_PRECISION_BF16) f = vkt_f32_from_bf16(h);
    return f;
}

static void put(const vkt_value *v, unsigned char *at, float f)
{
    const uint16_t h = v->storage == VKT_PRECISION_F16 ? vkt_half_from_f32(f) : vkt_bf16_from_f32(f);
    if (v->storage == VKT_PRECISION_F32)
        memcpy(at, &f, sizeof f);
    else
        memcpy(at, &h, sizeof h);
}

static bool is_padding(const vkt_value *v, const vkt_phys *p, uint64_t i)
{
    return v->layout == VKT_BATCH_LAST && i % p->pitch >= p->dim[p->rank - 1];
}

/* Writes random numbers to an input. The padding gets numbers too, but only finite ones. */
static void write_input(net *n, const pair_value *o, vkt_rng *r)
{
    const vkt_value *v = vkt_lowered_value(&n->p->lowered, o->t);
    const vkt_phys p = vkt_phys_of(v);
    const uint64_t bytes = vkt_round_up(v->bytes, 4);
    unsigned char *raw = test_calloc(1, bytes);
    for (uint64_t i = 0; i < p.elements; i++)
        put(v, raw + i * vkt_element_bytes(v), number(r, is_padding(v, &p, i) ? SOME : n->s->values, o->variance));
    OK(vkt_upload(harness_ctx, n->p->inputs[o->t.id], 0, raw, bytes));
    test_free(raw);
}

/* ---- a graph, its programs and runs ---- */

vkt_tensor pair_input(net *n, bool by_rows, vkt_shape shape, bool variance)
{
    const vkt_tensor t = vkt_input(n->g, "x", VKT_F32, by_rows ? VKT_ROWS : VKT_BATCH_LAST, shape);
    assert_true(n->n_in < VKT_COUNT(n->in));
    n->in[n->n_in++] = (pair_value){ t, .variance = variance };
    return t;
}

void pair_show(net *n, vkt_tensor t, bool gradient)
{
    vkt_keep(n->g, t);
    n->out[n->n_out++] = (pair_value){ t, .gradient = gradient };
}

bool pair_program(net *n, const harness_view *view, pair_memory memory, vkt_program **out)
{
    const vkt_limits real = harness_ctx->limits;
    const vkt_program_params p = { .precision = view->precision, .recompute = memory == AGAIN };
    view->change(&harness_ctx->limits);
    harness_ctx->limits.choices.force = view->force;
    vkt_test_expect_errors(view->may_refuse);
    const vkt_result made =
        (memory == APART ? vkt_program_create_in_place : vkt_program_create)(harness_ctx, n->g, n->store, &p, out);
    vkt_test_expect_errors(false);
    harness_ctx->limits = real;
    assert_true(made == VKT_OK || (view->may_refuse && made == VKT_E_UNSUPPORTED));
    return made == VKT_OK;
}

static bool net_make(net *n, const spec *s, const harness_view *view, bool fuse)
{
    *n = (net){ .s = s, .g = harness_graph() };
    s->build(n);
    OK(vkt_graph_status(n->g));
    if (n->g->n_params) OK(vkt_store_create(harness_ctx, n->g, &n->store));
    n->g->no_fuse = !fuse;
    return pair_program(n, view, s->memory, &n->p);
}

static void net_free(net *n)
{
    vkt_program_destroy(&n->p);
    vkt_store_destroy(&n->store);
    vkt_graph_destroy(&n->g);
}

void pair_run(net *n)
{
    vkt_rng r = vkt_rng_make(9, VKT_STREAM_TEST, 9, 0);
    for (uint32_t i = 0; i < n->n_in; i++) write_input(n, &n->in[i], &r);
    for (uint32_t k = 0; n->store && k < vkt_store_count(n->store); k++) {
        const uint64_t elements = vkt_shape_elements(vkt_store_shape(n->store, k));
        float *v = test_malloc(elements * sizeof *v);
        for (uint64_t i = 0; i < elements; i++) v[i] = vkt_rng_uniform(&r, -0.5f, 0.5f);
        OK(vkt_store_write(n->store, k, VKT_PART_VALUE, v));
        test_free(v);
    }
    OK(vkt_program_poison(n->p, POISON));
    for (int i = 0; i < 3; i++) OK(vkt_program_run(n->p, &(vkt_run){ .lr = 0.01f, .rows = n->s->rows }, NULL));
    OK(vkt_program_wait(n->p));
    bool intact = true;
    const char *bad;
    if (n->s->memory == APART) OK(vkt_program_check_guards(n->p, POISON, &intact, &bad));
    if (!intact) fail_msg("words behind %s were written to", bad);
}

/* ---- checks ---- */

/* Checks that a and b have the same bits. Also fails if the data are more than 32 bytes and repeat the first 16 bytes,
 * for instance if all numbers are equal. Equal bits of such data prove little. */
static void same_bits(const void *a, const void *b, size_t bytes, const char *what)
{
    assert_memory_equal(a, b, bytes);
    if (bytes > 32 && memcmp(a, (const char *)a + 16, bytes - 16) == 0) fail_msg("%s is one number", what);
}

/* Checks that both programs computed the same bits of o. Padding is not compared: it must be 0 if o is a gradient, else
 * finite. The sum of two NaN may be either NaN, so the signs of NaN are not compared. */
static void same_output(const net *a, const net *b, const pair_value *o)
{
    const vkt_value *v = vkt_lowered_value(&a->p->lowered, o->t);
    const vkt_phys p = vkt_phys_of(v);
    unsigned char *raw[2];
    assert_int_equal(v->storage, vkt_lowered_value(&b->p->lowered, o->t)->storage);
    for (int k = 0; k < 2; k++) {
        raw[k] = test_malloc(v->bytes);
        OK(vkt_program_read_raw(k ? b->p : a->p, o->t, raw[k], v->bytes));
        for (uint64_t i = 0; i < p.elements; i++) {
            unsigned char *at = raw[k] + i * vkt_element_bytes(v);
            const float f = get(v, at);
            if (isnan(f)) put(v, at, fabsf(f));
            if (!is_padding(v, &p, i)) continue;
            if (o->gradient ? f != 0 : !isfinite(f)) fail_msg("padding lane %u of %s", (unsigned)i, v->name);
            put(v, at, 0);
        }
    }
    same_bits(raw[0], raw[1], v->bytes, v->name);
    for (int k = 0; k < 2; k++) test_free(raw[k]);
}

static void same_store(const net *a, const net *b, vkt_store_part part)
{
    for (uint32_t k = 0; a->store && k < vkt_store_count(a->store); k++) {
        const uint64_t elements = vkt_shape_elements(vkt_store_shape(a->store, k));
        float *x = test_malloc(2 * elements * sizeof *x);
        OK(vkt_store_read(a->store, k, part, x));
        OK(vkt_store_read(b->store, k, part, x + elements));
        for (uint64_t i = 0; i < elements; i++) assert_true(isfinite(x[i]));
        same_bits(x, x + elements, elements * sizeof *x, vkt_store_name(a->store, k));
        test_free(x);
    }
}

void pair_same(const net *a, const net *b)
{
    for (uint32_t i = 0; i < a->n_out; i++) same_output(a, b, &a->out[i]);
    same_store(a, b, VKT_PART_GRADIENT);
    same_store(a, b, VKT_PART_VALUE);
}

static uint32_t count(const vkt_program *p, vkt_kernel_id kernel)
{
    uint32_t n = 0;
    for (size_t i = 0; i < p->lowered.n; i++) n += p->lowered.list[i].kernel == kernel;
    return n;
}

static uint32_t elementwise(const vkt_program *p)
{
    return count(p, VKT_K_UNARY) + count(p, VKT_K_UNARY_DX) + count(p, VKT_K_BINARY) + count(p, VKT_K_TERNARY) +
           count(p, VKT_K_RUNNING_STATS) + count(p, VKT_K_SOFTMAX_XENT_DX);
}

static uint32_t dropouts(const vkt_program *p)
{
    return count(p, VKT_K_DROPOUT) + count(p, VKT_K_DROPOUT_PLANES);
}

/* Checks how many dispatches both programs have: see pair_spec. */
static void check_dispatches(const net *fused, const net *plain)
{
    const spec *s = fused->s;
    const uint32_t some = elementwise(fused->p), all = elementwise(plain->p);
    if (s->dropouts == PAIR_MANY) {
        assert_true(dropouts(fused->p) < dropouts(plain->p));
        return;
    }
    assert_int_equal(fused->p->lowered.n - some + s->dropouts, plain->p->lowered.n - all);
    if (s->dropouts) assert_int_equal(dropouts(fused->p) + s->dropouts, dropouts(plain->p));
    if (s->fused == PAIR_MANY) {
        assert_true(all > some && (some > 0) == (s->left > 0));
        assert_int_equal(count(fused->p, VKT_K_UNARY) > 0, s->unary);
        return;
    }
    assert_int_equal(some, s->left);
    assert_int_equal(all, s->left + s->fused);
}

bool pair_make(net *fused, net *plain, const spec *s, const harness_view *view)
{
    const bool a = net_make(fused, s, view, true), b = net_make(plain, s, view, false);
    assert_int_equal(a, b);
    if (a) {
        check_dispatches(fused, plain);
        pair_run(fused);
        pair_run(plain);
        pair_same(fused, plain);
        return true;
    }
    net_free(fused);
    net_free(plain);
    return false;
}

void pair_free(net *fused, net *plain)
{
    net_free(fused);
    net_free(plain);
    harness_forget(harness_ctx);
}

bool pair_agree_in(const spec *s, const harness_view *view)
{
    net fused, plain;
    const bool made = pair_make(&fused, &plain, s, view);
    if (made) pair_free(&fused, &plain);
    return made;
}

void pair_agree(const spec *s, size_t n)
{
    for (size_t i = 0; i < n; i++) assert_true(pair_agree_in(&s[i], &pair_whole));
}
