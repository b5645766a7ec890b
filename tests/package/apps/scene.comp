// scene.comp - draws one frame: smooth colours with noise, like the frame of a path tracer. renderer.c computes the same
// colours without noise.
#version 460
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, rgba16f) writeonly uniform image2D drawn;
layout(push_constant) uniform Frame { uint frame; float noise; };

// Returns a number in [0, 1) that looks random. (The hash is the finalizer of MurmurHash3.)
float random(uint i)
{
    i = (i ^ (i >> 16)) * 0x85ebca6bu;
    i = (i ^ (i >> 13)) * 0xc2b2ae35u;
    return float((i ^ (i >> 16)) >> 8) / 16777216.0;
}

void main()
{
    const ivec2 size = imageSize(drawn), at = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(at, size))) return;
    const vec2 p = (vec2(at) + 0.5) / vec2(size);
    const uint seed = 3u * ((frame * uint(size.y) + uint(at.y)) * uint(size.x) + uint(at.x));
    const vec3 smooth_colour = 0.5 + 0.4 * sin(vec3(6.0 * p.x, 5.0 * p.y, 4.0 * (p.x + p.y)));
    const vec3 uneven = vec3(random(seed), random(seed + 1u), random(seed + 2u)) - 0.5;
    imageStore(drawn, at, vec4(smooth_colour + noise * uneven, 1.0));
}
