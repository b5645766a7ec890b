/* accumulate.abi.h - see accumulate.comp. A dispatch adds one range of the gradients to their sum. The other bindings
 * and specialisation ids are in update.abi.h. */
VKT_PUSH(vkt_accumulate_push, VKT_U32(n4) VKT_U32(block))
#define ACCUMULATE_SUM     0 /* vec4, read */
#define ACCUMULATE_SUM_OUT 4 /* the memory of ACCUMULATE_SUM, written */
