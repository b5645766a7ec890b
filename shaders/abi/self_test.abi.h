/* self_test.abi.h - see self_test.comp. x has n vec4s; n is a power of two. y has SELF_TEST_PARTS vec4s per lane. */
VKT_PUSH(vkt_self_test_push, VKT_U32(n) VKT_U32(iterations))
#define SELF_TEST_FETCHED 0 /* the memory of x, as a uniform texel buffer */
#define SELF_TEST_X 1
#define SELF_TEST_Y 2
#define SELF_TEST_PARTS 9
