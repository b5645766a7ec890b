/* support/host.h - the vkt_host of the tests: counts memory, makes the n-th allocation fail, keeps messages.
 *
 * All contexts and other objects under test share one static state. Functions that cannot fail the test may be called
 * from any thread. A test with this host ends with vkt_test_no_messages_and_no_leaks(). vkt_test_teardown calls that
 * macro:
 *
 *     const vkt_host h = vkt_test_host();
 *     cmocka_unit_test_setup_teardown(test, vkt_test_setup, vkt_test_teardown)
 *
 * This loop makes each allocation of a call fail, one after the other:
 *
 *     for (unsigned n = 1;; n++) {
 *         vkt_test_fail_allocation(n);
 *         const vkt_result r = vkt_thing_create(&h, &thing);
 *         if (!vkt_test_allocation_failed()) break;      // fewer than n allocations: r is VKT_OK, go on with `thing`
 *         assert_int_equal(r, VKT_E_NOMEM);
 *         assert_null(thing);
 *         assert_int_equal(vkt_test_live_blocks(), 0);
 *     }
 *     vkt_test_fail_allocation(0); */
#ifndef VKT_TEST_HOST_H
#define VKT_TEST_HOST_H

#include "vktrain/core.h"

/* Returns a host whose function pointers are all set. The host logs errors and warnings. For other levels, the caller
 * sets log_level in the returned struct. */
vkt_host vkt_test_host(void);

/* ---- memory ---- */
/* Makes the n-th allocation from now on fail once (1: the next one; 0: none). A resize to more bytes is an allocation.
 * After a call with n > 0, until a call with 0, only errors of a validation layer are printed. vkt_test_last_error()
 * still returns the other errors. */
void vkt_test_fail_allocation(unsigned n);
/* Returns whether the allocation that the last vkt_test_fail_allocation() chose has failed. */
bool vkt_test_allocation_failed(void);
/* Returns the number of allocations since the test began. Tests check with it that a steady state allocates nothing. */
unsigned long vkt_test_allocations(void);
/* Return how many blocks of memory are not freed yet, and how many bytes they have. */
size_t vkt_test_live_blocks(void);
size_t vkt_test_live_bytes(void);
/* Returns the largest number of bytes that were live at once since the test began, or since the last call of this
 * function. */
size_t vkt_test_peak_bytes(void);

/* ---- messages ---- */
/* Returns the number of lines from a Vulkan validation layer: errors that begin with "validation: ". They are always
 * printed. */
unsigned vkt_test_messages(void);
/* Returns the number of error lines that do not come from a validation layer. */
unsigned vkt_test_errors(void);
/* Sets whether the test provokes errors. While it does, only errors of a validation layer are printed. Other errors are
 * still counted, and vkt_test_last_error() returns them. */
void vkt_test_expect_errors(bool expected);
/* Returns a copy of the test's last error line ("" for none). It is valid until the calling thread calls this function
 * again. */
const char *vkt_test_last_error(void);
/* Fails the test unless the last error line contains `part`. */
#define vkt_test_error_contains(part) vkt_test_error_contains_at(part, __FILE__, __LINE__)
void vkt_test_error_contains_at(const char *part, const char *file, int line);

/* ---- at the end of a test ---- */
/* Returns false and prints the reason if a validation message came, a block is still live, or a block was overrun or
 * freed twice. Resets all counts and settings in either case, so that one fault fails only one test. */
bool vkt_test_is_clean(void);
/* Fails the test unless vkt_test_is_clean() returns true. */
#define vkt_test_no_messages_and_no_leaks() vkt_test_clean_at(__FILE__, __LINE__)
void vkt_test_clean_at(const char *file, int line);
/* Setup and teardown for cmocka, which do not use *state. The setup resets all counts and settings. The teardown calls
 * vkt_test_no_messages_and_no_leaks(). */
int vkt_test_setup(void **state);
int vkt_test_teardown(void **state);

/* Returns whether this run leaves out item i of a list. A run with at least 4 random cases of each op (VKT_TEST_SEEDS)
 * tests the whole list. A run with fewer cases tests each n-th item: those where i + VKT_TEST_FIRST is a multiple of n.
 */
bool vkt_test_leaves_out(size_t i, size_t n);

/* Prints "ran on: <device>, <driver>" unless the previous call had the same device and driver. tests/run.sh collects
 * these lines. A fixture that opens a context calls this function with the name and driver of vkt_ctx_device(). */
void vkt_test_ran_on(const char *device, const char *driver);

#endif
