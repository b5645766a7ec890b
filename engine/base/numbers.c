/* base/numbers.c - see numbers.h. */
#include "base/numbers.h"

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
