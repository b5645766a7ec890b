/* view/app.h - the sample: a picture is learned, in a window or without a screen. */
#ifndef VIEW_APP_H
#define VIEW_APP_H

#include "common/session.h"

typedef struct view_options {
    const char *image;      /* NULL: the sample's own */
    const char *screenshot; /* of the last frame; NULL: none */
    const char *save, *load;
    const char *keys;    /* pressed by themselves, one a frame; '.': none. NULL: none */
    uint32_t headless;   /* steps without a screen; 0: in a window */
    uint32_t frames;     /* after which the window closes; 0: when the user wants it */
    uint32_t batch;      /* pixels of a step */
    uint32_t side;       /* of the sample's own picture; the longest one of a file's */
    uint64_t max_pixels; /* of a file; 0: what is usual */
    double budget_ms;    /* of a frame */
    float lr;
    bool recorded; /* training goes into the frame's own command buffer */
} view_options;

vkt_result view_run(session *s, const view_options *o);

#endif
