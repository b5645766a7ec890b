/* base/half.h - converts IEEE 754 binary16 ("half") and bfloat16 to and from float, for every bit pattern.
 *
 * Widening is exact, also for subnormals, infinities and NaN payloads. Narrowing rounds to nearest, ties to even. Too
 * large numbers become infinity. A NaN stays a NaN and keeps the payload bits that fit. So widening and then narrowing
 * gives the same pattern back, for all 65536 patterns. No floating-point arithmetic is used: rounding modes and
 * flush-to-zero of the host have no influence. */
#ifndef VKT_HALF_H
#define VKT_HALF_H

#include "base/base.h"

float vkt_f32_from_half(uint16_t h);
uint16_t vkt_half_from_f32(float f);
float vkt_f32_from_bf16(uint16_t b);
uint16_t vkt_bf16_from_f32(float f);

#endif
