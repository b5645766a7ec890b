/* Tests the kernel sets of cmake/KernelSets.cmake. A library that has only the kernels of an op's set (VKT_KERNELS) can
 * lower each random case of the op in float32, forward and backward, for any class of device. Only the op `linear` also
 * needs the set of conv2d. Only the lowering runs, so no device is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#include "base/built.h"
#include "kernel/ids.h"
#include "kernel_sets.h" /* generated */
#include "ops/ops.h"
#include "ops/subject.h"

enum { SEEDS = 150 };

/* Sets built[k] for each kernel k whose name is in the list. Blanks separate the names. */
static void read_set(const char *list, bool built[VKT_K_END])
{
    for (uint32_t k = 1; k < VKT_K_COUNT; k++) {
        const char *name = vkt_kernel_name(k);
        const size_t bytes = strlen(name);
        for (const char *at = list; (at = strstr(at, name)); at += bytes)
            built[k] |= (at == list || at[-1] == ' ') && (at[bytes] == ' ' || at[bytes] == 0);
    }
}

/* Lowers g to `e`. `built`: the kernels of the library; NULL: all. */
static vkt_result lower_to(const vkt_graph *g, vkt_device_class cls, const bool *built, vkt_choices choices,
                           vkt_emit *e)
{
    const vkt_limits lim = { .traits = &vkt_class_traits[cls],
                             .subgroup_size = cls == VKT_CLASS_CPU ? 8 : 32,
                             .max_workgroup_lanes = 1024,
                             .max_groups = 65535,
                             .max_push_bytes = 128,
                             .shared_bytes = 49152,
                             .max_storage_range_bytes = 1u << 27,
                             .max_texel_elements = 1u << 27,
                             .choices = choices,
                             .built = built };
    return vkt_lower(g, &lim, NULL, (vkt_storage){ .precision = VKT_PRECISION_F32 }, e);
}

/* Lowers g. `off`: variants that the user has switched off. */
static vkt_result lower_without(const vkt_graph *g, vkt_device_class cls, const bool *built, uint64_t off)
{
    vkt_emit e;
    const vkt_result r = lower_to(g, cls, built, (vkt_choices){ .off = off }, &e);
    if (r == VKT_OK) vkt_lower_free(&e);
    return r;
}

static vkt_result lower(const vkt_graph *g, vkt_device_class cls, const bool *built)
{
    return lower_without(g, cls, built, 0);
}

static const char *set_of(const char *name)
{
    for (size_t i = 0; i < VKT_COUNT(kernel_sets); i++)
        if (strcmp(kernel_sets[i].name, name) == 0) return kernel_sets[i].kernels;
    return NULL;
}

static void sets_are_enough_for_their_ops(void **state)
{
    (void)state;
    for (size_t i = 0; vkt_ops[i]; i++) {
        bool built[VKT_K_END] = { true };
        const char *set = set_of(vkt_ops[i]->name);
        if (!vkt_ops[i]->sample) continue;
        if (!set) fail_msg("%s has no set: add it to cmake/KernelSets.cmake", vkt_ops[i]->name);
        read_set(set, built);
        if (strcmp(vkt_ops[i]->name, "linear") == 0)
            read_set(set_of("conv2d"), built); /* with the batch last, a linear layer uses kernels of convolutions */
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            const vkt_host h = vkt_test_host();
            vkt_subject s;
            assert_int_equal(vkt_subject_make(&h, &s, vkt_ops[i], seed), VKT_OK);
            for (int cls = 0; cls < VKT_CLASS_COUNT; cls++)
                if (lower(s.g, (vkt_device_class)cls, built) != VKT_OK)
                    fail_msg(
                        "%s, case %d, class %d: the set is not enough: add kernels to it in cmake/KernelSets.cmake",
                        vkt_ops[i]->name, (int)seed, cls);
            vkt_subject_free(&s);
        }
    }
}

/* A library without the kernels of the best variant uses another variant. A library without any kernel refuses the
 * node. */
static void another_variant_is_used(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape4(8, 256, 14, 14));
    const vkt_tensor w = vkt_input(g, "w", VKT_F32, VKT_ROWS, vkt_shape4(256, 256, 3, 3));
    vkt_keep(g, vkt_conv2d(g, x, w, (vkt_tensor){ 0 }, &(vkt_conv2d_params){ .pad = { 1, 1 } }));
    bool built[VKT_K_END];
    for (size_t k = 0; k < VKT_K_END; k++) built[k] = true;
    assert_int_equal(lower(g, VKT_CLASS_CPU, built), VKT_OK);
    built[VKT_K_WINOGRAD_WEIGHTS] = false; /* Winograd is the best variant for this size on a CPU: test_choose.c */
    built[VKT_K_CONV2D_SPAN] = built[VKT_K_FFT_ROWS] = false;
    assert_int_equal(lower(g, VKT_CLASS_CPU, built), VKT_OK);
    /* All variants except v are switched off. If the library lacks the kernels of v, it uses a variant that is switched
     * off. */
    for (uint32_t v = 0; v < VKT_V_COUNT; v++)
        assert_int_equal(lower_without(g, VKT_CLASS_CPU, built, ~((uint64_t)1 << v)), VKT_OK);
    for (size_t k = 0; k < VKT_K_END; k++) built[k] = false;
    vkt_test_expect_errors(true);
    assert_int_equal(lower(g, VKT_CLASS_CPU, built), VKT_E_UNSUPPORTED);
    assert_non_null(strstr(vkt_test_last_error(), "conv2d: vktrain was built without the kernel"));
    assert_non_null(strstr(vkt_test_last_error(), "VKT_KERNELS"));
    vkt_graph_destroy(&g);
}

/* Checks which variants the nodes of g choose for the class NVIDIA. `want`: their names, separated by blanks. `force`:
 * variants that the user forces. */
static void choose(const vkt_graph *g, const bool *built, uint64_t force, const char *want)
{
    vkt_emit e;
    char got[256] = "";
    assert_int_equal(lower_to(g, VKT_CLASS_NVIDIA, built, (vkt_choices){ .force = force }, &e), VKT_OK);
    for (size_t i = 0; i < e.n_picked; i++) {
        const size_t n = strlen(got);
        snprintf(got + n, sizeof got - n, "%s%s", i ? " " : "", vkt_variant_name(e.picked[i].variant));
    }
    vkt_lower_free(&e);
    assert_string_equal(got, want);
}

/* Checks that a library with these kernels refuses g, and that the message names the kernel. */
static void refuse(const vkt_graph *g, vkt_device_class cls, const bool *built, const char *kernel)
{
    char text[80];
    snprintf(text, sizeof text, "vktrain was built without the kernel %s:", kernel);
    vkt_test_expect_errors(true);
    assert_int_equal(lower(g, cls, built), VKT_E_UNSUPPORTED);
    assert_non_null(strstr(vkt_test_last_error(), text));
    vkt_test_expect_errors(false);
}

/* A node makes four choices: BLOCKS or UNPACKED for the logits, the variant of their product, and the same for dx. If a
 * kernel is absent, only the choice that needs the kernel changes. */
static void only_the_choice_that_needs_the_kernel_changes(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    bool built[VKT_K_END] = { true };
    vkt_graph *g;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    const vkt_tensor x = vkt_param(g, "x", vkt_shape2(40, 512));
    const vkt_tensor words = vkt_input(g, "w", VKT_U32, VKT_ROWS, vkt_shape1(64 * 512 / 2));
    const vkt_tensor t = vkt_input(g, "t", VKT_U32, VKT_ROWS, vkt_shape1(40));
    const vkt_tensor loss = vkt_linear_cross_entropy_quantized(g, x, words, VKT_QUANT_BF16, 64, t, NULL);
    assert_int_equal(vkt_backward(g, loss), VKT_OK);
    choose(g, NULL, 0, "blocks split_k blocks shared");
    read_set(set_of("linear_cross_entropy"), built);
    built[VKT_K_GEMM_SUM] = built[VKT_K_GEMM_SUM4] = false; /* SPLIT_K needs one of them */
    choose(g, built, 0, "blocks shared blocks shared");
    built[VKT_K_GEMM_PACK] = built[VKT_K_GEMM_TILE] = false; /* all variants but SHARED need them */
    choose(g, built, 0, "blocks shared blocks shared");
    built[VKT_K_GEMM_QUANTIZED] = false; /* SHARED needs this kernel after BLOCKS, and another one after UNPACKED */
    choose(g, built, 0, "unpacked shared unpacked shared");
    built[VKT_K_DEQUANTIZE] = false;
    refuse(g, VKT_CLASS_NVIDIA, built, "GEMM_QUANTIZED"); /* the first kernel that the cheapest variants need */
    built[VKT_K_GEMM_QUANTIZED] = true;
    choose(g, built, 0, "blocks shared blocks shared");
    choose(g, built, VKT_V(PLACED), "blocks shared blocks shared"); /* with all kernels, PLACED excludes BLOCKS */
    built[VKT_K_LINEAR_XENT_LOSS] = false;                          /* every variant needs this kernel */
    refuse(g, VKT_CLASS_NVIDIA, built, "LINEAR_XENT_LOSS");
    vkt_graph_destroy(&g);
}

static void the_message_names_the_kernel_of_the_cheapest_variant(void **state)
{
    (void)state;
    const vkt_host h = vkt_test_host();
    const bool built[VKT_K_END] = { true };
    vkt_graph *g;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    const vkt_tensor a = vkt_input(g, "a", VKT_F32, VKT_ROWS, vkt_shape2(7, 33));
    const vkt_tensor b = vkt_input(g, "b", VKT_F32, VKT_ROWS, vkt_shape2(33, 19));
    vkt_keep(g, vkt_matmul(g, a, b, false, false));
    refuse(g, VKT_CLASS_CPU, built, "GEMM_PACK");
    refuse(g, VKT_CLASS_NVIDIA, built, "GEMM_SHARED");
    vkt_graph_destroy(&g);
}

/* docs/size.md says which sets do not have the kernels of SPLIT_K. */
static void split_k_needs_more_than_the_set_of_matmul(void **state)
{
    (void)state;
    const char *const sets[] = { "matmul", "linear", "mlp", "transformer" };
    const vkt_host h = vkt_test_host();
    vkt_graph *g;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    const vkt_tensor a = vkt_input(g, "a", VKT_F32, VKT_ROWS, vkt_shape2(4096, 64));
    const vkt_tensor b = vkt_input(g, "b", VKT_F32, VKT_ROWS, vkt_shape2(4096, 64));
    vkt_keep(g, vkt_matmul(g, a, b, true, false));
    choose(g, NULL, 0, "split_k");
    for (size_t i = 0; i < VKT_COUNT(sets); i++) {
        bool built[VKT_K_END] = { true };
        read_set(set_of(sets[i]), built);
        choose(g, built, 0, "shared");
        built[VKT_K_GEMM_SUM] = built[VKT_K_GEMM_SUM4] = true;
        choose(g, built, 0, "split_k");
    }
    vkt_graph_destroy(&g);
}

static void every_kernel_is_in_a_set(void **state)
{
    (void)state;
    bool some[VKT_K_END] = { false };
    for (size_t i = 0; i < VKT_COUNT(kernel_sets); i++) read_set(kernel_sets[i].kernels, some);
    for (uint32_t k = 1; k < VKT_K_COUNT; k++) {
        const char *name = vkt_kernel_name(k);
        /* No set has kernels for cooperative matrices. The names of these kernels have COOP, SPLIT or BFLOAT. */
        const bool coop = strstr(name, "COOP") || strstr(name, "SPLIT") || strstr(name, "BFLOAT");
        if (some[k] && coop) fail_msg("%s is in a set: remove it from cmake/KernelSets.cmake", name);
        if (!some[k] && !coop) fail_msg("%s is in no set: add it to cmake/KernelSets.cmake", name);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sets_are_enough_for_their_ops),
        TEST(another_variant_is_used),
        TEST(only_the_choice_that_needs_the_kernel_changes),
        TEST(the_message_names_the_kernel_of_the_cheapest_variant),
        TEST(split_k_needs_more_than_the_set_of_matmul),
        TEST(every_kernel_is_in_a_set),
    };
    return cmocka_run_group_tests_name("kernel sets", tests, NULL, NULL);
}
