/* ops/product/linear_quantized.c - linear layers with quantized weights, which are not trained.
 *
 * UNPACKED: the weights are unpacked to scratch memory before each product. The product of x and the unpacked weights
 * has the same variants as the op `matmul`. All layers of a network share the scratch memory, because no layer needs it
 * after its product.
 *
 * BLOCKS: the product itself unpacks the weights. On GPUs, it unpacks them to its tiles in shared memory, so the
 * unpacked weights are not written to memory. A product of many rows unpacks the same weights several times. On CPUs,
 * only the product for the gradient of x uses BLOCKS by default. It unpacks the weights to the panels (gemm.h) that
 * its tiles read. This pays only if the size of an unpacked row is a multiple of 4 KiB (has_page_rows in
 * gemm_choose.c).
 *
 * ROW_LANES and ROW_ACROSS: for few rows of x, as in the generation of text, the kernel linear_quantized reads the
 * quantized weights. So the weights are read once, and unpacked weights are not written to memory. With ROW_LANES, each
 * lane multiplies x by its own row of the weights. With ROW_ACROSS, all lanes of a subgroup share a row. */
#include "ops/product/gemm.h"
#include "ops/product/quantized.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/linear_quantized.abi.h"
#include "abi/quant.abi.h"

#include <math.h>

enum { X = 0, WORDS, BIAS };

static vkt_result infer(vkt_infer *f)
{
    const vkt_quantized_attr *a = f->n->attr;
    const vkt_value *x = vkt_in(f, X), *bias = vkt_has(f, BIAS) ? vkt_in(f, BIAS) : NULL;
    const uint32_t in = a->transposed ? a->rows : a->columns, out = a->transposed ? a->columns : a->rows;
    char xt[80], bt[80];
    VKT_REQUIRE(f, a->transposed <= 1, VKT_E_ARG, "linear_quantized: want transposed 0 or 1, got %u", a->transposed);
    VKT_TRY(vkt_quantized_check(f, WORDS, a));
    VKT_REQUIRE(f, x->dtype == VKT_F32 && (!bias || bias->dtype == VKT_F32), VKT_E_DTYPE,
                "linear_quantized: want x and bias f32, got x %s", vkt_dtype_name(x->dtype));
    VKT_REQUIRE(f, x->layout == VKT_ROWS && x->shape.rank == 2 && x->shape.dim[1] == in, VKT_E_SHAPE,
                "linear_quantized: want x (B,%u) by rows, got %s", in, vkt_shape_text(x->shape, xt));
    VKT_REQUIRE(f, !bias || (bias->shape.rank == 1 && bias->shape.dim[0] == out), VKT_E_SHAPE,
                "linear_quantized: want bias (%u), got %s", out, vkt_shape_text(bias->shape, bt));
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape2(x->shape.dim[0], out));
    return VKT_OK;
}

static void settle(void *attr, vkt_case_input *in)
{
    vkt_quantized_attr *a = attr;
    if (!a->transposed) a->columns = in[X].shape.dim[1];
    a->rows = a->transposed ? in[X].shape.dim[1] : vkt_quantized_rows(a, in[WORDS].shape.dim[0]);
}

/* ---- dispatches ---- */

/* Returns the product of x and the quantized weights. `blocks` describes the weights. */
static vkt_gemm product_of(const vkt_node *n, const vkt_gemm_blocks *blocks)
{
    const vkt_quantized_attr *a = n->attr;
    const uint32_t in = a->transposed ? a->rows : a->columns, out = a->transposed ? a->columns : a->rows;
    return (vkt_gemm){ .a = { .t = n->in[X], .x_outer = true, .ld = in },
                       .b = { .t = n->in[WORDS], .x_outer = !a->transposed, .ld = a->columns, .blocks = blocks },
                       .c = { .t = n->out[0], .ld = out },
                       .bias = n->in[BIAS],
                       .m = vkt_node_in(n, X)->shape.dim[0],
                       .n = out,
                       .k = in,
                       .batches = 1 };
}

static void emit_unpacked(const vkt_node *n, vkt_emit *e, vkt_gemm product)
{
    const vkt_quantized_attr *a = n->attr;
    const vkt_tensor w = vkt_scratch(e, "weights", 4ull * a->rows * a->columns);
    vkt_dequantize_emit(e, a, n->in[WORDS], (vkt_tensor){ 0 }, w);
    product.b.t = w;
    product.b.blocks = NULL;
    vkt_gemm_emit(e, &product);
}

/* The arrays of the kernel are large enough only if a subgroup has at least this many lanes. */
enum { FEWEST_LANES = 4 };

/* The dispatches of ROW_LANES or ROW_ACROSS. Each dispatch has `groups` work groups, and multiplies x by `rows` rows of
 * the weights. (The last dispatch may have fewer rows.) A row has `chunks` chunks of QUANT_CHUNK vec4s. `lanes`: number
 * of lanes of a subgroup. `across`: number of lanes that share a row. */
typedef struct few {
    bool can;
    uint32_t lanes, across;
    uint32_t rows, chunks, groups;
} few;

static few few_of(const vkt_node *n, const vkt_emit *e, bool across)
{
    const vkt_quantized_attr *a = n->attr;
    const uint64_t bytes = vkt_quantized_row(a->format, a->columns), range = e->lim->max_storage_range_bytes;
    few f = { .lanes = vkt_subgroup(e->lim, VKT_K_LINEAR_QUANTIZED),
              .chunks = vkt_div_up(a->columns, 4 * QUANT_CHUNK) };
    f.across = across ? f.lanes : 1;
    f.rows = (uint32_t)VKT_MIN(vkt_steps_in(VKT_MIN(range, UINT32_MAX), bytes, a->rows), a->rows);
    const uint32_t units = vkt_div_up(VKT_MAX(f.rows, 1u), f.lanes / f.across);
    const uint32_t wanted = across ? units : vkt_groups_wanted(e->lim, f.lanes);
    f.groups = VKT_MIN(VKT_MIN(units, wanted), e->lim->max_groups);
    const uint64_t loops = (uint64_t)vkt_div_up(units, f.groups) * (vkt_div_up(f.chunks, f.across) + 2);
    const vkt_value *x = vkt_lowered_value(e, n->in[X]), *y = vkt_lowered_value(e, n->out[0]);
    f.can = f.lanes >= FEWEST_LANES && !a->transposed && f.rows > 0 && x->shape.dim[0] <= LINEAR_QUANTIZED_BATCH &&
            x->bytes <= vkt_bind_range_bytes(e->lim) && y->bytes <= vkt_bind_range_bytes(e->lim) &&
            y->storage == VKT_PRECISION_F32 && loops <= vkt_rough_loop(e->lim);
    return f;
}

static void emit_few(const vkt_node *n, vkt_emit *e, const few *f)
{
    const vkt_quantized_attr *a = n->attr;
    const uint64_t bytes = vkt_quantized_row(a->format, a->columns);
    const vkt_tensor bias = n->in[BIAS];
    const uint32_t spec[] = { f->lanes, [LINEAR_QUANTIZED_SPEC_FORMAT] = a->format,
                              [LINEAR_QUANTIZED_SPEC_BATCH] = vkt_node_in(n, X)->shape.dim[0],
                              [LINEAR_QUANTIZED_SPEC_ACROSS] = f->across, [LINEAR_QUANTIZED_SPEC_BIAS] = bias.id != 0 };
    for (uint32_t row = 0; row < a->rows; row += f->rows) {
        const uint64_t start = row * bytes;
        vkt_linear_quantized_push pc = { .rows = VKT_MIN(f->rows, a->rows - row),
                                         .width4 = a->columns / 4,
                                         .chunks = f->chunks,
                                         .row_bytes = (uint32_t)bytes,
                                         .first = row,
                                         .outputs = a->rows };
        const uint64_t from = start / 4, to = (start + pc.rows * bytes + 3) / 4;
        const vkt_bind words = vkt_bind_range(e, n->in[WORDS], from, to - from, &pc.base);
        const vkt_bind bind[] = { [LINEAR_QUANTIZED_WORDS] = words,
                                  [LINEAR_QUANTIZED_X] = VKT_WHOLE(n->in[X]),
                                  [LINEAR_QUANTIZED_BIAS] = bias.id ? VKT_WHOLE(bias) : words,
                                  [LINEAR_QUANTIZED_Y] = VKT_WHOLE(n->out[0]) };
        pc.last = pc.base + (uint32_t)(to - from) - 1;
        pc.base = 4 * pc.base + (uint32_t)(start % 4);
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_LINEAR_QUANTIZED,
                                           VKT_LAUNCH_BIND(bind),
                                           VKT_LAUNCH_PUSH(pc),
                                           VKT_LAUNCH_SPEC(spec),
                                           .groups = { f->groups, 1, 1 } });
    }
}

/* Chooses the variant with the lowest cost. Costs are in multiply-adds for each weight. m rows of x cost m, and the
 * cost of unpacking is added. UNPACKED and BLOCKS compute whole tiles, so m below 4 costs 4. On GPUs, m below 32
 * costs 32, because most tiles there have 32 rows or more. */
static void emit(const vkt_node *n, vkt_emit *e)
{
    const few lanes = few_of(n, e, false), across = few_of(n, e, true);
    const vkt_gemm_blocks blocks = vkt_quantized_blocks(n->attr);
    const vkt_gemm product = product_of(n, &blocks);
    const double m = product.m;
    const bool gpu = e->lim->traits->shared_pays;
    const double rows = fmax(m, gpu ? 32 : 4);
    vkt_variant_cost costs[VKT_V_COUNT] = { { VKT_V_UNPACKED, vkt_gemm_unpack_cost(e, &product, false) + rows } };
    uint32_t count = 1;
    if (vkt_gemm_reads_blocks(e, &product))
        costs[count++] = (vkt_variant_cost){ VKT_V_BLOCKS, vkt_gemm_unpack_cost(e, &product, true) + rows };
    if (lanes.can) costs[count++] = (vkt_variant_cost){ VKT_V_ROW_LANES, gpu ? VKT_COST_NEVER : 4 + m };
    if (across.can) costs[count++] = (vkt_variant_cost){ VKT_V_ROW_ACROSS, gpu ? 4 + m : VKT_COST_NEVER };
    const vkt_variant v = vkt_pick(e, costs, count);
    if (v == VKT_V_UNPACKED)
        emit_unpacked(n, e, product);
    else if (v == VKT_V_BLOCKS)
        vkt_gemm_emit(e, &product);
    else
        emit_few(n, e, v == VKT_V_ROW_LANES ? &lanes : &across);
}

static void backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    vkt_quantized_attr a = *(const vkt_quantized_attr *)n->attr;
    a.transposed = !a.transposed;
    if (vkt_wants_grad(g, n->in[X]))
        dx[X] = vkt_apply(g, &vkt_op_linear_quantized, (vkt_tensor[]){ dy[0], n->in[WORDS] }, 2, &a, NULL);
    if (n->in[BIAS].id && vkt_wants_grad(g, n->in[BIAS]))
        dx[BIAS] = vkt_sum_to(g, dy[0], vkt_tensor_shape(g, n->in[BIAS]));
}

static void sample(vkt_rng *r, vkt_case *c)
{
    static const uint32_t batches[] = { 1, 3, 8, 16, 33, 70 };
    const uint32_t batch = batches[vkt_rng_range(r, 0, VKT_COUNT(batches) - 1)];
    vkt_case_input *x = vkt_case_f32(c, VKT_ROWS, vkt_shape2(batch, 1), -1, 1);
    vkt_quantized_attr a = vkt_quantized_sample(r, c, vkt_rng_range(r, 1, 70));
    a.transposed = vkt_rng_range(r, 0, 1);
    x->shape.dim[1] = a.transposed ? a.rows : a.columns;
    if (vkt_rng_range(r, 0, 1))
        vkt_case_f32(c, VKT_ROWS, vkt_shape1(a.transposed ? a.columns : a.rows), -1, 1);
    else
        vkt_case_absent(c);
    vkt_case_attr(c, &a, sizeof a);
}

static double flops(const vkt_node *n)
{
    const vkt_quantized_attr *a = n->attr;
    return vkt_elements_out(n, 0) * (2.0 * (a->transposed ? a->rows : a->columns) + (n->in[BIAS].id ? 1 : 0));
}

static const vkt_field fields[] = { VKT_QUANTIZED_FIELDS,
                                    VKT_FIELD(vkt_quantized_attr, transposed, U32, 1, 0),
                                    { .name = NULL } };

const vkt_op vkt_op_linear_quantized = {
    .name = "linear_quantized",
    .min_in = 2,
    .max_in = 3,
    .diff = 1u << X | 1u << BIAS,
    .attr_bytes = sizeof(vkt_quantized_attr),
    .infer = infer,
    .settle = settle,
    .emit = emit,
    .half_rows = VKT_HALF_IN(0) | VKT_HALF_OUT(0),
    .backward = backward,
    .sample = sample,
    .amended = WORDS,
    .amend = vkt_quantized_amend,
    .rel_tol = 2e-5f,
    .abs_tol = 2e-5f,
    .tol_why = "two roundings of 2^-24 in each weight, and the sum of linear over up to 512 products: their errors add "
               "like sqrt(512) 2^-24 of the largest partial sum",
    .flops = flops,
    .fields = fields,
    .formula = "y[b,o] = sum_i x[b,i] w[o,i] + bias[o] of quantized w; transposed: y[b,i] = sum_o x[b,o] w[o,i]",
};

vkt_tensor vkt_linear_quantized(vkt_graph *g, vkt_tensor x, vkt_tensor words, vkt_tensor bias, vkt_quant format,
                                uint32_t outputs)
{
    vkt_shape s = vkt_tensor_shape(g, x);
    if (!g || s.rank < 1) return vkt_linear(g, x, words, bias); /* reports the error */
    const uint32_t in = s.dim[s.rank - 1];
    const vkt_quantized_attr a = { .format = format, .rows = outputs, .columns = in };
    const vkt_shape rows = vkt_shape2((uint32_t)(vkt_shape_elements(s) / in), in);
    const vkt_tensor flat = vkt_reshape(g, vkt_to_layout(g, x, VKT_ROWS), rows);
    const vkt_tensor y =
        vkt_apply(g, &vkt_op_linear_quantized, (vkt_tensor[]){ flat, words, bias }, bias.id ? 3 : 2, &a, NULL);
    if (!y.id) return y;
    s.dim[s.rank - 1] = outputs;
    return vkt_reshape(g, y, s);
}
