/* ntc/bc4.c - see bc4.h. */
#include "ntc/bc4.h"

#include <stdbool.h>
#include <string.h>

enum { UNITS = BC4_STEPS / 255 }; /* bounds are multiples of 1 / 255, which is UNITS / BC4_STEPS */

/* A possible block in the search for the best one. */
typedef struct candidate {
    int first, second; /* the bounds */
    uint8_t code[16];
    uint64_t error; /* sum of squared differences; UINT64_MAX: the block is not allowed */
} candidate;

uint32_t bc4_rescale(uint32_t x, uint32_t from, uint32_t to)
{
    return (x * to + from / 2) / from;
}

size_t bc4_bytes(uint32_t height, uint32_t width)
{
    return (size_t)((height + 3) / 4) * ((width + 3) / 4) * BC4_BYTES;
}

/* Computes the values of the eight codes. Codes 0 and 1 have the bounds. If the first bound is larger, codes 2 to 7
 * have values between the bounds. Otherwise codes 2 to 5 have values between them, and codes 6 and 7 have 0 and 1. */
static void values_of(int first, int second, uint16_t values[8])
{
    const int parts = first > second ? 7 : 5;
    values[0] = (uint16_t)(UNITS * first);
    values[1] = (uint16_t)(UNITS * second);
    for (int k = 1; k < parts; k++) values[k + 1] = (uint16_t)(UNITS * (first * (parts - k) + second * k) / parts);
    if (parts == 7) return;
    values[6] = 0;
    values[7] = BC4_STEPS;
}

/* Chooses for each of the 16 numbers the code with the nearest value, and computes c->error. `levels`: see bc4_encode.
 * If the bounds differ, the block is allowed only if at least one number has code 0 (the first bound), and at least one
 * has code 1 (the second bound). The reason: the decoded numbers may be encoded again, and then search() must find the
 * same block. search() starts with two of the decoded numbers as bounds, so both bounds must be among these numbers. */
static void assign(const uint16_t cells[16], uint32_t levels, candidate *c)
{
    uint16_t values[8];
    bool used[8] = { false };
    values_of(c->first, c->second, values);
    for (int k = 0; levels && k < 8; k++)
        values[k] = (uint16_t)bc4_rescale(bc4_rescale(values[k], BC4_STEPS, levels), levels, BC4_STEPS);
    c->error = 0;
    for (int i = 0; i < 16; i++) {
        uint64_t least = UINT64_MAX;
        for (int k = 0; k < 8; k++) {
            const int64_t d = (int64_t)values[k] - cells[i];
            if ((uint64_t)(d * d) >= least) continue;
            least = (uint64_t)(d * d);
            c->code[i] = (uint8_t)k;
        }
        c->error += least;
        used[c->code[i]] = true;
    }
    if (c->first != c->second && !(used[0] && used[1])) c->error = UINT64_MAX;
}

/* Returns whether a block may have these bounds, which are in units of 1 / 255. If `six` is true, the block has six
 * values from first to second, and the extra values 0 and 1. Then first <= second, and no bound may be 0 or 255: such a
 * bound would only repeat an extra value. If `six` is false, the block has eight values from second to first, and
 * first > second. */
static bool fits(int first, int second, bool six)
{
    return six ? first >= 1 && first <= second && second <= 254 : second >= 0 && second < first && first <= 255;
}

/* Moves the bounds as long as the error becomes smaller. The steps are 8, then 4, 2 and 1, in units of 1 / 255. */
static void improve(const uint16_t cells[16], uint32_t levels, candidate *best)
{
    const bool six = best->first <= best->second;
    for (int step = 8; step; step /= 2)
        for (bool better = true; better && best->error;) {
            better = false;
            for (int i = 0; i < 9; i++) {
                candidate c = { .first = best->first + (i / 3 - 1) * step,
                                .second = best->second + (i % 3 - 1) * step };
                if (!fits(c.first, c.second, six)) continue;
                assign(cells, levels, &c);
                if (c.error >= best->error) continue;
                *best = c;
                better = true;
            }
        }
}

static int bound_of(uint32_t units)
{
    return (int)bc4_rescale(units, BC4_STEPS, 255);
}

/* Finds a block with a small error: the best one of three candidates.
 *
 * 1. A block with eight values from bound to bound. improve() starts with the largest and the smallest number as
 *    bounds. (If both are equal after rounding to 8 bits, this is a block of the second kind.)
 * 2. A block with six values from bound to bound, and the extra values 0 and 1. improve() starts with the smallest and
 *    the largest number again, but without the numbers that are 0 or 1 after rounding to 8 bits.
 * 3. A block whose bounds are equal: both are the middle between the largest and the smallest number. Such a block is
 *    always allowed. It is needed if the numbers are so similar that no other block is allowed. */
static candidate search(const uint16_t cells[16], uint32_t levels)
{
    uint32_t least = BC4_STEPS, most = 0, inner_least = BC4_STEPS, inner_most = 0;
    for (int i = 0; i < 16; i++) {
        const uint32_t x = cells[i];
        const bool inner = bound_of(x) > 0 && bound_of(x) < 255;
        if (x < least) least = x;
        if (x > most) most = x;
        if (inner && x < inner_least) inner_least = x;
        if (inner && x > inner_most) inner_most = x;
    }
    const int middle = bound_of((least + most) / 2);
    const candidate starts[] = { { .first = bound_of(most), .second = bound_of(least) },
                                 { .first = bound_of(inner_least), .second = bound_of(inner_most) },
                                 { .first = middle, .second = middle } };
    candidate best = { .error = UINT64_MAX };
    for (int i = 0; i < 3 && best.error; i++) {
        candidate c = starts[i];
        if (i == 1 && inner_least > inner_most) continue;
        assign(cells, levels, &c);
        if (i < 2) improve(cells, levels, &c);
        if (c.error < best.error) best = c;
    }
    return best;
}

void bc4_encode(const uint16_t *plane, uint32_t height, uint32_t width, uint32_t levels, uint8_t *blocks)
{
    for (uint32_t y = 0; y < height; y += 4)
        for (uint32_t x = 0; x < width; x += 4, blocks += BC4_BYTES) {
            uint16_t cells[16];
            uint64_t codes = 0;
            for (uint32_t i = 0; i < 16; i++) {
                const uint32_t v = y + i / 4, u = x + i % 4;
                cells[i] = plane[(size_t)(v < height ? v : height - 1) * width + (u < width ? u : width - 1)];
            }
            const candidate c = search(cells, levels);
            for (int i = 0; i < 16; i++) codes |= (uint64_t)c.code[i] << 3 * i;
            blocks[0] = (uint8_t)c.first;
            blocks[1] = (uint8_t)c.second;
            for (int i = 0; i < 6; i++) blocks[2 + i] = (uint8_t)(codes >> 8 * i);
        }
}

void bc4_decode(const uint8_t *blocks, uint32_t height, uint32_t width, uint16_t *plane)
{
    for (uint32_t y = 0; y < height; y += 4)
        for (uint32_t x = 0; x < width; x += 4, blocks += BC4_BYTES) {
            uint16_t values[8];
            uint64_t codes = 0;
            values_of(blocks[0], blocks[1], values);
            for (int i = 0; i < 6; i++) codes |= (uint64_t)blocks[2 + i] << 8 * i;
            for (uint32_t i = 0; i < 16; i++)
                if (y + i / 4 < height && x + i % 4 < width)
                    plane[(size_t)(y + i / 4) * width + x + i % 4] = values[codes >> 3 * i & 7];
        }
}
