/* ntc/job.c - see job.h. */
#include "ntc/job.h"

#include <stdio.h>
#include <stdlib.h>

#include "graphics/vk.h"
#include "ntc/material.h"

static void print_grid(const ntc_grid *g)
{
    char bits[24] = "in BC4 blocks";
    if (g->bits) snprintf(bits, sizeof bits, "of %u bits", g->bits);
    printf("grid    %u texels a cell, %u features %s%s\n", g->scale, g->features, bits,
           g->corners ? ", four cells" : "");
}

static void print_plan(const ntc_job *j)
{
    const ntc_set *s = &j->set;
    if (j->s->o.quiet) return;
    printf("images  %u x %u, %u textures, %u channels\n", s->width, s->height, s->n_textures, s->channels);
    for (uint32_t i = 0; i < s->n_grids; i++) print_grid(&s->grids[i]);
    printf("network %u inputs, %u, %u, %u outputs\n", ntc_inputs(s), s->hidden, s->hidden, ntc_outputs(s));
    printf("file    %llu bytes, %.3f bits a pixel and channel\n\n", (unsigned long long)ntc_bytes(s), plan_bppc(s));
}

vkt_result job_plan(session *s, const ntc_options *o, ntc_job *j)
{
    *j = (ntc_job){ .s = s, .set = { .hidden = o->hidden } };
    TRY(material_read(s->o.files + 1, s->o.n_files - 1, &j->set, &j->texels));
    if (o->grids)
        TRY(plan_parse(&j->set, o->grids, o->bc4));
    else
        TRY(plan_grids(&j->set, o->bppc, o->bc4));
    TRY(ntc_allocate(&j->set));
    print_plan(j);
    return VKT_OK;
}

/* Returns the side of a tile in blocks of texels: a multiple of 4. `wanted` and `image` are the wanted side of the tile
 * and the side of the image, in texels. The tile has no more blocks than the image. */
static uint32_t side_of(uint32_t wanted, uint32_t image)
{
    return ntc_blocks(wanted < image ? wanted : image) / 4 * 4;
}

vkt_result job_start(ntc_job *j, const ntc_options *o)
{
    const ntc_params p = { .seed = j->s->o.seed,
                           .steps = o->steps,
                           .rounded = o->rounded,
                           .tile = { side_of(o->tile, j->set.height), side_of(o->tile, j->set.width) },
                           .lr = o->lr };
    TRY(ntc_trainer_create(j->s->ctx, &j->set, j->texels, &p, &j->t));
    return o->resume ? ntc_trainer_load(&j->t, o->resume) : VKT_OK;
}

void job_end(ntc_job *j)
{
    ntc_trainer_destroy(&j->t);
    free(j->texels);
    ntc_free(&j->set);
}
