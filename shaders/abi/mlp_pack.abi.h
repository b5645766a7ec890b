/* mlp_pack.abi.h - see mlp_pack.comp and mlp_layout.abi.h. If a layer or a bias does not exist, its binding has any buffer,
 * which is not read. */
VKT_PUSH(vkt_mlp_pack_push,
         VKT_U32(width0) VKT_U32(width1) VKT_U32(width2) VKT_U32(width3) VKT_U32(width4)
         VKT_U32(rows1) VKT_U32(rows2) VKT_U32(rows3) VKT_U32(rows4)
         VKT_U32(cols1) VKT_U32(cols2) VKT_U32(cols3) VKT_U32(cols4)
         VKT_U32(bias1) VKT_U32(bias2) VKT_U32(bias3) VKT_U32(bias4)
         VKT_U32(biased))    /* bit l-1: layer l has a bias */
#define MLP_PACK_W   0 /* bindings 0 to 3: f32 (M, K), the weights of layers 1 to 4 */
#define MLP_PACK_B   4 /* bindings 4 to 7: f32 (M), the biases of layers 1 to 4 */
#define MLP_PACK_OUT 8
