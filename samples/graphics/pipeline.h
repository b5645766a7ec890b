/* graphics/pipeline.h - makes pipelines that draw a rectangle with a fragment shader, and pipelines that compute. */
#ifndef GRAPHICS_PIPELINE_H
#define GRAPHICS_PIPELINE_H

#include "graphics/device.h"

/* A compiled shader. */
typedef struct shader_code {
    const uint32_t *words;
    size_t bytes;
} shader_code;
/* Makes a shader_code from the array vkt_spv_<name> of a program's shaders.h. */
#define SHADER_CODE(name) ((shader_code){ vkt_spv_##name, sizeof vkt_spv_##name })

enum { DRAWING_CONSTANTS = 4 };
typedef struct drawing_params {
    const device *d;
    VkPipelineLayout layout;
    VkFormat format; /* the format of the image to draw on */
    shader_code vertex, fragment;
    uint32_t constants[DRAWING_CONSTANTS]; /* specialization constants 0 to 3 of the fragment shader */
} drawing_params;
/* Makes a pipeline that draws triangles without vertex buffers. Viewport and scissor are dynamic. Owner: the caller. */
vkt_result drawing_create(const drawing_params *p, VkPipeline *out);
/* Makes a compute pipeline. Owner: the caller. */
vkt_result compute_create(const device *d, shader_code shader, VkPipelineLayout layout, VkPipeline *out);

/* Returns whether the device encodes colours as sRGB when it writes to an image of this format. The format must have
 * four channels. */
bool format_encodes(VkFormat f);

#endif
