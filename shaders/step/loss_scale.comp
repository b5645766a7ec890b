// loss_scale.comp - adjusts the loss scale, after overflow.comp has checked the gradients. If more micro-batches of
// this step follow, the kernel does nothing.
// If the gradients are finite, the clock (abi/step.abi.h) gets the step number and the powers that step_advance.comp computed.
// After LOSS_SCALE_INTERVAL steps in sequence with finite gradients, the scale is doubled. If the gradients are not
// finite, the clock keeps its step number and powers, and the scale is halved. In this case the optimizer changes
// nothing, and the next step gets the same step number, with other samples. The scale stays in
// [LOSS_SCALE_MIN, LOSS_SCALE_MAX].
// To double or halve the scale, the kernel adds 1 to the exponent of the scale, or subtracts 1.
// The kernel writes only the clock. So the update and the report, which read the step state, can run beside this kernel.
// grid: one invocation.
// source: Micikevicius et al., Mixed Precision Training, ICLR 2018, section 3.2; PyTorch documentation of torch.amp.GradScaler.
// Deterministic: one invocation.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "abi/abi.h"
#include "abi/step.abi.h"
#include "abi/loss_scale.abi.h"
layout(local_size_x_id = 0) in;
layout(binding = LOSS_SCALE_CLOCK, std430) buffer Clock { uint clock[]; };
layout(binding = LOSS_SCALE_STEP, std430) readonly buffer Step { uint state[]; };
const uint DOUBLE = 1u << 23;

void main()
{
    if (gl_GlobalInvocationID.x != 0u) return;
    const uint scale = clock[CLOCK_SCALE];
    if ((state[STEP_HOLD] & HOLD_MICRO) != 0u) return;
    if (state[STEP_HOLD] != 0u) {
        clock[CLOCK_SCALE] = max(scale - DOUBLE, LOSS_SCALE_MIN);
        clock[CLOCK_GOOD] = 0u;
        clock[CLOCK_SKIPPED]++;
        return;
    }
    const uint good = clock[CLOCK_GOOD] + 1u;
    clock[CLOCK_SCALE] = good == LOSS_SCALE_INTERVAL ? min(scale + DOUBLE, LOSS_SCALE_MAX) : scale;
    clock[CLOCK_GOOD] = good == LOSS_SCALE_INTERVAL ? 0u : good;
    clock[CLOCK_T] = state[STEP_T];
    for (uint i = 0u; i < STEP_Q_WORDS; i++) clock[CLOCK_Q1 + i] = state[STEP_Q1 + i];
}
