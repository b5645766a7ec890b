/* dist/exchange.c - see exchange.h. */
#include "dist/exchange.h"

#include "record/record.h"

vkt_result vkt_exchange_split(const vkt_graph *g, uint64_t bucket_bytes, uint64_t **ends, uint32_t *n)
{
    uint64_t *e = vkt_alloc_array(&g->host, g->n_params + 1, sizeof *e), end = g->arena_bytes;
    if (!e) return vkt_fail_nomem(&g->host, "buckets", g->n_params * sizeof *e);
    *n = 0;
    for (size_t i = g->n_params; i-- > 0;) {
        const uint64_t first = g->values[g->params[i]].arena_offset_bytes;
        if (end - first < bucket_bytes && first > 0) continue;
        e[(*n)++] = end;
        end = first;
    }
    for (uint32_t i = 0; i < *n / 2; i++) {
        const uint64_t swap = e[i];
        e[i] = e[*n - 1 - i];
        e[*n - 1 - i] = swap;
    }
    *ends = e;
    return VKT_OK;
}

static vkt_result make_sum(vkt_exchange *x)
{
    const vkt_shape shape = vkt_shape1((uint32_t)(x->ends[x->n - 1] / 4));
    if (x->active) return vkt_array_create_shared(x->ctx, VKT_F32, shape, "gradient.sum", &x->sum);
    return vkt_array_create(x->ctx, &(vkt_array_params){ .shape = shape, .name = "gradient.sum" }, &x->sum);
}

static uint64_t bucket_bytes(const vkt_exchange *x, uint32_t i)
{
    return x->ends[i] - (i ? x->ends[i - 1] : 0);
}

/* Copies the sums of the states of bucket b from x->sum to x->states. If `back`, copies them from x->states to x->sum.
 * Returns their bytes. If x->states is NULL, only counts these bytes. */
static uint64_t copy_states(const vkt_exchange *x, uint32_t b, bool back)
{
    char *sum = x->states ? vkt_array_map(x->sum) : NULL, *states = (char *)x->states;
    uint64_t n = 0;
    for (size_t i = 0; i < x->g->n_params; i++) {
        const vkt_value *v = &x->g->values[x->g->params[i]];
        const uint64_t at = v->arena_offset_bytes;
        if (!v->changes || at >= x->ends[b] || at < x->ends[b] - bucket_bytes(x, b)) continue;
        if (states) memcpy(back ? sum + at : states + n, back ? states + n : sum + at, v->bytes);
        n += v->bytes;
    }
    return n;
}

static vkt_result make_states(vkt_exchange *x)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < x->n && x->wire == VKT_WIRE_BF16; i++) {
        x->state_bytes[i] = copy_states(x, i, false);
        most = VKT_MAX(most, x->state_bytes[i]);
    }
    if (most) x->states = vkt_alloc(&x->ctx->host, most);
    return x->states || !most ? VKT_OK : vkt_fail_nomem(&x->ctx->host, "the states of a bucket", most);
}

vkt_result vkt_exchange_create(vkt_ctx *ctx, const vkt_dist_params *p, const vkt_graph *g, vkt_exchange *x)
{
    const vkt_host *h = &ctx->host;
    const uint32_t ranks = p->transport ? p->transport->ranks : 1, n = g->n_buckets;
    *x = (vkt_exchange){ .ctx = ctx, .g = g, .transport = p->transport, .wire = p->wire, .n = n };
    x->active = ranks > 1 || p->wire != VKT_WIRE_F32;
    x->ends = vkt_alloc_array(h, n, sizeof *x->ends);
    x->order = vkt_alloc_array(h, n, sizeof *x->order);
    x->section = vkt_alloc_array(h, n, sizeof *x->section);
    x->values = vkt_alloc_array(h, 2 * ((size_t)n + 1), sizeof *x->values);
    x->needs = vkt_alloc_array(h, n + 1, sizeof *x->needs);
    x->waits = vkt_alloc_array(h, n + 1, sizeof *x->waits);
    x->state_bytes = vkt_alloc_array(h, n, sizeof *x->state_bytes);
    if (!x->ends || !x->order || !x->section || !x->values || !x->needs || !x->waits || !x->state_bytes)
        return vkt_fail_nomem(h, "buckets", n * sizeof *x->waits);
    memcpy(x->ends, g->bucket_ends, n * sizeof *x->ends);
    uint64_t most = 0;
    for (uint32_t i = 0; i < n; i++) most = VKT_MAX(most, bucket_bytes(x, i));
    x->stats.buckets = n;
    x->stats.ranks = ranks;
    VKT_TRY(make_sum(x));
    if (!x->active) return VKT_OK;
    x->scratch = vkt_alloc(h, most / 2); /* vkt_all_reduce needs n / 2 floats for a bucket of n floats; n is even */
    if (!x->scratch) return vkt_fail_nomem(h, "half a bucket", most / 2);
    VKT_TRY(make_states(x));
    return vkt_gate_create(ctx, "exchange", &x->gate);
}

void vkt_exchange_destroy(vkt_exchange *x)
{
    if (!x->ctx) return;
    const vkt_host *h = &x->ctx->host;
    vkt_array_destroy(&x->sum);
    if (x->active) vkt_gate_destroy(x->ctx, &x->gate);
    vkt_free(h, x->ends);
    vkt_free(h, x->order);
    vkt_free(h, x->section);
    vkt_free(h, x->values);
    vkt_free(h, x->needs);
    vkt_free(h, x->waits);
    vkt_free(h, x->scratch);
    vkt_free(h, x->state_bytes);
    vkt_free(h, x->states);
    *x = (vkt_exchange){ 0 };
}

/* ---- sections ---- */

/* Writes the indices 0 .. n-1 of the buckets to `order`, sorted by rising key[index]. Of two buckets with equal keys,
 * the bucket with the higher index comes first. An insertion sort is fast enough, because n is small. */
static void sort_by(uint32_t *order, uint32_t n, const uint32_t *key)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t b = n - 1 - i;
        uint32_t k = i;
        for (; k > 0 && key[order[k - 1]] > key[b]; k--) order[k] = order[k - 1];
        order[k] = b;
    }
}

/* Splits the program of shards into sections. For each bucket b, a section ends behind last[b], the last dispatch that
 * uses the bucket. The last section ends with the program. `marks` gets the index of the first dispatch of each section
 * but the first one. Sets x->order, x->section and x->n_sections. */
static vkt_result mark_shards(vkt_exchange *x, vkt_program *p, const uint32_t *last, uint32_t *marks)
{
    uint32_t n = 0;
    sort_by(x->order, x->n, last);
    for (uint32_t i = 0; i < x->n; i++) {
        const uint32_t b = x->order[i], end = last[b] + 1;
        if (end < p->lowered.n && (n == 0 || marks[n - 1] < end)) marks[n++] = end;
        x->section[b] = end < p->lowered.n ? n - 1 : n;
    }
    x->n_sections = n + 1;
    return vkt_program_mark(p, marks, n);
}

/* Splits the update program into sections. A section begins at each dispatch that needs a sum which arrives later than
 * all sums that earlier dispatches need. first[b] is the first dispatch that needs bucket b. `marks` gets the index of
 * the first dispatch of each section but the first one, which begins at dispatch 0. Sets x->needs and x->n_waits. */
static vkt_result mark_update(vkt_exchange *x, vkt_program *p, const uint32_t *first, uint32_t *marks, uint32_t *users)
{
    uint32_t n = 0;
    sort_by(users, x->n, first);
    x->needs[0] = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        uint32_t back = 0; /* number of buckets whose sums arrive no later than the sum of bucket users[i] */
        while (x->order[back++] != users[i]) {
        }
        if (back <= x->needs[n]) continue;
        const uint32_t at = first[users[i]];
        if (at > (n ? marks[n - 1] : 0)) marks[n++] = at;
        x->needs[n] = back;
    }
    x->n_waits = n + 1;
    return vkt_program_mark(p, marks, n);
}

vkt_result vkt_exchange_connect(vkt_exchange *x, vkt_program *shards, vkt_tensor t, vkt_program *update, vkt_tensor u)
{
    if (!x->active) { /* each program is one section */
        x->n_sections = x->n_waits = 1;
        return VKT_OK;
    }
    uint32_t *room = vkt_alloc_array(&x->ctx->host, 4 * (size_t)x->n, sizeof *room);
    if (!room) return vkt_fail_nomem(&x->ctx->host, "buckets", 4 * (size_t)x->n * sizeof *room);
    uint32_t *first = room, *last = room + x->n, *marks = last + x->n, *users = marks + x->n;
    vkt_result r = vkt_program_users(shards, t, x->ends, x->n, first, last);
    if (r == VKT_OK) r = mark_shards(x, shards, last, marks);
    if (r == VKT_OK) r = vkt_program_users(update, u, x->ends, x->n, first, last);
    if (r == VKT_OK) r = mark_update(x, update, first, marks, users);
    vkt_free(&x->ctx->host, room);
    return r;
}

/* ---- steps ---- */

uint64_t *vkt_exchange_values(vkt_exchange *x)
{
    return x->values + x->begun % 2 * (x->n + 1);
}

vkt_result vkt_exchange_update(vkt_exchange *x, vkt_program *update, const vkt_run *run, uint64_t *run_index)
{
    if (!x->active) return vkt_program_run_sections(update, run, NULL, NULL, NULL, run_index);
    /* With VKT_DEBUG of 2 or more, the run below does not wait for x->waits, so all sums must arrive before the run. */
    const bool eager = update->debug.level >= 2;
    for (uint32_t i = 0; i < x->n_waits; i++) x->waits[i] = vkt_gate_wait(&x->gate, x->begun * x->n + x->needs[i]);
    x->begun++;
    if (eager)
        while (x->done < x->begun) VKT_TRY(vkt_exchange_step(x));
    return vkt_program_run_sections(update, run, NULL, x->waits, NULL, run_index);
}

static vkt_result exchange_bucket(vkt_exchange *x, uint32_t b)
{
    const uint64_t bytes = bucket_bytes(x, b), first = x->ends[b] - bytes;
    const vkt_transport alone = { .ranks = 1 }, *t = x->transport ? x->transport : &alone;
    float *data = (float *)(void *)((char *)vkt_array_map(x->sum) + first);
    if (!x->state_bytes[b]) return vkt_all_reduce(t, data, bytes / 4, x->wire, x->scratch);
    copy_states(x, b, false); /* before they are rounded */
    VKT_TRY(vkt_all_reduce(t, data, bytes / 4, x->wire, x->scratch));
    VKT_TRY(vkt_all_reduce(t, x->states, x->state_bytes[b] / 4, VKT_WIRE_F32, x->scratch));
    copy_states(x, b, true);
    return VKT_OK;
}

/* Adds the bytes and times of bucket b to x->stats. `number` is the index of b in x->order. The bucket was complete at
 * the time `ready`, and its sum over all ranks had arrived at the time `back` (ns). `exposed`: the backward pass had
 * ended when the sum arrived. */
static void count(vkt_exchange *x, uint32_t b, uint32_t number, uint64_t ready, uint64_t back, bool exposed)
{
    vkt_dist_stats *s = &x->stats;
    const uint32_t ranks = x->transport ? x->transport->ranks : 1;
    const uint64_t summands = bucket_bytes(x, b) / (x->wire == VKT_WIRE_BF16 ? 2 : 1) + x->state_bytes[b];
    s->bytes += 2 * summands * (ranks - 1) / ranks;
    s->exchange_ms += (double)(back - ready) * 1e-6;
    if (exposed) s->exposed_ms += (double)(back - ready) * 1e-6;
    if (number >= VKT_DIST_BUCKETS) return;
    s->bucket_bytes[number] = bucket_bytes(x, b);
    if (x->last_ns) s->ready_ms[number] += (double)(ready - x->last_ns) * 1e-6;
}

vkt_result vkt_exchange_step(vkt_exchange *x)
{
    if (x->done == x->begun || !x->active) return VKT_OK;
    const uint64_t *values = x->values + x->done % 2 * (x->n + 1);
    const uint64_t last = values[x->section[x->order[x->n - 1]]];
    uint64_t back = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        const uint32_t b = x->order[i];
        VKT_TRY(vkt_wait(x->ctx, values[x->section[b]]));
        const uint64_t ready = vkt_now_ns();
        VKT_TRY(exchange_bucket(x, b));
        VKT_TRY(vkt_gate_open(x->ctx, &x->gate, x->done * x->n + i + 1));
        back = vkt_now_ns();
        count(x, b, i, ready, back, vkt_reached(x->ctx, last));
    }
    x->stats.steps += x->last_ns != 0;
    x->last_ns = back;
    x->done++;
    return VKT_OK;
}

void vkt_exchange_abandon(vkt_exchange *x)
{
    if (!x->active || x->done == x->begun) return;
    /* Signals each value, as a step does. If a signal skips values, the validation layer of Vulkan 1.3.239 reports
     * this signal as still pending. */
    while (x->gate.value < x->begun * x->n && vkt_gate_open(x->ctx, &x->gate, x->gate.value + 1) == VKT_OK) {
    }
    x->done = x->begun;
}
