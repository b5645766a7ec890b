/* train/shards.c - the graphs, arrays and programs of a step that is split into shards. */
#include "train/steps.h"

#include "record/record.h"
#include "train/trainer.h"

static bool is_power_of_two(uint32_t n)
{
    return n && (n & (n - 1)) == 0;
}

vkt_result vkt_shards_check_ranks(const vkt_host *h, uint32_t ranks)
{
    if (is_power_of_two(ranks) && ranks <= VKT_MAX_SHARDS) return VKT_OK;
    return vkt_fail(h, VKT_E_ARG,
                    "trainer: want a number of ranks that is a power of two, at most %d, got %u: %u would work",
                    VKT_MAX_SHARDS, ranks, VKT_MIN(1u << vkt_log2(ranks ? ranks : 1), (uint32_t)VKT_MAX_SHARDS));
}

/* Checks the numbers of shards and ranks, and the batch size that the caller wants. */
static vkt_result check(const vkt_trainer *t, uint32_t ranks, uint32_t shards, uint32_t batch)
{
    const vkt_host *h = &t->host;
    VKT_TRY(vkt_shards_check_ranks(h, ranks));
    if (!is_power_of_two(shards) || shards > VKT_MAX_SHARDS)
        return vkt_fail(h, VKT_E_ARG, "trainer: want a number of shards that is a power of two, at most %d, got %u",
                        VKT_MAX_SHARDS, shards);
    if (shards < ranks)
        return vkt_fail(h, VKT_E_ARG, "trainer: want at least one shard for each of the %u ranks, got %u shards", ranks,
                        shards);
    if (batch % shards == 0) return VKT_OK;
    const uint32_t below = batch / shards * shards;
    return vkt_fail(h, VKT_E_ARG, "trainer: want a batch that is a multiple of the %u shards, got %u: %u would work",
                    shards, batch, below ? below : shards);
}

static uint32_t micro_batches(const vkt_trainer *t)
{
    return VKT_MAX(t->params.optimizer.micro_batches, 1u);
}

vkt_result vkt_shards_resolve(vkt_trainer *t)
{
    vkt_trainer_params *q = &t->params;
    const vkt_transport *transport = q->dist.transport;
    vkt_shards *s = &t->shards;
    *s = (vkt_shards){ .ranks = transport ? transport->ranks : 1, .rank = transport ? transport->rank : 0 };
    if ((unsigned)q->dist.wire > VKT_WIRE_BF16)
        return vkt_fail(&t->host, VKT_E_ARG, "trainer: want a vkt_wire, got %d", (int)q->dist.wire);
    if (!q->dist.shards) q->dist.shards = transport ? VKT_MAX(8u, s->ranks) : 1;
    VKT_TRY(check(t, s->ranks, q->dist.shards, t->batch_wanted));
    if (q->dist.shards == 1) return VKT_OK; /* without shards, s->count stays 0 */
    const uint32_t n = vkt_dataset_rows(q->train);
    q->batch = VKT_MIN(t->batch_wanted, n / q->dist.shards * q->dist.shards);
    if (!q->batch)
        return vkt_fail(&t->host, VKT_E_ARG, "trainer: want at least one sample for each of the %u shards, got %u",
                        q->dist.shards, n);
    s->count = q->dist.shards;
    s->own = s->count / s->ranks;
    s->first = s->rank * s->own;
    s->parts = micro_batches(t);
    s->rows = q->batch / s->count;
    return VKT_OK;
}

static vkt_shard_params params_of(const vkt_shards *s, const vkt_dist_params *p)
{
    return (vkt_shard_params){
        .levels = vkt_log2(s->own), .parts = s->parts, .draws = s->count * s->parts, .bf16 = p->wire == VKT_WIRE_BF16
    };
}

vkt_result vkt_shards_graph(const vkt_trainer *t, vkt_graph *g, vkt_shard_values *v, vkt_graph **update)
{
    const vkt_dist_params *d = &t->params.dist;
    vkt_shard_params p = params_of(&t->shards, d);
    uint64_t *ends;
    VKT_TRY(vkt_exchange_split(g, d->bucket_bytes ? d->bucket_bytes : 4u << 20, &ends, &p.n_ends));
    p.ends = ends;
    vkt_result r = vkt_shard_sums(g, &p, v);
    if (r == VKT_OK) r = vkt_graph_create(&t->host, update);
    if (r == VKT_OK) r = vkt_update_by_sum(*update, g, &t->params.optimizer, &p, &v->update);
    if (r == VKT_OK && t->params.ema_decay != 0) r = vkt_publish(*update, t->params.ema_decay);
    vkt_free(&t->host, ends);
    if (r != VKT_OK) return r;
    const float none = 0;
    vkt_report(*update, vkt_graph_const(*update, "none", VKT_F32, vkt_shape0(), &none), (vkt_tensor){ 0 });
    return vkt_graph_status(*update);
}

static vkt_result make_vector(vkt_trainer *t, vkt_graph *g, vkt_tensor like, const char *name, vkt_array **out)
{
    if (!like.id) return VKT_OK;
    const vkt_array_params p = { .shape = vkt_tensor_shape(g, like), .name = name };
    return vkt_array_create(t->ctx, &p, out);
}

vkt_result vkt_shards_arrays(vkt_trainer *t, const vkt_shard_values *v, vkt_binding *arrays, uint32_t *n)
{
    vkt_shards *s = &t->shards;
    VKT_TRY(vkt_exchange_create(t->ctx, &t->params.dist, s->g, &s->x));
    VKT_TRY(make_vector(t, t->g, v->planes, "gradient.planes", &s->planes));
    VKT_TRY(make_vector(t, t->g, v->saved, "states.saved", &s->saved));
    arrays[(*n)++] = (vkt_binding){ v->sum, s->x.sum };
    if (s->planes) arrays[(*n)++] = (vkt_binding){ v->planes, s->planes };
    if (s->saved) arrays[(*n)++] = (vkt_binding){ v->saved, s->saved };
    const size_t results = VKT_STEPS_PENDING * s->ranks * (1 + (size_t)s->own * s->parts);
    s->results = vkt_alloc_array(&t->host, results, sizeof *s->results);
    if (!s->results) return vkt_fail_nomem(&t->host, "results of shards", results * sizeof *s->results);
    const vkt_dataset *data = t->params.train;
    const uint32_t steps =
        vkt_dataset_terms(data) ? vkt_div_up(vkt_dataset_rows(data), s->count * s->parts * s->rows) : 0;
    if (steps) s->terms = vkt_alloc_array(&t->host, steps, sizeof *s->terms);
    return s->terms || !steps ? VKT_OK : vkt_fail_nomem(&t->host, "terms of steps", steps * sizeof *s->terms);
}

vkt_result vkt_shards_programs(vkt_trainer *t, const vkt_shard_values *v)
{
    vkt_shards *s = &t->shards;
    const vkt_binding sum = { v->update, s->x.sum };
    const vkt_program_params p = { .name = "update", .arrays = &sum, .n_arrays = 1, .precision = t->params.precision };
    VKT_TRY(vkt_program_create(t->ctx, s->g, t->store, &p, &s->update));
    return vkt_exchange_connect(&s->x, t->program, v->sum, s->update, v->update);
}

vkt_result vkt_shards_restore_states(vkt_trainer *t)
{
    vkt_shards *s = &t->shards;
    uint64_t at = 0; /* offset in s->saved, which has the states that change, in the order of the parameters */
    for (uint32_t i = 0; s->saved && i < t->g->n_params; i++) {
        const vkt_value *v = &t->g->values[t->g->params[i]];
        if (!v->changes) continue;
        VKT_TRY(vkt_readback(t->ctx, s->saved->buffer, at, t->weights, v->bytes));
        VKT_TRY(vkt_store_write(t->store, i, VKT_PART_VALUE, t->weights));
        at += vkt_round_up(v->bytes, VKT_ALIGN_BYTES);
    }
    return VKT_OK;
}

void vkt_shards_destroy(vkt_trainer *t)
{
    vkt_shards *s = &t->shards;
    vkt_exchange_abandon(&s->x);
    vkt_program_destroy(&s->update);
    vkt_exchange_destroy(&s->x);
    vkt_array_destroy(&s->planes);
    vkt_array_destroy(&s->saved);
    vkt_graph_destroy(&s->g);
    vkt_free(&t->host, s->results);
    s->results = NULL;
    vkt_free(&t->host, s->terms);
    s->terms = NULL;
}
