/* view/draw.h - draws a frame: the target image, the network's image, and below them the panel with curves and text
 * (panel.h). */
#ifndef VIEW_DRAW_H
#define VIEW_DRAW_H

#include "graphics/canvas.h"
#include "graphics/rgba_image.h"
#include "view/shaders/network.h"
#include "vktrain/ops.h"

/* The positions of the parts of a frame. */
typedef struct arrangement {
    rect target, network, panel;
} arrangement;
/* Puts the target `p` and the network's image side by side above the panel. Both images are as large as possible and
 * keep the proportions of the target. */
arrangement arrange(VkExtent2D frame, const rgba_image *p);
/* Returns the size of a frame that shows both images in the target's size. The frame is at least as wide as the panel
 * needs. */
VkExtent2D natural_frame(const rgba_image *p);

typedef struct renderer {
    const device *d;
    const rgba_image *p;
    gpu_image panel;
    buffer upload[FRAMES_IN_FLIGHT]; /* pixels of the panel, one buffer for each frame in flight */
    buffer levels;                   /* the level table: see VIEW_LEVEL_TABLE in network.h */
    VkSampler sampler;
    VkDescriptorSetLayout set_layout;
    VkDescriptorPool pool;
    VkDescriptorSet set;
    VkPipelineLayout layout;
    VkPipeline draws_target, draws_panel, draws_network;
} renderer;

/* Parameters of renderer_create. The renderer does not own these objects, and they must outlive the renderer. */
typedef struct renderer_params {
    const device *d;
    const rgba_image *target;
    const gpu_image *texture;                    /* the target on the device */
    VkFormat format;                             /* the format of every canvas */
    vkt_hash_grid_level levels[VIEW_LEVELS];     /* levels of the network's grid */
    vkt_vk_buffer parameters[VIEW_N_PARAMETERS]; /* the grid's table, then weight and bias of each layer */
} renderer_params;
/* Creates a renderer. Call renderer_set_width before the first frame. Destroy the renderer also after an error. */
vkt_result renderer_create(const renderer_params *p, renderer *a);
void renderer_destroy(renderer *a); /* the device must be idle */
/* Sets the width of the panel. The device must be idle. */
vkt_result renderer_set_width(renderer *a, uint32_t width);
/* Records a frame. The caller calls canvas_end afterwards. a->upload[f->slot] must have the pixels of this frame's
 * panel. */
void renderer_record(renderer *a, const frame *f, const canvas *to);

#endif
