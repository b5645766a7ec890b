// pool.glsl - pooling windows along one axis. The includer provides pool2d's push block and INSIDE (1: no window
// reaches outside the image).
// Push constants are read before the loops: lavapipe compiles each read in a loop to a loop over the lanes.
uint channels = pc.channels, H = pc.H, W = pc.W, P = pc.P, Q = pc.Q, stride_h = pc.stride_h, stride_w = pc.stride_w;
uint pad_h = pc.pad_h, pad_w = pc.pad_w, exclude_pad = pc.exclude_pad, rows = pc.rows, first_row = pc.first_row;
uint hw_base = pc.hw_base, pq_base = pc.pq_base, index_base = pc.index_base;
uint part = pc.part, part_h = pc.part_h, part_w = pc.part_w, parts_across = pc.parts_across;
uint parts = pc.parts, part_pitch = pc.part_pitch, samples = pc.samples;

struct Window {
    uint begin, count; // begin: first element inside the image. count: number of elements inside the image
    uint padded;       // number of elements inside the padded image
};

// Returns window `p` of `P` windows over `size` elements. If kernel is 0, the pooling is adaptive.
Window window(uint p, uint stride, uint pad, uint kernel, uint size, uint P)
{
    if (kernel == 0u) {
        const uint begin = p * size / P, end = ((p + 1u) * size + P - 1u) / P;
        return Window(begin, end - begin, end - begin);
    }
    if (INSIDE != 0u) return Window(p * stride, kernel, kernel);
    const int begin = int(p * stride) - int(pad), end = min(begin + int(kernel), int(size + pad));
    const int first = max(begin, 0), last = min(end, int(size));
    return Window(uint(first), uint(last - first), uint(end - begin));
}

// Returns window `p`, whose elements are `dilation` apart. begin is the first element inside the image. count may be 0.
Window dilated_window(uint p, uint stride, uint pad, uint kernel, uint size, uint dilation)
{
    const int begin = int(p * stride) - int(pad), hop = int(dilation);
    const int first = begin < 0 ? begin + (hop - 1 - begin) / hop * hop : begin;
    const int last = min(begin + (int(kernel) - 1) * hop, int(size) - 1);
    return Window(uint(first), last < first ? 0u : uint((last - first) / hop) + 1u, kernel);
}

// Returns the divisor of the average over a window with the rows of v and the columns of u.
float divisor(Window v, Window u)
{
    return float(exclude_pad != 0u ? v.count * u.count : v.padded * u.padded);
}
