/* vktrain/ops.h - the ops: the formula of each, its input and output shapes, its gradient.
 *
 * An op appends a node to the graph and returns its value. Errors are sticky, as graph.h says.
 *
 * Limits: memory, and two limits of devices. If a tensor exceeds these, the op returns VKT_E_UNSUPPORTED, with numbers,
 * when a program is made.
 *   Bindings. A binding holds 128 MiB on every device, up to 4 GiB on some. Kernels read larger tensors range by
 *   range; ranges start at multiples of 256 bytes. So a binding has to hold:
 *     convolutions, batch norms, upsampling   one channel with all samples
 *     softmax, losses                         one row, or 64 rows if a row has an odd number of elements
 *     sums, maxima, broadcasting              over some dimensions: one slice of the slowest one, or up to 64 slices if
 *                                             they do not start at such multiples
 *     layer, group, RMS norm, layouts         up to four samples
 *     products                                a few rows
 *   Other ops have no such limit.
 *   Loops. Mesa before 23 silently ends all loops of an invocation after 65,535 iterations. Sums are split so that this
 *   does not matter; ops that do not split them state their limit.
 *
 * Letters: B or N batch, C channels, H x W height and width, O output channels, R x S kernel, P x Q output height and
 * width, M N K sizes of a matrix product. dx is the gradient of the loss with respect to x. */
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
 *   dimensions and not in others is copied, for instance (B,1,M,K) by (B,H,K,N). ROWS in, ROWS out.
 *   dA = dC op(B)^T, dB = op(A)^T dC, transposed as their operands are, summed where they repeat. True fp32. */
VKT_API vkt_tensor vkt_matmul(vkt_graph *g, vkt_tensor a, vkt_tensor b, bool trans_a, bool trans_b);

/* Applies a linear layer: y[b,o] = sum_i x[b,i] w[o,i] + bias[o]: x (B,I), w (O,I), bias (O) or null -> (B,O), in x's
 * layout. An x of more dimensions, (..,I), counts as a matrix with rows of I numbers: -> (..,O), ROWS (a BATCH_LAST x
 * is converted first). */
VKT_API vkt_tensor vkt_linear(vkt_graph *g, vkt_tensor x, vkt_tensor w, vkt_tensor bias);

/* One layer of vkt_mlp. */
typedef struct vkt_mlp_layer {
    vkt_tensor weight; /* (O,I) */
    vkt_tensor bias;   /* (O), or null */
} vkt_mlp_layer;
#define VKT_MLP_MAX_LAYERS 4  /* most layers of vkt_mlp */
#define VKT_MLP_MAX_WIDTH 128 /* largest width of vkt_mlp's input and layers */
/* Applies a fully connected network in one dispatch; its gradient is one dispatch too. Layer by layer h = relu(h
 * weight^T + bias), the last layer without relu. x (B,I) -> (B,O of the last layer), BATCH_LAST (an x in ROWS is
 * converted first). The same result as alternating vkt_linear and vkt_relu. No width may exceed VKT_MLP_MAX_WIDTH. */
VKT_API vkt_tensor vkt_mlp(vkt_graph *g, vkt_tensor x, const vkt_mlp_layer *layers, uint32_t n_layers);

/* The options of a convolution. Zero is torch's default. */
typedef struct vkt_conv2d_params {
    uint32_t stride[2];   /* along H and W; 0: 1 */
    uint32_t pad[2];      /* zeros on both sides */
    uint32_t dilation[2]; /* 0: 1 */
    uint32_t groups;      /* 0: 1 */
} vkt_conv2d_params;
/* Convolves: cross-correlation, as torch's conv2d.
 *   y[n,o,p,q] = bias[o] + sum_{c,r,s} x[n, g C/G + c, p stride - pad + r dil, q stride - pad + s dil] w[o,c,r,s]
 *   x (N,C,H,W), w (O,C/groups,R,S), bias (O) or null -> (N,O,P,Q), BATCH_LAST (a ROWS input is converted first)
 *   P = floor((H + 2 pad - dil (R-1) - 1) / stride) + 1, and Q likewise. p may be NULL.
 * R S is at most 19,999: one invocation loops over the taps, and Mesa before 23 silently ends loops after 65,535
 * iterations. One channel of x, and one of y, with all samples, must fit into a binding (128 MiB on every device). */
VKT_API vkt_tensor vkt_conv2d(vkt_graph *g, vkt_tensor x, vkt_tensor w, vkt_tensor bias, const vkt_conv2d_params *p);

/* The options of a 1d convolution. Zero is torch's default. */
typedef struct vkt_conv1d_params {
    uint32_t stride;   /* 0: 1 */
    uint32_t pad;      /* zeros on both sides */
    uint32_t dilation; /* 0: 1 */
    uint32_t groups;   /* 0: 1 */
} vkt_conv1d_params;
/* Convolves sequences: x (N,C,L), w (O,C/groups,K), bias (O) or null -> (N,O,Q). It is vkt_conv2d over images of height
 * 1; messages say so. */
VKT_API vkt_tensor vkt_conv1d(vkt_graph *g, vkt_tensor x, vkt_tensor w, vkt_tensor bias, const vkt_conv1d_params *p);

/* The options of a transposed convolution. Zero is torch's default. */
typedef struct vkt_conv_transpose2d_params {
    uint32_t stride[2];     /* along H and W; 0: 1 */
    uint32_t pad[2];        /* number of rows and columns removed from y on both sides */
    uint32_t dilation[2];   /* 0: 1 */
    uint32_t groups;        /* 0: 1 */
    uint32_t output_pad[2]; /* added to y's size at the end, because a strided convolution maps several sizes to one */
} vkt_conv_transpose2d_params;
/* Convolves, transposed: the gradient of vkt_conv2d with respect to its input (torch: conv_transpose2d).
 *   y[n,o,p,q] = bias[o] + sum of x[n,c,h,w] w[c,o,r,s] over all (c,h,w,r,s) with p = h stride - pad + r dil, q alike
 *   x (N,C,H,W), w (C,O/groups,R,S), bias (O) or null -> (N,O,P,Q), BATCH_LAST (a ROWS input is converted first)
 *   P = (H-1) stride - 2 pad + dil (R-1) + output_pad + 1, and Q likewise. output_pad is below stride or dilation.
 * `1d`: x (N,C,L), w (C,O/groups,K) -> (N,O,Q). p may be NULL.
 *   source: Dumoulin & Visin, A guide to convolution arithmetic for deep learning (2016), chapter 4 */
VKT_API vkt_tensor vkt_conv_transpose2d(vkt_graph *g, vkt_tensor x, vkt_tensor w, vkt_tensor bias,
                                        const vkt_conv_transpose2d_params *p);
typedef struct vkt_conv_transpose1d_params {
    uint32_t stride, pad, dilation, groups, output_pad; /* as vkt_conv_transpose2d_params' */
} vkt_conv_transpose1d_params;
VKT_API vkt_tensor vkt_conv_transpose1d(vkt_graph *g, vkt_tensor x, vkt_tensor w, vkt_tensor bias,
                                        const vkt_conv_transpose1d_params *p);

/* The options of pooling. Zero is torch's default, except for the kernel. */
typedef struct vkt_pool2d_params {
    uint32_t kernel[2];   /* R, S */
    uint32_t stride[2];   /* 0: the kernel */
    uint32_t pad[2];      /* at most half the kernel */
    uint32_t dilation[2]; /* maximum: distance between neighbouring elements of a window; 0: 1 */
    bool ceil_mode;       /* a window that begins inside image or padding counts, even if it ends outside */
    bool exclude_pad;     /* average: divide by the real elements only (torch: count_include_pad = False) */
} vkt_pool2d_params;
/* Compute the maximum or average of R x S windows: x (N,C,H,W), BATCH_LAST. The rules are torch's: padding never wins a
 * maximum, the first maximum wins a tie, NaN propagates. An average divides by R S (in ceil mode by the part of the
 * window within the padded image). With dilation d a window spans d (R - 1) + 1 rows. A maximum over padding alone is
 * -inf, and no element gets its gradient.
 *
 * Fusion: vkt_backward fuses relu and maximum to one node if x is relu's output, is not kept and has no other reader.
 * It also fuses a convolution before them if an element has at most 40 products and the windows neither overlap nor
 * reach into padding (for few and odd channels, as in a first layer). This saves two or three dispatches, with the same
 * bits. Exception: a program of 16 bits does not round in between; if rounding makes two maxima equal, it may choose
 * the other one. VKT_NO_FUSE=1, when the graph is created, switches this off.
 *
 * Limits: a binding (128 MiB on every device) must hold, for all samples, the rows of x that one window spans. For
 * windows of more than 50,000 elements, which several invocations share, it must hold one row. Invocations cannot share
 * a dilated window: R (S + 1) is at most 49,998 there, because Mesa before 23 silently ends loops after 65,535
 * iterations. At most 50,000 windows may cover an element, because one invocation sums its gradient; a dilated window
 * also covers the elements between its own. A maximum needs fewer than 1,065,353,216 pixels, because of its index. */
VKT_API vkt_tensor vkt_max_pool2d(vkt_graph *g, vkt_tensor x, const vkt_pool2d_params *p);
VKT_API vkt_tensor vkt_avg_pool2d(vkt_graph *g, vkt_tensor x, const vkt_pool2d_params *p);
/* Pool to a given size. Window i of n is [floor(i in/n), ceil((i+1) in/n)); windows may overlap. x (N,C,H,W) ->
 * (N,C,out_h,out_w). Along an axis (in + 1) (n + 1) must be below 2^31, because kernels count in 32 bits. */
VKT_API vkt_tensor vkt_adaptive_max_pool2d(vkt_graph *g, vkt_tensor x, uint32_t out_h, uint32_t out_w);
VKT_API vkt_tensor vkt_adaptive_avg_pool2d(vkt_graph *g, vkt_tensor x, uint32_t out_h, uint32_t out_w);

/* The options of 1d pooling. Zero is torch's default, except for the kernel. */
typedef struct vkt_pool1d_params {
    uint32_t kernel;   /* elements of a window */
    uint32_t stride;   /* 0: the kernel */
    uint32_t pad;      /* at most half the kernel */
    uint32_t dilation; /* maximum: see vkt_pool2d_params; 0: 1 */
    bool ceil_mode;    /* see vkt_pool2d_params */
    bool exclude_pad;  /* average: see vkt_pool2d_params */
} vkt_pool1d_params;
/* Pool sequences in the same way: x (N,C,L) -> (N,C,Q). */
VKT_API vkt_tensor vkt_max_pool1d(vkt_graph *g, vkt_tensor x, const vkt_pool1d_params *p);
VKT_API vkt_tensor vkt_avg_pool1d(vkt_graph *g, vkt_tensor x, const vkt_pool1d_params *p);
VKT_API vkt_tensor vkt_adaptive_max_pool1d(vkt_graph *g, vkt_tensor x, uint32_t out);
VKT_API vkt_tensor vkt_adaptive_avg_pool1d(vkt_graph *g, vkt_tensor x, uint32_t out);
/* Pool over a whole image or sequence: x (N,C,H,W) or (N,C,L) -> (N,C), as Keras' GlobalMaxPooling and
 * GlobalAveragePooling (torch: an adaptive pool to 1, then flatten). */
VKT_API vkt_tensor vkt_global_max_pool(vkt_graph *g, vkt_tensor x);
VKT_API vkt_tensor vkt_global_avg_pool(vkt_graph *g, vkt_tensor x);

/* The formula of vkt_upsample2d. */
typedef enum vkt_upsample_mode {
    VKT_UPSAMPLE_NEAREST = 0, /* copies one pixel */
    VKT_UPSAMPLE_BILINEAR     /* weighted mean of four pixels */
} vkt_upsample_mode;
/* The options of upsampling: either size or scale, for both dimensions. */
typedef struct vkt_upsample2d_params {
    uint32_t size[2];       /* P, Q, at most 32767; 0: by scale */
    uint32_t scale[2];      /* P = scale H, Q = scale W */
    vkt_upsample_mode mode; /* the formula */
    bool align_corners;     /* bilinear: corner pixels map to corner pixels; else edges to edges */
} vkt_upsample2d_params;
/* Resizes images to a larger or smaller size, without a filter against aliasing (torch.nn.functional.interpolate).
 *   nearest: y[n,c,p,q] = x[n, c, floor(p H/P), floor(q W/Q)], H/P rounded to f32 first, as torch does
 *   bilinear: interpolates by distance between the pixels around ((p + 1/2) H/P - 1/2, ..), or with align_corners
 *   around (p (H-1)/(P-1), ..)
 * x (N,C,H,W) -> (N,C,P,Q), BATCH_LAST (a ROWS input is converted first). dx gathers, so its bits are always the same.
 * One invocation sums the gradient of a pixel of x: unless x is a single pixel, at most 50,000 pixels of y may depend
 * on it. */
VKT_API vkt_tensor vkt_upsample2d(vkt_graph *g, vkt_tensor x, const vkt_upsample2d_params *p);

/* ---- functions of one number: any shape and layout, f32. NaN propagates. ---- */

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
/* Computes x P(x), where P is the distribution function of a standard normal variable: x (1 + erf(x / sqrt 2)) / 2. The
 * tails are accurate to all digits. `gelu_tanh` is x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 (torch:
 * approximate="tanh"); it differs from gelu by some 5e-4. Hendrycks & Gimpel, arXiv 1606.08415. */
VKT_API vkt_tensor vkt_gelu(vkt_graph *g, vkt_tensor x);
VKT_API vkt_tensor vkt_gelu_tanh(vkt_graph *g, vkt_tensor x);
/* Computes x / (1 + e^-x), also called swish. */
VKT_API vkt_tensor vkt_silu(vkt_graph *g, vkt_tensor x);
/* Computes x min(max(x + 3, 0), 6) / 6; dx = 0 for x <= -3, dy for x >= 3, (x / 3 + 1 / 2) dy between, as in PyTorch
 * 2.15 (1.13 gave -dy / 2 and 3 dy / 2 at the bounds). Howard et al., arXiv 1905.02244. */
VKT_API vkt_tensor vkt_hardswish(vkt_graph *g, vkt_tensor x);
/* Computes 1 / (1 + e^-x); dx = y (1 - y) dy. */
VKT_API vkt_tensor vkt_sigmoid(vkt_graph *g, vkt_tensor x);
/* Computes the hyperbolic tangent; dx = (1 - y^2) dy. */
VKT_API vkt_tensor vkt_tanh(vkt_graph *g, vkt_tensor x);
/* Computes beta x > threshold ? x : ln(1 + e^(beta x)) / beta; dx = dy above the threshold, else dy / (1 + e^(-beta
 * x)). torch's values: beta 1, threshold 20. VKT_E_ARG: a beta that is not above 0. */
VKT_API vkt_tensor vkt_softplus(vkt_graph *g, vkt_tensor x, float beta, float threshold);
/* Computes e^x, accurate to one or two units in the last place, as vkt_log and vkt_sqrt are. dx = y dy. */
VKT_API vkt_tensor vkt_exp(vkt_graph *g, vkt_tensor x);
/* Computes ln x: -inf at 0, NaN below. dx = dy / x, infinite at 0. */
VKT_API vkt_tensor vkt_log(vkt_graph *g, vkt_tensor x);
/* Computes the square root of x: NaN below 0. dx = dy / (2 y), infinite at 0. */
VKT_API vkt_tensor vkt_sqrt(vkt_graph *g, vkt_tensor x);
/* Computes |x|; the gradient at 0 is 0. */
VKT_API vkt_tensor vkt_abs(vkt_graph *g, vkt_tensor x);
/* Computes min(max(x, min), max); bounds may be infinite. dx = dy where min < x < max, else 0, as in PyTorch 2.15 (1.13
 * gave dy at the bounds, too). VKT_E_ARG: a bound is NaN. */
VKT_API vkt_tensor vkt_clamp(vkt_graph *g, vkt_tensor x, float min, float max);
/* Computes scale x + shift. */
VKT_API vkt_tensor vkt_scale(vkt_graph *g, vkt_tensor x, float scale, float shift);
/* Keeps an element with probability 1-p and divides it by 1-p (p = 1: zeros). The mask is Philox(seed; step, node,
 * index): the same in a replay and after a resume. `dropout2d` draws once per (n,c) plane of (N,C,H,W). Leave the op
 * out of graphs that evaluate. */
VKT_API vkt_tensor vkt_dropout(vkt_graph *g, vkt_tensor x, float p);
VKT_API vkt_tensor vkt_dropout2d(vkt_graph *g, vkt_tensor x, float p);

/* The options of a batch norm. Zero is torch's default. */
typedef struct vkt_batch_norm_params {
    float eps;                            /* 0: 1e-5; VKT_ZERO: 0 */
    float momentum;                       /* weight of the new statistics; 0: 0.1; VKT_ZERO: they do not change. Keras'
                                           * 0.99 is 0.01 here */
    vkt_tensor gamma, beta;               /* (C), or null: 1 and 0 */
    vkt_tensor running_mean, running_var; /* (C): vkt_state; both, or neither in training */
    bool biased;   /* track the biased variance, as ONNX and Keras do; torch's is n / (n-1) times it */
    bool evaluate; /* normalise with the running statistics, and do not change them */
} vkt_batch_norm_params;
/* Computes y = gamma (x - mean) / sqrt(var + eps) + beta for each channel of x (N,C,...), BATCH_LAST (other layouts are
 * converted).
 *   training  mean and biased variance over the real rows of the batch and all positions; gradients flow through them.
 *             Other rows become 0. Once per run: running statistics += momentum (those of the batch - running)
 *   evaluate  mean and variance are the running ones; gradients treat them as constants
 * (Ioffe & Szegedy, Batch Normalization, 2015; PyTorch documentation of BatchNorm2d.) */
VKT_API vkt_tensor vkt_batch_norm(vkt_graph *g, vkt_tensor x, const vkt_batch_norm_params *p);

/* Computes y = gamma (x - mean) / sqrt(var + eps) + beta, with mean and biased variance of each row: the last `dims`
 * dimensions of x together. gamma and beta have the shape of these dimensions, or one dimension with as many elements,
 * or are null. eps 0: 1e-5, VKT_ZERO: 0. Any layout; ROWS needs no conversion. (Ba, Kiros & Hinton, Layer
 * Normalization, 2016; PyTorch documentation of LayerNorm.) */
VKT_API vkt_tensor vkt_layer_norm(vkt_graph *g, vkt_tensor x, uint32_t dims, vkt_tensor gamma, vkt_tensor beta,
                                  float eps);
/* Computes y = gamma x / sqrt(mean of x^2 + eps), for the rows of vkt_layer_norm. eps 0: 2^-23, VKT_ZERO: 0. (Zhang &
 * Sennrich, Root Mean Square Layer Normalization, 2019; PyTorch documentation of RMSNorm.) */
VKT_API vkt_tensor vkt_rms_norm(vkt_graph *g, vkt_tensor x, uint32_t dims, vkt_tensor gamma, float eps);
/* Normalises as vkt_layer_norm, for each sample's groups of C / groups neighbouring channels: x (N,C,...), gamma and
 * beta (C) or null. groups = C: instance norm; 1: all channels together. (Wu & He, Group Normalization, 2018.) */
VKT_API vkt_tensor vkt_group_norm(vkt_graph *g, vkt_tensor x, uint32_t groups, vkt_tensor gamma, vkt_tensor beta,
                                  float eps);

/* Returns the same elements in logical order with a new shape. Free if the batch stays (or the layout is ROWS), else a
 * copy. */
VKT_API vkt_tensor vkt_reshape(vkt_graph *g, vkt_tensor x, vkt_shape shape);
/* Reshapes (N, ...) -> (N, product of the rest). */
VKT_API vkt_tensor vkt_flatten(vkt_graph *g, vkt_tensor x);
/* Removes dimension `axis`, which must be 1 (squeeze), or inserts a dimension of 1 as dimension `axis` (unsqueeze).
 * Both are reshapes. Here and below a negative axis counts from the end: -1 is the last dimension (of unsqueeze's
 * result). */
VKT_API vkt_tensor vkt_squeeze(vkt_graph *g, vkt_tensor x, int32_t axis);
VKT_API vkt_tensor vkt_unsqueeze(vkt_graph *g, vkt_tensor x, int32_t axis);
/* Converts to another layout: the same values, f32 or u32. */
VKT_API vkt_tensor vkt_to_layout(vkt_graph *g, vkt_tensor x, vkt_layout layout);

/* ---- moving elements ----
 *
 * f32 or u32, any rank. The results are copies in x's layout. If dimension 0 of a BATCH_LAST tensor itself is sliced,
 * padded or joined, the tensor is converted to ROWS and back: two more copies. */

/* Permutes dimensions. Dimension i of the result is dimension perm[i] of x: y[i_0, i_1, ..] is x at index i_k along
 * dimension perm[k]. perm has an entry for each dimension of x (torch.permute). The result is ROWS if a BATCH_LAST x
 * does not keep its dimension 0. `transpose` exchanges two dimensions. The gradient is permuted back. */
VKT_API vkt_tensor vkt_permute(vkt_graph *g, vkt_tensor x, const uint32_t *perm);
VKT_API vkt_tensor vkt_transpose(vkt_graph *g, vkt_tensor x, int32_t axis0, int32_t axis1);
/* Joins 1 to 12 tensors along `axis` (torch.cat). All other dimensions must be equal. The result has the first tensor's
 * layout. Each gradient is a slice. */
VKT_API vkt_tensor vkt_concat(vkt_graph *g, const vkt_tensor *xs, uint32_t n, int32_t axis);
/* Takes elements start, start + step, .. before `stop` along `axis` (Python's x[start:stop:step]). Negative numbers
 * count from the end, VKT_END is the end, and numbers beyond an end are clamped. VKT_E_ARG if nothing is left. The
 * gradient is zero for the elements of x that are left out. */
#define VKT_END INT64_MAX
VKT_API vkt_tensor vkt_slice(vkt_graph *g, vkt_tensor x, int32_t axis, int64_t start, int64_t stop, uint32_t step);
/* Splits x into n slices: parts[i] has sizes[i] elements along `axis` (torch.split with a list). */
VKT_API vkt_result vkt_split_sizes(vkt_graph *g, vkt_tensor x, int32_t axis, const uint32_t *sizes, uint32_t n,
                                   vkt_tensor *parts);
/* Reverses x along `axis`. */
VKT_API vkt_tensor vkt_flip(vkt_graph *g, vkt_tensor x, int32_t axis);
/* Adds before[i] elements of `value` in front of dimension i and after[i] behind it. The arrays have an entry for each
 * dimension of x, the first dimension first (torch.nn.functional.pad, mode "constant", lists the last dimension first).
 * The gradient is the slice that holds x. For u32 `value` is a whole number. */
VKT_API vkt_tensor vkt_pad(vkt_graph *g, vkt_tensor x, const uint32_t *before, const uint32_t *after, float value);
/* Repeats x (f32) to fill `shape`, in `layout`: shapes are aligned at the right, and dimensions that are 1 or missing
 * repeat (torch.Tensor.expand, but a copy). The gradient is summed over them. */
VKT_API vkt_tensor vkt_expand(vkt_graph *g, vkt_tensor x, vkt_shape shape, vkt_layout layout);

/* ---- functions of two numbers ----
 *
 * Elementwise with broadcasting as in NumPy: shapes are aligned at the right, a dimension of 1 is repeated. A gradient
 * is summed over repeated dimensions. The result has the layout of the operand of larger rank (of `a` if ranks are
 * equal). */

/* Computes a + b; da = dy, db = dy. */
VKT_API vkt_tensor vkt_add(vkt_graph *g, vkt_tensor a, vkt_tensor b);
/* Computes a - b; da = dy, db = -dy. */
VKT_API vkt_tensor vkt_sub(vkt_graph *g, vkt_tensor a, vkt_tensor b);
/* Computes a b; da = b dy, db = a dy. */
VKT_API vkt_tensor vkt_mul(vkt_graph *g, vkt_tensor a, vkt_tensor b);
/* Computes a / b; da = dy / b, db = -dy a / b^2. */
VKT_API vkt_tensor vkt_div(vkt_graph *g, vkt_tensor a, vkt_tensor b);
/* Compute the smaller or the larger operand; NaN if either is NaN. dy goes to the operand that was chosen. At a tie
 * each gets half of it, at NaN both get all of it. */
VKT_API vkt_tensor vkt_minimum(vkt_graph *g, vkt_tensor a, vkt_tensor b);
VKT_API vkt_tensor vkt_maximum(vkt_graph *g, vkt_tensor a, vkt_tensor b);
/* Computes a^b as C's pow: NaN for a < 0 and a b that is no integer. da = b a^(b-1) dy, 0 where b is 0; db = a^b ln(a)
 * dy, 0 where a is 0 and b >= 0 (so NaN for a < 0). */
VKT_API vkt_tensor vkt_pow(vkt_graph *g, vkt_tensor a, vkt_tensor b);
/* Selects condition ? a : b; all three broadcast. The condition is u32 and true where it is not 0. So token ids can be
 * used directly as a mask of all tokens that are not padding. The condition has no gradient. The layout is chosen
 * between a and b as above, or is that of a condition of larger rank. */
VKT_API vkt_tensor vkt_where(vkt_graph *g, vkt_tensor condition, vkt_tensor a, vkt_tensor b);
/* Computes mask ? value : x, where mask (u32) broadcasts to x's shape. */
VKT_API vkt_tensor vkt_masked_fill(vkt_graph *g, vkt_tensor x, vkt_tensor mask, float value);

/* Compute sum and mean over all elements -> scalar. */
VKT_API vkt_tensor vkt_sum(vkt_graph *g, vkt_tensor x);
VKT_API vkt_tensor vkt_mean(vkt_graph *g, vkt_tensor x);

#define VKT_AXIS(i) (1u << (i)) /* dimension i, as part of a mask of axes */
#define VKT_ALL_AXES UINT32_MAX /* all dimensions, whatever the rank */
/* Reduce over the axes of a mask, VKT_AXIS(0) | VKT_AXIS(2) for instance, or over all of x. With `keepdim` these axes
 * are 1 in the result, else they are removed. The result is ROWS.
 *   max_over, min_over  NaN if an element is NaN; dx = dy / m at the m elements equal to y, else 0 (torch: amax, amin)
 *   var                 sum (x - mean)^2 / (n - correction); correction 1 is torch's default (unbiased), 0 is biased.
 *                       The rounding error of the mean is subtracted, so the relative error is 1e-6 even if the mean is
 *                       a million deviations
 * VKT_E_SHAPE: axes that x does not have; var of n <= correction. */
VKT_API vkt_tensor vkt_sum_over(vkt_graph *g, vkt_tensor x, uint32_t axes, bool keepdim);
VKT_API vkt_tensor vkt_mean_over(vkt_graph *g, vkt_tensor x, uint32_t axes, bool keepdim);
VKT_API vkt_tensor vkt_max_over(vkt_graph *g, vkt_tensor x, uint32_t axes, bool keepdim);
VKT_API vkt_tensor vkt_min_over(vkt_graph *g, vkt_tensor x, uint32_t axes, bool keepdim);
VKT_API vkt_tensor vkt_var(vkt_graph *g, vkt_tensor x, uint32_t axes, uint32_t correction, bool keepdim);

/* Normalise over one axis of x, of any shape and layout; a negative axis counts from the end.
 *   softmax      y = exp(x) / sum exp(x), dx = y (dy - sum dy y)
 *   log_softmax  its logarithm, dx = dy - exp(y) sum dy
 *   A line along the axis that has a NaN or +inf, or only -inf, becomes NaN, as in torch.
 * `softmax_of_scores`: softmax(scale x) over the last axis of x (.., T, S) for attention, scale above 0. With `causal`,
 * query t uses keys 0 .. t only (torch's is_causal); the others get 0.
 *
 * Speed: the last axis of ROWS is fast, and so is any axis but the batch of BATCH_LAST. If lines along another axis
 * have more than 75,000 elements, or are in slices of more than 128 MiB, the axis is moved to the end and back: two
 * more permutations. A binding must hold one line, or 64 lines if their length is odd and x is larger than a binding.
 */
VKT_API vkt_tensor vkt_softmax(vkt_graph *g, vkt_tensor x, int32_t axis);
VKT_API vkt_tensor vkt_log_softmax(vkt_graph *g, vkt_tensor x, int32_t axis);
VKT_API vkt_tensor vkt_softmax_of_scores(vkt_graph *g, vkt_tensor x, float scale, bool causal);

/* The options of attention. Zero is torch's default. */
typedef struct vkt_attention_params {
    float scale;     /* above 0; 0: 1 / sqrt(D) */
    bool causal;     /* query t uses keys 0 .. t only (torch: is_causal) */
    float dropout;   /* dropout of the weights; 0: none */
    vkt_tensor mask; /* f32, added to the scores; null: none. It broadcasts to (..,T,S), as (T,S) or (B,1,T,S) do
                      * (torch: attn_mask). -infinity hides a key; a query with no visible key is NaN */
} vkt_attention_params;
/* Computes scaled dot-product attention (torch.nn.functional.scaled_dot_product_attention):
 *   y = dropout(softmax(scale q k^T + mask)) v:  q (..,T,D), k (..,S,D), v (..,S,E), leading dimensions equal
 *   -> (..,T,E), ROWS
 *   With the weights p: dv = p^T dy, ds = p (dy v^T - sum dy y), dq = scale ds k, dk = scale ds^T q;
 *   dmask = ds summed where the mask repeats
 * Without dropout and mask, if D = E is a multiple of 4 up to 128, the weights are computed tile by tile, and again for
 * the gradients. No (..,T,S) tensor exists then: memory grows with T + S (Dao et al., FlashAttention, 2022). Otherwise
 * the op is composed of vkt_matmul, vkt_softmax_of_scores and vkt_dropout, and the weights are kept. p may be NULL.
 * VKT_E_SHAPE: operands that do not fit. (Vaswani et al., Attention Is All You Need, 2017, section 3.2.1.)
 *
 * VKT_E_UNSUPPORTED, when a program is made: too many keys or queries for the loops of an invocation. A loop has at
 * most 60,000 iterations, because Mesa before 23 silently ends loops after 65,535. At D = 64 and subgroups of 8 lanes
 * that is about 76,000 keys, or 39,000 keys and queries with gradients; at D = 4 about 640,000. Wider subgroups allow
 * more. Use shorter sequences beyond that.
 *
 * `packed`: self-attention with `heads` heads: qkv (B,T,3D) -> (B,T,D). A row of qkv holds q, k and v, D numbers each,
 * as one layer projects them; in each of them the heads are side by side. qkv is read without a copy, and its gradient
 * is written in the same form. */
VKT_API vkt_tensor vkt_attention(vkt_graph *g, vkt_tensor q, vkt_tensor k, vkt_tensor v, const vkt_attention_params *p);
VKT_API vkt_tensor vkt_attention_packed(vkt_graph *g, vkt_tensor qkv, uint32_t heads, const vkt_attention_params *p);

#define VKT_NO_PADDING UINT32_MAX /* no id is padding */
/* Looks up rows of a table by number (torch.nn.functional.embedding):
 *   ids (..) u32 of any rank, table (V, ..) f32  ->  y (.., ..) = table[ids], ROWS; an id that is no row gives zeros
 *   dtable[v] = sum of dy over the positions where the id is v, in their order, without atomics: the same bits in every
 *   run. The row `padding` gets no gradient (VKT_NO_PADDING: there is no such row). At most 2^21 ids.
 * `embedding_channels`: ids (B, ..), table (V, D) -> (B, D, ..) BATCH_LAST, the layout that convolutions read. It is
 * written directly in this layout, because a conversion would cost more than the lookup. */
VKT_API vkt_tensor vkt_embedding(vkt_graph *g, vkt_tensor ids, vkt_tensor table, uint32_t padding);
VKT_API vkt_tensor vkt_embedding_channels(vkt_graph *g, vkt_tensor ids, vkt_tensor table, uint32_t padding);
/* Selects slices of x (N, ..) by number, ids (M) u32 -> (M, ..) (torch.index_select along dimension 0): an embedding.
 */
VKT_API vkt_tensor vkt_index_select(vkt_graph *g, vkt_tensor x, vkt_tensor ids);

/* The options of a hash grid. Zero is tiny-cuda-nn's default. */
typedef struct vkt_hash_grid_params {
    uint32_t levels;          /* L, at most VKT_HASH_GRID_MAX_LEVELS; 0: 16 */
    uint32_t features;        /* F, numbers per entry: 1, 2, 4 or 8; 0: 2 */
    uint32_t log2_table_size; /* a level has at most 2^this entries: 3 to 24; 0: 19 */
    uint32_t base_resolution; /* N_min; 0: 16 */
    double per_level_scale;   /* b, at least 1; 0: 2. For a finest resolution N_max: (N_max / N_min)^(1 / (L - 1)) */
} vkt_hash_grid_params;
#define VKT_HASH_GRID_MAX_LEVELS 32 /* most levels of a vkt_hash_grid */
/* One level: four words, which vktrain.glsl reads as a uvec4. */
typedef struct vkt_hash_grid_level {
    uint32_t resolution; /* N: grid cells along an axis */
    uint32_t mask;       /* number of entries less 1 if corners are hashed; 0: each corner has its own entry */
    uint32_t first;      /* index of its first entry in the table */
    uint32_t entries;    /* a multiple of 8 */
} vkt_hash_grid_level;
/* Returns the shape (E,F) of the table for points of 2 or 3 dimensions; rank 0 if there is no such grid. `p` and
 * `levels` may be NULL. */
VKT_API vkt_shape vkt_hash_grid_table(const vkt_hash_grid_params *p, uint32_t dims,
                                      vkt_hash_grid_level levels[VKT_HASH_GRID_MAX_LEVELS]);
/* Encodes points with a multiresolution hash grid (Mueller, Evans, Schied & Keller, Instant Neural Graphics Primitives,
 * 2022, section 3, with its conventions; defaults are tiny-cuda-nn's):
 *   y[n, l F + f] = sum of w(c) table[first(l) + entry(l, c), f] over the 2^D corners c of x[n]'s cell in grid l
 *   N(l) = floor(N_min b^l), cells along an axis; a number less than 1e-9 below an integer counts as that integer
 *   point p = N x, without an offset (tiny-cuda-nn adds 1/2 and uses N b^l - 1 instead of N b^l); cell floor(p), at
 *   most N - 1, so that x = 1 is the last corner; w(c) is the product over the axes of 1 - |p - c|
 *   entry(l, c) = c_0 + (N + 1) (c_1 + (N + 1) c_2) if the (N + 1)^D corners are no more than 2^log2_table_size,
 *   else (c_0 xor c_1 2654435761 xor c_2 805459861) mod 2^log2_table_size
 *   x (B,2) or (B,3) in [0,1]; a point outside counts as the nearest point inside. table (E,F), level after level,
 *   each level's entries rounded up to a multiple of 8  ->  (B, L F), BATCH_LAST (a ROWS x is converted first).
 *   dtable sums over points in a fixed order, without atomics.
 *   dx = sum over l of N(l) times the differences between opposite corners; between two cells those of the right one;
 *   0 along an axis where x is outside.
 * p may be NULL. */
VKT_API vkt_tensor vkt_hash_grid(vkt_graph *g, vkt_tensor x, vkt_tensor table, const vkt_hash_grid_params *p);
/* Encodes points with frequencies, as NeRF (Mildenhall et al. 2020, equation 4):
 *   y[n, 2 (d K + k)] = sin(2^k pi x[n,d]), y[n, 2 (d K + k) + 1] = cos(2^k pi x[n,d])    k = 0 .. K - 1
 *   x (B,D) -> (B, 2 D K), BATCH_LAST (a ROWS x is converted first); K from 1 to 32, 0: 10
 *   dx[n,d] = sum over k of 2^k pi (cos(2^k pi x[n,d]) dy_sin - sin(2^k pi x[n,d]) dy_cos)
 * Accurate to one or two units in the last place for every x: 2^k x is reduced to one period exactly. A binding must
 * hold the encoding of one coordinate for all points, 8 K B bytes; else VKT_E_UNSUPPORTED (10,000,000 points at 10
 * frequencies need 800 MB, and lavapipe binds 128 MiB). Give more points in several batches. */
VKT_API vkt_tensor vkt_frequency(vkt_graph *g, vkt_tensor x, uint32_t frequencies);

/* The reduction of a loss. Losses are scalars over the real rows of the batch (the step's `rows`, along dimension 0),
 * unless they are not reduced. Later rows do not count in a loss, and their gradient is 0. Names and defaults are those
 * of torch.nn.functional. */
typedef enum vkt_loss_reduction {
    VKT_LOSS_MEAN = 0,  /* over the elements that count */
    VKT_LOSS_SUM,       /* not divided */
    VKT_LOSS_BATCHMEAN, /* the sum divided by the real rows */
    VKT_LOSS_NONE       /* not reduced, 0 after the real rows. Elementwise losses have y's shape and layout; losses of
                         * labels have the labels' shape, ROWS */
} vkt_loss_reduction;

/* Computes the mean cross-entropy, in nats, of integer labels:
 *   z (B,K) f32 logits, t (B) u32 in [0,K)  ->  scalar  1/rows sum_b -log softmax(z[b])[t[b]]
 *   dz[b,k] = dloss (softmax(z[b])[k] - (k == t[b])) / rows
 * A label that is no class makes the loss NaN.
 *
 * Limits of this loss, the two below, vkt_argmax and vkt_count_correct: a binding must hold one row (2^25 classes on
 * every device). If a subgroup has 8 lanes, there may be at most 10 million classes, because a work group loops over a
 * row, and Mesa before 23 silently ends loops after 65,535 iterations. Above 100,000 classes, or 128 MiB, a BATCH_LAST
 * z is converted to ROWS: two more copies. */
VKT_API vkt_tensor vkt_softmax_cross_entropy(vkt_graph *g, vkt_tensor z, vkt_tensor t);

/* The label that means "none" by default. Labels are u32: write it as (uint32_t)VKT_IGNORE_INDEX. */
#define VKT_IGNORE_INDEX (-100)
typedef struct vkt_cross_entropy_params {
    vkt_tensor weight;            /* (K) f32, one for each class; null: 1 */
    bool has_ignore_index;        /* use ignore_index */
    int32_t ignore_index;         /* rows with this label do not count; without has_ignore_index it is
                                   * VKT_IGNORE_INDEX */
    float label_smoothing;        /* in [0,1] */
    vkt_loss_reduction reduction; /* mean, sum or none */
    bool classes_second;          /* z (N,K,d..), t (N,d..) as in torch; else classes are z's last dimension */
} vkt_cross_entropy_params;
/* Computes cross-entropy with options; p may be NULL. Operands:
 *   z (B,K), t (B)            one label per sample
 *   z (B,T,K), t (B,T)        several labels, classes last: the tokens of a text
 *   z (N,K,d..), t (N,d..)    with classes_second: a label for each pixel of an image; z is permuted
 *
 * With w = weight, s = label_smoothing, P = softmax(z):
 *   loss = sum_b ((1-s) w[t] -log P[t] + s/K sum_k w[k] -log P[k]) / norm
 *   norm = sum_b w[t[b]] for the mean; 1 for the sum
 *   dz[b,k] = dloss ((P[k] - (k == t)) (1-s) w[t] + s/K (P[k] sum_j w[j] - w[k])) / norm
 *
 * Sums are over the rows that count. If no row counts, the mean is NaN and its gradient 0. Without reduction the result
 * is the loss of each label, in t's shape, ROWS, not divided; it is 0 for labels that do not count and after the real
 * rows. weight has no gradient. */
VKT_API vkt_tensor vkt_cross_entropy(vkt_graph *g, vkt_tensor z, vkt_tensor t, const vkt_cross_entropy_params *p);
/* Computes vkt_cross_entropy from log-probabilities y of any origin, without smoothing:
 *   loss = sum_b -w[t] y[b,t] / norm,  dy[b,k] = -dloss w[k] (k == t[b]) / norm */
VKT_API vkt_tensor vkt_nll_loss(vkt_graph *g, vkt_tensor y, vkt_tensor t, const vkt_cross_entropy_params *p);

/* Compute losses of y and a target of the same shape (B, ..), element by element; d = y - target:
 *   mse         d^2                                           dy = 2 d
 *   l1          |d|                                           dy = sign(d), 0 at 0
 *   smooth_l1   |d| < beta ? d^2 / (2 beta) : |d| - beta/2    dy = |d| < beta ? d / beta : sign(d)
 *   huber       |d| < delta ? d^2/2 : delta (|d| - delta/2)   dy = |d| < delta ? d : delta sign(d)
 * dy is multiplied by dloss and divided as the reduction says. The target's gradient is -dy. beta and delta are
 * positive (torch: 1). The targets of the losses further down have no gradient: vkt_backward refuses one that depends
 * on a parameter. */
VKT_API vkt_tensor vkt_mse_loss(vkt_graph *g, vkt_tensor y, vkt_tensor target, vkt_loss_reduction reduction);
VKT_API vkt_tensor vkt_l1_loss(vkt_graph *g, vkt_tensor y, vkt_tensor target, vkt_loss_reduction reduction);
VKT_API vkt_tensor vkt_smooth_l1_loss(vkt_graph *g, vkt_tensor y, vkt_tensor target, float beta,
                                      vkt_loss_reduction reduction);
VKT_API vkt_tensor vkt_huber_loss(vkt_graph *g, vkt_tensor y, vkt_tensor target, float delta,
                                  vkt_loss_reduction reduction);
/* Computes vkt_mse_loss with the mean. vkt_backward fuses network, loss and gradients to one dispatch under three
 * conditions. y comes from 1 to 4 vkt_linear of at most 128 features, with vkt_relu between them. These values are
 * BATCH_LAST and have no other reader. The target depends on no parameter. VKT_NO_FUSE=1, when the graph is created,
 * switches this off. */
VKT_API vkt_tensor vkt_mse(vkt_graph *g, vkt_tensor y, vkt_tensor target);
/* Computes -t log y - (1-t) log(1-y), logarithms are at least -100 (as torch's), for probabilities y; dy = d / max(y
 * (1-y), 1e-12). A y outside [0,1] gives NaN. */
VKT_API vkt_tensor vkt_binary_cross_entropy(vkt_graph *g, vkt_tensor y, vkt_tensor target,
                                            vkt_loss_reduction reduction);
/* Computes vkt_binary_cross_entropy of sigmoid(z), without overflow or loss of digits: p t log(1 + e^-z) + (1-t)
 * log(1 + e^z), dz = (1-t) sigmoid(z) - p t sigmoid(-z). pos_weight p (null: 1) broadcasts to a row of z. */
VKT_API vkt_tensor vkt_binary_cross_entropy_with_logits(vkt_graph *g, vkt_tensor z, vkt_tensor target,
                                                        vkt_tensor pos_weight, vkt_loss_reduction reduction);
/* Computes the Kullback-Leibler divergence of a target t from log-probabilities y: t (log t - y), 0 log 0 = 0; dy = -t.
 * With log_target, t is a logarithm too: e^t (t - y), dy = -e^t. VKT_LOSS_BATCHMEAN is the mathematical definition. */
VKT_API vkt_tensor vkt_kl_div(vkt_graph *g, vkt_tensor y, vkt_tensor target, bool log_target,
                              vkt_loss_reduction reduction);
/* Computes the squared error relative to the size of y, for targets of high dynamic range, for instance noisy radiance:
 *   (y - target)^2 / (y^2 + epsilon),  dy = 2 (y - target) / (y^2 + epsilon)
 * The gradient treats the divisor as a constant. It is deliberately not the derivative: with that, y could reduce its
 * loss by growing. epsilon 0: 0.01. (tiny-cuda-nn's documentation of RelativeL2; Lehtinen et al., Noise2Noise, 2018,
 * section 3.3.) */
VKT_API vkt_tensor vkt_relative_l2_loss(vkt_graph *g, vkt_tensor y, vkt_tensor target, float epsilon,
                                        vkt_loss_reduction reduction);

/* Returns the index of the largest element of each row, the first at a tie: z (B,K) -> (B) u32. */
VKT_API vkt_tensor vkt_argmax(vkt_graph *g, vkt_tensor z);
/* Returns the index of the largest element along one axis of x, of any shape. With `keepdim` the axis is 1 in the
 * result, else it is removed. A negative axis counts from the end. NaN counts as largest. u32 ROWS. The last axis is
 * fastest: others are moved there first. */
VKT_API vkt_tensor vkt_argmax_over(vkt_graph *g, vkt_tensor x, int32_t axis, bool keepdim);
/* Counts the real rows with argmax(z[b]) == t[b] -> scalar f32 (exact below 2^24 rows). */
VKT_API vkt_tensor vkt_count_correct(vkt_graph *g, vkt_tensor z, vkt_tensor t);

/* Gathers the rows of a data table that the step selects: out[b] = scale[c] table[order[first + b]] + shift[c] for b <
 * rows, else 0.
 *   table (rows, pitch) u8 with pitch = the sample's elements rounded up to 4 bytes, or f32 (rows, elements);
 *   order (n) u32; sample (C,H,W) or (F); scale, shift: C values each (F == 1 channel) or NULL for 1 and 0.
 *   -> (batch, C, H, W) or (batch, F) f32, BATCH_LAST.
 * `gather_labels`: table (n) u32 -> (batch) u32, 0 after the real rows. `gather_ids`: whole numbers, unchanged, 0 after
 * the real rows: table (rows, length) u32 or, if `packed`, (rows,
 *   length / 2 rounded up) u32 that hold two numbers of 16 bits each, the first one in the low half;
 *   -> (batch, length) u32, ROWS. */
VKT_API vkt_tensor vkt_gather_rows(vkt_graph *g, vkt_tensor table, vkt_tensor order, uint32_t batch, vkt_shape sample,
                                   const double *scale, const double *shift);
VKT_API vkt_tensor vkt_gather_labels(vkt_graph *g, vkt_tensor table, vkt_tensor order, uint32_t batch);
VKT_API vkt_tensor vkt_gather_ids(vkt_graph *g, vkt_tensor table, vkt_tensor order, uint32_t batch, uint32_t length,
                                  bool packed);

/* Copies the scalars `loss` and `correct` (may be null) to the program's metrics ring: see vkt_program_metrics. Call it
 * after vkt_update; otherwise the metrics show the state before the step. */
VKT_API void vkt_report(vkt_graph *g, vkt_tensor loss, vkt_tensor correct);

/* Copies x, f32 or u32 in any layout, into an array, in row-major order. `external` is made by vkt_external with x's
 * shape and type. Every run of a program does the copy, even if nothing reads x. When the run is done, the array has
 * the values, for any later submission. No gradient. An array is written once in a graph and read nowhere in it, so no
 * op's result depends on the order of both. Therefore another op that uses `external` is VKT_E_STATE, and so is a
 * program that binds the same array, or overlapping memory, to another external. VKT_E_ARG: `external` was not made by
 * vkt_external. */
VKT_API void vkt_write(vkt_graph *g, vkt_tensor x, vkt_tensor external);

#ifdef __cplusplus
}
#endif
#endif
