// relu.comp - y = max(x, 0), in a loop with strides. GRADIENT: dx = dy where y > 0, else 0.
#version 450
#ifndef LANES
#define LANES 32
#endif
layout(local_size_x = LANES) in;
layout(push_constant) uniform Push { uint n; } pc;
#if GRADIENT
layout(binding = 0) readonly buffer Y { float y[]; };
layout(binding = 1) readonly buffer DY { float dy[]; };
layout(binding = 2) writeonly buffer DX { float dx[]; };
#else
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
#endif

void main()
{
    for (uint i = gl_GlobalInvocationID.x; i < pc.n; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
#if GRADIENT
        dx[i] = y[i] > 0.0 ? dy[i] : 0.0;
#else
        y[i] = max(x[i], 0.0);
#endif
    }
}
