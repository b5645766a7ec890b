/* bench.abi.h - vkt-bench's own kernels, which measure the peak rates of a device. bench/copy.comp copies n vec4s of x
 * to y. In bench/fma.comp, each of n lanes has several vec4s, and computes rounds * BENCH_UNROLL multiply-adds for each
 * of them. The number of these vec4s is the constant BENCH_SPEC_SUMS. */
VKT_PUSH(vkt_bench_push, VKT_U32(n) VKT_U32(rounds) VKT_F32(factor) VKT_F32(addend))
#define BENCH_X 0
#define BENCH_Y 1
#define BENCH_SPEC_SUMS 1
#define BENCH_UNROLL 16
