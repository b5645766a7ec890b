/* dist/emulation.c - a cluster of which only rank 0 is real. An exchange copies `send` to `receive`. A call returns at
 * the time when its messages would have arrived: the call sleeps until shortly before that time, then calls vkt_now_ns
 * again and again. */
#include "base/base.h"
#include "base/system.h"
#include "vktrain/dist.h"

#define LONGEST_SECONDS 1e6
#define WATCH_NS 50000u /* the last part of a wait, without sleep, because a sleep could last too long */

struct vkt_emulation {
    vkt_host host;
    vkt_emulation_params params;
    bool failed;
};

static void wait_until(uint64_t end_ns)
{
    vkt_sleep_until(end_ns > WATCH_NS ? end_ns - WATCH_NS : 0);
    while (vkt_now_ns() < end_ns) continue;
}

static uint64_t message_ns(const vkt_emulation *e, size_t bytes)
{
    const double transfer = e->params.bytes_per_second > 0 ? (double)bytes / e->params.bytes_per_second : 0;
    return (uint64_t)(VKT_MIN(e->params.latency_seconds + transfer, LONGEST_SECONDS) * 1e9);
}

static vkt_result emulated_exchange(void *user, uint32_t peer, const void *send, void *receive, size_t bytes)
{
    const uint64_t start_ns = vkt_now_ns();
    const vkt_emulation *e = user;
    if (e->failed) return VKT_E_PEER;
    if (peer == 0 || peer >= e->params.ranks || (bytes && (!send || !receive)))
        return vkt_fail(&e->host, VKT_E_ARG, "rank 0 of %u: exchange wants another rank and memory, got rank %u%s",
                        e->params.ranks, peer, bytes && (!send || !receive) ? " and NULL" : "");
    if (bytes) memcpy(receive, send, bytes);
    wait_until(start_ns + message_ns(e, bytes));
    return VKT_OK;
}

static vkt_result emulated_barrier(void *user)
{
    const uint64_t start_ns = vkt_now_ns();
    const vkt_emulation *e = user;
    if (e->failed) return VKT_E_PEER;
    uint64_t ns = 0;
    for (uint32_t reached = 1; reached < e->params.ranks; reached *= 2) ns += message_ns(e, 0);
    wait_until(start_ns + ns);
    return VKT_OK;
}

static void emulated_fault(void *user, const char *reason)
{
    vkt_emulation *e = user;
    if (!e->failed) vkt_log_line(&e->host, VKT_LOG_ERROR, "rank 0 has failed: %s", reason ? reason : "no reason given");
    e->failed = true;
}

static bool is_amount(double x, double most)
{
    return x >= 0 && x <= most;
}

vkt_result vkt_emulation_create(const vkt_host *host, const vkt_emulation_params *params, vkt_emulation **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, params);
    const vkt_host h = vkt_host_resolve(host);
    const uint32_t n = params->ranks;
    const double latency_seconds = vkt_or(params->latency_seconds, 0);
    if (n == 0 || n > VKT_MAX_SHARDS || (n & (n - 1)) != 0)
        return vkt_fail(&h, VKT_E_ARG, "emulation: want a power of two of at most %d ranks, got %u", VKT_MAX_SHARDS, n);
    if (!is_amount(latency_seconds, LONGEST_SECONDS) || !is_amount(params->bytes_per_second, 1e30))
        return vkt_fail(&h, VKT_E_ARG,
                        "emulation: want a latency of 0 to %g s and 0 or more bytes per second, got %g and %g",
                        LONGEST_SECONDS, latency_seconds, params->bytes_per_second);
    vkt_emulation *e = vkt_alloc(&h, sizeof *e);
    if (!e) return vkt_fail_nomem(&h, "an emulation", sizeof *e);
    *e = (vkt_emulation){ .host = h, .params = *params };
    e->params.latency_seconds = latency_seconds;
    *out = e;
    return VKT_OK;
}

void vkt_emulation_destroy(vkt_emulation **e_ptr)
{
    if (!e_ptr || !*e_ptr) return;
    const vkt_host h = (*e_ptr)->host;
    vkt_free(&h, *e_ptr);
    *e_ptr = NULL;
}

vkt_transport vkt_emulation_transport(vkt_emulation *e)
{
    if (!e) return (vkt_transport){ 0 };
    return (vkt_transport){ .user = e,
                            .rank = 0,
                            .ranks = e->params.ranks,
                            .exchange = emulated_exchange,
                            .barrier = emulated_barrier,
                            .fault = emulated_fault };
}
