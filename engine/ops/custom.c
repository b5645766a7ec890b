/* ops/custom.c - the ops of the application: vktrain/custom.h. The forward node has the op custom, and the node of its
 * gradients has the op custom_dx. Both nodes have the declaration of the application's op as their attribute. */
#include "ops/custom.h"

#include <stdio.h>

#include "abi/step.abi.h"

_Static_assert(VKT_STEP_ROWS == STEP_ROWS && VKT_STEP_FIRST == STEP_FIRST && VKT_STEP_KEY0 == STEP_KEY0 &&
                   VKT_STEP_KEY1 == STEP_KEY1 && VKT_STEP_DRAW == STEP_DRAW && VKT_STEP_WORDS == STEP_WORDS,
               "vktrain/custom.h has the words of the step state");

/* ---- dispatches ---- */

/* Computes the number of work groups along each axis. Returns an error if the device does not allow so many. */
static vkt_result find_groups(const vkt_emit *e, const vkt_custom_kernel *k, uint64_t groups[3])
{
    const uint64_t local = k->shader.declared.local[0];
    for (int i = 0; i < 3; i++) groups[i] = k->groups[0] ? k->groups[i] : 1;
    if (k->elements) groups[0] = k->elements / local + (k->elements % local != 0);
    if (k->loops) groups[0] = VKT_MIN(groups[0], e->lim->max_groups);
    for (int i = 0; i < 3; i++)
        if (groups[i] > e->lim->max_groups)
            return vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                            "shader %s: %llu work groups along %c; this device runs at most %u%s", k->shader.name,
                            (unsigned long long)groups[i], "xyz"[i], e -> lim -> max_groups,
                            k -> elements ? ": let the shader loop over the elements, and set `loops`" : "");
    return VKT_OK;
}

/* Appends the dispatch of a shader. `values`: the tensors of its bindings. */
static void launch(vkt_emit *e, const vkt_custom_kernel *k, const vkt_tensor *values)
{
    vkt_bind bind[VKT_CUSTOM_BINDINGS] = { { .bytes = 0 } };
    vkt_launch l = { .shader = &k->shader, .bind = bind, .push = k->push, .push_bytes = k->push_bytes };
    vkt_result r = vkt_custom_check_device(&e->host, e->lim, &k->shader);
    if (r == VKT_OK) r = find_groups(e, k, l.groups);
    if (r != VKT_OK) {
        vkt_emit_error(e, r);
        return;
    }
    for (uint32_t b = 0; b < VKT_CUSTOM_BINDINGS; b++) {
        bind[b].t = values[b];
        if (values[b].id) l.n_bind = b + 1;
    }
    vkt_dispatch_add(e, &l);
}

/* ---- the forward node ----
 *
 * The node's inputs are the op's inputs. If a binding has the step state, the step state is the last input. */

static vkt_result forward_infer(vkt_infer *f)
{
    const vkt_custom_op *op = vkt_custom_of(f->n);
    for (uint32_t k = 0; k < op->n_outputs; k++)
        vkt_out(f, op->outputs[k].dtype, op->outputs[k].layout, op->outputs[k].shape);
    return VKT_OK;
}

static void forward_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_custom_op *op = vkt_custom_of(n);
    vkt_tensor values[VKT_CUSTOM_BINDINGS] = { { 0 } };
    for (uint32_t b = 0; b < VKT_CUSTOM_BINDINGS; b++) {
        const uint32_t bind = op->forward.bind[b], i = vkt_custom_number(bind);
        if (!bind) continue;
        values[b] = bind == VKT_CUSTOM_STEP                    ? n->in[op->n_inputs]
                    : vkt_custom_kind(bind) == VKT_CUSTOM_X(0) ? n->in[i]
                                                               : n->out[i];
    }
    launch(e, &op->forward, values);
}

static bool has_binding(const vkt_custom_kernel *k, uint32_t bind)
{
    bool found = false;
    for (uint32_t b = 0; b < VKT_CUSTOM_BINDINGS; b++) found |= k->bind[b] == bind;
    return found;
}

static bool stops(const vkt_node *n, uint32_t i)
{
    const vkt_custom_op *op = vkt_custom_of(n);
    return i >= op->n_inputs || op->values[i].dtype != VKT_F32 || op->inputs[i].no_gradient;
}

/* Sets *any to true if an input needs a gradient. Returns an error if the op does not compute this gradient. */
static vkt_result check_wanted(vkt_graph *g, const vkt_node *n, const vkt_custom_op *op, bool *any)
{
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        if (stops(n, i) || !vkt_wants_grad(g, n->in[i])) continue;
        *any = true;
        if (!has_binding(&op->gradient, VKT_CUSTOM_DX(i)))
            return vkt_fail(&g->host, VKT_E_ARG,
                            "custom op '%s': input %u, '%s', needs a gradient, and the op has %s: give it one, or set "
                            "`no_gradient` for this input",
                            op->name, i, vkt_node_in(n, i)->name,
                            op->gradient.shader.bytes ? "no VKT_CUSTOM_DX for it" : "no gradient shader");
    }
    return VKT_OK;
}

/* Returns a gradient of zeros for output y. */
static vkt_tensor zeros(vkt_graph *g, const vkt_custom_output *y)
{
    const vkt_tensor zero = vkt_graph_const(g, "zero", VKT_F32, vkt_shape0(), &(float){ 0 });
    return vkt_expand(g, zero, y->shape, y->layout);
}

static void backward(vkt_graph *g, const vkt_node *n, const vkt_tensor *dy, vkt_tensor *dx)
{
    const vkt_custom_op *op = vkt_custom_of(n);
    vkt_tensor in[VKT_MAX_IN] = { { 0 } }, outs[VKT_MAX_OUT] = { { 0 } };
    uint32_t n_in = 0;
    bool any = false;
    const vkt_result r = check_wanted(g, n, op, &any);
    if (r != VKT_OK) vkt_graph_error(g, r);
    if (r != VKT_OK || !any) return;
    for (uint32_t b = 0; b < VKT_CUSTOM_BINDINGS; b++) {
        const uint32_t bind = op->gradient.bind[b], i = vkt_custom_number(bind), kind = vkt_custom_kind(bind);
        if (kind == VKT_CUSTOM_X(0)) in[n_in++] = n->in[i];
        if (kind == VKT_CUSTOM_Y(0)) in[n_in++] = n->out[i];
        if (kind == VKT_CUSTOM_DY(0)) in[n_in++] = dy[i].id ? dy[i] : zeros(g, &op->outputs[i]);
        if (bind == VKT_CUSTOM_STEP) in[n_in++] = vkt_graph_step(g);
    }
    vkt_apply(g, &vkt_op_custom_dx, in, n_in, n->attr, outs);
    for (uint32_t i = 0, k = 0; i < op->n_inputs; i++)
        if (has_binding(&op->gradient, VKT_CUSTOM_DX(i))) dx[i] = outs[k++];
}

static const vkt_field fields[] = { VKT_FIELD(vkt_custom_attr, shader, U32, 1, 0), { .name = NULL } };

const vkt_op vkt_op_custom = { .name = "custom",
                               .min_in = 0,
                               .max_in = VKT_CUSTOM_INPUTS + 1,
                               .custom = true,
                               .diff = (1u << VKT_CUSTOM_INPUTS) - 1,
                               .stops = stops,
                               .attr_bytes = sizeof(vkt_custom_attr),
                               .infer = forward_infer,
                               .emit = forward_emit,
                               .backward = backward,
                               .flops = vkt_flops_none,
                               .fields = fields };

/* ---- the node of the gradients ----
 *
 * The node's inputs are what the shader reads, in the order of the bindings. The node's outputs are the gradients that
 * the shader writes, in the order of the op's inputs. */

static vkt_result dx_infer(vkt_infer *f)
{
    const vkt_custom_op *op = vkt_custom_of(f->n);
    for (uint32_t i = 0; i < op->n_inputs; i++)
        if (has_binding(&op->gradient, VKT_CUSTOM_DX(i)))
            vkt_out(f, VKT_F32, op->values[i].layout, op->values[i].shape);
    return VKT_OK;
}

static void dx_emit(const vkt_node *n, vkt_emit *e)
{
    const vkt_custom_op *op = vkt_custom_of(n);
    vkt_tensor values[VKT_CUSTOM_BINDINGS] = { { 0 } };
    uint32_t n_in = 0;
    for (uint32_t b = 0; b < VKT_CUSTOM_BINDINGS; b++) {
        const uint32_t bind = op->gradient.bind[b];
        uint32_t number = 0; /* if the binding is a VKT_CUSTOM_DX: index of this gradient in n->out */
        if (!bind) continue;
        if (vkt_custom_kind(bind) != VKT_CUSTOM_DX(0)) {
            values[b] = n->in[n_in++];
            continue;
        }
        for (uint32_t i = 0; i < vkt_custom_number(bind); i++) number += has_binding(&op->gradient, VKT_CUSTOM_DX(i));
        values[b] = n->out[number];
    }
    launch(e, &op->gradient, values);
}

const vkt_op vkt_op_custom_dx = { .name = "custom_dx",
                                  .min_in = 0,
                                  .max_in = VKT_CUSTOM_BINDINGS,
                                  .attr_bytes = sizeof(vkt_custom_attr),
                                  .infer = dx_infer,
                                  .emit = dx_emit,
                                  .forward_only = true,
                                  .tested_by = "custom",
                                  .flops = vkt_flops_none };

/* ---- building ---- */

static vkt_result take_input(vkt_graph *g, vkt_custom_op *op, uint32_t i, const vkt_custom_input *in)
{
    char what[64];
    snprintf(what, sizeof what, "custom op '%s', input %u", op->name, i);
    if (!vkt_is_usable(g, what, in->tensor)) return vkt_graph_status(g);
    const vkt_value *v = vkt_value_of(g, in->tensor);
    if (v->dtype != VKT_F32 && v->dtype != VKT_U32)
        return vkt_fail(&g->host, VKT_E_DTYPE, "%s: want f32 or u32, got %s", what, vkt_dtype_name(v->dtype));
    if (!vkt_is_layout(in->layout) || !(in->low <= in->high))
        return vkt_fail(&g->host, VKT_E_ARG, "%s: want a vkt_layout, and `low` up to `high`", what);
    op->inputs[i] = *in;
    const bool is_so = v->layout == in->layout || v->shape.rank == 0;
    if (!is_so) op->inputs[i].tensor = vkt_to_layout(g, in->tensor, in->layout);
    VKT_TRY(vkt_graph_status(g));
    const vkt_value *as_read = vkt_value_of(g, op->inputs[i].tensor);
    op->values[i] = (vkt_value){ .dtype = as_read->dtype, .layout = as_read->layout, .shape = as_read->shape };
    return VKT_OK;
}

static vkt_result take_output(const vkt_graph *g, vkt_custom_op *op, uint32_t k, const vkt_custom_output *out)
{
    if (out->dtype != VKT_F32 && out->dtype != VKT_U32)
        return vkt_fail(&g->host, VKT_E_DTYPE, "custom op '%s', output %u: want f32 or u32", op->name, k);
    bool legal = out->shape.rank <= VKT_MAX_RANK;
    for (uint32_t i = 0; legal && i < out->shape.rank; i++) legal = out->shape.dim[i] > 0;
    if (!legal || !vkt_is_layout(out->layout))
        return vkt_fail(&g->host, VKT_E_SHAPE,
                        "custom op '%s', output %u: want rank <= %d, dimensions of at least 1 and a vkt_layout",
                        op->name, k, VKT_MAX_RANK);
    op->outputs[k] = *out;
    if (out->shape.rank == 0) op->outputs[k].layout = VKT_ROWS;
    return VKT_OK;
}

static vkt_result check_params(const vkt_graph *g, const vkt_custom_params *p)
{
    if (!p->name || !*p->name) return vkt_fail(&g->host, VKT_E_ARG, "custom op: want a name");
    if (p->n_inputs > VKT_CUSTOM_INPUTS || (p->n_inputs && !p->inputs) || p->n_outputs < 1 ||
        p->n_outputs > VKT_CUSTOM_OUTPUTS || !p->outputs)
        return vkt_fail(&g->host, VKT_E_ARG,
                        "custom op '%.31s': want 0 to %d inputs and 1 to %d outputs, got %u and %u", p->name,
                        VKT_CUSTOM_INPUTS, VKT_CUSTOM_OUTPUTS, p->n_inputs, p->n_outputs);
    return VKT_OK;
}

static vkt_result take(vkt_graph *g, const vkt_custom_params *p, vkt_custom_op *op)
{
    op->n_inputs = p->n_inputs;
    op->n_outputs = p->n_outputs;
    for (uint32_t i = 0; i < p->n_inputs; i++) VKT_TRY(take_input(g, op, i, &p->inputs[i]));
    for (uint32_t k = 0; k < p->n_outputs; k++) VKT_TRY(take_output(g, op, k, &p->outputs[k]));
    VKT_TRY(vkt_custom_take_shader(g, op, &p->forward, false, &op->forward));
    if (p->gradient.spirv) VKT_TRY(vkt_custom_take_shader(g, op, &p->gradient, true, &op->gradient));
    for (uint32_t i = 0; i < p->n_inputs; i++)
        if (!has_binding(&op->forward, VKT_CUSTOM_X(i)) && !has_binding(&op->gradient, VKT_CUSTOM_X(i)))
            return vkt_fail(&g->host, VKT_E_ARG, "custom op '%s': no binding has input %u", op->name, i);
    return VKT_OK;
}

static uint32_t hash_of(const vkt_custom_kernel *k)
{
    uint64_t h = vkt_hash(VKT_HASH_START, k->shader.words, k->shader.bytes);
    h = vkt_hash(h, k->push, k->push_bytes);
    h = vkt_hash(h, k->bind, sizeof k->bind);
    h = vkt_hash(h, k->groups, sizeof k->groups);
    h = vkt_hash(h, &k->elements, sizeof k->elements);
    if (k->shader.entry) h = vkt_hash(h, k->shader.entry, strlen(k->shader.entry));
    return (uint32_t)(h ^ h >> 32);
}

/* Adds the node of an op that was checked, and names its outputs. */
static vkt_tensor add_node(vkt_graph *g, const vkt_custom_op *op, vkt_tensor *outs)
{
    const vkt_custom_attr attr = { .op = op, .shader = hash_of(&op->forward) ^ hash_of(&op->gradient) * 31 };
    vkt_tensor in[VKT_CUSTOM_INPUTS + 1];
    uint32_t n = 0;
    for (; n < op->n_inputs; n++) in[n] = op->inputs[n].tensor;
    if (has_binding(&op->forward, VKT_CUSTOM_STEP)) in[n++] = vkt_graph_step(g);
    const vkt_tensor y = vkt_apply(g, &vkt_op_custom, in, n, &attr, outs);
    for (uint32_t k = 0; k < op->n_outputs && y.id; k++) {
        char name[VKT_NAME_MAX];
        snprintf(name, sizeof name, k ? "%s.%zu.%u" : "%s.%zu", op->name, g->n_nodes - 1, k);
        vkt_tensor_set_name(g, outs[k], name);
    }
    return y;
}

vkt_tensor vkt_custom(vkt_graph *g, const vkt_custom_params *p, vkt_tensor *outs)
{
    vkt_tensor all[VKT_MAX_OUT] = { { 0 } };
    if (!g) return (vkt_tensor){ 0 };
    if (!p) return vkt_null_argument(g, "custom", "p");
    if (outs && p->n_outputs <= VKT_CUSTOM_OUTPUTS) memset(outs, 0, p->n_outputs * sizeof *outs);
    if (vkt_graph_status(g) != VKT_OK) return (vkt_tensor){ 0 };
    vkt_result r = check_params(g, p);
    vkt_custom_op *op = r == VKT_OK ? vkt_graph_own(g, sizeof *op) : NULL;
    if (r == VKT_OK && !op) return (vkt_tensor){ 0 };
    if (op) {
        snprintf(op->name, sizeof op->name, "%s", p->name);
        r = take(g, p, op);
    }
    if (r != VKT_OK) vkt_graph_error(g, r);
    const vkt_tensor y = r == VKT_OK ? add_node(g, op, all) : (vkt_tensor){ 0 };
    for (uint32_t k = 0; outs && y.id && k < p->n_outputs; k++) outs[k] = all[k];
    return y;
}
