/* Tests how one of the variants of a node is chosen: the cheapest one by default, and variants that are switched off,
 * forced or tuned (measured to be the fastest on a device). (Variants are different ways to compute the same node.) The
 * test needs no device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/system.h"
#include "ir/ir.h"
#include "kernel/ids.h"
#include "support/host.h"

/* In tile_direct, TILE is cheaper than DIRECT. In direct_tile, DIRECT is cheaper than TILE. */
static const vkt_variant_cost tile_direct[] = { { VKT_V_TILE, 1 }, { VKT_V_DIRECT, 2 } };
static const vkt_variant_cost direct_tile[] = { { VKT_V_TILE, 2 }, { VKT_V_DIRECT, 1 } };
static const vkt_variant_cost only_tile[] = { { VKT_V_TILE, 1 } }, only_direct[] = { { VKT_V_DIRECT, VKT_COST_NEVER } };
static const vkt_variant_cost packings[] = {
    { VKT_V_PACKED, 1 }, { VKT_V_PLACED, 4 }, { VKT_V_PACKED_A, 2 }, { VKT_V_PACKED_B, 3 }
};

static void the_cheapest_is_chosen_and_of_equals_the_first(void **state)
{
    (void)state;
    const vkt_choices none = { 0 };
    const vkt_variant_cost equal[] = { { VKT_V_WIDE, 3 }, { VKT_V_SPAN, 3 }, { VKT_V_LINE, 4 } };
    const vkt_variant_cost never[] = { { VKT_V_WIDE, VKT_COST_NEVER }, { VKT_V_SPAN, VKT_COST_NEVER } };
    const vkt_variant_cost late[] = { { VKT_V_WIDE, VKT_COST_NEVER }, { VKT_V_SPAN, 1e300 } };
    assert_int_equal(vkt_variant_choose(&none, 1, tile_direct, 2), VKT_V_TILE);
    assert_int_equal(vkt_variant_choose(&none, 1, direct_tile, 2), VKT_V_DIRECT);
    assert_int_equal(vkt_variant_choose(&none, 1, equal, 3), VKT_V_WIDE);
    assert_int_equal(vkt_variant_choose(&none, 1, never, 2), VKT_V_WIDE);
    assert_int_equal(vkt_variant_choose(&none, 1, late, 2), VKT_V_SPAN);
}

static void what_is_off_is_not_chosen_while_another_is_left(void **state)
{
    (void)state;
    const vkt_tuned tuned[] = { { 1, VKT_V(TILE) } };
    const vkt_choices no_tile = { .off = VKT_V(TILE), .force = VKT_V(TILE), .tuned = tuned, .n_tuned = 1 };
    assert_int_equal(vkt_variant_choose(&no_tile, 1, tile_direct, 2), VKT_V_DIRECT);
    assert_int_equal(vkt_variant_choose(&no_tile, 1, only_tile, 1), VKT_V_TILE);
    const vkt_choices none_left = { .off = VKT_V(TILE) | VKT_V(DIRECT) };
    assert_int_equal(vkt_variant_choose(&none_left, 1, tile_direct, 2), VKT_V_TILE);
    const vkt_choices no_packing = { .off = VKT_V(PACKED) | VKT_V(PACKED_A) };
    assert_int_equal(vkt_variant_choose(&no_packing, 1, packings, VKT_COUNT(packings)), VKT_V_PACKED_B);
}

static void forced_beats_tuned_and_tuned_beats_cheap(void **state)
{
    (void)state;
    const vkt_tuned tuned[] = { { 3, VKT_V(DIRECT) }, { 5, VKT_V(TILE) | VKT_V(PACKED_A) }, { 9, VKT_V(DIRECT) } };
    vkt_choices c = { .tuned = tuned, .n_tuned = VKT_COUNT(tuned) };
    assert_int_equal(vkt_variant_choose(&c, 3, tile_direct, 2), VKT_V_DIRECT);
    assert_int_equal(vkt_variant_choose(&c, 5, direct_tile, 2), VKT_V_TILE);
    assert_int_equal(vkt_variant_choose(&c, 5, packings, VKT_COUNT(packings)), VKT_V_PACKED_A);
    assert_int_equal(vkt_variant_choose(&c, 9, tile_direct, 2), VKT_V_DIRECT);
    for (uint64_t key = 0; key < 12; key++)
        if (key != 3 && key != 5 && key != 9) assert_int_equal(vkt_variant_choose(&c, key, tile_direct, 2), VKT_V_TILE);
    assert_int_equal(vkt_variant_choose(&c, 3, only_tile, 1), VKT_V_TILE); /* DIRECT is tuned, but not in this list */
    c.force = VKT_V(TILE);
    assert_int_equal(vkt_variant_choose(&c, 3, direct_tile, 2), VKT_V_TILE);
    assert_int_equal(vkt_variant_choose(&c, 3, only_direct, 1), VKT_V_DIRECT);
}

static void names_are_unique_and_found(void **state)
{
    (void)state;
    vkt_variant v;
    for (int i = 0; i < VKT_V_COUNT; i++) {
        const char *name = vkt_variant_name((vkt_variant)i);
        assert_true(vkt_variant_find(name, &v));
        assert_int_equal(v, i);
        for (const char *c = name; *c; c++)
            assert_true(islower((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '_');
    }
    assert_false(vkt_variant_find("warp drive", &v));
    assert_string_equal(vkt_variant_name(VKT_V_COUNT), "?");
}

static void the_environment_switches_off_by_name(void **state)
{
    (void)state;
    assert_true(vkt_env_set("VKT_NO_TILE", "1") && vkt_env_set("VKT_NO_PACKED_A", "1"));
    assert_true(vkt_env_set("VKT_NO_DIRECT", "0"));
    assert_true(vkt_variants_off() == (VKT_V(TILE) | VKT_V(PACKED_A)));
    assert_true(vkt_env_set("VKT_NO_TILE", NULL) && vkt_env_set("VKT_NO_PACKED_A", NULL));
    assert_true(vkt_env_set("VKT_NO_DIRECT", NULL));
    assert_true(vkt_variants_off() == 0);
}

/* Sets the layout and shape of the output to those of the input, for the ops `copy` and `other`. */
static vkt_result copy_infer(vkt_infer *f)
{
    vkt_out(f, VKT_F32, vkt_in(f, 0)->layout, vkt_in(f, 0)->shape);
    return VKT_OK;
}

/* Emits one dispatch. The variants are TILE and DIRECT, and TILE is cheaper. The kernel's id is 1 + the id of the
 * chosen variant. */
static void copy_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_bind bind[] = { { .t = n->in[0] }, { .t = n->out[0] } };
    const uint32_t spec = 8;
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = (uint16_t)(1 + vkt_pick(e, tile_direct, 2)),
                                       .bind = bind,
                                       .n_bind = 2,
                                       .spec = &spec,
                                       .n_spec = 1,
                                       .groups = { 1, 1, 1 } });
}

static uint32_t n_emitted;           /* how often twice_emit was called */
enum { LAST = 1 + 2 * VKT_V_COUNT }; /* the kernel of the last dispatch of twice_emit */

/* Makes two choices among TILE and DIRECT, and emits a dispatch after each. The kernel's id is 1 + the id of the chosen
 * variant; for the second choice, VKT_V_COUNT is added. The last dispatch has the kernel LAST, and belongs to neither
 * choice. */
static void twice_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_bind bind[] = { { .t = n->in[0] }, { .t = n->out[0] } };
    const uint32_t spec = 8;
    vkt_launch l = { .bind = bind, .n_bind = 2, .spec = &spec, .n_spec = 1, .groups = { 1, 1, 1 } };
    n_emitted++;
    for (uint32_t i = 0; i < 2; i++) {
        l.kernel = (uint16_t)(1 + i * VKT_V_COUNT + vkt_pick(e, tile_direct, 2));
        vkt_dispatch_add(e, &l);
        vkt_pick_end(e);
    }
    l.kernel = LAST;
    vkt_dispatch_add(e, &l);
}

static const vkt_op copy = {
    .name = "copy", .min_in = 1, .max_in = 2, .attr_bytes = 4, .infer = copy_infer, .emit = copy_emit
};
static const vkt_op other = {
    .name = "other", .min_in = 1, .max_in = 2, .attr_bytes = 4, .infer = copy_infer, .emit = copy_emit
};

static const vkt_op twice = {
    .name = "twice", .min_in = 1, .max_in = 2, .attr_bytes = 4, .infer = copy_infer, .emit = twice_emit
};

/* Adds a node of `op` with an input of this layout and shape. Returns the node. */
static const vkt_node *add_node(vkt_graph *g, const vkt_op *op, uint32_t attr, vkt_layout layout, vkt_shape shape)
{
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, layout, shape);
    const vkt_tensor y = vkt_apply(g, op, &x, 1, &attr, NULL);
    assert_int_not_equal(y.id, 0);
    return g->nodes[vkt_value_of(g, y)->producer - 1];
}

static vkt_graph *new_graph(void)
{
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    return g;
}

static void a_key_distinguishes_the_work_of_nodes(void **state)
{
    (void)state;
    vkt_graph *g = new_graph(), *again = new_graph();
    const vkt_shape s = vkt_shape2(4, 6);
    const vkt_node *const nodes[] = { add_node(g, &copy, 7, VKT_ROWS, s),
                                      add_node(g, &copy, 8, VKT_ROWS, s),
                                      add_node(g, &other, 7, VKT_ROWS, s),
                                      add_node(g, &copy, 7, VKT_BATCH_LAST, s),
                                      add_node(g, &copy, 7, VKT_ROWS, vkt_shape2(6, 4)),
                                      add_node(g, &copy, 7, VKT_ROWS, vkt_shape3(4, 6, 1)) };
    for (size_t i = 0; i < VKT_COUNT(nodes); i++)
        for (size_t k = 0; k < i; k++) assert_true(vkt_node_key(nodes[i]) != vkt_node_key(nodes[k]));
    add_node(again, &other, 1, VKT_ROWS, vkt_shape1(3));
    assert_true(vkt_node_key(add_node(again, &copy, 7, VKT_ROWS, s)) == vkt_node_key(nodes[0]));
    vkt_graph_destroy(&g);
    vkt_graph_destroy(&again);
}

static void lowering_obeys_and_notes_every_choice(void **state)
{
    (void)state;
    vkt_graph *g = new_graph();
    const vkt_node *a = add_node(g, &copy, 1, VKT_ROWS, vkt_shape1(8)),
                   *b = add_node(g, &copy, 1, VKT_ROWS, vkt_shape1(9));
    const vkt_tuned tuned[] = { { vkt_node_key(b), VKT_V(DIRECT) } };
    const vkt_limits lim = { .max_groups = 65535,
                             .traits = &vkt_class_traits[VKT_CLASS_OTHER],
                             .choices = { .tuned = tuned, .n_tuned = 1 } };
    vkt_emit e;
    assert_int_equal(vkt_lower(g, &lim, NULL, (vkt_storage){ 0 }, &e), VKT_OK);
    assert_int_equal(e.n_picked, 2);
    assert_int_equal(e.picked[0].node, a->index);
    assert_int_equal(e.picked[0].variant, VKT_V_TILE);
    assert_int_equal(e.picked[1].node, b->index);
    assert_int_equal(e.picked[1].variant, VKT_V_DIRECT);
    assert_true(e.picked[1].usable == (VKT_V(DIRECT) | VKT_V(TILE)));
    assert_int_equal(e.list[0].kernel, 1 + VKT_V_TILE);
    assert_int_equal(e.list[1].kernel, 1 + VKT_V_DIRECT);
    vkt_lower_free(&e);
    vkt_graph_destroy(&g);
}

/* The key of a tuned entry (vkt_tuned) depends on the precision of the program, and on the storage of the node's values
 * (16 or 32 bits). */
static void storage_and_precision_are_parts_of_the_key(void **state)
{
    (void)state;
    vkt_graph *g = new_graph();
    const vkt_node *n = add_node(g, &copy, 1, VKT_BATCH_LAST, vkt_shape2(8, 3));
    const vkt_limits lim = { .max_groups = 65535, .traits = &vkt_class_traits[VKT_CLASS_OTHER] };
    uint64_t keys[5];
    bool half[8] = { 0 };
    /* i = 0, 1, 2: f32, f16, bf16 with a 32-bit input. i = 3, 4: f16, bf16 with a 16-bit input. */
    for (int i = 0; i < 5; i++) {
        const vkt_storage storage = { (vkt_precision)(i < 3 ? i : i - 2), half };
        vkt_emit e;
        half[n->in[0].id] = i >= 3;
        assert_int_equal(vkt_lower(g, &lim, NULL, storage, &e), VKT_OK);
        keys[i] = e.picked[0].key;
        vkt_lower_free(&e);
        for (int k = 0; k < i; k++) assert_true(keys[k] != keys[i]);
    }
    assert_true(keys[0] == vkt_node_key(n));
    vkt_graph_destroy(&g);
}

static void a_choice_without_memory_is_an_error(void **state)
{
    (void)state;
    vkt_graph *g = new_graph();
    add_node(g, &copy, 1, VKT_ROWS, vkt_shape1(8));
    const vkt_limits lim = { .max_groups = 65535, .traits = &vkt_class_traits[VKT_CLASS_OTHER] };
    vkt_emit e;
    vkt_test_fail_allocation(1);
    assert_int_equal(vkt_lower(g, &lim, NULL, (vkt_storage){ 0 }, &e), VKT_E_NOMEM);
    assert_true(vkt_test_allocation_failed());
    vkt_test_fail_allocation(0);
    vkt_graph_destroy(&g);
}

/* Each choice avoids the kernels that are not built. The second choice prefers variants that did not fail in the first
 * one, but it can still take the others. `first` and `second` are the wanted variants; VKT_V_COUNT: the node is
 * refused. `emitted`: how often the node is lowered. */
static void a_choice_avoids_kernels_that_are_not_built(void **state)
{
    (void)state;
    enum { TILE = VKT_V_TILE, DIRECT = VKT_V_DIRECT, NONE = VKT_V_COUNT };
    static const struct {
        uint32_t absent[3]; /* kernels; 0: none */
        uint32_t first, second, emitted;
    } cases[] = {
        { { 0 }, TILE, TILE, 1 },
        { { 1 + TILE }, DIRECT, DIRECT, 2 },
        { { 1 + NONE + TILE }, TILE, DIRECT, 2 },
        { { 1 + TILE, 1 + NONE + TILE }, DIRECT, DIRECT, 2 },
        { { 1 + TILE, 1 + NONE + DIRECT }, DIRECT, TILE, 3 },
        { { 1 + TILE, 1 + DIRECT }, NONE, NONE, 4 },
        { { 1 + NONE + TILE, 1 + NONE + DIRECT }, NONE, NONE, 4 },
        { { LAST }, NONE, NONE, 2 },
    };
    vkt_graph *g = new_graph();
    add_node(g, &twice, 1, VKT_ROWS, vkt_shape1(8));
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        bool built[VKT_K_END];
        const vkt_limits lim = { .max_groups = 65535, .traits = &vkt_class_traits[VKT_CLASS_OTHER], .built = built };
        vkt_emit e;
        for (size_t k = 0; k < VKT_K_END; k++) built[k] = true;
        for (size_t k = 0; k < 3; k++)
            if (cases[i].absent[k]) built[cases[i].absent[k]] = false;
        n_emitted = 0;
        const vkt_result r = vkt_lower(g, &lim, NULL, (vkt_storage){ 0 }, &e);
        assert_int_equal(n_emitted, cases[i].emitted);
        assert_int_equal(r, cases[i].first == NONE ? VKT_E_UNSUPPORTED : VKT_OK);
        if (r != VKT_OK) continue;
        assert_int_equal(e.n_picked, 2);
        assert_int_equal(e.picked[0].variant, cases[i].first);
        assert_int_equal(e.picked[1].variant, cases[i].second);
        vkt_lower_free(&e);
    }
    vkt_graph_destroy(&g);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_cheapest_is_chosen_and_of_equals_the_first),
        TEST(what_is_off_is_not_chosen_while_another_is_left),
        TEST(forced_beats_tuned_and_tuned_beats_cheap),
        TEST(names_are_unique_and_found),
        TEST(the_environment_switches_off_by_name),
        TEST(a_key_distinguishes_the_work_of_nodes),
        TEST(lowering_obeys_and_notes_every_choice),
        TEST(storage_and_precision_are_parts_of_the_key),
        TEST(a_choice_without_memory_is_an_error),
        TEST(a_choice_avoids_kernels_that_are_not_built),
    };
    return cmocka_run_group_tests_name("selection among variants", tests, NULL, NULL);
}
