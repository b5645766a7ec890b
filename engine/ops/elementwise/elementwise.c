/* ops/elementwise/elementwise.c - the code that flat kernels share, and the ops dropout and to_f32. A flat
 * kernel computes element i of the result from element i of each input. i counts the elements of the arrays in
 * memory, and also their padding. Each dispatch computes a range of elements that fits into a binding. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/dropout.abi.h"
#include "abi/elementwise.abi.h"
#include "abi/functions.abi.h"

static uint32_t flat_lanes(const vkt_emit *e)
{
    return vkt_lanes(e->lim, e->lim->traits->lanes_elementwise);
}

static uint64_t flat_groups(const vkt_emit *e, uint64_t elements)
{
    return VKT_MIN(vkt_groups(elements, flat_lanes(e), e->lim->traits->items_elementwise),
                   e->lim->traits->groups_flat_most);
}

static void emit_flat(vkt_emit *e, vkt_tensor out, const vkt_tensor *in, uint32_t n_in, vkt_flat f)
{
    const vkt_value *y = vkt_value_of(e->g, out);
    const vkt_phys phys = vkt_phys_of(y);
    const uint64_t total = phys.elements, range = vkt_bind_range_elements(e->lim);
    const bool padded = y->layout == VKT_BATCH_LAST && phys.dim[phys.rank - 1] % 4 != 0;
    const uint32_t spec[] = {
        flat_lanes(e), [ELEMENTWISE_SPEC_FUNCTION] = f.function, [ELEMENTWISE_SPEC_PADDED] = padded
    };
    vkt_elementwise_push pc = { .p = f.p, .q = f.q };
    if (padded) {
        pc.row4 = phys.pitch / 4;
        pc.last = phys.dim[phys.rank - 1] % 4;
    }
    for (uint64_t at = 0; at < total; at += range) {
        pc.n = (uint32_t)VKT_MIN(total - at, range);
        if (padded) pc.begin4 = (uint32_t)(at / 4 % pc.row4);
        vkt_bind bind[] = { [ELEMENTWISE_Y] = vkt_part(e, out, at, pc.n) };
        for (uint32_t i = 0; i < n_in; i++) bind[i] = vkt_part(e, in[i], at, pc.n);
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = f.kernel,
                                           VKT_LAUNCH_BIND(bind),
                                           VKT_LAUNCH_PUSH(pc),
                                           VKT_LAUNCH_SPEC(spec),
                                           .groups = { flat_groups(e, pc.n), 1, 1 } });
    }
}

void vkt_emit_flat(const vkt_node *n, vkt_emit *e, vkt_flat f)
{
    emit_flat(e, n->out[0], n->in, n->n_in, f);
}

void vkt_emit_convert(vkt_emit *e, vkt_tensor x, vkt_tensor y)
{
    /* a leaky relu of slope 1 returns x, also for NaN and -0 */
    emit_flat(e, y, &x, 1, (vkt_flat){ VKT_K_UNARY, UNARY_LEAKY_RELU, 1, 0 });
}

vkt_result vkt_infer_same(vkt_infer *f)
{
    const vkt_value x = *vkt_in(f, 0);
    VKT_REQUIRE(f, x.dtype == VKT_F32, VKT_E_DTYPE, "%s: want f32, got %s", f->n->op->name, vkt_dtype_name(x.dtype));
    vkt_out(f, VKT_F32, x.layout, x.shape);
    return VKT_OK;
}

vkt_layout vkt_draw_layout(vkt_rng *r)
{
    return vkt_rng_range(r, 0, 1) ? VKT_BATCH_LAST : VKT_ROWS;
}

/* ---- dropout ---- */

/* Returns the push constants of a dropout of x. The caller sets the range of elements, and the parameters of a fused
 * function. For a dropout of planes, the push constants also describe the planes of (N,C,...). A plane is one channel
 * of one sample: see dropout.comp. */
static vkt_dropout_push dropout_push(const vkt_value *x, const vkt_dropout_attr *a)
{
    vkt_dropout_push pc = { .threshold = a->threshold, .scale = a->scale, .salt = a->salt, .plane = 1 };
    if (!a->planes) return pc;
    pc.columns = (uint32_t)vkt_round_up(x->shape.dim[0], 4);
    pc.channels = x->shape.dim[1];
    for (uint32_t i = 2; i < x->shape.rank; i++) pc.plane *= x->shape.dim[i];
    return pc;
}

/* Returns true if x has padding behind the batch. Dropout kernels compute the padding too. In the padding, a fused
 * unary function or its derivative may be infinite or NaN. But padding must be finite in a value and zero in a gradient
 * (vkt_layout). So a unary function is fused with a dropout only if there is no padding. */
static bool has_padding(const vkt_value *x)
{
    return x->layout == VKT_BATCH_LAST && x->shape.dim[0] % 4 != 0;
}

const vkt_node *vkt_take_dropout(vkt_emit *e)
{
    const vkt_node *n = e->epilogue;
    if (!n || n->op != &vkt_op_dropout || has_padding(vkt_node_in(n, 0))) return NULL;
    return ((const vkt_dropout_attr *)n->attr)->planes ? NULL : vkt_fuse_epilogue(e, VKT_FUSE_DROPOUT);
}

const vkt_node *vkt_take_dropout_of_image(vkt_emit *e, uint32_t channels)
{
    const vkt_node *n = e->epilogue;
    if (!n || n->op != &vkt_op_dropout) return NULL;
    const vkt_dropout_attr *a = n->attr;
    return a->planes && vkt_node_in(n, 0)->shape.dim[1] != channels ? NULL : vkt_fuse_epilogue(e, VKT_FUSE_DROPOUT);
}

/* Fuses the epilogue of n, if the epilogue is a sum or (without padding) the gradient of a unary function. Returns the
 * kernel and the function for n and the epilogue. One input of the epilogue is the output of n; sets *b to the other
 * input. If nothing is fused, the kernel is VKT_K_DROPOUT, and *b does not change. */
static vkt_flat fuse_epilogue(const vkt_node *n, vkt_emit *e, vkt_tensor *b)
{
    vkt_flat f = { .kernel = VKT_K_DROPOUT };
    const vkt_node *sum = vkt_fuse_epilogue(e, VKT_FUSE_SUM);
    const vkt_node *slope = sum || has_padding(vkt_node_in(n, 0)) ? NULL : vkt_fuse_epilogue(e, VKT_FUSE_SLOPE);
    if (sum) {
        f.function = DROPOUT_SUM;
        *b = sum->in[vkt_root(e->g, sum->in[0]) == n->out[0].id];
    }
    if (slope) {
        f = vkt_slope_of(slope);
        *b = slope->in[0];
    }
    if (sum || slope) f.kernel = VKT_K_DROPOUT_BEFORE;
    return f;
}

static void emit_masked(vkt_emit *e, const vkt_node *n, vkt_tensor x, vkt_tensor y, vkt_tensor b, vkt_flat f)
{
    const uint64_t total = vkt_node_in(n, 0)->bytes / 4, range = vkt_bind_range_elements(e->lim);
    vkt_dropout_push pc = dropout_push(vkt_node_in(n, 0), n->attr);
    const uint32_t spec[] = { flat_lanes(e), [DROPOUT_SPEC_FUNCTION] = f.function };
    pc.p = f.p;
    pc.q = f.q;
    for (uint64_t at = 0; at < total; at += range) {
        pc.n = (uint32_t)VKT_MIN(total - at, range);
        pc.begin = (uint32_t)at;
        vkt_bind bind[4] = { [DROPOUT_X] = vkt_part(e, x, at, pc.n),
                             [DROPOUT_Y] = vkt_part(e, y, at, pc.n),
                             [DROPOUT_STEP] = VKT_WHOLE(n->in[1]) };
        if (b.id) bind[DROPOUT_B] = vkt_part(e, b, at, pc.n);
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = f.kernel,
                                           .bind = bind,
                                           .n_bind = b.id ? 4 : 3,
                                           VKT_LAUNCH_PUSH(pc),
                                           .spec = spec,
                                           .n_spec = f.kernel == VKT_K_DROPOUT ? 1 : 2,
                                           .groups = { flat_groups(e, pc.n), 1, 1 } });
    }
}

void vkt_emit_dropout(vkt_emit *e, const vkt_node *dropout, vkt_tensor x, vkt_tensor y, vkt_flat f)
{
    emit_masked(e, dropout, x, y, (vkt_tensor){ 0 }, f);
}

static void emit_planes(const vkt_node *n, vkt_emit *e)
{
    const vkt_value *x = vkt_node_in(n, 0);
    const bool columns = x->layout == VKT_BATCH_LAST;
    vkt_dropout_push pc = dropout_push(x, n->attr);
    const uint32_t spec[] = { flat_lanes(e) };
    const uint64_t total = x->bytes / 4, range = vkt_bind_range_elements(e->lim);
    const uint64_t planes = (uint64_t)pc.channels * pc.columns,
                   groups = columns ? vkt_groups(planes, spec[0], 4) : planes;
    for (uint64_t at = 0; at < total; at += range) {
        pc.n = (uint32_t)VKT_MIN(total - at, range);
        pc.begin = (uint32_t)at;
        const vkt_bind bind[] = { [DROPOUT_X] = vkt_part(e, n->in[0], at, pc.n),
                                  [DROPOUT_Y] = vkt_part(e, n->out[0], at, pc.n),
                                  [DROPOUT_STEP] = VKT_WHOLE(n->in[1]) };
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = columns ? VKT_K_DROPOUT_PLANES : VKT_K_DROPOUT_PLANES_ROWS,
                                           VKT_LAUNCH_BIND(bind),
                                           VKT_LAUNCH_PUSH(pc),
                                           .spec = spec,
                                           .n_spec = 1,
                                           .groups = { groups, vkt_div_up(pc.plane, DROPOUT_CHUNK), 1 } });
    }
}

static void dropout_emit(const vkt_node *n, vkt_emit *e)
{
    if (((const vkt_dropout_attr *)n->attr)->planes) {
        emit_planes(n, e);
        return;
    }
    vkt_tensor b = { 0 };
    const vkt_flat f = fuse_epilogue(n, e, &b);
    emit_masked(e, n, n->in[0], n->out[0], b, f);
}

/* Returns true if the kernels can read and write in 16 bits (half_when). Returns false for a dropout of planes in
 * ROWS, because a plane in ROWS need not be whole vec4s. */
static bool dropout_is_half(const vkt_node *n)
{
    return !((const vkt_dropout_attr *)n->attr)->planes || vkt_node_in(n, 0)->layout == VKT_BATCH_LAST;
}

static vkt_result dropout_infer(vkt_infer *f)
{
    const vkt_dropout_attr *a = f->n->attr;
    char text[80];
    VKT_REQUIRE(f, !a->planes || vkt_in(f, 0)->shape.rank >= 3, VKT_E_SHAPE,
                "dropout2d: want (N,C,...) of rank 3 or more, got %s", vkt_shape_text(vkt_in(f, 0)->shape, text));
    VKT_REQUIRE(f, vkt_in(f, 0)->bytes / 4 <= UINT32_MAX, VKT_E_UNSUPPORTED, "dropout: want at most 2^32 elements");
    return vkt_infer_same(f);
}

static vkt_tensor dropout(vkt_graph *g, vkt_tensor x, float p, bool planes)
{
    if (!(p >= 0 && p <= 1)) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG, "dropout: want a probability in [0, 1], got %g", (double)p));
        return (vkt_tensor){ 0 };
    }
    if (p == 0) return x;
    const double threshold = nearbyint((double)p * 0x1p32);
    const vkt_dropout_attr a = { .threshold = threshold >= 0x1p32 ? UINT32_MAX : (uint32_t)threshold,
                                 .scale = p < 1 ? 1.0f / (1.0f - p) : 0.0f,
                                 .salt = (uint32_t)g->n_nodes,
                                 .planes = planes };
    return vkt_apply(g, &vkt_op_dropout, &x, 1, &a, NULL);
}

vkt_tensor vkt_dropout(vkt_graph *g, vkt_tensor x, float p)
{
    if (!g) return (vkt_tensor){ 0 };
    return dropout(g, x, p, false);
}

vkt_tensor vkt_dropout2d(vkt_graph *g, vkt_tensor x, float p)
{
    if (!g) return (vkt_tensor){ 0 };
    return dropout(g, x, p, true);
}

static void dropout_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    dx[0] = vkt_apply(g, &vkt_op_dropout, &dy[0], 1, n->attr, NULL);
}

static void dropout_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_dropout_attr a = { .threshold = vkt_rng_range(r, 0, 7) ? vkt_rng_u32(r) : UINT32_MAX,
                                 .scale = vkt_rng_uniform(r, 0.5f, 4),
                                 .salt = vkt_rng_range(r, 0, 99),
                                 .planes = vkt_rng_range(r, 0, 1) };
    vkt_case_f32(
        c, vkt_draw_layout(r),
        vkt_shape4(vkt_rng_range(r, 1, 21), vkt_rng_range(r, 1, 7), vkt_rng_range(r, 1, 6), vkt_rng_range(r, 1, 5)), 1,
        3);
    vkt_case_attr(c, &a, sizeof a);
}

static const vkt_field dropout_fields[] = { VKT_FIELD_LABELLED(vkt_dropout_attr, threshold, U32, 0, "probability"),
                                            VKT_FIELD_LABELLED(vkt_dropout_attr, scale, F32, 1, ""),
                                            VKT_FIELD(vkt_dropout_attr, planes, BOOL, 1, 0),
                                            { .name = NULL } };

const vkt_op vkt_op_dropout = { .name = "dropout",
                                .min_in = 1,
                                .max_in = 1,
                                .cheap = true,
                                .uses_step = true,
                                .in_place = 1u << 0,
                                .fuse_kind = VKT_FUSE_DROPOUT,
                                .epilogues = 1u << VKT_FUSE_SUM | 1u << VKT_FUSE_SLOPE,
                                .diff = 1u << 0,
                                .attr_bytes = sizeof(vkt_dropout_attr),
                                .infer = dropout_infer,
                                .emit = dropout_emit,
                                .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
                                .half_rows = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
                                .half_when = dropout_is_half,
                                .backward = dropout_backward,
                                .sample = dropout_sample,
                                .rel_tol = 1.2e-7f,
                                .tol_why =
                                    "one fp32 product: half an ulp, 2^-24, doubled for the scale that was rounded once",
                                .flops = vkt_flops_an_output,
                                .fields = dropout_fields,
                                .formula = "y = mask x / (1-p)" };

/* ---- to_f32: f16 -> f32 ---- */

static vkt_result to_f32_infer(vkt_infer *f)
{
    const vkt_value x = *vkt_in(f, 0);
    VKT_REQUIRE(f, x.dtype == VKT_F16, VKT_E_DTYPE, "to_f32: want f16, got %s", vkt_dtype_name(x.dtype));
    vkt_out(f, VKT_F32, x.layout, x.shape);
    return VKT_OK;
}

static void to_f32_emit(const vkt_node *n, vkt_emit *e)
{
    vkt_emit_convert(e, n->in[0], n->out[0]);
}

static void to_f32_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_shape s = vkt_shape3(vkt_rng_range(r, 1, 40), vkt_rng_range(r, 1, 9), 4 * vkt_rng_range(r, 1, 5));
    vkt_case_f32(c, VKT_ROWS, s, -100, 100)->dtype = VKT_F16;
}

vkt_tensor vkt_to_f32(vkt_graph *g, vkt_tensor x)
{
    if (!g) return (vkt_tensor){ 0 };
    return vkt_apply(g, &vkt_op_to_f32, &x, 1, NULL, NULL);
}

const vkt_op vkt_op_to_f32 = { .name = "to_f32",
                               .min_in = 1,
                               .max_in = 1,
                               .cheap = true,
                               .infer = to_f32_infer,
                               .emit = to_f32_emit,
                               .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
                               .half_rows = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
                               .sample = to_f32_sample,
                               .tol_why = "exact: f32 has every number of f16",
                               .flops = vkt_flops_none,
                               .formula = "y = x, from f16 to f32" };
