// step_advance.comp - first dispatch of a run: the slot of host words that belongs to it, and the optimizer's clock, become
// the step state that all other kernels read. So a recorded step can be replayed with no host write in between.
//   update: t += 1, beta^t = beta^(t-1) * beta in 0.64 fixed point; c = 1 - beta^t rounded once to f32.
//   scaled: the loss is scaled, and whether this step counts is known only when its gradients are.
// grid: one invocation.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/step_advance.abi.h"
#include "lib/fixed.glsl"
layout(local_size_x_id = 0) in;
layout(binding = ADVANCE_WORDS, std430) readonly buffer Words { uint words[]; };
layout(binding = ADVANCE_CLOCK, std430) buffer Clock { uint clock[]; };
layout(binding = ADVANCE_STEP, std430) buffer Step { uint state[]; };

void main()
{
    if (gl_GlobalInvocationID.x != 0u) return;
    const uint run = state[STEP_NEXT], slot = run % RING_SLOTS * RING_WORDS;
    uint t = clock[CLOCK_T];
    uvec2 q1 = uvec2(clock[CLOCK_Q1], clock[CLOCK_Q1 + 1]), q2 = uvec2(clock[CLOCK_Q2], clock[CLOCK_Q2 + 1]);
    if (pc.update != 0u) {
        t++;
        q1 = fixed_mul(q1, uvec2(pc.beta1_low, pc.beta1_high));
        q2 = fixed_mul(q2, uvec2(pc.beta2_low, pc.beta2_high));
        if (pc.scaled == 0u) {
            clock[CLOCK_T] = t;
            clock[CLOCK_Q1] = q1.x;
            clock[CLOCK_Q1 + 1] = q1.y;
            clock[CLOCK_Q2] = q2.x;
            clock[CLOCK_Q2 + 1] = q2.y;
        }
    }
    state[STEP_RUN] = run;
    state[STEP_NEXT] = run + 1u;
    state[STEP_T] = t;
    state[STEP_ROWS] = words[slot + RING_ROWS];
    state[STEP_FIRST] = words[slot + RING_FIRST];
    state[STEP_LR] = words[slot + RING_LR];
    state[STEP_KEY0] = clock[CLOCK_KEY0];
    state[STEP_KEY1] = clock[CLOCK_KEY1];
    state[STEP_C1] = floatBitsToUint(fixed_complement(q1));
    state[STEP_C2] = floatBitsToUint(fixed_complement(q2));
    state[STEP_FOUND] = 0u;
    state[STEP_SKIPPED] = clock[CLOCK_SKIPPED];
    state[STEP_Q1] = q1.x;
    state[STEP_Q1 + 1] = q1.y;
    state[STEP_Q2] = q2.x;
    state[STEP_Q2 + 1] = q2.y;
    state[STEP_SCALE] = pc.scaled != 0u ? clock[CLOCK_SCALE] : floatBitsToUint(1.0);
}
