// fft.glsl - the discrete Fourier transform of T complex numbers in registers, T = 8 or 16, four samples at a time:
//   X[k] = sum_j x[j] exp(-2 pi i j k / T)
// The inverse, times T: call it with real and imaginary parts exchanged.
// source: Cooley & Tukey, An Algorithm for the Machine Calculation of Complex Fourier Series (1965), with T = 4 (T/4).
// Needs a constant T. Everything is unrolled, so that all array indices are constants.
const uint FFT_HALF = T / 2, FFT_STEP = T / 4;
const float FFT_COS[10] = { 1, 0.92387953251128674, 0.70710678118654752, 0.38268343236508977, 0,
                            -0.38268343236508977, -0.70710678118654752, -0.92387953251128674, -1, -0.92387953251128674 };
const float FFT_SIN[10] = { 0, 0.38268343236508977, 0.70710678118654752, 0.92387953251128674, 1,
                            0.92387953251128674, 0.70710678118654752, 0.38268343236508977, 0, -0.38268343236508977 };

// (re, im) *= exp(-2 pi i k / 16), k <= 9
void fft_turn(inout vec4 re, inout vec4 im, uint k)
{
    const vec4 r = re, i = im;
    if (k == 0) return;
    if (k == 4) {
        re = i, im = -r;
    } else if (k == 2) {
        re = (r + i) * FFT_COS[2], im = (i - r) * FFT_COS[2];
    } else {
        re = r * FFT_COS[k] + i * FFT_SIN[k], im = i * FFT_COS[k] - r * FFT_SIN[k];
    }
}

void fft4(inout vec4 r0, inout vec4 i0, inout vec4 r1, inout vec4 i1, inout vec4 r2, inout vec4 i2, inout vec4 r3,
          inout vec4 i3)
{
    const vec4 ar = r0 + r2, ai = i0 + i2, br = r0 - r2, bi = i0 - i2;
    const vec4 cr = r1 + r3, ci = i1 + i3, dr = r1 - r3, di = i1 - i3;
    r0 = ar + cr, i0 = ai + ci;
    r1 = br + di, i1 = bi - dr;
    r2 = ar - cr, i2 = ai - ci;
    r3 = br - di, i3 = bi + dr;
}

void fft(inout vec4 re[T], inout vec4 im[T])
{
    vec4 yr[T], yi[T]; // [4 b + k1]: transform of x[b + FFT_STEP a] over a
    [[unroll]] for (uint b = 0; b < FFT_STEP; b++) {
        vec4 r0 = re[b], r1 = re[b + FFT_STEP], r2 = re[b + 2 * FFT_STEP], r3 = re[b + 3 * FFT_STEP];
        vec4 i0 = im[b], i1 = im[b + FFT_STEP], i2 = im[b + 2 * FFT_STEP], i3 = im[b + 3 * FFT_STEP];
        fft4(r0, i0, r1, i1, r2, i2, r3, i3);
        fft_turn(r1, i1, b * (16 / T));
        fft_turn(r2, i2, 2 * b * (16 / T));
        fft_turn(r3, i3, 3 * b * (16 / T));
        yr[4 * b] = r0, yr[4 * b + 1] = r1, yr[4 * b + 2] = r2, yr[4 * b + 3] = r3;
        yi[4 * b] = i0, yi[4 * b + 1] = i1, yi[4 * b + 2] = i2, yi[4 * b + 3] = i3;
    }
    [[unroll]] for (uint k = 0; k < 4; k++) {
        if (T == 16) {
            vec4 r0 = yr[k], r1 = yr[k + 4], r2 = yr[(k + 8) % T], r3 = yr[(k + 12) % T];
            vec4 i0 = yi[k], i1 = yi[k + 4], i2 = yi[(k + 8) % T], i3 = yi[(k + 12) % T];
            fft4(r0, i0, r1, i1, r2, i2, r3, i3);
            re[k] = r0, re[k + 4] = r1, re[(k + 8) % T] = r2, re[(k + 12) % T] = r3;
            im[k] = i0, im[k + 4] = i1, im[(k + 8) % T] = i2, im[(k + 12) % T] = i3;
        } else {
            re[k] = yr[k] + yr[k + 4], re[k + 4] = yr[k] - yr[k + 4];
            im[k] = yi[k] + yi[k + 4], im[k + 4] = yi[k] - yi[k + 4];
        }
    }
}
