/* ntc/train_bc4.c - see train_bc4.h. */
#include "ntc/train_bc4.h"

#include <math.h>
#include <stdlib.h>

#include "graphics/vk.h"
#include "ntc/bc4.h"

/* Encodes the latents of a grid, and replaces them by the decoded blocks. `blocks` and `units` are memory for one
 * feature. */
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

vkt_result ntc_encode_latents(vkt_store *store, const char *name, const ntc_grid *g)
{
    float *latents = malloc(ntc_latents(g) * sizeof *latents);
    uint16_t *units = malloc((size_t)g->height * g->width * sizeof *units);
    uint8_t *blocks = malloc(bc4_bytes(g->height, g->width));
    uint32_t at;
    vkt_result r = latents && units && blocks ? VKT_OK : VKT_E_NOMEM;
    if (r == VKT_OK && !vkt_store_find(store, name, &at)) r = VKT_E_NOT_FOUND;
    if (r == VKT_OK) r = vkt_store_read(store, at, VKT_PART_VALUE, latents);
    if (r == VKT_OK) {
        encode(g, latents, units, blocks);
        r = vkt_store_write(store, at, VKT_PART_VALUE, latents);
    }
    free(latents);
    free(units);
    free(blocks);
    return r;
}
