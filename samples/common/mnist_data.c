/* common/mnist_data.c - see mnist_data.h. */
#include "common/mnist_data.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/fetch.h"
#include "common/message.h"

enum { DRAWN_TRAIN = 20000, DRAWN_TEST = 4000, MAX_CHANNELS = 16 };

/* The files of MNIST. The hashes are of the unpacked files, because two .gz files with the same content may differ. */
static const fetch_file files[] = {
    { "train-images-idx3-ubyte", "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db" },
    { "train-labels-idx1-ubyte", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5" },
    { "t10k-images-idx3-ubyte", "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7" },
    { "t10k-labels-idx1-ubyte", "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2" },
};
static const char *const mirrors[] = { "https://ossci-datasets.s3.amazonaws.com/mnist",
                                       "https://storage.googleapis.com/cvdf-datasets/mnist" };

/* Downloads the files. Returns false if that fails. If $VKT_MNIST_MIRROR is set, its value is the only mirror. If its
 * value is empty, nothing is downloaded. The tests set this variable. */
static bool download(const char *folder, FILE *notes)
{
    const char *own = getenv("VKT_MNIST_MIRROR");
    if (own && !*own) return false;
    if (notes) fprintf(notes, "fetching MNIST to %s (11 MiB)\n", folder);
    if (own) return fetch_files(own, folder, files, 4);
    for (size_t i = 0; i < sizeof mirrors / sizeof *mirrors; i++)
        if (fetch_files(mirrors[i], folder, files, 4)) return true;
    return false;
}

/* Returns whether the path is a folder. Prints an error if it is not. */
static bool is_folder(const char *folder)
{
    struct stat st;
    const bool there = stat(folder, &st) == 0;
    if (there && S_ISDIR(st.st_mode)) return true;
    complain("--data: want a folder with train-images-idx3-ubyte and the other three files of MNIST, but %s %s", folder,
             there ? "is no folder" : "does not exist");
    return false;
}

static vkt_result open_folder(const vkt_host *host, const char *folder, mnist_data *d)
{
    snprintf(d->source, sizeof d->source, "%s", folder);
    vkt_result r = vkt_dataset_open_mnist_like(host, folder, VKT_SPLIT_TRAIN, 0, &d->train);
    if (r == VKT_OK)
        r = vkt_dataset_open_mnist_like(host, folder, VKT_SPLIT_TEST, vkt_dataset_classes(d->train), &d->test);
    if (r != VKT_OK) mnist_data_close(d);
    return r;
}

static bool has_images(const char *folder)
{
    DIR *dir = opendir(folder);
    bool found = false;
    if (!dir) return false;
    for (const struct dirent *e; !found && (e = readdir(dir));) found = strncmp(e->d_name, "train-images", 12) == 0;
    closedir(dir);
    return found;
}

/* Opens the first folder that has the files. VKT_E_NOT_FOUND: there is none. Logs an error for a folder that has
 * training images but lacks other files. */
static vkt_result look_around(const vkt_host *host, mnist_data *d)
{
    char from_env[400] = "";
    const char *data = getenv("VKT_DATA");
    if (data && *data) snprintf(from_env, sizeof from_env, "%s/mnist", data);
    const char *const folders[] = { from_env, "data/mnist", "../shared/data/mnist" };
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (!*folders[i] || !has_images(folders[i])) continue;
        const vkt_result r = open_folder(host, folders[i], d);
        if (r != VKT_E_NOT_FOUND) return r;
    }
    return VKT_E_NOT_FOUND;
}

/* Generates digits. Says so on stderr, also under --quiet, because the results say nothing about MNIST. */
static vkt_result draw(const vkt_host *host, mnist_data *d)
{
    remark("MNIST was not found and could not be downloaded: training on generated digits");
    d->made_up = true;
    snprintf(d->source, sizeof d->source, "generated digits");
    vkt_result r = vkt_dataset_digits(host, DRAWN_TRAIN, 1, &d->train);
    if (r == VKT_OK) r = vkt_dataset_digits(host, DRAWN_TEST, 2, &d->test);
    if (r != VKT_OK) mnist_data_close(d);
    return r;
}

static vkt_result normalize(mnist_data *d)
{
    uint32_t chw[3];
    double mean[MAX_CHANNELS], std[MAX_CHANNELS];
    vkt_dataset_sample_shape(d->train, chw);
    /* No error here: later vkt_trainer_attach_card fails for so many channels, with a message. */
    if (chw[0] > MAX_CHANNELS) return VKT_OK;
    vkt_result r = vkt_dataset_measure(d->train, mean, std);
    for (uint32_t c = 0; r == VKT_OK && c < chw[0]; c++) {
        mean[c] = round(mean[c] * 1e4) / 1e4;
        std[c] = fmax(round(std[c] * 1e4), 1) / 1e4;
    }
    if (r == VKT_OK) r = vkt_dataset_normalize(d->train, mean, std);
    vkt_dataset_sample_shape(d->test, chw);
    if (r == VKT_OK && chw[0] <= MAX_CHANNELS) r = vkt_dataset_normalize(d->test, mean, std);
    return r;
}

vkt_result mnist_data_open(const vkt_host *host, const char *folder, FILE *notes, mnist_data *out)
{
    *out = (mnist_data){ 0 };
    if (folder && !is_folder(folder)) return VKT_E_NOT_FOUND;
    vkt_result r = folder ? open_folder(host, folder, out) : look_around(host, out);
    if (r == VKT_E_NOT_FOUND && !folder)
        r = download("data/mnist", notes) ? open_folder(host, "data/mnist", out) : draw(host, out);
    if (r == VKT_OK) r = normalize(out);
    if (r != VKT_OK) mnist_data_close(out);
    return r;
}

void mnist_data_close(mnist_data *d)
{
    vkt_dataset_destroy(&d->train);
    vkt_dataset_destroy(&d->test);
}
