/* lm/lora_names.c - see lora_gguf.h. */
#include <stdio.h>

#include "lm/lora_gguf.h"

static const struct {
    const char *layer, *tensor;
} names[] = { { "self_attn.q_proj", "attn_q" },      { "self_attn.k_proj", "attn_k" }, { "self_attn.v_proj", "attn_v" },
              { "self_attn.o_proj", "attn_output" }, { "mlp.gate_proj", "ffn_gate" },  { "mlp.up_proj", "ffn_up" },
              { "mlp.down_proj", "ffn_down" } };
enum { QUERY = 0, KEY = 1 };
_Static_assert(VKT_COUNT(names) == VKT_LORA_KINDS, "a name for each matrix");

static void set_place(vkt_lora_place *p, uint32_t block, uint32_t kind)
{
    *p = (vkt_lora_place){ .block = block, .kind = kind, .in_heads = kind == QUERY || kind == KEY };
    snprintf(p->tensor, sizeof p->tensor, "blk.%u.%s.weight", block, names[kind].tensor);
}

vkt_result vkt_lora_place_of(const vkt_host *h, const vkt_adapter *a, const vkt_gguf_model *m, vkt_lora_place *out)
{
    unsigned block = 0;
    int at = 0;
    const char *layer = a->name;
    if (sscanf(layer, "model.layers.%9u.%n", &block, &at) == 1 && at > 0)
        for (uint32_t k = 0; k < VKT_LORA_KINDS; k++) {
            const size_t n = strlen(names[k].layer);
            if (a->layer_bytes != (size_t)at + n || memcmp(layer + at, names[k].layer, n) != 0) continue;
            set_place(out, block, k);
            const uint32_t heads = k == QUERY ? m->heads : m->kv_heads;
            if (out->in_heads && a->out != (uint64_t)heads * m->head_width)
                return vkt_fail(h, VKT_E_SHAPE, "lora: \"%.*s\": %u rows are not those of %u heads of width %u",
                                (int)a->layer_bytes, layer, a->out, heads, m->head_width);
            return VKT_OK;
        }
    return vkt_fail(h, VKT_E_UNSUPPORTED, "lora: the layer \"%.*s\" has no tensor in a GGUF file", (int)a->layer_bytes,
                    layer);
}

bool vkt_lora_place_of_half(const char *name, vkt_lora_place *out, bool *is_b)
{
    unsigned block = 0;
    if (sscanf(name, "blk.%9u.", &block) != 1) return false;
    for (uint32_t k = 0; k < VKT_LORA_KINDS; k++) {
        set_place(out, block, k);
        /* sscanf accepts "blk.03." too, so the name is compared with the only valid spelling. */
        const size_t n = strlen(out->tensor);
        if (strncmp(name, out->tensor, n) != 0) continue;
        *is_b = strcmp(name + n, ".lora_b") == 0;
        return *is_b || strcmp(name + n, ".lora_a") == 0;
    }
    return false;
}

const char *vkt_lora_layer(uint32_t kind)
{
    return names[kind].layer;
}

const char *vkt_lora_architecture(const vkt_gguf_model *m)
{
    static const char *const all[] = {
        [VKT_GGUF_LLAMA] = "llama", [VKT_GGUF_QWEN2] = "qwen2", [VKT_GGUF_QWEN3] = "qwen3"
    };
    return (size_t)m->architecture < VKT_COUNT(all) ? all[m->architecture] : NULL;
}
