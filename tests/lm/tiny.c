/* tiny.c - see tiny.h. */
#include "lm/tiny.h"

#include <stdio.h>

const char *const tiny_targets[TINY_TARGETS] = { "q_proj",    "k_proj",  "v_proj",   "o_proj",
                                                 "gate_proj", "up_proj", "down_proj" };

const char *tiny_path(const char *architecture, char path[512])
{
    snprintf(path, 512, VKT_TEST_DIR "/golden/lm/%s.gguf", architecture);
    return path;
}

const char *tiny_rewrite(const rig *r, const char *from, const char *name, const vkt_gguf_meta *more, size_t n)
{
    vkt_gguf_meta meta[64];
    vkt_gguf_tensor tensors[64];
    vkt_gguf *g;
    const char *path = vkt_temp_dir_file(&r->dir, name);
    assert_int_equal(vkt_gguf_open(&r->h, from, &g), VKT_OK);
    const size_t n_meta = vkt_gguf_n_meta(g);
    size_t n_tensors = 0;
    assert_true(n_meta + n <= VKT_COUNT(meta) && vkt_gguf_n_tensors(g) <= VKT_COUNT(tensors));
    for (size_t i = 0; i < n_meta; i++) meta[i] = *vkt_gguf_meta_at(g, i);
    for (size_t i = 0; i < n; i++) meta[n_meta + i] = more[i];
    for (size_t i = 0; i < vkt_gguf_n_tensors(g); i++)
        if (strcmp(vkt_gguf_tensor_at(g, i)->name, "rope_freqs.weight") != 0)
            tensors[n_tensors++] = *vkt_gguf_tensor_at(g, i);
    assert_int_equal(vkt_gguf_write(&r->h, path, meta, n_meta + n, tensors, n_tensors), VKT_OK);
    vkt_gguf_destroy(&g);
    return path;
}

tiny tiny_open(const rig *r, const char *architecture)
{
    char path[512];
    vkt_gguf *g;
    tiny t = { .lora = { .targets = tiny_targets, .n_targets = TINY_TARGETS, .rank = TINY_RANK, .alpha = 8 } };
    assert_int_equal(vkt_gguf_open(&r->h, tiny_path(architecture, path), &g), VKT_OK);
    assert_int_equal(vkt_lm_create(r->ctx, g, &t.lm), VKT_OK);
    vkt_gguf_destroy(&g);
    return t;
}

vkt_dataset *tiny_data(const vkt_host *h)
{
    static uint32_t rows[TINY_ROWS][2][TINY_CONTEXT];
    for (uint32_t i = 0; i < TINY_ROWS; i++) {
        const uint32_t m = golden_mix(i + 0x10000000u), step = 1 + (m >> 8) % 11, prompt = (m >> 16) % 9;
        for (uint32_t t = 0; t < TINY_CONTEXT; t++) {
            rows[i][0][t] = (m + t * step) % TINY_WORDS;
            rows[i][1][t] = t + 1 > prompt ? (m + (t + 1) * step) % TINY_WORDS : UINT32_MAX;
        }
    }
    const vkt_dataset_params p = { .rows = TINY_ROWS, .width = 2 * TINY_CONTEXT, .type = VKT_ROW_U32 };
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_from_arrays(h, &p, rows, &d), VKT_OK);
    return d;
}

vkt_tensor tiny_forward(vkt_builder *b, vkt_tensor rows, void *user)
{
    const tiny *t = user;
    vkt_builder_set_lora(b, t->lora.n_targets ? &t->lora : NULL);
    return vkt_lm_hidden(b, t->lm, vkt_slice(vkt_builder_graph(b), rows, 1, 0, TINY_CONTEXT, 1), &t->params);
}

vkt_tensor tiny_loss(vkt_builder *b, vkt_tensor hidden, vkt_tensor rows, vkt_tensor labels, vkt_tensor targets,
                     void *user)
{
    const tiny *t = user;
    (void)labels, (void)targets;
    return vkt_lm_loss(b, t->lm, hidden, vkt_slice(vkt_builder_graph(b), rows, 1, TINY_CONTEXT, VKT_END, 1));
}

vkt_trainer_params tiny_trainer(tiny *t, const vkt_dataset *data)
{
    return (vkt_trainer_params){ .model = { .forward = tiny_forward, .loss = tiny_loss, .user = t },
                                 .train = data,
                                 .batch = TINY_BATCH,
                                 .optimizer = { .kind = VKT_ADAM },
                                 .lr = 3e-3f,
                                 .seed = 7 };
}

void tiny_set_adapters(vkt_store *store)
{
    for (uint32_t k = 0; k < vkt_store_count(store); k++) {
        const uint32_t n = (uint32_t)vkt_shape_elements(vkt_store_shape(store, k));
        float *w = test_malloc(n * sizeof *w);
        for (uint32_t e = 0; e < n; e++)
            w[e] = ((float)(golden_mix((1u << 24 | k << 16) + e) >> 8) - 0x1p23f) * 0x1p-26f;
        assert_int_equal(vkt_store_write(store, k, VKT_PART_VALUE, w), VKT_OK);
        test_free(w);
    }
}
