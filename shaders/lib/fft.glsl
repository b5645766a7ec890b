// fft.glsl - the discrete Fourier transform of T complex numbers in registers, T = 8, 14 or 16, four samples at a time:
//   X[k] = sum_j x[j] exp(-2 pi i j k / T)
// The inverse, times T: call it with real and imaginary parts exchanged.
// sources: Cooley & Tukey, An Algorithm for the Machine Calculation of Complex Fourier Series (1965), with T = 4 (T/4); of 14
// points Good, The Interaction Algorithm and Practical Fourier Analysis (1958): 2 x 7 without twiddle factors.
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

const float FFT_COS7[4] = { 1, 0.62348980185873353, -0.22252093395631441, -0.90096886790241913 }; // of 2 pi k / 7
const float FFT_SIN7[4] = { 0, 0.78183148246802981, 0.97492791218182361, 0.43388373911755812 };

// Of r[0..6], i[0..6]. x[b] and x[7-b] meet the same cosine, and sines of either sign.
void fft7(inout vec4 r[7], inout vec4 i[7])
{
    const vec4 r0 = r[0], i0 = i[0];
    vec4 even_r[3], even_i[3], odd_r[3], odd_i[3];
    [[unroll]] for (uint b = 1; b < 4; b++) {
        even_r[b - 1] = r[b] + r[7 - b], even_i[b - 1] = i[b] + i[7 - b];
        odd_r[b - 1] = r[b] - r[7 - b], odd_i[b - 1] = i[b] - i[7 - b];
    }
    r[0] = r0 + (even_r[0] + even_r[1] + even_r[2]);
    i[0] = i0 + (even_i[0] + even_i[1] + even_i[2]);
    [[unroll]] for (uint d = 1; d < 4; d++) {
        vec4 ar = r0, ai = i0, br = vec4(0), bi = vec4(0);
        [[unroll]] for (uint b = 1; b < 4; b++) {
            const uint m = b * d % 7;
            const float c = FFT_COS7[m < 4 ? m : 7 - m], s = m < 4 ? FFT_SIN7[m & 3u] : -FFT_SIN7[7 - m];
            ar += c * even_r[b - 1], ai += c * even_i[b - 1];
            br += s * odd_r[b - 1], bi += s * odd_i[b - 1];
        }
        r[d] = ar + bi, i[d] = ai - br;
        r[7 - d] = ar - bi, i[7 - d] = ai + br;
    }
}

// x[7a + 2b] -> X[7c + 8d], indices modulo 14: a and c count to 2, b and d to 7.
void fft14(inout vec4 re[T], inout vec4 im[T])
{
    vec4 r[2][7], i[2][7];
    [[unroll]] for (uint b = 0; b < 7; b++) {
        const uint even = 2 * b % T, odd = (7 + 2 * b) % 14 % T;
        r[0][b] = re[even] + re[odd], i[0][b] = im[even] + im[odd];
        r[1][b] = re[even] - re[odd], i[1][b] = im[even] - im[odd];
    }
    [[unroll]] for (uint c = 0; c < 2; c++) {
        fft7(r[c], i[c]);
        [[unroll]] for (uint d = 0; d < 7; d++) {
            const uint k = (7 * c + 8 * d) % 14 % T;
            re[k] = r[c][d], im[k] = i[c][d];
        }
    }
}

void fft(inout vec4 re[T], inout vec4 im[T])
{
    if (T == 14) {
        fft14(re, im);
        return;
    }
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
