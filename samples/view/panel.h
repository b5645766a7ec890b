/* view/panel.h - draws curves, bars and text below the images, with cairo and in host memory. */
#ifndef VIEW_PANEL_H
#define VIEW_PANEL_H

#include "graphics/record.h"
#include "vktrain/core.h"

enum { PANEL_HEIGHT = 136 };

typedef struct panel_state {
    const char *device;
    uint64_t steps;
    const curve *loss; /* mean squared error of the steps */
    double psnr;       /* in dB, of the last steps */
    /* Times per frame.
     *   frames    the whole frame
     *   training  the training on the device, as expected from earlier measurements
     *   measured  the training on the device, as measured
     *   host      the calls that train: wall time on the host */
    const times *frames, *training, *measured, *host;
    double budget_ms; /* limit for the training in a frame; 0: no limit, the training runs whole steps */
    bool paused;
} panel_state;

/* Draws width x PANEL_HEIGHT pixels to `bgra`. Each pixel has four bytes: B, G, R and an unused byte. VKT_E_NOMEM. */
vkt_result panel_draw(const panel_state *s, uint32_t width, void *bgra);

#endif
