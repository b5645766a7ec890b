/* bench.abi.h - vkt-bench's own kernels, which measure the peak rates of a device. bench/copy.comp copies n vec4s of x
 * to y. In bench/fma.comp, each lane makes `rounds` rounds of BENCH_UNROLL multiply-adds with each of its
 * BENCH_SPEC_SUMS vec4s. */
VKT_PUSH(vkt_bench_push, VKT_U32(n) VKT_U32(rounds) VKT_F32(factor) VKT_F32(addend))
#define BENCH_X 0
#define BENCH_Y 1
#define BENCH_SPEC_SUMS 1
#define BENCH_UNROLL 16
