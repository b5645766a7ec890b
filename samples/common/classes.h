/* common/classes.h - names the classes of a data set, and prints predicted classes. */
#ifndef SAMPLE_CLASSES_H
#define SAMPLE_CLASSES_H

#include <stdio.h>

#include "vktrain/data.h"

enum { CLASS_NAME_ROOM = 80 };
/* Writes the name of class k to `room`, or the number k if the class has no name. vkt_printable makes the name safe to
 * print. Returns `room`. */
const char *class_name(const vkt_dataset *d, uint32_t k, char room[CLASS_NAME_ROOM]);
/* Prints one line for each of the first n samples of `d`: its class, and the likeliest classes (up to three) with
 * their probabilities. The probabilities are the softmax of logits (n, classes). A star marks a sample whose class is
 * the likeliest one. */
void print_guesses(FILE *out, const vkt_dataset *d, uint32_t n, const float *logits);

#endif
