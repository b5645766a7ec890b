/* common/random.h - random numbers for generated data. */
#ifndef SAMPLE_RANDOM_H
#define SAMPLE_RANDOM_H

#include <stdint.h>

/* Return random numbers. Set *state to the seed before the first call. */
float random_unit(uint64_t *state);    /* uniform in [0,1), a multiple of 2^-24: exact in fp32 */
double random_normal(uint64_t *state); /* mean 0, standard deviation 1 */

#endif
