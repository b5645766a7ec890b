// vktrain/vktrain.glsl - the encodings of ops.h for shaders of an application: to be included, GLSL 4.60 without extensions.
#ifndef VKTRAIN_GLSL
#define VKTRAIN_GLSL

// The entry, of those of its level, for corner `c` of a hash grid's cells; level = (resolution, mask, ..) as vkt_hash_grid_level
// has it. Of two dimensions: c.z = 0. (Mueller et al. 2022, section 3 and equation 4.)
uint vkt_hash_grid_entry(uvec3 c, uvec4 level)
{
    const uint row = level.x + 1u;
    return level.y == 0u ? c.x + row * (c.y + row * c.z) : (c.x ^ c.y * 2654435761u ^ c.z * 805459861u) & level.y;
}

// sin(pi x) and cos(pi x), of x within half a quarter of a period of a multiple of 1/2 by their series: an ulp or two, and exact
// where x is a multiple of 1/2. Whole periods are taken off without rounding.
void vkt_sin_cos_pi(vec4 x, out vec4 sin_pi, out vec4 cos_pi)
{
    const vec4 t = x - 2.0 * round(0.5 * x), quarter = round(2.0 * t), r = t - 0.5 * quarter, u = r * r;
    const vec4 s = r * (3.14159265358979 + u * (-5.16771278004997 + u * (2.55016403987735 + u * (-0.599264529320792 +
                   u * 0.0821458866111282))));
    const vec4 c = 1.0 + u * (-4.93480220054468 + u * (4.05871212641677 + u * (-1.33526276885459 + u * (0.235330630358893 -
                   u * 0.0258068913900141))));
    const bvec4 odd = equal(abs(quarter), vec4(1.0)), back = equal(abs(quarter), vec4(2.0)), down = lessThan(quarter, vec4(-0.5));
    sin_pi = mix(s, c, odd);
    sin_pi = mix(sin_pi, -sin_pi, bvec4(uvec4(back) | uvec4(odd) & uvec4(down)));
    cos_pi = mix(c, -s, odd);
    cos_pi = mix(cos_pi, -cos_pi, bvec4(uvec4(back) | uvec4(odd) & uvec4(down)));
}
#endif
