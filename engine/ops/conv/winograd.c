/* ops/conv/winograd.c - convolution with 3x3 kernels, and its gradient with respect to the input, by Winograd's minimal
 * filtering F(2x2,3x3): see shaders/conv/winograd_*.comp.
 *
 * Each tile of 2x2 destination pixels reads a patch of 4x4 source pixels. Linear transforms map the patch d and the
 * kernel g to 4x4 numbers each: B^T d B and G g G^T. The elementwise products of both, summed over source channels, are
 * m. The tile is A^T m A. For each source channel, a tile of four pixels needs 16 products. Without the transforms, it
 * would need 36.
 *
 * So a convolution is 16 matrix products, (rows, depth) x (depth, tiles * samples), where `rows` is the number of
 * destination channels, and `depth` the number of source channels. On devices with the trait shared_pays,
 * gemm_shared.comp computes the products as one batch, and the transforms write plain matrices. On other devices, such
 * as CPU drivers, gemm_tile.comp computes the products, and the transforms write the panels that it reads. A panel has
 * `lanes` consecutive columns of vec4s.
 * Source: Lavin & Gray, Fast Algorithms for Convolutional Neural Networks (2015), sections 3 and 4.1. */
#include "ops/conv/variants.h"

#include "kernel/ids.h"
#include "ops/product/gemm_shared.h"

#include "abi/abi.h"
#include "abi/gemm_tile.abi.h"
#include "abi/winograd.abi.h"
#include "abi/winograd_weights.abi.h"

#define POINTS 16u

typedef struct job {
    const vkt_conv2d_size *z;
    bool transposed;
    const uint32_t *src, *dst; /* H, W */
    uint32_t rows, depth;      /* channels of the destination and the source */
    uint32_t pad[2];           /* padding of the source. For y: the padding of the op. For dx: 2 minus the padding of
                                * the op, because dx is computed as a convolution of dy */
    uint32_t tiles_w, columns; /* tiles_w: number of tiles along W. columns: number of vec4s in a row of the products,
                                * z->n4 for each tile of pixels */
    uint32_t lanes, mb;        /* lanes: number of vec4s in a row of a panel. mb: rows of a tile of the weights */
    uint32_t panels;           /* the most panels that are transformed and multiplied at a time */
    bool batched;              /* the products are one batch of gemm_shared.comp */
} job;

/* Returns the number of rows of a tile of the weights, see winograd_weights.comp. If the products are a batch, all
 * weights of one product are one matrix. For y the matrix is row-major, so a tile is one row. For dx the matrix is
 * column-major, so a tile has all rows. */
static uint32_t tile_rows(const vkt_emit *e, const job *j)
{
    if (j->batched) return j->transposed ? j->rows : 1;
    uint32_t mb = vkt_product_rows(e->lim);
    while (mb > 4 && mb / 2 >= j->rows) mb /= 2;
    return mb;
}

static job job_of(const vkt_emit *e, const vkt_conv2d_size *z, bool transposed)
{
    job j = { .z = z,
              .transposed = transposed,
              .src = transposed ? z->out : z->in,
              .dst = transposed ? z->in : z->out,
              .rows = transposed ? z->channels : z->out_channels,
              .depth = transposed ? z->out_channels : z->channels,
              .lanes = vkt_subgroup(e->lim, VKT_K_GEMM_TILE) };
    for (int i = 0; i < 2; i++) j.pad[i] = transposed ? 2 - z->a.pad[i] : z->a.pad[i];
    j.tiles_w = vkt_div_up(j.dst[1], 2);
    j.columns = vkt_div_up(j.dst[0], 2) * j.tiles_w * z->n4;
    j.batched = e->lim->traits->shared_pays;
    j.mb = tile_rows(e, &j);
    const uint64_t panel_bytes = 16ull * POINTS * j.lanes * VKT_MAX(j.rows, j.depth);
    const uint64_t bytes = VKT_MIN(e->lim->traits->winograd_kib * 1024ull, vkt_bind_range_bytes(e->lim));
    const uint64_t most = VKT_MIN(VKT_MAX(bytes / panel_bytes, 1), e->lim->max_groups);
    const uint32_t all = vkt_div_up(j.columns, j.lanes);
    j.panels = vkt_div_up(all, vkt_div_up(all, (uint32_t)most));
    return j;
}

/* Returns the number of vec4s of one of the 16 matrices of the weights. */
static uint32_t weights_point(const job *j)
{
    return vkt_div_up(j->rows, j->mb) * j->mb / 4 * j->depth;
}

static uint64_t image_bytes(const job *j, uint32_t channels)
{
    return 16ull * POINTS * j->panels * j->lanes * channels;
}

/* Sets *out to the tiles of the products over `panels` panels. Returns false if a loop would be too long. */
static bool plan_batch(const vkt_emit *e, const job *j, uint32_t panels, vkt_blocks *out)
{
    const vkt_blocks_job products = { .m = j->rows, .n = 4ull * panels * j->lanes, .k = j->depth, .count = POINTS };
    return vkt_blocks_plan(e->lim, &products, 1, out);
}

static bool is_possible(const vkt_conv2d_size *z)
{
    bool possible = z->a.groups == 1 && z->channels % 4 == 0 && z->out_channels % 4 == 0;
    for (int i = 0; i < 2; i++)
        possible = possible && z->kernel[i] == 3 && z->a.stride[i] == 1 && z->a.dilation[i] == 1 && z->a.pad[i] <= 2;
    return possible;
}

bool vkt_conv_winograd_can(const vkt_emit *e, const vkt_conv2d_size *z, bool transposed)
{
    if (!is_possible(z)) return false;
    const job j = job_of(e, z, transposed);
    const uint64_t most = vkt_bind_range_bytes(e->lim), channels = VKT_MAX(z->channels, z->out_channels);
    const uint64_t in = (uint64_t)z->in[0] * z->in[1] * z->channels,
                   out = (uint64_t)z->out[0] * z->out[1] * z->out_channels;
    const uint64_t weights = vkt_round_up(j.rows, j.mb) * j.depth;
    return 16 * z->n4 * VKT_MAX(in, out) <= most && 4 * POINTS * weights <= most &&
           image_bytes(&j, (uint32_t)channels) <= most && channels <= vkt_largest_loop(e->lim) &&
           vkt_div_up(j.rows, 4) <= e->lim->max_groups &&
           (!j.batched || plan_batch(e, &j, j.panels, &(vkt_blocks){ 0 })) &&
           weights_point(&j) / j.lanes / vkt_largest_loop(e->lim) < e->lim->max_groups;
}

/* ---- dispatches ---- */

static vkt_tensor transform_weights(vkt_emit *e, const job *j, vkt_tensor w)
{
    const vkt_winograd_weights_push push = { .out_channels = j->z->out_channels,
                                             .c4 = j->z->channels / 4,
                                             .panel = j->depth * j->mb / 4,
                                             .point = weights_point(j) };
    const vkt_tensor to = vkt_scratch(e, "weights", 16ull * POINTS * push.point);
    const vkt_bind bind[] = { [WINOGRAD_W] = VKT_WHOLE(w), [WINOGRAD_A] = VKT_WHOLE(to) };
    const uint32_t spec[WINOGRAD_WEIGHTS_SPECS] = { [WINOGRAD_WEIGHTS_SPEC_LANES] = j->lanes,
                                                    [WINOGRAD_WEIGHTS_SPEC_MB] = j->mb,
                                                    [WINOGRAD_WEIGHTS_SPEC_BACK] = j->transposed };
    vkt_dispatch_add(
        e, &(vkt_launch){ .kernel = VKT_K_WINOGRAD_WEIGHTS,
                          VKT_LAUNCH_BIND(bind),
                          VKT_LAUNCH_PUSH(push),
                          VKT_LAUNCH_SPEC(spec),
                          .groups = { vkt_groups(push.point, j->lanes, e->lim->traits->items_transform), 1, 1 } });
    return to;
}

/* Transforms source pixels to `panels` panels, from panel `first` on. If `back`, transforms these panels of products to
 * destination pixels. */
static void transform_image(vkt_emit *e, const job *j, bool back, uint32_t first, uint32_t panels, const vkt_bind *bind,
                            uint32_t n_bind, bool bias)
{
    const uint32_t channels = back ? j->rows : j->depth, *size = back ? j->dst : j->src;
    const uint32_t slices = VKT_MIN(vkt_div_up(vkt_groups_wanted(e->lim, j->lanes), panels),
                                    vkt_div_up(channels, e->lim->traits->items_winograd));
    const vkt_winograd_push push = { .channels = channels,
                                     .depth = vkt_div_up(channels, slices),
                                     .first = first * j->lanes,
                                     .columns = j->columns,
                                     .n4 = j->z->n4,
                                     .tiles_w = j->tiles_w,
                                     .origin_h = -(int32_t)j->pad[0],
                                     .origin_w = -(int32_t)j->pad[1],
                                     .height = size[0],
                                     .width = size[1],
                                     .point = panels * channels * j->lanes,
                                     .panel = j->lanes * (j->batched ? 1 : channels),
                                     .pitch = j->lanes * (j->batched ? panels : 1) };
    const uint32_t spec[WINOGRAD_SPECS] = { [WINOGRAD_SPEC_LANES] = j->lanes, [WINOGRAD_SPEC_BIAS] = bias };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = back ? VKT_K_WINOGRAD_OUTPUT : VKT_K_WINOGRAD_INPUT,
                                       .bind = bind,
                                       .n_bind = n_bind,
                                       VKT_LAUNCH_PUSH(push),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { panels, vkt_div_up(channels, push.depth), 1 } });
}

static void multiply_batch(vkt_emit *e, const job *j, uint32_t panels, vkt_tensor a, vkt_tensor b, vkt_tensor c)
{
    const uint32_t columns = 4 * panels * j->lanes;
    const vkt_gemm g = { .a = { .t = a,
                                .x_outer = !j->transposed,
                                .ld = j->transposed ? j->rows : j->depth,
                                .batch = (uint64_t)j->rows * j->depth },
                         .b = { .t = b, .ld = columns, .batch = (uint64_t)j->depth * columns },
                         .c = { .t = c, .ld = columns, .batch = (uint64_t)j->rows * columns },
                         .m = j->rows,
                         .n = columns,
                         .k = j->depth,
                         .batches = POINTS };
    const vkt_gemm_block all = {
        .g = &g, .m = g.m, .k = g.k, .batches = POINTS, .a = VKT_WHOLE(a), .b = VKT_WHOLE(b), .c = VKT_WHOLE(c)
    };
    vkt_blocks tiling;
    if (plan_batch(e, j, panels, &tiling))
        vkt_gemm_shared_emit(e, &all, &tiling);
    else
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED, "%s: a product of %u x %u x %u has too long loops",
                                   e->node->op->name, g.m, g.n, g.k));
}

static void multiply(vkt_emit *e, const job *j, uint32_t panels, vkt_tensor a, vkt_tensor b, vkt_tensor c)
{
    const uint32_t across = 4 * j->lanes; /* width of a tile, in elements */
    const vkt_gemm_tile_push push = { .k4 = j->depth / 4,
                                      .M = j->rows,
                                      .N = panels * across,
                                      .ldc = across,
                                      .c_batch = panels * j->rows * across,
                                      .c_panel = j->rows * across,
                                      .a_step = j->transposed ? j->mb / 4 : 1,
                                      .a_k_step = j->mb,
                                      .a_panel = j->depth * (j->mb / 4),
                                      .a_batch = weights_point(j),
                                      .a_last = UINT32_MAX,
                                      .b_step = j->lanes,
                                      .b_k_step = across,
                                      .b_panel = j->depth * j->lanes,
                                      .b_batch = panels * j->depth * j->lanes,
                                      .b_last = UINT32_MAX };
    const vkt_bind bind[] = {
        [GEMM_A] = VKT_WHOLE(a), [GEMM_B] = VKT_WHOLE(b), [GEMM_C] = VKT_WHOLE(c), [GEMM_BIAS] = VKT_WHOLE(a)
    };
    const uint32_t spec[] = { j->lanes,
                              [GEMM_SPEC_R] = j->mb / 4,
                              [GEMM_SPEC_VECTORS] = 1,
                              [GEMM_SPEC_ACCUMULATE] = 0,
                              [GEMM_SPEC_BIAS] = 0,
                              [GEMM_SPEC_A_ROWS] = !j->transposed,
                              [GEMM_SPEC_B_ROWS] = 0 };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_GEMM_TILE,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(push),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { panels, vkt_div_up(j->rows, j->mb), POINTS } });
}

void vkt_emit_conv2d_winograd(vkt_emit *e, const vkt_conv2d_size *z, bool transposed, vkt_tensor from, vkt_tensor w,
                              vkt_tensor bias, vkt_tensor to)
{
    const job j = job_of(e, z, transposed);
    const vkt_tensor weights = transform_weights(e, &j, w);
    const vkt_tensor patches = vkt_scratch(e, "patches", image_bytes(&j, j.depth));
    const vkt_tensor products = vkt_scratch(e, "products", image_bytes(&j, j.rows));
    const vkt_bind in[] = { [WINOGRAD_IN] = VKT_WHOLE(from), [WINOGRAD_OUT] = VKT_WHOLE(patches) };
    const vkt_bind out[] = { [WINOGRAD_IN] = VKT_WHOLE(products),
                             [WINOGRAD_OUT] = VKT_WHOLE(to),
                             [WINOGRAD_BIAS] = VKT_WHOLE(bias.id ? bias : weights) };
    const uint32_t all = vkt_div_up(j.columns, j.lanes);
    for (uint32_t first = 0; first < all; first += j.panels) {
        const uint32_t panels = VKT_MIN(j.panels, all - first);
        transform_image(e, &j, false, first, panels, in, VKT_COUNT(in), false);
        (j.batched ? multiply_batch : multiply)(e, &j, panels, weights, patches, products);
        transform_image(e, &j, true, first, panels, out, VKT_COUNT(out), bias.id != 0);
    }
}

/* ---- the cost ---- */

/* Returns the cost, in the unit of conv/variants.h. */
static double cost(const vkt_traits *t, const job *j)
{
    const double pairs = (double)j->rows * j->depth, samples = 4.0 * j->columns;
    const double each = j->batched ? t->shared_cost : t->winograd_product_cost;
    return samples * (POINTS * each * pairs + t->winograd_in_cost * j->depth + t->winograd_out_cost * j->rows) +
           t->winograd_weight_cost * pairs;
}

double vkt_conv_winograd_cost(const vkt_emit *e, const vkt_conv2d_size *z, bool transposed)
{
    const vkt_traits *t = e->lim->traits;
    const job j = job_of(e, z, transposed);
    return t->transforms_pay ? cost(t, &j) / t->winograd_worth : VKT_COST_NEVER;
}
