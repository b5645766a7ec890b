/* Tests the traits of each class of devices (base/traits.def), and the function that sets single traits by name. No
 * device is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <locale.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/traits.h"
#include "support/host.h"

static uint32_t find(const char *name)
{
    uint32_t i = 0;
    while (i < VKT_TRAIT_COUNT && strcmp(vkt_trait_name(i), name) != 0) i++;
    assert_in_range(i, 0, VKT_TRAIT_COUNT - 1);
    return i;
}

/* For each class, sets each trait by name to its value in traits.def. vkt_trait_value must return the same value. */
static void every_class_is_legal(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    for (int c = 0; c < VKT_CLASS_COUNT; c++) {
        vkt_traits t = vkt_class_traits[c == 0];
        vkt_traits_set set = { { 0 } };
        for (uint32_t i = 0; i < VKT_TRAIT_COUNT; i++) {
            char text[120];
            const double want = vkt_trait_value(&vkt_class_traits[c], i);
            snprintf(text, sizeof text, "%s=%.10g", vkt_trait_name(i), want);
            assert_false(vkt_trait_is_set(&set, i));
            assert_int_equal(vkt_traits_parse(&h, "test", text, 1024, &t, &set), VKT_OK);
            assert_true(vkt_trait_value(&t, i) == want);
            assert_true(vkt_trait_is_set(&set, i));
        }
        assert_string_not_equal(vkt_class_name((vkt_device_class)c), "?");
    }
}

static void names_are_unique_and_sentences_short(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < VKT_TRAIT_COUNT; i++) {
        assert_int_equal(find(vkt_trait_name(i)), i);
        assert_int_equal(strspn(vkt_trait_name(i), "abcdefghijklmnopqrstuvwxyz_0123456789"), strlen(vkt_trait_name(i)));
        assert_in_range(strlen(vkt_trait_what(i)), 10, 80);
    }
}

/* Checks the traits in which CPU drivers and GPUs must differ. */
static void a_cpu_and_gpus_differ_where_it_matters(void **state)
{
    (void)state;
    const vkt_traits *cpu = &vkt_class_traits[VKT_CLASS_CPU];
    assert_int_equal(cpu->lanes_elementwise, 0);
    assert_in_range(cpu->largest_loop, 50000, 65535); /* Mesa 22.3 leaves a loop after 65535 iterations */
    assert_true(cpu->texel_loads && !cpu->shared_pays && cpu->transforms_pay && !cpu->watchdog);
    for (int c = VKT_CLASS_CPU + 1; c < VKT_CLASS_COUNT; c++) {
        const vkt_traits *gpu = &vkt_class_traits[c];
        assert_int_equal(gpu->lanes_elementwise, 128);
        assert_int_equal(gpu->largest_loop, 0);
        assert_true(!gpu->texel_loads && gpu->shared_pays && !gpu->transforms_pay && gpu->watchdog);
    }
}

static void values_are_set_by_name(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_traits t = vkt_class_traits[VKT_CLASS_CPU];
    vkt_traits_set set = { { 0 } };
    assert_int_equal(vkt_traits_parse(&h, "test", "lanes_move=128,largest_loop=0", 1024, &t, &set), VKT_OK);
    assert_int_equal(t.lanes_move, 128);
    assert_int_equal(t.largest_loop, 0);
    assert_true(vkt_trait_is_set(&set, VKT_T_lanes_move) && vkt_trait_is_set(&set, VKT_T_largest_loop));
    assert_false(vkt_trait_is_set(&set, VKT_T_lanes_pack));
    assert_int_equal(t.lanes_pack, vkt_class_traits[VKT_CLASS_CPU].lanes_pack);
    assert_int_equal(vkt_traits_parse(&h, "test",
                                      "# a file, with comments\r\n fft_worth = 0.25 # of the direct cost\n\n"
                                      "\tshared_pays=1 ,, lanes_move\t=\t0,#end",
                                      1024, &t, NULL),
                     VKT_OK);
    assert_true(t.fft_worth == 0.25 && t.shared_pays && t.lanes_move == 0);
    assert_int_equal(vkt_traits_parse(&h, "test", "", 1024, &t, NULL), VKT_OK);
    assert_int_equal(vkt_traits_parse(&h, "test", " ,\n# nothing", 1024, &t, NULL), VKT_OK);
}

/* An application may set a locale in which the decimal separator is a comma. A value of a trait always has a decimal
 * point. */
static void the_locale_changes_nothing(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const char *const locales[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C" };
    vkt_traits t = vkt_class_traits[VKT_CLASS_CPU];
    for (size_t i = 0; i < VKT_COUNT(locales) && !setlocale(LC_ALL, locales[i]); i++) continue;
    const vkt_result r = vkt_traits_parse(&h, "test", "fft_worth=0.25", 1024, &t, NULL);
    setlocale(LC_ALL, "C");
    assert_int_equal(r, VKT_OK);
    assert_true(t.fft_worth == 0.25);
}

static void what_is_wrong_is_named_and_changes_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } wrong[] = {
        { "lanes_mvoe=128", "got \"lanes_mvoe=128\"; similar names: lanes_elementwise, lanes_update, " },
        { "lanes_mvoe=128", ", lanes_direct, lanes_together, lanes_subgroup, lanes_subgroup_short, "
                            "lanes_subgroup_shuffles, lanes_copy; vkt-info" },
        { "move=1", "got \"move=1\"" },
        { "=1", "got \"=1\"" },
        { "lanes_move", "want lanes_move=N, 0 (one subgroup) or a power of two from 1 to 256; got \"\"" },
        { "lanes_move=", "got \"\"" },
        { "lanes_move=96", "a power of two from 1 to 256; got \"96\"" },
        { "lanes_move=512", "got \"512\"" }, /* above most_lanes, which is 256 in the call below */
        { "lanes_together=512", "from 1 to 256" },
        { "lanes_move=-64", "got \"-64\"" },
        { "lanes_move=64x", "got \"64x\"" },
        { "lanes_move=64 64", "got \"64 64\"" },
        { "lanes_move=0x40", "got \"0x40\"" },
        { "lanes_move=1.5", "got \"1.5\"" },
        { "items_move=0", "want items_move=N, a whole number from 1 to 16384; got \"0\"" },
        { "items_move=nan", "got \"nan\"" },
        { "items_move=99999999999999999999999999999999999", "got \"9999" },
        { "largest_loop=3", "want largest_loop=N, 0 (no limit) or a whole number from 1024 to 4294967295; got \"3\"" },
        { "largest_loop=4294967296", "got \"4294967296\"" },
        { "product_rows=2", "want product_rows=N, a power of two from 4 to 128; got \"2\"" },
        { "texel_loads=2", "want texel_loads=N, a whole number from 0 to 1; got \"2\"" },
        { "fft_worth=0", "want fft_worth=N, a number above 0, at most 1e+06; got \"0\"" },
        { "fft_worth=inf", "got \"inf\"" },
        { "lanes_pack=64,texel_loads=1,lanes_move=3", "want lanes_move=N" },
    };
    const vkt_host h = vkt_test_host();
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        vkt_traits t = vkt_class_traits[VKT_CLASS_CPU];
        vkt_traits_set set = { { 0 } };
        assert_int_equal(vkt_traits_parse(&h, "VKT_TRAITS", wrong[i].text, 256, &t, &set), VKT_E_ARG);
        vkt_test_error_contains("VKT_TRAITS: want ");
        vkt_test_error_contains(wrong[i].says);
        for (uint32_t k = 0; k < VKT_TRAIT_COUNT; k++) {
            assert_true(vkt_trait_value(&t, k) == vkt_trait_value(&vkt_class_traits[VKT_CLASS_CPU], k));
            assert_false(vkt_trait_is_set(&set, k));
        }
    }
    vkt_test_expect_errors(false);
}

static void a_message_without_memory_is_a_status(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_traits t = vkt_class_traits[VKT_CLASS_CPU];
    vkt_test_fail_allocation(1);
    assert_int_equal(vkt_traits_parse(&h, "test", "lanes_nothing=1", 1024, &t, NULL), VKT_E_NOMEM);
    assert_true(vkt_test_allocation_failed());
    vkt_test_fail_allocation(0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_class_is_legal),
        TEST(names_are_unique_and_sentences_short),
        TEST(a_cpu_and_gpus_differ_where_it_matters),
        TEST(values_are_set_by_name),
        TEST(the_locale_changes_nothing),
        TEST(what_is_wrong_is_named_and_changes_nothing),
        TEST(a_message_without_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
