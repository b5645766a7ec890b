/* train/compare.h - finds the differences of two texts of identity.h, and reports them in words. */
#ifndef VKT_COMPARE_H
#define VKT_COMPARE_H

#include "base/base.h"

/* A list of differences: "batch: checkpoint 32, this run 16; ..". It contains only the first few. {.text.h = h} is
 * empty. */
typedef struct vkt_differences {
    vkt_text text;
    uint32_t n;           /* number of all differences */
    const char *was, *is; /* names of the two texts; NULL: "checkpoint" and "this run" */
} vkt_differences;

void vkt_differences_add(vkt_differences *d, const char *fmt, ...) VKT_PRINTF(2, 3);
/* Returns the differences, and the number of those that are not in the list. Valid until the next call on d; "" if
 * memory ran out. */
const char *vkt_differences_text(vkt_differences *d);

/* Compares settings: lines "name=value". `was` is the checkpoint's text, `is` this run's. */
void vkt_compare_settings(const char *was, const char *is, vkt_differences *d);
/* Compares graphs: lines "op label member=value ..". */
void vkt_compare_graphs(const char *was, const char *is, vkt_differences *d);

#endif
