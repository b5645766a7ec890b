// texture.frag - draws a texture: the target image, or the panel with curves and text (view/panel.h).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "screen.glsl"
layout(binding = 0) uniform sampler2D images[2];
layout(constant_id = 1) const uint WHICH = 0;
layout(location = 0) in vec2 at;
layout(location = 0) out vec4 colour;

void main()
{
    colour = to_screen(texture(images[WHICH], at).rgb);
}
