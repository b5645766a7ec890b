/* base/numbers.h - numbers as text, with a decimal point whatever the locale. */
#ifndef VKT_NUMBERS_H
#define VKT_NUMBERS_H

#include <locale.h>
#include <stdbool.h>

/* Between the two, printf, scanf and strtod of this thread write and read numbers as in C. Where the system has no
 * memory for that, its locale stays. */
typedef struct vkt_numbers {
    locale_t ours, before;
} vkt_numbers;
vkt_numbers vkt_numbers_begin(void);
void vkt_numbers_end(vkt_numbers n);

/* The shortest text that reads back as x, "0.001" for 0.001f, or with `single` as the float that x is. Returns buf.
 * Call it between the two. */
const char *vkt_number_text(double x, bool single, char buf[32]);

#endif
