/* Tests the steps of several ranks. In the steady state, a step allocates nothing and records no command buffer. The
 * exchange of a bucket must not wait for the rest of the backward pass. */
#include "train/hands.h"

#include "kernel/ids.h"
#include "record/record.h"
#include "vktrain/models.h"

/* ---- the steady state ---- */

static void a_step_allocates_and_records_nothing(void **state)
{
    enum { RANKS = 2 };
    rig *r = rig_of(state);
    for (int stream = 0; stream < 2; stream++) {
        hands h = hands_make(r, RANKS, 20);
        rig_steady s[RANKS] = { { 0 } };
        for (uint32_t i = 0; i < RANKS; i++) {
            vkt_trainer_params p = group_params(r);
            p.stream = stream;
            p.dist.check_every = 0;
            s[i].ctx = h.rank[i].ctx;
            hands_train(&h, i, p,
                        &(vkt_fit_params){ .epochs = 2, .callbacks = { .user = &s[i], .on_batch = rig_count_steady } });
        }
        hands_fit(&h);
        for (uint32_t i = 0; i < RANKS; i++) {
            assert_int_equal(h.rank[i].result, VKT_OK);
            assert_int_equal(s[i].batches, RIG_STEPS);
            assert_true(s[i].to.submits > s[i].from.submits); /* the counters work */
            assert_int_equal(s[i].host_to, s[i].host_from);
            assert_int_equal(s[i].to.host_allocs, s[i].from.host_allocs);
            assert_int_equal(s[i].to.device_allocs, s[i].from.device_allocs);
            assert_int_equal(s[i].to.buffers_created, s[i].from.buffers_created);
            assert_int_equal(s[i].to.recordings, s[i].from.recordings);
        }
        hands_free(&h);
    }
}

/* ---- the sections of a step ---- */

/* Returns the index of the last dispatch that writes a gradient to the bucket. If `of_states`, returns the index of the
 * last dispatch that copies a state (running statistics) to the bucket. Returns 0 if there is no such dispatch. The
 * bucket has the bytes [first, end) of the arena of gradients. */
static uint32_t last_writer(const vkt_trainer *t, uint64_t first, uint64_t end, bool of_states)
{
    const vkt_program *p = t->program;
    uint32_t last = 0;
    for (uint32_t d = 0; d < p->lowered.n; d++) {
        const vkt_dispatch *x = &p->lowered.list[d];
        for (uint32_t b = 0; b < x->n_bind; b++) {
            const vkt_bind *bind = &x->bind[b];
            if (x->kernel == VKT_K_SHARD_SUM || (x->kernel == VKT_K_SHARD_STATE) != of_states) continue;
            if (!bind->t.id || bind->t.id >= p->g->n_values) continue;
            const vkt_value *v = &p->g->values[vkt_root(p->g, bind->t)];
            if (v->role != VKT_ROLE_GRAD || !(vkt_kernel_get((vkt_kernel_id)x->kernel)->writes >> b & 1)) continue;
            const uint64_t at = v->arena_offset_bytes + bind->offset_bytes;
            if (at < end && at + bind->bytes > first) last = d;
        }
    }
    return last;
}

/* Checks each bucket that has gradients. A program runs in sections (record/marks.h). The section of a bucket ends with
 * the dispatch that adds the bucket to the sum over the shards. This dispatch waits for dispatch A, which writes the
 * last gradient of the bucket, and for dispatch B, which adds the previous bucket to its sum. The stage (plan/plan.h)
 * of this dispatch may be at most 1 above the larger stage of A and B. A later stage would delay the exchange. */
static void check_overlap(const vkt_trainer *t)
{
    const vkt_exchange *x = &t->shards.x;
    const vkt_program *p = t->program;
    uint32_t before = 0; /* stage of dispatch B; 0: there is no dispatch B */
    assert_true(x->n > 2 && x->n_sections > 2);
    for (uint32_t i = 0; i < x->n; i++) {
        const uint32_t b = x->order[i];
        const uint64_t first = b ? x->ends[b - 1] : 0;
        const uint32_t state = last_writer(t, first, x->ends[b], true); /* states are copied in the forward pass */
        const uint32_t gradient = last_writer(t, first, x->ends[b], false);
        const uint32_t end = x->section[b] < p->n_marks ? p->marks[x->section[b]] : (uint32_t)p->lowered.n;
        assert_true(gradient + state > 0 && gradient < end && state < end);
        if (gradient == 0) continue; /* the bucket has only states */
        const uint32_t earliest = VKT_MAX(p->plan.stage[gradient], before) + 1;
        before = p->plan.stage[end - 1];
        if (before <= earliest) continue;
        fail_msg("%s: bucket %u: the last gradient is dispatch %u of stage %u, the section ends at dispatch %u of %u, "
                 "stage %u",
                 t->params.model.name, b, gradient, p->plan.stage[gradient], end, (unsigned)p->lowered.n,
                 p->plan.stage[end - 1]);
    }
}

static vkt_dataset *images(const rig *r, uint32_t channels, uint32_t side, uint32_t rows)
{
    const size_t bytes = (size_t)rows * channels * side * side;
    uint8_t *pixels = test_malloc(bytes);
    uint32_t *labels = test_malloc(rows * sizeof *labels);
    for (size_t i = 0; i < bytes; i++) pixels[i] = (uint8_t)(i * 37 % 251);
    for (uint32_t i = 0; i < rows; i++) labels[i] = i % RIG_CLASSES;
    const vkt_dataset_params p = {
        .rows = rows, .channels = channels, .height = side, .width = side, .labels = labels, .classes = RIG_CLASSES
    };
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_from_arrays(&r->h, &p, pixels, &d), VKT_OK);
    test_free(pixels);
    test_free(labels);
    return d;
}

static void sums_follow_their_gradients(rig *r, vkt_model model, vkt_dataset *d, uint64_t bucket_bytes)
{
    vkt_trainer_params p = { .model = model,
                             .train = d,
                             .batch = 16,
                             .optimizer = { .kind = VKT_SGD, .momentum = 0.9f },
                             .seed = 1,
                             .dist = { .shards = 2, .bucket_bytes = bucket_bytes, .wire = VKT_WIRE_BF16 } };
    vkt_trainer *t;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_OK);
    check_overlap(t);
    vkt_trainer_destroy(&t);
    /* The checks must also pass for a rank with one shard. Such a rank has no partial sums, so the dispatches in its
     * plan may have another order. */
    vkt_emulation *cluster;
    assert_int_equal(vkt_emulation_create(&r->h, &(vkt_emulation_params){ .ranks = 2 }, &cluster), VKT_OK);
    const vkt_transport transport = vkt_emulation_transport(cluster);
    p.dist.transport = &transport;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_OK);
    check_overlap(t);
    vkt_trainer_destroy(&t);
    vkt_emulation_destroy(&cluster);
}

static void the_exchange_of_mnist_overlaps(void **state)
{
    rig *r = rig_of(state);
    float dropout = 0.25f;
    vkt_dataset *d = images(r, 1, 28, 16);
    sums_follow_their_gradients(r, (vkt_model){ .name = "mnist", .forward = rig_mnist_forward, .user = &dropout }, d,
                                8192);
    vkt_dataset_destroy(&d);
}

static vkt_tensor resnet_forward(vkt_builder *b, vkt_tensor x, void *user)
{
    return vkt_resnet(b, x, user);
}

static void the_exchange_of_resnet_overlaps(void **state)
{
    rig *r = rig_of(state);
    vkt_resnet_params resnet20 = { .depth = 20, .cifar = true };
    vkt_dataset *d = images(r, 3, 32, 16);
    sums_follow_their_gradients(r, (vkt_model){ .name = "ResNet-20", .forward = resnet_forward, .user = &resnet20 }, d,
                                65536);
    vkt_dataset_destroy(&d);
}

/* Builds layers without branches. The order of the layers in the graph already needs the fewest barriers. */
static vkt_tensor chain_forward(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    x = vkt_nn_flatten(b, x);
    for (int i = 0; i < 8; i++) {
        const char name[] = { (char)('a' + i), 0 };
        x = vkt_nn_relu(b, vkt_nn_linear(b, name, x, &(vkt_nn_linear_params){ .out_features = 64 }));
    }
    return vkt_nn_linear(b, "out", x, &(vkt_nn_linear_params){ .out_features = RIG_CLASSES });
}

static void the_exchange_of_a_chain_overlaps(void **state)
{
    rig *r = rig_of(state);
    sums_follow_their_gradients(r, (vkt_model){ .name = "chain", .forward = chain_forward }, r->train, 4096);
    sums_follow_their_gradients(r, (vkt_model){ .name = "norms", .forward = group_forward }, r->train, 64);
}

/* ---- the time of an exchange that the backward pass does not hide ---- */

/* A transport whose exchanges end after the backward pass of their step. */
typedef struct late {
    vkt_transport emulated;
    vkt_trainer *t;
} late;

static vkt_result late_exchange(void *user, uint32_t peer, const void *send, void *receive, size_t bytes)
{
    const late *l = user;
    const vkt_exchange *x = l->t ? &l->t->shards.x : NULL;
    if (x && x->done < x->begun) {
        const uint64_t *values = x->values + x->done % 2 * (x->n + 1);
        VKT_TRY(vkt_wait(l->t->ctx, values[x->section[x->order[x->n - 1]]]));
    }
    return l->emulated.exchange(l->emulated.user, peer, send, receive, bytes);
}

static vkt_result late_barrier(void *user)
{
    const late *l = user;
    return l->emulated.barrier(l->emulated.user);
}

static void late_fault(void *user, const char *reason)
{
    const late *l = user;
    l->emulated.fault(l->emulated.user, reason);
}

static void exchanges_behind_the_backward_pass_are_exposed(void **state)
{
    rig *r = rig_of(state);
    vkt_emulation *e;
    assert_int_equal(vkt_emulation_create(&r->h, &(vkt_emulation_params){ .ranks = 2 }, &e), VKT_OK);
    late l = { .emulated = vkt_emulation_transport(e) };
    const vkt_transport transport = {
        .user = &l, .ranks = 2, .exchange = late_exchange, .barrier = late_barrier, .fault = late_fault
    };
    vkt_trainer_params p = group_params(r);
    p.dist.transport = &transport;
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &l.t), VKT_OK);
    assert_int_equal(vkt_trainer_fit(l.t, &(vkt_fit_params){ .epochs = 1 }), VKT_OK);
    vkt_dist_stats s = { 0 };
    vkt_trainer_dist_stats(l.t, &s);
    assert_true(s.buckets > 2 && s.steps > 0 && s.exchange_ms > 0);
    assert_true(s.exposed_ms == s.exchange_ms);
    vkt_trainer_destroy(&l.t);
    vkt_emulation_destroy(&e);
}

/* In bf16, half as many bytes are sent for the gradients, and the 12 running statistics of the batch norm are sent as
 * f32 besides. With 2 ranks, a rank sends each sum once. */
static void bytes_of_bf16_are_counted(void **state)
{
    rig *r = rig_of(state);
    uint64_t bytes[2];
    for (int wire = 0; wire < 2; wire++) {
        vkt_emulation *e;
        assert_int_equal(vkt_emulation_create(&r->h, &(vkt_emulation_params){ .ranks = 2 }, &e), VKT_OK);
        const vkt_transport transport = vkt_emulation_transport(e);
        vkt_trainer_params p = group_params(r);
        p.dist.transport = &transport;
        p.dist.wire = wire ? VKT_WIRE_BF16 : VKT_WIRE_F32;
        vkt_trainer *t;
        assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_OK);
        assert_int_equal(vkt_trainer_fit(t, &(vkt_fit_params){ .epochs = 1 }), VKT_OK);
        vkt_dist_stats s = { 0 };
        vkt_trainer_dist_stats(t, &s);
        bytes[wire] = s.bytes;
        vkt_trainer_destroy(&t);
        vkt_emulation_destroy(&e);
    }
    assert_true(bytes[0] > 0);
    assert_int_equal(bytes[1], bytes[0] / 2 + RIG_STEPS * 12 * sizeof(float));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_step_allocates_and_records_nothing),
        rig_test(the_exchange_of_mnist_overlaps),
        rig_test(the_exchange_of_resnet_overlaps),
        rig_test(the_exchange_of_a_chain_overlaps),
        rig_test(exchanges_behind_the_backward_pass_are_exposed),
        rig_test(bytes_of_bf16_are_counted),
    };
    return cmocka_run_group_tests_name("steps of ranks", tests, NULL, NULL);
}
