/* base/numbers.c - see numbers.h. posix/ and win32/ change the locale. */
#include "base/numbers.h"

#include <stdio.h>
#include <stdlib.h>

const char *vkt_number_text(double x, bool single, char buf[32])
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(buf, 32, "%.*g", digits, x);
        if (single ? strtof(buf, NULL) == (float)x : strtod(buf, NULL) == x) break;
    }
    return buf;
}
