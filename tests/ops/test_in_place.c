/* Tests ops that may compute in the memory of an input (`in_place` of the op descriptor). An output in the memory of an
 * input must have the same bits as an output in memory of its own. This is checked in the views of harness.h: on the
 * device as it is, and with other limits or traits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

enum { SEEDS = 6 };

static const vkt_op *row_of(const char *name)
{
    for (size_t i = 0; vkt_ops[i]; i++)
        if (strcmp(vkt_ops[i]->name, name) == 0) return vkt_ops[i];
    fail_msg("no op %s", name);
    return NULL;
}

/* Makes a random case of the op. An op without its own cases gets a case of the op `tested_by`. If this case has too
 * few inputs, the missing inputs are like input 0. */
static void draw(const vkt_op *op, uint64_t seed, vkt_case *c)
{
    vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 0, 0);
    *c = (vkt_case){ .n_in = 0 };
    (op->sample ? op : row_of(op->tested_by))->sample(&r, c);
    for (; c->n_in < op->min_in; c->n_in++) c->in[c->n_in] = c->in[0];
}

typedef struct aliased {
    vkt_graph *g;
    vkt_tensor in[VKT_MAX_IN], out;
} aliased;

/* Applies the op to inputs that the host writes. Input k is copied first, and the output may have the memory of the
 * copy. */
static aliased build(const vkt_op *op, const vkt_case *c, uint32_t k)
{
    const vkt_host h = vkt_test_host();
    aliased a;
    vkt_tensor in[VKT_MAX_IN];
    assert_int_equal(vkt_graph_create(&h, &a.g), VKT_OK);
    for (uint32_t i = 0; i < c->n_in; i++) {
        a.in[i] = vkt_input(a.g, "x", c->in[i].dtype, c->in[i].layout, c->in[i].shape);
        in[i] = i == k ? vkt_expand(a.g, a.in[i], c->in[i].shape, c->in[i].layout) : a.in[i];
    }
    a.out = vkt_apply(a.g, op, in, c->n_in, op->attr_bytes ? c->attr : NULL, NULL);
    vkt_keep(a.g, a.out);
    assert_int_equal(vkt_graph_status(a.g), VKT_OK);
    return a;
}

static void write_inputs(const aliased *a, vkt_program *p, uint32_t n, uint64_t seed)
{
    vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 1, 0);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t elements = vkt_shape_elements(vkt_tensor_shape(a->g, a->in[i]));
        /* 0.0f has the bits of 0, so these numbers also serve as the u32 condition of `where`. */
        float *x = test_malloc(elements * sizeof *x);
        for (uint64_t e = 0; e < elements; e++) x[e] = vkt_rng_range(&r, 0, 4) ? vkt_rng_uniform(&r, -2, 2) : 0;
        assert_int_equal(vkt_program_write(p, a->in[i], x, elements * sizeof *x), VKT_OK);
        test_free(x);
    }
}

/* Returns the physical bytes of the output, padding included. The caller frees them. Returns NULL if the limits of the
 * view do not allow the case. Sets *moved to whether the memory plan put the output into the memory of the copy that
 * `build` makes. */
static void *run(const aliased *a, const harness_view *view, bool in_place, uint32_t n, uint64_t seed, bool *moved)
{
    const vkt_limits real = harness_ctx->limits;
    vkt_program *p;
    view->change(&harness_ctx->limits);
    vkt_test_expect_errors(view->may_refuse);
    const vkt_result made =
        (in_place ? vkt_program_create_in_place : vkt_program_create_guarded)(harness_ctx, a->g, NULL, NULL, &p);
    vkt_test_expect_errors(false);
    harness_ctx->limits = real;
    if (made != VKT_OK) {
        assert_true(view->may_refuse && made == VKT_E_UNSUPPORTED);
        return NULL;
    }
    write_inputs(a, p, n, seed);
    assert_int_equal(vkt_program_poison(p, 0x7fc5a5a5u), VKT_OK);
    assert_int_equal(vkt_program_run(p, &(vkt_run){ .lr = 1 }, NULL), VKT_OK);
    bool intact;
    const char *bad;
    assert_int_equal(vkt_program_check_guards(p, 0x7fc5a5a5u, &intact, &bad), VKT_OK);
    if (!intact) fail_msg("words behind %s were written to", bad);
    const uint64_t bytes = vkt_value_of(a->g, a->out)->bytes;
    void *raw = test_malloc(bytes);
    assert_int_equal(vkt_program_read_raw(p, a->out, raw, bytes), VKT_OK);
    *moved = p->plan.owner[a->out.id] != a->out.id;
    vkt_program_destroy(&p);
    harness_forget(harness_ctx);
    return raw;
}

/* Returns whether the current case uses the view. Without VKT_TEST_SMALL, a case uses all views. With VKT_TEST_SMALL
 * (tests/run.sh sets it for slow drivers), a case uses the first view and one other view, in rotation. */
static bool is_due(size_t view)
{
    static size_t call;
    if (view == 0) call++;
    return view == 0 || !vkt_env_int("VKT_TEST_SMALL", 0) || view == 1 + call % (harness_n_views - 1);
}

/* Compares the output in the memory of the copy with the output in memory of its own, in each view that is due. Returns
 * whether the plan of at least one view put the output into the memory of the copy. */
static bool check(const vkt_op *op, const vkt_case *c, uint32_t k, uint64_t seed)
{
    const aliased a = build(op, c, k);
    bool ever = false;
    for (size_t v = 0; v < harness_n_views; v++) {
        bool apart, moved;
        if (!is_due(v)) continue;
        void *want = run(&a, &harness_views[v], false, c->n_in, seed, &apart);
        void *got = run(&a, &harness_views[v], true, c->n_in, seed, &moved);
        assert_int_equal(!want, !got);
        if (got) {
            assert_false(apart);
            if (memcmp(want, got, vkt_value_of(a.g, a.out)->bytes) != 0)
                fail_msg("%s in the memory of input %u (%s), seed %llu: other bits", op->name, k, harness_views[v].name,
                         (unsigned long long)seed);
            ever |= moved;
        }
        test_free(want);
        test_free(got);
    }
    vkt_graph *g = a.g;
    vkt_graph_destroy(&g);
    return ever;
}

static void what_is_computed_in_place_has_the_same_bits(void **state)
{
    const vkt_op *op = *state;
    harness_needs(harness_ctx);
    const uint64_t few = (uint64_t)vkt_env_int("VKT_TEST_SEEDS", SEEDS);
    for (uint32_t k = 0; k < op->max_in; k++) {
        if (!(op->in_place >> k & 1)) continue;
        bool ever = false;
        for (uint64_t seed = 1; seed <= SEEDS && (seed <= few || !ever); seed++) {
            vkt_case c;
            draw(op, seed, &c);
            ever |= k < c.n_in && !c.in[k].absent && check(op, &c, k, seed);
        }
        if (!ever) fail_msg("%s never took the memory of input %u", op->name, k);
    }
}

int main(void)
{
    static struct CMUnitTest tests[64];
    size_t n = 0;
    for (size_t i = 0; vkt_ops[i] && n < VKT_COUNT(tests); i++)
        if (vkt_ops[i]->in_place)
            tests[n++] = (struct CMUnitTest){ .name = vkt_ops[i]->name,
                                              .test_func = what_is_computed_in_place_has_the_same_bits,
                                              .initial_state = (void *)(uintptr_t)vkt_ops[i] };
    return _cmocka_run_group_tests("in place", tests, n, harness_setup, harness_teardown);
}
