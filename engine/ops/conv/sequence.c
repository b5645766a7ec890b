/* ops/conv/sequence.c - convolution and pooling of sequences (N,C,L): the 2-D ops over images of height 1. In
 * the layout BATCH_LAST, (N,C,L) and (N,C,1,L) have the same bytes, so the reshape of x costs nothing. Weights have the
 * layout ROWS. Their reshape costs nothing, either. */
#include "ops/ops.h"

/* Returns t (a,b,c) as (a,b,1,c). If t has another rank, returns {0} and sets an error that names `function`. If t is
 * {0}, or if the graph has an error already, returns {0}. */
static vkt_tensor raise(vkt_graph *g, const char *function, const char *name, vkt_tensor t)
{
    char text[80];
    if (g->status != VKT_OK || !t.id) return (vkt_tensor){ 0 };
    const vkt_shape s = vkt_tensor_shape(g, t);
    if (s.rank == 3) return vkt_reshape(g, t, vkt_shape4(s.dim[0], s.dim[1], 1, s.dim[2]));
    vkt_graph_error(
        g, vkt_fail(&g->host, VKT_E_SHAPE, "%s: want %s of rank 3, got %s", function, name, vkt_shape_text(s, text)));
    return (vkt_tensor){ 0 };
}

/* Returns t (N,C,1,L) as (N,C,L). */
static vkt_tensor lower(vkt_graph *g, vkt_tensor t)
{
    if (!t.id) return t;
    const vkt_shape s = vkt_tensor_shape(g, t);
    return vkt_reshape(g, t, vkt_shape3(s.dim[0], s.dim[1], s.dim[3]));
}

vkt_tensor vkt_conv1d(vkt_graph *g, vkt_tensor x, vkt_tensor w, vkt_tensor bias, const vkt_conv1d_params *p)
{
    if (!g) return (vkt_tensor){ 0 };
    static const vkt_conv1d_params defaults;
    if (!p) p = &defaults;
    const vkt_conv2d_params q = {
        .stride = { 1, p->stride }, .pad = { 0, p->pad }, .dilation = { 1, p->dilation }, .groups = p->groups
    };
    x = raise(g, "conv1d", "x (N,C,L)", x);
    w = raise(g, "conv1d", "w (O,C/groups,K)", w);
    return lower(g, vkt_conv2d(g, x, w, bias, &q));
}

vkt_tensor vkt_conv_transpose1d(vkt_graph *g, vkt_tensor x, vkt_tensor w, vkt_tensor bias,
                                const vkt_conv_transpose1d_params *p)
{
    if (!g) return (vkt_tensor){ 0 };
    static const vkt_conv_transpose1d_params defaults;
    if (!p) p = &defaults;
    const vkt_conv_transpose2d_params q = { .stride = { 1, p->stride },
                                            .pad = { 0, p->pad },
                                            .dilation = { 1, p->dilation },
                                            .groups = p->groups,
                                            .output_pad = { 0, p->output_pad } };
    x = raise(g, "conv_transpose1d", "x (N,C,L)", x);
    w = raise(g, "conv_transpose1d", "w (C,O/groups,K)", w);
    return lower(g, vkt_conv_transpose2d(g, x, w, bias, &q));
}

static vkt_pool2d_params pool2d_params(const vkt_pool1d_params *p)
{
    static const vkt_pool1d_params none;
    if (!p) p = &none; /* none.kernel is 0: infer reports the error */
    return (vkt_pool2d_params){ .kernel = { 1, p->kernel },
                                .stride = { 1, p->stride },
                                .pad = { 0, p->pad },
                                .dilation = { 1, p->dilation },
                                .ceil_mode = p->ceil_mode,
                                .exclude_pad = p->exclude_pad };
}

vkt_tensor vkt_max_pool1d(vkt_graph *g, vkt_tensor x, const vkt_pool1d_params *p)
{
    if (!g) return (vkt_tensor){ 0 };
    const vkt_pool2d_params q = pool2d_params(p);
    return lower(g, vkt_max_pool2d(g, raise(g, "max_pool1d", "x (N,C,L)", x), &q));
}

vkt_tensor vkt_avg_pool1d(vkt_graph *g, vkt_tensor x, const vkt_pool1d_params *p)
{
    if (!g) return (vkt_tensor){ 0 };
    const vkt_pool2d_params q = pool2d_params(p);
    return lower(g, vkt_avg_pool2d(g, raise(g, "avg_pool1d", "x (N,C,L)", x), &q));
}

vkt_tensor vkt_adaptive_max_pool1d(vkt_graph *g, vkt_tensor x, uint32_t out)
{
    if (!g) return (vkt_tensor){ 0 };
    return lower(g, vkt_adaptive_max_pool2d(g, raise(g, "adaptive_max_pool1d", "x (N,C,L)", x), 1, out));
}

vkt_tensor vkt_adaptive_avg_pool1d(vkt_graph *g, vkt_tensor x, uint32_t out)
{
    if (!g) return (vkt_tensor){ 0 };
    return lower(g, vkt_adaptive_avg_pool2d(g, raise(g, "adaptive_avg_pool1d", "x (N,C,L)", x), 1, out));
}

/* Pools x (N,C,L) or (N,C,H,W) to (N,C). One window covers the whole sequence or image. */
static vkt_tensor global_pool(vkt_graph *g, const char *function, vkt_tensor x,
                              vkt_tensor (*pool)(vkt_graph *g, vkt_tensor x, const vkt_pool2d_params *p))
{
    if (!vkt_is_usable(g, function, x)) return (vkt_tensor){ 0 };
    if (vkt_tensor_shape(g, x).rank != 4) x = raise(g, function, "x (N,C,H,W) of rank 4, or x (N,C,L)", x);
    if (!x.id) return x;
    const vkt_shape s = vkt_tensor_shape(g, x);
    const vkt_pool2d_params p = { .kernel = { s.dim[2], s.dim[3] } };
    const vkt_tensor y = pool(g, x, &p);
    return y.id ? vkt_reshape(g, y, vkt_shape2(s.dim[0], s.dim[1])) : y;
}

vkt_tensor vkt_global_max_pool(vkt_graph *g, vkt_tensor x)
{
    if (!g) return (vkt_tensor){ 0 };
    return global_pool(g, "global_max_pool", x, vkt_max_pool2d);
}

vkt_tensor vkt_global_avg_pool(vkt_graph *g, vkt_tensor x)
{
    if (!g) return (vkt_tensor){ 0 };
    return global_pool(g, "global_avg_pool", x, vkt_avg_pool2d);
}
