/* attention_cached.abi.h - see attention_cached.comp. A plane is a matrix: the last two dimensions of a tensor. k and v
 * have one plane of `keys` rows for each head of k. q and y have `group` planes of `queries` rows for each plane of k.
 * A row has 4 * ATTENTION_CACHED_SPEC_D4 numbers. */
VKT_PUSH(vkt_attention_cached_push,
         VKT_U32(units) /* rows of q: `queries` times the number of planes of q */
         VKT_U32(queries) VKT_U32(keys)
         VKT_U32(group)
         VKT_U32(q0) VKT_U32(k0) VKT_U32(v0) VKT_U32(y0) /* index of the first vec4 of q, k, v, y, each in its own binding */
         VKT_F32(scale))
#define ATTENTION_CACHED_Q    0
#define ATTENTION_CACHED_K    1
#define ATTENTION_CACHED_V    2
#define ATTENTION_CACHED_PAST 3 /* u32 (1): the number `past`. Query t uses the keys 0 .. past + t that exist */
#define ATTENTION_CACHED_Y    4
#define ATTENTION_CACHED_SPEC_D4     1 /* vec4s of a row: 1 to 32 */
#define ATTENTION_CACHED_SPEC_SPREAD 2 /* lanes that share a row of v: a power of two, at most the lanes of a work group */
#define ATTENTION_CACHED_LANES 256u    /* maximum number of lanes of a work group */
