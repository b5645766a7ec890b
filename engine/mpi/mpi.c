/* mpi/mpi.c - the transport between processes. An exchange sends a header, then the data. A rank that has waited
 * SPIN_NS for the peer's header sleeps between polls, because the device may compute on the same core. After the header
 * has arrived, the rank polls much longer before it sleeps, because many implementations of MPI move data only while a
 * rank polls. */
#include "mpi/link.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#ifndef VKT_MPI_MESSAGE_BYTES /* tests define a small number */
#define VKT_MPI_MESSAGE_BYTES ((size_t)1 << 30)
#endif

#define USUAL_TIMEOUT 60.0
#define LONGEST_TIMEOUT 1e9
#define MIN_GRACE_NS 2000000000u
#define MAX_GRACE_NS 5000000000u
#define LINGER_NS 1000000000u /* the longest wait until requests complete, after a failure and in vkt_mpi_close */
#define SPIN_NS 30000u
#define MIN_SLEEP_NS 50000u
#define MAX_SLEEP_NS 400000u
/* A rank that waits for data first polls without any sleep: for TRANSFER_SPIN_NS, plus TRANSFER_SPIN_NS_PER_BYTE for
 * each byte of the message. */
#define TRANSFER_SPIN_NS 20000000u
#define TRANSFER_SPIN_NS_PER_BYTE 20
#define DATA_REQUESTS (1u << VKT_MPI_DATA_OUT | 1u << VKT_MPI_DATA_IN)

/* ---- waiting ---- */

static void sleep_ns(uint64_t ns)
{
    nanosleep(&(struct timespec){ .tv_nsec = (long)ns }, NULL);
}

/* Waits until the requests of `mask` are done. In the first spin_ns, polls without any sleep. After that, sleeps
 * between polls. The first sleep takes MIN_SLEEP_NS. Each later sleep takes twice as long, up to MAX_SLEEP_NS. */
static vkt_result wait_requests(vkt_mpi *m, uint32_t mask, uint64_t spin_ns)
{
    const uint64_t start_ns = vkt_now_ns();
    uint64_t pause_ns = MIN_SLEEP_NS;
    for (;;) {
        for (uint32_t i = 0; i < VKT_MPI_REQUESTS; i++) {
            int done = 0;
            if (!(mask >> i & 1)) continue;
            const int code = MPI_Test(&m->request[i], &done, MPI_STATUS_IGNORE);
            if (code != MPI_SUCCESS) return vkt_mpi_fail_code(m, m->peer, code);
            if (done) mask &= ~(1u << i);
        }
        if (mask == 0) return VKT_OK;
        VKT_TRY(vkt_mpi_poll(m));
        const uint64_t waited_ns = vkt_now_ns() - start_ns;
        if (waited_ns >= spin_ns) {
            sleep_ns(pause_ns);
            pause_ns = VKT_MIN(2 * pause_ns, MAX_SLEEP_NS);
        } else if (waited_ns > SPIN_NS) {
            sched_yield();
        }
    }
}

/* After a failure, ends the requests of an exchange, so that MPI no longer uses memory of the caller. Sets m->stuck if
 * a request does not end. */
static void drop_requests(vkt_mpi *m)
{
    static const bool receives[VKT_MPI_REQUESTS] = { [VKT_MPI_HEADER_IN] = true, [VKT_MPI_DATA_IN] = true };
    const uint64_t end_ns = vkt_now_ns() + LINGER_NS;
    for (uint32_t i = 0; i < VKT_MPI_REQUESTS; i++)
        if (receives[i] && m->request[i] != MPI_REQUEST_NULL) MPI_Cancel(&m->request[i]);
    for (uint32_t i = 0; i < VKT_MPI_REQUESTS; i++) {
        int done = 0;
        while (m->request[i] != MPI_REQUEST_NULL) {
            if (MPI_Test(&m->request[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done) break;
            if (vkt_now_ns() >= end_ns) break;
            sleep_ns(MIN_SLEEP_NS);
        }
        m->stuck = m->stuck || m->request[i] != MPI_REQUEST_NULL;
    }
}

/* ---- the functions of the transport ---- */

/* Begins to send a header, and to receive the peer's header. */
static int post_header(vkt_mpi *m, bool barrier, size_t bytes)
{
    m->out = (vkt_mpi_header){ .bytes = bytes, .barrier = barrier };
    const int code = MPI_Isend(&m->out, sizeof m->out, MPI_BYTE, (int)m->peer, VKT_MPI_TAG_HEADER, m->comm,
                               &m->request[VKT_MPI_HEADER_OUT]);
    return code != MPI_SUCCESS ? code
                               : MPI_Irecv(&m->in, sizeof m->in, MPI_BYTE, (int)m->peer, VKT_MPI_TAG_HEADER, m->comm,
                                           &m->request[VKT_MPI_HEADER_IN]);
}

static int post_send(vkt_mpi *m, const void *send, size_t bytes)
{
    return MPI_Isend(send, (int)bytes, MPI_BYTE, (int)m->peer, VKT_MPI_TAG_DATA, m->comm,
                     &m->request[VKT_MPI_DATA_OUT]);
}

static int post_receive(vkt_mpi *m, void *receive, size_t bytes)
{
    return MPI_Irecv(receive, (int)bytes, MPI_BYTE, (int)m->peer, VKT_MPI_TAG_DATA, m->comm,
                     &m->request[VKT_MPI_DATA_IN]);
}

/* Checks that both headers are equal. If they differ, fails with the same message on both ranks. */
static vkt_result check_headers(vkt_mpi *m)
{
    if (m->in.bytes == m->out.bytes && m->in.barrier == m->out.barrier) return VKT_OK;
    const bool lower = m->rank < m->peer;
    const vkt_mpi_header *a = lower ? &m->out : &m->in, *b = lower ? &m->in : &m->out;
    return vkt_mpi_fail(m, "calls do not match: rank %u is in %s of %llu bytes, rank %u in %s of %llu bytes",
                        VKT_MIN(m->rank, m->peer), a->barrier ? "a barrier" : "an exchange",
                        (unsigned long long)a->bytes, VKT_MAX(m->rank, m->peer),
                        b->barrier ? "a barrier" : "an exchange", (unsigned long long)b->bytes);
}

/* Exchanges headers with the peer, then the first message of data. Receives the data only after check_headers, because
 * MPICH would end the process if the data were longer than expected. */
static vkt_result exchange_first(vkt_mpi *m, bool barrier, const void *send, void *receive, size_t bytes)
{
    const size_t part = VKT_MIN(bytes, VKT_MPI_MESSAGE_BYTES);
    uint32_t rest = 1u << VKT_MPI_HEADER_OUT;
    int code = post_header(m, barrier, bytes);
    if (code == MPI_SUCCESS && part) code = post_send(m, send, part);
    if (code != MPI_SUCCESS) return vkt_mpi_fail_code(m, m->peer, code);
    VKT_TRY(wait_requests(m, 1u << VKT_MPI_HEADER_IN, SPIN_NS));
    VKT_TRY(check_headers(m));
    vkt_mpi_begin(m, VKT_MPI_TRANSFER, m->peer);
    if (part) {
        rest |= DATA_REQUESTS;
        code = post_receive(m, receive, part);
        if (code != MPI_SUCCESS) return vkt_mpi_fail_code(m, m->peer, code);
    }
    return wait_requests(m, rest, TRANSFER_SPIN_NS + part * TRANSFER_SPIN_NS_PER_BYTE);
}

static vkt_result exchange_more(vkt_mpi *m, const uint8_t *send, uint8_t *receive, size_t bytes)
{
    for (size_t at = VKT_MPI_MESSAGE_BYTES; at < bytes; at += VKT_MPI_MESSAGE_BYTES) {
        const size_t part = VKT_MIN(bytes - at, VKT_MPI_MESSAGE_BYTES);
        vkt_mpi_begin(m, VKT_MPI_TRANSFER, m->peer);
        int code = post_send(m, send + at, part);
        if (code == MPI_SUCCESS) code = post_receive(m, receive + at, part);
        if (code != MPI_SUCCESS) return vkt_mpi_fail_code(m, m->peer, code);
        VKT_TRY(wait_requests(m, DATA_REQUESTS, TRANSFER_SPIN_NS + part * TRANSFER_SPIN_NS_PER_BYTE));
    }
    return VKT_OK;
}

static vkt_result call(vkt_mpi *m, uint32_t peer, bool barrier, const void *send, void *receive, size_t bytes)
{
    vkt_mpi_begin(m, VKT_MPI_MEET, peer);
    vkt_result r = vkt_mpi_poll(m);
    if (r == VKT_OK) r = exchange_first(m, barrier, send, receive, bytes);
    if (r == VKT_OK) r = exchange_more(m, send, receive, bytes);
    if (r != VKT_OK) drop_requests(m);
    m->phase = VKT_MPI_IDLE;
    return r;
}

static vkt_result mpi_exchange(void *user, uint32_t peer, const void *send, void *receive, size_t bytes)
{
    vkt_mpi *m = user;
    if (m->failed) return VKT_E_PEER;
    if (peer >= m->n || peer == m->rank || (bytes && (!send || !receive)))
        return vkt_fail(&m->host, VKT_E_ARG, "rank %u of %u: exchange wants another rank and memory, got rank %u%s",
                        m->rank, m->n, peer, bytes && (!send || !receive) ? " and NULL" : "");
    return call(m, peer, false, send, receive, bytes);
}

/* Exchanges headers with rank xor 1, then with rank xor 2, xor 4 and so on. The last exchange of any rank ends only
 * after all ranks have called this function. */
static vkt_result mpi_barrier(void *user)
{
    vkt_mpi *m = user;
    for (uint32_t bit = 1; bit < m->n && !m->failed; bit *= 2) VKT_TRY(call(m, m->rank ^ bit, true, NULL, NULL, 0));
    return m->failed ? VKT_E_PEER : VKT_OK;
}

static void mpi_fault(void *user, const char *reason)
{
    vkt_mpi *m = user;
    vkt_mpi_fail(m, "rank %u has failed: %s", m->rank, reason ? reason : "no reason given");
}

/* ---- opening ---- */

/* Starts MPI if the program has not done so. Sets *owns if this function has started MPI. */
static vkt_result start_mpi(const vkt_host *h, bool *owns)
{
    int initialized = 0, finalized = 0, provided = MPI_THREAD_SINGLE;
    *owns = false;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (finalized)
        return vkt_fail(h, VKT_E_STATE, "vkt_mpi_open: MPI is finalized, and it starts only once in a process");
    if (initialized) {
        MPI_Query_thread(&provided);
    } else {
        if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
            return vkt_fail(h, VKT_E_STATE, "vkt_mpi_open: MPI_Init_thread failed");
        *owns = true;
    }
    if (provided >= MPI_THREAD_SERIALIZED) return VKT_OK;
    if (*owns) MPI_Finalize();
    return vkt_fail(h, VKT_E_STATE, "vkt_mpi_open: want MPI with MPI_THREAD_SERIALIZED or more; %s",
                    *owns ? "this MPI has no support for threads" : "call MPI_Init_thread instead of MPI_Init");
}

static vkt_result check_ranks(const vkt_host *h, uint32_t n)
{
    uint32_t below = 1;
    if (n <= VKT_MAX_SHARDS && (n & (n - 1)) == 0) return VKT_OK;
    while (below < VKT_MAX_SHARDS && 2 * below <= n) below *= 2;
    if (below == VKT_MAX_SHARDS) return vkt_fail(h, VKT_E_ARG, "vkt_mpi_open: want at most %u ranks, got %u", below, n);
    return vkt_fail(h, VKT_E_ARG, "vkt_mpi_open: want a power of two of ranks, got %u: start %u or %u processes", n,
                    below, 2 * below);
}

static vkt_result check_timeout(const vkt_host *h, const char *function, double seconds)
{
    if (seconds >= 0 && seconds <= LONGEST_TIMEOUT) return VKT_OK;
    return vkt_fail(h, VKT_E_ARG, "%s: want a timeout of 0 to %g seconds, got %g", function, LONGEST_TIMEOUT, seconds);
}

static void set_timeout(vkt_mpi *m, double seconds)
{
    m->timeout_ns = (uint64_t)(vkt_or(seconds, USUAL_TIMEOUT) * 1e9);
    m->grace_ns = VKT_MAX(MIN_GRACE_NS, VKT_MIN(m->timeout_ns / 4, MAX_GRACE_NS));
}

static vkt_result make(const vkt_host *h, double timeout_seconds, uint32_t rank, uint32_t n, vkt_mpi **out)
{
    vkt_mpi *m = vkt_alloc(h, sizeof *m);
    if (!m) return vkt_fail_nomem(h, "a rank", sizeof *m);
    *m = (vkt_mpi){ .host = *h, .comm = MPI_COMM_NULL, .rank = rank, .n = n, .arriving_request = MPI_REQUEST_NULL };
    set_timeout(m, timeout_seconds);
    m->n_slots = 2 * n + 16;
    m->slots = vkt_alloc_array(h, m->n_slots, sizeof *m->slots);
    m->answers = vkt_alloc_array(h, n, sizeof *m->answers);
    if (!m->slots || !m->answers) {
        vkt_free(h, m->slots);
        vkt_free(h, m->answers);
        vkt_free(h, m);
        return vkt_fail_nomem(h, "the messages of a rank", m->n_slots * sizeof *m->slots);
    }
    for (uint32_t i = 0; i < VKT_MPI_REQUESTS; i++) m->request[i] = MPI_REQUEST_NULL;
    for (uint32_t i = 0; i < m->n_slots; i++) m->slots[i].request = MPI_REQUEST_NULL;
    *out = m;
    return VKT_OK;
}

static void destroy(vkt_mpi *m)
{
    const vkt_host h = m->host;
    vkt_free(&h, m->slots);
    vkt_free(&h, m->answers);
    vkt_free(&h, m);
}

/* Makes the communicator, together with all other ranks. Sets *pending if MPI may still write to *m. */
static vkt_result connect(vkt_mpi *m, bool *pending)
{
    MPI_Request request;
    int done = 0, code = MPI_Comm_idup(MPI_COMM_WORLD, &m->comm, &request);
    const uint64_t end_ns = vkt_now_ns() + m->timeout_ns;
    while (code == MPI_SUCCESS && (code = MPI_Test(&request, &done, MPI_STATUS_IGNORE)) == MPI_SUCCESS && !done) {
        *pending = vkt_now_ns() >= end_ns;
        if (*pending)
            return vkt_fail(&m->host, VKT_E_PEER, "vkt_mpi_open: some of %u ranks have not called it since %.3g s",
                            m->n, (double)m->timeout_ns * 1e-9);
        sleep_ns(MIN_SLEEP_NS);
    }
    if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS) return VKT_OK;
    return vkt_fail(&m->host, VKT_E_PEER, "vkt_mpi_open: MPI_Comm_idup failed with error %d", code);
}

vkt_result vkt_mpi_open(const vkt_host *host, double timeout_seconds, vkt_mpi **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    const vkt_host h = vkt_host_resolve(host);
    VKT_TRY(check_timeout(&h, "vkt_mpi_open", timeout_seconds));
    bool owns, pending = false;
    int rank = 0, n = 0;
    vkt_mpi *m = NULL;
    VKT_TRY(start_mpi(&h, &owns));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    const vkt_result r = check_ranks(&h, (uint32_t)n);
    if (r != VKT_OK) {
        if (owns) MPI_Finalize(); /* check_ranks fails on every rank, so every rank calls MPI_Finalize */
        return r;
    }
    VKT_TRY(make(&h, timeout_seconds, (uint32_t)rank, (uint32_t)n, &m));
    m->owns_mpi = owns;
    MPI_Errhandler before;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const vkt_result connected = connect(m, &pending);
    if (!owns) MPI_Comm_set_errhandler(MPI_COMM_WORLD, before); /* restores the program's handler */
    MPI_Errhandler_free(&before);
    if (connected == VKT_OK)
        *out = m;
    else if (!pending)
        destroy(m);
    return connected;
}

vkt_result vkt_mpi_set_timeout(vkt_mpi *m, double timeout_seconds)
{
    VKT_WANT(NULL, m);
    VKT_TRY(check_timeout(&m->host, "vkt_mpi_set_timeout", timeout_seconds));
    set_timeout(m, timeout_seconds);
    return VKT_OK;
}

/* ---- closing ---- */

void vkt_mpi_close(vkt_mpi **m_ptr)
{
    if (!m_ptr || !*m_ptr) return;
    vkt_mpi *m = *m_ptr;
    *m_ptr = NULL;
    if (!m->failed) mpi_barrier(m); /* waits for all ranks, and answers their control messages meanwhile */
    const uint64_t end_ns = vkt_now_ns() + LINGER_NS;
    bool sent = false;
    while (!m->stuck && !(sent = vkt_mpi_has_sent(m)) && vkt_now_ns() < end_ns) sleep_ns(MIN_SLEEP_NS);
    const bool finalize = m->owns_mpi && !m->failed;
    if (!m->failed) MPI_Comm_free(&m->comm);
    if (sent && m->arriving_request == MPI_REQUEST_NULL) destroy(m); /* else MPI may still use memory of *m */
    if (finalize) MPI_Finalize();
}

vkt_transport vkt_mpi_transport(vkt_mpi *m)
{
    if (!m) return (vkt_transport){ 0 };
    return (vkt_transport){
        .user = m, .rank = m->rank, .ranks = m->n, .exchange = mpi_exchange, .barrier = mpi_barrier, .fault = mpi_fault
    };
}

bool vkt_mpi_failed(const vkt_mpi *m)
{
    return m && m->failed;
}

void vkt_mpi_abort(int exit_code)
{
    int initialized = 0, finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (initialized && !finalized) MPI_Abort(MPI_COMM_WORLD, exit_code);
    _Exit(exit_code);
}
