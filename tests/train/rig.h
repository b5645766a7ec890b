/* train/rig.h - a device, a small data set and a small network, for tests of the trainer.
 *
 * A test that rig_test() declares begins with `rig *r = rig_of(state);`, which skips the test if there is no device. */
#ifndef VKT_TEST_RIG_H
#define VKT_TEST_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "support/find_data.h"
#include "support/host.h"
#include "support/temp_dir.h"
#include "train/trainer.h"
#include "vktrain/train.h"

enum { RIG_ROWS = 200, RIG_CHECK_ROWS = 72, RIG_BATCH = 32, RIG_STEPS = 7, RIG_CLASSES = 10, RIG_SIDE = 12 };

typedef struct rig {
    vkt_host h;
    vkt_ctx *ctx;
    /* Samples of 1x12x12 u8. `train` has RIG_ROWS samples: six batches of RIG_BATCH and one of 8. `check` has
     * RIG_CHECK_ROWS. */
    vkt_dataset *train, *check;
    vkt_temp_dir dir;
    vkt_trainer *trainers[8]; /* rig_trainer makes them, the teardown destroys them */
} rig;

/* Setup and teardown of one test: they make and free everything. The teardown fails the test if memory leaked or if a
 * validation message came. */
int rig_setup(void **state);
int rig_teardown(void **state);
#define rig_test(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

rig *rig_here(void **state);
#define rig_of(state) \
    rig_here(state);  \
    if (!*(state)) skip()

/* Opens a context, as rig_setup does. Returns false if there is no device. A build with VKT_REQUIRE_DEVICE fails the
 * test instead. */
bool rig_open(const vkt_host *h, vkt_ctx **ctx);
/* Makes a data set of squares with noise. The position of the square gives the class. A sample depends only on its
 * serial number. The samples of this data set have the serial numbers first .. first + rows - 1. */
vkt_dataset *rig_data(const vkt_host *h, uint32_t first, uint32_t rows);
/* Makes a data set that varies. It has the samples of r->train, with a random number from -40 to 40 added to each
 * pixel. The sums are clamped to [0, 255]. The random numbers differ from epoch to epoch. In epoch 0, which is for
 * evaluation, the data set equals r->train. Destroy the data set before r->train. */
vkt_dataset *rig_varying(rig *r);
/* Makes a data set like r->train, but `source` gives its pixels. */
vkt_dataset *rig_from_source(const rig *r, const vkt_data_source *source);

/* Builds the rig's network: conv 3x3 1->8, max pool, dropout2d, max pool to 2x2, linear to ten classes. */
vkt_tensor rig_forward(vkt_builder *b, vkt_tensor x, void *user);
/* Builds the network of samples/mnist.c on (B,1,28,28) for ten classes. `user` is a const float *, the probability of
 * dropout. */
vkt_tensor rig_mnist_forward(vkt_builder *b, vkt_tensor x, void *user);
/* Returns params for the small network on the rig's data: Adam, lr 0.01, seed 7. */
vkt_trainer_params rig_params(const rig *r);
/* Makes a trainer. Fails the test if that is not possible. */
vkt_trainer *rig_trainer(rig *r, const vkt_trainer_params *p);
void rig_fit(vkt_trainer *t, const vkt_fit_params *p);

/* Counters after batch 2 (`from`) and after batch 5 (`to`) of the second epoch. In between, no memory may be allocated
 * and no command buffer recorded. Pass rig_count_steady as the callback on_batch, and a pointer to this struct as
 * `user` of the callbacks. */
typedef struct rig_steady {
    vkt_ctx *ctx;
    uint32_t batches; /* batches of the second epoch so far */
    vkt_gpu_counters from, to;
    unsigned long host_from, host_to;
} rig_steady;
void rig_count_steady(void *user, const vkt_fit_progress *p);

/* Fails the test unless the stores of both trainers have the same bits in `part`. */
#define rig_same(a, b, part) rig_same_at(a, b, part, __FILE__, __LINE__)
void rig_same_at(vkt_trainer *a, vkt_trainer *b, vkt_store_part part, const char *file, int line);
/* Returns `part` of all parameters (for instance VKT_PART_VALUE), in the order of the store. *n is the number of
 * elements. Free the result with test_free. */
float *rig_weights(vkt_trainer *t, vkt_store_part part, uint64_t *n);

/* Fails the test unless both files have the same bytes. */
#define rig_same_file(a, b) rig_same_file_at(a, b, __FILE__, __LINE__)
void rig_same_file_at(const char *a, const char *b, const char *file, int line);

#endif
