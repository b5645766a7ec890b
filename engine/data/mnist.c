/* data/mnist.c - makes data sets from IDX files. The caller gives the paths, or a folder with the layout of MNIST
 * (vktrain/data.h). */
#include "data/dataset.h"
#include "base/paths.h"
#include "data/class_names.h"
#include "data/idx.h"

/* Converts one image from (H,W,C) to (C,H,W). `scratch` has H*W*C bytes. */
static void planes_from_pixels(uint8_t *image, size_t pixels, size_t channels, uint8_t *scratch)
{
    memcpy(scratch, image, pixels * channels);
    for (size_t c = 0; c < channels; c++)
        for (size_t i = 0; i < pixels; i++) image[c * pixels + i] = scratch[i * channels + c];
}

/* Describes `images` in *p. Converts images of several channels from (H,W,C) to (C,H,W). */
static vkt_result lay_out(const vkt_host *h, const char *path, const vkt_idx *images, vkt_dataset_params *p)
{
    const uint32_t *d = images->dim;
    p->rows = d[0];
    if (images->rank == 1)
        return vkt_fail(h, VKT_E_FORMAT, "\"%s\": want images of 2 to 4 IDX dimensions, got 1 (labels?)", path);
    if (images->rank == 2) {
        p->width = d[1];
        return VKT_OK;
    }
    p->height = d[1];
    p->width = d[2];
    p->channels = d[3];
    if (p->channels == 1) return VKT_OK;
    const size_t image = images->bytes / d[0];
    uint8_t *scratch = vkt_alloc(h, image);
    if (!scratch) return vkt_fail_nomem(h, path, image);
    for (uint32_t i = 0; i < d[0]; i++) planes_from_pixels(images->data + i * image, image / d[3], d[3], scratch);
    vkt_free(h, scratch);
    return VKT_OK;
}

/* Reads p->rows labels into a new array. Unless p->classes is 0, each label must be below p->classes. */
static vkt_result read_labels(const vkt_host *h, const char *path, const char *images_path, const vkt_dataset_params *p,
                              uint32_t **out)
{
    vkt_idx idx;
    VKT_TRY(vkt_idx_read(h, path, VKT_IDX_MAX_BYTES, &idx));
    uint32_t *labels = vkt_alloc_array(h, idx.bytes, sizeof *labels);
    vkt_result r = labels ? VKT_OK : vkt_fail_nomem(h, path, idx.bytes * sizeof *labels);
    if (r == VKT_OK && idx.rank != 1)
        r = vkt_fail(h, VKT_E_FORMAT, "\"%s\": want labels of 1 IDX dimension, got %u", path, idx.rank);
    if (r == VKT_OK && idx.dim[0] != p->rows)
        r = vkt_fail(h, VKT_E_FORMAT, "\"%s\" has %u labels, but \"%s\" has %u images", path, idx.dim[0], images_path,
                     p->rows);
    for (size_t i = 0; r == VKT_OK && i < idx.bytes; i++) {
        labels[i] = idx.data[i];
        if (p->classes && labels[i] >= p->classes)
            r = vkt_fail(h, VKT_E_FORMAT, "\"%s\": label %zu: want a class below %u, got %u", path, i, p->classes,
                         labels[i]);
    }
    vkt_free(h, idx.data);
    if (r != VKT_OK) {
        vkt_free(h, labels);
        return r;
    }
    *out = labels;
    return VKT_OK;
}

/* The files to read. labels and names may be NULL. */
typedef struct source {
    const char *images, *labels, *names;
} source;

/* Reads the names of the classes into `words`, and sets p->classes. p->class_names and *list get the same new array of
 * the names. The caller frees *list (vkt_free), also after a failure. */
static vkt_result read_names(const vkt_host *h, const char *path, vkt_dataset_params *p, vkt_words *words,
                             const char ***list)
{
    VKT_TRY(vkt_class_names_read(path, words));
    if (words->n == 0)
        return vkt_fail(h, VKT_E_FORMAT, "\"%s\": want the name of a class in each line, found none", path);
    if (p->classes && p->classes != words->n)
        return vkt_fail(h, VKT_E_FORMAT, "\"%s\" has %zu names: want one for each of the %u classes", path, words->n,
                        p->classes);
    *list = vkt_alloc_array(h, words->n, sizeof **list);
    if (!*list) return vkt_fail_nomem(h, "class names", words->n * sizeof **list);
    for (uint32_t i = 0; i < words->n; i++) (*list)[i] = vkt_words_text(words, i);
    p->classes = (uint32_t)words->n;
    p->class_names = *list;
    return VKT_OK;
}

static vkt_result read_data_set(const vkt_host *h, const source *from, uint32_t classes, vkt_dataset **out)
{
    vkt_idx images;
    VKT_TRY(vkt_idx_read(h, from->images, VKT_IDX_MAX_BYTES, &images));
    vkt_dataset_params p = { .classes = classes };
    vkt_words words = { .h = h };
    const char **names = NULL;
    uint32_t *labels = NULL;
    vkt_result r = lay_out(h, from->images, &images, &p);
    if (r == VKT_OK && from->names) r = read_names(h, from->names, &p, &words, &names);
    if (r == VKT_OK && from->labels) r = read_labels(h, from->labels, from->images, &p, &labels);
    p.labels = labels;
    if (r == VKT_OK) r = vkt_dataset_adopt(h, &p, images.data, out);
    vkt_free(h, names);
    vkt_words_free(&words);
    if (r != VKT_OK) {
        vkt_free(h, labels);
        vkt_free(h, images.data);
    }
    return r;
}

vkt_result vkt_dataset_from_idx(const vkt_host *host, const char *images_path, const char *labels_path,
                                uint32_t classes, vkt_dataset **out)
{
    VKT_WANT(host, out);
    const vkt_host h = vkt_host_resolve(host);
    *out = NULL;
    if (!images_path) return vkt_fail(&h, VKT_E_ARG, "data set: images_path is NULL");
    return read_data_set(&h, &(source){ .images = images_path, .labels = labels_path }, classes, out);
}

/* Sets `path` to the first of the files folder/<stem><name>[.gz] that exists. `names` has the possible texts for
 * <name>, and a NULL behind them. VKT_E_NOT_FOUND is not logged. */
static vkt_result find(vkt_text *path, const char *folder, const char *stem, const char *const *names)
{
    static const char *const suffixes[] = { "", ".gz" };
    for (; *names; names++)
        for (size_t s = 0; s < VKT_COUNT(suffixes); s++) {
            path->len = 0;
            vkt_text_add(path, "%s/%s%s%s", folder, stem, *names, suffixes[s]);
            if (path->failed) return vkt_fail_nomem(path->h, "a file name", strlen(folder));
            if (vkt_path_exists(path->s)) return VKT_OK;
        }
    return VKT_E_NOT_FOUND;
}

/* Finds the paths of the files of a split. `names` is empty if there is no file of class names. VKT_E_NOT_FOUND is not
 * logged. */
static vkt_result find_files(const char *folder, vkt_split split, vkt_text *images, vkt_text *labels, vkt_text *names)
{
    static const char *const image_names[] = { "images-idx3-ubyte", "images-idx4-ubyte", "images.idx3-ubyte",
                                               "images.idx4-ubyte", NULL };
    static const char *const label_names[] = { "labels-idx1-ubyte", "labels.idx1-ubyte", NULL };
    static const char *const class_names[] = { "classes.txt", NULL };
    static const char *const stems[2][2] = { { "train-", NULL }, { "t10k-", "test-" } };
    vkt_result r = VKT_E_NOT_FOUND;
    for (size_t i = 0; r == VKT_E_NOT_FOUND && i < VKT_COUNT(stems[split]) && stems[split][i]; i++) {
        r = find(images, folder, stems[split][i], image_names);
        if (r == VKT_OK) r = find(labels, folder, stems[split][i], label_names);
    }
    if (r != VKT_OK) return r;
    r = find(names, folder, "", class_names);
    if (r == VKT_E_NOT_FOUND) vkt_text_free(names);
    return r == VKT_E_NOT_FOUND ? VKT_OK : r;
}

vkt_result vkt_dataset_open_mnist_like(const vkt_host *host, const char *folder, vkt_split split, uint32_t classes,
                                       vkt_dataset **out)
{
    VKT_WANT(host, out);
    const vkt_host h = vkt_host_resolve(host);
    *out = NULL;
    if (!folder || (split != VKT_SPLIT_TRAIN && split != VKT_SPLIT_TEST))
        return vkt_fail(&h, VKT_E_ARG, "data set: want a folder and split 0 or 1, got %s and %d",
                        folder ? folder : "NULL", (int)split);
    const char *stem = split == VKT_SPLIT_TRAIN ? "train" : "t10k";
    vkt_text images = { .h = &h }, labels = { .h = &h }, names = { .h = &h };
    vkt_result r = find_files(folder, split, &images, &labels, &names);
    if (r == VKT_OK)
        r = read_data_set(&h, &(source){ images.s, labels.s, names.s }, classes, out);
    else if (r == VKT_E_NOT_FOUND)
        r = vkt_fail(&h, r,
                     "\"%s\": want a folder with %s-images-idx3-ubyte and %s-labels-idx1-ubyte, plain or .gz, found no "
                     "such pair",
                     folder, stem, stem);
    vkt_text_free(&images);
    vkt_text_free(&labels);
    vkt_text_free(&names);
    return r;
}
