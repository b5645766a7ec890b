/* Tests vktrain/columns.h, which turns the columns of a table into numbers for a network. The tests guess the use of
 * each column, convert rows to numbers, write the columns as text, and check that bad tables are refused.
 * tests/samples/test_table_sample.c trains on tables. */
#include "train/rig.h"

#include <math.h>
#include <stdio.h>

#include "vktrain/columns.h"

static const char table[] = " id;colour;size;remark;same;price\n"
                            "7; red;1;a;x;10\n"
                            "8;blue;?;b;x;20\n"
                            "9;;3;c;x;30\n"
                            "10;red;5;d;x;NA\n";

static vkt_records *records_of(const vkt_host *h, const char *text)
{
    vkt_records *r;
    assert_int_equal(vkt_records_from_text(h, "a table", text, ';', &r), VKT_OK);
    return r;
}

/* Returns the columns of the table, guessed from its first three rows. */
static vkt_columns *guess(const vkt_host *h, const vkt_records *r)
{
    static const uint32_t rows[] = { 0, 1, 2 };
    vkt_columns *c;
    const vkt_columns_params p = { .target = "PRICE", .most_values = 2, .rows = rows, .n_rows = 3 };
    assert_int_equal(vkt_columns_guess(h, r, &p, &c), VKT_OK);
    return c;
}

static void expect_columns(const vkt_columns *c)
{
    static const vkt_column_use uses[] = { VKT_COLUMN_LEFT_OUT, VKT_COLUMN_VALUES,   VKT_COLUMN_NUMBER,
                                           VKT_COLUMN_LEFT_OUT, VKT_COLUMN_LEFT_OUT, VKT_COLUMN_NUMBER };
    assert_int_equal(vkt_columns_count(c), 6);
    assert_true(vkt_columns_target(c) == 5 && vkt_columns_inputs(c) == 5 && !vkt_columns_at(c, 6));
    for (uint32_t i = 0; i < 6; i++) assert_int_equal(vkt_columns_at(c, i)->use, uses[i]);
    const vkt_column *colour = vkt_columns_at(c, 1), *size = vkt_columns_at(c, 2);
    assert_string_equal(vkt_columns_at(c, 0)->name, "id");
    assert_true(colour->n_values == 2 && colour->missing == 1 && strcmp(colour->values[0], "blue") == 0);
    assert_true(size->mean == 2 && size->std == 1 && size->missing == 1);
}

static void columns_are_guessed_and_kept(void **state)
{
    const vkt_host h = vkt_test_host();
    (void)state;
    vkt_records *r = records_of(&h, table);
    vkt_columns *c = guess(&h, r), *again;
    expect_columns(c);
    assert_string_equal(vkt_columns_at(c, 0)->why, "it counts the rows");
    assert_string_equal(vkt_columns_at(c, 3)->why, "3 different texts");
    assert_int_equal(vkt_columns_at(c, 3)->distinct, 3);
    assert_string_equal(vkt_columns_at(c, 4)->why, "it is the same in all rows");
    char *text, *second;
    assert_int_equal(vkt_columns_to_text(c, &text), VKT_OK);
    assert_int_equal(vkt_columns_from_text(&h, "a text", text, &again), VKT_OK);
    expect_columns(again);
    for (uint32_t i = 0; i < 6; i++) assert_true(vkt_columns_at(again, i)->mean == vkt_columns_at(c, i)->mean);
    assert_int_equal(vkt_columns_to_text(again, &second), VKT_OK);
    assert_non_null(
        strstr(text, "{\"name\":\"colour\",\"use\":\"values\",\"values\":[\"blue\",\"red\"],\"missing\":1}"));
    assert_non_null(strstr(second, "\"why\":\"as in training\""));
    vkt_text_release(&text);
    vkt_text_release(&second);
    vkt_columns_destroy(&c);
    vkt_columns_destroy(&again);
    vkt_records_destroy(&r);
}

static void rows_become_numbers(void **state)
{
    static const float want[4][5] = { { 0, 1, 0, -1, 0 }, { 1, 0, 0, 0, 1 }, { 0, 0, 1, 1, 0 }, { 0, 1, 0, 3, 0 } };
    const vkt_host h = vkt_test_host();
    (void)state;
    vkt_records *r = records_of(&h, table), *other;
    vkt_columns *c = guess(&h, r);
    const uint32_t rows[] = { 2, 0 };
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_from_columns(&h, c, r, NULL, 0, false, &d), VKT_OK);
    assert_true(vkt_dataset_rows(d) == 4 && !vkt_dataset_targets(d));
    assert_memory_equal(vkt_dataset_features(d), want, sizeof want);
    vkt_dataset_destroy(&d);
    assert_int_equal(vkt_dataset_from_columns(&h, c, r, rows, 2, true, &d), VKT_OK);
    assert_memory_equal(vkt_dataset_features(d), want[2], sizeof want[2]);
    assert_true(vkt_dataset_target_width(d) == 1 && fabsf(vkt_dataset_targets(d)[1] + sqrtf(1.5f)) < 1e-6f);
    vkt_dataset_destroy(&d);
    /* The columns are in another order, `more` is a new column, and "green" is a new value. */
    other = records_of(&h, "size;more;Colour\n5;;green\n");
    static const float green[] = { 0, 0, 0, 3, 0 };
    assert_int_equal(vkt_dataset_from_columns(&h, c, other, NULL, 0, false, &d), VKT_OK);
    assert_memory_equal(vkt_dataset_features(d), green, sizeof green);
    vkt_dataset_destroy(&d);
    vkt_records_destroy(&other);
    vkt_columns_destroy(&c);
    vkt_records_destroy(&r);
}

static void classes_have_names(void **state)
{
    const vkt_host h = vkt_test_host();
    vkt_columns *c;
    vkt_dataset *d;
    (void)state;
    vkt_records *r = records_of(&h, "x;kind\n1;tea\n4;ale\n2;tea\n9;ale\n");
    assert_int_equal(vkt_columns_guess(&h, r, NULL, &c), VKT_OK);
    assert_int_equal(vkt_dataset_from_columns(&h, c, r, NULL, 0, true, &d), VKT_OK);
    assert_true(vkt_dataset_classes(d) == 2 && vkt_dataset_labels(d)[0] == 1 && vkt_dataset_labels(d)[1] == 0);
    assert_string_equal(vkt_dataset_class_name(d, 0), "ale");
    assert_true(vkt_records_missing(r, 0, 2) && vkt_records_missing(r, 4, 0) && !vkt_records_missing(r, 0, 0));
    vkt_dataset_destroy(&d);
    vkt_columns_destroy(&c);
    vkt_records_destroy(&r);
}

/* The fee is 0.1 in three rows, and is missing in one. The sum of the three is rounded, but the deviation is 0, so
 * std is 1: a fee of 0.2 becomes 0.1. */
static void equal_numbers_have_no_deviation(void **state)
{
    const vkt_host h = vkt_test_host();
    const uint32_t rows[] = { 0, 1, 2, 3 };
    vkt_columns *c;
    vkt_dataset *d;
    (void)state;
    vkt_records *r = records_of(&h, "fee;kind\n0.1;tea\n0.1;ale\n0.1;tea\n;ale\n0.2;tea\n");
    assert_int_equal(vkt_columns_guess(&h, r, &(vkt_columns_params){ .rows = rows, .n_rows = 4 }, &c), VKT_OK);
    assert_int_equal(vkt_dataset_from_columns(&h, c, r, NULL, 0, true, &d), VKT_OK);
    const float *x = vkt_dataset_features(d);
    assert_true(x[0] == 0 && fabsf(x[4 * 2] - 0.1f) < 1e-6f);
    vkt_dataset_destroy(&d);
    vkt_columns_destroy(&c);
    vkt_records_destroy(&r);
}

static void expect_refused(const vkt_host *h, const char *text, const vkt_columns_params *p, const char *says)
{
    vkt_records *r = records_of(h, text);
    vkt_columns *c;
    assert_int_not_equal(vkt_columns_guess(h, r, p, &c), VKT_OK);
    vkt_test_error_contains(says);
    assert_null(c);
    vkt_records_destroy(&r);
}

static void what_cannot_be_learned_is_refused(void **state)
{
    const vkt_host h = vkt_test_host();
    (void)state;
    vkt_records *r = records_of(&h, table), *text = records_of(&h, "size;colour\nwide;red\n");
    vkt_columns *c = guess(&h, r), *none;
    vkt_dataset *d;
    const char *left = "nothing", *none_left = NULL;
    const uint32_t far = 4;
    vkt_test_expect_errors(true);
    expect_refused(&h, table, &(vkt_columns_params){ .target = "no" },
                   "no column \"no\"; the columns are \"id\", \"colour\"");
    expect_refused(&h, table, &(vkt_columns_params){ .left_out = &left, .n_left_out = 1 }, "no column \"nothing\"");
    expect_refused(&h, table, &(vkt_columns_params){ .n_left_out = 1 }, "want `params->left_out`, got NULL");
    expect_refused(&h, table, &(vkt_columns_params){ .left_out = &none_left, .n_left_out = 1 },
                   "want `name`, got NULL");
    expect_refused(&h, table, &(vkt_columns_params){ .rows = &far, .n_rows = 1 }, "want rows below 4, got 4");
    expect_refused(&h, table, &(vkt_columns_params){ .target = "same" }, "two different values or more, got 1");
    expect_refused(&h, table, &(vkt_columns_params){ .target = "remark" },
                   "4 different texts in 4 rows are no classes");
    expect_refused(&h, table, &(vkt_columns_params){ .target = "remark", .kind = VKT_TARGET_NUMBER }, "want numbers");
    expect_refused(&h, "a;b\n1;1\n1;2\n1;4\n", NULL, "no column to learn from; \"a\": it is the same in all rows");
    assert_int_equal(vkt_dataset_from_columns(&h, c, text, NULL, 0, false, &d), VKT_E_FORMAT);
    vkt_test_error_contains("row 1, column \"size\": want a number, got \"wide\"");
    assert_int_equal(vkt_dataset_from_columns(&h, c, text, NULL, 0, true, &d), VKT_E_FORMAT);
    vkt_test_error_contains("no column \"price\"");
    assert_int_equal(vkt_dataset_from_columns(&h, c, r, NULL, 0, true, &d), VKT_E_FORMAT);
    vkt_test_error_contains("row 4, column \"price\": want a number, got \"NA\"");
    assert_int_equal(vkt_dataset_from_columns(&h, c, r, &far, 1, false, &d), VKT_E_ARG);
    assert_null(d);
    static const char *const wrong[] = {
        "", "{}", "{\"format\":\"vktrain-table\",\"version\":2,\"target\":\"a\",\"columns\":[{}]}",
        ("{\"format\":\"vktrain-table\",\"version\":1,\"target\":\"a\",\"columns\":[{\"name\":\"a\",\"use\":\"number\","
         "\"mean\":0,\"deviation\":0}]}"),
        ("{\"format\":\"vktrain-table\",\"version\":1,\"target\":\"a\",\"columns\":[{\"name\":\"a\",\"use\":\"values\","
         "\"values\":[1]}]}")
    };
    for (size_t i = 0; i < VKT_COUNT(wrong); i++)
        assert_int_equal(vkt_columns_from_text(&h, "a text", wrong[i], &none), VKT_E_FORMAT);
    vkt_test_expect_errors(false);
    vkt_columns_destroy(&c);
    vkt_records_destroy(&text);
    vkt_records_destroy(&r);
}

/* Two columns of one name are refused if one of them is used, because a used column is found by its name. */
static void equal_names_are_refused(void **state)
{
    const vkt_host h = vkt_test_host();
    const char *both = "id";
    vkt_columns *c;
    vkt_dataset *d;
    (void)state;
    vkt_test_expect_errors(true);
    expect_refused(&h, "price;rooms;Price\n10;1;10\n20;5;20\n40;3;40\n", &(vkt_columns_params){ .target = "price" },
                   "got \"Price\" for column 1 and for column 3: rename one of them, or leave both out");
    expect_refused(&h, "id;x;ID;y\n1;4;9;1\n2;1;3;2\n3;8;4;7\n", NULL, "\"ID\" for column 1 and for column 3");
    static const char text[] = "{\"format\":\"vktrain-table\",\"version\":1,\"target\":\"y\",\"columns\":["
                               "{\"name\":\"Y\",\"use\":\"left out\"},"
                               "{\"name\":\"x\",\"use\":\"number\",\"mean\":0,\"deviation\":1},"
                               "{\"name\":\"y\",\"use\":\"number\",\"mean\":0,\"deviation\":1}]}";
    assert_int_equal(vkt_columns_from_text(&h, "a text", text, &c), VKT_E_FORMAT);
    vkt_test_error_contains("a text: want different names of columns, got \"y\" for column 1 and for column 3");
    assert_null(c);
    vkt_test_expect_errors(false);
    /* Columns that are left out may have equal names. */
    vkt_records *r = records_of(&h, "id;x;ID;;y;\n1;4;9;;1;\n2;1;3;;2;\n3;8;4;;7;\n"), *twice;
    assert_int_equal(
        vkt_columns_guess(&h, r, &(vkt_columns_params){ .target = "y", .left_out = &both, .n_left_out = 1 }, &c),
        VKT_OK);
    assert_int_equal(vkt_columns_inputs(c), 1);
    assert_int_equal(vkt_dataset_from_columns(&h, c, r, NULL, 0, true, &d), VKT_OK);
    vkt_dataset_destroy(&d);
    vkt_records_destroy(&r);
    twice = records_of(&h, "y;x;Y\n1;2;3\n");
    assert_int_equal(vkt_dataset_from_columns(&h, c, twice, NULL, 0, false, &d), VKT_OK); /* y is not needed */
    vkt_dataset_destroy(&d);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_dataset_from_columns(&h, c, twice, NULL, 0, true, &d), VKT_E_FORMAT);
    vkt_test_error_contains("want one column \"y\", got column 1 and column 3: rename or remove one of them");
    assert_null(d);
    vkt_test_expect_errors(false);
    vkt_records_destroy(&twice);
    vkt_columns_destroy(&c);
}

/* The largest doubles stand for a missing field in some tables. Their mean or the squares of their distances are
 * infinite. */
static void numbers_that_are_too_large_are_left_out(void **state)
{
    static const char text[] = "one;two;size;x\n"
                               "1.7976931348623157e308;1.7976931348623157e308;4;1\n"
                               "3;1.7976931348623157e308;1;3\n"
                               "2;5;9;2\n";
    const vkt_host h = vkt_test_host();
    vkt_columns *c, *again;
    char *json;
    (void)state;
    vkt_records *r = records_of(&h, text);
    assert_int_equal(vkt_columns_guess(&h, r, NULL, &c), VKT_OK);
    assert_int_equal(vkt_columns_inputs(c), 1);
    for (uint32_t i = 0; i < 2; i++) assert_string_equal(vkt_columns_at(c, i)->why, "its numbers are too large");
    assert_int_equal(vkt_columns_to_text(c, &json), VKT_OK);
    assert_int_equal(vkt_columns_from_text(&h, "a text", json, &again), VKT_OK);
    vkt_text_release(&json);
    vkt_columns_destroy(&c);
    vkt_columns_destroy(&again);
    vkt_records_destroy(&r);
    vkt_test_expect_errors(true);
    expect_refused(&h, text, &(vkt_columns_params){ .target = "one", .kind = VKT_TARGET_NUMBER },
                   "target \"one\": want numbers with a finite mean and deviation");
    vkt_test_expect_errors(false);
}

/* Guesses the columns, writes them as text, reads the text and converts the rows. Returns the first error. */
static vkt_result all_of_it(const vkt_host *h, const vkt_records *r)
{
    vkt_columns *c = NULL, *again = NULL;
    vkt_dataset *d = NULL;
    char *text = NULL;
    vkt_result s = vkt_columns_guess(h, r, &(vkt_columns_params){ .target = "size" }, &c);
    if (s == VKT_OK) s = vkt_columns_to_text(c, &text);
    if (s == VKT_OK) s = vkt_columns_from_text(h, "a text", text, &again);
    if (s == VKT_OK) s = vkt_dataset_from_columns(h, again, r, NULL, 0, false, &d);
    vkt_text_release(&text);
    vkt_columns_destroy(&c);
    vkt_columns_destroy(&again);
    vkt_dataset_destroy(&d);
    return s;
}

static void no_memory_is_an_error(void **state)
{
    const vkt_host h = vkt_test_host();
    (void)state;
    vkt_records *r = records_of(&h, table);
    vkt_test_expect_errors(true);
    for (unsigned n = 1, failed = 1; failed; n++) {
        vkt_test_fail_allocation(n);
        const vkt_result status = all_of_it(&h, r);
        failed = vkt_test_allocation_failed();
        vkt_test_fail_allocation(0);
        assert_int_equal(status, failed ? VKT_E_NOMEM : VKT_OK);
    }
    vkt_test_expect_errors(false);
    vkt_records_destroy(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_guessed_and_kept),
        cmocka_unit_test(rows_become_numbers),
        cmocka_unit_test(classes_have_names),
        cmocka_unit_test(equal_numbers_have_no_deviation),
        cmocka_unit_test(what_cannot_be_learned_is_refused),
        cmocka_unit_test(equal_names_are_refused),
        cmocka_unit_test(numbers_that_are_too_large_are_left_out),
        cmocka_unit_test(no_memory_is_an_error),
    };
    return cmocka_run_group_tests_name("columns", tests, NULL, NULL);
}
