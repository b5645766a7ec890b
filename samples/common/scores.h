/* common/scores.h - --report and --confusion: how well the classes are told apart; --class-weights as numbers. */
#ifndef SAMPLE_SCORES_H
#define SAMPLE_SCORES_H

#include "common/session.h"

/* Measures for s->o.report and s->o.confusion, with the trainer's weights: prints the table (also where nothing else is
 * printed, for it was asked for), writes the matrix, and adds "scores" to s->more, for --json. `set`: what d is called,
 * "test" or "validation". VKT_OK where nothing is asked for. */
vkt_result scores_write(session *s, vkt_trainer *t, const vkt_dataset *d, const char *set);

/* The numbers of --class-weights, one a class of d: free. `text` is "balanced" (rows / (classes * rows of the class),
 * as scikit-learn has it; 0 for a class without rows), numbers with commas, or a file of numbers. VKT_E_ARG and
 * VKT_E_IO, told on stderr. */
vkt_result class_weights_of(const char *text, const vkt_dataset *d, float **out);

#endif
