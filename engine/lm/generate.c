/* lm/generate.c - see vktrain/generate.h. A generator has two programs: one for a chunk of tokens, one for a single
 * token. Both programs use the same arrays: the cache of keys and values.
 *
 * The program for a chunk always computes a whole chunk, even if it gets fewer tokens. The cache then also gets rows
 * for the missing tokens, behind the rows of the text. No query of the text reads these rows, and later tokens of the
 * text overwrite them. */
#include "vktrain/generate.h"

#include <math.h>

#include "lm/lm.h"
#include "lm/sampler.h"

/* WORTH: a run for a chunk of n tokens takes about as long as n / WORTH runs for a single token. (SmolLM2-135M on two
 * cores: a run for 64 tokens takes as long as 10 runs for one token.) */
enum { DEFAULT_CHUNK = 64, DEFAULT_CONTEXT = 2048, PROGRAMS = 2, WORTH = 6 };

/* The network for `tokens` tokens, and its program. */
typedef struct step {
    uint32_t tokens;
    vkt_graph *graph;
    vkt_program *program;
    vkt_tensor ids, past, last; /* inputs. last: index in `ids` of the last token of the text so far */
    vkt_tensor logits;
} step;

struct vkt_generator {
    vkt_ctx *ctx;
    vkt_host host;
    const vkt_lm *m;
    vkt_store *store;
    uint32_t context, vocabulary, blocks;
    vkt_array **keys, **values; /* one array for each transformer block */
    uint64_t bytes;
    step steps[PROGRAMS]; /* the last step is for a single token */
    uint32_t *ids;        /* the input of one run */
    float *logits;        /* logits of the token that follows the last token in the cache */
    vkt_sampler sampler;
    uint32_t length;  /* tokens in the cache */
    bool has_pending; /* `pending` is a token of the text, and not in the cache yet */
    uint32_t pending;
    vkt_generator_stats stats;
};

static void release_arrays(const vkt_generator *g, vkt_array **list)
{
    for (uint32_t i = 0; list && i < g->blocks; i++) vkt_array_destroy(&list[i]);
    vkt_free(&g->host, list);
}

void vkt_generator_destroy(vkt_generator **pg)
{
    vkt_generator *g = pg ? *pg : NULL;
    if (!g) return;
    for (int i = 0; i < PROGRAMS; i++) {
        vkt_program_destroy(&g->steps[i].program);
        vkt_graph_destroy(&g->steps[i].graph);
    }
    release_arrays(g, g->keys);
    release_arrays(g, g->values);
    vkt_sampler_release(&g->sampler);
    vkt_free(&g->host, g->ids);
    vkt_free(&g->host, g->logits);
    vkt_free(&g->host, g);
    *pg = NULL;
}

/* ---- making a generator ---- */

static vkt_result check(const vkt_generator_params *p, const vkt_host *h, const vkt_gguf_model *m)
{
    if (!p->store != !p->lora)
        return vkt_fail(h, VKT_E_ARG, "generator: want a store and lora, or neither, got only %s",
                        p->store ? "a store" : "lora");
    if (p->context > m->context)
        return vkt_fail(h, VKT_E_ARG, "generator: want a context of at most %u tokens, as the model has, got %u",
                        m->context, p->context);
    if (!(p->temperature >= 0) || isinf(p->temperature))
        return vkt_fail(h, VKT_E_ARG, "generator: want a temperature of 0 or more, got %g", (double)p->temperature);
    if (!(p->top_p >= 0 && p->top_p <= 1))
        return vkt_fail(h, VKT_E_ARG, "generator: want top_p from 0 to 1, got %g", (double)p->top_p);
    return VKT_OK;
}

static vkt_result make_arrays(vkt_generator *g, const char *name, vkt_array ***out)
{
    const vkt_gguf_model *m = vkt_lm_model(g->m);
    vkt_array **list = *out = vkt_alloc_array(&g->host, g->blocks, sizeof *list);
    if (!list) return vkt_fail_nomem(&g->host, "a cache", g->blocks * sizeof *list);
    const vkt_array_params p = { .shape = vkt_shape4(1, m->kv_heads, g->context, m->head_width), .name = name };
    for (uint32_t i = 0; i < g->blocks; i++) {
        VKT_TRY(vkt_array_create(g->ctx, &p, &list[i]));
        g->bytes += 4ull * m->kv_heads * g->context * m->head_width;
    }
    return VKT_OK;
}

/* Builds the network of step s. */
static vkt_result build(vkt_generator *g, step *s, vkt_builder *b, const vkt_lora_params *lora)
{
    s->ids = vkt_input(s->graph, "ids", VKT_U32, VKT_ROWS, vkt_shape2(1, s->tokens));
    s->past = vkt_input(s->graph, "past", VKT_U32, VKT_ROWS, vkt_shape1(1));
    s->last = vkt_input(s->graph, "last", VKT_U32, VKT_ROWS, vkt_shape1(1));
    const vkt_lm_cache cache = { .keys = g->keys, .values = g->values, .context = g->context, .past = s->past };
    if (lora) vkt_builder_set_lora(b, lora);
    vkt_tensor x = vkt_lm_hidden(b, g->m, s->ids, &(vkt_lm_params){ .cache = &cache });
    x = vkt_reshape(s->graph, x, vkt_shape2(s->tokens, vkt_lm_model(g->m)->width));
    s->logits = vkt_lm_logits(b, g->m, vkt_index_select(s->graph, x, s->last));
    vkt_keep(s->graph, s->logits);
    return vkt_builder_check(b);
}

static vkt_result make_step(vkt_generator *g, step *s, uint32_t tokens, const vkt_lora_params *lora)
{
    vkt_builder *b = NULL;
    s->tokens = tokens;
    VKT_TRY(vkt_graph_create(&g->host, &s->graph));
    VKT_TRY(vkt_builder_create(s->graph, false, &b));
    vkt_result r = build(g, s, b, lora);
    vkt_builder_destroy(&b);
    const vkt_program_params p = { .name = tokens == 1 ? "token" : "prompt" };
    return r == VKT_OK ? vkt_program_create(g->ctx, s->graph, g->store, &p, &s->program) : r;
}

static vkt_result create(vkt_generator *g, const vkt_generator_params *params)
{
    const vkt_gguf_model *m = vkt_lm_model(g->m);
    vkt_generator_params own = *params;
    const vkt_generator_params *p = &own;
    own.temperature = vkt_or_f32(params->temperature, 0);
    own.top_p = vkt_or_f32(params->top_p, 0);
    VKT_TRY(check(p, &g->host, m));
    g->context = p->context ? p->context : VKT_MIN(m->context, DEFAULT_CONTEXT);
    const uint32_t chunk = VKT_MIN(p->chunk ? p->chunk : DEFAULT_CHUNK, g->context);
    g->vocabulary = m->vocabulary;
    g->blocks = m->blocks;
    g->store = p->store;
    g->sampler = (vkt_sampler){ .host = g->host,
                                .n = m->vocabulary,
                                .temperature = (double)p->temperature,
                                .top_p = (double)p->top_p,
                                .top_k = p->top_k,
                                .seed = p->seed };
    VKT_TRY(vkt_sampler_init(&g->sampler));
    g->ids = vkt_alloc_array(&g->host, chunk, sizeof *g->ids);
    g->logits = vkt_alloc_array(&g->host, g->vocabulary, sizeof *g->logits);
    if (!g->ids || !g->logits) return vkt_fail_nomem(&g->host, "a generator", 4ull * (chunk + g->vocabulary));
    VKT_TRY(make_arrays(g, "keys", &g->keys));
    VKT_TRY(make_arrays(g, "values", &g->values));
    VKT_TRY(make_step(g, &g->steps[0], chunk, p->lora));
    return make_step(g, &g->steps[1], 1, p->lora);
}

vkt_result vkt_generator_create(vkt_ctx *ctx, const vkt_lm *m, const vkt_generator_params *params, vkt_generator **out)
{
    static const vkt_generator_params defaults;
    if (out) *out = NULL;
    VKT_WANT(NULL, ctx);
    const vkt_host h = vkt_ctx_host(ctx);
    VKT_WANT(&h, m);
    VKT_WANT(&h, out);
    vkt_generator *g = vkt_alloc(&h, sizeof *g);
    if (!g) return vkt_fail_nomem(&h, "a generator", sizeof *g);
    g->ctx = ctx;
    g->host = h;
    g->m = m;
    const vkt_result r = create(g, params ? params : &defaults);
    if (r == VKT_OK)
        *out = g;
    else
        vkt_generator_destroy(&g);
    return r;
}

/* ---- running ---- */

/* Runs step s for the first n ids of g->ids; n is at most s->tokens. This appends n tokens to the cache. Sets g->logits
 * to the logits of the next token. */
static vkt_result run(vkt_generator *g, const step *s, uint32_t n)
{
    const uint32_t last = n - 1;
    for (uint32_t i = n; i < s->tokens; i++) g->ids[i] = 0;
    VKT_TRY(vkt_program_write(s->program, s->ids, g->ids, 4ull * s->tokens));
    VKT_TRY(vkt_program_write(s->program, s->past, &g->length, sizeof g->length));
    VKT_TRY(vkt_program_write(s->program, s->last, &last, sizeof last));
    VKT_TRY(vkt_program_run(s->program, &(vkt_run){ .rows = 0 }, NULL));
    g->length += n;
    return vkt_program_read(s->program, s->logits, g->logits, 4ull * g->vocabulary);
}

/* Puts the pending token into the cache, if there is one. Sets g->logits to the logits of the token after the pending
 * token. */
static vkt_result catch_up(vkt_generator *g)
{
    if (!g->has_pending) return VKT_OK;
    g->ids[0] = g->pending;
    VKT_TRY(run(g, &g->steps[PROGRAMS - 1], 1));
    g->has_pending = false;
    return VKT_OK;
}

/* Checks that the context has room for `tokens` more tokens. */
static vkt_result check_room(const vkt_generator *g, size_t tokens)
{
    const uint32_t length = vkt_generator_length(g);
    if (tokens <= g->context - length) return VKT_OK;
    return vkt_fail(&g->host, VKT_E_SHAPE,
                    "generator: the context has %u tokens: %u are used, and %llu more do not fit", g->context, length,
                    (unsigned long long)tokens);
}

static vkt_result feed(vkt_generator *g, const uint32_t *ids, size_t n)
{
    VKT_TRY(catch_up(g));
    const step *whole = &g->steps[0], *one = &g->steps[PROGRAMS - 1];
    while (n) {
        const uint32_t count = (uint32_t)VKT_MIN(n, whole->tokens);
        const step *s = count > whole->tokens / WORTH ? whole : one;
        const uint32_t now = s == one ? 1 : count;
        memcpy(g->ids, ids, now * sizeof *ids);
        VKT_TRY(run(g, s, now));
        ids += now;
        n -= now;
    }
    return VKT_OK;
}

static double seconds_since(uint64_t start)
{
    return (double)(vkt_now_ns() - start) * 1e-9;
}

vkt_result vkt_generator_feed(vkt_generator *g, const uint32_t *ids, size_t n)
{
    VKT_WANT(NULL, g);
    VKT_WANT(&g->host, ids);
    const uint64_t start = vkt_now_ns();
    if (n == 0) return vkt_fail(&g->host, VKT_E_ARG, "generator: want at least one token, got none");
    VKT_TRY(check_room(g, n));
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= g->vocabulary)
            return vkt_fail(&g->host, VKT_E_ARG, "generator: id %u at %llu is not below %u, the size of the vocabulary",
                            ids[i], (unsigned long long)i, g->vocabulary);
    const vkt_result r = feed(g, ids, n);
    g->stats.fed += r == VKT_OK ? n : 0;
    g->stats.feed_seconds += seconds_since(start);
    return r;
}

static vkt_result want_text(const vkt_generator *g)
{
    if (vkt_generator_length(g)) return VKT_OK;
    return vkt_fail(&g->host, VKT_E_STATE, "generator: the text is empty: feed a prompt first");
}

vkt_result vkt_generator_next(vkt_generator *g, uint32_t *id)
{
    VKT_WANT(NULL, g);
    VKT_WANT(&g->host, id);
    const uint64_t start = vkt_now_ns();
    VKT_TRY(want_text(g));
    VKT_TRY(check_room(g, 1));
    VKT_TRY(catch_up(g));
    VKT_TRY(vkt_sampler_choose(&g->sampler, g->logits, (uint32_t)g->stats.made, id));
    g->pending = *id;
    g->has_pending = true;
    g->stats.made++;
    g->stats.make_seconds += seconds_since(start);
    return VKT_OK;
}

vkt_result vkt_generator_logits(vkt_generator *g, float *logits, size_t n)
{
    VKT_WANT(NULL, g);
    VKT_WANT(&g->host, logits);
    VKT_TRY(want_text(g));
    if (n != g->vocabulary)
        return vkt_fail(&g->host, VKT_E_ARG, "generator: want room for %u logits, got %llu", g->vocabulary,
                        (unsigned long long)n);
    VKT_TRY(catch_up(g));
    memcpy(logits, g->logits, n * sizeof *logits);
    return VKT_OK;
}

vkt_result vkt_generator_reset(vkt_generator *g)
{
    VKT_WANT(NULL, g);
    g->length = 0;
    g->has_pending = false;
    g->stats = (vkt_generator_stats){ 0 };
    return VKT_OK;
}

uint32_t vkt_generator_length(const vkt_generator *g)
{
    return g ? g->length + g->has_pending : 0;
}

uint32_t vkt_generator_context(const vkt_generator *g)
{
    return g ? g->context : 0;
}

uint64_t vkt_generator_bytes(const vkt_generator *g)
{
    return g ? g->bytes : 0;
}

vkt_generator_stats vkt_generator_get_stats(const vkt_generator *g)
{
    return g ? g->stats : (vkt_generator_stats){ 0 };
}
