/* base/philox.h - counter-based random numbers, bit-equal to shaders/lib/philox.glsl.
 *
 * The generator is Philox4x32-10 (Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011),
 * a keyed bijection of a 128-bit counter. There is no hidden state: a pair (key, counter) always gives the same
 * numbers. So the numbers do not depend on the number of threads, and a resumed run gets the same numbers as a run
 * without a break. */
#ifndef VKT_PHILOX_H
#define VKT_PHILOX_H

#include "base/base.h"

typedef struct vkt_philox {
    uint32_t w[4];
} vkt_philox;

/* Returns the four random words of the pair (key, counter). */
vkt_philox vkt_philox4x32(vkt_philox counter, uint64_t key);

/* The streams. Each purpose has its own stream, so that no two purposes share numbers of one seed. The stream is the
 * fourth word of the counter, on host and device. i counts blocks of four random words, from 0. */
enum {
    VKT_STREAM_INIT = 1,     /* initialisers: counter = (i, index of the parameter, 0, stream) */
    VKT_STREAM_SHUFFLE = 2,  /* epoch shuffles: counter = (i, epoch, 0, stream) */
    VKT_STREAM_DROPOUT = 3,  /* masks of dropout: see vkt_dropout_attr (ir/attrs.h) */
    VKT_STREAM_DIGITS = 4,   /* generated digits */
    VKT_STREAM_TEST = 5,     /* random cases and numbers of tests, audits and benchmarks */
    VKT_STREAM_PLAN = 6,     /* the search for a small memory plan (plan/pack.c) */
    VKT_STREAM_AUGMENT = 7,  /* augmented images: counter = (i, epoch, index of the sample, stream) */
    VKT_STREAM_QUANTIZE = 8, /* noise of quantization: see vkt_quantize_attr (ir/attrs.h) */
    VKT_STREAM_GENERATE = 9  /* tokens of a generated text: see vktrain/generate.h */
};

/* A stream of random numbers. */
typedef struct vkt_rng {
    uint64_t key;
    vkt_philox counter; /* w[0] counts blocks of four words; w[1..3] identify the stream */
    vkt_philox block;
    uint32_t used; /* how many words of `block` are used already; 0 before the first number */
} vkt_rng;

vkt_rng vkt_rng_make(uint64_t seed, uint32_t stream, uint32_t a, uint32_t b); /* counter = (0, a, b, stream) */
uint32_t vkt_rng_u32(vkt_rng *r);
/* Returns a uniform random integer of [lo, hi], both inclusive; unbiased (Lemire's multiply and reject). */
uint32_t vkt_rng_range(vkt_rng *r, uint32_t lo, uint32_t hi);
/* Returns a uniform random number of [0, 1). It has 24 random bits, so that every value is exact in f32. */
float vkt_rng_unit(vkt_rng *r);
float vkt_rng_uniform(vkt_rng *r, float lo, float hi);
/* Returns a random number of the normal distribution with mean 0 and standard deviation 1. The method (Box & Muller
 * 1958) can make two normal numbers from two numbers of the stream. This function computes only one of the two. */
double vkt_rng_normal(vkt_rng *r);

#endif
