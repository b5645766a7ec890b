/* Tests steps that are split into several submissions. A split step computes the same bits as a step that is one
 * submission. The limit max_submission_ns decides how many submissions a step has. Once a step is split, the next steps
 * allocate no memory and record no commands. */
#include "train/rig.h"

#include "gpu/gpu.h"
#include "plan/plan.h"
#include "record/record.h"

static vkt_plan_info plan_of(const vkt_trainer *t)
{
    vkt_plan_info plan;
    vkt_program_plan(t->program, &plan);
    return plan;
}

static vkt_trainer *trained(rig *r, uint64_t limit_ns, bool profile)
{
    r->ctx->max_submission_ns = limit_ns;
    vkt_trainer_params p = rig_params(r);
    p.profile = profile;
    vkt_trainer *t = rig_trainer(r, &p);
    rig_fit(t, &(vkt_fit_params){ .epochs = 2 });
    return t;
}

static void splits_do_not_change_bits(void **state)
{
    rig *r = rig_of(state);
    assert_int_equal(r->ctx->max_submission_ns, 100000000); /* the default is 100 ms */
    vkt_trainer *whole = trained(r, UINT64_MAX, false);
    vkt_trainer *some = trained(r, 300000, false), *all = trained(r, 1, false);
    assert_int_equal(plan_of(whole).submissions, 1);
    assert_true(plan_of(some).submissions >= 1 && plan_of(some).submissions <= plan_of(some).dispatches);
    assert_int_equal(plan_of(all).submissions, plan_of(all).dispatches); /* a dispatch is not split */
    for (int part = 0; part < 4; part++) {
        rig_same(whole, some, (vkt_store_part)part);
        rig_same(whole, all, (vkt_store_part)part);
    }
}

/* The program splits the step by durations that it has measured. The test calls vkt_split_submissions with the same
 * durations and must get the same submissions. So other work on the machine does not matter. (unit/test_plan.c tests
 * the rules of vkt_split_submissions.) */
static void parts_are_split_where_the_limit_asks(void **state)
{
    rig *r = rig_of(state);
    const vkt_trainer *t = trained(r, 300000, true);
    const vkt_program *p = t->program;
    const uint32_t n = plan_of(t).dispatches;
    uint32_t ends[64], count;
    vkt_kernel_time times[64];
    assert_true(n <= VKT_COUNT(ends));
    assert_int_equal(plan_of(t).submissions, vkt_split_submissions(p->ns, p->plan.stage, n, 300000, ends));
    assert_memory_equal(p->ends, ends, plan_of(t).submissions * sizeof *ends);
    assert_int_equal(vkt_program_profile(t->program, &(vkt_run){ .lr = 0 }, times, n, &count), VKT_OK);
    assert_int_equal(count, n); /* the profile of a split step has all dispatches */
    for (uint32_t i = 1; i < n; i++) assert_true(times[i].start_ns >= times[i - 1].start_ns);
}

typedef struct steady {
    const vkt_ctx *ctx;
    vkt_gpu_counters from, to;
    unsigned long host_from, host_to;
} steady;

static void note_counters(void *user, const vkt_fit_progress *p)
{
    steady *s = user;
    if (p->validating || p->epoch != 2) return;
    if (p->batch == 2) {
        s->from = s->ctx->counters;
        s->host_from = vkt_test_allocations();
    }
    if (p->batch == 5) {
        s->to = s->ctx->counters;
        s->host_to = vkt_test_allocations();
    }
}

static void a_split_step_allocates_and_records_nothing(void **state)
{
    rig *r = rig_of(state);
    r->ctx->max_submission_ns = 1;
    const vkt_trainer_params p = rig_params(r);
    vkt_trainer *t = rig_trainer(r, &p);
    steady s = { .ctx = r->ctx };
    rig_fit(t, &(vkt_fit_params){ .epochs = 2, .callbacks = { .user = &s, .on_batch = note_counters } });
    assert_int_equal(s.to.submits - s.from.submits, 3 * plan_of(t).submissions);
    assert_true(plan_of(t).submissions > 10);
    assert_int_equal(s.to.host_allocs, s.from.host_allocs);
    assert_int_equal(s.host_to, s.host_from);
    assert_int_equal(s.to.device_allocs, s.from.device_allocs);
    assert_int_equal(s.to.buffers_created, s.from.buffers_created);
    assert_int_equal(s.to.recordings, s.from.recordings);
}

static void the_splits_are_printed(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer *t = trained(r, 1, false);
    char *text, want[40];
    assert_int_equal(vkt_program_print(t->program, &text), VKT_OK);
    snprintf(want, sizeof want, "==== submission %u of %u\n", plan_of(t).submissions, plan_of(t).submissions);
    assert_non_null(strstr(text, want));
    vkt_text_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(splits_do_not_change_bits),
        rig_test(parts_are_split_where_the_limit_asks),
        rig_test(a_split_step_allocates_and_records_nothing),
        rig_test(the_splits_are_printed),
    };
    return cmocka_run_group_tests_name("submissions", tests, NULL, NULL);
}
