/* lm/sampler.c - see sampler.h. "The order" lists the tokens by falling logit. Most choices need only the first tokens
 * of the order. A heap finds these tokens without sorting the rest (Williams, Heapsort, 1964; Floyd, Treesort 3,
 * 1964). */
#include "lm/sampler.h"

#include <math.h>

#include "base/philox.h"

vkt_result vkt_sampler_init(vkt_sampler *s)
{
    s->weight = vkt_alloc_array(&s->host, s->n, sizeof *s->weight);
    s->heap = vkt_alloc_array(&s->host, s->n, sizeof *s->heap);
    s->order = vkt_alloc_array(&s->host, s->n, sizeof *s->order);
    return s->weight && s->heap && s->order ? VKT_OK : vkt_fail_nomem(&s->host, "a sampler", 16ull * s->n);
}

void vkt_sampler_release(vkt_sampler *s)
{
    vkt_free(&s->host, s->weight);
    vkt_free(&s->host, s->heap);
    vkt_free(&s->host, s->order);
    s->weight = NULL;
    s->heap = s->order = NULL;
}

/* ---- the order ---- */

/* The state of one choice. n_heap and n_order: how many ids are in s->heap and s->order. */
typedef struct choice {
    vkt_sampler *s;
    const float *logits;
    uint32_t n_heap, n_order;
} choice;

static bool is_before(const choice *c, uint32_t a, uint32_t b)
{
    return c->logits[a] > c->logits[b] || (c->logits[a] == c->logits[b] && a < b);
}

static void sift(choice *c, uint32_t at)
{
    uint32_t *heap = c->s->heap;
    const uint32_t id = heap[at];
    for (uint32_t child; (child = 2 * at + 1) < c->n_heap; at = child) {
        if (child + 1 < c->n_heap && is_before(c, heap[child + 1], heap[child])) child++;
        if (!is_before(c, heap[child], id)) break;
        heap[at] = heap[child];
    }
    heap[at] = id;
}

/* Returns token i of the order. */
static uint32_t at_order(choice *c, uint32_t i)
{
    while (c->n_order <= i) {
        c->s->order[c->n_order++] = c->s->heap[0];
        c->s->heap[0] = c->s->heap[--c->n_heap];
        if (c->n_heap) sift(c, 0);
    }
    return c->s->order[i];
}

/* ---- the choice ---- */

/* Finds the first token of the order. */
static vkt_result find_largest(const vkt_sampler *s, const float *logits, uint32_t *out)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (isnan(logits[i]) || logits[i] == INFINITY)
            return vkt_fail(&s->host, VKT_E_NAN, "generator: the logit of token %u is %g", i, (double)logits[i]);
        if (logits[i] > logits[largest]) largest = i;
    }
    if (isinf(logits[largest])) return vkt_fail(&s->host, VKT_E_NAN, "generator: all logits are -infinity");
    *out = largest;
    return VKT_OK;
}

/* Returns the number of tokens that remain after top_k and top_p. Sets *total to the sum of their weights. */
static uint32_t filter(choice *c, double *total)
{
    const vkt_sampler *s = c->s;
    const bool has_k = s->top_k && s->top_k < s->n;
    uint32_t n = has_k ? s->top_k : s->n;
    *total = 0;
    for (uint32_t i = 0; i < n; i++) *total += s->weight[has_k ? at_order(c, i) : i];
    if (!(s->top_p > 0 && s->top_p < 1)) return n;
    const double limit = s->top_p * *total;
    double sum = 0;
    uint32_t kept = 0;
    for (; kept < n && sum < limit; kept++) sum += s->weight[at_order(c, kept)];
    *total = sum;
    return kept;
}

vkt_result vkt_sampler_choose(vkt_sampler *s, const float *logits, uint32_t draw, uint32_t *id)
{
    uint32_t largest = 0;
    VKT_TRY(find_largest(s, logits, &largest));
    *id = largest;
    if (s->temperature == 0) return VKT_OK;
    choice c = { .s = s, .logits = logits, .n_heap = s->n };
    for (uint32_t i = 0; i < s->n; i++) {
        s->weight[i] = exp(((double)logits[i] - (double)logits[largest]) / s->temperature);
        s->heap[i] = i;
    }
    for (uint32_t i = s->n / 2; i-- > 0;) sift(&c, i);
    double total, sum = 0;
    const uint32_t n = filter(&c, &total);
    const vkt_philox w = vkt_philox4x32((vkt_philox){ { draw, 0, 0, VKT_STREAM_GENERATE } }, s->seed);
    const double u = (double)(((uint64_t)w.w[0] << 32 | w.w[1]) >> 11) * 0x1p-53;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t token = at_order(&c, i);
        /* Rounding may keep `sum` at or below u * total. In this case the loop chooses the last token whose weight is
         * above 0. */
        if (s->weight[token] <= 0) break;
        *id = token;
        sum += s->weight[token];
        if (sum > u * total) break;
    }
    return VKT_OK;
}
