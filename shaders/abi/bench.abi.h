/* bench.abi.h - vkt-bench's own kernels, which measure the peak rates of a device. bench/copy.comp: y = x, n
 * vec4s. bench/fma.comp: `rounds` rounds of BENCH_UNROLL multiply-adds of BENCH_SPEC_SUMS vec4s per lane. */
VKT_PUSH(vkt_bench_push, VKT_U32(n) VKT_U32(rounds) VKT_F32(factor) VKT_F32(addend))
#define BENCH_X 0
#define BENCH_Y 1
#define BENCH_SPEC_SUMS 1
#define BENCH_UNROLL 16
