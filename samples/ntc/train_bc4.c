/* ntc/train_bc4.c - latents of a training that become those of BC4 blocks: see train.h. */
#include <math.h>
#include <stdlib.h>

#include "graphics/vk.h"
#include "ntc/bc4.h"
#include "ntc/train.h"

/* Changes the latents of a grid to those of blocks. `blocks` and `units` have room for one feature. */
static void encode(const ntc_grid *g, float *latents, uint16_t *units, uint8_t *blocks)
{
    const size_t cells = (size_t)g->height * g->width;
    for (uint32_t f = 0; f < g->features; f++, latents += cells) {
        for (size_t i = 0; i < cells; i++)
            units[i] = (uint16_t)floorf(BC4_STEPS * fminf(fmaxf(latents[i], 0), 1) + 0.5f);
        bc4_encode(units, g->height, g->width, 0, blocks);
        bc4_decode(blocks, g->height, g->width, units);
        for (size_t i = 0; i < cells; i++) latents[i] = (float)units[i] / BC4_STEPS;
    }
}

static vkt_result encode_grid(ntc_trainer *t, uint32_t i)
{
    const ntc_grid *g = &t->set->grids[i];
    float *latents = malloc(ntc_latents(g) * sizeof *latents);
    uint16_t *units = malloc((size_t)g->height * g->width * sizeof *units);
    uint8_t *blocks = malloc(bc4_bytes(g->height, g->width));
    char name[24];
    uint32_t at;
    ntc_grid_name(i, name);
    vkt_result r = latents && units && blocks ? VKT_OK : VKT_E_NOMEM;
    if (r == VKT_OK && !vkt_store_find(t->store, name, &at)) r = VKT_E_NOT_FOUND;
    if (r == VKT_OK) r = vkt_store_read(t->store, at, VKT_PART_VALUE, latents);
    if (r == VKT_OK) {
        encode(g, latents, units, blocks);
        r = vkt_store_write(t->store, at, VKT_PART_VALUE, latents);
    }
    free(latents);
    free(units);
    free(blocks);
    return r;
}

vkt_result ntc_trainer_encode(ntc_trainer *t)
{
    for (uint32_t i = 0; i < t->set->n_grids; i++)
        if (!t->set->grids[i].bits) TRY(encode_grid(t, i));
    return VKT_OK;
}

vkt_result ntc_freeze_blocks(const ntc_set *set, vkt_graph *g)
{
    char name[24];
    for (uint32_t i = 0; i < set->n_grids; i++) {
        ntc_grid_name(i, name);
        if (!set->grids[i].bits) TRY(vkt_freeze(g, name));
    }
    return VKT_OK;
}
