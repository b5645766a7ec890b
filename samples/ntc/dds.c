/* ntc/dds.c - see dds.h. Formats: Microsoft, "DDS file layout" and "Texture block compression in Direct3D 11" (BC4). */
#include "ntc/dds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "graphics/vk.h"

enum { HEADER = 4 + 124 + 20, BLOCK = 8, BC4_UNORM = 80 /* DXGI_FORMAT */ };

static void put(uint8_t *to, size_t word, uint32_t x)
{
    for (int i = 0; i < 4; i++) to[4 * word + (size_t)i] = (uint8_t)(x >> 8 * i);
}

static void write_header(uint8_t *to, const ntc_grid *g, uint32_t layer_bytes)
{
    memset(to, 0, HEADER);
    memcpy(to, "DDS ", 4);
    put(to, 1, 124);
    put(to, 2, 0x81007); /* CAPS, HEIGHT, WIDTH, PIXELFORMAT, LINEARSIZE */
    put(to, 3, g->height);
    put(to, 4, g->width);
    put(to, 5, layer_bytes);
    put(to, 19, 32);  /* size of the pixel format */
    put(to, 20, 0x4); /* FOURCC */
    memcpy(to + 84, "DX10", 4);
    put(to, 27, 0x1000); /* TEXTURE */
    put(to, 32, BC4_UNORM);
    put(to, 33, 3); /* TEXTURE2D */
    put(to, 35, g->features);
}

/* Returns the value of a code in [0,1]. Code 0 is the upper bound, 1 the lower one, 2 to 7 are between them. */
static double value_of(uint8_t upper, uint8_t lower, uint32_t code)
{
    const double part = code < 2 ? code : (code - 1) / 7.0;
    return (upper + part * ((double)lower - upper)) / 255;
}

/* Encodes 4 x 4 levels as a block. Its bounds are the largest and the smallest of these levels. Changes each level to
 * the one that the block decodes to. */
static void encode_block(uint16_t *levels[16], uint32_t steps, uint8_t out[BLOCK])
{
    uint32_t least = steps, most = 0;
    uint64_t codes = 0;
    for (int i = 0; i < 16; i++) {
        if (*levels[i] < least) least = *levels[i];
        if (*levels[i] > most) most = *levels[i];
    }
    const uint8_t upper = (uint8_t)((255 * most + steps / 2) / steps),
                  lower = (uint8_t)((255 * least + steps / 2) / steps);
    uint16_t rounded[16];
    for (int i = 0; i < 16; i++) {
        uint32_t best = 0;
        double error = 2;
        for (uint32_t c = 0; c < 8 && upper > lower; c++) {
            const double d = value_of(upper, lower, c) - (double)*levels[i] / steps, e = d < 0 ? -d : d;
            if (e < error) {
                error = e;
                best = c;
            }
        }
        codes |= (uint64_t)best << 3 * i;
        rounded[i] = (uint16_t)(steps * value_of(upper, lower, best) + 0.5);
    }
    for (int i = 0; i < 16; i++)
        *levels[i] = rounded[i]; /* past the edge of the grid, several i have the same pointer and the same number */
    out[0] = upper;
    out[1] = lower;
    for (int i = 0; i < 6; i++) out[2 + i] = (uint8_t)(codes >> 8 * i);
}

static void encode_layer(ntc_grid *g, uint32_t feature, uint8_t *out)
{
    uint16_t *plane = g->levels + (size_t)feature * g->height * g->width;
    for (uint32_t y = 0; y < g->height; y += 4)
        for (uint32_t x = 0; x < g->width; x += 4, out += BLOCK) {
            uint16_t *cells[16];
            for (uint32_t i = 0; i < 16; i++) {
                const uint32_t v = y + i / 4, u = x + i % 4;
                cells[i] =
                    plane + (size_t)(v < g->height ? v : g->height - 1) * g->width + (u < g->width ? u : g->width - 1);
            }
            encode_block(cells, (1u << g->bits) - 1, out);
        }
}

vkt_result dds_write(ntc_set *s, const char *folder)
{
    static const vkt_host host = { .log = message_log };
    for (uint32_t i = 0; i < s->n_grids; i++) {
        ntc_grid *g = &s->grids[i];
        const size_t layer = (size_t)((g->height + 3) / 4) * ((g->width + 3) / 4) * BLOCK,
                     n = HEADER + layer * g->features;
        uint8_t *bytes = malloc(n);
        char path[4096];
        if (!bytes) return VKT_E_NOMEM;
        write_header(bytes, g, (uint32_t)layer);
        for (uint32_t f = 0; f < g->features; f++) encode_layer(g, f, bytes + HEADER + f * layer);
        snprintf(path, sizeof path, "%s/grid%u.dds", folder, i);
        const vkt_result r = vkt_write_file(&host, path, bytes, n);
        free(bytes);
        TRY(r);
    }
    return VKT_OK;
}
