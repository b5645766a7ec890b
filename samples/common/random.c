/* common/random.c - see random.h. */
#include "common/random.h"

#include <math.h>

/* Returns the next number of SplitMix64: Steele, Lea & Flood, "Fast splittable pseudorandom number generators" (OOPSLA
 * 2014). */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

float random_unit(uint64_t *state)
{
    return (float)(next(state) >> 40) * 0x1p-24f;
}

/* Uses the method of Box & Muller, "A note on the generation of random normal deviates" (1958). Does not compute the
 * second number of each pair. */
double random_normal(uint64_t *state)
{
    const double u = (double)(next(state) >> 11) * 0x1p-53, v = (double)(next(state) >> 11) * 0x1p-53;
    return sqrt(-2 * log1p(-u)) * cos(6.283185307179586 * v);
}
