/* graphics/record.c - see record.h. */
#include "graphics/record.h"

#include <stdlib.h>
#include <string.h>

void curve_add(curve *c, double value)
{
    if (!c->stride) c->stride = 1;
    c->sum += value;
    if (++c->taken < c->stride) return;
    c->points[c->n++] = (float)(c->sum / (double)c->stride);
    c->sum = 0;
    c->taken = 0;
    if (c->n < CURVE_POINTS) return;
    for (uint32_t i = 0; i < CURVE_POINTS / 2; i++) c->points[i] = (c->points[2 * i] + c->points[2 * i + 1]) / 2;
    c->n = CURVE_POINTS / 2;
    c->stride *= 2;
}

void times_add(times *t, uint64_t ns)
{
    t->ms[t->n++ % MAX_TIMES] = (float)ns * 1e-6f;
}

static uint32_t kept(const times *t)
{
    return t->n < MAX_TIMES ? (uint32_t)t->n : MAX_TIMES;
}

double times_mean(const times *t)
{
    double sum = 0;
    for (uint32_t i = 0; i < kept(t); i++) sum += (double)t->ms[i];
    return t->n ? sum / kept(t) : 0;
}

static int compare(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

double times_quantile(const times *t, double q)
{
    float sorted[MAX_TIMES];
    const uint32_t n = kept(t);
    if (n == 0) return 0;
    memcpy(sorted, t->ms, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare);
    return (double)sorted[(uint32_t)(q * (n - 1) + 0.5)];
}

float times_last(const times *t, uint32_t i)
{
    return t->ms[(t->n - 1 - i) % MAX_TIMES];
}
