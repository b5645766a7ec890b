/* clip_norm.abi.h - see clip_norm.comp. */
VKT_PUSH(vkt_clip_norm_push, VKT_U32(n) /* entries of CLIP_NORM_PARTIAL */ VKT_F32(max_norm))
#define CLIP_NORM_PARTIAL 0 /* vec4, as grad_norm.comp writes them */
#define CLIP_NORM_STEP    1 /* u32 (STEP_WORDS) */
