/* Tests vkt_printable, which makes names from foreign files safe to print: a terminal must not execute control
 * sequences in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "support/host.h"

static const struct {
    const char *text, *shown;
} cases[] = {
    { "Pullover", "Pullover" },
    { "", "" },
    { "gr\xc3\xb6\xc3\x9f"
      "er \xe6\x97\xa5 \xf0\x9f\x90\x88",
      "gr\xc3\xb6\xc3\x9f"
      "er \xe6\x97\xa5 \xf0\x9f\x90\x88" },
    { "\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m" },
    { "a\nb\tc\rd\x7f", "a\\x0ab\\x09c\\x0dd\\x7f" },
    { "\x1b]0;title\a", "\\x1b]0;title\\x07" },
    { "\xc2\x9b"
      "31m",
      "\\xc2\\x9b31m" }, /* U+009B, the control sequence introducer */
    { "\xe2\x80\xae"
      "gpj.exe",
      "\\xe2\\x80\\xaegpj.exe" },          /* U+202E, which makes text run from right to left */
    { "\xe2\x81\xa6", "\\xe2\\x81\\xa6" }, /* U+2066, left-to-right isolate */
    { "\xe2\x80\x8f", "\\xe2\\x80\\x8f" }, /* U+200F, right-to-left mark */
    { "\xd8\x9c", "\\xd8\\x9c" },          /* U+061C, Arabic letter mark */
    { "\x9b"
      "2J",
      "\\x9b2J" },                                  /* not UTF-8 */
    { "caf\xe9", "caf\\xe9" },                      /* Latin-1 */
    { "\xc0\x9b", "\\xc0\\x9b" },                   /* overlong */
    { "\xed\xa0\x80", "\\xed\\xa0\\x80" },          /* a surrogate */
    { "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" }, /* above U+10FFFF */
    { "\xe6\x97", "\\xe6\\x97" },                   /* the last byte is missing */
};

static void control_characters_become_text(void **state)
{
    (void)state;
    char out[80];
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        assert_ptr_equal(vkt_printable(cases[i].text, out, sizeof out), out);
        assert_string_equal(out, cases[i].shown);
    }
    assert_string_equal(vkt_printable(NULL, out, sizeof out), "");
    assert_null(vkt_printable("a", NULL, 8));
    out[0] = 'x';
    vkt_printable("a", out, 0);
    assert_int_equal(out[0], 'x');
}

static void a_long_text_is_truncated_after_a_whole_character(void **state)
{
    (void)state;
    char out[8];
    assert_string_equal(vkt_printable("abcdefgh", out, sizeof out), "abcdefg");
    assert_string_equal(vkt_printable("abcdef\xc3\xb6", out, sizeof out), "abcdef");
    assert_string_equal(vkt_printable("abcd\n", out, sizeof out), "abcd");
    assert_string_equal(vkt_printable("abc\n", out, sizeof out), "abc\\x0a");
    assert_string_equal(vkt_printable("abc", out, 1), "");
}

static void messages_are_printable(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_test_expect_errors(true);
    vkt_fail(&h, VKT_E_IO, "cannot read \"%s\"", "a\x1b[2Jb\n.csv");
    assert_string_equal(vkt_test_last_error(), "cannot read \"a\\x1b[2Jb\\x0a.csv\"");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)
    const struct CMUnitTest tests[] = { TEST(control_characters_become_text),
                                        TEST(a_long_text_is_truncated_after_a_whole_character),
                                        TEST(messages_are_printable) };
    return cmocka_run_group_tests_name("printable", tests, NULL, NULL);
}
