/* Tests how the description of a language model is read from a GGUF file: three architectures, with their keys and
 * defaults. Each wrong key or tensor is refused with a message that says what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "support/find_data.h"
#include "support/host.h"
#include "support/temp_dir.h"
#include "vktrain/gguf_model.h"

#define GOLDEN(name) VKT_TEST_DIR "/golden/gguf/" name

static vkt_gguf_model read_golden(const char *path, vkt_gguf **g)
{
    const vkt_host h = vkt_test_host();
    vkt_gguf_model m;
    assert_int_equal(vkt_gguf_open(&h, path, g), VKT_OK);
    assert_int_equal(vkt_gguf_read_model(*g, &m), VKT_OK);
    return m;
}

static void the_three_architectures_are_read(void **state)
{
    (void)state;
    static const char *const files[] = { GOLDEN("llama.gguf"), GOLDEN("qwen2.gguf"), GOLDEN("qwen3.gguf") };
    static const char *const names[] = { "tiny llama", "tiny qwen2", "tiny qwen3" };
    static const vkt_gguf_architecture architectures[] = { VKT_GGUF_LLAMA, VKT_GGUF_QWEN2, VKT_GGUF_QWEN3 };
    for (size_t i = 0; i < 3; i++) {
        vkt_gguf *g;
        const vkt_gguf_model m = read_golden(files[i], &g);
        const bool qwen3 = i == 2, qwen2 = i == 1;
        assert_int_equal(m.architecture, architectures[i]);
        assert_string_equal(m.name, names[i]);
        assert_int_equal(m.blocks, 1);
        assert_int_equal(m.context, 128);
        assert_int_equal(m.width, 32);
        assert_int_equal(m.feed_forward, 64);
        assert_int_equal(m.heads, 4);
        assert_int_equal(m.kv_heads, 2);
        assert_int_equal(m.head_width, qwen3 ? 16 : 8);
        assert_int_equal(m.vocabulary, 64);
        assert_true(m.rms_epsilon == (double)1e-6f);
        assert_true(m.rope_base == 1e6);
        assert_int_equal(m.rope_width, m.head_width);
        assert_int_equal(m.rope_halves, i > 0);
        assert_int_equal(m.scaling, qwen2 ? VKT_ROPE_YARN : VKT_ROPE_PLAIN);
        assert_true(m.rope_factor == (qwen2 ? 4 : 1));
        assert_int_equal(m.rope_context, qwen2 ? 32 : 128);
        assert_true((m.rope_divisors != NULL) == (i == 0));
        if (m.rope_divisors) assert_int_equal(m.rope_divisors->elements, 4);
        assert_int_equal(m.tied, !qwen3);
        vkt_gguf_destroy(&g);
    }
}

/* ---- changed files ---- */

enum { MAX = 48 };

/* Metadata and tensors of a file, some of them changed. */
typedef struct edit {
    vkt_gguf *g;
    vkt_gguf_meta meta[MAX];
    vkt_gguf_tensor tensors[MAX];
    size_t n_meta, n_tensors;
} edit;

static edit *edit_open(const char *path)
{
    const vkt_host h = vkt_test_host();
    edit *e = calloc(1, sizeof *e);
    assert_int_equal(vkt_gguf_open(&h, path, &e->g), VKT_OK);
    e->n_meta = vkt_gguf_n_meta(e->g);
    e->n_tensors = vkt_gguf_n_tensors(e->g);
    assert_true(e->n_meta < MAX && e->n_tensors < MAX);
    memcpy(e->meta, vkt_gguf_meta_at(e->g, 0), e->n_meta * sizeof *e->meta);
    memcpy(e->tensors, vkt_gguf_tensor_at(e->g, 0), e->n_tensors * sizeof *e->tensors);
    return e;
}

/* Replaces the entry that has the key of `m` by `m`, or appends `m`. If m.values is NULL, removes the entry. */
static void set_meta(edit *e, vkt_gguf_meta m)
{
    size_t i = 0;
    while (i < e->n_meta && strcmp(e->meta[i].key, m.key) != 0) i++;
    if (i == e->n_meta) e->n_meta++;
    e->meta[i] = m.values ? m : e->meta[--e->n_meta];
}

/* Replaces the tensor that has the name of `t` by `t`, or appends `t`. If t.data is NULL, removes the tensor. */
static void set_tensor(edit *e, vkt_gguf_tensor t)
{
    size_t i = 0;
    while (i < e->n_tensors && strcmp(e->tensors[i].name, t.name) != 0) i++;
    if (i == e->n_tensors) e->n_tensors++;
    e->tensors[i] = t.data ? t : e->tensors[--e->n_tensors];
}

/* Writes the file, reads its description, and returns the status. Frees `e`. */
static vkt_result edit_read(edit *e, vkt_gguf_model *m)
{
    const vkt_host h = vkt_test_host();
    const vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "a.gguf");
    assert_int_equal(vkt_gguf_write(&h, path, e->meta, e->n_meta, e->tensors, e->n_tensors), VKT_OK);
    vkt_gguf_destroy(&e->g);
    free(e);
    vkt_gguf *g;
    assert_int_equal(vkt_gguf_open(&h, path, &g), VKT_OK);
    const vkt_result r = vkt_gguf_read_model(g, m);
    static const vkt_gguf_model zero;
    if (r != VKT_OK) assert_true(m->name == NULL && m->blocks == zero.blocks && m->vocabulary == 0 && m->heads == 0);
    m->name = NULL;
    m->rope_divisors = NULL;
    vkt_gguf_destroy(&g);
    vkt_temp_dir_remove(&dir);
    return r;
}

static vkt_gguf_meta u32(const char *key, const uint32_t *x)
{
    return (vkt_gguf_meta){ key, VKT_GGUF_KIND_U32, false, 1, x };
}

static vkt_gguf_meta text(const char *key, const vkt_gguf_string *s)
{
    return (vkt_gguf_meta){ key, VKT_GGUF_KIND_TEXT, false, 1, s };
}

static void absent_keys_have_defaults(void **state)
{
    (void)state;
    vkt_gguf_model m;
    const uint32_t heads[] = { 4 }, two[] = { 2, 2 }, rotated = 4;
    const float half = 0.5f, four = 4;
    edit *e = edit_open(GOLDEN("llama.gguf"));
    set_meta(e, (vkt_gguf_meta){ .key = "llama.rope.freq_base" });
    set_meta(e, (vkt_gguf_meta){ .key = "llama.vocab_size" });
    set_meta(e, (vkt_gguf_meta){ .key = "general.name" });
    set_tensor(e, (vkt_gguf_tensor){ .name = "rope_freqs.weight" });
    set_meta(e, (vkt_gguf_meta){ "llama.attention.head_count", VKT_GGUF_KIND_U32, true, 1, heads });
    set_meta(e, (vkt_gguf_meta){ "llama.attention.head_count_kv", VKT_GGUF_KIND_U32, true, 2, two });
    set_meta(e, u32("llama.rope.dimension_count", &rotated));
    set_meta(e, (vkt_gguf_meta){ "llama.rope.scale_linear", VKT_GGUF_KIND_F32, false, 1, &half });
    assert_int_equal(edit_read(e, &m), VKT_OK);
    assert_true(m.rope_base == 10000 && m.vocabulary == 64 && m.heads == 4 && m.kv_heads == 2 && m.rope_width == 4);
    assert_true(m.scaling == VKT_ROPE_LINEAR && m.rope_factor == 0.5 && m.rope_context == 128);
    e = edit_open(GOLDEN("llama.gguf"));
    set_meta(e, text("llama.rope.scaling.type", &(vkt_gguf_string){ "linear", 6 }));
    set_meta(e, (vkt_gguf_meta){ "llama.rope.scaling.factor", VKT_GGUF_KIND_F32, false, 1, &four });
    assert_int_equal(edit_read(e, &m), VKT_OK);
    assert_true(m.scaling == VKT_ROPE_LINEAR && m.rope_factor == 4);
    e = edit_open(GOLDEN("llama.gguf")); /* if head_count_kv is absent, head_count is used */
    set_meta(e, (vkt_gguf_meta){ .key = "llama.attention.head_count_kv" });
    vkt_test_expect_errors(true);
    assert_int_equal(edit_read(e, &m), VKT_E_SHAPE);
    vkt_test_error_contains("tensor \"blk.0.attn_k.weight\": want 32 x 32, got 32 x 16");
}

/* The defaults of llama.cpp: the type is "linear", and the factor is scale_linear, or else 1. */
static void scalings_have_defaults(void **state)
{
    (void)state;
    static const vkt_gguf_string types[] = { { "none", 4 }, { "linear", 6 }, { "yarn", 4 } };
    static const float zero = 0, half = 0.5f, one = 1, four = 4;
    static const struct {
        const vkt_gguf_string *type;
        const float *factor, *older;
        vkt_rope_scaling scaling;
        double rope_factor;
    } cases[] = {
        { NULL, NULL, NULL, VKT_ROPE_PLAIN, 1 },          { NULL, &four, NULL, VKT_ROPE_LINEAR, 4 },
        { NULL, &one, &half, VKT_ROPE_PLAIN, 1 },         { NULL, &four, &half, VKT_ROPE_LINEAR, 4 },
        { NULL, &zero, &half, VKT_ROPE_PLAIN, 1 },        { &types[0], &four, &half, VKT_ROPE_PLAIN, 1 },
        { &types[1], NULL, &half, VKT_ROPE_LINEAR, 0.5 }, { &types[1], NULL, NULL, VKT_ROPE_PLAIN, 1 },
        { &types[2], NULL, &four, VKT_ROPE_YARN, 4 },     { &types[2], NULL, NULL, VKT_ROPE_YARN, 1 },
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        vkt_gguf_model m;
        edit *e = edit_open(GOLDEN("llama.gguf"));
        const vkt_gguf_meta factor = { "llama.rope.scaling.factor", VKT_GGUF_KIND_F32, false, 1, cases[i].factor },
                            older = { "llama.rope.scale_linear", VKT_GGUF_KIND_F32, false, 1, cases[i].older };
        if (cases[i].type) set_meta(e, text("llama.rope.scaling.type", cases[i].type));
        if (factor.values) set_meta(e, factor);
        if (older.values) set_meta(e, older);
        assert_int_equal(edit_read(e, &m), VKT_OK);
        assert_int_equal(m.scaling, cases[i].scaling);
        assert_true(m.rope_factor == cases[i].rope_factor);
    }
}

static void wrong_metadata_are_refused(void **state)
{
    (void)state;
    static const uint32_t zero = 0, one = 1, two = 2, three = 3, ten = 10, large = UINT32_MAX, mixed[] = { 2, 1 };
    static const float nan = NAN, negative = -1;
    static const vkt_gguf_string gpt2 = { "gpt2", 4 }, ntk = { "longrope", 8 };
    const struct {
        vkt_gguf_meta meta;
        vkt_result status;
        const char *reason;
    } bad[] = {
        { { .key = "general.architecture" }, VKT_E_NOT_FOUND, "no metadata \"general.architecture\"" },
        { text("general.architecture", &gpt2), VKT_E_UNSUPPORTED, "architecture \"gpt2\": want llama, qwen2 or qwen3" },
        { u32("general.architecture", &one), VKT_E_FORMAT, "want a text" },
        { u32("general.name", &one), VKT_E_FORMAT, "want a text" },
        { u32("llama.expert_count", &ten), VKT_E_UNSUPPORTED, "a mixture of 10 experts" },
        { u32("split.count", &two), VKT_E_UNSUPPORTED, "one of 2 parts" },
        { { .key = "llama.block_count" }, VKT_E_NOT_FOUND, "no metadata \"llama.block_count\"" },
        { u32("llama.block_count", &zero), VKT_E_FORMAT, "llama.block_count: want 1 to 2^31 - 1, got 0" },
        { u32("llama.block_count", &large), VKT_E_FORMAT, "llama.block_count: want 1 to 2^31 - 1" },
        { u32("llama.block_count", &two), VKT_E_NOT_FOUND, "no tensor \"blk.1.attn_norm.weight\"" },
        { text("llama.block_count", &gpt2), VKT_E_FORMAT, "want an integer" },
        { { .key = "llama.context_length" }, VKT_E_NOT_FOUND, "llama.context_length" },
        { { .key = "llama.embedding_length" }, VKT_E_NOT_FOUND, "llama.embedding_length" },
        { { .key = "llama.feed_forward_length" }, VKT_E_NOT_FOUND, "llama.feed_forward_length" },
        { { .key = "llama.attention.head_count" }, VKT_E_NOT_FOUND, "llama.attention.head_count" },
        { { .key = "llama.attention.layer_norm_rms_epsilon" }, VKT_E_NOT_FOUND, "layer_norm_rms_epsilon" },
        { { "llama.attention.layer_norm_rms_epsilon", VKT_GGUF_KIND_F32, false, 1, &nan },
          VKT_E_FORMAT,
          "want a finite number above 0" },
        { { "llama.rope.freq_base", VKT_GGUF_KIND_F32, false, 1, &negative },
          VKT_E_FORMAT,
          "want a finite number above 0, got -1" },
        { u32("llama.attention.head_count_kv", &three), VKT_E_FORMAT, "want a divisor of head_count, got 3" },
        { { "llama.attention.head_count_kv", VKT_GGUF_KIND_U32, true, 2, mixed },
          VKT_E_UNSUPPORTED,
          "llama.attention.head_count_kv differs between blocks: 2 and 1" },
        { { "llama.attention.head_count_kv", VKT_GGUF_KIND_U32, true, 0, mixed }, VKT_E_NOT_FOUND, "has 0 elements" },
        { { "llama.attention.head_count_kv", VKT_GGUF_KIND_U32, true, 1, &zero }, VKT_E_FORMAT, "want 1 to 2^31 - 1" },
        { u32("llama.attention.value_length", &ten), VKT_E_UNSUPPORTED, "keys of 8 numbers and values of 10" },
        { u32("llama.rope.dimension_count", &three), VKT_E_FORMAT, "want an even number" },
        { u32("llama.rope.dimension_count", &ten), VKT_E_FORMAT, "up to the width of a head, got 10" },
        { u32("llama.rope.dimension_count", &two), VKT_E_SHAPE, "tensor \"rope_freqs.weight\": want 1 x 1, got 4 x 1" },
        { text("llama.rope.scaling.type", &ntk), VKT_E_UNSUPPORTED, "is \"longrope\": want none, linear or yarn" },
        { { "llama.rope.scaling.factor", VKT_GGUF_KIND_F32, false, 1, &negative },
          VKT_E_FORMAT,
          "llama.rope.scaling.factor: want a finite number, 0 or more, got -1" },
        { { "llama.rope.scale_linear", VKT_GGUF_KIND_F32, false, 1, &nan },
          VKT_E_FORMAT,
          "llama.rope.scale_linear: want a finite number, 0 or more" },
        { u32("llama.rope.scaling.attn_factor", &ten), VKT_E_UNSUPPORTED, "want YaRN without it" },
        { u32("llama.vocab_size", &ten), VKT_E_SHAPE, "tensor \"token_embd.weight\": want 32 x 10, got 32 x 64" },
    };
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(bad); i++) {
        vkt_gguf_model m;
        edit *e = edit_open(GOLDEN("llama.gguf"));
        set_meta(e, bad[i].meta);
        assert_int_equal(edit_read(e, &m), bad[i].status);
        vkt_test_error_contains(bad[i].reason);
    }
}

static void wrong_tensors_are_refused(void **state)
{
    (void)state;
    static const uint8_t data[8192];
    static const struct {
        vkt_gguf_tensor tensor;
        vkt_result status;
        const char *reason;
    } bad[] = {
        { { .name = "token_embd.weight" }, VKT_E_NOT_FOUND, "no tensor \"token_embd.weight\"" },
        { { .name = "output_norm.weight" }, VKT_E_NOT_FOUND, "no tensor \"output_norm.weight\"" },
        { { .name = "blk.0.ffn_up.weight" }, VKT_E_NOT_FOUND, "no tensor \"blk.0.ffn_up.weight\"" },
        { { .name = "blk.0.attn_q.weight", .rank = 3, .dims = { 32, 32, 2 }, .data = data },
          VKT_E_SHAPE,
          "\"blk.0.attn_q.weight\": want 32 x 32, got 32 x 32 x 2 x 1" },
        { { .name = "blk.0.attn_q.weight", .type = (vkt_gguf_type)6, .rank = 2, .dims = { 32, 32 }, .data = data },
          VKT_E_UNSUPPORTED,
          "tensor \"blk.0.attn_q.weight\" has type Q5_0, which is not read" },
        { { .name = "output.weight", .rank = 2, .dims = { 32, 63 }, .data = data },
          VKT_E_SHAPE,
          "\"output.weight\": want 32 x 64, got 32 x 63" },
        { { .name = "blk.0.attn_q.bias", .rank = 1, .dims = { 32 }, .data = data },
          VKT_E_UNSUPPORTED,
          "llama models with a tensor \"blk.0.attn_q.bias\" are not read" },
        { { .name = "blk.1.attn_q.weight", .rank = 2, .dims = { 32, 32 }, .data = data },
          VKT_E_UNSUPPORTED,
          "with a tensor \"blk.1.attn_q.weight\"" },
        { { .name = "blk.", .rank = 1, .dims = { 1 }, .data = data }, VKT_E_UNSUPPORTED, "with a tensor \"blk.\"" },
    };
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(bad); i++) {
        vkt_gguf_model m;
        edit *e = edit_open(GOLDEN("llama.gguf"));
        set_tensor(e, bad[i].tensor);
        assert_int_equal(edit_read(e, &m), bad[i].status);
        vkt_test_error_contains(bad[i].reason);
    }
    vkt_gguf_model m;
    assert_int_equal(vkt_gguf_read_model(NULL, &m), VKT_E_ARG);
}

/* ---- a real model ---- */

static void smollm2_is_described(void **state)
{
    (void)state;
    char folder[512], path[600];
    vkt_gguf *g;
    vkt_gguf_string s;
    int64_t kind;
    if (!vkt_test_find_data("smollm2", folder)) skip();
    snprintf(path, sizeof path, "%s/SmolLM2-135M-Instruct.Q4_1.gguf", folder);
    const vkt_gguf_model m = read_golden(path, &g);
    assert_int_equal(m.architecture, VKT_GGUF_LLAMA);
    assert_string_equal(m.name, "Smollm2 135M 8k Lc100K Mix1 Ep2");
    assert_int_equal(m.blocks, 30);
    assert_int_equal(m.context, 8192);
    assert_int_equal(m.width, 576);
    assert_int_equal(m.feed_forward, 1536);
    assert_int_equal(m.heads, 9);
    assert_int_equal(m.kv_heads, 3);
    assert_int_equal(m.head_width, 64);
    assert_int_equal(m.vocabulary, 49152);
    assert_true(m.rms_epsilon == (double)1e-5f && m.rope_base == 100000 && m.rope_width == 64 && !m.rope_halves);
    assert_true(m.scaling == VKT_ROPE_PLAIN && !m.rope_divisors && m.tied);
    assert_int_equal(vkt_gguf_n_meta(g), 33);
    assert_int_equal(vkt_gguf_find_meta(g, "tokenizer.ggml.tokens")->count, 49152);
    assert_int_equal(vkt_gguf_find_meta(g, "tokenizer.ggml.merges")->count, 48900);
    assert_int_equal(vkt_gguf_get_text(g, "tokenizer.ggml.pre", VKT_GGUF_ONE, &s), VKT_OK);
    assert_string_equal(s.text, "smollm");
    assert_int_equal(vkt_gguf_get_text(g, "tokenizer.ggml.tokens", 1, &s), VKT_OK);
    assert_string_equal(s.text, "<|im_start|>");
    assert_int_equal(vkt_gguf_get_text(g, "tokenizer.ggml.merges", 0, &s), VKT_OK);
    assert_string_equal(s.text, "\xc4\xa0 t");
    assert_int_equal(vkt_gguf_get_i64(g, "tokenizer.ggml.token_type", 0, &kind), VKT_OK);
    assert_int_equal(kind, 3);
    vkt_gguf_destroy(&g);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_three_architectures_are_read), TEST(absent_keys_have_defaults), TEST(scalings_have_defaults),
        TEST(wrong_metadata_are_refused),       TEST(wrong_tensors_are_refused), TEST(smollm2_is_described),
    };
    return cmocka_run_group_tests_name("gguf_model", tests, NULL, NULL);
}
