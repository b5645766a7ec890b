/* embedding.abi.h - copies rows of a table (V, width) for N ids. EMBEDDING_TABLE binds the rows row_begin .. row_end - 1 of
 * the table. Without CHANNELS, the dispatch writes the rows of `positions` ids, from the id at index `first` on. With
 * CHANNELS, ids are (batch, per_sample), y is [width][per_sample][4 * pitch4], and the dispatch writes `features`
 * features, from feature `feature` on. */
VKT_PUSH(vkt_embedding_push,
         VKT_U32(row_begin) VKT_U32(row_end) VKT_U32(width)
         VKT_U32(first) VKT_U32(positions)
         VKT_U32(batch) VKT_U32(pitch4) VKT_U32(per_sample) VKT_U32(feature) VKT_U32(features))
/* For an id outside the binding's rows. 1: the elements of y for this id do not change, because an earlier dispatch
 * wrote these elements. 0: the elements become 0. */
#define EMBEDDING_SPEC_KEEP 1
#define EMBEDDING_IDS   0 /* u32 (N) */
#define EMBEDDING_TABLE 1 /* f32 (V, width) */
#define EMBEDDING_Y     2
#define EMBEDDING_CHUNK 64 /* CHANNELS: blocks of 4 features in a chunk. The grid's y axis counts chunks */
