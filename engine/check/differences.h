/* check/differences.h - compares the gradients of a reference with difference quotients of its outputs. Needs no
 * device. */
#ifndef VKT_DIFFERENCES_H
#define VKT_DIFFERENCES_H

#include "check/subject.h"

typedef struct vkt_differences {
    uint32_t tried, kinks; /* number of chosen elements, and of those left out because a kink is near */
    double excess;         /* largest error / tolerance; above 1, or NaN: a gradient is wrong */
    uint32_t input;        /* input with the worst error; `at` is the index of the element */
    size_t at;
    double got, quotient;
} vkt_differences;

/* Compares the gradients of each input that has one, at `elements` indices. The subject's seed chooses the indices; an
 * index may be chosen several times. Recomputes the references of out and din. Adds the result to *d. Returns
 * VKT_E_NOMEM if it gets no memory. */
vkt_result vkt_subject_differences(vkt_subject *s, uint32_t elements, vkt_differences *d);

#endif
