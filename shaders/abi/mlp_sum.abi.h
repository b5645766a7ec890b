/* mlp_sum.abi.h - see mlp_sum.comp and mlp_layout.abi.h. If an output is not wanted, its binding has any buffer, which
 * is not written. */
VKT_PUSH(vkt_mlp_sum_push,
         VKT_U32(width0) VKT_U32(width1) VKT_U32(width2) VKT_U32(width3) VKT_U32(width4)
         VKT_U32(part1) VKT_U32(part2) VKT_U32(part3) VKT_U32(part4)
         VKT_U32(part)                  /* size of one work group's PART, in vec4s. With ROWS: in floats */
         VKT_U32(groups)                /* number of work groups whose PARTs are added */
         VKT_U32(outputs))              /* mask of the wanted outputs. Bit 0: loss; bit 2l-1: dw[l]; bit 2l: db[l] */
#define MLP_SUM_PART 0
#define MLP_SUM_LOSS 1 /* f32 */
#define MLP_SUM_W    2 /* bindings 2 to 5: f32 (M, K), dw of layers 1 to 4 */
#define MLP_SUM_B    6 /* bindings 6 to 9: f32 (M), db of layers 1 to 4 */
