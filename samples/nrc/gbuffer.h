/* nrc/gbuffer.h - the images of the scene, and the descriptor set by which all shaders of this program access these
 * images. */
#ifndef NRC_GBUFFER_H
#define NRC_GBUFFER_H

#include "graphics/frames.h"
#include "nrc/shaders/scene.h"
#include "vktrain/ops.h"

typedef struct gbuffer {
    const device *d;
    VkExtent2D extent;
    gpu_image image[NRC_IMAGES]; /* four floats a pixel; layout GENERAL; index: NRC_POSITION and so on */
    buffer levels;               /* levels of the hash grid */
    VkDescriptorSetLayout set_layout;
    VkDescriptorPool pool;
    VkDescriptorSet set;
    VkPipelineLayout layout;
} gbuffer;

/* Creates the images in the layout GENERAL, and the descriptor set, still without its buffers. Waits for the device.
 * Destroy *p also after an error. */
vkt_result gbuffer_create(const device *d, frames *f, VkExtent2D extent, gbuffer *p);
/* Adds the hash grid's levels and the buffer of all parameters to the descriptor set. */
vkt_result gbuffer_bind_network(gbuffer *p, const vkt_hash_grid_level levels[NRC_LEVELS], vkt_vk_buffer parameters);
void gbuffer_destroy(gbuffer *p); /* the device must be idle */

/* Records a barrier. Earlier writes of the compute stage, also those of the library, become visible to the fragment and
 * compute stages. Earlier reads of these two stages finish before later writes of the compute stage. */
void gbuffer_barrier(const gbuffer *p, VkCommandBuffer cmd);

#endif
