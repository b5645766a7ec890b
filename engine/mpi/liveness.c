/* mpi/liveness.c - control messages: faults, and the search for a rank that does not answer. */
#include "mpi/link.h"

#include <stdio.h>

/* ---- sending ---- */

/* Returns a slot that has no message, or whose message MPI has sent. NULL: there is none. */
static vkt_mpi_slot *free_slot(vkt_mpi *m)
{
    for (uint32_t i = 0; i < m->n_slots; i++) {
        vkt_mpi_slot *s = &m->slots[m->next_slot];
        int done = 1;
        m->next_slot = (m->next_slot + 1) % m->n_slots;
        if (s->request != MPI_REQUEST_NULL) MPI_Test(&s->request, &done, MPI_STATUS_IGNORE);
        if (done) return s;
    }
    return NULL;
}

/* Sends a control message. If no slot is free, drops the message. This is rare: there are two slots or more for each
 * rank. */
static void send_control(vkt_mpi *m, uint32_t to, const vkt_mpi_control *c)
{
    vkt_mpi_slot *s = free_slot(m);
    if (!s) return;
    s->control = *c;
    if (MPI_Isend(&s->control, sizeof s->control, MPI_BYTE, (int)to, VKT_MPI_TAG_CONTROL, m->comm, &s->request) !=
        MPI_SUCCESS)
        s->request = MPI_REQUEST_NULL; /* rank `to` cannot be reached */
}

static void send_to_all(vkt_mpi *m, const vkt_mpi_control *c)
{
    for (uint32_t r = 0; r < m->n; r++)
        if (r != m->rank) send_control(m, r, c);
}

bool vkt_mpi_has_sent(vkt_mpi *m)
{
    bool all = true;
    for (uint32_t i = 0; i < m->n_slots; i++) {
        int done = 1;
        MPI_Request *request = &m->slots[i].request;
        if (*request != MPI_REQUEST_NULL && MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done)
            all = false;
    }
    return all;
}

/* ---- failures ---- */

static void fail_here(vkt_mpi *m, const char *text)
{
    m->failed = true;
    vkt_log_line(&m->host, VKT_LOG_ERROR, "%s", text);
}

vkt_result vkt_mpi_fail(vkt_mpi *m, const char *fmt, ...)
{
    if (m->failed) return VKT_E_PEER;
    vkt_mpi_control c = { .kind = VKT_MPI_FAULT };
    va_list args;
    va_start(args, fmt);
    vsnprintf(c.text, sizeof c.text, fmt, args);
    va_end(args);
    send_to_all(m, &c);
    fail_here(m, c.text);
    return VKT_E_PEER;
}

vkt_result vkt_mpi_fail_code(vkt_mpi *m, uint32_t peer, int code)
{
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) snprintf(text, sizeof text, "error %d", code);
    return vkt_mpi_fail(m, "rank %u has failed: MPI does not reach it: %.200s", peer, text);
}

/* ---- who waits for whom ---- */

void vkt_mpi_begin(vkt_mpi *m, vkt_mpi_phase phase, uint32_t peer)
{
    m->phase = phase;
    m->peer = peer;
    m->since_ns = vkt_now_ns();
    m->ask_ns = m->since_ns + m->timeout_ns;
    m->asking = false;
}

static vkt_mpi_control own_answer(const vkt_mpi *m, uint32_t inquiry)
{
    return (vkt_mpi_control){ .kind = VKT_MPI_ANSWER,
                              .inquiry = inquiry,
                              .peer = m->peer,
                              .phase = (uint32_t)m->phase,
                              .waited_ns = vkt_now_ns() - m->since_ns };
}

static void ask_all(vkt_mpi *m, uint64_t now_ns)
{
    m->asking = true;
    m->until_ns = now_ns + m->grace_ns;
    m->inquiry++;
    memset(m->answers, 0, m->n * sizeof *m->answers);
    m->answers[m->rank] = own_answer(m, m->inquiry);
    m->n_answers = 1;
    send_to_all(m, &(vkt_mpi_control){ .kind = VKT_MPI_ASK, .inquiry = m->inquiry });
}

/* Ends an inquiry. Either reports a failure, or sets the time of the next inquiry. */
static void judge(vkt_mpi *m, uint64_t now_ns)
{
    uint32_t before = m->rank, end = m->peer;
    bool transfer = m->phase == VKT_MPI_TRANSFER;
    m->asking = false;
    for (uint32_t steps = 0; m->answers[end].kind != 0 && steps < m->n; steps++) {
        transfer = transfer || m->answers[end].phase == VKT_MPI_TRANSFER;
        before = end;
        end = m->answers[end].peer;
    }
    const uint64_t waited_ns = m->answers[before].waited_ns;
    const double seconds = (double)waited_ns * 1e-9;
    if (waited_ns < m->timeout_ns) /* rank `before` will ask */
        m->ask_ns = now_ns + (m->timeout_ns - waited_ns);
    else if (m->answers[end].kind == 0)
        vkt_mpi_fail(m, "rank %u does not answer: rank %u waits for it since %.3g s", end, before, seconds);
    else if (transfer) /* the transfer may be slow: much data, or a slow network */
        m->ask_ns = now_ns + m->timeout_ns;
    else
        vkt_mpi_fail(m, "rank %u and rank %u wait for each other since %.3g s, in calls that do not match", end, before,
                     seconds);
}

/* ---- receiving ---- */

static void handle(vkt_mpi *m, uint32_t from, vkt_mpi_control *c)
{
    if (c->kind == VKT_MPI_FAULT) {
        c->text[sizeof c->text - 1] = 0;
        if (!m->failed) fail_here(m, c->text);
    } else if (c->kind == VKT_MPI_ASK) {
        const vkt_mpi_control answer = own_answer(m, c->inquiry);
        send_control(m, from, &answer);
        if (m->asking && from > m->rank) return;
        m->asking = false; /* rank `from` asks instead; if its inquiry finds no failure, this rank asks again */
        m->ask_ns = VKT_MAX(m->ask_ns, vkt_now_ns() + m->grace_ns + m->grace_ns / 2);
    } else if (c->kind == VKT_MPI_ANSWER && m->asking && c->inquiry == m->inquiry && c->peer < m->n) {
        m->n_answers += m->answers[from].kind == 0;
        m->answers[from] = *c;
    }
}

/* Receives the next control message. Returns false if there is none, or after an error of MPI. After an error, the
 * timeout ends the caller's wait. */
static bool receive(vkt_mpi *m)
{
    int there = 0;
    if (m->arriving_request == MPI_REQUEST_NULL) {
        MPI_Status status;
        if (MPI_Iprobe(MPI_ANY_SOURCE, VKT_MPI_TAG_CONTROL, m->comm, &there, &status) != MPI_SUCCESS || !there)
            return false;
        m->arriving_from = (uint32_t)status.MPI_SOURCE;
        if (MPI_Irecv(&m->arriving, sizeof m->arriving, MPI_BYTE, status.MPI_SOURCE, VKT_MPI_TAG_CONTROL, m->comm,
                      &m->arriving_request) != MPI_SUCCESS) {
            m->arriving_request = MPI_REQUEST_NULL;
            return false;
        }
        there = 0;
    }
    return MPI_Test(&m->arriving_request, &there, MPI_STATUS_IGNORE) == MPI_SUCCESS && there;
}

vkt_result vkt_mpi_poll(vkt_mpi *m)
{
    while (!m->failed && receive(m)) handle(m, m->arriving_from, &m->arriving);
    if (!m->failed && m->phase != VKT_MPI_IDLE) {
        const uint64_t now_ns = vkt_now_ns();
        if (m->asking && (now_ns >= m->until_ns || m->n_answers == m->n))
            judge(m, now_ns);
        else if (!m->asking && now_ns >= m->ask_ns)
            ask_all(m, now_ns);
    }
    return m->failed ? VKT_E_PEER : VKT_OK;
}
