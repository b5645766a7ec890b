/* ops/harness.h - runs one subject (an op with one case) on the device and compares it with its reference.
 *
 * The harness does this for every run:
 * - Before the run, it fills all memory of activations and scratch with a NaN, so a missing write of a kernel shows. It
 *   writes 77, -77, 77, -77, .. to the padding of inputs, and 0 to the padding of gradients that the run reads.
 * - It checks that each output and gradient is within the op's tolerance. If the reference lacks an output, the harness
 *   only checks that each element of this output was written.
 * - It checks that the memory between values still has the NaN, and that inputs have not changed, except those that an
 *   update of parameters writes.
 * - It checks that the padding of outputs is finite, and that the padding of gradients is 0.
 * - It checks that a second run gives the same bits, and that there is no validation message. */
#ifndef VKT_TEST_HARNESS_H
#define VKT_TEST_HARNESS_H

#include "ops/subject.h"
#include "record/debug.h"

/* Opens the context that all tests of a program share, and prints "ran on: <device>, <driver>". If there is no Vulkan
 * loader or device, the function prints "SKIPPED: no Vulkan device" and returns false. In a build with
 * VKT_REQUIRE_DEVICE, an assertion fails instead. No test may change the environment while a context has pending
 * work: the driver's threads read the environment, and setenv may move it. */
bool harness_open(vkt_ctx **ctx);
/* Fixtures of a group of tests. harness_setup opens harness_ctx, which stays NULL if there is no device.
 * harness_teardown destroys harness_ctx and checks for leaks and messages. */
extern vkt_ctx *harness_ctx;
int harness_setup(void **state);
int harness_teardown(void **state);
/* Waits until the device is idle. Call this between two cases. The validation layer forgets accesses only at
 * vkDeviceWaitIdle, so without this call each submission takes longer than the previous submission. */
void harness_forget(vkt_ctx *ctx);
/* Skips the running test if `ctx` is NULL, because there is no device. */
#define harness_needs(ctx)  \
    do {                    \
        if (!(ctx)) skip(); \
    } while (0)

/* Makes a graph with vkt_test_host(). */
vkt_graph *harness_graph(void);
/* Reads a whole f32 tensor with vkt_program_read. */
void harness_read_f32(vkt_program *p, const vkt_graph *g, vkt_tensor t, float *out);

/* A view changes limits or traits of the device, forces variants (each op that can use a forced variant uses it), or
 * sets a precision. View 0 of harness_views changes nothing. Ops may choose other variants in a view, but their results
 * must stay within the tolerance. */
typedef struct harness_view {
    const char *name;
    void (*change)(vkt_limits *lim);
    bool may_refuse; /* VKT_E_UNSUPPORTED is allowed */
    bool same_bits;  /* if only the number of work groups in x differs from view 0, results must have the same bits */
    uint64_t force;  /* set of the variants that are forced */
    vkt_precision precision;
} harness_view;
extern const harness_view harness_views[];
extern const size_t harness_n_views;
/* Sets the traits of a GPU (VKT_CLASS_OTHER of base/traits.h), except for largest_loop and words64. */
void harness_as_gpu(vkt_limits *lim);
/* In these four views, values are stored in 16 bits if possible. Two views have the device as it is, and two views have
 * small bindings. In each pair, one view stores bf16, and the other stores f16.
 * - The tolerance of a value that is stored in 16 bits is larger by half a unit in its last place: 2^-11 (f16) or 2^-8
 *   (bf16) of the value. If any value of the subject is stored in 16 bits, the tolerance of each gradient is larger by
 *   that amount once more.
 * - The reference starts from the inputs as they are stored. If cooperative matrices multiply f16 or bf16 numbers, the
 *   reference starts from f32 inputs that are rounded to f16 or bf16. A product of two rounded numbers is exact in f32,
 *   and the sums are f32, so no tolerance changes.
 * - The gradients of attention need the sum of dy * y, where y is output 0. Attention reads y as it is stored, and so
 *   does the reference.
 * - Some kernels round numbers that they have computed, and use them as operands of cooperative matrices. In f16
 *   programs, attention rounds attention weights and gradients, and a network in one node (vkt_op_mlp) rounds hidden
 *   layers and gradients. The ops of harness_makes_operands round their own operands in f16 and in bf16 programs. The
 *   tolerance of all these ops is larger by 2^-11 (f16) or 2^-8 (bf16) of the largest magnitude in the tensor.
 * - The reference of a network also rounds hidden layers to f16, because the sign of a hidden element decides about its
 *   gradient. The reference and the device may still round an element to different f16 numbers, because their sums
 *   differ before the rounding. */
extern const harness_view harness_half_views[4];
/* The view of VKT_PRECISION_F32_SPLIT: cooperative matrices compute each product of f32 numbers as three f16 products.
 * No tolerance changes. */
extern const harness_view harness_split_view;
/* Returns `has`. The caller passes whether the device has a kind of cooperative matrices. If `has` is false and the
 * environment variable VKT_REQUIRE_COOP is 1 (tests/run.sh sets it on Mesa 26), an assertion fails. */
static inline bool harness_needed(bool has)
{
    assert_true(has || !vkt_env_int("VKT_REQUIRE_COOP", 0));
    return has;
}
/* Returns whether harness_ctx has cooperative matrices of f16: see harness_needed. */
static inline bool harness_has_matrices(void)
{
    return harness_needed(harness_ctx && harness_ctx->limits.coop.m);
}
/* Returns whether harness_ctx has cooperative matrices of f16 with flexible sizes (VK_NV_cooperative_matrix2): see
 * harness_needed. */
static inline bool harness_has_flexible(void)
{
    return harness_needed(harness_ctx && harness_ctx->limits.coop2.m);
}
/* Returns whether the op may compute products in VKT_PRECISION_F32_SPLIT. Attention and networks in one node use
 * cooperative matrices in f16 programs only. */
static inline bool harness_may_split(const vkt_op *op)
{
    return op != &vkt_op_attention && op != &vkt_op_mlp && op != &vkt_op_mlp_mse;
}

/* Returns whether the op's cooperative matrices of f16 and of bf16 have numbers that the op has computed itself:
 * unpacked weights, or gradients of logits. The reference does not round these numbers. */
static inline bool harness_makes_operands(const vkt_op *op)
{
    return op == &vkt_op_linear_quantized || op == &vkt_op_linear_cross_entropy ||
           op == &vkt_op_linear_cross_entropy_dx;
}

/* The findings of the harness. `text` has an entry for each fault, with a line that reproduces it. */
typedef struct harness_report {
    char text[4000]; /* "" at first; truncated if it is too long */
    unsigned faults;
    unsigned halves; /* programs that stored a value in 16 bits and were checked */
    unsigned coops;  /* programs that multiplied cooperative matrices and were checked */
    unsigned splits; /* programs that multiplied split operands and were checked; not counted in `coops` */
} harness_report;

/* Checks the subject in several views:
 * - in view 0 of harness_views;
 * - in another view of harness_views;
 * - with a variant that the ops could choose but did not, if there is one;
 * - in harness_split_view, if the device has cooperative matrices;
 * - in a view of harness_half_views;
 * - in the same view with flexible cooperative matrices, if an op could use them.
 * The last two checks round the subject's inputs. The seed selects the views and the variant. After a fault, the
 * remaining checks are skipped. Faults are added to the report. */
void harness_check(vkt_ctx *ctx, subject *s, harness_report *report);
/* Checks the subject only in `view`. */
void harness_check_in(vkt_ctx *ctx, subject *s, const harness_view *view, harness_report *report);

/* Returns whether |got - ref| <= abs_tol * scale + rel_tol * |ref| for each of n numbers. The scale is the largest
 * finite |ref|, or 1 if that is 0. If the result is false, prints `what` and the worst number. For tests with their own
 * graph. */
bool harness_close(const char *what, const float *got, const double *ref, size_t n, double rel_tol, double abs_tol);

#endif
