/* Tests --schedule of the programs of samples/: each valid form, and texts that are not valid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "common/schedules.h"

static void each_form_is_read(void **state)
{
    (void)state;
    vkt_schedule s;
    assert_true(schedule_parse("constant", &s) && s.kind == VKT_SCHEDULE_CONSTANT && !s.by_epoch);
    assert_true(schedule_parse("cosine", &s) && s.kind == VKT_SCHEDULE_COSINE && !s.by_epoch);
    assert_true(schedule_parse("one-cycle", &s) && s.kind == VKT_SCHEDULE_ONE_CYCLE);
    assert_true(schedule_parse("plateau", &s) && s.kind == VKT_SCHEDULE_PLATEAU);
    assert_true(schedule_parse("step=30", &s) && s.kind == VKT_SCHEDULE_STEP && s.by_epoch && s.step_size == 30);
    assert_true(schedule_parse("exponential=0.95", &s) && s.kind == VKT_SCHEDULE_EXPONENTIAL && s.by_epoch);
    assert_true(fabs(vkt_schedule_lr(&s, 1, 2) - 0.9025) < 1e-12);
    assert_true(schedule_parse("multi-step=2,5,9", &s) && s.kind == VKT_SCHEDULE_MULTI_STEP && s.by_epoch);
    assert_true(fabs(vkt_schedule_lr(&s, 1, 1) - 1) < 1e-12 && fabs(vkt_schedule_lr(&s, 1, 5) - 0.01) < 1e-12);
    assert_int_equal(vkt_schedule_check(NULL, &s), VKT_OK);
    assert_true(schedule_parse("multi-step=1,2,3,4,5,6,7,8", &s) && s.n_milestones == 8);
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "Cosine",
        "cosine=3",
        "cos",
        "step",
        "step=",
        "step=0",
        "step=-1",
        "step=3x",
        "step=3,4",
        "step= 3",
        "step=4294967296",
        "plateau=2",
        "multi-step",
        "multi-step=",
        "multi-step=3,",
        "multi-step=3,3",
        "multi-step=,3",
        "multi=3",
        "multi-step=5,3",
        "exponential=",
        "exponential=0",
        "exponential=2",
        "exponential=nan",
        "steps=3",
        "exponential=.5x",
        "multi-step=1,2,3,4,5,6,7,8,9",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        vkt_schedule s;
        if (schedule_parse(texts[i], &s)) fail_msg("'%s' was taken", texts[i]);
    }
}

/* --warmup changes the warm-up of the program's own schedule. The rate must still end at min_lr in the last step. */
static void another_warmup_does_not_move_the_end(void **state)
{
    (void)state;
    vkt_schedule own = { .kind = VKT_SCHEDULE_COSINE, .total = 300 },
                 with_warmup = { .kind = VKT_SCHEDULE_ONE_CYCLE, .warmup = 20, .total = 280 };
    schedule_set_warmup(&own, 100);
    assert_true(own.warmup == 100 && own.total == 200);
    assert_true(fabs(vkt_schedule_lr(&own, 1, 100) - 1) < 1e-12 && vkt_schedule_lr(&own, 1, 299) < 1e-3);
    schedule_set_warmup(&own, 10);
    assert_true(own.warmup == 10 && own.total == 290);
    schedule_set_warmup(&with_warmup, 100);
    assert_true(with_warmup.warmup == 100 && with_warmup.total == 200);
    schedule_set_warmup(&own, 300);
    assert_true(own.warmup == 300 && own.total == 1);
    vkt_schedule other = { .kind = VKT_SCHEDULE_STEP, .step_size = 30, .total = 7 };
    schedule_set_warmup(&other, 5);
    assert_true(other.warmup == 5 && other.total == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(each_form_is_read), cmocka_unit_test(other_texts_are_refused),
                                        cmocka_unit_test(another_warmup_does_not_move_the_end) };
    return cmocka_run_group_tests_name("schedule option", tests, NULL, NULL);
}
