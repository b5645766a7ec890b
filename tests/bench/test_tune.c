/* Tests the search of vkt-bench --tune with a small network. VKT_TRAITS makes the engine prefer the variant `shared`
 * (tiles in shared memory). The tests set the times themselves, so that this variant with one of two tiles must win.
 * The tests check that a new context uses the tuning file, and ignores a file that it cannot use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "bench/tune.h"
#include "kernel/tuning.h"
#include "record/record.h"
#include "support/host.h"
#include "support/temp_dir.h"

enum { MOST = 16, STEPS = 3 };

static vkt_temp_dir dir; /* $XDG_CACHE_HOME of this program */
static unsigned warnings;
static char logged[512];
static char file[512]; /* path of the tuning file; "": not known yet */
static const vkt_tile quick = { 32, 32, 4, 4 }, quick_low = { 16, 64, 4, 4 };

static void keep(void *user, vkt_log_level level, const char *line)
{
    (void)user;
    if (strstr(line, "validation:")) fail_msg("%s", line);
    if (level == VKT_LOG_ERROR) print_error("%s\n", line);
    if (level > VKT_LOG_WARN || !strstr(line, "tuning")) return;
    warnings++;
    snprintf(logged, sizeof logged, "%s", line);
}

static vkt_ctx *open_ctx(void)
{
    vkt_host h = vkt_test_host();
    vkt_ctx *ctx = NULL;
    h.log = keep;
    warnings = 0;
    const vkt_result r = vkt_ctx_create(NULL, &h, &ctx);
#ifndef VKT_REQUIRE_DEVICE
    if (r == VKT_E_NO_LOADER || r == VKT_E_NO_DEVICE) skip();
#endif
    assert_int_equal(r, VKT_OK);
    return ctx;
}

/* ---- the network ---- */

static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    x = vkt_nn_conv2d(b, "conv", x, &(vkt_nn_conv2d_params){ .out_channels = 64, .kernel = { 3 } });
    return vkt_nn_linear(b, "fc", vkt_nn_flatten(b, vkt_nn_relu(b, x)), &(vkt_nn_linear_params){ .out_features = 10 });
}

static const bench_net net = { .name = "small",
                               .what = "a convolution and a layer",
                               .batch = 16,
                               .sample = { 3, { 3, 6, 6 } },
                               .classes = 10,
                               .optimizer = { .kind = VKT_SGD },
                               .lr = 0.01f,
                               .forward = forward };

/* Is a bench_time_fn: runs the step, and returns fixed times. A node of the variant `shared` takes 60 ns with one of
 * the quick tiles, and 98 ns with another tile. A node of another variant takes 99 ns. */
static vkt_result stated_times(bench *b, const bench_step *s, double *node_ns)
{
    uint64_t run;
    (void)b;
    VKT_TRY(vkt_program_run(s->program, &s->run, &run));
    VKT_TRY(vkt_program_wait(s->program));
    const vkt_choices *c = &s->program->ctx->limits.choices;
    assert_true(c->n_tuned == 0);
    for (size_t i = 0; i < s->program->lowered.n_picked; i++) {
        const vkt_picked *p = &s->program->lowered.picked[i];
        const bool found = vkt_tile_is(p->tile, quick) || vkt_tile_is(p->tile, quick_low);
        node_ns[p->node] += p->variant != VKT_V_SHARED ? 99 : found ? 60 : 98;
    }
    return VKT_OK;
}

static void tune(void)
{
    bench_options o = { .min_ns = 1 };
    bench b = { .ctx = open_ctx(), .o = &o };
    assert_int_equal(bench_tune_net(&b, &net, stated_times), VKT_OK);
    vkt_ctx_destroy(&b.ctx);
}

/* The results of train() with a new context. */
typedef struct outcome {
    size_t n;
    vkt_picked picked[MOST]; /* variant and tile of each node that can use the variant `shared` */
    float losses[STEPS];
    unsigned tiles_printed; /* number of nodes that vkt_program_print shows with `shared` and the tile `quick` */
} outcome;

static outcome train(void)
{
    outcome o = { 0 };
    vkt_ctx *ctx = open_ctx();
    bench_step s;
    assert_int_equal(bench_step_create(ctx, &net, VKT_PRECISION_F32, false, &s), VKT_OK);
    for (size_t i = 0; i < s.program->lowered.n_picked; i++) {
        const vkt_picked *p = &s.program->lowered.picked[i];
        assert_true(o.n < MOST);
        if (p->usable & VKT_V(SHARED)) o.picked[o.n++] = *p;
    }
    for (int i = 0; i < STEPS; i++) {
        vkt_metrics m;
        uint64_t run;
        assert_int_equal(vkt_program_run(s.program, &s.run, &run), VKT_OK);
        assert_int_equal(vkt_program_metrics(s.program, run, &m), VKT_OK);
        o.losses[i] = m.loss;
    }
    char *text;
    assert_int_equal(vkt_program_print(s.program, &text), VKT_OK);
    for (const char *at = text; (at = strstr(at, " by shared 32x32,4x4")); at++) o.tiles_printed++;
    vkt_text_release(&text);
    bench_step_destroy(&s);
    vkt_ctx_destroy(&ctx);
    return o;
}

/* ---- the file ---- */

/* Reads the tuning file as a new context does. Returns the number of entries, and sets `file`. */
static size_t entries(vkt_tuned out[MOST])
{
    vkt_ctx *ctx = open_ctx();
    char *at;
    assert_int_equal(vkt_tuning_use(ctx), VKT_OK);
    const size_t n = ctx->limits.choices.n_tuned;
    assert_true(n <= MOST);
    if (n) memcpy(out, ctx->limits.choices.tuned, n * sizeof *out);
    assert_int_equal(vkt_tuning_path(ctx, &at), VKT_OK);
    snprintf(file, sizeof file, "%s", at);
    vkt_free(&ctx->host, at);
    vkt_ctx_destroy(&ctx);
    return n;
}

static void the_best_tile_is_written_and_used(void **state)
{
    (void)state;
    vkt_tuned list[MOST];
    const outcome before = train();
    unsigned with_tile = 0, own = 0;
    /* At least three of these nodes can use `shared`: the convolution, the layer, and their gradients. */
    assert_true(before.n >= 3 && warnings == 0);
    for (size_t i = 0; i < before.n; i++) own += vkt_tile_is(before.picked[i].tile, quick);
    tune();
    assert_int_equal(warnings, 0);
    const size_t n = entries(list);
    for (size_t i = 0; i < n; i++) {
        with_tile += list[i].tile.m != 0;
        assert_true(list[i].tile.m == 0 || vkt_tile_is(list[i].tile, quick) || vkt_tile_is(list[i].tile, quick_low));
    }
    assert_true(with_tile > 0 && before.tiles_printed == own);
    const outcome after = train();
    assert_int_equal(warnings, 0);
    assert_int_equal(after.n, before.n);
    unsigned found = 0;
    for (size_t i = 0; i < after.n; i++) {
        assert_int_equal(after.picked[i].variant, VKT_V_SHARED);
        assert_true(vkt_tile_is(after.picked[i].tile, quick) || vkt_tile_is(after.picked[i].tile, quick_low));
        found += vkt_tile_is(after.picked[i].tile, quick);
    }
    assert_true(found > own && after.tiles_printed == found);
    for (int i = 0; i < STEPS; i++) /* another tile adds in another order, so the losses may differ by rounding */
        if (!(fabsf(after.losses[i] - before.losses[i]) <= 1e-5f * before.losses[i]))
            fail_msg("step %d: %g, want %g", i, (double)after.losses[i], (double)before.losses[i]);
}

/* Checks that the tuning file does not have a variant that is switched off. Another variant runs instead, and the time
 * of this other variant must not count for the variant that is off. */
static void a_variant_that_is_off_is_not_measured(void **state)
{
    (void)state;
    vkt_tuned list[MOST];
    setenv("VKT_NO_SHARED", "1", 1);
    tune();
    unsetenv("VKT_NO_SHARED");
    const size_t n = entries(list);
    assert_true(n >= 3);
    for (size_t i = 0; i < n; i++) assert_true(list[i].variants && !(list[i].variants & VKT_V(SHARED)));
}

/* Writes entries with a variant or a tile that the node of the entry cannot use. Another version of the library could
 * have written such entries. Checks that a context ignores all these entries and logs one message. */
static void entries_that_do_not_fit_are_ignored(void **state)
{
    (void)state;
    static const vkt_tile none = { 48, 48, 4, 4 };
    vkt_tuned list[MOST];
    tune();
    const outcome before = train();
    const size_t n = entries(list);
    for (int kind = 0; kind < 2; kind++) {
        vkt_ctx *ctx = open_ctx();
        for (size_t i = 0; i < n; i++)
            list[i] = kind ? (vkt_tuned){ list[i].key, VKT_V(OWNED) } : (vkt_tuned){ list[i].key, VKT_V(SHARED), none };
        assert_int_equal(vkt_tuning_add(ctx, list, n), VKT_OK);
        vkt_ctx_destroy(&ctx);
        const outcome o = train();
        assert_int_equal(warnings, 1);
        assert_non_null(strstr(logged, kind ? "cannot use its variant" : "cannot use its tile"));
        assert_int_equal(o.n, before.n);
        for (int i = 0; i < STEPS; i++) assert_true(fabsf(o.losses[i] - before.losses[i]) <= 1e-5f * before.losses[i]);
    }
}

/* An entry may have several variants, but has only one tile. If the variant SHARED cannot use the tile, the tile may
 * belong to the variant COOP. Checks that a context does not warn in this case. */
static void a_tile_of_another_variant_is_no_fault(void **state)
{
    (void)state;
    vkt_tuned list[MOST];
    tune();
    const size_t n = entries(list);
    assert_true(n > 0);
    vkt_ctx *ctx = open_ctx();
    for (size_t i = 0; i < n; i++) list[i] = (vkt_tuned){ list[i].key, VKT_V(SHARED) | VKT_V(COOP), { 48, 48, 4, 4 } };
    assert_int_equal(vkt_tuning_add(ctx, list, n), VKT_OK);
    vkt_ctx_destroy(&ctx);
    const outcome o = train();
    assert_int_equal(warnings, 0);
    for (size_t i = 0; i < o.n; i++) assert_int_equal(o.picked[i].variant, VKT_V_SHARED);
}

static void a_damaged_line_makes_the_file_useless(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_tuned list[MOST];
    void *text;
    size_t bytes;
    tune();
    assert_true(entries(list) > 0);
    assert_int_equal(vkt_file_read(&h, file, 1 << 20, &text, &bytes), VKT_OK);
    char *tile = strstr(text, "32x32,4x4");
    assert_non_null(tile);
    tile[1] = '3';
    assert_int_equal(vkt_file_write(&h, file, text, bytes), VKT_OK);
    vkt_free(&h, text);
    const outcome o = train();
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(logged, "truncated or damaged: ignored"));
    assert_true(o.n >= 3);
}

static int begin(void **state)
{
    (void)state;
    dir = vkt_temp_dir_make();
    /* Switches off the variants whose kernels compile slowly. */
    static const char *const off[] = { "VKT_NO_WINOGRAD", "VKT_NO_FFT8",  "VKT_NO_FFT13", "VKT_NO_FFT14",
                                       "VKT_NO_FFT15",    "VKT_NO_FFT16", "VKT_NO_SPAN" };
    for (size_t i = 0; i < VKT_COUNT(off); i++)
        if (setenv(off[i], "1", 1)) return -1;
    return setenv("XDG_CACHE_HOME", dir.path, 1) ||
           setenv("VKT_TRAITS", "shared_pays=1,shared_cost=0.001,groups_shared=1", 1);
}

static int end(void **state)
{
    (void)state;
    vkt_temp_dir_remove(&dir);
    return 0;
}

static int remove_file(void **state)
{
    if (*file) remove(file);
    return vkt_test_teardown(state);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, remove_file)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_best_tile_is_written_and_used),     TEST(a_variant_that_is_off_is_not_measured),
        TEST(entries_that_do_not_fit_are_ignored),   TEST(a_tile_of_another_variant_is_no_fault),
        TEST(a_damaged_line_makes_the_file_useless),
    };
    return cmocka_run_group_tests_name("tuning search", tests, begin, end);
}
