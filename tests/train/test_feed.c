/* Tests how a program gets its batches (train/feed.h): from data sets that are on the device (resident), and from data
 * sets that are streamed to it, for each type of sample, with labels and targets. */
#include "train/rig.h"

#include "gpu/gpu.h"
#include "train/feed.h"

enum { ROWS = 45, BATCH = 8, LENGTH = 5, WIDTH = 3 };

typedef struct table {
    uint8_t u8[ROWS][LENGTH];
    float f32[ROWS][LENGTH];
    uint16_t u16[ROWS][LENGTH];
    uint32_t u32[ROWS][LENGTH], labels[ROWS];
    float targets[ROWS][WIDTH];
} table;

static vkt_dataset *make(const vkt_host *h, const table *t, vkt_row_type type)
{
    const void *features[] = {
        [VKT_ROW_U8] = t->u8, [VKT_ROW_F32] = t->f32, [VKT_ROW_U16] = t->u16, [VKT_ROW_U32] = t->u32
    };
    const vkt_dataset_params p = { .rows = ROWS,
                                   .width = LENGTH,
                                   .type = type,
                                   .labels = t->labels,
                                   .targets = t->targets[0],
                                   .target_width = WIDTH };
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_from_arrays(h, &p, features[type], &d), VKT_OK);
    return d;
}

/* A program whose outputs are the batch itself. */
typedef struct pass {
    vkt_feed feed;
    vkt_graph *g;
    vkt_tensor x, t, y;
    vkt_program *p;
} pass;

static void begin(rig *r, pass *s, const vkt_dataset *d, bool stream)
{
    assert_int_equal(
        vkt_feed_create(r->ctx, &r->h, d, &(vkt_feed_params){ .batch = BATCH, .stream = stream }, &s->feed), VKT_OK);
    assert_int_equal(s->feed.streams, stream);
    assert_int_equal(vkt_graph_create(&r->h, &s->g), VKT_OK);
    const vkt_feed_values v = vkt_feed_declare(s->g, &s->feed);
    vkt_feed_gather(s->g, &s->feed, v, &s->x, &s->t);
    s->y = vkt_feed_gather_targets(s->g, &s->feed, v);
    vkt_keep(s->g, s->x);
    vkt_keep(s->g, s->t);
    vkt_keep(s->g, s->y);
    vkt_binding arrays[VKT_FEED_BINDINGS];
    const uint32_t n = vkt_feed_bind(&s->feed, v, arrays);
    assert_int_equal(
        vkt_program_create(r->ctx, s->g, NULL, &(vkt_program_params){ .arrays = arrays, .n_arrays = n }, &s->p),
        VKT_OK);
}

static void end(pass *s)
{
    vkt_program_destroy(&s->p);
    vkt_graph_destroy(&s->g);
    vkt_feed_destroy(&s->feed);
}

/* Checks that one sample of the batch comes from row `row` of the table. If `row` is ROWS, the batch has no sample
 * here, and all numbers must be 0. */
static void check_row(const table *t, vkt_row_type type, uint32_t row, const uint32_t *x, uint32_t label,
                      const float *y)
{
    const bool real = row < ROWS;
    for (uint32_t k = 0; k < LENGTH; k++) {
        float number;
        memcpy(&number, &x[k], sizeof number);
        switch (type) {
        case VKT_ROW_U8: assert_true(number == (real ? (float)(t->u8[row][k] / 255.0) : 0)); break;
        case VKT_ROW_F32: assert_true(number == (real ? t->f32[row][k] : 0)); break;
        case VKT_ROW_U16: assert_int_equal(x[k], real ? t->u16[row][k] : 0); break;
        case VKT_ROW_U32: assert_int_equal(x[k], real ? t->u32[row][k] : 0); break;
        }
    }
    assert_int_equal(label, real ? t->labels[row] : 0);
    for (uint32_t k = 0; k < WIDTH; k++) assert_true(y[k] == (real ? t->targets[row][k] : 0));
}

static void check_epoch(pass *s, const table *t, vkt_row_type type, uint32_t epoch)
{
    vkt_shuffle(s->feed.host_order, ROWS, 3, epoch);
    assert_int_equal(vkt_feed_start(&s->feed, 0, (vkt_pass){ 0 }), VKT_OK);
    uint32_t x[BATCH][LENGTH], labels[BATCH];
    float y[BATCH][WIDTH];
    vkt_batch b;
    for (uint32_t at = 0;; at += b.rows) {
        assert_int_equal(vkt_feed_next(&s->feed, s->p, &b), VKT_OK);
        if (b.rows == 0) {
            assert_int_equal(at, ROWS);
            return;
        }
        uint64_t run;
        assert_int_equal(vkt_program_run(s->p, &(vkt_run){ .rows = b.rows, .first = b.first }, &run), VKT_OK);
        vkt_feed_used(&s->feed, run);
        assert_int_equal(vkt_program_read(s->p, s->x, x, sizeof x), VKT_OK);
        assert_int_equal(vkt_program_read(s->p, s->t, labels, sizeof labels), VKT_OK);
        assert_int_equal(vkt_program_read(s->p, s->y, y, sizeof y), VKT_OK);
        for (uint32_t i = 0; i < BATCH; i++)
            check_row(t, type, i < b.rows ? s->feed.host_order[at + i] : ROWS, x[i], labels[i], y[i]);
    }
}

static void every_type_of_row_arrives_resident_and_streamed(void **state)
{
    rig *r = rig_of(state);
    table t;
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t k = 0; k < LENGTH; k++) {
            t.u8[i][k] = (uint8_t)(i * LENGTH + k);
            t.f32[i][k] = (float)(i * LENGTH + k) / 7;
            t.u16[i][k] = (uint16_t)(65535 - i * 1009 - k);
            t.u32[i][k] = UINT32_MAX - i * 100003 - k;
        }
        t.labels[i] = i % 7;
        for (uint32_t k = 0; k < WIDTH; k++) t.targets[i][k] = (float)(i * WIDTH + k) / 3 - 5;
    }
    for (int type = VKT_ROW_U8; type <= VKT_ROW_U32; type++)
        for (int stream = 0; stream < 2; stream++) {
            vkt_dataset *d = make(&r->h, &t, (vkt_row_type)type);
            pass s;
            begin(r, &s, d, stream);
            for (uint32_t epoch = 1; epoch <= 2; epoch++) check_epoch(&s, &t, (vkt_row_type)type, epoch);
            end(&s);
            vkt_dataset_destroy(&d);
        }
}

/* A feed that streams has a ring of slots, one batch in each. It must free the slots in the order of their runs. It
 * asks vkGetSemaphoreCounterValue whether a run is done. The test replaces this function by `answer`. When all slots
 * are in use, the first answer is that no run is done. The next answer is that all runs are done. */
static struct {
    PFN_vkGetSemaphoreCounterValue real;
    PFN_vkDeviceWaitIdle wait_idle;
    uint32_t nos; /* the next `nos` answers report that no run is done. Later answers report that all are done */
} answers;

static VKAPI_ATTR VkResult VKAPI_CALL answer(VkDevice device, VkSemaphore semaphore, uint64_t *value)
{
    *value = 0;
    if (answers.nos && answers.nos--) return VK_SUCCESS;
    answers.wait_idle(device);
    return answers.real(device, semaphore, value);
}

static void slots_are_freed_in_the_order_of_the_runs(void **state)
{
    rig *r = rig_of(state);
    pass s;
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_slice(r->train, 0, ROWS, &d), VKT_OK);
    assert_int_equal(vkt_feed_create(r->ctx, &r->h, d, &(vkt_feed_params){ .batch = BATCH, .stream = true }, &s.feed),
                     VKT_OK);
    assert_int_equal(vkt_graph_create(&r->h, &s.g), VKT_OK);
    const vkt_feed_values v = vkt_feed_declare(s.g, &s.feed);
    vkt_feed_gather(s.g, &s.feed, v, &s.x, &s.t);
    vkt_keep(s.g, s.x);
    vkt_binding arrays[VKT_FEED_BINDINGS];
    const uint32_t n = vkt_feed_bind(&s.feed, v, arrays);
    const vkt_program_params params = { .arrays = arrays, .n_arrays = n };
    assert_int_equal(vkt_program_create(r->ctx, s.g, NULL, &params, &s.p), VKT_OK);
    answers.real = r->ctx->vk.GetSemaphoreCounterValue;
    answers.wait_idle = r->ctx->vk.DeviceWaitIdle;
    /* In the first epoch, before its third run, the program may itself wait for the second run to read measured times.
     * This wait shows that runs are done, whatever `answer` says. So only the second epoch uses `answer`. */
    for (int epoch = 0; epoch < 2; epoch++) {
        vkt_batch b;
        assert_int_equal(vkt_feed_start(&s.feed, 0, (vkt_pass){ 0 }), VKT_OK);
        if (epoch) r->ctx->vk.GetSemaphoreCounterValue = answer;
        for (uint32_t i = 0; i <= VKT_FEED_SLOTS; i++) {
            answers.nos = i < VKT_FEED_SLOTS ? UINT32_MAX : 1;
            assert_int_equal(vkt_feed_next(&s.feed, s.p, &b), VKT_OK);
            uint64_t run;
            assert_int_equal(vkt_program_run(s.p, &(vkt_run){ .rows = b.rows, .first = b.first }, &run), VKT_OK);
            vkt_feed_used(&s.feed, run);
        }
        r->ctx->vk.GetSemaphoreCounterValue = answers.real;
    }
    end(&s);
    vkt_dataset_destroy(&d);
}

static void a_set_without_targets_has_none_on_the_device(void **state)
{
    rig *r = rig_of(state);
    vkt_feed feed;
    vkt_graph *g;
    assert_int_equal(vkt_feed_create(r->ctx, &r->h, r->train, &(vkt_feed_params){ .batch = BATCH }, &feed), VKT_OK);
    assert_int_equal(vkt_graph_create(&r->h, &g), VKT_OK);
    const vkt_feed_values v = vkt_feed_declare(g, &feed);
    assert_int_equal(v.targets.id, 0);
    assert_int_equal(vkt_feed_gather_targets(g, &feed, v).id, 0);
    assert_int_equal(vkt_graph_status(g), VKT_OK);
    vkt_binding arrays[VKT_FEED_BINDINGS];
    assert_int_equal(vkt_feed_bind(&feed, v, arrays), 3);
    vkt_graph_destroy(&g);
    vkt_feed_destroy(&feed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(every_type_of_row_arrives_resident_and_streamed),
        rig_test(slots_are_freed_in_the_order_of_the_runs),
        rig_test(a_set_without_targets_has_none_on_the_device),
    };
    return cmocka_run_group_tests_name("feed", tests, NULL, NULL);
}
