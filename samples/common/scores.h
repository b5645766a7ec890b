/* common/scores.h - computes the scores of each class for --report and --confusion, and reads --class-weights. */
#ifndef SAMPLE_SCORES_H
#define SAMPLE_SCORES_H

#include "common/session.h"

/* Computes the scores for --report and --confusion, with the trainer's weights. Prints the table of --report, also
 * under --quiet. Writes the confusion matrix to the file of --confusion. Adds "scores" to s->more, for --json. `set` is
 * the name of d, "test" or "validation". If d is NULL, or if neither option is given, returns VKT_OK at once. */
vkt_result scores_write(session *s, vkt_trainer *t, const vkt_dataset *d, const char *set);

/* Reads the numbers of --class-weights, one for each class of d. The caller frees *out. `text` is one of three: numbers
 * with commas or blanks between them, the path of a file with such numbers, or "balanced". With "balanced", the weight
 * of a class is N / (C n), as in scikit-learn: N samples, C classes, n samples of this class. If n is 0, the weight
 * is 0. Errors are VKT_E_ARG, VKT_E_IO and VKT_E_NOMEM, with a message on stderr. */
vkt_result class_weights_of(const char *text, const vkt_dataset *d, float **out);

#endif
