// update.glsl - what all optimizers share. With FACTOR, gradients are multiplied by the number STEP_FACTOR of the step state
// (abi/step.abi.h). With CLIP, they are clipped by value. The weight decay is applied. With GROUPS, each group of parameters
// has its own factor of the learning rate, and its own weight decay.
//   if (update_waits()) return;
//   const Rule rule = rule_of(i);                  for vec4 i of the range; skip the vec4 if rule.frozen
//   const vec4 g = gradient(i, p, rule.decay);     the formula's g; p is the parameter before this step
//   ... param_out[i] = decayed(p, rule) - ...
#include "lib/groups.glsl"
layout(constant_id = UPDATE_SPEC_FACTOR) const bool FACTOR = false;
layout(constant_id = UPDATE_SPEC_CLIP) const bool CLIP = false;
VKT_IN4(UPDATE_PARAM, param);
VKT_IN4(UPDATE_GRAD, grad);
layout(binding = UPDATE_STEP, std430) readonly buffer Step { uint step[]; };
VKT_F32_OUT4(UPDATE_PARAM_OUT, param_out);

// The next variables are set before the loops. Inside a loop, lavapipe compiles each read of a push constant or of the
// step state to a loop over the lanes.
float all_decay = pc.weight_decay, clip = pc.clip, decay_rate = uintBitsToFloat(step[STEP_LR]);
float unscale = FACTOR ? uintBitsToFloat(step[STEP_FACTOR]) : 1.0;
bool decoupled = pc.decoupled != 0u;

struct Rule {
    bool frozen;
    float factor; // multiplies the learning rate
    float decay;
};

bool update_waits()
{
    return FACTOR && step[STEP_HOLD] != 0u;
}

float step_float(uint word)
{
    return uintBitsToFloat(step[word]);
}

Rule rule_of(uint i)
{
    if (!GROUPS) return Rule(false, 1.0, all_decay);
    const vec2 group = group_of(i);
    return Rule(group.x < 0.0, group.x, group.y);
}

vec4 gradient(uint i, vec4 p, float decay)
{
    vec4 g = LOAD4(grad, i);
    if (FACTOR) g *= unscale;
    if (CLIP) { // NaN stays NaN
        g = mix(g, vec4(clip), greaterThan(g, vec4(clip)));
        g = mix(g, vec4(-clip), lessThan(g, vec4(-clip)));
    }
    return decoupled ? g : g + decay * p;
}

vec4 decayed(vec4 p, Rule rule)
{
    return decoupled ? p - decay_rate * rule.factor * rule.decay * p : p;
}
