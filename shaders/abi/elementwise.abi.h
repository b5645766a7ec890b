/* elementwise.abi.h - y = f(a, b) over n elements of one layout; b only where the op has two operands. */
VKT_PUSH(vkt_elementwise_push, VKT_U32(n))
#define ELEMENTWISE_A 0
#define ELEMENTWISE_B 1
#define ELEMENTWISE_Y 2
