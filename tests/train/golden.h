/* train/golden.h - compares training runs with PyTorch's in float64. PyTorch's float32 runs give the tolerance (see
 * golden/README.md).
 *
 * The tolerance of each tensor and each loss is four times the deviation of PyTorch's float32 from float64. One float32
 * run may be equal to float64 by chance. So the deviation is the largest of several runs: the default one, and others,
 * for instance without oneDNN or with the rows of a batch in another order. At a single loss even all runs may be equal
 * to float64 by chance. So the deviation of a loss is the largest one of its step, the step before and the step after.
 */
#ifndef VKT_TEST_GOLDEN_H
#define VKT_TEST_GOLDEN_H

#include "io/safetensors.h"
#include "train/rig.h"

/* Opens golden/<name>.safetensors. Close it with vkt_safetensors_close. */
vkt_safetensors *golden_open(const vkt_host *h, const char *name);
/* Returns all numbers of a tensor as doubles. Free them with test_free. */
double *golden_numbers(const vkt_safetensors *st, const char *name, uint64_t *n);

/* Mixes the bits of a number, as the scripts do that generated images and weights. */
uint32_t golden_mix(uint32_t v);

/* Makes the first `rows` images of the training in resnet.safetensors. There are GOLDEN_CLASSES classes. An image is
 * (3, GOLDEN_SIDE, GOLDEN_SIDE). */
enum { GOLDEN_SIDE = 12, GOLDEN_CLASSES = 10 };
vkt_dataset *golden_images(const vkt_host *h, uint32_t rows);

/* Starts an epoch that has the rows of the training set in the order of the set, without a shuffle. */
void golden_start(vkt_trainer *t);
/* Runs a step of `rows` rows, from row `first` on. Returns its loss. */
double golden_step(vkt_trainer *t, float lr, uint32_t first, uint32_t rows);

/* Compares the tensors of a store part with those of a golden file, and fails the test if one is too far off. The file
 * has all elements of a tensor, or only the first ones. With a `fold`, it has sums instead: sum k is over all elements
 * whose index is k modulo `fold`. `runs` has the names of tensors of deviations, and ends with NULL. Such a tensor
 * has one or more runs of PyTorch. A run has one number for each parameter and, if `part` is the value, for each
 * state. */
void golden_check_tensors(const vkt_safetensors *st, vkt_trainer *t, vkt_store_part part, const char *prefix,
                          const char *const *runs, uint32_t fold);
/* Compares all parameters of a store that has no states. The file has all elements. */
void golden_check_store(const vkt_safetensors *st, vkt_store *store, vkt_store_part part, const char *prefix,
                        const char *const *runs);
/* Compares the losses of n steps with the tensor `name`. `runs` is as above, with one number for each step of a run. */
void golden_check_losses(const vkt_safetensors *st, const char *name, const double *got, uint32_t n,
                         const char *const *runs);

#endif
