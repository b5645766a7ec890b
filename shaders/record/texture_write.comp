// texture_write.comp - copies an array to an image. Channels that the array lacks are 0, and a missing alpha is 1.
// grid: x over pixels with a stride of all lanes.
// Deterministic: a copy.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/texture.abi.h"
layout(local_size_x_id = 0) in;
layout(binding = TEXTURE_IMAGE, FORMAT) writeonly uniform image2D image;
layout(binding = TEXTURE_ARRAY, std430) readonly buffer Array { float array[]; };

void main()
{
    for (uint i = gl_GlobalInvocationID.x; i < pc.pixels; i += pc.lanes) {
        vec4 v = vec4(0.0, 0.0, 0.0, 1.0);
        for (uint c = 0u; c < pc.channels; c++) v[c] = array[i * pc.channels + c];
        imageStore(image, ivec2(i % pc.width, i / pc.width), v);
    }
}
