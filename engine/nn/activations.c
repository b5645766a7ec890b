/* nn/activations.c - activations, and layers with two inputs. The summary table lists an activation under the name of
 * its class in PyTorch. */
#include "nn/builder.h"

#include <stdio.h>

vkt_tensor vkt_nn_relu(vkt_builder *b, vkt_tensor x)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "ReLU", vkt_relu(b->g, x));
}

vkt_tensor vkt_nn_leaky_relu(vkt_builder *b, vkt_tensor x, float slope)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "LeakyReLU", vkt_leaky_relu(b->g, x, slope));
}

vkt_tensor vkt_nn_elu(vkt_builder *b, vkt_tensor x, float alpha)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "ELU", vkt_elu(b->g, x, alpha));
}

vkt_tensor vkt_nn_gelu(vkt_builder *b, vkt_tensor x)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "GELU", vkt_gelu(b->g, x));
}

vkt_tensor vkt_nn_gelu_tanh(vkt_builder *b, vkt_tensor x)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "GELU", vkt_gelu_tanh(b->g, x));
}

vkt_tensor vkt_nn_silu(vkt_builder *b, vkt_tensor x)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "SiLU", vkt_silu(b->g, x));
}

vkt_tensor vkt_nn_hardswish(vkt_builder *b, vkt_tensor x)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "Hardswish", vkt_hardswish(b->g, x));
}

vkt_tensor vkt_nn_sigmoid(vkt_builder *b, vkt_tensor x)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "Sigmoid", vkt_sigmoid(b->g, x));
}

vkt_tensor vkt_nn_tanh(vkt_builder *b, vkt_tensor x)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "Tanh", vkt_tanh(b->g, x));
}

vkt_tensor vkt_nn_softplus(vkt_builder *b, vkt_tensor x, float beta, float threshold)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "Softplus", vkt_softplus(b->g, x, beta, threshold));
}

vkt_tensor vkt_nn_prelu(vkt_builder *b, const char *name, vkt_tensor x, bool per_channel)
{
    if (!b) return (vkt_tensor){ 0 };
    if (!vkt_builder_is_named(b, name) || !vkt_is_usable(b->g, name, x)) return (vkt_tensor){ 0 };
    const vkt_shape s = vkt_tensor_shape(b->g, x);
    const uint32_t n = per_channel && s.rank >= 2 ? s.dim[1] : 1;
    char full[2 * VKT_NAME_MAX];
    snprintf(full, sizeof full, "%s.weight", name);
    const vkt_init slope = { VKT_INIT_CONSTANT, .a = b->preset == VKT_PRESET_TORCH ? 0.25f : 0 };
    const vkt_tensor w = vkt_nn_param(b, full, vkt_shape1(n), slope, 1, 1);
    return vkt_builder_note(b, name, "PReLU", vkt_prelu(b->g, x, w));
}

vkt_tensor vkt_nn_add(vkt_builder *b, vkt_tensor x, vkt_tensor y)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "Add", vkt_add(b->g, x, y));
}

vkt_tensor vkt_nn_swiglu(vkt_builder *b, vkt_tensor gate, vkt_tensor up)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "SwiGLU", vkt_swiglu(b->g, gate, up));
}
