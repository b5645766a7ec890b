/* embedding_dw.abi.h - the three kernels that sum gradients by id: embedding_rank, embedding_scatter, embedding_sum. Ids that are
 * `padding` or no row count nowhere. START, u32: of row v < rows the number of counted positions with a lower id, at `rows` that
 * of all; behind it, for embedding_rank alone, one word a range. SORTED, uvec2: the counted positions by id, those of one id in
 * their order, as (id, where the position's gradient starts in dy). */
VKT_PUSH(vkt_embedding_dw_push,
         VKT_U32(rows) VKT_U32(width) VKT_U32(padding)
         VKT_U32(begin) VKT_U32(end)       /* positions of this dispatch; rows of embedding_sum */
         VKT_U32(ranges) VKT_U32(range)    /* embedding_rank: ranges of ids, and ids in one */
         VKT_U32(last)                     /* embedding_rank: 1: no more positions follow, so counts become starts */
         VKT_U32(per_sample) VKT_U32(outer) VKT_U32(inner) /* position (b, l) of (.., per_sample) starts at b outer + l inner in dy, */
         VKT_U32(step)                     /* and its numbers are `step` apart */
         VKT_U32(zeros))                   /* embedding_scatter: numbers of OUT to clear */
#define EMBEDDING_DW_IDS    0 /* u32 (N) */
#define EMBEDDING_DW_START  1
#define EMBEDDING_DW_RANK   2 /* u32 (N): how many positions before have the same id */
#define EMBEDDING_DW_SORTED 3
#define EMBEDDING_DW_DY     4 /* f32 */
#define EMBEDDING_DW_PART   5 /* f32 (N / EMBEDDING_DW_BLOCK, width): sums of blocks that are of one id throughout */
#define EMBEDDING_DW_OUT    6 /* f32 (rows of this window, width); BLOCKS: PART, written */
#define EMBEDDING_DW_BLOCK 64 /* neighbours in SORTED */
