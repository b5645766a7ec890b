/* ops/custom_check.c - compares the module of a custom op with the op's declaration, and with a device's limits. */
#include "ops/custom.h"

#include <stdio.h>

_Static_assert(VKT_CUSTOM_BINDINGS == VKT_MAX_BINDINGS, "a dispatch has room for every binding");
_Static_assert(VKT_CUSTOM_PUSH_BYTES == VKT_EMIT_PUSH, "a dispatch has room for the push constants");
_Static_assert(VKT_CUSTOM_INPUTS < VKT_MAX_IN && VKT_CUSTOM_INPUTS <= VKT_MAX_OUT &&
                   VKT_CUSTOM_OUTPUTS <= VKT_MAX_OUT && VKT_MAX_BINDINGS <= VKT_MAX_IN,
               "a node has room for inputs, outputs and step state");

/* The declaration that is being checked. */
typedef struct check {
    const vkt_host *h;
    const vkt_custom_op *op;
    const vkt_custom_shader *s;
    bool gradient;
    const char *what; /* for instance "custom op 'wave', gradient shader" */
} check;

/* Writes what a binding holds, as a C expression: "VKT_CUSTOM_X(2)". */
static const char *bind_text(uint32_t bind, char out[40])
{
    static const char *const names[] = { "", "VKT_CUSTOM_X", "VKT_CUSTOM_Y", "VKT_CUSTOM_DY", "VKT_CUSTOM_DX" };
    const uint32_t kind = vkt_custom_kind(bind) >> 8;
    if (kind >= 1 && kind < VKT_COUNT(names))
        snprintf(out, 40, "%s(%u)", names[kind], vkt_custom_number(bind));
    else
        snprintf(out, 40, bind == VKT_CUSTOM_STEP ? "VKT_CUSTOM_STEP" : "0x%x", bind);
    return out;
}

static bool is_written(bool gradient, uint32_t bind)
{
    return vkt_custom_kind(bind) == (gradient ? VKT_CUSTOM_DX(0) : VKT_CUSTOM_Y(0));
}

/* Checks entry b of the declaration's `bind`. */
static vkt_result check_entry(const check *c, uint32_t b)
{
    const uint32_t bind = c->s->bind[b], kind = vkt_custom_kind(bind), i = vkt_custom_number(bind);
    const bool of_input = kind == VKT_CUSTOM_X(0) || kind == VKT_CUSTOM_DX(0);
    const bool of_output = kind == VKT_CUSTOM_Y(0) || kind == VKT_CUSTOM_DY(0);
    const bool known = of_input || of_output || bind == VKT_CUSTOM_STEP;
    const bool wrong_shader = !c->gradient && (kind == VKT_CUSTOM_DX(0) || kind == VKT_CUSTOM_DY(0));
    char text[40];
    bind_text(bind, text);
    if (!known)
        return vkt_fail(c->h, VKT_E_ARG, "%s: binding %u: want VKT_CUSTOM_X(i) or its like, got %s", c->what, b, text);
    if (wrong_shader)
        return vkt_fail(c->h, VKT_E_ARG, "%s: binding %u: %s is only for gradient shaders", c->what, b, text);
    if ((of_input && i >= c->op->n_inputs) || (of_output && i >= c->op->n_outputs))
        return vkt_fail(c->h, VKT_E_ARG, "%s: binding %u: %s, but the op has %u inputs and %u outputs", c->what, b,
                        text, c->op->n_inputs, c->op->n_outputs);
    for (uint32_t other = 0; other < b; other++)
        if (c->s->bind[other] == bind)
            return vkt_fail(c->h, VKT_E_ARG, "%s: bindings %u and %u are both %s; want one", c->what, other, b, text);
    if ((kind == VKT_CUSTOM_DX(0) && c->op->values[i].dtype != VKT_F32) ||
        (kind == VKT_CUSTOM_DY(0) && c->op->outputs[i].dtype != VKT_F32))
        return vkt_fail(c->h, VKT_E_DTYPE, "%s: binding %u: %s, but only f32 values have gradients", c->what, b, text);
    if (kind == VKT_CUSTOM_DX(0) && c->op->inputs[i].no_gradient)
        return vkt_fail(c->h, VKT_E_ARG, "%s: binding %u: %s, but input %u has no_gradient", c->what, b, text, i);
    return VKT_OK;
}

/* Checks that `bind` has something that the shader writes. A forward shader must write all outputs. */
static vkt_result check_outputs(const check *c)
{
    char text[40];
    uint32_t written = 0;
    for (uint32_t b = 0; b < VKT_CUSTOM_BINDINGS; b++)
        if (is_written(c->gradient, c->s->bind[b])) written |= 1u << vkt_custom_number(c->s->bind[b]);
    if (c->gradient && !written)
        return vkt_fail(c->h, VKT_E_ARG, "%s: want a binding with VKT_CUSTOM_DX(i), got none", c->what);
    for (uint32_t k = 0; k < c->op->n_outputs && !c->gradient; k++)
        if (!(written >> k & 1))
            return vkt_fail(c->h, VKT_E_ARG, "%s: no binding has %s: every output must be written", c->what,
                            bind_text(VKT_CUSTOM_Y(k), text));
    return VKT_OK;
}

/* Compares a resource of the module with the declaration. */
static vkt_result check_variable(const check *c, const vkt_spirv_variable *v)
{
    char text[40];
    if (v->set != 0)
        return vkt_fail(c->h, VKT_E_ARG, "%s: binding %u is in descriptor set %u; want set 0", c->what, v->binding,
                        v->set);
    if (v->binding >= VKT_CUSTOM_BINDINGS)
        return vkt_fail(c->h, VKT_E_ARG, "%s: binding %u of the module; want bindings 0 to %d", c->what, v->binding,
                        VKT_CUSTOM_BINDINGS - 1);
    const uint32_t bind = c->s->bind[v->binding];
    if (!bind)
        return vkt_fail(c->h, VKT_E_ARG, "%s: the module has binding %u; want bind[%u] to say what it holds, got 0",
                        c->what, v->binding, v->binding);
    bind_text(bind, text);
    if (!v->is_buffer)
        return vkt_fail(c->h, VKT_E_ARG, "%s: binding %u (%s): want one storage buffer, got another resource", c->what,
                        v->binding, text);
    if (is_written(c->gradient, bind) && !v->writes)
        return vkt_fail(c->h, VKT_E_ARG, "%s: binding %u (%s): want a block that the shader writes, got `readonly`",
                        c->what, v->binding, text);
    if (!is_written(c->gradient, bind) && v->writes)
        return vkt_fail(c->h, VKT_E_ARG, "%s: binding %u (%s): want a `readonly` block, got one that may be written",
                        c->what, v->binding, text);
    return VKT_OK;
}

static vkt_result check_module(const check *c, const vkt_spirv *m)
{
    uint32_t found = 0;
    char text[40];
    for (uint32_t i = 0; i < m->n_variables; i++) {
        const vkt_spirv_variable *v = &m->variables[i];
        VKT_TRY(check_variable(c, v));
        if (found >> v->binding & 1)
            return vkt_fail(c->h, VKT_E_ARG, "%s: two blocks of the module have binding %u; want one", c->what,
                            v->binding);
        found |= 1u << v->binding;
    }
    for (uint32_t b = 0; b < VKT_CUSTOM_BINDINGS; b++)
        if (c->s->bind[b] && !(found >> b & 1))
            return vkt_fail(c->h, VKT_E_ARG, "%s: bind[%u] is %s, but the module has no binding %u", c->what, b,
                            bind_text(c->s->bind[b], text), b);
    const size_t given = c->s->push_bytes;
    if (given < m->push_bytes || given > vkt_round_up(m->push_bytes, 16)) /* C may add padding to a struct */
        return vkt_fail(c->h, VKT_E_ARG, "%s: the module has %u bytes of push constants; want as many, got %zu",
                        c->what, m->push_bytes, given);
    return VKT_OK;
}

static vkt_result check_declaration(const check *c)
{
    const vkt_custom_shader *s = c->s;
    if (!s->spirv) return vkt_fail(c->h, VKT_E_ARG, "%s: want `spirv`, got NULL", c->what);
    if (s->push_bytes > VKT_CUSTOM_PUSH_BYTES || s->push_bytes % 4 || (s->push_bytes && !s->push))
        return vkt_fail(c->h, VKT_E_ARG, "%s: want 0 to %d bytes of push constants, a multiple of 4, got %zu%s",
                        c->what, VKT_CUSTOM_PUSH_BYTES, s->push_bytes, s->push ? "" : " at NULL");
    if (!s->groups[0] == !s->elements)
        return vkt_fail(c->h, VKT_E_ARG, "%s: want either `groups` or `elements`, got %s", c->what,
                        s->elements ? "both" : "neither");
    if (s->loops && !s->elements)
        return vkt_fail(c->h, VKT_E_ARG, "%s: `loops` wants `elements`, got `groups`", c->what);
    for (uint32_t b = 0; b < VKT_CUSTOM_BINDINGS; b++)
        if (s->bind[b]) VKT_TRY(check_entry(c, b));
    return check_outputs(c);
}

/* Copies module and name of the entry point into memory of the graph. */
static vkt_result copy_module(vkt_graph *g, const vkt_custom_shader *s, const char *entry, vkt_shader *out)
{
    const size_t name = strlen(entry) + 1, bytes = vkt_round_up(s->spirv_bytes, 4);
    unsigned char *block = vkt_graph_own(g, bytes + name);
    if (!block) return g->status;
    memcpy(block, s->spirv, s->spirv_bytes);
    memcpy(block + bytes, entry, name);
    out->words = (const uint32_t *)(const void *)block;
    out->bytes = s->spirv_bytes;
    out->entry = (const char *)block + bytes;
    return VKT_OK;
}

vkt_result vkt_custom_take_shader(vkt_graph *g, const vkt_custom_op *op, const vkt_custom_shader *s, bool gradient,
                                  vkt_custom_kernel *out)
{
    char what[80];
    snprintf(what, sizeof what, "custom op '%s', %s shader", op->name, gradient ? "gradient" : "forward");
    const check c = { .h = &g->host, .op = op, .s = s, .gradient = gradient, .what = what };
    vkt_shader *shader = &out->shader;
    VKT_TRY(check_declaration(&c));
    VKT_TRY(copy_module(g, s, s->entry ? s->entry : "main", shader));
    snprintf(shader->name, sizeof shader->name, "%s%s", op->name, gradient ? "_dx" : "");
    VKT_TRY(vkt_spirv_read(&g->host, what, shader->words, shader->bytes, shader->entry, &shader->declared));
    VKT_TRY(check_module(&c, &shader->declared));
    for (uint32_t i = 0; i < shader->declared.n_variables; i++) {
        const vkt_spirv_variable *v = &shader->declared.variables[i];
        shader->reads |= (uint32_t)v->reads << v->binding;
        shader->writes |= (uint32_t)v->writes << v->binding;
    }
    memcpy(out->bind, s->bind, sizeof out->bind);
    for (int i = 0; i < 3 && s->groups[0]; i++) out->groups[i] = VKT_MAX(s->groups[i], 1u);
    out->elements = s->elements;
    out->loops = s->loops;
    out->push_bytes = (uint32_t)s->push_bytes;
    if (s->push_bytes) memcpy(out->push, s->push, s->push_bytes);
    return VKT_OK;
}

vkt_result vkt_custom_check_device(const vkt_host *h, const vkt_limits *lim, const vkt_shader *s)
{
    const vkt_spirv *m = &s->declared;
    const uint32_t lacks = m->capabilities & ~lim->capabilities;
    uint32_t c = 0;
    while (c < VKT_CAPABILITY_COUNT && !(lacks >> c & 1)) c++;
    if (lacks)
        return vkt_fail(h, VKT_E_UNSUPPORTED,
                        "shader %s: it declares capability %s, which this device was not made with", s->name,
                        vkt_capability_name((vkt_capability)c));
    if (m->other)
        return vkt_fail(h, VKT_E_UNSUPPORTED, "shader %s: it declares capability %u, which vktrain does not know",
                        s->name, m->other - 1);
    const uint64_t lanes = (uint64_t)m->local[0] * m->local[1], all = lanes > UINT32_MAX ? lanes : lanes * m->local[2];
    for (int i = 0; i < 3; i++)
        if (m->local[i] > lim->max_local[i] || all > lim->max_local_lanes)
            return vkt_fail(
                h, VKT_E_UNSUPPORTED,
                "shader %s: work groups of %u x %u x %u; this device has at most %u x %u x %u, and %u lanes", s->name,
                m->local[0], m->local[1], m->local[2], lim->max_local[0], lim->max_local[1], lim->max_local[2],
                lim->max_local_lanes);
    if (m->shared_bytes > lim->shared_bytes)
        return vkt_fail(h, VKT_E_UNSUPPORTED, "shader %s: %llu bytes of shared memory; this device has %u", s->name,
                        (unsigned long long)m->shared_bytes, lim->shared_bytes);
    return VKT_OK;
}
