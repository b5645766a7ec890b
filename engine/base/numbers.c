/* base/numbers.c - see numbers.h. */
#include "base/numbers.h"

#include <stdio.h>
#include <stdlib.h>

vkt_numbers vkt_numbers_begin(void)
{
    const locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    return (vkt_numbers){ c, c ? uselocale(c) : c };
}

void vkt_numbers_end(vkt_numbers n)
{
    if (!n.ours) return;
    uselocale(n.before);
    freelocale(n.ours);
}

const char *vkt_number_text(double x, bool single, char buf[32])
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(buf, 32, "%.*g", digits, x);
        if (single ? strtof(buf, NULL) == (float)x : strtod(buf, NULL) == x) break;
    }
    return buf;
}
