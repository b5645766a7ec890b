/* nrc/render.h - traces paths into the images, and draws what the images or the network show. */
#ifndef NRC_RENDER_H
#define NRC_RENDER_H

#include "graphics/canvas.h"
#include "nrc/gbuffer.h"

/* The light that a rectangle shows: of one frame, of the library's inference, of many samples, or of the network that
 * the fragment shader evaluates. */
typedef enum render_view { RENDER_LIGHT, RENDER_INFERRED, RENDER_REFERENCE, RENDER_NETWORK, RENDER_VIEWS } render_view;

/* The first float of each parameter, counted in the bound buffer: the table of the hash grid, then weight and bias of
 * each layer. Push constants of network.frag. */
typedef struct network_at {
    uint32_t table, parameter[6];
} network_at;

typedef struct renderer {
    const gbuffer *p;
    network_at at;
    VkPipeline traces, draws[RENDER_VIEWS];
} renderer;

/* Creates a renderer for canvases of one format. *p must outlive it. Destroy it in any case. */
vkt_result renderer_create(const gbuffer *p, const network_at *at, VkFormat format, renderer *r);
void renderer_destroy(renderer *r); /* the device must be idle */

/* Records one path for each pixel, and the barriers before and after these paths. The camera is where it is in frame
 * number `camera`. `number` and `seed` set the random numbers. */
void renderer_trace(const renderer *r, VkCommandBuffer cmd, uint64_t camera, uint64_t number, uint64_t seed);
/* Records part number `part` of the reference: `samples` paths for each pixel. `part` is below `parts`. After the last
 * part the reference is complete. */
void renderer_trace_reference(const renderer *r, VkCommandBuffer cmd, uint64_t camera, uint32_t samples, uint32_t part,
                              uint32_t parts);
/* Records the drawing of a view, between canvas_begin and vkCmdEndRendering. */
void renderer_draw(const renderer *r, VkCommandBuffer cmd, render_view view, rect at);

#endif
