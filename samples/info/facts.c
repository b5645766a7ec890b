/* info/facts.c - see facts.h. */
#include "info/facts.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "info/work.h"
#include "kernel/tuning.h"

vkt_result info_find_devices(const vkt_host *host, info_facts *f)
{
    uint32_t n;
    VKT_TRY(vkt_list_devices(host, NULL, 0, &n));
    f->devices = calloc(n + 1, sizeof *f->devices);
    if (!f->devices) return VKT_E_NOMEM;
    VKT_TRY(vkt_list_devices(host, f->devices, n, &f->n_devices));
    f->n_devices = VKT_MIN(f->n_devices, n); /* a device may have been added since the first call */
    return VKT_OK;
}

/* `name`: VKT_NO_<NAME>=1 switches the file off. */
static void find_file(info_file *file, const char *name, bool used)
{
    struct stat s;
    if (!file->path || stat(file->path, &s) != 0) return;
    file->bytes = (uint64_t)s.st_size;
    file->state = used ? INFO_FILE_USED : vkt_env_disabled(name) ? INFO_FILE_OFF : INFO_FILE_IGNORED;
}

static vkt_result find_files(info_facts *f)
{
    VKT_TRY(vkt_cache_path(f->ctx, ".bin", &f->pipelines.path));
    find_file(&f->pipelines, "pipeline_cache", f->ctx->pipeline_cache_hash != 0);
    VKT_TRY(vkt_tuning_path(f->ctx, &f->tuning.path));
    VKT_TRY(vkt_tuning_use(f->ctx));
    f->n_tuned = f->ctx->limits.choices.n_tuned;
    find_file(&f->tuning, "tuning", f->n_tuned != 0);
    return VKT_OK;
}

vkt_result info_find_facts(const vkt_host *host, const info_options *o, info_facts *f)
{
    VKT_TRY(vkt_ctx_create_wide(&(vkt_ctx_params){ .device = o->device }, host, &f->ctx));
    /* vkt_ctx_create_wide may open lavapipe with larger subgroups than the list shows. */
    const vkt_device_info *used = vkt_ctx_device(f->ctx);
    for (uint32_t i = 0; i < f->n_devices; i++)
        if (f->devices[i].index == used->index) f->devices[i] = *used;
    vkt_ctx_limits(f->ctx, &f->limits);
    vkt_ctx_memory(f->ctx, &f->memory);
    f->off = f->ctx->limits.choices.off;
    VKT_TRY(find_files(f));
    return info_find_work(o, f);
}

void info_free(info_facts *f)
{
    for (size_t i = 0; i < f->n_works; i++) free(f->works[i].choices);
    free(f->works);
    free(f->devices);
    if (f->ctx) vkt_free(&f->ctx->host, f->pipelines.path);
    if (f->ctx) vkt_free(&f->ctx->host, f->tuning.path);
    vkt_ctx_destroy(&f->ctx);
}
