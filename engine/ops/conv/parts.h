/* ops/conv/parts.h - the job of a variant (one convolution or its gradient), the part of a job that one dispatch
 * computes, and the functions that the variants share. */
#ifndef VKT_CONV_PARTS_H
#define VKT_CONV_PARTS_H

#include "ops/conv/geometry.h"
#include "ops/conv/phase.h"
#include "ops/product/blocks.h"

#include "abi/abi.h"
#include "abi/conv2d_pack.abi.h"

/* The most output channels of a tile of a direct convolution. Each channel is a stream of writes, and writes take most
 * of the time because there are few products. Prefetchers follow at most eight streams. For instance, a convolution of
 * 7 channels to 64, with 5 taps, takes half as long with 8 channels per tile as with 32. */
#define VKT_DIRECT_ROWS 8u

/* Returns the size of a share if n is split into equal shares of at most `most`; the last share may be smaller. The
 * size is a multiple of `unit`, unless one share is all of n. Returns 0 if `most` is below n and below `unit`. */
uint32_t vkt_conv2d_share(uint32_t n, uint64_t most, uint32_t unit);
void vkt_conv2d_too_large(vkt_emit *e, const vkt_conv2d_size *z);
/* Returns true if no loop is too long (vkt_largest_loop). There are `groups` pieces of work, each of at most `rounds`
 * iterations, and normally one work group for each piece. If a dispatch cannot have so many work groups, a work group
 * does several pieces. If a loop is too long, sets the emission's error and returns false. */
bool vkt_conv2d_is_short(vkt_emit *e, uint64_t groups, uint64_t rounds);
/* Binds n channels of t, `plane` vec4s each, from channel `first` on. *base: the index, in the binding, of the first
 * vec4 of channel `first`. */
vkt_bind vkt_conv2d_channels(const vkt_emit *e, vkt_tensor t, uint64_t plane, uint64_t first, uint64_t n,
                             uint32_t *base);

/* The tiles of SHARED, and of COOP if the program and the device allow COOP. */
typedef struct vkt_conv2d_tilings {
    vkt_blocks shared, coop;
    bool can_shared, can_coop; /* can_shared: no tensor is larger than a binding, and no loop is too long. can_coop: the
                                * same conditions, and the program and the device allow COOP */
    bool pays, coop_pays;      /* pays: the device has the trait shared_pays. coop_pays: the product of a group of the
                                * convolution has at least 16 rows and at least 16 columns */
    double waste;              /* vkt_blocks_waste of `shared` */
} vkt_conv2d_tilings;

/* ---- y and dx ---- */

/* The part of a product that one dispatch computes. In each of the convolution's groups group .. group + groups - 1,
 * the dispatch computes channels row .. row + rows - 1 of the destination. It reads channels k .. k + depth - 1 of the
 * source. The part is the whole product unless a tensor is larger than a binding, a loop would be too long, or a
 * dispatch would have too many work groups. */
typedef struct vkt_conv_part {
    uint32_t group, groups, row, rows, k, depth;
} vkt_conv_part;

/* The job to compute y from x or, if `transposed`, dx from dy. bias may be {0}. */
typedef struct vkt_conv_job {
    const vkt_conv2d_size *z;
    bool transposed; /* true for dx: the destination is the input image */
    uint32_t dst[2], src[2];
    uint32_t rows, depth;          /* destination and source channels of a group of the convolution */
    uint64_t dst_plane, src_plane; /* vec4s of a channel */
    vkt_tensor from, w, bias, to;
    vkt_tensor slope;        /* {0}: none. Else a tensor of the shape of `to`. Where an element of `slope` is at most 0,
                              * DIRECT_SHARED stores 0 in `to` */
    vkt_tensor taps, packed; /* taps: the tile kernel's table of taps. packed: the weights in the order in which the
                              * tile or span kernel reads them. Both are {0} until their first use */
    bool in_place;           /* the tile kernel reads w itself, without a packed copy */
    bool halves;             /* parts of 32 rows or more have tiles half a subgroup wide: see takes_halves in tile.c */
    vkt_conv_part most;      /* the size of the first part. No part is larger */
    vkt_conv2d_tilings tilings;
} vkt_conv_job;

/* h is a phase along H, and v is a phase along W. Returns true if some tap of h or v reads outside of the source, or if
 * h or v has no tap. */
bool vkt_conv_reaches_out(const vkt_conv_job *j, const vkt_conv_phase *h, const vkt_conv_phase *v);
/* Returns the binding that has a part's weights. *base is the index, in the binding, of the part's first weight. */
vkt_bind vkt_conv_weights(const vkt_emit *e, const vkt_conv_job *j, const vkt_conv_part *p, uint32_t *base);
/* vkt_conv_source returns the binding of a part's source channels. vkt_conv_destination returns the binding of its
 * destination channels. *base is the index, in the binding, of the first vec4 of these channels. */
vkt_bind vkt_conv_source(const vkt_emit *e, const vkt_conv_job *j, const vkt_conv_part *p, uint32_t *base);
vkt_bind vkt_conv_destination(const vkt_emit *e, const vkt_conv_job *j, const vkt_conv_part *p, uint32_t *base);
/* Returns the binding of j->slope for the same elements as vkt_conv_destination. */
vkt_bind vkt_conv_slope(const vkt_emit *e, const vkt_conv_job *j, const vkt_conv_part *p, uint32_t *base);
/* Copies w to panels, and returns the binding of the panels. A panel has the weights of `mb` rows (destination
 * channels). `m_major`: the source channel is the fastest index in a panel. The caller sets the order of the weights in
 * `push`: `inner`, w_base, w_outer and w_inner. */
vkt_bind vkt_conv_pack(vkt_emit *e, vkt_conv_job *j, const vkt_conv_part *p, uint32_t mb, bool m_major,
                       vkt_conv2d_pack_push push);

/* ---- dw and db ---- */

/* The job to compute dw and db from x and dy; db may be {0}. If `index` is {0}, dy is the gradient of the convolution's
 * output. Otherwise a max pooling with disjoint windows of cell[0] x cell[1] reads the convolution's output, dy is the
 * gradient of the pooling's output, and `index` is the pooling's other output, the winners' indices (pool.h). */
typedef struct vkt_conv2d_dw_product {
    const vkt_conv2d_size *z;
    vkt_tensor x, dy, dw, db;
    vkt_tensor index;
    uint32_t cell[2];
} vkt_conv2d_dw_product;

/* dw and db are sums over pixels. The pixels are split into n slices. Each slice has partial sums of its own, `floats`
 * floats: the sums for dw and, from float bias_start on, the sums for db. If n > 1, the partial sums are in t. If n is
 * 1, t is {0}, because the sums are written to dw and db themselves. */
typedef struct vkt_conv2d_slices {
    vkt_tensor t;
    uint32_t n;
    uint64_t floats, bias_start;
} vkt_conv2d_slices;

/* Returns the slices with all fields set except t and n, which are 0. */
static inline vkt_conv2d_slices vkt_conv2d_slices_of(const vkt_emit *e, vkt_tensor dw, vkt_tensor db)
{
    const uint64_t start = vkt_round_up(vkt_lowered_value(e, dw)->bytes, VKT_ALIGN_BYTES);
    const uint64_t end = start + (db.id ? vkt_round_up(vkt_lowered_value(e, db)->bytes, VKT_ALIGN_BYTES) : 0);
    return (vkt_conv2d_slices){ .floats = end / 4, .bias_start = start / 4 };
}

/* The part of dw that one dispatch computes. In each of the convolution's groups group .. group + groups - 1, the part
 * has output channels row .. row + rows - 1 and input channels channel .. channel + channels - 1. */
typedef struct vkt_conv_dw_part {
    uint32_t group, groups, row, rows, channel, channels;
} vkt_conv_dw_part;

/* A vkt_conv2d_dw_product, with the numbers that the variants derive from it. */
typedef struct vkt_conv_dw_job {
    const vkt_conv2d_size *z;
    uint32_t rows, channels;    /* channels of dy, and of x, in a group of the convolution */
    uint64_t dy_plane, x_plane; /* vec4s of a channel of y, and of x */
    vkt_tensor x, dy, dw, db;
    vkt_tensor index; /* {0}: dy has y's size. Else dy is the gradient of a pooling's output (vkt_conv2d_dw_product) */
    uint32_t cell[2];
    uint32_t slice; /* number of vec4s of one channel of dy in a slice */
    vkt_conv2d_slices slices;
    vkt_conv_dw_part most; /* the size of the first part. No part is larger */
    vkt_conv2d_tilings tilings;
} vkt_conv_dw_job;

/* Emits dw and, unless db is {0}, db: adds the partial sums of the slices, from the first slice to the last. */
void vkt_conv2d_sum_slices(vkt_emit *e, const vkt_conv2d_slices *s, vkt_tensor dw, vkt_tensor db);

#endif
