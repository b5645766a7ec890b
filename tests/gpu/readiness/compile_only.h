/* readiness/compile_only.h - a Vulkan loader whose devices compile pipelines and execute nothing.
 *
 * Some drivers can compile for a GPU that the machine does not have: RADV with RADV_FORCE_FAMILY, for instance. Such a
 * driver has no memory and no queue that works. So this loader answers the calls that need the hardware: memory is
 * the host's, a submission ends at once, and command buffers are empty. This loader forwards all other calls to the
 * installed loader. */
#ifndef VKT_READINESS_COMPILE_ONLY_H
#define VKT_READINESS_COMPILE_ONLY_H

#include <jansson.h>

#include "gpu/vk_table.h"

/* Returns the loader, or NULL if no Vulkan is installed. The loader supports one device per process. If the
 * driver has VK_KHR_pipeline_executable_properties, the loader asks the driver to keep the statistics
 * and the assembly of each pipeline. */
const vkt_loader *compile_only_loader(void);

/* Returns {"subgroup": lanes, "statistics": {name: number}, "assembly": text} of a pipeline's first executable, as the
 * driver reports them; NULL: the driver reports none. The caller owns the object. */
json_t *compile_only_describe(VkDevice device, VkPipeline pipeline);

#endif
