/* nn/attention.c - attention as a layer. */
#include "nn/builder.h"

static bool heads_fit(vkt_builder *b, const char *name, vkt_tensor x, uint32_t heads, uint32_t kv_heads)
{
    if (!vkt_builder_is_named(b, name) || !vkt_is_usable(b->g, name, x)) return false;
    const vkt_shape s = vkt_tensor_shape(b->g, x);
    char text[80];
    if (s.rank == 3 && heads && s.dim[2] % heads == 0) {
        if (heads % kv_heads == 0) return true;
        vkt_graph_error(b->g, vkt_fail(&b->g->host, VKT_E_SHAPE, "%s%s: want kv_heads that divide the %u heads, got %u",
                                       b->scope, name, heads, kv_heads));
        return false;
    }
    vkt_graph_error(b->g, vkt_fail(&b->g->host, heads ? VKT_E_SHAPE : VKT_E_ARG,
                                   "%s%s: want x (B,T,D) and heads that divide D, got %s and %u", b->scope, name,
                                   vkt_shape_text(s, text), heads));
    return false;
}

vkt_tensor vkt_nn_multi_head_attention(vkt_builder *b, const char *name, vkt_tensor x,
                                       const vkt_nn_multi_head_attention_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    static const vkt_nn_multi_head_attention_params defaults;
    if (!p) p = &defaults;
    const uint32_t kv_heads = p->kv_heads ? p->kv_heads : p->heads;
    if (!heads_fit(b, name, x, p->heads, kv_heads)) return (vkt_tensor){ 0 };
    const vkt_shape s = vkt_tensor_shape(b->g, x);
    const uint32_t width = s.dim[2];
    vkt_nn_linear_params layer = { .out_features = width + 2 * kv_heads * (width / p->heads),
                                   .no_bias = p->no_bias,
                                   .weight_init = p->weight_init,
                                   .bias_init = p->bias_init };
    const vkt_attention_params attention = { .causal = p->causal,
                                             .dropout = b->training ? p->dropout : 0,
                                             .kv_heads = kv_heads };
    vkt_nn_push(b, name);
    const vkt_tensor qkv = vkt_nn_linear(b, "c_attn", x, &layer);
    vkt_tensor y = vkt_builder_note(b, NULL, "Attention", vkt_attention_packed(b->g, qkv, p->heads, &attention));
    layer.out_features = width;
    if (p->proj_init.kind != VKT_INIT_DEFAULT) layer.weight_init = p->proj_init;
    y = vkt_nn_linear(b, "c_proj", y, &layer);
    vkt_nn_pop(b);
    return y;
}
