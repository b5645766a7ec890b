/* ops/product/attention_tiles.c - see attention_tiles.h. */
#include "ops/product/attention_tiles.h"

/* The kernels of each pass. d is the width of a head, and d4 = d / 4 is the number of vec4s of a row of q or k. For
 * each tile of columns, a pass computes `products` products over d (for instance q k^T) and adds `sums` products over
 * the columns to its results (for instance p v). */
static const struct pass {
    uint16_t shuffled, shared, coop; /* the kernel of each variant */
    uint8_t n_bind, products, sums;
    bool by_keys; /* rows are keys, and columns are queries */
} passes[] = {
    [VKT_ATTENTION_FORWARD] = { VKT_K_ATTENTION, VKT_K_ATTENTION_SHARED, VKT_K_ATTENTION_COOP, ATTENTION_LSE + 1, 1, 1,
                                false },
    [VKT_ATTENTION_DQ] = { VKT_K_ATTENTION_DQ, VKT_K_ATTENTION_SHARED_DQ, VKT_K_ATTENTION_COOP_DQ, ATTENTION_DQ + 1, 2,
                           1, false },
    [VKT_ATTENTION_DKV] = { VKT_K_ATTENTION_DKV, VKT_K_ATTENTION_SHARED_DKV, VKT_K_ATTENTION_COOP_DKV, ATTENTION_DV + 1,
                            2, 2, true },
};

/* The dispatch of a pass by one variant. */
typedef struct tiling {
    uint16_t kernel;
    bool can;            /* false: no tile of the variant runs on this device */
    uint64_t units;      /* tiles of all heads of q, or of k if rows are keys */
    uint64_t iterations; /* of all loops of one tile together */
    vkt_attention_push pc;
    uint32_t spec[ATTENTION_MAX_SPECS], n_spec;
} tiling;

static vkt_attention_push push_of(const struct pass *p, const vkt_attention_push *pc)
{
    vkt_attention_push own = *pc;
    if (p->by_keys) {
        own.rows = pc->others;
        own.others = pc->rows;
    }
    return own;
}

/* Returns the number of heads of q, or of k if rows are keys. `heads`: the number of heads of q. */
static uint64_t heads_of_rows(const struct pass *p, const vkt_attention_push *pc, uint64_t heads)
{
    return p->by_keys ? heads / pc->group : heads;
}

/* Returns how many iterations one tile of rows needs: the iterations of the loop over columns and of the inner loops in
 * it. `each`: the iterations of the inner loops for one tile of columns. If the rows are keys, the loop over columns
 * runs once for each of the pc->group heads of q that read these keys. */
static uint64_t column_loop(const struct pass *p, const vkt_attention_push *pc, uint32_t columns, uint64_t each)
{
    const uint64_t n = vkt_div_up(pc->others, columns) * (1 + each);
    return p->by_keys ? pc->group * (1 + n) : n;
}

/* ---- by shuffles ---- */

/* Returns the number of rows of a tile. With more rows, a tile needs fewer loads for each product, but more registers:
 * for each row, a lane has `parts` vec4s of each of the pass's `sums` results. The trait attention_sums limits the
 * product of rows and `sums`: a lane of a GPU has only about 200 registers, but on a CPU these vec4s are in the
 * first-level cache. A head with few rows gets small tiles, because small tiles compute fewer of the scores that a
 * causal mask hides. */
static uint32_t tile_rows(const vkt_limits *lim, uint32_t rows, uint32_t parts, uint32_t sums)
{
    uint32_t most = VKT_MIN(rows <= 64 ? 8u : ATTENTION_MAX_ROWS, lim->traits->attention_sums / sums);
    while (most * parts > ATTENTION_MAX_SUMS) most /= 2;
    return most;
}

/* One subgroup computes a tile. For each tile of columns, a product is a loop of d4 iterations, and a sum is a loop of
 * at most `spread` iterations. */
static tiling tile_shuffled(const vkt_limits *lim, const struct pass *p, const vkt_attention_push *pc, uint64_t heads)
{
    const uint32_t lanes = vkt_subgroup(lim, p->shuffled);
    tiling t = { .kernel = p->shuffled, .can = true, .pc = push_of(p, pc), .n_spec = ATTENTION_SPECS };
    for (t.pc.spread = lanes == ATTENTION_ROTATED ? 4 : 1; t.pc.spread < pc->d4 && t.pc.spread < lanes;)
        t.pc.spread *= 2;
    const uint32_t parts = vkt_div_up(pc->d4, t.pc.spread), rows = tile_rows(lim, t.pc.rows, parts, p->sums);
    t.units = vkt_div_up(t.pc.rows, rows) * heads_of_rows(p, pc, heads);
    t.iterations = column_loop(p, &t.pc, 4 * lanes, p->products * pc->d4 + p->sums * t.pc.spread) + pc->d4;
    t.spec[0] = lanes;
    t.spec[ATTENTION_SPEC_ROWS] = rows;
    t.spec[ATTENTION_SPEC_PARTS] = parts;
    return t;
}

/* ---- in shared memory ---- */

/* A tile has lanes_m * ATTENTION_SHARED_LANES_N lanes and lanes_m * own_rows() rows. A slice in shared memory has
 * `chunks` vec4s of each row. Heads with d4 <= 16 use the first table, and wider heads use the second table. Each table
 * begins with the largest tile. The comments in the tables are for 4 rows per lane, without cooperative matrices. In
 * this case the last tile of each table runs on every device, because Vulkan guarantees 128 lanes and 16 KiB. */
typedef struct shape {
    uint32_t lanes_m, chunks;
} shape;
static const shape short_rows[] = {
    { 16, 4 }, /* 256 lanes; 64 rows, 16 KiB */
    { 8, 4 },  /* 128 lanes; 32 rows, 12 KiB */
};
static const shape long_rows[] = {
    { 8, 4 }, /* 256 lanes; 32 rows, 20 KiB */
    { 4, 4 }, /* 128 lanes; 16 rows, 18 KiB */
    { 4, 2 }, /* 128 lanes; 16 rows, 9 KiB */
};

/* Returns the number of rows of a lane: 4, or 2 if 4 rows need more vec4s than the trait attention_vec4s. For each row,
 * a lane has a vec4 of each product and of each sum. It also has `loaded` vec4s of the next slice. With cooperative
 * matrices (`coop`) a lane always has 4 rows. Its sums of gradients are in the matrices, and not in vec4s. */
static uint32_t own_rows(const vkt_limits *lim, const struct pass *p, const shape *s, bool coop)
{
    const uint32_t loaded = 1 + vkt_div_up(4 * s->chunks, s->lanes_m);
    return coop || 4 * (uint32_t)(p->products + p->sums) + loaded <= lim->traits->attention_vec4s ? 4u : 2u;
}

static uint32_t lanes_of(const shape *s, uint32_t d4)
{
    return s->lanes_m * ATTENTION_SHARED_LANES_N(d4);
}

/* Returns whether a work group can compute the tile. A kernel has two slices in shared memory, each with the rows of
 * both operands (shaders/lib/attention_lanes.glsl). With cooperative matrices (attention_coop.glsl) the slices are of
 * f16 with padding, and the f32 products of the tile later use the same memory. Such a kernel also has one vec4 of
 * shared memory for each lane. */
static bool runs(const vkt_limits *lim, const shape *s, uint32_t rows, uint32_t d4, bool coop)
{
    const uint32_t lanes_n = ATTENTION_SHARED_LANES_N(d4), slice = rows + 4 * lanes_n;
    const uint32_t halves = 2 * 8 * (s->chunks + ATTENTION_COOP_PAD) * slice, tile = 16 * rows * (lanes_n + 1);
    const uint32_t bytes = coop ? VKT_MAX(halves, tile) + 16 * lanes_of(s, d4) : 2 * 16 * s->chunks * slice;
    return lanes_of(s, d4) <= lim->max_workgroup_lanes && bytes <= lim->shared_bytes;
}

/* Returns whether a tile and its slices consist of whole cooperative matrices, of the size that the device supports.
 * All subgroups must be full, and each subgroup must get the same number of matrices. */
static bool divide(const vkt_limits *lim, const shape *s, uint32_t rows, uint32_t d4)
{
    const vkt_coop *c = &lim->coop;
    const uint32_t columns = 4 * ATTENTION_SHARED_LANES_N(d4), lanes = lanes_of(s, d4);
    return c->m && c->n && c->k && rows % c->m == 0 && columns % c->n == 0 && 4 * s->chunks % c->k == 0 &&
           lanes % lim->subgroup_size == 0 && rows / c->m * (columns / c->n) % (lanes / lim->subgroup_size) == 0;
}

/* Returns the largest tile that the device can compute, or NULL if there is none. If a head has few rows, or if there
 * would be few tiles, the first tile of the table is skipped. */
static const shape *choose_shape(const vkt_limits *lim, const struct pass *p, const vkt_attention_push *pc,
                                 uint64_t heads, bool coop)
{
    const uint32_t d4 = pc->d4;
    const shape *s = d4 <= 16 ? short_rows : long_rows;
    const shape *end = d4 <= 16 ? short_rows + VKT_COUNT(short_rows) : long_rows + VKT_COUNT(long_rows);
    const uint32_t most = own_rows(lim, p, s, coop) * s->lanes_m;
    if (pc->rows <= most / 2 || vkt_div_up(pc->rows, most) * heads < vkt_tiles_wanted(lim, lanes_of(s, d4))) s++;
    for (; s < end; s++) {
        const uint32_t rows = own_rows(lim, p, s, coop) * s->lanes_m;
        if (runs(lim, s, rows, d4, coop) && (!coop || divide(lim, s, rows, d4))) return s;
    }
    return NULL;
}

/* One work group computes a tile. Each product and each sum is a loop over slices. For each slice, there is an inner
 * loop of at most `chunks` iterations. */
static tiling tile_shared(const vkt_limits *lim, const struct pass *p, const vkt_attention_push *pc, uint64_t heads,
                          bool coop)
{
    tiling t = { .kernel = coop ? p->coop : p->shared, .pc = push_of(p, pc), .n_spec = ATTENTION_SHARED_SPECS };
    heads = heads_of_rows(p, pc, heads);
    const shape *s = choose_shape(lim, p, &t.pc, heads, coop);
    if (!s) return t;
    const uint32_t own = own_rows(lim, p, s, coop), rows = own * s->lanes_m;
    const uint32_t columns = 4 * ATTENTION_SHARED_LANES_N(pc->d4);
    const uint64_t slices = p->products * vkt_div_up(pc->d4, s->chunks) + p->sums * columns / (4 * s->chunks);
    t.can = true;
    t.units = vkt_div_up(t.pc.rows, rows) * heads;
    t.iterations = column_loop(p, &t.pc, columns, slices * (1 + s->chunks)) + 1;
    t.spec[0] = lanes_of(s, pc->d4);
    t.spec[ATTENTION_SHARED_SPEC_ROWS] = rows;
    t.spec[ATTENTION_SHARED_SPEC_CHUNKS] = s->chunks;
    t.spec[ATTENTION_SHARED_SPEC_D4] = pc->d4;
    t.spec[ATTENTION_SHARED_SPEC_OWN] = own;
    return t;
}

/* ---- the choice of a variant, and the dispatch of a pass ---- */

static tiling tile(const vkt_limits *lim, vkt_variant v, vkt_attention_pass pass, const vkt_attention_push *pc,
                   uint64_t heads)
{
    if (v == VKT_V_SHUFFLED) return tile_shuffled(lim, &passes[pass], pc, heads);
    return tile_shared(lim, &passes[pass], pc, heads, v == VKT_V_COOP);
}

/* Returns whether the device can compute the tiling, and whether the loops are short enough for the device. */
static bool fits(const vkt_limits *lim, const tiling *t)
{
    return t->can && t->units <= UINT32_MAX &&
           t->iterations * ((t->units - 1) / lim->max_groups + 1) <= vkt_largest_loop(lim);
}

vkt_variant vkt_attention_pick(vkt_emit *e, vkt_attention_pass first, vkt_attention_pass last,
                               const vkt_attention_push *pc, uint64_t heads)
{
    const vkt_traits *traits = e->lim->traits;
    const double each = 4.0 * pc->d4 * pc->rows * pc->others * (double)heads;
    const bool f16 = e->precision == VKT_PRECISION_F16; /* other programs must not round operands to f16 */
    const struct {
        vkt_variant variant;
        bool can;
        double cost;
    } variants[] = {
        { VKT_V_SHUFFLED, true, each },
        { VKT_V_SHARED, true, traits->shared_pays ? traits->shared_cost * each : VKT_COST_NEVER },
        { VKT_V_COOP, f16, traits->shared_pays ? traits->coop_cost * each : VKT_COST_NEVER },
    };
    vkt_variant_cost candidates[VKT_COUNT(variants)];
    uint32_t n = 0;
    for (size_t i = 0; i < VKT_COUNT(variants); i++) {
        bool can = variants[i].can;
        for (vkt_attention_pass p = first; p <= last; p++) {
            const tiling t = tile(e->lim, variants[i].variant, p, pc, heads);
            can = can && fits(e->lim, &t);
        }
        if (can) candidates[n++] = (vkt_variant_cost){ variants[i].variant, variants[i].cost };
    }
    return n ? vkt_pick(e, candidates, n) : VKT_V_SHUFFLED;
}

void vkt_attention_emit(vkt_emit *e, vkt_attention_pass pass, vkt_variant v, const vkt_attention_push *pc,
                        uint64_t heads, const vkt_bind *bind)
{
    tiling t = tile(e->lim, v, pass, pc, heads);
    if (!fits(e->lim, &t)) {
        vkt_emit_error(e,
                       vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                                "%s: %u rows against %u in %llu heads of %u numbers are too many for loops in %u work "
                                "groups: this device ends them after %llu iterations; use shorter "
                                "sequences or smaller batches",
                                e->node->op->name, t.pc.rows, t.pc.others, (unsigned long long)heads, 4 * pc->d4,
                                e->lim->max_groups, (unsigned long long)vkt_largest_loop(e->lim)));
        return;
    }
    t.pc.units = (uint32_t)t.units;
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = t.kernel,
                                       .bind = bind,
                                       .n_bind = passes[pass].n_bind,
                                       VKT_LAUNCH_PUSH(t.pc),
                                       .spec = t.spec,
                                       .n_spec = t.n_spec,
                                       .groups = { t.units, 1, 1 } });
}
