// texture_write.comp - copies an array to a rectangle of an image. A channel that the array does not have becomes 0 (alpha: 1).
// Without FORMAT, the shader names no format, and the format of the image needs the feature
// VK_FORMAT_FEATURE_2_STORAGE_WRITE_WITHOUT_FORMAT_BIT.
// grid: x over pixels with a stride of all lanes.
// Deterministic: a copy. The device rounds the floats to the image's format.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/texture.abi.h"
layout(local_size_x_id = 0) in;
#ifdef FORMAT
layout(binding = TEXTURE_IMAGE, FORMAT) writeonly uniform image2D image;
#else
layout(binding = TEXTURE_IMAGE) writeonly uniform image2D image;
#endif
layout(binding = TEXTURE_ARRAY, std430) readonly buffer Array { float array[]; };

void main()
{
    for (uint k = gl_GlobalInvocationID.x; k < pc.pixels; k += pc.lanes) {
        const uint i = pc.first + k;
        vec4 v = vec4(0.0, 0.0, 0.0, 1.0);
        for (uint c = 0u; c < pc.channels; c++) v[c] = array[i * pc.channels + c];
        imageStore(image, ivec2(pc.left + i % pc.width, pc.top + i / pc.width), v);
    }
}
