/* common/classes.h - classes of a data set, and guesses at them, as text. */
#ifndef SAMPLE_CLASSES_H
#define SAMPLE_CLASSES_H

#include <stdio.h>

#include "vktrain/data.h"

enum { CLASS_NAME_ROOM = 80 };
/* The name of class k for a terminal (vkt_printable); its number where it has none. Returns `room`. */
const char *class_name(const vkt_dataset *d, uint32_t k, char room[CLASS_NAME_ROOM]);
/* A line for each of the first n rows of `d`: its class, with a star if that is the likeliest, and the three likeliest
 * with their probabilities, the softmax of logits (n, classes). */
void print_guesses(FILE *out, const vkt_dataset *d, uint32_t n, const float *logits);

#endif
