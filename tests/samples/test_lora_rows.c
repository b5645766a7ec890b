/* Tests the rows that vkt-lora makes of chats and texts: their ids and labels, and which examples lose their end or are
 * left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "lora/rows.h"
#include "support/host.h"
#include "support/temp_dir.h"
#include "vktrain/vktrain.h"

enum { T = 40 };

static vkt_tokenizer *open_tokenizer(void)
{
    vkt_gguf *g;
    vkt_tokenizer *t;
    assert_int_equal(vkt_gguf_open(NULL, VKT_TEST_DIR "/golden/lm/llama.gguf", &g), VKT_OK);
    assert_int_equal(vkt_tokenizer_from_gguf(NULL, g, &t), VKT_OK);
    vkt_gguf_destroy(&g);
    return t;
}

static const char *write_file(const vkt_temp_dir *dir, const char *name, const char *text)
{
    const vkt_host h = vkt_test_host();
    const char *path = vkt_temp_dir_file(dir, name);
    assert_int_equal(vkt_file_write(&h, path, text, strlen(text)), VKT_OK);
    return path;
}

static rows read_rows(const char *text, rows_params p)
{
    const vkt_temp_dir dir = vkt_temp_dir_make();
    rows r;
    assert_true(rows_read(write_file(&dir, "data", text), &p, &r));
    vkt_temp_dir_remove(&dir);
    return r;
}

/* Compares a row with the n ids of an example. If n < T, the rest of the row has the id `fill`. The label ids[i] counts
 * if marks[i] is not 0. If `marks` is NULL, all labels count. */
static void expect_row(const rows *r, uint32_t row, const uint32_t *ids, const uint8_t *marks, size_t n, uint32_t fill)
{
    const uint32_t *got = r->ids + (size_t)row * 2 * T;
    for (uint32_t t = 0; t < T; t++) {
        assert_int_equal(got[t], t < n ? ids[t] : fill);
        const uint32_t want = t + 1 < n && (!marks || marks[t + 1]) ? ids[t + 1] : UINT32_MAX;
        assert_int_equal(got[T + t], want);
    }
}

static uint32_t fill_of(const vkt_tokenizer *t)
{
    if (vkt_tokenizer_pad(t) != VKT_NO_TOKEN) return vkt_tokenizer_pad(t);
    return vkt_tokenizer_eos(t) != VKT_NO_TOKEN ? vkt_tokenizer_eos(t) : 0;
}

static void chats_have_the_models_form(void **state)
{
    (void)state;
    vkt_tokenizer *t = open_tokenizer();
    static const vkt_chat_message one[] = { { "user", "a?" }, { "assistant", "b\n" } };
    static const vkt_chat_message two[] = { { "system", "s" }, { "user", "\xc3\xa9" }, { "assistant", "" } };
    static const char text[] = "\n {\"question\": \"a?\", \"answer\": \"b\\n\"}\n\n"
                               "{\"messages\": [{\"role\": \"system\", \"content\": \"s\"}, {\"role\": \"user\", "
                               "\"content\": \"\\u00e9\", \"more\": 1}, {\"content\": \"\", \"role\": \"assistant\"}]}";
    for (int only = 0; only < 2; only++) {
        rows r = read_rows(text, (rows_params){ t, VKT_CHAT_CHATML, T, only });
        vkt_tokens a = { 0 }, b = { 0 };
        assert_int_equal(vkt_tokenizer_chat(t, VKT_CHAT_CHATML, one, 2, 0, &a), VKT_OK);
        assert_int_equal(vkt_tokenizer_chat(t, VKT_CHAT_CHATML, two, 3, 0, &b), VKT_OK);
        assert_int_equal(r.n, 2);
        assert_int_equal(r.n_examples, 2);
        assert_true(r.chats == 2 && !r.texts && !r.cut && !r.left_out);
        expect_row(&r, 0, a.ids, only ? a.marks : NULL, a.n, fill_of(t));
        expect_row(&r, 1, b.ids, only ? b.marks : NULL, b.n, fill_of(t));
        assert_int_equal(r.tokens, (a.n < T ? a.n : T) + (b.n < T ? b.n : T));
        assert_string_equal(r.prompt, "\xc3\xa9");
        assert_false(r.prompt_is_text);
        vkt_tokens_release(&a);
        vkt_tokens_release(&b);
        rows_free(&r);
    }
    vkt_tokenizer_destroy(&t);
}

static void completions_end_with_eos(void **state)
{
    (void)state;
    vkt_tokenizer *t = open_tokenizer();
    for (int only = 0; only < 2; only++) {
        rows r = read_rows("{\"prompt\": \"one two\", \"completion\": \" three\"}\n",
                           (rows_params){ t, VKT_CHAT_CHATML, T, only });
        vkt_tokens want = { 0 };
        assert_int_equal(vkt_tokenizer_encode(t, "one two", 7, VKT_TOKENS_BOS, &want), VKT_OK);
        const size_t start = want.n;
        assert_int_equal(vkt_tokenizer_encode(t, " three", 6, 0, &want), VKT_OK);
        uint32_t ids[T];
        uint8_t marks[T] = { 0 };
        memcpy(ids, want.ids, want.n * sizeof *ids);
        for (size_t i = start; i <= want.n; i++) marks[i] = 1;
        const size_t n = want.n + (vkt_tokenizer_eos(t) != VKT_NO_TOKEN);
        if (n > want.n) ids[want.n] = vkt_tokenizer_eos(t);
        assert_int_equal(r.n, 1);
        expect_row(&r, 0, ids, only ? marks : NULL, n, fill_of(t));
        assert_true(r.prompt_is_text);
        vkt_tokens_release(&want);
        rows_free(&r);
    }
    vkt_tokenizer_destroy(&t);
}

/* An example of at most T + 1 ids stays whole. A longer example loses its end. Here only labels of the completion
 * count. So an example whose prompt has more than T ids is left out. */
static void long_examples_are_cut_or_left_out(void **state)
{
    (void)state;
    vkt_tokenizer *t = open_tokenizer();
    char text[4096] = "";
    uint32_t cut = 0, left_out = 0, whole = 0;
    for (uint32_t n = 1; n < 90; n += 4) { /* n: bytes of the completion */
        snprintf(text, sizeof text, "{\"prompt\": \"%.*s\", \"completion\": \"%.*s\"}\n", 10, "qwertyuiop", (int)n,
                 "zqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzq");
        vkt_tokens list = { 0 };
        char all[256];
        assert_int_equal(vkt_tokenizer_encode(t, "qwertyuiop", 10, VKT_TOKENS_BOS, &list), VKT_OK);
        const size_t prompt = list.n;
        assert_true(prompt < T);
        memset(all, 0, sizeof all);
        for (uint32_t i = 0; i < n; i++) all[i] = i % 2 ? 'q' : 'z';
        assert_int_equal(vkt_tokenizer_encode(t, all, n, 0, &list), VKT_OK);
        const size_t ids = list.n + (vkt_tokenizer_eos(t) != VKT_NO_TOKEN);
        rows r = read_rows(text, (rows_params){ t, VKT_CHAT_CHATML, T, true });
        assert_int_equal(r.n, 1);
        assert_int_equal(r.cut, ids > T + 1);
        assert_int_equal(r.counted, (ids > T + 1 ? T + 1 : ids) - prompt);
        cut += r.cut;
        whole += !r.cut;
        rows_free(&r);
        vkt_tokens_release(&list);
    }
    assert_true(cut > 3 && whole > 3);
    snprintf(text, sizeof text,
             "{\"prompt\": \"%s%s\", \"completion\": \"x\"}\n{\"prompt\": \"a\", \"completion\": \"b\"}\n",
             "qzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqz",
             "qzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqzqz");
    rows r = read_rows(text, (rows_params){ t, VKT_CHAT_CHATML, T, true });
    left_out = r.left_out;
    assert_int_equal(left_out, 1);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.n_examples, 2);
    assert_int_equal(r.examples[0], 2);
    rows_free(&r);
    vkt_tokenizer_destroy(&t);
}

static void plain_text_becomes_windows(void **state)
{
    (void)state;
    vkt_tokenizer *t = open_tokenizer();
    char text[1000];
    for (size_t i = 0; i < sizeof text - 1; i++) text[i] = "the cat, 7 mats.\n"[i % 17];
    text[sizeof text - 1] = '\0';
    vkt_tokens all = { 0 };
    assert_int_equal(vkt_tokenizer_encode(t, text, strlen(text), 0, &all), VKT_OK);
    rows r = read_rows(text, (rows_params){ t, 0, T, false });
    assert_true(!r.chats && !r.texts);
    assert_int_equal(r.n, (all.n - 1 + T - 1) / T); /* each token but the first one is one label */
    assert_int_equal(r.counted, all.n - 1);
    for (uint32_t i = 0; i < r.n; i++) {
        const size_t left = all.n - (size_t)i * T;
        expect_row(&r, i, all.ids + (size_t)i * T, NULL, left < T + 1 ? left : T + 1, fill_of(t));
    }
    rows_free(&r);
    /* A window of --perplexity has at most T tokens. It has one label fewer than tokens, because its last token
     * predicts nothing. A last window of a single token is left out. */
    for (size_t n = 2 * T; n < 2 * T + 3; n++) {
        const rows_params p = { t, 0, T, false };
        assert_true(rows_windows(all.ids, n, &p, &r));
        assert_int_equal(r.n, n == 2 * T + 2 ? 3 : 2);
        for (uint32_t i = 0; i < r.n; i++)
            expect_row(&r, i, all.ids + (size_t)i * T, NULL, i < 2 ? T : n - 2 * T, fill_of(t));
        assert_int_equal(r.counted, 2 * (T - 1) + (n == 2 * T + 2));
        rows_free(&r);
    }
    vkt_tokens_release(&all);
    vkt_tokenizer_destroy(&t);
}

/* The reader skips a byte order mark before JSON lines and before plain text. */
static void a_byte_order_mark_is_skipped(void **state)
{
    (void)state;
    vkt_tokenizer *t = open_tokenizer();
    static const char *const texts[] = { "\xef\xbb\xbf{\"prompt\": \"a\", \"completion\": \"b\"}\n",
                                         "\xef\xbb\xbf \n{\"prompt\": \"a\", \"completion\": \"b\"}\n",
                                         "\xef\xbb\xbfthe cat, 7 mats" };
    for (size_t i = 0; i < VKT_COUNT(texts); i++) {
        rows marked = read_rows(texts[i], (rows_params){ t, 0, T, false });
        rows plain = read_rows(texts[i] + 3, (rows_params){ t, 0, T, false });
        assert_int_equal(marked.texts, i < 2);
        assert_int_equal(plain.texts, i < 2);
        assert_true(marked.n == 1 && plain.n == 1 && marked.tokens == plain.tokens);
        assert_memory_equal(marked.ids, plain.ids, 2 * T * sizeof *plain.ids);
        rows_free(&marked);
        rows_free(&plain);
    }
    vkt_tokenizer_destroy(&t);
}

static void the_last_examples_are_split_off(void **state)
{
    (void)state;
    vkt_tokenizer *t = open_tokenizer();
    rows r = read_rows("{\"prompt\": \"a\", \"completion\": \"b\"}\n{\"prompt\": \"c\", \"completion\": \"d\"}\n\n"
                       "{\"prompt\": \"e\", \"completion\": \"f g h i\"}\n",
                       (rows_params){ t, 0, T, false });
    vkt_dataset *d;
    for (uint32_t n = 0; n <= 3; n++) assert_int_equal(rows_split(&r, n), 3 - n);
    assert_int_equal(rows_dataset(NULL, &r, T, 1, 2, &d), VKT_OK);
    assert_int_equal(vkt_dataset_rows(d), 2);
    assert_int_equal(vkt_dataset_row_bytes(d), 2 * T * sizeof(uint32_t));
    assert_memory_equal(vkt_dataset_features(d), r.ids + 2 * T, 2 * 2 * T * sizeof(uint32_t));
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t count = 0;
        for (uint32_t k = 0; k < T; k++) count += r.ids[((1 + i) * 2 + 1) * T + k] != IGNORED;
        assert_int_equal(vkt_dataset_terms(d)[i], count);
        assert_true(count > 0 && count < T);
    }
    assert_int_not_equal(vkt_dataset_terms(d)[0], vkt_dataset_terms(d)[1]);
    vkt_dataset_destroy(&d);
    rows_free(&r);
    vkt_tokenizer_destroy(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chats_have_the_models_form),        cmocka_unit_test(completions_end_with_eos),
        cmocka_unit_test(long_examples_are_cut_or_left_out), cmocka_unit_test(plain_text_becomes_windows),
        cmocka_unit_test(a_byte_order_mark_is_skipped),      cmocka_unit_test(the_last_examples_are_split_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
