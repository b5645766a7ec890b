// light.frag - shows the light of this frame, the light that the library's inference computes, or the mean of many
// paths.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "show.glsl"
layout(binding = NRC_LIGHT, rgba32f) uniform readonly image2D light_image;
layout(binding = NRC_INFERRED, rgba32f) uniform readonly image2D inferred_image;
layout(binding = NRC_REFERENCE, rgba32f) uniform readonly image2D reference_image;
layout(constant_id = 1) const uint WHICH = NRC_LIGHT;

void main()
{
    const ivec2 p = shown_pixel();
    show(p, (WHICH == NRC_LIGHT ? imageLoad(light_image, p) :
             WHICH == NRC_INFERRED ? imageLoad(inferred_image, p) : imageLoad(reference_image, p)).rgb);
}
