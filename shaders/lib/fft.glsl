// fft.glsl - the discrete Fourier transform of T complex numbers in registers, four transforms at a time. T is
// 8 or 13 to 16.
//   X[k] = sum_j x[j] exp(-2 pi i j k / T)
// To get the inverse transform, multiplied by T, call fft() with real and imaginary parts exchanged.
// The includer defines the constant T. All loops are unrolled, so all array indices are constants.
// For real x, X[T-k] is the conjugate of X[k]. X[0] is real, and for even T so is X[T/2].
// sources: For 8 and 16 points: Cooley & Tukey, An Algorithm for the Machine Calculation of Complex Fourier Series (1965), with
//          T = 4 * (T/4).
//          For 14 and 15 points: I. J. Good, The Interaction Algorithm and Practical Fourier Analysis (1958), with T = 2 * 7
//          and T = 3 * 5. This method needs no twiddle factors.
const uint FFT_ODD = T % 2, FFT_HALF = T / 2, FFT_STEP = T / 4;
// The transform X of a real x is stored as T real numbers, in slots 0 .. T - 1. Slot 0 is X[0]. For even T, slot 1 is X[T/2].
// Slots fft_slot(u) and fft_slot(u) + 1 are the real and imaginary part of X[u], 0 < u <= FFT_LAST.
const uint FFT_LAST = (T - 1) / 2, FFT_LINES = FFT_LAST + 1;
uint fft_slot(uint u) { return u == 0 ? 0 : 2 * u - FFT_ODD; }
// Number of frequencies (v, u) that fft_columns.comp stores for u = 0 and, for even T, u = T/2. For these u the input of
// fft_columns.comp is real, so this kernel stores only v = 0 .. T/2. T = 16: 2 * 9 frequencies.
const uint FFT_REALS = (2 - FFT_ODD) * (FFT_HALF + 1);
const float FFT_COS[10] = { 1, 0.92387953251128674, 0.70710678118654752, 0.38268343236508977, 0,
                            -0.38268343236508977, -0.70710678118654752, -0.92387953251128674, -1, -0.92387953251128674 };
const float FFT_SIN[10] = { 0, 0.38268343236508977, 0.70710678118654752, 0.92387953251128674, 1,
                            0.92387953251128674, 0.70710678118654752, 0.38268343236508977, 0, -0.38268343236508977 };

// Computes (re, im) *= exp(-2 pi i k / 16), k <= 9.
void fft_twiddle(inout vec4 re, inout vec4 im, uint k)
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

// cos and sin of 2 pi k / N for N = 3, 5, 7 and 13.
const float FFT_COS3[2] = { 1, -0.5 }, FFT_SIN3[2] = { 0, 0.86602540378443865 };
const float FFT_COS5[3] = { 1, 0.30901699437494742, -0.80901699437494742 };
const float FFT_SIN5[3] = { 0, 0.95105651629515357, 0.58778525229247313 };
const float FFT_COS7[4] = { 1, 0.62348980185873353, -0.22252093395631441, -0.90096886790241913 };
const float FFT_SIN7[4] = { 0, 0.78183148246802981, 0.97492791218182361, 0.43388373911755812 };
const float FFT_COS13[7] = { 1, 0.88545602565320991, 0.56806474673115592, 0.12053668025532301,
                             -0.35460488704253545, -0.74851074817110119, -0.97094181742605201 };
const float FFT_SIN13[7] = { 0, 0.46472317204376851, 0.82298386589365635, 0.99270887409805397,
                             0.93501624268541483, 0.66312265824079519, 0.23931566428755768 };

// Defines `name`, the transform of N complex numbers for odd N. r[] has their real parts, and i[] has their imaginary
// parts. Each result is a sum over all elements. In this sum, elements b and N - b have the same cosine, and sines of
// opposite sign. So the code first computes the sum of the two elements (even_r, even_i) and their difference
// (odd_r, odd_i).
#define FFT_SUM1(x) x[0]
#define FFT_SUM2(x) (x[0] + x[1])
#define FFT_SUM3(x) (x[0] + x[1] + x[2])
#define FFT_SUM6(x) (x[0] + x[1] + (x[2] + x[3]) + (x[4] + x[5]))
#define FFT_OF_ODD(name, N, COS, SIN, SUM)                                               \
    void name(inout vec4 r[N], inout vec4 i[N])                                          \
    {                                                                                    \
        const uint H = N / 2;                                                            \
        const vec4 r0 = r[0], i0 = i[0];                                                 \
        vec4 even_r[H + 1], even_i[H + 1], odd_r[H + 1], odd_i[H + 1];                   \
        [[unroll]] for (uint b = 1; b <= H; b++) {                                       \
            even_r[b] = r[b] + r[N - b], even_i[b] = i[b] + i[N - b];                    \
            odd_r[b] = r[b] - r[N - b], odd_i[b] = i[b] - i[N - b];                      \
        }                                                                                \
        r[0] = even_r[1], i[0] = even_i[1];                                              \
        [[unroll]] for (uint b = 2; b <= H; b++) r[0] += even_r[b], i[0] += even_i[b];   \
        r[0] += r0, i[0] += i0;                                                          \
        [[unroll]] for (uint d = 1; d <= H; d++) {                                       \
            vec4 ar[H], ai[H], br[H], bi[H];                                             \
            [[unroll]] for (uint b = 1; b <= H; b++) {                                   \
                const uint m = b * d % N, k = min(m, N - m);                             \
                const float c = COS[k], s = m == k ? SIN[k] : -SIN[k];                   \
                ar[b - 1] = c * even_r[b], ai[b - 1] = c * even_i[b];                    \
                br[b - 1] = s * odd_r[b], bi[b - 1] = s * odd_i[b];                      \
            }                                                                            \
            const vec4 er = r0 + SUM(ar), ei = i0 + SUM(ai), or = SUM(br), oi = SUM(bi); \
            r[d] = er + oi, i[d] = ei - or;                                              \
            r[N - d] = er - oi, i[N - d] = ei + or;                                      \
        }                                                                                \
    }
FFT_OF_ODD(fft3, 3, FFT_COS3, FFT_SIN3, FFT_SUM1)
FFT_OF_ODD(fft5, 5, FFT_COS5, FFT_SIN5, FFT_SUM2)
FFT_OF_ODD(fft7, 7, FFT_COS7, FFT_SIN7, FFT_SUM3)
FFT_OF_ODD(fft_of13, 13, FFT_COS13, FFT_SIN13, FFT_SUM6)

void fft2(inout vec4 r[2], inout vec4 i[2])
{
    const vec4 r0 = r[0], i0 = i[0];
    r[0] = r0 + r[1], i[0] = i0 + i[1];
    r[1] = r0 - r[1], i[1] = i0 - i[1];
}

void fft13(inout vec4 re[T], inout vec4 im[T])
{
    vec4 r[13], i[13];
    [[unroll]] for (uint b = 0; b < 13; b++) r[b] = re[b % T], i[b] = im[b % T];
    fft_of13(r, i);
    [[unroll]] for (uint b = 0; b < 13; b++) re[b % T] = r[b], im[b % T] = i[b];
}

// Defines `name`, which computes X[C * c + D * d] from x[Q * a + P * b], for a, c < P and b, d < Q. Indices are modulo
// P * Q. C is 1 modulo P and 0 modulo Q. D is 0 modulo P and 1 modulo Q.
#define FFT_OF_FACTORS(name, P, Q, OF_P, OF_Q, C, D)                                                  \
    void name(inout vec4 re[T], inout vec4 im[T])                                                     \
    {                                                                                                 \
        vec4 r[P][Q], i[P][Q];                                                                        \
        [[unroll]] for (uint b = 0; b < Q; b++) {                                                     \
            vec4 pr[P], pi[P];                                                                        \
            [[unroll]] for (uint a = 0; a < P; a++)                                                   \
                pr[a] = re[(Q * a + P * b) % (P * Q) % T], pi[a] = im[(Q * a + P * b) % (P * Q) % T]; \
            OF_P(pr, pi);                                                                             \
            [[unroll]] for (uint a = 0; a < P; a++) r[a][b] = pr[a], i[a][b] = pi[a];                 \
        }                                                                                             \
        [[unroll]] for (uint c = 0; c < P; c++) {                                                     \
            OF_Q(r[c], i[c]);                                                                         \
            [[unroll]] for (uint d = 0; d < Q; d++) {                                                 \
                const uint k = (C * c + D * d) % (P * Q) % T;                                         \
                re[k] = r[c][d], im[k] = i[c][d];                                                     \
            }                                                                                         \
        }                                                                                             \
    }
FFT_OF_FACTORS(fft14, 2, 7, fft2, fft7, 7, 8)
FFT_OF_FACTORS(fft15, 3, 5, fft3, fft5, 10, 6)

void fft(inout vec4 re[T], inout vec4 im[T])
{
    if (T == 13) {
        fft13(re, im);
        return;
    }
    if (T == 14) {
        fft14(re, im);
        return;
    }
    if (T == 15) {
        fft15(re, im);
        return;
    }
    // [4 * b + k]: element k of the transform of the four numbers x[b + FFT_STEP * a], a < 4, times a twiddle factor
    vec4 yr[T], yi[T];
    [[unroll]] for (uint b = 0; b < FFT_STEP; b++) {
        vec4 r0 = re[b], r1 = re[b + FFT_STEP], r2 = re[b + 2 * FFT_STEP], r3 = re[b + 3 * FFT_STEP];
        vec4 i0 = im[b], i1 = im[b + FFT_STEP], i2 = im[b + 2 * FFT_STEP], i3 = im[b + 3 * FFT_STEP];
        fft4(r0, i0, r1, i1, r2, i2, r3, i3);
        fft_twiddle(r1, i1, b * (16 / T));
        fft_twiddle(r2, i2, 2 * b * (16 / T));
        fft_twiddle(r3, i3, 3 * b * (16 / T));
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
