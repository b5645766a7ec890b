// wave_dx.comp - the gradient of wave.comp:  dx = dy (sin(a x) + a x cos(a x)),  da = dy x^2 cos(a x).
// Planted faults: FACTOR scales dx. The last MISSING elements of da are not written. STRAY elements are written behind da.
#version 450
#ifndef FACTOR
#define FACTOR 1.0
#endif
#ifndef MISSING
#define MISSING 0
#endif
#ifndef STRAY
#define STRAY 0
#endif
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint n; } pc;
layout(binding = 1) readonly buffer X { float x[]; };
layout(binding = 4) readonly buffer A { float a[]; };
layout(binding = 0) readonly buffer DY { float dy[]; };
layout(binding = 7) writeonly buffer DX { float dx[]; };
layout(binding = 2) writeonly buffer DA { float da[]; };

void main()
{
    const uint i = gl_GlobalInvocationID.x;
    if (i < pc.n) dx[i] = FACTOR * dy[i] * (sin(a[i] * x[i]) + a[i] * x[i] * cos(a[i] * x[i]));
    if (i + MISSING < pc.n) da[i] = dy[i] * x[i] * x[i] * cos(a[i] * x[i]);
    if (i < STRAY) da[pc.n + i] = 0.0;
}
