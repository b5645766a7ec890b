/* view/app.h - trains a network on an image and draws both, in a window or without a screen. */
#ifndef VIEW_APP_H
#define VIEW_APP_H

#include "common/session.h"

typedef struct view_options {
    const char *image;      /* path of an image; NULL: the program's own image (drawn.h) */
    const char *screenshot; /* file of the last frame; NULL: none */
    const char *save, *load;
    const char *keys;    /* simulated keys, one per frame; '.': no key. NULL: none */
    uint32_t headless;   /* number of steps of a run without a screen; 0: run in a window */
    uint32_t frames;     /* number of frames after which the window closes; 0: no limit */
    uint32_t batch;      /* pixels of a step. If the image has fewer pixels, each step uses all of them */
    uint32_t side;       /* side of the program's own image; a file's image with a longer side is scaled down to
                          * `side` */
    uint64_t max_pixels; /* limit for the pixels of a file's image; 0: the default */
    double budget_ms;    /* device time of training per frame */
    float lr;
    bool recorded; /* training is recorded into the frame's command buffer */
} view_options;

vkt_result view_run(session *s, const view_options *o);

#endif
