/* Tests the program vkt-info as its users run it. The limits, traits and variants that it prints must be those that a
 * vkt_program uses on this device. */
#define _XOPEN_SOURCE 700 /* setenv */
#include "samples/program.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "bench/schema.h"
#include "ir/ir.h"
#include "kernel/tuning.h"

#define CASE "matmul (512,64) (64,512)"
#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_INFO_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })

/* Makes the rig's folder the cache directory of the program and of this test. */
static void use_own_cache(const rig *r)
{
    assert_int_equal(setenv("XDG_CACHE_HOME", r->dir.path, 1), 0);
}

/* Runs the program. Returns the text that it printed. */
static char *text_of(const rig *r, const char *const *env, const char *const *args)
{
    run done = program_finish(r, program_start(r, VKT_INFO_PROGRAM, env, args));
    if (done.status != 0) fail_msg("%s", done.err);
    vkt_free(&r->h, done.err);
    return done.out;
}

/* Runs the program on CASE. Returns the file of --json, which must conform to the schema. */
static json_t *report_of(const rig *r, const char *const *env)
{
    char why[256];
    const char *const args[] = { CASE, "--json", "report", NULL };
    vkt_free(&r->h, text_of(r, env, args));
    if (!schema_fits("info", vkt_temp_dir_file(&r->dir, "report"), why)) fail_msg("%s", why);
    return program_json(r, "report");
}

/* Returns the report's entry for the matrix product of CASE: the chosen variant, and the usable ones. */
static const json_t *choice_of(const json_t *report)
{
    const json_t *work = json_array_get(json_object_get(report, "work"), 0);
    const json_t *choice = json_array_get(json_object_get(work, "choices"), 0);
    assert_string_equal(json_string_value(json_object_get(work, "name")), CASE);
    assert_string_equal(json_string_value(json_object_get(choice, "case")), "(512,64) (64,512)");
    return choice;
}

static bool holds(const json_t *list, const char *text)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_array_get(list, i)), text) == 0) return true;
    return false;
}

static void says(char *text, const char *part, const rig *r)
{
    const bool found = strstr(text, part);
    if (!found) print_error("want \"%s\" in \"%s\"\n", part, text);
    vkt_free(&r->h, text);
    assert_true(found);
}

/* Returns a graph with the matrix product of CASE. */
static vkt_graph *product(const rig *r)
{
    vkt_graph *g;
    assert_int_equal(vkt_graph_create(&r->h, &g), VKT_OK);
    const vkt_tensor a = vkt_input(g, "a", VKT_F32, VKT_ROWS, vkt_shape2(512, 64));
    const vkt_tensor b = vkt_input(g, "b", VKT_F32, VKT_ROWS, vkt_shape2(64, 512));
    vkt_keep(g, vkt_matmul(g, a, b, false, false));
    return g;
}

/* Traits that VKT_TRAITS sets are marked. An unknown name is an error, and the message lists the names. */
static void traits_are_printed(void **state)
{
    rig *r = rig_of(state);
    use_own_cache(r);
    const char *const env[] = { "VKT_TRAITS=items_move=7", NULL };
    json_t *report = report_of(r, env);
    const json_t *traits = json_object_get(report, "traits");
    for (uint32_t i = 0; i < VKT_TRAIT_COUNT; i++) {
        const json_t *t = json_object_get(traits, vkt_trait_name(i));
        const bool set = i == VKT_T_items_move;
        assert_int_equal(json_is_true(json_object_get(t, "set")), set);
        assert_true(json_number_of(t, "value") == (set ? 7 : vkt_trait_value(r->ctx->limits.traits, i)));
    }
    assert_int_equal(json_object_size(traits), VKT_TRAIT_COUNT);
    assert_string_equal(json_string_value(json_object_get(report, "class")), vkt_class_name(r->ctx->device_class));
    json_decref(report);
    says(text_of(r, env, (const char *const[]){ CASE, NULL }), "7  VKT_TRAITS", r);
    const char *const wrong[] = { "VKT_TRAITS=items=7", NULL };
    run done = program_finish(r, program_start(r, VKT_INFO_PROGRAM, wrong, (const char *const[]){ CASE, NULL }));
    assert_int_not_equal(done.status, 0);
    says(done.err, "items_elementwise", r);
    vkt_free(&r->h, done.out);
}

static void limits_and_choices_are_those_of_programs(void **state)
{
    rig *r = rig_of(state);
    use_own_cache(r);
    json_t *report = report_of(r, NULL);
    vkt_device_limits limits;
    vkt_ctx_limits(r->ctx, &limits);
    const json_t *l = json_object_get(report, "limits"), *choice = choice_of(report);
    assert_true(limits.cores > 0 && json_number_of(l, "cores") == limits.cores);
    assert_true(json_number_of(l, "subgroup_size") == limits.subgroup_size);
    assert_true(json_number_of(l, "max_binding_bytes") == (double)limits.max_binding_bytes);
    assert_true(json_number_of(l, "timestamp_ns") == limits.timestamp_ns);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(json_integer_value(json_array_get(json_object_get(l, "matrix"), i)), limits.matrix[i]);
        assert_int_equal(json_integer_value(json_array_get(json_object_get(l, "matrix_bf16"), i)),
                         limits.matrix_bf16[i]);
    }
    assert_true(json_number_of(report, "device") == vkt_ctx_device(r->ctx)->index);

    vkt_graph *g = product(r);
    vkt_program *p;
    char *text, want[64];
    assert_int_equal(vkt_program_create(r->ctx, g, NULL, NULL, &p), VKT_OK);
    assert_int_equal(vkt_program_print(p, &text), VKT_OK);
    const char *variant = json_string_value(json_object_get(choice, "variant"));
    snprintf(want, sizeof want, " by %s\n", variant);
    assert_non_null(strstr(text, want));
    assert_true(holds(json_object_get(choice, "usable"), variant));
    assert_true(json_is_false(json_object_get(choice, "tuned")));
    vkt_text_release(&text);
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
    json_decref(report);
}

static void switched_off_and_tuned_variants_show(void **state)
{
    rig *r = rig_of(state);
    use_own_cache(r);
    const char *const env[] = { "VKT_NO_PACKED=1", "VKT_NO_SHARED=1", NULL }, *const args[] = { CASE, NULL };
    json_t *report = report_of(r, env);
    const char *other = json_string_value(json_object_get(choice_of(report), "variant"));
    assert_true(holds(json_object_get(report, "off"), "packed") && holds(json_object_get(report, "off"), "shared"));
    assert_true(strcmp(other, "packed") != 0 && strcmp(other, "shared") != 0);
    says(text_of(r, env, args), "packed is switched off", r);
    json_decref(report);

    vkt_ctx *ctx;
    char *path;
    assert_int_equal(vkt_ctx_create(NULL, &r->h, &ctx), VKT_OK);
    vkt_graph *g = product(r);
    const vkt_tuned tuned = { vkt_node_key(g->nodes[0]), VKT_V(PACKED_A) };
    assert_int_equal(vkt_tuning_add(ctx, &tuned, 1), VKT_OK);
    assert_int_equal(vkt_tuning_path(ctx, &path), VKT_OK);
    report = report_of(r, NULL);
    const json_t *file = json_object_get(json_object_get(report, "files"), "tuning");
    assert_string_equal(json_string_value(json_object_get(file, "path")), path);
    assert_string_equal(json_string_value(json_object_get(file, "state")), "used");
    assert_true(json_number_of(report, "tuned_nodes") == 1 && json_number_of(file, "bytes") > 0);
    assert_string_equal(json_string_value(json_object_get(choice_of(report), "variant")), "packed_a");
    assert_true(json_is_true(json_object_get(choice_of(report), "tuned")));
    says(text_of(r, NULL, args), "packed_a (tuned)", r);
    json_decref(report);

    const char *const none[] = { "VKT_NO_TUNING=1", "VKT_NO_PIPELINE_CACHE=1", NULL };
    report = report_of(r, none);
    file = json_object_get(json_object_get(report, "files"), "tuning");
    assert_string_equal(json_string_value(json_object_get(file, "state")), "off");
    assert_true(json_number_of(report, "tuned_nodes") == 0 && json_number_of(file, "bytes") > 0);
    says(text_of(r, none, args), "switched off in the environment", r);
    json_decref(report);

    assert_int_equal(vkt_file_write(&r->h, path, "vktrain tuning 1\n", 17), VKT_OK);
    report = report_of(r, NULL);
    file = json_object_get(json_object_get(report, "files"), "tuning");
    assert_string_equal(json_string_value(json_object_get(file, "state")), "ignored");
    assert_true(json_is_false(json_object_get(choice_of(report), "tuned")));
    json_decref(report);
    vkt_graph_destroy(&g);
    vkt_free(&ctx->host, path);
    vkt_ctx_destroy(&ctx);
}

/* vkt-info writes each case as a line for a shapes file of vkt-bench, so integer inputs must have a bound above 0. A
 * given case keeps its own bound. */
static void integers_have_their_bounds(void **state)
{
    rig *r = rig_of(state);
    use_own_cache(r);
    const char *const args[] = { "linear_quantized (4,576) u32<4294967295(5202) - rows=34 columns=576", NULL };
    char *text = text_of(r, NULL, args);
    assert_non_null(strstr(text, "u32<4294967295("));
    assert_null(strstr(text, "u32<0("));
    vkt_free(&r->h, text);
    const char *const network[] = { "mnist-b128", NULL };
    text = text_of(r, NULL, network);
    assert_null(strstr(text, "<0("));
    vkt_free(&r->h, text);
}

static void it_prints_devices_features_and_all_networks(void **state)
{
    rig *r = rig_of(state);
    use_own_cache(r);
    const char *const none[] = { NULL }, *const list[] = { "--list-devices", NULL };
    const char *const parts[] = { vkt_ctx_device(r->ctx)->driver,
                                  "feature timelineSemaphore",
                                  "texel loads",
                                  "one binding",
                                  "memory limit of a context",
                                  "pipeline cache",
                                  "\nmnist-b128: ",
                                  "(128,32,13,13)b (64,32,5,5) (64)",
                                  "\ntransformer-b4: ",
                                  "mlp_mse" };
    char *text = text_of(r, NULL, none);
    for (size_t i = 0; i < VKT_COUNT(parts); i++)
        if (!strstr(text, parts[i])) fail_msg("'%s' is not in: %s", parts[i], text);
    vkt_free(&r->h, text);
    text = text_of(r, NULL, list);
    assert_non_null(strstr(text, vkt_ctx_device(r->ctx)->name));
    assert_null(strstr(text, "limits"));
    vkt_free(&r->h, text);
}

static void dash_is_standard_output(void **state)
{
    rig *r = rig_of(state);
    char why[256];
    run done =
        program_finish(r, program_start(r, VKT_INFO_PROGRAM, NULL, (const char *const[]){ CASE, "--json", "-", NULL }));
    assert_int_equal(done.status, 0);
    assert_non_null(strstr(done.err, vkt_ctx_device(r->ctx)->name)); /* the text goes to stderr */
    run_forget(r, &done);
    if (!schema_fits("info", vkt_temp_dir_file(&r->dir, "out"), why)) fail_msg("%s", why);
}

static void errors_are_explained(void **state)
{
    rig *r = rig_of(state);
    EXPECT(r, 2, "--list-devices goes alone", "--list-devices", "mnist-b128");
    EXPECT(r, 2, "--speed", "--speed");
    EXPECT(r, 1, "no such card", "--device", "no such card");
    EXPECT(r, 1, "got 'warp'", "warp");
    EXPECT(r, 1, "'warp' is no op", "warp (3,3)");
    EXPECT(r, 1, "conv2d: want 2 to 3 inputs", "conv2d (3,3)");
    EXPECT(r, 1, "none/report", CASE, "--json", "none/report");
}

static void help_and_version(void **state)
{
    rig *r = rig_of(state);
    says(text_of(r, NULL, (const char *const[]){ "-h", NULL }), "--list-devices", r);
    says(text_of(r, NULL, (const char *const[]){ "--version", NULL }), "vktrain ", r);
}

static void a_wrong_case_has_one_message(void **state)
{
    rig *r = rig_of(state);
    const char *const args[] = { "conv9d (1,2)", NULL };
    use_own_cache(r);
    run done = program_finish(r, program_start(r, VKT_INFO_PROGRAM, NULL, args));
    assert_int_equal(done.status, 1);
    assert_string_equal(done.err, "vkt-info: 'conv9d' is no op (vkt-bench --list prints them)\n");
    run_forget(r, &done);
}

int main(void)
{
    setenv("LP_NATIVE_VECTOR_WIDTH", "256", 0); /* else vkt-info might choose wider vectors than this test uses */
    const struct CMUnitTest tests[] = {
        rig_test(limits_and_choices_are_those_of_programs),
        rig_test(traits_are_printed),
        rig_test(switched_off_and_tuned_variants_show),
        rig_test(it_prints_devices_features_and_all_networks),
        rig_test(integers_have_their_bounds),
        rig_test(dash_is_standard_output),
        rig_test(errors_are_explained),
        rig_test(a_wrong_case_has_one_message),
        rig_test(help_and_version),
    };
    return cmocka_run_group_tests_name("vkt-info", tests, NULL, NULL);
}
