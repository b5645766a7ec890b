/* loss_divide.abi.h - adds the sums of all blocks (softmax_xent.abi.h) of a loss, and divides the result by a divisor.
 * The divisor is the sum of the blocks' weights, or 1 if the reduction is "sum". */
VKT_PUSH(vkt_loss_divide_push, VKT_U32(blocks) VKT_U32(sum) /* 1: the reduction is "sum" */)
#define DIVIDE_PART   0 /* f32 (blocks) */
#define DIVIDE_WEIGHT 1 /* f32 (blocks) */
#define DIVIDE_LOSS   2 /* f32 scalar */
#define DIVIDE_NORM   3 /* f32 scalar: the divisor */
