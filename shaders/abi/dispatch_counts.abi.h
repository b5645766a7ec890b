/* dispatch_counts.abi.h - see dispatch_counts.comp. */
VKT_PUSH(vkt_dispatch_counts_push, VKT_U32(n) /* number of conditional dispatches */)
#define COUNTS_TABLE   0 /* u32 (n,4): groups in x, y and z, and the number that the counter must exceed */
#define COUNTS_COUNTER 1 /* u32 (1) */
#define COUNTS_OUT     2 /* u32 (n,3): VkDispatchIndirectCommand */
