/* ops/conv/dw_direct_shared.c - dw and db with few output channels per group, for GPUs: see
 * shaders/conv/dw_direct_shared.comp. */
#include "ops/conv/variants.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/conv2d_dw_direct_shared.abi.h"

/* MOST_SUMS: the most sums for dw that a lane has. MOST_ROWS: the most output channels of a tile. MOST_COLS: the most
 * weights of an output channel in a tile. The compilers of AMD's GPUs need at most 120 registers for such tiles. */
#define MOST_SUMS 48u
#define MOST_ROWS 4u
#define MOST_COLS 24u
/* A tile that has this many sums or fewer is not made smaller. A lane of such a tile loads about one vec4 for each
 * product of two vec4s, and in a smaller tile it would load more vec4s for each product. */
#define LEAST_SUMS 8u

static uint32_t depth_of(const vkt_conv_dw_job *j)
{
    return j->channels * j->z->kernel[0] * j->z->kernel[1];
}

/* A tile is as large as possible, because the weights of a tile share the loads of x and dy. Tiles are smaller if
 * there would otherwise be fewer work groups than the device needs. */
vkt_dw_direct_tiles vkt_dw_direct_tiles_of(const vkt_emit *e, const vkt_conv_dw_job *j)
{
    const vkt_traits *traits = e->lim->traits;
    const uint32_t K = depth_of(j);
    vkt_dw_direct_tiles t = { .lanes = VKT_MAX(vkt_lanes(e->lim, traits->lanes_direct), DW_DIRECT_SHARED_TOGETHER) };
    while (t.lanes > 32 && t.lanes / 2 >= j->dy_plane) t.lanes /= 2;
    const uint64_t slices = (j->dy_plane + 16ull * t.lanes - 1) / (16ull * t.lanes); /* see split_slices in dw_tile.c */
    uint32_t rows = VKT_MIN(j->rows, MOST_ROWS), cols = VKT_MIN(MOST_SUMS / rows, MOST_COLS);
    for (;; rows > 1 ? (rows /= 2) : (cols /= 2)) {
        t.row_tiles = vkt_div_up(j->rows, rows);
        t.col_tiles = vkt_div_up(K, cols);
        t.rows = vkt_div_up(j->rows, t.row_tiles);
        t.cols = vkt_div_up(K, t.col_tiles);
        const uint64_t groups = slices * t.row_tiles * t.col_tiles * j->most.groups;
        if (groups >= vkt_tiles_wanted(e->lim, t.lanes) || t.rows * t.cols <= LEAST_SUMS) return t;
    }
}

bool vkt_conv_dw_direct_shared_can(const vkt_emit *e, const vkt_conv_dw_job *j)
{
    const vkt_dw_direct_tiles t = vkt_dw_direct_tiles_of(e, j);
    const uint64_t range = e->lim->max_storage_range_bytes; /* the kernel reads storage buffers only, no texels */
    const uint64_t rows = vkt_steps_in(range, 16 * j->dy_plane, j->z->out_channels),
                   channels = vkt_steps_in(range, 16 * j->x_plane, j->z->channels);
    return (uint64_t)t.row_tiles * t.col_tiles <= e->lim->max_groups && j->most.rows == j->rows &&
           j->most.channels == j->channels && rows / j->rows >= j->most.groups &&
           channels / j->channels >= j->most.groups;
}

void vkt_conv_dw_direct_shared_emit(vkt_emit *e, const vkt_conv_dw_job *j, const vkt_conv_dw_part *p)
{
    const vkt_conv2d_size *z = j->z;
    const vkt_dw_direct_tiles t = vkt_dw_direct_tiles_of(e, j);
    const uint32_t K = depth_of(j), o = p->group * j->rows, n_o = p->groups * j->rows;
    const uint32_t *dy_size = vkt_lowered_value(e, j->dy)->shape.dim + 2;
    /* vec4s of a channel of the tensor j->dy. With j->index, this tensor has the size of the pooling's output. But
     * j->dy_plane is always for a channel of y. */
    const uint64_t dy_plane = (uint64_t)dy_size[0] * dy_size[1] * z->n4;
    uint32_t index_base = 0;
    if (!vkt_conv2d_is_short(e, 1, j->slice / t.lanes + t.cols + (t.rows * t.cols + t.rows) * t.lanes)) return;
    vkt_conv2d_dw_direct_shared_push push = { .plane = (uint32_t)j->dy_plane,
                                              .slice = j->slice,
                                              .rows = j->rows,
                                              .col_tiles = t.col_tiles,
                                              .K = K,
                                              .taps = z->kernel[0] * z->kernel[1],
                                              .kernel_w = z->kernel[1],
                                              .src_height = z->in[0],
                                              .src_width = z->in[1],
                                              .stride_h = z->a.stride[0],
                                              .stride_w = z->a.stride[1],
                                              .offset_h = -(int32_t)z->a.pad[0],
                                              .offset_w = -(int32_t)z->a.pad[1],
                                              .reach_h = (int32_t)z->a.dilation[0],
                                              .reach_w = (int32_t)z->a.dilation[1],
                                              .part = (uint32_t)j->slices.floats,
                                              .dy_height = dy_size[0],
                                              .dy_width = dy_size[1],
                                              .b_base = o };
    vkt_bind bind[] = { [DW_DIRECT_SHARED_DY] = vkt_conv2d_channels(e, j->dy, dy_plane, o, n_o, &push.dy_base),
                        [DW_DIRECT_SHARED_X] =
                            vkt_conv2d_channels(e, j->x, j->x_plane, (uint64_t)p->group * j->channels,
                                                (uint64_t)p->groups * j->channels, &push.x_base),
                        [DW_DIRECT_SHARED_W] = VKT_WHOLE(j->slices.t),
                        [DW_DIRECT_SHARED_B] = VKT_WHOLE(j->slices.t),
                        [DW_DIRECT_SHARED_INDEX] = VKT_WHOLE(j->index) };
    if (j->index.id) {
        bind[DW_DIRECT_SHARED_INDEX] = vkt_conv2d_channels(e, j->index, dy_plane, o, n_o, &index_base);
        push.to_index = (int32_t)index_base - (int32_t)push.dy_base;
    }
    if (j->slices.t.id) {
        push.w_base = o * K;
        bind[DW_DIRECT_SHARED_B].offset_bytes = j->db.id ? 4 * j->slices.bias_start : 0;
    } else {
        bind[DW_DIRECT_SHARED_W] = vkt_bind_range(e, j->dw, (uint64_t)o * K, (uint64_t)n_o * K, &push.w_base);
        bind[DW_DIRECT_SHARED_B] =
            j->db.id ? VKT_WHOLE(j->db) : bind[DW_DIRECT_SHARED_W]; /* not written without bias */
    }
    const uint32_t spec[DW_DIRECT_SHARED_SPECS] = { [DW_DIRECT_SHARED_SPEC_LANES] = t.lanes,
                                                    [DW_DIRECT_SHARED_SPEC_ROWS] = t.rows,
                                                    [DW_DIRECT_SHARED_SPEC_COLS] = t.cols,
                                                    [DW_DIRECT_SHARED_SPEC_PAD] = z->a.pad[0] != 0 || z->a.pad[1] != 0,
                                                    [DW_DIRECT_SHARED_SPEC_BIAS] = j->db.id != 0,
                                                    [DW_DIRECT_SHARED_SPEC_N4] = z->n4,
                                                    [DW_DIRECT_SHARED_SPEC_WIDTH] = z->out[1],
                                                    [DW_DIRECT_SHARED_SPEC_WINDOW_H] = j->cell[0],
                                                    [DW_DIRECT_SHARED_SPEC_WINDOW_W] = j->cell[1] };
    vkt_dispatch_add(
        e, &(vkt_launch){ .kernel = j->index.id ? VKT_K_CONV2D_DW_UNPOOL_SHARED : VKT_K_CONV2D_DW_DIRECT_SHARED,
                          VKT_LAUNCH_BIND(bind),
                          VKT_LAUNCH_PUSH(push),
                          VKT_LAUNCH_SPEC(spec),
                          .groups = { j->slices.n, t.row_tiles * t.col_tiles, p->groups } });
}
