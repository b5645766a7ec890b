/* ops/conv/phase.h - which pixels of a convolution's destination meet which taps, along one axis. */
#ifndef VKT_CONV_PHASE_H
#define VKT_CONV_PHASE_H

#include "ops/conv/geometry.h"

/* Along H or W: pixels of the destination that meet the same taps. Of a product that is transposed and strided these
 * are every stride-th, so that none is held against taps that fall between two strides; else all.
 * Pixel i < count is pixel first + i step of the destination; tap k < taps is tap `tap` + k tap_step of the kernel;
 * they meet at place i stride + offset + k reach of the source, if that is inside. */
typedef struct vkt_conv_phase {
    uint32_t first, step, count, before; /* before: pixels of the phases with a smaller `first` */
    uint32_t tap, tap_step, taps;
    int32_t stride, offset, reach;
} vkt_conv_phase;

/* y of z; or, `transposed`, dx, whose phases are as many as the stride, or as its pixels if those are fewer. */
uint32_t vkt_conv_phases(const vkt_conv2d_size *z, bool transposed, int axis);
vkt_conv_phase vkt_conv_phase_of(const vkt_conv2d_size *z, bool transposed, int axis, uint32_t first);
/* Where tap k of pixel i reads; whether that is inside the source; whether some tap falls off it. */
int64_t vkt_conv_phase_source(const vkt_conv_phase *l, int64_t i, int64_t k);
bool vkt_conv_phase_inside(const vkt_conv2d_size *z, bool transposed, int axis, const vkt_conv_phase *l, int64_t i,
                           int64_t k);
bool vkt_conv_phase_reaches_out(const vkt_conv2d_size *z, bool transposed, int axis, const vkt_conv_phase *l);
/* The part of all products of taps and pixels that read the source. */
double vkt_conv_phases_filled(const vkt_conv2d_size *z, bool transposed);

#endif
