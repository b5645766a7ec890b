// groups.glsl - the parameter groups (abi/update.abi.h). group_of(i) returns two numbers for vec4 i of the dispatch's
// range: x is the factor of the learning rate (negative: the parameters are frozen), and y is the weight decay.
// The push constants of the including shader have the member `block`.
layout(constant_id = UPDATE_SPEC_GROUPS) const bool GROUPS = false;
layout(binding = UPDATE_GROUPS, std430) readonly buffer Groups { vec2 groups[]; };

vec2 group_of(uint i)
{
    return groups[pc.block + i / (UPDATE_BLOCK / 4)];
}

bool is_frozen(uint i)
{
    return GROUPS && group_of(i).x < 0.0;
}
