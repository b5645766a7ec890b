/* ntc/plan.h - chooses the grids of a set so that its file has at most the wanted size. */
#ifndef NTC_PLAN_H
#define NTC_PLAN_H

#include "ntc/set.h"

/* Sets the grids of a set so that its file has at most `bppc` bits for each pixel and channel. The set must already
 * have width, height, textures, channels and hidden. With `bc4`, all latents are stored as BC4 blocks. VKT_E_ARG, with
 * a message: the network and one feature in each grid need more bits. */
vkt_result plan_grids(ntc_set *s, double bppc, bool bc4);
/* Reads grids from a text: SCALE:FEATURES:BITS, with ":corners" for ntc_grid.corners, and commas between grids. With
 * `bc4`, all latents are stored as BC4 blocks, and BITS has no effect. VKT_E_ARG, with a message: the text is wrong. */
vkt_result plan_parse(ntc_set *s, const char *text, bool bc4);
/* Returns the bits of the file for each pixel and channel. */
double plan_bppc(const ntc_set *s);

#endif
