/* Tests folders of PEFT: a folder that peft wrote, a round trip, options that are refused, and damaged files. */
#include "train/rig.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "io/safetensors.h"
#include "vktrain/vktrain.h"

#define CHECK(call) assert_int_equal(call, VKT_OK)
#define GOLDEN VKT_TEST_DIR "/golden/peft"

/* The adapters of golden/make_peft_golden.py, in the order of their names, and one parameter that is no adapter. */
static const struct {
    const char *name;
    uint32_t rows, columns;
} parameters[] = {
    { "model.layers.0.mlp.down_proj.lora_A.weight", 2, 20 },
    { "model.layers.0.mlp.down_proj.lora_B.weight", 12, 2 },
    { "model.layers.0.self_attn.q_proj.lora_A.weight", 2, 12 },
    { "model.layers.0.self_attn.q_proj.lora_B.weight", 12, 2 },
    { "model.layers.0.self_attn.v_proj.lora_A.weight", 2, 12 },
    { "model.layers.0.self_attn.v_proj.lora_B.weight", 4, 2 },
    { "model.layers.1.mlp.down_proj.lora_A.weight", 2, 20 },
    { "model.layers.1.mlp.down_proj.lora_B.weight", 12, 2 },
    { "model.layers.1.self_attn.q_proj.lora_A.weight", 2, 12 },
    { "model.layers.1.self_attn.q_proj.lora_B.weight", 12, 2 },
    { "model.layers.1.self_attn.v_proj.lora_A.weight", 2, 12 },
    { "model.layers.1.self_attn.v_proj.lora_B.weight", 4, 2 },
    { "head.weight", 3, 2 },
};
enum { N = VKT_COUNT(parameters), ADAPTERS = N - 1, MOST = 64 };

static const char *const targets[] = { "q_proj", "v_proj", "down_proj" };
static const vkt_lora_params lora = { .targets = targets, .n_targets = 3, .rank = 2, .alpha = 6, .dropout = 0.05f };

/* Returns element i of tensor t in the golden file. */
static float golden(uint32_t t, uint32_t i)
{
    return (float)((37 * (int)t + 11 * (int)i) % 61 - 30) / 64;
}

/* Makes a store of the first n parameters. Every element is `fill`. */
static vkt_store *make_store(const rig *r, uint32_t n, float fill)
{
    vkt_graph *g;
    vkt_store *s;
    float x[MOST];
    for (uint32_t i = 0; i < MOST; i++) x[i] = fill;
    CHECK(vkt_graph_create(&r->h, &g));
    for (uint32_t t = 0; t < n; t++)
        vkt_param(g, parameters[t].name, vkt_shape2(parameters[t].rows, parameters[t].columns));
    CHECK(vkt_store_create(r->ctx, g, &s));
    vkt_graph_destroy(&g);
    for (uint32_t t = 0; t < n; t++) CHECK(vkt_store_write(s, t, VKT_PART_VALUE, x));
    return s;
}

static void expect_golden(vkt_store *s)
{
    float x[MOST];
    for (uint32_t t = 0; t < ADAPTERS; t++) {
        CHECK(vkt_store_read(s, t, VKT_PART_VALUE, x));
        for (uint32_t i = 0; i < parameters[t].rows * parameters[t].columns; i++) assert_true(x[i] == golden(t, i));
    }
}

static void expect_all(vkt_store *s, uint32_t n, float fill)
{
    float x[MOST];
    for (uint32_t t = 0; t < n; t++) {
        CHECK(vkt_store_read(s, t, VKT_PART_VALUE, x));
        for (uint32_t i = 0; i < parameters[t].rows * parameters[t].columns; i++) assert_true(x[i] == fill);
    }
}

static void a_folder_of_peft_is_read(void **state)
{
    rig *r = rig_of(state);
    vkt_peft_config *c;
    CHECK(vkt_peft_config_open(&r->h, GOLDEN, &c));
    const vkt_lora_params *got = vkt_peft_config_lora(c);
    assert_int_equal(got->rank, 2);
    assert_true(got->alpha == 6 && got->dropout == 0.05f);
    assert_int_equal(got->n_targets, 3);
    for (uint32_t i = 0; i < 3; i++) assert_string_equal(got->targets[i], targets[i]);
    assert_string_equal(vkt_peft_config_base(c), "");
    vkt_store *s = make_store(r, N, 7);
    CHECK(vkt_peft_load(&r->h, s, got, GOLDEN));
    expect_golden(s);
    float head[6];
    CHECK(vkt_store_read(s, ADAPTERS, VKT_PART_VALUE, head));
    for (uint32_t i = 0; i < 6; i++) assert_true(head[i] == 7);
    vkt_store_destroy(&s);
    vkt_peft_config_destroy(&c);
    assert_null(c);
}

static void what_is_saved_is_loaded(void **state)
{
    rig *r = rig_of(state);
    const char *folder = vkt_temp_dir_file(&r->dir, "adapter");
    vkt_store *s = make_store(r, N, 7);
    vkt_peft_config *c;
    CHECK(vkt_peft_load(&r->h, s, &lora, GOLDEN));
    const vkt_peft_params p = { .lora = lora, .base_model = "a \"model\"" };
    for (int twice = 0; twice < 2; twice++) CHECK(vkt_peft_save(&r->h, s, VKT_PART_VALUE, &p, folder));
    vkt_store_destroy(&s);
    CHECK(vkt_peft_config_open(&r->h, folder, &c));
    assert_string_equal(vkt_peft_config_base(c), "a \"model\"");
    assert_int_equal(vkt_peft_config_lora(c)->n_targets, 3);
    assert_string_equal(vkt_peft_config_lora(c)->targets[2], "down_proj");
    assert_true(vkt_peft_config_lora(c)->dropout == 0.05f);
    s = make_store(r, N, 7);
    CHECK(vkt_peft_load(&r->h, s, vkt_peft_config_lora(c), folder));
    expect_golden(s);
    vkt_peft_config_destroy(&c);
    /* If a target has a '*', the names of all layers with an adapter are saved instead. */
    static const char *const star[] = { "*_proj" };
    const vkt_peft_params q = { .lora = { .targets = star, .n_targets = 1, .rank = 2, .alpha = 6 } };
    CHECK(vkt_peft_save(&r->h, s, VKT_PART_VALUE, &q, folder));
    CHECK(vkt_peft_config_open(&r->h, folder, &c));
    assert_string_equal(vkt_peft_config_base(c), "");
    assert_int_equal(vkt_peft_config_lora(c)->n_targets, ADAPTERS / 2);
    assert_string_equal(vkt_peft_config_lora(c)->targets[1], "model.layers.0.self_attn.q_proj");
    vkt_peft_config_destroy(&c);
    vkt_store_destroy(&s);
}

/* A dropout of VKT_ZERO is saved as 0. An alpha of 0 is saved as its default, which is the rank. */
static void zeros_are_saved_as_what_they_mean(void **state)
{
    rig *r = rig_of(state);
    vkt_lora_params p = lora;
    vkt_store *s = make_store(r, ADAPTERS, 7);
    vkt_peft_config *c;
    p.dropout = VKT_ZERO;
    p.alpha = 0;
    CHECK(vkt_peft_save(&r->h, s, VKT_PART_VALUE, &(vkt_peft_params){ .lora = p }, r->dir.path));
    CHECK(vkt_peft_config_open(&r->h, r->dir.path, &c));
    assert_true(vkt_peft_config_lora(c)->dropout == 0);
    assert_true(vkt_peft_config_lora(c)->alpha == 2); /* the rank */
    vkt_peft_config_destroy(&c);
    CHECK(vkt_peft_load(&r->h, s, &p, r->dir.path));
    vkt_store_destroy(&s);
}

/* VKT_PART_PUBLISHED has the averages of vkt_publish. */
static void averages_are_saved(void **state)
{
    rig *r = rig_of(state);
    vkt_graph *g;
    vkt_store *s;
    CHECK(vkt_graph_create(&r->h, &g));
    const vkt_tensor a = vkt_param(g, "q_proj.lora_A.weight", vkt_shape2(2, 12)),
                     b = vkt_param(g, "q_proj.lora_B.weight", vkt_shape2(12, 2));
    CHECK(vkt_backward(g, vkt_add(g, vkt_mean(g, a), vkt_mean(g, b))));
    CHECK(vkt_update(g, &(vkt_optimizer){ .kind = VKT_SGD }));
    CHECK(vkt_publish(g, 0.5));
    CHECK(vkt_store_create(r->ctx, g, &s));
    vkt_graph_destroy(&g);
    float x[24], got[24];
    for (uint32_t part = 0; part < 2; part++)
        for (uint32_t k = 0; k < 2; k++) {
            for (uint32_t i = 0; i < 24; i++) x[i] = golden(2 * part + k, i);
            CHECK(vkt_store_write(s, k, part ? VKT_PART_PUBLISHED : VKT_PART_VALUE, x));
        }
    CHECK(vkt_peft_save(&r->h, s, VKT_PART_PUBLISHED, &(vkt_peft_params){ .lora = lora }, r->dir.path));
    CHECK(vkt_peft_load(&r->h, s, &lora, r->dir.path));
    for (uint32_t k = 0; k < 2; k++) {
        CHECK(vkt_store_read(s, k, VKT_PART_VALUE, got));
        for (uint32_t i = 0; i < 24; i++) assert_true(got[i] == golden(2 + k, i));
    }
    vkt_store_destroy(&s);
    s = make_store(r, ADAPTERS, 7);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_peft_save(&r->h, s, VKT_PART_PUBLISHED, &(vkt_peft_params){ .lora = lora }, r->dir.path),
                     VKT_E_STATE);
    vkt_test_expect_errors(false);
    vkt_store_destroy(&s);
}

/* The tensors of a saved folder and the tensors of PEFT's folder have the same names, types, shapes and bytes. */
static void the_files_have_the_same_tensors(void **state)
{
    rig *r = rig_of(state);
    char path[300];
    vkt_store *s = make_store(r, ADAPTERS, 0);
    vkt_safetensors *theirs, *ours;
    CHECK(vkt_peft_load(&r->h, s, &lora, GOLDEN));
    CHECK(vkt_peft_save(&r->h, s, VKT_PART_VALUE, &(vkt_peft_params){ .lora = lora }, r->dir.path));
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", r->dir.path);
    CHECK(vkt_safetensors_open(&r->h, GOLDEN "/adapter_model.safetensors", &theirs));
    CHECK(vkt_safetensors_open(&r->h, path, &ours));
    assert_int_equal(vkt_safetensors_count(ours), ADAPTERS);
    assert_int_equal(vkt_safetensors_count(theirs), ADAPTERS);
    assert_string_equal(vkt_safetensors_meta(ours, "format"), vkt_safetensors_meta(theirs, "format"));
    for (size_t i = 0; i < ADAPTERS; i++) {
        const vkt_st_entry *a = vkt_safetensors_entry(theirs, i), *b = vkt_safetensors_find(ours, a->name);
        uint8_t x[4 * MOST], y[4 * MOST];
        assert_non_null(b);
        assert_int_equal(a->dtype, b->dtype);
        assert_int_equal(a->rank, b->rank);
        assert_memory_equal(a->dims, b->dims, a->rank * sizeof *a->dims);
        CHECK(vkt_safetensors_read_raw(theirs, a, x, a->bytes));
        CHECK(vkt_safetensors_read_raw(ours, b, y, b->bytes));
        assert_memory_equal(x, y, (size_t)a->bytes);
    }
    vkt_safetensors_close(&theirs);
    vkt_safetensors_close(&ours);
    vkt_store_destroy(&s);
}

/* ---- what is refused ---- */

static void write_config(const rig *r, const char *more)
{
    char path[300], text[1024];
    const int n =
        snprintf(text, sizeof text,
                 "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 8, \"target_modules\": [\"q_proj\"]%s}", more);
    snprintf(path, sizeof path, "%s/adapter_config.json", r->dir.path);
    CHECK(vkt_file_write(&r->h, path, text, (size_t)n));
}

static void options_that_change_the_adapter_are_refused(void **state)
{
    rig *r = rig_of(state);
    static const struct {
        const char *more;
        vkt_result status;
        const char *reason;
    } bad[] = {
        { ", \"use_dora\": true", VKT_E_UNSUPPORTED, "\"use_dora\": true" },
        { ", \"bias\": \"all\"", VKT_E_UNSUPPORTED, "\"bias\": \"all\"" },
        { ", \"modules_to_save\": [\"lm_head\"]", VKT_E_UNSUPPORTED, "\"modules_to_save\": [\"lm_head\"]" },
        { ", \"rank_pattern\": {\"q_proj\": 2}", VKT_E_UNSUPPORTED, "\"rank_pattern\"" },
        { ", \"alpha_pattern\": {\"q_proj\": 2}", VKT_E_UNSUPPORTED, "\"alpha_pattern\"" },
        { ", \"layers_to_transform\": [0]", VKT_E_UNSUPPORTED, "\"layers_to_transform\"" },
        { ", \"fan_in_fan_out\": true", VKT_E_UNSUPPORTED, "\"fan_in_fan_out\"" },
        { ", \"of_next_year\": 1", VKT_E_UNSUPPORTED, "\"of_next_year\": 1" },
        { ", \"init_lora_weights\": \"pissa\"", VKT_E_UNSUPPORTED, "\"init_lora_weights\": \"pissa\"" },
        { ", \"task_type\": \"SEQ_CLS\"", VKT_E_UNSUPPORTED, "\"task_type\"" },
        { ", \"lora_dropout\": 1", VKT_E_FORMAT, "\"lora_dropout\"" },
        { ", \"use_rslora\": 1", VKT_E_FORMAT, "\"use_rslora\"" },
        { ", \"base_model_name_or_path\": 1", VKT_E_FORMAT, "\"base_model_name_or_path\"" },
        { ", \"r\": 4", VKT_E_FORMAT, "line 1" },
    };
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(bad); i++) {
        vkt_peft_config *c;
        write_config(r, bad[i].more);
        assert_int_equal(vkt_peft_config_open(&r->h, r->dir.path, &c), bad[i].status);
        assert_null(c);
        vkt_test_error_contains(bad[i].reason);
    }
    vkt_test_expect_errors(false);
}

static void wrong_values_are_refused(void **state)
{
    rig *r = rig_of(state);
    static const struct {
        const char *text;
        vkt_result status;
        const char *reason;
    } bad[] = {
        { "", VKT_E_FORMAT, "line" },
        { "[]", VKT_E_FORMAT, "want a JSON object" },
        { "{}", VKT_E_FORMAT, "\"peft_type\"" },
        { "{\"peft_type\": \"LOHA\"}", VKT_E_UNSUPPORTED, "\"peft_type\": \"LOHA\"" },
        { "{\"peft_type\": \"LORA\"}", VKT_E_FORMAT, "\"r\"" },
        { "{\"peft_type\": \"LORA\", \"r\": 0}", VKT_E_FORMAT, "\"r\"" },
        { "{\"peft_type\": \"LORA\", \"r\": 70000}", VKT_E_FORMAT, "\"r\"" },
        { "{\"peft_type\": \"LORA\", \"r\": 2.0}", VKT_E_FORMAT, "\"r\"" },
        { "{\"peft_type\": \"LORA\", \"r\": 2}", VKT_E_FORMAT, "\"lora_alpha\"" },
        { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 0}", VKT_E_FORMAT, "\"lora_alpha\"" },
        { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 1e-60}", VKT_E_FORMAT,
          "\"lora_alpha\"" }, /* 0 as float */
        { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 1e39}", VKT_E_FORMAT,
          "\"lora_alpha\": want a number other than 0 that is finite as float32" },
        { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 1}", VKT_E_FORMAT, "\"target_modules\"" },
        { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 1, \"target_modules\": \".*q\"}", VKT_E_UNSUPPORTED,
          "\"target_modules\": \".*q\"" },
        { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 1, \"target_modules\": [\"a\", 1]}", VKT_E_FORMAT,
          "\"target_modules\"" },
        { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 1, \"target_modules\": [\"\"]}", VKT_E_FORMAT,
          "\"target_modules\"" },
        { "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 1, \"target_modules\": [\"*\"]}", VKT_E_UNSUPPORTED,
          "patterns" },
    };
    vkt_peft_config *c;
    char path[300];
    snprintf(path, sizeof path, "%s/adapter_config.json", r->dir.path);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_peft_config_open(&r->h, r->dir.path, &c), VKT_E_NOT_FOUND);
    for (size_t i = 0; i < VKT_COUNT(bad); i++) {
        CHECK(vkt_file_write(&r->h, path, bad[i].text, strlen(bad[i].text)));
        assert_int_equal(vkt_peft_config_open(&r->h, r->dir.path, &c), bad[i].status);
        assert_null(c);
        vkt_test_error_contains(bad[i].reason);
    }
    vkt_test_expect_errors(false);
}

static void rslora_and_all_linear_are_read(void **state)
{
    rig *r = rig_of(state);
    vkt_peft_config *c;
    char path[300];
    static const char all[] = "{\"peft_type\": \"LORA\", \"r\": 16, \"lora_alpha\": 3, \"target_modules\": "
                              "\"all-linear\", \"use_rslora\": true, \"init_lora_weights\": \"gaussian\"}";
    snprintf(path, sizeof path, "%s/adapter_config.json", r->dir.path);
    CHECK(vkt_file_write(&r->h, path, all, sizeof all - 1));
    CHECK(vkt_peft_config_open(&r->h, r->dir.path, &c));
    assert_int_equal(vkt_peft_config_lora(c)->n_targets, 7);
    assert_true(vkt_peft_config_lora(c)->alpha == 12); /* PEFT's factor is 3 / sqrt(16) = 12 / 16 */
    vkt_peft_config_destroy(&c);
}

static void adapters_that_do_not_fit_are_refused(void **state)
{
    rig *r = rig_of(state);
    vkt_lora_params other = lora;
    vkt_test_expect_errors(true);
    vkt_store *s = make_store(r, ADAPTERS, 7);
    other.alpha = 5;
    assert_int_equal(vkt_peft_load(&r->h, s, &other, GOLDEN), VKT_E_STATE);
    vkt_test_error_contains("built with alpha 5, the adapter has 6");
    other.rank = 4;
    assert_int_equal(vkt_peft_load(&r->h, s, &other, GOLDEN), VKT_E_ARG); /* the store has rank 2 */
    assert_int_equal(vkt_peft_save(&r->h, s, VKT_PART_VALUE, &(vkt_peft_params){ .lora = other }, r->dir.path),
                     VKT_E_ARG);
    assert_int_equal(vkt_peft_load(&r->h, s, &lora, r->dir.path), VKT_E_NOT_FOUND);
    write_config(r, "");
    assert_int_equal(vkt_peft_load(&r->h, s, &lora, r->dir.path), VKT_E_STATE);
    vkt_test_error_contains("rank 2, the adapter has 4");
    vkt_store_destroy(&s);
    s = make_store(r, ADAPTERS - 2, 7); /* the file has tensors that the store lacks */
    assert_int_equal(vkt_peft_load(&r->h, s, &lora, GOLDEN), VKT_E_UNSUPPORTED);
    vkt_test_error_contains("layers.1.self_attn.v_proj.lora_A.weight\" is no adapter of this network");
    expect_all(s, ADAPTERS - 2, 7);
    CHECK(vkt_peft_save(&r->h, s, VKT_PART_VALUE, &(vkt_peft_params){ .lora = lora }, r->dir.path));
    vkt_store_destroy(&s);
    s = make_store(r, ADAPTERS, 7); /* the store has adapters that the file lacks */
    assert_int_equal(vkt_peft_load(&r->h, s, &lora, r->dir.path), VKT_E_NOT_FOUND);
    vkt_test_error_contains("layers.1.self_attn.v_proj.lora_A.weight");
    expect_all(s, ADAPTERS, 7);
    vkt_test_expect_errors(false);
    vkt_store_destroy(&s);
}

/* Each tensor of a folder must be an adapter. The tensor head.weight is a parameter of the store, but no adapter. */
static void a_parameter_that_is_no_adapter_is_not_loaded(void **state)
{
    rig *r = rig_of(state);
    char path[300];
    static float values[N][MOST];
    static char names[N][96];
    vkt_blob blobs[N];
    vkt_store *s = make_store(r, N, 7);
    CHECK(vkt_peft_save(&r->h, s, VKT_PART_VALUE, &(vkt_peft_params){ .lora = lora }, r->dir.path));
    for (uint32_t t = 0; t < N; t++) {
        snprintf(names[t], sizeof *names, "base_model.model.%s", parameters[t].name);
        blobs[t] = (vkt_blob){ .name = names[t],
                               .dtype = VKT_ST_F32,
                               .rank = 2,
                               .dims = { parameters[t].rows, parameters[t].columns },
                               .data = values[t] };
    }
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", r->dir.path);
    CHECK(vkt_safetensors_write(&r->h, path, blobs, N, NULL, 0));
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_peft_load(&r->h, s, &lora, r->dir.path), VKT_E_UNSUPPORTED);
    vkt_test_error_contains("head.weight\" is no adapter of this network");
    vkt_test_expect_errors(false);
    expect_all(s, N, 7);
    CHECK(vkt_safetensors_write(&r->h, path, blobs, ADAPTERS, NULL, 0));
    CHECK(vkt_peft_load(&r->h, s, &lora, r->dir.path));
    expect_all(s, ADAPTERS, 0);
    vkt_store_destroy(&s);
}

static void wrong_names_are_refused_before_a_file_is_written(void **state)
{
    rig *r = rig_of(state);
    const char *folder = vkt_temp_dir_file(&r->dir, "none");
    static const char *const none[] = { "q_proj", NULL }, *const empty[] = { "" }, *const latin1[] = { "q_\xe4" };
    static const struct {
        const char *const *targets;
        uint32_t n;
        const char *reason;
    } bad[] = { { NULL, 1, "want 1 targets, got NULL" },
                { none, 2, "want targets that are not empty, got none at 1" },
                { empty, 1, "want targets that are not empty, got none at 0" },
                { latin1, 1, "want names in UTF-8" } };
    vkt_store *s = make_store(r, ADAPTERS, 7);
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(bad); i++) {
        vkt_peft_params p = { .lora = lora };
        p.lora.targets = bad[i].targets;
        p.lora.n_targets = bad[i].n;
        assert_int_equal(vkt_peft_save(&r->h, s, VKT_PART_VALUE, &p, folder), VKT_E_ARG);
        vkt_test_error_contains(bad[i].reason);
        assert_int_equal(vkt_temp_dir_count(&r->dir), 0);
    }
    vkt_test_expect_errors(false);
    vkt_store_destroy(&s);
}

static void numbers_that_are_not_finite_are_not_written(void **state)
{
    rig *r = rig_of(state);
    const char *folder = vkt_temp_dir_file(&r->dir, "none");
    vkt_store *s = make_store(r, ADAPTERS, 7);
    float x[MOST] = { 0 };
    x[3] = (float)atof("nan");
    CHECK(vkt_store_write(s, 4, VKT_PART_VALUE, x));
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_peft_save(&r->h, s, VKT_PART_VALUE, &(vkt_peft_params){ .lora = lora }, folder),
                     VKT_E_DIVERGED);
    vkt_test_error_contains("model.layers.0.self_attn.v_proj\" has a number");
    vkt_test_expect_errors(false);
    assert_int_equal(vkt_temp_dir_count(&r->dir), 0);
    vkt_store_destroy(&s);
}

/* A truncated file is refused, and the store does not change. A file with one changed bit is refused or read;
 * sanitizers and the leak check must not find an error. */
static void damaged_files_change_nothing(void **state)
{
    rig *r = rig_of(state);
    static const char *const names[] = { "adapter_config.json", "adapter_model.safetensors" };
    char path[2][300];
    uint8_t *bytes[2];
    size_t n[2];
    vkt_store *s = make_store(r, ADAPTERS, 7);
    for (int f = 0; f < 2; f++) {
        char from[300];
        void *all;
        snprintf(from, sizeof from, "%s/%s", GOLDEN, names[f]);
        snprintf(path[f], sizeof path[f], "%s/%s", r->dir.path, names[f]);
        CHECK(vkt_file_read(&r->h, from, 1 << 20, &all, &n[f]));
        bytes[f] = all;
        CHECK(vkt_file_write(&r->h, path[f], all, n[f]));
    }
    vkt_test_expect_errors(true);
    for (int f = 0; f < 2; f++) {
        for (size_t lost = 1; lost <= n[f]; lost += f ? 13 : 1) {
            CHECK(vkt_file_write(&r->h, path[f], bytes[f], n[f] - lost));
            assert_int_not_equal(vkt_peft_load(&r->h, s, &lora, r->dir.path), VKT_OK);
        }
        expect_all(s, ADAPTERS, 7);
        for (size_t at = 0; at < n[f]; at += 3) {
            const uint8_t kept = bytes[f][at];
            bytes[f][at] ^= 1;
            CHECK(vkt_file_write(&r->h, path[f], bytes[f], n[f]));
            (void)vkt_peft_load(&r->h, s, &lora, r->dir.path);
            bytes[f][at] = kept;
        }
        CHECK(vkt_file_write(&r->h, path[f], bytes[f], n[f]));
        CHECK(vkt_peft_load(&r->h, s, &lora, r->dir.path));
        expect_golden(s);
        vkt_store_destroy(&s);
        s = make_store(r, ADAPTERS, 7);
    }
    vkt_test_expect_errors(false);
    for (int f = 0; f < 2; f++) vkt_free(&r->h, bytes[f]);
    vkt_store_destroy(&s);
}

static void every_failed_allocation_is_reported(void **state)
{
    rig *r = rig_of(state);
    vkt_peft_config *c;
    unsigned n;
    for (n = 1;; n++) {
        const size_t live = vkt_test_live_blocks();
        vkt_test_fail_allocation(n);
        const vkt_result result = vkt_peft_config_open(&r->h, GOLDEN, &c);
        if (!vkt_test_allocation_failed()) break;
        assert_int_equal(result, VKT_E_NOMEM);
        assert_null(c);
        assert_int_equal(vkt_test_live_blocks(), live);
    }
    vkt_test_fail_allocation(0);
    assert_true(n > 5);
    vkt_peft_config_destroy(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_folder_of_peft_is_read),
        rig_test(what_is_saved_is_loaded),
        rig_test(zeros_are_saved_as_what_they_mean),
        rig_test(averages_are_saved),
        rig_test(the_files_have_the_same_tensors),
        rig_test(options_that_change_the_adapter_are_refused),
        rig_test(wrong_values_are_refused),
        rig_test(rslora_and_all_linear_are_read),
        rig_test(adapters_that_do_not_fit_are_refused),
        rig_test(a_parameter_that_is_no_adapter_is_not_loaded),
        rig_test(numbers_that_are_not_finite_are_not_written),
        rig_test(wrong_names_are_refused_before_a_file_is_written),
        rig_test(damaged_files_change_nothing),
        rig_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
