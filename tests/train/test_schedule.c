/* Compares learning rates with tests/golden/schedules.txt. This file has the rates of PyTorch's schedulers, of Keras'
 * ReduceLROnPlateau, and of the cosine schedule with warm-up of Hugging Face's Transformers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "support/host.h"
#include "vktrain/schedule.h"

static double one_over(void *user, uint64_t t)
{
    (void)user;
    return 1 / (1 + (double)t);
}

#define PLATEAU(...)                                             \
    {                                                            \
        .kind = VKT_SCHEDULE_PLATEAU, .plateau = { __VA_ARGS__ } \
    }

/* The schedules of golden/make_schedule_golden.py. The base learning rate is 0.1. */
static const struct {
    const char *name;
    vkt_schedule s;
} cases[] = {
    { "step", { .kind = VKT_SCHEDULE_STEP, .step_size = 7 } },
    { "step_gamma", { .kind = VKT_SCHEDULE_STEP, .step_size = 3, .gamma = 0.7 } },
    { "multi_step",
      { .kind = VKT_SCHEDULE_MULTI_STEP, .milestones = { 3, 11, 12, 30 }, .n_milestones = 4, .gamma = 0.5 } },
    { "exponential", { .kind = VKT_SCHEDULE_EXPONENTIAL, .gamma = 0.93 } },
    { "cosine", { .kind = VKT_SCHEDULE_COSINE, .total = 25 } },
    { "cosine_min", { .kind = VKT_SCHEDULE_COSINE, .total = 39, .min_lr = 0.003 } },
    { "one_cycle", { .kind = VKT_SCHEDULE_ONE_CYCLE, .total = 41 } },
    { "one_cycle_other",
      { .kind = VKT_SCHEDULE_ONE_CYCLE, .total = 60, .pct_start = 0.1, .div_factor = 10, .final_div_factor = 100 } },
    { "one_cycle_linear", { .kind = VKT_SCHEDULE_ONE_CYCLE, .total = 40, .linear = true } },
    { "warmup", { .warmup = 6 } },
    { "warmup_cosine", { .kind = VKT_SCHEDULE_COSINE, .total = 35, .warmup = 5, .warmup_from = 0.01 } },
    { "warmup_cosine_in_one", { .kind = VKT_SCHEDULE_WARMUP_COSINE, .total = 35, .warmup = 6 } },
    { "warmup_from_zero", { .warmup = 8, .warmup_from = VKT_ZERO } },
    { "lambda", { .kind = VKT_SCHEDULE_FUNCTION, .function = one_over } },
    { "plateau", { .kind = VKT_SCHEDULE_PLATEAU } },
    { "plateau_2", PLATEAU(.patience = 2, .factor = 0.5, .cooldown = 3, .min_lr = 0.004) },
    { "plateau_0", PLATEAU(.patience = VKT_PATIENCE_NONE, .factor = 0.7) },
    { "plateau_max", PLATEAU(.maximise = true, .patience = 4, .factor = 0.3) },
    { "plateau_absolute", PLATEAU(.patience = 3, .threshold = 0.02, .absolute = true) },
    { "plateau_absolute_max",
      PLATEAU(.maximise = true, .patience = 2, .factor = 0.5, .threshold = 0.3, .absolute = true) },
    { "plateau_any", PLATEAU(.patience = 1, .factor = 0.6, .threshold = VKT_ZERO) },
    { "plateau_eps_zero", PLATEAU(.patience = VKT_PATIENCE_NONE, .factor = 0.01, .eps = VKT_ZERO) },
    { "keras_plateau_any", PLATEAU(VKT_PLATEAU_KERAS, .patience = 2, .threshold = VKT_ZERO) },
    { "keras_plateau", PLATEAU(.form = VKT_PLATEAU_KERAS) },
    { "keras_plateau_2", PLATEAU(VKT_PLATEAU_KERAS, .patience = 2, .factor = 0.5, .cooldown = 3, .min_lr = 0.004) },
    { "keras_plateau_0", PLATEAU(VKT_PLATEAU_KERAS, .patience = VKT_PATIENCE_NONE, .factor = 0.7) },
    { "keras_plateau_max", PLATEAU(VKT_PLATEAU_KERAS, .maximise = true, .patience = 4, .factor = 0.3) },
};

enum { STEPS = 40 };

/* Reads the numbers of the line of schedules.txt that begins with `name`. */
static void read_line(const char *name, double out[STEPS])
{
    char line[4096];
    FILE *f = fopen(VKT_TEST_DIR "/golden/schedules.txt", "r");
    assert_non_null(f);
    const size_t n = strlen(name);
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) found = strncmp(line, name, n) == 0 && line[n] == ' ';
    fclose(f);
    if (!found) fail_msg("schedules.txt has no '%s'", name);
    char *at = line + n;
    for (int i = 0; i < STEPS; i++) out[i] = strtod(at, &at);
    assert_int_equal(*at, '\n');
}

static void every_rate_is_that_of_the_source(void **state)
{
    (void)state;
    double want[STEPS], values[STEPS];
    read_line("values", values);
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        const vkt_schedule *s = &cases[i].s;
        vkt_plateau_state plateau = { .scale = 1 };
        assert_int_equal(vkt_schedule_check(NULL, s), VKT_OK);
        read_line(cases[i].name, want);
        for (int t = 0; t < STEPS; t++) {
            const double got = vkt_schedule_lr(s, 0.1, (uint64_t)t) * plateau.scale;
            /* PyTorch computes most rates from the previous rate, so rounding errors add up. */
            if (!(fabs(got - want[t]) <= 1e-13 * 0.1))
                fail_msg("%s, step %d: want %.17g, got %.17g", cases[i].name, t, want[t], got);
            if (s->kind == VKT_SCHEDULE_PLATEAU) vkt_plateau_next(&s->plateau, 0.1, &plateau, values[t]);
        }
    }
}

static void a_nan_is_no_improvement(void **state)
{
    (void)state;
    const vkt_plateau p = { .patience = 1 };
    vkt_plateau_state s = { .scale = 1 };
    assert_false(vkt_plateau_next(&p, 1, &s, NAN));
    assert_true(vkt_plateau_next(&p, 1, &s, NAN));
    assert_false(vkt_plateau_next(&p, 1, &s, 5));
    assert_true(s.seen && s.best == 5);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const vkt_schedule wrong[] = {
        { .kind = (vkt_schedule_kind)99 },
        { .warmup_from = 2 },
        { .kind = VKT_SCHEDULE_STEP },
        { .kind = VKT_SCHEDULE_STEP, .step_size = 1, .gamma = -1 },
        { .kind = VKT_SCHEDULE_MULTI_STEP, .milestones = { 5, 4 }, .n_milestones = 2 },
        { .kind = VKT_SCHEDULE_MULTI_STEP, .n_milestones = 9 },
        { .kind = VKT_SCHEDULE_EXPONENTIAL },
        { .kind = VKT_SCHEDULE_COSINE },
        { .kind = VKT_SCHEDULE_ONE_CYCLE },
        { .kind = VKT_SCHEDULE_ONE_CYCLE, .total = 9, .pct_start = 1.5 },
        { .kind = VKT_SCHEDULE_FUNCTION },
        PLATEAU(.factor = 1),
        PLATEAU(.factor = -0.5),
        PLATEAU(.factor = VKT_ZERO),
        { .kind = VKT_SCHEDULE_EXPONENTIAL, .gamma = VKT_ZERO },
        { .kind = VKT_SCHEDULE_ONE_CYCLE, .total = 9, .div_factor = VKT_ZERO },
        { .kind = VKT_SCHEDULE_WARMUP_COSINE, .total = 9, .warmup = 9 },
    };
    for (size_t i = 0; i < VKT_COUNT(wrong); i++) {
        if (vkt_schedule_check(NULL, &wrong[i]) != VKT_E_ARG) fail_msg("case %zu was taken", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rate_is_that_of_the_source),
        cmocka_unit_test(a_nan_is_no_improvement),
        cmocka_unit_test(what_is_wrong_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
