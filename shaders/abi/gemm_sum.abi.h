/* gemm_sum.abi.h - see gemm_sum.comp. */
VKT_PUSH(vkt_gemm_sum_push, VKT_U32(n) /* elements of each slice */
         VKT_U32(columns)              /* N: columns of C */
         VKT_U32(slices) VKT_U32(c_base))
#define GEMM_SUM_SPEC_ACCUMULATE 1 /* 1: add to the values in C */
#define GEMM_SUM_SPEC_BIAS       2 /* 1: add bias[column] */
#define GEMM_SUM_PART 0
#define GEMM_SUM_C    1
#define GEMM_SUM_BIAS 2
