/* overflow.abi.h - see overflow.comp. A dispatch reads one range of the gradients. Bindings and specialisation ids are
 * in update.abi.h. */
VKT_PUSH(vkt_overflow_push, VKT_U32(n4) VKT_U32(block))
