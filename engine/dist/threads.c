/* dist/threads.c - the transport between threads of one process. One mutex guards all state. A receiver copies from the
 * sender's buffer without the mutex, so both directions of an exchange are copied at the same time, and each byte is
 * copied once.
 *
 * When a rank has waited as long as the timeout, it looks for the cause. It follows a chain: the rank for which it
 * waits, the rank for which that rank waits, and so on. The chain ends at the first rank that is in no call: this rank
 * does not answer. If the chain is a cycle, the search stops after as many steps as there are ranks, and the rank that
 * it has reached counts as the end. The last rank before the end waits for the rank at the end. If this last rank has
 * also waited as long as the timeout, the group fails. If not, the search is repeated when this last rank has waited as
 * long. */
#include "base/base.h"
#include "base/system.h"
#include "vktrain/dist.h"

#include <pthread.h>
#include <stdio.h>

#define USUAL_TIMEOUT 60.0
#define LONGEST_TIMEOUT 1e9

/* The call in which a rank is now. */
typedef enum call_kind { CALL_NONE = 0, CALL_EXCHANGE, CALL_BARRIER } call_kind;

/* The state of one rank. */
typedef struct member {
    vkt_thread_group *group;
    uint32_t number;
    pthread_cond_t wake; /* signalled after each change that may end a wait of this rank */
    call_kind call;
    uint64_t since_ns; /* when the call began */
    uint32_t peer;     /* `peer` and all below are only for CALL_EXCHANGE */
    const void *send;
    size_t bytes;
    bool reading; /* the peer copies from `send` */
    bool taken;   /* the peer has copied all of `send` */
} member;

struct vkt_thread_group {
    vkt_host host;
    uint32_t n;
    uint64_t timeout_ns;
    pthread_mutex_t lock;
    member *ranks;
    uint32_t in_barrier;
    uint64_t barriers; /* barriers that have ended */
    bool failed;
};

static void wake_all(vkt_thread_group *g)
{
    for (uint32_t i = 0; i < g->n; i++) pthread_cond_signal(&g->ranks[i].wake);
}

/* Logs one message and fails all calls of the group. The caller holds the lock, so the message comes before any call
 * returns VKT_E_PEER. */
static void fail_group(vkt_thread_group *g, const char *fmt, ...) VKT_PRINTF(2, 3);
static void fail_group(vkt_thread_group *g, const char *fmt, ...)
{
    if (g->failed) return;
    va_list args;
    va_start(args, fmt);
    vkt_log_line_v(&g->host, VKT_LOG_ERROR, fmt, args);
    va_end(args);
    g->failed = true;
    wake_all(g);
}

/* ---- ranks that do not answer ---- */

/* Returns the rank for which r waits: its peer, or the first rank that is not in the barrier. If all ranks are in the
 * barrier, returns r. */
static const member *waits_for(const vkt_thread_group *g, const member *r)
{
    if (r->call == CALL_EXCHANGE) return &g->ranks[r->peer];
    for (uint32_t i = 0; i < g->n; i++)
        if (g->ranks[i].call != CALL_BARRIER) return &g->ranks[i];
    return r;
}

/* Called after r has waited as long as the timeout. Either fails the group, or returns a new time until which r must
 * wait. If r waits for a rank whose data are copied right now, or for the rank that copies them, no rank has failed: a
 * copy may take longer than the timeout. The caller holds the lock. */
static uint64_t find_culprit(vkt_thread_group *g, const member *r, uint64_t now_ns)
{
    const member *before = r, *end = waits_for(g, r);
    bool copies = r->reading || end->reading;
    for (uint32_t steps = 0; end->call != CALL_NONE && steps < g->n; steps++) {
        before = end;
        end = waits_for(g, end);
        copies = copies || end->reading;
    }
    if (copies) return now_ns + g->timeout_ns;
    const uint64_t waited_ns = now_ns - before->since_ns;
    if (waited_ns < g->timeout_ns) return before->since_ns + g->timeout_ns;
    const double seconds = (double)waited_ns * 1e-9;
    if (end->call == CALL_NONE)
        fail_group(g, "rank %u does not answer: rank %u waits for it since %.3g s", end->number, before->number,
                   seconds);
    else
        fail_group(g, "rank %u and rank %u wait for each other since %.3g s, in calls that do not match", end->number,
                   before->number, seconds);
    return now_ns;
}

/* Waits once, for a change or until *until_ns. At that time it calls find_culprit, which fails the group or returns a
 * later *until_ns. The caller holds the lock. */
static void wait_once(vkt_thread_group *g, member *r, uint64_t *until_ns)
{
    if (vkt_cond_wait_until(&r->wake, &g->lock, *until_ns) || g->failed) return;
    const uint64_t now_ns = vkt_now_ns();
    if (now_ns >= *until_ns) *until_ns = find_culprit(g, r, now_ns);
}

/* ---- the functions of the transport ---- */

static vkt_result enter(member *r, call_kind call)
{
    vkt_thread_group *g = r->group;
    if (g->failed) return VKT_E_PEER;
    r->call = call;
    r->since_ns = vkt_now_ns();
    return VKT_OK;
}

/* Returns whether the peer is in the matching exchange, and its data are not copied yet. */
static bool meets(const member *r, const member *peer)
{
    return peer->call == CALL_EXCHANGE && peer->peer == r->number && !peer->taken;
}

/* Copies the peer's data. The caller holds the lock, which is released during the copy. */
static void copy_from(member *peer, void *receive, size_t bytes)
{
    vkt_thread_group *g = peer->group;
    const void *send = peer->send;
    peer->reading = true;
    pthread_mutex_unlock(&g->lock);
    if (bytes) memcpy(receive, send, bytes);
    pthread_mutex_lock(&g->lock);
    peer->reading = false;
    peer->taken = true;
    peer->since_ns = vkt_now_ns(); /* during the copy, the peer waited for no rank */
    pthread_cond_signal(&peer->wake);
}

/* The body of thread_exchange. The caller holds the lock. */
static vkt_result meet_and_copy(member *r, member *peer, void *receive)
{
    vkt_thread_group *g = r->group;
    uint64_t until_ns = r->since_ns + g->timeout_ns;
    while (!g->failed && !meets(r, peer)) wait_once(g, r, &until_ns);
    if (!g->failed && peer->bytes != r->bytes)
        fail_group(g, "rank %u has failed: it exchanges %zu bytes with rank %u, which exchanges %zu", r->number,
                   r->bytes, peer->number, peer->bytes);
    const bool copied = !g->failed;
    if (copied) copy_from(peer, receive, r->bytes);
    while (!g->failed && !r->taken) wait_once(g, r, &until_ns);
    while (r->reading) pthread_cond_wait(&r->wake, &g->lock); /* also after a failure, the peer may still read `send` */
    return copied && r->taken ? VKT_OK : VKT_E_PEER;
}

static vkt_result thread_exchange(void *user, uint32_t peer, const void *send, void *receive, size_t bytes)
{
    member *r = user;
    vkt_thread_group *g = r->group;
    if (peer >= g->n || peer == r->number || (bytes && (!send || !receive)))
        return vkt_fail(&g->host, VKT_E_ARG, "rank %u of %u: exchange wants another rank and memory, got rank %u%s",
                        r->number, g->n, peer, bytes && (!send || !receive) ? " and NULL" : "");
    pthread_mutex_lock(&g->lock);
    vkt_result result = enter(r, CALL_EXCHANGE);
    if (result == VKT_OK) {
        r->peer = peer;
        r->send = send;
        r->bytes = bytes;
        r->taken = false;
        pthread_cond_signal(&g->ranks[peer].wake);
        result = meet_and_copy(r, &g->ranks[peer], receive);
        r->call = CALL_NONE;
    }
    pthread_mutex_unlock(&g->lock);
    return result;
}

static vkt_result thread_barrier(void *user)
{
    member *r = user;
    vkt_thread_group *g = r->group;
    pthread_mutex_lock(&g->lock);
    vkt_result result = enter(r, CALL_BARRIER);
    if (result == VKT_OK) {
        const uint64_t number = g->barriers;
        if (++g->in_barrier == g->n) {
            g->in_barrier = 0;
            g->barriers++;
            for (uint32_t i = 0; i < g->n; i++) g->ranks[i].call = CALL_NONE; /* no rank is in the barrier any more */
            wake_all(g);
        }
        uint64_t until_ns = r->since_ns + g->timeout_ns;
        while (!g->failed && g->barriers == number) wait_once(g, r, &until_ns);
        result = g->barriers == number ? VKT_E_PEER : VKT_OK;
        r->call = CALL_NONE;
    }
    pthread_mutex_unlock(&g->lock);
    return result;
}

static void thread_fault(void *user, const char *reason)
{
    member *r = user;
    vkt_thread_group *g = r->group;
    pthread_mutex_lock(&g->lock);
    fail_group(g, "rank %u has failed: %s", r->number, reason ? reason : "no reason given");
    pthread_mutex_unlock(&g->lock);
}

/* ---- the group ---- */

vkt_result vkt_thread_group_create(const vkt_host *host, uint32_t ranks, double timeout_seconds, vkt_thread_group **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    const vkt_host h = vkt_host_resolve(host);
    if (ranks == 0 || ranks > VKT_MAX_SHARDS || (ranks & (ranks - 1)) != 0)
        return vkt_fail(&h, VKT_E_ARG, "thread group: want a power of two of at most %d ranks, got %u", VKT_MAX_SHARDS,
                        ranks);
    if (!(timeout_seconds >= 0 && timeout_seconds <= LONGEST_TIMEOUT))
        return vkt_fail(&h, VKT_E_ARG, "thread group: want a timeout of 0 to %g seconds, got %g", LONGEST_TIMEOUT,
                        timeout_seconds);
    vkt_thread_group *g = vkt_alloc(&h, sizeof *g);
    if (!g) return vkt_fail_nomem(&h, "a thread group", sizeof *g);
    *g = (vkt_thread_group){ .host = h, .n = ranks };
    g->timeout_ns = (uint64_t)(vkt_or(timeout_seconds, USUAL_TIMEOUT) * 1e9);
    g->ranks = vkt_alloc_array(&h, ranks, sizeof *g->ranks);
    if (!g->ranks) {
        vkt_free(&h, g);
        return vkt_fail_nomem(&h, "the ranks of a thread group", ranks * sizeof *g->ranks);
    }
    pthread_mutex_init(&g->lock, NULL);
    for (uint32_t i = 0; i < ranks; i++) {
        g->ranks[i] = (member){ .group = g, .number = i };
        vkt_cond_init(&g->ranks[i].wake);
    }
    *out = g;
    return VKT_OK;
}

void vkt_thread_group_destroy(vkt_thread_group **g_ptr)
{
    if (!g_ptr || !*g_ptr) return;
    vkt_thread_group *g = *g_ptr;
    for (uint32_t i = 0; i < g->n; i++) pthread_cond_destroy(&g->ranks[i].wake);
    pthread_mutex_destroy(&g->lock);
    const vkt_host h = g->host;
    vkt_free(&h, g->ranks);
    vkt_free(&h, g);
    *g_ptr = NULL;
}

vkt_transport vkt_thread_group_transport(vkt_thread_group *g, uint32_t rank)
{
    if (!g || rank >= g->n) return (vkt_transport){ 0 };
    return (vkt_transport){ .user = &g->ranks[rank],
                            .rank = rank,
                            .ranks = g->n,
                            .exchange = thread_exchange,
                            .barrier = thread_barrier,
                            .fault = thread_fault };
}
