/* train/golden.h - compares training runs with float64 runs of PyTorch. Float32 runs of PyTorch give the tolerance (see
 * golden/README.md).
 *
 * The tolerance of a tensor or a loss is four times the deviation of PyTorch's float32 from PyTorch's float64. One
 * float32 run may be equal to float64 by chance. So the deviation is the largest one of several float32 runs: the
 * default run, and variants, for instance without oneDNN or with the samples of a batch in another order. At one step
 * even the losses of all runs may be equal to float64 by chance. So the deviation of a loss is the largest one at its
 * step, at the step before and at the step after. */
#ifndef VKT_TEST_GOLDEN_H
#define VKT_TEST_GOLDEN_H

#include "io/safetensors.h"
#include "train/rig.h"

/* Opens golden/<name>.safetensors. Close it with vkt_safetensors_close. */
vkt_safetensors *golden_open(const vkt_host *h, const char *name);
/* Returns all elements of a tensor in float64. Free the result with test_free. */
double *golden_numbers(const vkt_safetensors *st, const char *name, uint64_t *n);

/* Mixes the bits of a number. Scripts in tests/golden generate images and weights with the same function. */
uint32_t golden_mix(uint32_t v);

/* Generates the first `rows` images of the sequence with which PyTorch trained for resnet.safetensors and
 * ddp.safetensors. There are GOLDEN_CLASSES classes. An image is (3, GOLDEN_SIDE, GOLDEN_SIDE). */
enum { GOLDEN_SIDE = 12, GOLDEN_CLASSES = 10 };
vkt_dataset *golden_images(const vkt_host *h, uint32_t rows);

/* Starts an epoch without a shuffle. */
void golden_start(vkt_trainer *t);
/* Runs a step on `rows` samples of the epoch, from sample `first` on. Returns the loss of the step. */
double golden_step(vkt_trainer *t, float lr, uint32_t first, uint32_t rows);

/* Compares `part` of all tensors of the store with the tensors of a golden file. Fails the test if a tensor deviates
 * too much. The file has all elements of a tensor, or only the first ones. If `fold` is not 0, the file has sums
 * instead: sum k is over all elements whose index is k modulo `fold`. `runs` names the tensors of the file that have
 * the deviations of PyTorch's float32 runs, and ends with NULL. Each of these tensors has the deviations of one or more
 * runs. A run has one deviation for each parameter and, if `part` is VKT_PART_VALUE, for each running statistic. */
void golden_check_tensors(const vkt_safetensors *st, vkt_trainer *t, vkt_store_part part, const char *prefix,
                          const char *const *runs, uint32_t fold);
/* Compares as golden_check_tensors does, for a store without a trainer and without running statistics. The file
 * has no sums. */
void golden_check_store(const vkt_safetensors *st, vkt_store *store, vkt_store_part part, const char *prefix,
                        const char *const *runs);
/* Compares the losses of n steps with the tensor `name`. `runs` is as in golden_check_tensors, but a run has one
 * deviation for each step. */
void golden_check_losses(const vkt_safetensors *st, const char *name, const double *got, uint32_t n,
                         const char *const *runs);

#endif
