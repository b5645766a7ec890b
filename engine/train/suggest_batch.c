/* train/suggest_batch.c - gives advice after a trainer did not fit into memory or exceeded another limit of the device:
 * a smaller batch that fits, or a larger memory cap.
 *
 * The bytes that a batch needs are computed from memory plans (vkt_program_needs), without work on the device. Each
 * batch size needs a plan for training, and a plan for validation if there is a validation set. The search makes plans
 * only for the batch that did not fit and for some powers of two. A streamed data set has only a ring of a few batches
 * in device memory (feed.h). */
#include "record/record.h"
#include "train/trainer.h"

/* An estimate of the memory that is needed in addition to the plans: memory blocks that are not full (gpu/memory.c),
 * staging, and small buffers. */
static const uint64_t SLACK_BYTES = 96ull << 20;

typedef struct need {
    uint64_t program;       /* bytes without the data sets: activations, scratch, arenas, the arrays of shard_bytes */
    uint64_t data;          /* bytes of the data sets, if only those that must be streamed are streamed */
    uint64_t data_streamed; /* bytes of the data sets, if all are streamed */
    uint64_t data_most;     /* sum over the data sets: the bytes that a set adds to `data` or to `data_streamed`,
                             * whichever are more */
} need;

static void add_data(const vkt_trainer *t, const vkt_dataset *d, uint32_t batch, need *n, vkt_feed *feed)
{
    *feed = (vkt_feed){ .ctx = t->ctx, .h = &t->host, .data = d, .n = vkt_dataset_rows(d), .streams = true };
    feed->batch = VKT_MIN(batch, feed->n);
    const uint64_t streamed = vkt_feed_bytes(feed);
    feed->streams = t->params.stream || vkt_dataset_varies(d);
    n->data_streamed += streamed;
    n->data += vkt_feed_bytes(feed);
    n->data_most += VKT_MAX(streamed, vkt_feed_bytes(feed));
}

/* Returns the bytes of the store's arenas for this graph: parameters, gradients, moments and others. */
static uint64_t store_bytes(const vkt_graph *g)
{
    uint64_t bytes = 0;
    for (int i = 0; i < VKT_ARENAS; i++) bytes += i == 0 || g->arena[i].id ? g->arena_bytes : 0;
    return bytes;
}

/* Returns the bytes of the arrays that a step with shards needs (vkt_shard_values). shard.update is not counted,
 * because it has the same array as shard.sum. */
static uint64_t shard_bytes(const vkt_step_graphs *g)
{
    const vkt_tensor all[] = { g->shard.sum, g->shard.planes, g->shard.saved };
    uint64_t bytes = 0;
    for (size_t i = 0; i < VKT_COUNT(all); i++) bytes += vkt_value_of(g->g, all[i])->bytes;
    return bytes;
}

static vkt_result plan_training(const vkt_trainer *t, uint32_t batch, need *n)
{
    const vkt_program_params p = { .precision = t->params.precision, .recompute = t->params.recompute };
    vkt_step_graphs g;
    vkt_feed feed;
    vkt_feed_values v;
    vkt_head head;
    vkt_memory_needs least = { 0 };
    add_data(t, t->params.train, VKT_MAX(1u, batch / VKT_MAX(1u, t->shards.count)), n, &feed);
    vkt_result r = vkt_trainer_graph(t, &feed, &g, &v, &head, NULL);
    if (r == VKT_OK) r = vkt_program_needs(t->ctx, g.g, &p, &least);
    if (r == VKT_OK) n->program += least.program_bytes + store_bytes(g.update ? g.update : g.g);
    if (r == VKT_OK && g.update) n->program += shard_bytes(&g);
    vkt_step_graphs_free(&g);
    return r;
}

static vkt_result plan_validation(const vkt_trainer *t, uint32_t batch, need *n)
{
    const vkt_program_params p = { .precision = t->params.precision };
    vkt_graph *g = NULL;
    vkt_feed feed;
    vkt_feed_values v;
    vkt_head head;
    vkt_tensor classes;
    vkt_memory_needs least = { 0 };
    if (!t->params.validation) return VKT_OK;
    add_data(t, t->params.validation, batch, n, &feed);
    vkt_result r = vkt_evaluator_graph(t, &feed, &g, &v, &head, &classes);
    if (r == VKT_OK) r = vkt_program_needs(t->ctx, g, &p, &least);
    if (r == VKT_OK) n->program += least.program_bytes;
    vkt_graph_destroy(&g);
    return r;
}

static bool plan(const vkt_trainer *t, uint32_t batch, need *n)
{
    *n = (need){ 0 };
    return plan_training(t, batch, n) == VKT_OK && plan_validation(t, batch, n) == VKT_OK;
}

/* Returns whether the need is within the cap. Data larger than half of the cap count as streamed. This is an estimate:
 * vkt_feed_create streams a data set that does not fit into half of the memory that is left. */
static bool fits(const need *n, uint64_t cap)
{
    const uint64_t data = n->data <= cap / 2 ? n->data : n->data_streamed;
    const uint64_t slack = VKT_MIN(SLACK_BYTES, cap / 2);
    return n->program + data + slack <= cap;
}

/* Returns the largest power of two below `batch` that fits. Returns 0 if none fits, or if the result would be below the
 * number of shards. */
static uint32_t batch_that_fits(const vkt_trainer *t, uint32_t batch, uint64_t cap)
{
    need n;
    uint32_t low = 0, high = 0; /* in the second loop: 2^low fits; 2^high does not fit, or is at least `batch` */
    if (batch == 1 || !plan(t, 1, &n) || !fits(&n, cap)) return 0;
    while (high < 31 && 2u << high <= batch) high++;
    if (batch > 1u << high) high++; /* then the loop tries the largest power of two below `batch`, too */
    while (low + 1 < high) {
        const uint32_t middle = (low + high) / 2;
        if (plan(t, 1u << middle, &n) && fits(&n, cap))
            low = middle;
        else
            high = middle;
    }
    return 1u << low >= t->shards.count ? 1u << low : 0;
}

void vkt_trainer_suggest_batch(vkt_trainer *t)
{
    const vkt_host h = t->host;
    const uint32_t batch = t->params.batch;
    vkt_memory_stats m;
    vkt_ctx_memory(t->ctx, &m);
    need n;
    t->host.log_level = VKT_LOG_NONE; /* the search may try batches that cannot be planned; this is no error */
    const bool planned = plan(t, batch, &n);
    const uint32_t fit = batch_that_fits(t, batch, m.cap_bytes);
    t->host = h;
    char advice[64] = "raise it, for no smaller batch would fit";
    if (fit) snprintf(advice, sizeof advice, "a batch of %u would fit; or raise the limit", fit);
    if (planned)
        vkt_log_line(
            &h, VKT_LOG_ERROR,
            "trainer: a batch of %u takes up to %llu MiB of device memory (activations and scratch, parameters, data), "
            "and the limit is %llu MiB: %s",
            batch, (unsigned long long)((n.program + n.data_most + SLACK_BYTES) >> 20) + 1,
            (unsigned long long)(m.cap_bytes >> 20), advice);
    else if (fit)
        vkt_log_line(&h, VKT_LOG_ERROR, "trainer: a batch of %u is too large for this device: a batch of %u would fit",
                     batch, fit);
}
