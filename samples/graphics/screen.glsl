// screen.glsl - converts a colour for the render target. The colour is already encoded as sRGB. If the target's format
// encodes colours too (ENCODES), to_screen decodes the colour first.
layout(constant_id = 0) const bool ENCODES = false;

vec4 to_screen(vec3 c)
{
    const vec3 linear = mix(c / 12.92, pow((c + 0.055) / 1.055, vec3(2.4)), greaterThan(c, vec3(0.04045)));
    return vec4(ENCODES ? linear : c, 1);
}
