/* ops/encode/embedding_quantized.c - rows of quantized weights, looked up by ids. There is no gradient, because
 * quantized weights are not trained. */
#include "ops/product/quantized.h"

enum { IDS = 0, WORDS };

static vkt_result infer(vkt_infer *f)
{
    const vkt_quantized_attr *a = f->n->attr;
    const vkt_value *ids = vkt_in(f, IDS);
    char text[80];
    VKT_TRY(vkt_quantized_check(f, WORDS, a));
    VKT_REQUIRE(f, a->transposed == 0, VKT_E_ARG, "embedding_quantized: want transposed 0, got %u", a->transposed);
    VKT_REQUIRE(f, ids->dtype == VKT_U32 && ids->layout == VKT_ROWS, VKT_E_DTYPE,
                "embedding_quantized: want ids u32 by rows, got %s", vkt_dtype_name(ids->dtype));
    VKT_REQUIRE(f, ids->shape.rank < VKT_MAX_RANK, VKT_E_SHAPE,
                "embedding_quantized: want ids of rank %d at most, got %s", VKT_MAX_RANK - 1,
                vkt_shape_text(ids->shape, text));
    vkt_shape y = ids->shape;
    y.dim[y.rank++] = a->columns;
    vkt_out(f, VKT_F32, VKT_ROWS, y);
    return VKT_OK;
}

static void settle(void *attr, vkt_case_input *in)
{
    vkt_quantized_attr *a = attr;
    a->rows = vkt_quantized_rows(a, in[WORDS].shape.dim[0]);
}

static void emit(const vkt_node *n, vkt_emit *e)
{
    vkt_dequantize_emit(e, n->attr, n->in[WORDS], n->in[IDS], n->out[0]);
}

/* Generates a case. In some cases, a few ids name no row of the weights. */
static void sample(vkt_rng *r, vkt_case *c)
{
    const uint32_t rows = vkt_rng_range(r, 1, 60);
    vkt_case_u32(c, VKT_ROWS, vkt_shape2(vkt_rng_range(r, 1, 7), vkt_rng_range(r, 1, 23)),
                 rows + vkt_rng_range(r, 0, 2));
    const vkt_quantized_attr a = vkt_quantized_sample(r, c, rows);
    vkt_case_attr(c, &a, sizeof a);
}

static double bytes(const vkt_node *n)
{
    return 5 * vkt_elements_out(n, 0) + 4 * vkt_elements_in(n, IDS); /* 5: an f32 of y and about a byte of weights */
}

static const vkt_field fields[] = { VKT_QUANTIZED_FIELDS, { .name = NULL } };

const vkt_op vkt_op_embedding_quantized = {
    .name = "embedding_quantized",
    .min_in = 2,
    .max_in = 2,
    .cheap = true,
    .attr_bytes = sizeof(vkt_quantized_attr),
    .infer = infer,
    .settle = settle,
    .emit = emit,
    .half_rows = VKT_HALF_OUT(0),
    .sample = sample,
    .amended = WORDS,
    .amend = vkt_quantized_amend,
    .rel_tol = 2e-7f,
    .abs_tol = 2e-7f,
    .tol_why =
        "a product and a sum of exact numbers: three roundings of 2^-24, of terms as large as the largest result",
    .flops = vkt_flops_none,
    .bytes = bytes,
    .fields = fields,
    .formula = "y[.., d] = w[ids[..], d] of quantized w, 0 where the id is no row",
};

vkt_tensor vkt_embedding_quantized(vkt_graph *g, vkt_tensor ids, vkt_tensor words, vkt_quant format, uint32_t rows,
                                   uint32_t columns)
{
    const vkt_quantized_attr a = { .format = format, .rows = rows, .columns = columns };
    return vkt_apply(g, &vkt_op_embedding_quantized, (vkt_tensor[]){ ids, words }, 2, &a, NULL);
}
