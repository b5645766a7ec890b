/* nrc/pictures.h - the pictures of the scene, and the descriptor set with which all shaders of the sample reach them.
 */
#ifndef NRC_PICTURES_H
#define NRC_PICTURES_H

#include "graphics/frames.h"
#include "nrc/shaders/scene.h"
#include "vktrain/ops.h"

typedef struct pictures {
    const device *d;
    VkExtent2D extent;
    gpu_image picture[NRC_PICTURES]; /* four floats a pixel; layout GENERAL; index: NRC_POSITION and so on */
    buffer levels;                   /* levels of the hash grid */
    VkDescriptorSetLayout set_layout;
    VkDescriptorPool pool;
    VkDescriptorSet set;
    VkPipelineLayout layout;
} pictures;

/* Creates the pictures in the layout GENERAL, and the set without its buffers. Waits for the device. Destroy *p in any
 * case. */
vkt_result pictures_create(const device *d, frames *f, VkExtent2D extent, pictures *p);
/* Puts the hash grid's levels and the buffer of all parameters into the set. */
vkt_result pictures_bind_network(pictures *p, const vkt_hash_grid_level levels[NRC_LEVELS], vkt_vk_buffer parameters);
void pictures_destroy(pictures *p); /* the device must be idle */

/* Records a barrier. Writes of the compute stage, also the library's, become visible to the fragment and compute
 * stages, and their reads are finished before later writes. */
void pictures_barrier(const pictures *p, VkCommandBuffer cmd);

#endif
