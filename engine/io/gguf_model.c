/* io/gguf_model.c - reads and checks the description of a language model (vktrain/gguf_model.h). */
#include "vktrain/gguf_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/gguf.h"

/* The file, and the description that is read from it. `prefix` is the architecture's name. The keys that belong to an
 * architecture begin with this name, for instance "llama.block_count". */
typedef struct reader {
    const vkt_gguf *g;
    const char *prefix;
    vkt_gguf_model *m;
} reader;

enum { KEY_ROOM = 96 };

static const struct {
    const char *name;
    vkt_gguf_architecture architecture;
} architectures[] = { { "llama", VKT_GGUF_LLAMA }, { "qwen2", VKT_GGUF_QWEN2 }, { "qwen3", VKT_GGUF_QWEN3 } };

/* Writes the key "<architecture>.<name>". Returns whether the file has this key. */
static bool find(const reader *r, const char *name, char key[KEY_ROOM])
{
    snprintf(key, KEY_ROOM, "%s.%s", r->prefix, name);
    return vkt_gguf_find_meta(r->g, key) != NULL;
}

static vkt_result bad(const reader *r, const char *key, const char *want, double got)
{
    return vkt_fail(&r->g->host, VKT_E_FORMAT, "\"%s\": %s: want %s, got %g", r->g->path, key, want, got);
}

/* Reads an integer from 1 to 2^31 - 1. If the file does not have the key, the result is `fallback`. If `fallback` is 0,
 * the file must have the key. */
static vkt_result get_size(const reader *r, const char *name, uint32_t fallback, uint32_t *out)
{
    char key[KEY_ROOM];
    uint64_t n = fallback;
    if (find(r, name, key) || fallback == 0) VKT_TRY(vkt_gguf_get_u64(r->g, key, VKT_GGUF_ONE, &n));
    if (n == 0 || n > INT32_MAX) return bad(r, key, "1 to 2^31 - 1", (double)n);
    *out = (uint32_t)n;
    return VKT_OK;
}

/* Reads a finite number above 0. If the file does not have the key, the result is `fallback`. If `fallback` is 0, the
 * file must have the key. */
static vkt_result get_positive(const reader *r, const char *name, double fallback, double *out)
{
    char key[KEY_ROOM];
    double x = fallback;
    if (find(r, name, key) || fallback == 0) VKT_TRY(vkt_gguf_get_f64(r->g, key, VKT_GGUF_ONE, &x));
    if (!(x > 0) || isinf(x)) return bad(r, key, "a finite number above 0", x);
    *out = x;
    return VKT_OK;
}

static vkt_result read_architecture(reader *r)
{
    vkt_gguf_string name = { .text = "" };
    VKT_TRY(vkt_gguf_get_text(r->g, "general.architecture", VKT_GGUF_ONE, &name));
    for (size_t i = 0; i < VKT_COUNT(architectures); i++) {
        if (strcmp(name.text, architectures[i].name) != 0) continue;
        r->prefix = architectures[i].name;
        r->m->architecture = architectures[i].architecture;
    }
    if (!r->prefix)
        return vkt_fail(&r->g->host, VKT_E_UNSUPPORTED,
                        "\"%s\" has the architecture \"%.40s\": want llama, qwen2 or qwen3", r->g->path, name.text);
    name.text = "";
    if (vkt_gguf_find_meta(r->g, "general.name")) VKT_TRY(vkt_gguf_get_text(r->g, "general.name", VKT_GGUF_ONE, &name));
    r->m->name = name.text;
    return VKT_OK;
}

/* Refuses files that this reader does not support: mixtures of experts, models that are split into several files, and
 * some settings of YaRN. */
static vkt_result refuse_others(const reader *r)
{
    char key[KEY_ROOM];
    uint64_t n = 0;
    if (find(r, "expert_count", key)) VKT_TRY(vkt_gguf_get_u64(r->g, key, VKT_GGUF_ONE, &n));
    if (n > 0)
        return vkt_fail(&r->g->host, VKT_E_UNSUPPORTED, "\"%s\" is a mixture of %llu experts, which is not read",
                        r->g->path, (unsigned long long)n);
    if (vkt_gguf_find_meta(r->g, "split.count")) VKT_TRY(vkt_gguf_get_u64(r->g, "split.count", VKT_GGUF_ONE, &n));
    if (n > 1)
        return vkt_fail(&r->g->host, VKT_E_UNSUPPORTED, "\"%s\" is one of %llu parts of a model: join them first",
                        r->g->path, (unsigned long long)n);
    static const char *const yarn[] = { "rope.scaling.attn_factor",      "rope.scaling.yarn_ext_factor",
                                        "rope.scaling.yarn_attn_factor", "rope.scaling.yarn_beta_fast",
                                        "rope.scaling.yarn_beta_slow",   "rope.scaling.yarn_log_multiplier" };
    for (size_t i = 0; i < VKT_COUNT(yarn); i++)
        if (find(r, yarn[i], key))
            return vkt_fail(&r->g->host, VKT_E_UNSUPPORTED, "\"%s\": %s is not read: want YaRN without it", r->g->path,
                            key);
    return VKT_OK;
}

/* Reads a number of heads. The value is one number, or an array with one number for each block of the network. All
 * numbers of the array must be equal. */
static vkt_result get_heads(const reader *r, const char *name, uint32_t fallback, uint32_t *out)
{
    char key[KEY_ROOM];
    uint64_t first, other;
    const vkt_gguf_meta *meta = find(r, name, key) ? vkt_gguf_find_meta(r->g, key) : NULL;
    if (!meta || !meta->is_array) return get_size(r, name, fallback, out);
    VKT_TRY(vkt_gguf_get_u64(r->g, key, 0, &first));
    for (size_t i = 1; i < meta->count; i++) {
        VKT_TRY(vkt_gguf_get_u64(r->g, key, i, &other));
        if (other != first)
            return vkt_fail(&r->g->host, VKT_E_UNSUPPORTED, "\"%s\": %s differs between blocks: %llu and %llu",
                            r->g->path, key, (unsigned long long)first, (unsigned long long)other);
    }
    if (first == 0 || first > INT32_MAX) return bad(r, key, "1 to 2^31 - 1", (double)first);
    *out = (uint32_t)first;
    return VKT_OK;
}

static vkt_result read_sizes(const reader *r)
{
    vkt_gguf_model *m = r->m;
    uint32_t value_width;
    VKT_TRY(get_size(r, "block_count", 0, &m->blocks));
    VKT_TRY(get_size(r, "context_length", 0, &m->context));
    VKT_TRY(get_size(r, "embedding_length", 0, &m->width));
    VKT_TRY(get_size(r, "feed_forward_length", 0, &m->feed_forward));
    VKT_TRY(get_heads(r, "attention.head_count", 0, &m->heads));
    VKT_TRY(get_heads(r, "attention.head_count_kv", m->heads, &m->kv_heads));
    VKT_TRY(get_size(r, "attention.key_length", m->width / m->heads, &m->head_width));
    VKT_TRY(get_size(r, "attention.value_length", m->width / m->heads, &value_width));
    VKT_TRY(get_positive(r, "attention.layer_norm_rms_epsilon", 0, &m->rms_epsilon));
    if (m->heads % m->kv_heads != 0) return bad(r, "attention.head_count_kv", "a divisor of head_count", m->kv_heads);
    if (value_width != m->head_width)
        return vkt_fail(&r->g->host, VKT_E_UNSUPPORTED, "\"%s\": keys of %u numbers and values of %u: want equal ones",
                        r->g->path, m->head_width, value_width);
    return VKT_OK;
}

/* Reads the number of tokens: the value of vocab_size, or else the length of the tokenizer's list, or else the number
 * of rows of the embedding. */
static vkt_result read_vocabulary(const reader *r)
{
    const vkt_gguf_meta *tokens = vkt_gguf_find_meta(r->g, "tokenizer.ggml.tokens");
    const vkt_gguf_tensor *embedding = vkt_gguf_find_tensor(r->g, "token_embd.weight");
    uint64_t n = embedding ? embedding->dims[1] : 0;
    if (tokens && tokens->is_array) n = tokens->count;
    const uint32_t fallback = n <= INT32_MAX ? (uint32_t)n : 0;
    return get_size(r, "vocab_size", fallback, &r->m->vocabulary);
}

/* Reads the factor by which the context is stretched. Older files have another key for it. If the file has neither key,
 * or if the value is 0, the result is 1. */
static vkt_result get_factor(const reader *r, double *out)
{
    char key[KEY_ROOM];
    double x = 0;
    if (find(r, "rope.scaling.factor", key) || find(r, "rope.scale_linear", key))
        VKT_TRY(vkt_gguf_get_f64(r->g, key, VKT_GGUF_ONE, &x));
    if (!(x >= 0) || isinf(x)) return bad(r, key, "a finite number, 0 or more", x);
    *out = x > 0 ? x : 1;
    return VKT_OK;
}

static vkt_result read_scaling(const reader *r)
{
    vkt_gguf_model *m = r->m;
    char key[KEY_ROOM];
    vkt_gguf_string type = { .text = "linear" };
    m->rope_factor = 1;
    VKT_TRY(get_size(r, "rope.scaling.original_context_length", m->context, &m->rope_context));
    if (find(r, "rope.scaling.type", key)) VKT_TRY(vkt_gguf_get_text(r->g, key, VKT_GGUF_ONE, &type));
    if (strcmp(type.text, "none") == 0) return VKT_OK;
    const bool linear = strcmp(type.text, "linear") == 0;
    if (!linear && strcmp(type.text, "yarn") != 0)
        return vkt_fail(&r->g->host, VKT_E_UNSUPPORTED, "\"%s\": %s is \"%.40s\": want none, linear or yarn",
                        r->g->path, key, type.text);
    VKT_TRY(get_factor(r, &m->rope_factor));
    m->scaling = !linear ? VKT_ROPE_YARN : m->rope_factor == 1 ? VKT_ROPE_PLAIN : VKT_ROPE_LINEAR;
    return VKT_OK;
}

static vkt_result read_rope(const reader *r)
{
    vkt_gguf_model *m = r->m;
    VKT_TRY(get_positive(r, "rope.freq_base", 10000, &m->rope_base));
    VKT_TRY(get_size(r, "rope.dimension_count", m->head_width, &m->rope_width));
    m->rope_halves = m->architecture != VKT_GGUF_LLAMA;
    if (m->rope_width % 2 != 0 || m->rope_width > m->head_width)
        return bad(r, "rope.dimension_count", "an even number up to the width of a head", m->rope_width);
    return read_scaling(r);
}

/* ---- tensors ---- */

/* Checks that the file has a tensor of `rows` rows and `columns` columns (rows 0: a vector), and that the library can
 * read the tensor's type. */
static vkt_result check_tensor(const reader *r, const char *name, uint32_t rows, uint32_t columns)
{
    const vkt_gguf_tensor *t = vkt_gguf_find_tensor(r->g, name);
    const vkt_host *h = &r->g->host;
    if (!t) return vkt_fail(h, VKT_E_NOT_FOUND, "\"%s\" has no tensor \"%s\"", r->g->path, name);
    const uint64_t want = rows ? rows : 1;
    if (t->dims[0] != columns || t->dims[1] != want || t->dims[2] != 1 || t->dims[3] != 1)
        return vkt_fail(h, VKT_E_SHAPE, "\"%s\": tensor \"%s\": want %u x %llu, got %llu x %llu x %llu x %llu",
                        r->g->path, name, columns, (unsigned long long)want, (unsigned long long)t->dims[0],
                        (unsigned long long)t->dims[1], (unsigned long long)t->dims[2], (unsigned long long)t->dims[3]);
    if (vkt_gguf_can_read(t->type)) return VKT_OK;
    return vkt_fail(h, VKT_E_UNSUPPORTED, "\"%s\": tensor \"%s\" has type %s, which is not read", r->g->path, name,
                    vkt_gguf_type_name(t->type));
}

/* A tensor of a block of the network, "blk.<index of the block>.<name>". */
typedef struct part {
    const char *name;
    uint32_t rows, columns; /* rows 0: a vector */
} part;

enum { MAX_PARTS = 12 };

/* Lists the tensors that each block of this architecture has. Returns how many there are. */
static size_t list_parts(const vkt_gguf_model *m, part list[MAX_PARTS])
{
    const uint32_t q = m->heads * m->head_width, kv = m->kv_heads * m->head_width, ff = m->feed_forward;
    const part all[] = { { "attn_norm.weight", 0, m->width },   { "attn_q.weight", q, m->width },
                         { "attn_k.weight", kv, m->width },     { "attn_v.weight", kv, m->width },
                         { "attn_output.weight", m->width, q }, { "ffn_norm.weight", 0, m->width },
                         { "ffn_gate.weight", ff, m->width },   { "ffn_up.weight", ff, m->width },
                         { "ffn_down.weight", m->width, ff } };
    const part biases[] = { { "attn_q.bias", 0, q }, { "attn_k.bias", 0, kv }, { "attn_v.bias", 0, kv } };
    const part norms[] = { { "attn_q_norm.weight", 0, m->head_width }, { "attn_k_norm.weight", 0, m->head_width } };
    size_t n = VKT_COUNT(all);
    memcpy(list, all, sizeof all);
    if (m->architecture == VKT_GGUF_QWEN2) {
        memcpy(list + n, biases, sizeof biases);
        n += VKT_COUNT(biases);
    } else if (m->architecture == VKT_GGUF_QWEN3) {
        memcpy(list + n, norms, sizeof norms);
        n += VKT_COUNT(norms);
    }
    return n;
}

/* Returns whether check_tensors or check_blocks has checked the tensor of this name. */
static bool is_known(const reader *r, const char *name, const part *list, size_t n)
{
    static const char *const others[] = { "token_embd.weight", "output_norm.weight", "output.weight",
                                          "rope_freqs.weight" };
    for (size_t i = 0; i < VKT_COUNT(others); i++)
        if (strcmp(name, others[i]) == 0) return true;
    if (strncmp(name, "blk.", 4) != 0 || !vkt_is_digit(name[4])) return false;
    char *end;
    const unsigned long block = strtoul(name + 4, &end, 10);
    if (name[4] == '0' && name[5] != '.') return false; /* a superfluous 0, as in blk.00 */
    if (block >= r->m->blocks || *end != '.') return false;
    for (size_t i = 0; i < n; i++)
        if (strcmp(end + 1, list[i].name) == 0) return true;
    return false;
}

static vkt_result check_blocks(const reader *r)
{
    part list[MAX_PARTS];
    const size_t n = list_parts(r->m, list);
    for (uint32_t block = 0; block < r->m->blocks; block++) {
        for (size_t i = 0; i < n; i++) {
            char name[KEY_ROOM];
            snprintf(name, sizeof name, "blk.%u.%s", block, list[i].name);
            VKT_TRY(check_tensor(r, name, list[i].rows, list[i].columns));
        }
    }
    for (size_t i = 0; i < vkt_gguf_n_tensors(r->g); i++) {
        const char *name = vkt_gguf_tensor_at(r->g, i)->name;
        if (!is_known(r, name, list, n))
            return vkt_fail(&r->g->host, VKT_E_UNSUPPORTED, "\"%s\": %s models with a tensor \"%.80s\" are not read",
                            r->g->path, r->prefix, name);
    }
    return VKT_OK;
}

static vkt_result check_tensors(const reader *r)
{
    vkt_gguf_model *m = r->m;
    if ((uint64_t)m->heads * m->head_width > INT32_MAX)
        return bad(r, "attention.key_length", "fewer than 2^31 numbers in all heads", m->head_width);
    VKT_TRY(check_tensor(r, "token_embd.weight", m->vocabulary, m->width));
    VKT_TRY(check_tensor(r, "output_norm.weight", 0, m->width));
    m->tied = !vkt_gguf_find_tensor(r->g, "output.weight");
    if (!m->tied) VKT_TRY(check_tensor(r, "output.weight", m->vocabulary, m->width));
    m->rope_divisors = vkt_gguf_find_tensor(r->g, "rope_freqs.weight");
    if (m->rope_divisors) VKT_TRY(check_tensor(r, "rope_freqs.weight", 0, m->rope_width / 2));
    return check_blocks(r);
}

static vkt_result read_all(reader *r)
{
    VKT_TRY(read_architecture(r));
    VKT_TRY(refuse_others(r));
    VKT_TRY(read_sizes(r));
    VKT_TRY(read_vocabulary(r));
    VKT_TRY(read_rope(r));
    return check_tensors(r);
}

vkt_result vkt_gguf_read_model(const vkt_gguf *g, vkt_gguf_model *out)
{
    VKT_WANT(g ? &g->host : NULL, out);
    *out = (vkt_gguf_model){ .name = NULL };
    VKT_WANT(NULL, g);
    vkt_gguf_model m = { .name = NULL };
    const vkt_result result = read_all(&(reader){ .g = g, .m = &m });
    if (result == VKT_OK) *out = m;
    return result;
}
