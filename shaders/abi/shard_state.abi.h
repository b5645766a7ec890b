/* shard_state.abi.h - see shard_state.comp. A dispatch processes one range of states (running statistics). */
VKT_PUSH(vkt_shard_state_push, VKT_U32(n4) /* vec4s of the range */)
#define SHARD_STATE_SPEC_WAY 1 /* SHARD_STATE_BEGIN, SHARD_STATE_GIVE or SHARD_STATE_TAKE */
#define SHARD_STATE_BEGIN 0 /* before a run: a rank's first run of a step saves the states, its later runs restore them */
#define SHARD_STATE_GIVE  1 /* after the forward pass: copies the states to a range of the gradients */
#define SHARD_STATE_TAKE  2 /* with the update: states = SHARD_STATE_COPY / STEP_WEIGHT. In the run of the update,
                             * STEP_WEIGHT is the weight of the whole step */
#define SHARD_STATE_STATE 0 /* vec4: the states, read; SHARD_STATE_STATE_OUT is the same memory, written */
#define SHARD_STATE_COPY  1 /* vec4, read. BEGIN: the saved states. TAKE: the sum, over all runs of the step, of
                             * (weight of the run) * (states after the forward pass of the run) */
#define SHARD_STATE_STEP  2 /* u32 (STEP_WORDS) */
#define SHARD_STATE_STATE_OUT 3
#define SHARD_STATE_COPY_OUT  4 /* vec4: memory of SHARD_STATE_COPY, written. BEGIN: saved states. GIVE: gradients */
