/* cmake/KernelSets.cmake: the set of an op has every kernel that its random cases use in float32, forward and backward, on
 * any class of device. Only the lowering runs, so no device is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/built.h"
#include "kernel/ids.h"
#include "kernel_sets.h" /* generated */
#include "ops/ops.h"
#include "ops/subject.h"

enum { SEEDS = 150 };

/* Returns whether `list`, names separated by blanks, has the name. */
static bool has(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0)) return true;
    return false;
}

static void mark_kernels(const vkt_graph *g, vkt_device_class cls, uint64_t range, bool used[VKT_K_COUNT])
{
    const vkt_limits lim = { .traits = &vkt_class_traits[cls],
                             .subgroup_size = cls == VKT_CLASS_CPU ? 8 : 32,
                             .max_workgroup_lanes = 1024,
                             .max_groups = 65535,
                             .max_push_bytes = 128,
                             .shared_bytes = 49152,
                             .max_storage_range_bytes = range,
                             .max_texel_elements = range / 16 };
    vkt_emit e;
    if (vkt_lower(g, &lim, NULL, (vkt_storage){ .precision = VKT_PRECISION_F32 }, &e) != VKT_OK) return; /* small ranges */
    for (size_t i = 0; i < e.n; i++) used[e.list[i].kernel] = true;
    vkt_lower_free(&e);
}

static void sets_have_the_kernels_of_their_ops(void **state)
{
    (void)state;
    size_t seen = 0, missing = 0;
    for (size_t i = 0; vkt_ops[i]; i++) {
        if (!vkt_ops[i]->sample) continue;
        bool used[VKT_K_COUNT] = { false };
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            const vkt_host h = vkt_test_host();
            vkt_subject s;
            assert_int_equal(vkt_subject_make(&h, &s, vkt_ops[i], seed), VKT_OK);
            vkt_test_expect_errors(true);
            for (int cls = 0; cls < VKT_CLASS_COUNT; cls++) {
                mark_kernels(s.g, (vkt_device_class)cls, 1u << 27, used);
                mark_kernels(s.g, (vkt_device_class)cls, 1u << 14, used);
            }
            vkt_test_expect_errors(false);
            vkt_subject_free(&s);
        }
        const char *set = NULL;
        for (size_t k = 0; k < VKT_COUNT(kernel_sets); k++)
            if (strcmp(kernel_sets[k].name, vkt_ops[i]->name) == 0) set = kernel_sets[k].kernels;
        for (uint32_t k = 1; k < VKT_K_COUNT; k++) {
            if (!used[k]) continue;
            seen++;
            if (set && has(set, vkt_kernel_name(k))) continue;
            print_message("%s: want %s in its set\n", vkt_ops[i]->name, vkt_kernel_name(k));
            missing++;
        }
    }
    assert_true(seen > 200);
    assert_int_equal(missing, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sets_have_the_kernels_of_their_ops, vkt_test_setup, vkt_test_teardown),
    };
    return cmocka_run_group_tests_name("kernel sets", tests, NULL, NULL);
}
