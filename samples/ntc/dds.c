/* ntc/dds.c - see dds.h. Formats: Microsoft, "DDS file layout" and "Texture block compression in Direct3D 11" (BC4). */
#include "ntc/dds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "graphics/vk.h"
#include "ntc/bc4.h"

enum { HEADER = 4 + 124 + 20, BC4_UNORM = 80 /* DXGI_FORMAT */ };

static void put(uint8_t *to, size_t word, uint32_t x)
{
    for (int i = 0; i < 4; i++) to[4 * word + (size_t)i] = (uint8_t)(x >> 8 * i);
}

static void write_header(uint8_t *to, const ntc_grid *g, uint32_t layer_bytes)
{
    memset(to, 0, HEADER);
    memcpy(to, "DDS ", 4);
    put(to, 1, 124);
    put(to, 2, 0x81007); /* the flags CAPS, HEIGHT, WIDTH, PIXELFORMAT and LINEARSIZE */
    put(to, 3, g->height);
    put(to, 4, g->width);
    put(to, 5, layer_bytes);
    put(to, 19, 32);  /* bytes of DDS_PIXELFORMAT */
    put(to, 20, 0x4); /* FOURCC */
    memcpy(to + 84, "DX10", 4);
    put(to, 27, 0x1000); /* TEXTURE */
    put(to, 32, BC4_UNORM);
    put(to, 33, 3); /* TEXTURE2D */
    put(to, 35, g->features);
}

/* Encodes the latents of a feature, and replaces them by the decoded blocks. */
static void encode_layer(ntc_grid *g, uint32_t feature, uint16_t *units, uint8_t *out)
{
    const size_t cells = (size_t)g->height * g->width;
    const uint32_t steps = ntc_steps(g);
    uint16_t *plane = g->levels + feature * cells;
    for (size_t i = 0; i < cells; i++) units[i] = (uint16_t)bc4_rescale(plane[i], steps, BC4_STEPS);
    bc4_encode(units, g->height, g->width, g->bits ? steps : 0, out);
    bc4_decode(out, g->height, g->width, units);
    for (size_t i = 0; i < cells; i++) plane[i] = (uint16_t)bc4_rescale(units[i], BC4_STEPS, steps);
}

vkt_result dds_write(ntc_set *s, const char *folder)
{
    static const vkt_host host = { .log = message_log };
    for (uint32_t i = 0; i < s->n_grids; i++) {
        ntc_grid *g = &s->grids[i];
        const size_t layer = bc4_bytes(g->height, g->width), n = HEADER + layer * g->features;
        uint8_t *bytes = malloc(n);
        uint16_t *units = malloc((size_t)g->height * g->width * sizeof *units);
        char path[4096];
        snprintf(path, sizeof path, "%s/grid%u.dds", folder, i);
        if (bytes && units) {
            write_header(bytes, g, (uint32_t)layer);
            for (uint32_t f = 0; f < g->features; f++) encode_layer(g, f, units, bytes + HEADER + f * layer);
        }
        const vkt_result r = bytes && units ? vkt_write_file(&host, path, bytes, n) : VKT_E_NOMEM;
        free(bytes);
        free(units);
        TRY(r);
    }
    return VKT_OK;
}
