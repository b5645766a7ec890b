// shift.comp - computes dst[i + shift] = src[i] + 1 in one work group of 64 lanes. The host plants the faults: a wrong
// shift, or a missing barrier.
#version 460
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint shift; };
layout(binding = 0) readonly buffer Src { uint src[]; };
layout(binding = 1) writeonly buffer Dst { uint dst[]; };
void main()
{
    dst[gl_LocalInvocationID.x + shift] = src[gl_LocalInvocationID.x] + 1;
}
