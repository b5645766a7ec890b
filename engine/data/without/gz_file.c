/* data/without/gz_file.c - replaces gz_file.c in a build without zlib: plain files only. */
#include "data/gz.h"

vkt_result vkt_gz_open(const vkt_host *h, const char *path, vkt_gz *g)
{
    static const unsigned char magic[2] = { 0x1f, 0x8b }; /* RFC 1952, 2.3.1 */
    unsigned char start[2] = { 0 };
    *g = (vkt_gz){ .h = h };
    VKT_TRY(vkt_file_open(h, path, &g->file));
    vkt_result r = g->file.size < sizeof start ? VKT_OK : vkt_file_read_at(&g->file, 0, start, sizeof start);
    if (r == VKT_OK && memcmp(start, magic, sizeof magic) == 0) r = vkt_fail_without(h, path, "zlib", "ZLIB");
    if (r != VKT_OK) vkt_file_close(&g->file);
    return r;
}

void vkt_gz_close(vkt_gz *g)
{
    vkt_file_close(&g->file);
}

bool vkt_gz_is_plain(const vkt_gz *g)
{
    (void)g;
    return true;
}

vkt_result vkt_gz_read(vkt_gz *g, void *dst, size_t n, size_t *got)
{
    *got = (size_t)VKT_MIN((uint64_t)n, g->file.size - g->total);
    const vkt_result r = vkt_file_read_at(&g->file, g->total, dst, *got);
    if (r != VKT_OK) *got = 0;
    g->total += *got;
    return r;
}

vkt_result vkt_gz_check_end(vkt_gz *g)
{
    (void)g;
    return VKT_OK;
}
