/* io/without/shards.c - replaces shards.c in a build without jansson. This build never opens a set of tensors. */
#include "io/shards.h"

vkt_result vkt_shards_open(const vkt_host *h, const char *path, vkt_shards **out)
{
    *out = NULL;
    VKT_WANT(h, path);
    return vkt_fail_without(h, path, "jansson", "JANSSON");
}

void vkt_shards_close(vkt_shards **s)
{
    if (s) *s = NULL;
}

size_t vkt_shards_count(const vkt_shards *s)
{
    (void)s;
    return 0;
}

vkt_shard_entry vkt_shards_entry(const vkt_shards *s, size_t i)
{
    (void)s, (void)i;
    return (vkt_shard_entry){ .file = NULL };
}

vkt_shard_entry vkt_shards_find(const vkt_shards *s, const char *name)
{
    (void)s, (void)name;
    return (vkt_shard_entry){ .file = NULL };
}
