/* train/snapshot.c - copies data of a trainer from the device and back: one part (vkt_store_part) of all parameters, or
 * a vkt_snapshot. */
#include <math.h>

#include "train/trainer.h"

vkt_result vkt_trainer_get(vkt_trainer *t, vkt_store_part part, float *values)
{
    for (uint32_t i = 0; i < vkt_store_count(t->store); i++) {
        VKT_TRY(vkt_store_read(t->store, i, part, values));
        values += vkt_shape_elements(vkt_store_shape(t->store, i));
    }
    return VKT_OK;
}

vkt_result vkt_trainer_put(vkt_trainer *t, vkt_store_part part, const float *values)
{
    for (uint32_t i = 0; i < vkt_store_count(t->store); i++) {
        VKT_TRY(vkt_store_write(t->store, i, part, values));
        values += vkt_shape_elements(vkt_store_shape(t->store, i));
    }
    return VKT_OK;
}

bool vkt_trainer_is_finite(const vkt_trainer *t, const float *values)
{
    for (size_t i = 0; i < t->g->n_params; i++) {
        const vkt_value *v = &t->g->values[t->g->params[i]];
        const uint64_t n = vkt_shape_elements(v->shape);
        for (uint64_t k = 0; !v->frozen && k < n; k++)
            if (!isfinite(values[k])) return false;
        values += n;
    }
    return true;
}

vkt_result vkt_trainer_snapshot(vkt_trainer *t, vkt_snapshot *out)
{
    const uint64_t n = vkt_store_elements(t->store);
    *out = (vkt_snapshot){ .arenas = { NULL } };
    VKT_TRY(vkt_store_get_loss_scale(t->store, &out->scale));
    VKT_TRY(vkt_store_get_accumulation(t->store, &out->accumulation));
    for (int i = 0; i < VKT_ARENAS; i++) {
        if (!vkt_store_has(t->store, (vkt_store_part)i)) continue;
        out->arenas[i] = vkt_alloc_array(&t->host, n, sizeof(float));
        if (!out->arenas[i]) return vkt_fail_nomem(&t->host, "a copy of the weights", n * 4);
        VKT_TRY(vkt_trainer_get(t, (vkt_store_part)i, out->arenas[i]));
    }
    return VKT_OK;
}

vkt_result vkt_trainer_restore(vkt_trainer *t, const vkt_snapshot *snapshot)
{
    for (int i = 0; i < VKT_ARENAS; i++)
        if (snapshot->arenas[i]) VKT_TRY(vkt_trainer_put(t, (vkt_store_part)i, snapshot->arenas[i]));
    VKT_TRY(vkt_store_set_loss_scale(t->store, &snapshot->scale));
    VKT_TRY(vkt_store_set_clock(t->store, t->at.t, t->params.seed));
    return vkt_store_set_accumulation(t->store, &snapshot->accumulation);
}

void vkt_snapshot_free(const vkt_host *h, vkt_snapshot *snapshot)
{
    for (int i = 0; i < VKT_ARENAS; i++) vkt_free(h, snapshot->arenas[i]);
}
