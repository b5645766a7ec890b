/* embedding_dw.abi.h - the three kernels that sum gradients by id: embedding_rank, embedding_scatter, embedding_sum. Ids that are
 * `padding` or no row count nowhere. START, u32: of row v <= rows the number of counted positions with a lower id, and so on up to
 * ranges * range; behind that, for embedding_rank alone, one word a range. SORTED, uvec2: the counted positions by id, those of one
 * id in their order, as (id, where the position's gradient starts in DY of embedding_sum). */
VKT_PUSH(vkt_embedding_dw_push,
         VKT_U32(rows) VKT_U32(width) VKT_U32(padding)
         VKT_U32(begin) VKT_U32(end)       /* positions of this dispatch; rows of embedding_sum */
         VKT_U32(ranges) VKT_U32(range)    /* embedding_rank: ranges of ids 0 .. rows or more, and ids in one: a multiple of 4 */
         VKT_U32(last)                     /* embedding_rank: 1: no more positions follow, so counts become starts */
         VKT_U32(per_sample) VKT_U32(pitch4) /* embedding_scatter CHANNELS: dy is [width][per_sample][4 pitch4] */
         VKT_U32(zeros))                   /* embedding_scatter: numbers of OUT to clear */
#define EMBEDDING_DW_SPEC_WIDTH 1 /* embedding_sum: width; */
#define EMBEDDING_DW_SPEC_VECS  2 /* and vec4s of a row a lane, which divide width rounded up to 4 */
#define EMBEDDING_DW_IDS    0 /* u32 (N) */
#define EMBEDDING_DW_START  1
#define EMBEDDING_DW_RANK   2 /* u32 (N): how many positions before have the same id */
#define EMBEDDING_DW_SORTED 3
#define EMBEDDING_DW_DY     4 /* embedding_sum COPIED: what COPY was */
#define EMBEDDING_DW_PART   5 /* f32 (N / EMBEDDING_DW_BLOCK rounded up, width rounded up to 4): sums of blocks of one id */
#define EMBEDDING_DW_OUT    6 /* f32 (rows of this window, width); embedding_sum BLOCKS: PART, written */
#define EMBEDDING_DW_COPY   7 /* f32 (N, width rounded up to 4): the gradients in the order of SORTED */
#define EMBEDDING_DW_BLOCK 64 /* places in SORTED */
#define EMBEDDING_DW_CHUNK 64 /* embedding_scatter: vec4s of a row that a work group copies */
