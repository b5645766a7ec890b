/* ntc/pack.h - the options of vkt-ntc, and the commands `pack` and `unpack`. */
#ifndef NTC_PACK_H
#define NTC_PACK_H

#include "common/session.h"

typedef struct ntc_options {
    const char *output; /* a file, or a folder for `unpack` */
    const char *grids;  /* text of --grids; NULL: the grids are chosen for `bppc` */
    bool dds;           /* unpack: also write the latents as block-compressed textures */
    bool bc4;           /* pack: the latents are stored as BC4 blocks */
    const char *checkpoint, *resume;
    uint64_t checkpoint_every;
    double bppc, rounded;
    uint64_t steps;
    uint32_t hidden, tile;
    float lr;
    /* view */
    const char *screenshot;
    uint32_t frames, headless;
    double budget_ms;
} ntc_options;

/* Compresses the images s->o.files[1], s->o.files[2], .. to a file. */
vkt_result ntc_pack(session *s, const ntc_options *o);
/* Decodes the file s->o.files[1] to a folder. */
vkt_result ntc_unpack(session *s, const ntc_options *o);

#endif
