/* info/work.c - see work.h. */
#include "info/work.h"

#include <stdlib.h>
#include <string.h>

#include "bench/case.h"
#include "bench/nets.h"
#include "check/case.h"
#include "check/subject.h"
#include "gpu/gpu.h"
#include "passes/passes.h"

/* ---- choices of a graph ---- */

/* Sets the bounds of the integer inputs of `c`, which describes node n. If an input of n is also an input of `s` (may
 * be NULL), its bound is the bound in s->c. Otherwise its bound is that of vkt_case_of_node. If no bound is known, all
 * integers are allowed. */
static void set_bounds(const vkt_node *n, const vkt_subject *s, vkt_case *c)
{
    vkt_case of_node = { .n_in = 0 };
    if (n->op->sample) vkt_case_of_node(n, &of_node);
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (c->in[i].absent || !vkt_is_integer(c->in[i].dtype)) continue;
        c->in[i].bound = of_node.in[i].bound;
        for (uint32_t k = 0; s && k < s->c.n_in; k++)
            if (n->in[i].id == s->in[k].t.id) c->in[i].bound = s->c.in[k].bound;
        if (c->in[i].bound == 0) c->in[i].bound = UINT32_MAX;
    }
}

/* Writes the inputs and attributes of a node as text. Leaves out the step state, which some nodes have as an additional
 * last input. `s`: the case whose graph has the node; NULL: the graph is a network's. */
static void describe(const vkt_node *n, const vkt_subject *s, char text[160])
{
    vkt_case c = { .n_in = VKT_MIN(n->n_in, n->op->max_in) };
    for (uint32_t i = 0; i < c.n_in; i++) {
        const vkt_value *v = vkt_node_in(n, i);
        c.in[i] = (vkt_case_input){ .dtype = v->dtype, .layout = v->layout, .shape = v->shape };
        c.in[i].absent = n->in[i].id == 0;
    }
    while (c.n_in && c.in[c.n_in - 1].absent) c.n_in--;
    if (n->op->attr_bytes) vkt_case_attr(&c, n->attr, n->op->attr_bytes);
    set_bounds(n, s, &c);
    vkt_case_text(&n->g->host, n->op, &c, text);
}

static bool add(info_work *w, const info_choice *c)
{
    for (size_t i = 0; i < w->n; i++) {
        info_choice *old = &w->choices[i];
        if (old->op == c->op && old->usable == c->usable && old->taken == c->taken && strcmp(old->text, c->text) == 0) {
            old->times++;
            return true;
        }
    }
    if (w->n == w->cap) {
        const size_t cap = w->cap ? 2 * w->cap : 32;
        info_choice *list = realloc(w->choices, cap * sizeof *list);
        if (!list) return false;
        w->choices = list;
        w->cap = cap;
    }
    w->choices[w->n++] = *c;
    return true;
}

/* `s`: the case that has the graph g; NULL: g is a network's. */
static vkt_result add_choices(vkt_ctx *ctx, const vkt_graph *g, const vkt_subject *s, info_work *w)
{
    vkt_emit e;
    bool *live = calloc(g->n_nodes + 1, sizeof *live);
    if (!live) return VKT_E_NOMEM;
    vkt_find_live(g, live);
    vkt_result r = vkt_lower(g, &ctx->limits, live, (vkt_storage){ .precision = VKT_PRECISION_F32 }, &e);
    free(live);
    if (r != VKT_OK) return r;
    for (size_t i = 0; i < e.n_picked && r == VKT_OK; i++) {
        const vkt_picked *p = &e.picked[i];
        const vkt_node *n = g->nodes[p->node];
        info_choice c = { .op = n->op->name, .usable = p->usable, .taken = p->variant, .times = 1 };
        c.tuned = vkt_tuned_for(&ctx->limits.choices, p->key).variants >> p->variant & 1;
        describe(n, s, c.text);
        if (!add(w, &c)) r = VKT_E_NOMEM;
    }
    vkt_lower_free(&e);
    return r;
}

/* ---- networks and cases ---- */

static vkt_result add_network(vkt_ctx *ctx, const bench_net *net, info_work *w)
{
    bench_step step;
    *w = (info_work){ .name = net->name, .what = net->what };
    vkt_result r = bench_step_graph(ctx, net, &step);
    if (r == VKT_OK) r = add_choices(ctx, step.g, NULL, w);
    bench_step_destroy(&step);
    return r;
}

static vkt_result add_case(vkt_ctx *ctx, const char *line, info_work *w)
{
    const vkt_op *op;
    vkt_case c;
    vkt_subject s;
    *w = (info_work){ .name = line, .what = "" };
    VKT_TRY(bench_case_parse(&ctx->host, line, &op, &c));
    if (!op) return vkt_fail(&ctx->host, VKT_E_FORMAT, "a case that names no op: '%s'", line);
    vkt_result r = vkt_subject_graph_of_case(&ctx->host, &s, op, &c);
    if (r == VKT_OK) r = add_choices(ctx, s.g, &s, w);
    vkt_subject_free(&s);
    return r;
}

static vkt_result add_named(vkt_ctx *ctx, const char *name, info_work *w)
{
    const bench_net *net = bench_nets;
    if (strchr(name, ' ')) return add_case(ctx, name, w);
    while (net->name && strcmp(net->name, name) != 0) net++;
    return net->name ? add_network(ctx, net, w)
                     : vkt_fail(&ctx->host, VKT_E_NOT_FOUND,
                                "want a network that vkt-bench --list prints, or a case such as 'relu (5,3)', got '%s'",
                                name);
}

vkt_result info_find_work(const info_options *o, info_facts *f)
{
    size_t n = (size_t)o->n_work;
    for (const bench_net *net = bench_nets; !o->n_work && net->name; net++) n++;
    f->works = calloc(n, sizeof *f->works);
    if (!f->works) return VKT_E_NOMEM;
    while (f->n_works < n) {
        const size_t i = f->n_works++;
        VKT_TRY(o->n_work ? add_named(f->ctx, o->work[i], &f->works[i])
                          : add_network(f->ctx, &bench_nets[i], &f->works[i]));
    }
    return VKT_OK;
}
