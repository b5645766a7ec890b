// strip.glsl - the loop over a plane, for conv/direct.comp, conv/fused_max_pool.comp and conv/dw_direct.comp.
// A subgroup processes LANES neighbouring vec4s of a plane P x Q at a time. A vec4 has a pixel (p,q) of four
// samples of the batch. For each vec4, the lane loads the K vec4s of x that are the taps of the pixel. Tap (r,s) of a
// channel is in row p * stride_h + offset_h + r * reach_h and in column q * stride_w + offset_w + s * reach_w of x.
// Include lib/load.glsl before this file. The including shader provides: LANES, CHANNELS, KERNEL_H, KERNEL_W, PAD; the
// binding x_in; a push block with the members n4, width, step_p, step_q, step_n, src_height, src_width, stride_h,
// stride_w, offset_h, offset_w, reach_h and reach_w.
const uint TAPS = KERNEL_H * KERNEL_W, K = CHANNELS * TAPS;
uint n4, width, step_n, step_q, step_p, height_in, width_in, stride_h, stride_w; // push constants, read before the loops
int row_at[KERNEL_H], col_at[KERNEL_W], tap_at[K]; // a tap's row, column and index in x (in vec4s), for p = q = n = 0
uint column, p, q, n; // this lane's vec4: `column` is its index in the plane, n its index in the pixel (p,q)
vec4 x[K];

// Prepares the taps. `base`: index of the first channel in x, in vec4s.
void init_taps(uint base)
{
    n4 = pc.n4, width = pc.width, height_in = pc.src_height, width_in = pc.src_width;
    step_n = pc.step_n, step_q = pc.step_q, step_p = pc.step_p, stride_h = pc.stride_h, stride_w = pc.stride_w;
    [[unroll]] for (uint r = 0; r < KERNEL_H; r++) row_at[r] = pc.offset_h + int(r) * pc.reach_h;
    [[unroll]] for (uint s = 0; s < KERNEL_W; s++) col_at[s] = pc.offset_w + int(s) * pc.reach_w;
    [[unroll]] for (uint k = 0; k < K; k++)
        tap_at[k] = int(base) + col_at[k % KERNEL_W] * int(n4) +
                    (int(k / TAPS * height_in) + row_at[k % TAPS / KERNEL_W]) * int(width_in * n4);
}

void start_strip(uint first)
{
    column = first + gl_SubgroupInvocationID;
    const uint pixel = column / n4;
    n = column - pixel * n4;
    p = pixel / width;
    q = pixel - p * width;
}

// Loads the K taps of this lane's pixel, shifted by `down` rows and `right` columns of x. With PAD, a tap outside the image
// is zero. Without PAD, no tap is outside. If `on` is false, the K vec4s are arbitrary.
void load_taps(bool on, uint down, uint right)
{
    const int h = int(on ? p * stride_h + down : 0), v = int(on ? q * stride_w + right : 0);
    const int at = (h * int(width_in) + v) * int(n4) + int(on ? n : 0);
    bool row_on[KERNEL_H], col_on[KERNEL_W];
    [[unroll]] for (uint r = 0; r < KERNEL_H; r++) row_on[r] = !PAD || uint(h + row_at[r]) < height_in;
    [[unroll]] for (uint s = 0; s < KERNEL_W; s++) col_on[s] = !PAD || uint(v + col_at[s]) < width_in;
    [[unroll]] for (uint k = 0; k < K; k++) {
        const bool inside = row_on[k % TAPS / KERNEL_W] && col_on[k % KERNEL_W];
        x[k] = LOAD4(x_in, uint(inside ? at + tap_at[k] : 0));
        if (PAD) x[k] = inside ? x[k] : vec4(0);
    }
}

void next_columns()
{
    column += LANES;
    n += step_n;
    const bool carry_n = n >= n4;
    n -= carry_n ? n4 : 0;
    q += step_q + (carry_n ? 1 : 0);
    const bool carry_q = q >= width;
    q -= carry_q ? width : 0;
    p += step_p + (carry_q ? 1 : 0);
}
