/* vktrain/schedule.h - learning rates over time: pure functions of a step number, and one that follows a measured
 * value. Nothing is recorded again when the rate changes, because a step reads the rate from a word that the host
 * writes.
 *
 * Formulas, names and defaults are PyTorch's (documentation of torch.optim.lr_scheduler); ReduceLROnPlateau also has
 * Keras' form. Threads: any. */
#ifndef VKTRAIN_SCHEDULE_H
#define VKTRAIN_SCHEDULE_H

#include "vktrain/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kind of a schedule: the rate at t. lr is the optimizer's; the other names are members of vkt_schedule. */
typedef enum vkt_schedule_kind {
    VKT_SCHEDULE_CONSTANT = 0, /* lr */
    VKT_SCHEDULE_STEP,         /* StepLR: lr gamma^floor(t / step_size) */
    VKT_SCHEDULE_MULTI_STEP,   /* MultiStepLR: lr gamma^(number of milestones <= t) */
    VKT_SCHEDULE_EXPONENTIAL,  /* ExponentialLR: lr gamma^t */
    VKT_SCHEDULE_COSINE,       /* CosineAnnealingLR: min_lr + (lr - min_lr) (1 + cos(pi t / total)) / 2 */
    VKT_SCHEDULE_ONE_CYCLE,    /* OneCycleLR over `total` steps, lr is its max_lr; momentum is not cycled */
    VKT_SCHEDULE_FUNCTION,     /* LambdaLR: lr function(user, t) */
    VKT_SCHEDULE_PLATEAU,      /* ReduceLROnPlateau: see vkt_plateau */
    /* Warm-up and cosine over `total` t: in the first `warmup` the rate rises linearly, lr (from + (1 - from) t /
     * warmup), then min_lr + (lr - min_lr) (1 + cos(pi (t - warmup) / (total - warmup))) / 2; min_lr from `total` on.
     * (Transformers: get_cosine_schedule_with_warmup, whose min_lr and from are 0.) */
    VKT_SCHEDULE_WARMUP_COSINE,
    VKT_SCHEDULE_KIND_COUNT /* number of kinds */
} vkt_schedule_kind;

/* The library whose ReduceLROnPlateau is used. */
typedef enum vkt_plateau_form {
    VKT_PLATEAU_TORCH = 0, /* torch.optim.lr_scheduler */
    VKT_PLATEAU_KERAS      /* keras.callbacks */
} vkt_plateau_form;
/* Lowers the rate when a value has stopped improving.
 *   torch  better: below best (1 - threshold), or with `absolute` below best - threshold
 *          lowers when bad epochs EXCEED patience, if that changes lr by more than eps
 *   keras  better: below best - threshold (its min_delta)
 *          lowers when bad epochs REACH patience
 *
 * With `maximise`, larger values are better: read "above" for "below", and + for -. Zero is the default of each field;
 * VKT_ZERO is 0. */
typedef struct vkt_plateau {
    vkt_plateau_form form; /* selects the rules above */
    bool maximise;         /* larger values are better, as for an accuracy */
    double factor;         /* multiplies lr each time; 0: 0.1 */
    uint32_t patience;     /* 0: 10; VKT_PATIENCE_NONE: 0 epochs */
    double threshold;      /* 0: 1e-4; VKT_ZERO: any improvement counts */
    bool absolute;         /* torch: threshold_mode "abs" (default: "rel"); Keras' is absolute anyway */
    uint32_t cooldown;     /* epochs after a reduction that do not count as bad */
    double min_lr;         /* lower bound of lr */
    double eps;            /* torch; 0: 1e-8; VKT_ZERO: lowers in any case */
} vkt_plateau;
#define VKT_PATIENCE_NONE UINT32_MAX /* a vkt_plateau.patience of 0 */

/* A schedule. Zero is a constant rate; VKT_ZERO is 0. The members after by_epoch name the kinds that use them. */
typedef struct vkt_schedule {
    vkt_schedule_kind kind; /* the formula */
    bool by_epoch;          /* t counts whole epochs, from 0; else steps, from 0 */
    /* LinearLR before the rest: the rate rises linearly over this many t, and the rest counts from the end of it. For
     * any kind; WARMUP_COSINE counts it as a part of `total`. */
    uint32_t warmup;
    double warmup_from;                         /* the rise starts at this factor of lr; 0: 1/3, WARMUP_COSINE: 0;
                                                 * VKT_ZERO: 0 */
    double gamma;                               /* STEP, MULTI_STEP: 0: 0.1; EXPONENTIAL: must be given */
    uint32_t step_size;                         /* STEP */
    uint32_t milestones[8];                     /* MULTI_STEP, rising */
    uint32_t n_milestones;                      /* MULTI_STEP: number of milestones */
    uint64_t total;                             /* COSINE (its T_max), ONE_CYCLE, WARMUP_COSINE */
    double min_lr;                              /* COSINE, WARMUP_COSINE: the last rate */
    bool linear;                                /* ONE_CYCLE: anneal_strategy "linear" (default: "cos") */
    double pct_start;                           /* ONE_CYCLE: fraction of total in which lr rises; 0: 0.3 */
    double div_factor;                          /* ONE_CYCLE: the first rate is lr / div_factor; 0: 25 */
    double final_div_factor;                    /* ONE_CYCLE: the last rate is the first one / final_div_factor; 0:
                                                 * 1e4 */
    double (*function)(void *user, uint64_t t); /* FUNCTION: must depend on t alone. With several ranks each rank's
                                                 * thread calls it */
    void *user;                                 /* FUNCTION: passed to it */
    vkt_plateau plateau;                        /* PLATEAU */
} vkt_schedule;

/* Checks a schedule. Returns VKT_E_ARG if a field is wrong; the message names it. `h` NULL: the default host. */
VKT_API vkt_result vkt_schedule_check(const vkt_host *h, const vkt_schedule *s);
/* Returns the rate at t, for a schedule without error. PLATEAU: lr after warm-up, which vkt_plateau_next scales. */
VKT_API double vkt_schedule_lr(const vkt_schedule *s, double lr, uint64_t t);

/* The state of a plateau. Start with { .scale = 1 }. */
typedef struct vkt_plateau_state {
    double scale;     /* factor of lr so far */
    double best;      /* valid once `seen` */
    bool seen;        /* there was a value already */
    uint32_t bad;     /* epochs in a row without improvement */
    uint32_t cooling; /* epochs that are left of the cooldown */
} vkt_plateau_state;
/* Adds one epoch's value (NaN is no improvement). Returns true if the rate went down. */
VKT_API bool vkt_plateau_next(const vkt_plateau *p, double lr, vkt_plateau_state *state, double value);

#ifdef __cplusplus
}
#endif
#endif
