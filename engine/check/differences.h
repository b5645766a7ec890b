/* check/differences.h - the reference's gradients beside difference quotients of its own outputs. Needs no device. */
#ifndef VKT_DIFFERENCES_H
#define VKT_DIFFERENCES_H

#include "check/subject.h"

typedef struct vkt_differences {
    uint32_t tried, kinks; /* elements; those of them where a kink lies near, which are not compared */
    double excess;         /* the worst error as a part of what is allowed: above 1, or NaN, is wrong */
    uint32_t input;        /* where that was */
    size_t at;
    double got, quotient;
} vkt_differences;

/* Moves up to `elements` elements of each input that has a gradient, drawn by the subject's seed, and compares. The
 * references of out and din are worked out again. Adds to *d. */
vkt_result vkt_subject_differences(vkt_subject *s, uint32_t elements, vkt_differences *d);

#endif
