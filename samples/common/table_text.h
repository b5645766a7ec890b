/* common/table_text.h - reads fields of a table. Blanks before a field or a name are ignored; many files have them. */
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
/* Reads a finite decimal number, with blanks around it. For anything else, returns false and does not change *x. */
bool table_number(const char *field, double *x);

#endif
