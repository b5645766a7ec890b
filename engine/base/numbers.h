/* base/numbers.h - numbers as text, with a decimal point in every locale. */
#ifndef VKT_NUMBERS_H
#define VKT_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

/* The locale that a thread had before vkt_numbers_begin; the content of `state` depends on the system. Between begin
 * and end, printf, scanf and strtod of this thread write and read numbers as in locale C. If the locale cannot be
 * changed, for instance because there is no memory, the thread's locale stays. */
typedef struct vkt_numbers {
    uint64_t state[16];
} vkt_numbers;
vkt_numbers vkt_numbers_begin(void);
void vkt_numbers_end(vkt_numbers n);

/* Writes the text with the fewest significant digits that reads back as x. With `single` the text reads back as the
 * float (float)x: "0.001" for 0.001f. Returns buf. Call this function between vkt_numbers_begin and
 * vkt_numbers_end. */
const char *vkt_number_text(double x, bool single, char buf[32]);

#endif
