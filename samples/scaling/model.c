/* scaling/model.c - see model.h. */
#include "scaling/model.h"

#include <math.h>

/* Returns how many messages of an all-reduce a rank sends one after the other. */
static uint32_t messages(scaling_algorithm algorithm, uint32_t ranks)
{
    uint32_t rounds = 0;
    if (algorithm == SCALING_RING) return 2 * (ranks - 1);
    while (rounds < 31 && 1u << rounds < ranks) rounds++;
    return 2 * rounds;
}

double scaling_exchange_ms(const scaling_network *net, double bytes, uint32_t ranks)
{
    if (ranks < 2) return 0;
    const double sent = 2 * bytes * (ranks - 1) / ranks; /* bytes that each rank sends, and also receives */
    double ms = messages(net->algorithm, ranks) * net->latency_us * 1e-3;
    if (net->gb_per_s > 0) ms += sent * (net->contention > 0 ? net->contention : 1) / (net->gb_per_s * 1e6);
    if (net->copy_gb_per_s > 0) ms += 2 * bytes / (net->copy_gb_per_s * 1e6);
    return ms;
}

/* Returns the bytes of the exchange that begins with bucket *k at `start_ms`. Sets *k to the first bucket of the next
 * exchange. */
static double join(const scaling_profile *p, const scaling_network *net, double start_ms, size_t *k)
{
    double bytes = p->buckets[(*k)++].bytes;
    for (; *k < p->n_buckets; ++*k) {
        const scaling_bucket *b = p->buckets + *k;
        if (b->ready_ms > start_ms || bytes + b->bytes > net->fuse_bytes) break;
        bytes += b->bytes;
    }
    return bytes;
}

scaling_step scaling_predict(const scaling_profile *p, const scaling_network *net, uint32_t ranks)
{
    const double computed = p->forward_ms + p->backward_ms, alone = computed + p->update_ms;
    scaling_step s = { 0 };
    double end = 0; /* end of the last exchange so far, in ms */
    for (size_t k = 0; ranks > 1 && k < p->n_buckets; s.exchanges++) {
        const double start = fmax(end, p->buckets[k].ready_ms);
        end = start + scaling_exchange_ms(net, join(p, net, start, &k), ranks);
    }
    s.exposed_ms = fmax(0, end - computed);
    s.step_ms = alone + s.exposed_ms;
    s.efficiency = s.step_ms > 0 ? alone / s.step_ms : 1;
    return s;
}

void scaling_fill(scaling_profile *p, double bytes)
{
    size_t n = 0;
    for (size_t k = 0; k < p->n_buckets; k++) {
        const scaling_bucket next = p->buckets[k];
        if (n > 0 && p->buckets[n - 1].bytes + next.bytes <= bytes) {
            p->buckets[n - 1].bytes += next.bytes;
            p->buckets[n - 1].ready_ms = next.ready_ms;
        } else {
            p->buckets[n++] = next;
        }
    }
    p->n_buckets = n;
}
