/* train/lora.c - vkt_lora_merge adds the adapters of a store to the store's weights, and vkt_lora_unmerge subtracts the
 * adapters. The file is not in nn/, because the store is on a higher layer of the engine. */
#include <stdio.h>

#include "nn/builder.h"
#include "train/lora.h"

/* Indices of three parameters of the store: the weight, A (down) and B (up) of a layer. */
typedef struct adapted {
    uint32_t weight, down, up;
} adapted;

size_t vkt_lora_layer_bytes(const vkt_store *s, uint32_t i)
{
    const char *name = vkt_store_name(s, i);
    const size_t n = strlen(name), end = sizeof VKT_LORA_A - 1;
    return n > end && strcmp(name + n - end, VKT_LORA_A) == 0 ? n - end : 0;
}

bool vkt_lora_find(const vkt_store *s, const char *layer, size_t n, const char *end, uint32_t *out)
{
    char name[2 * VKT_NAME_MAX];
    snprintf(name, sizeof name, "%.*s%s", (int)n, layer, end);
    return vkt_store_find(s, name, out);
}

/* Finds the layer whose matrix A is parameter i. Returns false if parameter i is no matrix A, or if the store lacks the
 * weight or the matrix B of this layer. */
static bool find_layer(const vkt_store *s, uint32_t i, adapted *out)
{
    const char *name = vkt_store_name(s, i);
    const size_t n = vkt_lora_layer_bytes(s, i);
    out->down = i;
    return n > 0 && vkt_lora_find(s, name, n, ".weight", &out->weight) &&
           vkt_lora_find(s, name, n, VKT_LORA_B, &out->up);
}

static vkt_result check_layer(const vkt_host *h, const vkt_store *s, const adapted *l, uint32_t rank)
{
    const vkt_shape w = vkt_store_shape(s, l->weight), down = vkt_store_shape(s, l->down),
                    up = vkt_store_shape(s, l->up);
    if (w.rank == 2 && vkt_shape_equal(down, vkt_shape2(rank, w.dim[1])) &&
        vkt_shape_equal(up, vkt_shape2(w.dim[0], rank)))
        return VKT_OK;
    char wt[80], dt[80], ut[80];
    return vkt_fail(h, VKT_E_SHAPE, "lora: want a weight with an adapter of rank %u, got %s of %s, A %s, B %s", rank,
                    vkt_store_name(s, l->weight), vkt_shape_text(w, wt), vkt_shape_text(down, dt),
                    vkt_shape_text(up, ut));
}

/* Adds factor * B * A to the weight of a layer. `room` has space for the weight, A and B. */
static vkt_result add(vkt_store *s, const adapted *l, double factor, float *room)
{
    const vkt_shape shape = vkt_store_shape(s, l->weight);
    const uint32_t rows = shape.dim[0], columns = shape.dim[1], rank = vkt_store_shape(s, l->down).dim[0];
    float *w = room, *down = w + (uint64_t)rows * columns, *up = down + (uint64_t)rank * columns;
    VKT_TRY(vkt_store_read(s, l->weight, VKT_PART_VALUE, w));
    VKT_TRY(vkt_store_read(s, l->down, VKT_PART_VALUE, down));
    VKT_TRY(vkt_store_read(s, l->up, VKT_PART_VALUE, up));
    for (uint32_t o = 0; o < rows; o++)
        for (uint32_t i = 0; i < columns; i++) {
            double sum = 0;
            for (uint32_t k = 0; k < rank; k++)
                sum += (double)up[(uint64_t)o * rank + k] * (double)down[(uint64_t)k * columns + i];
            w[(uint64_t)o * columns + i] = (float)((double)w[(uint64_t)o * columns + i] + factor * sum);
        }
    return vkt_store_write(s, l->weight, VKT_PART_VALUE, w);
}

/* Adds sign * factor * B * A to the weight of each layer that has an adapter. Checks all layers before it changes the
 * first of them. */
static vkt_result add_all(const vkt_host *h, vkt_store *s, const vkt_lora_params *p, int sign)
{
    uint32_t rank;
    uint64_t most = 0;
    float factor;
    adapted l;
    VKT_TRY(vkt_lora_resolve(h, p, &rank, &factor));
    for (uint32_t i = 0; i < vkt_store_count(s); i++) {
        if (!find_layer(s, i, &l)) continue;
        VKT_TRY(check_layer(h, s, &l, rank));
        const vkt_shape w = vkt_store_shape(s, l.weight);
        most = VKT_MAX(most, vkt_shape_elements(w) + (uint64_t)rank * (w.dim[0] + w.dim[1]));
    }
    if (most == 0) return vkt_fail(h, VKT_E_NOT_FOUND, "lora: the store has no weight with an adapter");
    float *room = vkt_alloc_array(h, most, sizeof *room);
    if (!room) return vkt_fail_nomem(h, "a weight and its adapter", most * sizeof *room);
    vkt_result r = VKT_OK;
    for (uint32_t i = 0; i < vkt_store_count(s) && r == VKT_OK; i++)
        if (find_layer(s, i, &l)) r = add(s, &l, sign * (double)factor, room);
    vkt_free(h, room);
    return r;
}

vkt_result vkt_lora_merge(vkt_store *s, const vkt_lora_params *p)
{
    VKT_WANT(NULL, s);
    const vkt_host h = vkt_ctx_host(s->ctx);
    VKT_WANT(&h, p);
    return add_all(&h, s, p, 1);
}

vkt_result vkt_lora_unmerge(vkt_store *s, const vkt_lora_params *p)
{
    VKT_WANT(NULL, s);
    const vkt_host h = vkt_ctx_host(s->ctx);
    VKT_WANT(&h, p);
    return add_all(&h, s, p, -1);
}
