/* mlp.abi.h - see mlp.comp and mlp_layout.abi.h. A VEC is a float for one sample, or a vec4 for four samples: see
 * lib/mlp_vec.glsl. */
VKT_PUSH(vkt_mlp_push,
         VKT_U32(batch)                         /* number of samples */
         VKT_U32(pitch)                         /* VECs per feature */
         VKT_U32(blocks)                        /* number of blocks of samples. In mlp.comp, a block has TILES tiles */
         VKT_U32(per_group)                     /* blocks per work group */
         VKT_U32(rows1) VKT_U32(rows2) VKT_U32(rows3) VKT_U32(rows4)
         VKT_U32(cols1) VKT_U32(cols2) VKT_U32(cols3) VKT_U32(cols4)
         VKT_U32(bias1) VKT_U32(bias2) VKT_U32(bias3) VKT_U32(bias4)
         VKT_U32(part1) VKT_U32(part2) VKT_U32(part3) VKT_U32(part4)
         VKT_U32(part)                          /* mlp.comp: vec4s of PART per work group; the last LANES are for the loss.
                                                 * mlp_shared.comp: floats of PART per work group; the last is the loss */
         VKT_U32(zero))                         /* always 0, unknown to the compiler: see conv/tile.comp */
#define MLP_X        0 /* f32 (B, width[0]), batch last */
#define MLP_T        1 /* f32 (B, width[LAYERS]), batch last; the target (MSE) or dy (GRAD) */
#define MLP_STEP     2 /* u32 (STEP_WORDS) */
#define MLP_PACKED   3
#define MLP_ACT      4 /* mlp.comp: h and dy of a block's tiles, read */
#define MLP_ACT_OUT  5 /* the memory of MLP_ACT, written. Narrow kernels (one sample per lane) also read this binding */
#define MLP_PART     6 /* mlp.comp: sums of gradients, read */
#define MLP_PART_OUT 7 /* the memory of MLP_PART, written. Narrow kernels and mlp_shared.comp also read this binding */
#define MLP_OUT      8 /* forward kernels: y. The other kernels: dx, only with DX. Batch last */
#define MLP_DLOSS    9 /* f32 scalar, the gradient of the loss; only for MSE */

#define MLP_SPEC_LANES  0
#define MLP_SPEC_LAYERS 1
#define MLP_SPEC_WIDTH  2 /* ids 2 to 6: width[0] to width[4]; width[l] is 0 if l > LAYERS */
#define MLP_SPEC_WIDEST 7
#define MLP_SPEC_TILES  8
#define MLP_SPEC_DX     9
#define MLP_SPECS       10

/* mlp_shared.comp: a work group has MLP_SHARED_LANES lanes. It processes blocks of MLP_SHARED_SAMPLES samples. A VEC is a
 * vec4. */
#define MLP_SHARED_LANES   256
#define MLP_SHARED_SAMPLES 32
/* Without COOP: vec4s of a row in shared memory, 8 with data and 1 unused. So neighbouring rows begin in different
 * banks. */
#define MLP_SHARED_ROW     9
/* Without COOP: number of vec4s of shared memory for weights. At the end, each lane stores its loss there, as a vec2,
 * so the number is at least MLP_SHARED_LANES / 2. With COOP: number of uvec2s of the part `stage` in lib/mlp_coop.glsl.
 * (MLP_SPEC_WIDEST has the same id, but mlp_shared.comp does not use MLP_SPEC_WIDEST.) */
#define MLP_SPEC_STAGE     7
