/* view/frames.h - two frames in flight: while the device draws one, the host prepares the next. */
#ifndef VIEW_FRAMES_H
#define VIEW_FRAMES_H

#include "view/device.h"

enum { FRAMES_IN_FLIGHT = 2 };

typedef struct frame {
    uint32_t slot; /* below FRAMES_IN_FLIGHT */
    VkCommandPool pool;
    VkCommandBuffer cmd;
    VkFence done;
    VkSemaphore acquired; /* the window's image may be drawn */
} frame;

typedef struct frames {
    const device *d;
    frame slots[FRAMES_IN_FLIGHT];
    uint64_t n; /* submitted so far */
} frames;

vkt_result frames_create(const device *d, frames *f);
void frames_destroy(frames *f); /* the device is idle */

/* Waits until the frame before the last one is done; its slot, with a command buffer that is being recorded. */
vkt_result frames_begin(frames *f, frame **out);
/* Ends the recording and submits it. Both may be null: a semaphore to wait for before colours are written, one to
 * signal. */
vkt_result frames_submit(frames *f, const frame *now, VkSemaphore wait, VkSemaphore signal);

#endif
