/* check/differences.h - compares the gradients of a subject's reference (check/subject.h) with difference quotients of
 * the reference's outputs. Needs no device. */
#ifndef VKT_DIFFERENCES_H
#define VKT_DIFFERENCES_H

#include "check/subject.h"

typedef struct vkt_differences {
    /* `tried`: number of chosen elements. `kinks`: how many of these were left out because a kink (a jump of the
     * derivative, for instance relu at 0) is near. */
    uint32_t tried, kinks;
    double excess;  /* largest error / tolerance; above 1, or NaN: a gradient is wrong */
    uint32_t input; /* input with the worst error; `at` is the index of the element */
    size_t at;
    double got, quotient;
} vkt_differences;

/* Compares the gradient of each differentiated input at `elements` indices. The indices are random numbers from the
 * subject's seed; an index may occur several times. Recomputes the references of out and din. Adds the result to *d.
 * Does nothing if no output has a gradient (dout). VKT_E_NOMEM. */
vkt_result vkt_subject_differences(vkt_subject *s, uint32_t elements, vkt_differences *d);

#endif
