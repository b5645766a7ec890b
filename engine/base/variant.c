/* base/variant.c - see variant.h. */
#include "base/variant.h"

#include "base/base.h"

static const struct {
    const char *name, *what;
} variants[] = {
#define VKT_VARIANT_ROW(id, name, what) { name, what },
    VKT_VARIANTS(VKT_VARIANT_ROW)
#undef VKT_VARIANT_ROW
};

const char *vkt_variant_name(vkt_variant v)
{
    return (unsigned)v < VKT_COUNT(variants) ? variants[v].name : "?";
}

const char *vkt_variant_what(vkt_variant v)
{
    return (unsigned)v < VKT_COUNT(variants) ? variants[v].what : "?";
}

bool vkt_variant_find(const char *name, vkt_variant *out)
{
    for (size_t i = 0; i < VKT_COUNT(variants); i++)
        if (strcmp(variants[i].name, name) == 0) {
            *out = (vkt_variant)i;
            return true;
        }
    return false;
}

uint64_t vkt_variants_off(void)
{
    uint64_t off = 0;
    for (size_t i = 0; i < VKT_COUNT(variants); i++)
        if (vkt_env_disabled(variants[i].name)) off |= (uint64_t)1 << i;
    return off;
}

vkt_tuned vkt_tuned_for(const vkt_choices *c, uint64_t key)
{
    size_t lo = 0, hi = c->n_tuned;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (c->tuned[mid].key < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < c->n_tuned && c->tuned[lo].key == key ? c->tuned[lo] : (vkt_tuned){ 0 };
}

vkt_tile vkt_tile_wanted(const vkt_choices *c, uint64_t key)
{
    return c->tile.m ? c->tile : vkt_tuned_for(c, key).tile;
}

uint64_t vkt_variant_open(const vkt_choices *c, uint64_t key, uint64_t usable)
{
    const uint64_t left = usable & ~c->off ? usable & ~c->off : usable, forced = left & c->force;
    const uint64_t requested = forced ? forced : left & vkt_tuned_for(c, key).variants;
    return requested ? requested : left;
}

vkt_variant vkt_variant_choose(const vkt_choices *c, uint64_t key, const vkt_variant_cost *costs, uint32_t n)
{
    uint64_t usable = 0;
    for (uint32_t i = 0; i < n; i++) usable |= (uint64_t)1 << costs[i].variant;
    const uint64_t open = vkt_variant_open(c, key, usable);
    const vkt_variant_cost *best = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (open >> costs[i].variant & 1 && (!best || costs[i].cost < best->cost)) best = &costs[i];
    return best ? best->variant : costs[0].variant;
}
