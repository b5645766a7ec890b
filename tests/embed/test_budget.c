/* Tests how vkt_step_budget corrects the expected times of slices by measured times. A slice is a part of a run. A load
 * multiplies the times of all kernels by the same factor, as other work on the device can do. Most tests simulate a
 * device of a chosen speed: before vkt_step_budget reads the times that the real device has measured, the test
 * overwrites them with computed times. So these tests do not depend on the speed of the machine. */
#include "embed/app.h"

#include "record/record.h"

enum { BUDGET_NS = 2000000, KERNEL_NS = 150000, WAKE_NS = 20000, HOST_NS = 500000000 };

typedef struct rig {
    app a;
    vkt_ctx *ctx;
    net n;
    double load;      /* on the simulated device, a kernel takes load * KERNEL_NS */
    uint32_t step;    /* runs submitted so far */
    uint32_t late;    /* index of the slice that begins HOST_NS after the end of the slice before it; 0: none */
    uint64_t true_ns; /* time of all slices of the last frame on the simulated device, plus WAKE_NS for each slice */
} rig;

static void rig_make(rig *r)
{
    *r = (rig){ .load = 1 };
    app_open(&r->a, NULL);
    r->ctx = app_adopt(&r->a);
    net_make(&r->n, r->ctx, NULL, NULL);
    for (; r->step < 3; r->step++) { /* three runs, so that the program is measured */
        const vkt_run run = net_run(r->step);
        assert_int_equal(vkt_program_run(r->n.p, &run, NULL), VKT_OK);
    }
    assert_int_equal(vkt_ctx_wait_idle(r->ctx), VKT_OK);
    for (uint32_t d = 0; d < r->n.p->lowered.n; d++) r->n.p->ns[d] = KERNEL_NS;
}

/* Completes the run in progress, or a new run if none is in progress: calls vkt_step_budget without a limit. Returns
 * the progress of the last call. */
static vkt_step_progress finish(rig *r)
{
    vkt_step_progress progress;
    do {
        uint64_t left_ns = UINT64_MAX;
        const vkt_run run = net_run(r->step);
        assert_int_equal(vkt_step_budget(r->n.p, &run, NULL, &left_ns, &progress), VKT_OK);
        r->step += progress.completed;
    } while (!progress.completed);
    return progress;
}

/* Ends the run in progress. Checks that the parameters have the same bits as after the same number of calls of
 * vkt_program_run. */
static void rig_free(rig *r)
{
    float want[NET_PARAMS], got[NET_PARAMS];
    if (r->n.p->budget.next) finish(r);
    net_expected(r->ctx, r->step, want);
    net_params(&r->n, got);
    assert_memory_equal(got, want, sizeof got);
    net_free(&r->n);
    vkt_ctx_destroy(&r->ctx);
    app_close(&r->a);
}

static uint64_t slice_ns(const rig *r, uint32_t i)
{
    const vkt_slices *s = &r->n.p->budget.slices;
    return (uint64_t)(r->load * KERNEL_NS * (s->ends[i] - (i ? s->ends[i - 1] : 0)));
}

/* Replaces the measured times in `set` by the times of the simulated device. A slice begins WAKE_NS after the end of
 * the slice before it. But slice r->late begins HOST_NS after the end of the slice before it. */
static void make_up_times(const rig *r, vkt_slice_set *set)
{
    const uint32_t n = r->n.p->budget.slices.n;
    const double period = (double)r->ctx->timestamp_period_ns;
    uint64_t *times = set->times->mapped;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t i = (set->last + 1 + k) % n; /* the slices, in the order of their last submissions */
        const double wait = i && i == r->late ? HOST_NS : WAKE_NS;
        const double start = k ? (double)times[2 * ((i + n - 1) % n) + 1] + wait / period : 1e6;
        times[2 * i] = (uint64_t)start;
        times[2 * i + 1] = (uint64_t)(start + (double)slice_ns(r, i) / period);
    }
}

/* Returns the index of the slice whose first kernel is `kernel`. */
static uint32_t slice_at(const vkt_slices *s, uint32_t kernel)
{
    uint32_t i = 0;
    while (i < s->n && (i ? s->ends[i - 1] : 0) != kernel) i++;
    return i;
}

/* Submits one frame by the loop that docs/embedding.md shows. Sets r->true_ns. */
static vkt_step_progress frame(rig *r, uint64_t budget_ns)
{
    uint64_t left_ns = budget_ns;
    vkt_step_progress progress;
    const vkt_slices *s = &r->n.p->budget.slices;
    assert_int_equal(vkt_ctx_wait_idle(r->ctx), VKT_OK);
    for (int i = 0; i < 2 && s->n; i++) make_up_times(r, &r->n.p->budget.slices.set[i]);
    r->true_ns = 0;
    do {
        const vkt_run run = net_run(r->step);
        const uint32_t next = r->n.p->budget.next, kernel = next ? s->ends[next - 1] : 0;
        assert_int_equal(vkt_step_budget(r->n.p, &run, NULL, &left_ns, &progress), VKT_OK);
        const uint32_t n = progress.submitted_ns ? (progress.slice ? progress.slice : s->n) : 0;
        for (uint32_t i = slice_at(s, kernel); i < n; i++) r->true_ns += slice_ns(r, i) + WAKE_NS;
        r->step += progress.completed;
    } while (progress.completed);
    return progress;
}

/* The time of a kernel changes three times: it becomes seven times as long, then as long as at first, then a fifth of
 * that. From the eleventh frame after a change, each frame takes at most 5/4 of the budget. A frame that submits the
 * last slice of a run begins the next run at once. The frame does not wait until the device has done the last slice. */
static void expected_times_follow_a_load(void **state)
{
    (void)state;
    rig r;
    rig_make(&r);
    static const double loads[] = { 1, 7, 1, 0.2 };
    uint64_t busy_ns[VKT_COUNT(loads)];
    for (size_t k = 0; k < VKT_COUNT(loads); k++) {
        r.load = loads[k];
        for (int i = 0; i < 40; i++) {
            const vkt_step_progress progress = frame(&r, BUDGET_NS);
            if (i < 10) continue;
            assert_in_range(r.true_ns, 1, 5 * BUDGET_NS / 4);
            assert_int_equal(progress.measured_budget_ns, BUDGET_NS);
            busy_ns[k] = r.true_ns;
        }
        assert_true(busy_ns[k] > 2 * BUDGET_NS / 5); /* the last frame uses more than 40 % of the budget */
    }
    rig_free(&r);
}

/* When the budget changes much, the rest of the run in progress is divided into new slices. */
static void a_changed_budget_counts_at_once(void **state)
{
    (void)state;
    rig r;
    rig_make(&r);
    const uint32_t n = (uint32_t)r.n.p->lowered.n;
    assert_true(n >= 6);
    uint64_t whole = (uint64_t)n * KERNEL_NS;
    vkt_step_progress p = frame(&r, whole / 2);
    while (p.completed || p.slice == 0) p = frame(&r, whole / 2);
    const uint32_t few = p.slices, done = r.n.p->budget.slices.ends[p.slice - 1];
    const uint64_t run = p.run_index;
    assert_true(few < n);
    p = frame(&r, KERNEL_NS);
    assert_int_equal(p.run_index, run);
    assert_true(p.slices > few);
    const vkt_slices *s = &r.n.p->budget.slices;
    assert_true(p.slice == 0 || s->ends[p.slice - 1] > done);
    for (int i = 0; i < 5; i++) frame(&r, KERNEL_NS);
    for (int i = 0; i < 40; i++) p = frame(&r, 100 * whole);
    assert_true(p.slices < few); /* a large budget has large slices */
    rig_free(&r);
}

/* The only slice takes three times as long as expected. The library divides the run into more slices, although the
 * budget stays the same. */
static void slow_slices_are_divided(void **state)
{
    (void)state;
    rig r;
    rig_make(&r);
    const uint64_t budget_ns = 4 * (uint64_t)r.n.p->lowered.n * KERNEL_NS;
    assert_int_equal(frame(&r, budget_ns).slices, 1);
    r.load = 3;
    uint32_t slices = 1;
    for (int i = 0; i < 40; i++) slices = frame(&r, budget_ns).slices;
    assert_true(slices > 1);
    rig_free(&r);
}

/* In this test the times come from the device. A slice must not end before it begins, and must not begin before the
 * previous slice ends. */
static void the_device_copies_its_timestamps(void **state)
{
    (void)state;
    rig r;
    rig_make(&r);
    uint64_t left_ns = 4 * BUDGET_NS;
    vkt_step_progress p;
    const vkt_run run = net_run(r.step);
    assert_int_equal(vkt_step_budget(r.n.p, &run, NULL, &left_ns, &p), VKT_OK);
    assert_int_equal(vkt_ctx_wait_idle(r.ctx), VKT_OK);
    r.step += p.completed;
    const vkt_slices *s = &r.n.p->budget.slices;
    const vkt_slice_set *set = &s->set[s->turn];
    const uint64_t *times = set->times->mapped;
    assert_true(set->last > 0);
    for (uint32_t i = 0; i <= set->last; i++) {
        assert_true(times[2 * i] != 0 && times[2 * i] <= times[2 * i + 1]);
        if (i > 0) assert_true(times[2 * i - 1] <= times[2 * i]);
    }
    assert_true(times[0] < times[2 * set->last + 1]);
    left_ns = BUDGET_NS; /* the next frame reads these times */
    const uint64_t whole_ns = vkt_timer_between(r.ctx, times[0], times[2 * set->last + 1]);
    const vkt_run next = net_run(r.step);
    assert_int_equal(vkt_step_budget(r.n.p, &next, NULL, &left_ns, &p), VKT_OK);
    r.step += p.completed;
    assert_in_range(p.measured_ns, whole_ns / 2, 2 * whole_ns);
    assert_int_equal(p.measured_budget_ns, 4 * BUDGET_NS);
    rig_free(&r);
}

/* Half a second after a frame, a call without a limit submits the rest of the run. This half second must not count as
 * the time of a slice. */
static void a_call_without_limit_belongs_to_no_frame(void **state)
{
    (void)state;
    rig r;
    rig_make(&r);
    vkt_step_progress p = finish(&r); /* makes the first slices */
    assert_int_equal(p.measured_frames, 0);
    for (int i = 0; i < 2; i++) {
        p = frame(&r, BUDGET_NS); /* the second frame is the first frame that reads measured times */
        assert_int_equal(p.measured_frames, i);
        assert_int_equal(p.measured_budget_ns, i ? BUDGET_NS : 0);
    }
    for (int i = 0; i < 20 || p.slice == 0; i++) p = frame(&r, BUDGET_NS);
    const vkt_slices *s = &r.n.p->budget.slices;
    const uint64_t frames = p.measured_frames, submitted_ns = r.true_ns - WAKE_NS; /* no WAKE_NS after the last slice */
    const uint32_t last = p.slice - 1;
    r.late = p.slice;
    const uint64_t before_ns = s->ns[last];
    finish(&r);
    p = frame(&r, BUDGET_NS);
    assert_int_equal(p.measured_frames, frames + 1);
    assert_int_equal(p.measured_budget_ns, BUDGET_NS);
    assert_in_range(p.measured_ns, submitted_ns - 100, submitted_ns + 100); /* rounding */
    assert_true(s->ns[last] <= before_ns);
    rig_free(&r);
}

/* Before each call of vkt_step_budget, the frame waits until the device is idle. All calls of one frame together must
 * not submit more than the budget allows. */
static void a_fast_device_gets_no_more_than_the_budget(void **state)
{
    (void)state;
    rig r;
    rig_make(&r);
    const uint64_t budget_ns = (uint64_t)r.n.p->lowered.n * (KERNEL_NS + WAKE_NS) * 5 / 4;
    for (int i = 0; i < 60; i++) {
        uint64_t left_ns = budget_ns, submitted_ns = 0;
        vkt_step_progress progress;
        do {
            assert_int_equal(vkt_ctx_wait_idle(r.ctx), VKT_OK);
            for (int k = 0; k < 2 && r.n.p->budget.slices.n; k++) make_up_times(&r, &r.n.p->budget.slices.set[k]);
            const vkt_run run = net_run(r.step);
            assert_int_equal(vkt_step_budget(r.n.p, &run, NULL, &left_ns, &progress), VKT_OK);
            r.step += progress.completed;
            submitted_ns += progress.submitted_ns;
        } while (progress.completed);
        assert_true(submitted_ns <= budget_ns);
    }
    rig_free(&r);
}

/* Slices that a load has made short become long again after the load. */
static void slices_grow_again_after_a_load(void **state)
{
    (void)state;
    rig r;
    rig_make(&r);
    const uint64_t budget_ns = 4 * (uint64_t)r.n.p->lowered.n * KERNEL_NS / 2;
    uint32_t before = 0, loaded = 0, after = 0;
    for (int i = 0; i < 40; i++) before = frame(&r, budget_ns).slices;
    r.load = 12;
    for (int i = 0; i < 40; i++) loaded = frame(&r, budget_ns).slices;
    r.load = 1;
    for (int i = 0; i < 80; i++) after = frame(&r, budget_ns).slices;
    assert_true(loaded > 4 * before);
    /* A grain is the limit that record/slices.c sets for the time of a slice: a quarter of the budget. Without a load,
     * the run takes a little more than two grains, so `before` is at least 2. record/slices.c rounds this time up to
     * three grains. It makes fewer slices only if there are more than two slices (TOO_MANY) for each of the three
     * grains. So up to six slices may stay, and six is at most 3 * `before`. */
    assert_true(after <= 3 * before);
    rig_free(&r);
}

/* If there is no memory for new slices, the program still trains with the old slices. */
static void slices_stay_if_there_is_no_memory_for_others(void **state)
{
    (void)state;
    rig r;
    rig_make(&r);
    const uint64_t whole = 4 * (uint64_t)r.n.p->lowered.n * KERNEL_NS;
    vkt_slices *s = &r.n.p->budget.slices;
    for (unsigned n = 1, failures = 0;; n++) {
        for (int i = 0; i < 4 || s->n != 1; i++) frame(&r, whole);
        const uint32_t step = r.step;
        vkt_test_fail_allocation(n);
        frame(&r, KERNEL_NS); /* fails the test if vkt_step_budget returns an error */
        const bool failed = vkt_test_allocation_failed();
        vkt_test_fail_allocation(0);
        if (!failed) {
            assert_true(failures > 4 && s->n > 1);
            break;
        }
        failures++;
        for (int i = 0; i < 4; i++) frame(&r, KERNEL_NS);
        assert_int_equal(s->n, 1); /* after a failure, the library tries again only many frames later */
        assert_true(r.step > step + 2);
        s->retry = 0;
    }
    rig_free(&r);
}

/* Returns the number of slices that are expected to take more than `ns`. */
static uint32_t longer_than(const rig *r, uint64_t ns)
{
    const vkt_slices *s = &r->n.p->budget.slices;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) n += s->ns[i] > ns;
    return n;
}

/* After one slow frame, the library expects only the slice of that frame to be slow. After two slow frames, it assumes
 * a load: it multiplies the expected times of the other slices by the load. The two slices of the slow frames keep
 * their measured times, because the load is already in these times. */
static void one_slow_frame_is_no_load(void **state)
{
    (void)state;
    rig r;
    rig_make(&r);
    const uint64_t budget_ns = KERNEL_NS + WAKE_NS; /* frames of one slice */
    for (int slow = 1; slow <= 2; slow++) {
        r.load = 1;
        for (int i = 0; i < 400; i++) frame(&r, budget_ns);
        assert_int_equal(r.n.p->budget.slices.n, r.n.p->lowered.n);
        assert_int_equal(longer_than(&r, 2 * KERNEL_NS), 0);
        r.load = 20;
        /* frame() first makes up the times of the previous frame. So these calls make `slow` (1 or 2) frames slow. */
        for (int i = 0; i < slow; i++) frame(&r, budget_ns);
        r.load = 1;
        frame(&r, budget_ns);
        assert_int_equal(longer_than(&r, 10 * KERNEL_NS), slow == 1 ? 1 : r.n.p->lowered.n);
        assert_int_equal(longer_than(&r, 25 * KERNEL_NS), 0);
    }
    rig_free(&r);
}

/* Each frame submits one slice, and the times of slices vary at random. A measured time corrects the expected times of
 * all slices, also of those that the frame did not submit. These corrections do not add up over many frames. */
static void noise_does_not_add_up(void **state)
{
    (void)state;
    rig r;
    rig_make(&r);
    uint32_t random = 1, frames = 0;
    double sum = 0, most = 0;
    for (int i = 0; i < 1000; i++) {
        random = random * 1664525u + 1013904223u;
        r.load = 0.5 + (double)(random >> 8) / (1 << 24); /* 0.5 to 1.5 */
        frame(&r, KERNEL_NS + WAKE_NS);
        const vkt_slices *s = &r.n.p->budget.slices;
        double ratio = 0;
        for (uint32_t k = 0; k < s->n; k++) ratio += (double)s->ns[k] / KERNEL_NS / s->n;
        if (i < 50) continue;
        assert_int_equal(s->n, r.n.p->lowered.n);
        sum += ratio;
        most = VKT_MAX(most, ratio);
        frames++;
    }
    assert_true(sum / frames < 1.3);
    assert_true(most < 2.5);
    rig_free(&r);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(expected_times_follow_a_load),
        TEST(a_changed_budget_counts_at_once),
        TEST(slow_slices_are_divided),
        TEST(the_device_copies_its_timestamps),
        TEST(a_call_without_limit_belongs_to_no_frame),
        TEST(a_fast_device_gets_no_more_than_the_budget),
        TEST(slices_grow_again_after_a_load),
        TEST(slices_stay_if_there_is_no_memory_for_others),
        TEST(one_slow_frame_is_no_load),
        TEST(noise_does_not_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
