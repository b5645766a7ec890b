/* ops/move/append.c - writes the rows of a tensor into an array, for instance a cache of keys or values. A tensor on
 * the device holds the index of the first row to write. */
#include "ops/ops.h"

#include "abi/abi.h"
#include "abi/append.abi.h"

enum { X = 0, CACHE, FIRST };

static vkt_result infer(vkt_infer *f)
{
    const vkt_value *x = vkt_in(f, X), *y = vkt_in(f, CACHE), *first = vkt_in(f, FIRST);
    char xt[80], yt[80];
    const uint32_t rank = x->shape.rank;
    VKT_REQUIRE(f, x->dtype == VKT_F32 && y->dtype == VKT_F32 && first->dtype == VKT_U32, VKT_E_DTYPE,
                "append: want f32 into f32, and a row u32, got %s into %s, and %s", vkt_dtype_name(x->dtype),
                vkt_dtype_name(y->dtype), vkt_dtype_name(first->dtype));
    vkt_shape want = y->shape;
    if (rank >= 2 && y->shape.rank == rank) want.dim[rank - 2] = x->shape.dim[rank - 2];
    VKT_REQUIRE(f,
                rank >= 2 && x->layout == VKT_ROWS && y->layout == VKT_ROWS && vkt_shape_equal(x->shape, want) &&
                    x->shape.dim[rank - 1] % 4 == 0 && x->shape.dim[rank - 2] <= y->shape.dim[rank - 2],
                VKT_E_SHAPE,
                "append: want x (..,T,D) and a cache (..,C,D), by rows, T <= C, D = 4, 8, .., got %s and %s",
                vkt_shape_text(x->shape, xt), vkt_shape_text(y->shape, yt));
    VKT_REQUIRE(f, vkt_shape_elements(first->shape) == 1, VKT_E_SHAPE, "append: want one row number, got %s",
                vkt_shape_text(first->shape, xt));
    vkt_out_alias(f, CACHE, VKT_ROWS, y->shape);
    return VKT_OK;
}

static void emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_shape x = vkt_node_in(n, X)->shape, y = vkt_node_in(n, CACHE)->shape;
    const uint32_t T = x.dim[x.rank - 2], C = y.dim[y.rank - 2], D = x.dim[x.rank - 1];
    const uint32_t lanes = vkt_lanes(e->lim, e->lim->traits->lanes_move), spec[] = { lanes };
    const uint64_t planes = vkt_shape_elements(x) / T / D;
    const uint64_t most = vkt_steps_in(vkt_bind_range_bytes(e->lim), 4ull * C * D, planes);
    if (most == 0)
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                                   "append: %u rows of %u numbers do not fit into a binding of %llu bytes", C, D,
                                   (unsigned long long)e->lim->max_storage_range_bytes));
    for (uint64_t p = 0; p < planes && most; p += most) {
        const uint64_t count = VKT_MIN(most, planes - p);
        vkt_append_push pc = { .n = (uint32_t)(count * T * (D / 4)), .run = T * (D / 4), .row = D / 4, .rows = C };
        const vkt_bind bind[] = { [APPEND_X] = vkt_bind_range(e, n->in[X], p * T * D, count * T * D, &pc.x0),
                                  [APPEND_FIRST] = VKT_WHOLE(n->in[FIRST]),
                                  [APPEND_Y] = vkt_bind_range(e, n->in[CACHE], p * C * D, count * C * D, &pc.y0) };
        pc.x0 /= 4;
        pc.y0 /= 4;
        vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_APPEND,
                                           VKT_LAUNCH_BIND(bind),
                                           VKT_LAUNCH_PUSH(pc),
                                           VKT_LAUNCH_SPEC(spec),
                                           .groups = { vkt_groups(pc.n, lanes, e->lim->traits->items_move), 1, 1 } });
    }
}

/* Generates a case in which the rows may reach behind the end of the cache. */
static void sample(vkt_rng *r, vkt_case *c)
{
    const uint32_t samples = vkt_rng_range(r, 1, 2), heads = vkt_rng_range(r, 1, 5), rows = vkt_rng_range(r, 1, 40),
                   width = 4 * vkt_rng_range(r, 1, 9);
    vkt_case_f32(c, VKT_ROWS, vkt_shape4(samples, heads, vkt_rng_range(r, 1, rows), width), -1, 1);
    vkt_case_f32(c, VKT_ROWS, vkt_shape4(samples, heads, rows, width), 2, 3);
    vkt_case_u32(c, VKT_ROWS, vkt_shape1(1), rows + vkt_rng_range(r, 0, 2));
}

/* Counts the bytes of x twice: x is read, and at most as many bytes of the cache are written. */
static double bytes(const vkt_node *n)
{
    return 2.0 * (double)vkt_node_in(n, X)->bytes;
}

const vkt_op vkt_op_append = { .name = "append",
                               .min_in = 3,
                               .max_in = 3,
                               .side_effect = true,
                               .forward_only = true,
                               .infer = infer,
                               .emit = emit,
                               .half_rows = VKT_HALF_IN(X),
                               .sample = sample,
                               .tol_why = "exact: a copy",
                               .flops = vkt_flops_none,
                               .bytes = bytes,
                               .formula = "x into rows first .. first + T - 1 of an array" };

vkt_tensor vkt_append(vkt_graph *g, vkt_tensor x, vkt_tensor cache, vkt_tensor first)
{
    if (!vkt_is_usable(g, "append", x) || !vkt_is_usable(g, "append", cache)) return (vkt_tensor){ 0 };
    const vkt_result r = vkt_check_written(g, "append", cache);
    vkt_graph_error(g, r);
    if (r != VKT_OK) return (vkt_tensor){ 0 };
    const vkt_tensor in[] = { vkt_to_layout(g, x, VKT_ROWS), cache, first };
    const vkt_tensor y = vkt_apply(g, &vkt_op_append, in, 3, NULL, NULL);
    if (!y.id) return y;
    g->values[cache.id].written = true;
    g->values[y.id].appended = true;
    return y;
}
