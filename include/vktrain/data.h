/* vktrain/data.h - data sets in host memory: tables of rows with class labels or targets, where they come from, how
 * they are shuffled.
 *
 * A row is one sample, features of shape (C,H,W) stored channel by channel, row-major, as u8 or f32; a table of N rows
 * therefore reads as (N,C,H,W). A row that has only a width is a vector: its table is (N,W), and a network gets (B,W),
 * as vkt_nn_linear wants it; C and H count as 1. u8 stays u8 until the device reads it: a network sees, per channel c,
 *     (x / 255 - mean[c]) / std[c]  of u8          (x - mean[c]) / std[c]  of f32.
 * A row of u16 or u32 is a sequence of L = W whole numbers (C = H = 1): a network sees them as u32 (B,L), as they are.
 *
 * Data sets know no device. A trainer copies a whole table to the device, or streams rows of it, by the functions
 * below.
 *
 * Files that are read whole must be regular ones. Those packed with gzip may unpack to 64 MiB and 32 times their size;
 * VKT_MAX_UNPACKED=BYTES in the environment allows more.
 *
 * Threads: everything that takes a `const vkt_dataset *` may run on several threads at once. Destroy a data set after
 * the last call on it; a data set and its slices may be destroyed in any order. */
#ifndef VKTRAIN_DATA_H
#define VKTRAIN_DATA_H

#include "vktrain/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A table of rows, in memory or made when asked for. */
typedef struct vkt_dataset vkt_dataset;

/* How the features of a row are stored. ORDER: the hashes of data sets in checkpoints take in these numbers, so a new
 * one goes to the end. */
typedef enum vkt_row_type {
    VKT_ROW_U8 = 0, /* pictures: 0 to 255 */
    VKT_ROW_F32,    /* numbers */
    VKT_ROW_U16,    /* a sequence of whole numbers below 65536 */
    VKT_ROW_U32     /* a sequence of whole numbers */
} vkt_row_type;

/* A table's description. It need live only for the call, except as `borrow` says. */
typedef struct vkt_dataset_params {
    uint32_t rows;                    /* N, 1 or more */
    uint32_t channels, height, width; /* C, H, W; 0 counts as 1. A vector of F numbers is { .width = F } */
    vkt_row_type type;                /* of the features */
    const uint32_t *labels;           /* N class numbers; NULL: the rows have no labels */
    uint32_t classes;                 /* every label is below this; 0: the largest label + 1 */
    const char *const *class_names;   /* NULL, or one text for each of `classes` (which must then be given); copied */
    const float *targets;             /* (N,K) numbers to predict; NULL: the rows have none */
    uint32_t target_width;            /* K; 0 counts as 1 */
    const double *mean, *std; /* NULL, or C numbers each, std > 0; default 0 and 1; copied. Not of u16 and u32 */
    bool borrow;              /* keep the caller's arrays (features, labels, targets) instead of copies; they must
                               * outlive the data set and all its slices, unchanged */
} vkt_dataset_params;

/* Every constructor returns VKT_OK and sets *out, which the caller owns; else a status and *out = NULL. Common to all:
 * VKT_E_ARG (the message names the field), VKT_E_NOMEM. `host` may be NULL; it is copied, its callbacks are used as
 * long as the data set lives. */

/* From memory: `features` holds N*C*H*W elements. VKT_E_ARG also for a label that is not below `classes`. */
VKT_API vkt_result vkt_dataset_from_arrays(const vkt_host *host, const vkt_dataset_params *params, const void *features,
                                           vkt_dataset **out);

/* One walk over the rows: what a source may draw its random numbers from. A trainer's has the trainer's seed. */
typedef struct vkt_pass {
    uint64_t seed;  /* of the trainer; nothing random of epoch 0 */
    uint32_t epoch; /* from 1; 0: rows as they are, nothing is random. So rows are evaluated, measured, looked at */
} vkt_pass;

/* Rows that are made or decoded when asked for. `fetch` writes the row_bytes of row `row` (in [0, N)) to `dst` and
 * nothing else, in ascending order and without reading them; they are a function of row and pass alone. It may run on
 * several threads at once; calls with the same `worker` (below VKT_DATA_MAX_WORKERS) never overlap, so scratch memory
 * can be kept per worker. It logs nothing: what `why` (may be NULL) tells of the worker's last fetch, which failed,
 * comes into the message of the caller. A failure stops the epoch of a loader. `destroy` (may be NULL) is called once,
 * with the last handle's destruction; when vkt_dataset_from_source fails, it is not called and the source stays the
 * caller's. */
typedef struct vkt_data_source {
    vkt_result (*fetch)(void *self, uint32_t row, vkt_pass pass, void *dst, uint32_t worker); /* writes one row */
    void (*destroy)(void *self);                     /* NULL: nothing to free */
    void *self;                                      /* handed to all three */
    const char *(*why)(void *self, uint32_t worker); /* what was wrong, in words; NULL: not told */
    bool varies; /* rows do depend on the pass; otherwise a trainer may keep them on the device */
} vkt_data_source;
enum {
    VKT_DATA_MAX_WORKERS = 64 /* most threads of a loader */
};

/* From rows that `source` makes; labels and targets are those of the params. VKT_E_ARG also for a source without fetch.
 */
VKT_API vkt_result vkt_dataset_from_source(const vkt_host *host, const vkt_dataset_params *params,
                                           const vkt_data_source *source, vkt_dataset **out);

/* From IDX files of u8, plain or gzip, read whole. Images are (N,H,W), (N,H,W,C), which is turned to (N,C,H,W), or
 * (N,F), whose rows are vectors. Labels are (N); labels_path may be NULL. `classes` as in vkt_dataset_params.
 * Returns also VKT_E_NOT_FOUND, VKT_E_IO, or VKT_E_FORMAT: not IDX, not u8, truncated, bytes after the end, other
 * counts of images than of labels, or a label that is not below `classes`. */
VKT_API vkt_result vkt_dataset_from_idx(const vkt_host *host, const char *images_path, const char *labels_path,
                                        uint32_t classes, vkt_dataset **out);

/* Which files of a folder. */
typedef enum vkt_split {
    VKT_SPLIT_TRAIN = 0, /* train-* */
    VKT_SPLIT_TEST       /* t10k-* or test-* */
} vkt_split;

/* From a folder laid out like MNIST: train-images-idx3-ubyte and train-labels-idx1-ubyte (or t10k-, test-), also idx4
 * for images in colour, also with a dot before "idx", also with .gz. A file classes.txt with a name in each line names
 * the classes, as many as it has; `classes` must then be 0 or that number. VKT_E_NOT_FOUND when the folder has no such
 * pair; other results as vkt_dataset_from_idx. Normalisation is 0 and 1 until vkt_dataset_normalize. */
VKT_API vkt_result vkt_dataset_open_mnist_like(const vkt_host *host, const char *folder, vkt_split split,
                                               uint32_t classes, vkt_dataset **out);

/* ---- pictures: JPEG and PNG files as rows of u8, decoded by worker threads ---- */

/* Zero is the default everywhere but for height and width. */
typedef struct vkt_image_params {
    uint32_t height, width; /* of a row, (3,H,W): red, green, blue; or, gray, (1,H,W) */
    bool gray;              /* one channel, 0.299 R + 0.587 G + 0.114 B of colours */
    /* Resizing is bilinear with antialiasing, the same bytes as Pillow's Image.resize(size, BILINEAR). */
    uint32_t resize; /* 0: the picture is stretched to height x width. Else its shorter side becomes this long, height
                      * and width at least, and height x width are cut out of its middle (Resize, CenterCrop) */
    /* Augmentation, drawn anew for each row in each epoch of a training; what is evaluated is cut out of the middle and
     * not mirrored. A data set that has some is streamed. */
    bool random_crop;      /* cut out anywhere instead (RandomCrop) */
    uint32_t crop_padding; /* of a picture that has this much black around it first */
    bool random_flip;      /* mirrored left to right, every other time (RandomHorizontalFlip) */
    /* Labels. */
    const char *path_column, *label_column; /* names in a table's header; NULL: "path", "label" */
    const vkt_dataset *classes_like;        /* has the numbers and names of the classes, as a training set does for its
                                             * validation set; NULL: they are the ones found */
    /* Files. */
    bool skip_broken;     /* leave broken and missing files out; else any of them fails the call */
    uint32_t *left_out;   /* NULL, or gets the number of broken and missing files */
    uint64_t max_pixels;  /* a picture with more is broken; 0: those with more than 2^24 pixels and 64 for each byte of
                           * the file, at most 2^27, and those with a side above 65535 */
    uint64_t cache_bytes; /* decoded and resized pictures are kept if all fit; else each is decoded whenever it is
                           * fetched. 0: 1 GiB; 1: keep none */
    uint32_t workers;     /* threads that look at all files at first; 0: one per core, 16 at most */
} vkt_image_params;

/* From a CSV file (RFC 4180) with a path and a label per line. A first line in which a field is called path_column (in
 * any case) is a header and tells the columns by name, others are ignored; without it, lines hold a path and a label,
 * or a path alone: rows without labels. Paths are relative to the CSV's folder. Labels are class numbers if all of them
 * are, or if classes_like has no names; else names of classes, which are numbered in the order of their bytes.
 *
 * Files may have any of PNG's colour types and depths (16 bits are rounded to 8, transparency is ignored), and be gray,
 * YCbCr, RGB or CMYK JPEG, progressive or not; pictures are turned upright as EXIF says. Files that cannot be such a
 * picture, or end early, are named in warnings (errors, if they are not skipped), the first 20 of them; where pictures
 * are neither kept nor skipped, all but their first bytes are only seen when they are fetched.
 *
 * Returns also VKT_E_NOT_FOUND and VKT_E_IO (of the CSV or the folder), VKT_E_FORMAT: the CSV is malformed (the message
 * has the line), a label is no class, or pictures are broken. */
VKT_API vkt_result vkt_dataset_from_image_table(const vkt_host *host, const char *csv_path,
                                                const vkt_image_params *params, vkt_dataset **out);
/* From the .jpg, .jpeg, .jpe and .png files of folder/<class>/, sorted by the bytes of class and name. Classes are the
 * folders, also empty ones; names that begin with a dot, and folders in folders, are ignored. */
VKT_API vkt_result vkt_dataset_from_image_folders(const vkt_host *host, const char *folder,
                                                  const vkt_image_params *params, vkt_dataset **out);
/* One JPEG or PNG, n bytes in memory, as a row of such a data set when it is evaluated: the (C,height,width) bytes
 * written to `row` are those of the same file in a data set with these params. Augmentation, labels and cache do not
 * count. Messages call the image `name`. VKT_E_ARG, VKT_E_FORMAT (not one whole image), VKT_E_NOMEM; `row` is undefined
 * then. */
VKT_API vkt_result vkt_image_row(const vkt_host *host, const vkt_image_params *params, const char *name,
                                 const void *bytes, size_t n, uint8_t *row);

/* One picture as a data set of one row of u8 (3,H,W), in memory. H and W are the picture's; where the longer one is
 * above `longest` (0: no limit) the picture is resized, its proportions kept. Which files it reads, and `max_pixels`:
 * as above. Returns also VKT_E_NOT_FOUND, VKT_E_IO, VKT_E_FORMAT. */
VKT_API vkt_result vkt_image_read(const vkt_host *host, const char *path, uint32_t longest, uint64_t max_pixels,
                                  vkt_dataset **out);

/* `count` drawn digits, 1x28x28 u8, ten classes, ink bright on dark: pen strokes under a random affine warp, of random
 * width and brightness, with noise. Row i depends on (seed, i) alone; each block of ten rows, counted from row 0, holds
 * every class once. Use another seed for a test set. */
VKT_API vkt_result vkt_dataset_digits(const vkt_host *host, uint32_t count, uint64_t seed, vkt_dataset **out);

/* A view of rows [first, first + count) that shares memory, classes and normalisation with `ds`. */
VKT_API vkt_result vkt_dataset_slice(const vkt_dataset *ds, uint32_t first, uint32_t count, vkt_dataset **out);
VKT_API void vkt_dataset_destroy(vkt_dataset **ds); /* slices of it go on */
/* The rows rows[0] .. rows[n-1] of `ds`, which may repeat, as a data set of their own: labels and targets are copied,
 * and so are features that lie in memory; a source goes on being asked, and lives as long. */
VKT_API vkt_result vkt_dataset_select(const vkt_dataset *ds, const uint32_t *rows, uint32_t n, vkt_dataset **out);
/* Parts all rows at random in two: ceil(test_share N) of them, and the rest; each must have one (VKT_E_ARG). A function
 * of (N, test_share, seed). */
VKT_API vkt_result vkt_dataset_split(const vkt_dataset *ds, double test_share, uint64_t seed, vkt_dataset **train,
                                     vkt_dataset **test);

/* ---- what it holds; pointers live as long as the data set ---- */
VKT_API uint32_t vkt_dataset_rows(const vkt_dataset *ds);                      /* N */
VKT_API void vkt_dataset_sample_shape(const vkt_dataset *ds, uint32_t chw[3]); /* C, H, W */
VKT_API uint32_t vkt_dataset_sample_rank(const vkt_dataset *ds);               /* 1: (W); 3: (C,H,W) */
VKT_API vkt_row_type vkt_dataset_type(const vkt_dataset *ds);                  /* of the features */
VKT_API size_t vkt_dataset_row_bytes(const vkt_dataset *ds);                   /* of the features: C H W elements */
VKT_API uint32_t vkt_dataset_classes(const vkt_dataset *ds);                   /* 0: no labels, none declared */
VKT_API const char *vkt_dataset_class_name(const vkt_dataset *ds, uint32_t number); /* NULL: not named */
VKT_API const void *vkt_dataset_features(const vkt_dataset *ds);                    /* (N,C,H,W); NULL: not in memory */
VKT_API const uint32_t *vkt_dataset_labels(const vkt_dataset *ds);                  /* (N); NULL: no labels */
VKT_API const float *vkt_dataset_targets(const vkt_dataset *ds);                    /* (N,K); NULL: no targets */
VKT_API uint32_t vkt_dataset_target_width(const vkt_dataset *ds);                   /* K; 0: no targets */
VKT_API const double *vkt_dataset_mean(const vkt_dataset *ds);                      /* (C) */
VKT_API const double *vkt_dataset_std(const vkt_dataset *ds);                       /* (C) */
VKT_API bool vkt_dataset_varies(const vkt_dataset *ds);                             /* see vkt_data_source */

/* Writes row `row` (row_bytes) to `out`, of epoch 0 and as worker 0 of a source: one call at a time where the source
 * keeps scratch per worker. VKT_E_ARG for a row that is not below N, else the source's result; `out` is undefined then.
 */
VKT_API vkt_result vkt_dataset_fetch(const vkt_dataset *ds, uint32_t row, void *out);

/* Sets the normalisation of the data set and of every slice that shares its memory: C numbers each, std > 0 and finite.
 * Not while another thread reads it. VKT_E_ARG for rows of u16 or u32, here and below. */
VKT_API vkt_result vkt_dataset_normalize(vkt_dataset *ds, const double *mean, const double *std);
/* Mean and standard deviation (the biased one) per channel over all rows of `ds`, as vkt_dataset_normalize takes them:
 * of x / 255 for u8, of x for f32; a channel that never varies gets the deviation 1. Reads every row once. Returns also
 * a source's error. */
VKT_API vkt_result vkt_dataset_measure(const vkt_dataset *ds, double *mean, double *std);

/* ---- orders ---- */

/* order = 0, 1, .. n-1 */
VKT_API void vkt_order_identity(uint32_t *order, uint32_t n);
/* A random permutation of 0 .. n-1 into `order`: a pure function of (n, seed, epoch), so that a resumed run draws the
 * order of any epoch anew. Every permutation is equally likely (Durstenfeld 1964, on Philox numbers). */
VKT_API void vkt_shuffle(uint32_t *order, uint32_t n, uint64_t seed, uint32_t epoch);

#ifdef __cplusplus
}
#endif
#endif
