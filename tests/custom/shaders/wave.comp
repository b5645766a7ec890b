// wave.comp - y[i] = x[i] sin(a[i] x[i]), for n elements.
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint n; } pc;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer A { float a[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };

void main()
{
    const uint i = gl_GlobalInvocationID.x;
    if (i < pc.n) y[i] = x[i] * sin(a[i] * x[i]);
}
