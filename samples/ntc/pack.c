/* ntc/pack.c - see pack.h. */
#include "ntc/pack.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/message.h"
#include "common/report.h"
#include "graphics/vk.h"
#include "ntc/dds.h"
#include "ntc/job.h"
#include "ntc/material.h"

enum { SHOWN_NS = 2000000000 };

/* ---- pack ---- */

static double psnr_of(double mse)
{
    return mse > 0 ? -10 * log10(mse) : INFINITY;
}

static vkt_result train(ntc_job *j, const ntc_options *o)
{
    const uint64_t start = session_now_ns(), first = j->t.step;
    uint64_t shown = start;
    while (j->t.step < j->t.p.steps && !session_interrupted()) {
        TRY(ntc_trainer_step(&j->t));
        if (o->checkpoint && j->t.step % o->checkpoint_every == 0) TRY(ntc_trainer_save(&j->t, o->checkpoint));
        if (j->s->o.quiet || session_now_ns() - shown < SHOWN_NS) continue;
        double loss;
        TRY(ntc_trainer_loss(&j->t, &loss));
        shown = session_now_ns();
        const double left =
            (double)(shown - start) * 1e-9 / (double)(j->t.step - first) * (double)(j->t.p.steps - j->t.step);
        printf("step %6llu of %llu  %.2f dB  %.0f s left\n", (unsigned long long)j->t.step,
               (unsigned long long)j->t.p.steps, psnr_of(loss), left);
        fflush(stdout);
    }
    TRY(vkt_ctx_wait_idle(j->s->ctx));
    if (o->checkpoint && j->t.step > first) TRY(ntc_trainer_save(&j->t, o->checkpoint));
    j->steps_per_second = (double)(j->t.step - first) * 1e9 / (double)(session_now_ns() - start);
    return VKT_OK;
}

/* Decodes the set on the CPU, and reports the PSNR of each texture. */
static vkt_result report(ntc_job *j, const ntc_options *o)
{
    const ntc_set *set = &j->set;
    const train_options *t = &j->s->o;
    uint8_t *decoded = malloc((size_t)set->width * set->height * set->channels);
    json_t *textures = json_array();
    vkt_result r = decoded ? ntc_decode(set, decoded) : VKT_E_NOMEM;
    const double all = r == VKT_OK ? material_psnr(set, j->texels, decoded, 0, set->channels) : NAN;
    for (uint32_t i = 0, first = 0; r == VKT_OK && i < set->n_textures; first += set->textures[i++].channels) {
        const double psnr = material_psnr(set, j->texels, decoded, first, set->textures[i].channels);
        if (!t->quiet) printf("%-27s %u channels  %.2f dB\n", set->textures[i].name, set->textures[i].channels, psnr);
        json_array_append_new(textures, json_pack("{s:s, s:i, s:o}", "name", set->textures[i].name, "channels",
                                                  (int)set->textures[i].channels, "psnr", real_or_null(psnr)));
    }
    free(decoded);
    if (r == VKT_OK && !t->quiet)
        printf("result  %s: %llu bytes, %.3f bits a pixel and channel, %.2f dB, %.1f steps/s\n", o->output,
               (unsigned long long)ntc_bytes(set), plan_bppc(set), all, j->steps_per_second);
    if (r != VKT_OK || !t->json) {
        json_decref(textures);
        return r;
    }
    json_t *out = json_pack("{s:I, s:I, s:f, s:o, s:o, s:o, s:i, s:i}", "steps", (json_int_t)j->t.step, "bytes",
                            (json_int_t)ntc_bytes(set), "bppc", plan_bppc(set), "psnr", real_or_null(all), "textures",
                            textures, "steps_per_second", real_or_null(j->steps_per_second), "width", (int)set->width,
                            "height", (int)set->height);
    return write_results(j->s, out) ? VKT_OK : VKT_E_IO;
}

vkt_result ntc_pack(session *s, const ntc_options *o)
{
    ntc_job j;
    vkt_result r = vkt_try_output(&s->host, o->output);
    if (r == VKT_OK && o->checkpoint) r = vkt_try_output(&s->host, o->checkpoint);
    if (r != VKT_OK) return r;
    r = job_plan(s, o, &j);
    if (r == VKT_OK && !session_open(s)) r = VKT_E_NO_DEVICE;
    if (r == VKT_OK) r = job_start(&j, o);
    if (r == VKT_OK) r = train(&j, o);
    if (r == VKT_OK && !session_interrupted()) {
        r = ntc_trainer_result(&j.t, &j.set);
        if (r == VKT_OK) r = ntc_write(&j.set, o->output);
        if (r == VKT_OK) r = report(&j, o);
    }
    job_end(&j);
    return r;
}

/* ---- unpack ---- */

vkt_result ntc_unpack(session *s, const ntc_options *o)
{
    ntc_set set;
    vkt_result r = ntc_read(s->o.files[1], &set);
    const size_t n = (size_t)set.width * set.height * set.channels;
    uint8_t *texels = r == VKT_OK ? malloc(n) : NULL;
    if (r == VKT_OK && !texels) r = VKT_E_NOMEM;
    if (r == VKT_OK && mkdir(o->output, 0777) != 0 && errno != EEXIST) {
        complain("%s: %s", o->output, strerror(errno));
        r = VKT_E_IO;
    }
    if (r == VKT_OK && o->dds) r = dds_write(&set, o->output);
    if (r == VKT_OK) r = ntc_decode(&set, texels);
    if (r == VKT_OK) r = material_write(&set, texels, o->output);
    free(texels);
    ntc_free(&set);
    return r;
}
