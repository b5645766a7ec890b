/* ops/conv/fft.c - convolution and its gradients as products of spectra: see shaders/conv/fft_*.comp.
 *
 * Images are split into tiles. The circular convolution of a tile has T x T points. The circular convolution equals the
 * wanted convolution where it does not wrap around. A kernel of R taps covers `reach` pixels: (R - 1) * dil + 1.
 * There are two ways to split an axis, here H.
 *
 * whole: if T >= H + pad, the image is one tile. In this tile, x starts at element `pad`, and y at element 0. The
 * other elements of an operand's tile are 0. Taps that wrap around read only these zeros.
 *
 * tiled: a tile gives T - reach + 1 elements of y or dx. For dw, a tile has T - reach + 1 elements of dy. Only the last
 * tile may have fewer. The method is "overlap-save" (Oppenheim & Schafer, Discrete-Time Signal Processing, section
 * 8.7.3).
 *
 * X, W and dY are the spectra of x, w and dy: y = IFFT(X conj(W)), dx = IFFT(dY W), dw = IFFT(sum over samples and
 * tiles of X conj(dY)). A cross-correlation is a product with the conjugate. For instance, a 5x5 kernel over 13x13
 * pixels without padding needs 340 products per pair of channels instead of 2,025. */
#include "ops/conv/variants.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/fft.abi.h"
#include "abi/fft_product.abi.h"

/* The position of the elements of a tile, along H or W. The tile has `count` elements. Element i of the tile is element
 * first + i * step of the transform. If the tile is a part of an image, element i of tile number k is element
 * k * advance + origin + i of the image (`advance` is a member of struct tiling). */
typedef struct axis {
    uint32_t first, step, count;
    int32_t origin;
} axis;

/* The split of a product along H or W into `tiles` tiles. A tile starts `advance` image elements behind the previous
 * one. */
typedef struct tiling {
    axis a, b, dst; /* the operands a and b, and the destination: y from x and w, dx from dy and w, dw from dy and x */
    uint32_t tiles, advance;
} tiling;

typedef struct fft_job {
    const vkt_conv2d_size *z;
    vkt_conv2d_which product;
    uint32_t t;           /* points of a transform along one axis: a tile has t * t points */
    uint32_t frequencies; /* number of stored frequencies of a spectrum: see fft_columns.comp */
    tiling tiling[2];     /* H, W */
    uint32_t columns;     /* vec4s of a channel of an image, at one point: tiles along H * tiles along W * z->n4 */
} fft_job;

/* The number of points of each variant's transform, along an axis. */
static const struct {
    vkt_variant v;
    uint32_t points;
} transforms[] = {
    { VKT_V_FFT8, 8 }, { VKT_V_FFT13, 13 }, { VKT_V_FFT14, 14 }, { VKT_V_FFT15, 15 }, { VKT_V_FFT16, 16 }
};

/* Returns the number of points of v's transform, along an axis; 0: v uses no Fourier transform. */
static uint32_t points_of(vkt_variant v)
{
    uint32_t points = 0;
    for (uint32_t i = 0; i < VKT_COUNT(transforms); i++)
        if (transforms[i].v == v) points = transforms[i].points;
    return points;
}

static uint32_t reach_of(const vkt_conv2d_size *z, int i)
{
    return (z->kernel[i] - 1) * z->a.dilation[i] + 1;
}

static tiling tile_axis(const vkt_conv2d_size *z, vkt_conv2d_which product, uint32_t t, int i)
{
    const uint32_t in = z->in[i], out = z->out[i], pad = z->a.pad[i], reach = reach_of(z, i), room = t - reach + 1;
    const axis weights = { .first = 0, .step = z->a.dilation[i], .count = z->kernel[i], .origin = 0 };
    const bool whole = t >= in + pad;
    const axis x = whole ? (axis){ pad, 1, in, 0 } : (axis){ 0, 1, t, -(int32_t)pad };
    const axis y = { 0, 1, whole ? out : room, 0 };
    tiling c = { .tiles = whole ? 1 : vkt_div_up(out, room), .advance = whole ? 0 : room };
    switch (product) {
    case VKT_CONV2D_Y: c.a = x, c.b = weights, c.dst = y; break;
    case VKT_CONV2D_DW: c.a = y, c.b = x, c.dst = weights; break;
    case VKT_CONV2D_DX:
        c.a = whole ? y : (axis){ 0, 1, t, (int32_t)pad - (int32_t)(reach - 1) };
        c.b = weights;
        c.dst = whole ? (axis){ pad, 1, in, 0 } : (axis){ reach - 1, 1, room, 0 };
        if (!whole) c.tiles = vkt_div_up(in, room);
        break;
    }
    return c;
}

static fft_job plan_job(const vkt_conv2d_size *z, vkt_conv2d_which product, uint32_t t)
{
    fft_job j = { .z = z, .product = product, .t = t, .frequencies = (2 - t % 2) * (t / 2 + 1) + (t - 1) / 2 * t };
    for (int i = 0; i < 2; i++) j.tiling[i] = tile_axis(z, product, t, i);
    j.columns = j.tiling[0].tiles * j.tiling[1].tiles * z->n4;
    return j;
}

/* Gaps, in vec4s. PITCH_GAP is between the channels of an operand's spectrum. PLANE_GAP is between the frequencies of a
 * product's spectrum. Without the gaps, the distance between data that are read together would often be a power of two.
 * These data would then compete for one set of a cache. */
#define PITCH_GAP 16u
#define PLANE_GAP 4u

/* Returns a number of bytes that is enough for any of three buffers: the spectrum of an operand, the spectrum of a
 * product, and the transformed rows of an operand. */
static uint64_t spectrum_bytes(const fft_job *j, uint64_t channels, uint64_t columns)
{
    const uint64_t spectrum = channels * (2 * j->frequencies * columns + PITCH_GAP);
    const uint64_t product = j->frequencies * (2 * channels * columns + PLANE_GAP);
    return 16 * VKT_MAX(VKT_MAX(spectrum, product), channels * j->t * j->t * columns);
}

static bool fits(const vkt_emit *e, const fft_job *j)
{
    const uint64_t most = vkt_bind_range_bytes(e->lim), channels = VKT_MAX(j->z->channels, j->z->out_channels);
    const uint64_t groups_rounds = (uint64_t)e->lim->max_groups * vkt_largest_loop(e->lim);
    return spectrum_bytes(j, channels, j->columns) <= most &&
           spectrum_bytes(j, j->z->channels, j->z->out_channels / 4) <= most &&
           channels * j->columns * j->t < groups_rounds && j->columns < vkt_largest_loop(e->lim);
}

/* Returns true if the attributes and the numbers of channels allow the FFT variants. There must be one group, both
 * numbers of channels must be multiples of 4, and the stride must be 1. Along each axis, the kernel must reach
 * over at most 8 pixels, and the padding must have fewer pixels than this reach. The kernel must not be 1x1. */
static bool is_possible(const vkt_conv2d_size *z)
{
    bool possible = z->a.groups == 1 && z->channels % 4 == 0 && z->out_channels % 4 == 0;
    for (int i = 0; i < 2; i++)
        possible = possible && z->a.stride[i] == 1 && z->a.pad[i] < reach_of(z, i) && reach_of(z, i) <= 8;
    return possible && reach_of(z, 0) * reach_of(z, 1) > 1;
}

/* ---- transforms ---- */

/* An operand or the destination. It is an image or weights. At each of the t * t points (fft_job.t), a channel has
 * `columns` vec4s. A channel of an image has one vec4 for each tile and each four samples. Weights have two channel
 * dimensions: `channels` is the size of one of them, and a vec4 has four elements along the other. */
typedef struct operand {
    vkt_tensor t;
    uint32_t weights; /* 1: weights. A bool would add padding bytes, but vkt_recall compares the bytes of operands */
    uint32_t channels, columns;
    uint32_t size[2]; /* H, W or R, S */
    axis axis[2];
    /* Weights: distances in floats. w_channel: between channels. w_lane: between the elements of a vec4. */
    uint32_t w_channel, w_lane;
} operand;

static operand image(const fft_job *j, vkt_tensor t, uint32_t channels, const uint32_t size[2], axis h, axis w)
{
    return (
        operand){ .t = t, .channels = channels, .columns = j->columns, .size = { size[0], size[1] }, .axis = { h, w } };
}

/* Returns weights [o][c][r][s] as an operand. Its channels are c and its columns o / 4. If `by_output`, its channels
 * are o and its columns c / 4. */
static operand weights(const fft_job *j, vkt_tensor t, bool by_output, axis h, axis w)
{
    const uint32_t taps = j->z->kernel[0] * j->z->kernel[1], c_step = taps, o_step = j->z->channels * taps;
    return (operand){ .t = t,
                      .weights = 1,
                      .channels = by_output ? j->z->out_channels : j->z->channels,
                      .columns = (by_output ? j->z->channels : j->z->out_channels) / 4,
                      .size = { j->z->kernel[0], j->z->kernel[1] },
                      .axis = { h, w },
                      .w_channel = by_output ? o_step : c_step,
                      .w_lane = by_output ? c_step : o_step };
}

/* Returns the distance, in vec4s, between two channels of an operand's spectrum. */
static uint32_t pitch_of(const fft_job *j, const operand *o)
{
    return 2 * j->frequencies * o->columns + PITCH_GAP;
}

/* Returns the distance, in vec4s, between two frequencies of a product's spectrum. */
static uint32_t plane_of(const operand *o)
{
    return 2 * o->channels * o->columns + PLANE_GAP;
}

static void add_transform(vkt_emit *e, const fft_job *j, const operand *o, uint16_t kernel, bool along_rows, bool back,
                          const vkt_bind *bind, uint32_t n_bind, bool bias)
{
    const axis *a = &o->axis[along_rows ? 1 : 0];
    const uint32_t lanes = vkt_subgroup(e->lim, VKT_K_FFT_PRODUCT), rows = o->axis[0].count;
    const uint32_t lines = along_rows ? vkt_div_up(rows, 2) : vkt_div_up(j->t, 2);
    const vkt_fft_push push = { .items = o->channels * lines * o->columns,
                                .channels = o->channels,
                                .columns = o->columns,
                                .pitch = back ? 2 * o->columns : pitch_of(j, o),
                                .plane = back ? plane_of(o) : 2 * o->columns,
                                .rows = rows,
                                .n4 = j->z->n4,
                                .tiles_w = j->tiling[1].tiles,
                                .step_h = j->tiling[0].advance,
                                .step_w = j->tiling[1].advance,
                                .origin_h = o->axis[0].origin,
                                .origin_w = o->axis[1].origin,
                                .height = o->size[0],
                                .width = o->size[1],
                                .w_channel = o->w_channel,
                                .w_lane = o->w_lane,
                                .sum_columns = j->columns,
                                .sum_pitch = 2 * j->frequencies * j->columns + PITCH_GAP,
                                .scale = 1 / ((float)j->t * (float)j->t) };
    const uint32_t spec[FFT_SPECS] = {
        [FFT_SPEC_LANES] = lanes,    [FFT_SPEC_T] = j->t,
        [FFT_SPEC_FIRST] = a->first, [FFT_SPEC_STEP] = a->step,
        [FFT_SPEC_COUNT] = a->count, [FFT_SPEC_CLIP] = j->tiling[0].tiles * j->tiling[1].tiles > 1,
        [FFT_SPEC_BIAS] = bias
    };
    vkt_dispatch_add(
        e, &(vkt_launch){ .kernel = kernel,
                          .bind = bind,
                          .n_bind = n_bind,
                          VKT_LAUNCH_PUSH(push),
                          VKT_LAUNCH_SPEC(spec),
                          .groups = { vkt_groups(push.items, lanes, e->lim->traits->items_transform), 1, 1 } });
}

static vkt_tensor lines_of(vkt_emit *e, const fft_job *j, const operand *o)
{
    return vkt_scratch(e, "rows", 16ull * o->channels * o->axis[0].count * j->t * o->columns);
}

static vkt_tensor new_product(vkt_emit *e, const fft_job *j, const operand *o)
{
    return vkt_scratch(e, "product", 16ull * j->frequencies * plane_of(o));
}

/* Returns the spectrum of an operand. Emits the transform, unless the same transform was emitted already, for instance
 * for another product of this convolution. With the same T, y and dw share the spectrum of x. If an image is one tile,
 * dx and dw also share the spectrum of dy, and y and dx share the spectrum of w. */
static vkt_tensor transform(vkt_emit *e, const fft_job *j, const operand *o)
{
    const struct {
        uint32_t kernel, t;
        operand o;
        uint32_t tiles[2], advance[2];
    } key = { VKT_K_FFT_COLUMNS,
              j->t,
              *o,
              { j->tiling[0].tiles, j->tiling[1].tiles },
              { j->tiling[0].advance, j->tiling[1].advance } };
    const vkt_tensor known = vkt_recall(e, &key, sizeof key);
    if (known.id) return known;
    const vkt_tensor lines = lines_of(e, j, o);
    const vkt_tensor spectrum = vkt_scratch(e, "spectrum", 16ull * o->channels * pitch_of(j, o));
    const vkt_bind along_rows[] = { [FFT_IN] = VKT_WHOLE(o->t), [FFT_OUT] = VKT_WHOLE(lines) };
    const vkt_bind along_columns[] = { [FFT_IN] = VKT_WHOLE(lines), [FFT_OUT] = VKT_WHOLE(spectrum) };
    add_transform(e, j, o, o->weights ? VKT_K_FFT_ROWS_WEIGHTS : VKT_K_FFT_ROWS, true, false, along_rows, 2, false);
    add_transform(e, j, o, VKT_K_FFT_COLUMNS, false, false, along_columns, 2, false);
    vkt_remember(e, &key, sizeof key, spectrum);
    return spectrum;
}

/* Emits the inverse transform. `bias` may be {0}. If the destination is an image, `bias` is an input, which is added to
 * the image. If the destination is weights, `bias` is the output db, the sum of dy, and `summed` is the spectrum of dy.
 * Frequency 0 of a tile is the sum of the tile. So the kernel adds up frequency 0 of all tiles and samples. */
static void transform_back(vkt_emit *e, const fft_job *j, const operand *o, vkt_tensor spectrum, vkt_tensor bias,
                           vkt_tensor summed)
{
    const vkt_tensor lines = lines_of(e, j, o);
    const vkt_bind along_columns[] = { [FFT_IN] = VKT_WHOLE(spectrum), [FFT_OUT] = VKT_WHOLE(lines) };
    const vkt_bind along_rows[] = { [FFT_IN] = VKT_WHOLE(lines),
                                    [FFT_OUT] = VKT_WHOLE(o->t),
                                    [FFT_BIAS] = VKT_WHOLE(bias.id      ? bias
                                                           : o->weights ? o->t
                                                                        : lines), /* not used without `bias` */
                                    [FFT_SUM] = VKT_WHOLE(summed) };
    add_transform(e, j, o, VKT_K_FFT_INVERSE_COLUMNS, false, true, along_columns, 2, false);
    add_transform(e, j, o, o->weights ? VKT_K_FFT_INVERSE_ROWS_WEIGHTS : VKT_K_FFT_INVERSE_ROWS, true, true, along_rows,
                  o->weights ? 4 : 3, bias.id != 0);
}

/* ---- the products ---- */

/* Emits the product dst = a * b: dst[m][n] is a sum over k. If `m_major`, a's channels are m, and its columns are k;
 * else a's channels are k. If `n_major`, b's channels are n, and its columns are k; else b's channels are k. */
static void multiply(vkt_emit *e, const fft_job *j, const operand *a, vkt_tensor a_spectrum, bool m_major,
                     const operand *b, vkt_tensor b_spectrum, bool n_major, const operand *dst, vkt_tensor dst_spectrum)
{
    const uint32_t lanes = vkt_subgroup(e->lim, VKT_K_FFT_PRODUCT), rows = dst->channels;
    uint32_t across = lanes;
    while (across > 4 && across / 2 >= dst->columns) across /= 2;
    const uint32_t most = VKT_MIN(2 * across, 16u);
    const uint32_t mb = (uint32_t)vkt_round_up(vkt_div_up(rows, vkt_div_up(rows, most)), 4);
    const uint32_t row_tiles = vkt_div_up(rows, mb * (lanes / across)), col_tiles = vkt_div_up(dst->columns, across);
    const vkt_fft_product_push push = { .rows = rows,
                                        .columns = dst->columns,
                                        .row_tiles = row_tiles,
                                        .tiles = j->frequencies * row_tiles * col_tiles,
                                        .a_columns = a->columns,
                                        .b_columns = b->columns,
                                        .plane = plane_of(dst),
                                        .a_pitch = pitch_of(j, a),
                                        .b_pitch = pitch_of(j, b),
                                        .steps = m_major ? a->columns : a->channels / 4 };
    const vkt_bind bind[] = { [PRODUCT_A] = VKT_WHOLE(a_spectrum),
                              [PRODUCT_B] = VKT_WHOLE(b_spectrum),
                              [PRODUCT_DST] = VKT_WHOLE(dst_spectrum) };
    const uint32_t spec[PRODUCT_SPECS] = { [PRODUCT_SPEC_LANES] = lanes,
                                           [PRODUCT_SPEC_MB] = mb,
                                           [PRODUCT_SPEC_M_MAJOR] = m_major,
                                           [PRODUCT_SPEC_N_MAJOR] = n_major,
                                           [PRODUCT_SPEC_CONJ] = j->product != VKT_CONV2D_DX,
                                           [PRODUCT_SPEC_ACROSS] = across };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_FFT_PRODUCT,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(push),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { push.tiles, 1, 1 } });
}

void vkt_emit_conv2d_fft(vkt_emit *e, const vkt_conv2d_size *z, vkt_variant v, bool transposed, vkt_tensor from,
                         vkt_tensor w, vkt_tensor bias, vkt_tensor to)
{
    const fft_job j = plan_job(z, transposed ? VKT_CONV2D_DX : VKT_CONV2D_Y, points_of(v));
    const tiling *h = &j.tiling[0], *q = &j.tiling[1];
    const operand x =
        image(&j, transposed ? to : from, z->channels, z->in, transposed ? h->dst : h->a, transposed ? q->dst : q->a);
    const operand y = image(&j, transposed ? from : to, z->out_channels, z->out, transposed ? h->a : h->dst,
                            transposed ? q->a : q->dst);
    const operand kernel = weights(&j, w, false, h->b, q->b), *in = transposed ? &y : &x, *out = transposed ? &x : &y;
    const vkt_tensor kernels = transform(e, &j, &kernel), inputs = transform(e, &j, in);
    const vkt_tensor outputs = new_product(e, &j, out);
    multiply(e, &j, &kernel, kernels, transposed, in, inputs, false, out, outputs);
    transform_back(e, &j, out, outputs, bias, (vkt_tensor){ 0 });
}

void vkt_emit_conv2d_fft_dw(vkt_emit *e, const vkt_conv2d_size *z, vkt_variant v, vkt_tensor x, vkt_tensor dy,
                            vkt_tensor dw, vkt_tensor db)
{
    const fft_job j = plan_job(z, VKT_CONV2D_DW, points_of(v));
    const operand out = image(&j, dy, z->out_channels, z->out, j.tiling[0].a, j.tiling[1].a);
    const operand in = image(&j, x, z->channels, z->in, j.tiling[0].b, j.tiling[1].b);
    const operand kernel = weights(&j, dw, true, j.tiling[0].dst, j.tiling[1].dst);
    const vkt_tensor outputs = transform(e, &j, &out), inputs = transform(e, &j, &in);
    const vkt_tensor kernels = new_product(e, &j, &kernel);
    multiply(e, &j, &out, outputs, true, &in, inputs, true, &kernel, kernels);
    transform_back(e, &j, &kernel, kernels, db, outputs);
}

/* ---- cost ---- */

static bool has_tiles(const fft_job *j)
{
    return j->tiling[0].tiles * j->tiling[1].tiles > 1;
}

/* Returns the cost, in the unit of conv/variants.h. */
static double cost(const vkt_traits *t, const fft_job *j, vkt_conv2d_which product)
{
    const double pairs = (double)j->z->channels * j->z->out_channels, samples = 4.0 * j->columns;
    const double images = ((double)j->z->channels + j->z->out_channels) * samples;
    const double back = has_tiles(j) && product != VKT_CONV2D_DW ? t->fft_tiles_back : 1;
    const double point = has_tiles(j) ? t->fft_tiles_point_cost : t->fft_point_cost;
    return back *
           (4 * j->frequencies * pairs * samples + (double)j->t * j->t * (point * images + t->fft_weight_cost * pairs));
}

bool vkt_conv_fft_can(const vkt_emit *e, const vkt_conv2d_size *z, vkt_conv2d_which product, vkt_variant v)
{
    const uint32_t t = points_of(v);
    if (!is_possible(z) || t < reach_of(z, 0) || t < reach_of(z, 1)) return false;
    const fft_job j = plan_job(z, product, t);
    return fits(e, &j);
}

double vkt_conv_fft_cost(const vkt_emit *e, const vkt_conv2d_size *z, vkt_conv2d_which product, vkt_variant v)
{
    const vkt_traits *t = e->lim->traits;
    const fft_job j = plan_job(z, product, points_of(v));
    return t->transforms_pay ? cost(t, &j, product) / t->fft_worth : VKT_COST_NEVER;
}
