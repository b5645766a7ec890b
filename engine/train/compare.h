/* train/compare.h - where two texts of identity.h differ, in words. */
#ifndef VKT_COMPARE_H
#define VKT_COMPARE_H

#include "base/base.h"

/* "batch: checkpoint 32, this run 16; ..": the first few. {.text.h = h} is empty. */
typedef struct vkt_differences {
    vkt_text text;
    uint32_t n; /* all of them */
} vkt_differences;

void vkt_differences_add(vkt_differences *d, const char *fmt, ...) VKT_PRINTF(2, 3);
/* The differences, and how many more there are. Valid until the next call on d; "" where memory ran out. */
const char *vkt_differences_text(vkt_differences *d);

/* `was` is the checkpoint's text, `is` this run's: lines "name=value". */
void vkt_compare_settings(const char *was, const char *is, vkt_differences *d);
/* Lines "op label member=value ..". */
void vkt_compare_graphs(const char *was, const char *is, vkt_differences *d);

#endif
