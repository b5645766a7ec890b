/* ops/harness.h - runs one subject on the device, guarded, and holds it against its reference.
 *
 * Checked on every run: each output and gradient within the row's tolerance; all memory starts as a NaN, so what a
 * kernel forgot to write shows; words between values keep that NaN; inputs, with garbage in the padding lanes of
 * values, stay as they were; padding lanes are finite in values and zero in gradients; a second run gives the same
 * bits; no validation message. */
#ifndef VKT_TEST_HARNESS_H
#define VKT_TEST_HARNESS_H

#include "ops/subject.h"
#include "record/debug.h"

/* Opens the context of all tests of the program and prints "ran on: <device>". False where there is no device (and
 * VKT_REQUIRE_DEVICE is not set): the test is to be skipped. While a context has work on its way no test changes
 * the environment: the driver's threads look into it, and setenv moves it away under them. */
bool harness_open(vkt_ctx **ctx);
/* The same as a group fixture: opens harness_ctx (NULL: no device), and closes it with a check for leaks and messages.
 */
extern vkt_ctx *harness_ctx;
int harness_setup(void **state);
int harness_teardown(void **state);
/* Between two cases, with nothing on its way: the validation layer forgets accesses at vkDeviceWaitIdle alone, and
 * without it each submission takes longer than the one before. */
void harness_forget(vkt_ctx *ctx);
/* cmocka's way out of a test that needs a device and has none. */
#define harness_needs(ctx)  \
    do {                    \
        if (!(ctx)) skip(); \
    } while (0)

/* A new graph of vkt_test_host(). */
vkt_graph *harness_graph(void);
/* vkt_program_read of all of a f32 tensor. */
void harness_read_f32(vkt_program *p, const vkt_graph *g, vkt_tensor t, float *out);

/* The device as it is, and pretended others: what ops choose by must not matter. */
typedef struct harness_view {
    const char *name;
    void (*change)(vkt_limits *lim);
    bool may_refuse; /* VKT_E_UNSUPPORTED is an answer */
    bool same_bits;  /* results are those of the first view, bit by bit */
    uint64_t force;  /* variants */
    vkt_precision precision;
} harness_view;
extern const harness_view harness_views[];
extern const size_t harness_n_views;
/* For a view: the traits of a GPU (base/traits.h), but for what this device cannot do. */
void harness_as_gpu(vkt_limits *lim);
/* With what can be stored in 16 bits stored so, on the device as it is and with small bindings. A value that is may be
 * off by half its last place more, 2^-11 or 2^-8 of itself; the reference starts from the inputs as they are stored,
 * its gradients from output 0 as it is stored if they are made from that (attention's sum of dy y alone), and where
 * products are made of f16 all inputs are such: those sum in f32, and products of two f16 are exact there, so no
 * tolerance changes. */
extern const harness_view harness_half_views[4];

/* What is wrong, one entry per fault, each with a line that reproduces it. */
typedef struct harness_report {
    char text[4000]; /* "" at first; cut at its end */
    unsigned faults;
    unsigned halves; /* programs of which something was stored in 16 bits */
    unsigned coops;  /* programs that multiplied cooperative matrices */
} harness_report;

/* Runs the subject in view 0 and, if that was right, in one of the others, where ops had a choice by a variant that
 * they did not take, and in 16 bits; all by its seed. Adds to the report. The last run rounds the subject's inputs. */
void harness_check(vkt_ctx *ctx, subject *s, harness_report *report);
/* Runs the subject in `view` alone. */
void harness_check_in(vkt_ctx *ctx, subject *s, const harness_view *view, harness_report *report);

/* One comparison, for tests with a graph of their own: |got - ref| <= abs_tol * scale + rel_tol * |ref| for n numbers,
 * scale the largest |ref| or 1 where that is 0. Otherwise prints the worst, after `what`, and returns false. */
bool harness_close(const char *what, const float *got, const double *ref, size_t n, double rel_tol, double abs_tol);

#endif
