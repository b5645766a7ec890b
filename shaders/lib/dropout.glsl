// dropout.glsl - the random numbers of a dropout (elementwise/dropout.comp), and the function that applies them. The includer
// has the push constants threshold, scale and salt, and defines DROPOUT_STEP, the binding of the step state.
#include "abi/step.abi.h"
#include "lib/philox.glsl"
layout(binding = DROPOUT_STEP, std430) readonly buffer Step { uint step[]; };

// read_once() sets these five variables before the loops of the kernel. Inside a loop, lavapipe compiles each read of
// step[] or pc to a loop over lanes.
uvec2 key;
uint draw, salt, threshold;
float scale;

void read_once()
{
    key = uvec2(step[STEP_KEY0], step[STEP_KEY1]);
    draw = step[STEP_DRAW], salt = pc.salt, threshold = pc.threshold, scale = pc.scale;
}

// Returns the random numbers of elements 4 * e4 .. 4 * e4 + 3.
uvec4 words(uint e4)
{
    return philox4x32(uvec4(e4, draw, salt, 3u), key);
}

// Returns the four elements of v after the dropout. w: their random numbers.
vec4 dropped(vec4 v, uvec4 w)
{
    return mix(vec4(0.0), v * scale, greaterThanEqual(w, uvec4(threshold)));
}
