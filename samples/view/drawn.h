/* view/drawn.h - the program's own image: the target if the command line names no image. */
#ifndef VIEW_DRAWN_H
#define VIEW_DRAWN_H

#include "graphics/rgba_image.h"

/* Generates the program's own image: gradients, a shaded ball, a rotated rectangle, stripes that become finer, small
 * text. Bytes may differ by 1 between machines whose functions of <math.h> round differently. */
vkt_result rgba_image_draw(uint32_t side, rgba_image *out);

#endif
