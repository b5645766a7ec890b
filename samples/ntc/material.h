/* ntc/material.h - reads, writes and compares the images of a material, as bytes. */
#ifndef NTC_MATERIAL_H
#define NTC_MATERIAL_H

#include "ntc/set.h"

/* Reads the images of `paths`, which must have equal sizes. An image whose three channels are equal counts as one
 * channel. Sets width, height, channels and textures of *s. Channel c of texel (x,y) is (*texels)[(y * width + x) *
 * channels + c]; the caller frees *texels. Errors other than VKT_E_NOMEM have a message. */
vkt_result material_read(const char *const *paths, uint32_t n, ntc_set *s, uint8_t **texels);
/* Writes an image for each texture: <folder>/<name>.png. */
vkt_result material_write(const ntc_set *s, const uint8_t *texels, const char *folder);
/* Compares the texels `a` and `b` in channels first .. first + n - 1. Returns the PSNR in dB. The PSNR is infinite if
 * these channels are equal. */
double material_psnr(const ntc_set *s, const uint8_t *a, const uint8_t *b, uint32_t first, uint32_t n);

#endif
