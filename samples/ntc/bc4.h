/* ntc/bc4.h - BC4 blocks: 4 x 4 numbers from 0 to 1 in 8 bytes (Microsoft, "Texture block compression in Direct3D 11").
 * A block has two bounds of 8 bits. A code of 3 bits for each number selects one of the eight values that the bounds
 * give. */
#ifndef NTC_BC4_H
#define NTC_BC4_H

#include <stddef.h>
#include <stdint.h>

/* The unit of all numbers here is 1 / BC4_STEPS. Every value of every block is a whole number in this unit, because
 * 8925 = 255 * 5 * 7. */
enum { BC4_STEPS = 8925, BC4_BYTES = 8 };

/* Returns the size in bytes of the blocks of a plane, which is a matrix (height, width) of numbers. */
size_t bc4_bytes(uint32_t height, uint32_t width);

/* Encodes a plane (height, width). A block that reaches beyond the plane repeats the numbers at the edge. `levels`
 * above 0: the reader of the blocks rounds each decoded number to a multiple of 1 / levels, so bc4_encode computes
 * errors with the rounded numbers. `levels` 0: no rounding. With `levels` 0, a second encoding and
 * decoding does not change the plane any more. */
void bc4_encode(const uint16_t *plane, uint32_t height, uint32_t width, uint32_t levels, uint8_t *blocks);
/* Decodes all blocks of a plane. */
void bc4_decode(const uint8_t *blocks, uint32_t height, uint32_t width, uint16_t *plane);

/* Returns the integer y for which y / to is nearest to x / from. x is in [0, from]. */
uint32_t bc4_rescale(uint32_t x, uint32_t from, uint32_t to);

#endif
