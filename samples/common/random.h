/* common/random.h - random numbers for data that samples make up. */
#ifndef SAMPLE_RANDOM_H
#define SAMPLE_RANDOM_H

#include <stdint.h>

/* A sequence begins with its seed in *state. */
float random_unit(uint64_t *state);    /* uniform in [0,1), a multiple of 2^-24: exact in fp32 */
double random_normal(uint64_t *state); /* mean 0, standard deviation 1 */

#endif
