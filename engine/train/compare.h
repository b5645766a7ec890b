/* train/compare.h - compares two texts of settings or two texts of graphs, and reports the differences in words.
 * identity.h describes the form of both kinds of text. */
#ifndef VKT_COMPARE_H
#define VKT_COMPARE_H

#include "base/base.h"

/* A list of differences, for instance "batch: checkpoint 32, this run 16; ..". The text has only the first five
 * differences. {.text.h = h} is an empty list. */
typedef struct vkt_differences {
    vkt_text text;
    uint32_t n;           /* number of all differences; vkt_differences_text reduces it to 5 at most */
    const char *was, *is; /* names of the two texts. NULL: was = "checkpoint", is = "this run" */
} vkt_differences;

void vkt_differences_add(vkt_differences *d, const char *fmt, ...) VKT_PRINTF(2, 3);
/* Returns the text of the list: the first five differences, and the number of the rest ("; and 3 more"). The text is
 * valid until the next call on d. Returns "" if memory ran out. */
const char *vkt_differences_text(vkt_differences *d);

/* Compares settings, which are lines "name=value". d->was is the name of the text `was`, and d->is the name of the text
 * `is`. */
void vkt_compare_settings(const char *was, const char *is, vkt_differences *d);
/* Compares graphs. A graph has a line "op label member=value .." for each node. */
void vkt_compare_graphs(const char *was, const char *is, vkt_differences *d);

#endif
