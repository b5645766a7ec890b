/* ops/conv/choose.c - the variants of a convolution and of its gradients, as tables. An entry has functions that
 * return whether the variant can run and what it costs on this device, and that emit its dispatches. A new variant
 * needs a name in base/variant.h, and an entry in one or both of the tables. */
#include "ops/conv/choose.h"

#include "base/built.h"
#include "kernel/ids.h"
#include "ops/conv/pool.h"
#include "ops/conv/variants.h"
#include "ops/elementwise/elementwise.h"

/* If two variants would have the same cost, the cost of the slightly slower one is multiplied by this factor. */
#define A_LITTLE_MORE 1.01

#define MAX_VARIANTS 16

/* ---- y and dx ---- */

static bool always(const vkt_emit *e, const vkt_conv_job *j, vkt_variant v)
{
    (void)e, (void)j, (void)v;
    return true;
}

static double tile_cost(const vkt_emit *e, const vkt_conv_job *j, vkt_variant v)
{
    (void)e, (void)v;
    const uint32_t *kernel = j->z->kernel;
    const double pixels = (double)j->z->out[0] * j->z->out[1] * j->z->n4 * 4;
    return pixels * j->z->channels * j->z->out_channels / j->z->a.groups * kernel[0] * kernel[1];
}

static double tiles_cost(const vkt_emit *e, const vkt_conv_job *j, vkt_variant v)
{
    return tile_cost(e, j, v) * e->lim->traits->tile_cost;
}

/* Returns the cost of a multiply-add of SHARED or COOP. */
static double in_shared_memory(const vkt_traits *t, const vkt_conv2d_tilings *c, vkt_variant v)
{
    if (!c->pays || (v == VKT_V_COOP && !c->coop_pays)) return VKT_COST_NEVER;
    return v == VKT_V_COOP ? vkt_blocks_coop_cost(t, &c->coop) : t->shared_cost * c->waste;
}

static bool direct_can(const vkt_emit *e, const vkt_conv_job *j, vkt_variant v)
{
    (void)e, (void)v;
    return vkt_conv2d_is_shallow(j->depth, j->z->kernel) && j->most.depth == j->depth;
}

/* On a device with the trait shared_pays (GPUs), DIRECT costs a little more than DIRECT_SHARED. */
static double direct_cost(const vkt_emit *e, const vkt_conv_job *j, vkt_variant v)
{
    const vkt_traits *t = e->lim->traits;
    return tile_cost(e, j, v) * t->direct_cost * (t->shared_pays ? A_LITTLE_MORE : 1);
}

static bool direct_shared_can(const vkt_emit *e, const vkt_conv_job *j, vkt_variant v)
{
    (void)v;
    return vkt_conv_direct_shared_can(e, j);
}

static double direct_shared_cost(const vkt_emit *e, const vkt_conv_job *j, vkt_variant v)
{
    const vkt_traits *t = e->lim->traits;
    if (!t->shared_pays) return VKT_COST_NEVER;
    return tile_cost(e, j, v) * (vkt_conv2d_is_shallow(j->depth, j->z->kernel) ? t->direct_cost : t->direct_deep_cost);
}

static bool span_can(const vkt_emit *e, const vkt_conv_job *j, vkt_variant v)
{
    (void)v;
    return vkt_conv_span_can(e, j);
}

static double span_cost(const vkt_emit *e, const vkt_conv_job *j, vkt_variant v)
{
    const vkt_traits *t = e->lim->traits;
    if (!t->span_channels && !t->span_channels_flat) return VKT_COST_NEVER;
    return tile_cost(e, j, v) * (vkt_conv_span_pays(e->lim, j) ? 1 : A_LITTLE_MORE);
}

static vkt_conv2d_which which(const vkt_conv_job *j)
{
    return j->transposed ? VKT_CONV2D_DX : VKT_CONV2D_Y;
}

static bool fft_can(const vkt_emit *e, const vkt_conv_job *j, vkt_variant v)
{
    return vkt_conv_fft_can(e, j->z, which(j), v);
}

static double fft_cost(const vkt_emit *e, const vkt_conv_job *j, vkt_variant v)
{
    return vkt_conv_fft_cost(e, j->z, which(j), v);
}

static bool winograd_can(const vkt_emit *e, const vkt_conv_job *j, vkt_variant v)
{
    (void)v;
    return vkt_conv_winograd_can(e, j->z, j->transposed);
}

static double winograd_cost(const vkt_emit *e, const vkt_conv_job *j, vkt_variant v)
{
    (void)v;
    return vkt_conv_winograd_cost(e, j->z, j->transposed);
}

static bool shared_can(const vkt_emit *e, const vkt_conv_job *j, vkt_variant v)
{
    (void)e;
    return v == VKT_V_COOP ? j->tilings.can_coop : j->tilings.can_shared;
}

static double shared_cost(const vkt_emit *e, const vkt_conv_job *j, vkt_variant v)
{
    return tile_cost(e, j, v) * in_shared_memory(e->lim->traits, &j->tilings, v);
}

/* Emits all parts of the product (see parts.h). If the source channels are split, a part with k > 0 adds its products
 * to the sums of the part before it. Only a part with the last source channels applies the fused relu (e->relu). */
static void emit_parts(vkt_emit *e, vkt_conv_job *j, void (*emit)(vkt_emit *, vkt_conv_job *, const vkt_conv_part *))
{
    const vkt_conv_part *most = &j->most;
    const vkt_tensor relu = e->relu;
    vkt_conv_part p;
    for (p.group = 0; p.group < j->z->a.groups; p.group += most->groups)
        for (p.row = 0; p.row < j->rows; p.row += most->rows)
            for (p.k = 0; p.k < j->depth; p.k += most->depth) {
                p.groups = VKT_MIN(most->groups, j->z->a.groups - p.group);
                p.rows = VKT_MIN(most->rows, j->rows - p.row);
                p.depth = VKT_MIN(most->depth, j->depth - p.k);
                e->relu.id = p.k + p.depth == j->depth ? relu.id : 0;
                emit(e, j, &p);
            }
}

static void direct_emit(vkt_emit *e, vkt_conv_job *j, vkt_variant v)
{
    (void)v;
    emit_parts(e, j, vkt_conv_direct_emit);
}

static void direct_shared_emit(vkt_emit *e, vkt_conv_job *j, vkt_variant v)
{
    (void)v;
    emit_parts(e, j, vkt_conv_direct_shared_emit);
}

static void span_emit(vkt_emit *e, vkt_conv_job *j, vkt_variant v)
{
    (void)v;
    emit_parts(e, j, vkt_conv_span_emit);
}

static void tile_emit(vkt_emit *e, vkt_conv_job *j, vkt_variant v)
{
    (void)v;
    emit_parts(e, j, vkt_conv_tile_emit);
}

static void fft_emit(vkt_emit *e, vkt_conv_job *j, vkt_variant v)
{
    vkt_emit_conv2d_fft(e, j->z, v, j->transposed, j->from, j->w, j->bias, j->to);
}

static void winograd_emit(vkt_emit *e, vkt_conv_job *j, vkt_variant v)
{
    (void)v;
    vkt_emit_conv2d_winograd(e, j->z, j->transposed, j->from, j->w, j->bias, j->to);
}

static void shared_emit(vkt_emit *e, vkt_conv_job *j, vkt_variant v)
{
    vkt_conv_shared_emit(e, j, v == VKT_V_COOP ? &j->tilings.coop : &j->tilings.shared);
}

/* Chooses one of n variants. Records the tile if the variant is SHARED or COOP. */
static vkt_variant pick(vkt_emit *e, const vkt_variant_cost *candidates, uint32_t n, const vkt_conv2d_tilings *c)
{
    const vkt_variant v = vkt_pick(e, candidates, n);
    if (v == VKT_V_SHARED || v == VKT_V_COOP)
        vkt_pick_tile(e, vkt_blocks_tile(v == VKT_V_COOP ? &c->coop : &c->shared));
    return v;
}

/* By default, the variant with the least cost is used. If costs are equal, the entry that comes first is used. */
static const struct {
    vkt_variant variant;
    bool (*can)(const vkt_emit *e, const vkt_conv_job *j, vkt_variant v);
    double (*cost)(const vkt_emit *e, const vkt_conv_job *j, vkt_variant v);
    void (*emit)(vkt_emit *e, vkt_conv_job *j, vkt_variant v);
} variants[] = {
    { VKT_V_WINOGRAD, winograd_can, winograd_cost, winograd_emit },
    { VKT_V_FFT8, fft_can, fft_cost, fft_emit },
    { VKT_V_FFT13, fft_can, fft_cost, fft_emit },
    { VKT_V_FFT14, fft_can, fft_cost, fft_emit },
    { VKT_V_FFT15, fft_can, fft_cost, fft_emit },
    { VKT_V_FFT16, fft_can, fft_cost, fft_emit },
    { VKT_V_DIRECT, direct_can, direct_cost, direct_emit },
    { VKT_V_DIRECT_SHARED, direct_shared_can, direct_shared_cost, direct_shared_emit },
    { VKT_V_SPAN, span_can, span_cost, span_emit },
    { VKT_V_TILE, always, tiles_cost, tile_emit },
    { VKT_V_SHARED, shared_can, shared_cost, shared_emit },
    { VKT_V_COOP, shared_can, shared_cost, shared_emit },
};
_Static_assert(VKT_COUNT(variants) <= MAX_VARIANTS, "candidates are an array of that size");

static void emit_product(vkt_emit *e, vkt_conv_job *j)
{
    vkt_variant_cost candidates[MAX_VARIANTS];
    uint32_t n = 0;
    if (!VKT_BUILT_CONV2D_TILE) { /* then the code below is unreachable, and the linker leaves out all variants */
        vkt_kernel_absent(e, VKT_K_CONV2D_TILE);
        return;
    }
    j->dst_plane = (uint64_t)j->dst[0] * j->dst[1] * j->z->n4;
    j->src_plane = (uint64_t)j->src[0] * j->src[1] * j->z->n4;
    if (!vkt_conv_tile_split(e, j)) {
        vkt_conv2d_too_large(e, j->z);
        return;
    }
    j->tilings = vkt_conv_shared_plan(e, j);
    for (size_t i = 0; i < VKT_COUNT(variants); i++)
        if (variants[i].can(e, j, variants[i].variant))
            candidates[n++] = (vkt_variant_cost){ variants[i].variant, variants[i].cost(e, j, variants[i].variant) };
    const vkt_variant v = pick(e, candidates, n, &j->tilings);
    if (vkt_fuse_epilogue(e, VKT_FUSE_RELU)) e->relu = j->to;
    if (v == VKT_V_DIRECT_SHARED && e->epilogue && vkt_is_relu_dx(e->epilogue))
        j->slope = vkt_fuse_epilogue(e, VKT_FUSE_SLOPE)->in[0];
    for (size_t i = 0; i < VKT_COUNT(variants); i++)
        if (variants[i].variant == v) variants[i].emit(e, j, v);
}

void vkt_emit_conv2d(vkt_emit *e, const vkt_conv2d_size *z, vkt_tensor x, vkt_tensor w, vkt_tensor bias, vkt_tensor y)
{
    vkt_conv_job j = { .z = z,
                       .dst = { z->out[0], z->out[1] },
                       .src = { z->in[0], z->in[1] },
                       .rows = z->out_channels / z->a.groups,
                       .depth = z->channels / z->a.groups,
                       .from = x,
                       .w = w,
                       .bias = bias,
                       .to = y };
    emit_product(e, &j);
}

void vkt_emit_conv2d_dx(vkt_emit *e, const vkt_conv2d_size *z, vkt_tensor dy, vkt_tensor w, vkt_tensor bias,
                        vkt_tensor dx)
{
    vkt_conv_job j = { .z = z,
                       .transposed = true,
                       .dst = { z->in[0], z->in[1] },
                       .src = { z->out[0], z->out[1] },
                       .rows = z->channels / z->a.groups,
                       .depth = z->out_channels / z->a.groups,
                       .from = dy,
                       .w = w,
                       .bias = bias,
                       .to = dx };
    emit_product(e, &j);
}

/* ---- dw and db ---- */

static bool dw_always(const vkt_emit *e, const vkt_conv_dw_job *j, vkt_variant v)
{
    (void)e, (void)j, (void)v;
    return true;
}

static double dw_tile_cost(const vkt_emit *e, const vkt_conv_dw_job *j, vkt_variant v)
{
    (void)e, (void)v;
    return 4.0 * (double)j->dy_plane * j->rows * j->z->channels * j->z->kernel[0] * j->z->kernel[1];
}

static double dw_tiles_cost(const vkt_emit *e, const vkt_conv_dw_job *j, vkt_variant v)
{
    return dw_tile_cost(e, j, v) * e->lim->traits->tile_cost;
}

static bool dw_direct_can(const vkt_emit *e, const vkt_conv_dw_job *j, vkt_variant v)
{
    (void)e, (void)v;
    return vkt_conv_dw_direct_can(j);
}

/* Returns the cost of DIRECT. In TILE, each lane has output channels of its own. So lanes are idle if a group of the
 * convolution has fewer output channels than a subgroup has lanes. If at least half of the lanes would be idle, DIRECT
 * costs as much as TILE on a CPU driver. With equal costs DIRECT is used, because its entry comes first. */
static double dw_direct_cost(const vkt_emit *e, const vkt_conv_dw_job *j, vkt_variant v)
{
    const bool idle = 2 * j->rows <= vkt_subgroup(e->lim, VKT_K_CONV2D_DW);
    return dw_tile_cost(e, j, v) * e->lim->traits->dw_direct_cost * (idle ? 1 : A_LITTLE_MORE);
}

static bool dw_direct_shared_can(const vkt_emit *e, const vkt_conv_dw_job *j, vkt_variant v)
{
    (void)v;
    return vkt_conv_dw_direct_shared_can(e, j);
}

static double dw_direct_shared_cost(const vkt_emit *e, const vkt_conv_dw_job *j, vkt_variant v)
{
    const vkt_traits *t = e->lim->traits;
    return t->shared_pays ? dw_tile_cost(e, j, v) * t->direct_deep_cost : VKT_COST_NEVER;
}

static bool dw_fft_can(const vkt_emit *e, const vkt_conv_dw_job *j, vkt_variant v)
{
    return vkt_conv_fft_can(e, j->z, VKT_CONV2D_DW, v);
}

static double dw_fft_cost(const vkt_emit *e, const vkt_conv_dw_job *j, vkt_variant v)
{
    return vkt_conv_fft_cost(e, j->z, VKT_CONV2D_DW, v);
}

static bool dw_shared_can(const vkt_emit *e, const vkt_conv_dw_job *j, vkt_variant v)
{
    (void)e;
    return v == VKT_V_COOP ? j->tilings.can_coop : j->tilings.can_shared;
}

static double dw_shared_cost(const vkt_emit *e, const vkt_conv_dw_job *j, vkt_variant v)
{
    return dw_tile_cost(e, j, v) * in_shared_memory(e->lim->traits, &j->tilings, v);
}

static void dw_parts_emit(vkt_emit *e, vkt_conv_dw_job *j, vkt_variant v)
{
    vkt_conv_dw_emit(e, j, v);
}

static void dw_fft_emit(vkt_emit *e, vkt_conv_dw_job *j, vkt_variant v)
{
    vkt_emit_conv2d_fft_dw(e, j->z, v, j->x, j->dy, j->dw, j->db);
}

static void dw_shared_emit(vkt_emit *e, vkt_conv_dw_job *j, vkt_variant v)
{
    vkt_conv_dw_shared_emit(e, j, v == VKT_V_COOP ? &j->tilings.coop : &j->tilings.shared);
}

/* By default, the variant with the least cost is used. If costs are equal, the entry that comes first is used. */
static const struct {
    vkt_variant variant;
    bool reads_pooled; /* the variant can read the gradient of a pooling's output. Otherwise `unpool` computes dy */
    bool (*can)(const vkt_emit *e, const vkt_conv_dw_job *j, vkt_variant v);
    double (*cost)(const vkt_emit *e, const vkt_conv_dw_job *j, vkt_variant v);
    void (*emit)(vkt_emit *e, vkt_conv_dw_job *j, vkt_variant v);
} dw_variants[] = {
    { VKT_V_FFT8, false, dw_fft_can, dw_fft_cost, dw_fft_emit },
    { VKT_V_FFT13, false, dw_fft_can, dw_fft_cost, dw_fft_emit },
    { VKT_V_FFT14, false, dw_fft_can, dw_fft_cost, dw_fft_emit },
    { VKT_V_FFT15, false, dw_fft_can, dw_fft_cost, dw_fft_emit },
    { VKT_V_FFT16, false, dw_fft_can, dw_fft_cost, dw_fft_emit },
    { VKT_V_DIRECT, false, dw_direct_can, dw_direct_cost, dw_parts_emit },
    { VKT_V_DIRECT_SHARED, true, dw_direct_shared_can, dw_direct_shared_cost, dw_parts_emit },
    { VKT_V_TILE, true, dw_always, dw_tiles_cost, dw_parts_emit },
    { VKT_V_SHARED, false, dw_shared_can, dw_shared_cost, dw_shared_emit },
    { VKT_V_COOP, false, dw_shared_can, dw_shared_cost, dw_shared_emit },
};
_Static_assert(VKT_COUNT(dw_variants) <= MAX_VARIANTS, "candidates are an array of that size");

static vkt_conv_dw_job dw_job_of(const vkt_conv2d_dw_product *c)
{
    const vkt_conv2d_size *z = c->z;
    return (vkt_conv_dw_job){ .z = z,
                              .rows = z->out_channels / z->a.groups,
                              .channels = z->channels / z->a.groups,
                              .dy_plane = (uint64_t)z->out[0] * z->out[1] * z->n4,
                              .x_plane = (uint64_t)z->in[0] * z->in[1] * z->n4,
                              .x = c->x,
                              .dy = c->dy,
                              .dw = c->dw,
                              .db = c->db,
                              .index = c->index,
                              .cell = { c->cell[0], c->cell[1] } };
}

/* Computes the complete dy from the gradient of the max pooling's output. */
static void unpool(vkt_emit *e, vkt_conv_dw_job *j)
{
    const vkt_conv2d_size *z = j->z;
    const uint32_t n = vkt_lowered_value(e, j->dy)->shape.dim[0];
    const vkt_tensor dy = vkt_scratch_like(e, "dy", j->dy, vkt_shape4(n, z->out_channels, z->out[0], z->out[1]));
    if (dy.id) vkt_emit_unpool(e, j->dy, j->index, j->cell, dy);
    j->dy = dy;
    j->index = (vkt_tensor){ 0 };
    j->cell[0] = j->cell[1] = 0;
}

void vkt_emit_conv2d_dw(vkt_emit *e, const vkt_conv2d_dw_product *product)
{
    vkt_variant_cost candidates[MAX_VARIANTS];
    uint32_t n = 0;
    if (!VKT_BUILT_CONV2D_DW) {
        vkt_kernel_absent(e, VKT_K_CONV2D_DW);
        return;
    }
    vkt_conv_dw_job j = dw_job_of(product);
    if (!vkt_conv_dw_split(e, &j)) {
        vkt_conv2d_too_large(e, j.z);
        return;
    }
    j.tilings = vkt_conv_dw_shared_plan(e, &j);
    for (size_t i = 0; i < VKT_COUNT(dw_variants); i++)
        if (dw_variants[i].can(e, &j, dw_variants[i].variant))
            candidates[n++] =
                (vkt_variant_cost){ dw_variants[i].variant, dw_variants[i].cost(e, &j, dw_variants[i].variant) };
    const vkt_variant v = pick(e, candidates, n, &j.tilings);
    for (size_t i = 0; i < VKT_COUNT(dw_variants); i++) {
        if (dw_variants[i].variant != v) continue;
        if (j.index.id && !dw_variants[i].reads_pooled) unpool(e, &j);
        if (e->status == VKT_OK) dw_variants[i].emit(e, &j, v);
    }
}
