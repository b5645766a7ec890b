/* vktrain/schedule.h - learning rates over time: pure functions of the number of a step or an epoch, and one function
 * that follows a measured value. When the rate changes, no commands are recorded again: a step reads the rate from a
 * word that the host writes.
 *
 * Formulas, names and defaults are PyTorch's (documentation of torch.optim.lr_scheduler); ReduceLROnPlateau also has
 * Keras' form. Threads: any. */
#ifndef VKTRAIN_SCHEDULE_H
#define VKTRAIN_SCHEDULE_H

#include "vktrain/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of schedules, with the rate at t. lr is the argument of vkt_schedule_lr; the other names are members of
 * vkt_schedule. */
typedef enum vkt_schedule_kind {
    VKT_SCHEDULE_CONSTANT = 0, /* lr */
    VKT_SCHEDULE_STEP,         /* StepLR: lr gamma^floor(t / step_size) */
    VKT_SCHEDULE_MULTI_STEP,   /* MultiStepLR: lr gamma^(number of milestones <= t) */
    VKT_SCHEDULE_EXPONENTIAL,  /* ExponentialLR: lr gamma^t */
    VKT_SCHEDULE_COSINE,       /* CosineAnnealingLR: min_lr + (lr - min_lr) (1 + cos(pi t / total)) / 2 */
    VKT_SCHEDULE_ONE_CYCLE,    /* OneCycleLR over `total` steps, lr is its max_lr; momentum is not cycled */
    VKT_SCHEDULE_FUNCTION,     /* LambdaLR: lr function(user, t) */
    VKT_SCHEDULE_PLATEAU,      /* ReduceLROnPlateau: see vkt_plateau */
    /* Warm-up, then cosine. While t < warmup, the rate rises linearly: lr (from + (1 - from) t / warmup) with from =
     * warmup_from. While t < total, it is min_lr + (lr - min_lr) (1 + cos(pi (t - warmup) / (total - warmup))) / 2.
     * After that it is min_lr. (Transformers: get_cosine_schedule_with_warmup, whose min_lr and from are 0.) */
    VKT_SCHEDULE_WARMUP_COSINE,
    VKT_SCHEDULE_KIND_COUNT /* number of kinds */
} vkt_schedule_kind;

/* The library whose ReduceLROnPlateau is used. */
typedef enum vkt_plateau_form {
    VKT_PLATEAU_TORCH = 0, /* torch.optim.lr_scheduler */
    VKT_PLATEAU_KERAS      /* keras.callbacks */
} vkt_plateau_form;
/* Lowers the rate when a value has stopped improving. An epoch is bad if its value is not better than the best value so
 * far.
 *   torch  better: below best (1 - threshold), or with `absolute` below best - threshold
 *          lowers the rate after MORE THAN `patience` bad epochs in a row, if lr changes by more than eps
 *   keras  better: below best - threshold (Keras calls it min_delta)
 *          lowers the rate after `patience` bad epochs in a row (at least 1), if lr is above min_lr
 *
 * With `maximise`, larger values are better: read "above" for "below", and + for -. In each field, 0 means the default;
 * VKT_ZERO stands for the number 0. */
typedef struct vkt_plateau {
    vkt_plateau_form form; /* selects the rules above */
    bool maximise;         /* larger values are better, as for an accuracy */
    double factor;         /* multiplies lr each time; 0 means 0.1 */
    uint32_t patience;     /* number of epochs; 0 means 10, VKT_PATIENCE_NONE means 0 */
    double threshold;      /* 0 means 1e-4; VKT_ZERO: any improvement counts */
    bool absolute;         /* torch: threshold_mode "abs" (default: "rel"); Keras' is absolute anyway */
    uint32_t cooldown;     /* epochs after a reduction that do not count as bad */
    double min_lr;         /* lower bound of lr */
    double eps;            /* torch: least change of lr; 0 means 1e-8 */
} vkt_plateau;
#define VKT_PATIENCE_NONE UINT32_MAX /* stands for a patience of 0 epochs */

/* A schedule. All zero: a constant rate. VKT_ZERO stands for the number 0. The comment of a member begins with the
 * kinds that use it. */
typedef struct vkt_schedule {
    vkt_schedule_kind kind; /* the formula */
    bool by_epoch;          /* true: t is the number of the epoch; false: of the step. Both count from 0 */
    /* All kinds: while t < warmup, the rate rises linearly (LinearLR). After that, the formula of the kind is used,
     * with t counted from the end of the warm-up. Only WARMUP_COSINE counts t and `total` from the start. */
    uint32_t warmup;
    double warmup_from;                         /* all kinds: the rise starts at lr times this. 0: the kind's default,
                                                 * which is 0 for WARMUP_COSINE and 1/3 for all others; VKT_ZERO: 0 */
    double gamma;                               /* STEP, MULTI_STEP: 0 means 0.1. EXPONENTIAL: above 0, no default */
    uint32_t step_size;                         /* STEP: steps (or epochs) between two reductions, at least 1 */
    uint32_t milestones[8];                     /* MULTI_STEP: values of t, rising */
    uint32_t n_milestones;                      /* MULTI_STEP: number of milestones */
    uint64_t total;                             /* COSINE (its T_max), ONE_CYCLE, WARMUP_COSINE: length in t */
    double min_lr;                              /* COSINE, WARMUP_COSINE: the last rate */
    bool linear;                                /* ONE_CYCLE: anneal_strategy "linear" (default: "cos") */
    double pct_start;                           /* ONE_CYCLE: fraction of total in which lr rises; 0 means 0.3 */
    double div_factor;                          /* ONE_CYCLE: first rate = lr / div_factor; 0 means 25 */
    double final_div_factor;                    /* ONE_CYCLE: last rate = first rate / final_div_factor; 0 means 1e4 */
    double (*function)(void *user, uint64_t t); /* FUNCTION: must depend on t alone. With several ranks each rank's
                                                 * thread calls the function */
    void *user;                                 /* FUNCTION: passed to the function */
    vkt_plateau plateau;                        /* PLATEAU: the rules */
} vkt_schedule;

/* Checks a schedule. Returns VKT_E_ARG if a field is wrong; the message names the field. `h` NULL: the default host. */
VKT_API vkt_result vkt_schedule_check(const vkt_host *h, const vkt_schedule *s);
/* Returns the rate at t. vkt_schedule_check must accept the schedule. After the warm-up of PLATEAU this is lr, which
 * the caller multiplies by vkt_plateau_state.scale. */
VKT_API double vkt_schedule_lr(const vkt_schedule *s, double lr, uint64_t t);

/* The state of a plateau. Start with { .scale = 1 }. */
typedef struct vkt_plateau_state {
    double scale;     /* factor of lr so far */
    double best;      /* the best value so far; valid if `seen` */
    bool seen;        /* an earlier epoch had a finite value */
    uint32_t bad;     /* bad epochs in a row */
    uint32_t cooling; /* epochs that are left of the cooldown */
} vkt_plateau_state;
/* Adds one epoch's value (NaN is no improvement). `lr`: the rate that state->scale multiplies. Returns true if the rate
 * went down. */
VKT_API bool vkt_plateau_next(const vkt_plateau *p, double lr, vkt_plateau_state *state, double value);

#ifdef __cplusplus
}
#endif
#endif
