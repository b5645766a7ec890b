/* overflow.abi.h - see overflow.comp. A dispatch reads one range of the gradients. The push constants, bindings and
 * specialisation ids are described in update.abi.h. */
VKT_PUSH(vkt_overflow_push, VKT_U32(n4) VKT_U32(block))
