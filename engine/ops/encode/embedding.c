/* ops/encode/embedding.c - rows of a table, looked up by ids, and the gradient of the table: the sums over equal ids.
 *
 * The gradient sorts the positions of ids by id, stably and without atomics (embedding_rank, embedding_scatter). If dy
 * is BATCH_LAST (`channels`), or has rows that are not whole vec4s, dy is copied in the sorted order. At the end,
 * embedding_sum adds up the gradients of each id. The work groups of embedding_rank split the ids into ranges, and
 * each work group loops over all positions. So the sort takes positions * ranges / lanes iterations. The sums take
 * positions * width additions. The gradient of the table is first set to 0. Then embedding_sum writes only rows whose
 * ids occur. Two other methods are not used. Sums by float atomics could have different bits in each run. A loop over
 * all positions for each row of the table would read all ids once per row. */
#include "kernel/ids.h"
#include "ops/ops.h"

#include "abi/abi.h"
#include "abi/embedding.abi.h"
#include "abi/embedding_dw.abi.h"

enum { IDS = 0, TABLE, DY = 1 };

/* With MAX_IDS ids that are all equal, a lane of embedding_sum adds up the sums of 32,768 blocks of 64 ids. Some
 * drivers end long loops early. The lowest known limit is 65,535 iterations, so this loop is short enough. */
#define MAX_IDS (1u << 21)

static uint32_t row_elements(vkt_shape table)
{
    return (uint32_t)(vkt_shape_elements(table) / table.dim[0]);
}

/* Returns how many of `all` rows fit into one range of range_bytes bytes. A row has `elements` numbers of `size` bytes.
 * If not all rows fit, the result is a multiple of `step`, and the next range starts at a multiple of VKT_ALIGN_BYTES.
 * The result is 0 if too few rows fit for these two conditions. */
static uint64_t rows_in(uint64_t range_bytes, uint64_t elements, uint32_t size, uint64_t all, uint32_t step)
{
    const uint64_t most = range_bytes / size / elements;
    return most >= all ? all : most - most % VKT_MAX(4 / size * vkt_bind_range_step((uint32_t)elements), step);
}

/* Returns the number of work groups for `units` units of work, for instance vec4s of the result. */
static uint64_t groups_for(const vkt_emit *e, uint64_t units, uint32_t lanes)
{
    return vkt_groups(units, lanes, e->lim->traits->items_gather);
}

static uint32_t lanes_for(const vkt_emit *e)
{
    return vkt_lanes(e->lim, e->lim->traits->lanes_gather);
}

static void too_large(vkt_emit *e, const char *what)
{
    vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED, "%s: %s cannot be split into ranges of %llu bytes",
                               e->node->op->name, what, (unsigned long long)e->lim->max_storage_range_bytes));
}

/* ---- embedding: ids, table -> y ---- */

static vkt_result check_ids(vkt_infer *f)
{
    const vkt_value *ids = vkt_in(f, IDS);
    VKT_REQUIRE(f, ids->dtype == VKT_U32, VKT_E_DTYPE, "%s: want ids u32, got %s", f->n->op->name,
                vkt_dtype_name(ids->dtype));
    VKT_REQUIRE(f, ids->layout == VKT_ROWS, VKT_E_ARG, "%s: want ids by rows, got them batch last", f->n->op->name);
    return VKT_OK;
}

static vkt_result embedding_infer(vkt_infer *f)
{
    const vkt_embedding_attr *a = f->n->attr;
    const vkt_value ids = *vkt_in(f, IDS), table = *vkt_in(f, TABLE);
    const vkt_shape s = ids.shape, t = table.shape;
    char it[80], tt[80];
    VKT_TRY(check_ids(f));
    VKT_REQUIRE(f, a->channels <= 1, VKT_E_ARG, "embedding: want channels 0 or 1, got %u", a->channels);
    VKT_REQUIRE(f, table.dtype == VKT_F32, VKT_E_DTYPE, "embedding: want a table f32, got %s",
                vkt_dtype_name(table.dtype));
    VKT_REQUIRE(f, table.layout == VKT_ROWS, VKT_E_ARG, "embedding: want the table by rows, got it batch last");
    VKT_REQUIRE(f, t.rank >= 1 && s.rank + t.rank - 1 <= VKT_MAX_RANK, VKT_E_SHAPE,
                "embedding: want a table (V, ..) and a result of rank %d at most, got ids %s and table %s",
                VKT_MAX_RANK, vkt_shape_text(s, it), vkt_shape_text(t, tt));
    VKT_REQUIRE(f, !a->channels || (s.rank >= 1 && t.rank == 2), VKT_E_SHAPE,
                "embedding: for channels want ids (B, ..) and a table (V, D), got %s and %s", vkt_shape_text(s, it),
                vkt_shape_text(t, tt));
    VKT_REQUIRE(f, vkt_shape_elements(s) <= MAX_IDS, VKT_E_UNSUPPORTED, "embedding: want at most %u ids, got %s",
                MAX_IDS, vkt_shape_text(s, it));
    vkt_shape y = { .rank = s.rank + t.rank - 1 };
    const uint32_t lead = a->channels ? 1 : s.rank; /* y begins with this many dimensions of ids */
    memcpy(y.dim, s.dim, lead * sizeof y.dim[0]);
    memcpy(y.dim + lead, t.dim + 1, (t.rank - 1) * sizeof y.dim[0]);
    memcpy(y.dim + lead + t.rank - 1, s.dim + lead, (s.rank - lead) * sizeof y.dim[0]);
    vkt_out(f, VKT_F32, a->channels ? VKT_BATCH_LAST : VKT_ROWS, y);
    return VKT_OK;
}

/* Returns whether the kernels can store y in 16 bits: only if each row of the table consists of whole vec4s. It is not
 * enough that the last dimension of y is a multiple of 4. For instance, with a table (V), y has the shape of ids, and a
 * row of the table is one number. */
static bool embedding_is_half(const vkt_node *n)
{
    return row_elements(vkt_node_in(n, TABLE)->shape) % 4 == 0;
}

/* Emits the lookup in one range of the table. Splits y into ranges of positions or, with channels, of features. */
static void look_up(const vkt_node *n, vkt_emit *e, vkt_embedding_push pc, vkt_bind table)
{
    const bool channels = ((const vkt_embedding_attr *)n->attr)->channels, wide = pc.width % 4 == 0;
    const uint64_t most = e->lim->max_storage_range_bytes, columns = (uint64_t)pc.per_sample * pc.pitch4;
    const uint64_t all = channels ? pc.width : pc.positions, step = channels ? 4 * columns : pc.width;
    const uint32_t size = vkt_element_bytes(vkt_lowered_value(e, n->out[0]));
    const uint64_t per = step <= UINT32_MAX ? rows_in(most, step, size, all, channels ? 4 : 1) : 0;
    const uint32_t lanes = lanes_for(e), spec[] = { lanes, [EMBEDDING_SPEC_KEEP] = pc.row_begin > 0 };
    const uint16_t kernel = channels ? (wide ? VKT_K_EMBEDDING_CHANNELS4 : VKT_K_EMBEDDING_CHANNELS)
                                     : (wide ? VKT_K_EMBEDDING4 : VKT_K_EMBEDDING);
    if (per == 0) too_large(e, "the result");
    for (uint64_t at = 0; per && at < all; at += per) {
        const uint32_t count = (uint32_t)VKT_MIN(all - at, per);
        *(channels ? &pc.feature : &pc.first) = (uint32_t)at;
        *(channels ? &pc.features : &pc.positions) = count;
        const vkt_bind bind[] = { [EMBEDDING_IDS] = VKT_WHOLE(n->in[IDS]),
                                  [EMBEDDING_TABLE] = table,
                                  [EMBEDDING_Y] = vkt_part(e, n->out[0], at * step, count * step) };
        const uint64_t units = channels ? columns : (count * step + 3) / 4;
        vkt_dispatch_add(
            e, &(vkt_launch){ .kernel = kernel,
                              VKT_LAUNCH_BIND(bind),
                              VKT_LAUNCH_PUSH(pc),
                              VKT_LAUNCH_SPEC(spec),
                              .groups = { channels ? vkt_groups(units, lanes, 1) : groups_for(e, units, lanes),
                                          channels ? (uint32_t)vkt_groups(count, 4, EMBEDDING_CHUNK) : 1, 1 } });
    }
}

static void embedding_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_value *ids = vkt_node_in(n, IDS), *table = vkt_node_in(n, TABLE);
    const uint32_t V = table->shape.dim[0], width = row_elements(table->shape);
    const uint32_t positions = (uint32_t)vkt_shape_elements(ids->shape),
                   batch = ids->shape.rank ? ids->shape.dim[0] : 1;
    const bool texels = ((const vkt_embedding_attr *)n->attr)->channels || width % 4 == 0;
    const uint64_t range = texels ? vkt_read_range(e->lim) : e->lim->max_storage_range_bytes;
    const uint64_t per = rows_in(range, width, 4, V, 1);
    if (ids->bytes > e->lim->max_storage_range_bytes) too_large(e, "the list of ids");
    if (per == 0) too_large(e, "the table");
    for (uint64_t row = 0; per && row < V && e->status == VKT_OK; row += per) {
        const uint64_t rows = VKT_MIN(V - row, per);
        const vkt_embedding_push pc = { .row_begin = (uint32_t)row,
                                        .row_end = (uint32_t)(row + rows),
                                        .width = width,
                                        .positions = positions,
                                        .batch = batch,
                                        .pitch4 = vkt_div_up(batch, 4),
                                        .per_sample = positions / batch };
        look_up(n, e, pc, (vkt_bind){ n->in[TABLE], row * width * 4, rows * width * 4 });
    }
}

static vkt_tensor embed(vkt_graph *g, vkt_tensor ids, vkt_tensor table, uint32_t padding, bool channels)
{
    const vkt_embedding_attr a = { .padding = padding, .channels = channels };
    return vkt_apply(g, &vkt_op_embedding, (vkt_tensor[]){ ids, vkt_to_layout(g, table, VKT_ROWS) }, 2, &a, NULL);
}

vkt_tensor vkt_embedding(vkt_graph *g, vkt_tensor ids, vkt_tensor table, uint32_t padding)
{
    return embed(g, ids, table, padding, false);
}

vkt_tensor vkt_embedding_channels(vkt_graph *g, vkt_tensor ids, vkt_tensor table, uint32_t padding)
{
    return embed(g, ids, table, padding, true);
}

vkt_tensor vkt_index_select(vkt_graph *g, vkt_tensor x, vkt_tensor ids)
{
    if (!g) return (vkt_tensor){ 0 };
    char text[80];
    if (g->status == VKT_OK && ids.id && ids.id < g->n_values && g->values[ids.id].shape.rank != 1) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE, "index_select: want ids (M), got %s",
                                    vkt_shape_text(g->values[ids.id].shape, text)));
        return (vkt_tensor){ 0 };
    }
    return embed(g, ids, x, VKT_NO_PADDING, false);
}

static void embedding_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    vkt_embedding_attr a = *(const vkt_embedding_attr *)n->attr;
    a.table = g->values[n->in[TABLE].id].shape;
    dx[TABLE] = vkt_apply(g, &vkt_op_embedding_dw, (vkt_tensor[]){ n->in[IDS], dy[0] }, 2, &a, NULL);
}

/* Generates a case. With few rows, many positions often have the same id. With many rows, some rows often have no id.
 * In some cases, a few ids name no row. No case has a padding id, because the gradient of its row is 0 by definition,
 * which does not match difference quotients. tests/ops/test_op_goldens.c tests padding ids. */
static void embedding_sample(vkt_rng *r, vkt_case *c)
{
    vkt_embedding_attr a = { .padding = VKT_NO_PADDING, .channels = vkt_rng_range(r, 0, 1) };
    const uint32_t rows = vkt_rng_range(r, 0, 1) ? vkt_rng_range(r, 1, 5) : vkt_rng_range(r, 20, 300);
    const uint32_t width = vkt_rng_range(r, 0, 1) ? 4 * vkt_rng_range(r, 1, 6) : vkt_rng_range(r, 1, 19);
    const vkt_shape ids = vkt_rng_range(r, 0, 2)
                              ? vkt_shape2(vkt_rng_range(r, 1, 23), vkt_rng_range(r, 1, 41))
                              : vkt_shape3(vkt_rng_range(r, 1, 5), vkt_rng_range(r, 1, 7), vkt_rng_range(r, 1, 9));
    const bool deep = !a.channels && vkt_rng_range(r, 0, 3) == 0;
    vkt_case_u32(c, VKT_ROWS, ids, rows + vkt_rng_range(r, 0, 2));
    vkt_case_f32(c, VKT_ROWS, deep ? vkt_shape3(rows, vkt_rng_range(r, 1, 3), width) : vkt_shape2(rows, width), -2, 2);
    vkt_case_attr(c, &a, sizeof a);
}

static double embedding_bytes(const vkt_node *n)
{
    return 8 * vkt_elements_out(n, 0) + 4 * vkt_elements_in(n, IDS);
}

static const vkt_field embedding_fields[] = { VKT_FIELD(vkt_embedding_attr, padding, U32, 1, VKT_NO_PADDING),
                                              VKT_FIELD(vkt_embedding_attr, channels, U32, 1, 0),
                                              { .name = NULL } };

const vkt_op vkt_op_embedding = {
    .name = "embedding",
    .min_in = 2,
    .max_in = 2,
    .cheap = true,
    .diff = 1u << TABLE,
    .attr_bytes = sizeof(vkt_embedding_attr),
    .infer = embedding_infer,
    .emit = embedding_emit,
    .half_rows = VKT_HALF_OUT(0),
    .half_when = embedding_is_half,
    .backward = embedding_backward,
    .sample = embedding_sample,
    .rel_tol = 1e-7f,
    .abs_tol = 1.5e-5f,
    .tol_why = "forward is a copy; a gradient sums up to 1000 terms of both signs in blocks of 64: < 144 roundings of "
               "2^-24 of partial sums that are at most some times the largest result",
    .flops = vkt_flops_none,
    .bytes = embedding_bytes,
    .fields = embedding_fields,
    .formula = "y[.., d] = table[ids[..], d], 0 where the id is no row",
};

/* ---- embedding_dw: ids, dy -> dtable ---- */

static vkt_result dw_infer(vkt_infer *f)
{
    const vkt_embedding_attr *a = f->n->attr;
    const vkt_value *ids = vkt_in(f, IDS), *dy = vkt_in(f, DY);
    VKT_TRY(check_ids(f));
    VKT_REQUIRE(f, dy->dtype == VKT_F32, VKT_E_DTYPE, "embedding_dw: want f32, got %s", vkt_dtype_name(dy->dtype));
    VKT_REQUIRE(f,
                vkt_shape_elements(dy->shape) == vkt_shape_elements(ids->shape) * row_elements(a->table) &&
                    dy->layout == (a->channels ? VKT_BATCH_LAST : VKT_ROWS),
                VKT_E_SHAPE, "embedding_dw: want a gradient of embedding's result");
    vkt_out(f, VKT_F32, VKT_ROWS, a->table);
    return VKT_OK;
}

/* The data that the dispatches of one embedding_dw share. Each kernel binds some of the tensors in `all`. */
typedef struct sums {
    vkt_bind all[EMBEDDING_DW_COPY + 1];
    vkt_embedding_dw_push pc;
    uint32_t positions, lanes, vecs; /* vecs: how many vec4s of a row a lane of embedding_sum computes */
    bool channels;                   /* dy is BATCH_LAST */
    bool copy; /* the gradients are copied first, sorted by id (EMBEDDING_DW_COPY). This is so if dy is BATCH_LAST,
                * or if its rows are not whole vec4s */
} sums;

/* A work group of embedding_rank loops over its range of ids twice, and over the positions once. These limits keep the
 * loops below 65,535 iterations, the lowest known limit of a driver. */
enum { POSITIONS_A_DISPATCH = 32768, IDS_A_RANGE = 65536 };

static uint32_t width4(uint32_t width)
{
    return vkt_div_up(width, 4);
}

static void dispatch(vkt_emit *e, const sums *s, uint16_t kernel, uint32_t bindings, const uint32_t *spec,
                     uint32_t n_spec, uint64_t groups, uint32_t rows_of_groups)
{
    vkt_bind bind[EMBEDDING_DW_COPY + 1] = { { .bytes = 0 } };
    for (uint32_t i = 0; i < VKT_COUNT(bind); i++)
        if (bindings >> i & 1) bind[i] = s->all[i];
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = kernel,
                                       VKT_LAUNCH_BIND(bind),
                                       .push = &s->pc,
                                       .push_bytes = sizeof s->pc,
                                       .spec = spec,
                                       .n_spec = n_spec,
                                       .groups = { groups, rows_of_groups, 1 } });
}

#define BIT(binding) (1u << EMBEDDING_DW_##binding)

static void rank(vkt_emit *e, sums *s)
{
    const uint32_t lanes = vkt_subgroup(e->lim, VKT_K_EMBEDDING_RANK);
    for (uint32_t at = 0; at < s->positions; at += POSITIONS_A_DISPATCH) {
        s->pc.begin = at;
        s->pc.end = VKT_MIN(at + POSITIONS_A_DISPATCH, s->positions);
        s->pc.last = s->pc.end == s->positions;
        dispatch(e, s, VKT_K_EMBEDDING_RANK, BIT(IDS) | BIT(START) | BIT(RANK), &lanes, 1, s->pc.ranges, 1);
    }
}

static void scatter(vkt_emit *e, const sums *s)
{
    const uint16_t kernel = s->channels ? VKT_K_EMBEDDING_SCATTER_CHANNELS
                            : s->copy   ? VKT_K_EMBEDDING_SCATTER_ROWS
                                        : VKT_K_EMBEDDING_SCATTER;
    const uint64_t most = VKT_MAX(s->pc.zeros / 4, s->pc.end);
    dispatch(e, s, kernel,
             BIT(IDS) | BIT(START) | BIT(RANK) | BIT(SORTED) | BIT(OUT) | (s->copy ? BIT(DY) | BIT(COPY) : 0),
             &s->lanes, 1, groups_for(e, most, s->lanes),
             s->copy && s->pc.end ? vkt_div_up(width4(s->pc.width), EMBEDDING_DW_CHUNK) : 1);
}

/* Emits the dispatch that adds up gradients. A block is EMBEDDING_DW_BLOCK consecutive positions in the sorted order,
 * with equal ids. If `blocks`, the dispatch computes the sum of each block. Else it computes the gradient of each row
 * in a range of the table. For each row, it adds up the sums of the row's blocks, and the gradients at the positions
 * that are in no block. */
static void sum(vkt_emit *e, const sums *s, bool blocks)
{
    static const uint16_t kernels[2][2] = { { VKT_K_EMBEDDING_SUM, VKT_K_EMBEDDING_SUM_COPIED },
                                            { VKT_K_EMBEDDING_BLOCKS, VKT_K_EMBEDDING_BLOCKS_COPIED } };
    const uint32_t spec[] = { s->lanes, [EMBEDDING_DW_SPEC_WIDTH] = s->pc.width, [EMBEDDING_DW_SPEC_VECS] = s->vecs };
    const uint32_t parts = width4(s->pc.width) / s->vecs, chunk = VKT_MIN(parts, s->lanes);
    sums to = *s;
    if (s->copy) to.all[EMBEDDING_DW_DY] = s->all[EMBEDDING_DW_COPY];
    if (blocks) to.all[EMBEDDING_DW_OUT] = s->all[EMBEDDING_DW_PART];
    dispatch(e, &to, kernels[blocks][s->copy], BIT(START) | BIT(SORTED) | BIT(DY) | BIT(OUT) | (blocks ? 0 : BIT(PART)),
             spec, VKT_COUNT(spec),
             blocks ? vkt_groups(vkt_div_up(s->positions, EMBEDDING_DW_BLOCK) * (uint64_t)chunk, s->lanes, 1)
                    : groups_for(e, s->positions * (uint64_t)chunk, s->lanes),
             VKT_MIN(vkt_div_up(parts, chunk), 1024u));
}

/* Emits rows begin .. end - 1 of the result. The first range also completes the sort and sums the blocks. */
static void emit_range(vkt_emit *e, sums *s, vkt_tensor out, uint64_t begin, uint64_t end)
{
    const uint64_t elements = (end - begin) * s->pc.width;
    s->all[EMBEDDING_DW_OUT] = (vkt_bind){ out, begin * s->pc.width * 4, elements * 4 };
    s->pc.zeros = (uint32_t)elements;
    s->pc.end = begin ? 0 : s->positions;
    scatter(e, s);
    if (begin == 0 && s->positions >= EMBEDDING_DW_BLOCK) sum(e, s, true);
    s->pc.begin = (uint32_t)begin;
    s->pc.end = (uint32_t)end;
    sum(e, s, false);
}

static void dw_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_embedding_attr *a = n->attr;
    const vkt_value *ids = vkt_node_in(n, IDS), *dy = vkt_lowered_value(e, n->in[DY]);
    const uint32_t positions = (uint32_t)vkt_shape_elements(ids->shape), V = a->table.dim[0];
    const uint32_t batch = ids->shape.rank ? ids->shape.dim[0] : 1, width = row_elements(a->table);
    const uint64_t most = e->lim->max_storage_range_bytes, per = rows_in(most, width, 4, V, 1);
    sums s = { .positions = positions,
               .lanes = lanes_for(e),
               .vecs = 4,
               .channels = a->channels,
               .copy = a->channels || width % 4,
               .pc = { .rows = V, .width = width, .padding = a->padding } };
    while (width4(width) % s.vecs) s.vecs--;
    s.pc.ranges = VKT_MAX(e->lim->traits->groups_sort, vkt_div_up(V + 1, IDS_A_RANGE));
    s.pc.range = (uint32_t)vkt_round_up(vkt_div_up(V + 1, s.pc.ranges), 4);
    s.pc.ranges = vkt_div_up(V + 1, s.pc.range);
    s.pc.per_sample = positions / batch;
    s.pc.pitch4 = vkt_div_up(batch, 4);
    const uint64_t starts = (s.pc.range + 1ull) * s.pc.ranges * 4, sorted = positions * 8ull;
    const uint64_t row = 16ull * width4(width), parts = vkt_div_up(positions, EMBEDDING_DW_BLOCK) * row;
    if (VKT_MAX(starts, VKT_MAX(sorted, parts)) > most || per == 0 || (s.copy && positions * row > most) ||
        dy->bytes > vkt_read_range(e->lim)) {
        too_large(e, "the gradient");
        return;
    }
    s.all[EMBEDDING_DW_IDS] = VKT_WHOLE(n->in[IDS]);
    s.all[EMBEDDING_DW_DY] = VKT_WHOLE(n->in[DY]);
    s.all[EMBEDDING_DW_START] = VKT_WHOLE(vkt_scratch(e, "start", starts));
    s.all[EMBEDDING_DW_RANK] = VKT_WHOLE(vkt_scratch(e, "rank", positions * 4ull));
    s.all[EMBEDDING_DW_SORTED] = VKT_WHOLE(vkt_scratch(e, "sorted", sorted));
    s.all[EMBEDDING_DW_PART] = VKT_WHOLE(vkt_scratch(e, "part", parts));
    if (s.copy) s.all[EMBEDDING_DW_COPY] = VKT_WHOLE(vkt_scratch(e, "copy", positions * row));
    if (e->status != VKT_OK) return;
    rank(e, &s);
    for (uint64_t v = 0; v < V; v += per) emit_range(e, &s, n->out[0], v, VKT_MIN(v + per, (uint64_t)V));
}

/* Returns true if rows are whole vec4s. Other rows are copied one element at a time, but kernels can read 16-bit
 * values only as whole vec4s. */
static bool dw_is_half(const vkt_node *n)
{
    return row_elements(((const vkt_embedding_attr *)n->attr)->table) % 4 == 0;
}

static double dw_flops(const vkt_node *n)
{
    return vkt_elements_in(n, DY);
}

const vkt_op vkt_op_embedding_dw = {
    .name = "embedding_dw",
    .min_in = 2,
    .max_in = 2,
    .attr_bytes = sizeof(vkt_embedding_attr),
    .infer = dw_infer,
    .emit = dw_emit,
    .half_rows = VKT_HALF_IN(DY),
    .half_when = dw_is_half,
    .forward_only = true,
    .tested_by = "embedding",
    .flops = dw_flops,
    .formula = "dtable[v] = sum of dy where ids = v; 0 for v = padding",
};
