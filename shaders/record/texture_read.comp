// texture_read.comp - copies the first `channels` channels of each pixel of an image to an array, as floats.
// grid: x over pixels with a stride of all lanes.
// Deterministic: a copy.
#version 460
#extension GL_GOOGLE_include_directive : require
#ifdef SAMPLED
#extension GL_EXT_samplerless_texture_functions : require
#endif
#include "abi/abi.h"
#include "abi/texture.abi.h"
layout(local_size_x_id = 0) in;
#ifdef SAMPLED
layout(binding = TEXTURE_IMAGE) uniform texture2D image;
#else
layout(binding = TEXTURE_IMAGE, FORMAT) readonly uniform image2D image;
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
    for (uint i = gl_GlobalInvocationID.x; i < pc.pixels; i += pc.lanes) {
        const vec4 v = pixel(ivec2(i % pc.width, i / pc.width));
        for (uint c = 0u; c < pc.channels; c++) array[i * pc.channels + c] = v[c];
    }
}
