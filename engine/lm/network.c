/* lm/network.c - the network of a language model: embedding, transformer blocks, the last norm, and the output layer.
 * It computes what LlamaForCausalLM, Qwen2ForCausalLM and Qwen3ForCausalLM of the library transformers compute. */
#include <stdio.h>

#include "lm/lm.h"
#include "nn/builder.h"

/* A network that is being built. */
typedef struct net {
    vkt_builder *b;
    vkt_graph *g;
    const vkt_lm *m;
    uint32_t samples, tokens;
    const vkt_lm_cache *cache; /* may be NULL */
} net;

/* Returns an external value for a tensor of the model. The value's name is the builder's scope, followed by `name`. */
static vkt_tensor weight(const net *n, const char *name, const vkt_lm_tensor *t)
{
    char full[2 * VKT_NAME_MAX];
    const uint64_t numbers = t->rows ? (uint64_t)t->rows * t->columns : t->columns;
    const uint64_t bytes = t->format ? vkt_quantized_bytes(t->format, t->rows, t->columns) : 4 * numbers;
    snprintf(full, sizeof full, "%s%s", n->b->scope, name);
    vkt_builder_count_array(n->b, numbers, bytes);
    if (t->format) return vkt_external_array(n->g, full, t->array, VKT_U32, vkt_shape1((uint32_t)((bytes + 3) / 4)));
    const vkt_shape shape = t->rows ? vkt_shape2(t->rows, t->columns) : vkt_shape1(t->columns);
    return vkt_external_array(n->g, full, t->array, VKT_F32, shape);
}

static vkt_tensor norm(const net *n, const char *name, const vkt_lm_tensor *t, vkt_tensor x)
{
    char part[VKT_NAME_MAX];
    snprintf(part, sizeof part, "%s.weight", name);
    const vkt_tensor gamma = weight(n, part, t);
    return vkt_builder_note(n->b, name, "RMSNorm, frozen",
                            vkt_rms_norm(n->g, x, 1, gamma, (float)n->m->model.rms_epsilon));
}

static vkt_tensor linear(const net *n, const char *name, vkt_tensor x, const vkt_lm_tensor *t,
                         const vkt_lm_tensor *bias)
{
    return vkt_nn_linear_quantized(
        n->b, name, x,
        &(vkt_nn_linear_quantized_params){
            .weight = t->array, .format = t->format, .out_features = t->rows, .bias = bias ? bias->array : NULL });
}

/* Rotates each head of x (B,T,heads D) by the position of its token. With qwen3, normalizes each head first. Returns
 * (B,heads,T,D). */
static vkt_tensor rotate(const net *n, vkt_tensor x, uint32_t heads, const char *norm_name,
                         const vkt_lm_tensor *head_norm)
{
    const vkt_gguf_model *m = &n->m->model;
    const vkt_shape rows = vkt_tensor_shape(n->g, x);
    if (head_norm->array) {
        x = vkt_reshape(n->g, x, vkt_shape4(n->samples, n->tokens, heads, m->head_width));
        x = vkt_reshape(n->g, norm(n, norm_name, head_norm, x), rows);
    }
    return vkt_rope(n->g, x,
                    &(vkt_rope_params){ .order = VKT_ROPE_HALVES,
                                        .dims = m->rope_width,
                                        .base = (float)m->rope_base,
                                        .factor = m->scaling == VKT_ROPE_LINEAR ? (float)m->rope_factor : 1,
                                        .factors = n->m->rope_factors,
                                        .heads = heads,
                                        .split = true,
                                        .first = n->cache ? n->cache->past : (vkt_tensor){ 0 } });
}

/* Swaps heads and tokens: (B,i,j,D) -> (B,j,i,D). With one token the bytes do not change, so a reshape is enough. */
static vkt_tensor swap(const net *n, vkt_tensor x)
{
    static const uint32_t order[] = { 0, 2, 1, 3 };
    const vkt_shape s = vkt_tensor_shape(n->g, x);
    if (n->tokens != 1) return vkt_permute(n->g, x, order);
    return vkt_reshape(n->g, x, vkt_shape4(s.dim[0], s.dim[2], s.dim[1], s.dim[3]));
}

/* Writes x, the keys or values of the new tokens, to the cache of block `number`. Returns all rows of this cache. */
static vkt_tensor cached(const net *n, const char *name, vkt_array *const *arrays, uint32_t number, vkt_tensor x)
{
    char full[2 * VKT_NAME_MAX];
    vkt_shape s = vkt_tensor_shape(n->g, x);
    s.dim[2] = n->cache->context;
    snprintf(full, sizeof full, "%s%s", n->b->scope, name);
    const vkt_tensor all = vkt_external_array(n->g, full, arrays[number], VKT_F32, s);
    return vkt_append(n->g, x, all, n->cache->past);
}

static vkt_tensor attend(const net *n, uint32_t number, vkt_tensor q, vkt_tensor k, vkt_tensor v)
{
    const vkt_attention_params p = { .scale = n->m->attention_scale, .causal = true, .kv_heads = n->m->model.kv_heads };
    if (!n->cache) return vkt_attention(n->g, q, k, v, &p);
    k = cached(n, "keys", n->cache->keys, number, k);
    v = cached(n, "values", n->cache->values, number, v);
    return vkt_attention_cached(n->g, q, k, v, n->cache->past, &p);
}

static vkt_tensor attention(const net *n, uint32_t number, vkt_tensor x)
{
    const vkt_lm_block *w = &n->m->blocks[number];
    const vkt_gguf_model *m = &n->m->model;
    vkt_nn_push(n->b, "self_attn");
    vkt_tensor q = linear(n, "q_proj", x, &w->q, &w->q_bias);
    vkt_tensor k = linear(n, "k_proj", x, &w->k, &w->k_bias);
    vkt_tensor v = linear(n, "v_proj", x, &w->v, &w->v_bias);
    q = rotate(n, q, m->heads, "q_norm", &w->q_norm);
    k = rotate(n, k, m->kv_heads, "k_norm", &w->k_norm);
    v = vkt_reshape(n->g, v, vkt_shape4(n->samples, n->tokens, m->kv_heads, m->head_width));
    v = swap(n, v);
    x = attend(n, number, q, k, v);
    x = vkt_builder_note(n->b, NULL, "Attention", swap(n, x));
    x = vkt_reshape(n->g, x, vkt_shape3(n->samples, n->tokens, m->heads * m->head_width));
    x = linear(n, "o_proj", x, &w->o, NULL);
    vkt_nn_pop(n->b);
    return x;
}

static vkt_tensor feed_forward(const net *n, const vkt_lm_block *w, vkt_tensor x)
{
    vkt_nn_push(n->b, "mlp");
    const vkt_tensor gate = linear(n, "gate_proj", x, &w->gate, NULL);
    const vkt_tensor up = linear(n, "up_proj", x, &w->up, NULL);
    x = linear(n, "down_proj", vkt_nn_swiglu(n->b, gate, up), &w->down, NULL);
    vkt_nn_pop(n->b);
    return x;
}

static vkt_tensor block(const net *n, uint32_t number, vkt_tensor x)
{
    char name[16];
    const vkt_lm_block *w = &n->m->blocks[number];
    snprintf(name, sizeof name, "%u", number);
    vkt_nn_push(n->b, name);
    x = vkt_nn_add(n->b, x, attention(n, number, norm(n, "input_layernorm", &w->attn_norm, x)));
    x = vkt_nn_add(n->b, x, feed_forward(n, w, norm(n, "post_attention_layernorm", &w->ffn_norm, x)));
    vkt_nn_pop(n->b);
    return x;
}

static vkt_tensor embed(const net *n, vkt_tensor ids)
{
    const vkt_lm_tensor *t = &n->m->embedding;
    const vkt_tensor w = weight(n, "embed_tokens.weight", t);
    return vkt_builder_note(n->b, "embed_tokens", "Embedding, frozen",
                            t->format ? vkt_embedding_quantized(n->g, ids, w, t->format, t->rows, t->columns)
                                      : vkt_embedding(n->g, ids, w, VKT_NO_PADDING));
}

/* Checks the operands of a public function. */
static bool is_ready(vkt_builder *b, const vkt_lm *m, const char *what, vkt_tensor x)
{
    if (!b || !vkt_is_usable(b->g, what, x)) return false;
    if (!m) vkt_graph_error(b->g, vkt_fail_null(&b->g->host, what, "m"));
    return m != NULL;
}

vkt_tensor vkt_lm_hidden(vkt_builder *b, const vkt_lm *m, vkt_tensor ids, const vkt_lm_params *p)
{
    static const vkt_lm_params defaults;
    if (!is_ready(b, m, "vkt_lm_hidden", ids)) return (vkt_tensor){ 0 };
    if (!p) p = &defaults;
    const vkt_shape s = vkt_tensor_shape(b->g, ids);
    char text[80];
    if (s.rank != 2 || s.dim[1] > m->model.context) {
        vkt_graph_error(b->g, vkt_fail(&b->g->host, VKT_E_SHAPE,
                                       "language model: want ids (B,T) with T up to the model's context of %u, got %s",
                                       m->model.context, vkt_shape_text(s, text)));
        return (vkt_tensor){ 0 };
    }
    const net n = { .b = b, .g = b->g, .m = m, .samples = s.dim[0], .tokens = s.dim[1], .cache = p->cache };
    vkt_nn_push(b, "model");
    vkt_tensor x = embed(&n, ids);
    vkt_nn_push(b, "layers");
    for (uint32_t i = 0; i < m->model.blocks; i++) {
        if (p->recompute) vkt_recompute_begin(b->g);
        x = block(&n, i, x);
        if (p->recompute) vkt_recompute_end(b->g);
    }
    vkt_nn_pop(b);
    x = norm(&n, "norm", &m->norm, x);
    vkt_nn_pop(b);
    return x;
}

/* Returns the weights of the output layer. Sets *w to their external value. */
static const vkt_lm_tensor *output(vkt_builder *b, const vkt_lm *m, vkt_tensor *w)
{
    const net n = { .b = b, .g = b->g, .m = m };
    if (!m->model.tied) {
        *w = weight(&n, "lm_head.weight", &m->output);
        return &m->output;
    }
    /* The counts are restored, because embed has counted these weights already. */
    const uint64_t numbers = b->array_numbers, bytes = b->array_bytes;
    *w = weight(&n, "model.embed_tokens.weight", &m->embedding);
    b->array_numbers = numbers;
    b->array_bytes = bytes;
    return &m->embedding;
}

vkt_tensor vkt_lm_logits(vkt_builder *b, const vkt_lm *m, vkt_tensor hidden)
{
    if (!is_ready(b, m, "vkt_lm_logits", hidden)) return (vkt_tensor){ 0 };
    vkt_tensor w;
    const vkt_lm_tensor *t = output(b, m, &w);
    return vkt_builder_note(b, "lm_head", "Linear, frozen",
                            t->format ? vkt_linear_quantized(b->g, hidden, w, (vkt_tensor){ 0 }, t->format, t->rows)
                                      : vkt_linear(b->g, hidden, w, (vkt_tensor){ 0 }));
}

vkt_tensor vkt_lm_loss(vkt_builder *b, const vkt_lm *m, vkt_tensor hidden, vkt_tensor labels)
{
    const vkt_linear_cross_entropy_params p = { .has_ignore_index = true, .ignore_index = -1 };
    if (!is_ready(b, m, "vkt_lm_loss", hidden) || !vkt_is_usable(b->g, "vkt_lm_loss", labels)) return (vkt_tensor){ 0 };
    vkt_tensor w;
    const vkt_lm_tensor *t = output(b, m, &w);
    return vkt_builder_note(b, "lm_head", "Linear and cross-entropy, frozen",
                            t->format
                                ? vkt_linear_cross_entropy_quantized(b->g, hidden, w, t->format, t->rows, labels, &p)
                                : vkt_linear_cross_entropy(b->g, hidden, w, labels, &p));
}
