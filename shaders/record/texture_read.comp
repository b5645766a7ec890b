// texture_read.comp - copies a rectangle of an image to an array of floats: the first `channels` channels of each pixel.
// With neither FORMAT nor SAMPLED, the shader names no format, and the format of the image needs the feature
// VK_FORMAT_FEATURE_2_STORAGE_READ_WITHOUT_FORMAT_BIT.
// grid: x over pixels with a stride of all lanes.
// Deterministic: a copy.
#version 460
#extension GL_GOOGLE_include_directive : require
#if defined SAMPLED
#extension GL_EXT_samplerless_texture_functions : require
#elif !defined FORMAT
#extension GL_EXT_shader_image_load_formatted : require
#endif
#include "abi/abi.h"
#include "abi/texture.abi.h"
layout(local_size_x_id = 0) in;
#if defined SAMPLED
layout(binding = TEXTURE_IMAGE) uniform texture2D image;
#elif defined FORMAT
layout(binding = TEXTURE_IMAGE, FORMAT) readonly uniform image2D image;
#else
layout(binding = TEXTURE_IMAGE) readonly uniform image2D image;
#endif
layout(binding = TEXTURE_ARRAY, std430) writeonly buffer Array { float array[]; };

vec4 pixel(ivec2 at)
{
#ifdef SAMPLED
    return texelFetch(image, at, 0);
#else
    return imageLoad(image, at);
#endif
}

void main()
{
    for (uint k = gl_GlobalInvocationID.x; k < pc.pixels; k += pc.lanes) {
        const uint i = pc.first + k;
        const vec4 v = pixel(ivec2(pc.left + i % pc.width, pc.top + i / pc.width));
        for (uint c = 0u; c < pc.channels; c++) array[i * pc.channels + c] = v[c];
    }
}
