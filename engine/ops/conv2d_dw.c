/* ops/conv2d_dw.c - which way the gradients of weights and bias are computed, and how they are cut into tiles of output
 * channels x weights, summed over the plane: see shaders/conv2d_dw.comp. */
#include "ops/conv2d_parts.h"
#include "ops/conv2d_shared.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/conv2d_dw.abi.h"
#include "abi/conv2d_dw_sum.abi.h"

typedef struct dw_job {
    const vkt_conv2d_size *z;
    uint32_t rows, channels;    /* of a group, of dy and x */
    uint64_t dy_plane, x_plane; /* vec4s of a channel */
    vkt_tensor x, dy, dw, db;
    uint32_t slice; /* vec4s of a plane of dy that one work group sums */
    vkt_conv2d_slices slices;
} dw_job;

/* What one dispatch makes: dw[row .. row + rows)[channel .. channel + channels) of some groups. */
typedef struct dw_part {
    uint32_t group, groups, row, rows, channel, channels;
} dw_part;

typedef struct dw_tiles {
    uint32_t lane_rows, cols;      /* of a tile: output channels per lane, weights of a channel */
    uint32_t row_tiles, col_tiles; /* of a group */
} dw_tiles;

/* Tiles of even size. */
static dw_tiles dw_tiles_of(const vkt_emit *e, const dw_job *j, const dw_part *p)
{
    const uint32_t lanes = e->lim->subgroup_size, cols = p->channels * j->z->kernel[0] * j->z->kernel[1];
    const uint32_t most_rows = VKT_MAX(VKT_MIN(4 * lanes, 64u), lanes);
    dw_tiles t = { .row_tiles = vkt_div_up(p->rows, most_rows), .col_tiles = vkt_div_up(cols, 32) };
    t.lane_rows = vkt_div_up(vkt_div_up(p->rows, t.row_tiles), lanes);
    t.cols = vkt_div_up(cols, t.col_tiles);
    return t;
}

/* The largest part; false where not even one channel fits. */
static bool cut_dw(const vkt_emit *e, const dw_job *j, dw_part *out)
{
    const vkt_conv2d_size *z = j->z;
    const uint64_t range = e->lim->max_storage_range_bytes, read = vkt_read_range(e->lim);
    const uint64_t w_bytes = 4ull * j->channels * z->kernel[0] * z->kernel[1];
    const uint64_t rows =
        VKT_MIN(vkt_steps_in(read, 16 * j->dy_plane, z->out_channels), vkt_steps_in(range, w_bytes, z->out_channels));
    const uint64_t channels = vkt_steps_in(read, 16 * j->x_plane, z->channels);
    dw_part p = { .groups = 1,
                  .rows = vkt_conv2d_share(j->rows, rows, 1),
                  .channels = vkt_conv2d_share(j->channels, channels, 1) };
    if (p.rows == 0 || p.channels == 0) return false;
    if (p.rows == j->rows && p.channels == j->channels)
        p.groups = (uint32_t)VKT_MIN(VKT_MIN(rows / p.rows, channels / p.channels), z->a.groups);
    *out = p;
    return true;
}

/* Slices until there is work for every thread, the operands of a slice stay in a core's cache, and no loop is too long;
 * but no more than fit into a binding. */
static void cut_slices(vkt_emit *e, dw_job *j, const dw_part *p)
{
    const dw_tiles t = dw_tiles_of(e, j, p);
    const uint32_t plane = (uint32_t)j->dy_plane, shortest = 16, longest = VKT_MAX_ROUNDS / 8;
    const uint64_t tiles = (uint64_t)t.row_tiles * t.col_tiles * p->groups, wanted = e->lim->cpu ? 32 : 1024;
    const uint32_t spread = (uint32_t)VKT_MIN((wanted + tiles - 1) / tiles, vkt_div_up(plane, shortest));
    j->slices = vkt_conv2d_slices_of(e, j->dw, j->db);
    const uint64_t room = VKT_MAX(e->lim->max_storage_range_bytes / (4 * j->slices.floats), 1);
    j->slice = vkt_div_up(plane, (uint32_t)VKT_MIN(VKT_MAX(spread, vkt_div_up(plane, longest)), room));
    j->slices.n = vkt_div_up(plane, j->slice);
    if (j->slices.n > 1) j->slices.t = vkt_scratch(e, "slices", 4 * j->slices.floats * j->slices.n);
}

void vkt_conv2d_sum_slices(vkt_emit *e, const vkt_conv2d_slices *s, vkt_tensor dw, vkt_tensor db)
{
    const vkt_conv2d_dw_sum_push push = { .weights = (uint32_t)(vkt_lowered_value(e, dw)->bytes / 4),
                                          .biases = db.id ? (uint32_t)(vkt_lowered_value(e, db)->bytes / 4) : 0,
                                          .bias_start = (uint32_t)s->bias_start,
                                          .part = (uint32_t)s->floats,
                                          .slices = s->n };
    const vkt_bind bind[] = {
        [DW_SUM_PART] = VKT_WHOLE(s->t), [DW_SUM_W] = VKT_WHOLE(dw), [DW_SUM_B] = VKT_WHOLE(db.id ? db : dw)
    };
    const uint32_t spec[] = { e->lim->cpu ? e->lim->subgroup_size : 128u };
    vkt_dispatch_add(e, VKT_K_CONV2D_DW_SUM, bind, VKT_COUNT(bind), &push, sizeof push, spec, VKT_COUNT(spec),
                     vkt_groups(push.weights + push.biases, spec[0], e->lim->cpu ? 8 : 1), 1, 1);
}

static void emit_dw(vkt_emit *e, const dw_job *j, const dw_part *p)
{
    const vkt_conv2d_size *z = j->z;
    const dw_tiles t = dw_tiles_of(e, j, p);
    const uint64_t works = (uint64_t)t.row_tiles * t.col_tiles * j->slices.n;
    const uint32_t taps = z->kernel[0] * z->kernel[1], pitch = j->channels * taps, o = p->group * j->rows + p->row;
    const uint32_t n_o = (p->groups - 1) * j->rows + p->rows;
    const bool bias = j->db.id && p->channel == 0;
    if (!vkt_conv2d_is_short(e, works, j->slice + j->slice / z->n4 + 2ull)) return;
    vkt_conv2d_dw_push push = { .n4 = z->n4,
                                .width = z->out[1],
                                .plane = (uint32_t)j->dy_plane,
                                .slice = j->slice,
                                .src_height = z->in[0],
                                .src_width = z->in[1],
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
    vkt_bind bind[] = { [DW_DY] = vkt_conv2d_channels(e, j->dy, j->dy_plane, o, n_o, &push.dy_base),
                        [DW_X] = vkt_conv2d_channels(e, j->x, j->x_plane, (uint64_t)p->group * j->channels + p->channel,
                                                     (p->groups - 1ull) * j->channels + p->channels, &push.x_base),
                        [DW_W] = VKT_WHOLE(j->slices.t),
                        [DW_B] = VKT_WHOLE(j->slices.t) };
    if (j->slices.t.id) {
        push.w_base = o * pitch;
        bind[DW_B].offset_bytes = bias ? 4 * j->slices.bias_start : 0;
    } else {
        bind[DW_W] = vkt_window(e, j->dw, (uint64_t)o * pitch, (uint64_t)n_o * pitch, &push.w_base);
        bind[DW_B] = bias ? VKT_WHOLE(j->db) : bind[DW_W]; /* not written without one */
    }
    push.w_base += p->channel * taps;
    const uint32_t spec[DW_SPECS] = { [DW_SPEC_LANES] = e->lim->subgroup_size,
                                      [DW_SPEC_COLS] = t.cols,
                                      [DW_SPEC_ROWS] = t.lane_rows,
                                      [DW_SPEC_PAD] = z->a.pad[0] != 0 || z->a.pad[1] != 0,
                                      [DW_SPEC_BIAS] = bias };
    vkt_dispatch_add(e, VKT_K_CONV2D_DW, bind, VKT_COUNT(bind), &push, sizeof push, spec, VKT_COUNT(spec), works, 1,
                     p->groups);
}

static void emit_tiles(vkt_emit *e, const vkt_conv2d_size *z, vkt_tensor x, vkt_tensor dy, vkt_tensor dw, vkt_tensor db)
{
    dw_job j = { .z = z,
                 .rows = z->out_channels / z->a.groups,
                 .channels = z->channels / z->a.groups,
                 .dy_plane = (uint64_t)z->out[0] * z->out[1] * z->n4,
                 .x_plane = (uint64_t)z->in[0] * z->in[1] * z->n4,
                 .x = x,
                 .dy = dy,
                 .dw = dw,
                 .db = db };
    dw_part most, p;
    if (!cut_dw(e, &j, &most)) {
        vkt_conv2d_too_large(e, z);
        return;
    }
    cut_slices(e, &j, &most);
    for (p.group = 0; p.group < z->a.groups; p.group += most.groups)
        for (p.row = 0; p.row < j.rows; p.row += most.rows)
            for (p.channel = 0; p.channel < j.channels; p.channel += most.channels) {
                p.groups = VKT_MIN(most.groups, z->a.groups - p.group);
                p.rows = VKT_MIN(most.rows, j.rows - p.row);
                p.channels = VKT_MIN(most.channels, j.channels - p.channel);
                emit_dw(e, &j, &p);
            }
    if (j.slices.t.id) vkt_conv2d_sum_slices(e, &j.slices, dw, db);
}

void vkt_emit_conv2d_dw(vkt_emit *e, const vkt_conv2d_size *z, vkt_tensor x, vkt_tensor dy, vkt_tensor dw,
                        vkt_tensor db)
{
    const vkt_conv2d_dw_product whole = { z, x, dy, dw, db };
    vkt_blocks blocks;
    bool for_gpu;
    const bool shared = vkt_conv2d_dw_shared_cut(e, &whole, &blocks, &for_gpu);
    vkt_variant v = for_gpu ? VKT_V_SHARED : VKT_V_TILE;
    const uint64_t fft = vkt_conv2d_fft_variants(e, z, VKT_CONV2D_DW, &v);
    v = vkt_pick(e, fft | VKT_V(TILE) | (shared ? VKT_V(SHARED) : 0), v);
    if (vkt_conv2d_is_fft(v))
        vkt_emit_conv2d_fft_dw(e, z, v, x, dy, dw, db);
    else if (v == VKT_V_SHARED)
        vkt_conv2d_dw_shared_emit(e, &whole, &blocks);
    else
        emit_tiles(e, z, x, dy, dw, db);
}
