/* check/differences.h - compares the reference's gradients with difference quotients of its own outputs. Needs no
 * device. */
#ifndef VKT_DIFFERENCES_H
#define VKT_DIFFERENCES_H

#include "check/subject.h"

typedef struct vkt_differences {
    uint32_t tried, kinks; /* elements that were moved; those that were left out because a kink is near */
    double excess;         /* the worst error / the tolerance: above 1, or NaN, is wrong */
    uint32_t input;        /* position of the worst error */
    size_t at;
    double got, quotient;
} vkt_differences;

/* Moves up to `elements` elements of each input that has a gradient, drawn by the subject's seed, and compares. The
 * references of out and din are recomputed. Adds the result to *d. */
vkt_result vkt_subject_differences(vkt_subject *s, uint32_t elements, vkt_differences *d);

#endif
