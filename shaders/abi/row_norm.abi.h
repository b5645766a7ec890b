/* row_norm.abi.h - normalisation of rows of `run` neighbouring elements. A sample has `groups` rows. A row is one group of
 * `channels` channels, and a channel has `inner` elements. Row r is group r % groups. Element k of row r belongs to channel
 * (r % groups) * channels + k / inner. Each channel has its own gamma and beta. */
VKT_PUSH(vkt_row_norm_push,
         VKT_U32(rows) VKT_U32(first) /* the dispatch has `rows` rows from row `first` on */
         VKT_U32(run) VKT_U32(groups) VKT_U32(channels) VKT_U32(inner)
         VKT_U32(x0) VKT_U32(dy0) VKT_U32(y0) /* index of the first element of row `first` in each binding */
         VKT_U32(slices)        /* row_norm_dw: number of slices of the dispatch. A slice is a range of samples */
         VKT_U32(first_slice)   /* row_norm_dw: index in PART of the dispatch's first slice */
         VKT_U32(slice_samples) /* row_norm_dw: samples per slice */
         VKT_F32(eps))
#define ROW_NORM_X     0
#define ROW_NORM_GAMMA 1 /* f32 (groups * channels) */
#define ROW_NORM_BETA  2
#define ROW_NORM_Y     3 /* y, or dx */
#define ROW_NORM_MEAN  4 /* f32 (all rows); not used with ROW_NORM_SPEC_RMS */
#define ROW_NORM_SCALE 5 /* f32 (all rows): 1 / sqrt(var + eps). RMS: var is the mean of squares of x */
#define ROW_NORM_DY    6
#define ROW_NORM_PART  7 /* f32 (all slices, 2, groups * channels): sums of dy * xhat, then of dy */
#define ROW_NORM_SPEC_GAMMA 1 /* 1: gamma is present */
#define ROW_NORM_SPEC_BETA  2
#define ROW_NORM_SPEC_RMS   3 /* 1: the mean is not subtracted */
#define ROW_NORM_SPEC_SPLIT 4 /* 1: inner is above 1 */
#define ROW_NORM_SPEC_HELD  6 /* vec4s (WIDTH 1: floats) of a row that a lane keeps in registers; above 0 only if SPLIT is 0 */
#define ROW_NORM_SPEC_GROUPED 5 /* 1: groups is above 1 */
