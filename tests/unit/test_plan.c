/* Tests graphs, layouts, lowering and the memory plan, with ops that exist only in this test. The test needs no
 * device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "plan/plan.h"
#include "support/host.h"

static const vkt_limits limits = { .traits = &vkt_class_traits[VKT_CLASS_OTHER],
                                   .subgroup_size = 8,
                                   .max_workgroup_lanes = 1024,
                                   .max_groups = 65535,
                                   .max_push_bytes = 128,
                                   .max_storage_range_bytes = 1u << 27,
                                   .max_allocation_bytes = 1u << 30 };

/* Infers the output y = f(a, b), where b may be absent. All ops of this test except `alias` use this function. */
static vkt_result fake_infer(vkt_infer *f)
{
    VKT_REQUIRE(f, vkt_in(f, 0)->dtype == VKT_F32, VKT_E_DTYPE, "fake: want f32");
    vkt_out(f, VKT_F32, vkt_in(f, 0)->layout, vkt_in(f, 0)->shape);
    return VKT_OK;
}

/* Emits one dispatch with 1000 bytes of scratch. */
static void fake_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_tensor s = vkt_scratch(e, "room", 1000);
    const vkt_bind bind[] = {
        { .t = n->in[0] }, { .t = n->n_in > 1 ? n->in[1] : n->in[0] }, { .t = n->out[0] }, { .t = s }
    };
    const uint32_t push = 7, spec = 8;
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = 1,
                                       .bind = bind,
                                       .n_bind = 4,
                                       VKT_LAUNCH_PUSH(push),
                                       .spec = &spec,
                                       .n_spec = 1,
                                       .groups = { 1u << 20, 1, 1 } });
}

static const vkt_op fake = {
    .name = "fake", .cheap = true, .min_in = 1, .max_in = 2, .infer = fake_infer, .emit = fake_emit
};

/* Returns which bindings a dispatch of `fake` or `cheap` reads and writes. Both ops read bindings 0 and 1, and write
 * binding 2. Only `fake` has binding 3, its scratch, and reads and writes it. */
static vkt_access fake_access(const vkt_dispatch *d)
{
    (void)d;
    return (vkt_access){ .reads = 0xb, .writes = 0xc };
}

/* Emits y = f(a, b), where b may be absent. f is computed element by element, so y may have the memory of a or of b. */
static void cheap_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_bind bind[] = { { .t = n->in[0] }, { .t = n->n_in > 1 ? n->in[1] : n->in[0] }, { .t = n->out[0] } };
    const uint32_t spec = 8;
    vkt_dispatch_add(
        e, &(vkt_launch){ .kernel = 2, .bind = bind, .n_bind = 3, .spec = &spec, .n_spec = 1, .groups = { 1, 1, 1 } });
}
static const vkt_op cheap = {
    .name = "cheap", .min_in = 1, .max_in = 2, .cheap = true, .in_place = 3, .infer = fake_infer, .emit = cheap_emit
};

static const vkt_plan_options plain = { .max_block_bytes = 1u << 30, .in_place = true, .access = fake_access };

static vkt_result alias_infer(vkt_infer *f)
{
    vkt_out_alias(f, 0, vkt_in(f, 0)->layout, vkt_shape1((uint32_t)vkt_shape_elements(vkt_in(f, 0)->shape)));
    return VKT_OK;
}
static const vkt_op alias = { .name = "alias", .min_in = 1, .max_in = 1, .infer = alias_infer };

static void layouts_round_trip_over_every_shape(void **state)
{
    (void)state;
    vkt_rng r = vkt_rng_make(1, VKT_STREAM_TEST, 0, 0);
    for (int i = 0; i < 200; i++) {
        vkt_value v = { .dtype = VKT_F32,
                        .layout = i % 2 ? VKT_BATCH_LAST : VKT_ROWS,
                        .shape.rank = vkt_rng_range(&r, 0, 5) };
        for (uint32_t d = 0; d < v.shape.rank; d++) v.shape.dim[d] = vkt_rng_range(&r, 1, 7);
        assert_true(vkt_physical_bytes(v.shape, v.layout, v.dtype, &v.bytes));
        const uint64_t n = vkt_shape_elements(v.shape);
        float *a = test_malloc(n * 4), *b = test_malloc(v.bytes), *c = test_malloc(n * 4);
        for (uint64_t k = 0; k < n; k++) a[k] = (float)k;
        vkt_pack_value(&v, a, b);
        vkt_unpack_value(&v, b, c);
        assert_memory_equal(a, c, n * 4);
        test_free(a);
        test_free(b);
        test_free(c);
    }
}

static void batch_last_is_stored_as_documented(void **state)
{
    (void)state;
    vkt_value v = { .dtype = VKT_F32, .layout = VKT_BATCH_LAST, .shape = vkt_shape4(3, 2, 1, 2) };
    assert_true(vkt_physical_bytes(v.shape, v.layout, v.dtype, &v.bytes));
    assert_int_equal(v.bytes, 2 * 1 * 2 * 4 * 4);
    /* Element (n, c, 0, w) is 10 n + 2 c + w. */
    const float logical[12] = { 0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23 };
    float physical[16];
    vkt_pack_value(&v, logical, physical);
    const float want[16] = { 0, 10, 20, 0, 1, 11, 21, 0, 2, 12, 22, 0, 3, 13, 23, 0 };
    assert_memory_equal(physical, want, sizeof want);
}

static void sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    uint64_t bytes;
    assert_false(vkt_physical_bytes(vkt_shape4(1u << 31, 1u << 31, 2, 1), VKT_ROWS, VKT_F32, &bytes));
    vkt_host h = vkt_test_host();
    vkt_graph *g;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape4(1u << 31, 1u << 31, 2, 1)).id, 0);
    assert_int_equal(vkt_graph_status(g), VKT_E_SHAPE);
    vkt_test_expect_errors(false);
    vkt_graph_destroy(&g);
}

static void errors_in_a_graph_are_sticky(void **state)
{
    (void)state;
    vkt_host h = vkt_test_host();
    vkt_graph *g;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    const vkt_tensor labels = vkt_input(g, "labels", VKT_U32, VKT_ROWS, vkt_shape1(5));
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(5));
    vkt_test_expect_errors(true);
    const unsigned before = vkt_test_errors();
    const vkt_tensor y = vkt_apply(g, &fake, &labels, 1, NULL, NULL);
    assert_int_equal(y.id, 0);
    assert_int_equal(vkt_apply(g, &fake, &x, 1, NULL, NULL).id,
                     0); /* a correct op on a failed graph returns no tensor and logs nothing */
    assert_int_equal(vkt_test_errors(), before + 1);
    assert_int_equal(vkt_graph_status(g), VKT_E_DTYPE);
    vkt_test_expect_errors(false);
    vkt_graph_destroy(&g);
}

static void a_parameter_name_is_given_once(void **state)
{
    (void)state;
    vkt_host h = vkt_test_host();
    vkt_graph *g;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    assert_int_not_equal(vkt_param(g, "w", vkt_shape1(3)).id, 0);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_param(g, "w", vkt_shape1(3)).id, 0);
    vkt_test_error_contains("'w' is used");
    vkt_test_expect_errors(false);
    assert_int_equal(vkt_graph_status(g), VKT_E_ARG);
    vkt_graph_destroy(&g);
}

/* Makes a random graph. Each node reads one or two of the earlier values. */
static vkt_graph *random_graph(vkt_rng *r, const vkt_host *h, uint32_t nodes)
{
    vkt_graph *g;
    assert_int_equal(vkt_graph_create(h, &g), VKT_OK);
    vkt_tensor pool[64];
    uint32_t n = 0;
    for (uint32_t i = 0; i < 4; i++)
        pool[n++] = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(vkt_rng_range(r, 1, 5000)));
    for (uint32_t i = 0; i < nodes; i++) {
        /* With probability 1/2, the first input is chosen among the last four values. So chains are frequent. */
        const uint32_t near = vkt_rng_range(r, 0, 1) ? n - VKT_MIN(n, 4u) : 0;
        const vkt_tensor in[2] = { pool[vkt_rng_range(r, near, n - 1)], pool[vkt_rng_range(r, 0, n - 1)] };
        const uint32_t kind = vkt_rng_range(r, 0, 5);
        const vkt_op *op = kind == 0 ? &alias : kind < 3 ? &cheap : &fake;
        const vkt_tensor y = vkt_apply(g, op, in, kind == 0 ? 1 : vkt_rng_range(r, 1, 2), NULL, NULL);
        assert_int_not_equal(y.id, 0);
        if (vkt_rng_range(r, 0, 7) == 0) vkt_keep(g, y);
        pool[n++] = y;
    }
    return g;
}

static bool is_packed(const vkt_plan *p, uint32_t id)
{
    return p->region[id].role == VKT_ROLE_ACTIVATION &&
           p->live_range[p->owner[id]].first <= p->live_range[p->owner[id]].last;
}

static void check_regions(const vkt_plan *p, const vkt_emit *e, const vkt_plan_options *o)
{
    for (uint32_t i = 1; i < p->n; i++) {
        if (!is_packed(p, i)) continue;
        const uint64_t bytes = vkt_lowered_value(e, (vkt_tensor){ i })->bytes;
        assert_int_equal(p->region[i].offset_bytes % VKT_ALIGN_BYTES, 0);
        assert_true(p->region[i].offset_bytes + bytes + o->guard_bytes <= p->block_bytes[p->region[i].index]);
        assert_true(p->block_bytes[p->region[i].index] <= o->max_block_bytes);
        for (uint32_t k = 1; k < i; k++) {
            if (!is_packed(p, k) || p->owner[i] == p->owner[k]) continue;
            const uint64_t others = vkt_lowered_value(e, (vkt_tensor){ k })->bytes;
            const bool apart = p->region[i].index != p->region[k].index ||
                               p->region[i].offset_bytes + bytes + o->guard_bytes <= p->region[k].offset_bytes ||
                               p->region[k].offset_bytes + others + o->guard_bytes <= p->region[i].offset_bytes;
            assert_true(apart || (!vkt_live_ranges_overlap(p->live_range[p->owner[i]], p->live_range[p->owner[k]]) &&
                                  o->guard_bytes == 0));
        }
    }
}

/* Simulates the list of dispatches. A memory block consists of units of 256 bytes. memory[b][i] is the id of the value
 * that was last written to unit i of block b. A dispatch that reads a value must find the id of this value in the
 * value's units. */
static void check_contents(const vkt_plan *p, const vkt_emit *e)
{
    uint32_t *memory[64] = { NULL };
    assert_true(p->n_blocks <= VKT_COUNT(memory));
    for (size_t b = 0; b < p->n_blocks; b++)
        memory[b] = test_calloc(p->block_bytes[b] / VKT_ALIGN_BYTES + 1, sizeof **memory);
    for (size_t d = 0; d < e->n; d++)
        for (uint32_t b = 0; b < e->list[d].n_bind; b++) { /* first checks inputs (b = 0, 1), then writes the output */
            const vkt_tensor t = e->list[d].bind[b].t;
            if (p->region[t.id].role != VKT_ROLE_ACTIVATION) continue;
            const uint32_t root = t.id < e->g->n_values ? vkt_root(e->g, t) : t.id;
            const uint64_t first = p->region[t.id].offset_bytes / VKT_ALIGN_BYTES;
            const uint64_t n = vkt_round_up(e->list[d].bind[b].bytes, VKT_ALIGN_BYTES) / VKT_ALIGN_BYTES;
            for (uint64_t i = first; i < first + n; i++) {
                if (fake_access(&e->list[d]).writes >> b & 1) memory[p->region[t.id].index][i] = root;
                assert_int_equal(memory[p->region[t.id].index][i], root);
            }
        }
    for (uint32_t i = 1; i < e->g->n_values; i++) /* kept values must still be there at the end */
        if (e->g->values[i].keep && is_packed(p, i))
            assert_int_equal(memory[p->region[i].index][p->region[i].offset_bytes / VKT_ALIGN_BYTES],
                             vkt_root(e->g, (vkt_tensor){ i }));
    for (size_t b = 0; b < p->n_blocks; b++) test_free(memory[b]);
}

static bool collide(const vkt_plan *p, const vkt_dispatch *x, const vkt_dispatch *y)
{
    for (uint32_t i = 0; i < x->n_bind; i++)
        for (uint32_t k = 0; k < y->n_bind; k++)
            if ((fake_access(x).writes >> i & 1 || fake_access(y).writes >> k & 1) &&
                vkt_regions_overlap(vkt_region_of(p, &x->bind[i]), vkt_region_of(p, &y->bind[k])))
                return true;
    return false;
}

/* Two dispatches conflict if both use the same memory and one of them writes it. Checks that no two dispatches between
 * two barriers conflict, and that every barrier separates two dispatches that conflict. */
static void check_barriers(const vkt_plan *p, const vkt_emit *e)
{
    size_t next = 0, from = 0;
    for (size_t d = 0; d < e->n; d++) {
        if (next < p->n_barriers && p->barriers[next].before == d) {
            assert_true(collide(p, &e->list[d], &e->list[p->barriers[next].other]));
            assert_true(p->barriers[next].other >= from);
            from = d;
            next++;
        }
        for (size_t i = from; i < d; i++) assert_false(collide(p, &e->list[d], &e->list[i]));
        assert_true(d == 0 || p->stage[d] == p->stage[d - 1] || p->stage[d] == p->stage[d - 1] + 1);
    }
    assert_int_equal(next, p->n_barriers);
    assert_true(p->n_barriers <= p->emitted_barriers);
}

static void values_alive_together_never_share_bytes(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    unsigned moved = 0, fewer = 0, remade = 0;
    for (uint64_t seed = 0; seed < 120; seed++) {
        vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 0, 0);
        vkt_graph *g = random_graph(&r, &h, vkt_rng_range(&r, 1, 50));
        const vkt_plan_options o = { .max_block_bytes = seed % 3 ? 1u << 20 : 40960,
                                     .guard_bytes = seed % 5 ? 0 : 256,
                                     .more_bytes = seed % 7 < 3 ? 8192 : 0,
                                     .most_bytes = seed % 2 ? UINT64_MAX : 65536,
                                     .in_place = seed % 4 != 0,
                                     .access = fake_access };
        vkt_emit e;
        vkt_plan p;
        assert_int_equal(vkt_lower(g, &limits, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
        assert_int_equal(vkt_plan_make(&e, &o, &p), VKT_OK);
        const uint64_t kept_bytes = p.lower_bound_bytes;
        if (seed % 2) { /* plans again, after vkt_recompute, which may insert dispatches */
            uint32_t again;
            vkt_plan_free(&p);
            assert_int_equal(vkt_recompute(&e, fake_access, &again), VKT_OK);
            assert_int_equal(vkt_plan_make(&e, &o, &p), VKT_OK);
            if (o.guard_bytes == 0 && !o.in_place) assert_true(p.lower_bound_bytes <= kept_bytes);
            remade += again;
        }
        check_regions(&p, &e, &o);
        check_contents(&p, &e);
        check_barriers(&p, &e);
        if (o.guard_bytes == 0 && p.n_blocks <= 1) {
            assert_true(p.packed_bytes >= p.lower_bound_bytes);
            assert_true(p.packed_bytes <= p.lower_bound_bytes * 115 / 100);
        }
        for (uint32_t i = 1; i < g->n_values; i++) moved += p.owner[i] != vkt_root(g, (vkt_tensor){ i });
        fewer += p.n_barriers < p.emitted_barriers;
        vkt_plan_free(&p);
        vkt_lower_free(&e);
        vkt_graph_destroy(&g);
    }
    /* Some outputs overwrote inputs, some plans needed fewer barriers, and some values were computed again. */
    assert_true(moved > 50 && fewer > 20 && remade > 20);
}

/* The graph has two independent chains of three nodes, one chain after the other. A last node reads the last values of
 * both chains. */
static void independent_branches_stand_between_the_same_barriers(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(100));
    vkt_tensor y[2] = { x, x };
    for (int branch = 0; branch < 2; branch++)
        for (int i = 0; i < 3; i++) y[branch] = vkt_apply(g, &cheap, &y[branch], 1, NULL, NULL);
    vkt_keep(g, vkt_apply(g, &cheap, y, 2, NULL, NULL));
    vkt_emit e;
    vkt_plan p;
    assert_int_equal(vkt_lower(g, &limits, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
    assert_int_equal(vkt_plan_make(&e, &plain, &p), VKT_OK);
    assert_int_equal(p.emitted_barriers, 5); /* the start of the second chain waits for no dispatch */
    assert_int_equal(p.n_barriers, 3);
    /* Each chain uses the memory of one value. The last node writes to the memory of one of the chains. */
    assert_int_equal(p.packed_bytes, 1024);
    check_contents(&p, &e);
    check_barriers(&p, &e);
    vkt_plan_free(&p);
    vkt_lower_free(&e);
    vkt_graph_destroy(&g);
}

/* Makes the memory plan of two independent chains of four `fake` nodes, which never overwrite their inputs. Returns the
 * number of barriers. *bytes gets the bytes of memory that the plan uses (vkt_plan.packed_bytes). */
static size_t plan_of_chains(uint64_t more_bytes, uint64_t most_bytes, uint64_t *bytes)
{
    const vkt_host h = vkt_test_host();
    vkt_plan_options o = plain;
    vkt_graph *g;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(1000));
    vkt_tensor y[2] = { x, x };
    for (int branch = 0; branch < 2; branch++)
        for (int i = 0; i < 4; i++) y[branch] = vkt_apply(g, &fake, &y[branch], 1, NULL, NULL);
    vkt_keep(g, vkt_apply(g, &cheap, y, 2, NULL, NULL));
    vkt_emit e;
    vkt_plan p;
    o.more_bytes = more_bytes;
    o.most_bytes = most_bytes;
    assert_int_equal(vkt_lower(g, &limits, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
    assert_int_equal(vkt_plan_make(&e, &o, &p), VKT_OK);
    check_contents(&p, &e);
    check_barriers(&p, &e);
    const size_t n = p.n_barriers;
    *bytes = p.packed_bytes;
    vkt_plan_free(&p);
    vkt_lower_free(&e);
    vkt_graph_destroy(&g);
    return n;
}

static void fewer_barriers_may_cost_memory(void **state)
{
    (void)state;
    uint64_t least, more, refused;
    const size_t all = plan_of_chains(0, UINT64_MAX, &least), few = plan_of_chains(1u << 20, UINT64_MAX, &more);
    assert_true(few < all && more > least && more <= least + (1u << 20));
    /* The extra 1 MiB would exceed the limit of least + 4 KiB. So the plan uses no extra memory, and still
     * has all barriers. */
    assert_int_equal(plan_of_chains(1u << 20, least + 4096, &refused), all);
    assert_int_equal(refused, least);
}

static void a_chain_is_packed_into_its_lower_bound(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(4096));
    for (int i = 0; i < 10; i++) x = vkt_apply(g, &fake, &x, 1, NULL, NULL);
    vkt_emit e;
    vkt_plan p;
    assert_int_equal(vkt_lower(g, &limits, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
    assert_int_equal(vkt_plan_make(&e, &plain, &p), VKT_OK);
    assert_int_equal(p.lower_bound_bytes, 2 * 16384 + 1024);
    assert_int_equal(p.packed_bytes, p.lower_bound_bytes);
    /* The op asks for 2^20 work groups, and gets the device's limit. A kernel loops over the rest of its work. */
    assert_int_equal(e.list[0].groups[0], limits.max_groups);
    vkt_plan_free(&p);
    vkt_lower_free(&e);
    vkt_graph_destroy(&g);
}

/* Declares n parameters, and plans a chain of n nodes. Returns how many loop iterations the planner made
 * (vkt_plan.work). *names gets how many entries of the hash table of names were visited (g->names_looked). */
static uint64_t cost_of(uint32_t n, uint64_t *names)
{
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    vkt_emit e;
    vkt_plan p;
    char name[24];
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    for (uint32_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "layer%u.w", i);
        assert_int_not_equal(vkt_param(g, name, vkt_shape1(4)).id, 0);
    }
    *names = g->names_looked;
    vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(4096));
    for (uint32_t i = 0; i < n; i++) x = vkt_apply(g, &fake, &x, 1, NULL, NULL);
    assert_int_equal(vkt_lower(g, &limits, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
    assert_int_equal(vkt_plan_make(&e, &plain, &p), VKT_OK);
    const uint64_t work = p.work;
    vkt_plan_free(&p);
    vkt_lower_free(&e);
    vkt_graph_destroy(&g);
    return work;
}

/* Emits two dispatches of `cheap`. */
static void two_parts_emit(const vkt_node *n, vkt_emit *e)
{
    cheap_emit(n, e);
    cheap_emit(n, e);
}
static const vkt_op two_parts = {
    .name = "two_parts", .min_in = 1, .max_in = 2, .infer = fake_infer, .emit = two_parts_emit
};
static const vkt_op early = {
    .name = "early", .min_in = 1, .max_in = 2, .early = true, .infer = fake_infer, .emit = cheap_emit
};

static vkt_access cheap_access(const vkt_dispatch *d)
{
    (void)d;
    return (vkt_access){ .reads = 3, .writes = 4 };
}

/* `early` nodes move as far to the front as their inputs allow. The graph has a chain of five nodes, 0 to 4, with two
 * dispatches each. The `early` node 5 reads the output of node 0. The `early` node 6 reads the output of node 2. The
 * `early` node 7 reads the outputs of nodes 5 and 6. */
static void early_dispatches_follow_what_they_depend_on(void **state)
{
    (void)state;
    enum { CHAIN = 5 };
    vkt_host h = vkt_test_host();
    vkt_graph *g;
    vkt_emit e;
    vkt_tensor t[CHAIN + 1], made[3];
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    t[0] = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(64));
    for (uint32_t i = 0; i < CHAIN; i++) t[i + 1] = vkt_apply(g, &two_parts, &t[i], 1, NULL, NULL);
    made[0] = vkt_apply(g, &early, &t[1], 1, NULL, NULL);
    made[1] = vkt_apply(g, &early, &t[3], 1, NULL, NULL);
    made[2] = vkt_apply(g, &early, made, 2, NULL, NULL);
    assert_int_equal(vkt_lower(g, &limits, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
    vkt_run_early(&e, cheap_access);
    static const uint32_t nodes[] = { 0, 0, 5, 1, 1, 2, 2, 6, 7, 3, 3, 4, 4 };
    assert_int_equal(e.n, VKT_COUNT(nodes));
    for (uint32_t i = 0; i < e.n; i++) assert_int_equal(e.list[i].node, nodes[i]);
    vkt_lower_free(&e);
    vkt_graph_destroy(&g);
}

/* The test counts loop iterations and visited entries, because times would vary. */
static void a_chain_twice_as_long_costs_twice_as_much(void **state)
{
    (void)state;
    uint64_t names[2];
    const uint64_t once = cost_of(1500, &names[0]), twice = cost_of(3000, &names[1]);
    assert_true(once > 1500 && (double)twice < 2.2 * (double)once);
    assert_true(names[0] >= 1500 && (double)names[1] < 2.2 * (double)names[0]);
}

static void parts_end_in_time(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        vkt_rng r = vkt_rng_make(seed, VKT_STREAM_TEST, 0, 0);
        uint64_t ns[60];
        uint32_t stage[60], ends[60];
        const uint32_t n = vkt_rng_range(&r, 1, 60);
        const uint64_t limit = seed % 7 ? vkt_rng_range(&r, 1, 3000) : UINT64_MAX;
        for (uint32_t i = 0; i < n; i++) {
            ns[i] = vkt_rng_range(&r, 0, 1000);
            stage[i] = i ? stage[i - 1] + vkt_rng_range(&r, 0, 1) : 0;
        }
        const uint32_t parts = vkt_split_submissions(ns, stage, n, limit, ends);
        assert_int_equal(ends[parts - 1], n);
        for (uint32_t k = 0, first = 0; k < parts; first = ends[k++]) {
            uint64_t sum = 0;
            assert_true(ends[k] > first);
            for (uint32_t i = first; i < ends[k]; i++) sum += ns[i];
            assert_true(sum <= limit || ends[k] == first + 1);
            /* Stages: see plan.h. If part k, a submission, ends in the middle of a stage, the whole part is in that
             * stage. */
            if (k + 1 < parts && stage[ends[k]] == stage[ends[k] - 1]) assert_int_equal(stage[first], stage[ends[k]]);
        }
        if (limit == UINT64_MAX) assert_int_equal(parts, 1);
    }
}

static void a_value_larger_than_a_block_is_refused(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(4096));
    vkt_tensor_set_name(g, vkt_apply(g, &fake, &x, 1, NULL, NULL), "giant");
    vkt_emit e;
    vkt_plan p;
    assert_int_equal(vkt_lower(g, &limits, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_plan_make(&e, &(vkt_plan_options){ .max_block_bytes = 8192, .access = fake_access }, &p),
                     VKT_E_DEVICE_MEMORY);
    vkt_test_error_contains("giant needs 16.0 KiB");
    vkt_test_expect_errors(false);
    vkt_lower_free(&e);
    vkt_graph_destroy(&g);
}

/* Builds, lowers and plans a graph. Frees everything, also after an error. */
static vkt_result build_all(const vkt_host *h)
{
    vkt_graph *g = NULL;
    vkt_result r = vkt_graph_create(h, &g);
    if (r != VKT_OK) return r;
    vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(100));
    const vkt_tensor w = vkt_param(g, "w", vkt_shape1(100));
    for (int i = 0; i < 20; i++) x = vkt_apply(g, &fake, (vkt_tensor[]){ x, w }, 2, NULL, NULL);
    r = vkt_graph_status(g);
    vkt_emit e;
    if (r == VKT_OK) r = vkt_lower(g, &limits, NULL, (vkt_storage){ 0 }, &e);
    if (r == VKT_OK) {
        vkt_plan p;
        r = vkt_plan_make(&e, &plain, &p);
        if (r == VKT_OK) vkt_plan_free(&p);
        vkt_lower_free(&e);
    }
    vkt_graph_destroy(&g);
    return r;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    unsigned n = 1;
    for (;; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result r = build_all(&h);
        if (!vkt_test_allocation_failed()) {
            assert_int_equal(r, VKT_OK);
            break;
        }
        assert_int_equal(r, VKT_E_NOMEM);
        assert_int_equal(vkt_test_live_blocks(), 0);
    }
    vkt_test_fail_allocation(0);
    assert_true(n > 20);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(layouts_round_trip_over_every_shape),
        TEST(batch_last_is_stored_as_documented),
        TEST(sizes_that_overflow_are_refused),
        TEST(errors_in_a_graph_are_sticky),
        TEST(a_parameter_name_is_given_once),
        TEST(values_alive_together_never_share_bytes),
        TEST(independent_branches_stand_between_the_same_barriers),
        TEST(fewer_barriers_may_cost_memory),
        TEST(a_chain_is_packed_into_its_lower_bound),
        TEST(a_chain_twice_as_long_costs_twice_as_much),
        TEST(early_dispatches_follow_what_they_depend_on),
        TEST(parts_end_in_time),
        TEST(a_value_larger_than_a_block_is_refused),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("graph and plan", tests, NULL, NULL);
}
