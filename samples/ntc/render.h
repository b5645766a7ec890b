/* ntc/render.h - draws a texture of a set: the original, the texture that the fragment shader decodes, or the error. */
#ifndef NTC_RENDER_H
#define NTC_RENDER_H

#include "graphics/canvas.h"
#include "ntc/set.h"
#include "ntc/shaders/ntc.h"
#include "vktrain/vulkan.h"

/* The latents and weights of a set, as floats in a buffer of the device. Float 0 is at buffer.offset_bytes. */
typedef struct parameters {
    vkt_vk_buffer buffer;
    uint32_t grids[NTC_MAX_GRIDS];                 /* index of the first float of each grid */
    uint32_t weight[NTC_LAYERS], bias[NTC_LAYERS]; /* index of the first float of each layer's weight and bias */
} parameters;

typedef struct renderer {
    const device *d;
    buffer texels, facts;
    VkDescriptorSetLayout set_layout;
    VkDescriptorPool pool;
    VkDescriptorSet set;
    VkPipelineLayout layout;
    VkPipeline draws;
} renderer;

/* Copies a set's latents and weights to a buffer of the device. Destroy the buffer also after an error. */
vkt_result parameters_upload(const device *d, const ntc_set *s, buffer *to, parameters *p);

/* `original` has the texels to compare with, at index (y * width + x) * channels + c. Destroy *r also after an
 * error. */
vkt_result renderer_create(const device *d, const ntc_set *s, const uint8_t *original, const parameters *p,
                           VkFormat format, renderer *r);
void renderer_destroy(renderer *r); /* the device must be idle */
/* Records the drawing of texture i. `view` is NTC_VIEW_ORIGINAL, NTC_VIEW_DECODED or NTC_VIEW_ERROR. */
void renderer_draw(const renderer *r, VkCommandBuffer cmd, const ntc_set *s, uint32_t view, uint32_t i, rect to);

#endif
