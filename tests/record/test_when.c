/* Tests conditional dispatches (vkt_when_begin): which of them run, and how much time vkt_step_budget expects for
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "kernel/ids.h"
#include "ops/harness.h"
#include "ops/ops.h"
#include "record/record.h"
#include "support/host.h"
#include "vktrain/vulkan.h"

#include "abi/abi.h"
#include "abi/label_clear.abi.h"

#define OK(call) assert_int_equal((call), VKT_OK)
/* The test's own op writes zeros to rows of its output, one dispatch for each row. Row 0 always gets zeros. The
 * counter is word 0 of the input. A row i > 0 gets zeros if the counter is larger than 10 (i - 1). So the output shows
 * which dispatches have run. The outputs of the library's ops do not show this. */
enum { ROWS = 4, ROW = 64, WORDS = 4 };

static vkt_result rows_infer(vkt_infer *f)
{
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape2(ROWS, ROW));
    return VKT_OK;
}

static void rows_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_when when = vkt_when_begin(e, n->in[0]);
    for (uint32_t i = 0; i < ROWS; i++) {
        const vkt_label_clear_push pc = { .rows = 1, .width4 = ROW / 4, .group = 1 };
        const uint32_t spec[] = { 8, [LABEL_CLEAR_SPEC_ALL] = 1 };
        const vkt_bind bind[] = { [LABEL_CLEAR_T] = VKT_WHOLE(n->in[0]),
                                  [LABEL_CLEAR_STEP] = VKT_WHOLE(n->in[0]),
                                  [LABEL_CLEAR_OUT] = vkt_part(e, n->out[0], i * ROW, ROW) };
        if (i) vkt_when_above(e, 10 * (i - 1));
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_LABEL_CLEAR,
                                           VKT_LAUNCH_BIND(bind),
                                           VKT_LAUNCH_PUSH(pc),
                                           VKT_LAUNCH_SPEC(spec),
                                           .groups = { 3, 1, 1 } });
    }
    vkt_when_end(e, &when);
}

static const vkt_op rows_op = { .name = "rows", .min_in = 1, .max_in = 1, .infer = rows_infer, .emit = rows_emit };

typedef struct rig {
    vkt_graph *g;
    vkt_program *p;
    vkt_tensor counter, y;
    bool measures; /* the first two runs have one command buffer for each dispatch, and the second run is measured */
} rig;

static rig rig_make(void)
{
    rig r = { .g = harness_graph() };
    r.counter = vkt_input(r.g, "counter", VKT_U32, VKT_ROWS, vkt_shape1(WORDS));
    r.y = vkt_apply(r.g, &rows_op, &r.counter, 1, NULL, NULL);
    vkt_keep(r.g, r.y);
    OK(vkt_program_create_guarded(harness_ctx, r.g, NULL, &(vkt_program_params){ .profile = true }, &r.p));
    r.measures = r.p->pieces[0].n > 0;
    return r;
}

static void rig_free(rig *r)
{
    vkt_program_destroy(&r->p);
    vkt_graph_destroy(&r->g);
}

static void set_counter(rig *r, uint32_t counter)
{
    OK(vkt_program_write(r->p, r->counter, (uint32_t[WORDS]){ counter }, 4 * WORDS));
}

/* Checks that the first n rows have only zeros, and the other rows have no zeros. */
static void check_rows(rig *r, size_t run, uint32_t n)
{
    float got[ROWS * ROW];
    harness_read_f32(r->p, r->g, r->y, got);
    for (uint32_t i = 0; i < ROWS * ROW; i++)
        if ((got[i] == 0) != (i / ROW < n)) fail_msg("run %zu: number %u is %g", run, i, (double)got[i]);
}

/* If the program measures (rig.measures), each dispatch of the first two runs has its own command buffer, and all
 * dispatches run, also the conditional ones. In a later run, a conditional dispatch runs only if the counter is larger
 * than the number that vkt_when_above got. One of the later runs is profiled: its command buffer has timestamps. */
static void measured_runs_do_all_and_later_ones_what_is_needed(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    static const struct {
        uint32_t counter, rows;
    } runs[] = { { 0, 1 }, { 1, 2 }, { 10, 2 }, { 11, 3 }, { 20, 3 }, { 21, 4 }, { 0, 4 } };
    rig r = rig_make();
    for (uint32_t k = 0; k < 2; k++) {
        OK(vkt_program_poison(r.p, 0x7fc12345u));
        set_counter(&r, 0);
        OK(vkt_program_run(r.p, NULL, NULL));
        check_rows(&r, k, r.measures ? ROWS : 1);
    }
    OK(vkt_program_poison(r.p, 0x7fc12345u));
    for (size_t k = 0; k < VKT_COUNT(runs); k++) { /* a row that a run has set to zeros stays so in later runs */
        vkt_kernel_time times[8];
        uint32_t n;
        set_counter(&r, runs[k].counter);
        OK(k == 3 ? vkt_program_profile(r.p, NULL, times, 8, &n) : vkt_program_run(r.p, NULL, NULL));
        check_rows(&r, k + 2, runs[k].rows);
    }
    char *text = NULL;
    OK(vkt_program_print(r.p, &text));
    assert_non_null(strstr(text, "if above 20"));
    vkt_text_release(&text);
    rig_free(&r);
}

/* ---- times ---- */

enum { KERNEL_NS = 1000000, BUDGET_NS = 8000000 };

/* Waits for the device, and sets all measured times to 0. Then submits steps, in slices (parts of a step that are
 * submitted one by one), until the budget of one frame (BUDGET_NS) is used up. */
static void frame(rig *r)
{
    vkt_step_progress progress;
    uint64_t left_ns = BUDGET_NS;
    vkt_slices *s = &r->p->budget.slices;
    OK(vkt_ctx_wait_idle(harness_ctx));
    for (int i = 0; i < 2 && s->n; i++) memset(s->set[i].times->mapped, 0, 16ull * s->n);
    do OK(vkt_step_budget(r->p, &(vkt_run){ .lr = 0 }, NULL, &left_ns, &progress));
    while (progress.completed);
}

/* Returns whether the expected time of each slice is long enough: at least KERNEL_NS for each conditional dispatch of
 * the slice. */
static bool times_are_kept(const rig *r)
{
    const vkt_slices *s = &r->p->budget.slices;
    for (uint32_t i = 0, d = 0; i < s->n; i++) {
        uint64_t least = 0;
        for (; d < s->ends[i]; d++) least += r->p->lowered.list[d].conditional ? KERNEL_NS : 0;
        if (s->ns[i] < least) return false;
    }
    return true;
}

/* vkt_step_budget expects a time for each slice of a step. The counter is 0 in all frames, so no conditional dispatch
 * runs, and none takes time. But the counter may be larger in a later run. So the expected time of a conditional
 * dispatch must not fall below its time in the second run. The test sets all times of the second run to KERNEL_NS. The
 * expected time must also stay if the step is divided again, for another budget. The expected time of an unconditional
 * dispatch falls with its measured times. */
static void a_budget_counts_what_may_run(void **state)
{
    (void)state;
    harness_needs(harness_ctx);
    rig r = rig_make();
    if (!r.measures) {
        rig_free(&r);
        skip();
    }
    set_counter(&r, 0);
    for (int i = 0; i < 3; i++) OK(vkt_program_run(r.p, NULL, NULL));
    const uint32_t n = (uint32_t)r.p->lowered.n;
    assert_int_equal(n, ROWS + 1); /* + 1: the dispatch that reads the counter */
    for (uint32_t d = 0; d < n; d++) r.p->ns[d] = KERNEL_NS;
    for (int i = 0; i < 60; i++) {
        frame(&r);
        assert_true(times_are_kept(&r));
    }
    uint64_t sum = 0;
    for (uint32_t i = 0; i < r.p->budget.slices.n; i++) sum += r.p->budget.slices.ns[i];
    assert_in_range(sum, (ROWS - 1) * KERNEL_NS, (ROWS - 1) * KERNEL_NS + KERNEL_NS / 2);
    uint32_t next = 0;
    OK(vkt_slices_make(r.p, BUDGET_NS / 4, &next));
    assert_true(times_are_kept(&r));
    OK(vkt_ctx_wait_idle(harness_ctx));
    rig_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(measured_runs_do_all_and_later_ones_what_is_needed),
                                        cmocka_unit_test(a_budget_counts_what_may_run) };
    return cmocka_run_group_tests_name("conditional dispatches", tests, harness_setup, harness_teardown);
}
