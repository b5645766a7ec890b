// trace.comp - the path tracer. If the push constant `reference` is 0, the shader writes position, normal and albedo of
// the surface that each pixel shows, and the mean light of `samples` random paths. If `reference` is 1, the shader only
// updates the reference image: new light = keep * old light + scale * sum of the light of the `samples` paths. A pixel
// that shows the lamp has no paths: its sum and its mean light are 0.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "scene.h"
#include "scene.glsl"
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = NRC_POSITION, rgba32f) uniform writeonly image2D position_image;
layout(binding = NRC_NORMAL, rgba32f) uniform writeonly image2D normal_image;
layout(binding = NRC_ALBEDO, rgba32f) uniform writeonly image2D albedo_image;
layout(binding = NRC_LIGHT, rgba32f) uniform image2D light_image;
layout(binding = NRC_REFERENCE, rgba32f) uniform image2D reference_image;
layout(push_constant) uniform At {
    vec4 eye;    // the camera's position
    vec4 centre; // the point at which the camera looks
    uint seed, samples;
    float keep, scale; // used if `reference` is 1
    uint reference;    // 1: the shader writes only the reference image; 0: it writes position, normal, albedo and light
} at;

const uint BOUNCES = 6;
// AWAY: paths start at this distance from a surface, so that they do not hit this surface at once.
const float PI = 3.14159265359, AWAY = 1e-4;

uint state; // the state of the random number generator

// Returns the next random number, in [0,1). (The hash `pcg` of Jarzynski & Olano 2020, "Hash Functions for GPU Rendering".)
float random()
{
    state = state * 747796405u + 2891336453u;
    const uint word = (state >> (state >> 28) + 4u ^ state) * 277803737u;
    return float((word >> 22 ^ word) >> 8) / 16777216.0;
}

// Returns a random direction. The probability density of a direction is proportional to the cosine of the angle between
// this direction and the normal.
vec3 cosine_direction(vec3 normal)
{
    const float z = 2.0 * random() - 1.0, turn = 2.0 * PI * random(), r = sqrt(max(1.0 - z * z, 0.0));
    return normalize(normal * 1.0001 + vec3(r * cos(turn), r * sin(turn), z));
}

// Returns the light that a surface gets straight from the lamp, estimated from one random point of the lamp.
vec3 lamp_light(vec3 from, vec3 normal)
{
    const vec2 size = LAMP_TO - LAMP_FROM, point = LAMP_FROM + size * vec2(random(), random());
    const vec3 way = vec3(point.x, ROOM.y, point.y) - from;
    const float distance = length(way);
    const vec3 direction = way / distance;
    const float cosines = max(dot(normal, direction), 0.0) * max(direction.y, 0.0);
    if (cosines <= 0.0 || hit_object(from, direction).distance < distance) return vec3(0.0);
    return LAMP_EMISSION * (cosines * size.x * size.y / (distance * distance * PI));
}

// Returns the light of one random path that starts at a surface.
vec3 path_light(vec3 from, vec3 normal)
{
    vec3 sum = vec3(0.0), share = vec3(1.0);
    for (uint i = 0; i < BOUNCES; i++) {
        sum += share * lamp_light(from, normal);
        const vec3 direction = cosine_direction(normal);
        const Hit hit = hit_scene(from, direction);
        if (hit.lamp) break; // `sum` already has the lamp's light (lamp_light)
        share *= hit.albedo;
        normal = hit.normal;
        from += hit.distance * direction + AWAY * normal;
    }
    return sum;
}

void main()
{
    const uvec2 size = imageSize(light_image), pixel = gl_GlobalInvocationID.xy;
    if (any(greaterThanEqual(pixel, size))) return;
    const vec3 ahead = normalize(at.centre.xyz - at.eye.xyz), right = normalize(cross(vec3(0.0, 1.0, 0.0), ahead));
    const vec2 sight = (2.0 * (vec2(pixel) + 0.5) - vec2(size)) / float(size.y) * 0.72;
    const vec3 direction = normalize(ahead + sight.x * right - sight.y * cross(ahead, right));
    const Hit hit = hit_scene(at.eye.xyz, direction);
    const vec3 from = at.eye.xyz + hit.distance * direction + AWAY * hit.normal;
    const ivec2 to = ivec2(pixel);
    vec3 sum = vec3(0.0);
    state = (pixel.y * size.x + pixel.x) * 9781u + at.seed * 2654435769u;
    random();
    for (uint i = 0; i < at.samples && !hit.lamp; i++) sum += path_light(from, hit.normal);
    if (at.reference != 0u) {
        vec3 light = at.scale * sum;
        if (at.keep != 0.0) light += at.keep * imageLoad(reference_image, to).rgb;
        imageStore(reference_image, to, vec4(light, 1.0));
        return;
    }
    imageStore(position_image, to, vec4(from / ROOM, hit.lamp ? 0.0 : 1.0));
    imageStore(normal_image, to, vec4(hit.normal, 0.0));
    imageStore(albedo_image, to, vec4(hit.lamp ? LAMP_EMISSION : hit.albedo, 1.0));
    imageStore(light_image, to, vec4(sum / float(at.samples), 1.0));
}
