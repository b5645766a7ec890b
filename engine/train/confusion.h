/* train/confusion.h - what confusion.c and confusion_figure.c share. */
#ifndef VKT_CONFUSION_H
#define VKT_CONFUSION_H

#include <stdio.h>

#include "base/base.h"

#define VKT_CONFUSION_NAME_ROOM 64

/* Returns the name of class k. If the class has no name, writes its number to `room`, and returns `room`. */
static inline const char *vkt_confusion_name(const char *const *names, uint32_t k, char room[VKT_CONFUSION_NAME_ROOM])
{
    snprintf(room, VKT_CONFUSION_NAME_ROOM, "%u", k);
    return names && names[k] ? names[k] : room;
}

/* Draws the matrix to an .svg or .png file (vkt_confusion_write). */
vkt_result vkt_confusion_draw(const vkt_host *h, const uint64_t *counts, uint32_t classes, const char *const *names,
                              const char *title, const char *path);

#endif
