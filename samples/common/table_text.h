/* common/table_text.h - fields of a table. Blanks before a field or a name, which many files have, do not count. */
#ifndef SAMPLE_TABLE_TEXT_H
#define SAMPLE_TABLE_TEXT_H

#include <string.h>

#include "vktrain/table.h"

static inline const char *table_name(const vkt_records *r, uint32_t column)
{
    const char *s = vkt_records_name(r, column);
    return s + strspn(s, " \t");
}
static inline const char *table_field(const vkt_records *r, uint32_t row, uint32_t column)
{
    const char *s = vkt_records_field(r, row, column);
    return s + strspn(s, " \t");
}
/* A finite decimal number, with blanks around it; false, and *x as it was, for anything else. */
bool table_number(const char *field, double *x);

#endif
