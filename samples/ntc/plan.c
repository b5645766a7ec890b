/* ntc/plan.c - see plan.h. */
#include "ntc/plan.h"

#include <stdio.h>
#include <string.h>

#include "common/message.h"

/* The grids of a set, and the share of the features that each grid gets. A grid has `share` * u features, rounded,
 * but at least one. All grids have the same u. There are two limits: the size of the file, and NTC_MAX_INPUTS inputs of
 * the network. plan_grids chooses the largest u (a multiple of 1/4) with which no limit is exceeded. Then plan_grids
 * adds features to the last grid, until one more would exceed a limit. */
typedef struct profile {
    double most; /* the profile is for at most this number of bits for each pixel and channel */
    uint32_t n_grids;
    struct {
        ntc_grid grid;
        double share;
    } of[NTC_MAX_GRIDS];
} profile;

/* plan_grids begins with the first profile whose `most` is at least bppc, the wanted bits for each pixel and channel.
 * If the file is too large even with u = 1/4, plan_grids tries the profile before this one, and so on. This happens
 * if the images have few channels. plan_grids never begins with the profile whose `most` is 0. */
static const profile profiles[] = {
    { 0.3, 2, { { { .scale = 4, .bits = 4, .corners = true }, 1 }, { { .scale = 8, .bits = 4 }, 2 } } },
    { 0, 2, { { { .scale = 2, .bits = 2 }, 1 }, { { .scale = 4, .bits = 4, .corners = true }, 1 } } },
    { 1e9,
      3,
      { { { .scale = 2, .bits = 4 }, 0.75 },
        { { .scale = 2, .bits = 2 }, 1 },
        { { .scale = 4, .bits = 4, .corners = true }, 1 } } },
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

/* Sets the grids for u = units / 4. Each grid has at least one feature. */
static void set_features(ntc_set *s, const profile *p, uint32_t units, bool bc4)
{
    s->n_grids = p->n_grids;
    for (uint32_t i = 0; i < p->n_grids; i++) {
        const uint32_t features = (uint32_t)(p->of[i].share * units / 4 + 0.5);
        s->grids[i] = p->of[i].grid;
        s->grids[i].features = features ? features : 1;
        if (bc4) s->grids[i].bits = 0;
    }
}

static bool fits(const ntc_set *s, double bppc)
{
    return ntc_inputs(s) <= NTC_MAX_INPUTS && plan_bppc(s) <= bppc;
}

vkt_result plan_grids(ntc_set *s, double bppc, bool bc4)
{
    const profile *p = profiles;
    uint32_t units = 1;
    while (bppc > p->most) p++;
    for (set_features(s, p, units, bc4); !fits(s, bppc) && p > profiles;) set_features(s, --p, units, bc4);
    if (!fits(s, bppc)) {
        complain("%g bits for each pixel and channel are too few for images of %u x %u: one feature in each grid needs "
                 "%.3f",
                 bppc, s->width, s->height, plan_bppc(s));
        return VKT_E_ARG;
    }
    while (fits(s, bppc)) set_features(s, p, ++units, bc4);
    set_features(s, p, units - 1, bc4);
    while (fits(s, bppc)) s->grids[s->n_grids - 1].features++;
    s->grids[s->n_grids - 1].features--;
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
