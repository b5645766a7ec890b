/* graphics/frames.h - two frames in flight: the host prepares one while the device draws the other. */
#ifndef GRAPHICS_FRAMES_H
#define GRAPHICS_FRAMES_H

#include "graphics/device.h"

enum { FRAMES_IN_FLIGHT = 2 };

typedef struct frame {
    uint32_t slot; /* index of this frame in frames.slots */
    VkCommandPool pool;
    VkCommandBuffer cmd;
    VkFence done;
    VkSemaphore acquired; /* signalled when the device may draw on the window's image */
} frame;

typedef struct frames {
    const device *d;
    frame slots[FRAMES_IN_FLIGHT];
    uint64_t n; /* number of submitted frames */
} frames;

vkt_result frames_create(const device *d, frames *f);
void frames_destroy(frames *f); /* the device must be idle */

/* Gets the slot for a new frame. The frame before the previous frame used the same slot. If the device has not finished
 * that frame, the function waits for it. Then the function begins to record the slot's command buffer. */
vkt_result frames_begin(frames *f, frame **out);
/* Ends the recording and submits it. Writes of colour attachments wait for the semaphore `wait`. The semaphore `signal`
 * is signalled at the end. Both semaphores may be VK_NULL_HANDLE. */
vkt_result frames_submit(frames *f, const frame *now, VkSemaphore wait, VkSemaphore signal);

#endif
