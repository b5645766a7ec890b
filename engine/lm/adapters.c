/* lm/adapters.c - see adapters.h. */
#include "lm/adapters.h"

#include <math.h>

#include "nn/builder.h"
#include "train/lora.h"

/* Fills in *out for the adapter whose matrix A is parameter i: finds the matrix B, and checks both shapes. n: bytes of
 * the layer's name. */
static vkt_result find_b(const vkt_host *h, const vkt_store *s, uint32_t i, size_t n, vkt_adapter *out)
{
    char shapes[2][80];
    const char *name_a = vkt_store_name(s, i);
    const vkt_shape a = vkt_store_shape(s, i);
    *out = (vkt_adapter){ .name = name_a, .layer_bytes = n, .a = i };
    if (!vkt_lora_find(s, name_a, n, VKT_LORA_B, &out->b))
        return vkt_fail(h, VKT_E_NOT_FOUND, "lora: the store has \"%s\", but not \"%.*s%s\"", name_a, (int)n, name_a,
                        VKT_LORA_B);
    const vkt_shape b = vkt_store_shape(s, out->b);
    if (a.rank != 2 || b.rank != 2 || a.dim[0] != b.dim[1])
        return vkt_fail(h, VKT_E_SHAPE, "lora: want \"%s\" (rank,in) and B (out,rank), got %s and %s", name_a,
                        vkt_shape_text(a, shapes[0]), vkt_shape_text(b, shapes[1]));
    out->rank = a.dim[0];
    out->in = a.dim[1];
    out->out = b.dim[0];
    return VKT_OK;
}

vkt_result vkt_adapters_of(const vkt_host *h, const vkt_store *s, vkt_adapter **list, uint32_t *n)
{
    *list = NULL;
    *n = 0;
    vkt_result r = VKT_OK;
    vkt_adapter *all = vkt_alloc_array(h, vkt_store_count(s), sizeof *all);
    if (!all) return vkt_fail_nomem(h, "a list of adapters", vkt_store_count(s) * sizeof *all);
    for (uint32_t i = 0; r == VKT_OK && i < vkt_store_count(s); i++) {
        const size_t bytes = vkt_lora_layer_bytes(s, i);
        if (bytes) r = find_b(h, s, i, bytes, &all[(*n)++]);
    }
    if (r == VKT_OK && *n == 0)
        r = vkt_fail(h, VKT_E_NOT_FOUND, "lora: the store has no parameter named \"<layer>%s\"", VKT_LORA_A);
    if (r != VKT_OK) {
        vkt_free(h, all);
        *n = 0;
        return r;
    }
    *list = all;
    return VKT_OK;
}

vkt_result vkt_adapters_check(const vkt_host *h, const vkt_adapter *list, uint32_t n, const vkt_lora_params *lora,
                              vkt_lora_params *out)
{
    float factor;
    *out = *lora;
    VKT_TRY(vkt_lora_resolve(h, lora, &out->rank, &factor));
    out->alpha = vkt_or_f32(lora->alpha, (float)out->rank);
    out->dropout = vkt_or_f32(lora->dropout, 0);
    if (factor == 0)
        return vkt_fail(h, VKT_E_ARG, "lora: alpha: want a number other than 0, got %g", (double)out->alpha);
    for (uint32_t i = 0; i < n; i++)
        if (list[i].rank != out->rank)
            return vkt_fail(h, VKT_E_ARG, "lora: rank: want that of \"%s\", %u, got %u", list[i].name, list[i].rank,
                            out->rank);
    return VKT_OK;
}

vkt_result vkt_adapter_read(const vkt_host *h, vkt_store *s, vkt_store_part part, const vkt_adapter *a, float *values)
{
    VKT_TRY(vkt_store_read(s, a->a, part, values));
    VKT_TRY(vkt_store_read(s, a->b, part, values + (uint64_t)a->rank * a->in));
    for (uint64_t i = 0; i < vkt_adapter_elements(a); i++)
        if (!isfinite(values[i]))
            return vkt_fail(h, VKT_E_DIVERGED, "lora: the adapter \"%.*s\" has a number that is not finite",
                            (int)a->layer_bytes, a->name);
    return VKT_OK;
}

vkt_result vkt_adapters_write(vkt_store *s, const vkt_adapter *list, uint32_t n, const float *values)
{
    for (uint32_t i = 0; i < n; values += vkt_adapter_elements(&list[i]), i++) {
        VKT_TRY(vkt_store_write(s, list[i].a, VKT_PART_VALUE, values));
        VKT_TRY(vkt_store_write(s, list[i].b, VKT_PART_VALUE, values + (uint64_t)list[i].rank * list[i].in));
    }
    return VKT_OK;
}

/* ---- options of files ---- */

vkt_result vkt_adapters_match(const vkt_host *h, const char *path, const vkt_lora_params *built,
                              const vkt_lora_params *file)
{
    if (file->rank != built->rank)
        return vkt_fail(h, VKT_E_STATE, "%s: the network was built with rank %u, the adapter has %u", path, built->rank,
                        file->rank);
    if (fabsf(file->alpha - built->alpha) > 1e-6f * fabsf(file->alpha))
        return vkt_fail(h, VKT_E_STATE, "%s: the network was built with alpha %g, the adapter has %g", path,
                        (double)built->alpha, (double)file->alpha);
    return VKT_OK;
}

vkt_result vkt_peft_config_create(const vkt_host *h, vkt_peft_config **out)
{
    *out = vkt_alloc(h, sizeof **out);
    if (!*out) return vkt_fail_nomem(h, "a configuration", sizeof **out);
    (*out)->host = *h;
    return VKT_OK;
}

vkt_result vkt_peft_config_reserve(vkt_peft_config *c, size_t n)
{
    c->targets = vkt_alloc_array(&c->host, n, sizeof *c->targets);
    if (!c->targets) return vkt_fail_nomem(&c->host, "names of layers", n * sizeof *c->targets);
    c->lora.targets = (const char *const *)c->targets;
    return VKT_OK;
}

vkt_result vkt_peft_config_add(vkt_peft_config *c, const char *name)
{
    char *copy = vkt_strdup(&c->host, name);
    if (!copy) return vkt_fail_nomem(&c->host, "the name of a layer", strlen(name));
    c->targets[c->lora.n_targets++] = copy;
    return VKT_OK;
}

void vkt_peft_config_destroy(vkt_peft_config **pc)
{
    vkt_peft_config *c = pc ? *pc : NULL;
    if (!c) return;
    const vkt_host h = c->host;
    for (uint32_t i = 0; i < c->lora.n_targets; i++) vkt_free(&h, c->targets[i]);
    vkt_free(&h, c->targets);
    vkt_free(&h, c->base);
    vkt_free(&h, c);
    *pc = NULL;
}

const vkt_lora_params *vkt_peft_config_lora(const vkt_peft_config *c)
{
    return c ? &c->lora : NULL;
}

const char *vkt_peft_config_base(const vkt_peft_config *c)
{
    return c ? c->base : NULL;
}
