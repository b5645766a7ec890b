/* ntc/view.h - the command `view`: shows original, decoded texture and error, in a window or without a screen. */
#ifndef NTC_VIEW_H
#define NTC_VIEW_H

#include "ntc/pack.h"

/* Shows the file s->o.files[1] if it is the only one and its name ends in .vtc. Otherwise trains on the images
 * s->o.files[1], s->o.files[2], .. and shows them. */
vkt_result ntc_view(session *s, const ntc_options *o);

#endif
