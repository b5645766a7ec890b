/* Tests adapters in GGUF files, and models merged with their adapters: names, shapes, order of rows, rounding. */
#include "lm/lora_files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "vktrain/vktrain.h"

#define CHECK(call) assert_int_equal(call, VKT_OK)

static void expect_text(const vkt_gguf *g, const char *key, const char *want)
{
    vkt_gguf_string got;
    CHECK(vkt_gguf_get_text(g, key, VKT_GGUF_ONE, &got));
    assert_string_equal(got.text, want);
}

static void check_adapter(const rig *r, const char *base, const char *architecture, vkt_store_part part)
{
    files f = open_files(r, base, part == VKT_PART_PUBLISHED);
    const char *path = vkt_temp_dir_file(&r->dir, "adapter.gguf");
    vkt_gguf *a;
    double alpha;
    CHECK(vkt_lora_save_gguf(&r->h, f.s, part, &f.m, &lora, path));
    CHECK(vkt_gguf_open(&r->h, path, &a));
    expect_text(a, "general.architecture", architecture);
    expect_text(a, "general.type", "adapter");
    expect_text(a, "adapter.type", "lora");
    CHECK(vkt_gguf_get_f64(a, "adapter.lora.alpha", VKT_GGUF_ONE, &alpha));
    assert_true(alpha == 1.5);
    assert_int_equal(vkt_gguf_n_tensors(a), 2 * N);
    for (uint32_t k = 0; k < N; k++) {
        char name[80];
        snprintf(name, sizeof name, "blk.0.%s.weight.lora_a", layers[k].tensor);
        const vkt_gguf_tensor *ta = vkt_gguf_find_tensor(a, name);
        name[strlen(name) - 1] = 'b';
        const vkt_gguf_tensor *tb = vkt_gguf_find_tensor(a, name);
        const uint32_t in = size_of(f.g, k, 0), out = size_of(f.g, k, 1);
        assert_true(ta && tb && ta->type == VKT_GGUF_F32 && tb->type == VKT_GGUF_F32);
        assert_true(ta->rank == 2 && ta->dims[0] == in && ta->dims[1] == RANK);
        assert_true(tb->rank == 2 && tb->dims[0] == RANK && tb->dims[1] == out);
        const float *xa = ta->data, *xb = tb->data;
        for (uint32_t i = 0; i < RANK * in; i++) assert_true(xa[i] == number(k, 0, i));
        for (uint32_t row = 0; row < out; row++)
            for (uint32_t c = 0; c < RANK; c++)
                assert_true(xb[file_row(&f.m, k, out, row) * RANK + c] == number(k, 1, row * RANK + c));
    }
    vkt_gguf_destroy(&a);
    close_files(&f);
}

static void adapters_have_the_form_of_llama_cpp(void **state)
{
    rig *r = rig_of(state);
    check_adapter(r, GOLDEN("llama.gguf"), "llama", VKT_PART_VALUE);
    check_adapter(r, GOLDEN("qwen3.gguf"), "qwen3", VKT_PART_VALUE);
    check_adapter(r, partly_rotated(r), "llama", VKT_PART_VALUE);
    check_adapter(r, GOLDEN("llama.gguf"), "llama", VKT_PART_PUBLISHED);
}

static void what_cannot_be_saved_is_refused(void **state)
{
    rig *r = rig_of(state);
    files f = open_files(r, GOLDEN("llama.gguf"), false);
    const char *path = vkt_temp_dir_file(&r->dir, "adapter.gguf");
    static const vkt_gguf_model none;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_lora_save_gguf(&r->h, f.s, VKT_PART_VALUE, &none, &lora, path), VKT_E_ARG);
    vkt_test_error_contains("want a model that vkt_gguf_read_model");
    f.m.architecture = (vkt_gguf_architecture)99;
    assert_int_equal(vkt_lora_save_gguf(&r->h, f.s, VKT_PART_VALUE, &f.m, &lora, path), VKT_E_ARG);
    f.m.architecture = VKT_GGUF_QWEN2;
    f.m.head_width = 16;
    assert_int_equal(vkt_lora_save_gguf(&r->h, f.s, VKT_PART_VALUE, &f.m, &lora, path), VKT_E_SHAPE);
    vkt_test_error_contains("32 rows are not those of 4 heads of width 16");
    f.m.head_width = 8;
    assert_int_equal(vkt_lora_save_gguf(&r->h, f.s, VKT_PART_PUBLISHED, &f.m, &lora, path), VKT_E_STATE);
    assert_int_equal(vkt_temp_dir_count(&r->dir), 0);
    vkt_test_expect_errors(false);
    close_files(&f);
}

/* ---- merged models ---- */

/* Checks that the weight of layer k in `merged` is W + (alpha / rank) B A, where W is the weight in f->g. The error of
 * an element is at most `tolerance` times the largest magnitude in its block of 32 elements (as in Q8_0). */
static void check_layer(const files *f, const vkt_gguf *merged, vkt_gguf_type type, uint32_t k, double tolerance)
{
    char name[64];
    const uint32_t in = size_of(f->g, k, 0), out = size_of(f->g, k, 1), block = 32;
    snprintf(name, sizeof name, "blk.0.%s.weight", layers[k].tensor);
    float *w = test_malloc(in * sizeof *w), *got = test_malloc(in * sizeof *got);
    double *want = test_malloc(in * sizeof *want);
    assert_int_equal(vkt_gguf_find_tensor(merged, name)->type, type);
    for (uint32_t row = 0; row < out; row++) {
        const uint32_t at = file_row(&f->m, k, out, row);
        CHECK(vkt_gguf_read_f32(f->g, name, (uint64_t)at * in, in, w));
        CHECK(vkt_gguf_read_f32(merged, name, (uint64_t)at * in, in, got));
        for (uint32_t c = 0; c < in; c++) {
            want[c] = 0;
            for (uint32_t j = 0; j < RANK; j++)
                want[c] += (double)number(k, 1, row * RANK + j) * (double)number(k, 0, j * in + c);
            want[c] = (double)w[c] + want[c] * (1.5 / RANK);
        }
        for (uint32_t c = 0; c < in; c += block) {
            double most = 0;
            for (uint32_t i = c; i < c + block; i++) most = fmax(most, fabs(want[i]));
            for (uint32_t i = c; i < c + block; i++) assert_true(fabs((double)got[i] - want[i]) <= tolerance * most);
        }
    }
    test_free(w);
    test_free(got);
    test_free(want);
}

static void expect_same_values(const vkt_gguf_meta *a, const vkt_gguf_meta *b)
{
    static const size_t bytes[] = { [VKT_GGUF_KIND_U32] = 4, [VKT_GGUF_KIND_F32] = 4 };
    assert_true(a->kind == b->kind && a->is_array == b->is_array && a->count == b->count);
    if (a->kind != VKT_GGUF_KIND_TEXT) {
        assert_true(a->kind < VKT_COUNT(bytes) && bytes[a->kind]);
        assert_memory_equal(a->values, b->values, a->count * bytes[a->kind]);
        return;
    }
    const vkt_gguf_string *x = a->values, *y = b->values;
    for (size_t i = 0; i < a->count; i++) assert_string_equal(x[i].text, y[i].text);
}

static void check_rest(const files *f, const vkt_gguf *merged, vkt_gguf_type type)
{
    uint32_t file_types = 0;
    assert_int_equal(vkt_gguf_n_meta(merged), vkt_gguf_n_meta(f->g));
    for (size_t i = 0; i < vkt_gguf_n_meta(merged); i++) {
        const vkt_gguf_meta *a = vkt_gguf_meta_at(merged, i), *b = vkt_gguf_meta_at(f->g, i);
        assert_string_equal(a->key, b->key);
        if (strcmp(a->key, "general.file_type") != 0) {
            expect_same_values(a, b);
            continue;
        }
        uint32_t got;
        memcpy(&got, a->values, sizeof got);
        assert_int_equal(got, type == VKT_GGUF_F32 ? 0 : type == VKT_GGUF_F16 ? 1 : 7); /* llama.cpp's llama_ftype */
        file_types++;
    }
    assert_int_equal(file_types, f->m.rope_width != f->m.head_width); /* only partly_rotated adds general.file_type */
    assert_int_equal(vkt_gguf_n_tensors(merged), vkt_gguf_n_tensors(f->g));
    uint32_t same = 0;
    for (size_t i = 0; i < vkt_gguf_n_tensors(merged); i++) {
        const vkt_gguf_tensor *a = vkt_gguf_tensor_at(merged, i), *b = vkt_gguf_tensor_at(f->g, i);
        assert_string_equal(a->name, b->name);
        const bool is_matrix = strstr(a->name, "blk.0.") && a->rank == 2;
        if (is_matrix) continue;
        assert_true(a->type == b->type && a->bytes == b->bytes);
        assert_memory_equal(a->data, b->data, (size_t)a->bytes);
        same++;
    }
    assert_int_equal(same, vkt_gguf_n_tensors(merged) - N);
}

static void merged_models_have_the_sum(void **state)
{
    rig *r = rig_of(state);
    static const struct {
        vkt_gguf_type type;
        double tolerance;
    } cases[] = { { VKT_GGUF_F32, 6e-8 }, { VKT_GGUF_F16, 4.9e-4 }, { VKT_GGUF_Q8_0, 0.5 / 127 + 4.9e-4 } };
    char part[300];
    snprintf(part, sizeof part, "%s", partly_rotated(r));
    const char *const bases[] = { GOLDEN("llama.gguf"), GOLDEN("qwen2.gguf"), GOLDEN("qwen3.gguf"), part };
    for (size_t b = 0; b < VKT_COUNT(bases); b++)
        for (size_t c = 0; c < VKT_COUNT(cases); c++) {
            const bool averaged = b == 1;
            files f = open_files(r, bases[b], averaged);
            const char *path = vkt_temp_dir_file(&r->dir, "merged.gguf");
            vkt_gguf *merged;
            vkt_gguf_model m;
            CHECK(vkt_lora_merge_gguf(&r->h, f.g, f.s, averaged ? VKT_PART_PUBLISHED : VKT_PART_VALUE, &lora,
                                      cases[c].type, path));
            CHECK(vkt_gguf_open(&r->h, path, &merged));
            CHECK(vkt_gguf_read_model(merged, &m));
            for (uint32_t k = 0; k < N; k++) check_layer(&f, merged, cases[c].type, k, cases[c].tolerance);
            check_rest(&f, merged, cases[c].type);
            vkt_gguf_destroy(&merged);
            close_files(&f);
        }
}

static void what_cannot_be_merged_is_refused(void **state)
{
    rig *r = rig_of(state);
    files f = open_files(r, GOLDEN("llama.gguf"), false);
    const char *path = vkt_temp_dir_file(&r->dir, "merged.gguf");
    vkt_graph *graph;
    vkt_store *other;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_lora_merge_gguf(&r->h, f.g, f.s, VKT_PART_VALUE, &lora, VKT_GGUF_Q4_0, path),
                     VKT_E_UNSUPPORTED);
    vkt_test_error_contains("F32, F16 or Q8_0, not Q4_0");
    static const struct {
        const char *layer;
        uint32_t rows;
        vkt_result status;
        const char *reason;
    } bad[] = { { "model.layers.0.self_attn.z_proj", 8, VKT_E_UNSUPPORTED, "has no tensor in a GGUF file" },
                { "lm_head", 8, VKT_E_UNSUPPORTED, "has no tensor in a GGUF file" },
                { "model.layers.1.mlp.up_proj", 8, VKT_E_NOT_FOUND, "no tensor \"blk.1.ffn_up.weight\"" },
                { "model.layers.0.mlp.up_proj", 8, VKT_E_SHAPE, "\"blk.0.ffn_up.weight\": want 8 rows of 4" },
                { "model.layers.0.self_attn.q_proj", 8, VKT_E_SHAPE, "8 rows are not those of 4 heads of width 8" } };
    for (size_t i = 0; i < VKT_COUNT(bad); i++) {
        char name[80];
        CHECK(vkt_graph_create(&r->h, &graph));
        snprintf(name, sizeof name, "%s.lora_A.weight", bad[i].layer);
        vkt_param(graph, name, vkt_shape2(RANK, 4));
        snprintf(name, sizeof name, "%s.lora_B.weight", bad[i].layer);
        vkt_param(graph, name, vkt_shape2(bad[i].rows, RANK));
        CHECK(vkt_store_create(r->ctx, graph, &other));
        assert_int_equal(vkt_lora_merge_gguf(&r->h, f.g, other, VKT_PART_VALUE, &lora, VKT_GGUF_F32, path),
                         bad[i].status);
        vkt_test_error_contains(bad[i].reason);
        vkt_store_destroy(&other);
        vkt_graph_destroy(&graph);
    }
    float *x = test_calloc(RANK * size_of(f.g, 6, 0), sizeof *x);
    x[0] = 1e30f; /* the merged matrix is not finite in float16 */
    CHECK(vkt_store_write(f.s, 12, VKT_PART_VALUE, x));
    test_free(x);
    assert_int_equal(vkt_lora_merge_gguf(&r->h, f.g, f.s, VKT_PART_VALUE, &lora, VKT_GGUF_F16, path), VKT_E_DIVERGED);
    assert_int_equal(vkt_lora_merge_gguf(&r->h, f.g, f.s, VKT_PART_VALUE, &lora, VKT_GGUF_Q8_0, path), VKT_E_DIVERGED);
    vkt_test_error_contains("blk.0.ffn_down.weight");
    assert_int_equal(vkt_temp_dir_count(&r->dir), 0);
    vkt_test_expect_errors(false);
    close_files(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(adapters_have_the_form_of_llama_cpp),
        rig_test(what_cannot_be_saved_is_refused),
        rig_test(merged_models_have_the_sum),
        rig_test(what_cannot_be_merged_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
