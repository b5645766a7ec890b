/* attention.abi.h - softmax(scale * q k^T) v for each head. In the comments below, "dkv" stands for the kernels that
 * compute dk and dv.
 *
 * In each tensor, a token has all its heads side by side, and each head has d4 vec4s. The number of heads is `heads` in
 * q, y, dq and dy, and kv_heads in k, v, dk and dv. From one token to the next there are heads * d4 vec4s in y and dy,
 * and ld vec4s in the other tensors.
 *
 * The heads of all samples of the dispatch are numbered. Token t of head number h starts at this vec4 of the tensor:
 *   q       (h / heads * queries + t) * ld + h % heads * d4, where a head has `queries` queries
 *   k, v    (h / kv_heads * keys + t) * ld + h % kv_heads * d4, where a head has `keys` keys
 * Head h of q reads head h / group of k and v. */
VKT_PUSH(vkt_attention_push,
         VKT_U32(units) /* tiles of this dispatch, over all heads of q; dkv: over all heads of k and v */
         VKT_U32(rows)   /* queries of a head; dkv: keys */
         VKT_U32(others) /* keys of a head; dkv: queries */
         VKT_U32(heads) VKT_U32(kv_heads)
         VKT_U32(group) /* heads of q that read the same head of k and v */
         VKT_U32(d4) VKT_U32(ld)
         VKT_U32(spread) /* lanes that share a row of d4 vec4s: a power of two, at most the subgroup size; at
                             least 4 in subgroups of ATTENTION_ROTATED lanes */
         VKT_U32(causal) /* 1: query t uses keys 0 .. t only */
         VKT_U32(q0) VKT_U32(k0) VKT_U32(v0) VKT_U32(y0) VKT_U32(dy0)
         VKT_U32(dq0) VKT_U32(dk0) VKT_U32(dv0) /* q0 to dv0: index of the first sample's first vec4 of q, .., dv, each in
                                                 * its own binding */
         VKT_U32(lse0) VKT_U32(delta0) /* index of the first sample's first element in LSE, and in DELTA */
         VKT_U32(zero) /* always 0: see conv/tile.comp */
         VKT_F32(scale))
#define ATTENTION_Q     0
#define ATTENTION_K     1
#define ATTENTION_V     2
#define ATTENTION_Y     3
#define ATTENTION_LSE   4 /* f32 (samples, heads, queries): log sum exp(scale * q k^T) */
#define ATTENTION_DY    5
#define ATTENTION_DELTA 6 /* f32 (samples, heads, queries): sum of dy * y over the row */
#define ATTENTION_DQ    7
#define ATTENTION_DK    8
#define ATTENTION_DV    9
#define ATTENTION_BINDINGS 10
#define ATTENTION_SPEC_ROWS   1 /* rows of a tile */
#define ATTENTION_SPEC_PARTS  2 /* vec4s of a row per lane: above 1 only if a whole subgroup shares a row */
#define ATTENTION_SPECS       3
#define ATTENTION_ROTATED   16u /* in subgroups of this size, weights move from lane to lane: lib/attention.glsl */
#define ATTENTION_MAX_ROWS 16u
#define ATTENTION_MAX_SUMS 64u /* upper limit of ROWS * PARTS, the vec4s of a lane for each result (y, dq, dk or dv) */
/* Kernels for GPUs (lib/attention_shared.glsl). A work group has ROWS / OWN * ATTENTION_SHARED_LANES_N(D4) lanes. */
#define ATTENTION_SHARED_SPEC_ROWS   1 /* rows of a tile: 64, 32, 16 or 8 */
#define ATTENTION_SHARED_SPEC_CHUNKS 2 /* vec4s of a row in shared memory at a time: 4, or (only if d4 is above 16) 2 */
#define ATTENTION_SHARED_SPEC_D4     3 /* d4 */
#define ATTENTION_SHARED_SPEC_OWN    4 /* rows of a lane: 4 or 2 */
#define ATTENTION_SHARED_SPECS       5
#define ATTENTION_MAX_SPECS          5
#define ATTENTION_COOP_PAD 2u /* f16vec4s of padding behind each row in shared memory */
#define ATTENTION_SHARED_LANES_N(d4) ((d4) <= 16u ? 16u : 32u) /* lanes per row of scores; a lane has 4 columns */
