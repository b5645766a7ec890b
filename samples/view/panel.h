/* view/panel.h - curves, bars and text under the pictures, drawn by cairo into host memory. */
#ifndef VIEW_PANEL_H
#define VIEW_PANEL_H

#include "view/record.h"
#include "vktrain/core.h"

enum { PANEL_HEIGHT = 136 };

typedef struct panel_state {
    const char *device;
    uint64_t steps;
    const curve *loss;                     /* mean squared error of each step */
    double psnr;                           /* in dB, lately */
    const times *frames, *training, *host; /* of each frame: all of it; training on the device; the calls of training */
    double budget_ms;                      /* 0: a whole step a frame */
    bool paused;
} panel_state;

/* width x PANEL_HEIGHT pixels B,G,R,A at `bgra`. VKT_E_NOMEM. */
vkt_result panel_draw(const panel_state *s, uint32_t width, void *bgra);

#endif
