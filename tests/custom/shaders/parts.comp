// parts.comp - three outputs: squares x^2, signs (x > 0, as uint) and triples 3 x. With GRADIENT, the shader computes
// dx = 2 x ds + 3 dt instead, where ds and dt are the gradients of squares and triples.
#version 450
layout(local_size_x = 16) in;
layout(push_constant) uniform Push { uint n; } pc;
layout(binding = 0) readonly buffer X { float x[]; };
#if GRADIENT
layout(binding = 1) readonly buffer DS { float ds[]; };
layout(binding = 2) readonly buffer DT { float dt[]; };
layout(binding = 3) writeonly buffer DX { float dx[]; };
#else
layout(binding = 1) writeonly buffer S { float squares[]; };
layout(binding = 2) writeonly buffer P { uint signs[]; };
layout(binding = 3) writeonly buffer T { float triples[]; };
#endif

void main()
{
    const uint i = gl_GlobalInvocationID.x;
    if (i >= pc.n) return;
#if GRADIENT
    dx[i] = 2.0 * x[i] * ds[i] + 3.0 * dt[i];
#else
    squares[i] = x[i] * x[i];
    signs[i] = uint(x[i] > 0.0);
    triples[i] = 3.0 * x[i];
#endif
}
