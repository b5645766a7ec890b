/* base/win32/numbers.c - the locale of a thread: see base/numbers.h. Windows has no uselocale, but the C library of
 * Windows can give a thread a locale of its own. Then setlocale changes only the locale of this thread. */
#include "base/numbers.h"

#include <locale.h>
#include <string.h>

typedef struct locales {
    int mode;         /* result of _configthreadlocale: whether the thread had its own locale before */
    bool changed;     /* vkt_numbers_begin replaced another locale by C */
    char before[100]; /* if `changed`: the thread's LC_NUMERIC before vkt_numbers_begin */
} locales;
_Static_assert(sizeof(locales) <= sizeof(vkt_numbers), "vkt_numbers has no room for a locale");

vkt_numbers vkt_numbers_begin(void)
{
    locales l = { .mode = _configthreadlocale(_ENABLE_PER_THREAD_LOCALE) };
    const char *before = setlocale(LC_NUMERIC, NULL);
    if (before && strlen(before) < sizeof l.before && strcmp(before, "C") != 0) {
        memcpy(l.before, before, strlen(before) + 1);
        l.changed = setlocale(LC_NUMERIC, "C") != NULL;
    }
    vkt_numbers n = { { 0 } };
    memcpy(&n, &l, sizeof l);
    return n;
}

void vkt_numbers_end(vkt_numbers n)
{
    locales l;
    memcpy(&l, &n, sizeof l);
    if (l.changed) setlocale(LC_NUMERIC, l.before);
    if (l.mode == _DISABLE_PER_THREAD_LOCALE) _configthreadlocale(_DISABLE_PER_THREAD_LOCALE);
}
