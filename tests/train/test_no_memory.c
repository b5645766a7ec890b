/* Tests the creation of a trainer, a prediction, and a training run. Makes each of their host allocations fail, one
 * after the other. Also makes each queue submission of a training run fail. (gpu/test_context.c tests the allocations
 * of a context.) */
#include "train/rig.h"

#include <stdio.h>

#include "base/file.h"
#include "gpu/gpu.h"
#include "vktrain/metrics.h"

/* ---- a sweep: the n-th allocation of an attempt fails, for every n ---- */

/* A context keeps some allocations of an attempt (pipelines, lists, staging buffers), and the next attempt does not
 * make these again. So allocation n of an attempt may have a smaller index in the next attempt. In order to leave out
 * no allocation, sweep_begin lowers n if an attempt has changed the live bytes. The function subtracts the number of
 * allocations that the context has kept, and SLACK for lists that grew or were freed. Some allocations then fail in two
 * attempts. */
enum { SLACK = 4 };

typedef struct sweep {
    unsigned n, failures;
    size_t blocks, bytes; /* number and bytes of the live allocations before the newest attempt */
    unsigned errors;      /* number of error lines before the newest attempt */
} sweep;

static sweep sweep_make(void)
{
    return (sweep){ .blocks = vkt_test_live_blocks(), .bytes = vkt_test_live_bytes() };
}

static void sweep_begin(sweep *s)
{
    const size_t blocks = vkt_test_live_blocks(), bytes = vkt_test_live_bytes();
    const size_t kept = blocks > s->blocks ? blocks - s->blocks : 0, back = bytes == s->bytes ? 0 : kept + SLACK;
    s->n = s->n + 1 > back ? s->n + 1 - (unsigned)back : 1;
    s->blocks = blocks;
    s->bytes = bytes;
    s->errors = vkt_test_errors();
    vkt_test_fail_allocation(s->n);
}

/* Returns whether an allocation of the attempt failed. `status` is the result of the attempt. After a failed allocation
 * the attempt must have logged one error, otherwise none. The sweep ends with the first attempt without a failure. */
static bool sweep_failed(sweep *s, vkt_result status)
{
    const bool failed = vkt_test_allocation_failed();
    const unsigned errors = vkt_test_errors() - s->errors;
    vkt_test_fail_allocation(0);
    if (status != (failed ? VKT_E_NOMEM : VKT_OK) || errors != failed)
        fail_msg("allocation %u: %s, %u messages, the last is '%s'", s->n, vkt_result_name(status), errors,
                 vkt_test_last_error());
    if (failed) vkt_test_error_contains("out of host memory");
    s->failures += failed;
    assert_true(s->failures < 1000); /* more would mean that each attempt leaks */
    return failed;
}

/* ---- creation of a trainer, on a context that already has the pipelines ---- */

static void measure(void *user, const vkt_metric_batch *b)
{
    (void)user;
    (void)b;
}

static double measured(void *user)
{
    (void)user;
    return 1;
}

static void every_failed_allocation_of_a_creation_is_survived(void **state)
{
    rig *r = rig_of(state);
    const float weights[RIG_CLASSES] = { [1] = 2 };
    const vkt_metric metric = { .name = "own", .add = measure, .result = measured };
    for (int stream = 0; stream < 2; stream++) {
        vkt_trainer_params p = rig_params(r);
        p.stream = stream;
        p.profile = true;
        p.class_weights = weights;
        p.metrics = &metric;
        p.n_metrics = 1;
        vkt_trainer *t = NULL;
        assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_OK);
        vkt_trainer_destroy(&t);
        const size_t before = vkt_test_live_blocks();
        sweep s = sweep_make();
        for (;;) {
            sweep_begin(&s);
            if (!sweep_failed(&s, vkt_trainer_create(r->ctx, &p, &t))) break;
            assert_null(t);
            assert_int_equal(vkt_test_live_blocks(), before);
            r->ctx->vk.DeviceWaitIdle(r->ctx->device);
        }
        assert_true(s.failures > 200);
        rig_fit(t, NULL); /* the context works as before */
        vkt_trainer_destroy(&t);
    }
}

/* ---- a predictor and its scores ---- */

typedef struct answers {
    vkt_predictor *p;
    char *text;
} answers;

static vkt_result predict(const rig *r, const char *weights, const char *csv, answers *a)
{
    uint32_t classes[RIG_CHECK_ROWS];
    uint64_t counts[RIG_CLASSES * RIG_CLASSES] = { 0 };
    const vkt_predictor_params p = {
        .model = { .forward = rig_forward }, .data = r->check, .weights = weights, .batch = 32
    };
    VKT_TRY(vkt_predictor_create(r->ctx, &p, &a->p));
    VKT_TRY(vkt_predictor_run(a->p, 0, RIG_CHECK_ROWS, classes, NULL));
    VKT_TRY(vkt_confusion_add(&r->h, vkt_dataset_labels(r->check), classes, RIG_CHECK_ROWS, RIG_CLASSES, counts));
    VKT_TRY(vkt_class_scores_text(&r->h, counts, RIG_CLASSES, NULL, &a->text));
    return vkt_confusion_write(&r->h, counts, RIG_CLASSES, NULL, NULL, csv);
}

static void every_failed_allocation_of_a_prediction_is_survived(void **state)
{
    rig *r = rig_of(state);
    char weights[256], csv[256];
    snprintf(weights, sizeof weights, "%s", vkt_temp_dir_file(&r->dir, "weights"));
    snprintf(csv, sizeof csv, "%s", vkt_temp_dir_file(&r->dir, "confusion.csv"));
    const vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    assert_int_equal(vkt_trainer_save(t, weights), VKT_OK);
    sweep s = sweep_make();
    for (bool failed = true; failed;) {
        answers a = { 0 };
        sweep_begin(&s);
        failed = sweep_failed(&s, predict(r, weights, csv, &a));
        vkt_text_release(&a.text);
        vkt_predictor_destroy(&a.p);
    }
    assert_true(s.failures > 50);
}

/* ---- a whole run with one layer and three steps an epoch ---- */

/* The objects that a run makes. The caller of the run frees them. */
typedef struct lifetime {
    vkt_dataset *train, *check;
    vkt_trainer *t;
    bool resumed; /* true: finish() does not resume the checkpoint */
} lifetime;

static const char *checkpoint_of(const rig *r)
{
    return vkt_temp_dir_file(&r->dir, "checkpoint");
}

static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    x = vkt_nn_flatten(b, x);
    return vkt_nn_linear(b, "fc", x, &(vkt_nn_linear_params){ .out_features = RIG_CLASSES });
}

static vkt_result make(const rig *r, vkt_ctx *ctx, bool stream, lifetime *l)
{
    vkt_trainer_params p = rig_params(r);
    VKT_TRY(vkt_dataset_slice(r->train, 0, 24, &l->train));
    VKT_TRY(vkt_dataset_slice(r->check, 0, 8, &l->check));
    p.model.forward = forward;
    p.train = l->train;
    p.validation = l->check;
    p.batch = 8;
    p.stream = stream;
    p.profile = true;
    VKT_TRY(vkt_trainer_create(ctx, &p, &l->t));
    return vkt_trainer_attach(l->t, "key", "text");
}

static void unmake(lifetime *l)
{
    vkt_trainer_destroy(&l->t);
    vkt_dataset_destroy(&l->check);
    vkt_dataset_destroy(&l->train);
}

/* Resumes the checkpoint, unless l->resumed is set. Then trains to the end of the second epoch, and saves the
 * weights. */
static vkt_result finish(const rig *r, lifetime *l)
{
    const char *checkpoint = checkpoint_of(r);
    const vkt_fit_params p = { .epochs = 2, .checkpoint = checkpoint, .checkpoint_every = 2 };
    if (!l->resumed) VKT_TRY(vkt_trainer_resume(l->t, checkpoint));
    l->resumed = true;
    VKT_TRY(vkt_trainer_fit(l->t, &p));
    return vkt_trainer_save(l->t, vkt_temp_dir_file(&r->dir, "weights"));
}

static vkt_result run_lifetime(const rig *r, vkt_ctx *ctx, bool stream, lifetime *l)
{
    double accuracy;
    uint32_t classes[5];
    VKT_TRY(make(r, ctx, stream, l));
    /* vkt_trainer_evaluate creates an evaluator. For streamed data,
     * every_failed_allocation_of_a_creation_is_survived tests this creation. */
    if (!stream) VKT_TRY(vkt_trainer_evaluate(l->t, l->train, NULL, &accuracy));
    VKT_TRY(vkt_trainer_predict(l->t, l->check, 3, 5, classes, NULL));
    VKT_TRY(finish(r, l));
    VKT_TRY(vkt_trainer_load(l->t, vkt_temp_dir_file(&r->dir, "weights")));
    VKT_TRY(vkt_trainer_write_history(l->t, vkt_temp_dir_file(&r->dir, "history.csv")));
    return vkt_trainer_profile(l->t, vkt_temp_dir_file(&r->dir, "trace.json"));
}

/* Opens a new context that reads and writes no cache files. */
static vkt_ctx *open_fresh(const rig *r)
{
    vkt_ctx *ctx;
    assert_int_equal(vkt_ctx_create(&(vkt_ctx_params){ .no_pipeline_cache = true }, &r->h, &ctx), VKT_OK);
    return ctx;
}

/* Returns the bytes of a checkpoint after the first epoch. */
static void *first_epoch(const rig *r, bool stream, size_t *n)
{
    lifetime l = { 0 };
    void *bytes;
    assert_int_equal(make(r, r->ctx, stream, &l), VKT_OK);
    rig_fit(l.t, &(vkt_fit_params){ .epochs = 1, .checkpoint = checkpoint_of(r) });
    unmake(&l);
    assert_int_equal(vkt_file_read(&r->h, checkpoint_of(r), 1u << 20, &bytes, n), VKT_OK);
    return bytes;
}

/* Returns the number of allocations of an undisturbed run on a new context. Renames the checkpoint and the weights file
 * of this run, so that the files of later runs can be compared with them. */
static unsigned undisturbed(const rig *r, bool stream)
{
    lifetime l = { 0 };
    vkt_ctx *ctx = open_fresh(r);
    const unsigned long before = vkt_test_allocations();
    assert_int_equal(run_lifetime(r, ctx, stream, &l), VKT_OK);
    const unsigned n = (unsigned)(vkt_test_allocations() - before);
    unmake(&l);
    vkt_ctx_destroy(&ctx);
    assert_int_equal(rename(checkpoint_of(r), vkt_temp_dir_file(&r->dir, "wanted checkpoint")), 0);
    assert_int_equal(rename(vkt_temp_dir_file(&r->dir, "weights"), vkt_temp_dir_file(&r->dir, "wanted weights")), 0);
    return n;
}

static void expect_wanted_files(const rig *r)
{
    rig_same_file(checkpoint_of(r), vkt_temp_dir_file(&r->dir, "wanted checkpoint"));
    rig_same_file(vkt_temp_dir_file(&r->dir, "weights"), vkt_temp_dir_file(&r->dir, "wanted weights"));
    assert_int_equal(vkt_temp_dir_count(&r->dir), 6); /* so there are no partial files */
}

/* Makes each allocation of a run fail, one after the other. If the run has made its trainer before the failure, this
 * trainer finishes the run and must write the same files as the undisturbed run. A trainer that streams and has resumed
 * the checkpoint continues from its current state. Any other trainer resumes the checkpoint first. If there is no
 * trainer yet, the next attempt shows that the context still works. */
static void sweep_run(const rig *r, bool stream)
{
    size_t first_bytes;
    void *first = first_epoch(r, stream, &first_bytes);
    const unsigned n = undisturbed(r, stream);
    vkt_ctx *ctx = open_fresh(r);
    sweep s = sweep_make();
    for (bool failed = true; failed;) {
        lifetime l = { 0 };
        assert_int_equal(vkt_file_write(&r->h, checkpoint_of(r), first, first_bytes), VKT_OK);
        sweep_begin(&s);
        failed = sweep_failed(&s, run_lifetime(r, ctx, stream, &l));
        l.resumed = l.resumed && stream;
        if (failed && l.t) assert_int_equal(finish(r, &l), VKT_OK);
        if (l.t) expect_wanted_files(r);
        unmake(&l);
        /* Without this wait the validation layer keeps all accesses and becomes slower and slower. */
        ctx->vk.DeviceWaitIdle(ctx->device);
    }
    assert_in_range(s.failures, n, n + n / 4);
    vkt_ctx_destroy(&ctx);
    vkt_free(&r->h, first);
}

static void every_failed_allocation_of_a_run_is_survived(void **state)
{
    const rig *r = rig_of(state);
    sweep_run(r, false);
}

static void every_failed_allocation_of_a_streamed_run_is_survived(void **state)
{
    const rig *r = rig_of(state);
    sweep_run(r, true);
}

/* ---- the device lacks memory for the n-th submission ---- */

static unsigned until_refusal; /* n: the n-th submission from now on fails; 0: none fails */
static PFN_vkQueueSubmit2 real_submit;

static VKAPI_ATTR VkResult VKAPI_CALL refuse(VkQueue queue, uint32_t n, const VkSubmitInfo2 *infos, VkFence fence)
{
    if (until_refusal && --until_refusal == 0) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    return real_submit(queue, n, infos, fence);
}

static void every_refused_submission_of_a_run_is_survived(void **state)
{
    const rig *r = rig_of(state);
    size_t first_bytes;
    void *first = first_epoch(r, false, &first_bytes);
    undisturbed(r, false);
    real_submit = r->ctx->vk.QueueSubmit2;
    r->ctx->vk.QueueSubmit2 = refuse;
    vkt_test_expect_errors(true);
    unsigned n = 1;
    for (bool refused = true; refused; n++) {
        lifetime l = { 0 };
        assert_int_equal(vkt_file_write(&r->h, checkpoint_of(r), first, first_bytes), VKT_OK);
        until_refusal = n;
        const vkt_result status = run_lifetime(r, r->ctx, false, &l);
        refused = until_refusal == 0;
        until_refusal = 0;
        if (status != (refused ? VKT_E_DEVICE_MEMORY : VKT_OK))
            fail_msg("submission %u: %s, '%s'", n, vkt_result_name(status), vkt_test_last_error());
        if (refused && l.t) assert_int_equal(finish(r, &l), VKT_OK);
        if (l.t) expect_wanted_files(r);
        unmake(&l);
        r->ctx->vk.DeviceWaitIdle(r->ctx->device);
    }
    assert_true(n > 30);
    vkt_free(&r->h, first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(every_failed_allocation_of_a_creation_is_survived),
        rig_test(every_failed_allocation_of_a_prediction_is_survived),
        rig_test(every_failed_allocation_of_a_run_is_survived),
        rig_test(every_failed_allocation_of_a_streamed_run_is_survived),
        rig_test(every_refused_submission_of_a_run_is_survived),
    };
    return cmocka_run_group_tests_name("no memory", tests, NULL, NULL);
}
