/* grad_norm.abi.h - one window of the gradients; further bindings and specialisation ids are those of update.abi.h. */
VKT_PUSH(vkt_grad_norm_push, VKT_U32(n4) VKT_U32(block) VKT_U32(first) /* where the window's partial sums start */)
#define GRAD_NORM_PARTIAL 0 /* vec4 (work groups of all windows): squares of small, middle and large numbers, see grad_norm.comp */
