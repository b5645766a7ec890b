/* graphics/canvas.h - draws rectangles on the image of a window or on another image, and copies the image to a PNG
 * file. */
#ifndef GRAPHICS_CANVAS_H
#define GRAPHICS_CANVAS_H

#include "graphics/frames.h"

typedef struct rect {
    uint32_t x, y, width, height;
} rect;

/* The image to draw on. */
typedef struct canvas {
    VkImage image;
    VkImageView view;
    VkExtent2D extent;
    VkFormat format;
    bool window; /* the image is presented afterwards */
} canvas;

/* Creates an R8G8B8A8_UNORM image, to draw on without a window. Destroy *out also after an error. */
vkt_result sheet_create(const device *d, VkExtent2D extent, gpu_image *out);
canvas canvas_of_sheet(const gpu_image *sheet);

/* Record a drawing: canvas_begin, then canvas_draw for each rectangle, then vkCmdEndRendering, then canvas_end. The
 * image's old content is lost. `copy` of canvas_end gets a copy of the image: extent.width * extent.height * 4 bytes
 * (NULL: no copy). */
void canvas_begin(const device *d, VkCommandBuffer cmd, const canvas *to);
void canvas_draw(const device *d, VkCommandBuffer cmd, VkPipeline pipeline, rect r);
void canvas_end(const device *d, VkCommandBuffer cmd, const canvas *to, const buffer *copy);

/* Creates a buffer for the copy of a canvas. Destroy it also after an error. */
vkt_result canvas_copy_create(const device *d, const canvas *of, buffer *copy);
/* Writes a copy as a PNG file. The frame that makes the copy must be done. Changes the pixels of the copy to the order
 * R, G, B, A. */
vkt_result canvas_copy_write(const canvas *of, const buffer *copy, const char *path);

#endif
