/* record/sizes.c - finds two sizes of a step under a limit of memory: the largest batch that fits with the wanted
 * context, and the largest context that fits with the wanted batch. Context: the number of positions of a sample, such
 * as tokens. Each probe builds a graph and plans its memory, which takes some tenths of a second for a network of
 * several thousand nodes. */
#include "record/record.h"

typedef struct search {
    vkt_ctx *ctx;
    const vkt_size_params *params;
    vkt_sizes *out;
} search;

static bool cannot_run(vkt_result r)
{
    return r == VKT_E_UNSUPPORTED || r == VKT_E_DEVICE_MEMORY || r == VKT_E_MEMORY_CAP;
}

/* Builds one graph and plans its memory. */
static vkt_result needs_of(const search *s, uint32_t batch, uint32_t context, vkt_log_level level,
                           vkt_memory_needs *out)
{
    vkt_host h = s->ctx->host;
    vkt_graph *g;
    h.log_level = level;
    VKT_TRY(vkt_graph_create(&h, &g));
    vkt_result r = s->params->build(s->params->user, batch, context, g);
    if (r == VKT_OK) r = vkt_graph_status(g);
    if (r == VKT_OK) r = vkt_program_needs(s->ctx, g, s->params->program, out);
    vkt_graph_destroy(&g);
    return r;
}

static uint64_t need_bytes(const search *s, const vkt_memory_needs *n)
{
    return n->cap_bytes + s->params->other_bytes;
}

static vkt_result probe(search *s, uint32_t batch, uint32_t context, bool *fits)
{
    vkt_memory_needs n;
    const vkt_result r = needs_of(s, batch, context, VKT_LOG_NONE, &n);
    s->out->plans++;
    *fits = r == VKT_OK && need_bytes(s, &n) <= s->out->limit_bytes;
    return cannot_run(r) ? VKT_OK : r;
}

/* Plans a graph of the wanted sizes. If that fails, plans it again, with messages about the error. */
static vkt_result plan_wanted(search *s)
{
    const vkt_size_params *p = s->params;
    vkt_memory_needs n;
    vkt_result r = needs_of(s, p->batch, p->context, VKT_LOG_NONE, &n);
    s->out->plans++;
    if (r != VKT_OK) r = needs_of(s, p->batch, p->context, s->ctx->host.log_level, &n);
    if (r != VKT_OK) return cannot_run(r) ? VKT_OK : r;
    s->out->planned = true;
    s->out->needs = n;
    s->out->need_bytes = need_bytes(s, &n);
    s->out->fits = s->out->need_bytes <= s->out->limit_bytes;
    return VKT_OK;
}

/* Finds the largest batch that fits. If `of_context` is true, finds the largest context instead. Tries `most` and
 * multiples of `step`. If the size `wanted` fits (s->out->fits), first doubles the size until a size does not fit, or
 * until `most` fits. The rest of the search is a bisection. */
static vkt_result find_largest(search *s, bool of_context, uint32_t wanted, uint32_t most, uint32_t step, uint32_t *out)
{
    /* `low` and `high` are sizes, divided by `step`. `low` is a size that fits, or 0. While `growing` is true, `high`
     * is the next size to try. After that, `high` is a size that does not fit. */
    uint64_t low = 0, high = 0;
    const uint64_t end = (uint64_t)most / step + (most % step != 0) + 1; /* end - 1: `most` / `step`, rounded up */
    bool fits;
    if (s->out->fits && wanted == most) return *out = wanted, VKT_OK;
    if (s->out->fits)
        low = wanted / step;
    else
        high = (wanted + step - 1) / step;
    if (!high) high = VKT_MIN(VKT_MAX(2 * low, (uint64_t)1), end - 1);
    uint32_t best = s->out->fits ? wanted : 0;
    for (bool growing = s->out->fits; low + 1 < high || growing;) {
        const uint64_t at = growing ? high : (low + high) / 2;
        const uint32_t size = (uint32_t)VKT_MIN(at * step, (uint64_t)most);
        VKT_TRY(probe(s, of_context ? s->params->batch : size, of_context ? size : s->params->context, &fits));
        if (!fits) {
            high = at;
            growing = false;
            continue;
        }
        low = at;
        best = VKT_MAX(best, size);
        if (growing && at == end - 1) break;
        if (growing) high = VKT_MIN(2 * at, end - 1);
    }
    *out = best;
    return VKT_OK;
}

vkt_result vkt_find_sizes(vkt_ctx *ctx, const vkt_size_params *params, vkt_sizes *out)
{
    VKT_WANT(NULL, ctx);
    VKT_WANT(&ctx->host, params);
    VKT_WANT(&ctx->host, out);
    const vkt_size_params *p = params;
    vkt_memory_stats m;
    vkt_ctx_memory(ctx, &m);
    *out = (vkt_sizes){ 0 };
    vkt_sizes found = { .limit_bytes = p->max_bytes ? p->max_bytes : m.cap_bytes };
    const uint32_t most_batch = p->most_batch ? p->most_batch : p->batch;
    const uint32_t most_context = p->most_context ? p->most_context : p->context;
    if (!p->build || !p->batch || !p->context || p->batch > most_batch || p->context > most_context)
        return vkt_fail(&ctx->host, VKT_E_ARG,
                        "find_sizes: want `build`, a batch of 1 to %u and a context of 1 to %u, got %u and %u",
                        most_batch, most_context, p->batch, p->context);
    search s = { .ctx = ctx, .params = p, .out = &found };
    VKT_TRY(plan_wanted(&s));
    VKT_TRY(find_largest(&s, false, p->batch, most_batch, 1, &found.batch));
    VKT_TRY(find_largest(&s, true, p->context, most_context, p->context_step ? p->context_step : 1, &found.context));
    *out = found;
    return VKT_OK;
}
