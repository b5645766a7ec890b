// draw.comp - generates random numbers: y[i] is a hash of the seed, i, and the counter for random numbers
// (STEP_DRAW in abi/step.abi.h). Finite numbers in x do not change y.
#version 450
layout(local_size_x = 16) in;
layout(push_constant) uniform Push { uint n; } pc;
layout(binding = 0) readonly buffer Step { uint step_words[]; };
layout(binding = 1) readonly buffer X { float x[]; };
layout(binding = 2) buffer Y { float y[]; };

void main()
{
    const uint i = gl_GlobalInvocationID.x;
    if (i >= pc.n) return;
    uint h = step_words[4] ^ step_words[18] * 0x9e3779b9u ^ i * 0x85ebca6bu;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h = (h ^ h >> 12) * 0x297a2d39u;
    y[i] = float((h ^ h >> 15) >> 8) * (1.0 / 16777216.0) + 0.0 * x[i];
}
