// step_advance.comp - computes the step state of a run, which later kernels read, from the run's slot of host words and
// from the optimizer's clock (abi/step.abi.h). The clock advances on the device. So an application can submit a
// recorded step again without a host write in between.
//   In the last micro-batch of a step: t += 1, beta^t = beta^(t-1) * beta in 0.64 fixed point; c = 1 - beta^t, rounded to f32
//   once. NAdam: r = 0.96^momentum_decay, r^t = r^(t-1) * r in 0.64 fixed point, u_t = beta1 * (1 - r^t / 2). The product of
//   u_1 to u_t replaces beta1^t.
//   With a scaled loss, a step counts only if the gradients are finite. So this kernel does not store the new t and powers in
//   the clock. loss_scale.comp stores them, after overflow.comp has checked the gradients.
// grid: one invocation.
// Deterministic: one invocation.
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

void put_float(uint word, float v)
{
    state[word] = floatBitsToUint(v);
}

uvec2 advanced(uint word, uvec2 by)
{
    return fixed_mul(uvec2(clock[word], clock[word + 1u]), by);
}

void put_power(uint i, uvec2 q)
{
    state[STEP_Q1 + 2u * i] = q.x;
    state[STEP_Q1 + 2u * i + 1u] = q.y;
}

// Computes the number of the step that this run completes, and the coefficients that depend on it.
void advance_optimizer()
{
    const uvec2 beta1 = uvec2(pc.beta1_low, pc.beta1_high), decay = uvec2(pc.decay_low, pc.decay_high);
    const bool nadam = decay != uvec2(0);
    const uvec2 q2 = advanced(CLOCK_Q2, uvec2(pc.beta2_low, pc.beta2_high));
    const uvec2 q3 = nadam ? advanced(CLOCK_Q3, decay) : uvec2(0);
    const uvec2 u = nadam ? fixed_momentum(beta1, q3) : beta1, q1 = advanced(CLOCK_Q1, u);
    put_power(0u, q1);
    put_power(1u, q2);
    put_power(2u, q3);
    put_float(STEP_C1, fixed_complement(q1));
    put_float(STEP_C2, fixed_complement(q2));
    if (nadam) {
        const uvec2 next = fixed_momentum(beta1, fixed_mul(q3, decay));
        put_float(STEP_U_REST, fixed_complement(u));
        put_float(STEP_U_NEXT, fixed_complement(fixed_negate(next)));
        put_float(STEP_C_NEXT, fixed_complement(fixed_mul(q1, next)));
    }
    state[STEP_T] = clock[CLOCK_T] + 1u;
    if (pc.scaled != 0u) return;
    clock[CLOCK_T] = state[STEP_T];
    for (uint i = 0u; i < STEP_Q_WORDS; i++) clock[CLOCK_Q1 + i] = state[STEP_Q1 + i];
}

void main()
{
    if (gl_GlobalInvocationID.x != 0u) return;
    const uint run = state[STEP_NEXT], recorded = words[RING_SLOTS * RING_WORDS + RING_RECORDED];
    const uint index = recorded != 0u ? RING_SLOTS : run % RING_SLOTS, slot = index * RING_WORDS;
    const uint weight = words[slot + RING_WEIGHT], t = clock[CLOCK_T];
    const uint micro = clock[CLOCK_MICRO] + 1u, weights = clock[CLOCK_ROWS] + weight;
    const bool last = micro >= pc.micro;
    state[STEP_SLOT] = index;
    state[STEP_NEXT] = recorded != 0u ? run : run + 1u;
    state[STEP_ROWS] = words[slot + RING_ROWS];
    state[STEP_FIRST] = words[slot + RING_FIRST];
    state[STEP_LR] = words[slot + RING_LR];
    state[STEP_KEY0] = clock[CLOCK_KEY0];
    state[STEP_KEY1] = clock[CLOCK_KEY1];
    state[STEP_SKIPPED] = clock[CLOCK_SKIPPED];
    state[STEP_SCALE] = pc.scaled != 0u ? clock[CLOCK_SCALE] : floatBitsToUint(1.0);
    state[STEP_T] = t;
    state[STEP_DRAW] = pc.draws != 0u ? t * pc.draws + words[slot + RING_DRAW]
                                      : t * max(pc.micro, 1u) + (pc.micro != 0u ? micro : 0u);
    state[STEP_SHARD] = words[slot + RING_SHARD];
    state[STEP_PART] = words[slot + RING_PART];
    state[STEP_MICRO] = micro;
    state[STEP_HOLD] = last ? 0u : HOLD_MICRO;
    state[STEP_NORM] = 0u;
    state[STEP_TERMS] = weight;
    put_float(STEP_WEIGHT, float(weight));
    const float unscale = uintBitsToFloat(0x7f000000u - state[STEP_SCALE]); // 1 / scale: the scale is a power of two
    put_float(STEP_FACTOR, pc.micro > 1u || pc.sums != 0u ? unscale / float(max(weights, 1u)) : unscale);
    if (pc.micro == 0u) return;
    clock[CLOCK_MICRO] = last ? 0u : micro;
    clock[CLOCK_ROWS] = last ? 0u : weights;
    if (last) advance_optimizer();
}
