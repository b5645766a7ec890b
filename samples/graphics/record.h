/* graphics/record.h - numbers to show: curves of a whole run, and times of its last frames. */
#ifndef GRAPHICS_RECORD_H
#define GRAPHICS_RECORD_H

#include <stdint.h>

enum { CURVE_POINTS = 1024, MAX_TIMES = 4096 };

/* A curve over any number of steps. Each point is the mean of `stride` values. When all points are used, pairs of them
 * are merged, and `stride` is doubled. */
typedef struct curve {
    float points[CURVE_POINTS];
    uint32_t n;
    uint64_t stride, taken; /* a stride of 0 means 1; taken: number of values since the last point was added */
    double sum;             /* sum of these values */
} curve;
void curve_add(curve *c, double value);

typedef struct times {
    float ms[MAX_TIMES]; /* a ring buffer */
    uint64_t n;          /* number of all values so far */
} times;
void times_add(times *t, uint64_t ns);
/* Returns the mean of the last MAX_TIMES times, in ms. 0 if there are none. */
double times_mean(const times *t);
double times_quantile(const times *t, double q);
/* Returns a time in ms. For i = 0 it is the newest time, for i = 1 the time before it, and so on. i must be below n and
 * MAX_TIMES. */
float times_last(const times *t, uint32_t i);

#endif
