/* ops/product/quantized.c - see quantized.h. */
#include "ops/product/quantized.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/dequantize.abi.h"
#include "abi/quant.abi.h"

/* A format of quantized weights. A block of most formats has one or two f16 numbers: d and m in
 * vktrain/ops.h. A block of F16 is one weight, an f16 number. */
typedef struct quant_format {
    uint32_t elements, bytes; /* of a block */
    uint32_t half[2];         /* half[i]: offset of f16 number i in the block in bytes, plus 1; 0: no number i */
    const char *name;
} quant_format;

static const quant_format formats[] = {
    [VKT_QUANT_F16] = { 1, 2, { 1 }, "f16" },          [VKT_QUANT_Q4_0] = { 32, 18, { 1 }, "Q4_0" },
    [VKT_QUANT_Q4_1] = { 32, 20, { 1, 3 }, "Q4_1" },   [VKT_QUANT_Q8_0] = { 32, 34, { 1 }, "Q8_0" },
    [VKT_QUANT_Q4_K] = { 256, 144, { 1, 3 }, "Q4_K" }, [VKT_QUANT_Q5_K] = { 256, 176, { 1, 3 }, "Q5_K" },
    [VKT_QUANT_Q6_K] = { 256, 210, { 209 }, "Q6_K" },  [VKT_QUANT_BF16] = { 1, 2, { 0 }, "bf16" },
};

_Static_assert(VKT_QUANT_F16 == QUANT_F16 && VKT_QUANT_Q4_0 == QUANT_Q4_0 && VKT_QUANT_Q4_1 == QUANT_Q4_1 &&
                   VKT_QUANT_Q8_0 == QUANT_Q8_0 && VKT_QUANT_Q4_K == QUANT_Q4_K && VKT_QUANT_Q5_K == QUANT_Q5_K &&
                   VKT_QUANT_Q6_K == QUANT_Q6_K && VKT_QUANT_BF16 == QUANT_BF16,
               "vktrain/ops.h has the numbers of the shader");

static const quant_format *format_of(uint32_t format)
{
    return format < VKT_COUNT(formats) && formats[format].bytes ? &formats[format] : NULL;
}

uint64_t vkt_quantized_row(uint32_t format, uint32_t columns)
{
    const quant_format *q = format_of(format);
    return q && columns % q->elements == 0 ? (uint64_t)columns / q->elements * q->bytes : 0;
}

uint64_t vkt_quantized_bytes(vkt_quant format, uint32_t rows, uint32_t columns)
{
    return vkt_quantized_row(format, columns) * rows;
}

vkt_result vkt_quantized_check(vkt_infer *f, uint32_t i, const vkt_quantized_attr *a)
{
    const vkt_value *w = vkt_in(f, i);
    const quant_format *q = format_of(a->format);
    const char *op = f->n->op->name;
    char text[80];
    VKT_REQUIRE(f, q, VKT_E_ARG, "%s: want a vkt_quant, got %u", op, a->format);
    const uint32_t unit = VKT_MAX(q->elements, 4u);
    VKT_REQUIRE(f, a->rows > 0 && a->columns > 0 && a->columns % unit == 0, VKT_E_SHAPE,
                "%s: want rows of a multiple of %u numbers of %s, got %u rows of %u", op, unit, q->name, a->rows,
                a->columns);
    VKT_REQUIRE(f, w->dtype == VKT_U32 && w->layout == VKT_ROWS && w->shape.rank == 1, VKT_E_DTYPE,
                "%s: want the words of the weights, u32 (N), got %s %s", op, vkt_dtype_name(w->dtype),
                vkt_shape_text(w->shape, text));
    const uint64_t bytes = vkt_quantized_row(a->format, a->columns) * a->rows, got = 4ull * w->shape.dim[0];
    VKT_REQUIRE(f, got >= bytes, VKT_E_SHAPE, "%s: want at least %llu words for (%u,%u) of %s, got %llu", op,
                (unsigned long long)(bytes + 3) / 4, a->rows, a->columns, q->name, (unsigned long long)got / 4);
    return VKT_OK;
}

/* ---- dispatches ---- */

/* The rows of one dispatch. */
typedef struct part {
    uint32_t row, rows; /* the binding has `rows` rows of the weights, from `row` on */
    uint32_t first, n;  /* the dispatch writes n rows of y, from `first` on */
    bool keep;          /* with ids: the dispatch does not change rows of y whose weights are not in the binding */
    uint32_t width;     /* columns of a panel (gemm.h); 0: y is stored by rows */
} part;

static void emit_part(vkt_emit *e, const vkt_quantized_attr *a, vkt_tensor words, vkt_tensor ids, vkt_tensor y, part p)
{
    const uint64_t bytes = vkt_quantized_row(a->format, a->columns), start = p.row * bytes;
    const uint32_t lanes = vkt_lanes(e->lim, e->lim->traits->lanes_gather);
    vkt_dequantize_push pc = { .rows = p.n,
                               .width4 = a->columns / 4,
                               .row_bytes = (uint32_t)bytes,
                               .first = p.first,
                               .row_begin = p.row,
                               .row_end = p.row + p.rows,
                               .panel = p.n * (p.width / 4) };
    const uint64_t from = start / 4,
                   to = VKT_MIN((start + p.rows * bytes + 3) / 4, vkt_lowered_value(e, words)->shape.dim[0]);
    const vkt_bind bind[] = { [DEQUANTIZE_WORDS] = vkt_bind_range(e, words, from, to - from, &pc.base),
                              [DEQUANTIZE_Y] =
                                  p.width ? VKT_WHOLE(y)
                                          : vkt_part(e, y, (uint64_t)p.first * a->columns, (uint64_t)p.n * a->columns),
                              [DEQUANTIZE_IDS] = VKT_WHOLE(ids) };
    const bool chunks = p.width || (!ids.id && !e->lim->traits->shared_pays);
    const uint64_t units = (uint64_t)p.n * (chunks ? vkt_div_up(pc.width4, QUANT_CHUNK) : pc.width4);
    const uint32_t each = VKT_MAX(e->lim->traits->items_gather / (chunks ? QUANT_CHUNK : 1), 1u);
    pc.last = pc.base + (uint32_t)(to - from) - 1;
    pc.base = 4 * pc.base + (uint32_t)(start % 4);
    const uint32_t spec[] = { lanes, [DEQUANTIZE_SPEC_FORMAT] = a->format, [DEQUANTIZE_SPEC_KEEP] = p.keep,
                              [DEQUANTIZE_SPEC_CHUNKS] = chunks, [DEQUANTIZE_SPEC_PANEL] = p.width };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = ids.id ? VKT_K_DEQUANTIZE_IDS : VKT_K_DEQUANTIZE,
                                       .bind = bind,
                                       .n_bind = ids.id ? 3 : 2,
                                       VKT_LAUNCH_PUSH(pc),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { vkt_groups(units, lanes, each), 1, 1 } });
}

/* Emits the dispatches that write the rows first .. first + n - 1 of the weights to y. With ids, y gets the n rows that
 * the ids name. */
static void emit_rows(vkt_emit *e, const vkt_quantized_attr *a, vkt_tensor words, vkt_tensor ids, vkt_tensor y,
                      uint32_t first, uint64_t n)
{
    const uint64_t bytes = vkt_quantized_row(a->format, a->columns), range = e->lim->max_storage_range_bytes;
    const uint64_t size = vkt_element_bytes(vkt_lowered_value(e, y));
    /* Each range of y must begin at a multiple of VKT_ALIGN_BYTES. So each range has a multiple of `step` rows, except
     * the last range. */
    const uint32_t step = vkt_bind_range_step(a->columns) * (uint32_t)(4 / size);
    uint64_t per_y = range / size / a->columns, per_w = range > VKT_ALIGN_BYTES ? (range - VKT_ALIGN_BYTES) / bytes : 0;
    if (per_y < n) per_y -= per_y % step;
    if (!ids.id) per_w = per_y = VKT_MIN(per_w, per_y) >= n ? n : VKT_MIN(per_w, per_y) / step * step;
    if (per_y == 0 || per_w == 0) {
        vkt_emit_error(e,
                       vkt_fail(&e->host, VKT_E_UNSUPPORTED, "%s: rows of %u numbers do not fit bindings of %llu bytes",
                                e->node->op->name, a->columns, (unsigned long long)range));
        return;
    }
    for (uint64_t at = 0; at < n; at += per_y)
        for (uint64_t row = ids.id ? 0 : first + at; row < (ids.id ? a->rows : first + at + 1); row += per_w) {
            const uint32_t count = (uint32_t)VKT_MIN(per_y, n - at);
            emit_part(e, a, words, ids, y,
                      (part){ .row = (uint32_t)row,
                              .rows = ids.id ? (uint32_t)VKT_MIN(per_w, a->rows - row) : count,
                              .first = (uint32_t)at,
                              .n = count,
                              .keep = ids.id && row > 0 });
        }
}

void vkt_dequantize_emit(vkt_emit *e, const vkt_quantized_attr *a, vkt_tensor words, vkt_tensor ids, vkt_tensor y)
{
    emit_rows(e, a, words, ids, y, 0, ids.id ? vkt_shape_elements(vkt_lowered_value(e, ids)->shape) : a->rows);
}

void vkt_dequantize_rows_emit(vkt_emit *e, const vkt_quantized_attr *a, vkt_tensor words, uint32_t first, uint32_t n,
                              vkt_tensor y)
{
    emit_rows(e, a, words, (vkt_tensor){ 0 }, y, first, n);
}

void vkt_dequantize_panels_emit(vkt_emit *e, const vkt_quantized_attr *a, vkt_tensor words, uint32_t first, uint32_t n,
                                uint32_t width, vkt_tensor y)
{
    emit_part(e, a, words, (vkt_tensor){ 0 }, y,
              (part){ .row = first, .rows = n, .n = (uint32_t)vkt_round_up(n, 4), .width = width });
}

vkt_gemm_blocks vkt_quantized_blocks(const vkt_quantized_attr *a)
{
    return (vkt_gemm_blocks){ .weights = a,
                              .format = a->format,
                              .row_bytes = (uint32_t)vkt_quantized_row(a->format, a->columns),
                              .emit_panels = vkt_dequantize_panels_emit };
}

/* ---- random cases ---- */

vkt_quantized_attr vkt_quantized_sample(vkt_rng *r, vkt_case *c, uint32_t rows)
{
    static const uint32_t all[] = { VKT_QUANT_F16,  VKT_QUANT_Q4_0, VKT_QUANT_Q4_1, VKT_QUANT_Q8_0,
                                    VKT_QUANT_Q4_K, VKT_QUANT_Q5_K, VKT_QUANT_Q6_K, VKT_QUANT_BF16 };
    vkt_quantized_attr a = { .format = all[vkt_rng_range(r, 0, VKT_COUNT(all) - 1)], .rows = rows };
    const uint32_t unit = formats[a.format].elements;
    a.columns = unit == 1 ? 4 * vkt_rng_range(r, 1, 40) : unit * vkt_rng_range(r, 1, unit == 32 ? 5 : 2);
    const uint64_t bytes = vkt_quantized_row(a.format, a.columns) * a.rows;
    vkt_case_u32(c, VKT_ROWS, vkt_shape1((uint32_t)(bytes + 3) / 4), UINT32_MAX);
    return a;
}

uint32_t vkt_quantized_rows(const vkt_quantized_attr *a, uint32_t words)
{
    const uint64_t bytes = vkt_quantized_row(a->format, a->columns);
    return bytes ? (uint32_t)(4ull * words / bytes) : 0;
}

/* Replaces the exponent of the f16 number at `at`, so that its magnitude is in [2^-6, 2^-4). A quarter of the numbers
 * become subnormal instead (below 2^-14), because many scales of Q6_K are subnormal. */
static void amend_half(unsigned char *at)
{
    const int exponent = (at[0] & 3) == 0 ? 0 : (at[1] & 4) ? 0x28 : 0x24;
    at[1] = (unsigned char)((at[1] & 0x83) | exponent);
}

void vkt_quantized_amend(const void *attr, uint32_t *words, size_t n)
{
    const vkt_quantized_attr *a = attr;
    const quant_format *q = format_of(a->format);
    unsigned char *bytes = (unsigned char *)words;
    const uint64_t size = q ? vkt_quantized_row(a->format, a->columns) * a->rows : 0;
    for (uint64_t b = 0; q && size <= 4ull * n && b + q->bytes <= size; b += q->bytes) {
        for (int i = 0; i < 2; i++)
            if (q->half[i]) amend_half(bytes + b + q->half[i] - 1);
        if (a->format == VKT_QUANT_BF16)
            bytes[b + 1] = (unsigned char)((bytes[b + 1] & 0x80) | 0x3d); /* 2^-5 to 2^-3 */
    }
}
