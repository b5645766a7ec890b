/* Reads GGUF files, from memory and mapped. Every tensor must be within the file. The metadata, and the tensors of
 * supported types, must be readable. */
#include "fuzz/fuzz.h"
#include "vktrain/gguf_model.h"

static void check_tensor(const vkt_gguf *g, const vkt_gguf_tensor *t, size_t size)
{
    fuzz_require(vkt_gguf_find_tensor(g, t->name) == t, "a tensor without its name");
    fuzz_require(t->bytes == 0 || (t->offset <= size && t->bytes <= size - t->offset), "a tensor outside the file");
    float *f32 = vkt_alloc_array(fuzz_host(), t->elements + 1, sizeof *f32);
    if (f32) {
        const vkt_result r = vkt_gguf_read_f32(g, t->name, 0, t->elements, f32);
        fuzz_require(r == (vkt_gguf_can_read(t->type) ? VKT_OK : VKT_E_UNSUPPORTED), "numbers that cannot be read");
    }
    vkt_free(fuzz_host(), f32);
}

static void check_meta(const vkt_gguf *g, const vkt_gguf_meta *m, size_t size)
{
    uint64_t u;
    int64_t i;
    double f;
    bool is;
    vkt_gguf_string s;
    fuzz_require(vkt_gguf_find_meta(g, m->key) == m && m->count <= size, "metadata without a key");
    if (m->is_array && m->count == 0) return;
    const size_t at = m->is_array ? m->count - 1 : VKT_GGUF_ONE;
    const bool number = vkt_gguf_get_u64(g, m->key, at, &u) == VKT_OK ||
                        vkt_gguf_get_i64(g, m->key, at, &i) == VKT_OK || vkt_gguf_get_f64(g, m->key, at, &f) == VKT_OK;
    const bool text = vkt_gguf_get_text(g, m->key, at, &s) == VKT_OK;
    fuzz_require(number + text + (vkt_gguf_get_bool(g, m->key, at, &is) == VKT_OK) == 1, "a value of no kind");
    fuzz_require(!text || (s.bytes <= size && s.text[s.bytes] == 0), "a text without its end");
}

static void check(vkt_result r, vkt_gguf *g, size_t size)
{
    vkt_gguf_model m;
    fuzz_status(r, g != NULL);
    for (size_t i = 0; i < vkt_gguf_n_meta(g); i++) check_meta(g, vkt_gguf_meta_at(g, i), size);
    for (size_t i = 0; i < vkt_gguf_n_tensors(g); i++) check_tensor(g, vkt_gguf_tensor_at(g, i), size);
    if (g && vkt_gguf_read_model(g, &m) == VKT_OK) fuzz_require(m.heads % m.kv_heads == 0, "heads without a group");
    vkt_gguf_destroy(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    vkt_gguf *g;
    vkt_result r = vkt_gguf_from_memory(fuzz_host(), "input", data ? data : (const uint8_t *)"", size, &g);
    check(r, g, size);
    r = vkt_gguf_open(fuzz_host(), fuzz_file(data, size), &g);
    check(r, g, size);
    fuzz_end();
    return 0;
}
