/* lm/lm.c - the weights of a language model: from a GGUF file to a device. */
#include "lm/lm.h"

#include <stdio.h>

#include "io/gguf.h"
#include "record/record.h"

enum { PIECE_BYTES = 1 << 20 }; /* put_rows reorders rows in pieces of about this size */

/* Returns tensor i of all tensors that a model may have; NULL: the model has i tensors or fewer. */
static vkt_lm_tensor *tensor_at(vkt_lm *m, uint32_t i)
{
    enum { OUTSIDE = 3, IN_BLOCK = 14 };
    vkt_lm_tensor *const outside[OUTSIDE] = { &m->embedding, &m->norm, &m->output };
    if (i < OUTSIDE) return outside[i];
    const uint32_t number = (i - OUTSIDE) / IN_BLOCK;
    if (!m->blocks || number >= m->model.blocks) return NULL;
    vkt_lm_block *b = &m->blocks[number];
    vkt_lm_tensor *const inside[IN_BLOCK] = { &b->attn_norm, &b->q,      &b->k,      &b->v,     &b->o,
                                              &b->ffn_norm,  &b->gate,   &b->up,     &b->down,  &b->q_bias,
                                              &b->k_bias,    &b->v_bias, &b->q_norm, &b->k_norm };
    return inside[(i - OUTSIDE) % IN_BLOCK];
}

/* Destroys a tensor's array and its copies in other contexts. */
static void release(vkt_lm_tensor *t)
{
    while (t->array && t->array->next) {
        vkt_array *copy = t->array->next;
        vkt_array_destroy(&copy);
    }
    vkt_array_destroy(&t->array);
}

void vkt_lm_destroy(vkt_lm **pm)
{
    vkt_lm *m = pm ? *pm : NULL;
    if (!m) return;
    vkt_lm_tensor *t;
    for (uint32_t i = 0; (t = tensor_at(m, i)) != NULL; i++) release(t);
    vkt_free(&m->host, m->blocks);
    vkt_free(&m->host, m->rope_factors);
    vkt_free(&m->host, m->name);
    vkt_free(&m->host, m);
    *pm = NULL;
}

const vkt_gguf_model *vkt_lm_model(const vkt_lm *m)
{
    return m ? &m->model : NULL;
}

uint64_t vkt_lm_bytes(const vkt_lm *m)
{
    return m ? m->bytes : 0;
}

uint32_t vkt_lm_source_row(const vkt_gguf_model *m, uint32_t row)
{
    const uint32_t half = m->rope_width / 2, at = row % m->head_width;
    if (m->rope_halves || at >= m->rope_width) return row;
    return row - at + (at < half ? 2 * at : 2 * (at - half) + 1);
}

/* ---- upload ---- */

/* The file that is read, and the model that is made from the file. */
typedef struct loader {
    const vkt_gguf *g;
    vkt_lm *m;
} loader;

/* Writes `bytes` bytes at `offset`, a multiple of 4. Then writes zeros up to the next multiple of 4 bytes. */
static vkt_result put(vkt_array *a, uint64_t offset, const uint8_t *data, uint64_t bytes)
{
    const uint64_t whole = bytes / 4 * 4;
    uint32_t tail = 0;
    if (whole) VKT_TRY(vkt_array_write(a, offset, data, whole));
    if (bytes == whole) return VKT_OK;
    memcpy(&tail, data + whole, bytes - whole);
    return vkt_array_write(a, offset + whole, &tail, sizeof tail);
}

/* Uploads the rows of a query or key tensor in the order of Hugging Face's transformers: see vkt_lm_source_row. */
static vkt_result put_rows(const loader *l, const vkt_gguf_tensor *t, vkt_array *a)
{
    const uint64_t row_bytes = t->bytes / t->dims[1];
    const uint32_t rows = (uint32_t)t->dims[1];
    /* A piece has a multiple of 4 rows, or all rows. So every piece begins at a multiple of 4 bytes in the array. */
    const uint32_t piece = (uint32_t)VKT_MIN(4 * VKT_MAX(PIECE_BYTES / 4 / row_bytes, 1), rows);
    uint8_t *sorted = vkt_alloc_array(&l->m->host, piece, row_bytes);
    if (!sorted) return vkt_fail_nomem(&l->m->host, "rows of a tensor", piece * row_bytes);
    vkt_result r = VKT_OK;
    for (uint32_t at = 0; at < rows && r == VKT_OK; at += piece) {
        const uint32_t n = VKT_MIN(piece, rows - at);
        for (uint32_t i = 0; i < n; i++)
            memcpy(sorted + i * row_bytes,
                   (const uint8_t *)t->data + row_bytes * vkt_lm_source_row(&l->m->model, at + i), row_bytes);
        r = put(a, at * row_bytes, sorted, n * row_bytes);
    }
    vkt_free(&l->m->host, sorted);
    return r;
}

/* Reads a vector, converts it to f32 and uploads it. */
static vkt_result load_vector(loader *l, const vkt_gguf_tensor *t, vkt_lm_tensor *out)
{
    const uint64_t bytes = 4 * t->elements;
    float *x = vkt_alloc_array(&l->m->host, t->elements, sizeof *x);
    if (!x) return vkt_fail_nomem(&l->m->host, t->name, bytes);
    const vkt_array_params p = { .shape = vkt_shape1((uint32_t)t->dims[0]), .data = x, .name = t->name };
    vkt_result r = vkt_gguf_read_f32(l->g, t->name, 0, t->elements, x);
    if (r == VKT_OK) r = vkt_array_create(l->m->ctx, &p, &out->array);
    vkt_free(&l->m->host, x);
    if (r == VKT_OK) l->m->bytes += bytes;
    return r;
}

/* Uploads the tensor `name`, a matrix or a vector. `heads`: the tensor is a query or key matrix. */
static vkt_result load(loader *l, const char *name, bool heads, vkt_lm_tensor *out)
{
    const vkt_gguf_tensor *t = vkt_gguf_find_tensor(l->g, name);
    if (!t) return vkt_fail(&l->m->host, VKT_E_NOT_FOUND, "\"%s\" has no tensor \"%s\"", vkt_gguf_path(l->g), name);
    const bool matrix = t->rank > 1, floats = t->type == VKT_GGUF_F32;
    *out = (vkt_lm_tensor){ .format = matrix ? (vkt_quant)t->type : 0,
                            .rows = matrix ? (uint32_t)t->dims[1] : 0,
                            .columns = (uint32_t)t->dims[0] };
    if (!matrix) return load_vector(l, t, out);
    if (!floats && out->columns % 4 != 0)
        return vkt_fail(&l->m->host, VKT_E_UNSUPPORTED,
                        "\"%s\": tensor \"%s\" of type %s: want rows of a multiple of 4 numbers, got %u",
                        vkt_gguf_path(l->g), name, vkt_gguf_type_name(t->type), out->columns);
    const uint64_t words = (t->bytes + 3) / 4;
    if (words > UINT32_MAX)
        return vkt_fail(&l->m->host, VKT_E_UNSUPPORTED, "\"%s\": tensor \"%s\" has %llu bytes: want less than 2^34",
                        vkt_gguf_path(l->g), name, (unsigned long long)t->bytes);
    if (floats) out->format = 0;
    const vkt_array_params p = { .dtype = floats ? VKT_F32 : VKT_U32,
                                 .shape = floats ? vkt_shape2(out->rows, out->columns) : vkt_shape1((uint32_t)words),
                                 .name = name };
    VKT_TRY(vkt_array_create(l->m->ctx, &p, &out->array));
    l->m->bytes += 4 * words;
    return heads && !l->m->model.rope_halves ? put_rows(l, t, out->array) : put(out->array, 0, t->data, t->bytes);
}

static vkt_result load_block(loader *l, uint32_t number)
{
    const vkt_gguf_architecture a = l->m->model.architecture;
    vkt_lm_block *b = &l->m->blocks[number];
    const struct {
        const char *name;
        vkt_lm_tensor *to;
        bool heads;
        vkt_gguf_architecture only; /* the one architecture that has the tensor; 0: all architectures have it */
    } parts[] = { { "attn_norm.weight", &b->attn_norm, false, 0 },
                  { "attn_q.weight", &b->q, true, 0 },
                  { "attn_k.weight", &b->k, true, 0 },
                  { "attn_v.weight", &b->v, false, 0 },
                  { "attn_output.weight", &b->o, false, 0 },
                  { "ffn_norm.weight", &b->ffn_norm, false, 0 },
                  { "ffn_gate.weight", &b->gate, false, 0 },
                  { "ffn_up.weight", &b->up, false, 0 },
                  { "ffn_down.weight", &b->down, false, 0 },
                  { "attn_q.bias", &b->q_bias, false, VKT_GGUF_QWEN2 },
                  { "attn_k.bias", &b->k_bias, false, VKT_GGUF_QWEN2 },
                  { "attn_v.bias", &b->v_bias, false, VKT_GGUF_QWEN2 },
                  { "attn_q_norm.weight", &b->q_norm, false, VKT_GGUF_QWEN3 },
                  { "attn_k_norm.weight", &b->k_norm, false, VKT_GGUF_QWEN3 } };
    for (size_t i = 0; i < VKT_COUNT(parts); i++) {
        char name[64];
        if (parts[i].only && parts[i].only != a) continue;
        snprintf(name, sizeof name, "blk.%u.%s", number, parts[i].name);
        VKT_TRY(load(l, name, parts[i].heads, parts[i].to));
    }
    return VKT_OK;
}

static vkt_result load_all(loader *l)
{
    vkt_lm *m = l->m;
    m->blocks = vkt_alloc_array(&m->host, m->model.blocks, sizeof *m->blocks);
    if (!m->blocks) return vkt_fail_nomem(&m->host, "the blocks of a model", m->model.blocks * sizeof *m->blocks);
    VKT_TRY(load(l, "token_embd.weight", false, &m->embedding));
    VKT_TRY(load(l, "output_norm.weight", false, &m->norm));
    if (!m->model.tied) VKT_TRY(load(l, "output.weight", false, &m->output));
    for (uint32_t i = 0; i < m->model.blocks; i++) VKT_TRY(load_block(l, i));
    return VKT_OK;
}

/* Returns the bytes of all tensors in the file, an estimate of the device memory that the model needs. */
static uint64_t bytes_needed(const vkt_gguf *g)
{
    uint64_t n = 0;
    for (size_t i = 0; i < vkt_gguf_n_tensors(g); i++) n += vkt_gguf_tensor_at(g, i)->bytes;
    return n;
}

static vkt_result create(vkt_lm *m, const vkt_gguf *g)
{
    vkt_gguf_model model;
    char text[24];
    VKT_TRY(vkt_gguf_read_model(g, &model));
    m->model = model;
    m->model.rope_divisors = NULL;
    m->model.name = m->name = vkt_strdup(&m->host, model.name);
    if (!m->name) return vkt_fail_nomem(&m->host, "a model's name", strlen(model.name) + 1);
    VKT_TRY(vkt_lm_rope(m, g, &model));
    const vkt_result r = load_all(&(loader){ .g = g, .m = m });
    if (r == VKT_E_MEMORY_CAP || r == VKT_E_DEVICE_MEMORY)
        vkt_log_line(&m->host, VKT_LOG_ERROR, "\"%s\": all weights of the model need %s of device memory",
                     vkt_gguf_path(g), vkt_bytes_text(bytes_needed(g), text));
    return r;
}

vkt_result vkt_lm_create(vkt_ctx *ctx, const vkt_gguf *g, vkt_lm **out)
{
    if (out) *out = NULL;
    VKT_WANT(NULL, ctx);
    const vkt_host h = vkt_ctx_host(ctx);
    VKT_WANT(&h, g);
    VKT_WANT(&h, out);
    vkt_lm *m = vkt_alloc(&h, sizeof *m);
    if (!m) return vkt_fail_nomem(&h, "a language model", sizeof *m);
    m->ctx = ctx;
    m->host = h;
    const vkt_result r = create(m, g);
    if (r == VKT_OK)
        *out = m;
    else
        vkt_lm_destroy(&m);
    return r;
}

/* ---- further contexts ---- */

static vkt_result copy_all(vkt_lm *m, vkt_ctx *ctx)
{
    vkt_lm_tensor *t;
    vkt_array *copy; /* not used after the call, because t->array->next leads to the copy */
    for (uint32_t i = 0; (t = tensor_at(m, i)) != NULL; i++)
        if (t->array) VKT_TRY(vkt_array_copy(t->array, ctx, &copy));
    return VKT_OK;
}

/* Destroys the copies in ctx, which is not the context of vkt_lm_create. */
static void remove_copies(vkt_lm *m, const vkt_ctx *ctx)
{
    vkt_lm_tensor *t;
    for (uint32_t i = 0; (t = tensor_at(m, i)) != NULL; i++) {
        vkt_array *copy = t->array ? vkt_array_in(t->array, ctx) : NULL;
        vkt_array_destroy(&copy);
    }
}

vkt_result vkt_lm_add_context(vkt_lm *m, vkt_ctx *ctx)
{
    char text[24];
    VKT_WANT(NULL, m);
    VKT_WANT(&m->host, ctx);
    if (vkt_array_in(m->embedding.array, ctx))
        return vkt_fail(&m->host, VKT_E_ARG, "language model: the weights are in this context already");
    const vkt_result r = copy_all(m, ctx);
    if (r != VKT_OK) remove_copies(m, ctx);
    if (r == VKT_E_MEMORY_CAP || r == VKT_E_DEVICE_MEMORY)
        vkt_log_line(&m->host, VKT_LOG_ERROR, "language model: the weights need %s of device memory in each context",
                     vkt_bytes_text(m->bytes, text));
    return r;
}
