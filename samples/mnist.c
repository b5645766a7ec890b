/* mnist.c - vkt-mnist: a convolutional network learns to read handwritten digits on a Vulkan device.
 *
 * Works on any data set of small pictures laid out like MNIST: size, channels and classes are the data's. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/digits.h"
#include "common/mnist_data.h"
#include "common/options.h"
#include "common/report.h"

enum { SMALLEST_PICTURE = 14, SHOWN = 5, SEARCHED = 1000, INTERRUPTED = 130 };

static const char doc[] = "Trains a small convolutional network to read handwritten digits (MNIST, or another data set "
                          "of its layout) on a Vulkan device.";

/* x (B,C,H,W) -> (B,classes); 53,994 parameters for one channel and ten classes. */
static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
{
    const uint32_t *classes = user;
    x = vkt_nn_conv2d(b, "conv1", x, &(vkt_nn_conv2d_params){ .out_channels = 32, .kernel = { 3 } });
    x = vkt_nn_max_pool2d(b, x, 2);
    x = vkt_nn_conv2d(b, "conv2", x, &(vkt_nn_conv2d_params){ .out_channels = 64, .kernel = { 5 } });
    x = vkt_nn_max_pool2d(b, x, 2);
    x = vkt_nn_dropout2d(b, x, 0.1f);
    x = vkt_nn_adaptive_max_pool2d(b, x, 1, 1);
    x = vkt_nn_flatten(b, x);
    x = vkt_nn_linear(b, "fc1", x, &(vkt_nn_linear_params){ .out_features = 32 });
    x = vkt_nn_relu(b, x);
    return vkt_nn_linear(b, "fc2", x, &(vkt_nn_linear_params){ .out_features = *classes });
}

/* ---- Ctrl-C: the step is finished and the checkpoint written ---- */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static bool was_interrupted(void *user)
{
    (void)user;
    return interrupted != 0;
}

/* ---- what is printed ---- */

static int list_devices(const vkt_host *host)
{
    enum { MOST = 32 };
    static vkt_device_info infos[MOST];
    uint32_t n;
    if (vkt_list_devices(host, infos, MOST, &n) != VKT_OK) return 1;
    for (uint32_t i = 0; i < n && i < MOST; i++)
        printf("%u  %s, %s, %.1f GiB: %s%s%s\n", infos[i].index, infos[i].name, infos[i].driver,
               (double)infos[i].memory_bytes / (1 << 30), infos[i].usable ? "usable" : "not usable",
               *infos[i].reason ? "; " : "", infos[i].reason);
    if (n == 0) puts("no Vulkan device was found");
    return 0;
}

static void print_data(const mnist_data *d)
{
    uint32_t chw[3];
    vkt_dataset_sample_shape(d->train, chw);
    printf("data    %s: %u to learn from, %u to check, %ux%ux%u, %u classes\n", d->source, vkt_dataset_rows(d->train),
           vkt_dataset_rows(d->test), chw[0], chw[1], chw[2], vkt_dataset_classes(d->train));
}

static void print_outcome(const vkt_ctx *ctx, const vkt_trainer *t, const train_options *o)
{
    uint32_t n, best = 0;
    const vkt_epoch_record *r = vkt_trainer_history(t, &n);
    for (uint32_t i = 1; i < n; i++)
        if (r[i].val_acc > r[best].val_acc) best = i;
    if (n && n < o->epochs && !interrupted) printf("stopped early: no better epoch in %u\n", o->patience);
    if (n) printf("\nbest    epoch %u: validation accuracy %.4f\n", r[best].epoch, r[best].val_acc);
    vkt_memory_stats m;
    vkt_ctx_memory(ctx, &m);
    if (!isnan(vkt_trainer_ms_per_step(t)))
        printf("speed   %.1f ms per step, %.0f us of them on the host (medians)\n", vkt_trainer_ms_per_step(t),
               vkt_trainer_host_us_per_step(t));
    printf("memory  %.1f MiB of the device at most\n", (double)m.reserved_peak_bytes / (1 << 20));
}

/* ---- a few test digits with their predictions ---- */

static const char *class_name(const vkt_dataset *d, uint32_t k, char room[16])
{
    const char *name = vkt_dataset_class_name(d, k);
    snprintf(room, 16, "%u", k);
    return name ? name : room;
}

/* Channel 0 of row `row` as numbers; `raw` has room for the row as it is. */
static void load_picture(const vkt_dataset *d, uint32_t row, uint32_t guess, void *raw, float *pixels,
                         text_picture *out)
{
    uint32_t chw[3];
    char a[16], b[16];
    vkt_dataset_sample_shape(d, chw);
    *out = (text_picture){ .pixels = pixels, .height = chw[1], .width = chw[2] };
    if (vkt_dataset_fetch(d, row, raw) != VKT_OK) memset(raw, 0, vkt_dataset_row_bytes(d));
    for (uint32_t i = 0; i < chw[1] * chw[2]; i++)
        pixels[i] = vkt_dataset_type(d) == VKT_ROW_U8 ? ((const unsigned char *)raw)[i] : ((const float *)raw)[i];
    const uint32_t truth = vkt_dataset_labels(d)[row];
    if (guess == truth)
        snprintf(out->caption, sizeof out->caption, "%s", class_name(d, truth, a));
    else
        snprintf(out->caption, sizeof out->caption, "%s read as %s", class_name(d, truth, a), class_name(d, guess, b));
}

/* Prints the rows among the first `n` whose prediction is right, or wrong; SHOWN of them at most. */
static bool show(const vkt_dataset *d, const uint32_t *guesses, uint32_t n, bool right, const char *title)
{
    uint32_t chw[3], shown = 0;
    vkt_dataset_sample_shape(d, chw);
    const size_t area = (size_t)chw[1] * chw[2];
    void *raw = malloc(vkt_dataset_row_bytes(d));
    float *pixels = malloc(SHOWN * area * sizeof *pixels);
    text_picture pictures[SHOWN];
    for (uint32_t i = 0; raw && pixels && i < n && shown < SHOWN; i++)
        if ((guesses[i] == vkt_dataset_labels(d)[i]) == right) {
            load_picture(d, i, guesses[i], raw, pixels + shown * area, &pictures[shown]);
            shown++;
        }
    if (shown) {
        printf("\n%s\n", title);
        print_pictures(stdout, pictures, shown);
    }
    const bool ok = raw && pixels;
    free(raw);
    free(pixels);
    return ok;
}

static vkt_result show_predictions(vkt_trainer *t, const vkt_dataset *test)
{
    static uint32_t guesses[SEARCHED];
    const uint32_t n = vkt_dataset_rows(test) < SEARCHED ? vkt_dataset_rows(test) : SEARCHED;
    const vkt_result r = vkt_trainer_predict(t, test, 0, n, guesses, NULL);
    if (r != VKT_OK) return r;
    char title[64];
    snprintf(title, sizeof title, "read wrong among the first %u", n);
    return show(test, guesses, n, true, "read right") && show(test, guesses, n, false, title) ? VKT_OK : VKT_E_NOMEM;
}

/* ---- the run ---- */

static bool pictures_fit(const vkt_dataset *d)
{
    uint32_t chw[3];
    vkt_dataset_sample_shape(d, chw);
    if (chw[1] >= SMALLEST_PICTURE && chw[2] >= SMALLEST_PICTURE) return true;
    fprintf(stderr, "the network wants pictures of %ux%u or more, the data set has %ux%u\n", SMALLEST_PICTURE,
            SMALLEST_PICTURE, chw[1], chw[2]);
    return false;
}

static vkt_result fit(vkt_trainer *t, const train_options *o)
{
    vkt_progress *progress = NULL;
    vkt_fit_params p = { .epochs = o->epochs,
                         .patience = o->patience,
                         .checkpoint = o->checkpoint,
                         .checkpoint_every = o->checkpoint_every };
    vkt_result r = o->quiet ? VKT_OK : vkt_progress_create(NULL, stdout, &progress);
    if (r != VKT_OK) return r;
    if (progress) p.callbacks = vkt_progress_callbacks(progress);
    p.callbacks.stop = was_interrupted;
    r = vkt_trainer_fit(t, &p);
    vkt_progress_destroy(&progress);
    return r;
}

static vkt_result write_files(vkt_trainer *t, const train_options *o)
{
    vkt_result r = VKT_OK;
    if (r == VKT_OK && o->save) r = vkt_trainer_save(t, o->save);
    if (r == VKT_OK && o->history) r = vkt_trainer_write_history(t, o->history);
    if (r == VKT_OK && o->plot) r = vkt_trainer_plot(t, o->plot);
    if (r == VKT_OK && o->profile) r = vkt_trainer_profile(t, o->profile);
    return r;
}

static vkt_result train(vkt_ctx *ctx, vkt_trainer *t, const mnist_data *data, const train_options *o, uint64_t start_ns)
{
    vkt_result r = o->resume ? vkt_trainer_resume(t, o->resume) : VKT_OK;
    if (r == VKT_OK && !o->quiet) printf("\n%s\n", vkt_trainer_summary(t));
    if (r == VKT_OK) r = fit(t, o);
    if (r == VKT_OK && interrupted) return r;
    if (r == VKT_OK && !o->quiet) print_outcome(ctx, t, o);
    if (r == VKT_OK) r = write_files(t, o);
    if (r == VKT_OK && o->json && !write_report(o->json, ctx, t, precision_name(o->precision), start_ns))
        return VKT_E_IO;
    if (r == VKT_OK && !o->quiet) r = show_predictions(t, data->test);
    return r;
}

static vkt_result run(vkt_ctx *ctx, const mnist_data *data, const train_options *o, uint64_t start_ns)
{
    uint32_t classes = vkt_dataset_classes(data->train);
    const vkt_trainer_params p = { .model = { .name = "MNIST network", .forward = forward, .user = &classes },
                                   .train = data->train,
                                   .validation = data->test,
                                   .batch = o->batch,
                                   .optimizer = o->optimizer,
                                   .lr = o->lr,
                                   .seed = o->seed,
                                   .stream = o->stream,
                                   .recompute = o->recompute,
                                   .precision = o->precision,
                                   .profile = o->profile != NULL };
    vkt_trainer *t;
    vkt_result r = vkt_trainer_create(ctx, &p, &t);
    if (r == VKT_OK) r = train(ctx, t, data, o, start_ns);
    vkt_trainer_destroy(&t);
    return r;
}

int main(int argc, char **argv)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const uint64_t start_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    train_options o = { .epochs = 3, .batch = 128, .optimizer = { .kind = VKT_ADAM }, .lr = 0.01f, .seed = 1 };
    train_options_parse(&o, doc, argc, argv);
    const vkt_host host = { .log_level = o.quiet ? VKT_LOG_ERROR : VKT_LOG_WARN };
    if (o.list_devices) return list_devices(&host);
    signal(SIGINT, on_signal);

    vkt_ctx *ctx;
    mnist_data data = { 0 };
    vkt_result r =
        vkt_ctx_create(&(vkt_ctx_params){ .device = o.device, .max_device_bytes = o.memory_limit_bytes }, &host, &ctx);
    if (r != VKT_OK) return 1;
    const vkt_device_info *device = vkt_ctx_device(ctx);
    if (!o.quiet) printf("device  %u: %s, %s\n", device->index, device->name, device->driver);
    r = mnist_data_open(&host, o.data, o.quiet ? NULL : stdout, &data);
    if (r == VKT_OK && !o.quiet) print_data(&data);
    if (r == VKT_OK) r = pictures_fit(data.train) ? run(ctx, &data, &o, start_ns) : VKT_E_SHAPE;
    mnist_data_close(&data);
    vkt_ctx_destroy(&ctx);
    return r != VKT_OK ? 1 : interrupted ? INTERRUPTED : 0;
}
