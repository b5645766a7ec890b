/* step.abi.h - indices of words in the small buffers that change from step to step. Kernels bind each buffer as an
 * array of uint. Floats are stored as their bits. In data parallel training, a step is split into shards. In a
 * "graph of shards", each run computes the gradients of one shard, or of a part of a shard. */

/* Step state (VKT_ROLE_STEP): step_advance.comp writes it at the start of each run. Later kernels read the step state.
 * Three of these kernels also write words of the step state: overflow.comp, clip_norm.comp and report.comp
 * (only STEP_RUN). */
#define STEP_SLOT  0   /* this run's slot in the ring of host words (RING_SLOTS) and in the metrics ring */
#define STEP_T     1   /* number of the step that this run completes, from 1. If the run completes no step, because more
                        * micro-batches follow or the program has no update: how many steps are complete so far. If
                        * HOLD_FOUND is set, the run does not complete step STEP_T */
#define STEP_ROWS  2   /* real rows of the batch, or ROWS_ALL */
#define STEP_FIRST 3   /* index of the first row of the batch in the order of the epoch */
#define STEP_KEY0  4   /* Philox key: the seed */
#define STEP_KEY1  5
#define STEP_LR    6   /* f32 */
#define STEP_C1    7   /* f32: 1 - beta1^t, rounded only once. NAdam: 1 - the product of u_1 .. u_t (step_advance.comp
                        * defines u_t) */
#define STEP_C2    8   /* f32: 1 - beta2^t, rounded only once */
#define STEP_NEXT  9   /* number of the run after this one; zero in a new buffer */
#define STEP_HOLD  10  /* not 0: no update in this run */
#define HOLD_MICRO 1u  /* bit of STEP_HOLD: more micro-batches of this step follow */
#define HOLD_FOUND 2u  /* bit of STEP_HOLD: some gradients are not finite */
#define STEP_SKIPPED 11 /* number of steps that earlier runs skipped because of HOLD_FOUND */
#define STEP_Q1    12  /* STEP_Q_WORDS words: the values of CLOCK_Q1, CLOCK_Q2 and CLOCK_Q3 after step STEP_T. With a
                        * scaled loss, loss_scale.comp stores them in the clock, if all gradients are finite */
#define STEP_Q_WORDS 6
#define STEP_DRAW  18  /* counter for random numbers: number of this micro-batch among the micro-batches of all steps.
                        * Without micro-batches: STEP_T. In a graph of shards: number of this run among the runs of all
                        * steps and ranks */
#define STEP_MICRO 19  /* number of this micro-batch in its step, from 1 */
#define STEP_WEIGHT 20 /* f32: weight of this run's gradients (RING_WEIGHT) */
#define STEP_FACTOR 21 /* f32: factor of the gradients, 1 / loss scale. If the gradients are sums (over micro-batches or
                        * shards), the factor is also divided by the sum of the weights. clip_norm.comp may lower the
                        * factor */
#define STEP_NORM  22  /* f32: norm of the gradients before clipping; 0 if not computed */
#define STEP_U_NEXT 23 /* f32, NAdam: u_(t+1) */
#define STEP_U_REST 24 /* f32, NAdam: 1 - u_t */
#define STEP_C_NEXT 25 /* f32, NAdam: 1 - the product of u_1 .. u_(t+1) */
#define STEP_SHARD 26  /* graph of shards: index of this shard among the shards of this rank */
#define STEP_PART  27  /* graph of shards: index of this run among the runs of its shard */
#define STEP_TERMS 28  /* u32: RING_WEIGHT of this run, for report.comp. STEP_WEIGHT has the same number, as f32 */
#define STEP_SCALE 64  /* f32: the loss scale, a factor of the loss and so of every gradient; 1 if the loss is not
                        * scaled. The backward pass binds this word alone. A binding must begin at an aligned offset:
                        * here, the offset is 256 bytes */
#define STEP_WORDS 68
/* STEP_RUN has an aligned memory range of its own, so that a kernel may read it while step_advance.comp runs. */
#define STEP_RUN 128       /* number of the next run (STEP_NEXT), written by report.comp. Its offset is 512 bytes */
#define STEP_ALL_WORDS 132 /* words of the buffer */
/* A specialization constant of the kernels that gather a batch. If the constant is 1, these kernels run beside
 * step_advance.comp, and read the host's words instead of the step state: see lib/batch_place.glsl. */
#define BATCH_SPEC_EARLY 2

/* The ring of slots that the host writes (VKT_ROLE_WORDS). Run r reads slot r % RING_SLOTS. One more slot, with the
 * index RING_SLOTS, is for runs in an application's command buffer. These runs are not counted in r, and the command
 * buffer itself writes the words of this slot. RING_ROWS to RING_WEIGHT are the words of a slot. */
#define RING_SLOTS 8
#define RING_ALL   9 /* number of slots, with slot RING_SLOTS */
#define RING_ROWS  0 /* real rows of the batch; ROWS_ALL: the whole batch, of any size */
#define ROWS_ALL 0xffffffffu
#define RING_FIRST 1
#define RING_LR    2
#define RING_RECORDED 3 /* in slot RING_SLOTS: not 0 while a run in the application's command buffer executes */
#define RING_SHARD 4 /* graph of shards: see STEP_SHARD */
#define RING_PART  5 /* graph of shards: see STEP_PART */
#define RING_DRAW  6 /* graph of shards: number of this run among all runs of the step on all ranks, from 1 */
#define RING_WEIGHT 7 /* weight of the run's gradients: vkt_run.terms. If terms is 0: the number of rows. If this number is not
                       * known: 1. A run without rows in a graph of shards: 0 */
#define RING_WORDS 8

/* One slot of the metrics ring (VKT_ROLE_METRICS). */
#define METRIC_LOSS    0 /* f32 */
#define METRIC_CORRECT 1 /* f32 */
#define METRIC_ROWS    2
#define METRIC_T       3
#define METRIC_SCALE   4 /* f32 */
#define METRIC_SKIPPED 5
#define METRIC_NORM    6 /* f32 */
#define METRIC_TERMS   7 /* RING_WEIGHT of the run */
#define METRIC_WORDS   8

/* The store's clock (VKT_ROLE_CLOCK). The powers and products of CLOCK_Q1 to CLOCK_Q3 are 0.64 fixed point, in two words, low
 * word first. They have the same bits on every device. */
#define CLOCK_T    0
#define CLOCK_KEY0 1
#define CLOCK_KEY1 2
#define CLOCK_Q1   4  /* beta1^t; for t = 0, the number 1 is stored as 2^64 - 1. NAdam: the product of u_1 .. u_t */
#define CLOCK_Q2   6  /* beta2^t */
#define CLOCK_Q3   8  /* NAdam: 0.96^(momentum_decay * t) */
#define CLOCK_MICRO 10 /* number of micro-batches in the sum of gradients for the next step */
#define CLOCK_ROWS 11  /* sum of the weights (STEP_WEIGHT) of the micro-batches that CLOCK_MICRO counts */
#define CLOCK_SCALE   12 /* f32, a power of two: see loss_scale.comp */
#define CLOCK_GOOD    13 /* number of steps since the scale changed or a step was skipped */
#define CLOCK_SKIPPED 14 /* number of steps skipped so far */
#define CLOCK_WORDS 16
