// upsample.glsl - the source pixels of a resized image: for upsample2d.comp and its gradient.

// Returns the source pixel of pixel p in the mode "nearest": floor(p * scale), at most the last pixel. The product is
// rounded to float32 as in torch, because its last bit may decide between two pixels.
uint nearest(uint p, float scale, uint size)
{
    return min(uint(float(p) * scale), size - 1);
}

// Bilinear, along one axis: the source point of pixel p is (p * up + offset) / below.
struct Axis {
    int up, offset, below;
    uint size; /* of x, along the axis */
};
Axis height() { return Axis(pc.up_h, pc.offset_h, pc.below_h, pc.H); }
Axis width() { return Axis(pc.up_w, pc.offset_w, pc.below_w, pc.W); }

// Returns the source point of pixel p, times `below`. The point is clamped to the pixels of x.
int point(uint p, Axis a)
{
    return clamp(int(p) * a.up + a.offset, 0, int(a.size - 1) * a.below);
}
