/* kernel/tuning.c - see tuning.h. */
#include "kernel/tuning.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "kernel/kernel.h"

#define MAX_FILE_BYTES ((uint64_t)1 << 20)
#define FIRST_LINE "vktrain tuning 2\n"
#define OLD_FIRST_LINE "vktrain tuning 1\n" /* of a file of version 1; must be as long as FIRST_LINE */
#define CHECK_LINE_BYTES 23u                /* "check " and 16 digits and a newline */

/* ---- text ---- */

void vkt_tuning_encode(const vkt_tuning_id *id, const vkt_tuned *list, size_t n, vkt_text *out)
{
    vkt_text_add(out, FIRST_LINE "device %s\nshaders %016llx\n", id->device, (unsigned long long)id->shaders);
    for (size_t i = 0; i < n; i++) {
        const char *comma = " ";
        vkt_text_add(out, "%016llx", (unsigned long long)list[i].key);
        for (int v = 0; v < VKT_V_COUNT; v++)
            if (list[i].variants >> v & 1) {
                vkt_text_add(out, "%s%s", comma, vkt_variant_name((vkt_variant)v));
                comma = ",";
            }
        const vkt_tile t = list[i].tile;
        if (t.m) vkt_text_add(out, " %ux%u,%ux%u", t.m, t.n, t.lane_m, t.lane_n);
        vkt_text_add(out, "\n");
    }
    if (!out->failed)
        vkt_text_add(out, "check %016llx\n", (unsigned long long)vkt_hash(VKT_HASH_START, out->s, out->len));
}

/* Reads 16 hexadecimal digits, lower case. */
static bool parse_hex(const char *at, uint64_t *out)
{
    *out = 0;
    for (int i = 0; i < 16; i++) {
        const char *digits = "0123456789abcdef", *d = at[i] ? strchr(digits, at[i]) : NULL;
        if (!d) return false;
        *out = *out << 4 | (uint64_t)(d - digits);
    }
    return true;
}

/* Reads a tile such as "64x64,8x4" that ends the line. */
static bool parse_tile(const char *at, const char *end, vkt_tile *out)
{
    unsigned v[4];
    char line[24], text[40];
    const size_t n = (size_t)(end - at);
    if (n >= sizeof line) return false;
    memcpy(line, at, n); /* a copy, because sscanf may first compute the length of all the text that it gets */
    line[n] = 0;
    if (sscanf(line, "%3ux%3u,%2ux%2u", &v[0], &v[1], &v[2], &v[3]) != 4) return false;
    for (int i = 0; i < 4; i++)
        if (v[i] == 0 || v[i] > 128) return false;
    *out = (vkt_tile){ (uint16_t)v[0], (uint16_t)v[1], (uint16_t)v[2], (uint16_t)v[3] };
    snprintf(text, sizeof text, "%ux%u,%ux%u", v[0], v[1], v[2], v[3]);
    return strcmp(line, text) == 0; /* refuses blanks, signs and zeros in front of a number */
}

/* Reads variants such as "tile,packed_a", up to `end`. */
static bool parse_variants(const char *at, const char *end, uint64_t *out)
{
    *out = 0;
    while (at < end) {
        char name[32];
        vkt_variant v;
        const size_t n = strcspn(at, ", \n");
        if (n >= sizeof name) return false;
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        if (!vkt_variant_find(name, &v)) return false;
        *out |= (uint64_t)1 << v;
        at += n + 1;
    }
    return *out != 0;
}

static bool check_is_right(const char *text, size_t n)
{
    uint64_t want;
    const char *check = text + n - CHECK_LINE_BYTES;
    return strncmp(check, "check ", 6) == 0 && text[n - 1] == '\n' && parse_hex(check + 6, &want) &&
           want == vkt_hash(VKT_HASH_START, text, n - CHECK_LINE_BYTES);
}

/* Returns whether the line is `name` followed by `want`. If it is, moves *at to the next line. */
static bool line_is(const char **at, const char *name, const char *want)
{
    const size_t a = strlen(name), b = strlen(want);
    if (strncmp(*at, name, a) != 0 || strncmp(*at + a, want, b) != 0 || (*at)[a + b] != '\n') return false;
    *at += a + b + 1;
    return true;
}

/* Reads a line that ends at `end`: key, variants and maybe a tile. */
static bool parse_entry(const char *at, const char *end, vkt_tuned *out)
{
    *out = (vkt_tuned){ 0 };
    if (!parse_hex(at, &out->key) || at[16] != ' ') return false;
    const char *variants = at + 17, *blank = memchr(variants, ' ', (size_t)(end - variants));
    if (blank && !parse_tile(blank + 1, end, &out->tile)) return false;
    return parse_variants(variants, blank ? blank : end, &out->variants);
}

static vkt_result parse_entries(const vkt_host *h, const char *at, const char *end, vkt_tuned **list, size_t *n,
                                const char **fault)
{
    size_t cap = 0;
    while (at < end && !*fault) {
        vkt_tuned entry;
        const char *line_end = strchr(at, '\n');
        VKT_TRY(vkt_grow(h, list, *n, &cap, sizeof **list));
        if (!parse_entry(at, line_end, &entry) || (*n && (*list)[*n - 1].key >= entry.key))
            *fault = "damaged";
        else
            (*list)[(*n)++] = entry;
        at = line_end + 1;
    }
    return VKT_OK;
}

vkt_result vkt_tuning_decode(const vkt_host *h, const vkt_tuning_id *id, const char *text, size_t n_bytes,
                             vkt_tuned **list, size_t *n, const char **fault)
{
    char shaders[24];
    const char *at = text, *first = FIRST_LINE;
    *list = NULL;
    *n = 0;
    *fault = NULL;
    snprintf(shaders, sizeof shaders, "%016llx", (unsigned long long)id->shaders);
    if (n_bytes < CHECK_LINE_BYTES || !check_is_right(text, n_bytes) || memchr(text, 0, n_bytes))
        *fault = "truncated or damaged";
    else if (strncmp(at, first, strlen(first)) != 0 && strncmp(at, OLD_FIRST_LINE, strlen(first)) != 0)
        *fault = "of another version";
    else if (at += strlen(first), !line_is(&at, "device ", id->device))
        *fault = "of another device or driver";
    else if (!line_is(&at, "shaders ", shaders))
        *fault = "of other shaders";
    vkt_result r = VKT_OK;
    if (!*fault) r = parse_entries(h, at, text + n_bytes - CHECK_LINE_BYTES, list, n, fault);
    if (*fault || r != VKT_OK) {
        vkt_free(h, *list);
        *list = NULL;
        *n = 0;
    }
    return r;
}

/* ---- the file ---- */

static vkt_tuning_id id_of(vkt_ctx *ctx)
{
    VkPhysicalDeviceProperties p;
    ctx->vk.GetPhysicalDeviceProperties(ctx->phys, &p);
    vkt_tuning_id id = { .shaders = VKT_HASH_START };
    size_t n =
        (size_t)snprintf(id.device, sizeof id.device, "%08x-%08x-%08x-", p.vendorID, p.deviceID, p.driverVersion);
    for (size_t i = 0; i < VK_UUID_SIZE; i++)
        n += (size_t)snprintf(id.device + n, sizeof id.device - n, "%02x", p.pipelineCacheUUID[i]);
    snprintf(id.device + n, sizeof id.device - n, "-%u", ctx->limits.subgroup_size);
    for (int k = VKT_K_NONE + 1; k < VKT_K_COUNT; k++) {
        const vkt_kernel_entry *kernel = vkt_kernel_get((vkt_kernel_id)k);
        id.shaders = vkt_hash(id.shaders, kernel->spv.data, kernel->spv.stored);
        if (kernel->texels) id.shaders = vkt_hash(id.shaders, kernel->spv_texel.data, kernel->spv_texel.stored);
    }
    return id;
}

vkt_result vkt_tuning_path(vkt_ctx *ctx, char **path)
{
    *path = NULL;
    return ctx->keeps_cache ? vkt_cache_path(ctx, VKT_TUNING_SUFFIX, path) : VKT_OK;
}

/* Reads the file's entries. If there is no file, *n is 0. If the file cannot be used, *n is 0, and the function logs a
 * warning. VKT_E_NOMEM. */
static vkt_result read_file(vkt_ctx *ctx, const char *path, vkt_tuned **list, size_t *n)
{
    vkt_host quiet = ctx->host; /* a host that logs nothing, because a missing file is not an error */
    quiet.log_level = VKT_LOG_NONE;
    void *text = NULL;
    size_t n_bytes;
    const char *fault = NULL;
    *list = NULL;
    *n = 0;
    vkt_result r = vkt_file_read(&quiet, path, MAX_FILE_BYTES, &text, &n_bytes);
    if (r == VKT_E_NOT_FOUND) return VKT_OK;
    if (r == VKT_E_NOMEM) return vkt_fail_nomem(&ctx->host, "the tuning file", 0);
    if (r != VKT_OK) {
        fault = "not readable";
    } else {
        const vkt_tuning_id id = id_of(ctx);
        r = vkt_tuning_decode(&ctx->host, &id, text, n_bytes, list, n, &fault);
        if (r != VKT_OK) {
            vkt_free(&ctx->host, text);
            return r;
        }
    }
    vkt_free(&ctx->host, text);
    if (fault)
        vkt_log_line(&ctx->host, VKT_LOG_WARN, "tuning file \"%s\" is %s: ignored (vkt-bench --tune makes a new one)",
                     path, fault);
    else
        vkt_log_line(&ctx->host, VKT_LOG_DEBUG, "tuning file \"%s\": %zu entries", path, *n);
    return VKT_OK;
}

static void use(vkt_ctx *ctx, vkt_tuned *list, size_t n)
{
    vkt_free(&ctx->host, ctx->tuned);
    ctx->tuned = list;
    ctx->limits.choices.tuned = list;
    ctx->limits.choices.n_tuned = n;
}

vkt_result vkt_tuning_use(vkt_ctx *ctx)
{
    char *path;
    vkt_tuned *list;
    size_t n;
    if (ctx->has_read_tuning || vkt_env_disabled("tuning")) return VKT_OK;
    VKT_TRY(vkt_tuning_path(ctx, &path));
    if (path) {
        const vkt_result r = read_file(ctx, path, &list, &n);
        vkt_free(&ctx->host, path);
        if (r != VKT_OK) return r;
        use(ctx, list, n);
    }
    ctx->has_read_tuning = true;
    return VKT_OK;
}

/* ---- adding ---- */

static int by_key(const void *a, const void *b)
{
    const uint64_t x = ((const vkt_tuned *)a)->key, y = ((const vkt_tuned *)b)->key;
    return (x > y) - (x < y);
}

/* Adds `more` to the list of *n entries; a new entry replaces an old one with the same key. Sorts the list by rising
 * key. */
static vkt_result merge(const vkt_host *h, vkt_tuned **list, size_t *n, const vkt_tuned *more, size_t n_more)
{
    vkt_tuned *all = vkt_alloc_array(h, *n + n_more + 1, sizeof *all);
    if (!all) return vkt_fail_nomem(h, "the tuning file", (*n + n_more) * sizeof *all);
    size_t count = *n;
    if (count) memcpy(all, *list, count * sizeof *all);
    for (size_t i = 0; i < n_more; i++) {
        size_t k = 0;
        while (k < count && all[k].key != more[i].key) k++;
        all[k] = more[i];
        count += k == count;
    }
    qsort(all, count, sizeof *all, by_key);
    vkt_free(h, *list);
    *list = all;
    *n = count;
    return VKT_OK;
}

static vkt_result write_file(vkt_ctx *ctx, char *path, const vkt_tuned *list, size_t n)
{
    const vkt_tuning_id id = id_of(ctx);
    vkt_text t = { .h = &ctx->host };
    vkt_tuning_encode(&id, list, n, &t);
    vkt_cache_make_directories(path);
    const vkt_result r =
        t.failed ? vkt_fail_nomem(&ctx->host, "the tuning file", t.len) : vkt_file_write(&ctx->host, path, t.s, t.len);
    vkt_text_free(&t);
    return r;
}

vkt_result vkt_tuning_add(vkt_ctx *ctx, const vkt_tuned *entries, size_t n)
{
    char *path;
    vkt_tuned *list = NULL;
    size_t count = 0;
    VKT_TRY(vkt_tuning_path(ctx, &path));
    if (!path)
        return vkt_fail(&ctx->host, VKT_E_STATE, "tuning: there is no cache directory, or this context keeps none");
    vkt_result r = read_file(ctx, path, &list, &count);
    if (r == VKT_OK) r = merge(&ctx->host, &list, &count, entries, n);
    if (r == VKT_OK) r = write_file(ctx, path, list, count);
    vkt_free(&ctx->host, path);
    if (r == VKT_OK)
        use(ctx, list, count);
    else
        vkt_free(&ctx->host, list);
    return r;
}
