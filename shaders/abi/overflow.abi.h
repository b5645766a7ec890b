/* overflow.abi.h - one window of the gradient arena. */
VKT_PUSH(vkt_overflow_push, VKT_U32(n4))
#define OVERFLOW_GRAD 0 /* vec4 */
#define OVERFLOW_STEP 1 /* u32 (STEP_WORDS) */
