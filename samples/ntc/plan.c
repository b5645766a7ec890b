/* ntc/plan.c - see plan.h. */
#include "ntc/plan.h"

#include <stdio.h>
#include <string.h>

#include "common/message.h"

/* A way to divide the bits between two grids. The fine grid has the largest number of features that fits. The number of
 * features of the coarse grid is coarse_share times that. */
typedef struct profile {
    double most; /* the profile is for at most this number of bits for each pixel and channel */
    ntc_grid fine, coarse;
    double coarse_share; /* features of the coarse grid for each feature of the fine grid */
} profile;

static const profile profiles[] = {
    { 0.3, { .scale = 4, .bits = 4, .corners = true }, { .scale = 8, .bits = 4 }, 2.0 },
    { 1e9, { .scale = 2, .bits = 2 }, { .scale = 4, .bits = 4, .corners = true }, 1.0 },
};

double plan_bppc(const ntc_set *s)
{
    ntc_set sized = *s;
    for (uint32_t i = 0; i < sized.n_grids; i++) {
        ntc_grid *g = &sized.grids[i];
        g->height = (s->height + g->scale - 1) / g->scale;
        g->width = (s->width + g->scale - 1) / g->scale;
    }
    return 8.0 * (double)ntc_bytes(&sized) / ((double)s->width * s->height * s->channels);
}

static void set_features(ntc_set *s, const profile *p, uint32_t fine, bool bc4)
{
    s->grids[0] = p->fine;
    s->grids[1] = p->coarse;
    s->grids[0].features = fine;
    s->grids[1].features = (uint32_t)(p->coarse_share * fine + 0.5);
    s->n_grids = s->grids[1].features ? 2 : 1;
    for (uint32_t i = 0; bc4 && i < s->n_grids; i++) s->grids[i].bits = 0;
}

vkt_result plan_grids(ntc_set *s, double bppc, bool bc4)
{
    const profile *p = profiles;
    uint32_t fine = 0;
    while (bppc > p->most) p++;
    for (uint32_t f = 1; f <= NTC_MAX_INPUTS; f++) {
        set_features(s, p, f, bc4);
        if (ntc_inputs(s) > NTC_MAX_INPUTS || plan_bppc(s) > bppc) break;
        fine = f;
    }
    if (fine == 0) {
        complain("%g bits for each pixel and channel are too few for images of %u x %u: one feature needs %.3f", bppc,
                 s->width, s->height, plan_bppc(s));
        return VKT_E_ARG;
    }
    set_features(s, p, fine, bc4);
    while (s->n_grids == 2) { /* gives the bits that are left to the coarse grid */
        s->grids[1].features++;
        if (ntc_inputs(s) <= NTC_MAX_INPUTS && plan_bppc(s) <= bppc) continue;
        s->grids[1].features--;
        break;
    }
    return VKT_OK;
}

vkt_result plan_parse(ntc_set *s, const char *text, bool bc4)
{
    s->n_grids = 0;
    for (;;) {
        int n = 0;
        ntc_grid g = { 0 };
        if (s->n_grids == NTC_MAX_GRIDS || sscanf(text, "%3u:%3u:%2u%n", &g.scale, &g.features, &g.bits, &n) != 3 ||
            n == 0 || g.bits == 0)
            break;
        if (bc4) g.bits = 0;
        text += n;
        g.corners = strncmp(text, ":corners", 8) == 0;
        if (g.corners) text += 8;
        s->grids[s->n_grids++] = g;
        if (!*text) return VKT_OK;
        if (*text++ != ',') break;
    }
    complain("--grids: want 1 to %d times SCALE:FEATURES:BITS or SCALE:FEATURES:BITS:corners, with commas between",
             NTC_MAX_GRIDS);
    return VKT_E_ARG;
}
