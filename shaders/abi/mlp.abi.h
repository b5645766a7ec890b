/* mlp.abi.h - see mlp.comp and mlp_layout.abi.h. A VEC is one sample, or a vec4 of four samples (lib/mlp_vec.glsl). */
VKT_PUSH(vkt_mlp_push,
         VKT_U32(batch) VKT_U32(pitch)          /* samples; VECs of a feature */
         VKT_U32(blocks) VKT_U32(per_group)     /* number of blocks; blocks per work group. A block has TILES tiles */
         VKT_U32(rows1) VKT_U32(rows2) VKT_U32(rows3) VKT_U32(rows4)
         VKT_U32(cols1) VKT_U32(cols2) VKT_U32(cols3) VKT_U32(cols4)
         VKT_U32(bias1) VKT_U32(bias2) VKT_U32(bias3) VKT_U32(bias4)
         VKT_U32(part1) VKT_U32(part2) VKT_U32(part3) VKT_U32(part4)
         VKT_U32(part)                          /* vec4s of PART per work group; the last LANES vec4s are for the loss */
         VKT_U32(zero))                         /* always 0: see conv/tile.comp */
#define MLP_X        0 /* f32 (B, width[0]), batch last */
#define MLP_T        1 /* f32 (B, width[LAYERS]), batch last; the target (MSE) or dy (GRAD) */
#define MLP_STEP     2 /* u32 (STEP_WORDS) */
#define MLP_PACKED   3
#define MLP_ACT      4 /* h and dy of a block's tiles, read; MLP_ACT_OUT is the same memory, written */
#define MLP_ACT_OUT  5
#define MLP_PART     6 /* sums of gradients, read; MLP_PART_OUT is the same memory, written */
#define MLP_PART_OUT 7
#define MLP_OUT      8 /* y, or dx with DX; batch last */
#define MLP_DLOSS    9 /* f32 scalar, the gradient of the loss; only for MSE */

#define MLP_SPEC_LANES  0
#define MLP_SPEC_LAYERS 1
#define MLP_SPEC_WIDTH  2 /* ids 2 to 6: width[0] to width[4]; those past LAYERS are 0 */
#define MLP_SPEC_WIDEST 7
#define MLP_SPEC_TILES  8
#define MLP_SPEC_DX     9
#define MLP_SPECS       10

/* mlp_shared.comp: a work group of MLP_SHARED_LANES lanes has blocks of MLP_SHARED_SAMPLES samples. A VEC is a vec4. */
#define MLP_SHARED_LANES   256
#define MLP_SHARED_SAMPLES 32
#define MLP_SHARED_ROW     9 /* vec4s of a row in shared memory: 8 and an unused one, so that rows begin in different banks */
#define MLP_SPEC_STAGE     7 /* vec4s of weights in shared memory: MLP_SHARED_LANES / 2 or more. With COOP: uvec2s of the part
                              * `stage` of lib/mlp_coop.glsl */
