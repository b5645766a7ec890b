/* Tests vkt_tokenizer. Token ids are compared with the ids of Hugging Face's tokenizers
 * (golden/make_tokenizer_golden.py). Also tests decoding, and arguments that are refused. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "data/tokenizer_file.h"
#include "support/host.h"

static const char *const pres[] = { "gpt-2", "smollm", "llama-bpe", "qwen2" };

static test_vocabulary *read_vocabulary(const char *pre)
{
    char path[512];
    snprintf(path, sizeof path, "%s/golden/tokenizer_%s.txt", VKT_TEST_DIR, pre);
    return test_vocabulary_read(path);
}

static vkt_tokenizer *make(const test_vocabulary *v)
{
    const vkt_host h = vkt_test_host();
    vkt_tokenizer *t = NULL;
    assert_int_equal(vkt_tokenizer_create(&h, &v->params, &t), VKT_OK);
    return t;
}

static vkt_tokenizer *tokenizer_of(const char *pre)
{
    test_vocabulary *v = read_vocabulary(pre);
    vkt_tokenizer *t = make(v);
    test_vocabulary_free(v);
    return t;
}

/* ---- golden ids ---- */

/* Encodes the text of a line `FLAG TEXT IDS...` and compares the ids. FLAG 1 stands for VKT_TOKENS_SPECIAL. */
static void check_line(const vkt_tokenizer *t, char *line, vkt_tokens *list)
{
    const uint32_t flags = line[0] == '1' ? VKT_TOKENS_SPECIAL : 0;
    char *text = line + 2, *ids = strchr(text, ' ');
    assert_non_null(ids);
    *ids++ = 0;
    const size_t n = test_unescape(text);
    list->n = 0;
    assert_int_equal(vkt_tokenizer_encode(t, text, n, flags, list), VKT_OK);
    size_t i = 0;
    for (char *end; *ids; ids = end + (*end == ' '), i++) {
        const unsigned long want = strtoul(ids, &end, 10);
        if (i >= list->n || list->ids[i] != want) fail_msg("\"%s\": id %zu: want %lu", text, i, want);
        assert_int_equal(list->marks[i], 0);
    }
    if (i != list->n) fail_msg("\"%s\": want %zu ids, got %zu", text, i, list->n);
}

static void ids_are_those_of_tokenizers(void **state)
{
    (void)state;
    for (size_t i = 0; i < VKT_COUNT(pres); i++) {
        test_vocabulary *v = read_vocabulary(pres[i]);
        vkt_tokenizer *t = make(v);
        vkt_tokens list = { 0 };
        unsigned n, lines = 0;
        char *at = v->rest, *line = test_next_line(&at);
        assert_int_equal(sscanf(line, "texts %u", &n), 1);
        for (; (line = test_next_line(&at)); lines++) check_line(t, line, &list);
        assert_true(lines == n && n > 300);
        vkt_tokens_release(&list);
        vkt_tokenizer_destroy(&t);
        test_vocabulary_free(v);
    }
}

/* ---- cases that the golden files do not have ---- */

static void encodes_to(const vkt_tokenizer *t, const char *text, size_t n, uint32_t flags, const char *tokens)
{
    char got[1024] = "";
    vkt_tokens list = { 0 };
    assert_int_equal(vkt_tokenizer_encode(t, text, n, flags, &list), VKT_OK);
    for (size_t i = 0; i < list.n; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s[%s]", got[0] ? " " : "",
                 vkt_tokenizer_token(t, list.ids[i], NULL));
    assert_string_equal(got, tokens);
    vkt_tokens_release(&list);
}

/* The merge of the lowest rank comes first. Of merges of the same rank, the leftmost merge comes first. "ab cd" merges
 * the results of two other merges. */
static void merges_apply_by_rank(void **state)
{
    static const vkt_gguf_string tokens[] = { { "a", 1 },  { "b", 1 },  { "c", 1 },    { "d", 1 }, { "bc", 2 },
                                              { "ab", 2 }, { "cd", 2 }, { "abcd", 4 }, { "aa", 2 } };
    static const vkt_gguf_string merges[] = { { "c d", 3 }, { "a b", 3 }, { "b c", 3 }, { "ab cd", 5 }, { "a a", 3 } };
    const vkt_tokenizer_params p = {
        .tokens = tokens, .n_tokens = VKT_COUNT(tokens), .merges = merges, .n_merges = VKT_COUNT(merges), .pre = "gpt-2"
    };
    const vkt_host h = vkt_test_host();
    vkt_tokenizer *t;
    (void)state;
    assert_int_equal(vkt_tokenizer_create(&h, &p, &t), VKT_OK);
    encodes_to(t, "abcd", 4, 0, "[abcd]");
    encodes_to(t, "bcd", 3, 0, "[b] [cd]");
    encodes_to(t, "abc", 3, 0, "[ab] [c]");
    encodes_to(t, "aaa", 3, 0, "[aa] [a]");
    encodes_to(t, "aaab", 4, 0, "[aa] [ab]");
    encodes_to(t, "aab", 3, 0, "[a] [ab]");
    encodes_to(t, "axb", 3, 0, "[ab]"); /* no token has the byte x, so x is left out before the merges */
    assert_false(vkt_tokenizer_covers(t));
    vkt_tokenizer_destroy(&t);
}

/* A byte that is not UTF-8 splits a text as U+FFFD does. U+FFFD is neither a letter, nor a number, nor a space. */
static void bytes_that_are_not_utf8_split_texts(void **state)
{
    static const vkt_gguf_string tokens[] = {
        { "a", 1 }, { ".", 1 }, { "\xc3\xbf", 2 }, { "a\xc3\xbf", 3 }, { ".\xc3\xbf", 3 }
    };
    static const vkt_gguf_string merges[] = { { "a \xc3\xbf", 4 }, { ". \xc3\xbf", 4 } };
    vkt_tokenizer_params p = {
        .tokens = tokens, .n_tokens = VKT_COUNT(tokens), .merges = merges, .n_merges = VKT_COUNT(merges)
    };
    const vkt_host h = vkt_test_host();
    (void)state;
    for (size_t i = 0; i < VKT_COUNT(pres); i++) {
        vkt_tokenizer *t;
        p.pre = pres[i];
        assert_int_equal(vkt_tokenizer_create(&h, &p, &t), VKT_OK);
        encodes_to(t, "a\xff", 2, 0, "[a] [\xff]");
        encodes_to(t, ".\xff", 2, 0, "[.\xff]");
        vkt_tokenizer_destroy(&t);
    }
}

/* If the vocabulary has a token for each byte, bytes that are not UTF-8 are the same after encoding and decoding. */
static void bytes_that_are_not_utf8_are_kept(void **state)
{
    static const char *const texts[] = {
        "\xff", "a\x80 b", "it's\xc3", "\xe2\x82", "x \xf0\x9f\x98 1\xed\xa0\x80\n", "e\xcc\x81\xff"
    };
    (void)state;
    for (size_t i = 0; i < VKT_COUNT(pres); i++) {
        vkt_tokenizer *t = tokenizer_of(pres[i]);
        if (strcmp(pres[i], "smollm") != 0) assert_true(vkt_tokenizer_covers(t));
        for (size_t k = 0; vkt_tokenizer_covers(t) && k < VKT_COUNT(texts); k++) {
            char out[64];
            size_t n;
            vkt_tokens list = { 0 };
            assert_int_equal(vkt_tokenizer_encode(t, texts[k], strlen(texts[k]), 0, &list), VKT_OK);
            assert_int_equal(vkt_tokenizer_decode(t, list.ids, list.n, false, out, sizeof out, &n), VKT_OK);
            const char *want = strcmp(pres[i], "qwen2") == 0 && k == 5 ? "\xc3\xa9\xff" : texts[k];
            assert_int_equal(n, strlen(want));
            assert_memory_equal(out, want, n);
            vkt_tokens_release(&list);
        }
        vkt_tokenizer_destroy(&t);
    }
}

static void special_tokens_need_a_flag(void **state)
{
    (void)state;
    vkt_tokenizer *t = tokenizer_of("llama-bpe");
    vkt_tokens list = { 0 };
    encodes_to(t, "1<|eot_id|>>2", 13, VKT_TOKENS_SPECIAL, "[1] [<|eot_id|>>] [2]");
    encodes_to(t, "1<|eot_id|>2", 12, VKT_TOKENS_SPECIAL | VKT_TOKENS_BOS, "[<|begin_of_text|>] [1] [<|eot_id|>] [2]");
    assert_int_equal(vkt_tokenizer_encode(t, "1<|eot_id|>2", 12, 0, &list), VKT_OK);
    for (size_t i = 0; i < list.n; i++) assert_int_not_equal(vkt_tokenizer_kind(t, list.ids[i]), VKT_TOKEN_CONTROL);
    /* A user-defined token is found without VKT_TOKENS_SPECIAL, too. */
    encodes_to(t, "1<think>2", 9, 0, "[1] [<think>] [2]");
    vkt_tokens_release(&list);
    vkt_tokenizer_destroy(&t);
}

/* Encodes a text of many equal characters and an x. In most cases, the pre-tokenizer makes a long piece of the equal
 * characters. If the vocabulary has a token for each byte, no byte may be lost. */
static void long_runs_are_encoded(void **state)
{
    enum { N = 1 << 17 };
    static const char runs[] = { ' ', 'a', '1', '.', '\n', '\xff' };
    char *text = malloc(N + 1), *out = malloc(N + 1);
    (void)state;
    assert_true(text && out);
    for (size_t i = 0; i < VKT_COUNT(pres); i++) {
        vkt_tokenizer *t = tokenizer_of(pres[i]);
        for (size_t k = 0; k < VKT_COUNT(runs); k++) {
            vkt_tokens list = { 0 };
            size_t n;
            memset(text, runs[k], N);
            text[N] = 'x';
            assert_int_equal(vkt_tokenizer_encode(t, text, N + 1, VKT_TOKENS_SPECIAL, &list), VKT_OK);
            assert_int_equal(vkt_tokenizer_decode(t, list.ids, list.n, false, out, N + 1, &n), VKT_OK);
            if (vkt_tokenizer_covers(t)) {
                assert_int_equal(n, N + 1);
                assert_memory_equal(out, text, N + 1);
            }
            vkt_tokens_release(&list);
        }
        vkt_tokenizer_destroy(&t);
    }
    free(text);
    free(out);
}

/* ---- decoding ---- */

static void a_stream_holds_incomplete_characters(void **state)
{
    static const struct {
        char bytes[5];
        const char *printed[4]; /* the text that the stream returns after each byte */
    } cases[] = {
        { "\xf0\x9f\x98\x80", { "", "", "", "\xf0\x9f\x98\x80" } },
        { "\xe2\x82\xac.", { "", "", "\xe2\x82\xac", "." } },
        { "\xc3\xa9\xe2x", { "", "\xc3\xa9", "", "\xe2x" } },
        { "\xf0\x9fx\xff", { "", "", "\xf0\x9fx", "\xff" } },
        { "\xe0\x80zz", { "", "\xe0\x80", "z", "z" } },
        { "\xed\xa0\xf4\x90", { "", "\xed\xa0", "", "\xf4\x90" } },
        { "\xe2\xe2\x82\xac", { "", "\xe2", "", "\xe2\x82\xac" } },
    };
    (void)state;
    vkt_tokenizer *t = tokenizer_of("gpt-2");
    const size_t room = vkt_tokenizer_longest(t) + 4;
    char *out = malloc(room);
    vkt_token_stream s = { .skip_special = true };
    assert_non_null(out);
    for (size_t i = 0; i < VKT_COUNT(cases); i++)
        for (size_t k = 0; k < 4; k++) {
            const uint32_t id = vkt_tokenizer_id(t, cases[i].bytes + k, 1);
            assert_int_equal(vkt_tokenizer_stream(t, &s, id, out, room), VKT_OK);
            assert_string_equal(out, cases[i].printed[k]);
        }
    /* The stream leaves a control token out, and still holds the bytes of an incomplete character. */
    assert_int_equal(vkt_tokenizer_stream(t, &s, vkt_tokenizer_id(t, "\xe2", 1), out, room), VKT_OK);
    assert_int_equal(vkt_tokenizer_stream(t, &s, vkt_tokenizer_id(t, "<|im_end|>", 10), out, room), VKT_OK);
    assert_string_equal(out, "");
    vkt_token_stream_end(&s, out);
    assert_string_equal(out, "\xe2");
    vkt_token_stream_end(&s, out);
    assert_string_equal(out, "");
    s.skip_special = false;
    assert_int_equal(vkt_tokenizer_stream(t, &s, vkt_tokenizer_id(t, "<|im_end|>", 10), out, room), VKT_OK);
    assert_string_equal(out, "<|im_end|>");
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_tokenizer_stream(t, &s, 0, out, room - 1), VKT_E_ARG);
    assert_int_equal(vkt_tokenizer_stream(t, &s, vkt_tokenizer_size(t), out, room), VKT_E_ARG);
    vkt_test_expect_errors(false);
    free(out);
    vkt_tokenizer_destroy(&t);
}

static void decoding_fills_what_there_is_room_for(void **state)
{
    (void)state;
    vkt_tokenizer *t = tokenizer_of("gpt-2");
    const uint32_t ids[] = { vkt_tokenizer_id(t, "<|im_end|>", 10), vkt_tokenizer_id(t, "Hello", 5) };
    char out[8] = "-------";
    size_t n;
    assert_int_equal(vkt_tokenizer_decode(t, ids, 2, true, out, 3, &n), VKT_OK);
    assert_int_equal(n, 5);
    assert_string_equal(out, "Hel----");
    assert_int_equal(vkt_tokenizer_decode(t, ids, 2, false, NULL, 0, &n), VKT_OK);
    assert_int_equal(n, 15);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_tokenizer_decode(t, (uint32_t[]){ 100000 }, 1, false, out, 3, &n), VKT_E_ARG);
    vkt_test_expect_errors(false);
    assert_int_equal(vkt_tokenizer_bos(t), 1);
    assert_int_equal(vkt_tokenizer_eos(t), 2);
    assert_int_equal(vkt_tokenizer_unk(t), 0);
    assert_int_equal(vkt_tokenizer_pad(t), VKT_NO_TOKEN);
    assert_int_equal(vkt_tokenizer_id(t, "no such token", 13), VKT_NO_TOKEN);
    vkt_tokenizer_destroy(&t);
}

/* ---- threads, refusals, memory ---- */

static void *encode_much(void *user)
{
    static const char text[] = "It's the tokenizer <|im_end|> that splits 1234 \xe6\x97\xa5\xe6\x9c\xac e\xcc\x81";
    vkt_tokens list = { 0 };
    uint64_t hash = VKT_HASH_START;
    for (int i = 0; i < 200; i++) {
        list.n = 0;
        if (vkt_tokenizer_encode(user, text, sizeof text - 1, VKT_TOKENS_SPECIAL, &list) != VKT_OK) return NULL;
        hash = vkt_hash(hash, list.ids, list.n * sizeof *list.ids);
    }
    vkt_tokens_release(&list);
    return (void *)(uintptr_t)hash;
}

static void threads_share_a_tokenizer(void **state)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    void *hashes[THREADS];
    (void)state;
    vkt_tokenizer *t = tokenizer_of("qwen2");
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, encode_much, t), 0);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], &hashes[i]), 0);
    const void *alone = encode_much(t);
    assert_non_null(alone);
    for (int i = 0; i < THREADS; i++) assert_ptr_equal(hashes[i], alone);
    vkt_tokenizer_destroy(&t);
}

static void refuse(vkt_tokenizer_params p, vkt_result want, const char *message)
{
    const vkt_host h = vkt_test_host();
    vkt_tokenizer *t = (vkt_tokenizer *)&p;
    assert_int_equal(vkt_tokenizer_create(&h, &p, &t), want);
    assert_null(t);
    vkt_test_error_contains(message);
}

static void wrong_vocabularies_are_refused(void **state)
{
    static const vkt_gguf_string tokens[] = { { "a", 1 }, { "b", 1 }, { "ab", 2 }, { NULL, 0 } };
    static const vkt_gguf_string good = { "a b", 3 }, none = { NULL, 0 };
    static const vkt_gguf_string bad[] = { { "ab", 2 },  { "a c", 3 }, { "b a", 3 },
                                           { " ab", 3 }, { "ab ", 3 }, { "", 0 } };
    const vkt_tokenizer_params p = { .tokens = tokens, .n_tokens = 3, .merges = &good, .n_merges = 1, .pre = "gpt-2" };
    vkt_tokenizer_params q = p;
    (void)state;
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(bad); i++) {
        q.merges = &bad[i];
        refuse(q, VKT_E_FORMAT, "want a merge of two tokens to a token");
    }
    q.merges = &none;
    refuse(q, VKT_E_ARG, "merge 0 is NULL");
    q = p, q.n_tokens = 4;
    refuse(q, VKT_E_ARG, "token 3 is NULL");
    q = p, q.pre = "default";
    refuse(q, VKT_E_UNSUPPORTED, "want the pre-tokenizer gpt-2, smollm, llama-bpe or qwen2, got \"default\"");
    q = p, q.eos = &(uint32_t){ 3 };
    refuse(q, VKT_E_ARG, "want ids below 3, got 3");
    q = p, q.n_tokens = 0;
    refuse(q, VKT_E_ARG, "want tokens");
    vkt_test_expect_errors(false);
}

static void memory_may_fail_anywhere(void **state)
{
    static const char text[] = "It's <think> 12 e\xcc\x81\xff";
    test_vocabulary *v = read_vocabulary("qwen2");
    const vkt_host h = vkt_test_host();
    (void)state;
    vkt_test_expect_errors(true);
    unsigned refused = 0;
    for (unsigned n = 1, failed = 1; failed; n++) {
        vkt_tokenizer *t;
        vkt_tokens list = { 0 };
        vkt_test_fail_allocation(n);
        vkt_result r = vkt_tokenizer_create(&h, &v->params, &t);
        if (r == VKT_OK) r = vkt_tokenizer_encode(t, text, sizeof text - 1, 0, &list);
        failed = vkt_test_allocation_failed();
        vkt_test_fail_allocation(0);
        /* The result may be VKT_OK although an allocation failed: PCRE2 works without the memory of its just-in-time
         * compiler. */
        if (r != VKT_OK) assert_int_equal(r, VKT_E_NOMEM);
        refused += r != VKT_OK;
        assert_true(r != VKT_OK ? list.n == 0 && failed : list.n > 5);
        vkt_tokens_release(&list);
        vkt_tokenizer_destroy(&t);
    }
    assert_true(refused > 20);
    vkt_test_expect_errors(false);
    test_vocabulary_free(v);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, vkt_test_setup, vkt_test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(ids_are_those_of_tokenizers),
        TEST(merges_apply_by_rank),
        TEST(bytes_that_are_not_utf8_split_texts),
        TEST(bytes_that_are_not_utf8_are_kept),
        TEST(special_tokens_need_a_flag),
        TEST(long_runs_are_encoded),
        TEST(a_stream_holds_incomplete_characters),
        TEST(decoding_fills_what_there_is_room_for),
        TEST(threads_share_a_tokenizer),
        TEST(wrong_vocabularies_are_refused),
        TEST(memory_may_fail_anywhere),
    };
    return cmocka_run_group_tests_name("tokenizer", tests, NULL, NULL);
}
