/* Tests the program vkt-table as its users run it: on a real table, and on generated ones with the faults of real
 * tables. */
#include "samples/program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/philox.h"

#define EXPECT(r, status, says, ...) \
    program_expect(r, VKT_TABLE_PROGRAM, status, says, (const char *const[]){ __VA_ARGS__, NULL })

/* ---- the real table: 150 irises (Fisher, 1936), samples/data/iris.csv ---- */

static double accuracy_of(const rig *r, const char *name)
{
    json_t *report = program_json(r, name);
    const double accuracy = json_number_of(report, "accuracy");
    assert_string_equal(json_string_value(json_object_get(report, "task")), "classes");
    json_decref(report);
    return accuracy;
}

static void irises_are_classified(void **state)
{
    rig *r = rig_of(state);
    const char *const args[] = { "--json", "report", "--save", "w", "--epochs", "40", NULL };
    run done = program_finish(r, program_start(r, VKT_TABLE_PROGRAM, NULL, args));
    if (done.status != 0) print_error("%s", done.err);
    assert_int_equal(done.status, 0);
    assert_non_null(strstr(done.out, "Fisher's irises: 120 to train on, 30 to validate on, 4 numbers each, 3 classes"));
    assert_non_null(strstr(done.out, "  petal_width          number    mean 1.2"));
    assert_non_null(strstr(done.out, "  species              target    3 classes: setosa, versicolor, virginica\n"));
    assert_non_null(strstr(done.out, " of 30 rows right ("));
    run_forget(r, &done);
    assert_true(accuracy_of(r, "report") >= 0.93); /* 28 of 30 are enough, because versicolor and virginica overlap */
    EXPECT(r, 0, "", "-q", "--data", VKT_TEST_DIR "/../samples/data/iris.csv", "--epochs", "40", "--save", "file");
    rig_same_file(vkt_temp_dir_file(&r->dir, "w"), vkt_temp_dir_file(&r->dir, "file"));
}

/* ---- a generated table: the price depends on size and colour; values are missing; some columns are useless ---- */

enum { ROWS = 240 };

/* A step of nine batches does not fit into an epoch of eight batches. */
static void batches_that_fill_no_step_are_reported(void **state)
{
    rig *r = rig_of(state);
    EXPECT(r, 0, "warning: fit: batches at the end that have changed no parameter yet: 8; a step has 9 micro-batches",
           "--epochs", "1", "--batch", "16", "--micro-batches", "9");
}

static void write_prices(const rig *r, const char *name)
{
    static const char *const colours[] = { "red", "green", "blue", "" };
    static const double worth[] = { 5, 0, -5, 2 };
    vkt_text t = { .h = &r->h };
    vkt_rng rng = vkt_rng_make(1, VKT_STREAM_TEST, 0, 0);
    vkt_text_add(&t, "id; colour;size\x1b[2J;remark;price;same;empty\n");
    for (int i = 0; i < ROWS; i++) {
        const uint32_t colour = vkt_rng_range(&rng, 0, 3), no_size = i % 20 == 7;
        const double size = 1 + (double)vkt_rng_range(&rng, 0, 800) / 100;
        vkt_text_add(&t, "%d; %s;", i + 100, colours[colour]);
        if (no_size)
            vkt_text_add(&t, " ?");
        else
            vkt_text_add(&t, "%.2f", size);
        vkt_text_add(&t, ";\"x;%d%s\";", i, i % 2 ? ",y" : "");
        if (i % 80 == 5)
            vkt_text_add(&t, "NA;7;\n");
        else
            vkt_text_add(&t, "%.3f;7;\n", 3 * (no_size ? 5 : size) + worth[colour]);
    }
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, name), t.s, t.len), VKT_OK);
    vkt_text_free(&t);
}

#define PRICES "--data", "prices.csv", "--target", "price"

/* Checks the schema of the table in a file of weights. */
static void check_schema(const rig *r, const char *weights)
{
    char *text;
    assert_int_equal(vkt_read_attachment(&r->h, vkt_temp_dir_file(&r->dir, weights), "table", &text), VKT_OK);
    json_t *schema = json_loads(text, 0, NULL);
    const json_t *columns = json_object_get(schema, "columns"), *colour = json_array_get(columns, 1),
                 *size = json_array_get(columns, 2);
    assert_string_equal(json_string_value(json_object_get(schema, "format")), "vktrain-table");
    assert_string_equal(json_string_value(json_object_get(schema, "target")), "price");
    assert_int_equal(json_array_size(columns), 7);
    assert_string_equal(json_string_value(json_object_get(colour, "name")), "colour");
    assert_int_equal(json_array_size(json_object_get(colour, "values")), 3);
    assert_true(json_number_of(colour, "missing") > 20);
    assert_string_equal(json_string_value(json_object_get(size, "use")), "number");
    assert_true(fabs(json_number_of(size, "mean") - 5) < 1 && fabs(json_number_of(size, "deviation") - 2.3) < 0.5);
    assert_string_equal(json_string_value(json_object_get(json_array_get(columns, 0), "use")), "left out");
    json_decref(schema);
    vkt_text_release(&text);
}

static void a_price_is_predicted_in_its_own_unit(void **state)
{
    rig *r = rig_of(state);
    write_prices(r, "prices.csv");
    const char *const args[] = { PRICES, "--epochs", "30", "--json", "report", "--save", "w", "--batch", "8", NULL };
    run done = program_finish(r, program_start(r, VKT_TABLE_PROGRAM, NULL, args));
    if (done.status != 0) print_error("%s", done.err);
    assert_int_equal(done.status, 0);
    static const char *const says[] = { "189 to train on, 48 to validate on, 6 numbers each\n",
                                        "  id                   left out  it counts the rows\n",
                                        "  colour               text      3 values: blue, green, red; missing in ",
                                        "  size\\x1b[2J          number    mean ",
                                        "  remark               left out  189 different texts (--most-values 32)\n",
                                        "  price                target    mean ",
                                        "  same                 left out  it is the same in all rows\n",
                                        "  empty                left out  it has no values\n",
                                        "  3 of 240 rows have no target: left out\n",
                                        "outcome price is off by " };
    for (size_t i = 0; i < VKT_COUNT(says); i++)
        if (!strstr(done.out, says[i])) fail_msg("want \"%s\" in\n%s", says[i], done.out);
    assert_null(strstr(done.err, "prices.csv")); /* a separator other than the comma is no error */
    run_forget(r, &done);
    json_t *first = program_json(r, "report");
    assert_true(json_number_of(first, "r2") > 0.97 && json_number_of(first, "rmse") < 1.4);
    assert_string_equal(json_string_value(json_object_get(first, "task")), "regression");
    const json_t *optimizer = json_object_get(first, "optimizer");
    assert_true(json_is_false(json_object_get(optimizer, "amsgrad")));
    check_schema(r, "w");
    /* The weights file has the schema of the table. So a run that loads this file uses the mean or the text values of
     * each column from this schema, although --seed and --validation-share give another split. The tiny --lr keeps the
     * weights as they are. */
    EXPECT(r, 0, "", PRICES, "-q", "--load", "w", "--seed", "9", "--validation-share", "0.5", "--lr", "1e-30",
           "--epochs", "1", "--json", "again");
    json_t *again = program_json(r, "again");
    assert_true(json_number_of(again, "r2") > 0.95);
    json_decref(first);
    json_decref(again);
    EXPECT(r, 1, "w predicts \"price\"", "--data", "prices.csv", "--target", "colour", "--load", "w");
    EXPECT(r, 1, "there is no column \"price\"", "--load", "w");
}

/* ---- --predict: the trainer's predictions, in the order of the file ---- */

/* Writes to `order` the rows that have a target, in the order that --seed 1 gives. Returns the number of validation
 * rows, which are the first ones of `order`. If `gaps` is true, every 80th row has no target (write_prices). */
static uint32_t check_rows(uint32_t n, bool gaps, uint32_t *order)
{
    uint32_t with_target = 0;
    vkt_shuffle(order, n, 1, 0);
    for (uint32_t i = 0; i < n; i++)
        if (!gaps || order[i] % 80 != 5) order[with_target++] = order[i];
    return (uint32_t)ceil(0.2 * with_target);
}

static void classes_are_predicted_as_in_training(void **state)
{
    enum { IRISES = 150, OF_A_CLASS = 50 };
    static const char *const names[] = { "setosa", "versicolor", "virginica" };
    rig *r = rig_of(state);
    const char *const irises = VKT_TEST_DIR "/../samples/data/iris.csv";
    uint32_t order[IRISES], right = 0;
    EXPECT(r, 0, "", "-q", "--json", "report", "--save", "w", "--epochs", "20", "--hidden", "24");
    EXPECT(r, 0, "", "-q", "--load", "w", "--json", "answers", "--predict", irises);
    json_t *all = program_json(r, "answers"), *rows = json_object_get(all, "predictions");
    assert_int_equal(json_array_size(rows), IRISES);
    const uint32_t n = check_rows(IRISES, false, order);
    for (uint32_t i = 0; i < n; i++) {
        const json_t *row = json_array_get(rows, order[i]), *top = json_object_get(row, "top");
        assert_int_equal(json_integer_value(json_object_get(row, "index")), order[i]);
        assert_int_equal(json_array_size(top), 3);
        const char *name = json_string_value(json_object_get(json_array_get(top, 0), "name"));
        right += strcmp(name, names[order[i] / OF_A_CLASS]) == 0;
    }
    assert_true(fabs((double)right / n - accuracy_of(r, "report")) < 1e-12);
    json_decref(all);
}

static void numbers_are_predicted_in_their_own_unit(void **state)
{
    rig *r = rig_of(state);
    uint32_t order[ROWS];
    double error = 0;
    write_prices(r, "prices.csv");
    EXPECT(r, 0, "", PRICES, "-q", "--epochs", "12", "--json", "report", "--save", "w");
    EXPECT(r, 0, "", "-q", "--load", "w", "--json", "answers", "--predict", "prices.csv");
    json_t *all = program_json(r, "answers"), *rows = json_object_get(all, "predictions");
    assert_int_equal(json_array_size(rows), ROWS); /* rows without a price have predictions, too */
    char *text = program_text(r, "prices.csv"), *rest = NULL;
    double price[ROWS] = { 0 };
    strtok_r(text, "\n", &rest);
    for (uint32_t i = 0; i < ROWS; i++) {
        char *quote = strrchr(strtok_r(NULL, "\n", &rest), '"');
        price[i] = quote[2] == 'N' ? NAN : atof(quote + 2);
    }
    const uint32_t n = check_rows(ROWS, true, order);
    for (uint32_t i = 0; i < n; i++) {
        const json_t *outputs = json_object_get(json_array_get(rows, order[i]), "outputs");
        assert_int_equal(json_array_size(outputs), 1);
        const double d = json_number_value(json_array_get(outputs, 0)) - price[order[i]];
        error += d * d / n;
    }
    json_t *report = program_json(r, "report");
    assert_true(fabs(sqrt(error) / json_number_of(report, "rmse") - 1) < 1e-5);
    json_decref(report);
    json_decref(all);
    vkt_free(&r->h, text);
}

static void a_file_that_does_not_fit_is_reported(void **state)
{
    rig *r = rig_of(state);
    static const struct {
        const char *name, *text;
    } files[] = {
        { "good", "petal_width,more,petal_length,sepal_width,Sepal_Length\n0.2,x,1.4,3.5,5.1\n2.3,,5.2,3,\n" },
        { "lacks", "sepal_length,sepal_width,petal_length\n5.1,3.5,1.4\n" },
        { "headless", "5.1,3.5,1.4,0.2\n4.9,3,1.4,0.2\n" },
        { "text", "sepal_length,sepal_width,petal_length,petal_width\n5.1,3.5,1.4,0.2\n5.1,wide,1.4,0.2\n" }
    };
    for (size_t i = 0; i < VKT_COUNT(files); i++)
        assert_int_equal(
            vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, files[i].name), files[i].text, strlen(files[i].text)),
            VKT_OK);
    EXPECT(r, 0, "", "-q", "--save", "w", "--epochs", "20");
    EXPECT(r, 2, "--predict needs --load", "--predict", "good");
    EXPECT(r, 1, "there is no such file", "--load", "nothing", "--predict", "good");
    EXPECT(r, 1, "w predicts \"species\"", "--load", "w", "--target", "petal_width", "--predict", "good");
    EXPECT(r, 1, "row 2, column \"sepal_width\": want a number, got \"wide\"", "--load", "w", "--predict", "text");
    EXPECT(r, 1, "headless is left out: the table has no column \"sepal_length\"", "--load", "w", "--predict",
           "headless");
    const char *const args[] = { "--load", "w", "--json", "answers", "--predict", "lacks", "none", "good", NULL };
    run done = program_finish(r, program_start(r, VKT_TABLE_PROGRAM, NULL, args));
    assert_int_equal(done.status, 1);
    assert_non_null(strstr(done.err, "lacks is left out: the table has no column \"petal_width\""));
    assert_non_null(strstr(done.err, "none is left out: "));
    assert_non_null(strstr(done.out, "good[0]: setosa "));
    assert_non_null(strstr(done.out, "good[1]: virginica "));
    run_forget(r, &done);
    json_t *all = program_json(r, "answers");
    assert_int_equal(json_array_size(json_object_get(all, "failed")), 2);
    assert_int_equal(json_array_size(json_object_get(all, "predictions")), 2);
    json_decref(all);
}

/* ---- a run goes on ---- */

/* The seed selects the validation rows. A run that goes on is not given --seed, so it reads the seed from its
 * checkpoint. */
static void a_resumed_run_keeps_its_split(void **state)
{
    rig *r = rig_of(state);
    EXPECT(r, 0, "", "-q", "--epochs", "4", "--seed", "7", "--save", "whole");
    EXPECT(r, 0, "", "-q", "--epochs", "2", "--seed", "7", "--checkpoint", "c");
    EXPECT(r, 0, "", "-q", "--epochs", "4", "--resume", "c", "--save", "rest");
    char *const whole = strdup(vkt_temp_dir_file(&r->dir, "whole"));
    rig_same_file(whole, vkt_temp_dir_file(&r->dir, "rest"));
    EXPECT(r, 0, "", "-q", "--epochs", "2", "--seed", "7", "--run", "d");
    EXPECT(r, 1, "has the seed 7, got 8", "-q", "--epochs", "4", "--seed", "8", "--run", "d");
    EXPECT(r, 0, "", "-q", "--epochs", "4", "--run", "d", "--save", "again");
    rig_same_file(whole, vkt_temp_dir_file(&r->dir, "again"));
    free(whole);
}

/* ---- the kind of the target ---- */

static void the_target_decides_the_task(void **state)
{
    rig *r = rig_of(state);
    char text[4096] = "x,grade\n";
    for (int i = 0; i < 60; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d,%d\n", i * 7 % 60, 3 + i * 7 % 60 / 20);
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, "g.csv"), text, strlen(text)), VKT_OK);
    EXPECT(r, 0, "", "-q", "--data", "g.csv", "--hidden", "16", "--epochs", "40", "--json", "a", "--lr", "0.02");
    assert_true(accuracy_of(r, "a") > 0.7);
    EXPECT(r, 0, "", "-q", "--data", "g.csv", "--task", "regression", "--hidden", "", "--epochs", "2", "--json", "b");
    json_t *report = program_json(r, "b");
    assert_string_equal(json_string_value(json_object_get(report, "task")), "regression");
    json_decref(report);
}

static void errors_are_explained(void **state)
{
    rig *r = rig_of(state);
    write_prices(r, "prices.csv");
    EXPECT(r, 2, "--hidden", "--hidden", "8,x");
    EXPECT(r, 2, "--hidden", "--hidden", "1,1,1,1,1,1,1,1,1");
    EXPECT(r, 2, "want classes or regression", "--task", "guess");
    EXPECT(r, 2, "--validation-share", "--validation-share", "1");
    EXPECT(r, 1, "there is no column \"nothing\"; the columns are \"sepal_length\"", "--target", "nothing");
    EXPECT(r, 1, "--leave-out: there is no column \"nothing\"", "--leave-out", "nothing");
    EXPECT(r, 1, "--task regression wants numbers", "--task", "regression");
    EXPECT(r, 1, "are no classes", "--data", "prices.csv", "--target", "remark");
    EXPECT(r, 1, "want two different values", "--data", "prices.csv", "--target", "same");
    EXPECT(r, 1, "has 0 rows with a target", "--data", "prices.csv", "--target", "empty");
    EXPECT(r, 1, "No such file", "--data", "none.csv");
    EXPECT(r, 1, "not a regular file", "--data", "/dev/zero");
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, "one"), "a\n1\n2\n", 6), VKT_OK);
    EXPECT(r, 1, "want two columns or more", "--data", "one");
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, "ragged"), "a,b\n1\n", 6), VKT_OK);
    EXPECT(r, 1, "line 2: want 2 fields", "--data", "ragged");
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, "same"), "a,b\n1,1\n1,2\n1,3\n", 16), VKT_OK);
    EXPECT(r, 1, "no column to learn from", "--data", "same", "--task", "regression");
}

static void help_names_its_options(void **state)
{
    rig *r = rig_of(state);
    static const char *const options[] = {
        "--target", "--task",   "--leave-out",  "--most-values", "--validation-share",
        "--hidden", "--epochs", "--checkpoint", "--plot",        "--predict"
    };
    run done = program_finish(r, program_start(r, VKT_TABLE_PROGRAM, NULL, (const char *const[]){ "--help", NULL }));
    assert_int_equal(done.status, 0);
    for (size_t i = 0; i < VKT_COUNT(options); i++)
        if (!strstr(done.out, options[i])) fail_msg("--help: %s is missing", options[i]);
    run_forget(r, &done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(irises_are_classified),
        rig_test(batches_that_fill_no_step_are_reported),
        rig_test(a_price_is_predicted_in_its_own_unit),
        rig_test(the_target_decides_the_task),
        rig_test(errors_are_explained),
        rig_test(help_names_its_options),
        rig_test(classes_are_predicted_as_in_training),
        rig_test(numbers_are_predicted_in_their_own_unit),
        rig_test(a_file_that_does_not_fit_is_reported),
        rig_test(a_resumed_run_keeps_its_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
