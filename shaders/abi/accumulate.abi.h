/* accumulate.abi.h - see accumulate.comp. A dispatch adds one range of a micro-batch's gradients to the sum over the
 * step's micro-batches. For n4, block, the other bindings and the specialisation ids see update.abi.h. */
VKT_PUSH(vkt_accumulate_push, VKT_U32(n4) VKT_U32(block))
#define ACCUMULATE_SUM     0 /* vec4, read */
#define ACCUMULATE_SUM_OUT 4 /* the same memory as ACCUMULATE_SUM, written */
