/* common/find_lr.h - --find-lr: prints and draws a learning rate test (vkt_trainer_find_lr). */
#ifndef SAMPLE_FIND_LR_H
#define SAMPLE_FIND_LR_H

#include "common/session.h"

/* Runs the test, prints the suggestion unless --quiet, and draws the figure o->find_lr. VKT_E_DIVERGED: the loss is not
 * finite from the start. VKT_OK without a file: a signal stopped the test. */
vkt_result find_lr_run(const session *s, vkt_trainer *t);

#endif
