/* lora_files.c - see lora_files.h. */
#include "lm/lora_files.h"

#include <stdio.h>
#include <stdlib.h>

#include "vktrain/vktrain.h"

#define CHECK(call) assert_int_equal(call, VKT_OK)

const lora_layer layers[N] = { { "self_attn.q_proj", "attn_q" }, { "self_attn.k_proj", "attn_k" },
                               { "self_attn.v_proj", "attn_v" }, { "self_attn.o_proj", "attn_output" },
                               { "mlp.gate_proj", "ffn_gate" },  { "mlp.up_proj", "ffn_up" },
                               { "mlp.down_proj", "ffn_down" } };
const vkt_lora_params lora = { .rank = RANK, .alpha = 1.5f };

uint32_t size_of(const vkt_gguf *g, uint32_t layer, uint32_t dim)
{
    char name[64];
    snprintf(name, sizeof name, "blk.0.%s.weight", layers[layer].tensor);
    return (uint32_t)vkt_gguf_find_tensor(g, name)->dims[dim];
}

float number(uint32_t layer, uint32_t which, uint32_t i)
{
    return (float)((int)((i * 2654435761u + 977 * layer + 131 * which) >> 9 & 1023) - 512) / 4096;
}

vkt_store *make_store(const rig *r, const vkt_gguf *g, uint32_t n, bool averaged)
{
    vkt_graph *graph;
    vkt_store *s;
    vkt_tensor sum = { 0 };
    CHECK(vkt_graph_create(&r->h, &graph));
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t b = 0; b < 2; b++) {
            char name[96];
            snprintf(name, sizeof name, "model.layers.0.%s.lora_%c.weight", layers[k].layer, b ? 'B' : 'A');
            const vkt_tensor p =
                vkt_param(graph, name, b ? vkt_shape2(size_of(g, k, 1), RANK) : vkt_shape2(RANK, size_of(g, k, 0)));
            if (averaged) sum = sum.id ? vkt_add(graph, sum, vkt_mean(graph, p)) : vkt_mean(graph, p);
        }
    if (averaged) {
        CHECK(vkt_backward(graph, sum));
        CHECK(vkt_update(graph, &(vkt_optimizer){ .kind = VKT_SGD }));
        CHECK(vkt_publish(graph, 0.5));
    }
    CHECK(vkt_store_create(r->ctx, graph, &s));
    vkt_graph_destroy(&graph);
    for (uint32_t i = 0; i < 2 * n; i++) {
        const vkt_shape shape = vkt_store_shape(s, i);
        const uint32_t elements = shape.dim[0] * shape.dim[1];
        float *x = test_malloc(elements * sizeof *x);
        for (uint32_t e = 0; e < elements; e++) x[e] = number(i / 2, i % 2, e);
        CHECK(vkt_store_write(s, i, averaged ? VKT_PART_PUBLISHED : VKT_PART_VALUE, x));
        test_free(x);
    }
    return s;
}

uint32_t file_row(const vkt_gguf_model *m, uint32_t layer, uint32_t out, uint32_t row)
{
    if (m->architecture != VKT_GGUF_LLAMA || layer > 1) return row;
    const uint32_t heads = layer == 0 ? m->heads : m->kv_heads, w = out / heads;
    const uint32_t head = row / w, at = row % w, half = m->rope_width / 2;
    return at < m->rope_width ? head * w + at % half * 2 + at / half : row;
}

files open_files(const rig *r, const char *path, bool averaged)
{
    files f;
    CHECK(vkt_gguf_open(&r->h, path, &f.g));
    CHECK(vkt_gguf_read_model(f.g, &f.m));
    f.s = make_store(r, f.g, N, averaged);
    return f;
}

const char *partly_rotated(const rig *r)
{
    static const uint32_t four = 4, mostly_q4_k = 15;
    static const vkt_gguf_meta more[] = { { "llama.rope.dimension_count", VKT_GGUF_KIND_U32, false, 1, &four },
                                          { "general.file_type", VKT_GGUF_KIND_U32, false, 1, &mostly_q4_k } };
    return tiny_rewrite(r, GOLDEN("llama.gguf"), "part.gguf", more, VKT_COUNT(more));
}

void close_files(files *f)
{
    vkt_store_destroy(&f->s);
    vkt_gguf_destroy(&f->g);
}
