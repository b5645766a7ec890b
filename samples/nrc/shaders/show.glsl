// show.glsl - the functions that all fragment shaders use. One finds the pixel that a fragment shows. The other one
// computes the fragment's colour from the light of this pixel.
#include "scene.h"
#include "screen.glsl"
layout(binding = NRC_POSITION, rgba32f) uniform readonly image2D position_image;
layout(binding = NRC_ALBEDO, rgba32f) uniform readonly image2D albedo_image;
layout(location = 0) in vec2 at;
layout(location = 0) out vec4 colour;

ivec2 shown_pixel()
{
    const ivec2 size = imageSize(position_image);
    return clamp(ivec2(at * vec2(size)), ivec2(0), size - 1);
}

void show(ivec2 pixel, vec3 light)
{
    const bool lamp = imageLoad(position_image, pixel).w == 0.0;
    const vec3 seen = clamp(imageLoad(albedo_image, pixel).rgb * (lamp ? vec3(1.0) : max(light, 0.0)), 0.0, 1.0);
    const vec3 encoded = mix(12.92 * seen, 1.055 * pow(seen, vec3(1.0 / 2.4)) - 0.055, greaterThan(seen, vec3(0.0031308)));
    colour = to_screen(encoded);
}
