/* ntc/job.h - prepares a training on the images that the command line names, for the commands `pack` and `view`. */
#ifndef NTC_JOB_H
#define NTC_JOB_H

#include "ntc/pack.h"
#include "ntc/plan.h"
#include "ntc/train.h"

typedef struct ntc_job {
    session *s;
    ntc_set set;
    uint8_t *texels; /* the images: see material.h */
    ntc_trainer t;
    double steps_per_second;
} ntc_job;

/* Reads the images s->o.files[1], s->o.files[2], .., and chooses the grids. Call job_end also after an error. */
vkt_result job_plan(session *s, const ntc_options *o, ntc_job *j);
/* Creates the trainer, and loads the file of --resume if the option is given. The session must have a context. */
vkt_result job_start(ntc_job *j, const ntc_options *o);
void job_end(ntc_job *j); /* call it before the context is destroyed */

#endif
