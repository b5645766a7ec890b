/* Tests --predict of the sample programs. A program reads weights and files, and prints predictions. The accuracy of
 * these predictions must be equal to the accuracy that the training run reports for the same inputs. Also tests
 * --report, --confusion, --class-weights and --label-smoothing. */
#include "samples/program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "bench/schema.h"
#include "data/image_files.h"

#define IMAGES VKT_TEST_DIR "/golden/images/"
enum { SIDE = 16, DIGIT_CLASSES = 4, TRAIN = 90, CHECK = 30, IMAGE_CLASSES = 4 };
static const char *const images[IMAGE_CLASSES] = { "cmyk.jpg", "gray.jpg", "noise.png", "turned.jpg" };

#define RUN(r, program, ...) \
    program_finish(r, program_start(r, program, NULL, (const char *const[]){ __VA_ARGS__, NULL }))
#define EXPECT(r, program, status, says, ...) \
    program_expect(r, program, status, says, (const char *const[]){ __VA_ARGS__, NULL })

static void write_bytes(const rig *r, const char *name, const void *bytes, size_t n)
{
    assert_int_equal(vkt_file_write(&r->h, vkt_temp_dir_file(&r->dir, name), bytes, n), VKT_OK);
}

static void write_text(const rig *r, const char *name, const char *text)
{
    write_bytes(r, name, text, strlen(text));
}

/* Reads predictions from a JSON file, which must conform to docs/predict.schema.json. The caller frees them with
 * json_decref. */
static json_t *answers(const rig *r, const char *name)
{
    char why[256];
    if (!schema_fits("predict", vkt_temp_dir_file(&r->dir, name), why)) fail_msg("%s: %s", name, why);
    return program_json(r, name);
}

static const json_t *best(const json_t *all, size_t i)
{
    return json_array_get(json_object_get(json_array_get(json_object_get(all, "predictions"), i), "top"), 0);
}

static double best_val_acc(const rig *r, const char *name)
{
    json_t *report = program_json(r, name);
    const double acc = json_number_of(report, "best_val_acc");
    json_decref(report);
    return acc;
}

static void is_that_often_right(const json_t *all, uint32_t rows, uint32_t right, double accuracy)
{
    assert_int_equal(json_array_size(json_object_get(all, "predictions")), rows);
    if (fabs((double)right / rows - accuracy) > 1e-9) fail_msg("%u of %u are right, want %g", right, rows, accuracy);
}

/* ---- digits: 1x16x16, four classes ---- */

static unsigned char digits[(TRAIN + CHECK) * SIDE * SIDE], labels[TRAIN + CHECK];

static void draw_digits(void)
{
    for (uint32_t i = 0; i < TRAIN + CHECK; i++) {
        labels[i] = (unsigned char)(i % DIGIT_CLASSES);
        for (uint32_t y = 2; y < SIDE - 2; y++) /* vertical or horizontal stripes, wide or narrow */
            for (uint32_t x = 2; x < SIDE - 2; x++) {
                const uint32_t along = labels[i] & 1 ? x : y, wide = labels[i] & 2 ? 4 : 2;
                if ((along + i / 4) / wide % 2)
                    digits[(i * SIDE + y) * SIDE + x] = (unsigned char)(150 + (i * 37 + x * y) % 100);
            }
    }
}

static void write_idx(const rig *r, const char *name, uint32_t n, uint32_t side, const unsigned char *bytes)
{
    static unsigned char all[16 + sizeof digits];
    const unsigned char head[16] = { 0, 0, 8, side ? 3 : 1,        0, 0, 0, (unsigned char)n,
                                     0, 0, 0, (unsigned char)side, 0, 0, 0, (unsigned char)side };
    const size_t head_bytes = side ? 16 : 8, size = side ? (size_t)n * side * side : n;
    memcpy(all, head, head_bytes);
    memcpy(all + head_bytes, bytes, size);
    write_bytes(r, name, all, head_bytes + size);
}

/* Writes digit `row` as a PNG. If `light` is set, the digit is dark on a light background, otherwise light on dark. */
static void write_png(const rig *r, const char *name, uint32_t row, bool light)
{
    unsigned char pixels[SIDE * SIDE];
    for (uint32_t i = 0; i < SIDE * SIDE; i++) {
        const unsigned char p = digits[row * SIDE * SIDE + i];
        pixels[i] = light ? (unsigned char)(255 - p) : p;
    }
    image_file png = encode_png(&(png_params){ .width = SIDE, .height = SIDE, .colour = 0, .depth = 8 }, pixels);
    write_bytes(r, name, png.p, png.n);
    free(png.p);
}

static void train_digits(const rig *r)
{
    draw_digits();
    write_idx(r, "train-images-idx3-ubyte", TRAIN, SIDE, digits);
    write_idx(r, "train-labels-idx1-ubyte", TRAIN, 0, labels);
    write_idx(r, "t10k-images-idx3-ubyte", CHECK, SIDE, digits + TRAIN * SIDE * SIDE);
    write_idx(r, "t10k-labels-idx1-ubyte", CHECK, 0, labels + TRAIN);
    EXPECT(r, VKT_MNIST_PROGRAM, 0, "", "--data", ".", "--batch", "32", "--epochs", "3", "-q", "--save", "w", "--json",
           "report", "--checkpoint", "c");
}

static void digits_of_an_idx_file_are_read_as_in_training(void **state)
{
    rig *r = rig_of(state);
    train_digits(r);
    run done = RUN(r, VKT_MNIST_PROGRAM, "--load", "w", "--predict", "t10k-images-idx3-ubyte", "--json", "out.json");
    if (done.status != 0) print_error("%s", done.err);
    assert_int_equal(done.status, 0);
    assert_non_null(strstr(done.out, "t10k-images-idx3-ubyte[29]: "));
    assert_null(strstr(done.out, "device")); /* only predictions are printed */
    run_forget(r, &done);
    json_t *all = answers(r, "out.json");
    uint32_t right = 0;
    for (uint32_t i = 0; i < CHECK; i++) right += json_number_of(best(all, i), "class") == labels[TRAIN + i];
    is_that_often_right(all, CHECK, right, best_val_acc(r, "report"));
    json_decref(all);
}

static void images_of_digits_are_read_and_inverted(void **state)
{
    rig *r = rig_of(state);
    train_digits(r);
    write_png(r, "dark.png", TRAIN + 5, false);
    write_png(r, "light.png", TRAIN + 5, true);
    write_text(r, "text.png", "no image\n");
    run done = RUN(r, VKT_MNIST_PROGRAM, "--load", "w", "--predict", "dark.png", "text.png", "none.png", "light.png",
                   IMAGES "gray_100x37.png", "t10k-images-idx3-ubyte", "--json", "out.json");
    assert_int_equal(done.status, 1);
    assert_non_null(strstr(done.err, "text.png is left out: "));
    assert_non_null(strstr(done.err, "none.png is left out: "));
    assert_non_null(strstr(done.err, "2 of 6 files were left out"));
    assert_non_null(strstr(done.out, "light.png: "));
    assert_non_null(strstr(done.out, "(dark on light: inverted)"));
    assert_non_null(strstr(done.out, "gray_100x37.png: ")); /* images may have any size */
    run_forget(r, &done);
    json_t *all = answers(r, "out.json");
    assert_int_equal(json_array_size(json_object_get(all, "failed")), 2);
    assert_int_equal(json_array_size(json_object_get(all, "predictions")), 3 + CHECK);
    for (size_t i = 0; i < 2; i++) /* both PNGs have the prediction of digit 5 of the IDX file */
        assert_true(json_equal(best(all, i), best(all, 3 + 5)));
    json_decref(all);
}

static void standard_input_and_checkpoints_will_do(void **state)
{
    rig *r = rig_of(state);
    train_digits(r);
    write_png(r, "dark.png", TRAIN + 2, false);
    run done = RUN(r, "/bin/sh", "-c", "'" VKT_MNIST_PROGRAM "' --load c --predict - < dark.png");
    if (done.status != 0) print_error("%s", done.err);
    assert_int_equal(done.status, 0);
    assert_non_null(strstr(done.out, "standard input: "));
    run_forget(r, &done);
    EXPECT(r, VKT_MNIST_PROGRAM, 2, "--predict needs --load", "--predict", "dark.png");
    EXPECT(r, VKT_MNIST_PROGRAM, 2, "want one FILE", "--load", "w", "--predict");
    EXPECT(r, VKT_MNIST_PROGRAM, 2, "does not train", "--load", "w", "--predict", "dark.png", "--save", "x");
    EXPECT(r, VKT_MNIST_PROGRAM, 2, "is no option", "dark.png");
    EXPECT(r, VKT_MNIST_PROGRAM, 1, "want weights that vkt-mnist --save", "--load", "none", "--predict", "dark.png");
    EXPECT(r, VKT_MNIST_PROGRAM, 1, "(safetensors)", "--load", "dark.png", "--predict", "dark.png");
    EXPECT(r, VKT_IMAGES_PROGRAM, 1, "want weights of vkt-images, got those of vkt-mnist", "--load", "w", "--predict",
           "dark.png");
}

/* A weights file has a data card (vktrain/card.h). Any program may have written the file, so the sample program checks
 * the card before it uses the card. */
static void a_damaged_card_is_reported(void **state)
{
#define CARD(sample, mean, deviation, classes, names)                                               \
    "{\"program\":\"vkt-reuters\",\"sample\":" sample ",\"mean\":" mean ",\"deviation\":" deviation \
    ",\"classes\":" classes ",\"names\":" names "}"
    static const char *const cards[] = {
        "no JSON",
        "{}",
        "[1]",
        CARD("[1,1]", "[0]", "[1]", "2", "null"),
        CARD("[1,1,0]", "[0]", "[1]", "2", "null"),
        CARD("[1,1,-300]", "[0]", "[1]", "2", "null"),
        CARD("[1,1,4294967297]", "[0]", "[1]", "2", "null"),
        CARD("[17,1,300]", "[0]", "[1]", "2", "null"),
        CARD("[1,1,300]", "[0,1]", "[1]", "2", "null"),
        CARD("[1,1,300]", "[0]", "[0]", "2", "null"),
        CARD("[1,1,300]", "[0]", "[\"1\"]", "2", "null"),
        CARD("[1,1,300]", "[0]", "[1]", "-2", "null"),
        CARD("[1,1,300]", "[0]", "[1]", "2.5", "null"),
        CARD("[1,1,300]", "[0]", "[1]", "2", "[\"a\"]"),
    };
    rig *r = rig_of(state);
    const vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    write_text(r, "story", "words\n");
    for (size_t i = 0; i < VKT_COUNT(cards); i++) {
        assert_int_equal(vkt_trainer_attach(t, "data", cards[i]), VKT_OK);
        assert_int_equal(vkt_trainer_save(t, vkt_temp_dir_file(&r->dir, "w")), VKT_OK);
        EXPECT(r, VKT_REUTERS_PROGRAM, 1, "its metadata of the data are damaged", "--load", "w", "--predict", "story");
    }
    assert_int_equal(
        vkt_trainer_attach(t, "vocabulary", "vktrain-vocabulary 1 index_from=3 lower=1 words=0\nfilters=\n"), VKT_OK);
    assert_int_equal(vkt_trainer_attach(t, "data", CARD("[2,9,300]", "[0,0]", "[1,1]", "2", "null")), VKT_OK);
    assert_int_equal(vkt_trainer_save(t, vkt_temp_dir_file(&r->dir, "w")), VKT_OK);
    EXPECT(r, VKT_REUTERS_PROGRAM, 1, "want rows that are sequences, got 2x9x300", "--load", "w", "--predict", "story");
    assert_int_equal(vkt_trainer_attach(t, "data", CARD("[1,1,300]", "[0]", "[1]", "2", "null")), VKT_OK);
    assert_int_equal(vkt_trainer_save(t, vkt_temp_dir_file(&r->dir, "w")),
                     VKT_OK); /* these are weights of another network */
    EXPECT(r, VKT_REUTERS_PROGRAM, 1, "want tensor 'embedding.weight'", "--load", "w", "--predict", "story");
#undef CARD
}

/* ---- images: four classes of one image each; each class name has a terminal's control sequence ---- */

#define ODD "\x1b[2J"

static void write_tables(const rig *r, uint32_t rows)
{
    char text[32 * 300] = "path,label\n";
    for (uint32_t i = 0; i < rows; i++) {
        const size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, IMAGES "%s,%s" ODD "\n", images[i % IMAGE_CLASSES],
                 images[i % IMAGE_CLASSES]);
    }
    write_text(r, "train.csv", text);
    write_text(r, "valid.csv", text);
}

/* Returns how many of the four images are predicted as their own class. */
static uint32_t named_right(const json_t *all)
{
    uint32_t right = 0;
    for (uint32_t i = 0; i < IMAGE_CLASSES; i++) {
        char want[32];
        snprintf(want, sizeof want, "%s" ODD, images[i]);
        right += strcmp(json_string_value(json_object_get(best(all, i), "name")), want) == 0;
    }
    return right;
}

#define FOUR IMAGES "cmyk.jpg", IMAGES "gray.jpg", IMAGES "noise.png", IMAGES "turned.jpg"

static void images_are_named_as_in_training(void **state)
{
    rig *r = rig_of(state);
    write_tables(r, 16);
    EXPECT(r, VKT_IMAGES_PROGRAM, 0, "", "--data", ".", "--batch", "8", "--lr", "0.02", "--epochs", "4", "-q", "--save",
           "w", "--json", "report");
    run done = RUN(r, VKT_IMAGES_PROGRAM, "--load", "w", "--json", "out.json", "--predict", FOUR);
    assert_int_equal(done.status, 0);
    assert_non_null(strstr(done.out, "noise.png: "));
    assert_true(strstr(done.out, "?[2J") && !strchr(done.out, 0x1b));
    run_forget(r, &done);
    json_t *all = answers(r, "out.json");
    is_that_often_right(all, 4, named_right(all), best_val_acc(r, "report"));
    json_decref(all);
}

static void a_limit_of_pixels_counts_in_predictions_too(void **state)
{
    rig *r = rig_of(state);
    write_tables(r, 8);
    EXPECT(r, VKT_IMAGES_PROGRAM, 0, "", "--data", ".", "--batch", "8", "--epochs", "1", "-q", "--save", "w");
    EXPECT(r, VKT_IMAGES_PROGRAM, 1, "noise.png is left out: ", "--load", "w", "-q", "--max-pixels", "9", "--predict",
           IMAGES "noise.png");
    EXPECT(r, VKT_IMAGES_PROGRAM, 0, "", "--load", "w", "-q", "--max-pixels", "1000000", "--predict",
           IMAGES "noise.png");
}

static void a_residual_network_names_them_too(void **state)
{
    rig *r = rig_of(state);
    write_tables(r, 16);
    EXPECT(r, VKT_RESNET_PROGRAM, 0, "", "--data", ".", "--batch", "8", "--size", "16", "--from-scratch", "--epochs",
           "2", "--no-augment", "-q", "--save", "w", "--json", "report");
    EXPECT(r, VKT_RESNET_PROGRAM, 0, "", "--load", "w", "-q", "--json", "out.json", "--predict", FOUR);
    json_t *all = answers(r, "out.json");
    is_that_often_right(all, 4, named_right(all), best_val_acc(r, "report"));
    json_decref(all);
}

/* ---- texts ---- */

static void topics_of_texts_are_predicted_as_in_training(void **state)
{
    enum { STORIES = 30, TOPICS = 3 };
    static const char *const topics[TOPICS] = { "tea", "ale", "gin" };
    static char table[STORIES * 400], lines[STORIES * 400];
    rig *r = rig_of(state);
    table[0] = lines[0] = 0;
    for (uint32_t i = 0; i < STORIES; i++) {
        char story[400] = "";
        for (uint32_t k = 0; k < 20; k++)
            snprintf(story + strlen(story), sizeof story - strlen(story), "%s%u All%u ", topics[i % TOPICS],
                     (i + k) % 6, (7 * i + k) % 20);
        snprintf(table + strlen(table), sizeof table - strlen(table), "%s\t%s\n", topics[i % TOPICS], story);
        snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "%s\n%s", story, i == 3 ? " ..\n\n" : "");
    }
    write_text(r, "train.tsv", table);
    write_text(r, "test.tsv", table);
    write_text(r, "lines", lines);
    write_text(r, "story", "gin0 gin1\ngin2 gin3 All1\n");
    write_text(r, "other", "words that it never saw\n");
    EXPECT(r, VKT_REUTERS_PROGRAM, 0, "", "--data", ".", "--batch", "8", "--epochs", "2", "--lr", "0.01", "-q",
           "--save", "w", "--json", "report");
    EXPECT(r, VKT_REUTERS_PROGRAM, 0, "", "--load", "w", "-q", "--json", "out.json", "--lines", "--predict", "lines");
    json_t *all = answers(r, "out.json");
    uint32_t right = 0;
    for (uint32_t i = 0; i < STORIES; i++)
        right += strcmp(json_string_value(json_object_get(best(all, i), "name")), topics[i % TOPICS]) == 0;
    is_that_often_right(all, STORIES, right, best_val_acc(r, "report"));
    json_decref(all);
    run done = RUN(r, VKT_REUTERS_PROGRAM, "--load", "w", "--predict", "story", "other");
    assert_int_equal(done.status, 0);
    assert_non_null(strstr(done.out, "story: ")); /* one text, of two lines */
    assert_non_null(strstr(done.out, "(no word of it is in the vocabulary)"));
    run_forget(r, &done);
}

/* A file with the line ends of Windows has the same predictions. */
static void line_ends_are_no_letters(void **state)
{
    rig *r = rig_of(state);
    write_text(r, "train.tsv", "tea\ttea0 tea1\nale\tale0 ale1\n");
    write_text(r, "test.tsv", "tea\ttea0 tea1\nale\tale0 ale1\n");
    write_text(r, "unix", "tea0\n\nale0 tea1\nnews\n");
    write_text(r, "windows", "tea0\r\n\r\nale0 tea1\r\nnews\r\n");
    EXPECT(r, VKT_REUTERS_PROGRAM, 0, "", "--data", ".", "--batch", "2", "--epochs", "1", "-q", "--save", "w");
    EXPECT(r, VKT_REUTERS_PROGRAM, 2, "--lines: is for --predict", "-q", "--lines", "--epochs", "1");
    run done = RUN(r, VKT_REUTERS_PROGRAM, "--load", "w", "--json", "out", "--lines", "--predict", "unix", "windows");
    assert_int_equal(done.status, 0);
    run_forget(r, &done);
    json_t *all = answers(r, "out"), *rows = json_object_get(all, "predictions");
    assert_int_equal(json_array_size(rows), 6);
    for (size_t i = 0; i < 3; i++)
        assert_true(json_equal(json_object_get(json_array_get(rows, i), "top"),
                               json_object_get(json_array_get(rows, i + 3), "top")));
    json_decref(all);
}

/* ---- scores and class weights ---- */

static void scores_are_of_the_best_weights(void **state)
{
    rig *r = rig_of(state);
    train_digits(r);
    run done = RUN(r, VKT_MNIST_PROGRAM, "--data", ".", "--batch", "32", "--epochs", "3", "-q", "--report",
                   "--confusion", "c.csv", "--json", "scored");
    if (done.status != 0) print_error("%s", done.err);
    assert_int_equal(done.status, 0);
    assert_non_null(strstr(done.out, "test set, 30 rows\n"));
    assert_non_null(strstr(done.out, "precision     recall         F1       rows\n0   "));
    run_forget(r, &done);
    json_t *report = program_json(r, "scored"), *scores = json_object_get(report, "scores");
    assert_true(json_number_of(scores, "rows") == CHECK && json_number_of(scores, "top5_accuracy") == 1);
    assert_true(fabs(json_number_of(scores, "accuracy") - json_number_of(report, "best_val_acc")) < 1e-9);
    char why[256];
    assert_int_equal(json_dump_file(scores, vkt_temp_dir_file(&r->dir, "part"), 0), 0);
    if (!schema_fits("scores", vkt_temp_dir_file(&r->dir, "part"), why)) fail_msg("%s", why);
    const json_t *matrix = json_object_get(scores, "confusion"), *one = json_object_get(scores, "classes");
    char csv[256] = "true \\ predicted,0,1,2,3\n";
    for (size_t k = 0; k < DIGIT_CLASSES; k++) {
        double rows = 0;
        snprintf(csv + strlen(csv), sizeof csv - strlen(csv), "%zu", k);
        for (size_t i = 0; i < DIGIT_CLASSES; i++) {
            const double n = json_number_value(json_array_get(json_array_get(matrix, k), i));
            rows += n;
            snprintf(csv + strlen(csv), sizeof csv - strlen(csv), ",%.0f%s", n, i + 1 < DIGIT_CLASSES ? "" : "\n");
        }
        assert_true(rows == json_number_of(json_array_get(one, k), "rows") && rows >= CHECK / DIGIT_CLASSES);
    }
    json_decref(report);
    char *text = program_text(r, "c.csv");
    assert_string_equal(text, csv);
    vkt_free(&r->h, text);
    EXPECT(r, VKT_MNIST_PROGRAM, 2, "ends in .svg, .png or .csv", "--confusion", "c.txt");
}

static double last_loss(const rig *r, const char *weights, const char *smoothing)
{
    EXPECT(r, VKT_MNIST_PROGRAM, 0, "", "--data", ".", "--batch", "32", "--epochs", "1", "-q", "--json", "l",
           "--class-weights", weights, "--label-smoothing", smoothing, "--confusion", "c.svg");
    assert_true(program_wrote(r, "c.svg"));
    json_t *report = program_json(r, "l");
    const double loss = json_number_of(report, "final_loss");
    json_decref(report);
    return loss;
}

static void class_weights_and_smoothing_reach_the_loss(void **state)
{
    rig *r = rig_of(state);
    train_digits(r);
    write_text(r, "weights", "1.0\n1\n1\n1\n");
    const double plain = last_loss(r, "1,1,1,1", "0"), file = last_loss(r, "weights", "0"),
                 balanced = last_loss(r, "balanced", "0"), smooth = last_loss(r, "1,1,1,1", "0.3"),
                 other = last_loss(r, "1,9,1,1", "0");
    assert_true(file == plain);
    /* The classes have 23, 23, 22 and 22 samples, so the balanced weights are close to 1. */
    assert_true(fabs(balanced - plain) < 0.1 && balanced != plain);
    assert_true(fabs(smooth - plain) > 1e-3 && fabs(other - plain) > 1e-3);
    EXPECT(r, VKT_MNIST_PROGRAM, 1, "want 4 numbers, one for each class, got fewer", "--data", ".", "--class-weights",
           "1,2");
    EXPECT(r, VKT_MNIST_PROGRAM, 1, "got more", "--data", ".", "--class-weights", "1,2,3,4,5");
    EXPECT(r, VKT_MNIST_PROGRAM, 1, "none cannot be read", "--data", ".", "--class-weights", "none");
    EXPECT(r, VKT_MNIST_PROGRAM, 1, "got something else", "--data", ".", "--class-weights", "report");
    EXPECT(r, VKT_MNIST_PROGRAM, 1, "want class_weights of 0 or more", "--data", ".", "--class-weights", "1,-2,3,4");
    EXPECT(r, VKT_MNIST_PROGRAM, 2, "--label-smoothing: want a number", "--label-smoothing", "1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(digits_of_an_idx_file_are_read_as_in_training),
        rig_test(images_of_digits_are_read_and_inverted),
        rig_test(standard_input_and_checkpoints_will_do),
        rig_test(a_damaged_card_is_reported),
        rig_test(images_are_named_as_in_training),
        rig_test(a_limit_of_pixels_counts_in_predictions_too),
        rig_test(a_residual_network_names_them_too),
        rig_test(topics_of_texts_are_predicted_as_in_training),
        rig_test(line_ends_are_no_letters),
        rig_test(scores_are_of_the_best_weights),
        rig_test(class_weights_and_smoothing_reach_the_loss),
    };
    return cmocka_run_group_tests_name("predictions", tests, NULL, NULL);
}
