/* Tests tables of numbers: CSV columns, selections and splits, standardisation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "data/temp.h"
#include "support/host.h"
#include "vktrain/table.h"

static const char csv[] = "Size, rooms ,price,\"kind\",year\r\n"
                          "50.5,2,1e2,flat,1990\r\n"
                          "120, 5 ,-250.25,house,2001\r\n"
                          "+8e1,3,.5,flat,1969\r\n";

static vkt_dataset *open_csv(void **state, const char *text, const vkt_csv_params *p)
{
    const vkt_host h = vkt_test_host();
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_from_csv(&h, temp_write(*state, "t.csv", text, strlen(text), false), p, &d), VKT_OK);
    return d;
}

static void columns_are_chosen_by_name_and_number(void **state)
{
    const vkt_csv_params p = { .targets = (const char *const[]){ "price", "0" },
                               .n_targets = 2,
                               .features = (const char *const[]){ "YEAR", " rooms " },
                               .n_features = 2,
                               .label = "kind" };
    vkt_dataset *d = open_csv(state, csv, &p);
    const float features[3][2] = { { 1990, 2 }, { 2001, 5 }, { 1969, 3 } };
    const float targets[3][2] = { { 100, 50.5f }, { -250.25f, 120 }, { 0.5f, 80 } };
    assert_int_equal(vkt_dataset_rows(d), 3);
    assert_int_equal(vkt_dataset_type(d), VKT_ROW_F32);
    assert_int_equal(vkt_dataset_row_bytes(d), sizeof features[0]);
    assert_memory_equal(vkt_dataset_features(d), features, sizeof features);
    assert_int_equal(vkt_dataset_target_width(d), 2);
    assert_memory_equal(vkt_dataset_targets(d), targets, sizeof targets);
    assert_memory_equal(vkt_dataset_labels(d), ((uint32_t[]){ 0, 1, 0 }), 12);
    assert_string_equal(vkt_dataset_class_name(d, 1), "house");
    vkt_dataset_destroy(&d);

    const vkt_csv_params rest = { .targets = (const char *const[]){ "price" },
                                  .n_targets = 1,
                                  .label = "3",
                                  .class_names = (const char *const[]){ "house", "hut", "flat" },
                                  .classes = 3 };
    d = open_csv(state, csv, &rest); /* features: all columns that `rest` does not name, in the order of the file */
    const float left[3][3] = { { 50.5f, 2, 1990 }, { 120, 5, 2001 }, { 80, 3, 1969 } };
    assert_memory_equal(vkt_dataset_features(d), left, sizeof left);
    assert_memory_equal(vkt_dataset_labels(d), ((uint32_t[]){ 2, 0, 2 }), 12);
    assert_int_equal(vkt_dataset_classes(d), 3);
    vkt_dataset_destroy(&d);
}

static void a_file_without_header_has_numbers_for_names(void **state)
{
    const vkt_csv_params p = {
        .targets = (const char *const[]){ "1" }, .n_targets = 1, .no_header = true, .separator = ';'
    };
    vkt_dataset *d = open_csv(state, "1;2;3\n4;5;6", &p);
    assert_memory_equal(vkt_dataset_features(d), ((float[]){ 1, 3, 4, 6 }), 16);
    assert_memory_equal(vkt_dataset_targets(d), ((float[]){ 2, 5 }), 8);
    assert_null(vkt_dataset_labels(d));
    vkt_dataset_destroy(&d);
    d = open_csv(state, "1;2;3\n4;5;6", &(vkt_csv_params){ .no_header = true, .separator = ';' });
    assert_true(vkt_dataset_target_width(d) == 0 && !vkt_dataset_targets(d));
    vkt_dataset_destroy(&d);
}

static void refuse(void **state, const char *text, const vkt_csv_params *p, vkt_result want, const char *says)
{
    const vkt_host h = vkt_test_host();
    vkt_dataset *d;
    vkt_test_expect_errors(true);
    const char *path = temp_write(*state, "bad.csv", text, strlen(text), false);
    assert_int_equal(vkt_dataset_from_csv(&h, path, p, &d), want);
    assert_null(d);
    vkt_test_error_contains(says);
    assert_int_equal(vkt_test_live_blocks(), 0);
}

static void bad_tables_are_refused_by_line_and_column(void **state)
{
    static const char *const numbers[] = { "",      " ",     "NA",  "nan", "inf", "0x10",
                                           "1,5\"", "1.2.3", "--1", "1e",  "e5",  "1 2" };
    for (size_t i = 0; i < VKT_COUNT(numbers); i++) {
        char text[64];
        snprintf(text, sizeof text, "a,b\n1,2\n3,\"%s%s\n", numbers[i], strchr(numbers[i], '"') ? "" : "\"");
        refuse(state, text, NULL, VKT_E_FORMAT, "bad.csv, line 3: column \"b\": want a number, got \"");
    }
    refuse(state, "1,2\n3,4e38\n", &(vkt_csv_params){ .no_header = true }, VKT_E_FORMAT,
           "line 2: column 1: want a number that f32 can hold, got \"4e38\"");
    refuse(state, "a,b\n1,2\n3\n", NULL, VKT_E_FORMAT, "line 3: want 2 fields");
    refuse(state, "", NULL, VKT_E_FORMAT, "found none");
    refuse(state, "a,b\n", NULL, VKT_E_FORMAT, "found none");
    const char *const c[] = { "c", NULL };
    refuse(state, csv, &(vkt_csv_params){ .features = c, .n_features = 1 }, VKT_E_FORMAT,
           "want a column \"c\" among 5");
    refuse(state, csv, &(vkt_csv_params){ .label = "5" }, VKT_E_FORMAT, "want a column \"5\" among 5");
    refuse(state, csv, &(vkt_csv_params){ .label = "price", .no_header = true }, VKT_E_FORMAT, "without a header");
    refuse(state, csv, &(vkt_csv_params){ .targets = c + 1, .n_targets = 1 }, VKT_E_ARG, "name is NULL");
    refuse(state, csv, &(vkt_csv_params){ .n_targets = 1 }, VKT_E_ARG, "1 columns without names");
    refuse(state, csv, NULL, VKT_E_FORMAT, "line 2: column \"kind\": want a number, got \"flat\"");
    refuse(state, "a,b\n1,\n", &(vkt_csv_params){ .label = "b" }, VKT_E_FORMAT, "column \"b\": want a class, got \"\"");
    const vkt_csv_params named = { .label = "b", .class_names = (const char *const[]){ "x", "y" }, .classes = 2 };
    refuse(state, "a,b\n1,x\n2,z\n", &named, VKT_E_FORMAT,
           "line 3: column \"b\": want one of the class names, got \"z\"");
    const vkt_csv_params twice = { .label = "b", .class_names = (const char *const[]){ "x", "x" }, .classes = 2 };
    refuse(state, csv, &twice, VKT_E_ARG, "are the same");
    refuse(state, "a\n1\n", &(vkt_csv_params){ .label = "a" }, VKT_E_FORMAT, "want a column of features");
    const vkt_host h = vkt_test_host();
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_from_csv(&h, vkt_temp_dir_file(*state, "none"), NULL, &d), VKT_E_NOT_FOUND);
    assert_int_equal(vkt_dataset_from_csv(&h, NULL, NULL, &d), VKT_E_ARG);
}

/* ---- selections ---- */

enum { N = 10, F = 3, K = 2 };

typedef struct table {
    float rows[N][F], targets[N][K];
    uint32_t labels[N];
} table;

static vkt_result fetch_row(void *self, uint32_t row, vkt_pass pass, void *dst, uint32_t worker)
{
    const table *t = self;
    (void)worker;
    if (row == 7) return VKT_E_IO;
    memcpy(dst, t->rows[row], sizeof t->rows[row]);
    ((float *)dst)[0] += (float)pass.epoch;
    return VKT_OK;
}

static const char *why(void *self, uint32_t worker)
{
    (void)self, (void)worker;
    return "row 7 is lost";
}

static void fill(table *t)
{
    for (uint32_t i = 0; i < N; i++) {
        for (uint32_t k = 0; k < F; k++) t->rows[i][k] = (float)(i * F + k);
        for (uint32_t k = 0; k < K; k++) t->targets[i][k] = -(float)(i * K + k);
        t->labels[i] = i % 3;
    }
}

static vkt_dataset *dataset_of(table *t, bool source)
{
    static const char *const names[] = { "a", "b", "c" };
    const vkt_host h = vkt_test_host();
    const vkt_dataset_params p = { .rows = N,
                                   .width = F,
                                   .type = VKT_ROW_F32,
                                   .labels = t->labels,
                                   .classes = 3,
                                   .class_names = names,
                                   .targets = t->targets[0],
                                   .target_width = K,
                                   .mean = (const double[]){ 4 },
                                   .std = (const double[]){ 0.5 } };
    const vkt_data_source s = { .fetch = fetch_row, .self = t, .why = why, .varies = true };
    vkt_dataset *d;
    assert_int_equal(source ? vkt_dataset_from_source(&h, &p, &s, &d) : vkt_dataset_from_arrays(&h, &p, t->rows, &d),
                     VKT_OK);
    return d;
}

static void expect_rows(const vkt_dataset *d, const table *t, const uint32_t *rows, uint32_t n)
{
    assert_int_equal(vkt_dataset_rows(d), n);
    for (uint32_t i = 0; i < n; i++) {
        float row[F];
        assert_int_equal(vkt_dataset_fetch(d, i, row), VKT_OK);
        assert_memory_equal(row, t->rows[rows[i]], sizeof row);
        assert_int_equal(vkt_dataset_labels(d)[i], t->labels[rows[i]]);
        assert_memory_equal(vkt_dataset_targets(d) + i * K, t->targets[rows[i]], sizeof t->targets[0]);
    }
    assert_string_equal(vkt_dataset_class_name(d, 2), "c");
    assert_true(vkt_dataset_mean(d)[0] == 4 && vkt_dataset_std(d)[0] == 0.5);
}

static void selected_rows_are_independent(void **state)
{
    (void)state;
    table t;
    fill(&t);
    const uint32_t rows[] = { 9, 0, 4, 4, 3 }, lost[] = { 7 };
    for (int source = 0; source < 2; source++) {
        vkt_dataset *d = dataset_of(&t, source), *part, *tail, *bad;
        assert_int_equal(vkt_dataset_select(d, rows, 5, &part), VKT_OK);
        assert_int_equal(vkt_dataset_select(d, lost, 1, &bad), VKT_OK);
        vkt_dataset_destroy(&d);
        expect_rows(part, &t, rows, 5);
        assert_true(vkt_dataset_varies(part) == source);
        assert_true((vkt_dataset_features(part) == NULL) == source);
        assert_int_equal(vkt_dataset_slice(part, 2, 3, &tail), VKT_OK); /* a slice of a selection works, too */
        vkt_dataset_destroy(&part);
        assert_int_equal(vkt_dataset_select(tail, (const uint32_t[]){ 2, 0 }, 2, &part), VKT_OK);
        expect_rows(part, &t, (const uint32_t[]){ 3, 4 }, 2);
        vkt_test_expect_errors(true);
        float row[F];
        assert_int_equal(vkt_dataset_fetch(bad, 0, row), source ? VKT_E_IO : VKT_OK);
        if (source) vkt_test_error_contains("row 7 is lost");
        assert_int_equal(vkt_dataset_select(tail, (const uint32_t[]){ 0, 3 }, 2, &d), VKT_E_ARG);
        vkt_test_error_contains("rows[1]: want a row below 3, got 3");
        assert_int_equal(vkt_dataset_select(tail, rows, 0, &d), VKT_E_ARG);
        assert_null(d);
        vkt_dataset_destroy(&bad);
        vkt_dataset_destroy(&tail);
        vkt_dataset_destroy(&part);
    }
}

static void a_split_parts_all_rows_by_seed(void **state)
{
    (void)state;
    table t;
    fill(&t);
    vkt_dataset *d = dataset_of(&t, false), *train, *test;
    float first[2] = { -1, -1 };
    for (uint64_t seed = 1; seed <= 3; seed++) { /* the third iteration has seed 2 again */
        bool seen[N] = { false };
        assert_int_equal(vkt_dataset_split(d, 0.25, seed < 3 ? seed : 2, &train, &test), VKT_OK);
        assert_int_equal(vkt_dataset_rows(test), 3);
        assert_int_equal(vkt_dataset_rows(train), 7);
        float sum = 0;
        for (uint32_t i = 0; i < N; i++) {
            float row[F];
            assert_int_equal(vkt_dataset_fetch(i < 3 ? test : train, i < 3 ? i : i - 3, row), VKT_OK);
            seen[(uint32_t)row[0] / F] = true;
            sum = sum * 31 + row[0];
        }
        for (uint32_t i = 0; i < N; i++) assert_true(seen[i]);
        if (seed == 2) assert_true(sum != first[0]);
        if (seed == 3) assert_true(sum == first[1]);
        if (seed < 3) first[seed - 1] = sum;
        vkt_dataset_destroy(&train);
        vkt_dataset_destroy(&test);
    }
    vkt_test_expect_errors(true);
    static const double shares[] = { 0, 1, 0.95, -1, NAN };
    for (size_t i = 0; i < VKT_COUNT(shares); i++) {
        assert_int_equal(vkt_dataset_split(d, shares[i], 1, &train, &test), VKT_E_ARG);
        assert_true(!train && !test);
    }
    vkt_dataset_destroy(&d);
}

/* ---- standardisation ---- */

static void columns_get_mean_0_and_deviation_1(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const float rows[4][3] = { { 1e6f + 1, 5, -1 }, { 1e6f + 3, 5, 1 }, { 1e6f + 1, 5, 1 }, { 1e6f + 3, 5, -1 } };
    const vkt_dataset_params p = { .rows = 4, .width = 3, .type = VKT_ROW_F32, .targets = rows[0], .target_width = 3 };
    vkt_dataset *d, *scaled;
    vkt_scaler *s, *again;
    assert_int_equal(vkt_dataset_from_arrays(&h, &p, rows, &d), VKT_OK);
    assert_int_equal(vkt_scaler_fit(d, &s), VKT_OK);
    assert_int_equal(vkt_scaler_columns(s), 3);
    assert_memory_equal(vkt_scaler_mean(s), ((double[]){ 1e6 + 2, 5, 0 }), 24);
    assert_memory_equal(vkt_scaler_std(s), ((double[]){ 1, 1, 1 }), 24);
    assert_int_equal(vkt_scaler_transform(s, d, &scaled), VKT_OK);
    const float want[4][3] = { { -1, 0, -1 }, { 1, 0, 1 }, { -1, 0, 1 }, { 1, 0, -1 } };
    assert_memory_equal(vkt_dataset_features(scaled), want, sizeof want);
    assert_memory_equal(vkt_dataset_targets(scaled), rows, sizeof rows);
    float mine[2][3] = { { 1e6f + 7, 6, 0.5f }, { 1e6f + 2, 5, 0 } };
    vkt_scaler_rows(s, mine[0], 2);
    assert_memory_equal(mine, ((float[]){ 5, 1, 0.5f, 0, 0, 0 }), sizeof mine);
    vkt_dataset_destroy(&scaled);

    vkt_dataset *narrow;
    const vkt_dataset_params two = { .rows = 6, .width = 2, .type = VKT_ROW_F32 };
    assert_int_equal(vkt_dataset_from_arrays(&h, &two, rows, &narrow), VKT_OK);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_scaler_transform(s, narrow, &scaled), VKT_E_SHAPE);
    vkt_test_error_contains("want rows of 3 numbers, got 2");
    const vkt_dataset_params bytes = { .rows = 2, .width = 3 };
    vkt_dataset *u8;
    assert_int_equal(vkt_dataset_from_arrays(&h, &bytes, rows, &u8), VKT_OK);
    assert_int_equal(vkt_scaler_transform(s, u8, &scaled), VKT_E_ARG);
    assert_int_equal(vkt_scaler_fit(u8, &again), VKT_E_ARG);
    vkt_test_error_contains("want rows of f32");
    vkt_dataset *holes;
    const float gap[2] = { 1, NAN };
    const vkt_dataset_params gaps = { .rows = 2, .type = VKT_ROW_F32 };
    assert_int_equal(vkt_dataset_from_arrays(&h, &gaps, gap, &holes), VKT_OK);
    assert_int_equal(vkt_scaler_fit(holes, &again), VKT_E_ARG);
    vkt_test_error_contains("row 1, column 0: want a finite number");
    vkt_dataset_destroy(&holes);
    vkt_dataset_destroy(&u8);
    vkt_dataset_destroy(&narrow);
    vkt_dataset_destroy(&d);
    vkt_scaler_destroy(&s);
}

/* The message has the number of all bytes, also if rows times columns does not fit into 32 bits. */
static void too_large_a_table_is_reported(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const vkt_dataset_params p = { .rows = 3000000000u, .width = 2, .type = VKT_ROW_F32 };
    vkt_dataset *d, *scaled;
    vkt_scaler *s;
    assert_int_equal(vkt_dataset_from_source(&h, &p, &(vkt_data_source){ .fetch = fetch_row }, &d), VKT_OK);
    assert_int_equal(vkt_scaler_from_text(&h, "it", "vktrain-scaler 1 columns=2\n1 1\n1 1\n", &s), VKT_OK);
    vkt_test_expect_errors(true);
    vkt_test_fail_allocation(1);
    assert_int_equal(vkt_scaler_transform(s, d, &scaled), VKT_E_NOMEM);
    vkt_test_fail_allocation(0);
    vkt_test_error_contains("24000000000 bytes for standardised rows");
    vkt_scaler_destroy(&s);
    vkt_dataset_destroy(&d);
}

static void refuse_scaler(const char *text, const char *says)
{
    const vkt_host h = vkt_test_host();
    const size_t live = vkt_test_live_blocks();
    vkt_scaler *s;
    vkt_test_expect_errors(true);
    if (vkt_scaler_from_text(&h, "it", text, &s) != VKT_E_FORMAT) fail_msg("was read: %s", text);
    assert_null(s);
    vkt_test_error_contains(says);
    assert_int_equal(vkt_test_live_blocks(), live);
}

static void a_scaler_comes_back_to_the_bit(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const float rows[3][2] = { { 0.1f, 1e-30f }, { 0.7f, 3e30f }, { -1.3f, 2 } };
    const vkt_dataset_params p = { .rows = 3, .width = 2, .type = VKT_ROW_F32 };
    vkt_dataset *d;
    vkt_scaler *s, *again;
    char *text, *second;
    assert_int_equal(vkt_dataset_from_arrays(&h, &p, rows, &d), VKT_OK);
    assert_int_equal(vkt_scaler_fit(d, &s), VKT_OK);
    assert_int_equal(vkt_scaler_to_text(s, &text), VKT_OK);
    assert_int_equal(vkt_scaler_from_text(&h, "it", text, &again), VKT_OK);
    assert_memory_equal(vkt_scaler_mean(s), vkt_scaler_mean(again), 16);
    assert_memory_equal(vkt_scaler_std(s), vkt_scaler_std(again), 16);
    assert_int_equal(vkt_scaler_to_text(again, &second), VKT_OK);
    assert_string_equal(text, second);
    vkt_scaler_destroy(&again);
    for (size_t n = strlen(text); n-- > 0;) {
        text[n] = 0;
        refuse_scaler(text, "it, line ");
    }
    vkt_text_release(&text);
    vkt_text_release(&second);
    vkt_scaler_destroy(&s);
    vkt_dataset_destroy(&d);
    refuse_scaler("vktrain-scaler 1 columns=1\n1 0\n", "line 2: want a mean, a blank and a deviation above 0");
    refuse_scaler("vktrain-scaler 1 columns=1\n1 -1\n", "line 2");
    refuse_scaler("vktrain-scaler 1 columns=1\nnan 1\n", "line 2");
    refuse_scaler("vktrain-scaler 1 columns=1\n1  1\n", "line 2");
    refuse_scaler("vktrain-scaler 1 columns=1\n1e999 1\n", "line 2");
    refuse_scaler("vktrain-scaler 1 columns=1\n1 2\n3 4\n", "nothing behind line 2");
    refuse_scaler("vktrain-scaler 1 columns=4294967296\n1 2\n", "line 1");
    refuse_scaler("vktrain-scaler 1 columns=1.5\n1 2\n", "line 1");
    refuse_scaler("vktrain-scaler 2 columns=1\n1 2\n", "line 1");
}

/* Reads and writes numbers in a German or French locale, if the system has one. These locales have a decimal comma, but
 * the numbers must still have a decimal point. */
static void the_locale_changes_nothing(void **state)
{
    const char *const locales[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C" };
    for (size_t i = 0; i < VKT_COUNT(locales) && !setlocale(LC_ALL, locales[i]); i++) continue;
    vkt_dataset *d = open_csv(state, "a\n1.5\n", NULL);
    assert_true(*(const float *)vkt_dataset_features(d) == 1.5f);
    vkt_scaler *s;
    char *text;
    assert_int_equal(vkt_scaler_fit(d, &s), VKT_OK);
    assert_int_equal(vkt_scaler_to_text(s, &text), VKT_OK);
    setlocale(LC_ALL, "C");
    assert_string_equal(text, "vktrain-scaler 1 columns=1\n1.5 1\n");
    vkt_text_release(&text);
    vkt_scaler_destroy(&s);
    vkt_dataset_destroy(&d);
}

static void records_are_texts(void **state)
{
    const vkt_host h = vkt_test_host();
    static const char text[] = "name;\"a;b\"\r\nx;\n\"q\"\"q\";2\n";
    const char *path = temp_write(*state, "t.csv", text, sizeof text - 1, true);
    for (int k = 0; k < 2; k++) {
        vkt_records *r;
        assert_int_equal(k ? vkt_records_from_text(&h, "it", text, ';', &r) : vkt_records_read(&h, path, ';', &r),
                         VKT_OK);
        assert_int_equal(vkt_records_rows(r), 2);
        assert_int_equal(vkt_records_columns(r), 2);
        assert_string_equal(vkt_records_name(r, 0), "name");
        assert_string_equal(vkt_records_name(r, 1), "a;b");
        assert_string_equal(vkt_records_field(r, 0, 0), "x");
        assert_string_equal(vkt_records_field(r, 0, 1), "");
        assert_string_equal(vkt_records_field(r, 1, 0), "q\"q");
        assert_string_equal(vkt_records_field(r, 1, 1), "2");
        assert_null(vkt_records_name(r, 2));
        assert_null(vkt_records_field(r, 2, 0));
        assert_null(vkt_records_field(r, 0, 2));
        vkt_records_destroy(&r);
        assert_null(r);
    }
    vkt_records *r;
    assert_int_equal(vkt_records_from_text(&h, "it", "a,b\n", 0, &r), VKT_OK);
    assert_int_equal(vkt_records_rows(r), 0);
    vkt_records_destroy(&r);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_records_from_text(&h, "it", "", 0, &r), VKT_E_FORMAT);
    for (const char *s = "\"\n\r"; *s; s++) {
        assert_int_equal(vkt_records_from_text(&h, "it", "a,b\n", *s, &r), VKT_E_ARG);
        vkt_test_error_contains("separator");
    }
    assert_int_equal(vkt_records_from_text(&h, "it", "a,b\n1\n", 0, &r), VKT_E_FORMAT);
    vkt_test_error_contains("it, line 2: want 2 fields");
    assert_int_equal(vkt_records_read(&h, vkt_temp_dir_file(*state, "none"), 0, &r), VKT_E_NOT_FOUND);
    assert_int_equal(vkt_records_read(&h, NULL, 0, &r), VKT_E_ARG);
    assert_int_equal(vkt_records_from_text(&h, "it", NULL, 0, &r), VKT_E_ARG);
    assert_null(r);
}

static vkt_result read_all(const vkt_host *h, const char *path, table *t)
{
    const vkt_csv_params p = { .label = "kind", .targets = (const char *const[]){ "price" }, .n_targets = 1 };
    vkt_dataset *d = NULL, *part = NULL, *train = NULL, *test = NULL, *scaled = NULL;
    vkt_scaler *s = NULL, *again = NULL;
    char *text = NULL;
    const vkt_dataset_params sp = { .rows = N, .width = F, .type = VKT_ROW_F32, .targets = t->targets[0] };
    vkt_result r = vkt_dataset_from_source(h, &sp, &(vkt_data_source){ .fetch = fetch_row, .self = t }, &part);
    if (r == VKT_OK) r = vkt_dataset_split(part, 0.5, 1, &train, &test);
    vkt_dataset_destroy(&part);
    vkt_dataset_destroy(&train);
    vkt_dataset_destroy(&test);
    vkt_records *records = NULL;
    if (r == VKT_OK) r = vkt_records_read(h, path, 0, &records);
    vkt_records_destroy(&records);
    if (r == VKT_OK) r = vkt_dataset_from_csv(h, path, &p, &d);
    if (r == VKT_OK) r = vkt_dataset_split(d, 0.5, 1, &train, &test);
    if (r == VKT_OK) r = vkt_scaler_fit(train, &s);
    if (r == VKT_OK) r = vkt_scaler_transform(s, test, &scaled);
    if (r == VKT_OK) r = vkt_scaler_to_text(s, &text);
    if (r == VKT_OK) r = vkt_scaler_from_text(h, "it", text, &again);
    vkt_text_release(&text);
    vkt_scaler_destroy(&s);
    vkt_scaler_destroy(&again);
    vkt_dataset_destroy(&scaled);
    vkt_dataset_destroy(&train);
    vkt_dataset_destroy(&test);
    vkt_dataset_destroy(&d);
    return r;
}

static void every_failed_allocation_is_a_status(void **state)
{
    const vkt_host h = vkt_test_host();
    const char *path = temp_write(*state, "t.csv", csv, sizeof csv - 1, false);
    table t;
    fill(&t);
    for (unsigned k = 1;; k++) {
        vkt_test_fail_allocation(k);
        const vkt_result r = read_all(&h, path, &t);
        assert_int_equal(vkt_test_live_blocks(), 0);
        assert_int_equal(r, vkt_test_allocation_failed() ? VKT_E_NOMEM : VKT_OK);
        if (r == VKT_OK) break;
        assert_true(k < 200);
    }
    vkt_test_fail_allocation(0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_setup, temp_teardown)
    const struct CMUnitTest tests[] = {
        TEST(columns_are_chosen_by_name_and_number),
        TEST(a_file_without_header_has_numbers_for_names),
        TEST(bad_tables_are_refused_by_line_and_column),
        TEST(selected_rows_are_independent),
        TEST(a_split_parts_all_rows_by_seed),
        TEST(columns_get_mean_0_and_deviation_1),
        TEST(too_large_a_table_is_reported),
        TEST(a_scaler_comes_back_to_the_bit),
        TEST(the_locale_changes_nothing),
        TEST(records_are_texts),
        TEST(every_failed_allocation_is_a_status),
    };
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
