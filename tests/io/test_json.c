/* io/json.c against jansson: which texts are JSON, and what they mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdlib.h>

#include "io/json.h"
#include "support/host.h"

static const char *const values[] = {
    "null",
    "true",
    "false",
    "nul",
    "truely",
    "0",
    "-0",
    "-",
    "+1",
    "01",
    "1.",
    "1.5",
    ".5",
    "1e5",
    "1E-5",
    "1e",
    "1e+",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "123456789012345678901",
    "\"\"",
    "\"a\"",
    "\"a",
    "a\"",
    "\"\\\"\"",
    "\"\\\\\"",
    "\"\\/\"",
    "\"\\b\\f\\n\\r\\t\"",
    "\"\\x\"",
    "\"\\",
    "\"\\u0041\"",
    "\"\\u00e9\"",
    "\"\\u20ac\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud83d\"",
    "\"\\ude00\"",
    "\"\\ud83dx\"",
    "\"\\ud83d\\u0041\"",
    "\"\\u12\"",
    "\"\\u00g0\"",
    "\"\\u0000\"",
    "\"\t\"",
    "\"\x1f\"",
    "\"\x7f\"",
    "\"\xc3\xa9\"",
    "\"\xc3\"",
    "\"\xff\"",
    "\"\xc0\x80\"",
    "\"\xed\xa0\x80\"",
    "\"\xf0\x9f\x98\x80\"",
    "\"\xf4\x90\x80\x80\"",
    "[]",
    "[ ]",
    "[1]",
    "[1,2]",
    "[1 , 2 ]",
    "[1,]",
    "[,1]",
    "[1 2]",
    "[",
    "]",
    "[[[]]]",
    "[[]",
    "{}",
    "{ }",
    "{\"a\":1}",
    "{\"a\" : [ {\"b\":null} ] , \"c\":\"d\" }",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\":1,}",
    "{a:1}",
    "{\"a\":1",
    "{1:1}",
    "",
    " ",
    " 1 ",
    "\n\t1\r",
    "1 1",
    "\"a\"\"b\"",
    "[\"\xff\"]",
    "{\"\xff\":1}",
    "[1]]",
    "\v1",
    "/**/1",
};

static void the_same_texts_are_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < VKT_COUNT(values); i++) {
        json_error_t why;
        vkt_json_error e;
        const size_t n = strlen(values[i]);
        json_t *want = json_loadb(values[i], n, JSON_DECODE_ANY, &why);
        const bool sound = vkt_json_check(values[i], n, &e);
        if (sound != (want != NULL))
            fail_msg("%s: jansson says \"%s\", got %d", values[i], want ? "" : why.text, sound);
        if (!sound) assert_true(e.why && e.at <= n);
        json_decref(want);
    }
}

static void texts_mean_the_same(void **state)
{
    (void)state;
    size_t sound = 0;
    for (size_t i = 0; i < VKT_COUNT(values); i++) {
        if (*values[i] != '"') continue;
        const size_t n = strlen(values[i]);
        char *text = malloc(n + 1); /* exactly as long, so that a sanitizer finds a read behind it */
        assert_non_null(text);
        memcpy(text, values[i], n + 1);
        json_t *want = json_loadb(values[i], n, JSON_DECODE_ANY, NULL);
        vkt_json_error e;
        assert_int_equal(vkt_json_decode(text, n, &e), want != NULL);
        if (want) assert_string_equal(text, json_string_value(want));
        sound += want != NULL;
        json_decref(want);
        free(text);
    }
    assert_true(sound > 10);
}

/* Damages sound texts in every place, and compares the verdicts. */
static void damaged_texts_are_judged_alike(void **state)
{
    (void)state;
    static const char sound[] =
        "{\"w\\u00e9\":{\"dtype\":\"F32\",\"shape\":[2,30],\"x\":[null,-1.5e3,{\"\":\"\xc3\xa9\"}]}}";
    char text[sizeof sound];
    size_t accepted = 0;
    for (size_t i = 0; i + 1 < sizeof sound; i++)
        for (int c = 1; c < 256; c++) {
            vkt_json_error e;
            memcpy(text, sound, sizeof sound);
            text[i] = (char)c;
            json_t *want = json_loadb(text, sizeof sound - 1, JSON_DECODE_ANY, NULL);
            const bool got = vkt_json_check(text, sizeof sound - 1, &e);
            if (got != (want != NULL)) fail_msg("%s: byte %zu is %d: got %d", text, i, c, got);
            accepted += got;
            json_decref(want);
        }
    assert_in_range(accepted, 1000, 20000);
}

static void written_texts_are_those_of_jansson(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "a", "\"\\/", "\b\f\n\r\t", "\x01\x1f\x7f", "\xc3\xa9 \xf0\x9f\x98\x80", "\xff", "a\xc3", "\xed\xa0\x80"
    };
    const vkt_host h = vkt_test_host();
    for (size_t i = 0; i < VKT_COUNT(texts); i++) {
        vkt_text t = { .h = &h };
        json_t *value = json_string(texts[i]);
        assert_int_equal(vkt_json_add(&t, texts[i]), value != NULL);
        char *want = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
        if (want)
            assert_string_equal(t.s, want);
        else
            assert_null(t.s);
        free(want);
        json_decref(value);
        vkt_text_free(&t);
    }
}

static void integers_of_a_list(void **state)
{
    (void)state;
    static const char list[] = "[ 0, 12 ,-1,1.0,\"5\",[7],9223372036854775807,true ]";
    static const uint64_t want[] = { 0, 12, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, INT64_MAX, UINT64_MAX };
    uint64_t got[VKT_COUNT(want) + 1];
    size_t n;
    got[2] = 99;
    assert_true(vkt_json_integers(list, sizeof list - 1, got, 2, &n)); /* only two are wanted */
    assert_int_equal(n, VKT_COUNT(want));
    assert_int_equal(got[2], 99);
    got[VKT_COUNT(want)] = 99;
    assert_true(vkt_json_integers(list, sizeof list - 1, got, VKT_COUNT(want), &n));
    assert_memory_equal(got, want, sizeof want);
    assert_int_equal(got[VKT_COUNT(want)], 99);
    assert_true(vkt_json_integers("[]", 2, got, 1, &n));
    assert_int_equal(n, 0);
    assert_false(vkt_json_integers("{}", 2, got, 1, &n));
    assert_false(vkt_json_integers("5", 1, got, 1, &n));
    assert_false(vkt_json_integers("", 0, got, 1, &n));
}

static void values_may_be_nested_to_a_depth(void **state)
{
    (void)state;
    char text[2 * VKT_JSON_DEPTH + 3];
    for (size_t depth = VKT_JSON_DEPTH; depth <= VKT_JSON_DEPTH + 1; depth++) {
        vkt_json_error e;
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        assert_int_equal(vkt_json_check(text, 2 * depth, &e), depth == VKT_JSON_DEPTH);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_same_texts_are_json),
        TEST(texts_mean_the_same),
        TEST(damaged_texts_are_judged_alike),
        TEST(written_texts_are_those_of_jansson),
        TEST(integers_of_a_list),
        TEST(values_may_be_nested_to_a_depth),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
