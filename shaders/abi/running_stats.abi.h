/* running_stats.abi.h - updates the running statistics of channels in place: see ops/norm/batch_norm.c. */
VKT_PUSH(vkt_running_stats_push, VKT_U32(channels) VKT_U32(batch) VKT_U32(positions) VKT_U32(unbiased) VKT_F32(momentum))
#define RUNNING_STATS_MEAN     0 /* f32 (C): read and written */
#define RUNNING_STATS_VAR      1 /* f32 (C): read and written */
#define RUNNING_STATS_NEW_MEAN 2 /* f32 (C), of the batch */
#define RUNNING_STATS_NEW_VAR  3 /* f32 (C), of the batch, biased */
#define RUNNING_STATS_STEP     4
