// upsample.glsl - where pixels of a picture that was made larger or smaller come from: upsample2d.comp and its gradient.

// Nearest: torch's formula, in its order and precision: which of two pixels is taken is a matter of the last bit.
uint nearest(uint p, float scale, uint size)
{
    return min(uint(float(p) * scale), size - 1);
}

// Bilinear, along one axis: pixel p lies at (p up + offset) / below.
struct Axis {
    int up, offset, below;
    uint size; /* of x */
};
Axis height() { return Axis(pc.up_h, pc.offset_h, pc.below_h, pc.H); }
Axis width() { return Axis(pc.up_w, pc.offset_w, pc.below_w, pc.W); }

// ... times `below`, not outside of x.
int point(uint p, Axis a)
{
    return clamp(int(p) * a.up + a.offset, 0, int(a.size - 1) * a.below);
}
