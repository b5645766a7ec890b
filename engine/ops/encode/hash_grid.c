/* ops/encode/hash_grid.c - features of a point from grids of several resolutions, the levels. The corners of a fine
 * grid share the entries of a table.
 *
 * The gradient of the table is the slow part. In each level, each point adds to 2^D entries, where D is the number of
 * dimensions, and many points share an entry. There are two variants. With each of them, all runs give the same bits.
 * `owned` (hash_grid_dw.comp): each lane owns the table of a level. If there are too few levels to keep all cores busy,
 * or too many points for the loop of one lane, each lane owns a table for a level and a slice of the batch.
 * `atomic` (hash_grid_fixed.comp): for each point, level and corner, a lane adds 64-bit fixed-point numbers to one
 * table by integer atomics. For each float of the table, the sums need 8 bytes and one bit of scratch. */
#include "ops/product/gemm.h"

#include <math.h>

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/hash_grid.abi.h"

enum { X = 0, TABLE, DX_DY, DW_DY = 1 };
enum { MAX_RESOLUTION = 1 << 23, ENTRY_ALIGN = 8 };
#define SLICES_BYTES (64ull << 20) /* `owned`: usual limit for the tables of all slices together: see slices_for */
#define MOST_ADDENDS (1ull << 27)  /* most products in a sum of `atomic`: see scale_of_sums in hash_grid_fixed.comp */

/* Attributes of hash_grid_dw. They describe the table, which is not an input. */
typedef struct hash_grid_dw_attr {
    vkt_hash_grid_attr grid;
    uint32_t dims, entries;
} hash_grid_dw_attr;

/* ---- the grid ---- */

/* Returns the number of corners of a grid. If there are more than 2^24, returns some number above 2^24. */
static uint64_t corners(uint32_t resolution, uint32_t dims)
{
    const uint64_t row = (uint64_t)resolution + 1;
    return row > 4096 ? UINT32_MAX : row * row * (dims == 3 ? row : 1);
}

static uint32_t lay_out(const vkt_hash_grid_attr *a, uint32_t dims, vkt_hash_grid_level *levels)
{
    const bool legal = a->levels >= 1 && a->levels <= VKT_HASH_GRID_MAX_LEVELS && a->log2_table_size >= 3 &&
                       a->log2_table_size <= 24 && a->base_resolution >= 1 && a->per_level_scale >= 1 &&
                       (a->features == 1 || a->features == 2 || a->features == 4 || a->features == 8) &&
                       (dims == 2 || dims == 3);
    const uint32_t most = legal ? 1u << a->log2_table_size : 0;
    uint32_t first = 0;
    for (uint32_t l = 0; legal && l < a->levels; l++) {
        const double resolution = floor(a->base_resolution * pow(a->per_level_scale, l) + 1e-9);
        if (!(resolution <= MAX_RESOLUTION)) return 0;
        const uint64_t all = corners((uint32_t)resolution, dims);
        const uint32_t entries = all > most ? most : (uint32_t)vkt_round_up(all, ENTRY_ALIGN);
        if (levels)
            levels[l] = (vkt_hash_grid_level){ (uint32_t)resolution, all > most ? most - 1 : 0, first, entries };
        first += entries;
    }
    return first;
}

static vkt_hash_grid_attr resolve(const vkt_hash_grid_params *p)
{
    static const vkt_hash_grid_params none;
    if (!p) p = &none;
    return (vkt_hash_grid_attr){ .levels = p->levels ? p->levels : 16,
                                 .features = p->features ? p->features : 2,
                                 .log2_table_size = p->log2_table_size ? p->log2_table_size : 19,
                                 .base_resolution = p->base_resolution ? p->base_resolution : 16,
                                 .per_level_scale = p->per_level_scale != 0 ? p->per_level_scale : 2 };
}

vkt_shape vkt_hash_grid_table(const vkt_hash_grid_params *p, uint32_t dims,
                              vkt_hash_grid_level levels[VKT_HASH_GRID_MAX_LEVELS])
{
    const vkt_hash_grid_attr a = resolve(p);
    const uint32_t entries = lay_out(&a, dims, levels);
    return entries ? vkt_shape2(entries, a.features) : vkt_shape0();
}

/* ---- shared functions ---- */

static vkt_result check_points(vkt_infer *f)
{
    const vkt_value *x = vkt_in(f, X);
    char text[80];
    VKT_REQUIRE(f, x->dtype == VKT_F32, VKT_E_DTYPE, "%s: want x f32, got %s", f->n->op->name,
                vkt_dtype_name(x->dtype));
    VKT_REQUIRE(f, x->shape.rank == 2 && (x->shape.dim[1] == 2 || x->shape.dim[1] == 3) && x->layout == VKT_BATCH_LAST,
                VKT_E_SHAPE, "%s: want points (B,2) or (B,3) with the batch last, got %s", f->n->op->name,
                vkt_shape_text(x->shape, text));
    return VKT_OK;
}

static vkt_result check_table(vkt_infer *f, const vkt_hash_grid_attr *a)
{
    const vkt_value *table = vkt_in(f, TABLE);
    const uint32_t dims = vkt_in(f, X)->shape.dim[1], entries = lay_out(a, dims, NULL);
    char text[80];
    VKT_REQUIRE(
        f, entries > 0, VKT_E_ARG,
        "%s: want 1 to %d levels of 1, 2, 4 or 8 features, tables of 2^3 to 2^24 entries, a scale from 1 on and "
        "resolutions up to %d, got %u levels of %u features, 2^%u entries, resolution %u and scale %g",
        f->n->op->name, VKT_HASH_GRID_MAX_LEVELS, MAX_RESOLUTION, a->levels, a->features, a->log2_table_size,
        a->base_resolution, a->per_level_scale);
    VKT_REQUIRE(f, table->dtype == VKT_F32, VKT_E_DTYPE, "%s: want a table f32, got %s", f->n->op->name,
                vkt_dtype_name(table->dtype));
    VKT_REQUIRE(f, table->layout == VKT_ROWS && vkt_shape_equal(table->shape, vkt_shape2(entries, a->features)),
                VKT_E_SHAPE, "%s: want a table (%u,%u) by rows, got %s", f->n->op->name, entries, a->features,
                vkt_shape_text(table->shape, text));
    return VKT_OK;
}

/* The grid and the batch of a node, and a part of the grid: levels begin .. end - 1. One binding can hold the table of
 * these levels, and one binding can hold the part of y (or of dy) that belongs to these levels. */
typedef struct part {
    vkt_hash_grid_level level[VKT_HASH_GRID_MAX_LEVELS];
    uint32_t levels, features, lanes, spec[HASH_GRID_SPEC_KEEP + 1];
    uint64_t row; /* floats of a feature: the batch, rounded up to a multiple of 4 */
    uint32_t begin, end;
    bool atomic; /* the node uses the variant `atomic`: the scratch sums of these levels must fit into a binding, too */
    vkt_hash_grid_push pc;
    vkt_bind bind[HASH_GRID_BINDINGS];
} part;

static part part_of(const vkt_node *n, vkt_emit *e, const vkt_hash_grid_attr *a)
{
    const vkt_shape x = vkt_node_in(n, X)->shape;
    part p = { .levels = a->levels, .features = a->features, .row = vkt_round_up(x.dim[0], 4) };
    lay_out(a, x.dim[1], p.level);
    p.lanes = vkt_lanes(e->lim, e->lim->traits->lanes_gather);
    p.spec[0] = p.lanes;
    p.spec[HASH_GRID_SPEC_DIMS] = x.dim[1];
    p.spec[HASH_GRID_SPEC_FEATURES] = a->features;
    p.pc.n4 = (uint32_t)(p.row / 4);
    p.bind[HASH_GRID_X] = VKT_WHOLE(n->in[X]);
    p.bind[HASH_GRID_LEVEL] = VKT_WHOLE(vkt_emit_const(e, "hash_grid levels", p.level, a->levels * sizeof p.level[0]));
    return p;
}

/* Returns the number of words of the flags for a table of `floats` elements: see hash_grid_fixed.comp. */
static uint64_t flag_words(uint64_t floats)
{
    return vkt_round_up((floats + 31) / 32, 4);
}
/* Returns the number of bytes of sums, flags and maxima together. */
static uint64_t sum_bytes(uint64_t floats)
{
    return 4 * (2 * floats + flag_words(floats) + HASH_GRID_MAXIMA);
}

/* Returns how many bytes of a tensor a binding can hold. A binding begins at an aligned offset, so it may also hold up
 * to VKT_ALIGN_BYTES bytes in front of the wanted ones. */
static uint64_t binding_bytes(const vkt_emit *e)
{
    return e->lim->max_storage_range_bytes - VKT_ALIGN_BYTES;
}

static uint32_t entries_of(const part *p)
{
    const vkt_hash_grid_level *last = &p->level[p->end - 1];
    return last->first + last->entries - p->level[p->begin].first;
}

/* Advances to the next levels, as many as bindings hold. Returns false after the last level, and after an error. If
 * bindings do not hold the points, or do not hold one level, sets the emission's error and returns false. */
static bool next_part(const vkt_node *n, vkt_emit *e, part *p, vkt_tensor table, vkt_tensor y)
{
    const uint64_t most = binding_bytes(e), feature_bytes = p->row * 4;
    const uint32_t dims = p->spec[HASH_GRID_SPEC_DIMS];
    p->begin = p->end;
    if (p->begin == p->levels || e->status != VKT_OK) return false;
    while (p->end < p->levels && (p->end - p->begin + 1) * p->features * feature_bytes <= most) {
        p->end++;
        const uint64_t floats = (uint64_t)entries_of(p) * p->features;
        if ((p->atomic ? sum_bytes(floats) : 4 * floats) <= most) continue;
        p->end--;
        break;
    }
    if (p->end == p->begin || dims * feature_bytes > most) {
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                                   "%s: %u samples, or %u entries, of %u features do not fit a binding of %llu bytes",
                                   n->op->name, (uint32_t)p->row, p->level[p->begin].entries, p->features,
                                   (unsigned long long)e->lim->max_storage_range_bytes));
        return false;
    }
    p->pc.level = p->begin;
    p->pc.levels = p->end - p->begin;
    p->pc.first = p->level[p->begin].first;
    p->pc.floats = entries_of(p) * p->features;
    p->bind[HASH_GRID_TABLE] =
        vkt_bind_range(e, table, (uint64_t)p->pc.first * p->features, p->pc.floats, &p->pc.table_base);
    p->bind[HASH_GRID_Y] =
        vkt_bind_range(e, y, p->begin * p->features * p->row, p->pc.levels * p->features * p->row, &p->pc.y_base);
    p->pc.y_base /= 4;
    return true;
}

/* The mask of the bindings DX and SUMS. The kernels HASH_GRID and HASH_GRID_DW use neither of them. */
#define NEITHER (1u << HASH_GRID_DX | 1u << HASH_GRID_SUMS)

/* Appends a dispatch with the bindings of the part, except for those in the mask `unused`. */
static void dispatch(vkt_emit *e, const part *p, uint16_t kernel, uint32_t unused, uint64_t gx, uint32_t gy)
{
    vkt_bind bind[HASH_GRID_BINDINGS];
    for (uint32_t i = 0; i < VKT_COUNT(bind); i++) bind[i] = unused >> i & 1 ? (vkt_bind){ .bytes = 0 } : p->bind[i];
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = kernel,
                                       VKT_LAUNCH_BIND(bind),
                                       .push = &p->pc,
                                       .push_bytes = sizeof p->pc,
                                       VKT_LAUNCH_SPEC(p->spec),
                                       .groups = { gx, gy, 1 } });
}

/* Counts, for each point, each level and each corner of the point's cell: one operation per dimension for the weight of
 * the corner, and a product and a sum per feature. */
static double corner_flops(const vkt_hash_grid_attr *a, vkt_shape x)
{
    return (double)x.dim[0] * a->levels * (1u << x.dim[1]) * (x.dim[1] + 2.0 * a->features);
}

static const vkt_field grid_fields[] = { VKT_FIELD(vkt_hash_grid_attr, levels, U32, 1, 16),
                                         VKT_FIELD(vkt_hash_grid_attr, features, U32, 1, 2),
                                         VKT_FIELD(vkt_hash_grid_attr, log2_table_size, U32, 1, 19),
                                         VKT_FIELD(vkt_hash_grid_attr, base_resolution, U32, 1, 16),
                                         VKT_FIELD(vkt_hash_grid_attr, per_level_scale, F64, 1, 2),
                                         { .name = NULL } };

/* ---- hash_grid: x (B,D), table (E,F) -> (B, L F) ---- */

static vkt_result grid_infer(vkt_infer *f)
{
    const vkt_hash_grid_attr *a = f->n->attr;
    VKT_TRY(check_points(f));
    VKT_TRY(check_table(f, a));
    vkt_out(f, VKT_F32, VKT_BATCH_LAST, vkt_shape2(vkt_in(f, X)->shape.dim[0], a->levels * a->features));
    return VKT_OK;
}

static void grid_emit(const vkt_node *n, vkt_emit *e)
{
    part p = part_of(n, e, n->attr);
    while (next_part(n, e, &p, n->in[TABLE], n->out[0]))
        dispatch(e, &p, VKT_K_HASH_GRID, NEITHER, vkt_groups(p.pc.n4, p.lanes, e->lim->traits->items_hash_grid),
                 p.pc.levels);
}

vkt_tensor vkt_hash_grid(vkt_graph *g, vkt_tensor x, vkt_tensor table, const vkt_hash_grid_params *p)
{
    const vkt_hash_grid_attr a = resolve(p);
    const vkt_tensor in[] = { vkt_to_layout(g, x, VKT_BATCH_LAST), vkt_to_layout(g, table, VKT_ROWS) };
    return vkt_apply(g, &vkt_op_hash_grid, in, 2, &a, NULL);
}

static void grid_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_hash_grid_attr *a = n->attr;
    if (vkt_wants_grad(g, n->in[X]))
        dx[X] = vkt_apply(g, &vkt_op_hash_grid_dx, (vkt_tensor[]){ n->in[X], n->in[TABLE], dy[0] }, 3, a, NULL);
    if (vkt_wants_grad(g, n->in[TABLE])) {
        const hash_grid_dw_attr w = { *a, vkt_node_in(n, X)->shape.dim[1], vkt_node_in(n, TABLE)->shape.dim[0] };
        dx[TABLE] = vkt_apply(g, &vkt_op_hash_grid_dw, (vkt_tensor[]){ n->in[X], dy[0] }, 2, &w, NULL);
    }
}

/* Generates points, some of them outside the grid, and levels of all kinds: dense levels (each corner has an entry of
 * its own), and hashed ones whose entries are used once or several times. */
static void grid_sample(vkt_rng *r, vkt_case *c)
{
    const bool many = vkt_rng_range(r, 0, 3) == 0;
    const uint32_t dims = vkt_rng_range(r, 2, 3);
    const vkt_hash_grid_attr a = { .levels = many ? vkt_rng_range(r, 7, 18) : vkt_rng_range(r, 1, 6),
                                   .features = 1u << vkt_rng_range(r, 0, 3),
                                   .log2_table_size = vkt_rng_range(r, 3, 9),
                                   .base_resolution = vkt_rng_range(r, 1, 4),
                                   .per_level_scale = 1 + vkt_rng_range(r, 0, many ? 17 : 70) / 100.0 };
    vkt_case_f32(c, VKT_BATCH_LAST, vkt_shape2(vkt_rng_range(r, 1, 150), dims), -0.05f, 1.05f);
    vkt_case_f32(c, VKT_ROWS, vkt_shape2(lay_out(&a, dims, NULL), a.features), -1, 1);
    vkt_case_attr(c, &a, sizeof a);
}

static double grid_flops(const vkt_node *n)
{
    return corner_flops(n->attr, vkt_node_in(n, X)->shape);
}

/* Counts the bytes of x, of y, and of the entries that are read: in each level, each point reads one entry for each
 * corner of its cell. */
static double grid_bytes(const vkt_node *n)
{
    return 4 * vkt_elements_in(n, X) + 4 * (1 + (1u << vkt_node_in(n, X)->shape.dim[1])) * vkt_elements_out(n, 0);
}

const vkt_op vkt_op_hash_grid = {
    .name = "hash_grid",
    .min_in = 2,
    .max_in = 2,
    .cheap = true,
    .diff = 1u << X | 1u << TABLE,
    .attr_bytes = sizeof(vkt_hash_grid_attr),
    .infer = grid_infer,
    .emit = grid_emit,
    .half = VKT_HALF_OUT(0),
    .backward = grid_backward,
    .sample = grid_sample,
    .abs_tol = 4e-6f,
    .tol_why = "a weight is rounded 6 times, a feature adds up 8 products: 14 2^-24 = 1e-6 forward; gradients add up "
               "terms of both signs of some hundred points, or of 18 levels, beside the largest sum",
    .flops = grid_flops,
    .bytes = grid_bytes,
    .fields = grid_fields,
    .formula = "y[b, l F + f] = sum over corners c of the cell of x[b] in grid l of w(c) table[entry(l, c), f]",
};

/* ---- hash_grid_dx: x, table, dy (B, L F) -> dx (B,D) ---- */

static vkt_result dx_infer(vkt_infer *f)
{
    VKT_TRY(check_points(f));
    VKT_TRY(check_table(f, f->n->attr));
    vkt_out(f, VKT_F32, VKT_BATCH_LAST, vkt_in(f, X)->shape);
    return VKT_OK;
}

static void dx_emit(const vkt_node *n, vkt_emit *e)
{
    part p = part_of(n, e, n->attr);
    p.bind[HASH_GRID_DX] = VKT_WHOLE(n->out[0]);
    while (next_part(n, e, &p, n->in[TABLE], n->in[DX_DY])) {
        p.spec[HASH_GRID_SPEC_KEEP] = p.begin > 0;
        dispatch(e, &p, VKT_K_HASH_GRID_DX, 1u << HASH_GRID_SUMS,
                 vkt_groups(p.pc.n4, p.lanes, e->lim->traits->items_hash_grid_dx), 1);
    }
}

static double dx_flops(const vkt_node *n)
{
    const vkt_shape x = vkt_node_in(n, X)->shape;
    return x.dim[1] * corner_flops(n->attr, x);
}

const vkt_op vkt_op_hash_grid_dx = {
    .name = "hash_grid_dx",
    .min_in = 3,
    .max_in = 3,
    .attr_bytes = sizeof(vkt_hash_grid_attr),
    .infer = dx_infer,
    .emit = dx_emit,
    .half = VKT_HALF_IN(DX_DY),
    .forward_only = true,
    .tested_by = "hash_grid",
    .flops = dx_flops,
    .formula = "dx[b,d] = sum_l N(l) sum_c dw(c)/dp_d sum_f dy[b, l F + f] table[entry(l, c), f]",
};

/* ---- hash_grid_dw: x, dy -> dtable (E,F) ---- */

static vkt_result dw_infer(vkt_infer *f)
{
    const hash_grid_dw_attr *a = f->n->attr;
    VKT_TRY(check_points(f));
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape2(a->entries, a->grid.features));
    return VKT_OK;
}

/* Returns the number of slices of the batch. Each slice has a table of its own. The limits are: there are no more
 * slices than vec4s of samples, and all tables fit into a binding and into SLICES_BYTES. One slice is always allowed.
 * 1. Within the limits, there are enough slices for as many work groups as the trait groups_scatter.
 * 2. Then the number of slices is doubled while the trait groups_scatter_most allows that many work groups, and while
 *    each entry of all tables gets at least 16 additions on average.
 * 3. If a lane's loop would still be too long, there are more slices, even beyond the limits.
 * More slices are not always faster. For instance, two slices took 1.5 times as long as one slice on a CPU, because
 * their tables did not stay in the cache. */
static uint32_t slices_for(const vkt_emit *e, const part *p)
{
    const vkt_traits *t = e->lim->traits;
    const uint32_t few = t->groups_scatter * p->lanes, enough = t->groups_scatter_most * p->lanes;
    const uint64_t table = entries_of(p), all = p->row * p->pc.levels << p->spec[HASH_GRID_SPEC_DIMS];
    const uint64_t room = VKT_MIN(e->lim->max_storage_range_bytes, SLICES_BYTES) / (4 * table * p->features);
    const uint64_t most = VKT_MAX(VKT_MIN(p->pc.n4, room), 1u);
    uint64_t slices = VKT_MIN(vkt_div_up(few, p->pc.levels), most);
    while (2 * slices <= most && 2 * slices * p->pc.levels <= enough && 16 * 2 * slices * table <= all) slices *= 2;
    return (uint32_t)VKT_MAX(slices, vkt_groups(p->pc.n4, (uint32_t)vkt_rough_loop(e->lim), 1));
}

/* Emits `owned` for a part of the table. */
static void emit_owned(vkt_emit *e, part *p)
{
    const vkt_bind out = p->bind[HASH_GRID_TABLE];
    const uint32_t base = p->pc.table_base, floats = p->pc.floats;
    p->pc.slices = slices_for(e, p);
    p->pc.share = vkt_div_up(p->pc.n4, p->pc.slices);
    if (p->pc.slices > 1) {
        const uint64_t bytes = (uint64_t)p->pc.slices * floats * 4;
        if (bytes > e->lim->max_storage_range_bytes) {
            vkt_emit_error(
                e, vkt_fail(&e->host, VKT_E_UNSUPPORTED, "hash_grid_dw: %u samples are too many", 4 * p->pc.n4));
            return;
        }
        p->bind[HASH_GRID_TABLE] = VKT_WHOLE(vkt_scratch(e, "hash_grid tables", bytes));
        p->pc.table_base = 0;
    }
    p->pc.floats = p->pc.slices * floats;
    dispatch(e, p, VKT_K_HASH_GRID_ZERO, ~(1u << HASH_GRID_TABLE),
             vkt_groups(p->pc.floats / 4, p->lanes, e->lim->traits->items_move), 1);
    p->pc.floats = floats;
    dispatch(e, p, VKT_K_HASH_GRID_DW, NEITHER, vkt_groups((uint64_t)p->pc.slices * p->pc.levels, p->lanes, 1), 1);
    if (p->pc.slices > 1) {
        const vkt_gemm_sum sum = {
            .part = p->bind[HASH_GRID_TABLE], .c = out, .n = floats, .slices = p->pc.slices, .c_base = base
        };
        vkt_gemm_sum_emit(e, &sum);
    }
}

/* Returns an upper bound of the number of products whose sum is one element of the table: the corners of all points in
 * a level, because all these corners may share an entry. */
static uint64_t most_addends(const part *p)
{
    return p->row << p->spec[HASH_GRID_SPEC_DIMS];
}

/* Returns whether `atomic` is possible: the sums of each level fit into a binding, there are not too many products, and
 * no loop of the kernel HASH_GRID_FIXED_BEGIN is too long. This kernel always has the same number of work groups. */
static bool can_add_atomically(const vkt_emit *e, const part *p)
{
    uint64_t most = 0, all = 0;
    for (uint32_t l = 0; l < p->levels; l++) {
        most = VKT_MAX(most, (uint64_t)p->level[l].entries * p->features);
        all += (uint64_t)p->level[l].entries * p->features;
    }
    const uint64_t loads = p->row / 4 * p->levels * p->features, lanes = (uint64_t)HASH_GRID_MAXIMA * p->lanes;
    return sum_bytes(most) <= binding_bytes(e) && most_addends(p) <= MOST_ADDENDS &&
           (all + loads) / lanes + 4 <= vkt_rough_loop(e->lim);
}

/* Emits `atomic` for a part of the table. */
static void emit_atomic(vkt_emit *e, part *p)
{
    p->pc.flags = 2 * p->pc.floats;
    p->pc.addends = 0;
    while (1ull << p->pc.addends < most_addends(p)) p->pc.addends++;
    p->bind[HASH_GRID_SUMS] = VKT_WHOLE(vkt_scratch(e, "hash_grid sums", sum_bytes(p->pc.floats)));
    dispatch(e, p, VKT_K_HASH_GRID_FIXED_BEGIN, ~(1u << HASH_GRID_Y | 1u << HASH_GRID_SUMS), HASH_GRID_MAXIMA, 1);
    dispatch(e, p, VKT_K_HASH_GRID_FIXED, 1u << HASH_GRID_TABLE | 1u << HASH_GRID_DX,
             vkt_groups(most_addends(p), p->lanes, e->lim->traits->items_scatter), p->pc.levels);
    dispatch(e, p, VKT_K_HASH_GRID_FIXED_END, ~(1u << HASH_GRID_TABLE | 1u << HASH_GRID_SUMS),
             vkt_groups(p->pc.floats / 4, p->lanes, e->lim->traits->items_move), 1);
}

static void dw_emit(const vkt_node *n, vkt_emit *e)
{
    const hash_grid_dw_attr *a = n->attr;
    part p = part_of(n, e, &a->grid);
    /* These costs have no unit: they only say which variant is faster. */
    const vkt_variant_cost candidates[] = { { VKT_V_OWNED, 1 },
                                            { VKT_V_ATOMIC, e->lim->traits->atomics_pay ? 0.5 : VKT_COST_NEVER } };
    const vkt_variant v = vkt_pick(e, candidates, can_add_atomically(e, &p) ? 2 : 1);
    p.atomic = v == VKT_V_ATOMIC;
    while (next_part(n, e, &p, n->out[0], n->in[DW_DY])) {
        if (p.atomic)
            emit_atomic(e, &p);
        else
            emit_owned(e, &p);
    }
}

static double dw_flops(const vkt_node *n)
{
    const hash_grid_dw_attr *a = n->attr;
    return corner_flops(&a->grid, vkt_node_in(n, X)->shape);
}

/* Counts the bytes of x, of dy and of the table. Also counts the bytes of the entries that are read and written: in
 * each level, each point adds to one entry for each corner of its cell. */
static double dw_bytes(const vkt_node *n)
{
    return 4 * vkt_elements_in(n, X) + 4 * (1 + (2u << vkt_node_in(n, X)->shape.dim[1])) * vkt_elements_in(n, DW_DY) +
           4 * vkt_elements_out(n, 0);
}

const vkt_op vkt_op_hash_grid_dw = {
    .name = "hash_grid_dw",
    .min_in = 2,
    .max_in = 2,
    .attr_bytes = sizeof(hash_grid_dw_attr),
    .infer = dw_infer,
    .emit = dw_emit,
    .half = VKT_HALF_IN(DW_DY),
    .forward_only = true,
    .tested_by = "hash_grid",
    .flops = dw_flops,
    .bytes = dw_bytes,
    .formula = "dtable[e,f] = sum over points b, levels l and corners c whose entry is e of w(c) dy[b, l F + f]",
};
