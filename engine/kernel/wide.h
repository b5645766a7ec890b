/* kernel/wide.h - vectors wider than a CPU driver's default, and the test that they compute correctly. */
#ifndef VKT_WIDE_H
#define VKT_WIDE_H

#include "gpu/gpu.h"

/* Runs shaders/kernel/self_test.comp, on any device. *wrong gets the number of results that differ from the host's. */
vkt_result vkt_self_test(vkt_ctx *ctx, uint32_t *wrong);

/* Does the work of vkt_ctx_create_wide, with a given Vulkan loader (NULL: the installed loader). `cpu_gains`: this CPU
 * is faster with wide vectors. */
vkt_result vkt_ctx_open_wide(const vkt_ctx_params *params, const vkt_host *host, const vkt_loader *loader,
                             bool cpu_gains, vkt_ctx **out);

#endif
