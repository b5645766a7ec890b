/* rope.abi.h - see rope.comp. Everything counts elements, or vec4s if the kernel has vec4s, except samples, tokens, heads
 * and positions. */
VKT_PUSH(vkt_rope_push,
         VKT_U32(n)       /* samples * tokens * units */
         VKT_U32(tokens)
         VKT_U32(units)   /* units of a head: the first `pairs` units are rotated, the others are copied */
         VKT_U32(pairs)   /* pairs of elements, or of vec4s */
         VKT_U32(heads)
         VKT_U32(rotated) /* number of the first heads that are rotated; the other heads are copied */
         VKT_U32(position) /* position of token 0, without the number in ROPE_FIRST */
         VKT_U32(sample0) /* index in FIRST of the dispatch's first sample */
         VKT_U32(x) VKT_U32(x_sample) VKT_U32(x_token) VKT_U32(x_head) /* first element of the dispatch; strides */
         VKT_U32(y) VKT_U32(y_sample) VKT_U32(y_token) VKT_U32(y_head)
         VKT_U32(s0) VKT_U32(s1) VKT_U32(s2) /* sample, token and index in the head of unit number gl_WorkGroupSize.x */
         VKT_F32(sign))   /* 1, or -1 for the inverse rotation */
#define ROPE_X     0
#define ROPE_TURNS 1 /* (2, pairs of elements): turns per position, in units of 2^-64: the high words, then the low words */
#define ROPE_FIRST 2 /* number to be added to the position */
#define ROPE_Y     3
#define ROPE_SPEC_HALVES 1 /* 1: element i is paired with i + half of the rotated elements; 0: 2i with 2i + 1 */
#define ROPE_SPEC_FIRST  2 /* 0: FIRST is not read; 1: FIRST has one number; 2: one for each sample */
