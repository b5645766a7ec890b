/* ops/product/blocks.c - see blocks.h. */
#include "ops/product/blocks.h"

/* Returns the length of a tile along k. */
static uint32_t tile_k(bool coop, bool split)
{
    return split ? BLOCKS_SPLIT_K : coop ? BLOCKS_COOP_K : BLOCKS_K;
}

/* Returns the number of iterations of all loops for a slice. `slice` and `tile` are lengths along k. Each tile costs
 * one iteration, and one more for every four values of k. */
static uint64_t iterations_of(uint64_t slice, uint32_t tile)
{
    return slice / tile * (1 + tile / 4);
}

/* The tiles, largest first: a work group computes bm x bn elements, and a lane computes tm x tn of them. With larger
 * tiles, an element of an operand is read fewer times: once for each tile along the other operand. Tiles that need at
 * most 128 lanes and 16 KiB of shared memory run on every device, because Vulkan guarantees this much. The traits
 * tile_side and tile_sums say for which tiles a class of devices has enough registers. */
typedef struct shape {
    uint32_t bm, bn, tm, tn;
} shape;
static const shape tiles[] = {
    { 128, 128, 8, 8 }, /* 256 lanes, 32 KiB */
    { 64, 64, 8, 4 },   /* 128 lanes, 16 KiB */
    { 64, 64, 4, 4 },   /* 256 lanes, 16 KiB: twice as many subgroups as the tile above */
    { 32, 64, 4, 4 },   /* 128 lanes, 12 KiB */
    { 32, 32, 4, 4 },   /* 64 lanes, 8 KiB */
};
/* The tiles of products of at most 16 rows, without cooperative matrices. */
static const shape low_tiles[] = {
    { 16, 128, 4, 4 }, /* 128 lanes, 18 KiB */
    { 16, 64, 4, 4 },  /* 64 lanes, 10 KiB */
};
/* The tiles of kernels with cooperative matrices. The subgroups of a work group share a tile. The first tile has four
 * subgroups of 64 lanes, or eight of 32 lanes. */
static const shape coop_tiles[] = {
    { 128, 128, 8, 8 }, /* 256 lanes, 20 KiB */
    { 64, 64, 8, 4 },   /* 128 lanes, 10 KiB */
    { 32, 32, 4, 4 },   /* 64 lanes, 6 KiB */
};

vkt_tile vkt_blocks_tile_at(uint32_t i)
{
    const uint32_t n = VKT_COUNT(tiles);
    if (i >= n + VKT_COUNT(low_tiles)) return (vkt_tile){ 0 };
    const shape *t = i < n ? &tiles[i] : &low_tiles[i - n];
    return (vkt_tile){ (uint16_t)t->bm, (uint16_t)t->bn, (uint16_t)t->tm, (uint16_t)t->tn };
}

static uint64_t area(const vkt_blocks_job *j, uint32_t bm, uint32_t bn)
{
    return vkt_round_up(j->m, bm) * vkt_round_up(j->n, bn);
}

static uint64_t div_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static uint32_t lanes_of(const shape *t)
{
    return t->bm / t->tm * (t->bn / t->tn);
}

/* Returns true if a work group can compute the tile. shaders/lib/blocks.glsl and blocks_coop.glsl declare the shared
 * memory that a tile needs. */
static bool runs(const vkt_limits *lim, const shape *t, const vkt_blocks_job *j)
{
    const bool coop = j->coop;
    const uint32_t tile = coop ? (2 * BLOCKS_COOP_K + 16) * (t->bm + t->bn) : 8 * BLOCKS_K * (t->bm + t->bn);
    const uint32_t sums = coop && !j->flexible ? 16 * (t->bm / t->tm) * (4 * (t->bn / t->tn) + 16) : 0;
    return lanes_of(t) <= lim->max_workgroup_lanes && VKT_MAX(tile, sums) + (j->split ? 16 : 0) <= lim->shared_bytes;
}

/* Returns true if the device can compute the tile with flexible matrices. With these, each subgroup has one matrix of
 * sums (blocks_coop2.glsl). The rows and columns of this matrix and BLOCKS_COOP2_K must be multiples of the sizes in
 * lim->coop2. */
static bool divide_evenly(const vkt_limits *lim, const shape *t)
{
    const vkt_coop *c = &lim->coop2;
    const uint32_t subgroups = lanes_of(t) / lim->subgroup_size;
    const uint32_t down = subgroups >= 64 ? 8 : subgroups >= 16 ? 4 : subgroups >= 4 ? 2 : 1;
    return c->m && c->n && c->k && lanes_of(t) % lim->subgroup_size == 0 && BLOCKS_COOP2_K % c->k == 0 &&
           t->bm % (down * c->m) == 0 && t->bn % (subgroups / down * c->n) == 0;
}

/* Returns true if the device can compute the tile with cooperative matrices. For flexible matrices, see divide_evenly.
 * Other matrices have one size (lim->coop or lim->coop_bf16). The tile's length along k must be a multiple of the k of
 * this size. All subgroups must be full. A part of the tile's result has 4 x 4 elements per lane. It must consist of
 * whole matrices, with the same number of matrices for each subgroup. */
static bool divide(const vkt_limits *lim, const shape *t, const vkt_blocks_job *j)
{
    if (j->flexible) return divide_evenly(lim, t);
    const uint32_t m = 4 * (t->bm / t->tm), n = 4 * (t->bn / t->tn);
    const vkt_coop *c = j->bfloat ? &lim->coop_bf16 : &lim->coop;
    return c->m && c->n && c->k && tile_k(true, j->split) % c->k == 0 && m % c->m == 0 && n % c->n == 0 &&
           lanes_of(t) % lim->subgroup_size == 0 && m / c->m * (n / c->n) % (lanes_of(t) / lim->subgroup_size) == 0;
}

/* Returns true if a lane of the device has enough registers for its sums. */
static bool has_registers(const vkt_limits *lim, const shape *t)
{
    return VKT_MAX(t->bm, t->bn) <= lim->traits->tile_side && t->tm * t->tn <= lim->traits->tile_sums;
}

typedef struct shapes {
    const shape *list, *last;
} shapes;

static shapes shapes_of(const vkt_blocks_job *j)
{
    if (j->coop) return (shapes){ coop_tiles, coop_tiles + VKT_COUNT(coop_tiles) - 1 };
    if (j->m <= 16) return (shapes){ low_tiles, low_tiles + VKT_COUNT(low_tiles) - 1 };
    return (shapes){ tiles, tiles + VKT_COUNT(tiles) - 1 };
}

/* Returns the shape in the list that is equal to j->tile. Returns NULL if there is none, or if the device cannot
 * compute it. */
static const shape *wanted(const vkt_limits *lim, const vkt_blocks_job *j, shapes of)
{
    for (const shape *t = of.list; t <= of.last; t++)
        if (t->bm == j->tile.m && t->bn == j->tile.n && t->tm == j->tile.lane_m && t->tn == j->tile.lane_n)
            return runs(lim, t, j) && (!j->coop || divide(lim, t, j)) ? t : NULL;
    return NULL;
}

/* Returns how many slices a sum may have, at most `most` (0 counts as 1). With larger tiles, each operand is read fewer
 * times. So tiles with a side above 64 have longer slices, and partial sums remain about the same fraction of the
 * traffic. */
static uint64_t slices_of(const vkt_limits *lim, const vkt_blocks_job *j, const shape *t, uint64_t most)
{
    const uint64_t least = (uint64_t)lim->traits->slice_shared * VKT_MAX(VKT_MAX(t->bm, t->bn), 64u) / 64;
    return VKT_MAX(VKT_MIN(VKT_MIN(most, lim->max_groups), j->k / least), 1);
}

/* Chooses j->tile if the device can compute it. Otherwise chooses the first tile of the list with three properties: the
 * device can compute the tile, the work groups keep the device busy (with at most `most` slices), and the tiles compute
 * at most a quarter more elements than the smallest tiles would. If no tile has all three, chooses the smallest tile
 * that the device can compute. */
static const shape *choose(const vkt_limits *lim, const vkt_blocks_job *j, uint64_t most)
{
    const shapes of = shapes_of(j);
    const shape *t = wanted(lim, j, of), *smallest = of.last;
    if (t) return t;
    const uint64_t least = area(j, of.last->bm, of.last->bn);
    for (t = of.list; t <= of.last; t++) {
        const uint64_t all = area(j, t->bm, t->bn), groups = all / t->bm / t->bn * j->count;
        const bool can = runs(lim, t, j) && (j->coop ? divide(lim, t, j) : has_registers(lim, t));
        const uint64_t slices = slices_of(lim, j, t, most);
        if (can && groups * slices >= vkt_tiles_wanted(lim, lanes_of(t)) && 4 * all <= 5 * least) return t;
        if (can) smallest = t;
    }
    return smallest;
}

bool vkt_blocks_plan(const vkt_limits *lim, const vkt_blocks_job *j, uint64_t most_slices, vkt_blocks *out)
{
    const shape *t = choose(lim, j, most_slices);
    const uint32_t bm = t->bm, bn = t->bn, k = tile_k(j->coop, j->split);
    if (j->coop && !divide(lim, t, j)) return false;
    const uint64_t n = area(j, bm, bn) / bm / bn, per_group = div_up(n, lim->max_groups);
    const uint64_t slices =
        VKT_MIN(div_up(vkt_tiles_wanted(lim, lanes_of(t)), n * j->count), slices_of(lim, j, t, most_slices));
    const uint64_t slice = vkt_round_up(div_up(j->k, slices), k);
    if (n > UINT32_MAX || per_group * (iterations_of(slice, k) + 1) > vkt_largest_loop(lim)) return false;
    *out = (vkt_blocks){ .tiles = (uint32_t)n,
                         .slice = (uint32_t)slice,
                         .slices = (uint32_t)div_up(j->k, slice),
                         .coop = j->coop,
                         .split = j->split,
                         .flexible = j->flexible,
                         .bfloat = j->bfloat };
    out->spec[BLOCKS_SPEC_LANES] = lanes_of(t);
    out->spec[BLOCKS_SPEC_BM] = bm;
    out->spec[BLOCKS_SPEC_BN] = bn;
    out->spec[BLOCKS_SPEC_TM] = t->tm;
    out->spec[BLOCKS_SPEC_TN] = t->tn;
    if (lim->traits->tile_unrolls && !j->coop) out->spec[BLOCKS_SPEC_WHOLE] = BLOCKS_UNROLLED;
    return true;
}

uint32_t vkt_blocks_whole(const vkt_blocks *b, uint64_t m, uint64_t n, uint64_t k)
{
    return b->spec[BLOCKS_SPEC_WHOLE] | (m % b->spec[BLOCKS_SPEC_BM] ? 0 : BLOCKS_WHOLE_M) |
           (n % b->spec[BLOCKS_SPEC_BN] ? 0 : BLOCKS_WHOLE_N) | (k % tile_k(b->coop, b->split) ? 0 : BLOCKS_WHOLE_K);
}

double vkt_blocks_waste(const vkt_blocks *b, const vkt_blocks_job *job)
{
    const double all = (double)area(job, b->spec[BLOCKS_SPEC_BM], b->spec[BLOCKS_SPEC_BN]);
    return job->m >= 16 && job->n >= 16 ? 1 : all / ((double)job->m * (double)job->n);
}

double vkt_blocks_coop_cost(const vkt_traits *t, const vkt_blocks *b)
{
    return b->bfloat && !t->coop_bf16_pays ? VKT_COST_NEVER : t->coop_cost;
}

bool vkt_blocks_plan_coop(const vkt_emit *e, vkt_blocks_job job, uint64_t most_slices, vkt_blocks *out)
{
    job.coop = true;
    job.split = e->precision == VKT_PRECISION_F32_SPLIT;
    job.bfloat = e->precision == VKT_PRECISION_BF16;
    return e->precision != VKT_PRECISION_F32 && vkt_blocks_plan(e->lim, &job, most_slices, out);
}

bool vkt_blocks_plan_coop2(const vkt_emit *e, vkt_blocks_job job, uint64_t most_slices, vkt_blocks *out)
{
    job.coop = job.flexible = true;
    return e->precision == VKT_PRECISION_F16 && vkt_blocks_plan(e->lim, &job, most_slices, out);
}
