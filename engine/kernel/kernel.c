/* kernel/kernel.c - the entries of shaders/kernels.def as a table, and the pipelines made from these entries. */
#include "kernel/kernel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

#include "abi/coop.abi.h"
#include "abi/lanes.abi.h"
#include "abi/storage.abi.h"
#include "base/system.h"
#include "spirv_modules.h" /* generated: vkt_spv_<ID> and vkt_spv_<ID>_texel */

/* The kernels that vkt_kernel_add has added. */
static const vkt_kernel_entry *added;
static uint32_t n_added;

void vkt_kernel_add(const vkt_kernel_entry *entries, uint32_t n)
{
    added = entries;
    n_added = VKT_MIN(n, (uint32_t)(VKT_K_END - VKT_K_COUNT));
}

/* IF_1(x) is x, and IF_0(x) is nothing. So IF(VKT_BUILT_GEMM_TILE, x) is x if this build has the kernel GEMM_TILE, else
 * nothing. */
#define IF_1(...) __VA_ARGS__
#define IF_0(...)
#define IF_OF(built, ...) IF_##built(__VA_ARGS__)
#define IF(built, ...) IF_OF(built, __VA_ARGS__)

/* The indices of the entries in the table of vkt_kernel_get: one for each kernel that this build has. */
enum {
    ROW_NONE,
#define VKT_KERNEL(id, file, defines, reads, writes, texels, flags) IF(VKT_BUILT_##id, ROW_##id, )
#include "kernels.def"
#undef VKT_KERNEL
};

const vkt_kernel_entry *vkt_kernel_get(vkt_kernel_id id)
{
    static const vkt_kernel_entry rows[] = {
        { .name = "NONE" },
#define VKT_KERNEL(id, file, defines, reads, writes, texels, flags) \
    IF(VKT_BUILT_##id, VKT_KERNEL_ROW(id, reads, writes, texels, flags), )
#include "kernels.def"
#undef VKT_KERNEL
    };
    static const uint16_t row_of[VKT_K_COUNT] = {
        ROW_NONE,
#define VKT_KERNEL(id, file, defines, reads, writes, texels, flags) IF(VKT_BUILT_##id, [VKT_K_##id] = ROW_##id, )
#include "kernels.def"
#undef VKT_KERNEL
    };
    const uint32_t i = (uint32_t)id;
    if (i < VKT_COUNT(row_of)) return &rows[row_of[i]];
    return i - VKT_COUNT(row_of) < n_added ? &added[i - VKT_COUNT(row_of)] : &rows[ROW_NONE];
}

/* ---- the pipelines of a context ---- */

typedef struct key {
    uint32_t id, texel, storage, subgroups, n_spec;
    vkt_coop coop;
    uint32_t spec[VKT_MAX_SPECS]; /* 0 from index n_spec on */
} key;

typedef struct entry {
    key key;
    vkt_pipeline pipeline;
} entry;

/* Vulkan objects that several pipelines of one kernel share. A kernel has two of these structs: [1] is for its
 * pipelines with texel loads, and [0] is for its other pipelines. */
typedef struct variant {
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkShaderModule module; /* exists only while vkt_pipelines_get makes pipelines */
} variant;

/* The object behind ctx->kernels: a hash table with open addressing. The slots are pointers, so an entry does not move
 * when the table grows. */
typedef struct cache {
    entry **slots; /* `cap` of them, a power of two; a free slot is NULL */
    size_t n, cap;
    variant variants[VKT_K_END][2];
} cache;

static entry **find(const cache *c, const key *k)
{
    size_t i = (size_t)vkt_hash(VKT_HASH_START, k, sizeof *k) & (c->cap - 1);
    while (c->slots[i] && memcmp(&c->slots[i]->key, k, sizeof *k) != 0) i = (i + 1) & (c->cap - 1);
    return &c->slots[i];
}

/* Makes room for one more entry. At most half of the slots are used. */
static vkt_result make_room(vkt_ctx *ctx, cache *c)
{
    if (c->cap && (c->n + 1) * 2 <= c->cap) return VKT_OK;
    const cache old = { .slots = c->slots, .cap = c->cap };
    const size_t cap = c->cap ? c->cap * 2 : 64;
    entry **slots = vkt_alloc_array(&ctx->host, cap, sizeof(entry *));
    if (!slots) return vkt_fail_nomem(&ctx->host, "the table of pipelines", cap * sizeof(entry *));
    c->slots = slots;
    c->cap = cap;
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i]) *find(c, &old.slots[i]->key) = old.slots[i];
    vkt_free(&ctx->host, old.slots);
    return VKT_OK;
}

static void cache_destroy(vkt_ctx *ctx)
{
    cache *c = ctx->kernels;
    if (!c) return;
    for (size_t i = 0; i < c->cap; i++) {
        if (!c->slots[i]) continue;
        ctx->vk.DestroyPipeline(ctx->device, c->slots[i]->pipeline.handle, ctx->allocation);
        vkt_free(&ctx->host, c->slots[i]);
    }
    for (size_t id = 0; id < VKT_K_END; id++)
        for (size_t texel = 0; texel < 2; texel++) {
            const variant *v = &c->variants[id][texel];
            if (v->layout) ctx->vk.DestroyPipelineLayout(ctx->device, v->layout, ctx->allocation);
            if (v->set_layout) ctx->vk.DestroyDescriptorSetLayout(ctx->device, v->set_layout, ctx->allocation);
        }
    vkt_free(&ctx->host, c->slots);
    vkt_free(&ctx->host, c);
    ctx->kernels = NULL;
}

/* Returns the cache, which is made on first use. If there is no memory, logs that and returns NULL. */
static cache *cache_open(vkt_ctx *ctx)
{
    if (ctx->kernels) return ctx->kernels;
    ctx->kernels = vkt_alloc(&ctx->host, sizeof(cache));
    if (!ctx->kernels) vkt_fail_nomem(&ctx->host, "the table of pipelines", sizeof(cache));
    ctx->kernels_destroy = cache_destroy;
    return ctx->kernels;
}

/* ---- making one pipeline ---- */

static VkDescriptorType type_of(const vkt_kernel_entry *kernel, bool texel, uint32_t binding)
{
    if (binding == 0 && kernel->flags & VKT_KF_SAMPLED) return VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE;
    if (binding == 0 && kernel->flags & VKT_KF_IMAGE) return VK_DESCRIPTOR_TYPE_STORAGE_IMAGE;
    if (binding == 0 && kernel->flags & VKT_KF_FETCHED) return VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER;
    return texel && kernel->texels >> binding & 1 ? VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER
                                                  : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
}

/* Makes a descriptor set layout. A failed Vulkan call leaves the handle undefined, so the handle becomes null, for
 * cache_destroy. */
static vkt_result make_set_layout(vkt_ctx *ctx, const vkt_kernel_entry *kernel, bool texel, variant *v)
{
    VkDescriptorSetLayoutBinding bindings[VKT_MAX_BINDINGS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < VKT_MAX_BINDINGS; i++) {
        if (!((kernel->reads | kernel->writes) >> i & 1)) continue;
        bindings[n++] = (VkDescriptorSetLayoutBinding){
            .binding = i,
            .descriptorType = type_of(kernel, texel, i),
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        };
    }
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = n,
        .pBindings = bindings,
    };
    const VkResult r = ctx->vk.CreateDescriptorSetLayout(ctx->device, &set, ctx->allocation, &v->set_layout);
    if (r != VK_SUCCESS) v->set_layout = VK_NULL_HANDLE;
    return vkt_vk_check(ctx, r, "vkCreateDescriptorSetLayout");
}

static vkt_result make_layouts(vkt_ctx *ctx, const vkt_kernel_entry *kernel, bool texel, variant *v)
{
    if (!v->set_layout) VKT_TRY(make_set_layout(ctx, kernel, texel, v));
    if (v->layout) return VKT_OK;
    const VkPushConstantRange push = { VK_SHADER_STAGE_COMPUTE_BIT, 0, ctx->limits.max_push_bytes };
    const VkPipelineLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &v->set_layout,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &push,
    };
    const VkResult r = ctx->vk.CreatePipelineLayout(ctx->device, &layout, ctx->allocation, &v->layout);
    if (r != VK_SUCCESS) v->layout = VK_NULL_HANDLE;
    return vkt_vk_check(ctx, r, "vkCreatePipelineLayout");
}

/* Makes the shader module of *v, unless it exists. One call of vkt_pipelines_get may make several pipelines with the
 * same *v. They share the module. */
static vkt_result make_module(vkt_ctx *ctx, const vkt_kernel_entry *kernel, bool texel, variant *v)
{
    const vkt_module *spv = texel ? &kernel->spv_texel : &kernel->spv;
    uint32_t *words;
    if (v->module) return VKT_OK;
    VKT_TRY(vkt_module_unpack(&ctx->host, spv, &words));
    const VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = spv->bytes,
        .pCode = words,
    };
    const VkResult r = ctx->vk.CreateShaderModule(ctx->device, &info, ctx->allocation, &v->module);
    if (r != VK_SUCCESS) v->module = VK_NULL_HANDLE;
    vkt_free(&ctx->host, words);
    return vkt_vk_check(ctx, r, "vkCreateShaderModule");
}

static void free_module(vkt_ctx *ctx, variant *v)
{
    if (v->module) ctx->vk.DestroyShaderModule(ctx->device, v->module, ctx->allocation);
    v->module = VK_NULL_HANDLE;
}

/* A pipeline that is to be made. One of the threads of run_jobs makes the Vulkan call. The caller's thread checks
 * `result`. */
typedef struct job {
    const vkt_kernel_entry *kernel;
    variant *variant;
    entry *e;
    VkResult result;
} job;

static VkResult make_pipeline(vkt_ctx *ctx, const vkt_kernel_entry *kernel, const key *k, VkShaderModule module,
                              vkt_pipeline *p)
{
    const bool full = (kernel->flags & (VKT_KF_SUBGROUP | VKT_KF_SUBGROUPS)) != 0;
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = vkt_subgroup_of_flags(&ctx->limits, kernel->flags),
    };
    VkSpecializationMapEntry map[5 + VKT_MAX_SPECS] = {
        { STORAGE_SPEC, offsetof(key, storage), 4 }, { SUBGROUPS_SPEC, offsetof(key, subgroups), 4 },
        { COOP_SPEC_M, offsetof(key, coop.m), 4 },   { COOP_SPEC_N, offsetof(key, coop.n), 4 },
        { COOP_SPEC_K, offsetof(key, coop.k), 4 },
    };
    for (uint32_t i = 0; i < k->n_spec; i++)
        map[5 + i] = (VkSpecializationMapEntry){ i, (uint32_t)offsetof(key, spec) + i * 4, 4 };
    const VkSpecializationInfo spec = { 5 + k->n_spec, map, sizeof *k, k };
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = { .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                   .pNext = full && ctx->subgroup_size_varies ? &size : NULL,
                   .flags = full ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT : 0,
                   .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                   .module = module,
                   .pName = "main",
                   .pSpecializationInfo = &spec },
        .layout = p->layout,
    };
    return ctx->vk.CreateComputePipelines(ctx->device, ctx->pipeline_cache, 1, &info, ctx->allocation, &p->handle);
}

static void run_job(vkt_ctx *ctx, job *j)
{
    j->result = make_pipeline(ctx, j->kernel, &j->e->key, j->variant->module, &j->e->pipeline);
    if (j->result != VK_SUCCESS) j->e->pipeline.handle = VK_NULL_HANDLE;
}

/* Gives the pipeline a name for debuggers. If the Vulkan call of run_job failed, logs the failure and returns an
 * error. */
static vkt_result finish_job(vkt_ctx *ctx, const job *j)
{
    const key *k = &j->e->key;
    char what[96];
    snprintf(what, sizeof what, "vkCreateComputePipelines for %s%s", j->kernel->name, k->texel ? " (texel)" : "");
    VKT_TRY(vkt_vk_check(ctx, j->result, what));
    char name[96];
    size_t n = (size_t)snprintf(name, sizeof name, "%s%s", j->kernel->name, k->texel ? ".texel" : "");
    for (uint32_t i = 0; i < k->n_spec && n < sizeof name; i++)
        n += (size_t)snprintf(name + n, sizeof name - n, "%c%u", i ? ',' : ' ', k->spec[i]);
    if (k->storage && n < sizeof name) snprintf(name + n, sizeof name - n, " storage %x", k->storage);
    vkt_name(ctx, VK_OBJECT_TYPE_PIPELINE, (uint64_t)j->e->pipeline.handle, name);
    vkt_log_line(&ctx->host, VKT_LOG_DEBUG, "pipeline %s", name);
    return VKT_OK;
}

/* ---- making many pipelines: in several threads, because a driver compiles in vkCreateComputePipelines ---- */

enum { MAX_THREADS = 16 };

typedef struct compile_pool {
    vkt_ctx *ctx;
    job *jobs;
    uint32_t n;
    atomic_uint next;
} compile_pool;

static void *work(void *user)
{
    compile_pool *c = user;
    for (uint32_t i; (i = atomic_fetch_add(&c->next, 1)) < c->n;) run_job(c->ctx, &c->jobs[i]);
    return NULL;
}

/* Runs all jobs, even if some fail. Returns the result of the first job in the list that has failed, so the result does
 * not depend on which thread is faster. If the validation layer may log, all jobs run on this thread, because the
 * host's log function must get one call at a time. */
static vkt_result run_jobs(vkt_ctx *ctx, job *jobs, uint32_t n)
{
    compile_pool c = { .ctx = ctx, .jobs = jobs, .n = n };
    pthread_t threads[MAX_THREADS];
    const uint32_t most = VKT_MIN(n, VKT_MIN(vkt_cpu_count(), MAX_THREADS + 1u));
    uint32_t others = 0;
    while (!ctx->messenger && others + 1 < most && pthread_create(&threads[others], NULL, work, &c) == 0) others++;
    work(&c);
    while (others) pthread_join(threads[--others], NULL);
    for (uint32_t i = 0; i < n; i++) VKT_TRY(finish_job(ctx, &jobs[i]));
    return VKT_OK;
}

/* Returns the sizes of the device's cooperative matrices: of bf16 for a VKT_KF_BFLOAT kernel, else of f16. */
static const vkt_coop *coop_of(const vkt_ctx *ctx, const vkt_kernel_entry *kernel)
{
    return kernel->flags & VKT_KF_BFLOAT ? &ctx->limits.coop_bf16 : &ctx->limits.coop;
}

/* Checks the arguments, because a driver need not check them. */
static vkt_result check(vkt_ctx *ctx, vkt_kernel_id id, const vkt_kernel_entry *kernel, const uint32_t *spec,
                        uint32_t n_spec)
{
    if (!vkt_kernel_is_built(id))
        return vkt_fail(&ctx->host, VKT_E_UNSUPPORTED, "vktrain was built without the kernel %s: add it to VKT_KERNELS",
                        vkt_kernel_name(id));
    if (kernel == vkt_kernel_get(VKT_K_NONE)) return vkt_fail(&ctx->host, VKT_E_ARG, "there is no kernel %d", (int)id);
    if (n_spec < 1 || n_spec > VKT_MAX_SPECS)
        return vkt_fail(&ctx->host, VKT_E_ARG, "kernel %s: want 1 to %u specialisation constants, got %u", kernel->name,
                        VKT_MAX_SPECS, n_spec);
    if (spec[0] == 0 || spec[0] > ctx->limits.max_workgroup_lanes)
        return vkt_fail(&ctx->host, VKT_E_ARG, "kernel %s: want 1 to %u lanes in a work group, got %u", kernel->name,
                        ctx->limits.max_workgroup_lanes, spec[0]);
    const uint32_t size = vkt_subgroup_of_flags(&ctx->limits, kernel->flags), subgroups = spec[0] / size;
    if ((kernel->flags & VKT_KF_SUBGROUP) && spec[0] != size)
        return vkt_fail(&ctx->host, VKT_E_ARG, "kernel %s: want one full subgroup of %u lanes, got %u", kernel->name,
                        size, spec[0]);
    if (((kernel->flags & VKT_KF_COOP) && !coop_of(ctx, kernel)->m) ||
        ((kernel->flags & VKT_KF_COOP2) && !ctx->limits.coop2.m))
        return vkt_fail(&ctx->host, VKT_E_ARG, "kernel %s: want cooperative matrices, which the device lacks",
                        kernel->name);
    if ((kernel->flags & VKT_KF_SUBGROUPS) && (spec[0] % size || subgroups < 1 || subgroups > SUBGROUPS_MAX))
        return vkt_fail(&ctx->host, VKT_E_ARG, "kernel %s: want 1 to %u full subgroups of %u lanes, got %u lanes",
                        kernel->name, SUBGROUPS_MAX, size, spec[0]);
    return VKT_OK;
}

typedef struct job_list {
    job *list;
    size_t n, cap;
} job_list;

/* Adds a job that makes the pipeline of k. */
static vkt_result add_job(vkt_ctx *ctx, cache *c, const vkt_kernel_entry *kernel, const key *k, job_list *jobs)
{
    variant *v = &c->variants[k->id][k->texel];
    VKT_TRY(make_layouts(ctx, kernel, k->texel, v));
    VKT_TRY(vkt_grow(&ctx->host, &jobs->list, jobs->n, &jobs->cap, sizeof *jobs->list));
    entry *e = vkt_alloc(&ctx->host, sizeof *e);
    if (!e) return vkt_fail_nomem(&ctx->host, "a pipeline", sizeof *e);
    *e = (entry){ .key = *k,
                  .pipeline = {
                      .layout = v->layout, .set_layout = v->set_layout, .texels = k->texel ? kernel->texels : 0 } };
    jobs->list[jobs->n++] = (job){ .kernel = kernel, .variant = v, .e = e };
    return make_module(ctx, kernel, k->texel, v);
}

/* Looks for the pipeline in the cache and among the jobs. If neither has it, adds a job that makes it. */
static vkt_result want(vkt_ctx *ctx, cache *c, const vkt_pipeline_want *w, job_list *jobs, const vkt_pipeline **out)
{
    const vkt_kernel_entry *kernel = vkt_kernel_get(w->id);
    VKT_TRY(check(ctx, w->id, kernel, w->spec, w->n_spec));
    key k = { .id = (uint32_t)w->id, .texel = w->texel && kernel->texels, .storage = w->storage, .n_spec = w->n_spec };
    if (k.texel && !ctx->limits.traits->words64) k.storage |= STORAGE_NO_WORDS64;
    if (kernel->flags & VKT_KF_SUBGROUPS) k.subgroups = w->spec[0] / vkt_subgroup_of_flags(&ctx->limits, kernel->flags);
    if (kernel->flags & VKT_KF_COOP) k.coop = *coop_of(ctx, kernel);
    memcpy(k.spec, w->spec, w->n_spec * sizeof *w->spec);
    VKT_TRY(make_room(ctx, c));
    entry *e = *find(c, &k);
    for (size_t i = 0; i < jobs->n && !e; i++)
        if (memcmp(&jobs->list[i].e->key, &k, sizeof k) == 0) e = jobs->list[i].e;
    if (!e) {
        VKT_TRY(add_job(ctx, c, kernel, &k, jobs));
        e = jobs->list[jobs->n - 1].e;
    }
    *out = &e->pipeline;
    return VKT_OK;
}

/* Moves the finished pipelines into the cache. */
static vkt_result keep(vkt_ctx *ctx, cache *c, job_list *jobs)
{
    for (size_t i = 0; i < jobs->n; i++) {
        VKT_TRY(make_room(ctx, c));
        *find(c, &jobs->list[i].e->key) = jobs->list[i].e;
        c->n++;
        jobs->list[i].e = NULL;
    }
    return VKT_OK;
}

vkt_result vkt_pipelines_get(vkt_ctx *ctx, const vkt_pipeline_want *wants, uint32_t n, const vkt_pipeline **out)
{
    cache *c = cache_open(ctx);
    if (!c) return VKT_E_NOMEM;
    job_list jobs = { .n = 0 };
    vkt_result r = VKT_OK;
    for (uint32_t i = 0; i < n && r == VKT_OK; i++) r = want(ctx, c, &wants[i], &jobs, &out[i]);
    if (r == VKT_OK) r = run_jobs(ctx, jobs.list, (uint32_t)jobs.n);
    if (r == VKT_OK) r = keep(ctx, c, &jobs);
    for (size_t i = 0; i < jobs.n; i++) {
        entry *e = jobs.list[i].e; /* NULL: `keep` has moved the pipeline into the cache */
        free_module(ctx, jobs.list[i].variant);
        if (e && e->pipeline.handle) ctx->vk.DestroyPipeline(ctx->device, e->pipeline.handle, ctx->allocation);
        vkt_free(&ctx->host, e);
    }
    vkt_free(&ctx->host, jobs.list);
    return r;
}

vkt_result vkt_pipeline_get(vkt_ctx *ctx, vkt_kernel_id id, bool texel, uint32_t storage, const uint32_t *spec,
                            uint32_t n_spec, const vkt_pipeline **out)
{
    const vkt_pipeline *found;
    VKT_TRY(vkt_pipelines_get(ctx, &(vkt_pipeline_want){ id, texel, storage, spec, n_spec }, 1, &found));
    *out = found;
    return VKT_OK;
}
