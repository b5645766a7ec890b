// channel_gradient.glsl - loads the gradient of a batch norm's output: see abi/batch_norm.abi.h
// MASK: a relu follows the norm, and dy is the gradient of relu's output. The gradient of the norm's output is dy where
// relu's output is above zero or NaN (as in UNARY_RELU of lib/unary.glsl), else zero.
layout(constant_id = BATCH_NORM_SPEC_MASK) const uint MASK = 0;
VKT_IN4(BATCH_NORM_DY, dy4);
VKT_IN4(BATCH_NORM_MASK, mask4);

// Returns vec4 i of the gradient of channel pc.first + c.
vec4 gradient_at(uint c, uint i)
{
    const vec4 dy = LOAD4(dy4, pc.dy4 + c * pc.channel4 + i);
    if (MASK == 0) return dy;
    return mix(dy, vec4(0.0), lessThanEqual(LOAD4(mask4, pc.plus4 + c * pc.channel4 + i), vec4(0.0)));
}
