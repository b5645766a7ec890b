/* overflow.abi.h - one window of the gradients; bindings and specialisation ids are those of update.abi.h. */
VKT_PUSH(vkt_overflow_push, VKT_U32(n4) VKT_U32(block))
