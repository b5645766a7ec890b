/* ir/graph.c - builds a graph: adds values and nodes, and applies op descriptors. */
#include "ir/ir.h"

#include <stdio.h>

#include "abi/step.abi.h"

vkt_result vkt_graph_create(const vkt_host *host, vkt_graph **out)
{
    VKT_WANT(host, out);
    const vkt_host h = vkt_host_resolve(host);
    *out = NULL;
    vkt_graph *g = vkt_alloc(&h, sizeof *g);
    if (!g) return vkt_fail_nomem(&h, "a graph", sizeof *g);
    g->host = h;
    g->no_fuse = vkt_env_int("VKT_NO_FUSE", 0) == 1;
    const vkt_value null_value = { .name = "null" };
    vkt_value_add(g, &null_value); /* id 0 */
    if (g->status != VKT_OK) {
        const vkt_result r = g->status;
        vkt_graph_destroy(&g);
        return r;
    }
    *out = g;
    return VKT_OK;
}

void vkt_graph_destroy(vkt_graph **pg)
{
    vkt_graph *g = pg ? *pg : NULL;
    if (!g) return;
    const vkt_host h = g->host;
    for (size_t i = 0; i < g->n_nodes; i++) {
        vkt_free(&h, (void *)(uintptr_t)g->nodes[i]->attr);
        vkt_free(&h, g->nodes[i]);
    }
    for (size_t i = 0; i < g->n_values; i++)
        if (g->values[i].role == VKT_ROLE_CONST) vkt_free(&h, (void *)(uintptr_t)g->values[i].data);
    vkt_free(&h, g->nodes);
    vkt_free(&h, g->values);
    vkt_free(&h, g->params);
    vkt_free(&h, g->names);
    vkt_free(&h, (void *)(uintptr_t)g->bucket_ends);
    for (size_t i = 0; i < g->n_owned; i++) vkt_free(&h, g->owned[i]);
    vkt_free(&h, g->owned);
    vkt_free(&h, g->blocks);
    vkt_free(&h, g);
    *pg = NULL;
}

vkt_result vkt_graph_status(const vkt_graph *g)
{
    return g ? g->status : VKT_E_ARG;
}

void vkt_graph_error(vkt_graph *g, vkt_result r)
{
    if (g && g->status == VKT_OK) g->status = r;
}

void vkt_refuse_second_gradient(vkt_graph *g, const vkt_node *n, uint32_t k)
{
    vkt_graph_error(g, vkt_fail(&g->host, VKT_E_UNSUPPORTED,
                                "backward: the loss depends on the gradient '%s', and %s has no gradient of its own "
                                "(vkt_stop_gradient makes a constant of it)",
                                vkt_value_of(g, n->out[k])->name, n->op->name));
}

bool vkt_wants_grad(const vkt_graph *g, vkt_tensor t)
{
    return t.id && (!g->wanted || (t.id < g->n_wanted && g->wanted[t.id]));
}

vkt_shape vkt_tensor_shape(const vkt_graph *g, vkt_tensor t)
{
    return g && t.id < g->n_values ? g->values[t.id].shape : vkt_shape0();
}

vkt_layout vkt_tensor_layout(const vkt_graph *g, vkt_tensor t)
{
    return g && t.id < g->n_values ? g->values[t.id].layout : VKT_ROWS;
}

vkt_dtype vkt_tensor_dtype(const vkt_graph *g, vkt_tensor t)
{
    return g && t.id < g->n_values ? g->values[t.id].dtype : VKT_F32;
}

const char *vkt_tensor_name(const vkt_graph *g, vkt_tensor t)
{
    return g && t.id < g->n_values ? g->values[t.id].name : "?";
}

void vkt_tensor_set_name(vkt_graph *g, vkt_tensor t, const char *name)
{
    if (!g || !name) return;
    if (t.id && t.id < g->n_values && g->values[t.id].role != VKT_ROLE_PARAM)
        snprintf(g->values[t.id].name, VKT_NAME_MAX, "%s", name);
}

/* ---- values ---- */

static vkt_result fail_finished(const vkt_graph *g)
{
    return vkt_fail(&g->host, VKT_E_STATE, "graph: vkt_program_create finished it; build what comes after in another");
}

vkt_tensor vkt_value_add(vkt_graph *g, const vkt_value *proto)
{
    char text[80];
    if (g->finished) {
        vkt_graph_error(g, fail_finished(g));
        return (vkt_tensor){ 0 };
    }
    vkt_value v = *proto;
    if (v.shape.rank == 0) v.layout = VKT_ROWS; /* a scalar has no batch dimension */
    if (!vkt_physical_bytes(v.shape, v.layout, v.dtype, &v.bytes)) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE, "%s: a tensor of shape %s is larger than 2^63 bytes", v.name,
                                    vkt_shape_text(v.shape, text)));
        return (vkt_tensor){ 0 };
    }
    const vkt_result r = vkt_grow(&g->host, &g->values, g->n_values, &g->cap_values, sizeof *g->values);
    if (r != VKT_OK) {
        vkt_graph_error(g, r);
        return (vkt_tensor){ 0 };
    }
    g->values[g->n_values] = v;
    return (vkt_tensor){ (uint32_t)g->n_values++ };
}

void vkt_keep(vkt_graph *g, vkt_tensor t)
{
    if (!g) return;
    if (!t.id || t.id >= g->n_values || g->values[t.id].keep) return;
    if (g->finished)
        vkt_graph_error(g, fail_finished(g)); /* the value's memory may be reused already */
    else
        g->values[t.id].keep = true;
}

static bool shape_is_legal(vkt_graph *g, const char *name, vkt_shape s)
{
    bool ok = s.rank <= VKT_MAX_RANK;
    for (uint32_t i = 0; ok && i < s.rank; i++) ok = s.dim[i] > 0;
    if (!ok)
        vkt_graph_error(
            g, vkt_fail(&g->host, VKT_E_SHAPE, "%s: want rank <= %d and dimensions of at least 1", name, VKT_MAX_RANK));
    return ok;
}

static vkt_tensor named_value(vkt_graph *g, const char *name, vkt_dtype dtype, vkt_layout layout, vkt_shape shape,
                              vkt_role role)
{
    if (g->status != VKT_OK) return (vkt_tensor){ 0 };
    if (!name || !*name) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG, "want a name for a value, got %s", name ? "\"\"" : "NULL"));
        return (vkt_tensor){ 0 };
    }
    const bool known = (unsigned)dtype < VKT_DTYPE_COUNT && vkt_is_layout(layout);
    if (!known)
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG, "%s: want a vkt_dtype and a vkt_layout, got numbers %d and %d",
                                    name, (int)dtype, (int)layout));
    if (!known || !shape_is_legal(g, name, shape)) return (vkt_tensor){ 0 };
    if (dtype == VKT_F16 && vkt_shape_elements(shape) % 4 != 0) {
        char text[80];
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE, "%s: want a multiple of 4 elements of f16, got %s", name,
                                    vkt_shape_text(shape, text)));
        return (vkt_tensor){ 0 };
    }
    vkt_value v = { .shape = shape, .dtype = dtype, .layout = layout, .role = role };
    snprintf(v.name, sizeof v.name, "%s", name);
    return vkt_value_add(g, &v);
}

vkt_tensor vkt_input(vkt_graph *g, const char *name, vkt_dtype dtype, vkt_layout layout, vkt_shape shape)
{
    if (!g) return (vkt_tensor){ 0 };
    return named_value(g, name, dtype, layout, shape, VKT_ROLE_INPUT);
}

vkt_tensor vkt_external(vkt_graph *g, const char *name, vkt_dtype dtype, vkt_shape shape)
{
    if (!g) return (vkt_tensor){ 0 };
    return named_value(g, name, dtype, VKT_ROWS, shape, VKT_ROLE_EXTERNAL);
}

vkt_tensor vkt_external_array(vkt_graph *g, const char *name, vkt_array *array, vkt_dtype dtype, vkt_shape shape)
{
    if (!g) return (vkt_tensor){ 0 };
    if (!array) {
        vkt_graph_error(g,
                        vkt_fail(&g->host, VKT_E_ARG, "%s: want an array, got NULL", name ? name : "external_array"));
        return (vkt_tensor){ 0 };
    }
    for (uint32_t i = 1; i < g->n_values; i++) {
        const vkt_value *v = &g->values[i];
        if (v->array == array && v->dtype == dtype && vkt_shape_equal(v->shape, shape)) return (vkt_tensor){ i };
    }
    const vkt_tensor t = vkt_external(g, name, dtype, shape);
    if (t.id) g->values[t.id].array = array;
    return t;
}

/* Returns the entry of a parameter's name in the hash table, or the free entry for this name. */
static uint32_t *slot_of_name(vkt_graph *g, const char *name)
{
    for (uint64_t i = vkt_hash(VKT_HASH_START, name, strlen(name));; i++) {
        uint32_t *id = &g->names[i & (g->cap_names - 1)];
        g->names_looked++;
        if (!*id || strcmp(g->values[*id].name, name) == 0) return id;
    }
}

/* Makes the hash table large enough for one more name. */
static vkt_result make_room_for_name(vkt_graph *g)
{
    if (2 * (g->n_params + 1) <= g->cap_names) return VKT_OK;
    const size_t cap = VKT_MAX(2 * g->cap_names, (size_t)64);
    uint32_t *old = g->names, *names = vkt_alloc_array(&g->host, cap, sizeof *names);
    if (!names) return vkt_fail_nomem(&g->host, "the names of parameters", cap * sizeof *names);
    g->names = names;
    g->cap_names = cap;
    for (size_t i = 0; i < g->n_params; i++) *slot_of_name(g, g->values[g->params[i]].name) = g->params[i];
    vkt_free(&g->host, old);
    return VKT_OK;
}

/* Makes a named range of the parameter arena. */
static vkt_tensor arena_value(vkt_graph *g, const char *name, vkt_shape shape)
{
    if (!name) return vkt_null_argument(g, "param", "name");
    if (g->n_params && *slot_of_name(g, name)) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG, "param: the name '%s' is used already", name));
        return (vkt_tensor){ 0 };
    }
    const bool late = g->arena[0].id || g->arena[1].id;
    if (strlen(name) >= VKT_NAME_MAX || late) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG, "param '%s': %s", name,
                                    late ? "parameters are declared before vkt_backward" : "the name is too long"));
        return (vkt_tensor){ 0 };
    }
    vkt_result r = vkt_grow(&g->host, &g->params, g->n_params, &g->cap_params, sizeof *g->params);
    if (r == VKT_OK) r = make_room_for_name(g);
    if (r != VKT_OK) vkt_graph_error(g, r);
    const vkt_tensor t = named_value(g, name, VKT_F32, VKT_ROWS, shape, VKT_ROLE_PARAM);
    if (t.id) {
        g->values[t.id].arena_offset_bytes = g->arena_bytes;
        g->arena_bytes += vkt_round_up(g->values[t.id].bytes, VKT_ALIGN_BYTES);
        g->params[g->n_params++] = t.id;
        *slot_of_name(g, name) = t.id;
    }
    return t;
}

vkt_tensor vkt_param(vkt_graph *g, const char *name, vkt_shape shape)
{
    if (!g) return (vkt_tensor){ 0 };
    return arena_value(g, name, shape);
}

vkt_tensor vkt_state(vkt_graph *g, const char *name, vkt_shape shape)
{
    if (!g) return (vkt_tensor){ 0 };
    const vkt_tensor t = arena_value(g, name, shape);
    if (t.id) g->values[t.id].state = true;
    return t;
}

vkt_tensor vkt_graph_const(vkt_graph *g, const char *name, vkt_dtype dtype, vkt_shape shape, const void *data)
{
    const vkt_tensor t = named_value(g, name, dtype, VKT_ROWS, shape, VKT_ROLE_CONST);
    if (t.id) g->values[t.id].data = vkt_graph_copy(g, data, g->values[t.id].bytes);
    return g->status == VKT_OK ? t : (vkt_tensor){ 0 };
}

void *vkt_graph_copy(vkt_graph *g, const void *data, size_t bytes)
{
    void *copy = vkt_alloc(&g->host, vkt_round_up(bytes, 4)); /* a constant is uploaded in whole words of 4 bytes */
    if (copy)
        memcpy(copy, data, bytes);
    else
        vkt_graph_error(g, vkt_fail_nomem(&g->host, "a graph", bytes));
    return copy;
}

void *vkt_graph_own(vkt_graph *g, size_t bytes)
{
    const vkt_result r = vkt_grow(&g->host, &g->owned, g->n_owned, &g->cap_owned, sizeof *g->owned);
    void *block = r == VKT_OK ? vkt_alloc(&g->host, bytes) : NULL;
    if (block)
        g->owned[g->n_owned++] = block;
    else
        vkt_graph_error(g, r != VKT_OK ? r : vkt_fail_nomem(&g->host, "a graph", bytes));
    return block;
}

static vkt_tensor singleton(vkt_graph *g, vkt_tensor *slot, const char *name, vkt_role role, vkt_dtype dtype,
                            uint64_t n)
{
    if (!slot->id) *slot = named_value(g, name, dtype, VKT_ROWS, vkt_shape1((uint32_t)n), role);
    return *slot;
}

vkt_tensor vkt_graph_step(vkt_graph *g)
{
    return singleton(g, &g->step, "step", VKT_ROLE_STEP, VKT_U32, STEP_WORDS);
}

vkt_tensor vkt_graph_words(vkt_graph *g)
{
    return singleton(g, &g->words, "words", VKT_ROLE_WORDS, VKT_U32, RING_WORDS * RING_ALL);
}

vkt_tensor vkt_graph_clock(vkt_graph *g)
{
    return singleton(g, &g->clock, "clock", VKT_ROLE_CLOCK, VKT_U32, CLOCK_WORDS);
}

vkt_tensor vkt_graph_metrics(vkt_graph *g)
{
    return singleton(g, &g->metrics, "metrics", VKT_ROLE_METRICS, VKT_U32, METRIC_WORDS * RING_ALL);
}

vkt_tensor vkt_graph_run(vkt_graph *g)
{
    if (!g->run.id && singleton(g, &g->run, "run", VKT_ROLE_STEP, VKT_U32, 1).id)
        g->values[g->run.id].arena_offset_bytes = 4 * STEP_RUN;
    return g->run;
}

vkt_tensor vkt_graph_arena(vkt_graph *g, vkt_role role)
{
    static const char *const names[VKT_ARENAS] = { "params",  "grads",    "moment1",  "moment2",
                                                   "moment3", "grad_sum", "published" };
    const unsigned i = (unsigned)role - VKT_ROLE_PARAM;
    if (i >= VKT_ARENAS || g->arena_bytes == 0 || g->arena_bytes / 4 > UINT32_MAX) {
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG, "the parameter arena of %llu bytes: want 4 bytes to 16 GiB",
                                    (unsigned long long)g->arena_bytes));
        return (vkt_tensor){ 0 };
    }
    return singleton(g, &g->arena[i], names[i], role, VKT_F32, g->arena_bytes / 4);
}

bool vkt_is_usable(vkt_graph *g, const char *op, vkt_tensor t)
{
    if (vkt_graph_status(g) != VKT_OK) return false;
    if (t.id && t.id < g->n_values) return true;
    vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG, "%s: want a tensor of this graph, got %s", op,
                                t.id ? "one of another" : "the null tensor"));
    return false;
}

vkt_tensor vkt_null_argument(vkt_graph *g, const char *op, const char *argument)
{
    if (g) vkt_graph_error(g, vkt_fail(&g->host, VKT_E_ARG, "%s: want `%s`, got NULL", op, argument));
    return (vkt_tensor){ 0 };
}

/* ---- nodes ---- */

void vkt_out(vkt_infer *f, vkt_dtype dtype, vkt_layout layout, vkt_shape shape)
{
    if (f->n_out >= VKT_MAX_OUT) return;
    f->out[f->n_out].proto = (vkt_value){ .shape = shape, .dtype = dtype, .layout = layout };
    f->out[f->n_out++].alias_in = -1;
}

void vkt_out_alias(vkt_infer *f, uint32_t i, vkt_layout layout, vkt_shape shape)
{
    if (f->n_out >= VKT_MAX_OUT) return;
    f->out[f->n_out].proto = (vkt_value){ .shape = shape, .dtype = vkt_in(f, i)->dtype, .layout = layout };
    f->out[f->n_out++].alias_in = (int32_t)i;
}

/* Returns whether no node may read t, because vkt_write or vkt_append writes the memory of t. Nodes may read the result
 * of vkt_append. */
static bool is_unreadable(const vkt_graph *g, vkt_tensor t)
{
    for (uint32_t id = t.id; id; id = g->values[id].alias) {
        if (g->values[id].appended) return false;
        if (g->values[id].written) return true;
    }
    return false;
}

static bool inputs_are_legal(vkt_graph *g, const vkt_op *op, const vkt_tensor *in, uint32_t n_in)
{
    if (vkt_graph_status(g) != VKT_OK) return false;
    vkt_result r = VKT_OK;
    if (n_in < op->min_in || n_in > op->max_in || n_in + op->uses_step > VKT_MAX_IN)
        r = vkt_fail(&g->host, VKT_E_ARG, "%s: want %u to %u inputs, got %u", op->name, op->min_in, op->max_in, n_in);
    for (uint32_t i = 0; r == VKT_OK && i < n_in; i++)
        if (in[i].id >= g->n_values || (in[i].id == 0 && i < op->min_in))
            r = vkt_fail(&g->host, VKT_E_ARG, "%s: input %u is %s", op->name, i,
                         in[i].id ? "not of this graph" : "the null tensor");
        else if (is_unreadable(g, in[i]))
            r = vkt_fail(&g->host, VKT_E_STATE,
                         "%s: input %u, '%s', is written by the graph: read the result of vkt_append instead", op->name,
                         i, g->values[vkt_root(g, in[i])].name);
    if (r != VKT_OK) vkt_graph_error(g, r);
    return r == VKT_OK;
}

/* Adds the outputs that infer described. A node that becomes another op (vkt_node_become) has some outputs already. It
 * keeps these outputs, and gets only the outputs that the new op has in addition. */
static vkt_result add_outputs(vkt_graph *g, vkt_infer *f, vkt_node *n)
{
    for (uint32_t i = n->n_out; i < f->n_out; i++) {
        vkt_value v = f->out[i].proto;
        if (i == 0)
            snprintf(v.name, sizeof v.name, "%.30s.%u", n->op->name, n->index);
        else
            snprintf(v.name, sizeof v.name, "%.30s.%u.%u", n->op->name, n->index, i);
        v.producer = n->index + 1;
        if (!shape_is_legal(g, v.name, v.shape)) return g->status;
        if (f->out[i].alias_in >= 0) {
            v.alias = n->in[f->out[i].alias_in].id;
            v.role = g->values[v.alias].role;
        }
        n->out[i] = vkt_value_add(g, &v);
        if (!n->out[i].id) return g->status;
        if (v.alias && g->values[n->out[i].id].bytes != g->values[v.alias].bytes)
            return vkt_fail(&g->host, VKT_E_STATE, "%s: an alias must have its source's size", n->op->name);
        vkt_value *root = &g->values[vkt_root(g, n->out[i])];
        if (n->op->side_effect) root->changes = root->state;
    }
    n->n_out = f->n_out;
    return VKT_OK;
}

/* Adds `by` (1 or -1) to the reader counts of n's inputs. */
static void count_reader(vkt_graph *g, const vkt_node *n, int by)
{
    for (uint32_t k = 0; k < n->n_in; k++) {
        uint32_t id = n->in[k].id;
        while (g->values[id].again) id = g->values[id].again; /* see vkt_value.again */
        g->values[id].readers += (uint32_t)by;
    }
}

/* Gives n its op, inputs, attributes and outputs. */
static vkt_result fill_node(vkt_graph *g, vkt_node *n, const vkt_op *op, const vkt_tensor *in, uint32_t n_in,
                            const void *attr)
{
    n->op = op;
    n->g = g;
    n->n_in = n_in;
    n->attr = NULL;
    memset(n->in, 0, sizeof n->in);
    memcpy(n->in, in, n_in * sizeof *in);
    if (op->uses_step) {
        n->n_in = op->max_in + 1u;
        n->in[op->max_in] = vkt_graph_step(g);
    }
    if (op->attr_bytes && !(n->attr = vkt_graph_copy(g, attr, op->attr_bytes))) return g->status;
    VKT_TRY(g->status);
    vkt_infer f = { .g = g, .n = n };
    VKT_TRY(op->infer(&f));
    return add_outputs(g, &f, n);
}

vkt_tensor vkt_apply(vkt_graph *g, const vkt_op *op, const vkt_tensor *in, uint32_t n_in, const void *attr,
                     vkt_tensor *outs)
{
    if (outs) memset(outs, 0, VKT_MAX_OUT * sizeof *outs);
    if (!inputs_are_legal(g, op, in, n_in)) return (vkt_tensor){ 0 };
    vkt_node *n = vkt_alloc(&g->host, sizeof *n);
    vkt_result r = n ? vkt_grow(&g->host, &g->nodes, g->n_nodes, &g->cap_nodes, sizeof *g->nodes)
                     : vkt_fail_nomem(&g->host, "a node", sizeof *n);
    if (r == VKT_OK) {
        *n = (vkt_node){ .index = (uint32_t)g->n_nodes };
        r = fill_node(g, n, op, in, n_in, attr);
    }
    if (r != VKT_OK) {
        if (n) vkt_free(&g->host, (void *)(uintptr_t)n->attr);
        vkt_free(&g->host, n);
        vkt_graph_error(g, r);
        return (vkt_tensor){ 0 };
    }
    g->nodes[g->n_nodes++] = n;
    count_reader(g, n, 1);
    if (outs) memcpy(outs, n->out, sizeof n->out);
    return n->out[0];
}

void vkt_node_become(vkt_graph *g, vkt_node *n, const vkt_op *op, const vkt_tensor *in, uint32_t n_in, const void *attr)
{
    vkt_node next = *n;
    if (!inputs_are_legal(g, op, in, n_in)) return;
    const vkt_result r = fill_node(g, &next, op, in, n_in, attr);
    if (r == VKT_OK) {
        vkt_free(&g->host, (void *)(uintptr_t)n->attr);
        count_reader(g, n, -1);
        *n = next;
        count_reader(g, n, 1);
    } else {
        vkt_free(&g->host, (void *)(uintptr_t)next.attr);
        vkt_graph_error(g, r);
    }
}

uint32_t vkt_readers(const vkt_graph *g, vkt_tensor t)
{
    const vkt_value *v = vkt_value_of(g, t);
    while (v->again) v = &g->values[v->again]; /* see vkt_value.again */
    return v->readers;
}

const vkt_node *vkt_sole_producer(const vkt_graph *g, vkt_tensor t)
{
    const vkt_value *v = vkt_value_of(g, t);
    if (!v->producer || v->keep) return NULL;
    return vkt_readers(g, t) == 1 ? g->nodes[v->producer - 1] : NULL;
}

const vkt_node *vkt_sole_producer_past_views(const vkt_graph *g, vkt_tensor t)
{
    const vkt_node *n = vkt_sole_producer(g, t);
    while (n && !n->op->emit && n->op->diff && vkt_value_of(g, n->out[0])->alias) n = vkt_sole_producer(g, n->in[0]);
    return n;
}
