/* ops/harness.h - runs one subject on the device, guarded, and compares it with its reference.
 *
 * Every run checks:
 * - Each output and gradient is within the op's tolerance.
 * - All memory starts as a NaN, so a missing write of a kernel shows. Words between values keep that NaN.
 * - Inputs do not change. The padding lanes of an input have random numbers, unless the input is a gradient.
 * - Padding lanes are finite in values and zero in gradients.
 * - A second run gives the same bits.
 * - There is no validation message. */
#ifndef VKT_TEST_HARNESS_H
#define VKT_TEST_HARNESS_H

#include "ops/subject.h"
#include "record/debug.h"

/* Opens the context of all tests of the program and prints "ran on: <device>". Returns false if there is no device and
 * VKT_REQUIRE_DEVICE is not set; then the test is skipped. No test may change the environment while a context has
 * pending work: the driver's threads read the environment, and setenv may move it. */
bool harness_open(vkt_ctx **ctx);
/* The same as a group fixture. It opens harness_ctx (NULL: no device). At the end it closes the context and checks for
 * leaks and messages. */
extern vkt_ctx *harness_ctx;
int harness_setup(void **state);
int harness_teardown(void **state);
/* Waits until the device is idle. Call this between two cases. The validation layer forgets accesses only at
 * vkDeviceWaitIdle, so without it each submission takes longer than the one before. */
void harness_forget(vkt_ctx *ctx);
/* Skips the test if it needs a device and there is none. */
#define harness_needs(ctx)  \
    do {                    \
        if (!(ctx)) skip(); \
    } while (0)

/* Makes a graph with vkt_test_host(). */
vkt_graph *harness_graph(void);
/* Reads a whole f32 tensor with vkt_program_read. */
void harness_read_f32(vkt_program *p, const vkt_graph *g, vkt_tensor t, float *out);

/* The views are the device as it is, and the device with other limits and traits. The choices of ops must not change
 * results. */
typedef struct harness_view {
    const char *name;
    void (*change)(vkt_limits *lim);
    bool may_refuse; /* VKT_E_UNSUPPORTED is allowed */
    bool same_bits;  /* results are those of the first view, bit for bit */
    uint64_t force;  /* the variants that are forced */
    vkt_precision precision;
} harness_view;
extern const harness_view harness_views[];
extern const size_t harness_n_views;
/* Gives a view the traits of a GPU (base/traits.h), without those that this device does not support. */
void harness_as_gpu(vkt_limits *lim);
/* Values that can be stored in 16 bits are stored so, on the device as it is and with small bindings. Such a value may
 * be off by another half unit in the last place: 2^-11 (f16) or 2^-8 (bf16) of itself. The reference starts from the
 * inputs as they are stored. The reference of a gradient starts from output 0 as it is stored, if the gradient is
 * computed from that output (only attention's sum of dy y). If products are of f16, all inputs are rounded to f16. Such
 * products are exact and their sums are f32, so no tolerance changes. */
extern const harness_view harness_half_views[4];

/* The faults, one entry each. Each entry has a line that reproduces it. */
typedef struct harness_report {
    char text[4000]; /* "" at first; truncated if it is too long */
    unsigned faults;
    unsigned halves; /* programs that stored a value in 16 bits */
    unsigned coops;  /* programs that multiplied cooperative matrices */
} harness_report;

/* Runs the subject in view 0. If that is right, runs it in one of the other views, with a variant that the ops could
 * choose but did not, and in 16 bits. The seed decides. Adds to the report. The last run rounds the subject's inputs.
 */
void harness_check(vkt_ctx *ctx, subject *s, harness_report *report);
/* Runs the subject only in `view`. */
void harness_check_in(vkt_ctx *ctx, subject *s, const harness_view *view, harness_report *report);

/* Returns whether |got - ref| <= abs_tol * scale + rel_tol * |ref| for n numbers, for tests with their own graph. The
 * scale is the largest |ref|, or 1 if that is 0. If it returns false, it prints the worst number after `what`. */
bool harness_close(const char *what, const float *got, const double *ref, size_t n, double rel_tol, double abs_tol);

#endif
