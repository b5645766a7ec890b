/* loss_divide.abi.h - adds the sums of all blocks of a loss, and divides by the sum of their weights. */
VKT_PUSH(vkt_loss_divide_push, VKT_U32(blocks) VKT_U32(sum) /* 1: reduction "sum", without a division */)
#define DIVIDE_PART   0 /* f32 (blocks) */
#define DIVIDE_WEIGHT 1 /* f32 (blocks) */
#define DIVIDE_LOSS   2 /* f32 scalar */
#define DIVIDE_NORM   3 /* f32 scalar: the divisor */
