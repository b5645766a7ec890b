/* nn/builder.c - scopes, parameters, and the summary table. */
#include "nn/builder.h"

#include <stdio.h>

vkt_result vkt_builder_create(vkt_graph *g, bool training, vkt_builder **out)
{
    VKT_WANT(NULL, out);
    *out = NULL;
    VKT_WANT(NULL, g);
    *out = vkt_alloc(&g->host, sizeof **out);
    if (!*out) return vkt_fail_nomem(&g->host, "a builder", sizeof **out);
    (*out)->g = g;
    (*out)->training = training;
    return VKT_OK;
}

void vkt_lora_free(const vkt_host *h, vkt_lora *lora)
{
    for (uint32_t i = 0; lora->targets && i < lora->n_targets; i++) vkt_free(h, lora->targets[i]);
    vkt_free(h, lora->targets);
    vkt_free(h, lora->layers);
    *lora = (vkt_lora){ 0 };
}

void vkt_builder_destroy(vkt_builder **pb)
{
    vkt_builder *b = pb ? *pb : NULL;
    if (!b) return;
    vkt_lora_free(&b->g->host, &b->lora);
    vkt_free(&b->g->host, b->layers);
    vkt_free(&b->g->host, b->inits);
    vkt_free(&b->g->host, b);
    *pb = NULL;
}

vkt_graph *vkt_builder_graph(vkt_builder *b)
{
    if (!b) return NULL;
    return b->g;
}

bool vkt_builder_training(const vkt_builder *b)
{
    if (!b) return false;
    return b->training;
}

void vkt_builder_set_preset(vkt_builder *b, vkt_preset preset)
{
    if (!b) return;
    b->preset = preset;
}

vkt_init vkt_builder_init(const vkt_builder *b, vkt_init given, vkt_init keras)
{
    return b->preset != VKT_PRESET_TORCH && given.kind == VKT_INIT_DEFAULT ? keras : given;
}

bool vkt_builder_is_named(vkt_builder *b, const char *name)
{
    if (name && *name) return vkt_graph_status(b->g) == VKT_OK;
    vkt_graph_error(b->g, vkt_fail(&b->g->host, VKT_E_ARG, "%s: want a name for what comes here, got %s",
                                   *b->scope ? b->scope : "builder", name ? "\"\"" : "NULL"));
    return false;
}

void vkt_nn_push(vkt_builder *b, const char *scope)
{
    if (!b || !vkt_builder_is_named(b, scope)) return;
    const size_t n = strlen(b->scope);
    if (n + strlen(scope) + 2 > sizeof b->scope) {
        vkt_graph_error(b->g, vkt_fail(&b->g->host, VKT_E_ARG, "scope '%s%s' is too long", b->scope, scope));
        return;
    }
    snprintf(b->scope + n, sizeof b->scope - n, "%s.", scope);
}

void vkt_nn_pop(vkt_builder *b)
{
    if (!b) return;
    size_t n = strlen(b->scope);
    if (n) n--; /* the dot at the end */
    while (n && b->scope[n - 1] != '.') n--;
    b->scope[n] = 0;
}

/* Stores the initial distribution of `t`, a new parameter or state. */
static vkt_tensor note_init(vkt_builder *b, vkt_tensor t, vkt_init init, uint32_t fan_in, uint32_t fan_out)
{
    if (!t.id) return t;
    const vkt_result r = vkt_grow(&b->g->host, &b->inits, b->n_inits, &b->cap_inits, sizeof *b->inits);
    if (r != VKT_OK) {
        vkt_graph_error(b->g, r);
        return (vkt_tensor){ 0 };
    }
    b->inits[b->n_inits++] = (vkt_init_row){ t, init, fan_in, fan_out, VKT_NO_PADDING };
    return t;
}

vkt_tensor vkt_nn_param(vkt_builder *b, const char *name, vkt_shape shape, vkt_init init, uint32_t fan_in,
                        uint32_t fan_out)
{
    if (!b || !vkt_builder_is_named(b, name)) return (vkt_tensor){ 0 };
    char full[2 * VKT_NAME_MAX];
    snprintf(full, sizeof full, "%s%s", b->scope, name);
    return note_init(b, vkt_param(b->g, full, shape), init, fan_in, fan_out);
}

vkt_tensor vkt_nn_state(vkt_builder *b, const char *name, vkt_shape shape, vkt_init init)
{
    if (!b || !vkt_builder_is_named(b, name)) return (vkt_tensor){ 0 };
    char full[2 * VKT_NAME_MAX];
    snprintf(full, sizeof full, "%s%s", b->scope, name);
    return note_init(b, vkt_state(b->g, full, shape), init, 1, 1);
}

uint64_t vkt_nn_parameters(const vkt_builder *b)
{
    if (!b) return 0;
    uint64_t n = 0;
    for (size_t i = 0; i < b->n_inits; i++) {
        const vkt_value *v = vkt_value_of(b->g, b->inits[i].param);
        n += v->state ? 0 : vkt_shape_elements(v->shape);
    }
    return n;
}

/* Returns how many numbers all frozen parameters (vkt_freeze) of the builder have together. */
static uint64_t frozen_parameters(const vkt_builder *b)
{
    uint64_t n = 0;
    for (size_t i = 0; i < b->n_inits; i++) {
        const vkt_value *v = vkt_value_of(b->g, b->inits[i].param);
        n += v->frozen && !v->state ? vkt_shape_elements(v->shape) : 0;
    }
    return n;
}

void vkt_builder_count_array(vkt_builder *b, uint64_t numbers, uint64_t bytes)
{
    b->array_numbers += numbers;
    b->array_bytes += bytes;
}

vkt_tensor vkt_builder_note(vkt_builder *b, const char *name, const char *kind, vkt_tensor out)
{
    if (!out.id) return out;
    const vkt_result r = vkt_grow(&b->g->host, &b->layers, b->n_layers, &b->cap_layers, sizeof *b->layers);
    if (r != VKT_OK) {
        vkt_graph_error(b->g, r);
        return (vkt_tensor){ 0 };
    }
    vkt_layer_row *row = &b->layers[b->n_layers++];
    const uint64_t all = vkt_nn_parameters(b);
    *row = (vkt_layer_row){ .out = out,
                            .parameters = all - b->counted + b->array_numbers - b->counted_numbers,
                            .bytes = 4 * (all - b->counted) + b->array_bytes - b->counted_bytes };
    b->counted = all;
    b->counted_numbers = b->array_numbers;
    b->counted_bytes = b->array_bytes;
    if (name)
        snprintf(row->name, sizeof row->name, "%s%s (%s)", b->scope, name, kind);
    else
        snprintf(row->name, sizeof row->name, "%s", kind);
    return out;
}

/* Writes a number with commas, for instance "53,994". Returns buf. */
static const char *grouped(uint64_t n, char buf[32])
{
    char digits[24];
    const int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    int k = 0;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0) buf[k++] = ',';
        buf[k++] = digits[i];
    }
    buf[k] = 0;
    return buf;
}

vkt_result vkt_nn_summary(const vkt_builder *b, const char *title, char **text)
{
    VKT_WANT(NULL, text);
    *text = NULL;
    VKT_WANT(NULL, b);
    VKT_WANT(&b->g->host, title);
    vkt_text t = { .h = &b->g->host };
    char shape[80], n[32], mem[24], line[2 * VKT_NAME_MAX + 80];
    uint64_t activations = 0;
    int names = 32; /* width of the column of names */
    for (size_t i = 0; i < b->n_layers; i++) names = VKT_MAX(names, (int)strlen(b->layers[i].name));
    memset(line, '-', sizeof line);
    snprintf(line + names + 44, 2, "\n");
    vkt_text_add(&t, "%s\n%s%-*s %-20s %11s %10s\n%s", title, line, names, "layer", "output shape", "parameters",
                 "memory", line);
    for (size_t i = 0; i < b->n_layers; i++) {
        const vkt_layer_row *row = &b->layers[i];
        const vkt_value *v = &b->g->values[row->out.id];
        const uint64_t own = v->alias ? 0 : v->bytes;
        activations += own;
        vkt_text_add(&t, "%-*s %-20s %11s %10s\n", names, row->name, vkt_shape_text(v->shape, shape),
                     grouped(row->parameters, n), vkt_bytes_text(own + row->bytes, mem));
    }
    const uint64_t own = vkt_nn_parameters(b), all = own + b->array_numbers;
    const uint64_t frozen = frozen_parameters(b) + b->array_numbers;
    vkt_text_add(&t, "%sparameters: %s (%s", line, grouped(all, n), vkt_bytes_text(4 * own + b->array_bytes, mem));
    vkt_text_add(&t, ")   outputs: %s\n", vkt_bytes_text(activations, mem));
    vkt_text_add(&t, "trainable: %s", grouped(all - frozen, n));
    vkt_text_add(&t, "   frozen: %s\n", grouped(frozen, n));
    return vkt_text_detach(&t, text);
}
