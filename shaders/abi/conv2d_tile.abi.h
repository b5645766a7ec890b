/* conv2d_tile.abi.h - see conv/tile.comp. One vec4 has one pixel of four neighbouring samples, or four weights of A. A
 * dispatch computes all channels of one or more groups of channels. If one group is too large for a dispatch, the
 * dispatch computes `rows` destination channels of the group from `depth` source channels. */
VKT_PUSH(vkt_conv2d_tile_push,
         VKT_U32(columns)                      /* vec4s of one destination plane to compute: n4 for each pixel */
         VKT_U32(n4)                           /* vec4s of one pixel: batch / 4, rounded up */
         VKT_U32(width)                        /* pixels to compute in an image row: all, or those of one phase */
         VKT_U32(dst_plane)                    /* vec4s of one destination plane */
         VKT_U32(dst_row) VKT_U32(dst_col)     /* vec4s of dst: from one computed image row to the next; from one
                                                * computed pixel to the next */
         VKT_U32(rows)                         /* destination channels of a group that are computed: rows of A */
         VKT_U32(row_tiles)                    /* rows / (MB * LANES / ACROSS), rounded up */
         VKT_U32(src_width)
         VKT_U32(src_plane)                    /* vec4s of one source plane */
         VKT_U32(depth)                        /* source channels of a group that are read */
         VKT_U32(src_group) VKT_U32(dst_group) /* channels from group to group */
         VKT_U32(kernel_h) VKT_U32(kernel_w)   /* taps that the computed pixels use */
         VKT_U32(a_group)                      /* vec4s of A from group to group */
         VKT_U32(a_tile)                       /* vec4s of A from one tile of MB rows to the next */
         VKT_U32(a_tap_h) VKT_U32(a_tap_w)     /* vec4s of A from tap to tap */
         VKT_U32(a_pitch)                      /* vec4s of A from k to k; with M_MAJOR from m to m */
         /* index in TILE_TAPS of the phase's first i32 in each of the four parts of TILE_TAPS */
         VKT_U32(row_ranges) VKT_U32(col_ranges) VKT_U32(row_sources) VKT_U32(col_sources)
         VKT_U32(a_base) VKT_U32(src_base) VKT_U32(dst_base) /* index of the dispatch's first vec4 in each binding */
         VKT_U32(bias_base)                                  /* index of the dispatch's first float in the binding */
         VKT_U32(zero))                        /* always 0: see conv/tile.comp */

#define TILE_A    0 /* weights, f32 */
#define TILE_SRC  1
#define TILE_TAPS 2 /* i32, four parts. The pixel (p, q) is computed from the taps (r, s).
                     * For each p: the first r whose source row is inside the source, and 1 + the last such r (none: 0, 0)
                     * For each q: the first s whose source column is inside the source, and 1 + the last such s (none: 0, 0)
                     * For each (p, r): the source row, or -1 if it is outside the source
                     * For each (q, s): the source column, or -1 if it is outside the source */
#define TILE_BIAS 3
#define TILE_DST  4 /* written; with ADD, also read */

#define TILE_SPEC_LANES   0
#define TILE_SPEC_MB      1 /* destination channels per lane; a multiple of 4, at most 4 * ACROSS */
#define TILE_SPEC_UNROLL  2 /* source channels per iteration: a divisor of depth */
#define TILE_SPEC_UNIFORM 3 /* 1: all lanes of a tile use the same taps, because ACROSS divides n4 (so these lanes have
                             * the same pixel), or because no tap is outside the source */
#define TILE_SPEC_BIAS    4
#define TILE_SPEC_M_MAJOR 5 /* A is [m][k] instead of [k][m]. UNROLL is then 4. MB is below ACROSS or a multiple of ACROSS */
#define TILE_SPEC_ACROSS  6 /* lanes of a block: a power of two up to LANES. All lanes of a block compute the same MB
                             * channels, each lane for its own vec4 of samples */
#define TILE_SPECS        7
