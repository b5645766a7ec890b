/* train/tokenizer_gguf.c - the tokenizer of a GGUF file (vktrain/tokenizer.h). */
#include "base/base.h"
#include "vktrain/tokenizer.h"

#define KEY(name) "tokenizer.ggml." name

/* Gets the list that the file has under `key`. VKT_E_NOT_FOUND, VKT_E_FORMAT. */
static vkt_result get_list(const vkt_host *h, const vkt_gguf *g, const char *key, vkt_gguf_kind kind,
                           const void **values, uint32_t *n)
{
    const vkt_gguf_meta *m = vkt_gguf_find_meta(g, key);
    if (!m) return vkt_fail(h, VKT_E_NOT_FOUND, "%s: no key \"%s\"", vkt_gguf_path(g), key);
    if (!m->is_array || m->kind != kind || m->count >= UINT32_MAX)
        return vkt_fail(h, VKT_E_FORMAT, "%s: \"%s\": want a list of %s", vkt_gguf_path(g), key,
                        kind == VKT_GGUF_KIND_TEXT ? "texts" : "32-bit integers");
    *values = m->values;
    *n = (uint32_t)m->count;
    return VKT_OK;
}

/* Reads the id of a special token to *id, and lets *member point to *id. If the key is absent, or the number is no
 * token's id (some files have 4294967295 for "none"), changes nothing and returns VKT_OK. */
static vkt_result get_id(const vkt_host *h, const vkt_gguf *g, const char *key, uint32_t n_tokens, uint32_t *id,
                         const uint32_t **member)
{
    uint64_t value;
    if (!vkt_gguf_find_meta(g, key)) return VKT_OK;
    VKT_TRY(vkt_gguf_get_u64(g, key, VKT_GGUF_ONE, &value));
    if (value >= n_tokens) {
        vkt_log_line(h, VKT_LOG_WARN, "%s: %s is ignored, because it is no id below %u", vkt_gguf_path(g), key,
                     n_tokens);
        return VKT_OK;
    }
    *id = (uint32_t)value;
    *member = id;
    return VKT_OK;
}

static vkt_result read_params(const vkt_host *h, const vkt_gguf *g, vkt_tokenizer_params *p, uint32_t ids[4])
{
    vkt_gguf_string model, pre;
    const void *tokens, *kinds, *merges;
    uint32_t n_kinds;
    VKT_TRY(vkt_gguf_get_text(g, KEY("model"), VKT_GGUF_ONE, &model));
    if (strcmp(model.text, "gpt2") != 0)
        return vkt_fail(h, VKT_E_UNSUPPORTED, "%s: want a tokenizer of the model \"gpt2\", got \"%s\"",
                        vkt_gguf_path(g), model.text);
    VKT_TRY(vkt_gguf_get_text(g, KEY("pre"), VKT_GGUF_ONE, &pre));
    VKT_TRY(get_list(h, g, KEY("tokens"), VKT_GGUF_KIND_TEXT, &tokens, &p->n_tokens));
    VKT_TRY(get_list(h, g, KEY("token_type"), VKT_GGUF_KIND_I32, &kinds, &n_kinds));
    VKT_TRY(get_list(h, g, KEY("merges"), VKT_GGUF_KIND_TEXT, &merges, &p->n_merges));
    if (n_kinds != p->n_tokens)
        return vkt_fail(h, VKT_E_FORMAT, "%s: want as many types as tokens, got %u and %u", vkt_gguf_path(g), n_kinds,
                        p->n_tokens);
    p->tokens = tokens;
    p->kinds = kinds;
    p->merges = merges;
    p->pre = pre.text;
    VKT_TRY(get_id(h, g, KEY("bos_token_id"), p->n_tokens, &ids[0], &p->bos));
    VKT_TRY(get_id(h, g, KEY("eos_token_id"), p->n_tokens, &ids[1], &p->eos));
    VKT_TRY(get_id(h, g, KEY("unknown_token_id"), p->n_tokens, &ids[2], &p->unk));
    VKT_TRY(get_id(h, g, KEY("padding_token_id"), p->n_tokens, &ids[3], &p->pad));
    p->add_bos = strcmp(p->pre, "llama-bpe") == 0;
    if (!vkt_gguf_find_meta(g, KEY("add_bos_token"))) return VKT_OK;
    return vkt_gguf_get_bool(g, KEY("add_bos_token"), VKT_GGUF_ONE, &p->add_bos);
}

vkt_result vkt_tokenizer_from_gguf(const vkt_host *host, const vkt_gguf *g, vkt_tokenizer **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, g);
    const vkt_host h = vkt_host_resolve(host);
    vkt_tokenizer_params p = { .n_tokens = 0 };
    uint32_t ids[4];
    VKT_TRY(read_params(&h, g, &p, ids));
    return vkt_tokenizer_create(&h, &p, out);
}
