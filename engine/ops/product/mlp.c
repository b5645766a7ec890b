/* ops/product/mlp.c - fully connected networks of 1 to 4 layers in one node, and the fusion of chains of nodes:
 *   h[0] = x (B, width 0),  h[l] = relu(h[l-1] w[l]^T + b[l]),  y = h[L-1] w[L]^T + b[L];  w[l] (width l, width l-1)
 *   mlp      x, parameters          -> y
 *   mlp_dx   x, dy, parameters      -> the gradients in attr.grads
 *   mlp_mse  x, target, dloss, parameters  -> loss, and the gradients in attr.grads for this dloss
 * Hidden layers are never outputs: mlp_dx and mlp_mse compute them from x. */
#include "ops/product/mlp.h"

#include <math.h>

#include "base/built.h"

/* ---- inputs and outputs ---- */

static vkt_result check_layer(vkt_infer *f, uint32_t layer, uint32_t in)
{
    const vkt_mlp_attr *a = f->n->attr;
    const uint32_t at = a->params + 2 * layer;
    char wt[80], bt[80];
    VKT_REQUIRE(f, vkt_has(f, at), VKT_E_ARG, "%s: layer %u has no weight", f->n->op->name, layer);
    const vkt_value *w = vkt_in(f, at), *b = vkt_has(f, at + 1) ? vkt_in(f, at + 1) : NULL;
    VKT_REQUIRE(f, w->dtype == VKT_F32 && (!b || b->dtype == VKT_F32), VKT_E_DTYPE, "%s: want f32 parameters",
                f->n->op->name);
    VKT_REQUIRE(f, w->shape.rank == 2 && w->layout == VKT_ROWS && w->shape.dim[1] == in, VKT_E_SHAPE,
                "%s: want the weight of layer %u by rows, (O,%u), got %s", f->n->op->name, layer, in,
                vkt_shape_text(w->shape, wt));
    VKT_REQUIRE(f, w->shape.dim[0] <= VKT_MLP_MAX_WIDTH, VKT_E_UNSUPPORTED, "%s: want widths of at most %d, got %u",
                f->n->op->name, VKT_MLP_MAX_WIDTH, w->shape.dim[0]);
    VKT_REQUIRE(f, !b || (b->shape.rank == 1 && b->shape.dim[0] == w->shape.dim[0]), VKT_E_SHAPE,
                "%s: want the bias of layer %u as (%u), got %s", f->n->op->name, layer, w->shape.dim[0],
                vkt_shape_text(b->shape, bt));
    return VKT_OK;
}

/* Checks the attributes, x and all layers. `second` is NULL if input 1 is a parameter. Else it is the name of input 1,
 * which must have y's shape. `params` is the index of the input that is the first parameter. Sets *out_width to y's
 * width. */
static vkt_result check_network(vkt_infer *f, const char *second, uint32_t params, uint32_t *out_width)
{
    const vkt_mlp_attr *a = f->n->attr;
    const vkt_value *x = vkt_in(f, 0), *t = vkt_in(f, 1);
    char xt[80], tt[80];
    VKT_REQUIRE(f, a->layers >= 1 && a->layers <= VKT_MLP_MAX_LAYERS, VKT_E_UNSUPPORTED,
                "%s: want 1 to %d layers, got %u", f->n->op->name, VKT_MLP_MAX_LAYERS, a->layers);
    VKT_REQUIRE(f, a->params == params, VKT_E_ARG, "%s: want params=%u, the first weight's input, got %u",
                f->n->op->name, params, a->params);
    VKT_REQUIRE(f, x->dtype == VKT_F32, VKT_E_DTYPE, "%s: want x as f32, got %s", f->n->op->name,
                vkt_dtype_name(x->dtype));
    VKT_REQUIRE(f, x->shape.rank == 2 && x->layout == VKT_BATCH_LAST && x->shape.dim[1] <= VKT_MLP_MAX_WIDTH,
                VKT_E_SHAPE, "%s: want x (B,I) batch last, I at most %d, got %s%s", f->n->op->name, VKT_MLP_MAX_WIDTH,
                vkt_shape_text(x->shape, xt), x->layout == VKT_ROWS ? " by rows" : "");
    *out_width = x->shape.dim[1];
    for (uint32_t l = 0; l < a->layers; l++) {
        VKT_TRY(check_layer(f, l, *out_width));
        *out_width = vkt_in(f, a->params + 2 * l)->shape.dim[0];
    }
    if (!second) return VKT_OK;
    VKT_REQUIRE(f, t->dtype == VKT_F32, VKT_E_DTYPE, "%s: want %s as f32, got %s", f->n->op->name, second,
                vkt_dtype_name(t->dtype));
    VKT_REQUIRE(f, t->layout == VKT_BATCH_LAST && vkt_shape_equal(t->shape, vkt_shape2(x->shape.dim[0], *out_width)),
                VKT_E_SHAPE, "%s: want %s (%u,%u) batch last, got %s%s", f->n->op->name, second, x->shape.dim[0],
                *out_width, vkt_shape_text(t->shape, tt), t->layout == VKT_ROWS ? " by rows" : "");
    return VKT_OK;
}

static vkt_result state_gradients(vkt_infer *f)
{
    const vkt_mlp_attr *a = f->n->attr;
    uint32_t legal = 1;
    for (uint32_t i = a->params; i < a->params + 2 * a->layers; i++) legal |= (uint32_t)vkt_has(f, i) << i;
    VKT_REQUIRE(f, (a->grads & ~legal) == 0, VKT_E_ARG, "%s: want gradients of x and parameters alone (%u), got %u",
                f->n->op->name, legal, a->grads);
    for (uint32_t i = 0; i < f->n->n_in; i++)
        if (a->grads >> i & 1) vkt_out(f, VKT_F32, vkt_in(f, i)->layout, vkt_in(f, i)->shape);
    return VKT_OK;
}

static vkt_result mlp_infer(vkt_infer *f)
{
    uint32_t out;
    VKT_TRY(check_network(f, NULL, 1, &out));
    VKT_REQUIRE(f, ((const vkt_mlp_attr *)f->n->attr)->grads == 0, VKT_E_ARG, "mlp: want grads=0; mlp_dx has them");
    vkt_out(f, VKT_F32, VKT_BATCH_LAST, vkt_shape2(vkt_in(f, 0)->shape.dim[0], out));
    return VKT_OK;
}

static vkt_result dx_infer(vkt_infer *f)
{
    uint32_t out;
    VKT_TRY(check_network(f, "dy", 2, &out));
    return state_gradients(f);
}

static vkt_result mse_infer(vkt_infer *f)
{
    uint32_t out;
    VKT_TRY(check_network(f, "target", 3, &out));
    const vkt_value *dloss = vkt_in(f, VKT_MLP_IN_DLOSS);
    VKT_REQUIRE(f, dloss->dtype == VKT_F32 && vkt_shape_elements(dloss->shape) == 1,
                dloss->dtype == VKT_F32 ? VKT_E_SHAPE : VKT_E_DTYPE, "mlp_mse: want dloss as one f32");
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape0());
    return state_gradients(f);
}

static void mlp_emit(const vkt_node *n, vkt_emit *e)
{
    vkt_emit_mlp(n, e, VKT_MLP_FORWARD);
}

static void dx_emit(const vkt_node *n, vkt_emit *e)
{
    vkt_emit_mlp(n, e, VKT_MLP_GRAD);
}

static void mse_emit(const vkt_node *n, vkt_emit *e)
{
    vkt_emit_mlp(n, e, VKT_MLP_MSE);
}

/* ---- gradients ---- */

/* Returns which of x and the parameters need a gradient. Bit i: input i. */
static uint32_t wanted_grads(const vkt_graph *g, const vkt_tensor *in, const vkt_mlp_attr *a)
{
    uint32_t grads = vkt_wants_grad(g, in[0]) ? 1 : 0;
    for (uint32_t i = a->params; i < a->params + 2 * a->layers; i++)
        if (vkt_wants_grad(g, in[i])) grads |= 1u << i;
    return grads;
}

static void mlp_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_mlp_attr *a = n->attr;
    const uint32_t grads = wanted_grads(g, n->in, a);
    /* In mlp_dx, dy is input 1. So the index of each parameter's input is larger by 1 than in mlp. */
    const vkt_mlp_attr wanted = { a->layers, a->params + 1, (grads & 1) | (grads & ~1u) << 1 };
    vkt_tensor in[2 + 2 * VKT_MLP_MAX_LAYERS] = { n->in[0], dy[0] }, out[VKT_MAX_OUT];
    for (uint32_t i = 0; i < 2 * a->layers; i++) in[2 + i] = n->in[a->params + i];
    if (!wanted.grads || !vkt_apply(g, &vkt_op_mlp_dx, in, 2 + 2 * a->layers, &wanted, out).id) return;
    const vkt_node *made = g->nodes[g->n_nodes - 1];
    dx[0] = vkt_mlp_grad(made, 0, 0);
    for (uint32_t i = 0; i < 2 * a->layers; i++) dx[a->params + i] = vkt_mlp_grad(made, 0, 2 + i);
}

/* Uses the gradients that the node computes already. If the node was made for another dloss or lacks a gradient that is
 * wanted, a new node computes the gradients. */
static void mse_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_mlp_attr *a = n->attr, wanted = { a->layers, a->params, wanted_grads(g, n->in, a) };
    const uint32_t n_in = a->params + 2 * a->layers;
    for (uint32_t k = 1; k < n->n_out && g->status == VKT_OK; k++)
        if (dy[k].id) vkt_refuse_second_gradient(g, n, k);
    if (g->status != VKT_OK) return;
    if ((wanted.grads & ~a->grads) || dy[0].id != n->in[VKT_MLP_IN_DLOSS].id) {
        vkt_tensor in[VKT_MAX_IN];
        memcpy(in, n->in, sizeof in);
        in[VKT_MLP_IN_DLOSS] = dy[0];
        if (!vkt_apply(g, &vkt_op_mlp_mse, in, n_in, &wanted, NULL).id) return;
        n = g->nodes[g->n_nodes - 1];
    }
    for (uint32_t i = 0; i < n_in; i++)
        if (wanted.grads >> i & 1) dx[i] = vkt_mlp_grad(n, 1, i);
}

/* ---- random cases ---- */

/* Generates a case. Wide networks are rare, because a kernel is unrolled and compiled for each of them. */
static void sample(vkt_rng *r, vkt_case *c, bool mse)
{
    const uint32_t kind = vkt_rng_range(r, 0, 23), most = kind == 0 ? 100 : kind == 1 ? 33 : kind < 8 ? 4 : 9;
    const uint32_t batch = vkt_rng_range(r, 0, 3) ? vkt_rng_range(r, 1, 70) : vkt_rng_range(r, 200, 900);
    const bool narrow = kind >= 2 && kind < 8; /* one narrow layer, for the variant LINE */
    vkt_mlp_attr a = { .params = mse ? 3 : 1 };
    a.layers = narrow ? 1 : vkt_rng_range(r, 1, kind < 2 ? 2 : VKT_MLP_MAX_LAYERS);
    uint32_t width[VKT_MLP_MAX_LAYERS + 1];
    for (uint32_t l = 0; l <= a.layers; l++) width[l] = vkt_rng_range(r, 1, l < 2 ? most : VKT_MIN(most, 9u));
    vkt_case_f32(c, VKT_BATCH_LAST, vkt_shape2(batch, width[0]), -1, 1);
    if (mse) vkt_case_f32(c, VKT_BATCH_LAST, vkt_shape2(batch, width[a.layers]), -1, 1);
    if (mse) vkt_case_f32(c, VKT_ROWS, vkt_shape0(), -1, 1);
    for (uint32_t l = 0; l < a.layers; l++) {
        const float bound = 1 / sqrtf((float)width[l]);
        vkt_case_f32(c, VKT_ROWS, vkt_shape2(width[l + 1], width[l]), -2 * bound, 2 * bound);
        a.grads |= 1u << (a.params + 2 * l);
        if (vkt_rng_range(r, 0, 3) == 0) {
            vkt_case_absent(c);
        } else {
            vkt_case_f32(c, VKT_ROWS, vkt_shape1(width[l + 1]), -1, 1);
            a.grads |= 2u << (a.params + 2 * l);
        }
    }
    if (!narrow) a.grads |= vkt_rng_range(r, 0, 1);
    if (mse) c->rows = vkt_rng_range(r, 0, batch);
    if (!mse) a.grads = 0;
    vkt_case_attr(c, &a, sizeof a);
}

static void mlp_sample(vkt_rng *r, vkt_case *c)
{
    sample(r, c, false);
}

static void mse_sample(vkt_rng *r, vkt_case *c)
{
    sample(r, c, true);
}

/* ---- op descriptors ---- */

/* Counts a multiplication and an addition for each weight and sample. For each output of a layer, counts one operation
 * for the bias, even if it is absent, and one for the relu (not in the last layer). */
static double forward_flops(const vkt_node *n)
{
    const vkt_mlp_attr *a = n->attr;
    double per_sample = 0;
    for (uint32_t l = 0; l < a->layers; l++) {
        const vkt_shape w = vkt_value_of(n->g, vkt_mlp_weight(n, l))->shape;
        per_sample += w.dim[0] * (2.0 * w.dim[1] + 1 + (l + 1 < a->layers));
    }
    return per_sample * vkt_node_in(n, 0)->shape.dim[0];
}

/* Counts the forward pass, the gradients of the weights, and the gradients of the layers' inputs. Each of the three has
 * the same number of products. The gradient of x counts even if it is not computed. */
static double gradient_flops(const vkt_node *n)
{
    return 3 * forward_flops(n);
}

static const vkt_field fields[] = { VKT_FIELD(vkt_mlp_attr, layers, U32, 1, 0),
                                    VKT_FIELD(vkt_mlp_attr, params, U32, 1, 0),
                                    VKT_FIELD(vkt_mlp_attr, grads, U32, 1, 0),
                                    { .name = NULL } };

#define TOLERANCE                                                                                               \
    "Higham, Accuracy and Stability, 3.5: a sum of 100 products errs by 100 u of the sum of their sizes at "    \
    "most, u = 2^-24, and like a random walk by 10 u; four layers forward and back, and 900 samples in blocks " \
    "of 128, pass that on: below 200 u of the largest element"

const vkt_op vkt_op_mlp = {
    .name = "mlp",
    .min_in = 1, /* x. infer reports an error if a layer has no weight */
    .max_in = 1 + 2 * VKT_MLP_MAX_LAYERS,
    .fuse_kind = VKT_FUSE_NETWORK,
    .diff = 0x1ff,
    .attr_bytes = sizeof(vkt_mlp_attr),
    .infer = mlp_infer,
    .emit = mlp_emit,
    .backward = mlp_backward,
    .sample = mlp_sample,
    .rel_tol = 1e-5f,
    .abs_tol = 1e-5f,
    .tol_why = TOLERANCE,
    .flops = forward_flops,
    .fields = fields,
    .formula = "h[l] = relu(h[l-1] w[l]^T + b[l]), the last layer without relu",
};

const vkt_op vkt_op_mlp_dx = {
    .name = "mlp_dx",
    .min_in = 3,
    .max_in = 2 + 2 * VKT_MLP_MAX_LAYERS,
    .attr_bytes = sizeof(vkt_mlp_attr),
    .infer = dx_infer,
    .emit = dx_emit,
    .forward_only = true,
    .tested_by = "mlp",
    .flops = gradient_flops,
    .fields = fields,
    .formula = "dw[l] = dy[l]^T h[l-1]; db[l] = sum dy[l]; dy[l-1] = dy[l] w[l] where h[l-1] > 0; dx = dy[1] w[1]",
};

const vkt_op vkt_op_mlp_mse = {
    .name = "mlp_mse",
    .min_in = 4,
    .max_in = 3 + 2 * VKT_MLP_MAX_LAYERS,
    .uses_step = true,
    .batch = vkt_batch_of_first,
    .diff = 0x7f9,
    .refuses = 1u << VKT_MLP_IN_TARGET | 1u << VKT_MLP_IN_DLOSS,
    .attr_bytes = sizeof(vkt_mlp_attr),
    .infer = mse_infer,
    .emit = mse_emit,
    .backward = mse_backward,
    .sample = mse_sample,
    .rel_tol = 1e-5f,
    .abs_tol = 1e-5f,
    .tol_why = TOLERANCE,
    .flops = gradient_flops,
    .fields = fields,
    .formula = "loss = mean of (mlp(x) - target)^2 over the real rows, and its gradients",
};

vkt_tensor vkt_mlp(vkt_graph *g, vkt_tensor x, const vkt_mlp_layer *layers, uint32_t n_layers)
{
    if (!layers && n_layers) return vkt_null_argument(g, "mlp", "layers");
    vkt_tensor in[1 + 2 * VKT_MLP_MAX_LAYERS] = { vkt_to_layout(g, x, VKT_BATCH_LAST) };
    for (uint32_t l = 0; l < n_layers && l < VKT_MLP_MAX_LAYERS; l++) {
        in[1 + 2 * l] = layers[l].weight;
        in[2 + 2 * l] = layers[l].bias;
    }
    const vkt_mlp_attr a = { .layers = n_layers, .params = 1 };
    return vkt_apply(g, &vkt_op_mlp, in, 1 + 2 * VKT_MIN(n_layers, VKT_MLP_MAX_LAYERS), &a, NULL);
}

/* ---- fusing chains of nodes ---- */

/* A network, which is found from its last layer backward. The parameters of its layers are at the end of `in`, in the
 * order of the inputs of mlp. */
typedef struct chain {
    vkt_tensor x, in[2 * VKT_MLP_MAX_LAYERS];
    uint32_t layers;
} chain;

/* Returns the node that produces t, if its fuse_kind is `kind`, t is not kept (vkt_keep), and only one node reads t;
 * else NULL. */
static const vkt_node *kind_before(const vkt_graph *g, vkt_tensor t, vkt_fuse_kind kind)
{
    const vkt_node *n = vkt_sole_producer(g, t);
    return n && n->op->fuse_kind == kind ? n : NULL;
}

static bool put_layer(vkt_graph *g, chain *c, vkt_tensor x, vkt_tensor w, vkt_tensor bias)
{
    const vkt_value *xv = vkt_value_of(g, x), *wv = vkt_value_of(g, w);
    if (c->layers == VKT_MLP_MAX_LAYERS || xv->layout != VKT_BATCH_LAST || wv->shape.dim[0] > VKT_MLP_MAX_WIDTH ||
        wv->shape.dim[1] > VKT_MLP_MAX_WIDTH)
        return false;
    c->layers++;
    c->in[2 * (VKT_MLP_MAX_LAYERS - c->layers)] = w;
    c->in[2 * (VKT_MLP_MAX_LAYERS - c->layers) + 1] = bias;
    c->x = x;
    return true;
}

/* Finds the layers before y, at most VKT_MLP_MAX_LAYERS. No other node may read y or the values between these layers.
 * Returns false if there is no such layer. */
static bool find_chain(vkt_graph *g, vkt_tensor y, chain *c)
{
    const vkt_node *affine = kind_before(g, y, VKT_FUSE_AFFINE), *n = kind_before(g, y, VKT_FUSE_NETWORK);
    for (uint32_t l = n ? ((const vkt_mlp_attr *)n->attr)->layers : 0; l-- > 0;)
        put_layer(g, c, n->in[0], vkt_mlp_weight(n, l), vkt_mlp_bias(n, l));
    while (affine && put_layer(g, c, affine->in[0], affine->in[1], affine->in[2])) {
        const vkt_node *relu = kind_before(g, c->x, VKT_FUSE_RELU);
        affine = relu ? kind_before(g, relu->in[0], VKT_FUSE_AFFINE) : NULL;
    }
    return c->layers > 0;
}

/* Returns true if every device can bind t as a whole. The kernels bind x, its gradient and the target as a whole, and
 * the device is not known yet. */
static bool fits_everywhere(const vkt_graph *g, vkt_tensor t)
{
    return vkt_value_of(g, t)->bytes <= 128u << 20; /* Vulkan 1.3, "Required limits": maxStorageBufferRange */
}

void vkt_fuse_mlp_mse(vkt_graph *g, vkt_node *mse, vkt_tensor dloss)
{
    chain c = { .layers = 0 };
    if (!VKT_BUILT_MLP_PACK) return; /* the build has no kernels for this (VKT_KERNELS) */
    if (g->no_fuse || !find_chain(g, mse->in[0], &c)) return;
    if (!fits_everywhere(g, c.x) || !fits_everywhere(g, mse->in[1])) return;
    vkt_tensor in[3 + 2 * VKT_MLP_MAX_LAYERS] = { c.x, mse->in[1], dloss };
    memcpy(in + 3, c.in + 2 * (VKT_MLP_MAX_LAYERS - c.layers), 2 * c.layers * sizeof *in);
    vkt_mlp_attr a = { .layers = c.layers, .params = 3 };
    a.grads = wanted_grads(g, in, &a);
    if (a.grads) vkt_node_become(g, mse, &vkt_op_mlp_mse, in, 3 + 2 * c.layers, &a);
}
