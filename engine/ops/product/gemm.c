/* ops/product/gemm.c - see gemm.h and gemm_tile.h: splits a product, packs operands and multiplies by tiles in
 * registers. */
#include "ops/product/gemm_tile.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/gemm_pack.abi.h"
#include "abi/gemm_tile.abi.h"

/* ---- ranges ---- */

static uint64_t round_down(uint64_t x, uint64_t multiple)
{
    return x / multiple * multiple;
}

/* Splits n elements into equal parts of at most `most` elements, with as few parts as possible. Returns the size of a
 * part, rounded up to a multiple of `unit`; the last part may be smaller. `most` is n, or a multiple of `unit`. */
static uint64_t even(uint64_t n, uint64_t most, uint64_t unit)
{
    const uint64_t parts = (n + most - 1) / most;
    return vkt_round_up((n + parts - 1) / parts, unit);
}

void vkt_gemm_unsupported(vkt_emit *e, const vkt_gemm *g)
{
    vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                               "%s: a product (%u,%u) x (%u,%u) has rows too long for bindings of %llu bytes",
                               e->node->op->name, g->m, g->k, g->k, g->n,
                               (unsigned long long)e->lim->max_storage_range_bytes));
}

bool vkt_gemm_split_of(const vkt_emit *e, const vkt_gemm *g, vkt_gemm_split *o)
{
    const uint64_t n = vkt_gemm_capacity(e), groups = e->lim->max_groups;
    o->sg = vkt_subgroup(e->lim, VKT_K_GEMM_TILE);
    o->nb = 4 * o->sg;
    o->mb = vkt_product_rows(e->lim);
    while (o->mb > 4 && o->mb / 2 >= g->m) o->mb /= 2; /* for few rows, a tile has fewer rows, but at least four */
    const uint64_t columns = vkt_round_up(g->n, o->nb), most_rows = groups * o->mb;
    if (columns > groups * o->nb) return false;
    uint64_t k = VKT_MIN(g->k, 4 * vkt_rough_loop(e->lim));
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
        const uint64_t slack = vkt_gemm_span(&g->a, 1, g->a.x_outer ? g->m : g->k, g->a.x_outer ? g->k : g->m) +
                               vkt_gemm_span(&g->b, 1, g->b.x_outer ? g->n : g->k, g->b.x_outer ? g->k : g->n);
        /* The last matrix of a binding may be longer than `batch`, the distance between two matrices. So `left`
         * excludes the size of one matrix of each operand. */
        const uint64_t left = n > slack ? n - slack : 0;
        batches = VKT_MIN(left / VKT_MAX(VKT_MAX(a, b), VKT_MAX(g->c.batch, 1)), VKT_MIN(groups, (uint64_t)g->batches));
    }
    o->batches = (uint32_t)VKT_MAX(batches, 1);
    o->rows = (uint32_t)rows;
    o->k = (uint32_t)k;
    return true;
}

/* ---- packing ---- */

/* Packs block b of src to `dst`, from row `dst_row` of dst on. The block must fit into a binding. `dst` has panels of
 * dst_k rows, and a row has `width` elements. A batch of dst starts `dst_batch` vec4s behind the previous batch. */
static void emit_pack_range(vkt_emit *e, const vkt_gemm_matrix *src, const vkt_gemm_part *b, vkt_tensor dst,
                            uint32_t width, uint32_t dst_k, uint64_t dst_row, uint64_t dst_batch)
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
    const vkt_bind from =
        vkt_bind_range(e, src->t, vkt_gemm_start(src, b),
                       vkt_gemm_span(src, b->batches, outer, src->x_outer ? b->kn : b->xn), &push.src_base);
    const vkt_bind bind[] = { [PACK_SRC4] = from, [PACK_DST] = VKT_WHOLE(dst), [PACK_SRC] = from };
    const uint32_t count = vkt_div_up(b->xn, width), lanes = vkt_lanes(e->lim, e->lim->traits->lanes_pack_matrix);
    const bool vectors = src->ld % 4 == 0 && src->batch % 4 == 0 && push.src_base % 4 == 0;
    const uint32_t spec[] = {
        lanes, [PACK_SPEC_WIDTH] = width, [PACK_SPEC_X_OUTER] = src->x_outer, [PACK_SPEC_VECTORS] = vectors
    };
    const uint64_t items = src->x_outer ? (uint64_t)vkt_div_up(k4, 4) * width : (uint64_t)k4 * (width / 4),
                   groups = e->lim->traits->groups_pack_matrix,
                   wanted = groups ? vkt_groups(groups, 1, count * b->batches) : items;
    const uint64_t gx = VKT_MIN(VKT_MAX(wanted, vkt_groups(items, lanes, 4096)), vkt_groups(items, lanes, 1));
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_GEMM_PACK,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(push),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { gx, count, b->batches } });
}

/* Packs block b of src. If one binding cannot hold the block, packs one range after the other along the slow dimension
 * of src. */
static void emit_pack(vkt_emit *e, const vkt_gemm *g, const vkt_gemm_matrix *src, const vkt_gemm_part *b,
                      vkt_tensor dst, uint32_t width)
{
    const uint32_t outer_n = src->x_outer ? b->xn : b->kn, inner_n = src->x_outer ? b->kn : b->xn;
    const uint32_t dst_k = (uint32_t)vkt_round_up(b->kn, 4), unit = src->x_outer ? width : 4;
    const uint64_t dst_batch = vkt_round_up(b->xn, width) * dst_k / 4;
    uint64_t step = outer_n;
    if (vkt_gemm_span(src, b->batches, outer_n, inner_n) > vkt_gemm_capacity(e))
        step = round_down(vkt_gemm_capacity(e) / src->ld, unit);
    if (step == 0) {
        vkt_gemm_unsupported(e, g);
        return;
    }
    for (uint64_t at = 0; at < outer_n; at += step) {
        vkt_gemm_part part = *b;
        const uint32_t n = (uint32_t)VKT_MIN(step, outer_n - at);
        if (src->x_outer)
            part.x0 += (uint32_t)at, part.xn = n;
        else
            part.k0 += (uint32_t)at, part.kn = n;
        emit_pack_range(e, src, &part, dst, width, dst_k, src->x_outer ? at / width * dst_k : at, dst_batch);
    }
}

bool vkt_gemm_needs_no_packing(const vkt_emit *e, const vkt_gemm_matrix *src, const vkt_gemm_part *b)
{
    const uint32_t outer = src->x_outer ? b->xn : b->kn, inner = src->x_outer ? b->kn : b->xn;
    return !src->blocks && inner % 4 == 0 && b->kn % 4 == 0 && src->ld % 4 == 0 && src->batch % 4 == 0 &&
           vkt_gemm_start(src, b) % 4 == 0 && vkt_gemm_span(src, b->batches, outer, inner) <= vkt_gemm_capacity(e);
}

static vkt_gemm_panels unpacked(const vkt_emit *e, const vkt_gemm_matrix *src, const vkt_gemm_part *b, uint32_t width)
{
    const uint32_t outer = src->x_outer ? b->xn : b->kn, inner = src->x_outer ? b->kn : b->xn;
    const uint32_t ld4 = src->ld / 4;
    vkt_gemm_panels p = { .step = ld4,
                          .k_step = src->x_outer ? 1 : 4 * ld4,
                          .panel = src->x_outer ? width * ld4 : width / 4,
                          .batch = (uint32_t)(src->batch / 4),
                          .last = src->x_outer ? b->xn - 1 : b->xn / 4 - 1,
                          .rows = src->x_outer };
    p.bind = vkt_bind_range(e, src->t, vkt_gemm_start(src, b), vkt_gemm_span(src, b->batches, outer, inner), &p.base);
    p.base /= 4;
    return p;
}

vkt_gemm_panels vkt_gemm_operand(vkt_emit *e, const vkt_gemm *g, const vkt_gemm_matrix *src, const vkt_gemm_part *b,
                                 uint32_t width, bool placed, uint64_t bytes, vkt_tensor *scratch)
{
    const bool is_a = src == &g->a;
    if (placed && vkt_gemm_needs_no_packing(e, src, b)) return unpacked(e, src, b, width);
    vkt_gemm_part whole = *b;
    if (src->batch == 0) whole.batches = 1;
    if (!scratch->id) *scratch = vkt_scratch(e, is_a ? "a" : "b", bytes);
    if (src->blocks)
        src->blocks->emit_panels(e, src->blocks->weights, src->t, (uint32_t)(src->first / src->ld) + b->k0, b->kn,
                                 width, *scratch);
    else
        emit_pack(e, g, src, &whole, *scratch, width);
    const uint32_t panel = (uint32_t)vkt_round_up(b->kn, 4) * (width / 4);
    return (vkt_gemm_panels){ .bind = VKT_WHOLE(*scratch),
                              .step = src->x_outer ? 1 : width / 4,
                              .k_step = width,
                              .panel = panel,
                              .batch = src->batch ? vkt_div_up(b->xn, width) * panel : 0,
                              .last = UINT32_MAX,
                              .rows = src->x_outer };
}

/* ---- the product ---- */

void vkt_gemm_emit_tiles(vkt_emit *e, const vkt_gemm *g, const vkt_gemm_split *o, const vkt_gemm_panels *a,
                         const vkt_gemm_panels *b, const vkt_gemm_part *rows)
{
    vkt_gemm_tile_push push = { .k4 = vkt_div_up(rows->kn, 4),
                                .M = rows->xn,
                                .N = g->n,
                                .ldc = g->c.ld,
                                .c_batch = (uint32_t)g->c.batch,
                                .c_panel = o->nb,
                                .a_base = a->base,
                                .a_step = a->step,
                                .a_k_step = a->k_step,
                                .a_panel = a->panel,
                                .a_batch = a->batch,
                                .a_last = a->last,
                                .b_base = b->base,
                                .b_step = b->step,
                                .b_k_step = b->k_step,
                                .b_panel = b->panel,
                                .b_batch = b->batch,
                                .b_last = b->last };
    const uint64_t first = g->c.first + rows->batch0 * g->c.batch + (uint64_t)rows->x0 * g->c.ld;
    const vkt_bind c =
        vkt_bind_range(e, g->c.t, first, vkt_gemm_span(&g->c, rows->batches, rows->xn, g->n), &push.c_base);
    const bool bias = g->bias.id && rows->k0 == 0;
    const bool vectors = push.c_base % 4 == 0 && g->c.batch % 4 == 0 && g->c.ld % 4 == 0 && g->n % 4 == 0;
    const vkt_bind bind[] = {
        [GEMM_A] = a->bind, [GEMM_B] = b->bind, [GEMM_C] = c, [GEMM_BIAS] = bias ? VKT_WHOLE(g->bias) : a->bind
    };
    const uint32_t across = vkt_div_up(g->n, o->nb), down = vkt_div_up(rows->xn, o->mb);
    const bool rows_first = 4ull * g->n * rows->kn > (uint64_t)e->lim->traits->rows_first_kib << 10;
    const uint32_t spec[] = { o->sg,
                              [GEMM_SPEC_R] = o->mb / 4,
                              [GEMM_SPEC_VECTORS] = vectors,
                              [GEMM_SPEC_ACCUMULATE] = g->accumulate || rows->k0 > 0,
                              [GEMM_SPEC_BIAS] = bias,
                              [GEMM_SPEC_A_ROWS] = a->rows,
                              [GEMM_SPEC_B_ROWS] = b->rows,
                              [GEMM_SPEC_ROWS_FIRST] = rows_first };
    vkt_dispatch_add(
        e, &(vkt_launch){ .kernel = VKT_K_GEMM_TILE,
                          VKT_LAUNCH_BIND(bind),
                          VKT_LAUNCH_PUSH(push),
                          VKT_LAUNCH_SPEC(spec),
                          .groups = { rows_first ? down : across, rows_first ? across : down, rows->batches } });
}
