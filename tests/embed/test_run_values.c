/* Tests vkt_program_params.run_values: the device writes the learning rate of a run, its number of rows and the index
 * of its first row. Training must give the same bits as with these numbers in a vkt_run of the host. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "embed/app.h"
#include "kernel/ids.h"
#include "record/record.h"

#define DO(call) assert_int_equal((call), VKT_OK)
#define COPIED (VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT)
enum { BATCH = 16, SAMPLES = 50, IN = 5, CLASSES = 3, PARAMS = CLASSES * IN + CLASSES, STEPS = 9 };
enum { HIDDEN = 16, MOST = HIDDEN * (IN + 1) + CLASSES * (HIDDEN + 1) }; /* MOST: the parameters of a fused network */

/* A classifier that gathers its batch from a table. Its run values come from the host, or from an array. */
typedef struct rig {
    app a;
    vkt_ctx *ctx;
    vkt_graph *g;
    vkt_store *store;
    vkt_program *p;
    vkt_array *arrays[3], *values; /* arrays: table, labels, order */
    app_buffer source;             /* the application's commands copy it to `values` */
} rig;

static vkt_array *new_array(vkt_ctx *ctx, vkt_dtype type, vkt_shape shape, const void *data)
{
    vkt_array *array;
    DO(vkt_array_create(ctx, &(vkt_array_params){ .dtype = type, .shape = shape, .data = data }, &array));
    return array;
}

static void make_arrays(rig *r)
{
    float table[SAMPLES * IN];
    uint32_t labels[SAMPLES], order[SAMPLES];
    for (int i = 0; i < SAMPLES * IN; i++) table[i] = (float)(i * 37 % 101) / 50 - 1;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        labels[i] = i % CLASSES;
        order[i] = i * 7 % SAMPLES;
    }
    r->arrays[0] = new_array(r->ctx, VKT_F32, vkt_shape2(SAMPLES, IN), table);
    r->arrays[1] = new_array(r->ctx, VKT_U32, vkt_shape1(SAMPLES), labels);
    r->arrays[2] = new_array(r->ctx, VKT_U32, vkt_shape1(SAMPLES), order);
    r->values = new_array(r->ctx, VKT_U32, vkt_shape1(3), NULL);
}

static void rig_make(rig *r, bool from_device, uint32_t micro)
{
    *r = (rig){ .p = NULL };
    app_open(&r->a, NULL);
    r->ctx = app_adopt(&r->a);
    r->source = app_buffer_make(&r->a, 256, COPIED);
    make_arrays(r);
    DO(vkt_graph_create(&r->a.host, &r->g));
    vkt_graph *g = r->g;
    const vkt_tensor table = vkt_external(g, "table", VKT_F32, vkt_shape2(SAMPLES, IN));
    const vkt_tensor labels = vkt_external(g, "labels", VKT_U32, vkt_shape1(SAMPLES));
    const vkt_tensor order = vkt_external(g, "order", VKT_U32, vkt_shape1(SAMPLES));
    const vkt_tensor x = vkt_gather_rows(g, table, order, BATCH, vkt_shape1(IN), NULL, NULL);
    const vkt_tensor w = vkt_param(g, "w", vkt_shape2(CLASSES, IN)), b = vkt_param(g, "b", vkt_shape1(CLASSES));
    const vkt_tensor z = vkt_linear(g, x, w, b);
    const vkt_tensor loss = vkt_softmax_cross_entropy(g, z, vkt_gather_labels(g, labels, order, BATCH));
    DO(vkt_backward(g, loss));
    DO(vkt_update(g, &(vkt_optimizer){ .kind = VKT_ADAM, .micro_batches = micro }));
    vkt_report(g, loss, (vkt_tensor){ 0 });
    DO(vkt_store_create(r->ctx, g, &r->store));
    const vkt_binding arrays[] = { { table, r->arrays[0] }, { labels, r->arrays[1] }, { order, r->arrays[2] } };
    const vkt_program_params params = { .arrays = arrays, .n_arrays = 3, .run_values = from_device ? r->values : NULL };
    DO(vkt_program_create(r->ctx, g, r->store, &params, &r->p));
    DO(vkt_ctx_wait_idle(r->ctx));
}

static void rig_params(rig *r, float out[PARAMS])
{
    DO(vkt_store_read(r->store, 0, VKT_PART_VALUE, out));
    DO(vkt_store_read(r->store, 1, VKT_PART_VALUE, out + CLASSES * IN));
}

static void rig_free(rig *r)
{
    vkt_program_destroy(&r->p);
    vkt_store_destroy(&r->store);
    vkt_graph_destroy(&r->g);
    for (int i = 0; i < 3; i++) vkt_array_destroy(&r->arrays[i]);
    vkt_array_destroy(&r->values);
    vkt_ctx_destroy(&r->ctx);
    app_buffer_free(&r->a, &r->source);
    app_close(&r->a);
}

/* Submits commands of the application that write the values. Returns the semaphore that a run has to wait for. */
static VkSemaphoreSubmitInfo write_values(rig *r, vkt_run_values v)
{
    const vkt_vk_buffer to = vkt_array_buffer(r->values);
    app_wait(&r->a); /* the copy of the last call must have read `source` */
    memcpy(r->source.mapped, &v, sizeof v);
    VkCommandBuffer cmd = app_begin(&r->a, false);
    app_barrier(&r->a, cmd);
    r->a.CmdCopyBuffer(cmd, r->source.handle, to.buffer, 1, &(VkBufferCopy){ 0, to.offset_bytes, sizeof v });
    app_barrier(&r->a, cmd);
    app_end(&r->a, cmd);
    app_submit(&r->a, cmd, NULL, 0);
    return app_semaphore(r->a.timeline, r->a.submitted);
}

typedef enum way { RUN, RECORDED, BUDGET, WAYS } way;

static void step(rig *r, way w, const vkt_run *run, const vkt_sync *sync)
{
    if (w == RUN) DO(vkt_program_run_synced(r->p, run, sync, NULL));
    if (w == RECORDED) {
        VkCommandBuffer cmd = app_begin(&r->a, false);
        app_barrier(&r->a, cmd);
        DO(vkt_program_record(r->p, cmd, run));
        app_barrier(&r->a, cmd);
        app_end(&r->a, cmd);
        app_submit(&r->a, cmd, NULL, 0);
        app_wait(&r->a);
    }
    vkt_step_progress progress = { .completed = w != BUDGET };
    for (bool first = true; !progress.completed; first = false) {
        uint64_t budget_ns = UINT64_MAX;
        DO(vkt_step_budget(r->p, run, first ? sync : NULL, &budget_ns, &progress));
    }
}

static vkt_run_values values_of(uint32_t s)
{
    const uint32_t rows = s % 3 == 1 ? 5 + s : BATCH;
    return (vkt_run_values){ .lr = 0.1f / (float)(1 + s), .rows = rows, .first = s * 11 % (SAMPLES - 4) };
}

/* Trains for STEPS runs, and writes the parameters to `out`. */
static void train(way w, bool from_device, uint32_t micro, float out[PARAMS])
{
    rig r;
    rig_make(&r, from_device, micro);
    for (uint32_t s = 0; s < STEPS; s++) {
        const vkt_run_values v = values_of(s);
        vkt_run run = { v.lr, v.rows, v.first, false, 0 };
        const VkSemaphoreSubmitInfo wait = write_values(&r, v);
        if (from_device) run = (vkt_run){ 99, 99, 3, false, 7 }; /* these numbers must have no effect */
        step(&r, w, &run, &(vkt_sync){ .waits = &wait, .n_waits = 1 });
    }
    vkt_metrics m = { .loss = NAN };
    if (w == RECORDED)
        DO(vkt_program_recorded_metrics(r.p, &m));
    else
        DO(vkt_program_metrics(r.p, STEPS - 1, &m));
    assert_true(isfinite(m.loss));
    assert_int_equal(m.rows, values_of(STEPS - 1).rows);
    assert_int_equal(m.t, STEPS / VKT_MAX(micro, 1u));
    rig_params(&r, out);
    rig_free(&r);
}

static void the_device_gives_the_same_bits_as_the_host(void **state)
{
    (void)state;
    for (uint32_t micro = 0; micro <= 3; micro += 3) {
        float want[PARAMS], got[PARAMS];
        train(RUN, false, micro, want);
        for (int w = 0; w < WAYS; w++) {
            train((way)w, true, micro, got);
            assert_memory_equal(got, want, sizeof want);
        }
    }
}

/* If vkt_run_values.rows is larger than the batch size, the run trains on the whole batch. */
static void more_rows_count_as_the_batch(void **state)
{
    (void)state;
    float params[2][PARAMS];
    for (int many = 0; many < 2; many++) {
        rig r;
        rig_make(&r, true, 0);
        for (uint32_t s = 0; s < 4; s++) {
            const uint32_t rows = !many ? BATCH : s ? BATCH + s : UINT32_MAX;
            const VkSemaphoreSubmitInfo wait = write_values(&r, (vkt_run_values){ 0.1f, rows, s });
            vkt_metrics m;
            uint64_t index;
            DO(vkt_program_run_synced(r.p, NULL, &(vkt_sync){ .waits = &wait, .n_waits = 1 }, &index));
            DO(vkt_program_metrics(r.p, index, &m));
            assert_int_equal(m.rows, BATCH);
        }
        rig_params(&r, params[many]);
        rig_free(&r);
    }
    assert_memory_equal(params[0], params[1], sizeof params[0]);
}

/* Runs with vkt_run_values.rows = 0 do not change the parameters. They leave no NaN, so later runs still train. */
static void no_rows_change_no_parameter(void **state)
{
    (void)state;
    for (uint32_t micro = 0; micro <= 2; micro += 2) {
        float before[PARAMS], after[PARAMS] = { 0 };
        rig r;
        rig_make(&r, true, micro);
        for (int phase = 0; phase < 3; phase++) {
            memcpy(before, after, sizeof before);
            for (uint32_t s = 0; s < 4; s++) {
                const uint32_t rows = phase == 1 ? 0 : BATCH;
                const VkSemaphoreSubmitInfo wait = write_values(&r, (vkt_run_values){ 0.1f, rows, s });
                step(&r, RUN, NULL, &(vkt_sync){ .waits = &wait, .n_waits = 1 });
            }
            rig_params(&r, after);
            if (phase == 1)
                assert_memory_equal(before, after, sizeof after);
            else
                for (int i = 0; i < PARAMS; i++) assert_true(isfinite(after[i]) && after[i] != 0);
        }
        rig_free(&r);
    }
}

/* Like no_rows_change_no_parameter, but the loss is a mean of squares instead of a cross entropy. */
static void no_rows_do_no_harm_to_a_mean_of_squares(void **state)
{
    (void)state;
    app a;
    net n;
    float before[NET_PARAMS], after[NET_PARAMS];
    app_open(&a, NULL);
    vkt_ctx *ctx = app_adopt(&a);
    vkt_array *values = new_array(ctx, VKT_U32, vkt_shape1(3), NULL);
    vkt_program *p;
    net_make(&n, ctx, NULL, NULL);
    const vkt_binding arrays[] = { { n.x, n.x_array }, { n.t, n.t_array } };
    DO(vkt_program_create(ctx, n.g, n.store,
                          &(vkt_program_params){ .arrays = arrays, .n_arrays = 2, .run_values = values }, &p));
    net_params(&n, before);
    for (uint32_t rows = 0; rows < 2; rows++) {
        const vkt_run_values v = { 0.1f, rows, 0 };
        DO(vkt_array_write(values, 0, &v, sizeof v));
        for (int s = 0; s < 3; s++) DO(vkt_program_run(p, NULL, NULL));
        net_params(&n, after);
        if (rows == 0) assert_memory_equal(before, after, sizeof after);
        for (int i = 0; i < NET_PARAMS; i++) assert_true(isfinite(after[i]));
    }
    assert_memory_not_equal(before, after, sizeof after);
    vkt_program_destroy(&p);
    net_free(&n);
    vkt_array_destroy(&values);
    vkt_ctx_destroy(&ctx);
    app_close(&a);
}

/* Networks whose loss is a mean of squares, each fused into one node (ops/product/mlp.h). With the variant forced,
 * `kernel` computes this node. */
static const struct {
    uint64_t variant;
    vkt_kernel_id kernel;
    vkt_precision precision;
    bool deep; /* two layers instead of one */
} fused[] = {
    { VKT_V(WIDE), VKT_K_MLP_MSE, VKT_PRECISION_F32, true },
    { VKT_V(NARROW), VKT_K_MLP_MSE_NARROW, VKT_PRECISION_F32, true },
    { VKT_V(LINE), VKT_K_MLP_LINE, VKT_PRECISION_F32, false },
    { VKT_V(SHARED), VKT_K_MLP_MSE_SHARED, VKT_PRECISION_F32, true },
    { VKT_V(COOP), VKT_K_MLP_MSE_COOP, VKT_PRECISION_F16, true },
};

/* Builds fused[i] in r->g. The tables of x and of the targets are arrays 0 and 1 of the rig, the order is array 2. */
static void make_fused(rig *r, size_t i, uint32_t micro)
{
    vkt_graph *g = r->g;
    const vkt_tensor table = vkt_external(g, "table", VKT_F32, vkt_shape2(SAMPLES, IN));
    const vkt_tensor targets = vkt_external(g, "targets", VKT_F32, vkt_shape2(SAMPLES, CLASSES));
    const vkt_tensor order = vkt_external(g, "order", VKT_U32, vkt_shape1(SAMPLES));
    vkt_tensor x = vkt_gather_rows(g, table, order, BATCH, vkt_shape1(IN), NULL, NULL);
    const vkt_tensor t = vkt_gather_rows(g, targets, order, BATCH, vkt_shape1(CLASSES), NULL, NULL);
    const uint32_t in = fused[i].deep ? HIDDEN : IN;
    if (fused[i].deep)
        x = vkt_relu(
            g, vkt_linear(g, x, vkt_param(g, "w1", vkt_shape2(HIDDEN, IN)), vkt_param(g, "b1", vkt_shape1(HIDDEN))));
    const vkt_tensor w = vkt_param(g, "w", vkt_shape2(CLASSES, in)), b = vkt_param(g, "b", vkt_shape1(CLASSES));
    const vkt_tensor loss = vkt_mse(g, vkt_linear(g, x, w, b), t);
    DO(vkt_backward(g, loss));
    DO(vkt_update(g, &(vkt_optimizer){ .kind = VKT_ADAM, .micro_batches = micro }));
    vkt_report(g, loss, (vkt_tensor){ 0 });
    DO(vkt_store_create(r->ctx, g, &r->store));
    const vkt_binding arrays[] = { { table, r->arrays[0] }, { targets, r->arrays[1] }, { order, r->arrays[2] } };
    const vkt_program_params params = {
        .arrays = arrays, .n_arrays = 3, .run_values = r->values, .precision = fused[i].precision
    };
    r->ctx->limits.choices.force = fused[i].variant;
    DO(vkt_program_create(r->ctx, g, r->store, &params, &r->p));
    uint32_t n = 0;
    for (size_t d = 0; d < r->p->lowered.n; d++) n += r->p->lowered.list[d].kernel == fused[i].kernel;
    assert_int_equal(n, 1);
}

/* Writes a number to each element of the parameters (`write`), or reads all of them. Returns how many elements there
 * are. */
static uint32_t all_params(const rig *r, bool write, float *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < vkt_store_count(r->store); i++) {
        const vkt_shape s = vkt_store_shape(r->store, i);
        const uint32_t elements = s.dim[0] * (s.rank > 1 ? s.dim[1] : 1);
        for (uint32_t k = 0; write && k < elements; k++) out[n + k] = 0.02f * (float)((n + k) * 7 % 11) - 0.09f;
        if (write)
            DO(vkt_store_write(r->store, i, VKT_PART_VALUE, out + n));
        else
            DO(vkt_store_read(r->store, i, VKT_PART_VALUE, out + n));
        n += elements;
    }
    return n;
}

/* Trains two runs on whole batches, two runs without rows, and two runs on whole batches. */
static void check_fused(rig *r, size_t i, uint32_t micro)
{
    float before[MOST], after[MOST];
    make_fused(r, i, micro);
    const uint32_t n = all_params(r, true, after);
    for (uint32_t s = 0; s < 6; s++) {
        const vkt_run_values v = { 0.05f, s / 2 == 1 ? 0 : BATCH, s };
        memcpy(before, after, sizeof before);
        DO(vkt_array_write(r->values, 0, &v, sizeof v));
        DO(vkt_program_run(r->p, NULL, NULL));
        all_params(r, false, after);
        for (uint32_t k = 0; k < n; k++) assert_true(isfinite(after[k]));
        const bool updates = s / 2 != 1 && (micro < 2 || s % 2 == 1);
        assert_int_equal(memcmp(before, after, n * sizeof *after) != 0, updates);
    }
}

/* Runs without rows change no parameter and leave no NaN, with each kernel for a fused network. */
static void no_rows_do_no_harm_to_a_fused_network(void **state)
{
    (void)state;
    float targets[SAMPLES * CLASSES];
    for (int i = 0; i < SAMPLES * CLASSES; i++) targets[i] = (float)(i * 13 % 29) / 29;
    for (size_t i = 0; i < VKT_COUNT(fused); i++)
        for (uint32_t micro = 0; micro <= 2; micro += 2) {
            rig r = { .p = NULL };
            app_open(&r.a, NULL);
            r.ctx = app_adopt(&r.a);
            r.source = app_buffer_make(&r.a, 256, COPIED);
            make_arrays(&r);
            vkt_array_destroy(&r.arrays[1]);
            r.arrays[1] = new_array(r.ctx, VKT_F32, vkt_shape2(SAMPLES, CLASSES), targets);
            DO(vkt_graph_create(&r.a.host, &r.g));
            if (fused[i].variant != VKT_V(COOP) || r.ctx->limits.coop.m) check_fused(&r, i, micro);
            rig_free(&r);
        }
}

/* The second run has no rows, and eps is 0. So the standard deviation is 0, and a division by 0 gives inf or NaN. But
 * the run must not change the parameters. */
static void no_rows_do_no_harm_to_a_batch_norm(void **state)
{
    (void)state;
    float before[3 * IN], after[3 * IN] = { 0 };
    rig r = { .p = NULL };
    app_open(&r.a, NULL);
    r.ctx = app_adopt(&r.a);
    r.source = app_buffer_make(&r.a, 256, COPIED);
    make_arrays(&r);
    DO(vkt_graph_create(&r.a.host, &r.g));
    const vkt_tensor table = vkt_external(r.g, "table", VKT_F32, vkt_shape2(SAMPLES, IN));
    const vkt_tensor order = vkt_external(r.g, "order", VKT_U32, vkt_shape1(SAMPLES));
    const vkt_tensor w = vkt_param(r.g, "w", vkt_shape1(IN));
    const vkt_batch_norm_params norm = { .eps = VKT_ZERO,
                                         .gamma = vkt_param(r.g, "gamma", vkt_shape1(IN)),
                                         .beta = vkt_param(r.g, "beta", vkt_shape1(IN)) };
    const vkt_tensor x = vkt_gather_rows(r.g, table, order, BATCH, vkt_shape1(IN), NULL, NULL);
    const vkt_tensor y = vkt_batch_norm(r.g, vkt_add(r.g, vkt_mul(r.g, x, x), vkt_mul(r.g, x, w)), &norm);
    const vkt_tensor loss = vkt_mse(r.g, y, x);
    DO(vkt_backward(r.g, loss));
    DO(vkt_update(r.g, &(vkt_optimizer){ .kind = VKT_ADAM }));
    vkt_report(r.g, loss, (vkt_tensor){ 0 });
    DO(vkt_store_create(r.ctx, r.g, &r.store));
    const vkt_binding arrays[] = { { table, r.arrays[0] }, { order, r.arrays[2] } };
    const vkt_program_params params = { .arrays = arrays, .n_arrays = 2, .run_values = r.values };
    DO(vkt_program_create(r.ctx, r.g, r.store, &params, &r.p));
    assert_int_equal(all_params(&r, true, after), 3 * IN);
    for (uint32_t s = 0; s < 3; s++) {
        const vkt_run_values v = { 0.05f, s == 1 ? 0 : BATCH, s };
        memcpy(before, after, sizeof before);
        DO(vkt_array_write(r.values, 0, &v, sizeof v));
        DO(vkt_program_run(r.p, NULL, NULL));
        all_params(&r, false, after);
        for (int k = 0; k < 3 * IN; k++) assert_true(isfinite(after[k]));
        assert_int_equal(memcmp(before, after, sizeof after) != 0, s != 1);
    }
    rig_free(&r);
}

static void wrong_arrays_and_semaphores_are_refused(void **state)
{
    (void)state;
    rig r;
    vkt_program *p = NULL;
    rig_make(&r, true, 0);
    const VkSemaphoreSubmitInfo none = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO };
    vkt_array *small = new_array(r.ctx, VKT_U32, vkt_shape1(2), NULL),
              *floats = new_array(r.ctx, VKT_F32, vkt_shape1(3), NULL);
    vkt_graph *g;
    DO(vkt_graph_create(&r.a.host, &g));
    vkt_keep(g, vkt_relu(g, vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape1(4))));
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_program_create(r.ctx, g, NULL, &(vkt_program_params){ .run_values = small }, &p), VKT_E_ARG);
    vkt_test_error_contains("run_values wants an array of this context of 3 or more u32");
    assert_int_equal(vkt_program_create(r.ctx, g, NULL, &(vkt_program_params){ .run_values = floats }, &p), VKT_E_ARG);
    assert_null(p);
    const vkt_sync signals = { .signals = &none, .n_signals = 1 };
    const bool before = vkt_program_done(r.p, 0);
    assert_int_equal(vkt_program_run_synced(r.p, NULL, &signals, NULL), VKT_E_ARG);
    vkt_test_error_contains("semaphore 0 of vkt_sync.signals");
    assert_int_equal(vkt_program_done(r.p, 0), before);
    vkt_test_expect_errors(false);
    vkt_graph_destroy(&g);
    vkt_array_destroy(&small);
    vkt_array_destroy(&floats);
    rig_free(&r);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_device_gives_the_same_bits_as_the_host),
        TEST(more_rows_count_as_the_batch),
        TEST(no_rows_change_no_parameter),
        TEST(no_rows_do_no_harm_to_a_mean_of_squares),
        TEST(no_rows_do_no_harm_to_a_fused_network),
        TEST(no_rows_do_no_harm_to_a_batch_norm),
        TEST(wrong_arrays_and_semaphores_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
