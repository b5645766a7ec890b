/* train/replicas.c - the other ranks of this process: their connections, and a thread for each of their fits. The
 * caller sees the trainer of rank 0 only. The trainers of the other ranks are its replicas. */
#include <pthread.h>

#include "train/identity.h"

uint32_t vkt_replicas_count(const vkt_trainer *t)
{
    return t->replicas ? t->params.n_more_devices : 0;
}

/* The longest time that a rank of this process may keep the others waiting. A rank that fails reports its failure at
 * once, so this limit is for ranks that hang. Callbacks of the application and the first run on a slow driver must stay
 * below the limit. */
static const double patience_seconds = 3600;

/* Makes new connections of all ranks. After a failure, the old connections stay. */
static vkt_result connect(vkt_trainer *t, uint32_t ranks)
{
    vkt_thread_group *group;
    VKT_TRY(vkt_thread_group_create(&t->host, ranks, patience_seconds, &group));
    vkt_thread_group_destroy(&t->group);
    t->group = group;
    for (uint32_t i = 0; i < ranks; i++) t->transports[i] = vkt_thread_group_transport(group, i);
    return VKT_OK;
}

vkt_result vkt_replicas_connect(vkt_trainer *t, vkt_trainer_params *p)
{
    const vkt_host *h = &t->host;
    const uint32_t ranks = p->n_more_devices + 1;
    if (!p->n_more_devices) return VKT_OK;
    if (p->dist.transport) return vkt_fail(h, VKT_E_ARG, "trainer: want dist.transport or more_devices, got both");
    VKT_TRY(vkt_shards_check_ranks(h, ranks));
    for (uint32_t i = 0; i < p->n_more_devices; i++) {
        bool once = p->more_devices && p->more_devices[i] && p->more_devices[i] != t->ctx;
        for (uint32_t k = 0; once && k < i; k++) once = p->more_devices[k] != p->more_devices[i];
        if (!once) return vkt_fail(h, VKT_E_ARG, "trainer: want contexts in more_devices, each one once");
    }
    t->transports = vkt_alloc_array(h, ranks, sizeof *t->transports);
    t->replicas = vkt_alloc_array(h, ranks, sizeof(vkt_trainer *));
    if (!t->transports || !t->replicas) return vkt_fail_nomem(h, "ranks", ranks * sizeof *t->transports);
    VKT_TRY(connect(t, ranks));
    p->dist.transport = &t->transports[0];
    return VKT_OK;
}

void vkt_replicas_disconnect(vkt_trainer *t)
{
    vkt_thread_group_destroy(&t->group);
    vkt_free(&t->host, t->transports);
    vkt_free(&t->host, t->replicas);
}

/* ---- a fit of all ranks ---- */

/* Copies the state of rank 0 to a replica. */
static vkt_result follow(vkt_trainer *r, const vkt_trainer *first, const vkt_snapshot *state)
{
    vkt_history_free(&r->history);
    for (size_t i = 0; i < first->history.n; i++) VKT_TRY(vkt_history_add(&r->history, &first->history.records[i]));
    memcpy(r->best, first->best, vkt_store_elements(r->store) * sizeof *r->best);
    r->at = first->at;
    r->diverged = first->diverged;
    r->params.seed = first->params.seed;
    r->shards.broken = false;
    return vkt_trainer_restore(r, state);
}

vkt_result vkt_replicas_follow(vkt_trainer *t)
{
    vkt_snapshot state;
    const uint32_t n = vkt_replicas_count(t);
    if (n == 0) return VKT_OK;
    vkt_result r = vkt_trainer_snapshot(t, &state);
    for (uint32_t i = 0; i < n && r == VKT_OK; i++) r = follow(t->replicas[i], t, &state);
    vkt_snapshot_free(&t->host, &state);
    return r;
}

/* Prepares all ranks before the threads begin. Makes new connections and computes the hashes of the data sets. If the
 * caller may have written to the store, copies the state of rank 0 to the other ranks. */
static vkt_result prepare(vkt_trainer *t, uint32_t n)
{
    VKT_TRY(connect(t, n + 1));
    VKT_TRY(vkt_identity_compute(t));
    for (uint32_t i = 0; i < n; i++) VKT_TRY(vkt_identity_compute(t->replicas[i]));
    return t->store_given ? vkt_replicas_follow(t) : VKT_OK;
}

/* The fit of another rank. This fit runs in a thread of its own. */
typedef struct job {
    vkt_trainer *t;
    vkt_fit_params params;
    vkt_fit_function fit;
    pthread_t thread;
    vkt_result result;
} job;

static void *run(void *arg)
{
    job *j = arg;
    j->result = j->fit(j->t, &j->params);
    return NULL;
}

vkt_result vkt_replicas_fit(vkt_trainer *t, const vkt_fit_params *p, vkt_fit_function fit)
{
    const uint32_t n = vkt_replicas_count(t);
    if (n == 0) return fit(t, p);
    job *jobs = vkt_alloc_array(&t->host, n, sizeof *jobs);
    if (!jobs) return vkt_fail_nomem(&t->host, "threads", n * sizeof *jobs);
    uint32_t started = 0;
    vkt_result r = prepare(t, n);
    for (; started < n && r == VKT_OK; started++) {
        job *j = &jobs[started];
        *j = (job){ .t = t->replicas[started], .params = *p, .fit = fit };
        j->params.callbacks = (vkt_fit_callbacks){ 0 };
        if (pthread_create(&j->thread, NULL, run, j) != 0) break;
    }
    if (r == VKT_OK && started == n) {
        r = fit(t, p);
    } else if (r == VKT_OK) {
        t->transports[0].fault(t->transports[0].user, "a thread does not start");
        r = VKT_E_NOMEM;
    }
    for (uint32_t i = 0; i < started; i++) pthread_join(jobs[i].thread, NULL);
    for (uint32_t i = 0; i < started && r == VKT_OK; i++) r = jobs[i].result;
    vkt_free(&t->host, jobs);
    return r;
}
