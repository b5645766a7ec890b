// shift.comp - dst[i + shift] = src[i] + 1 for the 64 invocations of one group; the host chooses what is wrong with it.
#version 460
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint shift; };
layout(binding = 0) readonly buffer Src { uint src[]; };
layout(binding = 1) writeonly buffer Dst { uint dst[]; };
void main()
{
    dst[gl_LocalInvocationID.x + shift] = src[gl_LocalInvocationID.x] + 1;
}
