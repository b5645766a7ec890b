/* fft.abi.h - see fft_rows.comp, fft_columns.comp, and their inverses fft_inverse_columns.comp, fft_inverse_rows.comp.
 * One vec4 of an image has the same pixel of four neighbouring samples. One vec4 of weights has four channels. */
VKT_PUSH(vkt_fft_push,
         VKT_U32(items)    /* number of transforms. Kernels for rows: channels * columns * pairs of rows.
                            * Kernels for columns: channels * columns * FFT_LINES (lib/fft.glsl) */
         VKT_U32(channels)
         VKT_U32(columns)  /* vec4s of a channel: tiles * n4; for weights O / 4 or C / 4 */
         VKT_U32(pitch) VKT_U32(plane) /* vec4s of a spectrum from channel to channel, and from frequency to frequency */
         VKT_U32(rows)     /* rows of a tile that are stored */
         VKT_U32(n4)       /* vec4s of a pixel */
         VKT_U32(tiles_w)  /* tiles in a row of tiles */
         VKT_U32(step_h) VKT_U32(step_w)     /* image rows and columns from tile to tile */
         VKT_I32(origin_h) VKT_I32(origin_w) /* image row and column of the first stored element of the first tile */
         VKT_U32(height) VKT_U32(width)      /* image size; for weights R, S */
         VKT_U32(w_channel) VKT_U32(w_lane)  /* weights: floats between channels, and between elements of a vec4 */
         VKT_U32(sum_columns) VKT_U32(sum_pitch) /* `columns` and `pitch` of FFT_SUM */
         VKT_F32(scale))                     /* fft_inverse_rows: factor of the inverse transform, not of the bias */
#define FFT_IN   0
#define FFT_OUT  1
#define FFT_BIAS 2 /* fft_inverse_rows, f32 (channels): the bias. With WEIGHTS: the gradient of the bias, written */
#define FFT_SUM  3 /* fft_inverse_rows of weights: the spectrum of dy, whose frequency 0 is the sum over a tile */

/* Stored element i < COUNT of an axis is element FIRST + i * STEP of the transform. */
#define FFT_SPEC_LANES 0
#define FFT_SPEC_T     1
#define FFT_SPEC_FIRST 2
#define FFT_SPEC_STEP  3
#define FFT_SPEC_COUNT 4
#define FFT_SPEC_CLIP  5 /* tiles may reach outside the image */
#define FFT_SPEC_BIAS  6
#define FFT_SPECS      7
