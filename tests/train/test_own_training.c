/* Compiles and runs the code of docs/train-your-own.md. Each line of its C blocks is a line of this file, of
 * samples/train_minimal.c or of samples/linreg.c. */
#include "train/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "vktrain/vktrain.h"

#define CHECK(call) assert_int_equal(call, VKT_OK)
enum { N = 60, WIDTH = 4, EPOCHS = 2 };

/* ---- data ---- */

static vkt_result fetch(void *self, uint32_t row, vkt_pass pass, void *dst, uint32_t worker)
{
    const float *numbers = self;
    (void)pass, (void)worker;
    memcpy(dst, numbers + (size_t)row * WIDTH, WIDTH * sizeof *numbers);
    return VKT_OK;
}

/* Makes two classes: vectors with increasing numbers, and vectors with decreasing numbers. */
static void fill(float *numbers, uint32_t *labels)
{
    for (uint32_t i = 0; i < N; i++) {
        labels[i] = i & 1;
        for (uint32_t k = 0; k < WIDTH; k++)
            numbers[i * WIDTH + k] = (float)(labels[i] ? k : WIDTH - k) + 0.01f * (float)(i % 7);
    }
}

static vkt_dataset *from_arrays(const float *numbers, const uint32_t *labels)
{
    vkt_dataset *data;
    const char *const names[] = { "falling", "rising" };
    const vkt_dataset_params params = {
        .rows = N, .width = WIDTH, .type = VKT_ROW_F32, .labels = labels, .classes = 2, .class_names = names
    };
    CHECK(vkt_dataset_from_arrays(NULL, &params, numbers, &data));
    return data;
}

static vkt_dataset *from_source(float *numbers, const uint32_t *labels)
{
    vkt_dataset *data;
    const vkt_dataset_params params = {
        .rows = N, .width = WIDTH, .type = VKT_ROW_F32, .labels = labels, .classes = 2
    };
    const vkt_data_source source = { .fetch = fetch, .self = numbers };
    CHECK(vkt_dataset_from_source(NULL, &params, &source, &data));
    return data;
}

/* ---- network and loss ---- */

static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
{
    const uint32_t *classes = user;
    x = vkt_nn_linear(b, "fc1", x, &(vkt_nn_linear_params){ .out_features = 16 });
    x = vkt_nn_dropout(b, vkt_nn_relu(b, x), 0.1f);
    return vkt_nn_linear(b, "fc2", x, &(vkt_nn_linear_params){ .out_features = *classes });
}

/* Builds two convolutions, and adds the input to their result. */
static vkt_tensor residual(vkt_builder *b, const char *name, vkt_tensor x, uint32_t channels)
{
    const vkt_nn_conv2d_params conv = { .out_channels = channels, .kernel = { 3 }, .pad = { 1 }, .no_bias = true };
    vkt_nn_push(b, name); /* the names of the layers begin with `name`: block1.conv1.weight */
    vkt_tensor y = vkt_nn_relu(b, vkt_nn_batch_norm(b, "bn1", vkt_nn_conv2d(b, "conv1", x, &conv), NULL));
    y = vkt_nn_batch_norm(b, "bn2", vkt_nn_conv2d(b, "conv2", y, &conv), NULL);
    vkt_nn_pop(b);
    return vkt_nn_relu(b, vkt_nn_add(b, x, y)); /* x must have as many channels as y */
}

/* Builds a network for images. Its first layer makes as many channels as residual() needs. */
static vkt_tensor image_forward(vkt_builder *b, vkt_tensor x, void *user)
{
    const uint32_t *classes = user;
    x = vkt_nn_conv2d(b, "stem", x, &(vkt_nn_conv2d_params){ .out_channels = 8, .kernel = { 3 }, .pad = { 1 } });
    x = residual(b, "block1", vkt_nn_max_pool2d(b, x, 4), 8);
    x = vkt_nn_dropout(b, vkt_nn_global_avg_pool(b, x), 0.1f);
    return vkt_nn_linear(b, "fc", x, &(vkt_nn_linear_params){ .out_features = *classes });
}

static vkt_tensor smooth_loss(vkt_builder *b, vkt_tensor y, vkt_tensor x, vkt_tensor labels, vkt_tensor targets,
                              void *user)
{
    (void)x, (void)targets, (void)user;
    return vkt_cross_entropy(vkt_builder_graph(b), y, labels, &(vkt_cross_entropy_params){ .label_smoothing = 0.1f });
}

/* ---- callbacks ---- */

static bool on_epoch(void *user, const vkt_epoch_record *r, bool best)
{
    double *losses = user;
    losses[r->epoch - 1] = r->val_loss;
    if (best) printf("epoch %u is the best so far: %.1f %%\n", r->epoch, 100 * r->val_acc);
    return r->val_loss < 1e-3; /* true: stop after this epoch */
}

/* Trains up to `epochs`; continues `checkpoint` if there is one. */
static void train(rig *r, const vkt_dataset *data, const char *checkpoint, uint32_t epochs, vkt_loss_fn loss)
{
    const char *weights = vkt_temp_dir_file(&r->dir, "own.safetensors");
    vkt_ctx *ctx = r->ctx;
    vkt_trainer *trainer;
    vkt_dataset *train, *check;
    uint32_t classes = vkt_dataset_classes(data);
    double losses[EPOCHS] = { 0 };
    CHECK(vkt_dataset_split(data, 0.2, 1, &train, &check));
    const vkt_trainer_params params = { .model = { .name = "own", .forward = forward, .user = &classes, .loss = loss },
                                        .train = train,
                                        .validation = check,
                                        .batch = 32,
                                        .optimizer = { .kind = VKT_ADAMW, .weight_decay = 0.01f },
                                        .lr = 0.01f,
                                        .schedule = { .kind = VKT_SCHEDULE_COSINE, .by_epoch = true, .total = EPOCHS },
                                        .seed = 1 };
    CHECK(vkt_trainer_create(ctx, &params, &trainer));
    if (access(checkpoint, F_OK) == 0) CHECK(vkt_trainer_resume(trainer, checkpoint));
    const vkt_fit_params fit = { .epochs = epochs, /* epochs before a resume count, too */
                                 .patience = 5,
                                 .checkpoint = checkpoint,
                                 .callbacks = { .user = losses, .on_epoch = on_epoch } };
    CHECK(vkt_trainer_fit(trainer, &fit));
    CHECK(vkt_trainer_save(trainer, weights));
    assert_true(losses[epochs - 1] > 0);
    uint32_t done;
    vkt_trainer_history(trainer, &done);
    assert_int_equal(done, epochs);
    vkt_run_dir *run;
    const char *runs = vkt_temp_dir_file(&r->dir, "runs/first");
    CHECK(vkt_run_dir_open(NULL, runs, NULL, &run));
    CHECK(vkt_run_dir_fit(run, trainer, &fit, NULL)); /* instead of vkt_trainer_fit */
    vkt_run_dir_destroy(&run);
    vkt_trainer_destroy(&trainer);
    vkt_dataset_destroy(&train);
    vkt_dataset_destroy(&check);
}

/* ---- predictions ---- */

static void predict(rig *r, const float *numbers, const char *weights)
{
    vkt_ctx *ctx = r->ctx;
    uint32_t two = 2;
    vkt_dataset *rows;
    vkt_predictor *predictor;
    uint32_t answers[N];
    float logits[N * 2];
    CHECK(vkt_dataset_from_arrays(NULL, &(vkt_dataset_params){ .rows = N, .width = WIDTH, .type = VKT_ROW_F32 },
                                  numbers, &rows));
    const vkt_predictor_params params = { .model = { .forward = forward, .user = &two },
                                          .data = rows,
                                          .weights = weights };
    CHECK(vkt_predictor_create(ctx, &params, &predictor));
    CHECK(vkt_predictor_run(predictor, 0, N, answers, logits));
    for (uint32_t i = 0; i < N; i++) assert_int_equal(answers[i], logits[2 * i + 1] > logits[2 * i]);
    vkt_predictor_destroy(&predictor);
    vkt_dataset_destroy(&rows);
}

static void the_parts_work_together(void **state)
{
    rig *r = rig_of(state);
    static float numbers[N * WIDTH];
    static uint32_t labels[N];
    char weights[256]; /* a copy: vkt_temp_dir_file forgets older paths */
    snprintf(weights, sizeof weights, "%s", vkt_temp_dir_file(&r->dir, "own.safetensors"));
    fill(numbers, labels);
    vkt_dataset *arrays = from_arrays(numbers, labels), *source = from_source(numbers, labels);
    train(r, arrays, vkt_temp_dir_file(&r->dir, "own.ckpt"), 1, NULL);
    train(r, arrays, vkt_temp_dir_file(&r->dir, "own.ckpt"), EPOCHS, NULL);
    train(r, source, vkt_temp_dir_file(&r->dir, "source.ckpt"), EPOCHS, smooth_loss);
    vkt_dataset_destroy(&arrays);
    vkt_dataset_destroy(&source);
    predict(r, numbers, weights);
}

/* Predicts the class of an image file with a predictor that has one row. Its data card has shape and classes. */
static uint32_t predict_file(rig *r, const char *path, const char *weights)
{
    vkt_ctx *ctx = r->ctx;
    uint32_t k;
    vkt_card *card;
    vkt_dataset *rows;
    vkt_predictor *predictor;
    CHECK(vkt_card_read(NULL, weights, "pets", &card)); /* without a card: VKT_E_NOT_FOUND, and no message */
    const vkt_image_params size = { .height = card->chw[1], .width = card->chw[2], .gray = card->chw[0] == 1 };
    static uint8_t file[16 << 20]; /* a file that is larger would be refused, because its end is missing */
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        exit(1);
    }
    const size_t bytes = fread(file, 1, sizeof file, f);
    fclose(f);
    uint8_t *pixels = malloc((size_t)card->chw[0] * card->chw[1] * card->chw[2]);
    CHECK(vkt_image_row(NULL, &size, path, file, bytes, pixels));
    CHECK(vkt_card_dataset(card, VKT_ROW_U8, pixels, 1, &rows)); /* `pixels` must outlive `rows` */
    const vkt_predictor_params one = { .model = { .forward = image_forward, .user = &card->classes },
                                       .data = rows,
                                       .weights = weights };
    CHECK(vkt_predictor_create(ctx, &one, &predictor));
    CHECK(vkt_predictor_run(predictor, 0, 1, &k, NULL));
    char room[16];
    printf("%s: %s\n", path, vkt_card_class(card, k, room));
    vkt_predictor_destroy(&predictor);
    vkt_dataset_destroy(&rows);
    free(pixels);
    vkt_card_destroy(&card);
    return k;
}

static void an_image_file_is_predicted_as_in_training(void **state)
{
    rig *r = rig_of(state);
    static const char *const files[] = { VKT_TEST_DIR "/golden/images/420.jpg",
                                         VKT_TEST_DIR "/golden/images/gray.jpg" };
    const vkt_image_params size = { .height = 32, .width = 32 };
    const char *weights = vkt_temp_dir_file(&r->dir, "image.safetensors");
    const double mean[3] = { 0.4, 0.5, 0.6 }, std[3] = { 0.2, 0.3, 0.4 };
    char table[1024];
    vkt_dataset *data;
    vkt_trainer *trainer;
    uint32_t two = 2, answers[2];
    const int n = snprintf(table, sizeof table, "%s,0\n%s,1\n", files[0], files[1]);
    assert_in_range(n, 1, sizeof table - 1);
    const char *csv = vkt_temp_dir_file(&r->dir, "t.csv");
    CHECK(vkt_write_file(NULL, csv, table, (size_t)n));
    CHECK(vkt_dataset_from_image_table(NULL, csv, &size, &data));
    CHECK(vkt_dataset_normalize(data, mean, std));
    CHECK(vkt_trainer_create(
        r->ctx, &(vkt_trainer_params){ .model = { .forward = image_forward, .user = &two }, .train = data }, &trainer));
    CHECK(vkt_trainer_attach_card(trainer, "pets", NULL)); /* before vkt_trainer_fit */
    CHECK(vkt_trainer_fit(trainer, &(vkt_fit_params){ .epochs = 3 }));
    CHECK(vkt_trainer_save(trainer, weights));
    CHECK(vkt_trainer_predict(trainer, data, 0, 2, answers, NULL));
    for (size_t i = 0; i < 2; i++) assert_int_equal(predict_file(r, files[i], weights), answers[i]);
    vkt_trainer_destroy(&trainer);
    vkt_dataset_destroy(&data);
}

/* ---- the page ---- */

static char *text_of(const vkt_host *h, const char *path)
{
    void *bytes;
    size_t n;
    assert_int_equal(vkt_file_read(h, path, 1 << 20, &bytes, &n), VKT_OK);
    return bytes;
}

/* Returns whether a line of `text` equals `line`, for any indentation. */
static bool has_line(const char *text, const char *line)
{
    const size_t n = strlen(line);
    for (const char *at = text; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
        at += strspn(at, " ");
        if (strncmp(at, line, n) == 0 && (at[n] == '\n' || at[n] == 0)) return true;
    }
    return false;
}

static void the_page_has_no_other_code(void **state)
{
    rig *r = rig_of(state);
    static const char *const sources[] = { VKT_TEST_DIR "/train/test_own_training.c",
                                           VKT_TEST_DIR "/../samples/train_minimal.c",
                                           VKT_TEST_DIR "/../samples/linreg.c" };
    char *page = text_of(&r->h, VKT_TEST_DIR "/../docs/train-your-own.md"), *source[VKT_COUNT(sources)];
    for (size_t i = 0; i < VKT_COUNT(sources); i++) source[i] = text_of(&r->h, sources[i]);
    bool in_code = false;
    int lines = 0;
    for (char *line = strtok(page, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, "```", 3) == 0) {
            in_code = strcmp(line, "```c") == 0;
            continue;
        }
        line += strspn(line, " ");
        if (!in_code || !*line) continue;
        bool found = false;
        for (size_t i = 0; i < VKT_COUNT(sources); i++) found = found || has_line(source[i], line);
        if (!found) fail_msg("docs/train-your-own.md has a line that no test compiles: %s", line);
        lines++;
    }
    assert_in_range(lines, 40, 200);
    for (size_t i = 0; i < VKT_COUNT(sources); i++) vkt_free(&r->h, source[i]);
    vkt_free(&r->h, page);
}

int main(void)
{
    const struct CMUnitTest tests[] = { rig_test(the_parts_work_together),
                                        rig_test(an_image_file_is_predicted_as_in_training),
                                        rig_test(the_page_has_no_other_code) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
