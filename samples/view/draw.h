/* view/draw.h - what a frame shows: the target, the network, the panel below them. */
#ifndef VIEW_DRAW_H
#define VIEW_DRAW_H

#include "view/frames.h"
#include "view/picture.h"
#include "view/shaders/network.h"
#include "vktrain/ops.h"

typedef struct rect {
    uint32_t x, y, width, height;
} rect;

/* Where things are in a frame. */
typedef struct arrangement {
    rect target, network, panel;
} arrangement;
/* Pictures as large as they fit, beside each other, in their shape. */
arrangement arrange(VkExtent2D frame, const picture *p);
/* The frame in which pictures have their own size, but at least one that the panel wants. */
VkExtent2D natural_frame(const picture *p);

/* Where a frame is drawn. */
typedef struct canvas {
    VkImage image;
    VkImageView view;
    VkExtent2D extent;
    bool window; /* it is presented afterwards */
} canvas;

typedef struct artist {
    const device *d;
    const picture *p;
    picture_image panel;
    buffer upload[FRAMES_IN_FLIGHT]; /* of the panel */
    buffer levels;                   /* of the hash grid */
    VkSampler sampler;
    VkDescriptorSetLayout set_layout;
    VkDescriptorPool pool;
    VkDescriptorSet set;
    VkPipelineLayout layout;
    VkPipeline draws_target, draws_panel, draws_network;
} artist;

/* What it draws. Lent: all of it outlives the artist. */
typedef struct artist_params {
    const device *d;
    const picture *target;
    const picture_image *texture;                /* the same on the device */
    VkFormat format;                             /* of every canvas */
    vkt_hash_grid_level levels[VIEW_LEVELS];     /* of the network */
    vkt_vk_buffer parameters[VIEW_N_PARAMETERS]; /* as network.frag has them */
} artist_params;
/* Destroy it in any case. */
vkt_result artist_create(const artist_params *p, artist *a);
void artist_destroy(artist *a); /* the device is idle */
/* A panel that is so wide. The device is idle. */
vkt_result artist_set_width(artist *a, uint32_t width);
/* Records a frame; upload[slot] holds its panel. */
void artist_record(artist *a, const frame *f, const canvas *to);
/* After that: into `copy` as well, extent.width * extent.height * 4 bytes, if it is not NULL; and a window's image as
 * its presentation wants it. */
void artist_record_end(artist *a, const frame *f, const canvas *c, const buffer *copy);

/* view/pipelines.c */
vkt_result artist_make_pipelines(artist *a, VkFormat format);

#endif
