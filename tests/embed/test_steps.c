/* Tests vkt_program_run_synced, vkt_program_record and vkt_step_budget. Each function must give the same bits as
 * vkt_program_run. vkt_step_budget divides a run into parts, the slices. A frame submits the slices that fit into its
 * time budget. */
#include <math.h>

#include "embed/app.h"

#include <string.h>
#include <time.h>

#include "gpu/gpu.h"

enum { STEPS = 12 };

typedef struct rig {
    app a;
    vkt_ctx *ctx;
    net n;
    float want[NET_PARAMS];
} rig;

static void rig_make(rig *r, uint32_t steps)
{
    app_open(&r->a, NULL);
    r->ctx = app_adopt(&r->a);
    net_expected(r->ctx, steps, r->want);
    net_make(&r->n, r->ctx, NULL, NULL);
}

static void rig_check_and_free(rig *r)
{
    float got[NET_PARAMS];
    net_params(&r->n, got);
    assert_memory_equal(got, r->want, sizeof got);
    net_free(&r->n);
    vkt_ctx_destroy(&r->ctx);
    app_close(&r->a);
}

/* ---- between semaphores ---- */

/* Each run waits for the semaphore `go`, which the application signals. At its end, the run signals `done`. */
static void runs_wait_and_signal(void **state)
{
    (void)state;
    rig r;
    rig_make(&r, STEPS);
    VkSemaphore go = app_timeline_make(&r.a), done = app_timeline_make(&r.a);
    for (uint32_t s = 0; s < STEPS; s++) {
        const vkt_run run = net_run(s);
        const VkSemaphoreSubmitInfo wait = app_semaphore(go, s + 1), signal = app_semaphore(done, s + 1);
        const vkt_sync sync = { .waits = &wait, .n_waits = 1, .signals = &signal, .n_signals = 1 };
        uint64_t index, reached;
        assert_int_equal(vkt_program_run_synced(r.n.p, &run, &sync, &index), VKT_OK);
        assert_int_equal(r.a.GetSemaphoreCounterValue(r.a.device, done, &reached), VK_SUCCESS);
        assert_int_equal(reached, s);
        assert_false(vkt_program_done(r.n.p, index));
        const VkSemaphoreSignalInfo start = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                              .semaphore = go,
                                              .value = s + 1 };
        assert_int_equal(r.a.SignalSemaphore(r.a.device, &start), VK_SUCCESS);
        const VkSemaphoreWaitInfo end = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                          .semaphoreCount = 1,
                                          .pSemaphores = &done,
                                          .pValues = &(uint64_t){ s + 1 } };
        assert_int_equal(r.a.WaitSemaphores(r.a.device, &end, UINT64_MAX), VK_SUCCESS);
        assert_true(vkt_program_done(r.n.p, index));
    }
    assert_int_equal(vkt_ctx_wait_idle(r.ctx), VKT_OK);
    app_timeline_free(&r.a, go);
    app_timeline_free(&r.a, done);
    rig_check_and_free(&r);
}

/* A submission of the application waits for the library's timeline semaphore, and so for the end of a run. */
static void the_application_waits_for_the_timeline(void **state)
{
    (void)state;
    rig r;
    rig_make(&r, 1);
    const vkt_run run = net_run(0);
    VkSemaphore timeline;
    uint64_t value, index;
    assert_int_equal(vkt_program_run(r.n.p, &run, &index), VKT_OK);
    vkt_ctx_timeline(r.ctx, &timeline, &value);
    const VkSemaphoreSubmitInfo wait = app_semaphore(timeline, value);
    app_submit(&r.a, VK_NULL_HANDLE, &wait, 1);
    app_wait(&r.a);
    assert_true(vkt_program_done(r.n.p, index));
    rig_check_and_free(&r);
}

static void too_many_and_null_semaphores_are_refused(void **state)
{
    (void)state;
    rig r;
    rig_make(&r, 0);
    VkSemaphoreSubmitInfo waits[VKT_SYNC_MAX + 1];
    for (int i = 0; i <= VKT_SYNC_MAX; i++) waits[i] = app_semaphore(r.a.timeline, 0);
    const vkt_sync sync = { .waits = waits, .n_waits = VKT_SYNC_MAX + 1 };
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_program_run_synced(r.n.p, NULL, &sync, NULL), VKT_E_ARG);
    vkt_test_error_contains("at most 8");
    waits[2].semaphore = VK_NULL_HANDLE;
    for (int i = 0; i < 4; i++) {
        static const char *const why[] = { "semaphore 2 of vkt_sync.waits", "semaphore 2 of vkt_sync.signals",
                                           "semaphore 0 of vkt_sync.waits", "semaphore 0 of vkt_sync.signals" };
        const VkSemaphoreSubmitInfo *these = i < 2 ? waits : NULL;
        const vkt_sync wrong = { these, i % 2 ? 0 : 3, these, i % 2 ? 3 : 0 };
        assert_int_equal(vkt_program_run_synced(r.n.p, NULL, &wrong, NULL), VKT_E_ARG);
        vkt_test_error_contains(why[i]);
        uint64_t budget_ns = 1000000;
        vkt_step_progress progress;
        assert_int_equal(vkt_step_budget(r.n.p, NULL, &wrong, &budget_ns, &progress), VKT_E_ARG);
        vkt_test_error_contains(why[i]);
    }
    vkt_test_expect_errors(false);
    rig_check_and_free(&r);
}

/* ---- fewer rows than the batch ---- */

/* Trains three steps on the first `rows` rows. The rows behind these have the number `other` in x, and -other in t.
 * Compares each loss with a reference in double precision. */
static void train_rows(vkt_ctx *ctx, uint32_t rows, float other, float params[NET_PARAMS])
{
    float x[NET_ROWS * NET_IN], t[NET_ROWS * NET_OUT], y[NET_ROWS * NET_OUT];
    net n;
    net_data(x, t);
    for (uint32_t i = rows * NET_IN; i < NET_ROWS * NET_IN; i++) x[i] = other;
    for (uint32_t i = rows * NET_OUT; i < NET_ROWS * NET_OUT; i++) t[i] = -other;
    net_make(&n, ctx, NULL, NULL);
    assert_int_equal(vkt_array_write(n.x_array, 0, x, sizeof x), VKT_OK);
    assert_int_equal(vkt_array_write(n.t_array, 0, t, sizeof t), VKT_OK);
    for (uint32_t s = 0; s < 3; s++) {
        vkt_run run = net_run(s);
        vkt_metrics m;
        uint64_t index;
        double sum = 0;
        run.rows = rows;
        assert_int_equal(vkt_program_run(n.p, &run, &index), VKT_OK);
        assert_int_equal(vkt_program_metrics(n.p, index, &m), VKT_OK);
        assert_int_equal(m.rows, rows);
        assert_int_equal(vkt_program_read(n.p, n.y, y, sizeof y), VKT_OK);
        for (uint32_t i = 0; i < rows * NET_OUT; i++) sum += pow((double)y[i] - (double)t[i], 2);
        sum /= rows * NET_OUT;
        assert_true(fabs((double)m.loss - sum) <= 1e-5 * sum);
    }
    net_params(&n, params);
    net_free(&n);
}

static void rows_past_the_real_ones_do_not_count(void **state)
{
    (void)state;
    float zeros[NET_PARAMS], large[NET_PARAMS];
    app a;
    app_open(&a, NULL);
    vkt_ctx *ctx = app_adopt(&a);
    train_rows(ctx, 20, 0, zeros);
    train_rows(ctx, 20, 1e6f, large);
    assert_memory_equal(zeros, large, sizeof zeros);
    train_rows(ctx, 21, 0, large);
    assert_memory_not_equal(zeros, large, sizeof zeros);
    vkt_ctx_destroy(&ctx);
    app_close(&a);
}

static void more_rows_than_the_batch_are_refused_everywhere(void **state)
{
    (void)state;
    rig r;
    rig_make(&r, 0);
    const vkt_run run = { .rows = NET_ROWS + 1 };
    uint64_t budget_ns = UINT64_MAX;
    vkt_step_progress progress;
    VkCommandBuffer cmd = app_begin(&r.a, false);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_program_run(r.n.p, &run, NULL), VKT_E_ARG);
    vkt_test_error_contains("at most the batch of 37 rows, got 38");
    assert_int_equal(vkt_program_record(r.n.p, cmd, &run), VKT_E_ARG);
    vkt_test_error_contains("at most the batch of 37 rows, got 38");
    assert_int_equal(vkt_step_budget(r.n.p, &run, NULL, &budget_ns, &progress), VKT_E_ARG);
    vkt_test_error_contains("at most the batch of 37 rows, got 38");
    assert_true(budget_ns == UINT64_MAX); /* after an error, the budget is untouched */
    vkt_test_expect_errors(false);
    app_end(&r.a, cmd);
    rig_check_and_free(&r);
}

/* ---- in the application's command buffer ---- */

static void set_before(VkMemoryBarrier2 *b)
{
    b->srcStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
    b->srcAccessMask = VK_ACCESS_2_MEMORY_WRITE_BIT;
}

static void set_after(VkMemoryBarrier2 *b)
{
    b->dstStageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_2_HOST_BIT;
    b->dstAccessMask = VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT | VK_ACCESS_2_HOST_READ_BIT;
}

static void put(app *a, VkCommandBuffer cmd, const VkMemoryBarrier2 *b)
{
    a->CmdPipelineBarrier2(cmd, &(VkDependencyInfo){ .sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                                     .memoryBarrierCount = 1,
                                                     .pMemoryBarriers = b });
}

/* Records one run with no barriers except those that vkt_program_barriers returns. */
static void record_run(rig *r, VkCommandBuffer cmd, uint32_t step)
{
    VkMemoryBarrier2 before, after;
    const vkt_run run = net_run(step);
    vkt_program_barriers(r->n.p, &before, &after);
    set_before(&before);
    set_after(&after);
    put(&r->a, cmd, &before);
    assert_int_equal(vkt_program_record(r->n.p, cmd, &run), VKT_OK);
    put(&r->a, cmd, &after);
}

/* Submitted runs alternate with command buffers, each of which has three recorded runs. The parameters must have the
 * same bits as if vkt_program_run had submitted all runs. */
static void recorded_runs_are_the_same(void **state)
{
    (void)state;
    rig r;
    rig_make(&r, STEPS);
    for (uint32_t s = 0; s < STEPS;) {
        const vkt_run run = net_run(s);
        if (s % 4 == 0) {
            assert_int_equal(vkt_program_run(r.n.p, &run, NULL), VKT_OK);
            s++;
            continue;
        }
        VkCommandBuffer cmd = app_begin(&r.a, false);
        for (int i = 0; i < 3; i++, s++) record_run(&r, cmd, s);
        app_end(&r.a, cmd);
        app_submit(&r.a, cmd, NULL, 0);
    }
    app_wait(&r.a);
    vkt_metrics recorded, submitted;
    assert_int_equal(vkt_program_recorded_metrics(r.n.p, &recorded), VKT_OK);
    assert_int_equal(recorded.t, STEPS);
    assert_int_equal(vkt_program_metrics(r.n.p, 2, &submitted), VKT_OK);
    assert_int_equal(submitted.t, 9); /* the third submitted run */
    rig_check_and_free(&r);
}

/* A command buffer with one recorded run is submitted many times, without a change. Meanwhile the host allocates
 * nothing. */
static void a_recording_is_executed_many_times(void **state)
{
    (void)state;
    rig r;
    net other;
    float want[NET_PARAMS], got[NET_PARAMS];
    rig_make(&r, 0);
    net_make(&other, r.ctx, NULL, NULL);
    const vkt_run same = net_run(3);
    for (int s = 0; s < STEPS; s++) assert_int_equal(vkt_program_run(other.p, &same, NULL), VKT_OK);
    net_params(&other, want);
    VkCommandBuffer cmd = app_begin(&r.a, true);
    record_run(&r, cmd, 3);
    app_end(&r.a, cmd);
    const unsigned long allocations = vkt_test_allocations();
    for (int s = 0; s < STEPS; s++) app_submit(&r.a, cmd, NULL, 0);
    app_wait(&r.a);
    assert_int_equal(vkt_test_allocations(), allocations);
    net_params(&r.n, got);
    assert_memory_equal(got, want, sizeof got);
    vkt_metrics a, b;
    assert_int_equal(vkt_program_recorded_metrics(r.n.p, &a), VKT_OK);
    assert_int_equal(vkt_program_metrics(other.p, STEPS - 1, &b), VKT_OK);
    assert_memory_equal(&a, &b, sizeof a);
    net_free(&other);
    memcpy(r.want, want, sizeof want);
    rig_check_and_free(&r);
}

static void what_was_not_recorded_has_no_metrics(void **state)
{
    (void)state;
    rig r;
    vkt_metrics m;
    rig_make(&r, 0);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_program_recorded_metrics(r.n.p, &m), VKT_E_STATE);
    assert_int_equal(vkt_program_record(r.n.p, VK_NULL_HANDLE, NULL), VKT_E_ARG);
    vkt_test_expect_errors(false);
    rig_check_and_free(&r);
}

/* ---- in slices, within a frame's budget ---- */

/* Submits frames with a budget until `steps` runs are submitted. Returns the number of frames. With `drain`, each frame
 * waits until the device is idle; else it sleeps for 0.1 ms. */
static uint32_t frames(rig *r, uint32_t steps, uint64_t budget_ns, bool drain)
{
    uint32_t s = 0, n = 0;
    for (; s < steps; n++) {
        assert_in_range(n, 0, 1000000); /* a bound that even a busy machine does not reach */
        uint64_t left_ns = budget_ns;
        vkt_step_progress progress;
        do {
            const vkt_run run = net_run(s);
            const uint64_t before_ns = left_ns;
            assert_int_equal(vkt_step_budget(r->n.p, &run, NULL, &left_ns, &progress), VKT_OK);
            assert_int_equal(before_ns - left_ns, VKT_MIN(progress.submitted_ns, before_ns));
            assert_int_equal(progress.completed, progress.slice == 0 && progress.submitted_ns > 0);
            s += progress.completed;
        } while (progress.completed && s < steps);
        if (drain) assert_int_equal(vkt_ctx_wait_idle(r->ctx), VKT_OK);
        if (!drain) nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL); /* represents a frame's other work */
    }
    return n;
}

static void slices_add_up_to_runs(void **state)
{
    (void)state;
    static const uint64_t budgets[] = { 1, 150000, 4000000, 10000000000 };
    uint32_t taken[4];
    for (int i = 0; i < 4; i++) {
        rig r;
        rig_make(&r, STEPS);
        taken[i] = frames(&r, STEPS, budgets[i], i != 1);
        rig_check_and_free(&r);
    }
    assert_true(taken[0] > 4 * STEPS); /* with a budget of 1 ns, a frame has one slice */
    /* With any budget, each call in the first two runs submits one kernel. With a budget of ten seconds, one frame then
     * submits all other runs. With a budget of 1 ns, each of the other runs takes a frame or more. */
    assert_true(taken[3] < taken[0]);
}

/* vkt_program_run has measured the program already. So the first call of vkt_step_budget, with a budget of ten seconds,
 * completes a run. A smaller budget divides the program into more slices. */
static void budgets_may_change(void **state)
{
    (void)state;
    rig r;
    rig_make(&r, STEPS);
    for (uint32_t s = 0; s < 3; s++) {
        const vkt_run run = net_run(s);
        assert_int_equal(vkt_program_run(r.n.p, &run, NULL), VKT_OK);
    }
    static const uint64_t budgets[] = { 10000000000, 1, 500000 };
    uint32_t slices = 0;
    for (uint32_t s = 3; s < STEPS;) {
        uint64_t left_ns = budgets[s % 3];
        const vkt_run run = net_run(s);
        vkt_step_progress progress;
        assert_int_equal(vkt_step_budget(r.n.p, &run, NULL, &left_ns, &progress), VKT_OK);
        if (s == 3) assert_true(progress.completed);
        /* submitted_ns is the expected time of the submitted slices. A budget of 1 ns does not make it smaller. */
        if (budgets[s % 3] == 1) assert_true(progress.submitted_ns > 1);
        slices = progress.slices > slices ? progress.slices : slices;
        s += progress.completed;
        assert_int_equal(vkt_ctx_wait_idle(r.ctx), VKT_OK);
    }
    assert_true(slices > 1);
    rig_check_and_free(&r);
}

/* While a run is in progress, no other run can begin. With a budget of 0, nothing is submitted. */
static void a_run_under_way_is_guarded(void **state)
{
    (void)state;
    rig r;
    rig_make(&r, 1);
    const vkt_run run = net_run(0);
    uint64_t left_ns = 1;
    vkt_step_progress progress;
    assert_int_equal(vkt_step_budget(r.n.p, &run, NULL, &left_ns, &progress), VKT_OK);
    assert_int_equal(progress.slice, 1);
    assert_int_equal(left_ns, 0);
    assert_int_equal(vkt_step_budget(r.n.p, &run, NULL, &left_ns, &progress), VKT_OK);
    assert_true(progress.slice == 1 && progress.submitted_ns == 0 && !progress.completed);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_program_run(r.n.p, &run, NULL), VKT_E_STATE);
    vkt_test_error_contains("under way");
    vkt_test_expect_errors(false);
    (void)frames(&r, 1, 1000000, true);
    rig_check_and_free(&r);
}

/* While a run is in progress, vkt_program_write refuses to change the run's input. Then calls of vkt_step_budget with
 * an unlimited budget complete the run. */
static void an_input_is_not_written_under_way(void **state)
{
    (void)state;
    app a;
    vkt_graph *g;
    vkt_program *p;
    app_open(&a, NULL);
    vkt_ctx *ctx = app_adopt(&a);
    const float numbers[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, others[8] = { 9 };
    assert_int_equal(vkt_graph_create(&a.host, &g), VKT_OK);
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(2, 4));
    const vkt_tensor y = vkt_add(g, vkt_softmax(g, x, -1), x);
    vkt_keep(g, y);
    assert_int_equal(vkt_program_create(ctx, g, NULL, NULL, &p), VKT_OK);
    assert_int_equal(vkt_program_write(p, x, numbers, sizeof numbers), VKT_OK);
    uint64_t left_ns = 1;
    vkt_step_progress progress;
    assert_int_equal(vkt_step_budget(p, NULL, NULL, &left_ns, &progress), VKT_OK);
    assert_true(progress.slice == 1 && progress.slices > 1);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_program_write(p, x, others, sizeof others), VKT_E_STATE);
    vkt_test_error_contains("under way");
    vkt_test_expect_errors(false);
    for (uint32_t calls = 1; !progress.completed; calls++) {
        assert_true(calls < progress.slices);
        left_ns = UINT64_MAX;
        assert_int_equal(vkt_step_budget(p, NULL, NULL, &left_ns, &progress), VKT_OK);
    }
    float got[8];
    assert_int_equal(vkt_program_read(p, y, got, sizeof got), VKT_OK);
    for (int i = 0; i < 8; i++) assert_true(got[i] > numbers[i] && got[i] < numbers[i] + 1);
    assert_int_equal(vkt_program_write(p, x, others, sizeof others), VKT_OK);
    vkt_program_destroy(&p);
    vkt_graph_destroy(&g);
    vkt_ctx_destroy(&ctx);
    app_close(&a);
}

static VKAPI_ATTR VkResult VKAPI_CALL standing_clock(VkDevice device, VkQueryPool pool, uint32_t first, uint32_t n,
                                                     size_t bytes, void *data, VkDeviceSize stride,
                                                     VkQueryResultFlags flags)
{
    (void)device;
    (void)pool;
    (void)first;
    (void)n;
    (void)stride;
    (void)flags;
    memset(data, 0, bytes);
    return VK_SUCCESS;
}

/* If timestamps are so coarse that each kernel takes 0 ns, the loop of a frame still ends. */
static void a_clock_that_stands_ends_frames_too(void **state)
{
    (void)state;
    rig r;
    rig_make(&r, 2);
    r.ctx->vk.GetQueryPoolResults = standing_clock;
    for (uint32_t s = 0; s < 2; s++) {
        const vkt_run run = net_run(s);
        assert_int_equal(vkt_program_run(r.n.p, &run, NULL), VKT_OK);
    }
    net_params(&r.n, r.want);
    assert_int_equal(vkt_ctx_wait_idle(r.ctx), VKT_OK);
    uint64_t left_ns = 3000;
    uint32_t runs = 0;
    vkt_step_progress progress;
    do {
        assert_int_equal(vkt_step_budget(r.n.p, NULL, NULL, &left_ns, &progress), VKT_OK);
        runs += progress.completed;
        assert_true(runs <= 3);
    } while (progress.completed);
    assert_true(runs > 0 && left_ns < 3000);
    net_params(&r.n, r.want);
    rig_check_and_free(&r);
}

/* With max_submission_ns = UINT64_MAX, the library divides no program into slices. So vkt_step_budget fails, for
 * programs with and without vkt_program_params.profile. */
static void undivided_programs_have_no_budget(void **state)
{
    (void)state;
    app a;
    net n;
    vkt_program *p;
    vkt_ctx *ctx = NULL;
    app_open(&a, NULL);
    const vkt_adopt_params offer = app_offer(&a);
    const vkt_ctx_params params = { .no_pipeline_cache = true, .max_submission_ns = UINT64_MAX };
    assert_int_equal(vkt_ctx_adopt(&offer, &params, &a.host, &ctx), VKT_OK);
    net_make(&n, ctx, NULL, NULL);
    const vkt_binding arrays[] = { { n.x, n.x_array }, { n.t, n.t_array } };
    const vkt_program_params profiled = { .arrays = arrays, .n_arrays = 2, .profile = true };
    assert_int_equal(vkt_program_create(ctx, n.g, n.store, &profiled, &p), VKT_OK);
    vkt_program *const each[] = { n.p, p };
    for (int i = 0; i < 2; i++) {
        uint64_t left_ns = 1000000;
        vkt_step_progress progress;
        vkt_test_expect_errors(true);
        assert_int_equal(vkt_step_budget(each[i], NULL, NULL, &left_ns, &progress), VKT_E_UNSUPPORTED);
        vkt_test_error_contains("max_submission_ns");
        vkt_test_expect_errors(false);
    }
    vkt_program_destroy(&p);
    net_free(&n);
    vkt_ctx_destroy(&ctx);
    app_close(&a);
}

/* If a pending run takes longer than the budget, vkt_step_budget submits no slice and does not wait. A call with a
 * budget of 0 still signals its semaphores. */
static void a_frame_never_waits(void **state)
{
    (void)state;
    rig r;
    rig_make(&r, 4);
    VkSemaphore gate = app_timeline_make(&r.a), signalled = app_timeline_make(&r.a);
    for (uint32_t s = 0; s < 3; s++) {
        const vkt_run run = net_run(s);
        assert_int_equal(vkt_program_run(r.n.p, &run, NULL), VKT_OK);
    }
    assert_int_equal(vkt_ctx_wait_idle(r.ctx), VKT_OK);
    const VkSemaphoreSubmitInfo wait = app_semaphore(gate, 1), signal = app_semaphore(signalled, 1);
    const vkt_run run = net_run(3);
    uint64_t left_ns = 10000000000;
    vkt_step_progress progress;
    const vkt_sync closed = { .waits = &wait, .n_waits = 1 };
    assert_int_equal(vkt_step_budget(r.n.p, &run, &closed, &left_ns, &progress), VKT_OK);
    assert_true(progress.completed && progress.submitted_ns > 0);
    for (int frame = 0; frame < 5; frame++) {
        left_ns = 1; /* far below the time of the pending run */
        assert_int_equal(vkt_step_budget(r.n.p, &run, NULL, &left_ns, &progress), VKT_OK);
        assert_true(progress.slice == 0 && progress.submitted_ns == 0 && !progress.completed);
    }
    const VkSemaphoreSignalInfo open = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
                                         .semaphore = gate,
                                         .value = 1 };
    assert_int_equal(r.a.SignalSemaphore(r.a.device, &open), VK_SUCCESS);
    left_ns = 0;
    const vkt_sync sync = { .signals = &signal, .n_signals = 1 };
    assert_int_equal(vkt_step_budget(r.n.p, &run, &sync, &left_ns, &progress), VKT_OK);
    const VkSemaphoreWaitInfo end = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                      .semaphoreCount = 1,
                                      .pSemaphores = &signalled,
                                      .pValues = &(const uint64_t){ 1 } };
    assert_int_equal(r.a.WaitSemaphores(r.a.device, &end, 60000000000), VK_SUCCESS);
    assert_int_equal(vkt_ctx_wait_idle(r.ctx), VKT_OK);
    app_timeline_free(&r.a, gate);
    app_timeline_free(&r.a, signalled);
    rig_check_and_free(&r);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(runs_wait_and_signal),
        TEST(the_application_waits_for_the_timeline),
        TEST(too_many_and_null_semaphores_are_refused),
        TEST(rows_past_the_real_ones_do_not_count),
        TEST(more_rows_than_the_batch_are_refused_everywhere),
        TEST(recorded_runs_are_the_same),
        TEST(a_recording_is_executed_many_times),
        TEST(what_was_not_recorded_has_no_metrics),
        TEST(slices_add_up_to_runs),
        TEST(budgets_may_change),
        TEST(a_run_under_way_is_guarded),
        TEST(an_input_is_not_written_under_way),
        TEST(a_clock_that_stands_ends_frames_too),
        TEST(undivided_programs_have_no_budget),
        TEST(a_frame_never_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
