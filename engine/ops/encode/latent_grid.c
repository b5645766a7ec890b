/* ops/encode/latent_grid.c - reads features for the texels of a tile from a grid of latents: see vktrain/ops.h. */
#include "kernel/ids.h"
#include "ops/ops.h"

#include "abi/abi.h"
#include "abi/latent_grid.abi.h"

enum { GRID = 0, ORIGIN, DW_ORIGIN = 0, DW_DY };
enum { MAX_TEXELS = 1 << 24, MOST_FEATURE_GROUPS = 16 };

/* Attributes of latent_grid_dw. `grid` is the shape of the result. The op does not read the grid, so no input has this
 * shape. */
typedef struct latent_grid_dw_attr {
    vkt_latent_grid_attr a;
    uint32_t grid[3];
} latent_grid_dw_attr;

/* ---- both ops ---- */

static vkt_result check_origin(vkt_infer *f, uint32_t i)
{
    const vkt_value *origin = vkt_in(f, i);
    char text[80];
    VKT_REQUIRE(f, origin->dtype == VKT_U32, VKT_E_DTYPE, "%s: want origin u32, got %s", f->n->op->name,
                vkt_dtype_name(origin->dtype));
    VKT_REQUIRE(f, vkt_shape_equal(origin->shape, vkt_shape2(1, 2)) && origin->layout == VKT_ROWS, VKT_E_SHAPE,
                "%s: want origin (1,2) by rows, got %s", f->n->op->name, vkt_shape_text(origin->shape, text));
    return VKT_OK;
}

static uint32_t texels_of(const vkt_latent_grid_attr *a)
{
    return a->tile[0] * a->tile[1];
}

/* Emits the dispatches. A dispatch computes as many features as a binding of the grid and a binding of y can hold. */
static void emit_features(const vkt_node *n, vkt_emit *e, const vkt_latent_grid_attr *a, const uint32_t grid[3],
                          bool is_gradient)
{
    const vkt_traits *t = e->lim->traits;
    const uint32_t lanes = vkt_lanes(e->lim, t->lanes_gather), n4 = texels_of(a) / 4, many = a->corners ? 4 : 1;
    const uint64_t plane = (uint64_t)grid[1] * grid[2], row = (uint64_t)many * 4 * n4;
    const uint32_t spec[] = { lanes, [LATENT_GRID_SPEC_SCALE] = a->scale, [LATENT_GRID_SPEC_CORNERS] = a->corners };
    const uint64_t fit = vkt_steps_in(e->lim->max_storage_range_bytes, 4 * VKT_MAX(plane, row), grid[0]);
    /* The gradient: for one feature of a cell, an invocation visits the texels that read the cell. They are one range,
     * or four ranges if a->corners is 1. A range has at most `rows` rows, and each of its rows has fewer than `quads`
     * vec4s. The reason: a range is inside the tile, has at most 2 * scale rows, and its rows have at most
     * scale / 2 + 2 vec4s. */
    const uint64_t rows = VKT_MIN(2ull * a->scale, a->tile[0]), quads = VKT_MIN(a->scale / 2 + 3, a->tile[1] / 4 + 2);
    const uint64_t visits = vkt_div_up(grid[0], MOST_FEATURE_GROUPS) * (is_gradient ? many * rows * quads : 1);
    if (fit == 0 || visits > vkt_rough_loop(e->lim)) {
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                                   "%s: %u x %u cells and %u x %u texels do not fit this device", n->op->name, grid[1],
                                   grid[2], a->tile[0], a->tile[1]));
        return;
    }
    const vkt_tensor cells = is_gradient ? n->out[0] : n->in[GRID], y = is_gradient ? n->in[DW_DY] : n->out[0];
    vkt_bind bind[LATENT_GRID_BINDINGS] = { [LATENT_ORIGIN] = VKT_WHOLE(n->in[is_gradient ? DW_ORIGIN : ORIGIN]) };
    for (uint64_t f = 0; f < grid[0]; f += fit) {
        vkt_latent_grid_push pc = { .features = (uint32_t)VKT_MIN(fit, grid[0] - f),
                                    .height = grid[1],
                                    .width = grid[2],
                                    .rows = a->tile[0],
                                    .row4 = a->tile[1] / 4 };
        bind[LATENT_GRID] = vkt_bind_range(e, cells, f * plane, pc.features * plane, &pc.grid_base);
        bind[LATENT_GRID_Y] = vkt_bind_range(e, y, f * row, pc.features * row, &pc.y_base);
        pc.y_base /= 4;
        const uint64_t items = is_gradient ? plane : n4;
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = is_gradient ? VKT_K_LATENT_GRID_DW : VKT_K_LATENT_GRID,
                                           VKT_LAUNCH_BIND(bind),
                                           VKT_LAUNCH_PUSH(pc),
                                           VKT_LAUNCH_SPEC(spec),
                                           .groups = { vkt_groups(items, lanes, is_gradient ? 1 : t->items_hash_grid),
                                                       VKT_MIN(pc.features, MOST_FEATURE_GROUPS), 1 } });
    }
}

/* ---- latent_grid: grid (F,H,W), origin (1,2) -> (texels, F) or (texels, 4 F) ---- */

static vkt_result grid_infer(vkt_infer *f)
{
    const vkt_latent_grid_attr *a = f->n->attr;
    const vkt_value *grid = vkt_in(f, GRID);
    const vkt_shape s = grid->shape;
    char text[80];
    VKT_REQUIRE(f, grid->dtype == VKT_F32, VKT_E_DTYPE, "latent_grid: want a grid f32, got %s",
                vkt_dtype_name(grid->dtype));
    VKT_REQUIRE(f, s.rank == 3 && grid->layout == VKT_ROWS, VKT_E_SHAPE,
                "latent_grid: want a grid (F,H,W) by rows, got %s", vkt_shape_text(s, text));
    VKT_TRY(check_origin(f, ORIGIN));
    VKT_REQUIRE(f, a->corners <= 1, VKT_E_ARG, "latent_grid: want corners 0 or 1, got %u", a->corners);
    VKT_REQUIRE(f, a->scale >= 1 && (uint64_t)a->scale * VKT_MAX(s.dim[1], s.dim[2]) <= MAX_TEXELS, VKT_E_ARG,
                "latent_grid: want a scale from 1 on and images of at most %d texels along an axis, got scale %u of %s",
                MAX_TEXELS, a->scale, vkt_shape_text(s, text));
    VKT_REQUIRE(f, a->tile[0] >= 1 && a->tile[1] >= 4 && a->tile[1] % 4 == 0 && a->tile[0] <= MAX_TEXELS / a->tile[1],
                VKT_E_ARG,
                "latent_grid: want a tile of at most %d texels and columns that are a multiple of 4, got %u x %u",
                MAX_TEXELS, a->tile[0], a->tile[1]);
    VKT_REQUIRE(f, a->tile[0] <= a->scale * s.dim[1] && a->tile[1] <= a->scale * s.dim[2], VKT_E_ARG,
                "latent_grid: want a tile of at most %u x %u texels, got %u x %u", a->scale * s.dim[1],
                a->scale * s.dim[2], a->tile[0], a->tile[1]);
    VKT_REQUIRE(f, s.dim[0] <= UINT32_MAX / 4, VKT_E_SHAPE, "latent_grid: %u features are too many", s.dim[0]);
    vkt_out(f, VKT_F32, VKT_BATCH_LAST, vkt_shape2(texels_of(a), a->corners ? 4 * s.dim[0] : s.dim[0]));
    return VKT_OK;
}

static void grid_emit(const vkt_node *n, vkt_emit *e)
{
    emit_features(n, e, n->attr, vkt_node_in(n, GRID)->shape.dim, false);
}

vkt_tensor vkt_latent_grid(vkt_graph *g, vkt_tensor grid, vkt_tensor origin, const vkt_latent_grid_params *p)
{
    static const vkt_latent_grid_params none;
    if (!p) p = &none; /* a tile of 0: infer reports the error */
    const vkt_latent_grid_attr a = { .tile = { p->tile[0], p->tile[1] },
                                     .scale = p->scale ? p->scale : 1,
                                     .corners = p->corners };
    const vkt_tensor in[] = { vkt_to_layout(g, grid, VKT_ROWS), origin };
    return vkt_apply(g, &vkt_op_latent_grid, in, 2, &a, NULL);
}

static void grid_backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_shape s = vkt_node_in(n, GRID)->shape;
    const latent_grid_dw_attr w = { *(const vkt_latent_grid_attr *)n->attr, { s.dim[0], s.dim[1], s.dim[2] } };
    dx[GRID] = vkt_apply(g, &vkt_op_latent_grid_dw, (vkt_tensor[]){ n->in[ORIGIN], dy[0] }, 2, &w, NULL);
}

/* Generates a case. In some cases a tile that starts at `origin` would reach beyond the image, so the op must move the
 * tile inside. */
static void grid_sample(vkt_rng *r, vkt_case *c)
{
    static const uint32_t scales[] = { 1, 2, 3, 4, 5, 8 };
    vkt_latent_grid_attr a = { .scale = scales[vkt_rng_range(r, 0, VKT_COUNT(scales) - 1)],
                               .corners = vkt_rng_range(r, 0, 1) };
    const uint32_t features = vkt_rng_range(r, 1, 5), height = vkt_rng_range(r, 1, 9),
                   width = vkt_rng_range(r, vkt_div_up(4, a.scale), 9);
    a.tile[0] = vkt_rng_range(r, 1, VKT_MIN(17, height * a.scale));
    a.tile[1] = 4 * vkt_rng_range(r, 1, VKT_MIN(5, width * a.scale / 4));
    vkt_case_f32(c, VKT_ROWS, vkt_shape3(features, height, width), -1, 1);
    vkt_case_u32(c, VKT_ROWS, vkt_shape2(1, 2), 9 * a.scale);
    vkt_case_attr(c, &a, sizeof a);
}

/* With corners, counts nothing. Otherwise counts three interpolations of three operations for each element of y. */
static double grid_flops(const vkt_node *n)
{
    return ((const vkt_latent_grid_attr *)n->attr)->corners ? 0 : 9 * vkt_elements_out(n, 0);
}

static const vkt_field grid_fields[] = { VKT_FIELD(vkt_latent_grid_attr, tile, U32, 2, 0),
                                         VKT_FIELD(vkt_latent_grid_attr, scale, U32, 1, 1),
                                         VKT_FIELD(vkt_latent_grid_attr, corners, U32, 1, 0),
                                         { .name = NULL } };

const vkt_op vkt_op_latent_grid = {
    .name = "latent_grid",
    .min_in = 2,
    .max_in = 2,
    .cheap = true,
    .diff = 1u << GRID,
    .attr_bytes = sizeof(vkt_latent_grid_attr),
    .infer = grid_infer,
    .emit = grid_emit,
    .half = VKT_HALF_OUT(0),
    .backward = grid_backward,
    .sample = grid_sample,
    .abs_tol = 2e-5f,
    .tol_why =
        "a fraction is a quotient, 2.5 ulp, of exact integers: with its products and sums 16 * 2^-24 = 1e-6 forward; a "
        "gradient adds up to 340 terms of both signs beside the largest sum",
    .flops = grid_flops,
    .fields = grid_fields,
    .formula = "y[n,f] = the mean by distance of the four cells of grid f around texel n of a tile, or these cells",
};

/* ---- latent_grid_dw: origin, dy -> dgrid (F,H,W) ---- */

static vkt_result dw_infer(vkt_infer *f)
{
    const latent_grid_dw_attr *a = f->n->attr;
    VKT_TRY(check_origin(f, DW_ORIGIN));
    vkt_out(f, VKT_F32, VKT_ROWS, vkt_shape3(a->grid[0], a->grid[1], a->grid[2]));
    return VKT_OK;
}

static void dw_emit(const vkt_node *n, vkt_emit *e)
{
    const latent_grid_dw_attr *a = n->attr;
    emit_features(n, e, &a->a, a->grid, true);
}

/* For each element of dy, counts four products and four additions without corners, and one addition with corners. */
static double dw_flops(const vkt_node *n)
{
    return (((const latent_grid_dw_attr *)n->attr)->a.corners ? 1 : 8) * vkt_elements_in(n, DW_DY);
}

const vkt_op vkt_op_latent_grid_dw = {
    .name = "latent_grid_dw",
    .min_in = 2,
    .max_in = 2,
    .attr_bytes = sizeof(latent_grid_dw_attr),
    .infer = dw_infer,
    .emit = dw_emit,
    .half = VKT_HALF_IN(DW_DY),
    .forward_only = true,
    .tested_by = "latent_grid",
    .flops = dw_flops,
    .formula = "dgrid[f,v,u] = sum over the texels n of the tile that read cell (v,u) of its weight times dy[n,f]",
};
