/* clip_norm.abi.h - see clip_norm.comp. */
VKT_PUSH(vkt_clip_norm_push, VKT_U32(n) /* entries of CLIP_NORM_PARTIAL */ VKT_F32(max_norm))
#define CLIP_NORM_PARTIAL 0 /* vec4 (n): GRAD_NORM_PARTIAL of grad_norm.abi.h */
#define CLIP_NORM_STEP    1 /* u32 (STEP_WORDS) */
