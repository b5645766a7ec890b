/* ops/product/gemm_choose.c - see gemm.h: chooses the variant of a product, and emits the parts of the product with
 * this variant. */
#include "ops/product/gemm_shared.h"
#include "ops/product/gemm_tile.h"

#include <math.h>

/* ---- the product on a GPU ---- */

static bool in_one_binding(const vkt_emit *e, const vkt_gemm_matrix *m, const vkt_gemm_part *b)
{
    return vkt_gemm_span(m, b->batches, m->x_outer ? b->xn : b->kn, m->x_outer ? b->kn : b->xn) <= vkt_gemm_capacity(e);
}

/* Returns true if one binding holds the rows of quantized weights that a part of the product (vkt_gemm_split) reads.
 * Whole rows are bound, even if the part reads only some columns of these rows. */
static bool blocks_in_one_binding(const vkt_emit *e, const vkt_gemm *g, const vkt_gemm_split *o)
{
    const uint64_t rows = g->b.x_outer ? g->n : o->k;
    return rows * g->b.blocks->row_bytes + VKT_ALIGN_BYTES <= e->lim->max_storage_range_bytes;
}

/* For each variant with shared memory: its plan for the largest block of the product. A plan is valid if the `can_`
 * member of the same name is true. */
typedef struct shared_tilings {
    vkt_blocks shared, split_k, coop, coop2;
    bool can_shared, can_split_k, can_coop, can_coop2;
} shared_tilings;

static shared_tilings tile_shared(const vkt_emit *e, const vkt_gemm *g, const vkt_gemm_split *o)
{
    shared_tilings c = { .can_shared = false };
    const bool placed = in_one_binding(e, &g->a, &(vkt_gemm_part){ 0, o->batches, 0, o->rows, 0, o->k }) &&
                        in_one_binding(e, &g->b, &(vkt_gemm_part){ 0, o->batches, 0, g->n, 0, o->k }) &&
                        (!g->b.blocks || blocks_in_one_binding(e, g, o));
    const vkt_blocks_job job = { .m = o->rows, .n = g->n, .k = o->k, .count = o->batches, .tile = vkt_wanted_tile(e) };
    const bool dense = g->c.ld == g->n && (o->batches == 1 || g->c.batch == (uint64_t)o->rows * g->n);
    const uint64_t most = dense ? vkt_gemm_capacity(e) / ((uint64_t)o->batches * o->rows * g->n) : 0;
    if (!placed) return c;
    c.can_shared = vkt_blocks_plan(e->lim, &job, 1, &c.shared);
    c.can_split_k = vkt_blocks_plan(e->lim, &job, most, &c.split_k) && c.split_k.slices > 1;
    c.can_coop = vkt_blocks_plan_coop(e, job, most, &c.coop);
    c.can_coop2 = !g->b.blocks && vkt_blocks_plan_coop2(e, job, most, &c.coop2);
    return c;
}

/* Returns the plan of variant v, or NULL if v does not use shared memory. */
static const vkt_blocks *tiling_of(const shared_tilings *c, vkt_variant v)
{
    return v == VKT_V_SHARED    ? &c->shared
           : v == VKT_V_SPLIT_K ? &c->split_k
           : v == VKT_V_COOP    ? &c->coop
           : v == VKT_V_COOP2   ? &c->coop2
                                : NULL;
}

/* Binds the rows of quantized weights that the part needs. One binding holds them: see blocks_in_one_binding. */
static void bind_blocks(const vkt_emit *e, const vkt_gemm_part *columns, vkt_gemm_block *b)
{
    const vkt_gemm_matrix *w = &b->g->b;
    const uint64_t bytes = w->blocks->row_bytes;
    const uint64_t row = w->first / w->ld + (w->x_outer ? 0 : columns->k0);
    const uint64_t start = row * bytes, end = start + (w->x_outer ? columns->xn : columns->kn) * bytes;
    b->b = vkt_bind_range(e, w->t, start / 4, (end + 3) / 4 - start / 4, &b->b_base);
    b->b_base = 4 * b->b_base + (uint32_t)(start % 4);
    b->b_first = w->x_outer ? columns->k0 : 0;
}

static void emit_shared(vkt_emit *e, const vkt_gemm *g, const vkt_blocks *tiling, const vkt_gemm_part *rows)
{
    const vkt_gemm_part columns = { rows->batch0, rows->batches, 0, g->n, rows->k0, rows->kn };
    const uint64_t first = g->c.first + rows->batch0 * g->c.batch + (uint64_t)rows->x0 * g->c.ld;
    vkt_gemm_block b = { .g = g, .m = rows->xn, .k = rows->kn, .batches = rows->batches };
    b.accumulate = g->accumulate || rows->k0 > 0;
    b.bias = rows->k0 + rows->kn == g->k ? g->bias : (vkt_tensor){ 0 };
    b.a = vkt_bind_range(e, g->a.t, vkt_gemm_start(&g->a, rows),
                         vkt_gemm_span(&g->a, rows->batches, g->a.x_outer ? b.m : b.k, g->a.x_outer ? b.k : b.m),
                         &b.a_base);
    if (g->b.blocks)
        bind_blocks(e, &columns, &b);
    else
        b.b = vkt_bind_range(e, g->b.t, vkt_gemm_start(&g->b, &columns),
                             vkt_gemm_span(&g->b, rows->batches, g->b.x_outer ? g->n : b.k, g->b.x_outer ? b.k : g->n),
                             &b.b_base);
    b.c = vkt_bind_range(e, g->c.t, first, vkt_gemm_span(&g->c, rows->batches, rows->xn, g->n), &b.c_base);
    vkt_gemm_shared_emit(e, &b, tiling);
}

/* ---- the choice of a variant ---- */

/* Returns true if rows run along x and their distance is a multiple of 1,024 elements, a page (4 KiB) of f32. In this
 * case all rows of a tile of f32 begin in the same set of a CPU's first-level cache, and evict each other. */
static bool has_page_rows(const vkt_gemm_matrix *m)
{
    return !m->x_outer && m->ld % 1024 == 0;
}

/* Returns the cost of reading an element of an operand where it is stored. `others`: the number of rows or columns of
 * the other operand, each of which needs the element. */
static double unpacked_cost(const vkt_emit *e, const vkt_gemm_matrix *m, double others)
{
    const vkt_traits *t = e->lim->traits;
    return others * (1 / (double)t->pack_reads + (has_page_rows(m) ? t->page_rows_cost : 0));
}

/* Returns the cost of a product by tiles in registers: its multiply-adds, plus a cost for each element of A and B. An
 * element of a packed operand costs 1, because it is copied once. An element of an operand that is not packed costs
 * 1 / pack_reads (a trait) for each row or column of the other operand, and more if has_page_rows is true. */
static double panels_cost(const vkt_emit *e, const vkt_gemm *g, bool a_packed, bool b_packed)
{
    const double a = (double)g->m * g->k, b = (double)g->n * g->k;
    return a * g->n + a * (a_packed ? 1 : unpacked_cost(e, &g->a, g->n)) +
           b * (b_packed ? 1 : unpacked_cost(e, &g->b, g->m));
}

static double tiles_cost(const vkt_gemm *g, bool pays, double each)
{
    return pays ? each * g->m * g->n * g->k : VKT_COST_NEVER;
}

/* The variants that can compute a product. By default, the product uses the variant with the least cost. If costs are
 * equal, it uses the first one of the list. */
typedef struct candidates {
    vkt_variant_cost list[VKT_V_COUNT];
    uint32_t n;
    uint64_t set; /* mask of the variants in `list` */
} candidates;

static void add(candidates *c, vkt_variant v, bool can, double cost)
{
    if (!can) return;
    c->list[c->n++] = (vkt_variant_cost){ v, cost };
    c->set |= (uint64_t)1 << v;
}

/* Adds the variants that can compute the product. The function checks only for the first block whether operands need
 * packing. If a later block cannot be read where it is stored, vkt_gemm_operand packs it. */
static void candidates_of(const vkt_emit *e, const vkt_gemm *g, const vkt_gemm_split *o, const shared_tilings *shared,
                          candidates *c)
{
    const bool a_unpacked = vkt_gemm_needs_no_packing(e, &g->a, &(vkt_gemm_part){ 0, o->batches, 0, o->rows, 0, o->k });
    const bool b_unpacked = vkt_gemm_needs_no_packing(e, &g->b, &(vkt_gemm_part){ 0, o->batches, 0, g->n, 0, o->k });
    const bool panels = !g->b.blocks || !g->b.x_outer;
    const vkt_traits *t = e->lim->traits;
    add(c, VKT_V_PACKED, panels, panels_cost(e, g, true, true));
    add(c, VKT_V_PACKED_A, b_unpacked, panels_cost(e, g, true, false));
    add(c, VKT_V_PACKED_B, panels && a_unpacked, panels_cost(e, g, false, true));
    add(c, VKT_V_PLACED, a_unpacked && b_unpacked, panels_cost(e, g, false, false));
    add(c, VKT_V_SHARED, shared->can_shared, tiles_cost(g, t->shared_pays, t->shared_cost));
    add(c, VKT_V_SPLIT_K, shared->can_split_k, tiles_cost(g, t->shared_pays, t->split_k_cost));
    add(c, VKT_V_COOP, shared->can_coop, tiles_cost(g, t->shared_pays, vkt_blocks_coop_cost(t, &shared->coop)));
    add(c, VKT_V_COOP2, shared->can_coop2, tiles_cost(g, t->coop2_pays, t->coop2_cost));
}

/* ---- the parts ---- */

/* Rounds the f32 sums of one batch, and stores them in C, which is stored in 16 bits. */
static void emit_narrow(vkt_emit *e, const vkt_gemm *g, vkt_tensor sums, uint32_t batch)
{
    const uint64_t n = (uint64_t)g->m * g->n, most = vkt_bind_range_elements(e->lim);
    for (uint64_t at = 0; at < n; at += most) {
        vkt_gemm_sum sum = { .n = (uint32_t)VKT_MIN(most, n - at), .slices = 1 };
        sum.part = vkt_part(e, sums, at, sum.n);
        sum.c = vkt_bind_range(e, g->c.t, g->c.first + batch * g->c.batch + at, sum.n, &sum.c_base);
        vkt_gemm_sum_emit(e, &sum);
    }
}

/* Returns the f32 scratch in which the sums of one batch of C accumulate from dispatch to dispatch. Returns {0} if they
 * accumulate in C itself, which is f32, or if one dispatch computes whole sums. */
static vkt_tensor sums_for(vkt_emit *e, const vkt_gemm *g, const vkt_gemm_split *o)
{
    if (o->k == g->k || vkt_lowered_value(e, g->c.t)->storage == VKT_PRECISION_F32) return (vkt_tensor){ 0 };
    return vkt_scratch(e, "sums", 4 * (uint64_t)g->m * g->n);
}

static void emit_blocks(vkt_emit *e, const vkt_gemm *g, const vkt_gemm_split *o, vkt_variant v,
                        const vkt_blocks *shared)
{
    const bool a_placed = v == VKT_V_PLACED || v == VKT_V_PACKED_B, b_placed = v == VKT_V_PLACED || v == VKT_V_PACKED_A;
    const uint64_t k = vkt_round_up(o->k, 4);
    const uint64_t a_bytes = vkt_round_up(o->rows, o->mb) * k * 4 * (g->a.batch ? o->batches : 1);
    const uint64_t b_bytes = vkt_round_up(g->n, o->nb) * k * 4 * (g->b.batch ? o->batches : 1);
    vkt_tensor a_scratch = { 0 }, b_scratch = { 0 };
    const vkt_tensor sums = sums_for(e, g, o);
    vkt_gemm parts = *g;
    if (sums.id) parts.c = (vkt_gemm_matrix){ .t = sums, .ld = g->n };
    for (uint32_t batch = 0; batch < g->batches; batch += o->batches) {
        for (uint32_t k0 = 0; k0 < g->k; k0 += o->k) {
            const uint32_t batches = VKT_MIN(o->batches, g->batches - batch), kn = VKT_MIN(o->k, g->k - k0);
            const vkt_gemm_part columns = { batch, batches, 0, g->n, k0, kn };
            vkt_gemm_panels b = { 0 };
            if (!shared) b = vkt_gemm_operand(e, g, &g->b, &columns, o->nb, b_placed, b_bytes, &b_scratch);
            for (uint32_t row = 0; row < g->m; row += o->rows) {
                const vkt_gemm_part rows = { batch, batches, row, VKT_MIN(o->rows, g->m - row), k0, kn };
                if (shared) {
                    emit_shared(e, &parts, shared, &rows);
                    continue;
                }
                const vkt_gemm_panels a = vkt_gemm_operand(e, g, &g->a, &rows, o->mb, a_placed, a_bytes, &a_scratch);
                vkt_gemm_emit_tiles(e, &parts, o, &a, &b, &rows);
            }
        }
        if (sums.id) emit_narrow(e, g, sums, batch);
    }
}

bool vkt_gemm_reads_blocks(const vkt_emit *e, const vkt_gemm *g)
{
    vkt_gemm f32 = *g;
    vkt_gemm_split o;
    f32.b.blocks = NULL;
    if (!vkt_gemm_split_of(e, g, &o)) return false;
    const shared_tilings shared = tile_shared(e, g, &o), f32_shared = tile_shared(e, &f32, &o);
    candidates reading = { .n = 0 }, all = { .n = 0 };
    candidates_of(e, g, &o, &shared, &reading);
    candidates_of(e, &f32, &o, &f32_shared, &all);
    return (vkt_open(e, all.set | reading.set) & reading.set) != 0;
}

double vkt_gemm_unpack_cost(const vkt_emit *e, const vkt_gemm *g, bool blocks)
{
    const bool gpu = e->lim->traits->shared_pays;
    if (!blocks) return gpu ? 64 : 20;
    return gpu ? 20 * ceil(g->m / 64.0) : has_page_rows(&g->b) ? 10 : VKT_COST_NEVER;
}

void vkt_gemm_emit(vkt_emit *e, const vkt_gemm *g)
{
    vkt_gemm_split o;
    if (!vkt_gemm_split_of(e, g, &o)) {
        vkt_gemm_unsupported(e, g);
        return;
    }
    const shared_tilings shared = tile_shared(e, g, &o);
    candidates c = { .n = 0 };
    candidates_of(e, g, &o, &shared, &c);
    const vkt_variant v = vkt_pick(e, c.list, c.n);
    const vkt_blocks *tiling = tiling_of(&shared, v);
    if (tiling) vkt_pick_tile(e, vkt_blocks_tile(tiling));
    emit_blocks(e, g, &o, v, tiling);
    vkt_pick_end(e);
}
