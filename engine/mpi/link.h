/* mpi/link.h - what mpi.c and liveness.c share: the state of one process as a rank, and control messages.
 *
 * A rank that waits for its peer polls. While it polls, it receives control messages: faults, inquiries, and answers
 * to inquiries. A rank that has waited for the timeout (the asker) sends an inquiry to all other ranks: for which rank
 * does each of them wait? A rank that is in a call answers at once. Then the asker follows a chain: the asker itself,
 * its peer, the rank for which this peer waits, and so on. The chain ends at a rank that has not answered. If the chain
 * leads into a circle, the asker stops after as many steps as there are ranks.
 *
 * L, the last rank of the chain that has answered, decides. If L has waited for less than the timeout, the asker
 * reports nothing, because L will ask later. If L has waited for the timeout, the asker sends a failure to all ranks.
 * But if the chain leads into a circle and a rank of the chain is transferring data, the asker reports nothing, because
 * the transfer may be slow. If two ranks ask at the same time, only the rank with the lower number goes on, so that all
 * ranks get the same message. */
#ifndef VKT_MPI_LINK_H
#define VKT_MPI_LINK_H

#include <mpi.h>

#include "base/base.h"
#include "vktrain/mpi.h"

enum { VKT_MPI_TAG_HEADER = 1, VKT_MPI_TAG_DATA, VKT_MPI_TAG_CONTROL };

/* IDLE: the rank is in no call. MEET: the rank waits for its peer's header. TRANSFER: the peer is in the same call, and
 * the rank waits until the data are exchanged. */
typedef enum vkt_mpi_phase { VKT_MPI_IDLE = 0, VKT_MPI_MEET, VKT_MPI_TRANSFER } vkt_mpi_phase;

typedef enum vkt_mpi_control_kind { VKT_MPI_FAULT = 1, VKT_MPI_ASK, VKT_MPI_ANSWER } vkt_mpi_control_kind;

/* A control message. It is short, so that MPI buffers it and a send completes without the receiver. */
typedef struct vkt_mpi_control {
    uint32_t kind;
    uint32_t inquiry;   /* ASK, ANSWER: number of the inquiry */
    uint32_t peer;      /* ANSWER: the rank for which the sender waits */
    uint32_t phase;     /* ANSWER: a vkt_mpi_phase */
    uint64_t waited_ns; /* ANSWER: how long the sender has waited */
    char text[360];     /* FAULT: the message */
} vkt_mpi_control;

/* A control message that is being sent. */
typedef struct vkt_mpi_slot {
    vkt_mpi_control control;
    MPI_Request request;
} vkt_mpi_slot;

/* The message at the beginning of an exchange or of a round of a barrier. */
typedef struct vkt_mpi_header {
    uint64_t bytes;
    uint64_t barrier; /* 1: a round of a barrier */
} vkt_mpi_header;

enum { VKT_MPI_HEADER_OUT = 0, VKT_MPI_HEADER_IN, VKT_MPI_DATA_OUT, VKT_MPI_DATA_IN, VKT_MPI_REQUESTS };

struct vkt_mpi {
    vkt_host host;
    MPI_Comm comm;
    uint32_t rank, n;
    uint64_t timeout_ns;
    uint64_t grace_ns; /* how long this rank waits for the answers to an inquiry */
    bool owns_mpi;     /* vkt_mpi_open has called MPI_Init_thread */
    bool failed;
    bool stuck; /* MPI may still use memory of a failed exchange */

    vkt_mpi_phase phase; /* phase of the call in which this rank is now */
    uint32_t peer;       /* the other rank of this call */
    uint64_t since_ns;   /* time of the last vkt_mpi_begin: the start of a phase, or of a further data message */
    vkt_mpi_header out, in;
    MPI_Request request[VKT_MPI_REQUESTS];

    vkt_mpi_control arriving; /* the control message that is being received */
    MPI_Request arriving_request;
    uint32_t arriving_from;
    vkt_mpi_slot *slots; /* control messages that are being sent */
    uint32_t n_slots, next_slot;

    bool asking;
    uint32_t inquiry;         /* number of this rank's newest inquiry */
    uint64_t ask_ns;          /* time when this rank asks next */
    uint64_t until_ns;        /* time at which this rank stops waiting for answers */
    vkt_mpi_control *answers; /* one per rank; kind 0: no answer yet */
    uint32_t n_answers;
};

/* Begins a wait for another rank. */
void vkt_mpi_begin(vkt_mpi *m, vkt_mpi_phase phase, uint32_t peer);
/* Receives control messages and answers inquiries. Begins an inquiry after the timeout. Ends the inquiry when all
 * answers have arrived or grace_ns is over. Returns VKT_E_PEER once any rank has failed. Never waits. */
vkt_result vkt_mpi_poll(vkt_mpi *m);
/* Logs the message, sends it to all other ranks and returns VKT_E_PEER. After an earlier failure, the function only
 * returns VKT_E_PEER. */
vkt_result vkt_mpi_fail(vkt_mpi *m, const char *fmt, ...) VKT_PRINTF(2, 3);
/* For an MPI function that returned the error `code`. Calls vkt_mpi_fail with the message that rank `peer` has failed.
 * The message has MPI's text for `code`. */
vkt_result vkt_mpi_fail_code(vkt_mpi *m, uint32_t peer, int code);
/* Returns false while a control message of this rank is being sent. */
bool vkt_mpi_has_sent(vkt_mpi *m);

#endif
