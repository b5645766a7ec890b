/* Tests every op of ops.def that has random cases. Its outputs and gradients are compared with its double-precision
 * reference. A new op with random cases is tested as soon as it is in ops.def.
 *
 *   VKT_TEST_OPS=relu,pool2d   only these ops
 *   VKT_TEST_SHARE=2/3         the second of three parts of the ops; ctest runs the parts in parallel
 *   VKT_TEST_SEEDS=200         how many cases each op has (default: 24, or 3 with VKT_TEST_SMALL=1)
 *   VKT_TEST_FIRST=5           the seed of the first case; with it, the phases of run.sh test different cases
 *   VKT_TEST_SEED=17           only the case with this seed
 *   VKT_REQUIRE_COOP=1         in some case of each op, a product must use cooperative matrices */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "ops/harness.h"
#include "ops/ops.h"
#include "support/host.h"

static vkt_ctx *ctx; /* one for all tests; NULL: no device */

static void an_op_agrees_with_its_reference(void **state)
{
    const vkt_op *op = *state;
    harness_needs(ctx);
    const int64_t only = vkt_env_int("VKT_TEST_SEED", 0);
    const int64_t n = vkt_env_int("VKT_TEST_SEEDS", vkt_env_int("VKT_TEST_SMALL", 0) ? 3 : 24);
    const int64_t first = only ? only : vkt_env_int("VKT_TEST_FIRST", 1), end = only ? only + 1 : first + n;
    int64_t failures = 0, halves = 0, coops = 0, splits = 0;
    for (int64_t seed = first; seed < end; seed++) {
        harness_report report = { .faults = 0 };
        subject s;
        subject_make(&s, op, (uint64_t)seed);
        harness_check(ctx, &s, &report);
        subject_free(&s);
        failures += report.faults != 0;
        halves += report.halves;
        coops += report.coops;
        splits += report.splits;
        if (report.faults) print_error("%s", report.text);
    }
    if ((op->half | op->half_rows) && !only && n >= 24) assert_true(halves > 0);
    if (vkt_env_int("VKT_REQUIRE_COOP", 0) && !only) assert_true(coops > 0 && (splits > 0) == harness_may_split(op));
    if (failures) fail_msg("%s: %lld of %lld cases failed", op->name, (long long)failures, (long long)(only ? 1 : n));
}

static const vkt_op *find_op(const char *name)
{
    for (size_t i = 0; name && vkt_ops[i]; i++)
        if (strcmp(vkt_ops[i]->name, name) == 0) return vkt_ops[i];
    return NULL;
}

static void every_op_is_tested_and_has_a_reason_for_its_tolerance(void **state)
{
    (void)state;
    int faults = 0;
    for (size_t i = 0; vkt_ops[i]; i++) {
        const vkt_op *op = vkt_ops[i], *by = find_op(op->tested_by);
        /* test_step.c and test_shards.c test the ops with side effects that have no random cases. */
        const bool tested = op->sample || (by && by->sample) || op->side_effect;
        const bool reasoned = !op->sample || op->tol_why;
        if (find_op(op->name) != op || !op->formula || !tested || !reasoned) {
            print_error("%s: want a name and formula of its own, a sample (or an op with one in tested_by), a reason "
                        "for its tolerance\n",
                        op->name);
            faults++;
        }
    }
    assert_int_equal(faults, 0);
}

static void nothing_leaks(void **state)
{
    (void)state;
    vkt_ctx_destroy(&ctx);
    vkt_test_no_messages_and_no_leaks();
}

/* Returns whether op i is in the part of this process. Without VKT_TEST_SHARE, there is only one part. */
static bool is_shared_out(size_t i)
{
    unsigned part, parts;
    const char *share = getenv("VKT_TEST_SHARE");
    return !share || sscanf(share, "%u/%u", &part, &parts) != 2 || parts == 0 || i % parts == part - 1;
}

/* Returns whether `name` is in the list VKT_TEST_OPS, or there is no list. */
static bool is_wanted(const char *name)
{
    const char *list = getenv("VKT_TEST_OPS");
    if (!list || !*list) return true;
    const size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += n)
        if ((at == list || at[-1] == ',') && (at[n] == ',' || at[n] == 0)) return true;
    return false;
}

int main(void)
{
    static struct CMUnitTest tests[256];
    size_t n = 0;
    const struct CMUnitTest audit = cmocka_unit_test(every_op_is_tested_and_has_a_reason_for_its_tolerance);
    const struct CMUnitTest last = cmocka_unit_test(nothing_leaks);
    harness_open(&ctx);
    tests[n++] = audit;
    for (size_t i = 0; vkt_ops[i] && n < VKT_COUNT(tests) - 1; i++)
        if (vkt_ops[i]->sample && is_wanted(vkt_ops[i]->name) && is_shared_out(i))
            tests[n++] = (struct CMUnitTest){ .name = vkt_ops[i]->name,
                                              .test_func = an_op_agrees_with_its_reference,
                                              .initial_state = (void *)(uintptr_t)vkt_ops[i] };
    tests[n++] = last;
    return _cmocka_run_group_tests("every op", tests, n, NULL, NULL);
}
