/* dispatch_counts.abi.h - see dispatch_counts.comp. */
VKT_PUSH(vkt_dispatch_counts_push, VKT_U32(n) /* number of conditional dispatches */)
#define COUNTS_TABLE   0 /* u32 (n,4): work groups in x, y and z; w: the dispatch runs if the counter is above w */
#define COUNTS_COUNTER 1 /* u32 (1) */
#define COUNTS_OUT     2 /* u32 (n,3): VkDispatchIndirectCommand */
