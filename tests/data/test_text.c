/* Tests texts, vocabularies and sequences: Keras' definitions, refused inputs, and the Reuters corpus. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "data/temp.h"
#include "support/find_data.h"
#include "support/host.h"
#include "vktrain/text.h"

static vkt_vocab *vocab_of(const vkt_vocab_params *p, const char *const *texts, size_t n)
{
    const vkt_host h = vkt_test_host();
    vkt_vocab *v;
    assert_int_equal(vkt_vocab_create(&h, p, texts, n, &v), VKT_OK);
    return v;
}

static void expect_words(const vkt_vocab *v, const char *const *words, uint32_t n, uint32_t from)
{
    assert_int_equal(vkt_vocab_size(v), from + n);
    for (uint32_t i = 0; i < n; i++) {
        assert_string_equal(vkt_vocab_word(v, from + i, NULL), words[i]);
        assert_int_equal(vkt_vocab_id(v, words[i]), from + i);
    }
    assert_null(vkt_vocab_word(v, from - 1, NULL));
    assert_null(vkt_vocab_word(v, from + n, NULL));
    assert_int_equal(vkt_vocab_id(v, "nowhere"), VKT_ID_UNKNOWN);
}

static void words_are_numbered_by_frequency_and_first_sight(void **state)
{
    (void)state;
    static const char *const texts[] = { "b a, C!  a", "don't (c) B-a\tD\ne", "" };
    vkt_vocab *v = vocab_of(NULL, texts, 3);
    expect_words(v, (const char *const[]){ "a", "b", "c", "don't", "d", "e" }, 6, 3);
    uint64_t count;
    assert_string_equal(vkt_vocab_word(v, 4, &count), "b");
    assert_int_equal(count, 2);
    uint32_t ids[4], n;
    assert_int_equal(vkt_vocab_encode(v, "C.B.A. zebra e", ids, 4, &n), VKT_OK);
    assert_int_equal(n, 5); /* the fifth id did not fit */
    assert_memory_equal(ids, ((uint32_t[]){ 5, 4, 3, 2 }), sizeof ids);
    vkt_vocab_destroy(&v);
    vkt_vocab_destroy(&v);

    v = vocab_of(&(vkt_vocab_params){ .num_words = 6, .index_from = 4 }, texts, 3);
    expect_words(v, (const char *const[]){ "a", "b" }, 2, 4);
    vkt_vocab_destroy(&v);
    v = vocab_of(&(vkt_vocab_params){ .keep_case = true, .filters = "a" }, texts, 2);
    expect_words(v, (const char *const[]){ "b", ",", "C!", "don't", "(c)", "B-", "\tD\ne" }, 7, 3);
    vkt_vocab_destroy(&v);
    v = vocab_of(NULL, NULL, 0);
    expect_words(v, NULL, 0, 3);
    vkt_vocab_destroy(&v);
}

/* ASCII capitals become small letters. So does a capital of Latin-1, Latin Extended-A, modern Greek or Cyrillic, if the
 * capital and its small letter have two bytes each. Other bytes stay unchanged: for example small letters, letters of
 * three bytes, and bytes that are not UTF-8. */
static void letters_of_two_bytes_are_lowered(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        { "ÀÖØÞĀĮĲĶĹŇŊŶŸŹŽ", "àöøþāįĳķĺňŋŷÿźž" },
        { "ΆΈΊΌΎΏΑΡΣΫ", "άέίόύώαρσϋ" },
        { "ЀЏАЯҠҊҾӀӁӍӐԮ", "ѐџаяҡҋҿӏӂӎӑԯ" },
        { "àþÿāįĸŉžſ×÷ßά", "àþÿāįĸŉžſ×÷ßά" },
        { "A\xc3", "a\xc3" },
        { "\xc3Z\x80\xff\xe2\x84\xaa", "\xc3z\x80\xff\xe2\x84\xaa" },
    };
    for (size_t i = 0; i < VKT_COUNT(pairs); i++) {
        vkt_vocab *v = vocab_of(NULL, &pairs[i][0], 1);
        expect_words(v, &pairs[i][1], 1, 3);
        vkt_vocab_destroy(&v);
    }
}

static void sequences_are_truncated_and_padded_as_in_keras(void **state)
{
    (void)state;
    static const uint32_t ids[] = { 5, 6, 7 };
    static const struct {
        vkt_sequence_params p;
        uint32_t n, want[5];
    } cases[] = {
        { { .maxlen = 5 }, 3, { 0, 0, 5, 6, 7 } },
        { { .maxlen = 2 }, 3, { 6, 7 } },
        { { .maxlen = 3 }, 3, { 5, 6, 7 } },
        { { .maxlen = 5, .padding_post = true, .value = 9 }, 3, { 5, 6, 7, 9, 9 } },
        { { .maxlen = 2, .truncating_post = true }, 3, { 5, 6 } },
        { { .maxlen = 2, .padding_post = true }, 0, { 0, 0 } },
    };
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        uint32_t out[5] = { 77, 77, 77, 77, 77 };
        vkt_pad_sequence(&cases[i].p, ids, cases[i].n, out);
        assert_memory_equal(out, cases[i].want, cases[i].p.maxlen * sizeof *out);
        for (uint32_t k = cases[i].p.maxlen; k < 5; k++) assert_int_equal(out[k], 77);
    }
}

static void a_table_becomes_a_data_set(void **state)
{
    const vkt_host h = vkt_test_host();
    static const char tsv[] = "tea\tgreen tea\nale\tPale ale, pale!\r\n\ntea\t\nale\tpale green ale";
    for (int gzip = 0; gzip < 2; gzip++) {
        vkt_texts *t;
        assert_int_equal(vkt_texts_from_tsv(&h, temp_write(*state, "t", tsv, sizeof tsv - 1, gzip), NULL, &t), VKT_OK);
        assert_int_equal(vkt_texts_rows(t), 4);
        assert_int_equal(vkt_texts_classes(t), 2);
        assert_string_equal(vkt_texts_class_names(t)[1], "ale");
        assert_string_equal(vkt_texts_all(t)[1], "Pale ale, pale!");
        vkt_vocab *v; /* the ids: pale is 3, green 4, ale 5, tea 6 */
        assert_int_equal(vkt_vocab_create(&h, NULL, vkt_texts_all(t), 4, &v), VKT_OK);
        vkt_dataset *d;
        assert_int_equal(vkt_dataset_from_texts(t, v, NULL, &d), VKT_OK);
        const uint16_t longest[4][4] = { { 0, 1, 4, 6 }, { 1, 3, 5, 3 }, { 0, 0, 0, 1 }, { 1, 3, 4, 5 } };
        assert_int_equal(vkt_dataset_type(d), VKT_ROW_U16);
        assert_int_equal(vkt_dataset_row_bytes(d), sizeof longest[0]);
        assert_memory_equal(vkt_dataset_features(d), longest, sizeof longest);
        assert_memory_equal(vkt_dataset_labels(d), ((uint32_t[]){ 0, 1, 0, 1 }), 16);
        assert_string_equal(vkt_dataset_class_name(d, 0), "tea");
        vkt_dataset_destroy(&d);
        const vkt_sequence_params p = { .maxlen = 2, .value = 65536, .no_start = true, .padding_post = true };
        assert_int_equal(vkt_dataset_from_texts(t, v, &p, &d), VKT_OK);
        const uint32_t wide[4][2] = { { 4, 6 }, { 5, 3 }, { 65536, 65536 }, { 4, 5 } };
        assert_int_equal(vkt_dataset_type(d), VKT_ROW_U32);
        assert_memory_equal(vkt_dataset_features(d), wide, sizeof wide);
        vkt_dataset_destroy(&d);
        /* For a single text, vkt_vocab_row must make the same row as the data set has. */
        uint32_t row[4], words, unknown;
        assert_int_equal(vkt_vocab_row(v, &p, "Pale ale, pale!", row, &words, &unknown), VKT_OK);
        assert_true(row[0] == 5 && row[1] == 3 && words == 3 && unknown == 0);
        const vkt_sequence_params four = { .maxlen = 4 };
        assert_int_equal(vkt_vocab_row(v, &four, "green gin", row, &words, &unknown), VKT_OK);
        assert_memory_equal(row, ((uint32_t[]){ 0, 1, 4, VKT_ID_UNKNOWN }), sizeof row);
        assert_true(words == 2 && unknown == 1);
        assert_int_equal(vkt_vocab_row(v, &four, "!", row, &words, NULL), VKT_OK);
        assert_true(row[2] == 0 && row[3] == 1 && words == 0);
        vkt_vocab_destroy(&v);

        vkt_texts *again; /* the same table, with classes in another order, and one class more */
        const vkt_tsv_params named = { .class_names = (const char *const[]){ "ale", "gin", "tea" }, .classes = 3 };
        const char *path = temp_write(*state, "t", tsv, sizeof tsv - 1, gzip);
        assert_int_equal(vkt_texts_from_tsv(&h, path, &named, &again), VKT_OK);
        assert_memory_equal(vkt_texts_labels(again), ((uint32_t[]){ 2, 0, 2, 0 }), 16);
        vkt_texts_destroy(&again);
        vkt_texts_destroy(&t);
    }
}

static void a_table_may_be_in_memory(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_texts *t;
    char tsv[] = "tea\tgreen tea\nale\tPale ale\n";
    assert_int_equal(vkt_texts_from_tsv_text(&h, "drinks", tsv, NULL, &t), VKT_OK);
    memset(tsv, 0, sizeof tsv); /* t must have its own copy of the text */
    assert_int_equal(vkt_texts_rows(t), 2);
    assert_string_equal(vkt_texts_all(t)[1], "Pale ale");
    assert_string_equal(vkt_texts_class_names(t)[0], "tea");
    vkt_texts_destroy(&t);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_texts_from_tsv_text(&h, "drinks", "tea\tgreen\nale\n", NULL, &t), VKT_E_FORMAT);
    vkt_test_error_contains("drinks, line 2");
    assert_int_equal(vkt_texts_from_tsv_text(&h, "drinks", NULL, NULL, &t), VKT_E_ARG);
    vkt_test_expect_errors(false);
    vkt_test_error_contains("text is NULL");
    assert_null(t);
}

static void refuse_tsv(void **state, const char *tsv, const vkt_tsv_params *p, vkt_result want, const char *says)
{
    const vkt_host h = vkt_test_host();
    const char *path = temp_write(*state, "bad.tsv", tsv, strlen(tsv), false);
    vkt_texts *t;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_texts_from_tsv(&h, path, p, &t), want);
    assert_null(t);
    vkt_test_error_contains(says);
    assert_int_equal(vkt_test_live_blocks(), 0);
}

static void bad_tables_are_refused_by_line(void **state)
{
    const vkt_host h = vkt_test_host();
    refuse_tsv(state, "", NULL, VKT_E_FORMAT, "found none");
    refuse_tsv(state, "a\tb\nno tab\n", NULL, VKT_E_FORMAT, "bad.tsv, line 2: ");
    refuse_tsv(state, "no tab\n", NULL, VKT_E_FORMAT, "line 1: want a label, a tab and a text, got 1 fields");
    refuse_tsv(state, "a\tb\tc\n", NULL, VKT_E_FORMAT, "got 3 fields");
    const vkt_tsv_params named = { .class_names = (const char *const[]){ "a", "b" }, .classes = 2 };
    refuse_tsv(state, "a\tx\n\nc\ty\n", &named, VKT_E_FORMAT, "line 3: label \"c\" is none of the 2 classes");
    const vkt_tsv_params twice = { .class_names = (const char *const[]){ "a", "a" }, .classes = 2 };
    refuse_tsv(state, "a\tx\n", &twice, VKT_E_ARG, "class names 0 and 1 are the same");
    const vkt_tsv_params hole = { .class_names = (const char *const[]){ "a", NULL }, .classes = 2 };
    refuse_tsv(state, "a\tx\n", &hole, VKT_E_ARG, "class name 1 is NULL");
    const char *classes = temp_write(*state, "classes", "a\r\n\nb\na", 7, false);
    refuse_tsv(state, "a\tx\n", &(vkt_tsv_params){ .classes_path = classes }, VKT_E_FORMAT,
               "class \"a\" is listed twice");
    const vkt_tsv_params both = { .classes_path = classes, .class_names = named.class_names, .classes = 2 };
    refuse_tsv(state, "a\tx\n", &both, VKT_E_ARG, "got both");
    vkt_texts *t;
    const char *truncated = temp_write(*state, "truncated.gz", "a\tb\n", 4, true);
    assert_int_equal(truncate(truncated, 20), 0); /* the end of the gzip trailer (CRC-32, length) is missing */
    assert_int_equal(vkt_texts_from_tsv(&h, truncated, NULL, &t), VKT_E_FORMAT);
    vkt_test_error_contains("ends without its checksum");
    assert_int_equal(vkt_texts_from_tsv(&h, vkt_temp_dir_file(*state, "none"), NULL, &t), VKT_E_NOT_FOUND);
    assert_int_equal(vkt_texts_from_tsv(&h, NULL, NULL, &t), VKT_E_ARG);
    vkt_vocab *v;
    const char *const text = "a";
    assert_int_equal(vkt_vocab_create(&h, &(vkt_vocab_params){ .num_words = 2 }, &text, 1, &v), VKT_E_ARG);
    assert_int_equal(vkt_vocab_create(&h, &(vkt_vocab_params){ .index_from = 2 }, &text, 1, &v), VKT_E_ARG);
    vkt_test_error_contains("want index_from above 2");
    assert_int_equal(vkt_vocab_create(&h, &(vkt_vocab_params){ .filters = "\xc3" }, &text, 1, &v), VKT_E_ARG);
    assert_int_equal(vkt_vocab_create(&h, NULL, (const char *const[]){ NULL }, 1, &v), VKT_E_ARG);
    vkt_test_error_contains("text 0 is NULL");
}

/* ---- files ---- */

static const char saved[] = "vktrain-vocabulary 1 index_from=4 lower=1 words=3\n"
                            "filters=%09%25,\n"
                            "12 a\n"
                            "3 %C3%BC%0A%25%7F\n"
                            "3 b'\"\n";

static void a_vocabulary_comes_back_as_it_was(void **state)
{
    const vkt_host h = vkt_test_host();
    vkt_vocab *v, *w;
    assert_int_equal(vkt_vocab_from_text(&h, "mine", saved, &v), VKT_OK);
    expect_words(v, (const char *const[]){ "a", "\xc3\xbc\n%\x7f", "b'\"" }, 3, 4);
    uint64_t count;
    vkt_vocab_word(v, 4, &count);
    assert_int_equal(count, 12);
    char *text;
    assert_int_equal(vkt_vocab_to_text(v, &text), VKT_OK);
    assert_string_equal(text, saved);
    vkt_text_release(&text);
    /* The vocabulary has the filters and the option `lower` of `saved`: % is a filter, and A is the word "a". */
    uint32_t ids[4], n;
    assert_int_equal(vkt_vocab_encode(v, "A,B'\"%Ü", ids, 4, &n), VKT_OK);
    assert_int_equal(n, 3);
    assert_memory_equal(ids, ((uint32_t[]){ 4, 6, 2 }), 12);
    const char *path = vkt_temp_dir_file(*state, "v.txt");
    assert_int_equal(vkt_vocab_save(v, path), VKT_OK);
    assert_int_equal(vkt_vocab_load(&h, path, &w), VKT_OK);
    expect_words(w, (const char *const[]){ "a", "\xc3\xbc\n%\x7f", "b'\"" }, 3, 4);
    vkt_vocab_destroy(&v);
    vkt_vocab_destroy(&w);
    v = vocab_of(&(vkt_vocab_params){ .index_from = 1000000000 }, NULL, 0);
    assert_int_equal(vkt_vocab_to_text(v, &text), VKT_OK);
    assert_int_equal(vkt_vocab_from_text(&h, "mine", text, &w), VKT_OK);
    vkt_text_release(&text);
    vkt_vocab_destroy(&v);
    vkt_vocab_destroy(&w);
    v = vocab_of(&(vkt_vocab_params){ .keep_case = true }, NULL, 0);
    assert_int_equal(vkt_vocab_to_text(v, &text), VKT_OK);
    assert_string_equal(text, "vktrain-vocabulary 1 index_from=3 lower=0 words=0\n"
                              "filters=%09%0A!\"#$%25&()*+,-./:;<=>?@[\\]^_`{|}~\n");
    vkt_text_release(&text);
    vkt_vocab_destroy(&v);
}

static void refuse_vocab(const char *text, const char *says)
{
    const vkt_host h = vkt_test_host();
    vkt_vocab *v;
    vkt_test_expect_errors(true);
    if (vkt_vocab_from_text(&h, "it", text, &v) != VKT_E_FORMAT) fail_msg("was read: %s", text);
    assert_null(v);
    vkt_test_error_contains(says);
    assert_int_equal(vkt_test_live_blocks(), 0);
}

static void damaged_vocabularies_are_refused(void **state)
{
    const vkt_host h = vkt_test_host();
    char text[sizeof saved + 8];
    for (size_t n = 0; n < sizeof saved - 1; n++) { /* n: length of the truncated text */
        memcpy(text, saved, n);
        text[n] = 0;
        refuse_vocab(text, "it, line ");
    }
    static const char start[] = "vktrain-vocabulary 1 index_from=3 lower=1 words=1\nfilters=\n";
    static const char *const words[] = {
        "5 a\n4 b\n", "05 a\n",   "0 a\n",  "-1 a\n",  " a\n",    "5 \n",         "5 a b\n",
        "5a\n",       "5 a%41\n", "5 %0\n", "5 %0a\n", "5 a\r\n", "5 \xc3\xbc\n", "18446744073709551616 a\n"
    };
    for (size_t i = 0; i < VKT_COUNT(words); i++) {
        snprintf(text, sizeof text, "%s%s", start, words[i]);
        refuse_vocab(text, i ? "line 3: want a count" : "line 4: want nothing behind the last word");
    }
#define HEADER(from, lower, n) "vktrain-vocabulary 1 index_from=" #from " lower=" #lower " words=" #n "\nfilters="
    refuse_vocab(HEADER(3, 1, 2) "\n5 a\n6 b\n", "line 4: want a count that is not above");
    refuse_vocab(HEADER(3, 1, 2) "\n5 a\n5 a\n", "line 4: want a word that was not there");
    refuse_vocab(HEADER(2, 1, 0) "\n", "index_from above 2");
    refuse_vocab(HEADER(0, 1, 0) "\n", "ids from 3 on");
    refuse_vocab(HEADER(3, 1, 9999999999) "\n", "below 2^32");
    refuse_vocab(HEADER(999999999, 1, 4294967295) "\n", "below 2^32");
    refuse_vocab(HEADER(3, 2, 0) "\n", "line 1: ");
    refuse_vocab(HEADER(03, 1, 0) "\n", "line 1: ");
    refuse_vocab(HEADER(3, 1, 0) "%C3\n", "ASCII");
    refuse_vocab(HEADER(3, 1, 0) " \n", "line 2: ");
    refuse_vocab("vktrain-vocabulary 2 index_from=3 lower=1 words=0\nfilters=\n", "line 1: ");
    vkt_vocab *v;
    /* The NUL behind the text is part of the file. */
    const char *path = temp_write(*state, "v", saved, sizeof saved, false);
    assert_int_equal(vkt_vocab_load(&h, path, &v), VKT_E_FORMAT);
    vkt_test_error_contains("byte 0");
    assert_int_equal(vkt_vocab_load(&h, vkt_temp_dir_file(*state, "none"), &v), VKT_E_NOT_FOUND);
}

static vkt_result read_all(const vkt_host *h, const char *path)
{
    vkt_texts *t = NULL;
    vkt_vocab *v = NULL, *w = NULL;
    vkt_dataset *d = NULL;
    char *text = NULL;
    const char *const names[] = { "a", "b" };
    vkt_result r = vkt_texts_from_tsv(h, path, &(vkt_tsv_params){ .class_names = names, .classes = 2 }, &t);
    if (r == VKT_OK) r = vkt_vocab_create(h, NULL, vkt_texts_all(t), vkt_texts_rows(t), &v);
    if (r == VKT_OK) r = vkt_dataset_from_texts(t, v, NULL, &d);
    uint32_t row[2];
    if (r == VKT_OK) r = vkt_vocab_row(v, &(vkt_sequence_params){ .maxlen = 2 }, "a b", row, NULL, NULL);
    if (r == VKT_OK) r = vkt_vocab_to_text(v, &text);
    if (r == VKT_OK) r = vkt_vocab_from_text(h, "it", text, &w);
    vkt_text_release(&text);
    vkt_dataset_destroy(&d);
    vkt_vocab_destroy(&v);
    vkt_vocab_destroy(&w);
    vkt_texts_destroy(&t);
    return r;
}

static void every_failed_allocation_is_a_status(void **state)
{
    const vkt_host h = vkt_test_host();
    char tsv[8192];
    size_t n = (size_t)snprintf(tsv, sizeof tsv, "a\t");
    for (int i = 0; i < 1200; i++) n += (size_t)snprintf(tsv + n, sizeof tsv - n, "w%d ", i % 40);
    n += (size_t)snprintf(tsv + n, sizeof tsv - n, "\nb\tw1");
    const char *path = temp_write(*state, "t", tsv, n, false);
    for (unsigned k = 1;; k++) {
        vkt_test_fail_allocation(k);
        const vkt_result r = read_all(&h, path);
        assert_int_equal(vkt_test_live_blocks(), 0);
        assert_int_equal(r, vkt_test_allocation_failed() ? VKT_E_NOMEM : VKT_OK);
        if (r == VKT_OK) break;
        assert_true(k < 200);
    }
    vkt_test_fail_allocation(0);
}

/* ---- the real corpus ---- */

/* `hash` is the hash of the sequences that a Python program made. That program makes the same sequences as Keras'
 * text.py and sequence.py. */
static void check_sequences(const vkt_texts *t, const vkt_vocab *v, uint64_t hash)
{
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_from_texts(t, v, &(vkt_sequence_params){ .maxlen = 300 }, &d), VKT_OK);
    assert_int_equal(vkt_dataset_type(d), VKT_ROW_U16);
    const size_t bytes = (size_t)vkt_dataset_rows(d) * 300 * sizeof(uint16_t);
    assert_true(vkt_hash(VKT_HASH_START, vkt_dataset_features(d), bytes) == hash);
    vkt_dataset_destroy(&d);
}

static vkt_texts *open_reuters(const char *folder, const char *split)
{
    const vkt_host h = vkt_test_host();
    char path[512], classes[512];
    snprintf(path, sizeof path, "%s/%s.tsv.gz", folder, split);
    snprintf(classes, sizeof classes, "%s/classes.txt", folder);
    vkt_texts *t;
    assert_int_equal(vkt_texts_from_tsv(&h, path, &(vkt_tsv_params){ .classes_path = classes }, &t), VKT_OK);
    assert_int_equal(vkt_texts_classes(t), 46);
    return t;
}

static uint32_t longest_text(const vkt_texts *t, const vkt_vocab *v)
{
    uint32_t longest = 0, n;
    for (uint32_t i = 0; i < vkt_texts_rows(t); i++) {
        assert_int_equal(vkt_vocab_encode(v, vkt_texts_all(t)[i], NULL, 0, &n), VKT_OK);
        longest = VKT_MAX(longest, n);
    }
    return longest;
}

static void the_reuters_corpus(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    char folder[512];
    if (!vkt_test_find_data("reuters46-keras/train.tsv.gz", folder)) skip();
    *strrchr(folder, '/') = 0;
    vkt_texts *train = open_reuters(folder, "train"), *test = open_reuters(folder, "test");
    assert_int_equal(vkt_texts_rows(train), 8982);
    assert_int_equal(vkt_texts_rows(test), 2246);
    const uint32_t first[] = { 3, 4, 3, 4, 4, 4, 4, 3, 3, 16 }, first_test[] = { 3, 10, 1, 4, 4, 3, 3, 3, 3, 3 };
    assert_memory_equal(vkt_texts_labels(train), first, sizeof first);
    assert_memory_equal(vkt_texts_labels(test), first_test, sizeof first_test);

    vkt_vocab *v;
    assert_int_equal(vkt_vocab_create(&h, NULL, vkt_texts_all(train), 8982, &v), VKT_OK);
    assert_int_equal(vkt_vocab_size(v), 27398);
    uint64_t count;
    assert_string_equal(vkt_vocab_word(v, 3, &count), "the");
    assert_int_equal(count, 59435);
    assert_string_equal(vkt_vocab_word(v, 27397, NULL), "reassert");
    check_sequences(train, v, UINT64_C(0x90c59d2926b688b4));
    check_sequences(test, v, UINT64_C(0x87b41151e530c7e5));
    vkt_vocab_destroy(&v);
    const vkt_vocab_params capped = { .num_words = 10000 };
    assert_int_equal(vkt_vocab_create(&h, &capped, vkt_texts_all(train), 8982, &v), VKT_OK);
    check_sequences(train, v, UINT64_C(0x29f43b1de36813ef));
    vkt_vocab_destroy(&v);

    /* These params split at every printable ASCII character that is neither letter nor digit. The README.md of the
     * corpus counts 25,873 different words in the training set. The longest text of the training set has 2,374 words,
     * and the longest text of the test set has 1,038 words. The README.md does not count the word that consists of a u
     * with dots, so this vocabulary has one word more. Ids begin at 3. */
    const vkt_vocab_params alnum = { .filters = VKT_TEXT_FILTERS "'" };
    assert_int_equal(vkt_vocab_create(&h, &alnum, vkt_texts_all(train), 8982, &v), VKT_OK);
    assert_int_equal(vkt_vocab_size(v), 3 + 25873 + 1);
    assert_int_equal(longest_text(train, v), 2374);
    assert_int_equal(longest_text(test, v), 1038);
    vkt_vocab_destroy(&v);
    vkt_texts_destroy(&train);
    vkt_texts_destroy(&test);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_setup, temp_teardown)
    const struct CMUnitTest tests[] = {
        TEST(words_are_numbered_by_frequency_and_first_sight),
        TEST(letters_of_two_bytes_are_lowered),
        TEST(sequences_are_truncated_and_padded_as_in_keras),
        TEST(a_table_becomes_a_data_set),
        TEST(a_table_may_be_in_memory),
        TEST(bad_tables_are_refused_by_line),
        TEST(a_vocabulary_comes_back_as_it_was),
        TEST(damaged_vocabularies_are_refused),
        TEST(every_failed_allocation_is_a_status),
        TEST(the_reuters_corpus),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
