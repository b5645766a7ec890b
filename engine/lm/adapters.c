/* lm/adapters.c - see adapters.h. */
#include "lm/adapters.h"

#include <math.h>
#include <stdio.h>

#include "ir/ir.h"

static const char end_a[] = ".lora_A.weight", end_b[] = ".lora_B.weight";
enum { END = sizeof end_a - 1, NAME_ROOM = 512 };

static bool ends_with(const char *name, size_t n, const char *end)
{
    return n > END && memcmp(name + n - END, end, END) == 0;
}

/* Finds B of the adapter whose A is parameter i. */
static vkt_result find_b(const vkt_host *h, const vkt_store *s, uint32_t i, vkt_adapter *out)
{
    char name[NAME_ROOM], shapes[2][80];
    const char *name_a = vkt_store_name(s, i);
    const size_t n = strlen(name_a) - END;
    const vkt_shape a = vkt_store_shape(s, i);
    *out = (vkt_adapter){ .name = name_a, .layer_bytes = n, .a = i };
    if (n + sizeof end_b > sizeof name) return vkt_fail(h, VKT_E_ARG, "lora: \"%.80s\" is too long a name", name_a);
    snprintf(name, sizeof name, "%.*s%s", (int)n, name_a, end_b);
    if (!vkt_store_find(s, name, &out->b))
        return vkt_fail(h, VKT_E_NOT_FOUND, "lora: the store has \"%s\", but not \"%s\"", name_a, name);
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
        const char *name = vkt_store_name(s, i);
        if (ends_with(name, strlen(name), end_a)) r = find_b(h, s, i, &all[(*n)++]);
    }
    if (r == VKT_OK && *n == 0)
        r = vkt_fail(h, VKT_E_NOT_FOUND, "lora: the store has no parameter named \"<layer>%s\"", end_a);
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
    *out = *lora;
    if (!out->rank) out->rank = 8;
    out->alpha = vkt_or_f32(out->alpha, (float)out->rank);
    if (!isfinite(out->alpha) || out->alpha == 0)
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
