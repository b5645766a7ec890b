/* ops/elementwise/broadcast.c - broadcasting: the dispatches of expand, and of functions of two and three operands. An
 * operand is repeated along each dimension of the result that the operand lacks, or whose size is 1 in the operand. */
#include "ops/elementwise/broadcast.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/broadcast.abi.h"

bool vkt_broadcast_shape(vkt_shape a, vkt_shape b, vkt_shape *out)
{
    const vkt_shape large = a.rank >= b.rank ? a : b, small = a.rank >= b.rank ? b : a;
    *out = large;
    for (uint32_t i = 0; i < small.rank; i++) {
        const uint32_t at = large.rank - small.rank + i;
        if (large.dim[at] == 1)
            out->dim[at] = small.dim[i];
        else if (small.dim[i] != 1 && small.dim[i] != large.dim[at])
            return false;
    }
    return true;
}

/* Computes the strides of `x` (in elements) along the physical dimensions of y; 0 along a dimension in which x is
 * repeated. */
static void strides_in(const vkt_value *x, const vkt_value *y, uint32_t stride[VKT_MAX_RANK])
{
    const vkt_phys px = vkt_phys_of(x), py = vkt_phys_of(y);
    uint32_t logical[VKT_MAX_RANK] = { 0 }; /* x's stride along each logical dimension */
    for (uint32_t i = 0; i < x->shape.rank; i++) logical[px.logical[i]] = (uint32_t)px.stride[i];
    for (uint32_t i = 0; i < VKT_MAX_RANK; i++) stride[i] = 0;
    for (uint32_t i = 0; i < y->shape.rank; i++) {
        const uint32_t from_right = y->shape.rank - py.logical[i]; /* 1 for the last dimension of y */
        if (from_right > x->shape.rank) continue;
        const uint32_t at = x->shape.rank - from_right;
        stride[i] = x->shape.dim[at] == 1 ? 0 : logical[at];
    }
}

/* Tensors by their binding numbers in broadcast.abi.h. N: number of bindings. */
enum { A = BROADCAST_A, B = BROADCAST_B, C = BROADCAST_C, Y = BROADCAST_Y, N };

/* A physical dimension of y, or several that were merged, and the strides of all tensors along it. A loop_nest has
 * these dimensions from slow to fast. The last dimension of a loop_nest, the fastest one, is called the run. */
typedef struct dim {
    uint32_t size, stride[N];
} dim;

typedef struct loop_nest {
    uint32_t n;
    dim dims[VKT_MAX_RANK];
    uint32_t pitch; /* elements of the run in y, with padding */
} loop_nest;

/* The function and its operands. `operands` is the number of operands; the bindings of further operands are {0}. */
typedef struct call {
    uint32_t operands, function;
    vkt_bind bind[N];
} call;

/* Appends dimension d. If d is contiguous with the dimension before it in all tensors, merges the two dimensions. */
static void push_dim(loop_nest *w, dim d)
{
    dim *before = w->n ? &w->dims[w->n - 1] : NULL;
    bool merges = before != NULL;
    for (uint32_t i = 0; i < N && merges; i++) merges = before->stride[i] == (uint64_t)d.size * d.stride[i];
    if (merges) {
        d.size *= before->size;
        *before = d;
    } else {
        w->dims[w->n++] = d;
    }
}

static loop_nest loops_of(const vkt_emit *e, const call *c)
{
    const vkt_value *y = vkt_lowered_value(e, c->bind[Y].t);
    const vkt_phys p = vkt_phys_of(y);
    uint32_t stride[N][VKT_MAX_RANK] = { { 0 } };
    loop_nest w = { .pitch = p.pitch };
    for (uint32_t x = A; x < c->operands; x++) strides_in(vkt_lowered_value(e, c->bind[x].t), y, stride[x]);
    for (uint32_t i = 0; i < p.rank; i++)
        if (p.dim[i] != 1 || i + 1 == p.rank)
            push_dim(&w, (dim){ p.dim[i], { stride[A][i], stride[B][i], stride[C][i], (uint32_t)p.stride[i] } });
    if (p.pitch == p.dim[p.rank - 1]) w.pitch = w.dims[w.n - 1].size;
    return w;
}

/* Returns true if the kernel can compute four elements at once. This needs a pitch that is a multiple of 4. Each
 * operand must repeat one element along the run, or have stride 1 along the run and strides that are multiples of 4
 * along the other dimensions. */
static bool is_wide(const loop_nest *w)
{
    const dim *run = &w->dims[w->n - 1];
    if (w->pitch % 4) return false;
    for (uint32_t x = A; x < Y; x++) {
        if (run->stride[x] > 1) return false;
        for (uint32_t i = 0; i + 1 < w->n; i++)
            if (run->stride[x] == 1 && w->dims[i].stride[x] % 4) return false;
    }
    return true;
}

static uint64_t span(const loop_nest *w, uint32_t x)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < w->n; i++) last += (uint64_t)(w->dims[i].size - 1) * w->dims[i].stride[x];
    return last + 1;
}

static uint32_t element_bytes(const vkt_emit *e, const call *c, uint32_t x)
{
    return c->bind[x].t.id ? vkt_element_bytes(vkt_lowered_value(e, c->bind[x].t)) : 4;
}

/* Returns 4 if y or an operand has elements of 4 bytes, else 2. */
static uint32_t longest_element(const vkt_emit *e, const call *c)
{
    uint32_t size = element_bytes(e, c, Y);
    for (uint32_t x = A; x < c->operands; x++) size = VKT_MAX(size, element_bytes(e, c, x));
    return size;
}

static void dispatch(vkt_emit *e, const call *c, const loop_nest *w)
{
    static const uint16_t kernels[][2] = { { VKT_K_BROADCAST_COPY, VKT_K_BROADCAST_COPY4 },
                                           { VKT_K_BROADCAST_BINARY, VKT_K_BROADCAST_BINARY4 },
                                           { VKT_K_BROADCAST_TERNARY, VKT_K_BROADCAST_TERNARY4 } };
    const dim run = w->dims[w->n - 1];
    dim d[VKT_MAX_RANK - 1] = { { 0 } };
    vkt_broadcast_push pc = {
        .rows = 1, .run = run.size, .pitch = w->pitch, .a5 = run.stride[A], .b5 = run.stride[B], .c5 = run.stride[C]
    };
    for (uint32_t i = 0; i + 1 < w->n; i++) {
        d[i] = w->dims[i];
        pc.rows *= d[i].size;
    }
    pc.d1 = d[1].size, pc.d2 = d[2].size, pc.d3 = d[3].size, pc.d4 = d[4].size;
    pc.a0 = d[0].stride[A], pc.a1 = d[1].stride[A], pc.a2 = d[2].stride[A], pc.a3 = d[3].stride[A],
    pc.a4 = d[4].stride[A];
    pc.b0 = d[0].stride[B], pc.b1 = d[1].stride[B], pc.b2 = d[2].stride[B], pc.b3 = d[3].stride[B],
    pc.b4 = d[4].stride[B];
    pc.c0 = d[0].stride[C], pc.c1 = d[1].stride[C], pc.c2 = d[2].stride[C], pc.c3 = d[3].stride[C],
    pc.c4 = d[4].stride[C];
    const bool wide = is_wide(w);
    const uint32_t lanes = vkt_lanes(e->lim, e->lim->traits->lanes_move), per_iteration = lanes * (wide ? 4 : 1);
    const uint32_t iterations = w->pitch < 4 * per_iteration ? 0 : e->lim->traits->items_move;
    const uint32_t spec[] = { lanes,
                              [BROADCAST_SPEC_DIMS] = w->n - 1,
                              [BROADCAST_SPEC_ITERATIONS] = iterations,
                              [BROADCAST_SPEC_A_STEP] = run.stride[A],
                              [BROADCAST_SPEC_B_STEP] = run.stride[B],
                              [BROADCAST_SPEC_C_STEP] = run.stride[C],
                              [BROADCAST_SPEC_FUNCTION] = c->function };
    const uint64_t groups = iterations
                                ? pc.rows * vkt_groups(w->pitch, per_iteration, iterations)
                                : vkt_groups((uint64_t)pc.rows * w->pitch, per_iteration, e->lim->traits->items_move);
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = kernels[c->operands - 1][wide],
                                       .bind = c->bind,
                                       .n_bind = N,
                                       VKT_LAUNCH_PUSH(pc),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { groups, 1, 1 } });
}

/* Returns how many indices of the slowest dimension fit into one dispatch. A binding must hold longest_element bytes
 * for each element of y. Each operand must fit into its binding, too: in another layout, an operand may have more
 * padding than y. */
static uint64_t most_of_slowest(const vkt_emit *e, const call *c, const loop_nest *w)
{
    const dim slow = w->dims[0];
    uint64_t most = e->lim->max_storage_range_bytes / longest_element(e, c) / slow.stride[Y];
    for (uint32_t x = A; x < c->operands; x++) {
        const uint64_t room = e->lim->max_storage_range_bytes / element_bytes(e, c, x);
        const uint64_t one = span(w, x) - (uint64_t)(slow.size - 1) * slow.stride[x]; /* elements for one index */
        const uint64_t fit = room < one ? 0 : slow.stride[x] ? (room - one) / slow.stride[x] + 1 : slow.size;
        most = VKT_MIN(most, fit);
    }
    return most;
}

static void emit_slices(vkt_emit *e, const call *c, const loop_nest *w);

/* Emits the work for each index of the slowest dimension, one index after the other. This is needed if no slice of
 * emit_slices fits into a binding. Returns false, and emits nothing, if the elements of an index do not always start at
 * a multiple of VKT_ALIGN_BYTES, or if there is no other dimension. */
static bool emit_steps(vkt_emit *e, const call *c, const loop_nest *w)
{
    const dim slow = w->dims[0];
    loop_nest part = { .n = w->n - 1, .pitch = w->pitch };
    for (uint32_t x = A; x < N; x++)
        if ((uint64_t)slow.stride[x] * element_bytes(e, c, x) % VKT_ALIGN_BYTES) return false;
    if (part.n == 0) return false;
    memcpy(part.dims, w->dims + 1, part.n * sizeof *part.dims);
    for (uint32_t i = 0; i < slow.size && e->status == VKT_OK; i++) {
        call range = *c;
        for (uint32_t x = A; x < N; x++)
            range.bind[x].offset_bytes += (uint64_t)i * slow.stride[x] * element_bytes(e, c, x);
        emit_slices(e, &range, &part);
    }
    return true;
}

/* Splits the work into slices of the slowest dimension (most_of_slowest). */
static void emit_slices(vkt_emit *e, const call *c, const loop_nest *w)
{
    const dim slow = w->dims[0];
    uint32_t step = 1;
    for (uint32_t x = A; x < N; x++)
        step = VKT_MAX(step, 4 / element_bytes(e, c, x) * vkt_bind_range_step(slow.stride[x]));
    const uint64_t most = most_of_slowest(e, c, w);
    const uint64_t per = most - most % step;
    if (per == 0) {
        if (emit_steps(e, c, w)) return;
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                                   "%s: slices of %u elements, of which this device binds %llu at once",
                                   e->node->op->name, slow.stride[Y], (unsigned long long)most));
        return;
    }
    for (uint64_t at = 0; at < slow.size; at += per) {
        const uint64_t size = VKT_MIN(slow.size - at, per);
        loop_nest part = *w;
        call range = *c;
        part.dims[0].size = (uint32_t)size;
        if (w->n == 1) part.pitch = (uint32_t)VKT_MIN(w->pitch - at, per);
        for (uint32_t x = A; x < N; x++) {
            range.bind[x].offset_bytes += at * slow.stride[x] * element_bytes(e, c, x);
            range.bind[x].bytes = span(&part, x) * element_bytes(e, c, x);
        }
        range.bind[Y].bytes = (part.n == 1 ? part.pitch : size * slow.stride[Y]) * element_bytes(e, c, Y);
        dispatch(e, &range, &part);
    }
}

void vkt_emit_broadcast(vkt_emit *e, uint32_t function, const vkt_tensor *in, uint32_t n_in, vkt_tensor y)
{
    call c = { .operands = n_in, .function = function, .bind = { [Y] = VKT_WHOLE(y) } };
    for (uint32_t x = A; x < n_in; x++) c.bind[x] = VKT_WHOLE(in[x]);
    const uint64_t elements = vkt_lowered_value(e, y)->bytes / element_bytes(e, &c, Y);
    if (elements > UINT32_MAX) {
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED, "%s: want at most 2^32 elements where shapes differ",
                                   e->node->op->name));
        return;
    }
    const loop_nest w = loops_of(e, &c);
    bool whole = elements * longest_element(e, &c) <= e->lim->max_storage_range_bytes;
    for (uint32_t x = A; x < n_in; x++)
        whole = whole && vkt_lowered_value(e, in[x])->bytes <= e->lim->max_storage_range_bytes;
    if (whole)
        dispatch(e, &c, &w);
    else
        emit_slices(e, &c, &w);
}
