/* grad_norm.abi.h - see grad_norm.comp. A dispatch reads one range of the gradients. The other bindings and
 * specialisation ids are in update.abi.h. */
VKT_PUSH(vkt_grad_norm_push, VKT_U32(n4) VKT_U32(block) VKT_U32(first) /* entry of PARTIAL of the first work group */)
#define GRAD_NORM_PARTIAL 0 /* vec4 (work groups of all ranges): three sums of squares, and 0 */
