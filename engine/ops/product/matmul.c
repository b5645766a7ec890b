/* ops/product/matmul.c - multiplies matrices: C = op(A) op(B), where op(X) is X or its transpose. See vkt_matmul in
 * vktrain/ops.h. */
#include "ops/product/gemm.h"

/* The sizes of a product. */
typedef struct product {
    uint32_t m, n, k, ka, kb; /* ka: columns of op(a). kb: rows of op(b). infer checks that they are equal */
    uint32_t lead;            /* number of leading dimensions of the result */
    bool a_batched, b_batched;
    uint64_t batches;
} product;

static product product_of(const vkt_matmul_attr *t, vkt_shape a, vkt_shape b)
{
    const uint32_t *ad = a.dim + a.rank - 2, *bd = b.dim + b.rank - 2;
    product p = { .m = ad[t->trans_a],
                  .ka = ad[!t->trans_a],
                  .kb = bd[t->trans_b],
                  .n = bd[!t->trans_b],
                  .a_batched = a.rank > 2,
                  .b_batched = b.rank > 2,
                  .batches = 1 };
    const vkt_shape *lead = p.a_batched ? &a : &b;
    p.k = p.ka;
    p.lead = lead->rank - 2;
    for (uint32_t i = 0; i < p.lead; i++) p.batches *= lead->dim[i];
    return p;
}

static vkt_result infer(vkt_infer *f)
{
    const vkt_matmul_attr *t = f->n->attr;
    const vkt_value *a = vkt_in(f, 0), *b = vkt_in(f, 1);
    char at[80], bt[80];
    vkt_shape_text(a->shape, at);
    vkt_shape_text(b->shape, bt);
    VKT_REQUIRE(f, a->dtype == VKT_F32 && b->dtype == VKT_F32, VKT_E_DTYPE, "matmul: want f32 operands, got %s and %s",
                vkt_dtype_name(a->dtype), vkt_dtype_name(b->dtype));
    VKT_REQUIRE(f, a->layout == VKT_ROWS && b->layout == VKT_ROWS, VKT_E_SHAPE,
                "matmul: want operands by rows (vkt_to_layout), got a tensor with the batch last");
    VKT_REQUIRE(f, a->shape.rank >= 2 && b->shape.rank >= 2, VKT_E_SHAPE, "matmul: want matrices, got %s and %s", at,
                bt);
    const product p = product_of(t, a->shape, b->shape);
    VKT_REQUIRE(f, p.ka == p.kb, VKT_E_SHAPE, "matmul: inner dimensions differ: op(a) is (%u,%u), op(b) is (%u,%u)",
                p.m, p.ka, p.kb, p.n);
    const bool same =
        !p.a_batched || !p.b_batched ||
        (a->shape.rank == b->shape.rank && memcmp(a->shape.dim, b->shape.dim, p.lead * sizeof a->shape.dim[0]) == 0);
    VKT_REQUIRE(f, same, VKT_E_SHAPE, "matmul: leading dimensions differ: %s and %s", at, bt);
    VKT_REQUIRE(f, p.batches <= UINT32_MAX, VKT_E_SHAPE, "matmul: too many matrices in %s and %s", at, bt);
    vkt_shape c = p.a_batched ? a->shape : b->shape;
    c.dim[p.lead] = p.m;
    c.dim[p.lead + 1] = p.n;
    vkt_out(f, VKT_F32, VKT_ROWS, c);
    return VKT_OK;
}

static void emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_matmul_attr *t = n->attr;
    const vkt_shape a = vkt_node_in(n, 0)->shape, b = vkt_node_in(n, 1)->shape;
    product p = product_of(t, a, b);
    if (!p.b_batched && !t->trans_a &&
        p.batches * p.m <= UINT32_MAX) { /* one tall product: rows of all batches are consecutive */
        p.m *= (uint32_t)p.batches;
        p.batches = 1;
    }
    const bool many = p.batches > 1;
    const vkt_gemm g = {
        .a = { .t = n->in[0],
               .x_outer = !t->trans_a,
               .ld = a.dim[a.rank - 1],
               .batch = many && p.a_batched ? (uint64_t)p.m * p.k : 0 },
        .b = { .t = n->in[1],
               .x_outer = t->trans_b,
               .ld = b.dim[b.rank - 1],
               .batch = many && p.b_batched ? (uint64_t)p.k * p.n : 0 },
        .c = { .t = n->out[0], .ld = p.n, .batch = many ? (uint64_t)p.m * p.n : 0 },
        .m = p.m,
        .n = p.n,
        .k = p.k,
        .batches = (uint32_t)p.batches,
    };
    vkt_gemm_emit(e, &g);
}

/* Returns x (..,R,C) as one matrix, which has the rows of all matrices of x. Nothing is copied, because x has the
 * layout ROWS. */
static vkt_tensor tall(vkt_graph *g, vkt_tensor x)
{
    const vkt_shape s = vkt_tensor_shape(g, x);
    const uint32_t columns = s.rank ? s.dim[s.rank - 1] : 1;
    return vkt_reshape(g, x, vkt_shape2((uint32_t)(vkt_shape_elements(s) / columns), columns));
}

/* Adds the nodes of the gradients. If all batches use the same matrix as an operand, the gradient of this operand is a
 * sum over the batches. vkt_sum_to computes the sum. One case needs no vkt_sum_to: if a is not transposed, the gradient
 * of b is a single product of two matrices that have the rows of all batches (`tall`). */
static void backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_matmul_attr t = *(const vkt_matmul_attr *)n->attr;
    const vkt_tensor a = n->in[0], b = n->in[1], dc = dy[0];
    const vkt_shape as = vkt_tensor_shape(g, a), bs = vkt_tensor_shape(g, b);
    if (vkt_wants_grad(g, a)) {
        dx[0] = t.trans_a ? vkt_matmul(g, b, dc, t.trans_b, true) : vkt_matmul(g, dc, b, false, !t.trans_b);
        if (bs.rank > as.rank) dx[0] = vkt_sum_to(g, dx[0], as);
    }
    if (!vkt_wants_grad(g, b)) return;
    if (as.rank > bs.rank && !t.trans_a) {
        const vkt_tensor a2 = tall(g, a), dc2 = tall(g, dc);
        dx[1] = t.trans_b ? vkt_matmul(g, dc2, a2, true, false) : vkt_matmul(g, a2, dc2, true, false);
        return;
    }
    dx[1] = t.trans_b ? vkt_matmul(g, dc, a, true, t.trans_a) : vkt_matmul(g, a, dc, !t.trans_a, false);
    if (as.rank > bs.rank) dx[1] = vkt_sum_to(g, dx[1], bs);
}

static void sample(vkt_rng *r, vkt_case *c)
{
    const vkt_matmul_attr t = { vkt_rng_range(r, 0, 1) != 0, vkt_rng_range(r, 0, 1) != 0 };
    const uint32_t most = vkt_rng_range(r, 0, 3) ? 50 : 140, quad = vkt_rng_range(r, 0, 1) ? 4 : 1;
    const uint32_t m = vkt_rng_range(r, 1, most), k = quad * vkt_rng_range(r, 1, most / quad);
    const uint32_t n = quad * vkt_rng_range(r, 1, most / quad), kind = vkt_rng_range(r, 0, 5);
    const uint32_t lead[] = { vkt_rng_range(r, 1, 3), vkt_rng_range(r, 1, 2) };
    const uint32_t rank =
        most > 50 || kind < 2 ? 0 : vkt_rng_range(r, 1, 2); /* number of leading dimensions of a batched operand */
    const bool a_batched = kind != 2, b_batched = kind != 3;
    /* If only one operand has batches, the gradient of the other one is a sum over the batches. Numbers of one sign
     * keep the addends of this sum from cancelling. */
    c->one_sign = rank > 0 && a_batched != b_batched;
    for (uint32_t i = 0; i < 2; i++) {
        const bool trans = i ? t.trans_b : t.trans_a;
        vkt_shape s = { .rank = (i ? b_batched : a_batched) ? rank : 0 };
        memcpy(s.dim, lead, s.rank * sizeof lead[0]);
        const uint32_t rows = i ? k : m, columns = i ? n : k;
        s.dim[s.rank++] = trans ? columns : rows;
        s.dim[s.rank++] = trans ? rows : columns;
        vkt_case_f32(c, VKT_ROWS, s, c->one_sign ? 0.25f : -1, 1);
    }
    vkt_case_attr(c, &t, sizeof t);
}

static double flops(const vkt_node *n)
{
    const vkt_matmul_attr *t = n->attr;
    const vkt_shape a = vkt_node_in(n, 0)->shape;
    return 2 * vkt_elements_out(n, 0) * a.dim[a.rank - (t->trans_a ? 2 : 1)];
}

static const vkt_field fields[] = { VKT_FIELD(vkt_matmul_attr, trans_a, BOOL, 1, 0),
                                    VKT_FIELD(vkt_matmul_attr, trans_b, BOOL, 1, 0),
                                    { .name = NULL } };

const vkt_op vkt_op_matmul = {
    .name = "matmul",
    .min_in = 2,
    .max_in = 2,
    .diff = 3,
    .attr_bytes = sizeof(vkt_matmul_attr),
    .infer = infer,
    .emit = emit,
    .half_rows = VKT_HALF_IN(0) | VKT_HALF_IN(1) | VKT_HALF_OUT(0),
    .backward = backward,
    .sample = sample,
    .rel_tol = 1e-5f,
    .abs_tol = 1e-5f,
    .tol_why =
        "Higham, Accuracy and Stability, 3.5: K u times the sum of |a b|, u = 2^-24; K at most 840 (gradients sum over "
        "3 x 2 batches of 140) and errors that add like sqrt(K) give 29 * 2^-24 * 5 of a typical element",
    .flops = flops,
    .fields = fields,
    .formula = "c[..,m,n] = sum_k op(a)[..,m,k] op(b)[..,k,n]",
};

/* ---- building: leading dimensions that differ ---- */

/* Sets *lead to the leading dimensions of the product of a and b. As in NumPy, the leading dimensions of a and b are
 * aligned at the right, and size 1 matches any size. Returns false if they do not match. */
static bool broadcast_lead(vkt_shape a, vkt_shape b, vkt_shape *lead)
{
    const uint32_t na = a.rank - 2, nb = b.rank - 2;
    lead->rank = VKT_MAX(na, nb);
    for (uint32_t i = 0; i < lead->rank; i++) {
        const uint32_t da = i + na < lead->rank ? 1 : a.dim[i + na - lead->rank];
        const uint32_t db = i + nb < lead->rank ? 1 : b.dim[i + nb - lead->rank];
        if (da != db && da != 1 && db != 1) return false;
        lead->dim[i] = VKT_MAX(da, db);
    }
    return true;
}

static vkt_shape matrix_of(vkt_shape s, const vkt_shape *lead)
{
    vkt_shape to = *lead;
    to.dim[to.rank++] = s.dim[s.rank - 2];
    to.dim[to.rank++] = s.dim[s.rank - 1];
    return to;
}

/* Returns x in the shape that a product with the leading dimensions *lead needs. If x is one matrix, the result has
 * rank 2, and the kernel uses it for every batch. If x has one matrix for each batch of the product, the result is x,
 * reshaped. Otherwise the result is a copy with repeats. */
static vkt_tensor broadcast(vkt_graph *g, vkt_tensor x, const vkt_shape *lead)
{
    const vkt_shape s = vkt_tensor_shape(g, x), whole = matrix_of(s, lead);
    const uint64_t one = (uint64_t)s.dim[s.rank - 2] * s.dim[s.rank - 1];
    if (vkt_shape_elements(s) == one) return vkt_reshape(g, x, vkt_shape2(s.dim[s.rank - 2], s.dim[s.rank - 1]));
    if (vkt_shape_elements(s) == vkt_shape_elements(whole)) return vkt_reshape(g, x, whole);
    return vkt_expand(g, x, whole, VKT_ROWS);
}

static bool is_rows(vkt_graph *g, vkt_tensor x)
{
    if (vkt_graph_status(g) != VKT_OK || !x.id || x.id >= g->n_values) return false;
    const vkt_value *v = vkt_value_of(g, x);
    return v->dtype == VKT_F32 && v->layout == VKT_ROWS && v->shape.rank >= 2;
}

vkt_tensor vkt_matmul(vkt_graph *g, vkt_tensor a, vkt_tensor b, bool trans_a, bool trans_b)
{
    const vkt_matmul_attr attr = { .trans_a = trans_a, .trans_b = trans_b };
    vkt_shape lead;
    if (is_rows(g, a) && is_rows(g, b)) {
        const vkt_shape as = vkt_tensor_shape(g, a), bs = vkt_tensor_shape(g, b);
        const bool same = as.rank == bs.rank && memcmp(as.dim, bs.dim, (as.rank - 2) * sizeof as.dim[0]) == 0;
        if (!same && as.rank > 2 && bs.rank > 2 && broadcast_lead(as, bs, &lead)) {
            const vkt_tensor in[] = { broadcast(g, a, &lead), broadcast(g, b, &lead) };
            const vkt_tensor c = vkt_apply(g, &vkt_op_matmul, in, VKT_COUNT(in), &attr, NULL);
            return g->status == VKT_OK ? vkt_reshape(g, c, matrix_of(vkt_tensor_shape(g, c), &lead))
                                       : (vkt_tensor){ 0 };
        }
    }
    return vkt_apply(g, &vkt_op_matmul, (vkt_tensor[]){ a, b }, 2, &attr, NULL);
}
