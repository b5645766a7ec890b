/* step.abi.h - word numbers of the small buffers that change from step to step. There is no push block: kernels bind the buffer
 * as `uint step[]` and read words. Floats are stored as their bits. */

/* Step state (VKT_ROLE_STEP): step_advance writes it on the device at the start of each run. All other kernels read it. */
#define STEP_SLOT  0   /* this run's slot in the two rings */
#define STEP_T     1   /* the optimizer's step, from 1; in a run without update: completed steps */
#define STEP_ROWS  2   /* real rows of the batch */
#define STEP_FIRST 3   /* start of the batch in the row order */
#define STEP_KEY0  4   /* Philox key: the seed */
#define STEP_KEY1  5
#define STEP_LR    6   /* f32 */
#define STEP_C1    7   /* f32: 1 - beta1^t, exact to the last bit for any t; NAdam: 1 - u_1 .. u_t */
#define STEP_C2    8   /* f32: 1 - beta2^t */
#define STEP_NEXT  9   /* number of the next run; zero in a new buffer */
#define STEP_HOLD  10  /* not 0: no update in this run */
#define HOLD_MICRO 1u  /* ... more micro-batches of this step follow */
#define HOLD_FOUND 2u  /* ... some gradients are not finite */
#define STEP_SKIPPED 11 /* number of steps skipped so far because of HOLD_FOUND */
#define STEP_Q1    12  /* CLOCK_Q1, Q2, Q3 of this run; with a scaled loss, the clock gets them only after finite gradients */
#define STEP_Q_WORDS 6
#define STEP_DRAW  18  /* counter of random draws: counts runs with update, micro-batches too; without micro-batches it is t.
                        * In a graph of shards it counts their runs on all ranks */
#define STEP_MICRO 19  /* number of this micro-batch in its step, from 1 */
#define STEP_WEIGHT 20 /* f32: weight of this micro-batch's gradients: its rows, or 1 if the rows are not given */
#define STEP_FACTOR 21 /* f32: factor of the gradients: 1 / (loss scale * sum of weights); clip_norm.comp lowers it */
#define STEP_NORM  22  /* f32: norm of the gradients before clipping; 0 if not computed */
#define STEP_U_NEXT 23 /* f32: NAdam's u_(t+1), 1 - u_t and 1 - u_1 .. u_(t+1) */
#define STEP_U_REST 24
#define STEP_C_NEXT 25
#define STEP_SHARD 26  /* graph of shards: number of this shard among those of this rank */
#define STEP_PART  27  /* ... and of this run among the runs of the shard */
#define STEP_SCALE 64  /* f32: factor of the loss, and so of every gradient. Bound as a scalar: at byte 256 */
#define STEP_WORDS 68

/* One slot of the host's ring (VKT_ROLE_WORDS). Run r reads slot r % RING_SLOTS. The slot after the last one is for runs in an
 * application's command buffer. They are not counted, and their words are part of the recording. */
#define RING_SLOTS 8
#define RING_ALL   9
#define RING_ROWS  0 /* ROWS_ALL: the whole batch, of any size */
#define ROWS_ALL 0xffffffffu
#define RING_FIRST 1
#define RING_LR    2
#define RING_RECORDED 3 /* in the last slot: not 0 while a run in the application's command buffer executes */
#define RING_SHARD 4 /* graph of shards: see STEP_SHARD and STEP_PART */
#define RING_PART  5
#define RING_DRAW  6 /* ... number of this run among all runs of the step on all ranks, from 1 */
#define RING_WORDS 8

/* One slot of the metrics ring (VKT_ROLE_METRICS). */
#define METRIC_LOSS    0 /* f32 */
#define METRIC_CORRECT 1 /* f32 */
#define METRIC_ROWS    2
#define METRIC_T       3
#define METRIC_SCALE   4 /* f32 */
#define METRIC_SKIPPED 5
#define METRIC_NORM    6 /* f32 */
#define METRIC_WORDS   7

/* The store's clock (VKT_ROLE_CLOCK). Powers and products are 0.64 fixed point, low word first: exact on every device. */
#define CLOCK_T    0
#define CLOCK_KEY0 1
#define CLOCK_KEY1 2
#define CLOCK_Q1   4  /* beta1^t, two words; 2^64 - 1 means 1, at t = 0. NAdam: the product u_1 .. u_t */
#define CLOCK_Q2   6  /* beta2^t */
#define CLOCK_Q3   8  /* NAdam: 0.96^(momentum_decay t) */
#define CLOCK_MICRO 10 /* number of micro-batches in the sum of gradients for the next step, and their weights */
#define CLOCK_ROWS 11
#define CLOCK_SCALE   12 /* f32, a power of two: see loss_scale.comp */
#define CLOCK_GOOD    13 /* steps since the scale changed or a step was skipped */
#define CLOCK_SKIPPED 14 /* all skipped steps so far */
#define CLOCK_WORDS 16
