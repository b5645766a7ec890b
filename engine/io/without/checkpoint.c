/* io/without/checkpoint.c - replaces checkpoint.c in a build without zlib. Each checkpoint has a checksum, which zlib
 * computes. So this build writes and opens no checkpoint. */
#include "io/checkpoint.h"

vkt_result vkt_checkpoint_write(const vkt_host *h, const char *path, const vkt_blob *blobs, size_t n_blobs,
                                const vkt_meta *meta, size_t n_meta)
{
    (void)blobs, (void)n_blobs, (void)meta, (void)n_meta;
    VKT_WANT(h, path);
    return vkt_fail_without(h, path, "zlib", "ZLIB");
}

vkt_result vkt_checkpoint_open(const vkt_host *h, const char *path, vkt_safetensors **out)
{
    *out = NULL;
    VKT_WANT(h, path);
    return vkt_fail_without(h, path, "zlib", "ZLIB");
}
