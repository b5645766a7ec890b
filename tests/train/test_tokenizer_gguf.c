/* Tests vkt_tokenizer_from_gguf with files that the test writes, and with SmolLM2's file. With SmolLM2's file,
 * the validation text of wikitext-2 must have the token ids of the Python package tokenizers
 * (golden/compare_tokenizers.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "support/find_data.h"
#include "support/host.h"
#include "support/temp_dir.h"
#include "vktrain/tokenizer.h"

enum { MODEL, PRE, TOKENS, TYPES, MERGES, BOS, EOS, ADD_BOS, N_META };

static const vkt_gguf_string gpt2 = { "gpt2", 4 }, llama = { "llama", 5 }, pre = { "llama-bpe", 9 };
static const vkt_gguf_string tokens[] = { { "a", 1 }, { "b", 1 }, { "ab", 2 }, { "<s>", 3 }, { "</s>", 4 } };
static const vkt_gguf_string merges[] = { { "a b", 3 } };
static const int32_t types[] = { 1, 1, 1, 3, 3 };
static const uint32_t bos = 3, eos = 4, large = 5;
static const bool no = false;
static const vkt_gguf_meta good[N_META] = {
    [MODEL] = { "tokenizer.ggml.model", VKT_GGUF_KIND_TEXT, false, 1, &gpt2 },
    [PRE] = { "tokenizer.ggml.pre", VKT_GGUF_KIND_TEXT, false, 1, &pre },
    [TOKENS] = { "tokenizer.ggml.tokens", VKT_GGUF_KIND_TEXT, true, 5, tokens },
    [TYPES] = { "tokenizer.ggml.token_type", VKT_GGUF_KIND_I32, true, 5, types },
    [MERGES] = { "tokenizer.ggml.merges", VKT_GGUF_KIND_TEXT, true, 1, merges },
    [BOS] = { "tokenizer.ggml.bos_token_id", VKT_GGUF_KIND_U32, false, 1, &bos },
    [EOS] = { "tokenizer.ggml.eos_token_id", VKT_GGUF_KIND_U32, false, 1, &eos },
    [ADD_BOS] = { "tokenizer.ggml.add_bos_token", VKT_GGUF_KIND_BOOL, false, 1, &no },
};

/* Writes a file with the first n entries of `meta`, and makes a tokenizer of the file. */
static vkt_result make(const vkt_gguf_meta *meta, size_t n, vkt_tokenizer **t)
{
    const vkt_host h = vkt_test_host();
    vkt_temp_dir dir = vkt_temp_dir_make();
    const char *path = vkt_temp_dir_file(&dir, "tokens.gguf");
    vkt_gguf *g;
    assert_int_equal(vkt_gguf_write(&h, path, meta, n, NULL, 0), VKT_OK);
    assert_int_equal(vkt_gguf_open(&h, path, &g), VKT_OK);
    const vkt_result r = vkt_tokenizer_from_gguf(&h, g, t);
    vkt_gguf_destroy(&g);
    vkt_temp_dir_remove(&dir);
    return r;
}

static void a_file_makes_a_tokenizer(void **state)
{
    static const uint32_t want[] = { 3, 2, 0, 4 };
    (void)state;
    for (size_t n = ADD_BOS; n <= N_META; n++) {
        vkt_tokenizer *t;
        vkt_tokens list = { 0 };
        /* The entry ADD_BOS is false. If the file lacks this entry, a text of Llama 3 begins with bos. */
        const bool has_bos = n == ADD_BOS;
        assert_int_equal(make(good, n, &t), VKT_OK);
        assert_int_equal(vkt_tokenizer_encode(t, "aba</s>", 7, VKT_TOKENS_SPECIAL | VKT_TOKENS_BOS, &list), VKT_OK);
        assert_int_equal(list.n, 3 + has_bos);
        assert_memory_equal(list.ids, want + !has_bos, list.n * sizeof *want);
        assert_int_equal(vkt_tokenizer_eos(t), 4);
        assert_int_equal(vkt_tokenizer_pad(t), VKT_NO_TOKEN);
        vkt_tokens_release(&list);
        vkt_tokenizer_destroy(&t);
    }
}

static void other_files_are_refused(void **state)
{
    static const struct {
        int at;
        vkt_gguf_meta meta; /* replaces entry `at` of `good` */
        vkt_result result;
        const char *message;
    } cases[] = {
        { MODEL, { "tokenizer.ggml.model", VKT_GGUF_KIND_TEXT, false, 1, &llama }, VKT_E_UNSUPPORTED, "got \"llama\"" },
        { PRE, { "tokenizer.ggml.pre", VKT_GGUF_KIND_TEXT, false, 1, &gpt2 }, VKT_E_UNSUPPORTED, "got \"gpt2\"" },
        { TOKENS,
          { "tokenizer.ggml.tokens", VKT_GGUF_KIND_I32, true, 5, types },
          VKT_E_FORMAT,
          "want a list of texts" },
        { TYPES, { "tokenizer.ggml.token_type", VKT_GGUF_KIND_I32, true, 4, types }, VKT_E_FORMAT, "got 4 and 5" },
        { TYPES,
          { "other", VKT_GGUF_KIND_I32, true, 5, types },
          VKT_E_NOT_FOUND,
          "no key \"tokenizer.ggml.token_type\"" },
        { MERGES, { "tokenizer.ggml.merges", VKT_GGUF_KIND_TEXT, true, 1, tokens }, VKT_E_FORMAT, "got \"a\"" },
    };
    (void)state;
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        vkt_gguf_meta meta[N_META];
        vkt_tokenizer *t;
        memcpy(meta, good, sizeof meta);
        meta[cases[i].at] = cases[i].meta;
        assert_int_equal(make(meta, N_META, &t), cases[i].result);
        vkt_test_error_contains(cases[i].message);
        assert_null(t);
    }
    vkt_test_expect_errors(false);
}

/* Some files have 4294967295 as the id of a token that does not exist. This file has 5, which is too large, because
 * there are 5 tokens. */
static void ids_of_no_token_are_ignored(void **state)
{
    (void)state;
    vkt_gguf_meta meta[N_META];
    vkt_tokenizer *t;
    memcpy(meta, good, sizeof meta);
    meta[EOS] = (vkt_gguf_meta){ "tokenizer.ggml.eos_token_id", VKT_GGUF_KIND_U32, false, 1, &large };
    assert_int_equal(make(meta, N_META, &t), VKT_OK);
    assert_int_equal(vkt_tokenizer_eos(t), VKT_NO_TOKEN);
    vkt_tokenizer_destroy(&t);
}

static char *read_whole(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *n = (size_t)ftell(f);
    rewind(f);
    char *text = malloc(*n);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, *n, f), *n);
    fclose(f);
    return text;
}

static void wikitext_has_the_ids_of_tokenizers(void **state)
{
    char model[512], path[512];
    const vkt_host h = vkt_test_host();
    (void)state;
    if (!vkt_test_find_data("smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", model) ||
        !vkt_test_find_data("wikitext-2/valid.txt", path))
        skip();
    vkt_gguf *g;
    vkt_tokenizer *t;
    vkt_gguf_string jinja;
    vkt_tokens list = { 0 };
    assert_int_equal(vkt_gguf_open(&h, model, &g), VKT_OK);
    assert_int_equal(vkt_tokenizer_from_gguf(&h, g, &t), VKT_OK);
    assert_int_equal(vkt_gguf_get_text(g, "tokenizer.chat_template", VKT_GGUF_ONE, &jinja), VKT_OK);
    assert_int_equal(vkt_chat_template_guess(jinja.text), VKT_CHAT_SMOLLM2);
    vkt_gguf_destroy(&g);
    assert_int_equal(vkt_tokenizer_size(t), 49152);
    assert_false(vkt_tokenizer_covers(t)); /* 235 of 256 bytes have a token */
    size_t n, bytes;
    char *text = read_whole(path, &n), *out = malloc(n);
    assert_non_null(out);
    assert_int_equal(vkt_tokenizer_encode(t, text, n, VKT_TOKENS_SPECIAL, &list), VKT_OK);
    assert_int_equal(list.n, 273868);
    assert_true(vkt_hash(VKT_HASH_START, list.ids, list.n * sizeof *list.ids) == 0xa933574ad3c6ac13ull);
    assert_int_equal(vkt_tokenizer_decode(t, list.ids, list.n, false, out, n, &bytes), VKT_OK);
    assert_int_equal(bytes, n);
    assert_memory_equal(out, text, n);
    free(text);
    free(out);
    vkt_tokens_release(&list);
    vkt_tokenizer_destroy(&t);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, vkt_test_setup, vkt_test_teardown)
    const struct CMUnitTest tests[] = { TEST(a_file_makes_a_tokenizer), TEST(other_files_are_refused),
                                        TEST(ids_of_no_token_are_ignored), TEST(wikitext_has_the_ids_of_tokenizers) };
    return cmocka_run_group_tests_name("tokenizer of a GGUF file", tests, NULL, NULL);
}
