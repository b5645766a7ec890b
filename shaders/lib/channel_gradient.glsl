// channel_gradient.glsl - loads the gradient of a batch norm's output: see abi/batch_norm.abi.h
// MASK: the norm's output went through a relu. The gradient is that of relu's output: dy where this output is above zero, else
// zero. As UNARY_RELU of lib/unary.glsl, it passes dy on where the output is NaN.
layout(constant_id = BATCH_NORM_SPEC_MASK) const uint MASK = 0;
VKT_IN4(BATCH_NORM_DY, dy4);
VKT_IN4(BATCH_NORM_MASK, mask4);

// Vec4 i of channel `first` + c.
vec4 gradient_at(uint c, uint i)
{
    const vec4 dy = LOAD4(dy4, pc.dy4 + c * pc.channel4 + i);
    if (MASK == 0) return dy;
    return mix(dy, vec4(0.0), lessThanEqual(LOAD4(mask4, pc.plus4 + c * pc.channel4 + i), vec4(0.0)));
}
