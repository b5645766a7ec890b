/* jobs.c - a job system: worker threads take jobs from one queue, and only one job at a time uses a context. A step
 * of a training job is submitted in slices (vkt_step_budget). The job's budget of device time is its priority. An
 * inference job gives recorded commands to a thread that submits them, and semaphores order these commands with the
 * training. Written from docs/embedding.md and the public headers alone. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "device.h"

enum { POINTS = 256, BYTES = POINTS * 4, WORKERS = 3, MODELS = 3, MAX_JOBS = 16 };
#define USAGE VK_BUFFER_USAGE_STORAGE_BUFFER_BIT

/* A network and its context. A worker thread uses the context only while `busy` is set for the worker's job. */
typedef struct model {
    vkt_ctx *ctx;
    vkt_array *x, *target, *out;
    vkt_graph *graph[2];
    vkt_store *store;
    vkt_program *train, *ask;
    vkt_step_progress progress;
    host_buffer result;  /* the result of `ask`, in the memory of the array `out` */
    VkCommandBuffer cmd; /* runs `ask` */
    uint64_t asked;      /* value of jobs.timeline at which the newest inference is done */
    bool busy;           /* a job uses the context */
    bool asking;         /* the result of an inference has not been read yet */
} model;

typedef enum job_kind { TRAIN, INFER, SAVE, LOAD } job_kind;

typedef struct job {
    job_kind kind;
    model *m;
    int steps;             /* TRAIN: number of steps that are left */
    uint64_t budget_ns;    /* TRAIN: device time for each call of train(); more time is a higher priority */
    atomic_bool cancelled; /* TRAIN: stop after the step in progress */
    const char *path;      /* SAVE, LOAD */
    float *result;         /* INFER: POINTS numbers */
    bool done;
} job;

typedef struct submission {
    const model *m;        /* NULL: no submission is wanted */
    VkSemaphore semaphore; /* timeline of the context: the commands wait for its value `after` */
    uint64_t after;
    uint64_t signalled; /* value of jobs.timeline that the commands signal; 0: not submitted yet */
} submission;

typedef struct jobs {
    gpu gpu;
    pthread_mutex_t queue_lock; /* locked around every submission to gpu.queue */
    pthread_mutex_t lock;       /* protects `waiting` .. `next`, `submitted`, model.busy, model.asking, job.done */
    pthread_cond_t changed;
    job *waiting[MAX_JOBS]; /* in the order of their arrival */
    int n_waiting;
    bool stop;
    submission next; /* what the thread `submitter` submits next */
    VkSemaphore timeline;
    uint64_t submitted; /* the newest value of `timeline` that was submitted */
    pthread_t workers[WORKERS], submitter;
    model models[MODELS];
} jobs;

/* ---- the queue of jobs ------------------------------------------------------------------------------------------- */

static void add(jobs *s, job *j)
{
    pthread_mutex_lock(&s->lock);
    WANT(s->n_waiting < MAX_JOBS);
    s->waiting[s->n_waiting++] = j;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* Waits for a job whose model is not busy. An INFER job also waits until the result of the model's previous inference
 * is read. Takes the oldest job that need not wait, and makes the job's model busy. Returns NULL if `stop` is set. */
static job *take(jobs *s)
{
    job *found = NULL;
    pthread_mutex_lock(&s->lock);
    while (!s->stop && !found) {
        for (int i = 0; i < s->n_waiting && !found; i++) {
            job *j = s->waiting[i];
            if (j->m->busy || (j->kind == INFER && j->m->asking)) continue;
            found = j;
            memmove(&s->waiting[i], &s->waiting[i + 1], (size_t)(--s->n_waiting - i) * sizeof(job *));
        }
        if (!found) pthread_cond_wait(&s->changed, &s->lock);
    }
    if (found) found->m->busy = true;
    pthread_mutex_unlock(&s->lock);
    return found;
}

static void set(jobs *s, bool *flag, bool value)
{
    pthread_mutex_lock(&s->lock);
    *flag = value;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void wait_for(jobs *s, const job *j)
{
    pthread_mutex_lock(&s->lock);
    while (!j->done) pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* ---- jobs -------------------------------------------------------------------------------------------------------- */

/* Trains until the job has no steps left, or for one budget of device time. If the job is cancelled, continues only the
 * step in progress, if there is one. Returns whether the job is done: it has no steps left, or it is cancelled and no
 * step is in progress. */
static bool train(jobs *s, job *j)
{
    model *m = j->m;
    /* Training waits for the newest inference, which reads the parameters. The inference is already submitted to the
     * same queue, so its signal is before this wait. */
    const VkSemaphoreSubmitInfo asked = { TYPE(SEMAPHORE_SUBMIT_INFO), .semaphore = s->timeline, .value = m->asked,
                                          .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT };
    const vkt_sync sync = { .waits = &asked, .n_waits = 1 };
    const vkt_run run = { .lr = 0.01f };
    uint64_t left_ns = j->budget_ns;
    const bool cancelled = atomic_load(&j->cancelled);
    if (cancelled && m->progress.slice == 0) return true;
    /* No limit, so that the step is complete soon. (In the first two runs of a program, each call of vkt_step_budget
     * submits one kernel, whatever the budget.) */
    if (cancelled) left_ns = UINT64_MAX;
    do {
        VKT(vkt_step_budget(m->train, &run, &sync, &left_ns, &m->progress));
        if (m->progress.completed) j->steps--;
    } while (m->progress.completed && j->steps > 0 && !cancelled);
    if (m->progress.submitted_ns == 0) VKT(vkt_ctx_wait_idle(m->ctx)); /* the device is busy: nothing was submitted */
    return j->steps == 0 || (cancelled && m->progress.slice == 0);
}

/* Gives the commands of `ask` to the thread `submitter`, which submits them behind the work of the context. Then lets
 * other jobs use the context, and waits for the result. */
static void infer(jobs *s, job *j)
{
    model *m = j->m;
    submission wanted = { .m = m };
    vkt_ctx_timeline(m->ctx, &wanted.semaphore, &wanted.after);
    pthread_mutex_lock(&s->lock);
    while (s->next.m) pthread_cond_wait(&s->changed, &s->lock);
    s->next = wanted;
    pthread_cond_broadcast(&s->changed);
    while (s->next.signalled == 0) pthread_cond_wait(&s->changed, &s->lock);
    m->asked = s->next.signalled;
    s->next = (submission){ 0 };
    m->busy = false;
    m->asking = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    const VkSemaphoreWaitInfo w = { TYPE(SEMAPHORE_WAIT_INFO), .semaphoreCount = 1, .pSemaphores = &s->timeline,
                                    .pValues = &m->asked };
    VK(vkWaitSemaphores(s->gpu.device, &w, UINT64_MAX));
    memcpy(j->result, m->result.bytes, BYTES);
    set(s, &m->asking, false);
}

static void *work(void *arg)
{
    jobs *s = arg;
    for (job *j; (j = take(s)) != NULL;) {
        const vkt_host host = vkt_ctx_host(j->m->ctx);
        bool done = true;
        switch (j->kind) {
        case TRAIN: done = train(s, j); break;
        case INFER: infer(s, j); break;
        case SAVE: VKT(vkt_store_save_state(&host, j->m->store, j->path)); break;
        case LOAD: VKT(vkt_store_load_state(&host, j->m->store, j->path)); break;
        }
        if (j->kind != INFER) set(s, &j->m->busy, false);
        if (done)
            set(s, &j->done, true);
        else
            add(s, j);
    }
    return NULL;
}

static void lock_queue(void *s)
{
    pthread_mutex_lock(&((jobs *)s)->queue_lock);
}
static void unlock_queue(void *s)
{
    pthread_mutex_unlock(&((jobs *)s)->queue_lock);
}

/* The function of the thread `submitter`, which submits the recorded commands. */
static void *submit(void *arg)
{
    jobs *s = arg;
    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        if (!s->next.m || s->next.signalled) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        const VkSemaphoreSubmitInfo wait = { TYPE(SEMAPHORE_SUBMIT_INFO), .semaphore = s->next.semaphore,
                                             .value = s->next.after,
                                             .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT };
        const VkSemaphoreSubmitInfo signal = { TYPE(SEMAPHORE_SUBMIT_INFO), .semaphore = s->timeline,
                                               .value = ++s->submitted,
                                               .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT };
        const VkCommandBufferSubmitInfo cmd = { TYPE(COMMAND_BUFFER_SUBMIT_INFO), .commandBuffer = s->next.m->cmd };
        const VkSubmitInfo2 i = { TYPE(SUBMIT_INFO_2), NULL, 0, 1, &wait, 1, &cmd, 1, &signal };
        lock_queue(s);
        VK(vkQueueSubmit2(s->gpu.queue, 1, &i, VK_NULL_HANDLE));
        unlock_queue(s);
        s->next.signalled = s->submitted;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

/* Makes the store and the program that trains, or the program that predicts. */
static vkt_program *make_program(model *m, bool training, uint64_t seed)
{
    vkt_builder *b;
    vkt_program *p;
    const vkt_shape shape = vkt_shape2(POINTS, 1);
    VKT(vkt_graph_create(NULL, &m->graph[training]));
    vkt_graph *g = m->graph[training];
    VKT(vkt_builder_create(g, training, &b));
    const vkt_tensor x = vkt_external(g, "x", VKT_F32, shape), other = vkt_external(g, "other", VKT_F32, shape);
    vkt_tensor y = vkt_nn_linear(b, "fc1", x, &(vkt_nn_linear_params){ .out_features = 32 });
    y = vkt_nn_linear(b, "fc2", vkt_nn_relu(b, y), &(vkt_nn_linear_params){ .out_features = 1 });
    if (training) {
        VKT(vkt_backward(g, vkt_mse(g, y, other)));
        VKT(vkt_update(g, &(vkt_optimizer){ .kind = VKT_ADAM }));
        VKT(vkt_store_create(m->ctx, g, &m->store));
        VKT(vkt_nn_init(b, m->store, seed));
    } else {
        vkt_write(g, y, other);
    }
    const vkt_binding arrays[] = { { x, m->x, NULL }, { other, training ? m->target : m->out, NULL } };
    VKT(vkt_program_create(m->ctx, g, m->store, &(vkt_program_params){ .arrays = arrays, .n_arrays = 2 }, &p));
    vkt_builder_destroy(&b);
    return p;
}

/* Records one inference. Semaphores order the inference with the training. The barrier orders two executions of this
 * recording, and lets the host read the result. */
static void record(const gpu *g, model *m)
{
    const VkCommandBufferAllocateInfo c = { TYPE(COMMAND_BUFFER_ALLOCATE_INFO), NULL, g->pool, 0, 1 };
    VkMemoryBarrier2 before, after;
    vkt_program_barriers(m->ask, &before, &after);
    after.dstStageMask = before.dstStageMask | VK_PIPELINE_STAGE_2_HOST_BIT;
    after.dstAccessMask = before.dstAccessMask | VK_ACCESS_2_HOST_READ_BIT;
    VK(vkAllocateCommandBuffers(g->device, &c, &m->cmd));
    VK(vkBeginCommandBuffer(m->cmd, &(VkCommandBufferBeginInfo){ TYPE(COMMAND_BUFFER_BEGIN_INFO) }));
    VKT(vkt_program_record(m->ask, m->cmd, NULL));
    vkCmdPipelineBarrier2(
        m->cmd, &(VkDependencyInfo){ TYPE(DEPENDENCY_INFO), .memoryBarrierCount = 1, .pMemoryBarriers = &after });
    VK(vkEndCommandBuffer(m->cmd));
}

static void open_model(jobs *s, model *m, uint64_t seed)
{
    float x[POINTS], target[POINTS];
    vkt_adopt_params adopt = gpu_adopt(&s->gpu);
    adopt.lock_queue = lock_queue, adopt.unlock_queue = unlock_queue, adopt.lock_user = s;
    for (int i = 0; i < POINTS; i++) target[i] = sinf(4 * (x[i] = (float)i / POINTS));
    VKT(vkt_ctx_adopt(&adopt, NULL, NULL, &m->ctx));
    m->result = gpu_buffer(&s->gpu, BYTES, USAGE);
    const vkt_array_adopt_params out = { { m->result.handle, 0, BYTES }, USAGE, VKT_F32, { 2, { POINTS, 1 } } };
    VKT(vkt_array_adopt(m->ctx, &out, &m->out));
    VKT(vkt_array_create(m->ctx, &(vkt_array_params){ .shape = out.shape, .data = x }, &m->x));
    VKT(vkt_array_create(m->ctx, &(vkt_array_params){ .shape = out.shape, .data = target }, &m->target));
    m->train = make_program(m, true, seed);
    m->ask = make_program(m, false, seed);
    record(&s->gpu, m);
}

static void close_model(const gpu *g, model *m)
{
    vkt_program_destroy(&m->train);
    vkt_program_destroy(&m->ask);
    vkt_graph_destroy(&m->graph[0]);
    vkt_graph_destroy(&m->graph[1]);
    vkt_store_destroy(&m->store);
    vkt_array_destroy(&m->x);
    vkt_array_destroy(&m->target);
    vkt_array_destroy(&m->out);
    vkt_ctx_destroy(&m->ctx);
    gpu_free(g, &m->result);
}

static bool same_parameters(const model *a, const model *b)
{
    float of_a[32], of_b[32]; /* no parameter has more elements */
    bool same = true;
    for (uint32_t i = 0; i < vkt_store_count(a->store); i++) {
        memset(of_a, 0, sizeof of_a), memset(of_b, 0, sizeof of_b);
        VKT(vkt_store_read(a->store, i, VKT_PART_VALUE, of_a));
        VKT(vkt_store_read(b->store, i, VKT_PART_VALUE, of_b));
        same = same && memcmp(of_a, of_b, sizeof of_a) == 0;
    }
    return same;
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static void run(jobs *s, const char *path)
{
    model *a = &s->models[0], *b = &s->models[1], *c = &s->models[2];
    static float early[POINTS], later[POINTS], of_a[POINTS], of_b[POINTS];
    job high = { .kind = TRAIN, .m = a, .steps = 150, .budget_ns = 4000000 };
    job low = { .kind = TRAIN, .m = b, .steps = 20, .budget_ns = 1000000 };
    job endless = { .kind = TRAIN, .m = c, .steps = 1 << 30, .budget_ns = 1000000 };
    job peek = { .kind = INFER, .m = a, .result = early };
    add(s, &low), add(s, &endless), add(s, &high), add(s, &peek);
    wait_for(s, &high), wait_for(s, &low), wait_for(s, &peek);
    atomic_store(&endless.cancelled, true);
    wait_for(s, &endless);
    printf("jobs: cancelled after %d steps\n", (1 << 30) - endless.steps);
    WANT(endless.steps > 0 && c->progress.slice == 0); /* no job is left, so this thread may use the contexts */
    WANT(!same_parameters(a, b));
    /* Model b loads the state of model a. Both train further, with different budgets, and must stay equal. */
    job save = { .kind = SAVE, .m = a, .path = path }, load = { .kind = LOAD, .m = b, .path = path };
    add(s, &save), wait_for(s, &save);
    add(s, &load), wait_for(s, &load);
    WANT(same_parameters(a, b));
    job more_a = { .kind = TRAIN, .m = a, .steps = 50, .budget_ns = 4000000 };
    job more_b = { .kind = TRAIN, .m = b, .steps = 50, .budget_ns = 1000000 };
    job peek_later = { .kind = INFER, .m = a, .result = later };
    job ask_a = { .kind = INFER, .m = a, .result = of_a }, ask_b = { .kind = INFER, .m = b, .result = of_b };
    add(s, &more_a), add(s, &more_b), add(s, &peek_later);
    wait_for(s, &more_a), wait_for(s, &more_b), wait_for(s, &peek_later);
    add(s, &ask_a), add(s, &ask_b);
    wait_for(s, &ask_a), wait_for(s, &ask_b);
    float worst = 0;
    for (int i = 0; i < POINTS; i++) worst = fmaxf(worst, fabsf(of_a[i] - sinf(4 * (float)i / POINTS)));
    printf("jobs: the largest error of the curve is %.3f\n", worst);
    WANT(same_parameters(a, b) && memcmp(of_a, of_b, BYTES) == 0);
    WANT(memcmp(of_a, early, BYTES) != 0 && worst < 0.2f);
}

int main(int argc, char **argv)
{
    static jobs s = { .queue_lock = PTHREAD_MUTEX_INITIALIZER,
                      .lock = PTHREAD_MUTEX_INITIALIZER,
                      .changed = PTHREAD_COND_INITIALIZER };
    const VkSemaphoreTypeCreateInfo t = { TYPE(SEMAPHORE_TYPE_CREATE_INFO),
                                          .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE };
    const VkSemaphoreCreateInfo c = { TYPE(SEMAPHORE_CREATE_INFO), .pNext = &t };
    WANT(argc == 2); /* jobs FILE: writes a checkpoint to FILE */
    gpu_open(&s.gpu, NULL);
    VK(vkCreateSemaphore(s.gpu.device, &c, NULL, &s.timeline));
    for (int i = 0; i < MODELS; i++) open_model(&s, &s.models[i], (uint64_t)i + 1);
    for (int i = 0; i < WORKERS; i++) WANT(pthread_create(&s.workers[i], NULL, work, &s) == 0);
    WANT(pthread_create(&s.submitter, NULL, submit, &s) == 0);
    run(&s, argv[1]);
    set(&s, &s.stop, true);
    for (int i = 0; i < WORKERS; i++) WANT(pthread_join(s.workers[i], NULL) == 0);
    WANT(pthread_join(s.submitter, NULL) == 0);
    VK(vkDeviceWaitIdle(s.gpu.device));
    for (int i = 0; i < MODELS; i++) close_model(&s.gpu, &s.models[i]);
    vkDestroySemaphore(s.gpu.device, s.timeline, NULL);
    gpu_close(&s.gpu);
    return 0;
}
