/* ntc/dds.h - the latents of a set as block-compressed textures, which a GPU samples directly. */
#ifndef NTC_DDS_H
#define NTC_DDS_H

#include "ntc/set.h"

/* Writes each grid as BC4 blocks to <folder>/grid<i>.dds: an array texture with a layer for each feature. BC4 has eight
 * levels between two bounds in each block of 4 x 4 cells, so most latents change a little. Afterwards *s has the
 * latents that the blocks decode to, rounded to the grid's number of bits. Errors have a message. */
vkt_result dds_write(ntc_set *s, const char *folder);

#endif
