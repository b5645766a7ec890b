/* ir/lower.c - makes a list of vkt_dispatch structs from nodes. record/ records these dispatches. */
#include "ir/ir.h"

#include <stdio.h>

#include "abi/step.abi.h"
#include "abi/storage.abi.h"
#include "base/built.h"

_Static_assert(STORAGE_F16 == (int)VKT_PRECISION_F16 && STORAGE_BF16 == (int)VKT_PRECISION_BF16 &&
                   2 * VKT_MAX_BINDINGS <= 30,
               "the shaders read vkt_precision from two bits a binding, and two bits beside these");

void vkt_emit_error(vkt_emit *e, vkt_result r)
{
    if (e->status == VKT_OK) e->status = r;
}

static bool is_built(const vkt_emit *e, uint16_t kernel)
{
    return e->lim->built ? e->lim->built[kernel] : vkt_kernel_is_built(kernel);
}

void vkt_kernel_absent(vkt_emit *e, uint16_t kernel)
{
    if (e->status == VKT_OK) {
        e->absent = kernel;
        e->absent_in = e->choice;
    }
    vkt_emit_error(e, VKT_E_UNSUPPORTED);
}

void vkt_dispatch_add(vkt_emit *e, const vkt_launch *l)
{
    const uint64_t *groups = l->groups;
    if (e->status != VKT_OK) return;
    if (!is_built(e, l->kernel)) {
        vkt_kernel_absent(e, l->kernel);
        return;
    }
    if (l->n_bind + e->conditional > VKT_MAX_BINDINGS || l->n_spec > VKT_MAX_SPECS || l->push_bytes > VKT_EMIT_PUSH ||
        !groups[0] || !groups[1] || !groups[2]) {
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_STATE,
                                   "%s: a dispatch of %u bindings, %zu push bytes, %u constants is out of bounds",
                                   e->node->op->name, l->n_bind, l->push_bytes, l->n_spec));
        return;
    }
    if (VKT_MAX(groups[1], groups[2]) > e->lim->max_groups) {
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED, "%s: %llu x %llu groups; this device runs at most %u",
                                   e->node->op->name, (unsigned long long)groups[1], (unsigned long long)groups[2],
                                   e->lim->max_groups));
        return;
    }
    const vkt_result r = vkt_grow(&e->host, &e->list, e->n, &e->cap, sizeof *e->list);
    if (r != VKT_OK) {
        vkt_emit_error(e, r);
        return;
    }
    vkt_dispatch *d = &e->list[e->n++];
    *d = (vkt_dispatch){ .node = e->node->index,
                         .kernel = l->kernel,
                         .shader = l->shader,
                         .n_bind = (uint8_t)l->n_bind,
                         .n_spec = (uint8_t)l->n_spec,
                         .push_bytes = (uint8_t)l->push_bytes,
                         .conditional = e->conditional,
                         .above = e->above,
                         .groups = { (uint32_t)VKT_MIN(groups[0], e->lim->max_groups), (uint32_t)groups[1],
                                     (uint32_t)groups[2] } };
    memcpy(d->bind, l->bind, l->n_bind * sizeof *l->bind);
    for (uint32_t i = 0; i < l->n_bind; i++) {
        if (!d->bind[i].t.id) continue;
        const vkt_value *v = vkt_lowered_value(e, d->bind[i].t);
        if (d->bind[i].bytes == 0) d->bind[i].bytes = v->bytes - d->bind[i].offset_bytes;
        d->storage |= (uint32_t)v->storage << 2 * i;
        if (d->bind[i].t.id == e->relu.id) d->storage |= STORAGE_RELU;
    }
    if (l->push_bytes) memcpy(d->push, l->push, l->push_bytes);
    if (l->n_spec) memcpy(d->spec, l->spec, l->n_spec * sizeof *l->spec);
}

static vkt_tensor extra_value(vkt_emit *e, const char *name, vkt_role role, uint64_t bytes)
{
    if (e->status != VKT_OK) return (vkt_tensor){ 0 };
    const vkt_result r = vkt_grow(&e->host, &e->extra, e->n_extra, &e->cap_extra, sizeof *e->extra);
    if (r != VKT_OK) {
        vkt_emit_error(e, r);
        return (vkt_tensor){ 0 };
    }
    vkt_value *v = &e->extra[e->n_extra];
    *v = (vkt_value){ .dtype = VKT_U32, .role = role, .producer = e->node->index + 1, .bytes = vkt_round_up(bytes, 4) };
    v->shape = vkt_shape1((uint32_t)VKT_MIN(v->bytes / 4, (uint64_t)UINT32_MAX));
    snprintf(v->name, sizeof v->name, "%.20s.%u.%.12s", e->node->op->name, e->node->index, name);
    return (vkt_tensor){ (uint32_t)(e->g->n_values + e->n_extra++) };
}

vkt_tensor vkt_scratch(vkt_emit *e, const char *name, uint64_t bytes)
{
    return extra_value(e, name, VKT_ROLE_SCRATCH, bytes);
}

vkt_tensor vkt_scratch_stored(vkt_emit *e, const char *name, uint64_t elements, vkt_precision stored)
{
    const vkt_tensor t = vkt_scratch(e, name, elements * (stored == VKT_PRECISION_F32 ? 4 : 2));
    if (t.id) e->extra[e->n_extra - 1].storage = stored;
    return t;
}

vkt_tensor vkt_scratch_like(vkt_emit *e, const char *name, vkt_tensor like, vkt_shape shape)
{
    vkt_value v = *vkt_lowered_value(e, like);
    if (!vkt_physical_bytes(shape, v.layout, v.dtype, &v.bytes)) {
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_SHAPE, "%s: %s is larger than 2^63 bytes", e->node->op->name, name));
        return (vkt_tensor){ 0 };
    }
    v.bytes = v.bytes / vkt_dtype_bytes(v.dtype) * vkt_element_bytes(&v);
    const vkt_tensor t = vkt_scratch(e, name, v.bytes);
    if (!t.id) return t;
    vkt_value *made = &e->extra[e->n_extra - 1];
    made->shape = shape;
    made->dtype = v.dtype;
    made->layout = v.layout;
    made->storage = v.storage;
    return t;
}

vkt_tensor vkt_recall(const vkt_emit *e, const void *key, size_t bytes)
{
    unsigned char padded[VKT_KEY_MAX] = { 0 };
    memcpy(padded, key, VKT_MIN(bytes, sizeof padded));
    for (size_t i = 0; i < e->n_memory; i++)
        if (memcmp(e->memory[i].key, padded, sizeof padded) == 0) return e->memory[i].t;
    return (vkt_tensor){ 0 };
}

void vkt_remember(vkt_emit *e, const void *key, size_t bytes, vkt_tensor t)
{
    if (e->status != VKT_OK) return;
    if (bytes > VKT_KEY_MAX) {
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_STATE, "%s: a key of %zu bytes; want %u at most", e->node->op->name,
                                   bytes, VKT_KEY_MAX));
        return;
    }
    const vkt_result r = vkt_grow(&e->host, &e->memory, e->n_memory, &e->cap_memory, sizeof *e->memory);
    if (r != VKT_OK) {
        vkt_emit_error(e, r);
        return;
    }
    vkt_memory *m = &e->memory[e->n_memory++];
    *m = (vkt_memory){ .t = t };
    memcpy(m->key, key, bytes);
}

vkt_tensor vkt_emit_const(vkt_emit *e, const char *name, const void *data, uint64_t bytes)
{
    const vkt_tensor t = extra_value(e, name, VKT_ROLE_CONST, bytes);
    if (!t.id) return t;
    void *copy = vkt_alloc(&e->host, (size_t)vkt_round_up(bytes, 4));
    if (!copy) {
        vkt_emit_error(e, vkt_fail_nomem(&e->host, name, (size_t)bytes));
        return (vkt_tensor){ 0 };
    }
    memcpy(copy, data, (size_t)bytes);
    e->extra[e->n_extra - 1].data = copy;
    return t;
}

static uint64_t hash_value(uint64_t h, const vkt_graph *g, vkt_tensor t)
{
    const vkt_value *v = vkt_value_of(g, t); /* an absent input has id 0, and value 0 has rank 0 */
    const uint32_t kind[] = { t.id != 0, (uint32_t)v->dtype, (uint32_t)v->layout, v->shape.rank };
    return vkt_hash(vkt_hash(h, kind, sizeof kind), v->shape.dim, v->shape.rank * sizeof v->shape.dim[0]);
}

uint64_t vkt_node_key(const vkt_node *n)
{
    uint64_t h = vkt_hash(VKT_HASH_START, n->op->name, strlen(n->op->name) + 1);
    if (n->attr) h = vkt_hash(h, n->attr, n->op->attr_bytes);
    for (uint32_t i = 0; i < n->n_in; i++) h = hash_value(h, n->g, n->in[i]);
    for (uint32_t i = 0; i < n->n_out; i++) h = hash_value(h, n->g, n->out[i]);
    return h;
}

/* Returns the node's key, combined with the program's precision and with the types of values stored in 16 bits. */
static uint64_t key_as_stored(const vkt_emit *e)
{
    const vkt_node *n = e->node;
    uint64_t h = vkt_node_key(n);
    if (e->precision) h = vkt_hash(h, &e->precision, sizeof e->precision);
    for (uint32_t i = 0; i < n->n_in + n->n_out; i++) {
        const uint32_t storage = (uint32_t)vkt_lowered_value(e, i < n->n_in ? n->in[i] : n->out[i - n->n_in])->storage;
        if (storage) h = vkt_hash(h, (const uint32_t[]){ i, storage }, 2 * sizeof storage);
    }
    return h;
}

/* Returns the variants of `usable` that the next choice of the node should not take: those that failed in this choice
 * (`own`), and those that failed in an earlier choice among the same variants. If no other variant is left, returns
 * `own`, because variants with the same name may need different kernels. */
static uint64_t unbuilt_for(const vkt_emit *e, uint64_t usable, uint64_t own)
{
    uint64_t set = own;
    for (size_t i = e->n_tried ? e->n_picked : 0; i > 0 && e->picked[i - 1].node == e->node->index; i--)
        if (e->picked[i - 1].usable == usable) set |= e->picked[i - 1].unbuilt;
    return usable & ~set ? set : own;
}

vkt_variant vkt_pick(vkt_emit *e, const vkt_variant_cost *costs, uint32_t n)
{
    vkt_picked p = { .node = e->node->index, .key = key_as_stored(e), .outer = e->choice };
    for (uint32_t i = 0; i < n; i++) p.usable |= (uint64_t)1 << costs[i].variant;
    if (e->n_picked < e->n_tried) p.unbuilt = e->picked[e->n_picked].unbuilt;
    const uint64_t unbuilt = unbuilt_for(e, p.usable, p.unbuilt);
    vkt_variant_cost built[VKT_V_COUNT]; /* the entries of `costs` whose variant is not in `unbuilt` */
    uint32_t n_built = 0;
    for (uint32_t i = 0; i < n && n_built < VKT_V_COUNT; i++)
        if (!(unbuilt >> costs[i].variant & 1)) built[n_built++] = costs[i];
    p.variant = n_built ? vkt_variant_choose(&e->lim->choices, p.key, built, n_built)
                        : vkt_variant_choose(&e->lim->choices, p.key, costs, n);
    const vkt_result r = vkt_grow(&e->host, &e->picked, e->n_picked, &e->cap_picked, sizeof *e->picked);
    if (r != VKT_OK) {
        vkt_emit_error(e, r);
        return p.variant;
    }
    e->picked[e->n_picked++] = p;
    e->choice = (uint32_t)e->n_picked;
    return p.variant;
}

void vkt_pick_end(vkt_emit *e)
{
    if (e->choice) e->choice = e->picked[e->choice - 1].outer;
}

uint64_t vkt_open(const vkt_emit *e, uint64_t usable)
{
    return e->all_open ? usable : vkt_variant_open(&e->lim->choices, key_as_stored(e), usable);
}

vkt_tile vkt_wanted_tile(const vkt_emit *e)
{
    return vkt_tile_wanted(&e->lim->choices, key_as_stored(e));
}

void vkt_pick_tile(vkt_emit *e, vkt_tile tile)
{
    if (e->n_picked) e->picked[e->n_picked - 1].tile = tile;
}

static vkt_result copy_values(vkt_emit *e, vkt_storage s)
{
    const vkt_graph *g = e->g;
    e->values = vkt_alloc_array(&e->host, g->n_values, sizeof *e->values);
    if (!e->values) return vkt_fail_nomem(&e->host, "a program", g->n_values * sizeof *e->values);
    memcpy(e->values, g->values, g->n_values * sizeof *e->values);
    for (size_t i = 0; s.half && i < g->n_values; i++)
        if (s.half[i]) {
            e->values[i].storage = s.precision;
            e->values[i].bytes /= 2;
        }
    for (size_t i = 0; i < g->n_values; i++)
        if (e->values[i].dtype == VKT_F16) e->values[i].storage = VKT_PRECISION_F16;
    /* With f16, the loss of a training step is scaled. The condition is true for three kinds of graphs. Without shards,
     * a step has one graph, with `seed` and `has_optimizer`. With shards, a step has two graphs (ops/ops.h): the
     * graph of shards, with `seed` and `draws`, and the graph of the update, with `sums` and `has_optimizer`. */
    e->scaled = s.precision == VKT_PRECISION_F16 && (g->has_optimizer || g->draws) && (g->seed.id || g->sums);
    if (e->scaled && g->seed.id) { /* the backward pass starts from the step state's scale instead of 1 */
        vkt_value *seed = &e->values[g->seed.id];
        seed->role = VKT_ROLE_STEP;
        seed->arena_offset_bytes = 4 * STEP_SCALE;
        snprintf(seed->name, sizeof seed->name, "loss_scale");
    }
    return VKT_OK;
}

static const vkt_node *node_at(const vkt_graph *g, uint32_t number)
{
    return number ? g->nodes[number - 1] : NULL;
}

static const vkt_node *next_epilogue(const vkt_node *n)
{
    return node_at(n->g, n->epilogue);
}

const vkt_node *vkt_fuse_epilogue(vkt_emit *e, vkt_fuse_kind kind)
{
    const vkt_node *n = e->epilogue;
    if (!n || n->op->fuse_kind != kind) return NULL;
    e->epilogue = next_epilogue(n);
    return n;
}

const vkt_node *vkt_fuse_companion(vkt_emit *e)
{
    const vkt_node *n = node_at(e->g, e->node->companion);
    if (n) e->taken[n->index] = true;
    return n;
}

const vkt_node *vkt_fuse_slope(const vkt_emit *e)
{
    return node_at(e->g, e->node->slope);
}

/* Refuses a value that no allocation of the device can hold. Emit does not find this error: it splits the work on a
 * large value into several dispatches. */
static void check_sizes(vkt_emit *e, const vkt_node *n)
{
    for (uint32_t i = 0; i < n->n_out && e->lim->max_allocation_bytes; i++) {
        const vkt_value *v = vkt_lowered_value(e, n->out[i]);
        char shape[80], have[32], most[32];
        if (v->role != VKT_ROLE_ACTIVATION || v->alias || v->bytes <= e->lim->max_allocation_bytes) continue;
        vkt_emit_error(e, vkt_fail(&e->host, VKT_E_DEVICE_MEMORY,
                                   "%s: its result '%s' %s takes %s; this device allocates at most %s at once",
                                   n->op->name, v->name, vkt_shape_text(v->shape, shape),
                                   vkt_bytes_text(v->bytes, have), vkt_bytes_text(e->lim->max_allocation_bytes, most)));
    }
}

/* Logs the node whose lowering failed. */
static void log_node(const vkt_emit *e)
{
    char text[2][80] = { "", "" };
    for (uint32_t i = 0; i < 2 && i < e->node->n_in; i++)
        if (e->node->in[i].id) vkt_shape_text(vkt_node_in(e->node, i)->shape, text[i]);
    vkt_log_line(&e->host, VKT_LOG_WARN, "program: that was node %u, '%s', %s of %s %s", e->node->index,
                 e->node->n_out ? vkt_node_out(e->node, 0)->name : "", e->node->op->name, text[0], text[1]);
}

static void emit_node(vkt_emit *e, const vkt_node *n)
{
    e->epilogue = next_epilogue(n);
    check_sizes(e, n);
    if (e->status == VKT_OK) n->op->emit(n, e);
    e->relu = (vkt_tensor){ 0 };
    for (const vkt_node *left; e->status == VKT_OK && (left = e->epilogue);) {
        e->epilogue = next_epilogue(left);
        left->op->emit(left, e);
        e->relu = (vkt_tensor){ 0 };
    }
}

/* Prepares another try to lower the node, after a kernel was absent. Returns false if all variants were tried.
 *
 * One of the choices that were open when the kernel was needed gets another variant: the innermost one that has one
 * left. The choices after it are forgotten, because an op may make other choices after the change. So each call adds a
 * variant to `unbuilt` of a choice, and changes no choice before it: the tries come to an end. Then all variants are
 * tried once more, and vkt_open holds back none of them. */
static bool try_again(vkt_emit *e)
{
    for (uint32_t c = e->absent_in; c; c = e->picked[c - 1].outer) {
        vkt_picked *p = &e->picked[c - 1];
        const uint64_t failed = p->unbuilt | (uint64_t)1 << p->variant;
        if (!(p->usable & ~failed)) continue;
        p->unbuilt = failed;
        e->n_tried = c;
        return true;
    }
    const bool again = !e->all_open;
    e->n_tried = 0;
    e->all_open = true;
    return again;
}

/* Lowers a node and its epilogues. All their dispatches have the index of the node, so plan/recompute.c repeats them
 * together. If a variant needs a kernel that this build does not have, the node is lowered again
 * with another variant. */
static void lower_node(vkt_emit *e, const vkt_node *n)
{
    const size_t dispatches = e->n, extras = e->n_extra, remembered = e->n_memory, picked = e->n_picked;
    const vkt_node *companion = node_at(e->g, n->companion);
    const bool taken = companion && e->taken[companion->index];
    uint32_t absent = 0; /* the kernel that the first try needs: a kernel of the cheapest variants */
    e->node = n;
    e->n_tried = 0;
    e->all_open = false;
    for (;;) {
        e->absent = e->choice = 0;
        e->conditional = false;
        emit_node(e, n);
        if (!absent) absent = e->absent;
        if (!e->absent || !try_again(e)) break;
        for (size_t i = extras; i < e->n_extra; i++) vkt_free(&e->host, (void *)(uintptr_t)e->extra[i].data);
        e->n = dispatches;
        e->n_extra = extras;
        e->n_memory = remembered;
        e->n_picked = picked;
        e->status = VKT_OK;
        if (companion) e->taken[companion->index] = taken;
    }
    if (e->absent) /* if absent_in is 0, no variant can avoid the kernel e->absent */
        (void)vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                       "%s: vktrain was built without the kernel %s: add it, or an op that has it, to VKT_KERNELS",
                       n->op->name, vkt_kernel_name(e->absent_in ? absent : e->absent));
}

vkt_result vkt_lower(const vkt_graph *g, const vkt_limits *lim, const bool *live, vkt_storage s, vkt_emit *out)
{
    *out = (vkt_emit){ .host = g->host, .lim = lim, .g = g, .precision = s.precision };
    vkt_emit_error(out, copy_values(out, s));
    out->taken = vkt_alloc_array(&g->host, g->n_nodes + 1, sizeof *out->taken);
    if (!out->taken) vkt_emit_error(out, vkt_fail_nomem(&g->host, "a program", g->n_nodes + 1));
    for (int prologue = 1; prologue >= 0; prologue--)
        for (size_t i = 0; i < g->n_nodes && out->status == VKT_OK; i++) {
            const vkt_node *n = g->nodes[i];
            if (n->op->prologue != (bool)prologue || !n->op->emit || n->fused_into || (live && !live[i])) continue;
            if (!out->taken[i]) lower_node(out, n);
            if (n->op->side_effect) out->n_memory = 0;
            if (out->status != VKT_OK) log_node(out);
        }
    const vkt_result r = out->status;
    if (r != VKT_OK) vkt_lower_free(out);
    return r;
}

void vkt_lower_free(vkt_emit *e)
{
    for (size_t i = 0; i < e->n_extra; i++) vkt_free(&e->host, (void *)(uintptr_t)e->extra[i].data);
    vkt_free(&e->host, e->extra);
    vkt_free(&e->host, e->list);
    vkt_free(&e->host, e->values);
    vkt_free(&e->host, e->picked);
    vkt_free(&e->host, e->memory);
    vkt_free(&e->host, e->taken);
    e->extra = NULL;
    e->list = NULL;
    e->picked = NULL;
    e->memory = NULL;
    e->taken = NULL;
    e->values = NULL;
    e->n = e->n_extra = e->n_picked = e->n_memory = 0;
}
