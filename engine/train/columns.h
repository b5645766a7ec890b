/* train/columns.h - the columns of a table (vktrain/columns.h): what the files columns*.c share. */
#ifndef VKT_TRAIN_COLUMNS_H
#define VKT_TRAIN_COLUMNS_H

#include "base/base.h"
#include "vktrain/columns.h"

struct vkt_columns {
    vkt_host h;
    vkt_column *columns; /* n columns; the object owns the array, and the names and values in it */
    uint32_t n, target;
};

enum { VKT_COLUMN_NAME_ROOM = 80 };

/* Creates an object without columns (n is 0). It has space for `room` columns. */
vkt_result vkt_columns_create(const vkt_host *h, size_t room, vkt_columns **out);
/* Sets the use of a column to VKT_COLUMN_VALUES, and its values to copies of the n texts in `values`. Error:
 * VKT_E_NOMEM. */
vkt_result vkt_column_set_values(const vkt_host *h, vkt_column *c, const char *const *values, size_t n);

/* Checks that each column which is used has a name of its own. Upper and lower case are equal. VKT_E_FORMAT: two
 * columns have the same name, and at least one of them is used; the message calls the table `table`. */
vkt_result vkt_columns_check_names(const vkt_columns *c, const char *table);

/* Returns the name of a column without leading blanks; "" if there is no such column. */
const char *vkt_column_name(const vkt_records *r, uint32_t column);
/* Returns a field without leading blanks; "" if there is no such field. */
const char *vkt_column_field(const vkt_records *r, uint32_t row, uint32_t column);
/* Returns whether a field is missing: it is empty, or "?", or "NA", or another text of the list in
 * vktrain/columns.h. */
bool vkt_field_missing(const char *field);
/* Reads a finite decimal number, and skips blanks around it. If the field is anything else, returns false and does not
 * change *x. Call this function between vkt_numbers_begin and vkt_numbers_end, so that the locale does not matter. */
bool vkt_field_number(const char *field, double *x);

#endif
