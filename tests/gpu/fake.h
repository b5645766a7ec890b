/* gpu/fake.h - the installed Vulkan with faults, and the helpers that the tests of this folder share.
 *
 * fake_loader() forwards every call to the installed loader, with the changes that `fake` asks for. It is above the
 * loader, so a validation layer sees only correct calls. One state per program: call fake_reset() before each use. */
#ifndef VKT_TEST_FAKE_H
#define VKT_TEST_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "gpu/internal.h"
#include "support/host.h"

#define FAKE_SUBMITS 64

typedef struct fake_submit {
    VkQueue queue;
    VkSemaphore wait; /* VK_NULL_HANDLE: no wait */
    uint64_t wait_value;
} fake_submit;

typedef struct fake_vulkan {
    uint32_t api_version;     /* the version that every device reports; 0: its own */
    const char *without;      /* a feature, extension or subgroup operation that no device has, or "compute queue" */
    VkResult create_instance; /* the error that vkCreateInstance returns */
    bool no_devices;
    bool transfer_queue;               /* a second family that can only copy; its queue is the first family's */
    int32_t fail_call;                 /* the n-th fallible call below the instance fails (1: the next); 0: none */
    bool fail_for_good;                /* all calls after it fail too */
    const char *failed;                /* name of the last call that failed */
    void (*instead_of_dispatch)(void); /* not NULL: vkCmdDispatch records nothing and calls this */
    uint64_t budget, usage;            /* budget not 0: VK_EXT_memory_budget, for every heap */
    fake_submit submits[FAKE_SUBMITS];
    uint32_t n_submits; /* may exceed FAKE_SUBMITS */
} fake_vulkan;
extern fake_vulkan fake;

void fake_reset(void);
const vkt_loader *fake_loader(void);

/* Makes a context on the device under test, with vkt_test_host(). The pipeline cache is off unless params ask for it.
 * Skips the test if there is no device, or fails it if the build requires one. */
vkt_ctx *rig_open(const vkt_ctx_params *params, const vkt_loader *loader);

#endif
