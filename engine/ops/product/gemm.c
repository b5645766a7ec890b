/* ops/product/gemm.c - see gemm.h. */
#include "ops/product/gemm_shared.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/gemm_pack.abi.h"
#include "abi/gemm_sum.abi.h"
#include "abi/gemm_tile.abi.h"

/* k of one dispatch: a loop of 50,000 turns of four (Mesa 22.3 stops at 65,535). */
#define MAX_K 200000u
/* An operand that is read fewer times than this is multiplied where it lies: packing costs as much as it saves (1024^3
 * on lavapipe, 256 bits: both packed 120 GFLOP/s, one of them 96 to 113, none 87; at 512^3 there is no difference). */
#define PACK_READS 512u

/* How a product is cut into dispatches. */
typedef struct blocks {
    uint32_t sg, mb, nb;       /* tile: mb rows, nb columns */
    uint32_t batches, rows, k; /* of one block: several batches only if rows and k are whole */
} blocks;

/* An operand that gemm_tile can read: abi/gemm_tile.abi.h. */
typedef struct panels {
    vkt_bind bind;
    uint32_t base, step, turn, panel, batch, last;
    bool rows; /* vec4s lie along k */
} panels;

/* ---- windows ---- */

/* Elements that a binding holds, whatever the alignment of the first. */
static uint64_t room(const vkt_emit *e)
{
    return (e->lim->max_storage_range_bytes - VKT_ALIGN_BYTES) / 4;
}

/* From the first to the last element of a block of a matrix. */
static uint64_t span(const vkt_gemm_matrix *m, uint64_t batches, uint64_t outer, uint64_t inner)
{
    return (batches - 1) * m->batch + (outer - 1) * m->ld + inner;
}

static uint64_t round_down(uint64_t x, uint64_t multiple)
{
    return x / multiple * multiple;
}

/* Splits n into as many parts as parts of `most` elements would be, but into even ones. Parts are multiples of `unit`.
 * So is `most`, unless it is all of n. */
static uint64_t even(uint64_t n, uint64_t most, uint64_t unit)
{
    const uint64_t parts = (n + most - 1) / most;
    return vkt_round_up((n + parts - 1) / parts, unit);
}

static void unsupported(vkt_emit *e, const vkt_gemm *g)
{
    vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                               "%s: a product (%u,%u) x (%u,%u) has rows too long for bindings of %llu bytes",
                               e->node->op->name, g->m, g->k, g->k, g->n,
                               (unsigned long long)e->lim->max_storage_range_bytes));
}

/* The tile and the largest blocks that fit; false: none does. */
static bool cut(const vkt_emit *e, const vkt_gemm *g, blocks *o)
{
    const uint64_t n = room(e), groups = e->lim->max_groups;
    o->sg = e->lim->subgroup_size;
    o->nb = 4 * o->sg;
    o->mb = VKT_MIN(4 * o->sg, e->lim->cpu && o->sg == 16 ? 64u : 32u);
    const uint64_t columns = vkt_round_up(g->n, o->nb), most_rows = groups * o->mb;
    if (columns > groups * o->nb) return false;
    uint64_t k = VKT_MIN(g->k, MAX_K);
    if (vkt_round_up(k, 4) * VKT_MAX(columns, o->mb) > n) k = round_down(n / VKT_MAX(columns, o->mb), 4);
    if (k == 0) return false;
    const uint64_t k4 = vkt_round_up(k, 4);
    uint64_t rows = VKT_MIN(VKT_MIN((uint64_t)g->m, n / g->c.ld), most_rows);
    if (vkt_round_up(rows, o->mb) * k4 > n) rows = round_down(n / k4, o->mb);
    if (rows < g->m) rows = round_down(rows, o->mb);
    if (rows == 0) return false;
    rows = VKT_MIN(even(g->m, rows, o->mb), g->m);
    k = VKT_MIN(even(g->k, k, 4), g->k);
    uint64_t batches = 1;
    if (rows == g->m && k == g->k) {
        const uint64_t a = VKT_MAX(vkt_round_up(rows, o->mb) * k4, g->a.batch), b = VKT_MAX(columns * k4, g->b.batch);
        const uint64_t slack = span(&g->a, 1, g->a.x_outer ? g->m : g->k, g->a.x_outer ? g->k : g->m) +
                               span(&g->b, 1, g->b.x_outer ? g->n : g->k, g->b.x_outer ? g->k : g->n);
        const uint64_t left = n > slack ? n - slack : 0; /* the last matrix may be longer than the step to the next */
        batches = VKT_MIN(left / VKT_MAX(VKT_MAX(a, b), VKT_MAX(g->c.batch, 1)), VKT_MIN(groups, (uint64_t)g->batches));
    }
    o->batches = (uint32_t)VKT_MAX(batches, 1);
    o->rows = (uint32_t)rows;
    o->k = (uint32_t)k;
    return true;
}

/* ---- packing ---- */

typedef struct block {
    uint32_t batch0, batches, x0, xn, k0, kn;
} block;

/* The block's first element in the tensor. */
static uint64_t start(const vkt_gemm_matrix *src, const block *b)
{
    return b->batch0 * src->batch + (uint64_t)(src->x_outer ? b->x0 : b->k0) * src->ld + (src->x_outer ? b->k0 : b->x0);
}

/* Packs one block that fits into a binding to `dst`, of panels `width` wide and dst_k k long, from panel-row `dst_row`
 * on. */
static void emit_pack_window(vkt_emit *e, const vkt_gemm_matrix *src, const block *b, vkt_tensor dst, uint32_t width,
                             uint32_t dst_k, uint64_t dst_row, uint64_t dst_batch)
{
    const uint32_t k4 = vkt_div_up(b->kn, 4), outer = src->x_outer ? b->xn : b->kn;
    vkt_gemm_pack_push push = { .xn = b->xn,
                                .kn = b->kn,
                                .k4 = k4,
                                .ld = src->ld,
                                .src_batch = (uint32_t)src->batch,
                                .dst_base = (uint32_t)(dst_row * (width / 4)),
                                .dst_panel = dst_k * (width / 4),
                                .dst_batch = (uint32_t)dst_batch };
    const vkt_bind from = vkt_window(e, src->t, start(src, b),
                                     span(src, b->batches, outer, src->x_outer ? b->kn : b->xn), &push.src_base);
    const vkt_bind bind[] = { [PACK_SRC4] = from, [PACK_DST] = VKT_WHOLE(dst), [PACK_SRC] = from };
    const uint32_t count = vkt_div_up(b->xn, width), lanes = e->lim->cpu ? e->lim->subgroup_size : 64;
    const bool vectors = src->ld % 4 == 0 && src->batch % 4 == 0 && push.src_base % 4 == 0;
    const uint32_t spec[] = {
        lanes, [PACK_SPEC_WIDTH] = width, [PACK_SPEC_X_OUTER] = src->x_outer, [PACK_SPEC_VECTORS] = vectors
    };
    const uint64_t items = src->x_outer ? (uint64_t)vkt_div_up(k4, 4) * width : (uint64_t)k4 * (width / 4),
                   wanted = e->lim->cpu ? vkt_groups(64, 1, count * b->batches) : items;
    const uint64_t gx = VKT_MIN(VKT_MAX(wanted, vkt_groups(items, lanes, 4096)), vkt_groups(items, lanes, 1));
    vkt_dispatch_add(e, VKT_K_GEMM_PACK, bind, VKT_COUNT(bind), &push, sizeof push, spec, VKT_COUNT(spec), gx, count,
                     b->batches);
}

/* Packs a block whose source may be larger than a binding: windows of its slow dimension. */
static void emit_pack(vkt_emit *e, const vkt_gemm *g, const vkt_gemm_matrix *src, const block *b, vkt_tensor dst,
                      uint32_t width)
{
    const uint32_t outer_n = src->x_outer ? b->xn : b->kn, inner_n = src->x_outer ? b->kn : b->xn;
    const uint32_t dst_k = (uint32_t)vkt_round_up(b->kn, 4), unit = src->x_outer ? width : 4;
    const uint64_t dst_batch = vkt_round_up(b->xn, width) * dst_k / 4;
    uint64_t step = outer_n;
    if (span(src, b->batches, outer_n, inner_n) > room(e)) step = round_down(room(e) / src->ld, unit);
    if (step == 0) {
        unsupported(e, g);
        return;
    }
    for (uint64_t at = 0; at < outer_n; at += step) {
        block part = *b;
        const uint32_t n = (uint32_t)VKT_MIN(step, outer_n - at);
        if (src->x_outer)
            part.x0 += (uint32_t)at, part.xn = n;
        else
            part.k0 += (uint32_t)at, part.kn = n;
        emit_pack_window(e, src, &part, dst, width, dst_k, src->x_outer ? at / width * dst_k : at, dst_batch);
    }
}

/* Whole vec4s everywhere, in one binding: gemm_tile can read the block itself. */
static bool lies_well(const vkt_emit *e, const vkt_gemm_matrix *src, const block *b)
{
    const uint32_t outer = src->x_outer ? b->xn : b->kn, inner = src->x_outer ? b->kn : b->xn;
    return inner % 4 == 0 && b->kn % 4 == 0 && src->ld % 4 == 0 && src->batch % 4 == 0 && start(src, b) % 4 == 0 &&
           span(src, b->batches, outer, inner) <= room(e);
}

static panels unpacked(const vkt_emit *e, const vkt_gemm_matrix *src, const block *b, uint32_t width)
{
    const uint32_t outer = src->x_outer ? b->xn : b->kn, inner = src->x_outer ? b->kn : b->xn;
    const uint32_t ld4 = src->ld / 4;
    panels p = { .step = ld4,
                 .turn = src->x_outer ? 1 : 4 * ld4,
                 .panel = src->x_outer ? width * ld4 : width / 4,
                 .batch = (uint32_t)(src->batch / 4),
                 .last = src->x_outer ? b->xn - 1 : b->xn / 4 - 1,
                 .rows = src->x_outer };
    p.bind = vkt_window(e, src->t, start(src, b), span(src, b->batches, outer, inner), &p.base);
    p.base /= 4;
    return p;
}

/* The operand in panels of `width`: packed into `scratch` (made here at first need, for blocks of up to `bytes`), or,
 * if it is `placed`, where it lies. */
static panels operand(vkt_emit *e, const vkt_gemm *g, const vkt_gemm_matrix *src, const block *b, uint32_t width,
                      bool placed, uint64_t bytes, vkt_tensor *scratch)
{
    const bool is_a = src == &g->a;
    if (placed && lies_well(e, src, b)) return unpacked(e, src, b, width);
    block whole = *b;
    if (src->batch == 0) whole.batches = 1;
    if (!scratch->id) *scratch = vkt_scratch(e, is_a ? "a" : "b", bytes);
    emit_pack(e, g, src, &whole, *scratch, width);
    const uint32_t panel = (uint32_t)vkt_round_up(b->kn, 4) * (width / 4);
    return (panels){ .bind = VKT_WHOLE(*scratch),
                     .step = src->x_outer ? 1 : width / 4,
                     .turn = width,
                     .panel = panel,
                     .batch = src->batch ? vkt_div_up(b->xn, width) * panel : 0,
                     .last = UINT32_MAX,
                     .rows = src->x_outer };
}

/* ---- the product ---- */

static void emit_tiles(vkt_emit *e, const vkt_gemm *g, const blocks *o, const panels *a, const panels *b,
                       const block *rows)
{
    vkt_gemm_tile_push push = { .k4 = vkt_div_up(rows->kn, 4),
                                .M = rows->xn,
                                .N = g->n,
                                .ldc = g->c.ld,
                                .c_batch = (uint32_t)g->c.batch,
                                .c_panel = o->nb,
                                .a_base = a->base,
                                .a_step = a->step,
                                .a_turn = a->turn,
                                .a_panel = a->panel,
                                .a_batch = a->batch,
                                .a_last = a->last,
                                .b_base = b->base,
                                .b_step = b->step,
                                .b_turn = b->turn,
                                .b_panel = b->panel,
                                .b_batch = b->batch,
                                .b_last = b->last };
    const uint64_t first = rows->batch0 * g->c.batch + (uint64_t)rows->x0 * g->c.ld;
    const vkt_bind c = vkt_window(e, g->c.t, first, span(&g->c, rows->batches, rows->xn, g->n), &push.c_base);
    const bool bias = g->bias.id && rows->k0 == 0;
    const bool vectors = push.c_base % 4 == 0 && g->c.batch % 4 == 0 && g->c.ld % 4 == 0 && g->n % 4 == 0;
    const vkt_bind bind[] = {
        [GEMM_A] = a->bind, [GEMM_B] = b->bind, [GEMM_C] = c, [GEMM_BIAS] = bias ? VKT_WHOLE(g->bias) : a->bind
    };
    const uint32_t spec[] = { o->sg,
                              [GEMM_SPEC_R] = o->mb / 4,
                              [GEMM_SPEC_VECTORS] = vectors,
                              [GEMM_SPEC_ACCUMULATE] = rows->k0 > 0,
                              [GEMM_SPEC_BIAS] = bias,
                              [GEMM_SPEC_A_ROWS] = a->rows,
                              [GEMM_SPEC_B_ROWS] = b->rows };
    vkt_dispatch_add(e, VKT_K_GEMM_TILE, bind, VKT_COUNT(bind), &push, sizeof push, spec, VKT_COUNT(spec),
                     vkt_div_up(g->n, o->nb), vkt_div_up(rows->xn, o->mb), rows->batches);
}

/* ---- the product on a GPU ---- */

static bool in_one_binding(const vkt_emit *e, const vkt_gemm_matrix *m, const block *b)
{
    return span(m, b->batches, m->x_outer ? b->xn : b->kn, m->x_outer ? b->kn : b->xn) <= room(e);
}

/* How the largest blocks are made in shared memory, by those variants that can. */
typedef struct shared_cuts {
    vkt_blocks shared, split_k, coop;
    bool can_shared, can_split_k, can_coop;
} shared_cuts;

static shared_cuts cut_shared(const vkt_emit *e, const vkt_gemm *g, const blocks *o)
{
    shared_cuts c = { .can_shared = false };
    const bool placed = in_one_binding(e, &g->a, &(block){ 0, o->batches, 0, o->rows, 0, o->k }) &&
                        in_one_binding(e, &g->b, &(block){ 0, o->batches, 0, g->n, 0, o->k });
    const vkt_blocks_job job = { .m = o->rows, .n = g->n, .k = o->k, .count = o->batches };
    const bool dense = g->c.ld == g->n && (o->batches == 1 || g->c.batch == (uint64_t)o->rows * g->n);
    const uint64_t most = dense ? room(e) / ((uint64_t)o->batches * o->rows * g->n) : 0;
    if (!placed) return c;
    c.can_shared = vkt_blocks_cut(e->lim, &job, 1, &c.shared);
    c.can_split_k = vkt_blocks_cut(e->lim, &job, most, &c.split_k) && c.split_k.slices > 1;
    c.can_coop = vkt_blocks_cut_coop(e, job, most, &c.coop);
    return c;
}

/* NULL: v is none of shared memory. */
static const vkt_blocks *cut_of(const shared_cuts *c, vkt_variant v)
{
    return v == VKT_V_SHARED ? &c->shared : v == VKT_V_SPLIT_K ? &c->split_k : v == VKT_V_COOP ? &c->coop : NULL;
}

static void emit_shared(vkt_emit *e, const vkt_gemm *g, const vkt_blocks *cut, const block *rows)
{
    const block columns = { rows->batch0, rows->batches, 0, g->n, rows->k0, rows->kn };
    const uint64_t first = rows->batch0 * g->c.batch + (uint64_t)rows->x0 * g->c.ld;
    vkt_gemm_block b = { .g = g, .m = rows->xn, .k = rows->kn, .batches = rows->batches, .accumulate = rows->k0 > 0 };
    b.bias = rows->k0 + rows->kn == g->k ? g->bias : (vkt_tensor){ 0 };
    b.a = vkt_window(e, g->a.t, start(&g->a, rows),
                     span(&g->a, rows->batches, g->a.x_outer ? b.m : b.k, g->a.x_outer ? b.k : b.m), &b.a_base);
    b.b = vkt_window(e, g->b.t, start(&g->b, &columns),
                     span(&g->b, rows->batches, g->b.x_outer ? g->n : b.k, g->b.x_outer ? b.k : g->n), &b.b_base);
    b.c = vkt_window(e, g->c.t, first, span(&g->c, rows->batches, rows->xn, g->n), &b.c_base);
    vkt_gemm_shared_emit(e, &b, cut);
}

/* ---- which way ---- */

/* GPUs take tiles in shared memory wherever they can, in this order: not measured. Multiply-adds beside those of
 * PACKED. */
#define SHARED_COST 0.5
#define SPLIT_K_COST 0.4375
#define COOP_COST 0.375

/* Multiply-adds, and the time to read A and B as copies of elements: an operand is copied to panels once, or read where
 * it lies, which costs as much for PACK_READS rows or columns of the other. */
static double panels_cost(const vkt_gemm *g, bool a_packed, bool b_packed)
{
    const double a = (double)g->m * g->k, b = (double)g->n * g->k, reads = PACK_READS;
    return a * g->n + a * (a_packed ? 1 : g->n / reads) + b * (b_packed ? 1 : g->m / reads);
}

static double shared_cost(const vkt_emit *e, const vkt_gemm *g, double each)
{
    return e->lim->cpu ? VKT_COST_NEVER : each * g->m * g->n * g->k;
}

/* The least cost wins; of equals the first. Later blocks lie as the first does, or are packed all the same. */
static vkt_variant pick(vkt_emit *e, const vkt_gemm *g, const blocks *o, const shared_cuts *shared)
{
    const bool a_lies = lies_well(e, &g->a, &(block){ 0, o->batches, 0, o->rows, 0, o->k });
    const bool b_lies = lies_well(e, &g->b, &(block){ 0, o->batches, 0, g->n, 0, o->k });
    const struct {
        vkt_variant variant;
        bool can;
        double cost;
    } ways[] = {
        { VKT_V_PACKED, true, panels_cost(g, true, true) },
        { VKT_V_PACKED_A, b_lies, panels_cost(g, true, false) },
        { VKT_V_PACKED_B, a_lies, panels_cost(g, false, true) },
        { VKT_V_PLACED, a_lies && b_lies, panels_cost(g, false, false) },
        { VKT_V_SHARED, shared->can_shared, shared_cost(e, g, SHARED_COST) },
        { VKT_V_SPLIT_K, shared->can_split_k, shared_cost(e, g, SPLIT_K_COST) },
        { VKT_V_COOP, shared->can_coop, shared_cost(e, g, COOP_COST) },
    };
    vkt_way candidates[VKT_COUNT(ways)];
    uint32_t n = 0;
    for (size_t i = 0; i < VKT_COUNT(ways); i++)
        if (ways[i].can) candidates[n++] = (vkt_way){ ways[i].variant, ways[i].cost };
    return vkt_pick(e, candidates, n);
}

/* ---- sums of parts ---- */

void vkt_gemm_sum_emit(vkt_emit *e, const vkt_gemm_sum *s)
{
    const bool biased = s->bias.t.id != 0, wide = (s->n | s->c_base | (biased ? s->columns : 0)) % 4 == 0;
    const vkt_gemm_sum_push push = { .n = s->n, .columns = s->columns, .slices = s->slices, .c_base = s->c_base };
    const vkt_bind bind[] = {
        [GEMM_SUM_PART] = s->part, [GEMM_SUM_C] = s->c, [GEMM_SUM_BIAS] = biased ? s->bias : s->part
    };
    const uint32_t spec[] = { e->lim->cpu ? e->lim->subgroup_size : 128u, [GEMM_SUM_SPEC_ACCUMULATE] = s->accumulate,
                              [GEMM_SUM_SPEC_BIAS] = biased };
    vkt_dispatch_add(e, wide ? VKT_K_GEMM_SUM4 : VKT_K_GEMM_SUM, bind, VKT_COUNT(bind), &push, sizeof push, spec,
                     VKT_COUNT(spec), vkt_groups(wide ? s->n / 4 : s->n, spec[0], e->lim->cpu ? 64 : 1), 1, 1);
}

/* Puts one batch of C, which is stored in 16 bits, from the f32 that its sums went on in. */
static void emit_narrow(vkt_emit *e, const vkt_gemm *g, vkt_tensor sums, uint32_t batch)
{
    const uint64_t n = (uint64_t)g->m * g->n, most = vkt_window_elements(e->lim);
    for (uint64_t at = 0; at < n; at += most) {
        vkt_gemm_sum sum = { .n = (uint32_t)VKT_MIN(most, n - at), .slices = 1 };
        sum.part = vkt_part(e, sums, at, sum.n);
        sum.c = vkt_window(e, g->c.t, batch * g->c.batch + at, sum.n, &sum.c_base);
        vkt_gemm_sum_emit(e, &sum);
    }
}

/* Where the sums of one batch of C go on from dispatch to dispatch: f32. {0}: where it is no other than C. */
static vkt_tensor sums_for(vkt_emit *e, const vkt_gemm *g, const blocks *o)
{
    if (o->k == g->k || vkt_lowered_value(e, g->c.t)->storage == VKT_PRECISION_F32) return (vkt_tensor){ 0 };
    return vkt_scratch(e, "sums", 4 * (uint64_t)g->m * g->n);
}

static void emit_blocks(vkt_emit *e, const vkt_gemm *g, const blocks *o, vkt_variant v, const vkt_blocks *shared)
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
            const block columns = { batch, batches, 0, g->n, k0, kn };
            panels b = { 0 };
            if (!shared) b = operand(e, g, &g->b, &columns, o->nb, b_placed, b_bytes, &b_scratch);
            for (uint32_t row = 0; row < g->m; row += o->rows) {
                const block rows = { batch, batches, row, VKT_MIN(o->rows, g->m - row), k0, kn };
                if (shared) {
                    emit_shared(e, &parts, shared, &rows);
                    continue;
                }
                const panels a = operand(e, g, &g->a, &rows, o->mb, a_placed, a_bytes, &a_scratch);
                emit_tiles(e, &parts, o, &a, &b, &rows);
            }
        }
        if (sums.id) emit_narrow(e, g, sums, batch);
    }
}

void vkt_gemm_emit(vkt_emit *e, const vkt_gemm *g)
{
    blocks o;
    if (!cut(e, g, &o)) {
        unsupported(e, g);
        return;
    }
    const shared_cuts shared = cut_shared(e, g, &o);
    const vkt_variant v = pick(e, g, &o, &shared);
    emit_blocks(e, g, &o, v, cut_of(&shared, v));
}
