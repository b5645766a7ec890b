/* ops/harness.h - runs one subject on the device, guarded, and compares it with its reference.
 *
 * Every run checks:
 * - Each output and gradient is within the op's tolerance. An output that the reference does not have is only checked
 *   to be written.
 * - All memory of activations and scratch starts as a NaN, so a missing write of a kernel shows. Words between values
 *   keep that NaN.
 * - Inputs do not change, except those that an update of parameters writes. The padding of an input is 77 and -77 in
 *   turn, unless the input is a gradient: then it is 0.
 * - The padding of a result is finite in a value and zero in a gradient.
 * - A second run gives the same bits.
 * - There is no validation message. */
#ifndef VKT_TEST_HARNESS_H
#define VKT_TEST_HARNESS_H

#include "ops/subject.h"
#include "record/debug.h"

/* Opens the context that all tests of a program share, and prints "ran on: <device>, <driver>". If there is no Vulkan
 * loader or device, it prints "SKIPPED: no Vulkan device" and returns false. In a build with VKT_REQUIRE_DEVICE, an
 * assertion fails instead. No test may change the environment while a context has pending work: the driver's threads
 * read the environment, and setenv may move it. */
bool harness_open(vkt_ctx **ctx);
/* Fixtures of a group. harness_setup opens harness_ctx, which stays NULL if there is no device. harness_teardown closes
 * it and checks for leaks and messages. */
extern vkt_ctx *harness_ctx;
int harness_setup(void **state);
int harness_teardown(void **state);
/* Waits until the device is idle. Call this between two cases. The validation layer forgets accesses only at
 * vkDeviceWaitIdle, so without it each submission takes longer than the one before. */
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

/* A view is the device as it is, or the device with other limits or traits, with forced variants, or with another
 * precision. Ops may choose other variants in a view, but their results must stay within the tolerance. */
typedef struct harness_view {
    const char *name;
    void (*change)(vkt_limits *lim);
    bool may_refuse; /* VKT_E_UNSUPPORTED is allowed */
    bool same_bits;  /* results have the bits of view 0, if the dispatches differ only in their groups in x */
    uint64_t force;  /* set of the variants that are forced */
    vkt_precision precision;
} harness_view;
extern const harness_view harness_views[];
extern const size_t harness_n_views;
/* Sets the traits of VKT_CLASS_OTHER, a GPU (base/traits.h). largest_loop and words64 stay those of this device. */
void harness_as_gpu(vkt_limits *lim);
/* The views in which values are stored in 16 bits if they can be: on the device as it is, and with small bindings. The
 * tolerance of such a value is larger by half a unit in its last place: 2^-11 (f16) or 2^-8 (bf16) of the value. If any
 * value of the subject is stored in 16 bits, the tolerance of each gradient is larger by the same amount once more. The
 * reference starts from the inputs as they are stored. If a kernel computes a gradient from output 0 as it is stored
 * (only attention does, in its sum of dy * y), the reference does the same. If cooperative matrices multiply f16 or
 * bf16, all f32 inputs are rounded to that type. Such products are exact and their sums are f32, so no tolerance
 * changes. Only attention and networks in one node multiply numbers that they have computed and rounded to f16: weights
 * of attention, hidden layers, and the gradients of both. So their tolerance is larger by 2^-11 of the largest number
 * of a tensor. The reference of a network rounds too, because the sign of a hidden element decides about its gradient.
 * If a tie lies between the sum of the reference and the sum of the device, the two round differently. */
extern const harness_view harness_half_views[4];
/* The view in which products of f32 are computed from split operands, if the device has cooperative matrices. No
 * tolerance changes. */
extern const harness_view harness_split_view;
/* Returns `has`: whether the device has some kind of cooperative matrices. If it lacks them although VKT_REQUIRE_COOP
 * is 1 (tests/run.sh sets it on Mesa 26), an assertion fails. */
static inline bool harness_needed(bool has)
{
    assert_true(has || !vkt_env_int("VKT_REQUIRE_COOP", 0));
    return has;
}
/* Return whether harness_ctx has cooperative matrices, and whether it has flexible ones: see harness_needed. */
static inline bool harness_has_matrices(void)
{
    return harness_needed(harness_ctx && harness_ctx->limits.coop.m);
}
static inline bool harness_has_flexible(void)
{
    return harness_needed(harness_ctx && harness_ctx->limits.coop2.m);
}
/* Returns whether the op has products of split operands. Attention and networks have cooperative matrices in programs
 * of f16 only. */
static inline bool harness_may_split(const vkt_op *op)
{
    return op != &vkt_op_attention && op != &vkt_op_mlp && op != &vkt_op_mlp_mse;
}

/* Returns whether the op multiplies numbers that it has made itself, so that the reference does not round them:
 * unpacked weights, or the gradients of logits. */
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

/* Checks the subject in view 0. More checks follow: in one of the other views; with a variant that the ops could choose
 * but did not, if there is one; with split operands, if the device has cooperative matrices; in 16 bits; and in 16 bits
 * by flexible matrices, if an op could use them. The seed selects the view, the variant and the type. A check that
 * finds a fault is the last one. Faults are added to the report. The check in 16 bits rounds the subject's inputs. */
void harness_check(vkt_ctx *ctx, subject *s, harness_report *report);
/* Checks the subject only in `view`. */
void harness_check_in(vkt_ctx *ctx, subject *s, const harness_view *view, harness_report *report);

/* Returns whether |got - ref| <= abs_tol * scale + rel_tol * |ref| for n numbers, for tests with their own graph. The
 * scale is the largest |ref|, or 1 if that is 0. If it returns false, it prints the worst number after `what`. */
bool harness_close(const char *what, const float *got, const double *ref, size_t n, double rel_tol, double abs_tol);

#endif
