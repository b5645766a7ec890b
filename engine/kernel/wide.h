/* kernel/wide.h - vectors wider than a CPU driver's default, and the test that they compute what they should. */
#ifndef VKT_WIDE_H
#define VKT_WIDE_H

#include "gpu/gpu.h"

/* Runs shaders/kernel/self_test.comp, on any device. *wrong is how many of its numbers are not what the host makes of
 * them. */
vkt_result vkt_self_test(vkt_ctx *ctx, uint32_t *wrong);

/* vkt_ctx_create_wide with another Vulkan below it (NULL: the installed one), on a CPU of which the caller says whether
 * wide vectors are worth trying. */
vkt_result vkt_ctx_open_wide(const vkt_ctx_params *params, const vkt_host *host, const vkt_loader *loader,
                             bool cpu_gains, vkt_ctx **out);

#endif
