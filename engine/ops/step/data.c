/* ops/step/data.c - gathers a batch from a data set on the device. The step state (abi/step.abi.h) has the position of
 * the batch's first sample and the number of the batch's samples. */
#include "ops/ops.h"

#include <math.h>

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/gather_ids.abi.h"
#include "abi/gather_labels.abi.h"
#include "abi/gather_rows.abi.h"
#include "abi/step.abi.h"

enum { TABLE = 0, ORDER, STEP };

/* Checks the conditions that all ops of this file share. */
static vkt_result check(vkt_infer *f, uint32_t batch)
{
    const vkt_value *order = vkt_in(f, ORDER);
    char text[80];
    VKT_REQUIRE(f, order->dtype == VKT_U32 && order->shape.rank == 1 && order->layout == VKT_ROWS,
                order->dtype == VKT_U32 ? VKT_E_SHAPE : VKT_E_DTYPE, "%s: want order u32 (n), got %s %s",
                f->n->op->name, vkt_dtype_name(order->dtype), vkt_shape_text(order->shape, text));
    VKT_REQUIRE(f, batch > 0 && batch <= INT32_MAX, VKT_E_ARG, "%s: want a batch of 1 to 2^31 - 1, got %u",
                f->n->op->name, batch);
    return VKT_OK;
}

/* Returns true if a binding can hold value `t`. Else sets the emission's error and returns false. */
static bool fits(const vkt_node *n, vkt_emit *e, vkt_tensor t)
{
    const vkt_value *v = vkt_lowered_value(e, t);
    if (v->bytes <= e->lim->max_storage_range_bytes) return true;
    vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED, "%s: %s has %llu bytes; this device binds at most %llu",
                               n->op->name, v->name, (unsigned long long)v->bytes,
                               (unsigned long long)e->lim->max_storage_range_bytes));
    return false;
}

/* Returns how many samples of a table fit into a binding, rounded down to a multiple of 64. A sample has whole words,
 * so 64 samples have a multiple of VKT_ALIGN_BYTES bytes. If 64 samples do not fit, sets the emission's error and
 * returns 0. */
static uint64_t range_rows(const vkt_node *n, vkt_emit *e, uint64_t row_bytes)
{
    const uint64_t rows = e->lim->max_storage_range_bytes / row_bytes / 64 * 64;
    if (!rows)
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED, "%s: a sample of %llu bytes is too large", n->op->name,
                                   (unsigned long long)row_bytes));
    return rows;
}

/* The three bindings of shaders/lib/batch_place.glsl, and its constant EARLY. `early`: the kernels run beside the
 * kernel that computes the step state. So they read the host's words for this run (abi/step.abi.h) instead. */
typedef struct place {
    bool early;
    vkt_bind step, words, run;
} place;

/* Returns whether a report node comes before n. If so, the kernels of n must not read the host's words: the report's
 * dispatch increments STEP_RUN, the index of the run, so these kernels would read the words of the next run. */
static bool is_behind_report(const vkt_node *n)
{
    for (uint32_t i = 0; i < n->index; i++)
        if (n->g->nodes[i]->op == &vkt_op_report) return true;
    return false;
}

/* Returns the bindings (of the step state or, if `early`, of the host's words) from which the kernels of node n read
 * the position of the batch's first sample, and the number of samples. */
static place place_of(const vkt_node *n, const vkt_emit *e)
{
    const vkt_graph *g = e->g;
    const bool early = e->lim->traits->early_batch && g->run.id && g->words.id && !is_behind_report(n);
    /* If `early`, the kernels read only the bindings Words and Run. Otherwise they read only the binding Step. The
     * bindings that they do not read are placeholders. */
    const vkt_bind step = VKT_WHOLE(early ? g->run : n->in[STEP]);
    return (place){ early, step, early ? VKT_WHOLE(g->words) : step, step };
}

/* The largest number of loop iterations for one item of a gather. A lane may compute several items, but has at most
 * about 4 * LONG iterations. Every driver allows so many iterations. */
#define LONG 4096u

/* Returns the number of work groups for `items` items with `iterations` iterations each. A lane may compute several
 * items. */
static uint64_t groups(const vkt_limits *lim, uint64_t items, uint64_t iterations, uint32_t lanes)
{
    const uint64_t n = vkt_groups(items, lanes, 1), wanted = lim->traits->groups_load;
    return wanted ? VKT_MAX(VKT_MIN(n, wanted), vkt_groups(n * iterations, 1, 4 * LONG)) : n;
}

/* ---- gather_rows: table, order, step -> (batch, sample) BATCH_LAST ---- */

static vkt_result rows_infer(vkt_infer *f)
{
    const vkt_gather_attr *a = f->n->attr;
    const vkt_value *table = vkt_in(f, TABLE);
    char text[80], sample[80];
    VKT_TRY(check(f, a->batch));
    VKT_REQUIRE(f, a->sample.rank == 1 || a->sample.rank == 3, VKT_E_SHAPE,
                "gather_rows: want a sample (F) or (C,H,W), got %s", vkt_shape_text(a->sample, sample));
    VKT_REQUIRE(f, a->channels == (a->sample.rank == 3 ? a->sample.dim[0] : 1) && a->channels <= VKT_GATHER_CHANNELS,
                VKT_E_ARG, "gather_rows: want 1 to %d channels, got %u", VKT_GATHER_CHANNELS, a->channels);
    const uint64_t n = vkt_shape_elements(a->sample), pitch = table->dtype == VKT_F32 ? n : vkt_round_up(n, 4);
    VKT_REQUIRE(f, table->dtype != VKT_U32, VKT_E_DTYPE, "gather_rows: want a table of u8, f16 or f32, got %s",
                vkt_dtype_name(table->dtype));
    VKT_REQUIRE(f, n > 0 && table->layout == VKT_ROWS && table->shape.rank == 2 && table->shape.dim[1] == pitch,
                VKT_E_SHAPE, "gather_rows: want a %s table (rows,%llu) for samples %s, got %s",
                vkt_dtype_name(table->dtype), (unsigned long long)pitch, vkt_shape_text(a->sample, sample),
                vkt_shape_text(table->shape, text));
    vkt_shape out = { .rank = 1 + a->sample.rank, .dim = { a->batch } };
    memcpy(out.dim + 1, a->sample.dim, a->sample.rank * sizeof out.dim[0]);
    vkt_out(f, VKT_F32, VKT_BATCH_LAST, out);
    return VKT_OK;
}

/* Splits scale and shift into sums of two floats each. The first float of the scale has only 16 significant bits, so
 * its product with a byte is exact. */
static void split(double scale, double shift, float out[4])
{
    int exponent;
    frexp(scale, &exponent);
    out[0] = (float)ldexp(nearbyint(ldexp(scale, 16 - exponent)), exponent - 16);
    out[1] = (float)(scale - (double)out[0]);
    out[2] = (float)shift;
    out[3] = (float)(shift - (double)out[2]);
}

static void rows_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_gather_attr *a = n->attr;
    const vkt_value *table = vkt_node_in(n, TABLE);
    static const vkt_kernel_id kernels[] = {
        [1] = VKT_K_GATHER_ROWS_F32, [2] = VKT_K_GATHER_ROWS_F16, [4] = VKT_K_GATHER_ROWS_U8
    };
    const uint32_t per_word = 4 / vkt_dtype_bytes(table->dtype), words = table->shape.dim[1] / per_word;
    const uint32_t elements = (uint32_t)vkt_shape_elements(a->sample);
    const uint64_t row_bytes = (uint64_t)words * 4, range = range_rows(n, e, row_bytes);
    if (!range || !fits(n, e, n->in[ORDER]) || !fits(n, e, n->out[0])) return;
    float affine[4 * VKT_GATHER_CHANNELS];
    for (uint32_t c = 0; c < a->channels; c++) split(a->scale[c], a->shift[c], affine + 4 * c);
    vkt_gather_rows_push push = { .batch4 = vkt_div_up(a->batch, 4),
                                  .words = words,
                                  .plane = elements / a->channels,
                                  .n_order = vkt_node_in(n, ORDER)->shape.dim[0] };
    const place from = place_of(n, e);
    vkt_bind bind[] = { [GATHER_TABLE] = VKT_WHOLE(n->in[TABLE]),
                        [GATHER_ORDER] = VKT_WHOLE(n->in[ORDER]),
                        [GATHER_STEP] = from.step,
                        [GATHER_AFFINE] = VKT_WHOLE(vkt_emit_const(e, "affine", affine, 16u * a->channels)),
                        [GATHER_OUT] = VKT_WHOLE(n->out[0]),
                        [GATHER_WORDS] = from.words,
                        [GATHER_RUN] = from.run };
    const uint32_t lanes = vkt_lanes(e->lim, e->lim->traits->lanes_load),
                   channel_words = vkt_div_up(push.plane, per_word), wanted = e->lim->traits->groups_load;
    const uint64_t few =
        VKT_MAX(vkt_groups(wanted * lanes / a->channels, push.batch4, 1), vkt_groups(channel_words, 1, LONG));
    push.parts = (uint32_t)(wanted ? VKT_MIN(few, channel_words) : channel_words);
    const uint64_t gx =
        groups(e->lim, (uint64_t)push.parts * push.batch4, vkt_div_up(channel_words, push.parts), lanes);
    for (uint64_t row = 0; row < table->shape.dim[0]; row += range) {
        const uint64_t end = VKT_MIN(row + range, (uint64_t)table->shape.dim[0]);
        const uint32_t spec[] = { lanes, [GATHER_SPEC_KEEP] = row > 0, [BATCH_SPEC_EARLY] = from.early };
        push.row_begin = (uint32_t)row;
        push.row_end = (uint32_t)end;
        bind[GATHER_TABLE].offset_bytes = row * row_bytes;
        bind[GATHER_TABLE].bytes = (end - row) * row_bytes;
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = (uint16_t)kernels[per_word],
                                           VKT_LAUNCH_BIND(bind),
                                           VKT_LAUNCH_PUSH(push),
                                           VKT_LAUNCH_SPEC(spec),
                                           .groups = { gx, a->channels, 1 } });
    }
}

static void rows_sample(vkt_rng *r, vkt_case *c)
{
    vkt_gather_attr a = { .batch = vkt_rng_range(r, 1, 70), .channels = 1 };
    const bool image = vkt_rng_range(r, 0, 1) != 0, u8 = vkt_rng_range(r, 0, 1) != 0,
               f16 = !u8 && vkt_rng_range(r, 0, 1) != 0;
    if (image) a.channels = vkt_rng_range(r, 1, 5);
    a.sample = image ? vkt_shape3(a.channels, vkt_rng_range(r, 1, 9), vkt_rng_range(r, 1, 9))
                     : vkt_shape1(vkt_rng_range(r, 1, 100));
    for (uint32_t i = 0; i < a.channels; i++) {
        a.scale[i] = (double)vkt_rng_uniform(r, -2, 2) / (u8 ? 255 : 1);
        a.shift[i] = (double)vkt_rng_uniform(r, -1, 1) / 3;
    }
    const uint32_t n = (uint32_t)vkt_shape_elements(a.sample), rows = vkt_rng_range(r, 1, 90);
    if (u8)
        vkt_case_u32(c, VKT_ROWS, vkt_shape2(rows, (n + 3) & ~3u), 256)->dtype = VKT_U8;
    else if (f16)
        vkt_case_f32(c, VKT_ROWS, vkt_shape2(rows, (n + 3) & ~3u), -3, 3)->dtype = VKT_F16;
    else
        vkt_case_f32(c, VKT_ROWS, vkt_shape2(rows, n), -3, 3);
    const uint32_t spare = vkt_rng_range(r, 0, 20);
    vkt_case_u32(c, VKT_ROWS, vkt_shape1(a.batch + spare), rows);
    c->rows = vkt_rng_range(r, 1, a.batch);
    c->first = vkt_rng_range(r, 0, spare);
    vkt_case_attr(c, &a, sizeof a);
}

static double rows_flops(const vkt_node *n)
{
    return 2 * vkt_elements_out(n, 0);
}

/* Counts the bytes of the batch's samples in the table and in the output, and of their entries in `order`. */
static double rows_bytes(const vkt_node *n)
{
    const vkt_gather_attr *a = n->attr;
    return vkt_elements_out(n, 0) * (vkt_dtype_bytes(vkt_node_in(n, TABLE)->dtype) + 4.0) + 4.0 * a->batch;
}

static const vkt_field gather_fields[] = { VKT_FIELD(vkt_gather_attr, batch, U32, 1, 0),
                                           VKT_FIELD(vkt_gather_attr, sample, U32, 1 + VKT_MAX_RANK,
                                                     0), /* the rank, then the dimensions */
                                           VKT_FIELD(vkt_gather_attr, channels, U32, 1, 1),
                                           VKT_FIELD(vkt_gather_attr, scale, F64, 1, 1), /* first channel's scale */
                                           { .name = NULL } };

const vkt_op vkt_op_gather_rows = {
    .name = "gather_rows",
    .min_in = 2,
    .max_in = 2,
    .cheap = true,
    .uses_step = true,
    .attr_bytes = sizeof(vkt_gather_attr),
    .infer = rows_infer,
    .emit = rows_emit,
    .half = VKT_HALF_OUT(0),
    .sample = rows_sample,
    .rel_tol = 2e-7f,
    .abs_tol = 2e-7f,
    .tol_why =
        "of bytes, a sum rounds once and its small second part adds as little; of f32 a product rounds too: less than "
        "3 * 2^-24 of the larger term",
    .flops = rows_flops,
    .bytes = rows_bytes,
    .fields = gather_fields,
    .formula = "out[b] = scale[c] table[order[first + b]] + shift[c], b < rows, else 0",
};

vkt_tensor vkt_gather_rows(vkt_graph *g, vkt_tensor table, vkt_tensor order, uint32_t batch, vkt_shape sample,
                           const double *scale, const double *shift)
{
    vkt_gather_attr a = { .batch = batch, .sample = sample, .channels = sample.rank == 3 ? sample.dim[0] : 1 };
    for (uint32_t c = 0; c < a.channels && c < VKT_GATHER_CHANNELS; c++) {
        a.scale[c] = scale ? scale[c] : 1;
        a.shift[c] = shift ? shift[c] : 0;
    }
    const vkt_tensor in[] = { table, order };
    const vkt_tensor out = vkt_apply(g, &vkt_op_gather_rows, in, VKT_COUNT(in), &a, NULL);
    if (out.id) g->batch = VKT_MAX(g->batch, batch);
    return out;
}

/* ---- gather_labels: table, order, step -> (batch) u32 ---- */

static vkt_result labels_infer(vkt_infer *f)
{
    const vkt_gather_attr *a = f->n->attr;
    const vkt_value *table = vkt_in(f, TABLE);
    char text[80];
    VKT_TRY(check(f, a->batch));
    VKT_REQUIRE(f, table->dtype == VKT_U32 && table->shape.rank == 1 && table->layout == VKT_ROWS,
                table->dtype == VKT_U32 ? VKT_E_SHAPE : VKT_E_DTYPE, "gather_labels: want a table u32 (n), got %s %s",
                vkt_dtype_name(table->dtype), vkt_shape_text(table->shape, text));
    vkt_out(f, VKT_U32, VKT_ROWS, vkt_shape1(a->batch));
    return VKT_OK;
}

static void labels_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_gather_attr *a = n->attr;
    if (!fits(n, e, n->in[TABLE]) || !fits(n, e, n->in[ORDER]) || !fits(n, e, n->out[0])) return;
    const vkt_gather_labels_push push = { .batch = a->batch,
                                          .n_order = vkt_node_in(n, ORDER)->shape.dim[0],
                                          .n_table = vkt_node_in(n, TABLE)->shape.dim[0] };
    const place from = place_of(n, e);
    const vkt_bind bind[] = { [LABELS_TABLE] = VKT_WHOLE(n->in[TABLE]),
                              [LABELS_ORDER] = VKT_WHOLE(n->in[ORDER]),
                              [LABELS_STEP] = from.step,
                              [LABELS_OUT] = VKT_WHOLE(n->out[0]),
                              [LABELS_WORDS] = from.words,
                              [LABELS_RUN] = from.run };
    const uint32_t lanes = vkt_lanes(e->lim, e->lim->traits->lanes_load),
                   spec[] = { lanes, [BATCH_SPEC_EARLY] = from.early };
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_GATHER_LABELS,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(push),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { groups(e->lim, a->batch, 1, lanes), 1, 1 } });
}

static void labels_sample(vkt_rng *r, vkt_case *c)
{
    const vkt_gather_attr a = { .batch = vkt_rng_range(r, 1, 700) };
    const uint32_t rows = vkt_rng_range(r, 1, 90);
    vkt_case_u32(c, VKT_ROWS, vkt_shape1(rows), 1000);
    const uint32_t spare = vkt_rng_range(r, 0, 20);
    vkt_case_u32(c, VKT_ROWS, vkt_shape1(a.batch + spare), rows);
    c->rows = vkt_rng_range(r, 1, a.batch);
    c->first = vkt_rng_range(r, 0, spare);
    vkt_case_attr(c, &a, sizeof a);
}

static double labels_bytes(const vkt_node *n)
{
    return 12 * vkt_elements_out(n, 0); /* 4 bytes each: the entry of `order`, the label in the table, the output */
}

const vkt_op vkt_op_gather_labels = {
    .name = "gather_labels",
    .min_in = 2,
    .max_in = 2,
    .uses_step = true,
    .attr_bytes = sizeof(vkt_gather_attr),
    .infer = labels_infer,
    .emit = labels_emit,
    .sample = labels_sample,
    .tol_why = "integers are copied",
    .flops = vkt_flops_none,
    .bytes = labels_bytes,
    .fields = gather_fields,
    .formula = "out[b] = table[order[first + b]], b < rows, else 0",
};

vkt_tensor vkt_gather_labels(vkt_graph *g, vkt_tensor table, vkt_tensor order, uint32_t batch)
{
    const vkt_gather_attr a = { .batch = batch };
    const vkt_tensor in[] = { table, order };
    const vkt_tensor out = vkt_apply(g, &vkt_op_gather_labels, in, VKT_COUNT(in), &a, NULL);
    if (out.id) g->batch = VKT_MAX(g->batch, batch);
    return out;
}

/* ---- gather_ids: table, order, step -> (batch, length) u32 ROWS ---- */

static vkt_result ids_infer(vkt_infer *f)
{
    const vkt_gather_ids_attr *a = f->n->attr;
    const vkt_value *table = vkt_in(f, TABLE);
    char text[80];
    VKT_TRY(check(f, a->batch));
    VKT_REQUIRE(f, table->dtype == VKT_U32, VKT_E_DTYPE, "gather_ids: want a table of u32, got %s",
                vkt_dtype_name(table->dtype));
    const uint32_t words = a->packed ? vkt_div_up(a->length, 2) : a->length;
    VKT_REQUIRE(f, words > 0 && table->layout == VKT_ROWS && table->shape.rank == 2 && table->shape.dim[1] == words,
                VKT_E_SHAPE, "gather_ids: want a table (rows,%u) for %u numbers%s, got %s", words, a->length,
                a->packed ? " of 16 bits" : "", vkt_shape_text(table->shape, text));
    vkt_out(f, VKT_U32, VKT_ROWS, vkt_shape2(a->batch, a->length));
    return VKT_OK;
}

static void ids_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_gather_ids_attr *a = n->attr;
    const vkt_value *table = vkt_node_in(n, TABLE);
    const bool wide = a->length % 4 == 0;
    const uint64_t row_bytes = (uint64_t)table->shape.dim[1] * 4, range = range_rows(n, e, row_bytes);
    if (!range || !fits(n, e, n->in[ORDER]) || !fits(n, e, n->out[0])) return;
    vkt_gather_ids_push push = { .batch = a->batch,
                                 .numbers = a->length,
                                 .parts = wide ? a->length / 4 : table->shape.dim[1],
                                 .n_order = vkt_node_in(n, ORDER)->shape.dim[0] };
    const place from = place_of(n, e);
    vkt_bind bind[] = { [IDS_TABLE] = VKT_WHOLE(n->in[TABLE]),
                        [IDS_ORDER] = VKT_WHOLE(n->in[ORDER]),
                        [IDS_STEP] = from.step,
                        [IDS_OUT] = VKT_WHOLE(n->out[0]),
                        [IDS_WORDS] = from.words,
                        [IDS_RUN] = from.run };
    static const uint16_t kernels[2][2] = { { VKT_K_GATHER_IDS, VKT_K_GATHER_IDS4 },
                                            { VKT_K_GATHER_IDS_PACKED, VKT_K_GATHER_IDS_PACKED4 } };
    const uint32_t lanes = vkt_lanes(e->lim, e->lim->traits->lanes_load);
    for (uint64_t row = 0; row < table->shape.dim[0]; row += range) {
        const uint64_t end = VKT_MIN(row + range, (uint64_t)table->shape.dim[0]);
        const uint32_t spec[] = { lanes, [IDS_SPEC_KEEP] = row > 0, [BATCH_SPEC_EARLY] = from.early };
        push.row_begin = (uint32_t)row;
        push.row_end = (uint32_t)end;
        bind[IDS_TABLE].offset_bytes = row * row_bytes;
        bind[IDS_TABLE].bytes = (end - row) * row_bytes;
        vkt_dispatch_add(
            e, &(vkt_launch){ .kernel = kernels[a->packed][wide],
                              VKT_LAUNCH_BIND(bind),
                              VKT_LAUNCH_PUSH(push),
                              VKT_LAUNCH_SPEC(spec),
                              .groups = { groups(e->lim, (uint64_t)a->batch * push.parts, 1, lanes), 1, 1 } });
    }
}

static void ids_sample(vkt_rng *r, vkt_case *c)
{
    vkt_gather_ids_attr a = { .batch = vkt_rng_range(r, 1, 70), .packed = vkt_rng_range(r, 0, 1) != 0 };
    a.length = vkt_rng_range(r, 0, 1) ? vkt_rng_range(r, 1, 101) : 4 * vkt_rng_range(r, 1, 29);
    const uint32_t rows = vkt_rng_range(r, 1, 90);
    vkt_case_u32(c, VKT_ROWS, vkt_shape2(rows, a.packed ? vkt_div_up(a.length, 2) : a.length), UINT32_MAX);
    const uint32_t spare = vkt_rng_range(r, 0, 20);
    vkt_case_u32(c, VKT_ROWS, vkt_shape1(a.batch + spare), rows);
    c->rows = vkt_rng_range(r, 1, a.batch);
    c->first = vkt_rng_range(r, 0, spare);
    vkt_case_attr(c, &a, sizeof a);
}

static double ids_bytes(const vkt_node *n)
{
    const vkt_gather_ids_attr *a = n->attr;
    return vkt_elements_out(n, 0) * (a->packed ? 6 : 8) + 4.0 * a->batch;
}

static const vkt_field ids_fields[] = { VKT_FIELD(vkt_gather_ids_attr, batch, U32, 1, 0),
                                        VKT_FIELD(vkt_gather_ids_attr, length, U32, 1, 0),
                                        VKT_FIELD(vkt_gather_ids_attr, packed, BOOL, 1, 0),
                                        { .name = NULL } };

const vkt_op vkt_op_gather_ids = {
    .name = "gather_ids",
    .min_in = 2,
    .max_in = 2,
    .cheap = true,
    .uses_step = true,
    .attr_bytes = sizeof(vkt_gather_ids_attr),
    .infer = ids_infer,
    .emit = ids_emit,
    .sample = ids_sample,
    .tol_why = "integers are copied",
    .flops = vkt_flops_none,
    .bytes = ids_bytes,
    .fields = ids_fields,
    .formula = "out[b,i] = table[order[first + b], i], b < rows, else 0",
};

vkt_tensor vkt_gather_ids(vkt_graph *g, vkt_tensor table, vkt_tensor order, uint32_t batch, uint32_t length,
                          bool packed)
{
    const vkt_gather_ids_attr a = { .batch = batch, .length = length, .packed = packed };
    const vkt_tensor in[] = { table, order };
    const vkt_tensor out = vkt_apply(g, &vkt_op_gather_ids, in, VKT_COUNT(in), &a, NULL);
    if (out.id) g->batch = VKT_MAX(g->batch, batch);
    return out;
}
