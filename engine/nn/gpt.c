/* nn/gpt.c - a transformer of GPT-2's form: see vktrain/models.h. */
#include "vktrain/models.h"

#include <math.h>
#include <stdio.h>

#include "nn/builder.h"

static const vkt_init normal = { VKT_INIT_NORMAL, 0, 0.02f }, zeros = { VKT_INIT_CONSTANT, 0, 0 };

static bool ids_fit(vkt_builder *b, vkt_tensor ids, const vkt_gpt_params *p)
{
    if (!vkt_is_usable(b->g, "gpt", ids)) return false;
    const vkt_shape s = vkt_tensor_shape(b->g, ids);
    char text[80];
    if (!p || !p->vocabulary || !p->context || !p->layers || !p->heads || !p->width) {
        vkt_graph_error(b->g, vkt_fail(&b->g->host, VKT_E_ARG,
                                       "gpt: want params with vocabulary, context, layers, heads and width"));
        return false;
    }
    if (s.rank == 2 && s.dim[1] <= p->context) return true;
    vkt_graph_error(b->g,
                    vkt_fail(&b->g->host, VKT_E_SHAPE, "gpt: want ids (B,T) with T up to the context of %u, got %s",
                             p->context, vkt_shape_text(s, text)));
    return false;
}

/* Returns the initial distribution of the projections (c_proj). Their outputs are summed over all layers. So the
 * deviation is smaller for more layers, and the magnitude of the sum does not depend on the number of layers. */
static vkt_init projection(const vkt_gpt_params *p)
{
    return (vkt_init){ VKT_INIT_NORMAL, 0, (float)(0.02 / sqrt(2.0 * p->layers)) };
}

static vkt_tensor drop(vkt_builder *b, vkt_tensor x, const vkt_gpt_params *p)
{
    return vkt_or_f32(p->dropout, 0) != 0 ? vkt_nn_dropout(b, x, p->dropout) : x;
}

/* Returns dropout(wte[ids] + wpe[0 .. T)), of shape (B,T,D). */
static vkt_tensor embed(vkt_builder *b, vkt_tensor ids, const vkt_gpt_params *p)
{
    const uint32_t tokens = vkt_tensor_shape(b->g, ids).dim[1];
    const vkt_nn_embedding_params words = { .num_embeddings = p->vocabulary,
                                            .embedding_dim = p->width,
                                            .weight_init = normal };
    const vkt_tensor x = vkt_nn_embedding(b, "wte", ids, &words);
    const vkt_shape table = vkt_shape2(p->context, p->width);
    vkt_tensor positions = vkt_nn_param(b, "wpe.weight", table, normal, p->width, p->context);
    if (tokens < p->context) positions = vkt_slice(b->g, positions, 0, 0, tokens, 1);
    return drop(b, vkt_builder_note(b, "wpe", "Embedding", vkt_add(b->g, x, positions)), p);
}

static vkt_tensor mlp(vkt_builder *b, vkt_tensor x, const vkt_gpt_params *p)
{
    const vkt_nn_linear_params fc = { .out_features = 4 * p->width, .weight_init = normal, .bias_init = zeros };
    const vkt_nn_linear_params proj = { .out_features = p->width, .weight_init = projection(p), .bias_init = zeros };
    vkt_nn_push(b, "mlp");
    x = vkt_nn_linear(b, "c_proj", vkt_nn_gelu(b, vkt_nn_linear(b, "c_fc", x, &fc)), &proj);
    vkt_nn_pop(b);
    return x;
}

static vkt_tensor block(vkt_builder *b, vkt_tensor x, const vkt_gpt_params *p)
{
    const vkt_nn_multi_head_attention_params attention = { .heads = p->heads,
                                                           .causal = true,
                                                           .dropout = p->dropout,
                                                           .weight_init = normal,
                                                           .bias_init = zeros,
                                                           .proj_init = projection(p) };
    vkt_tensor y = vkt_nn_multi_head_attention(b, "attn", vkt_nn_layer_norm(b, "ln_1", x, NULL), &attention);
    x = vkt_nn_add(b, x, drop(b, y, p));
    y = mlp(b, vkt_nn_layer_norm(b, "ln_2", x, NULL), p);
    return vkt_nn_add(b, x, drop(b, y, p));
}

vkt_tensor vkt_gpt(vkt_builder *b, vkt_tensor ids, const vkt_gpt_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    static const vkt_gpt_params defaults;
    if (!p) p = &defaults;
    if (!ids_fit(b, ids, p)) return (vkt_tensor){ 0 };
    vkt_nn_push(b, "transformer");
    vkt_tensor x = embed(b, ids, p);
    vkt_nn_push(b, "h");
    for (uint32_t i = 0; i < p->layers; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u", i);
        vkt_nn_push(b, name);
        if (p->recompute_blocks) vkt_recompute_begin(b->g);
        x = block(b, x, p);
        if (p->recompute_blocks) vkt_recompute_end(b->g);
        vkt_nn_pop(b);
    }
    vkt_nn_pop(b);
    x = vkt_nn_layer_norm(b, "ln_f", x, NULL);
    vkt_nn_pop(b);
    return vkt_nn_linear(
        b, "lm_head", x,
        &(vkt_nn_linear_params){ .out_features = p->vocabulary, .no_bias = true, .weight_init = normal });
}
