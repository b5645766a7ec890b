/* base/posix/numbers.c - the locale of a thread: see base/numbers.h. */
#include "base/numbers.h"

#include <locale.h>
#ifdef __APPLE__ /* macOS declares newlocale and uselocale in xlocale.h */
#include <xlocale.h>
#endif
#include <string.h>

typedef struct locales {
    locale_t ours, before;
} locales;
_Static_assert(sizeof(locales) <= sizeof(vkt_numbers), "vkt_numbers has no room for two locales");

vkt_numbers vkt_numbers_begin(void)
{
    const locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    const locales l = { c, c ? uselocale(c) : c };
    vkt_numbers n = { { 0 } };
    memcpy(&n, &l, sizeof l);
    return n;
}

void vkt_numbers_end(vkt_numbers n)
{
    locales l;
    memcpy(&l, &n, sizeof l);
    if (!l.ours) return;
    uselocale(l.before);
    freelocale(l.ours);
}
