/* rope.abi.h - see rope.comp. An element is a float, or a vec4 in a kernel of WIDTH 4. A unit of a head is a pair of
 * elements, or one element that is always copied. */
VKT_PUSH(vkt_rope_push,
         VKT_U32(n)       /* samples * tokens * units */
         VKT_U32(tokens)
         VKT_U32(units)   /* units of a head: the first `pairs` units are pairs, the others are single elements */
         VKT_U32(pairs)
         VKT_U32(heads)
         VKT_U32(rotated) /* the first `rotated` heads are rotated, the other heads are copied */
         VKT_U32(position) /* position of token 0. ROPE_SPEC_FIRST not 0: the kernel adds one number from ROPE_FIRST */
         VKT_U32(sample0) /* index in ROPE_FIRST of the dispatch's first sample */
         /* x, y: index of the dispatch's first element in each binding. x_.., y_..: strides of x and y, in elements */
         VKT_U32(x) VKT_U32(x_sample) VKT_U32(x_token) VKT_U32(x_head)
         VKT_U32(y) VKT_U32(y_sample) VKT_U32(y_token) VKT_U32(y_head)
         VKT_U32(s0) VKT_U32(s1) VKT_U32(s2) /* per iteration, a lane moves on by s0 samples, s1 tokens and
                                              * s2 units: together gl_WorkGroupSize.x units */
         VKT_F32(sign))   /* 1, or -1 for the inverse rotation */
#define ROPE_X     0
#define ROPE_TURNS 1 /* u32 (2, number of pairs of floats): turns per position * 2^64; [0] high words, [1] low words */
#define ROPE_FIRST 2 /* u32: number to be added to the position */
#define ROPE_Y     3
#define ROPE_SPEC_HALVES 1 /* 1: a pair is floats i and i + p (p: number of pairs); 0: a pair is floats 2i and 2i + 1 */
#define ROPE_SPEC_FIRST  2 /* 0: ROPE_FIRST is not read; 1: it has one number; 2: it has one number for each sample */
