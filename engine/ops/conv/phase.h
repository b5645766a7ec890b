/* ops/conv/phase.h - the taps (kernel elements) that each pixel of a convolution's destination uses, along one axis. */
#ifndef VKT_CONV_PHASE_H
#define VKT_CONV_PHASE_H

#include "ops/conv/geometry.h"

/* A phase: the pixels of the destination that use the same taps, along H or W. In a transposed product (dx), the
 * distance between neighbouring pixels of a phase is the stride of the convolution, and a phase has only the taps that
 * do not fall between two source pixels. In other products one phase has all pixels and all taps.
 *
 * Pixel i < count is pixel first + i * step of the destination. Tap k < taps is tap `tap` + k * tap_step of the kernel.
 * Tap k of pixel i reads element i * stride + offset + k * reach of the source, if the source has this element. */
typedef struct vkt_conv_phase {
    uint32_t first, step, count, before; /* before: number of pixels in the phases with a smaller `first` */
    uint32_t tap, tap_step, taps;
    int32_t stride, offset, reach;
} vkt_conv_phase;

/* Returns the number of phases along an axis of y or, if `transposed`, of dx. y has one phase. The number
 * of phases of dx is the stride, or the number of pixels if dx has fewer pixels than the stride. */
uint32_t vkt_conv_phases(const vkt_conv2d_size *z, bool transposed, int axis);
/* Returns the phase whose first pixel is `first`. */
vkt_conv_phase vkt_conv_phase_of(const vkt_conv2d_size *z, bool transposed, int axis, uint32_t first);
/* Returns the source index that tap k of pixel i reads. It may be outside of the source. */
int64_t vkt_conv_phase_source(const vkt_conv_phase *l, int64_t i, int64_t k);
/* Returns whether tap k of pixel i reads inside the source. */
bool vkt_conv_phase_inside(const vkt_conv2d_size *z, bool transposed, int axis, const vkt_conv_phase *l, int64_t i,
                           int64_t k);
/* Returns whether some tap of some pixel reads outside of the source, or the phase has no tap. */
bool vkt_conv_phase_reaches_out(const vkt_conv2d_size *z, bool transposed, int axis, const vkt_conv_phase *l);
/* Returns which fraction of all taps of all pixels reads inside the source along both axes. */
double vkt_conv_phases_filled(const vkt_conv2d_size *z, bool transposed);

#endif
