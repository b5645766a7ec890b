/* view/record.h - numbers that are shown: curves of a whole run, times of its last frames. */
#ifndef VIEW_RECORD_H
#define VIEW_RECORD_H

#include <stdint.h>

enum { CURVE_POINTS = 1024, TIMES_KEPT = 4096 };

/* A value for every step, however many: each point is the mean of `stride` of them, which doubles when points run out.
 */
typedef struct curve {
    float points[CURVE_POINTS];
    uint32_t n;
    uint64_t stride, taken; /* taken: values of the point that is not full yet; stride 0: 1 */
    double sum;             /* of those */
} curve;
void curve_add(curve *c, double value);

typedef struct times {
    float ms[TIMES_KEPT]; /* a ring */
    uint64_t n;           /* ever */
} times;
void times_add(times *t, uint64_t ns);
/* Of the last TIMES_KEPT, in ms; 0 of none. */
double times_mean(const times *t);
double times_quantile(const times *t, double q);
/* The i-th last one; i below n and TIMES_KEPT. */
float times_last(const times *t, uint32_t i);

#endif
