/* vktrain/data.h - data sets: tables of rows. A row may have a class label and targets. The functions make data
 * sets from memory, from files or from a source, and shuffle the rows.
 *
 * A row is one sample: features of shape (C,H,W), channel by channel, row-major, as u8 or f32. A table of N rows
 * therefore has the shape (N,C,H,W). A row that has only a width is a vector, and C and H count as 1. A table of
 * vectors has the shape (N,W), and a network gets a batch of B rows as (B,W), as vkt_nn_linear wants it. u8 stays u8
 * until the device reads it. A network sees, per channel c,
 *     (x / 255 - mean[c]) / std[c]  for u8          (x - mean[c]) / std[c]  for f32.
 * A row of u16 or u32 is a sequence of L = W whole numbers (C = H = 1). A network sees a batch of such rows as u32
 * (B,L), with the same numbers.
 *
 * Data sets do not depend on a device. A trainer keeps the rows on the device, or streams them.
 *
 * Input files must be regular files. A gzip file may unpack to 64 MiB plus 32 times its size; VKT_MAX_UNPACKED=BYTES in
 * the environment allows more. A library that was built without zlib cannot read gzip files (VKT_E_UNSUPPORTED).
 *
 * Threads: functions that take a `const vkt_dataset *` may run on several threads at once. Destroy a data set after the
 * last call on it. A data set and its slices (vkt_dataset_slice) may be destroyed in any order. */
#ifndef VKTRAIN_DATA_H
#define VKTRAIN_DATA_H

#include "vktrain/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A table of rows, which are in memory or made by a source on demand. */
typedef struct vkt_dataset vkt_dataset;

/* The storage type of a row's features. ORDER: hashes of data sets in checkpoints depend on the values of this enum, so
 * a new type goes to the end. */
typedef enum vkt_row_type {
    VKT_ROW_U8 = 0, /* images: 0 to 255 */
    VKT_ROW_F32,    /* numbers */
    VKT_ROW_U16,    /* a sequence of whole numbers below 65536 */
    VKT_ROW_U32     /* a sequence of whole numbers */
} vkt_row_type;

/* The description of a table. The struct and its arrays are read during the call only, except as `borrow` says. */
typedef struct vkt_dataset_params {
    uint32_t rows;                    /* N, at least 1 */
    uint32_t channels, height, width; /* C, H, W; 0 counts as 1. A vector of F numbers is { .width = F } */
    vkt_row_type type;                /* type of the features */
    const uint32_t *labels;           /* N class numbers; NULL: the rows have no labels */
    uint32_t classes;                 /* every label is below this number; 0: the largest label + 1 */
    const char *const *class_names;   /* one text for each class, copied; needs `classes`. NULL: no names */
    const float *targets;             /* (N,K) numbers to predict; NULL: the rows have no targets */
    uint32_t target_width;            /* K; 0 counts as 1 */
    const double *mean, *std;         /* C numbers each, std > 0, copied; NULL: mean 0, std 1. Not for u16 and u32 */
    const uint32_t *terms; /* N numbers, copied: how many terms of the loss each row has, at least 1. NULL: each row has
                            * one term. Needed if the loss of a batch is a mean over terms, and rows have different
                            * numbers of terms. Example: sequences in which some labels do not count. A trainer weights
                            * batches, micro-batches and shards by their numbers of terms. The sum of the N numbers is
                            * below 2^32 */
    bool borrow; /* keep the caller's arrays (features, labels, targets) instead of copies. The arrays must exist,
                  * and not change, until the data set and all its slices are destroyed */
} vkt_dataset_params;

/* Every constructor returns VKT_OK and sets *out, which the caller owns. After an error *out = NULL. All constructors
 * can return VKT_E_ARG (the message names the field) and VKT_E_NOMEM. `host` may be NULL. *host is copied; its
 * callbacks are used as long as the data set exists. */

/* Makes a data set from memory: `features` holds N*C*H*W elements. VKT_E_ARG also for a label that is not below
 * `classes`. */
VKT_API vkt_result vkt_dataset_from_arrays(const vkt_host *host, const vkt_dataset_params *params, const void *features,
                                           vkt_dataset **out);

/* One pass over the rows. A source may derive its random numbers from both members. */
typedef struct vkt_pass {
    uint64_t seed;  /* the trainer's seed; not used in epoch 0 */
    uint32_t epoch; /* 1, 2, .. in training. Epoch 0 is for evaluation and measurement: nothing is random */
} vkt_pass;

/* A source that makes or decodes rows on demand. `fetch` writes row number `row` (below N) to `dst`, which has
 * vkt_dataset_row_bytes bytes. `fetch` must write nothing else, must write the bytes in ascending order, and must not
 * read `dst`, because `dst` may be write-combined memory. The content of a row must depend on row number and pass
 * alone. `fetch` must not log.
 *
 * `fetch` may run on several threads at once. Calls with the same `worker` (below VKT_DATA_MAX_WORKERS) do not overlap,
 * so a source can keep scratch memory per worker. There is one exception: see vkt_dataset_select.
 *
 * If `fetch` fails, the call that needs the row returns the result of `fetch`. The message of that call includes the
 * text that `why` (may be NULL) returns for the worker's last fetch. `destroy` (may be NULL) is called once, when the
 * last data set that uses the source is destroyed. If vkt_dataset_from_source fails, `destroy` is not called, and the
 * caller still owns the source. */
typedef struct vkt_data_source {
    vkt_result (*fetch)(void *self, uint32_t row, vkt_pass pass, void *dst, uint32_t worker); /* writes one row */
    void (*destroy)(void *self);                     /* NULL: nothing to free */
    void *self;                                      /* passed to all three functions */
    const char *(*why)(void *self, uint32_t worker); /* returns why the worker's last fetch failed; NULL: not known */
    bool varies; /* rows depend on the pass; otherwise a trainer may keep them on the device */
} vkt_data_source;
enum {
    VKT_DATA_MAX_WORKERS = 64 /* every worker number is below this */
};

/* Makes a data set of rows that `source` makes. `params` describes the rows, and has their labels, targets and terms.
 * VKT_E_ARG also for a source without fetch. */
VKT_API vkt_result vkt_dataset_from_source(const vkt_host *host, const vkt_dataset_params *params,
                                           const vkt_data_source *source, vkt_dataset **out);

/* Reads IDX files of u8, plain or gzip. Images are (N,H,W), (N,H,W,C) or (N,F). (N,H,W,C) is transposed to (N,C,H,W).
 * Rows of (N,F) are vectors. Labels are (N); labels_path may be NULL. `classes` is as in vkt_dataset_params. Returns
 * also VKT_E_NOT_FOUND, VKT_E_IO and VKT_E_FORMAT. VKT_E_FORMAT: a file is not IDX of u8 with these dimensions, is
 * truncated, or has bytes after the array; or the numbers of images and labels differ; or a label is not below
 * `classes`. */
VKT_API vkt_result vkt_dataset_from_idx(const vkt_host *host, const char *images_path, const char *labels_path,
                                        uint32_t classes, vkt_dataset **out);

/* The part of a folder that is read. */
typedef enum vkt_split {
    VKT_SPLIT_TRAIN = 0, /* train-* */
    VKT_SPLIT_TEST       /* t10k-* or test-* */
} vkt_split;

/* Reads a folder with the layout of MNIST: train-images-idx3-ubyte and train-labels-idx1-ubyte. For VKT_SPLIT_TEST, the
 * names begin with t10k- or test- instead of train-. A name may also have idx4 (colour images) instead of idx3, a dot
 * instead of the hyphen before "idx", and the ending .gz. A file classes.txt, if there is one, has the name of one
 * class per line. In this case `classes` must be 0 or the number of these names (else VKT_E_FORMAT). VKT_E_NOT_FOUND:
 * the folder has no pair of images and labels. Other results are those of vkt_dataset_from_idx. Mean and std are 0 and
 * 1 until vkt_dataset_normalize. */
VKT_API vkt_result vkt_dataset_open_mnist_like(const vkt_host *host, const char *folder, vkt_split split,
                                               uint32_t classes, vkt_dataset **out);

/* ---- images: JPEG and PNG files as rows of u8, decoded by worker threads ---- */

/* The options of decoding images. A member that is zero selects its default; height and width have no default. */
typedef struct vkt_image_params {
    uint32_t height, width; /* size of a sample (3,H,W): red, green, blue; with `gray` (1,H,W) */
    bool gray;              /* one channel: 0.299 R + 0.587 G + 0.114 B */
    /* Resizing is bilinear with antialiasing. It gives the same bytes as Pillow's Image.resize(size, BILINEAR). */
    uint32_t resize; /* 0: the image is stretched to height x width. Else: the new length of the shorter side of the
                      * image, at least height and width. The middle height x width pixels of the resized image are the
                      * sample, as after Resize and CenterCrop of torchvision */
    /* Augmentation. Each sample gets new random numbers in each epoch of training. In evaluation, a sample is the
     * middle of the image, not mirrored. A data set with augmentation is streamed. In brackets: the name in
     * torchvision. */
    bool random_crop;      /* the sample is a random part of the image instead of its middle (RandomCrop) */
    uint32_t crop_padding; /* width in pixels of the black border that the random crop adds to each side of the image */
    bool random_flip;      /* the sample is mirrored left to right with probability 1/2 (RandomHorizontalFlip) */
    /* Labels. */
    const char *path_column, *label_column; /* column names in the header of the CSV file; NULL: "path", "label" */
    const vkt_dataset *classes_like;        /* a data set whose class numbers and names are used. For a validation set,
                                             * this is for instance the training set. NULL: the classes that are
                                             * found */
    /* Files. */
    bool skip_broken;     /* leave broken and missing files out. Without skip_broken, a call that finds such a file
                           * fails, but some files are checked only in part: see vkt_dataset_from_image_table */
    uint32_t *left_out;   /* gets the number of broken and missing files; may be NULL */
    uint64_t max_pixels;  /* an image with more pixels counts as broken; 0: the limit is 2^24 pixels plus 64 for each
                           * byte of the file, but at most 2^27 pixels, and 65535 pixels along a side. With `resize`, an
                           * image also  counts as broken if its resized form exceeds this limit (a max_pixels below 4
                           * resize^2  counts as 4 resize^2) */
    uint64_t cache_bytes; /* memory for decoded and resized images. If all images fit, they are kept; else each fetch
                           * decodes its image. 0 means 1 GiB; 1 means that no image is kept */
    uint32_t workers;     /* number of threads that check all files when the data set is made; 0: one per core. There
                           * are never more than 16 */
} vkt_image_params;

/* Reads images that a CSV file (RFC 4180) lists, one path and label per line. If a field of the first line is
 * path_column (in small letters or capitals), this line is a header. The header names the columns; columns other than
 * path_column and label_column are ignored. Without a header, a line holds a path and a label, or a path alone. If
 * path_column or label_column is not NULL, a file without a header gives VKT_E_FORMAT. Without a column of labels, rows
 * have no labels. Paths are absolute, or relative to the CSV's folder.
 *
 * With classes_like, a label is the name of a class of that data set, or a class number if these classes have no names.
 * Without classes_like, labels are class numbers if all labels are numbers. If not, labels are names of classes, and
 * the classes are numbered in the order of the bytes of their names.
 *
 * PNG files may have any colour type and depth (16 bits are rounded to 8, transparency is ignored). JPEG files may be
 * gray, YCbCr, RGB or CMYK, progressive or not. Images are rotated upright as EXIF says. The first 20 broken files are
 * logged, as warnings with skip_broken, else as errors. Without skip_broken, files whose images do not fit into the
 * cache are checked by their first bytes only. Other damage to these files is found when a row is fetched.
 *
 * Returns also VKT_E_NOT_FOUND and VKT_E_IO, both for the CSV itself. VKT_E_FORMAT: the CSV is malformed (the message
 * has the line), a label is no class, or images are broken or missing. With skip_broken, broken images give
 * VKT_E_FORMAT only if no image is left. */
VKT_API vkt_result vkt_dataset_from_image_table(const vkt_host *host, const char *csv_path,
                                                const vkt_image_params *params, vkt_dataset **out);
/* Reads the .jpg, .jpeg, .jpe and .png files of folder/<class>/, sorted by the bytes of class and name. Each folder is
 * a class, even if it is empty. Names that begin with a dot are ignored. Files of folder/<class>/ with other endings
 * are ignored, too. Results are those of vkt_dataset_from_image_table, but VKT_E_NOT_FOUND and VKT_E_IO are for the
 * folders. VKT_E_NOT_FOUND also if no class has an image file. */
VKT_API vkt_result vkt_dataset_from_image_folders(const vkt_host *host, const char *folder,
                                                  const vkt_image_params *params, vkt_dataset **out);
/* Decodes one JPEG or PNG (n bytes in memory) to a row of (C,height,width) bytes. In evaluation, a data set with these
 * params has the same row for this file. The members for augmentation, labels and files are not used, except
 * max_pixels. Messages call the image `name`. VKT_E_ARG, VKT_E_FORMAT (not one whole image), VKT_E_NOMEM.
 * VKT_E_UNSUPPORTED: the library was built without a decoder for this format. After an error `row` is undefined. */
VKT_API vkt_result vkt_image_row(const vkt_host *host, const vkt_image_params *params, const char *name,
                                 const void *bytes, size_t n, uint8_t *row);

/* Reads one image as a data set of one row of u8 (3,H,W), in memory. H and W are the size of the image. If the longer
 * side is above `longest` (0: no limit), the image is resized: the longer side gets the length `longest`, and the
 * proportions stay. Formats and `max_pixels` are those of the functions above. Returns also VKT_E_NOT_FOUND, VKT_E_IO,
 * VKT_E_FORMAT, and VKT_E_UNSUPPORTED as vkt_image_row. */
VKT_API vkt_result vkt_image_read(const vkt_host *host, const char *path, uint32_t longest, uint64_t max_pixels,
                                  vkt_dataset **out);

/* Generates `count` images of digits, 1x28x28 u8, ten classes, bright on dark. A digit consists of pen strokes with a
 * random affine warp, random width and brightness, and noise. Row i depends on (seed, i) alone. Each class occurs
 * once in rows 0 to 9, and once in each later group of ten rows. Use another seed for a test set. */
VKT_API vkt_result vkt_dataset_digits(const vkt_host *host, uint32_t count, uint64_t seed, vkt_dataset **out);

/* Makes a view of rows [first, first + count). The view shares memory, classes and normalisation with `ds`. */
VKT_API vkt_result vkt_dataset_slice(const vkt_dataset *ds, uint32_t first, uint32_t count, vkt_dataset **out);
VKT_API void vkt_dataset_destroy(vkt_dataset **ds); /* slices stay valid */
/* Makes a data set of the rows rows[0] .. rows[n-1] of `ds`; rows may repeat. Labels, targets and terms are copied, and
 * so are features in memory. VKT_E_ARG also if the n rows together have 2^32 terms or more. If `ds` has a source, the
 * new data set uses this source, too, and the source exists as long as the new data set. The worker numbers of `ds` and
 * of the new data set are independent: if the source keeps scratch memory per worker, do not fetch rows of both data
 * sets at the same time. */
VKT_API vkt_result vkt_dataset_select(const vkt_dataset *ds, const uint32_t *rows, uint32_t n, vkt_dataset **out);
/* Splits the N rows of `ds` at random. *test gets ceil(test_share * N) rows, and *train gets the other rows. Both data
 * sets are made as by vkt_dataset_select. Each of them must have at least one row (else VKT_E_ARG). Which rows each of
 * them has depends on (N, test_share, seed) alone. */
VKT_API vkt_result vkt_dataset_split(const vkt_dataset *ds, double test_share, uint64_t seed, vkt_dataset **train,
                                     vkt_dataset **test);

/* ---- contents of a data set; pointers are valid as long as the data set ---- */
VKT_API uint32_t vkt_dataset_rows(const vkt_dataset *ds);                      /* N */
VKT_API void vkt_dataset_sample_shape(const vkt_dataset *ds, uint32_t chw[3]); /* C, H, W */
VKT_API uint32_t vkt_dataset_sample_rank(const vkt_dataset *ds);               /* 1: (W); 3: (C,H,W) */
VKT_API vkt_row_type vkt_dataset_type(const vkt_dataset *ds);                  /* type of the features */
VKT_API size_t vkt_dataset_row_bytes(const vkt_dataset *ds);                   /* bytes of the C * H * W features
                                                                                * of a row */
VKT_API uint32_t vkt_dataset_classes(const vkt_dataset *ds);                   /* 0: there are no labels, and no number
                                                                                * of classes was given */
VKT_API const char *vkt_dataset_class_name(const vkt_dataset *ds, uint32_t number); /* NULL: no name */
VKT_API const void *vkt_dataset_features(const vkt_dataset *ds);                    /* (N,C,H,W); NULL: not in memory */
VKT_API const uint32_t *vkt_dataset_labels(const vkt_dataset *ds);                  /* (N); NULL: no labels */
VKT_API const float *vkt_dataset_targets(const vkt_dataset *ds);                    /* (N,K); NULL: no targets */
VKT_API uint32_t vkt_dataset_target_width(const vkt_dataset *ds);                   /* K; 0: no targets */
VKT_API const uint32_t *vkt_dataset_terms(const vkt_dataset *ds); /* (N) vkt_dataset_params.terms; NULL: 1 each */
VKT_API const double *vkt_dataset_mean(const vkt_dataset *ds);    /* (C) */
VKT_API const double *vkt_dataset_std(const vkt_dataset *ds);     /* (C) */
VKT_API bool vkt_dataset_varies(const vkt_dataset *ds);           /* see vkt_data_source */

/* Writes row `row` (vkt_dataset_row_bytes bytes) to `out`, without random changes (epoch 0 of vkt_pass). A source gets
 * the worker number 0. If several threads call this function on the same data set or its slices, the calls wait for
 * each other. VKT_E_ARG: the row is not below N. After a source's error, `out` is undefined. */
VKT_API vkt_result vkt_dataset_fetch(const vkt_dataset *ds, uint32_t row, void *out);

/* Writes one weight for each class to weights[0..classes): N / (classes * rows of the class), as "balanced" in
 * scikit-learn, and 0 for a class without rows. The weights are meant for vkt_trainer_params.class_weights. VKT_E_ARG
 * without labels. */
VKT_API vkt_result vkt_dataset_balanced_weights(const vkt_dataset *ds, float *weights);

/* Sets the normalisation of `ds` and of every data set that shares its memory (vkt_dataset_slice). mean and std: C
 * finite numbers each, std > 0. No other thread may read the normalisation at the same time. VKT_E_ARG for rows of u16
 * or u32. */
VKT_API vkt_result vkt_dataset_normalize(vkt_dataset *ds, const double *mean, const double *std);
/* Computes mean and (biased) standard deviation per channel over all rows of `ds`, for vkt_dataset_normalize. If the
 * rows are u8, mean and deviation are those of x / 255. If the rows are f32, both are those of x. A constant channel
 * gets the deviation 1. The function reads every row once. VKT_E_ARG for rows of u16 or u32. Returns also a source's
 * error. */
VKT_API vkt_result vkt_dataset_measure(const vkt_dataset *ds, double *mean, double *std);

/* ---- orders ---- */

/* Fills `order` with 0, 1, .. n-1. */
VKT_API void vkt_order_identity(uint32_t *order, uint32_t n);
/* Fills `order` with a random permutation of 0 .. n-1. The order depends on (n, seed, epoch) alone, so a resumed run
 * can make the order of any epoch again. The method is that of Durstenfeld (1964), with random numbers of Philox. */
VKT_API void vkt_shuffle(uint32_t *order, uint32_t n, uint64_t seed, uint32_t epoch);

#ifdef __cplusplus
}
#endif
#endif
