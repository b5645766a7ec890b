/* ntc/dds.h - the latents of a set as block-compressed textures, which a GPU samples directly. */
#ifndef NTC_DDS_H
#define NTC_DDS_H

#include "ntc/set.h"

/* Writes each grid as BC4 blocks to <folder>/grid<i>.dds: an array texture with a layer for each feature. Latents of
 * `pack --bc4` do not change, because they were decoded from such blocks. Other latents may change a little, because a
 * block of 4 x 4 cells has only eight values. Afterwards *s has the latents that are decoded from the blocks. If a grid
 * has bits > 0, the decoded latents are rounded to the levels of the grid. Errors other than VKT_E_NOMEM have a
 * message. */
vkt_result dds_write(ntc_set *s, const char *folder);

#endif
