/* nrc/app.h - draws a scene and trains on its light at the same time, in a window or without a screen. */
#ifndef NRC_APP_H
#define NRC_APP_H

#include "common/session.h"

typedef struct nrc_options {
    const char *screenshot; /* file of the last image; NULL: none */
    uint32_t headless;      /* number of frames of a run without a screen; 0: run in a window */
    uint32_t frames;        /* number of frames after which the window closes; 0: no limit */
    uint32_t width, height; /* size of a view (nrc/render.h), in pixels */
    uint32_t reference;     /* paths for each pixel of the reference image; only a run without a screen computes it */
    double budget_ms;       /* device time of training per frame */
    float lr;
    bool library; /* at first, the library evaluates the network for the window; false: the fragment shader does */
} nrc_options;

vkt_result nrc_run(session *s, const nrc_options *o);

#endif
