/* nrc/render.h - traces paths, and stores their results in the images of gbuffer.h. Draws the light that is in one of
 * these images, or the light that the network computes. */
#ifndef NRC_RENDER_H
#define NRC_RENDER_H

#include "graphics/canvas.h"
#include "nrc/gbuffer.h"

/* A view shows the scene with light from one of four sources. RENDER_LIGHT: the random paths of one frame.
 * RENDER_INFERRED: the library's inference. RENDER_REFERENCE: the mean of many paths. RENDER_NETWORK: the network,
 * which the fragment shader evaluates. */
typedef enum render_view { RENDER_LIGHT, RENDER_INFERRED, RENDER_REFERENCE, RENDER_NETWORK, RENDER_VIEWS } render_view;

/* The push constants of network.frag: where the parameters begin in the buffer NRC_PARAMETERS. Each number is the index
 * of a parameter's first float. `table` is for the table of the hash grid, parameter[2 * k] for the weight of layer k,
 * and parameter[2 * k + 1] for the bias of layer k. */
typedef struct network_at {
    uint32_t table, parameter[6];
} network_at;

typedef struct renderer {
    const gbuffer *p;
    network_at at;
    VkPipeline traces, draws[RENDER_VIEWS];
} renderer;

/* Creates a renderer for canvases of one format. *p must outlive the renderer. Destroy the renderer also
 * after an error. */
vkt_result renderer_create(const gbuffer *p, const network_at *at, VkFormat format, renderer *r);
void renderer_destroy(renderer *r); /* the device must be idle */

/* Records one path for each pixel, and the barriers before and after these paths. The camera has the position that it
 * has in frame number `camera`. The random numbers depend on `seed` and `number`. `number` is how many frames were
 * traced before. */
void renderer_trace(const renderer *r, VkCommandBuffer cmd, uint64_t camera, uint64_t number, uint64_t seed);
/* Records part number `part` of the reference: `samples` paths for each pixel. `part` is below `parts`. After the last
 * part the reference is complete. */
void renderer_trace_reference(const renderer *r, VkCommandBuffer cmd, uint64_t camera, uint32_t samples, uint32_t part,
                              uint32_t parts);
/* Records the drawing of a view, between canvas_begin and vkCmdEndRendering. */
void renderer_draw(const renderer *r, VkCommandBuffer cmd, render_view view, rect at);

#endif
