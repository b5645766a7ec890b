/* gpu/pipeline_cache.c - stores compiled pipelines in a file between runs of a program.
 *
 * There is one file per device, driver and subgroup size, in the folder vktrain of the user's cache folder. (A CPU
 * driver can run with several subgroup sizes: see kernel/wide.c.) The file has our header, and then the driver's data.
 * A file that is truncated, damaged or from another driver is ignored. */
#include "gpu/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/paths.h"
#include "base/system.h"

#define MAX_FILE_BYTES ((uint64_t)256 << 20)
enum { MAX_FOLDER_BYTES = 4096 };

typedef struct file_header {
    char magic[8];
    uint64_t bytes; /* size of the driver's data behind the header */
    uint64_t hash;
} file_header;

static const char magic[8] = { 'v', 'k', 't', 'p', 'i', 'p', 'e', '1' };

/* Returns a host without a log. Problems with the file are no errors: file operations log nothing, and one debug line
 * reports the result. */
static vkt_host silent(const vkt_ctx *ctx)
{
    vkt_host h = ctx->host;
    h.log_level = VKT_LOG_NONE;
    return h;
}

vkt_result vkt_cache_path(vkt_ctx *ctx, const char *suffix, char **path)
{
    VkPhysicalDeviceProperties p;
    ctx->vk.GetPhysicalDeviceProperties(ctx->phys, &p);
    char folder[MAX_FOLDER_BYTES];
    *path = NULL;
    if (vkt_user_cache(folder, sizeof folder) == 0) return VKT_OK;
    vkt_text t = { .h = &ctx->host };
    vkt_text_add(&t, "%s/vktrain/%08x-%08x-%08x-", folder, p.vendorID, p.deviceID, p.driverVersion);
    for (size_t i = 0; i < VK_UUID_SIZE; i++) vkt_text_add(&t, "%02x", p.pipelineCacheUUID[i]);
    vkt_text_add(&t, "-%u%s", ctx->limits.subgroup_size, suffix);
    if (t.failed) {
        vkt_text_free(&t);
        return vkt_fail_nomem(&ctx->host, "the name of a cache file", 0);
    }
    *path = t.s;
    return VKT_OK;
}

/* Returns the fault in the content of a file; NULL: none. */
static const char *fault_of(vkt_ctx *ctx, const unsigned char *data, size_t n)
{
    file_header h;
    VkPipelineCacheHeaderVersionOne vk;
    if (n < sizeof h) return "too short";
    memcpy(&h, data, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) != 0) return "no pipeline cache";
    if (h.bytes != n - sizeof h) return "truncated";
    if (h.hash != vkt_hash(VKT_HASH_START, data + sizeof h, n - sizeof h)) return "damaged";
    if (h.bytes < sizeof vk) return "too short";
    memcpy(&vk, data + sizeof h, sizeof vk);
    VkPhysicalDeviceProperties p;
    ctx->vk.GetPhysicalDeviceProperties(ctx->phys, &p);
    const bool ours = vk.headerSize >= sizeof vk && vk.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
                      vk.vendorID == p.vendorID && vk.deviceID == p.deviceID &&
                      memcmp(vk.pipelineCacheUUID, p.pipelineCacheUUID, VK_UUID_SIZE) == 0;
    return ours ? NULL : "of another device or driver";
}

static vkt_result create(vkt_ctx *ctx, const void *data, size_t n)
{
    const VkPipelineCacheCreateInfo info = { .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                             .initialDataSize = n,
                                             .pInitialData = data };
    const VkResult r = ctx->vk.CreatePipelineCache(ctx->device, &info, ctx->allocation, &ctx->pipeline_cache);
    if (r != VK_SUCCESS) ctx->pipeline_cache = VK_NULL_HANDLE;
    if (r != VK_SUCCESS && n) return create(ctx, NULL, 0); /* the driver may have rejected the data */
    return vkt_vk_check(ctx, r, "vkCreatePipelineCache");
}

vkt_result vkt_pipeline_cache_open(vkt_ctx *ctx, bool keep)
{
    ctx->keeps_cache = keep;
    if (!keep || vkt_env_disabled("pipeline_cache")) return create(ctx, NULL, 0);
    VKT_TRY(vkt_cache_path(ctx, ".bin", &ctx->pipeline_cache_path));
    if (!ctx->pipeline_cache_path) return create(ctx, NULL, 0);
    const vkt_host quiet = silent(ctx);
    void *data = NULL;
    size_t n = 0;
    const vkt_result read = vkt_file_read(&quiet, ctx->pipeline_cache_path, MAX_FILE_BYTES, &data, &n);
    if (read == VKT_E_NOMEM) return vkt_fail_nomem(&ctx->host, "the pipeline cache", 0);
    const char *fault = read == VKT_E_NOT_FOUND ? "not there"
                        : read != VKT_OK        ? "not readable"
                                                : fault_of(ctx, data, n);
    vkt_log_line(&ctx->host, VKT_LOG_DEBUG, "pipeline cache \"%s\": %s", ctx->pipeline_cache_path,
                 fault ? fault : "used");
    const size_t skip = sizeof(file_header);
    const vkt_result r = fault ? create(ctx, NULL, 0) : create(ctx, (const char *)data + skip, n - skip);
    if (!fault) ctx->pipeline_cache_hash = vkt_hash(VKT_HASH_START, (const char *)data + skip, n - skip);
    vkt_free(&ctx->host, data);
    return r;
}

void vkt_cache_make_directories(char *path)
{
    vkt_folder_make_above(path, true); /* true: private folders, as the XDG Base Directory Specification wants */
}

/* Makes new content for the file: our header and the driver's data. The caller frees it. Returns NULL if the driver
 * returns no data or an error, or if there is no memory. */
static void *collect(vkt_ctx *ctx, const vkt_host *quiet, size_t *bytes)
{
    size_t n = 0;
    if (ctx->vk.GetPipelineCacheData(ctx->device, ctx->pipeline_cache, &n, NULL) != VK_SUCCESS || n == 0) return NULL;
    file_header h = { .bytes = 0 };
    char *file = vkt_alloc(quiet, sizeof h + n);
    if (!file) return NULL;
    if (ctx->vk.GetPipelineCacheData(ctx->device, ctx->pipeline_cache, &n, file + sizeof h) != VK_SUCCESS) {
        vkt_free(quiet, file);
        return NULL;
    }
    memcpy(h.magic, magic, sizeof magic);
    h.bytes = n;
    h.hash = vkt_hash(VKT_HASH_START, file + sizeof h, n);
    memcpy(file, &h, sizeof h);
    *bytes = sizeof h + n;
    return file;
}

static void save(vkt_ctx *ctx)
{
    const vkt_host quiet = silent(ctx);
    size_t n = 0;
    char *file = collect(ctx, &quiet, &n);
    if (!file) return;
    file_header h;
    memcpy(&h, file, sizeof h);
    if (h.hash != ctx->pipeline_cache_hash) {
        vkt_cache_make_directories(ctx->pipeline_cache_path);
        const vkt_result r = vkt_file_write(&quiet, ctx->pipeline_cache_path, file, n);
        vkt_log_line(&ctx->host, VKT_LOG_DEBUG, "pipeline cache \"%s\": %s", ctx->pipeline_cache_path,
                     r == VKT_OK ? "written" : "cannot be written");
    }
    vkt_free(&quiet, file);
}

void vkt_pipeline_cache_close(vkt_ctx *ctx)
{
    if (ctx->pipeline_cache && ctx->pipeline_cache_path && ctx->lost == VKT_OK) save(ctx);
    if (ctx->pipeline_cache) ctx->vk.DestroyPipelineCache(ctx->device, ctx->pipeline_cache, ctx->allocation);
    ctx->pipeline_cache = VK_NULL_HANDLE;
    vkt_free(&ctx->host, ctx->pipeline_cache_path);
    ctx->pipeline_cache_path = NULL;
}
