/* embedding_dw.abi.h - three kernels sum the gradients of each id: embedding_rank, embedding_scatter, embedding_sum.
 * A position is an index in the list of the N ids. It is counted if its id is a row of the table, except for the row
 * `padding`. width' is `width` rounded up to a multiple of 4.
 *   START    (u32) START[v] is the number of counted positions whose id is below v. v is below ranges * range. Behind
 *            these words there is one word per range, which only embedding_rank uses.
 *   SORTED   (uvec2) has one entry for each counted position, sorted by id and then by position. An entry is the id,
 *            and the index of the gradient's first float in DY of embedding_sum. */
VKT_PUSH(vkt_embedding_dw_push,
         VKT_U32(rows) VKT_U32(width) VKT_U32(padding)
         VKT_U32(begin) VKT_U32(end)       /* embedding_rank: the dispatch's positions are begin .. end - 1.
                                            * embedding_scatter: the positions are 0 .. end - 1.
                                            * embedding_sum: the dispatch's rows are begin .. end - 1 */
         VKT_U32(ranges) VKT_U32(range)    /* the indices v of START are divided into `ranges` ranges of `range`
                                            * indices. `range` is a multiple of 4. ranges * range is above `rows`, so
                                            * START[rows] exists: it is the number of entries of SORTED */
         VKT_U32(last)                     /* 1: the last dispatch. embedding_rank then converts counts to starts */
         VKT_U32(per_sample) VKT_U32(pitch4) /* embedding_scatter, CHANNELS: dy is [width][per_sample][4 * pitch4] */
         VKT_U32(zeros))                   /* embedding_scatter: number of floats of EMBEDDING_DW_OUT to clear */
#define EMBEDDING_DW_SPEC_WIDTH 1 /* embedding_sum: width */
#define EMBEDDING_DW_SPEC_VECS  2 /* embedding_sum: vec4s of a row per lane, a divisor of the vec4s of a row */
#define EMBEDDING_DW_IDS    0 /* u32 (N) */
#define EMBEDDING_DW_START  1
#define EMBEDDING_DW_RANK   2 /* u32 (N): number of earlier positions with the same id */
#define EMBEDDING_DW_SORTED 3
#define EMBEDDING_DW_DY     4 /* in embedding_sum with COPIED: the buffer of EMBEDDING_DW_COPY */
#define EMBEDDING_DW_PART   5 /* f32 (N / EMBEDDING_DW_BLOCK rounded up, width'): the sum of each block's gradients */
#define EMBEDDING_DW_OUT    6 /* f32 (rows of this dispatch, width); in embedding_sum with BLOCKS: the buffer of PART */
#define EMBEDDING_DW_COPY   7 /* f32 (N, width'): the gradients in the order of SORTED */
#define EMBEDDING_DW_BLOCK 64 /* entries of SORTED per block. All entries of a block have the same id */
#define EMBEDDING_DW_CHUNK 64 /* embedding_scatter: vec4s of a row per work group */
