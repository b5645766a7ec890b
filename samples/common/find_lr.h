/* common/find_lr.h - --find-lr: a learning rate range test (Smith, "Cyclical Learning Rates for Training Neural
 * Networks", 2017): the rate rises by the same factor from step to step, from a thousandth of --lr to a thousand times
 * it, until the loss blows up, and the picture shows the loss over the rate.
 *
 * The suggestion is the rate at which the smoothed loss falls fastest: the mean of a step's loss and those of up to
 * five steps on each side; its slope over the logarithm of the rate, by differences of neighbours; of the steps before
 * the lowest smoothed loss the one with the steepest slope. */
#ifndef SAMPLE_FIND_LR_H
#define SAMPLE_FIND_LR_H

#include "common/session.h"

/* The trainer's parameters for such a test: its schedule; no validation, which would cost time and change nothing. */
void find_lr_prepare(const train_options *o, vkt_trainer_params *p);
/* Trains those steps, prints the suggestion unless --quiet, and draws o->find_lr. VKT_E_DIVERGED where the loss is not
 * finite from the start. VKT_OK without a picture: a signal came. */
vkt_result find_lr_run(const session *s, vkt_trainer *t);

#endif
