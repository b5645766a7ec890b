/* vktrain/ops.h - the ops: the formula of each, its input and output shapes, its gradient.
 *
 * An op appends a node to the graph and returns the node's value. Errors are sticky, as graph.h says.
 *
 * Tensors are limited by memory, and by two limits of the device. If an op exceeds one of the device's limits,
 * vkt_program_create returns VKT_E_UNSUPPORTED, and the message names what is too large.
 *   Bindings. A descriptor binding holds at least 128 MiB on every device, and up to 4 GiB on some. Kernels read larger
 *   tensors range by range. Each range starts at a multiple of 256 bytes. A binding must hold at least the smallest
 *   range that the op can use:
 *     convolutions, batch norms, upsampling   one channel with all samples
 *     losses of labels                        one row, or up to 64 rows if a row's size is no multiple of 256 bytes
 *     sums, maxima, broadcasting              up to 64 slices if a slice's size is no multiple of 256 bytes. (A slice
 *                                             is the part of a tensor with one index of the slowest dimension.) Most
 *                                             slices whose size is a multiple of 256 bytes are split further, so they
 *                                             have no limit
 *     layer, group, RMS norm, vkt_to_layout   up to four samples
 *     matrix products                         a few rows
 *   Elementwise ops, and losses of y and a target, have no such limit. The limits of ops that are not listed here are
 *   in their comments or in the message.
 *   Loops. On the CPU, Mesa before 23 counts the iterations of all loops of an invocation together. After 65,535
 *   iterations it ends the loops, without an error. So on CPU devices long sums are split. An op that does not split a
 *   sum has a limit, which is in its comment or in the message. Other devices have no such limit.
 *
 * The letters of shapes, unless a comment says otherwise: B or N is the batch, C channels, H x W height and width, O
 * output channels, R x S the kernel, P x Q the output's height and width. A matrix product has the sizes M, N and K. dx
 * is the gradient of the loss with respect to x. VKT_ZERO (core.h) stands for the number 0 where a floating-point 0
 * selects a default. */
#ifndef VKTRAIN_OPS_H
#define VKTRAIN_OPS_H

#include "vktrain/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- products ---- */

/* Multiplies matrices: C = op(A) op(B); op(X) is X or its transpose over the last two dimensions.
 *   a (..,M,K) or (..,K,M) if trans_a;  b (..,K,N) or (..,N,K) if trans_b  ->  (..,M,N)
 *   Leading dimensions broadcast as in NumPy: they are aligned at the right, and dimensions that are 1 or missing
 *   repeat. An operand that is a single matrix is used for every batch without a copy. An operand that repeats in some
 *   dimensions and not in others is copied, for instance (B,1,M,K) by (B,H,K,N). Operands must be ROWS (else
 *   VKT_E_SHAPE). The result is ROWS.
 *   dA = dC op(B)^T and dB = op(A)^T dC. A gradient is transposed if its operand is transposed, and is summed over the
 *   dimensions in which its operand repeats. The arithmetic is f32, with the exceptions in vkt_precision (graph.h). */
VKT_API vkt_tensor vkt_matmul(vkt_graph *g, vkt_tensor a, vkt_tensor b, bool trans_a, bool trans_b);

/* Applies a linear layer: y[b,o] = sum_i x[b,i] w[o,i] + bias[o].
 *   x (B,I), w (O,I), bias (O) or null  ->  (B,O), in x's layout (ROWS in a library built without convolutions)
 *   x (..,I) of more than two dimensions counts as a matrix with rows of I numbers -> (..,O), ROWS (a BATCH_LAST x is
 *   converted first) */
VKT_API vkt_tensor vkt_linear(vkt_graph *g, vkt_tensor x, vkt_tensor w, vkt_tensor bias);

/* Formats of quantized weights in GGUF files. The values of the enum are those of ggml_type. If a format has blocks, a
 * row is a list of blocks, and each block has its own scale. In the formulas of a weight below, d and m are f16 values
 * of the block, q is the integer of the weight, and s and t are integers that several weights share. (Sources: the page
 * "GGUF" of ggml's documentation; ggml-quants.c of llama.cpp.) */
typedef enum vkt_quant {
    VKT_QUANT_F16 = 1,   /* no blocks: f16 */
    VKT_QUANT_Q4_0 = 2,  /* 32 weights in 18 bytes: d (q - 8), q has 4 bits */
    VKT_QUANT_Q4_1 = 3,  /* 32 weights in 20 bytes: d q + m, q has 4 bits */
    VKT_QUANT_Q8_0 = 8,  /* 32 weights in 34 bytes: d q, q has 8 bits with sign */
    VKT_QUANT_Q4_K = 12, /* 256 weights in 144 bytes: d s q - m t, q has 4 bits; 32 weights share s and t */
    VKT_QUANT_Q5_K = 13, /* 256 weights in 176 bytes: as Q4_K, but q has 5 bits */
    VKT_QUANT_Q6_K = 14, /* 256 weights in 210 bytes: d s (q - 32), q has 6 bits; 16 weights share s */
    VKT_QUANT_BF16 = 30  /* no blocks: bfloat16 */
} vkt_quant;
/* Returns the size in bytes of weights (rows,columns). 0: the format is unknown, or a row is no whole number of
 * blocks. */
VKT_API uint64_t vkt_quantized_bytes(vkt_quant format, uint32_t rows, uint32_t columns);
/* Applies a linear layer whose weights w (O,I) are quantized: y[b,o] = sum_i x[b,i] w[o,i] + bias[o].
 *   x (..,I), words u32 (N), bias (O) or null  ->  (..,O), ROWS (a BATCH_LAST x is converted first)
 * `words`, for instance an external value, has the bytes of the weights, as in the GGUF file, row after row. N is at
 * least vkt_quantized_bytes / 4, rounded up. `outputs` is O. I is a multiple of 4 and of the weights per block.
 * dx = dy w. The weights have no gradient. If x has up to 8 rows, and y is not stored in 16 bits (vkt_precision), one
 * kernel usually reads the quantized weights and computes y. In all other cases, and for dx, the library chooses one of
 * two ways. Either the matrix product unpacks the weights as it reads them, or a dispatch before the product unpacks
 * them to f32 in memory. All layers of a program share this memory: about 4 * O * I bytes for the largest layer. */
VKT_API vkt_tensor vkt_linear_quantized(vkt_graph *g, vkt_tensor x, vkt_tensor words, vkt_tensor bias, vkt_quant format,
                                        uint32_t outputs);

/* One layer of vkt_mlp. */
typedef struct vkt_mlp_layer {
    vkt_tensor weight; /* (O,I) */
    vkt_tensor bias;   /* (O), or null */
} vkt_mlp_layer;
#define VKT_MLP_MAX_LAYERS 4  /* largest number of layers of vkt_mlp */
#define VKT_MLP_MAX_WIDTH 128 /* largest width of vkt_mlp's input and layers */
/* Applies a fully connected network. A layer computes relu(h weight^T + bias) of its input h. The last layer has no
 * relu.
 *   x (B,I)  ->  (B,O of the last layer), BATCH_LAST (an x in ROWS is converted first)
 * A chain of vkt_linear and vkt_relu computes the same. But here the whole network is one node, and its gradient is one
 * node, too. Hidden layers are not stored. The gradient computes them again. No width may exceed VKT_MLP_MAX_WIDTH. A
 * binding must hold all of x, and a binding must hold all of y. */
VKT_API vkt_tensor vkt_mlp(vkt_graph *g, vkt_tensor x, const vkt_mlp_layer *layers, uint32_t n_layers);

/* The options of a convolution. A member that is 0 selects torch's default. */
typedef struct vkt_conv2d_params {
    uint32_t stride[2];   /* along H and W; 0 means 1 */
    uint32_t pad[2];      /* number of zeros on each side */
    uint32_t dilation[2]; /* distance between neighbouring taps; 0 means 1 */
    uint32_t groups;      /* G; 0 means 1 */
} vkt_conv2d_params;
/* Convolves: computes the cross-correlation, as torch's conv2d does. dil is the dilation. G is `groups`, and g is the
 * index of the group of channels that output channel o belongs to:
 *   y[n,o,p,q] = bias[o] + sum_{c,r,s} x[n, g C/G + c, p stride - pad + r dil, q stride - pad + s dil] w[o,c,r,s]
 *   x (N,C,H,W), w (O,C/groups,R,S), bias (O) or null -> (N,O,P,Q), BATCH_LAST (a ROWS x is converted first)
 *   P = floor((H + 2 pad - dil (R-1) - 1) / stride) + 1. Q has the same formula, with W and S. The params may be NULL.
 * On CPU devices R * S is at most 19,999, because one invocation loops over the taps. A binding (at least 128 MiB on
 * every device) must hold one channel of x with all samples, and another binding must hold one channel of y. */
VKT_API vkt_tensor vkt_conv2d(vkt_graph *g, vkt_tensor x, vkt_tensor w, vkt_tensor bias, const vkt_conv2d_params *p);

/* The options of a 1d convolution. A member that is 0 selects torch's default. */
typedef struct vkt_conv1d_params {
    uint32_t stride;   /* 0 means 1 */
    uint32_t pad;      /* number of zeros on each side */
    uint32_t dilation; /* distance between neighbouring taps; 0 means 1 */
    uint32_t groups;   /* 0 means 1 */
} vkt_conv1d_params;
/* Convolves sequences: x (N,C,L), w (O,C/groups,K), bias (O) or null -> (N,O,Q). The op is vkt_conv2d over images of
 * height 1, so messages may name conv2d and shapes with this height. p may be NULL. */
VKT_API vkt_tensor vkt_conv1d(vkt_graph *g, vkt_tensor x, vkt_tensor w, vkt_tensor bias, const vkt_conv1d_params *p);

/* The options of a transposed convolution. A member that is 0 selects torch's default. */
typedef struct vkt_conv_transpose2d_params {
    uint32_t stride[2];     /* along H and W; 0 means 1 */
    uint32_t pad[2];        /* number of rows and columns that are removed from y on each side */
    uint32_t dilation[2];   /* distance between neighbouring taps; 0 means 1 */
    uint32_t groups;        /* 0 means 1 */
    uint32_t output_pad[2]; /* rows and columns that are added to y at the end. A convolution with a stride maps images
                             * of several sizes to x's size. An output_pad below the stride selects one of these
                             * sizes for y */
} vkt_conv_transpose2d_params;
/* Computes a transposed convolution: the gradient of vkt_conv2d with respect to its input (torch: conv_transpose2d).
 * With one group:
 *   y[n,o,p,q] = bias[o] + sum of x[n,c,i,j] w[c,o,r,s] over all (c,i,j,r,s) with p = i stride - pad + r dil and
 *     q = j stride - pad + s dil
 * With any number of groups:
 *   x (N,C,H,W), w (C,O/groups,R,S), bias (O) or null -> (N,O,P,Q), BATCH_LAST (a ROWS x is converted first)
 *   P = (H-1) stride - 2 pad + dil (R-1) + output_pad + 1. Q has the same formula, with W and S. output_pad is less
 *   than the larger one of stride and dilation. The params may be NULL.
 * vkt_conv_transpose1d does the same for sequences: x (N,C,L), w (C,O/groups,K) -> (N,O,Q).
 *   source: Dumoulin & Visin, A guide to convolution arithmetic for deep learning (2016), chapter 4 */
VKT_API vkt_tensor vkt_conv_transpose2d(vkt_graph *g, vkt_tensor x, vkt_tensor w, vkt_tensor bias,
                                        const vkt_conv_transpose2d_params *p);
typedef struct vkt_conv_transpose1d_params {
    uint32_t stride, pad, dilation, groups, output_pad; /* as in vkt_conv_transpose2d_params, for one dimension */
} vkt_conv_transpose1d_params;
VKT_API vkt_tensor vkt_conv_transpose1d(vkt_graph *g, vkt_tensor x, vkt_tensor w, vkt_tensor bias,
                                        const vkt_conv_transpose1d_params *p);

/* The options of pooling. A member that is 0 selects torch's default, but `kernel` has no default. */
typedef struct vkt_pool2d_params {
    uint32_t kernel[2];   /* R, S */
    uint32_t stride[2];   /* 0 means the size of the kernel */
    uint32_t pad[2];      /* at most kernel / 2 */
    uint32_t dilation[2]; /* distance between neighbouring elements of a window; 0 means 1. Average pooling allows only
                           * 1 */
    bool ceil_mode;       /* round the output's height and width up instead of down: then the last window may end
                           * outside the padded image. A window that starts in the padding after the image is left
                           * out */
    bool exclude_pad;     /* divide an average by the number of elements of the window that are in the image
                           * (torch: count_include_pad = False) */
} vkt_pool2d_params;
/* Compute the maximum or average of R x S windows: x (N,C,H,W) -> (N,C,P,Q), BATCH_LAST (a ROWS x is converted first).
 * The rules are torch's: padding never wins a maximum, the first maximum wins a tie, and NaN propagates. An average
 * divides by R * S, or in ceil mode by the number of elements of the window that are within the padded image
 * (exclude_pad: see above). With dilation d a window spans d * (R - 1) + 1 rows. A maximum over padding alone is -inf,
 * and no element of x gets the gradient of this maximum.
 *
 * Fusion: vkt_backward fuses a relu and the maximum into one node if relu's output is not kept and has no other reader.
 * The node also includes the vkt_conv2d before the relu (without a relu: before the maximum) under these conditions:
 *   - The convolution's output is not kept and has no other reader.
 *   - The windows have at most 64 elements, no overlap, gap, padding or dilation. All windows end within the image.
 *   - An element of the convolution's output is a sum of at most 40 products.
 *   - The number of input channels of a group is no multiple of 4, or the kernel of the convolution is 1 x 1.
 *   - The convolution's input and the maxima have at most 128 MiB each.
 * The first layers of many networks meet these conditions. Fusion saves a few dispatches. Nothing is fused if
 * vkt_gradients has already computed a gradient of the maximum. The results have the same bits as without fusion,
 * except in a program that stores values in 16 bits: a fused node does not round the values between the fused ops. If
 * rounding would make two elements of a window equal, another element may win. The variable VKT_NO_FUSE=1 in the
 * environment switches fusion off for a graph that is created afterwards.
 *
 * Limits: a binding (at least 128 MiB on every device) must hold, for all samples, the image rows that one window
 * spans. If a window has more than about 50,000 elements, several invocations share the window, and a binding must hold
 * only one image row for all samples. Invocations cannot share a window that has dilation: R * (S + 1) is then at
 * most 49,998 on CPU devices. On CPU devices an element may be in at most about 50,000 windows, because one invocation
 * sums the element's gradient. For a maximum, images must have fewer than 1,065,353,216 pixels, because the index of a
 * pixel is stored in a 32-bit word that must have the bits of a normal float. */
VKT_API vkt_tensor vkt_max_pool2d(vkt_graph *g, vkt_tensor x, const vkt_pool2d_params *p);
VKT_API vkt_tensor vkt_avg_pool2d(vkt_graph *g, vkt_tensor x, const vkt_pool2d_params *p);
/* Pool to a given size: x (N,C,H,W) -> (N,C,out_h,out_w). Along an axis with `in` pixels and n windows, window i has
 * the pixels from floor(i * in / n) to ceil((i+1) * in / n) - 1. Windows may overlap. (in + 1) * (n + 1) must be below
 * 2^31 - 1, because kernels count in 32 bits. */
VKT_API vkt_tensor vkt_adaptive_max_pool2d(vkt_graph *g, vkt_tensor x, uint32_t out_h, uint32_t out_w);
VKT_API vkt_tensor vkt_adaptive_avg_pool2d(vkt_graph *g, vkt_tensor x, uint32_t out_h, uint32_t out_w);

/* The options of 1d pooling. A member that is 0 selects torch's default, but `kernel` has no default. */
typedef struct vkt_pool1d_params {
    uint32_t kernel;   /* elements of a window */
    uint32_t stride;   /* 0 means the size of the kernel */
    uint32_t pad;      /* at most kernel / 2 */
    uint32_t dilation; /* as in vkt_pool2d_params */
    bool ceil_mode;    /* as in vkt_pool2d_params */
    bool exclude_pad;  /* as in vkt_pool2d_params */
} vkt_pool1d_params;
/* Pool sequences, as the functions above pool images: x (N,C,L) -> (N,C,Q). */
VKT_API vkt_tensor vkt_max_pool1d(vkt_graph *g, vkt_tensor x, const vkt_pool1d_params *p);
VKT_API vkt_tensor vkt_avg_pool1d(vkt_graph *g, vkt_tensor x, const vkt_pool1d_params *p);
VKT_API vkt_tensor vkt_adaptive_max_pool1d(vkt_graph *g, vkt_tensor x, uint32_t out);
VKT_API vkt_tensor vkt_adaptive_avg_pool1d(vkt_graph *g, vkt_tensor x, uint32_t out);
/* Pool over a whole image or sequence: x (N,C,H,W) or (N,C,L) -> (N,C), like GlobalMaxPooling and GlobalAveragePooling
 * of Keras (torch: an adaptive pool to 1, then flatten). */
VKT_API vkt_tensor vkt_global_max_pool(vkt_graph *g, vkt_tensor x);
VKT_API vkt_tensor vkt_global_avg_pool(vkt_graph *g, vkt_tensor x);

/* The formula of vkt_upsample2d. */
typedef enum vkt_upsample_mode {
    VKT_UPSAMPLE_NEAREST = 0, /* a pixel of y is a copy of one pixel of x, whose position is rounded down */
    VKT_UPSAMPLE_BILINEAR     /* a pixel of y is a weighted mean of four pixels of x */
} vkt_upsample_mode;
/* The options of upsampling. Set both elements of `size`, or both elements of `scale`. */
typedef struct vkt_upsample2d_params {
    uint32_t size[2];       /* P, Q; 0: computed from `scale`. H, W, P and Q are at most 32767 */
    uint32_t scale[2];      /* P = scale[0] * H, Q = scale[1] * W */
    vkt_upsample_mode mode; /* the formula */
    bool align_corners;     /* bilinear only. true: the centres of the corner pixels of x are at the centres of the
                             * corner pixels of y. false: the outer edges of x are at the outer edges of y */
} vkt_upsample2d_params;
/* Resizes images to a larger or smaller size, without a filter against aliasing (torch.nn.functional.interpolate).
 *   nearest: y[n,c,p,q] = x[n, c, floor(p * H/P), floor(q * W/Q)], where H/P and W/Q are rounded to f32, as torch does
 *   bilinear: a weighted mean of the four pixels of x around the point ((p + 1/2) * H/P - 1/2, ..). Nearer pixels weigh
 *   more. With align_corners the point is (p * (H-1)/(P-1), ..), and 0 along an axis where y has one pixel. A point
 *   outside x has the value of the edge
 * x (N,C,H,W) -> (N,C,P,Q), BATCH_LAST (a ROWS input is converted first). dx is a sum in a fixed order, so its bits are
 * the same in every run. One invocation sums the gradient of a pixel of x. So on CPU devices at most about 50,000
 * pixels of y may depend on one pixel of x, and fewer if x has only a few rows or columns. If x is a single pixel,
 * there is no such limit. */
VKT_API vkt_tensor vkt_upsample2d(vkt_graph *g, vkt_tensor x, const vkt_upsample2d_params *p);

/* ---- functions of one number ----
 *
 * x is f32, in any layout. Unless a comment says otherwise, x may have any shape, and NaN propagates. */

/* Computes max(x, 0). The gradient at 0 is 0; at NaN it is dy. */
VKT_API vkt_tensor vkt_relu(vkt_graph *g, vkt_tensor x);
/* Computes x > 0 ? x : slope x. torch's slope: 0.01. */
VKT_API vkt_tensor vkt_leaky_relu(vkt_graph *g, vkt_tensor x, float slope);
/* Computes x > 0 ? x : w x, where w has the shape (1), or (C) for x (N,C,..). dw = sum of x dy where x <= 0. torch
 * starts from w = 0.25. */
VKT_API vkt_tensor vkt_prelu(vkt_graph *g, vkt_tensor x, vkt_tensor w);
/* Computes x > 0 ? x : alpha (e^x - 1); dx = x > 0 ? dy : alpha e^x dy. torch's alpha: 1. Clevert et al., arXiv
 * 1511.07289. */
VKT_API vkt_tensor vkt_elu(vkt_graph *g, vkt_tensor x, float alpha);
/* vkt_gelu computes x P(x), where P is the distribution function of a standard normal variable:
 * x (1 + erf(x / sqrt 2)) / 2. The relative error is small even where x is far below 0. (At x = -9, torch's f32 result
 * is 0.) vkt_gelu_tanh computes x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 (torch: approximate="tanh"). The
 * results of the two functions differ by at most about 5e-4. Hendrycks & Gimpel, arXiv 1606.08415. */
VKT_API vkt_tensor vkt_gelu(vkt_graph *g, vkt_tensor x);
VKT_API vkt_tensor vkt_gelu_tanh(vkt_graph *g, vkt_tensor x);
/* Computes x / (1 + e^-x), also called swish. */
VKT_API vkt_tensor vkt_silu(vkt_graph *g, vkt_tensor x);
/* Computes x min(max(x + 3, 0), 6) / 6. dx = 0 for x <= -3, dy for x >= 3, and (x / 3 + 1 / 2) dy between, as in
 * PyTorch 2.15 (1.13 gave -dy / 2 and 3 dy / 2 at the bounds). Howard et al., arXiv 1905.02244. */
VKT_API vkt_tensor vkt_hardswish(vkt_graph *g, vkt_tensor x);
/* Computes 1 / (1 + e^-x); dx = y (1 - y) dy. */
VKT_API vkt_tensor vkt_sigmoid(vkt_graph *g, vkt_tensor x);
/* Computes the hyperbolic tangent; dx = (1 - y^2) dy. */
VKT_API vkt_tensor vkt_tanh(vkt_graph *g, vkt_tensor x);
/* Computes beta x > threshold ? x : ln(1 + e^(beta x)) / beta. dx = beta x > threshold ? dy : dy / (1 + e^(-beta x)).
 * torch's values: beta 1, threshold 20. VKT_E_ARG: beta is not above 0, or is infinite. */
VKT_API vkt_tensor vkt_softplus(vkt_graph *g, vkt_tensor x, float beta, float threshold);
/* Computes e^x, accurate to one or two units in the last place. dx = y dy. */
VKT_API vkt_tensor vkt_exp(vkt_graph *g, vkt_tensor x);
/* Computes ln x, accurate to one or two units in the last place. The result is -inf at 0 and NaN below 0. dx = dy / x,
 * which is infinite at 0. */
VKT_API vkt_tensor vkt_log(vkt_graph *g, vkt_tensor x);
/* Computes the square root of x, as accurately as the device's sqrt. The result is NaN below 0. dx = dy / (2 y), which
 * is infinite at 0. */
VKT_API vkt_tensor vkt_sqrt(vkt_graph *g, vkt_tensor x);
/* Computes |x|; the gradient at 0 is 0. */
VKT_API vkt_tensor vkt_abs(vkt_graph *g, vkt_tensor x);
/* Computes min(max(x, min), max). Bounds may be infinite. dx = dy where min < x < max, else 0, as in PyTorch 2.15 (1.13
 * gave dy at the bounds, too). VKT_E_ARG: a bound is NaN. */
VKT_API vkt_tensor vkt_clamp(vkt_graph *g, vkt_tensor x, float min, float max);
/* Computes scale x + shift. */
VKT_API vkt_tensor vkt_scale(vkt_graph *g, vkt_tensor x, float scale, float shift);
/* Rounds numbers in [0,1] to 2^bits levels. With t = min(max(x, 0), 1) and L = 2^bits - 1:
 *   noise = false: y = floor(L t + 1/2) / L
 *   noise = true:  y = t + (r - 1/2) / L, with a random number r in [0,1) for each element. In training, the noise
 *                  replaces the rounding error (Balle, Laparra & Simoncelli, End-to-end Optimized Image Compression,
 *                  2017). r comes from Philox with the seed, the number of the step (or micro-batch), the node's number
 *                  and the element's index, as in vkt_dropout
 * The gradient is straight-through: dx = dy. But dx = 0 where x is outside [0,1] and a step against the gradient would
 * move x further outside (Bengio, Leonard & Courville, 2013, section 4). NaN stays NaN. VKT_E_ARG: bits is not 1 to
 * 16. */
VKT_API vkt_tensor vkt_quantize(vkt_graph *g, vkt_tensor x, uint32_t bits, bool noise);
/* vkt_dropout keeps an element with probability 1-p and divides it by 1-p; other elements become 0, even if they are
 * NaN. vkt_dropout2d does this with whole planes (n,c) of x (N,C,..). If p is 0, both functions return x. The mask
 * comes from Philox with the seed, the number of the step (or micro-batch), the node's number and the index of the
 * element or plane. So a training that is resumed or repeated has the same masks. VKT_E_ARG: p is not in [0,1].
 * VKT_E_SHAPE: x of vkt_dropout2d has fewer than three dimensions. Leave the op out of graphs that evaluate. */
VKT_API vkt_tensor vkt_dropout(vkt_graph *g, vkt_tensor x, float p);
VKT_API vkt_tensor vkt_dropout2d(vkt_graph *g, vkt_tensor x, float p);

/* The options of a batch norm. A member that is 0 selects torch's default. */
typedef struct vkt_batch_norm_params {
    float eps;                            /* 0 means 1e-5; VKT_ZERO means 0 */
    float momentum;                       /* weight of the new statistics; 0 means 0.1; VKT_ZERO means 0. Keras' 0.99 is
                                           * 0.01 here */
    vkt_tensor gamma, beta;               /* (C); a null gamma means 1, a null beta means 0 */
    vkt_tensor running_mean, running_var; /* (C), made by vkt_state. In training, both may be null */
    bool biased;   /* track the biased variance, as ONNX and Keras 3 do; torch tracks n / (n-1) times this variance */
    bool evaluate; /* normalise with the running statistics, and do not change them */
} vkt_batch_norm_params;
/* Computes y = gamma (x - mean) / sqrt(var + eps) + beta for each channel of x (N,C,...), BATCH_LAST (other layouts are
 * converted).
 *   training  The mean and the biased variance are computed from all positions of the real rows of the batch (vkt_run).
 *             They have a gradient with respect to x. Rows that are not real become 0. Each run with real rows updates
 *             the running statistics: running += momentum * (statistic of the batch - running)
 *   evaluate  The mean and the variance are the running ones. Gradients treat them as constants. All rows count as real
 * (Ioffe & Szegedy, Batch Normalization, 2015; PyTorch documentation of BatchNorm2d.) */
VKT_API vkt_tensor vkt_batch_norm(vkt_graph *g, vkt_tensor x, const vkt_batch_norm_params *p);

/* Computes y = gamma (x - mean) / sqrt(var + eps) + beta, with mean and biased variance of each row. A row is the last
 * `dims` dimensions of x together. gamma and beta have the shape of these dimensions, or one dimension with the length
 * of a row, or are null. An eps of 0 means 1e-5; VKT_ZERO means 0. A BATCH_LAST x is converted to ROWS and back. (Ba,
 * Kiros & Hinton, Layer Normalization, 2016; PyTorch documentation of LayerNorm.) */
VKT_API vkt_tensor vkt_layer_norm(vkt_graph *g, vkt_tensor x, uint32_t dims, vkt_tensor gamma, vkt_tensor beta,
                                  float eps);
/* Computes y = gamma x / sqrt(mean of x^2 + eps), for the rows of vkt_layer_norm. An eps of 0 means 2^-23; VKT_ZERO
 * means 0. (Zhang & Sennrich, Root Mean Square Layer Normalization, 2019; PyTorch documentation of RMSNorm.) */
VKT_API vkt_tensor vkt_rms_norm(vkt_graph *g, vkt_tensor x, uint32_t dims, vkt_tensor gamma, float eps);
/* Normalises like vkt_layer_norm, but a row is a group of C / groups neighbouring channels of a sample: x (N,C,...),
 * gamma and beta (C) or null. groups = C is an instance norm; groups = 1 normalises all channels of a sample together.
 * (Wu & He, Group Normalization, 2018.) */
VKT_API vkt_tensor vkt_group_norm(vkt_graph *g, vkt_tensor x, uint32_t groups, vkt_tensor gamma, vkt_tensor beta,
                                  float eps);

/* Returns x with a new shape. The elements keep their row-major order, whatever the layout of x is. Nothing is copied
 * if x is ROWS, or if dimension 0 keeps its size. Otherwise x is copied to ROWS. */
VKT_API vkt_tensor vkt_reshape(vkt_graph *g, vkt_tensor x, vkt_shape shape);
/* Returns x as a value through which no gradient passes, for instance the output of a teacher network. Nothing is
 * copied. (torch: Tensor.detach; Keras: stop_gradient.) */
VKT_API vkt_tensor vkt_stop_gradient(vkt_graph *g, vkt_tensor x);
/* Reshapes (N, ...) -> (N, product of the rest). */
VKT_API vkt_tensor vkt_flatten(vkt_graph *g, vkt_tensor x);
/* vkt_squeeze removes dimension `axis`, whose size must be 1. vkt_unsqueeze inserts a dimension of size 1, which is
 * dimension `axis` of the result. Both are reshapes. Here and below a negative axis counts from the end: -1 is the last
 * dimension of x, or in vkt_unsqueeze the last dimension of the result. */
VKT_API vkt_tensor vkt_squeeze(vkt_graph *g, vkt_tensor x, int32_t axis);
VKT_API vkt_tensor vkt_unsqueeze(vkt_graph *g, vkt_tensor x, int32_t axis);
/* Returns x, f32 or u32, in the given layout: a copy, or x itself if it has this layout already. */
VKT_API vkt_tensor vkt_to_layout(vkt_graph *g, vkt_tensor x, vkt_layout layout);

/* ---- moving elements ----
 *
 * These ops accept f32 or u32 of any rank; vkt_expand accepts only f32. The results are copies in x's layout, unless
 * the comment of an op says otherwise. A slice of all of x, a padding of zero width, and the concatenation of one
 * tensor return x itself. If dimension 0 of BATCH_LAST tensors is sliced, reversed, padded or joined, each of these
 * tensors is converted to ROWS, and the result is converted back. Each conversion is one more copy. */

/* Permutes dimensions (torch.permute). Dimension k of the result is dimension perm[k] of x: y[i_0, i_1, ..] is the
 * element of x that has the index i_k along dimension perm[k], for every k. perm has an entry for each dimension of x.
 * If x is BATCH_LAST and perm[0] is not 0, the result is ROWS. vkt_transpose exchanges two dimensions. The gradient is
 * permuted back. */
VKT_API vkt_tensor vkt_permute(vkt_graph *g, vkt_tensor x, const uint32_t *perm);
VKT_API vkt_tensor vkt_transpose(vkt_graph *g, vkt_tensor x, int32_t axis0, int32_t axis1);
/* Joins 1 to 12 tensors along `axis` (torch.cat). All other dimensions must be equal. The result has the first tensor's
 * layout. The gradient of a tensor is a slice of dy. */
VKT_API vkt_tensor vkt_concat(vkt_graph *g, const vkt_tensor *xs, uint32_t n, int32_t axis);
/* Selects elements start, start + step, .. before `stop` along `axis` (Python's x[start:stop:step]). A negative start
 * or stop counts from the end. A start or stop beyond an end of the dimension is replaced by that end. VKT_END as
 * `stop` means the end. VKT_E_ARG if no element is selected. The gradient of an element of x that is not selected
 * is 0. */
#define VKT_END INT64_MAX
VKT_API vkt_tensor vkt_slice(vkt_graph *g, vkt_tensor x, int32_t axis, int64_t start, int64_t stop, uint32_t step);
/* Splits x into n slices: parts[i] has sizes[i] elements along `axis` (torch.split with a list). VKT_E_SHAPE: the sum
 * of the sizes is not the size of the dimension. */
VKT_API vkt_result vkt_split_sizes(vkt_graph *g, vkt_tensor x, int32_t axis, const uint32_t *sizes, uint32_t n,
                                   vkt_tensor *parts);
/* Reverses x along `axis`. */
VKT_API vkt_tensor vkt_flip(vkt_graph *g, vkt_tensor x, int32_t axis);
/* Adds before[i] elements of `value` at the beginning of dimension i, and after[i] elements at its end. The arrays have
 * an entry for each dimension of x, in the order of the dimensions. (torch.nn.functional.pad with mode "constant"
 * starts with the last dimension.) The gradient is dy without the added elements. For u32 `value` is a whole number. If
 * `value` is infinite or NaN, a BATCH_LAST x whose N is no multiple of 4 is converted to ROWS and back. */
VKT_API vkt_tensor vkt_pad(vkt_graph *g, vkt_tensor x, const uint32_t *before, const uint32_t *after, float value);
/* Returns a copy of x (f32) that repeats to fill `shape`, in the given layout. Shapes are aligned at the right, and
 * dimensions that are 1 or missing repeat (torch.Tensor.expand makes a view instead). The gradient is summed over the
 * dimensions that repeat. */
VKT_API vkt_tensor vkt_expand(vkt_graph *g, vkt_tensor x, vkt_shape shape, vkt_layout layout);

/* ---- functions of two numbers ----
 *
 * The functions from vkt_add to vkt_pow are elementwise, f32, and broadcast as in NumPy: shapes are aligned at the
 * right, and dimensions that are 1 or missing repeat. A gradient is summed over the dimensions that repeat. The result
 * has the layout of the operand of larger rank, or of `a` if the ranks are equal. */

/* Computes a + b; da = dy, db = dy. */
VKT_API vkt_tensor vkt_add(vkt_graph *g, vkt_tensor a, vkt_tensor b);
/* Computes a - b; da = dy, db = -dy. */
VKT_API vkt_tensor vkt_sub(vkt_graph *g, vkt_tensor a, vkt_tensor b);
/* Computes a b; da = b dy, db = a dy. */
VKT_API vkt_tensor vkt_mul(vkt_graph *g, vkt_tensor a, vkt_tensor b);
/* Computes a / b; da = dy / b, db = -dy a / b^2. */
VKT_API vkt_tensor vkt_div(vkt_graph *g, vkt_tensor a, vkt_tensor b);
/* Compute the smaller or the larger operand, or NaN if an operand is NaN. The operand that is chosen gets the gradient
 * dy, and the other operand gets 0. At a tie each operand gets dy / 2. If an operand is NaN, each operand gets dy. */
VKT_API vkt_tensor vkt_minimum(vkt_graph *g, vkt_tensor a, vkt_tensor b);
VKT_API vkt_tensor vkt_maximum(vkt_graph *g, vkt_tensor a, vkt_tensor b);
/* Computes a^b, as pow of C does. For finite a and b, the result is NaN where a < 0 and b is no integer.
 * da = b a^(b-1) dy, but 0 where b is 0. db = a^b ln(a) dy, but 0 where a is 0 and b >= 0. Where a < 0, db is NaN,
 * because ln(a) is NaN. */
VKT_API vkt_tensor vkt_pow(vkt_graph *g, vkt_tensor a, vkt_tensor b);
/* Selects condition ? a : b; all three broadcast. The condition is u32 and true where it is not 0. So token ids can be
 * the condition: it is false only for tokens with the id 0, the usual id of padding. The condition has no gradient. The
 * result has the layout of the operand with the largest rank. If several operands have this rank, the layout is that of
 * the first of them in the order `a`, `b`, condition. */
VKT_API vkt_tensor vkt_where(vkt_graph *g, vkt_tensor condition, vkt_tensor a, vkt_tensor b);
/* Computes mask ? value : x, where mask (u32) broadcasts to x's shape. */
VKT_API vkt_tensor vkt_masked_fill(vkt_graph *g, vkt_tensor x, vkt_tensor mask, float value);

/* Compute silu(a) b, the gate of a feed-forward layer: y = a b / (1 + e^-a). vkt_swiglu: a and b have the same shape; y
 * has a's layout. vkt_swiglu_packed: x (..,2 F) -> (..,F); a is the first half of a row and b the second. With s = 1 /
 * (1 + e^-a): da = dy b s (1 + a (1 - s)), db = dy a s. One node computes da and db. VKT_E_SHAPE: the shapes differ, or
 * the last dimension of vkt_swiglu_packed's x is odd. (Shazeer, GLU Variants Improve Transformer, 2020.) */
VKT_API vkt_tensor vkt_swiglu(vkt_graph *g, vkt_tensor a, vkt_tensor b);
VKT_API vkt_tensor vkt_swiglu_packed(vkt_graph *g, vkt_tensor x);

/* Compute the sum or the mean of all elements -> scalar. */
VKT_API vkt_tensor vkt_sum(vkt_graph *g, vkt_tensor x);
VKT_API vkt_tensor vkt_mean(vkt_graph *g, vkt_tensor x);

#define VKT_AXIS(i) (1u << (i)) /* dimension i, as part of a mask of axes */
#define VKT_ALL_AXES UINT32_MAX /* all dimensions, whatever the rank */
/* Reduce x over the axes of a mask, for instance VKT_AXIS(0) | VKT_AXIS(2), or VKT_ALL_AXES. With `keepdim` these axes
 * have size 1 in the result, else they are removed. The result is ROWS.
 *   max_over, min_over  If an element is NaN, the result y and dx are NaN. Otherwise dx is dy / m at the m elements
 *                       that equal y, and 0 elsewhere (torch: amax, amin)
 *   var                 sum (x - mean)^2 / (n - correction), where n elements are reduced. A correction of 1 is torch's
 *                       default (unbiased), and 0 is biased. The computed mean has a rounding error. What this error
 *                       adds to the sum is subtracted again. So the relative error of the result is about 1e-6, even
 *                       if the mean is a million times the standard deviation
 * VKT_E_SHAPE: the mask is 0, or has axes that x does not have (but VKT_ALL_AXES is valid for every x); for vkt_var
 * also: n <= correction. */
VKT_API vkt_tensor vkt_sum_over(vkt_graph *g, vkt_tensor x, uint32_t axes, bool keepdim);
VKT_API vkt_tensor vkt_mean_over(vkt_graph *g, vkt_tensor x, uint32_t axes, bool keepdim);
VKT_API vkt_tensor vkt_max_over(vkt_graph *g, vkt_tensor x, uint32_t axes, bool keepdim);
VKT_API vkt_tensor vkt_min_over(vkt_graph *g, vkt_tensor x, uint32_t axes, bool keepdim);
VKT_API vkt_tensor vkt_var(vkt_graph *g, vkt_tensor x, uint32_t axes, uint32_t correction, bool keepdim);

/* Normalise over one axis of x, of any shape and layout. A negative axis counts from the end.
 *   softmax            y = exp(x) / sum exp(x), dx = y (dy - sum dy y)
 *   log_softmax        y = ln(exp(x) / sum exp(x)), dx = dy - exp(y) sum dy
 *   softmax_of_scores  softmax(scale x) over the last axis of x (.., T, S), for attention; scale is above 0. With
 *                      `causal`, query t uses keys 0 .. t only (torch's is_causal), and y is 0 for the other keys
 * A line is the elements of x that differ only in their index along the axis. If a line has a NaN or +inf, or only
 * -inf, all of its results are NaN, as in torch. (With `causal`, only the keys 0 .. t of the line count.)
 *
 * Speed: the fast cases are the last axis of a ROWS x, and each axis of a BATCH_LAST x except the batch. If the axis is
 * the batch, or if `causal` is true, a BATCH_LAST x is converted to ROWS and back.
 * Along the last axis of a ROWS x, each line is contiguous in memory. Along any other axis, the elements of several
 * lines alternate in memory. A slice is the smallest contiguous range that has all elements of such lines. For
 * instance, if x is (N,C,H,W) in ROWS and the axis is C, a slice is one sample, with H * W lines. A slice is too long
 * if each of its lines has more than 75,000 elements, or if the slice has more than 128 MiB. If the slices of a
 * BATCH_LAST x are too long, x is converted to ROWS. If the slices in ROWS are too long, too, vkt_permute moves the
 * axis to the end. In all cases y has the order of axes and the layout of x.
 * Limits: if x is larger than a binding, a binding must hold one slice (with the last axis of ROWS: one line), or up to
 * 64 slices if a slice's size is no multiple of 256 bytes. */
VKT_API vkt_tensor vkt_softmax(vkt_graph *g, vkt_tensor x, int32_t axis);
VKT_API vkt_tensor vkt_log_softmax(vkt_graph *g, vkt_tensor x, int32_t axis);
VKT_API vkt_tensor vkt_softmax_of_scores(vkt_graph *g, vkt_tensor x, float scale, bool causal);

/* The options of attention. A member that is 0 selects torch's default. */
typedef struct vkt_attention_params {
    float scale;       /* factor of the scores, above 0; 0 means 1 / sqrt(D) */
    bool causal;       /* query t uses keys 0 .. t only (torch: is_causal) */
    float dropout;     /* dropout probability of the attention weights; 0: none */
    vkt_tensor mask;   /* f32, added to the scores; null: none. It broadcasts to (..,T,S), as (T,S) or (B,1,T,S) do
                        * (torch: attn_mask). -infinity hides a key; the result of a query with no visible key is NaN */
    uint32_t kv_heads; /* number of heads of k and v, which divides the number of heads of q (torch: enable_gqa).
                        * 0: the number of heads of q */
} vkt_attention_params;
/* Computes scaled dot-product attention (torch.nn.functional.scaled_dot_product_attention):
 *   y = dropout(softmax(scale q k^T + mask)) v:  q (..,T,D), k (..,S,D), v (..,S,E), leading dimensions equal
 *   -> (..,T,E), ROWS (a BATCH_LAST operand is converted first)
 *   The scores are s = scale q k^T + mask, and the weights are w = softmax(s). Without dropout, the gradients are
 *   dv = w^T dy, ds = w * (dy v^T - sum(dy * y)), dq = scale ds k, dk = scale ds^T q. Here * is elementwise, and the
 *   sum is over a row of y. dmask is the sum of ds over the dimensions in which the mask repeats
 * With `kv_heads` = K, q is (..,H,T,D), k (..,K,S,D) and v (..,K,S,E), where K divides H. Head h of q reads head
 * floor(h / (H / K)) of k and v (Ainslie et al., GQA, 2023; K = 1: Shazeer, Fast Transformer Decoding, 2019). dk and dv
 * are sums over the H / K heads of q that read a head, in a fixed order. The heads of k and v are not repeated in
 * memory.
 *
 * If D = E is a multiple of 4 up to 128, and there is neither dropout nor a mask, the weights are computed tile by
 * tile, and again for the gradients. In this case no (..,T,S) tensor exists, so memory grows with T + S (Dao et al.,
 * FlashAttention, 2022). Otherwise the op is composed of vkt_matmul, vkt_softmax_of_scores and other ops, and the
 * weights are stored. p may be NULL. VKT_E_SHAPE: operands that do not fit, or kv_heads that do not divide the heads of
 * q. (Vaswani et al., Attention Is All You Need, 2017, section 3.2.1.)
 *
 * On CPU devices the loops over keys and queries are limited (see Loops at the top of this file). If the loops of every
 * variant of the kernels have more than 60,000 iterations, vkt_program_create returns VKT_E_UNSUPPORTED. For instance,
 * with D = 64 and subgroups of 8 lanes, there may be at most about 93,000 keys. For gradients, there may be at most
 * about 62,000 keys and 47,000 queries. More are allowed with subgroups of 16 lanes, or with a smaller D: without
 * gradients, about 640,000 keys at D = 4. Fewer are allowed if there are more tiles of queries or keys than the device
 * allows work groups (often 65,535), because a work group then computes several tiles. With kv_heads = K, a gradient
 * allows H / K times fewer queries.
 *
 * vkt_attention_packed computes self-attention with `heads` heads of width D: qkv (B, T, 3 * heads * D) ->
 * (B, T, heads * D). With `kv_heads` = K, qkv is (B, T, (heads + 2 K) * D). A row of qkv has all heads of q, then all
 * heads of k, then all heads of v. One linear layer can compute such rows. If the weights are computed tile by tile, a
 * qkv in ROWS is not copied, and the gradient of qkv is one tensor of the same shape. */
VKT_API vkt_tensor vkt_attention(vkt_graph *g, vkt_tensor q, vkt_tensor k, vkt_tensor v, const vkt_attention_params *p);
VKT_API vkt_tensor vkt_attention_packed(vkt_graph *g, vkt_tensor qkv, uint32_t heads, const vkt_attention_params *p);

/* Computes attention over a cache of keys and values. Earlier runs added the keys and values of `past` tokens. For each
 * head, the cache has C rows.
 *   q (..,H,T,D), k and v (..,K,C,D), past u32 (1)  ->  (..,H,T,D), ROWS
 *   y[t] = sum_s w[s] v[s], where w is the softmax of scale q[t] k[s] over the keys s = 0 .. past + t
 * So query t is token number past + t, and sees the tokens up to itself. k and v usually are results of vkt_append,
 * which has put the keys and values of the T new tokens into the rows from `past` on. The rows from past + T on are
 * never used in a sum. If past + t is C or more, query t sees all C keys. The time grows with `past`, not with C. K
 * divides H: see kv_heads of vkt_attention. D is a multiple of 4 up to 128, and T is at most C.
 *
 * A q, k or v in BATCH_LAST is converted first. p may be NULL. The op uses p->scale, and ignores p->causal.
 * p->kv_heads is 0 or K. The op is for generating text: a gradient that would pass through the op is VKT_E_UNSUPPORTED.
 * VKT_E_SHAPE: operands that do not fit. VKT_E_DTYPE: `past` is not u32, or another operand is not f32. VKT_E_ARG: p
 * has dropout or a mask, or a scale that is not above 0. VKT_E_UNSUPPORTED when the program is made: a binding does not
 * hold the keys of a head, or does not hold the queries that read these keys; or the cache is too long for the loops of
 * a CPU device. */
VKT_API vkt_tensor vkt_attention_cached(vkt_graph *g, vkt_tensor q, vkt_tensor k, vkt_tensor v, vkt_tensor past,
                                        const vkt_attention_params *p);

/* How the elements of a head are paired. `dims` is vkt_rope_params.dims. */
typedef enum vkt_rope_order {
    VKT_ROPE_HALVES = 0, /* element i with i + dims / 2 (GPT-NeoX, Hugging Face's models, Qwen in GGUF files) */
    VKT_ROPE_NEIGHBOURS  /* element 2i with 2i + 1 (the paper, GPT-J, Llama's own weights, Llama in GGUF files) */
} vkt_rope_order;
/* The options of rotary position embedding. A member that is 0 selects its default. */
typedef struct vkt_rope_params {
    vkt_rope_order order; /* which elements of a head are a pair */
    uint32_t dims;        /* the first `dims` elements of a head are rotated; even, at most D; 0: D */
    float base;           /* above 0; 0 means 10000 */
    float factor;         /* all frequencies are divided by this number (linear scaling); above 0; 0 means 1 */
    const float *factors; /* frequency j is also divided by factors[j]: dims / 2 numbers above 0, for instance those of
                           * Llama 3.1 (the tensor rope_freqs.weight of GGUF files). NULL: none. Read during the call
                           * only */
    uint32_t heads;       /* x is (B,T,heads D); 0: x is (..,T,D) */
    bool split;           /* with `heads`: the result is (B,heads,T,D), as vkt_attention wants it */
    uint32_t rotated;     /* with `heads`: the first `rotated` heads are rotated, and the other heads are copied (for
                           * instance v in a row of q, k and v); 0: all are rotated */
    uint32_t position;    /* position of token 0 */
    vkt_tensor first;     /* u32 (1), or (B) with one number for each sample; added to `position`. For instance, the
                           * number of tokens that a cache of keys has already. Null: 0 */
} vkt_rope_params;
/* Rotates queries or keys by their positions (Su et al., RoFormer, 2021, section 3.2.2). For token t, pair j of a head,
 * (a,b), becomes (a cos - b sin, b cos + a sin). The angle of cos and sin is
 *   (position + first + t) f_j,  f_j = base^(-2 j / dims) / factor / factors[j]
 *   x (..,T,D), or (B,T,heads D) with heads  ->  the same shape, or (B,heads,T,D) with split; ROWS (a BATCH_LAST x is
 *   converted first)
 * dx is dy, rotated by the negative angle.
 *
 * The op can rotate q and k in the qkv of vkt_attention_packed with H heads and without kv_heads: heads = 3 H,
 * rotated = 2 H, and split is false. With split, the op also puts heads before tokens. So the output (B,T,heads D) of a
 * linear layer needs no vkt_permute before vkt_attention.
 *
 * Precision: f_j is computed in f32, with the same roundings as in PyTorch and in Hugging Face's transformers. The
 * angle is computed modulo 2 pi, in 64-bit fixed point. Up to position 2^20, sine and cosine have an error of one or
 * two units in the last place of 1. A position is a u32 and wraps. For YaRN, pass the divisors of its frequencies as
 * `factors`. YaRN also multiplies sine and cosine by a number m, but this op does not. If dims is D, set
 * vkt_attention_params.scale to m^2 / sqrt(D): this has the same effect on the scores.
 *
 * p may be NULL. A sample must fit a binding. VKT_E_ARG: base or factor is negative or not finite, an element of
 * `factors` is not a finite number above 0, f_j is infinite, `order` is unknown, or more heads are rotated than there
 * are. VKT_E_SHAPE: shapes, heads or dims that do not fit. */
VKT_API vkt_tensor vkt_rope(vkt_graph *g, vkt_tensor x, const vkt_rope_params *p);

#define VKT_NO_PADDING UINT32_MAX /* as the argument `padding` of vkt_embedding: no id is padding */
/* Looks up rows of a table by index (torch.nn.functional.embedding):
 *   ids (..) u32 ROWS of any rank, table (V, ..) f32  ->  y (.., ..) = table[ids], ROWS; zeros where the id is not
 *   below V
 *   dtable[v] = sum of dy over the positions where the id is v. The sum has a fixed order, without atomics, so its bits
 *   are the same in every run. The gradient of row `padding` is 0
 * There are at most 2^21 ids. vkt_embedding_channels: ids (B, ..), table (V, D) -> (B, D, ..) BATCH_LAST, the layout
 * that convolutions read. The op writes this layout directly, because a conversion would cost more than the lookup. */
VKT_API vkt_tensor vkt_embedding(vkt_graph *g, vkt_tensor ids, vkt_tensor table, uint32_t padding);
VKT_API vkt_tensor vkt_embedding_channels(vkt_graph *g, vkt_tensor ids, vkt_tensor table, uint32_t padding);
/* Looks up rows of quantized weights (rows,columns), which have no gradient:
 *   ids (..) u32 ROWS, words u32 (N) as for vkt_linear_quantized  ->  (..,columns), ROWS; zeros where the id is not
 *   below `rows` */
VKT_API vkt_tensor vkt_embedding_quantized(vkt_graph *g, vkt_tensor ids, vkt_tensor words, vkt_quant format,
                                           uint32_t rows, uint32_t columns);
/* Selects slices of x (N, ..) by index: ids (M) u32 -> (M, ..), ROWS (torch.index_select along dimension 0). The op is
 * vkt_embedding with the table x, without padding. */
VKT_API vkt_tensor vkt_index_select(vkt_graph *g, vkt_tensor x, vkt_tensor ids);

/* The options of a hash grid. A member that is 0 selects tiny-cuda-nn's default. */
typedef struct vkt_hash_grid_params {
    uint32_t levels;          /* L, at most VKT_HASH_GRID_MAX_LEVELS; 0 means 16 */
    uint32_t features;        /* F, numbers per entry: 1, 2, 4 or 8; 0 means 2 */
    uint32_t log2_table_size; /* T, 3 to 24: a level has at most 2^T entries; 0 means 19 */
    uint32_t base_resolution; /* N_min, the resolution of the coarsest level; 0 means 16 */
    double per_level_scale;   /* b, at least 1; 0 means 2. With b = (N_max / N_min)^(1 / (L - 1)), the finest level has
                               * the resolution N_max */
} vkt_hash_grid_params;
#define VKT_HASH_GRID_MAX_LEVELS 32 /* largest number of levels of a vkt_hash_grid */
/* One level of a hash grid. A shader with vktrain/vktrain.glsl reads these four words as a uvec4. */
typedef struct vkt_hash_grid_level {
    uint32_t resolution; /* N: grid cells along an axis */
    uint32_t mask;       /* number of entries minus 1 if corners are hashed; 0: each corner has its own entry */
    uint32_t first;      /* index of the level's first entry in the table */
    uint32_t entries;    /* number of entries, a multiple of 8 */
} vkt_hash_grid_level;
/* Returns the shape (E,F) of the table for points of `dims` dimensions, 2 or 3, and sets levels[0 .. L-1]. Returns rank
 * 0 if a parameter is not allowed. `p` and `levels` may be NULL. */
VKT_API vkt_shape vkt_hash_grid_table(const vkt_hash_grid_params *p, uint32_t dims,
                                      vkt_hash_grid_level levels[VKT_HASH_GRID_MAX_LEVELS]);
/* Encodes points with a multiresolution hash grid (Mueller, Evans, Schied & Keller, Instant Neural Graphics Primitives,
 * 2022, section 3). The conventions are those of the paper. The defaults are those of tiny-cuda-nn.
 *   x (B,D), where D is 2 or 3, table (E,F)  ->  (B, L * F), BATCH_LAST (a ROWS x is converted first). x is in [0,1]; a
 *   point outside counts as the nearest point inside. The table has the levels one after the other. The number of
 *   entries of a level is rounded up to a multiple of 8.
 *   y[n, l * F + f] = sum of w(c) * table[first(l) + entry(l, c), f] over the 2^D corners c of x[n]'s cell in grid l
 *   N = floor(N_min b^l) is the number of cells along an axis, at most 2^23. If N_min b^l is less than 1e-9 below an
 *   integer, N is that integer.
 *   u = N x, without an offset (tiny-cuda-nn adds 1/2 and uses N_min b^l - 1 instead of N_min b^l). The cell is
 *   floor(u), at most N - 1, so that x = 1 is the last corner. w(c) is the product over the axes of 1 - |u - c|.
 *   entry(l, c) = c_0 + (N + 1) * (c_1 + (N + 1) * c_2) if the (N + 1)^D corners are no more than 2^T,
 *   else (c_0 xor (2654435761 * c_1) xor (805459861 * c_2)) mod 2^T
 *   dtable[e,f] is the sum of w(c) * dy over the points and corners whose entry is e. Its bits are the same in every
 *   run. On CPU devices each lane adds to a table of its own, in the order of the points. On GPUs, if batch and table
 *   are not too large, lanes add 64-bit fixed-point numbers to one table by integer atomics. The order of additions
 *   does not change a sum of integers.
 *   dx[d] = sum over levels, corners and features of N * dw(c)/du_d * table[..] * dy, where dw(c)/du_d is the
 *   derivative inside the cell floor(u). dx[d] is 0 if x is outside along axis d.
 * p may be NULL. */
VKT_API vkt_tensor vkt_hash_grid(vkt_graph *g, vkt_tensor x, vkt_tensor table, const vkt_hash_grid_params *p);

/* The options of vkt_latent_grid. */
typedef struct vkt_latent_grid_params {
    uint32_t tile[2]; /* number of rows and of columns of the tile, in texels. The number of columns is a multiple of
                       * 4 */
    uint32_t scale;   /* s: a cell of the grid covers s x s texels; 0 means 1 */
    bool corners;     /* return the four cells around a texel instead of their weighted mean */
} vkt_latent_grid_params;
/* Reads latents from a two-dimensional grid, for the texels of a rectangular tile. The grid has H x W cells, with F
 * latents each. The grid covers an image of s H x s W texels. The tile is a part of this image, and starts at the texel
 * (row, column) that `origin` holds:
 *   grid (F,H,W), origin (1,2) u32  ->  (B,F), or (B,4F) with corners, BATCH_LAST. B = rows * columns of the tile.
 *   Texel (i,j) of the tile is sample n = i * columns + j of the batch
 *   Along an axis, the centre of cell c is at c, and the centre of texel k of the image is at (k + 1/2) / s - 1/2. So
 *   the edges of grid and image match, as in vkt_upsample2d without align_corners and in a texture sampler. Let v be
 *   the position of a texel along the height, and u its position along the width. The cells around u are floor(u) and
 *   floor(u) + 1, and the cells around v are floor(v) and floor(v) + 1. The nearest cell inside replaces a cell outside
 *   the grid. A tile that would reach beyond the s H x s W texels is moved inside.
 *   mean: y[n,f] = sum of (1 - |v - c_v|) (1 - |u - c_u|) grid[f, c_v, c_u] over the four cells (c_v, c_u)
 *   corners: y[n, 4f + 2a + b] = grid[f, floor(v) + a, floor(u) + b] with a, b = 0 or 1. A network interpolates
 *   between these four cells (Vaidyanathan et al., Random-Access Neural Compression of Material Textures, 2023,
 *   section 4)
 * With s = 1 the mean is the texel itself, so the op also reads a tile of an image (C,H,W). The gradient of a cell is a
 * sum over the texels of the tile that read the cell, in a fixed order, without atomics. A cell that no texel reads
 * has a gradient of 0. `origin` has no gradient. VKT_E_ARG: the tile has no texel (also if p is NULL), has more than
 * 2^24 texels or is larger than the image; its number of columns is no multiple of 4; s H or s W is above 2^24.
 *
 * Limits: a binding must hold one feature of the grid, and a binding must hold one feature of all texels (with corners:
 * four). On CPU devices s is at most about 200 (with corners: 100) if tiles are large, because one invocation sums the
 * gradient of a cell. With more than 16 features, this limit is lower. */
VKT_API vkt_tensor vkt_latent_grid(vkt_graph *g, vkt_tensor grid, vkt_tensor origin, const vkt_latent_grid_params *p);
/* Encodes points with sines and cosines of rising frequencies, as NeRF does (Mildenhall et al. 2020, equation 4):
 *   y[n, 2 * (d * K + k)] = sin(2^k pi x[n,d]), y[n, 2 * (d * K + k) + 1] = cos(2^k pi x[n,d])    k = 0 .. K - 1
 *   x (B,D) -> (B, 2 * D * K), BATCH_LAST (a ROWS x is converted first). K = `frequencies`, 1 to 32; 0 means 10
 *   dx[n,d] = sum over k of 2^k pi (cos(2^k pi x[n,d]) dy_sin - sin(2^k pi x[n,d]) dy_cos)
 * The result is accurate to one or two units in the last place, also for a large x, because 2^k x is reduced to one
 * period exactly. A binding must hold the encoding of one coordinate of all points: 8 * K * B bytes. For instance,
 * 10,000,000 points at 10 frequencies need 800 MB, but lavapipe binds 128 MiB. Split so many points into several
 * batches. */
VKT_API vkt_tensor vkt_frequency(vkt_graph *g, vkt_tensor x, uint32_t frequencies);

/* The reduction of a loss to a scalar. A loss counts only the real rows of the batch: the first vkt_run.rows indices of
 * dimension 0 (graph.h). Later rows have a gradient of 0. Names and defaults are those of torch.nn.functional. */
typedef enum vkt_loss_reduction {
    VKT_LOSS_MEAN = 0,  /* the mean over the elements that count */
    VKT_LOSS_SUM,       /* the sum over the elements that count */
    VKT_LOSS_BATCHMEAN, /* the sum divided by the number of real rows */
    VKT_LOSS_NONE       /* no reduction. The result of a loss of elements (for instance vkt_mse_loss) has the shape and
                         * layout of the first operand. The result of a loss of labels (for instance vkt_cross_entropy)
                         * has the shape of the labels, ROWS. The losses of rows after the real rows are 0 */
} vkt_loss_reduction;

/* Computes the mean cross-entropy, in nats, of integer labels:
 *   z (B,K) f32 logits, t (B) u32 in [0,K)  ->  scalar  1/rows sum_b -log(softmax(z[b])[t[b]])
 *   dz[b,k] = dloss (softmax(z[b])[k] - (k == t[b])) / rows
 * Here `rows` is the number of real rows. A label that is no class makes the loss NaN.
 *
 * Limits of the losses of labels, of vkt_argmax and of vkt_count_correct: a binding must hold one row of z, or up to 64
 * rows if z is larger than a binding and rows do not start at multiples of 256 bytes. A row of 2^25 classes fits on
 * every device. On CPU devices with subgroups of 8 lanes, there may be at most 10 million classes, because a work group
 * loops over a row. (vkt_nll_loss has no such limit, because it reads one number of each row.) A BATCH_LAST z of more
 * than 100,000 classes, or of more than 128 MiB, is converted to ROWS, and dz is converted back. */
VKT_API vkt_tensor vkt_softmax_cross_entropy(vkt_graph *g, vkt_tensor z, vkt_tensor t);

/* The default of ignore_index in the params of the losses below: labels of this value do not count. Labels are u32, so
 * such a label is (uint32_t)VKT_IGNORE_INDEX. vkt_softmax_cross_entropy ignores no label. */
#define VKT_IGNORE_INDEX (-100)
typedef struct vkt_cross_entropy_params {
    vkt_tensor weight;            /* (K) f32, one weight for each class; null: all are 1 */
    bool has_ignore_index;        /* use ignore_index instead of VKT_IGNORE_INDEX */
    int32_t ignore_index;         /* with has_ignore_index: labels of this value do not count */
    float label_smoothing;        /* in [0,1]; 0: none */
    vkt_loss_reduction reduction; /* VKT_LOSS_MEAN, VKT_LOSS_SUM or VKT_LOSS_NONE */
    bool classes_second;          /* true: dimension 1 of the first operand is the classes, as in torch. false: the last
                                   * dimension is the classes */
} vkt_cross_entropy_params;
/* Computes cross-entropy with options; p may be NULL. The operands are one of:
 *   z (B,K), t (B)            one label per sample
 *   z (B,T,K), t (B,T)        several labels per sample, for instance the tokens of a text
 *   z (N,K,d..), t (N,d..)    with classes_second: a label for each pixel of an image; z is copied to (N,d..,K)
 *
 * With w = weight, s = label_smoothing, P = softmax(z[b]), c = t[b], and sums over the labels b that count:
 *   loss = -sum_b ((1-s) w[c] log P[c] + s/K sum_k w[k] log P[k]) / norm
 *   norm = sum_b w[c] for the mean, and 1 for the sum
 *   dz[b,k] = dloss ((P[k] - (k == c)) (1-s) w[c] + s/K (P[k] sum_j w[j] - w[k])) / norm
 *
 * If no label counts, the mean is NaN and its gradient is 0. A label that is neither a class nor the ignored value
 * makes the loss NaN. With VKT_LOSS_NONE the result is the loss of each label, with norm 1, in t's shape, ROWS. The
 * losses of labels that do not count, and of labels after the real rows, are 0. `weight` has no gradient: if it depends
 * on a parameter, vkt_backward returns VKT_E_UNSUPPORTED. */
VKT_API vkt_tensor vkt_cross_entropy(vkt_graph *g, vkt_tensor z, vkt_tensor t, const vkt_cross_entropy_params *p);
typedef struct vkt_linear_cross_entropy_params {
    bool has_ignore_index; /* use ignore_index instead of VKT_IGNORE_INDEX */
    int32_t ignore_index;  /* with has_ignore_index: labels of this value, as u32, do not count */
    bool sum;              /* true: the sum of the losses of the labels that count. false: their mean */
    vkt_tensor *count;     /* gets a scalar f32: the number of labels that count. NULL: not wanted */
} vkt_linear_cross_entropy_params;
/* Computes the cross-entropy, in nats, of labels whose logits are a linear layer of x, for instance the next tokens of
 * a language model with a large vocabulary V:
 *   x (..,D) f32, w (V,D) f32, labels (..) u32  ->  scalar
 *   loss = 1/norm sum over the labels that count of -log softmax(x[r] w^T)[labels[r]]
 *   norm = the number of labels that count; with `sum`: 1
 * D is a multiple of 4; p may be NULL. The rules are those of vkt_cross_entropy after vkt_linear. Rows after the real
 * rows do not count, and neither do ignored labels. A label that is neither a class nor ignored makes the loss NaN. If
 * no label counts, the mean is NaN and its gradient is 0.
 *
 * Each run makes a list of the rows whose labels count. The list is divided into slices, which are computed one after
 * the other. All slices use the same memory for their logits: at most 64 MiB. If few labels count, the last slices have
 * no rows. Slices without rows are not computed, but the first two runs may compute all slices to measure their times
 * (vkt_program_run). After vkt_backward, dx and dw are computed with the loss, from the same logits. In three cases the
 * logits are computed again for dx and dw: if the loss is only a part of the loss that vkt_backward gets, if
 * vkt_gradients computes dx and dw, and if the graph was created with VKT_NO_FUSE=1 in the environment. For the mean
 * loss of several batches, set `sum`, add up the losses, and divide by the sum of the `count` values. VKT_E_SHAPE:
 * operands that do not fit. VKT_E_DTYPE: other types. VKT_E_UNSUPPORTED when the program is made: the V logits of a row
 * have more than 64 MiB, or a row of x or w has more than 32 MiB; or there are more labels than a loop of a CPU device
 * can visit (with subgroups of 8 lanes: about 1.6 million).
 *
 * vkt_linear_cross_entropy_quantized: `words` has the bytes of quantized weights (outputs,D), as for
 * vkt_linear_quantized, and outputs = V. The weights have no gradient. Either a product unpacks the weights as it reads
 * them, or a dispatch unpacks them in parts, each of at most 32 MiB after unpacking. VKT_E_ARG: an unknown format. */
VKT_API vkt_tensor vkt_linear_cross_entropy(vkt_graph *g, vkt_tensor x, vkt_tensor w, vkt_tensor labels,
                                            const vkt_linear_cross_entropy_params *p);
VKT_API vkt_tensor vkt_linear_cross_entropy_quantized(vkt_graph *g, vkt_tensor x, vkt_tensor words, vkt_quant format,
                                                      uint32_t outputs, vkt_tensor labels,
                                                      const vkt_linear_cross_entropy_params *p);
/* Computes vkt_cross_entropy from log-probabilities y instead of logits. p must not have label_smoothing. c = t[b]:
 *   loss = -sum_b w[c] y[b,c] / norm,  dy[b,k] = -dloss w[k] (k == c) / norm */
VKT_API vkt_tensor vkt_nll_loss(vkt_graph *g, vkt_tensor y, vkt_tensor t, const vkt_cross_entropy_params *p);

/* Compute losses of y and a target of the same shape (B, ..), element by element; d = y - target:
 *   mse         d^2                                           dy = 2 d
 *   l1          |d|                                           dy = sign(d), 0 at 0
 *   smooth_l1   |d| < beta ? d^2 / (2 beta) : |d| - beta/2    dy = |d| < beta ? d / beta : sign(d)
 *   huber       |d| < delta ? d^2/2 : delta (|d| - delta/2)   dy = |d| < delta ? d : delta sign(d)
 * dy is also multiplied by dloss, and divided by the divisor of the reduction. The target's gradient is -dy. beta and
 * delta are positive (torch: 1). The losses from vkt_binary_cross_entropy to vkt_relative_l2_loss below give their
 * targets and weights no gradient: if one of these depends on a parameter, vkt_backward returns VKT_E_UNSUPPORTED
 * (vkt_stop_gradient). */
VKT_API vkt_tensor vkt_mse_loss(vkt_graph *g, vkt_tensor y, vkt_tensor target, vkt_loss_reduction reduction);
VKT_API vkt_tensor vkt_l1_loss(vkt_graph *g, vkt_tensor y, vkt_tensor target, vkt_loss_reduction reduction);
VKT_API vkt_tensor vkt_smooth_l1_loss(vkt_graph *g, vkt_tensor y, vkt_tensor target, float beta,
                                      vkt_loss_reduction reduction);
VKT_API vkt_tensor vkt_huber_loss(vkt_graph *g, vkt_tensor y, vkt_tensor target, float delta,
                                  vkt_loss_reduction reduction);
/* Computes vkt_mse_loss with the mean. vkt_backward fuses network, loss and gradients into one node under these
 * conditions:
 *   - The result is itself the loss that vkt_backward gets, not a part of it.
 *   - y comes from vkt_mlp, or from a chain of vkt_linear of at most 128 features, with vkt_relu between them. (Of a
 *     chain of more than four vkt_linear, only the last four are fused.)
 *   - y and the values between the fused ops are BATCH_LAST, are not kept, and have no other reader.
 *   - The input of the fused ops is BATCH_LAST. This input and the target have at most 128 MiB each.
 *   - The target depends on no parameter that is trained.
 * After that, the target has no gradient: vkt_gradients of such a loss returns VKT_E_UNSUPPORTED if it needs one. Call
 * vkt_gradients before vkt_backward, or switch the fusion off.
 * The variable VKT_NO_FUSE=1 in the environment switches the fusion off for a graph that is created afterwards. */
VKT_API vkt_tensor vkt_mse(vkt_graph *g, vkt_tensor y, vkt_tensor target);
/* Computes -t log y - (1-t) log(1-y) for probabilities y and a target t. Logarithms below -100 become -100, as in
 * torch, and so does log y of a subnormal y. dy = (y - t) / max(y (1-y), 1e-12). A y outside [0,1] gives NaN. */
VKT_API vkt_tensor vkt_binary_cross_entropy(vkt_graph *g, vkt_tensor y, vkt_tensor target,
                                            vkt_loss_reduction reduction);
/* Computes vkt_binary_cross_entropy of sigmoid(z), without overflow or loss of digits:
 *   p t log(1 + e^-z) + (1-t) log(1 + e^z),  dz = (1-t) sigmoid(z) - p t sigmoid(-z)
 * p is pos_weight (null: 1), which broadcasts to the shape of one sample of z. */
VKT_API vkt_tensor vkt_binary_cross_entropy_with_logits(vkt_graph *g, vkt_tensor z, vkt_tensor target,
                                                        vkt_tensor pos_weight, vkt_loss_reduction reduction);
/* Computes the Kullback-Leibler divergence of a target t from log-probabilities y: t (log t - y), where 0 log 0 is 0,
 * and dy = -t. With log_target, t is a logarithm, too: the loss is e^t (t - y), and dy = -e^t. VKT_LOSS_BATCHMEAN is
 * the mean of the divergences of the rows. */
VKT_API vkt_tensor vkt_kl_div(vkt_graph *g, vkt_tensor y, vkt_tensor target, bool log_target,
                              vkt_loss_reduction reduction);
/* Computes the squared error relative to y^2. It is for targets of high dynamic range, for instance noisy radiance:
 *   (y - target)^2 / (y^2 + epsilon),  dy = 2 (y - target) / (y^2 + epsilon)
 * The gradient treats the divisor as a constant. The true derivative is deliberately not used: with it, a larger y
 * could reduce the loss. An epsilon of 0 means 0.01. (tiny-cuda-nn's documentation of RelativeL2; Lehtinen et al.,
 * Noise2Noise, 2018, section 3.3.) */
VKT_API vkt_tensor vkt_relative_l2_loss(vkt_graph *g, vkt_tensor y, vkt_tensor target, float epsilon,
                                        vkt_loss_reduction reduction);

/* Computes the index of the largest element of each row: z (B,K) -> (B) u32 ROWS. If several elements are largest, the
 * result is the first of their indices. NaN counts as larger than any number. */
VKT_API vkt_tensor vkt_argmax(vkt_graph *g, vkt_tensor z);
/* Computes the index of the largest element along one axis of x, of any shape -> u32 ROWS. Ties and NaN are as in
 * vkt_argmax. With `keepdim` the axis has size 1 in the result, else it is removed. A negative axis counts from the
 * end. The last axis takes the least time, because any other axis is first moved to the end by a copy. */
VKT_API vkt_tensor vkt_argmax_over(vkt_graph *g, vkt_tensor x, int32_t axis, bool keepdim);
/* Counts the real rows b with argmax(z[b]) == t[b] -> scalar f32 (exact below 2^24 rows). */
VKT_API vkt_tensor vkt_count_correct(vkt_graph *g, vkt_tensor z, vkt_tensor t);

/* Gather samples from a table. In the formula, `first` is vkt_run.first. `rows` is the number of real rows (graph.h):
 *   out[b] = scale[c] table[order[first + b]] + shift[c] for channel c if b < rows, else 0
 *   table (M, pitch) u8 or f16, or (M, elements) f32, order (n) u32  ->  (batch, C, H, W) or (batch, F) f32, BATCH_LAST
 *   `elements` is the number of elements of a sample, and `pitch` is this number rounded up to a multiple of 4.
 *   `sample` is (C,H,W) with at most 16 channels, or (F), which counts as one channel. scale and shift have a number
 *   for each channel. A NULL scale means 1, a NULL shift means 0.
 * vkt_gather_labels gathers one number for each sample: table (M) u32 -> (batch) u32, 0 for b >= rows.
 * vkt_gather_ids gathers integers: table (M, length) u32 -> (batch, length) u32, ROWS, 0 for b >= rows. If `packed`,
 * the table is (M, length / 2 rounded up) u32. Each word has two 16-bit integers, the first in the lower 16 bits. */
VKT_API vkt_tensor vkt_gather_rows(vkt_graph *g, vkt_tensor table, vkt_tensor order, uint32_t batch, vkt_shape sample,
                                   const double *scale, const double *shift);
VKT_API vkt_tensor vkt_gather_labels(vkt_graph *g, vkt_tensor table, vkt_tensor order, uint32_t batch);
VKT_API vkt_tensor vkt_gather_ids(vkt_graph *g, vkt_tensor table, vkt_tensor order, uint32_t batch, uint32_t length,
                                  bool packed);

/* Copies the scalars `loss` and `correct` (null: 0) to the program's metrics ring: see vkt_program_metrics. Call
 * vkt_report after vkt_update. If it is called before vkt_update, two things in the metrics are wrong: grad_norm is 0;
 * and a step that the run skips (vkt_loss_scale) counts in `t` as completed, and does not count in `skipped`. */
VKT_API void vkt_report(vkt_graph *g, vkt_tensor loss, vkt_tensor correct);

/* Converts a tensor of f16, for instance an array of an application (vkt_external), to f32, exactly. (A device that
 * flushes subnormal numbers of f16 may read them as zero.) f16 has no gradient. */
VKT_API vkt_tensor vkt_to_f32(vkt_graph *g, vkt_tensor x);

/* Copies x, f32 or u32 in any layout, into an array, in row-major order. `external` is made by vkt_external with x's
 * shape and x's type. If x is f32, the type may also be f16: numbers are rounded to nearest, ties to even, and
 * magnitudes from 65520 on become infinity. Every run of a program does the copy, even if no op reads x. When the run
 * is done, later submissions can read the array. The copy has no gradient. A graph may write an array only once, and
 * may not read it, so that no result depends on the order of a read and a write. VKT_E_STATE: another op uses
 * `external`, or a program binds the same array, or overlapping memory, to another external. VKT_E_ARG: `external` was
 * not made by vkt_external. */
VKT_API void vkt_write(vkt_graph *g, vkt_tensor x, vkt_tensor external);
/* Copies rows into an array, for instance new keys into a cache. `first`, the index of the first row to write, is a
 * number on the device:
 *   x (..,T,D) f32, cache (..,C,D) f32 made by vkt_external, first u32 (1)
 *   cache[..,first + t,:] = x[..,t,:]. Rows from C on are left out. All other rows stay as they are
 * D is a multiple of 4, and T is at most C. Returns the cache with the new rows. Later ops of the graph may read this
 * value, but must not read `cache` itself, and the graph must write `cache` only once. The other rules are those of
 * vkt_write: every run does the copy, and no other external may have the same memory. A gradient that would pass
 * through this op is VKT_E_UNSUPPORTED. VKT_E_SHAPE, VKT_E_DTYPE: operands that do not fit. */
VKT_API vkt_tensor vkt_append(vkt_graph *g, vkt_tensor x, vkt_tensor cache, vkt_tensor first);

#ifdef __cplusplus
}
#endif
#endif
