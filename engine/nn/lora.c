/* nn/lora.c - low-rank adapters of linear layers: which layers have an adapter, and what an adapter computes.
 *
 * Each row of x is an input of the layer, and r is the rank of the adapter. The adapter adds (alpha / r) * x A^T B^T to
 * the output. The adapter computes two products: first z = A x^T, and then z^T B^T. The factor alpha / r is applied to
 * z, because z has few numbers: r for each row of x.
 *
 * A tile of a product may have few rows, but never few columns (ops/product/gemm.c). So the order of the operands is
 * such that the results with a dimension r have r rows: z, the gradient of z, and the gradients of A and B^T. This
 * order needs transposed copies of B and of the gradient of B^T. The copies are small: r numbers for each output of
 * the layer. */
#include <math.h>
#include <stdio.h>

#include "nn/builder.h"

enum { DEFAULT_RANK = 8, SHOWN = 60 }; /* SHOWN: the most characters of a target in a message */

static vkt_result copy_targets(const vkt_host *h, const vkt_lora_params *p, vkt_lora *out)
{
    out->targets = vkt_alloc_array(h, p->n_targets, sizeof *out->targets);
    out->layers = vkt_alloc_array(h, p->n_targets, sizeof *out->layers);
    if (!out->targets || !out->layers) return vkt_fail_nomem(h, "targets", p->n_targets * sizeof *out->targets);
    for (uint32_t i = 0; i < p->n_targets; i++, out->n_targets++) {
        if (!p->targets[i] || !*p->targets[i])
            return vkt_fail(h, VKT_E_ARG, "lora: want targets that are not empty, got none at %u", i);
        out->targets[i] = vkt_strdup(h, p->targets[i]);
        if (!out->targets[i]) return vkt_fail_nomem(h, "a target", strlen(p->targets[i]) + 1);
    }
    return VKT_OK;
}

vkt_result vkt_lora_resolve(const vkt_host *h, const vkt_lora_params *p, uint32_t *rank, float *factor)
{
    *rank = p->rank ? p->rank : DEFAULT_RANK;
    *factor = vkt_or_f32(p->alpha, (float)*rank) / (float)*rank;
    if (isfinite(*factor)) return VKT_OK;
    return vkt_fail(h, VKT_E_ARG, "lora: want a finite alpha, got %g", (double)p->alpha);
}

void vkt_builder_set_lora(vkt_builder *b, const vkt_lora_params *p)
{
    if (!b) return;
    const vkt_host *h = &b->g->host;
    vkt_lora_free(h, &b->lora);
    if (!p) return;
    const float dropout = vkt_or_f32(p->dropout, 0);
    vkt_lora lora = { .dropout = dropout };
    vkt_result r = vkt_lora_resolve(h, p, &lora.rank, &lora.factor);
    if (r == VKT_OK && (!p->targets || p->n_targets == 0))
        r = vkt_fail(h, VKT_E_ARG, "lora: want a target or more, got none");
    if (r == VKT_OK && !(dropout >= 0 && dropout < 1))
        r = vkt_fail(h, VKT_E_ARG, "lora: want a dropout in [0,1), got %g", (double)p->dropout);
    if (r == VKT_OK) r = copy_targets(h, p, &lora);
    if (r == VKT_OK) {
        b->lora = lora;
    } else {
        vkt_lora_free(h, &lora);
        vkt_graph_error(b->g, r);
    }
}

/* Returns whether the text matches a pattern, in which '*' stands for any text. */
static bool matches(const char *pattern, const char *text)
{
    const char *star = NULL, *again = text;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            again = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++again;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return *pattern == 0;
}

/* Returns whether a target matches a layer's name. A target without '*' must be the whole name, or its last parts: the
 * parts of a name are separated by dots. */
static bool is_target(const char *target, const char *name)
{
    if (strchr(target, '*')) return matches(target, name);
    const size_t n = strlen(name), k = strlen(target);
    return n >= k && strcmp(name + n - k, target) == 0 && (n == k || name[n - k - 1] == '.');
}

/* Writes the name of a layer with its scopes. */
static void full_name(const vkt_builder *b, const char *layer, char name[2 * VKT_NAME_MAX])
{
    snprintf(name, 2 * VKT_NAME_MAX, "%s%s", b->scope, layer);
}

bool vkt_builder_adapts(const vkt_builder *b, const char *layer)
{
    char name[2 * VKT_NAME_MAX];
    full_name(b, layer, name);
    for (uint32_t i = 0; i < b->lora.n_targets; i++)
        if (is_target(b->lora.targets[i], name)) return true;
    return false;
}

/* Makes the parameter of one matrix of an adapter. `part` is "lora_A" or "lora_B". */
static vkt_tensor make_part(vkt_builder *b, const char *layer, const char *part, uint32_t rows, uint32_t columns,
                            vkt_init init)
{
    char name[2 * VKT_NAME_MAX];
    snprintf(name, sizeof name, "%s.%s.weight", layer, part);
    return vkt_nn_param(b, name, vkt_shape2(rows, columns), init, columns, rows);
}

vkt_tensor vkt_builder_adapt(vkt_builder *b, const char *layer, vkt_tensor x, vkt_tensor y)
{
    vkt_graph *g = b->g;
    const vkt_lora *l = &b->lora;
    char name[2 * VKT_NAME_MAX];
    if (!y.id || !vkt_builder_adapts(b, layer)) return y;
    full_name(b, layer, name);
    for (uint32_t i = 0; i < l->n_targets; i++) l->layers[i] += is_target(l->targets[i], name);
    const vkt_shape xs = vkt_tensor_shape(g, x), ys = vkt_tensor_shape(g, y);
    const vkt_tensor down =
        make_part(b, layer, "lora_A", l->rank, xs.dim[xs.rank - 1], (vkt_init){ VKT_INIT_DEFAULT, 0, 0 });
    const vkt_tensor up =
        make_part(b, layer, "lora_B", ys.dim[ys.rank - 1], l->rank, (vkt_init){ VKT_INIT_CONSTANT, 0, 0 });
    if (b->training && l->dropout > 0) x = vkt_dropout(g, x, l->dropout);
    const uint32_t in = xs.dim[xs.rank - 1], rows = (uint32_t)(vkt_shape_elements(xs) / in);
    x = vkt_reshape(g, vkt_to_layout(g, x, VKT_ROWS), vkt_shape2(rows, in));
    vkt_tensor z = vkt_matmul(g, down, x, false, true);
    if (l->factor != 1) z = vkt_scale(g, z, l->factor, 0);
    z = vkt_reshape(g, vkt_matmul(g, z, vkt_transpose(g, up, 0, 1), true, false), ys);
    return vkt_add(g, y, vkt_to_layout(g, z, vkt_tensor_layout(g, y)));
}

vkt_result vkt_builder_check(const vkt_builder *b)
{
    VKT_WANT(NULL, b);
    VKT_TRY(vkt_graph_status(b->g));
    for (uint32_t i = 0; i < b->lora.n_targets; i++)
        if (b->lora.layers[i] == 0)
            return vkt_fail(&b->g->host, VKT_E_NOT_FOUND, "lora: no linear layer matches the target '%.*s'%s%s", SHOWN,
                            b->lora.targets[i], b->n_layers ? "; the last layer is " : "",
                            b->n_layers ? b->layers[b->n_layers - 1].name : "");
    return VKT_OK;
}
