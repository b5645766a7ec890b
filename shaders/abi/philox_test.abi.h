/* philox_test.abi.h - see test/philox.comp. */
VKT_PUSH(vkt_philox_test_push, VKT_U32(n) VKT_U32(a) VKT_U32(b) VKT_U32(stream) VKT_U32(key_lo) VKT_U32(key_hi))
#define PHILOX_OUT 0
