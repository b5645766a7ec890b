/* data/loader.c - see loader.h. One mutex guards all state, but a worker fetches samples without holding it. */
#include "data/loader.h"

#include <pthread.h>
#include <stdio.h>

#include "base/system.h"
#include "data/dataset.h"

/* The largest number of samples that a worker claims at once. With few samples per claim, the workers end a batch at
 * about the same time. But each claim costs about 1 us for the mutex (measured with samples of 784 bytes), so a claim
 * should have several samples. Large samples take long to make, so a claim of several samples has at most CHUNK_BYTES
 * bytes of features. */
#define CHUNK_ROWS 16
#define CHUNK_BYTES (CHUNK_ROWS * 1024)

typedef enum slot_state {
    SLOT_FREE = 0,
    SLOT_FILLING, /* samples are claimed, but not all are done */
    SLOT_FULL,    /* every sample is done; `status` is final */
    SLOT_TAKEN    /* owned by the caller */
} slot_state;

typedef struct slot {
    vkt_loader_slot memory;
    slot_state state;
    uint32_t done;       /* samples written, or skipped after a failure */
    uint32_t failed_row; /* index in the batch of the first sample that failed; UINT32_MAX: none */
    vkt_result status;   /* status of that sample */
    char why[256];       /* message of that sample */
} slot;

typedef struct worker {
    vkt_loader *loader;
    pthread_t thread;
} worker;

struct vkt_loader {
    vkt_host host;
    const vkt_dataset *dataset;
    const uint32_t *labels;
    const float *targets;
    size_t row_bytes, row_pitch, target_width;
    uint32_t batch, chunk_rows, n_slots, n_workers;
    slot *slots;
    worker *workers;

    pthread_mutex_t lock;
    pthread_cond_t work;  /* signalled when a worker may be able to claim samples, or must stop */
    pthread_cond_t ready; /* signalled when a slot becomes full, or in_flight becomes 0 */
    const uint32_t *order;
    vkt_pass pass;
    uint32_t n_rows;    /* samples of the epoch; 0: idle */
    uint32_t claimed;   /* samples of the epoch that workers have claimed, in order */
    uint32_t returned;  /* samples of the epoch in batches that were returned to the caller */
    uint32_t in_flight; /* number of chunks that are claimed, but not finished */
    vkt_result status;  /* status of the first batch that failed; give_up_epoch sets it to VKT_OK */
    uint64_t waited_ns; /* how long the caller has waited for full slots */
    bool started, stop;
    int64_t process; /* id of the process that started the threads */
};

/* Consecutive samples of one batch, for one worker. */
typedef struct chunk {
    slot *slot;
    uint32_t first, n; /* positions in the epoch: order[first .. first + n) */
    uint32_t at;       /* position of `first` in the slot */
    uint32_t clear;    /* number of samples after the chunk that are set to 0: the rest of the epoch's last batch */
} chunk;

static slot *slot_of(vkt_loader *l, uint32_t position)
{
    return &l->slots[position / l->batch % l->n_slots];
}

static uint32_t batch_rows(const vkt_loader *l, uint32_t first)
{
    return VKT_MIN(l->batch, l->n_rows - first);
}

/* Claims a chunk; returns false if there is nothing to do now. The caller holds the lock. */
static bool claim(vkt_loader *l, chunk *c)
{
    if (l->claimed == l->n_rows) return false;
    slot *s = slot_of(l, l->claimed);
    const uint32_t at = l->claimed % l->batch;
    if (at == 0) {
        if (s->state != SLOT_FREE) return false;
        *s = (slot){ .memory = s->memory, .state = SLOT_FILLING, .failed_row = UINT32_MAX };
    }
    const uint32_t rows = batch_rows(l, l->claimed - at);
    *c = (chunk){ .slot = s, .first = l->claimed, .n = VKT_MIN(l->chunk_rows, rows - at), .at = at };
    if (at + c->n == rows) c->clear = l->batch - rows;
    l->claimed += c->n;
    l->in_flight++;
    return true;
}

/* Fetches the samples of a chunk. After the last samples of an epoch, sets the rest of the batch to 0 (c->clear
 * samples). Returns the first failure; *failed_row is the position in the slot of the sample that failed. The caller
 * does not hold the lock. */
static vkt_result fill(const vkt_loader *l, const chunk *c, uint32_t worker_number, uint32_t *failed_row)
{
    const vkt_loader_slot *m = &c->slot->memory;
    uint8_t *dst = (uint8_t *)m->features + c->at * l->row_pitch;
    uint32_t *labels = m->labels && l->labels ? m->labels + c->at : NULL;
    const size_t width = l->target_width, target_bytes = width * sizeof(float);
    float *targets = m->targets && l->targets ? m->targets + c->at * width : NULL;
    for (uint32_t i = 0; i < c->n; i++, dst += l->row_pitch) {
        const uint32_t row = l->order ? l->order[c->first + i] : c->first + i;
        const vkt_result r = vkt_dataset_fetch_as(l->dataset, row, l->pass, dst, worker_number);
        if (r != VKT_OK) {
            *failed_row = c->at + i;
            return r;
        }
        memset(dst + l->row_bytes, 0, l->row_pitch - l->row_bytes);
        if (labels) labels[i] = l->labels[row];
        if (targets) memcpy(targets + i * width, l->targets + row * width, target_bytes);
    }
    memset(dst, 0, c->clear * l->row_pitch);
    if (labels) memset(labels + c->n, 0, c->clear * sizeof *labels);
    if (targets) memset(targets + c->n * width, 0, c->clear * target_bytes);
    return VKT_OK;
}

/* Stores the result of a chunk. The caller holds the lock. */
static void finish(vkt_loader *l, const chunk *c, vkt_result r, uint32_t failed_row, uint32_t worker_number)
{
    slot *s = c->slot;
    if (r != VKT_OK && failed_row < s->failed_row) {
        s->failed_row = failed_row;
        s->status = r;
        snprintf(s->why, sizeof s->why, "%s", vkt_dataset_why(l->dataset, worker_number, r));
    }
    s->done += c->n;
    const uint32_t first = c->first - c->at;
    if (s->done == batch_rows(l, first)) s->state = SLOT_FULL;
    l->in_flight--;
    if (s->state == SLOT_FULL || l->in_flight == 0) pthread_cond_broadcast(&l->ready);
}

static void *run_worker(void *arg)
{
    const worker *w = arg;
    vkt_loader *l = w->loader;
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        chunk c;
        if (!claim(l, &c)) {
            pthread_cond_wait(&l->work, &l->lock);
            continue;
        }
        pthread_mutex_unlock(&l->lock);
        uint32_t failed_row = UINT32_MAX;
        const uint32_t number = vkt_dataset_take_worker(l->dataset, 1, VKT_DATA_MAX_WORKERS - 1);
        const vkt_result r = fill(l, &c, number, &failed_row);
        pthread_mutex_lock(&l->lock);
        finish(l, &c, r, failed_row, number);
        vkt_dataset_give_worker(l->dataset, number);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static vkt_result check_params(const vkt_host *h, const vkt_loader_params *p)
{
    if (!p->dataset || p->batch == 0 || !p->slots || p->n_slots == 0)
        return vkt_fail(h, VKT_E_ARG, "loader: want a data set, a batch and slots, got %s, %u and %u",
                        p->dataset ? "one" : "none", p->batch, p->slots ? p->n_slots : 0);
    if (p->workers >= VKT_DATA_MAX_WORKERS)
        return vkt_fail(h, VKT_E_ARG, "loader: want fewer than %d workers, got %u", VKT_DATA_MAX_WORKERS, p->workers);
    const size_t row_bytes = vkt_dataset_row_bytes(p->dataset);
    if (p->row_pitch && p->row_pitch < row_bytes)
        return vkt_fail(h, VKT_E_ARG, "loader: want a row pitch of %zu bytes or more, got %zu", row_bytes,
                        p->row_pitch);
    for (uint32_t i = 0; i < p->n_slots; i++)
        if (!p->slots[i].features) return vkt_fail(h, VKT_E_ARG, "loader: slot %u has no memory for features", i);
    return VKT_OK;
}

static uint32_t default_workers(const vkt_dataset *ds)
{
    const uint32_t cores = vkt_dataset_features(ds) ? 2 : vkt_cpu_count();
    return VKT_MAX(2u, VKT_MIN(cores, 16u));
}

vkt_result vkt_loader_create(const vkt_host *h, const vkt_loader_params *p, vkt_loader **out)
{
    *out = NULL;
    VKT_TRY(check_params(h, p));
    const uint32_t workers = p->workers ? p->workers : default_workers(p->dataset);
    vkt_loader *l = vkt_alloc(h, sizeof *l);
    if (!l) return vkt_fail_nomem(h, "a loader", sizeof *l);
    *l = (vkt_loader){
        .host = *h, .dataset = p->dataset, .batch = p->batch, .n_slots = p->n_slots, .process = vkt_process_id()
    };
    l->labels = vkt_dataset_labels(p->dataset);
    l->targets = vkt_dataset_targets(p->dataset);
    l->target_width = vkt_dataset_target_width(p->dataset);
    l->row_bytes = vkt_dataset_row_bytes(p->dataset);
    l->row_pitch = p->row_pitch ? p->row_pitch : l->row_bytes;
    l->chunk_rows = (uint32_t)VKT_MAX(1, VKT_MIN(CHUNK_ROWS, CHUNK_BYTES / l->row_bytes));
    pthread_mutex_init(&l->lock, NULL); /* the three init calls cannot fail with default attributes on Linux */
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->ready, NULL);
    l->slots = vkt_alloc_array(h, p->n_slots, sizeof *l->slots);
    l->workers = vkt_alloc_array(h, workers, sizeof *l->workers);
    if (!l->slots || !l->workers) {
        vkt_loader_destroy(&l);
        return vkt_fail_nomem(h, "a loader's slots and workers", p->n_slots * sizeof *l->slots);
    }
    for (uint32_t i = 0; i < p->n_slots; i++) l->slots[i].memory = p->slots[i];
    for (; l->n_workers < workers; l->n_workers++) {
        worker *w = &l->workers[l->n_workers];
        *w = (worker){ .loader = l };
        if (pthread_create(&w->thread, NULL, run_worker, w) != 0) {
            const uint32_t got = l->n_workers;
            vkt_loader_destroy(&l);
            return vkt_fail(h, VKT_E_NOMEM, "loader: want %u threads, the system started %u", workers, got);
        }
    }
    *out = l;
    return VKT_OK;
}

/* Ends the epoch: waits for claimed samples. Then each slot that is not SLOT_TAKEN becomes SLOT_FREE. The caller holds
 * the lock. */
static void give_up_epoch(vkt_loader *l)
{
    l->n_rows = l->claimed; /* no more claims */
    while (l->in_flight > 0) pthread_cond_wait(&l->ready, &l->lock);
    l->n_rows = l->claimed = l->returned = 0;
    for (uint32_t i = 0; i < l->n_slots; i++)
        if (l->slots[i].state != SLOT_TAKEN) l->slots[i].state = SLOT_FREE;
    l->started = false;
    l->status = VKT_OK;
}

void vkt_loader_stop(vkt_loader *l)
{
    pthread_mutex_lock(&l->lock);
    give_up_epoch(l);
    pthread_mutex_unlock(&l->lock);
}

vkt_result vkt_loader_start_epoch(vkt_loader *l, const uint32_t *order, uint32_t n_rows, vkt_pass pass)
{
    const uint32_t rows = vkt_dataset_rows(l->dataset);
    vkt_loader_stop(l);
    if (n_rows == 0 || (!order && n_rows > rows))
        return vkt_fail(&l->host, VKT_E_ARG, "loader: want an epoch of 1 to %u rows, got %u", rows, n_rows);
    for (uint32_t i = 0; order && i < n_rows; i++)
        if (order[i] >= rows)
            return vkt_fail(&l->host, VKT_E_ARG, "loader: order[%u]: want a row below %u, got %u", i, rows, order[i]);
    pthread_mutex_lock(&l->lock);
    l->order = order;
    l->pass = pass;
    l->n_rows = n_rows;
    l->started = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    return VKT_OK;
}

/* Waits for the batch that begins at position l->returned of the epoch, and sets its slot to SLOT_TAKEN. The batch must
 * exist. The caller holds the lock. */
static vkt_result wait_for_batch(vkt_loader *l, slot *s)
{
    if (s->state == SLOT_TAKEN)
        return vkt_fail(&l->host, VKT_E_STATE, "loader: the slot of the next batch was not released");
    const uint64_t start_ns = s->state == SLOT_FULL ? 0 : vkt_now_ns();
    while (s->state != SLOT_FULL) pthread_cond_wait(&l->ready, &l->lock);
    if (start_ns) l->waited_ns += vkt_now_ns() - start_ns;
    if (s->status != VKT_OK) {
        const uint32_t position = l->returned + s->failed_row;
        l->status = s->status;
        return vkt_fail(&l->host, s->status, "loader: row %u (%u of the epoch) could not be fetched: %s",
                        l->order ? l->order[position] : position, position, s->why);
    }
    s->state = SLOT_TAKEN;
    return VKT_OK;
}

vkt_result vkt_loader_next(vkt_loader *l, uint32_t *slot_index, uint32_t *rows)
{
    *slot_index = UINT32_MAX;
    *rows = 0;
    pthread_mutex_lock(&l->lock);
    vkt_result r = l->started ? l->status : vkt_fail(&l->host, VKT_E_STATE, "loader: no epoch was started");
    if (r == VKT_OK && l->returned < l->n_rows) {
        slot *s = slot_of(l, l->returned);
        r = wait_for_batch(l, s);
        if (r == VKT_OK) {
            *slot_index = (uint32_t)(s - l->slots);
            *rows = batch_rows(l, l->returned);
            l->returned += *rows;
        }
    }
    pthread_mutex_unlock(&l->lock);
    return r;
}

vkt_result vkt_loader_release(vkt_loader *l, uint32_t slot_index)
{
    pthread_mutex_lock(&l->lock);
    const bool taken = slot_index < l->n_slots && l->slots[slot_index].state == SLOT_TAKEN;
    if (taken) {
        l->slots[slot_index].state = SLOT_FREE;
        pthread_cond_broadcast(&l->work);
    }
    pthread_mutex_unlock(&l->lock);
    return taken ? VKT_OK : vkt_fail(&l->host, VKT_E_STATE, "loader: slot %u is not the caller's", slot_index);
}

uint64_t vkt_loader_waited_ns(const vkt_loader *l)
{
    return l->waited_ns; /* needs no lock: only vkt_loader_next writes it, in the thread of the caller */
}

static void end_workers(vkt_loader *l)
{
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    for (uint32_t i = 0; i < l->n_workers; i++) pthread_join(l->workers[i].thread, NULL);
    pthread_cond_destroy(&l->ready);
    pthread_cond_destroy(&l->work);
    pthread_mutex_destroy(&l->lock);
}

void vkt_loader_destroy(vkt_loader **l_ptr)
{
    if (!l_ptr || !*l_ptr) return;
    vkt_loader *l = *l_ptr;
    /* A forked child has no workers, and its lock may stay locked. */
    if (l->process == vkt_process_id()) end_workers(l);
    const vkt_host h = l->host;
    vkt_free(&h, l->workers);
    vkt_free(&h, l->slots);
    vkt_free(&h, l);
    *l_ptr = NULL;
}
