/* base/fixed.h - numbers in [0,1) with 64 binary digits, bit-equal to shaders/lib/fixed.glsl.
 *
 * Adam divides by 1 - beta^t. In f32 this difference loses most of its digits for small t and large beta, and two
 * devices would get different results. Here beta^t is an integer product on host and device alike. The pattern
 * 2^64 - 1 stands for 1: no product of betas can reach it, because the largest number of type double below 1 is
 * 1 - 2^-53. */
#ifndef VKT_FIXED_H
#define VKT_FIXED_H

#include <stdint.h>

#define VKT_FIXED_ONE UINT64_MAX

/* Converts x in [0,1). Exact for x >= 2^-12; for a smaller x, digits below 2^-64 are cut off. An x below 0 or NaN gives
 * 0, and an x of 1 or more gives VKT_FIXED_ONE. */
uint64_t vkt_fixed_from_double(double x);
/* Returns a * b. Digits below 2^-64 are cut off, so the result is at most 2^-64 too small. */
uint64_t vkt_fixed_mul(uint64_t a, uint64_t b);
/* Returns b^t. Starts with 1 and multiplies t times by b, because a device multiplies once in each step. The result is
 * at most 2^-64 / (1 - b) too small. Stops at 0, so there are at most 64 * ln(2) / (1 - b) products. (For b = 0.999:
 * 44,000.) */
uint64_t vkt_fixed_pow(uint64_t b, uint64_t t);
/* Computes NAdam's momentum b * (1 - p / 2) of step t. b is beta1. p is r^t, where r = 0.96^momentum_decay. */
uint64_t vkt_fixed_momentum(uint64_t b, uint64_t p);
/* Computes the product of vkt_fixed_momentum(b, r^i) over i = 1 .. t, where r = 0.96^momentum_decay. Multiplies
 * step by step, as the device does, and stops at 0. */
uint64_t vkt_fixed_momentum_product(uint64_t b, uint64_t r, uint64_t t);
/* Computes 1 - q, rounded once to the nearest f32, ties to even. */
float vkt_fixed_complement_f32(uint64_t q);

#endif
