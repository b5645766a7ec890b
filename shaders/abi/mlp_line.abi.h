/* mlp_line.abi.h - see mlp_line.comp and mlp_layout.abi.h. */
VKT_PUSH(vkt_mlp_line_push,
         VKT_U32(batch)              /* number of samples */
         VKT_U32(n4)                 /* vec4s per feature: batch / 4, rounded up */
         VKT_U32(per_group)          /* vec4s of samples per work group */
         VKT_U32(part))              /* vec4s of PART per work group; the last LANES vec4s are for the loss */
#define MLP_LINE_X    0 /* f32 (B, K), batch last */
#define MLP_LINE_T    1 /* f32 (B, M), batch last */
#define MLP_LINE_STEP 2 /* u32 (STEP_WORDS) */
#define MLP_LINE_W    3 /* f32 (M, K) */
#define MLP_LINE_B    4 /* f32 (M) */
#define MLP_LINE_DLOSS 5 /* f32 scalar, the gradient of the loss */
#define MLP_LINE_PART 6

#define MLP_LINE_SPEC_LANES 0
#define MLP_LINE_SPEC_K     1
#define MLP_LINE_SPEC_M     2
#define MLP_LINE_SPEC_BIAS  3
#define MLP_LINE_SPECS      4
