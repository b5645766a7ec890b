/* grad_norm.abi.h - see grad_norm.comp. A dispatch reads one range of the gradients. For n4, block, the other bindings and
 * the specialisation ids see update.abi.h. */
VKT_PUSH(vkt_grad_norm_push, VKT_U32(n4) VKT_U32(block) VKT_U32(first) /* index in PARTIAL of the first work group's entry */)
#define GRAD_NORM_PARTIAL 0 /* vec4 (all work groups): sums of squares of small, medium and large gradients, and 0 */
