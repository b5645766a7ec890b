/* common/find_lr.h - --find-lr: prints and draws a learning rate test (vkt_trainer_find_lr). */
#ifndef SAMPLE_FIND_LR_H
#define SAMPLE_FIND_LR_H

#include "common/session.h"

/* Runs the test, prints the suggestion unless --quiet, and draws the result to the file s->o.find_lr. If a signal stops
 * the test, writes no file and returns VKT_OK. VKT_E_DIVERGED: fewer than four steps have a finite loss. Other errors
 * are those of vkt_trainer_find_lr and vkt_rates_plot. */
vkt_result find_lr_run(const session *s, vkt_trainer *t);

#endif
