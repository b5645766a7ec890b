/* conv2d_dw_sum.abi.h - see conv/dw_sum.comp. */
VKT_PUSH(vkt_conv2d_dw_sum_push,
         VKT_U32(weights) VKT_U32(biases) /* floats of dw, and floats of db */
         VKT_U32(bias_start)              /* index of the first float of db in the sums of a slice */
         VKT_U32(part)                    /* floats from the sums of one slice to those of the next */
         VKT_U32(slices))
#define DW_SUM_PART 0
#define DW_SUM_W    1
#define DW_SUM_B    2
