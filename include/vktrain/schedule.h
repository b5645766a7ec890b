/* vktrain/schedule.h - schedules: how the learning rate changes during a training. Most schedules depend only on the
 * number of the step or of the epoch. One schedule, VKT_SCHEDULE_PLATEAU, follows a measured value, for instance the
 * validation loss. A training step reads the rate from memory that the host writes. So commands need not be recorded
 * again for a new rate.
 *
 * Formulas and defaults are those of PyTorch (documentation of torch.optim.lr_scheduler), except where a comment names
 * another library. Threads: any. */
#ifndef VKTRAIN_SCHEDULE_H
#define VKTRAIN_SCHEDULE_H

#include "vktrain/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of schedules. Each comment has the formula of the rate. Only the comments of ONE_CYCLE and PLATEAU have no
 * formula: they name the schedule of PyTorch. lr and t are arguments of vkt_schedule_lr; a warm-up shifts t, except for
 * WARMUP_COSINE (see vkt_schedule.warmup). The other names are members of vkt_schedule. */
typedef enum vkt_schedule_kind {
    VKT_SCHEDULE_CONSTANT = 0, /* lr */
    VKT_SCHEDULE_STEP,         /* StepLR: lr * gamma^floor(t / step_size) */
    VKT_SCHEDULE_MULTI_STEP,   /* MultiStepLR: lr * gamma^(number of milestones <= t) */
    VKT_SCHEDULE_EXPONENTIAL,  /* ExponentialLR: lr * gamma^t */
    VKT_SCHEDULE_COSINE,       /* CosineAnnealingLR: min_lr + (lr - min_lr) (1 + cos(pi t / total)) / 2 */
    VKT_SCHEDULE_ONE_CYCLE,    /* OneCycleLR with total_steps = total and max_lr = lr; momentum does not change */
    VKT_SCHEDULE_FUNCTION,     /* LambdaLR: lr * function(user, t) */
    VKT_SCHEDULE_PLATEAU,      /* ReduceLROnPlateau: see vkt_plateau */
    /* Warm-up, then cosine. While t < warmup, the rate is lr (warmup_from + (1 - warmup_from) t / warmup). While
     * warmup <= t < total, it is min_lr + (lr - min_lr) (1 + cos(pi (t - warmup) / (total - warmup))) / 2. After that,
     * it is min_lr. With warmup_from = min_lr = 0, the rates up to t = total are those of
     * get_cosine_schedule_with_warmup (Transformers). */
    VKT_SCHEDULE_WARMUP_COSINE,
    VKT_SCHEDULE_KIND_COUNT /* number of kinds */
} vkt_schedule_kind;

/* The library whose rules for ReduceLROnPlateau apply. */
typedef enum vkt_plateau_form {
    VKT_PLATEAU_TORCH = 0, /* torch.optim.lr_scheduler */
    VKT_PLATEAU_KERAS      /* keras.callbacks */
} vkt_plateau_form;
/* Lowers the rate when a value has stopped improving. An epoch is bad if its value is not better than `best`. `best` is
 * the value of the last epoch that was not bad.
 *   torch: A value is better if it is below best * (1 - threshold), or with `absolute` below best - threshold. The rate
 *          goes down after MORE THAN `patience` bad epochs in a row, if the change is larger than eps.
 *   keras: A value is better if it is below best - threshold. (Keras calls the threshold min_delta.) The rate goes down
 *          after `patience` bad epochs in a row (at least 1), if the rate is above min_lr.
 * After a reduction, the count of bad epochs starts again at 0.
 *
 * With `maximise`, larger values are better: a better value is above best * (1 + threshold) or best + threshold. In
 * each member, 0 means the default. In members of type double, VKT_ZERO stands for the number 0. */
typedef struct vkt_plateau {
    vkt_plateau_form form; /* selects the rules above */
    bool maximise;         /* larger values are better, as for an accuracy */
    double factor;         /* multiplies the rate at each reduction; 0 means 0.1 */
    uint32_t patience;     /* number of epochs; 0 means 10, VKT_PATIENCE_NONE means 0 */
    double threshold;      /* 0 means 1e-4; VKT_ZERO: any improvement counts */
    bool absolute;         /* torch: true is threshold_mode "abs", false is "rel". Not used for Keras */
    uint32_t cooldown;     /* this many epochs after a reduction do not count as bad. keras: the last one of them may
                            * count as bad */
    double min_lr;         /* a reduction does not go below this rate */
    double eps;            /* torch: the rate changes only by more than eps; 0 means 1e-8 */
} vkt_plateau;
#define VKT_PATIENCE_NONE UINT32_MAX /* stands for a patience of 0 epochs */

/* A schedule. A zeroed schedule is a constant rate. VKT_ZERO stands for the number 0. The comment of a member begins
 * with the kinds that use the member. */
typedef struct vkt_schedule {
    vkt_schedule_kind kind; /* the formula */
    /* All kinds, in a trainer: if true, t counts epochs; else t counts steps. With PLATEAU, t always counts epochs. t
     * starts at 0. */
    bool by_epoch;
    /* All kinds: while t < warmup, the rate rises linearly (LinearLR). After that, the formula of the kind is used,
     * with t counted from the end of the warm-up. Only WARMUP_COSINE counts t and `total` from the start. */
    uint32_t warmup;
    double warmup_from;                         /* all kinds: the rise starts at lr * warmup_from. 0 means 0 for
                                                 * WARMUP_COSINE, 1/3 for all other kinds; VKT_ZERO means 0 */
    double gamma;                               /* STEP, MULTI_STEP: 0 means 0.1. EXPONENTIAL: above 0, no default */
    uint32_t step_size;                         /* STEP: increase of t between two reductions, at least 1 */
    uint32_t milestones[8];                     /* MULTI_STEP: values of t, rising */
    uint32_t n_milestones;                      /* MULTI_STEP: number of milestones, at most 8 */
    uint64_t total;                             /* COSINE (T_max), ONE_CYCLE, WARMUP_COSINE: length of the schedule,
                                                 * in steps or in epochs, as t (see by_epoch) */
    double min_lr;                              /* COSINE, WARMUP_COSINE: the rate at t = `total` */
    bool linear;                                /* ONE_CYCLE: true is anneal_strategy "linear", false is "cos" */
    double pct_start;                           /* ONE_CYCLE: fraction of `total` with a rising rate; 0 means 0.3 */
    double div_factor;                          /* ONE_CYCLE: first rate = lr / div_factor; 0 means 25 */
    double final_div_factor;                    /* ONE_CYCLE: last rate = first rate / final_div_factor; 0 means 1e4 */
    double (*function)(void *user, uint64_t t); /* FUNCTION: returns a factor for lr. The factor must depend on t alone.
                                                 * With several ranks, the thread of each rank calls the function */
    void *user;                                 /* FUNCTION: passed to the function */
    vkt_plateau plateau;                        /* PLATEAU: the rules */
} vkt_schedule;

/* Checks a schedule. Returns VKT_E_ARG if a field is wrong; the message names the field. `h` NULL: the default host. */
VKT_API vkt_result vkt_schedule_check(const vkt_host *h, const vkt_schedule *s);
/* Returns the rate at t. vkt_schedule_check must accept the schedule. With PLATEAU, the caller multiplies the result by
 * vkt_plateau_state.scale. */
VKT_API double vkt_schedule_lr(const vkt_schedule *s, double lr, uint64_t t);

/* The state of a plateau. Start with { .scale = 1 }. */
typedef struct vkt_plateau_state {
    double scale;     /* the rate is lr * scale */
    double best;      /* the best value so far; valid if `seen` */
    bool seen;        /* an earlier epoch had a finite value */
    uint32_t bad;     /* bad epochs in a row */
    uint32_t cooling; /* epochs that are left of the cooldown */
} vkt_plateau_state;
/* Updates the state with the value of one epoch. A NaN is no improvement. The rate is lr * state->scale. Returns true
 * if the rate went down. */
VKT_API bool vkt_plateau_next(const vkt_plateau *p, double lr, vkt_plateau_state *state, double value);

#ifdef __cplusplus
}
#endif
#endif
