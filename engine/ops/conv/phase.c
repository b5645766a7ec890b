/* ops/conv/phase.c - see conv/phase.h. */
#include "ops/conv/phase.h"

static uint32_t gcd(uint32_t a, uint32_t b)
{
    while (b) {
        const uint32_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

uint32_t vkt_conv_phases(const vkt_conv2d_size *z, bool transposed, int axis)
{
    return transposed ? VKT_MIN(z->a.stride[axis], z->in[axis]) : 1;
}

vkt_conv_phase vkt_conv_phase_of(const vkt_conv2d_size *z, bool transposed, int axis, uint32_t first)
{
    const vkt_conv2d_attr *a = &z->a;
    const uint32_t kernel = z->kernel[axis], dilation = a->dilation[axis];
    const uint32_t size = transposed ? z->in[axis] : z->out[axis];
    const int64_t pad = a->pad[axis], stride = a->stride[axis];
    if (!transposed)
        return (vkt_conv_phase){ .step = 1,
                                 .count = size,
                                 .tap_step = 1,
                                 .taps = kernel,
                                 .stride = (int32_t)stride,
                                 .offset = -(int32_t)pad,
                                 .reach = (int32_t)dilation };
    vkt_conv_phase l = { .first = first, .step = a->stride[axis], .stride = 1 };
    for (uint32_t f = 0; f < first; f++) l.before += vkt_div_up(size - f, l.step);
    l.count = vkt_div_up(size - first, l.step);
    l.tap_step = l.step / gcd(l.step, dilation);
    l.reach = -(int32_t)(l.tap_step * dilation / l.step);
    while (l.tap < VKT_MIN(kernel, l.tap_step) && (first + pad - (int64_t)l.tap * dilation) % stride) l.tap++;
    if (l.tap >= VKT_MIN(kernel, l.tap_step)) return l; /* no tap reaches this phase */
    l.taps = vkt_div_up(kernel - l.tap, l.tap_step);
    l.offset = (int32_t)((first + pad - (int64_t)l.tap * dilation) / stride);
    return l;
}

static int64_t source(const vkt_conv2d_size *z, bool transposed, int axis)
{
    return transposed ? z->out[axis] : z->in[axis];
}

int64_t vkt_conv_phase_source(const vkt_conv_phase *l, int64_t i, int64_t k)
{
    return i * l->stride + l->offset + k * l->reach;
}

bool vkt_conv_phase_inside(const vkt_conv2d_size *z, bool transposed, int axis, const vkt_conv_phase *l, int64_t i,
                           int64_t k)
{
    const int64_t at = vkt_conv_phase_source(l, i, k);
    return at >= 0 && at < source(z, transposed, axis);
}

bool vkt_conv_phase_reaches_out(const vkt_conv2d_size *z, bool transposed, int axis, const vkt_conv_phase *l)
{
    const int64_t last_tap = l->taps ? (l->taps - 1ll) * l->reach : 0, last = (l->count - 1ll) * l->stride;
    return l->taps == 0 || l->offset + VKT_MIN(last_tap, 0) < 0 ||
           l->offset + last + VKT_MAX(last_tap, 0) >= source(z, transposed, axis);
}

double vkt_conv_phases_filled(const vkt_conv2d_size *z, bool transposed)
{
    double filled = 1;
    for (int axis = 0; axis < 2; axis++) {
        uint64_t all = 0, inside = 0;
        for (uint32_t first = 0; first < vkt_conv_phases(z, transposed, axis); first++) {
            const vkt_conv_phase l = vkt_conv_phase_of(z, transposed, axis, first);
            all += (uint64_t)l.count * l.taps;
            for (int64_t i = 0; i < l.count; i++)
                for (int64_t k = 0; k < l.taps; k++) inside += vkt_conv_phase_inside(z, transposed, axis, &l, i, k);
        }
        if (all) filled *= (double)inside / (double)all;
    }
    return filled;
}
