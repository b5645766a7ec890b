/* ops/conv/dw_tile.c - the gradients of weights and bias, by tiles of output channels x weights: see
 * shaders/conv/dw_tile.comp and conv/dw_direct.comp. Each sum is over the plane: all pixels of all samples. */
#include "ops/conv/variants.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/conv2d_dw.abi.h"
#include "abi/conv2d_dw_direct.abi.h"

typedef struct dw_tiles {
    uint32_t lane_rows, cols;      /* lane_rows: output channels of a lane. cols: weights of each channel in a tile */
    uint32_t row_tiles, col_tiles; /* a group of the convolution has row_tiles * col_tiles tiles */
} dw_tiles;

/* Returns tiles of equal size; the last tiles may be smaller. If the number of weights of an output channel in part p
 * is a multiple of 4, `cols` is also a multiple of 4. */
static dw_tiles dw_tiles_of(const vkt_emit *e, const vkt_conv_dw_job *j, const vkt_conv_dw_part *p)
{
    const uint32_t lanes = vkt_subgroup(e->lim, VKT_K_CONV2D_DW),
                   cols = p->channels * j->z->kernel[0] * j->z->kernel[1];
    const uint32_t most_rows = VKT_MAX(VKT_MIN(4 * lanes, 64u), lanes);
    dw_tiles t = { .row_tiles = vkt_div_up(p->rows, most_rows), .col_tiles = vkt_div_up(cols, 32) };
    t.lane_rows = vkt_div_up(vkt_div_up(p->rows, t.row_tiles), lanes);
    t.cols = (uint32_t)vkt_round_up(vkt_div_up(cols, t.col_tiles), cols % 4 == 0 ? 4 : 1);
    return t;
}

bool vkt_conv_dw_split(const vkt_emit *e, vkt_conv_dw_job *j)
{
    const vkt_conv2d_size *z = j->z;
    const uint64_t range = e->lim->max_storage_range_bytes, read = vkt_read_range(e->lim);
    const uint64_t w_bytes = 4ull * j->channels * z->kernel[0] * z->kernel[1];
    const uint64_t rows =
        VKT_MIN(vkt_steps_in(read, 16 * j->dy_plane, z->out_channels), vkt_steps_in(range, w_bytes, z->out_channels));
    const uint64_t channels = vkt_steps_in(read, 16 * j->x_plane, z->channels);
    vkt_conv_dw_part p = { .groups = 1,
                           .rows = vkt_conv2d_share(j->rows, rows, 1),
                           .channels = vkt_conv2d_share(j->channels, channels, 1) };
    if (p.rows == 0 || p.channels == 0) return false;
    if (p.rows == j->rows && p.channels == j->channels)
        p.groups = (uint32_t)VKT_MIN(VKT_MIN(rows / p.rows, channels / p.channels), z->a.groups);
    j->most = p;
    return true;
}

/* The plane is split into slices. LONGEST_SLICE: the most iterations over one slice. With more iterations, the slice's
 * operands would not stay in a core's cache. Slices are longer only if a binding cannot hold the sums of enough slices:
 * see split_slices. */
#define LONGEST_SLICE 7500u

/* Splits the plane into slices. Each slice has `tiles` work groups, which loop over the slice, with `unit` vec4s per
 * iteration. Usually there are so many slices that all slices together have about as many work groups as the trait
 * groups_slices. There are fewer slices if a loop would otherwise have fewer than 16 iterations. There are more slices
 * if a loop would otherwise have more than LONGEST_SLICE iterations, or more than an eighth of vkt_largest_loop. But
 * there are never so many slices that one binding cannot hold all their sums. */
static void split_slices(vkt_emit *e, vkt_conv_dw_job *j, uint64_t tiles, uint32_t unit)
{
    const uint32_t plane = (uint32_t)j->dy_plane, shortest = 16 * unit,
                   longest = (uint32_t)VKT_MIN(vkt_largest_loop(e->lim) / 8, LONGEST_SLICE) * unit;
    const uint64_t wanted = e->lim->traits->groups_slices;
    const uint32_t spread = (uint32_t)VKT_MIN((wanted + tiles - 1) / tiles, vkt_div_up(plane, shortest));
    j->slices = vkt_conv2d_slices_of(e, j->dw, j->db);
    const uint64_t room = VKT_MAX(e->lim->max_storage_range_bytes / (4 * j->slices.floats), 1);
    j->slice = vkt_div_up(plane, (uint32_t)VKT_MIN(VKT_MAX(spread, vkt_div_up(plane, longest)), room));
    j->slice = (uint32_t)vkt_round_up(j->slice, unit);
    j->slices.n = vkt_div_up(plane, j->slice);
    if (j->slices.n > 1) j->slices.t = vkt_scratch(e, "slices", 4 * j->slices.floats * j->slices.n);
}

/* Sets the sizes of the planes of x and dy. `dy` is the height and the width of dy in memory. In a 1x1 convolution with
 * stride 1 and without padding, a pixel of dy is multiplied only by the pixel of x with the same index. Then the
 * shader gets the whole plane as one pixel, unless dy is the gradient of a pooling's output (j->index). */
static void set_planes(const vkt_conv_dw_job *j, const uint32_t dy[2], vkt_conv2d_dw_push *push)
{
    const vkt_conv2d_size *z = j->z;
    bool alike = !j->index.id;
    for (int i = 0; i < 2; i++) alike = alike && z->kernel[i] == 1 && z->a.stride[i] == 1 && z->a.pad[i] == 0;
    push->n4 = alike ? (uint32_t)j->dy_plane : z->n4;
    push->width = alike ? 1 : z->out[1];
    push->src_height = alike ? 1 : z->in[0];
    push->src_width = alike ? 1 : z->in[1];
    push->dy_height = alike ? 1 : dy[0];
    push->dy_width = alike ? 1 : dy[1];
}

static void emit_dw(vkt_emit *e, const vkt_conv_dw_job *j, const vkt_conv_dw_part *p)
{
    const vkt_conv2d_size *z = j->z;
    const dw_tiles t = dw_tiles_of(e, j, p);
    const uint64_t works = (uint64_t)t.row_tiles * t.col_tiles * j->slices.n;
    const uint32_t taps = z->kernel[0] * z->kernel[1], pitch = j->channels * taps, o = p->group * j->rows + p->row;
    const uint32_t n_o = (p->groups - 1) * j->rows + p->rows;
    const bool bias = j->db.id && p->channel == 0;
    const uint32_t *dy_size = vkt_lowered_value(e, j->dy)->shape.dim + 2;
    const uint64_t dy_pitch = (uint64_t)dy_size[0] * dy_size[1] * z->n4; /* vec4s of a channel of dy (see j->index) */
    uint32_t index_base = 0;
    vkt_conv2d_dw_push push = { .plane = (uint32_t)j->dy_plane,
                                .slice = j->slice,
                                .channels = p->channels,
                                .rows = p->rows,
                                .x_group = j->channels,
                                .dy_group = j->rows,
                                .kernel_h = z->kernel[0],
                                .kernel_w = z->kernel[1],
                                .stride_h = z->a.stride[0],
                                .stride_w = z->a.stride[1],
                                .pad_h = z->a.pad[0],
                                .pad_w = z->a.pad[1],
                                .dilation_h = z->a.dilation[0],
                                .dilation_w = z->a.dilation[1],
                                .row_tiles = t.row_tiles,
                                .col_tiles = t.col_tiles,
                                .slices = j->slices.n,
                                .part = (uint32_t)j->slices.floats,
                                .pitch = pitch,
                                .b_base = o };
    set_planes(j, dy_size, &push);
    if (!vkt_conv2d_is_short(e, works, j->slice + j->slice / push.n4 + 2ull)) return;
    vkt_bind bind[] = { [DW_DY] = vkt_conv2d_channels(e, j->dy, dy_pitch, o, n_o, &push.dy_base),
                        [DW_X] = vkt_conv2d_channels(e, j->x, j->x_plane, (uint64_t)p->group * j->channels + p->channel,
                                                     (p->groups - 1ull) * j->channels + p->channels, &push.x_base),
                        [DW_W] = VKT_WHOLE(j->slices.t),
                        [DW_B] = VKT_WHOLE(j->slices.t),
                        [DW_INDEX] = VKT_WHOLE(j->index) };
    if (j->index.id) {
        bind[DW_INDEX] = vkt_conv2d_channels(e, j->index, dy_pitch, o, n_o, &index_base);
        push.to_index = (int32_t)index_base - (int32_t)push.dy_base;
    }
    if (j->slices.t.id) {
        push.w_base = o * pitch;
        bind[DW_B].offset_bytes = bias ? 4 * j->slices.bias_start : 0;
    } else {
        bind[DW_W] = vkt_bind_range(e, j->dw, (uint64_t)o * pitch, (uint64_t)n_o * pitch, &push.w_base);
        bind[DW_B] = bias ? VKT_WHOLE(j->db) : bind[DW_W]; /* not written if there is no bias */
    }
    push.w_base += p->channel * taps;
    const uint32_t spec[DW_SPECS] = {
        [DW_SPEC_LANES] = vkt_subgroup(e->lim, VKT_K_CONV2D_DW),
        [DW_SPEC_COLS] = t.cols,
        [DW_SPEC_ROWS] = t.lane_rows,
        [DW_SPEC_PAD] = z->a.pad[0] != 0 || z->a.pad[1] != 0,
        [DW_SPEC_BIAS] = bias,
        [DW_SPEC_QUADS] =
            (p->channels * taps | pitch | push.w_base | t.cols | (j->slices.n > 1 ? push.part : 0)) % 4 == 0,
        [DW_SPEC_WINDOW_H] = j->cell[0],
        [DW_SPEC_WINDOW_W] = j->cell[1]
    };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = j->index.id ? VKT_K_CONV2D_DW_UNPOOL : VKT_K_CONV2D_DW,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(push),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { works, 1, p->groups } });
}

/* ---- DIRECT: few weights for each output channel ---- */

/* DIRECT_DEPTH: the most products per output channel and pixel, for the direct kernel. DIRECT_SUMS: the most sums for
 * dw that a lane has in registers. A lane also has sums for db, and the elements that it multiplies. */
#define DIRECT_DEPTH 32u
#define DIRECT_SUMS 64u

static uint32_t depth_of(const vkt_conv_dw_job *j)
{
    return j->channels * j->z->kernel[0] * j->z->kernel[1];
}

static uint32_t direct_rows(const vkt_conv_dw_job *j)
{
    return VKT_MIN(j->rows, VKT_MAX(DIRECT_SUMS / depth_of(j), 1u));
}

static void emit_direct(vkt_emit *e, const vkt_conv_dw_job *j, const vkt_conv_dw_part *p)
{
    const vkt_conv2d_size *z = j->z;
    const uint32_t lanes = vkt_subgroup(e->lim, VKT_K_CONV2D_DW_DIRECT), rows = direct_rows(j), o = p->group * j->rows;
    const uint64_t weights = (uint64_t)p->groups * j->rows * depth_of(j);
    if (!vkt_conv2d_is_short(e, 1, j->slice / lanes + 1)) return;
    vkt_conv2d_dw_direct_push push = { .n4 = z->n4,
                                       .width = z->out[1],
                                       .plane = (uint32_t)j->dy_plane,
                                       .strip = j->slice,
                                       .step_p = lanes / z->n4 / z->out[1],
                                       .step_q = lanes / z->n4 % z->out[1],
                                       .step_n = lanes % z->n4,
                                       .rows = j->rows,
                                       .src_height = z->in[0],
                                       .src_width = z->in[1],
                                       .stride_h = z->a.stride[0],
                                       .stride_w = z->a.stride[1],
                                       .offset_h = -(int32_t)z->a.pad[0],
                                       .offset_w = -(int32_t)z->a.pad[1],
                                       .reach_h = (int32_t)z->a.dilation[0],
                                       .reach_w = (int32_t)z->a.dilation[1],
                                       .part = (uint32_t)j->slices.floats,
                                       .b_base = o };
    vkt_bind bind[] = { [DW_DIRECT_DY] =
                            vkt_conv2d_channels(e, j->dy, j->dy_plane, o, (uint64_t)p->groups * j->rows, &push.dy_base),
                        [DW_DIRECT_X] = vkt_conv2d_channels(e, j->x, j->x_plane, (uint64_t)p->group * j->channels,
                                                            (uint64_t)p->groups * j->channels, &push.x_base),
                        [DW_DIRECT_W] = VKT_WHOLE(j->slices.t),
                        [DW_DIRECT_B] = VKT_WHOLE(j->slices.t) };
    if (j->slices.t.id) {
        push.w_base = o * depth_of(j);
        bind[DW_DIRECT_B].offset_bytes = j->db.id ? 4 * j->slices.bias_start : 0;
    } else {
        bind[DW_DIRECT_W] = vkt_bind_range(e, j->dw, (uint64_t)o * depth_of(j), weights, &push.w_base);
        bind[DW_DIRECT_B] = j->db.id ? VKT_WHOLE(j->db) : bind[DW_DIRECT_W]; /* not written if there is no bias */
    }
    const uint32_t spec[DW_DIRECT_SPECS] = {
        [DW_DIRECT_SPEC_LANES] = lanes,           [DW_DIRECT_SPEC_ROWS] = rows,
        [DW_DIRECT_SPEC_CHANNELS] = j->channels,  [DW_DIRECT_SPEC_KERNEL_H] = z->kernel[0],
        [DW_DIRECT_SPEC_KERNEL_W] = z->kernel[1], [DW_DIRECT_SPEC_PAD] = z->a.pad[0] != 0 || z->a.pad[1] != 0,
        [DW_DIRECT_SPEC_BIAS] = j->db.id != 0
    };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_CONV2D_DW_DIRECT,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(push),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { j->slices.n, vkt_div_up(j->rows, rows), p->groups } });
}

bool vkt_conv_dw_direct_can(const vkt_conv_dw_job *j)
{
    return depth_of(j) <= DIRECT_DEPTH && j->most.rows == j->rows && j->most.channels == j->channels;
}

/* ---- all parts ---- */

/* Splits the plane into slices for the tiles of a variant. */
static void split_for(vkt_emit *e, vkt_conv_dw_job *j, vkt_variant v)
{
    const uint64_t groups = j->most.groups;
    if (v == VKT_V_DIRECT_SHARED) {
        const vkt_dw_direct_tiles t = vkt_dw_direct_tiles_of(e, j);
        split_slices(e, j, (uint64_t)t.row_tiles * t.col_tiles * groups, t.lanes);
    } else if (v == VKT_V_DIRECT) {
        split_slices(e, j, vkt_div_up(j->rows, direct_rows(j)) * groups, vkt_subgroup(e->lim, VKT_K_CONV2D_DW_DIRECT));
    } else {
        const dw_tiles t = dw_tiles_of(e, j, &j->most);
        split_slices(e, j, (uint64_t)t.row_tiles * t.col_tiles * groups, 1);
    }
}

void vkt_conv_dw_emit(vkt_emit *e, vkt_conv_dw_job *j, vkt_variant v)
{
    const vkt_conv_dw_part *most = &j->most;
    vkt_conv_dw_part p;
    split_for(e, j, v);
    for (p.group = 0; p.group < j->z->a.groups; p.group += most->groups)
        for (p.row = 0; p.row < j->rows; p.row += most->rows)
            for (p.channel = 0; p.channel < j->channels; p.channel += most->channels) {
                p.groups = VKT_MIN(most->groups, j->z->a.groups - p.group);
                p.rows = VKT_MIN(most->rows, j->rows - p.row);
                p.channels = VKT_MIN(most->channels, j->channels - p.channel);
                if (v == VKT_V_DIRECT_SHARED)
                    vkt_conv_dw_direct_shared_emit(e, j, &p);
                else if (v == VKT_V_DIRECT)
                    emit_direct(e, j, &p);
                else
                    emit_dw(e, j, &p);
            }
    if (j->slices.t.id) vkt_conv2d_sum_slices(e, &j->slices, j->dw, j->db);
}
