/* gpu/fake.h - a loader that simulates faults and other devices, and the helpers that the tests of this folder share.
 *
 * The loader that fake_loader() returns forwards every call to the installed Vulkan loader, with the changes that
 * `fake` asks for. A validation layer is below the installed loader, so the layer sees only the forwarded calls, which
 * are correct. A program has only one `fake`: call fake_reset() before each use. */
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
    VkSemaphore wait; /* the first semaphore that the submission waits for; VK_NULL_HANDLE: none */
    uint64_t wait_value;
} fake_submit;

typedef struct fake_vulkan {
    uint32_t api_version;     /* not 0: vkGetPhysicalDeviceProperties returns this version for every device */
    const char *without;      /* name of a feature, extension or property (see fake.c) that no device has */
    VkResult create_instance; /* the error that vkCreateInstance returns; 0: none */
    bool no_devices;
    bool transfer_queue;               /* adds family 1, which can only copy; its queue is the queue of family 0 */
    int32_t fail_call;                 /* the n-th call of a fallible function (see fake.c) fails; 0: none */
    bool fail_for_good;                /* all later calls of fallible functions fail too */
    const char *failed;                /* name of the function that failed last, without "vk"; NULL: none */
    void (*instead_of_dispatch)(void); /* not NULL: vkCmdDispatch records nothing and calls this function */
    uint32_t vendor; /* not 0: every device is a discrete GPU of this vendor, with an unknown driver */
    /* with `vendor`: [0] the default subgroup size; [1] the smallest and [2] the largest that pipelines may require */
    uint32_t subgroup_sizes[3];
    bool portability;            /* every device also has VK_KHR_portability_subset */
    bool lists_portable;         /* vkCreateInstance had the flag that lists devices with VK_KHR_portability_subset */
    bool enables_subset;         /* vkCreateDevice was asked to enable VK_KHR_portability_subset */
    const char *cores_extension; /* not NULL: the name of an extension that every device also has */
    VkStructureType cores_type;  /* type of the extension's properties struct, which has `cores` at offset cores_at */
    uint32_t cores, cores_at;
    bool odd_limits;        /* the largest sizes of a buffer, a binding and an allocation are 2^32 - 1 bytes */
    uint64_t budget, usage; /* in bytes; budget not 0: every heap reports both (VK_EXT_memory_budget) */
    fake_submit submits[FAKE_SUBMITS];
    uint32_t n_submits; /* number of submissions; may exceed FAKE_SUBMITS */
} fake_vulkan;
extern fake_vulkan fake;

void fake_reset(void);
const vkt_loader *fake_loader(void);

/* Makes a context on the device under test, with vkt_test_host(). params NULL: all defaults, but no pipeline cache.
 * Skips the test if there is no loader or no device, or fails it if the build requires a device. */
vkt_ctx *rig_open(const vkt_ctx_params *params, const vkt_loader *loader);

#endif
