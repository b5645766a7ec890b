/* broadcast.abi.h - y = f(a, b) where operands repeat along some dimensions of y. Physical dimensions of y from slow to fast
 * are d0..d4 and, fastest, `run` of `pitch`; a0..a5, b0..b5 are the operands' strides in elements, 0 where they repeat. */
VKT_PUSH(vkt_broadcast_push,
         VKT_U32(rows) VKT_U32(run) VKT_U32(pitch)
         VKT_U32(d0) VKT_U32(d1) VKT_U32(d2) VKT_U32(d3) VKT_U32(d4)
         VKT_U32(a0) VKT_U32(a1) VKT_U32(a2) VKT_U32(a3) VKT_U32(a4) VKT_U32(a5)
         VKT_U32(b0) VKT_U32(b1) VKT_U32(b2) VKT_U32(b3) VKT_U32(b4) VKT_U32(b5))
#define BROADCAST_A 0
#define BROADCAST_B 1
#define BROADCAST_Y 2
