/* ops/move/rearrange.c - permute and concat, which copy elements unchanged to other positions.
 *
 * Both ops leave the batch of a BATCH_LAST tensor unchanged. So the padding of the batch is copied, too, and every copy
 * of such a tensor has whole vec4s. If dimension 0 itself is rearranged, the builders convert the inputs to ROWS.
 * vkt_concat converts the result back. */
#include "ops/move/move.h"

/* ---- permute ---- */

static vkt_result permute_infer(vkt_infer *f)
{
    const vkt_permute_attr *a = f->n->attr;
    const vkt_value x = *vkt_in(f, 0);
    vkt_shape y = { .rank = x.shape.rank };
    uint32_t seen = 0;
    char text[80];
    VKT_TRY(vkt_infer_moved(f, &x));
    for (uint32_t i = 0; i < y.rank; i++) {
        const bool is_new = a->perm[i] < y.rank && !(seen >> a->perm[i] & 1);
        VKT_REQUIRE(f, is_new, VKT_E_ARG, "permute: want each dimension of %s once, got %u as number %u",
                    vkt_shape_text(x.shape, text), a->perm[i], i);
        seen |= 1u << a->perm[i];
        y.dim[i] = x.shape.dim[a->perm[i]];
    }
    VKT_REQUIRE(f, x.layout == VKT_ROWS || a->perm[0] == 0, VKT_E_SHAPE,
                "permute: a batch-last tensor keeps dimension 0, got %u for it", a->perm[0]);
    vkt_out(f, x.dtype, x.layout, y);
    return VKT_OK;
}

static void permute_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_permute_attr *a = n->attr;
    const vkt_phys p = vkt_phys_of(vkt_node_out(n, 0));
    int64_t stride[VKT_MAX_RANK] = { 0 };
    vkt_move m = { .n = 0 };
    vkt_logical_strides(vkt_node_in(n, 0), stride);
    for (uint32_t i = 0; i < p.rank; i++)
        vkt_move_dim_add(&m,
                         (vkt_move_dim){ vkt_moved_size(&p, i), stride[a->perm[p.logical[i]]], (int64_t)p.stride[i] });
    vkt_emit_move(e, n->in[0], n->out[0], &m);
}

vkt_tensor vkt_permute(vkt_graph *g, vkt_tensor x, const uint32_t *perm)
{
    if (!perm) return vkt_null_argument(g, "permute", "perm");
    const vkt_shape s = vkt_tensor_shape(g, x);
    vkt_permute_attr a = { .perm = { 0 } };
    for (uint32_t i = 0; i < s.rank; i++) a.perm[i] = perm[i];
    if (s.rank && a.perm[0] && vkt_is_batch_last(g, x)) x = vkt_to_layout(g, x, VKT_ROWS);
    return vkt_apply(g, &vkt_op_permute, &x, 1, &a, NULL);
}

vkt_tensor vkt_transpose(vkt_graph *g, vkt_tensor x, int32_t axis0, int32_t axis1)
{
    uint32_t i, k, perm[VKT_MAX_RANK];
    if (!vkt_find_axis(g, "transpose", x, axis0, &i) || !vkt_find_axis(g, "transpose", x, axis1, &k))
        return (vkt_tensor){ 0 };
    for (uint32_t d = 0; d < VKT_MAX_RANK; d++) perm[d] = d == i ? k : d == k ? i : d;
    return vkt_permute(g, x, perm);
}

static void permute_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_permute_attr *a = n->attr;
    vkt_permute_attr back = { .perm = { 0 } };
    for (uint32_t i = 0; i < vkt_node_in(n, 0)->shape.rank; i++) back.perm[a->perm[i]] = i;
    dx[0] = vkt_apply(g, &vkt_op_permute, &dy[0], 1, &back, NULL);
}

static void permute_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_case_input *x = vkt_draw_moved(r, c);
    vkt_permute_attr a = { .perm = { 0 } };
    const uint32_t first = x->layout == VKT_BATCH_LAST;
    /* Makes a random permutation (Fisher-Yates shuffle). If x is BATCH_LAST, dimension 0 stays the first one. */
    for (uint32_t i = 0; i < x->shape.rank; i++) {
        const uint32_t k = i < first ? i : vkt_rng_range(r, first, i);
        a.perm[i] = a.perm[k];
        a.perm[k] = i;
    }
    vkt_case_attr(c, &a, sizeof a);
}

static const vkt_field permute_fields[] = { VKT_FIELD(vkt_permute_attr, perm, U32, VKT_MAX_RANK, 0), { .name = NULL } };

const vkt_op vkt_op_permute = { .name = "permute",
                                .min_in = 1,
                                .max_in = 1,
                                .cheap = true,
                                .diff = 1u << 0,
                                .attr_bytes = sizeof(vkt_permute_attr),
                                .infer = permute_infer,
                                .emit = permute_emit,
                                .half = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
                                .backward = permute_backward,
                                .sample = permute_sample,
                                .tol_why = "exact: a copy",
                                .flops = vkt_flops_none,
                                .fields = permute_fields,
                                .formula = "x, its dimension perm[i] as dimension i" };

/* ---- concat ---- */

static vkt_result concat_infer(vkt_infer *f)
{
    const uint32_t axis = ((const vkt_concat_attr *)f->n->attr)->axis;
    const vkt_value x = *vkt_in(f, 0);
    vkt_shape y = x.shape;
    uint64_t sum = 0;
    char text[80], got[80];
    VKT_TRY(vkt_infer_moved(f, &x));
    VKT_REQUIRE(f, axis < y.rank && (axis || x.layout == VKT_ROWS), VKT_E_SHAPE,
                "concat: %s has no dimension %u to concatenate along", vkt_shape_text(y, text), axis);
    for (uint32_t i = 0; i < f->n->n_in; i++) {
        VKT_REQUIRE(f, vkt_has(f, i), VKT_E_ARG, "concat: tensor %u is null", i);
        const vkt_value v = *vkt_in(f, i);
        VKT_REQUIRE(f, v.dtype == x.dtype, VKT_E_DTYPE, "concat: want %s as tensor %u, got %s", vkt_dtype_name(x.dtype),
                    i, vkt_dtype_name(v.dtype));
        y.dim[axis] = v.shape.rank == y.rank ? v.shape.dim[axis] : 0;
        VKT_REQUIRE(f, vkt_shape_equal(v.shape, y) && v.layout == x.layout, VKT_E_SHAPE,
                    "concat: want tensor %u in the layout of %s and equal to it but for dimension %u, got %s", i,
                    vkt_shape_text(x.shape, text), axis, vkt_shape_text(v.shape, got));
        sum += v.shape.dim[axis];
    }
    VKT_REQUIRE(f, sum <= INT32_MAX, VKT_E_SHAPE, "concat: want at most 2^31 - 1 along dimension %u, got %llu", axis,
                (unsigned long long)sum);
    y.dim[axis] = (uint32_t)sum;
    vkt_out(f, x.dtype, x.layout, y);
    return VKT_OK;
}

static void concat_emit(const vkt_node *n, vkt_emit *e)
{
    const uint32_t axis = ((const vkt_concat_attr *)n->attr)->axis;
    int64_t from[VKT_MAX_RANK] = { 0 }, to[VKT_MAX_RANK] = { 0 };
    uint64_t at = 0;
    vkt_logical_strides(vkt_node_out(n, 0), to);
    for (uint32_t k = 0; k < n->n_in; k++) {
        const vkt_value *x = vkt_node_in(n, k);
        const vkt_phys p = vkt_phys_of(x);
        vkt_move m = { .y = at * (uint64_t)to[axis] };
        vkt_logical_strides(x, from);
        for (uint32_t i = 0; i < p.rank; i++)
            vkt_move_dim_add(&m, (vkt_move_dim){ vkt_moved_size(&p, i), from[p.logical[i]], to[p.logical[i]] });
        vkt_emit_move(e, n->in[k], n->out[0], &m);
        at += x->shape.dim[axis];
    }
}

vkt_tensor vkt_concat(vkt_graph *g, const vkt_tensor *xs, uint32_t n, int32_t axis)
{
    if (!g || (!xs && n)) return vkt_null_argument(g, "concat", "xs");
    vkt_tensor in[VKT_MAX_IN];
    vkt_concat_attr a;
    if (n == 0 || n > VKT_MAX_IN) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG, "concat: want 1 to %d tensors, got %u", VKT_MAX_IN, n));
        return (vkt_tensor){ 0 };
    }
    if (!vkt_find_axis(g, "concat", xs[0], axis, &a.axis)) return (vkt_tensor){ 0 };
    const vkt_layout layout = vkt_is_batch_last(g, xs[0]) ? VKT_BATCH_LAST : VKT_ROWS;
    for (uint32_t i = 0; i < n; i++) in[i] = vkt_to_layout(g, xs[i], a.axis ? layout : VKT_ROWS);
    return n == 1 ? xs[0] : vkt_to_layout(g, vkt_apply(g, &vkt_op_concat, in, n, &a, NULL), layout);
}

static void concat_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const uint32_t axis = ((const vkt_concat_attr *)n->attr)->axis;
    uint32_t at = 0;
    for (uint32_t k = 0; k < n->n_in; k++) {
        const vkt_shape x = vkt_node_in(n, k)->shape;
        vkt_slice_attr a = vkt_slice_all(x);
        a.start[axis] = at;
        at += x.dim[axis];
        if (vkt_wants_grad(g, n->in[k])) dx[k] = vkt_apply(g, &vkt_op_slice, &dy[0], 1, &a, NULL);
    }
}

static void concat_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_case_input x = *vkt_draw_moved(r, c);
    const uint32_t first = x.layout == VKT_BATCH_LAST, last = x.shape.rank - 1;
    const vkt_concat_attr a = { first > last ? 0 : vkt_rng_range(r, first, last) };
    if (first > last) c->in[0].layout = VKT_ROWS;
    const uint32_t more = vkt_rng_range(r, 1, vkt_rng_range(r, 0, 7) ? 4 : VKT_MAX_IN - 1);
    for (uint32_t i = 1; i <= more; i++) {
        c->in[i] = c->in[0];
        c->in[i].shape.dim[a.axis] = vkt_rng_range(r, 1, 9);
    }
    c->n_in = 1 + more;
    vkt_case_attr(c, &a, sizeof a);
}

static const vkt_field concat_fields[] = { VKT_FIELD(vkt_concat_attr, axis, U32, 1, 0), { .name = NULL } };

const vkt_op vkt_op_concat = { .name = "concat",
                               .min_in = 2,
                               .max_in = VKT_MAX_IN,
                               .cheap = true,
                               .diff = (1u << VKT_MAX_IN) - 1,
                               .attr_bytes = sizeof(vkt_concat_attr),
                               .infer = concat_infer,
                               .emit = concat_emit,
                               .half = ((1u << VKT_MAX_IN) - 1) | VKT_HALF_OUT(0),
                               .backward = concat_backward,
                               .sample = concat_sample,
                               .tol_why = "exact: a copy",
                               .flops = vkt_flops_none,
                               .fields = concat_fields,
                               .formula = "the inputs one after the other along a dimension" };
