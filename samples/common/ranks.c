/* common/ranks.c - see ranks.h. */
#include "common/ranks.h"

#include <stdio.h>
#include <string.h>

#include "common/message.h"

#if SAMPLE_HAS_MPI
#include "vktrain/mpi.h"
#endif

/* ---- --mpi ---- */

#if SAMPLE_HAS_MPI
static bool open_mpi(ranks *r)
{
    const vkt_host host = message_host("mpi");
    if (vkt_mpi_open(&host, r->timeout_seconds, &r->mpi) != VKT_OK) return false;
    r->transport = vkt_mpi_transport(r->mpi);
    return true;
}

void ranks_wait(ranks *r, double timeout_seconds)
{
    r->timeout_seconds = timeout_seconds;
    if (r->mpi) (void)vkt_mpi_set_timeout(r->mpi, timeout_seconds); /* fails only if the timeout is out of range */
}

void ranks_leave(ranks *r, int status)
{
    ranks_wait(r, RANKS_LONGEST_WAIT);
    const bool failed = ranks_meet(r) != VKT_OK;
    fflush(stdout);
    vkt_mpi_close(&r->mpi);
    if (failed) vkt_mpi_abort(status ? status : 1);
}
#else
static bool open_mpi(ranks *r)
{
    (void)r;
    complain("--mpi: this build has no MPI. Install libopenmpi-dev and openmpi-bin (or libmpich-dev and mpich), remove "
             "the build folder and build again");
    return false;
}

void ranks_wait(ranks *r, double timeout_seconds)
{
    r->timeout_seconds = timeout_seconds;
}

void ranks_leave(ranks *r, int status)
{
    (void)r;
    (void)status;
}
#endif

/* Changes the options so that this process prints and writes no results. */
static void be_silent(train_options *o)
{
    o->quiet = true;
    o->report = false;
    o->save = o->json = o->history = o->plot = o->profile = o->confusion = NULL;
}

bool ranks_connect(ranks *r, train_options *o)
{
    if (!o->mpi) return true;
    if (o->predict || o->find_lr) {
        complain("--mpi is for training: leave it out with --predict and --find-lr");
        return false;
    }
    if (!open_mpi(r)) return false;
    if (ranks_is_first(r)) return true;
    message_rank(r->transport.rank);
    be_silent(o);
    return true;
}

bool ranks_is_first(const ranks *r)
{
    return !r->mpi || r->transport.rank == 0;
}

vkt_result ranks_meet(const ranks *r)
{
    return r->mpi ? r->transport.barrier(r->transport.user) : VKT_OK;
}

/* ---- --devices ---- */

static uint32_t count_devices(const char *list)
{
    uint32_t n = 1;
    for (const char *c = list; *c; c++) n += *c == ',';
    return n;
}

/* Copies item i of a list to `room`. The list has commas between its items. Returns `room`. */
static const char *item(const char *list, uint32_t i, char room[256])
{
    for (; i > 0; i--) list = strchr(list, ',') + 1;
    snprintf(room, 256, "%.*s", (int)strcspn(list, ","), list);
    return room;
}

const char *ranks_device(const ranks *r, const train_options *o, char room[256])
{
    if (!o->devices) return o->device;
    return item(o->devices, r->mpi ? r->transport.rank % count_devices(o->devices) : 0, room);
}

vkt_result ranks_open(ranks *r, const train_options *o, const vkt_host *host)
{
    char room[256];
    const uint32_t n = o->devices && !r->mpi ? count_devices(o->devices) : 1;
    if (n > VKT_MAX_SHARDS) {
        complain("--devices: want at most %d devices, got %u", VKT_MAX_SHARDS, n);
        return VKT_E_ARG;
    }
    for (; r->n_more + 1 < n; r->n_more++) {
        const vkt_ctx_params p = { .device = item(o->devices, r->n_more + 1, room),
                                   .max_device_bytes = o->memory_limit_bytes };
        const vkt_result opened = vkt_ctx_create_wide(&p, host, &r->more[r->n_more]);
        if (opened != VKT_OK) return opened;
    }
    return VKT_OK;
}

void ranks_set(const ranks *r, const train_options *o, vkt_trainer_params *p)
{
    p->dist = (vkt_dist_params){ .transport = r->mpi ? &r->transport : NULL,
                                 .shards = o->shards,
                                 .bucket_bytes = o->bucket_bytes,
                                 .wire = o->messages };
    p->more_devices = r->more;
    p->n_more_devices = r->n_more;
}

uint32_t ranks_count(const ranks *r)
{
    return r->mpi ? r->transport.ranks : r->n_more + 1;
}

uint32_t ranks_shards(const ranks *r, const train_options *o)
{
    const uint32_t n = ranks_count(r);
    if (o->shards) return o->shards;
    if (!r->mpi && !r->n_more) return 1;
    return n > 8 ? n : 8; /* see vkt_dist_params.shards */
}

uint32_t ranks_batch(const ranks *r, const train_options *o, uint32_t rows)
{
    const uint32_t shards = ranks_shards(r, o), most = rows / shards * shards;
    return o->batch < most ? o->batch : most;
}

uint32_t ranks_step_rows(const ranks *r, const train_options *o, uint32_t rows)
{
    const uint32_t batch = ranks_batch(r, o, rows), micro = o->optimizer.micro_batches;
    return (batch ? batch : 1) * (ranks_shards(r, o) != 1 && micro ? micro : 1);
}

uint64_t ranks_steps(const ranks *r, const train_options *o, uint32_t rows)
{
    const uint32_t step = ranks_step_rows(r, o, rows), micro = o->optimizer.micro_batches;
    const uint64_t runs = ((uint64_t)rows + step - 1) / step * o->epochs;
    const uint64_t steps = ranks_shards(r, o) == 1 && micro ? runs / micro : runs;
    return steps ? steps : 1;
}

void ranks_fail(const ranks *r, vkt_result why)
{
    if (r->mpi) r->transport.fault(r->transport.user, vkt_result_text(why));
}

void ranks_stop(const ranks *r, const char *why)
{
    char text[64];
    snprintf(text, sizeof text, "ended by %s before the first step", why);
    if (r->mpi) r->transport.fault(r->transport.user, text);
}

void ranks_close(ranks *r)
{
    while (r->n_more) vkt_ctx_destroy(&r->more[--r->n_more]);
}
