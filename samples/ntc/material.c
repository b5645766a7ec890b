/* ntc/material.c - see material.h. */
#include "ntc/material.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "graphics/rgba_image.h"
#include "graphics/vk.h"

enum { MOST_PIXELS = 1 << 26 };

static bool is_gray(const rgba_image *p)
{
    for (size_t i = 0; i < (size_t)p->width * p->height; i++)
        if (p->rgba[4 * i] != p->rgba[4 * i + 1] || p->rgba[4 * i] != p->rgba[4 * i + 2]) return false;
    return true;
}

/* Copies the file name of a path, without folder and extension. At most NTC_NAME - 1 bytes of the name are copied. */
static void name_of(const char *path, char name[NTC_NAME])
{
    const char *slash = strrchr(path, '/'), *from = slash ? slash + 1 : path, *dot = strrchr(from, '.');
    const size_t n = dot && dot > from ? (size_t)(dot - from) : strlen(from), most = NTC_NAME - 1;
    memset(name, 0, NTC_NAME);
    memcpy(name, from, n < most ? n : most);
}

static vkt_result take(const rgba_image *images, uint32_t n, ntc_set *s, uint8_t **texels)
{
    const size_t pixels = (size_t)s->width * s->height;
    uint8_t *to = *texels = malloc(pixels * s->channels);
    if (!to) return VKT_E_NOMEM;
    for (size_t p = 0; p < pixels; p++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t c = 0; c < s->textures[i].channels; c++) *to++ = images[i].rgba[4 * p + c];
    return VKT_OK;
}

vkt_result material_read(const char *const *paths, uint32_t n, ntc_set *s, uint8_t **texels)
{
    rgba_image images[NTC_MAX_TEXTURES] = { { 0 } };
    vkt_result r = VKT_OK;
    *texels = NULL;
    if (n < 1 || n > NTC_MAX_TEXTURES) {
        complain("want 1 to %d images, got %u", NTC_MAX_TEXTURES, n);
        return VKT_E_ARG;
    }
    for (uint32_t i = 0; i < n && r == VKT_OK; i++) {
        r = rgba_image_read(paths[i], 0, MOST_PIXELS, &images[i]);
        if (r != VKT_OK) break;
        if (i && (images[i].width != images[0].width || images[i].height != images[0].height)) {
            complain("%s: want %u x %u pixels as in %s, got %u x %u", paths[i], images[0].width, images[0].height,
                     paths[0], images[i].width, images[i].height);
            r = VKT_E_ARG;
        }
        name_of(paths[i], s->textures[i].name);
        for (uint32_t k = 0; k < i; k++)
            if (r == VKT_OK && strcmp(s->textures[k].name, s->textures[i].name) == 0) {
                complain("two images have the name %s", s->textures[i].name);
                r = VKT_E_ARG;
            }
        s->textures[i].channels = is_gray(&images[i]) ? 1 : 3;
        s->channels += s->textures[i].channels;
    }
    s->n_textures = n;
    s->width = images[0].width;
    s->height = images[0].height;
    if (r == VKT_OK) r = take(images, n, s, texels);
    for (uint32_t i = 0; i < n; i++) rgba_image_free(&images[i]);
    return r;
}

vkt_result material_write(const ntc_set *s, const uint8_t *texels, const char *folder)
{
    const size_t pixels = (size_t)s->width * s->height;
    rgba_image image = { s->width, s->height, malloc(4 * pixels) };
    vkt_result r = image.rgba ? VKT_OK : VKT_E_NOMEM;
    uint32_t first = 0;
    for (uint32_t i = 0; i < s->n_textures && r == VKT_OK; i++) {
        const uint32_t channels = s->textures[i].channels;
        char path[4096];
        for (size_t p = 0; p < pixels; p++) {
            for (uint32_t c = 0; c < 3; c++)
                image.rgba[4 * p + c] = texels[p * s->channels + first + (channels == 3 ? c : 0)];
            image.rgba[4 * p + 3] = 255;
        }
        if (strchr(s->textures[i].name, '/') || !s->textures[i].name[0] || s->textures[i].name[0] == '.') {
            complain("'%s' cannot be the name of a file in a folder", s->textures[i].name);
            r = VKT_E_FORMAT;
            break;
        }
        snprintf(path, sizeof path, "%s/%s.png", folder, s->textures[i].name);
        r = rgba_image_write(&image, path);
        first += channels;
    }
    rgba_image_free(&image);
    return r;
}

double material_psnr(const ntc_set *s, const uint8_t *a, const uint8_t *b, uint32_t first, uint32_t n)
{
    const size_t pixels = (size_t)s->width * s->height;
    double sum = 0;
    for (size_t p = 0; p < pixels; p++)
        for (uint32_t c = first; c < first + n; c++) {
            const double d = (a[p * s->channels + c] - b[p * s->channels + c]) / 255.0;
            sum += d * d;
        }
    return sum > 0 ? -10 * log10(sum / ((double)n * (double)pixels)) : INFINITY;
}
