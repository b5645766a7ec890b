/* train/snapshot.c - copies and restores the state of a trainer on the device, for steps that must change nothing. */
#include "train/trainer.h"

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
