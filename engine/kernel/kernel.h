/* kernel/kernel.h - the entries of shaders/kernels.def with their SPIR-V, and the pipeline for a kernel's id. An op
 * chooses the kernel for a node. An entry has one or two modules. The second module is the texel variant, which reads
 * some bindings by texel loads. The caller chooses the module by `texel`. */
#ifndef VKT_KERNEL_H
#define VKT_KERNEL_H

#include "base/built.h"
#include "base/spirv.h"
#include "gpu/gpu.h"
#include "kernel/ids.h"
#include "kernel/module.h"

/* An entry of kernels.def, or of the list of vkt_kernel_add. Masks have bit i for binding i. */
typedef struct vkt_kernel_entry {
    const char *name;          /* for instance "CONV2D_TILE" */
    uint32_t reads, writes;    /* bindings that the shader reads, and those that it writes (a binding may be in both) */
    uint32_t texels;           /* bindings that the texel variant reads through a texel buffer; 0: no texel variant */
    uint32_t flags;            /* VKT_KF_* */
    vkt_module spv, spv_texel; /* SPIR-V; spv_texel has 0 bytes if texels is 0 */
} vkt_kernel_entry;
/* Returns the entry of an id. For an id without a kernel, and for a kernel that this build does not have, returns
 * the entry of VKT_K_NONE. */
const vkt_kernel_entry *vkt_kernel_get(vkt_kernel_id id);
/* Adds kernels that are not in the library, with the ids VKT_K_COUNT to VKT_K_COUNT + n - 1; n is at most
 * VKT_K_END - VKT_K_COUNT. The list has no lock, so call this function before other threads use kernels. A second call
 * replaces the list. The array `rows` must stay valid. tools/tools.h adds the kernels of tests and vkt-bench. */
void vkt_kernel_add(const vkt_kernel_entry *rows, uint32_t n);
/* The initialiser of an entry whose modules are vkt_spv_<id> and vkt_spv_<id>_texel. */
#define VKT_KERNEL_ROW(id, reads_, writes_, texels_, flags_)                                                    \
    {                                                                                                           \
        .name = #id, .reads = (reads_), .writes = (writes_), .texels = VKT_HAS_TEXELS ? (texels_) : 0,          \
        .flags = (flags_), .spv = VKT_MODULE_OF(vkt_spv_##id), .spv_texel = VKT_MODULE_OF(vkt_spv_##id##_texel) \
    }
#define VKT_MODULE_OF(array)               \
    {                                      \
        array, sizeof array, array##_bytes \
    }

typedef struct vkt_pipeline {
    VkPipeline handle;
    VkPipelineLayout layout; /* push constants: limits.max_push_bytes (at least 128), compute stage, offset 0 */
    VkDescriptorSetLayout set_layout; /* descriptor set 0 has the bindings that the shader reads or writes. The bindings
                                       * in `texels` are texel buffers */
    uint32_t texels;                  /* mask of the bindings that are STORAGE_TEXEL_BUFFER; 0: none */
} vkt_pipeline;

/* Returns the pipeline for an entry and its constants. spec[i] is constant_id i, and constant_id 0 is the work-group
 * size in x. The pipeline is made on first use and owned by the context; the pointer stays valid as long as the
 * context. `texel` asks for the texel variant (ignored if there is none). `storage` is described in abi/storage.abi.h.
 * Errors: VKT_E_ARG, VKT_E_UNSUPPORTED (this build does not have the kernel), and those of vkt_module_unpack and
 * vkt_vk_check. */
vkt_result vkt_pipeline_get(vkt_ctx *ctx, vkt_kernel_id id, bool texel, uint32_t storage, const uint32_t *spec,
                            uint32_t n_spec, const vkt_pipeline **out);
/* The arguments of vkt_pipeline_get for one of the n pipelines that vkt_pipelines_get returns. Pipelines that do not
 * exist yet are made in parallel, by at most 17 threads and at most one per core. If the validation layer may log, one
 * thread makes them. Wrong arguments are found before any pipeline is made. If the driver cannot make several of the
 * pipelines, vkt_pipelines_get returns the error of the one that is first in `wants`. */
typedef struct vkt_pipeline_want {
    vkt_kernel_id id;
    bool texel;
    uint32_t storage;
    const uint32_t *spec;
    uint32_t n_spec;
} vkt_pipeline_want;
vkt_result vkt_pipelines_get(vkt_ctx *ctx, const vkt_pipeline_want *wants, uint32_t n, const vkt_pipeline **out);

/* shader.c: makes the pipeline of an application's shader, and the layouts of this pipeline. The caller must call
 * vkt_shader_pipeline_destroy, also after an error. Errors are those of vkt_vk_check. */
vkt_result vkt_shader_pipeline_make(vkt_ctx *ctx, const vkt_shader *s, vkt_pipeline *out);
void vkt_shader_pipeline_destroy(vkt_ctx *ctx, vkt_pipeline *p);

#endif
