/* ntc/view.c - see view.h. */
#include "ntc/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "common/report.h"
#include "graphics/record.h"
#include "graphics/window.h"
#include "ntc/job.h"
#include "ntc/material.h"
#include "ntc/render.h"

enum { VIEWS = 3 };

typedef struct app {
    session *s;
    const ntc_options *o;
    ntc_job job;
    bool from_file, has_screen, stopped, quit;
    device d;
    window w;
    frames f;
    renderer r;
    buffer uploaded; /* latents and weights of a file */
    gpu_image sheet; /* the image to draw on if there is no window */
    uint32_t texture;
    double psnr; /* in dB. In a window: of the last step whose loss was read. Headless: of the result. NaN: not known */
} app;

/* ---- opening and closing ---- */

static vkt_result open_device(app *a)
{
    device_params p = { .program = "vkt-ntc", .name = a->s->o.device };
    if (!a->o->headless) {
        a->has_screen = true;
        if (!window_system_begin(&p.surface_extensions, &p.n_surface_extensions)) return VKT_E_NO_DEVICE;
        p.can_present = window_can_present;
    }
    TRY(device_open(&a->s->host, &p, &a->d));
    return device_adopt(&a->d, &a->s->host, a->s->o.memory_limit_bytes, &a->s->ctx);
}

/* Reads a file. Its decoded texels are used as the original. */
static vkt_result open_file(app *a)
{
    ntc_set *set = &a->job.set;
    a->job.s = a->s;
    TRY(ntc_read(a->s->o.files[1], set));
    a->job.texels = malloc((size_t)set->width * set->height * set->channels);
    return a->job.texels ? ntc_decode(set, a->job.texels) : VKT_E_NOMEM;
}

/* Finds the range of all parameters in the library's buffer, and the first float of each parameter. */
static vkt_result parameters_find(const ntc_trainer *t, parameters *p)
{
    const uint32_t n = vkt_store_count(t->store);
    char name[24];
    uint32_t at;
    p->buffer = vkt_store_buffer(t->store, 0, VKT_PART_VALUE);
    const uint64_t start = p->buffer.offset_bytes;
    for (uint32_t i = 1; i < n; i++) {
        const vkt_vk_buffer b = vkt_store_buffer(t->store, i, VKT_PART_VALUE);
        p->buffer.bytes = b.offset_bytes + b.bytes - start;
    }
    for (uint32_t i = 0; i < t->set->n_grids; i++) {
        ntc_grid_name(i, name);
        if (!vkt_store_find(t->store, name, &at)) return VKT_E_NOT_FOUND;
        p->grids[i] = (uint32_t)((vkt_store_buffer(t->store, at, VKT_PART_VALUE).offset_bytes - start) / 4);
    }
    for (uint32_t i = 0; i < 2 * NTC_LAYERS; i++) {
        ntc_weight_name(i / 2, i % 2, name);
        if (!vkt_store_find(t->store, name, &at)) return VKT_E_NOT_FOUND;
        (i % 2 ? p->bias : p->weight)[i / 2] =
            (uint32_t)((vkt_store_buffer(t->store, at, VKT_PART_VALUE).offset_bytes - start) / 4);
    }
    return VKT_OK;
}

static vkt_result open_renderer(app *a)
{
    const ntc_set *set = &a->job.set;
    const VkExtent2D size = { VIEWS * set->width, set->height };
    VkFormat format = VK_FORMAT_R8G8B8A8_UNORM;
    parameters p = { .buffer = { .bytes = 0 } };
    if (a->has_screen) {
        TRY(window_open(&a->d, "vkt-ntc", size.width, size.height, &a->w));
        format = a->w.format.format;
    } else
        TRY(sheet_create(&a->d, size, &a->sheet));
    if (a->from_file)
        TRY(parameters_upload(&a->d, set, &a->uploaded, &p));
    else
        TRY(parameters_find(&a->job.t, &p));
    return renderer_create(&a->d, set, a->job.texels, &p, format, &a->r);
}

static vkt_result open_app(app *a)
{
    const char *dot = strrchr(a->s->o.files[1], '.');
    a->from_file = a->s->o.n_files == 2 && dot && strcmp(dot, ".vtc") == 0;
    TRY(a->from_file ? open_file(a) : job_plan(a->s, a->o, &a->job));
    TRY(open_device(a));
    TRY(frames_create(&a->d, &a->f));
    if (!a->from_file) TRY(job_start(&a->job, a->o));
    return open_renderer(a);
}

static void close_app(app *a)
{
    if (a->d.handle) a->d.vk.DeviceWaitIdle(a->d.handle);
    renderer_destroy(&a->r);
    job_end(&a->job);
    vkt_ctx_destroy(&a->s->ctx);
    if (a->d.handle) {
        buffer_destroy(&a->d, &a->uploaded);
        image_destroy(&a->d, &a->sheet);
    }
    frames_destroy(&a->f);
    window_close(&a->w);
    device_close(&a->d);
    if (a->has_screen) window_system_end();
}

/* ---- drawing ---- */

/* Records a barrier. If `before`, it is between the library's steps and the drawing. Otherwise it is between the
 * drawing and the next steps. */
static void barrier(const app *a, VkCommandBuffer cmd, bool before)
{
    const VkPipelineStageFlags2 train = VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_COPY_BIT,
                                draw = VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT;
    const VkMemoryBarrier2 b = { .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                                 .srcStageMask = before ? train : draw,
                                 .srcAccessMask =
                                     before ? VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT : 0,
                                 .dstStageMask = before ? draw : train,
                                 .dstAccessMask = before ? VK_ACCESS_2_SHADER_STORAGE_READ_BIT : 0 };
    memory_barrier(&a->d, cmd, &b);
}

/* Records the drawing of the original, the decoded texture and the error, side by side. */
static void draw_views(const app *a, const frame *now, const canvas *to, uint32_t texture)
{
    const uint32_t width = to->extent.width / VIEWS;
    barrier(a, now->cmd, true);
    canvas_begin(&a->d, now->cmd, to);
    for (uint32_t i = 0; i < VIEWS; i++)
        renderer_draw(&a->r, now->cmd, &a->job.set, NTC_VIEW_ORIGINAL + i, texture,
                      (rect){ i * width, 0, width ? width : 1, to->extent.height });
    a->d.vk.CmdEndRendering(now->cmd);
    barrier(a, now->cmd, false);
}

/* ---- without a screen ---- */

static vkt_result draw_sheet(app *a, uint32_t texture, const buffer *copy)
{
    const canvas sheet = canvas_of_sheet(&a->sheet);
    frame *now;
    TRY(frames_begin(&a->f, &now));
    draw_views(a, now, &sheet, texture);
    canvas_end(&a->d, now->cmd, &sheet, copy);
    TRY(frames_submit(&a->f, now, VK_NULL_HANDLE, VK_NULL_HANDLE));
    TRY_VK(&a->d.vk, DeviceWaitIdle, a->d.handle);
    return VKT_OK;
}

/* Returns the largest difference between `texels` and the decoded texture in the drawing `copy`, in steps of 1/255. */
static int difference(const app *a, const buffer *copy, uint32_t texture, const uint8_t *texels)
{
    const ntc_set *s = &a->job.set;
    const uint8_t *rgba = copy->map;
    const uint32_t channels = s->textures[texture].channels;
    uint32_t first = 0;
    int most = 0;
    for (uint32_t k = 0; k < texture; k++) first += s->textures[k].channels;
    for (uint32_t y = 0; y < s->height; y++)
        for (uint32_t x = 0; x < s->width; x++)
            for (uint32_t c = 0; c < channels; c++) {
                const int d = rgba[4 * ((size_t)y * VIEWS * s->width + NTC_VIEW_DECODED * s->width + x) + c] -
                              texels[((size_t)y * s->width + x) * s->channels + first + c];
                if (abs(d) > most) most = abs(d);
            }
    return most;
}

static vkt_result report(app *a, int of_decoder, int of_library)
{
    const train_options *t = &a->s->o;
    if (!t->quiet) {
        if (!a->from_file) printf("result  %.2f dB after %llu steps\n", a->psnr, (unsigned long long)a->job.t.step);
        printf("        the fragment shader differs by at most %d of 255 from the decoder on the CPU", of_decoder);
        if (!a->from_file) printf(", by at most %d from the library", of_library);
        printf("\n");
    }
    if (!t->json) return VKT_OK;
    json_t *o = json_pack("{s:I, s:o, s:i, s:o}", "steps", (json_int_t)a->job.t.step, "psnr", real_or_null(a->psnr),
                          "difference_decoder", of_decoder, "difference_library",
                          a->from_file ? json_null() : json_integer(of_library));
    return write_results(a->s, o) ? VKT_OK : VKT_E_IO;
}

/* Compares the drawing of each texture with the texels that the CPU decodes. If the program trains, also compares
 * the drawing with the texels that the library computes. `decoded` and `inferred` are memory for the texels of the CPU
 * and of the library. */
static vkt_result compare(app *a, buffer *copy, uint8_t *decoded, uint8_t *inferred)
{
    ntc_set *set = &a->job.set;
    const canvas sheet = canvas_of_sheet(&a->sheet);
    int of_decoder = 0, of_library = 0;
    if (!a->from_file) {
        TRY(ntc_trainer_result(&a->job.t, set));
        TRY(ntc_trainer_infer(&a->job.t, inferred));
    }
    TRY(ntc_decode(set, decoded));
    if (!a->from_file) a->psnr = material_psnr(set, a->job.texels, decoded, 0, set->channels);
    TRY(canvas_copy_create(&a->d, &sheet, copy));
    for (uint32_t i = set->n_textures; i-- > 0;) { /* texture 0 is drawn last, so the screenshot shows it */
        TRY(draw_sheet(a, i, copy));
        const int d = difference(a, copy, i, decoded), l = a->from_file ? 0 : difference(a, copy, i, inferred);
        if (d > of_decoder) of_decoder = d;
        if (l > of_library) of_library = l;
    }
    if (a->o->screenshot) TRY(canvas_copy_write(&sheet, copy, a->o->screenshot));
    return report(a, of_decoder, of_library);
}

static vkt_result run_headless(app *a)
{
    const size_t n = (size_t)a->job.set.width * a->job.set.height * a->job.set.channels;
    uint8_t *decoded = malloc(n), *inferred = malloc(n);
    buffer copy = { 0 };
    vkt_result r = decoded && inferred ? VKT_OK : VKT_E_NOMEM;
    for (uint32_t i = 0; r == VKT_OK && !a->from_file && i < a->o->headless && !session_interrupted(); i++)
        r = ntc_trainer_step(&a->job.t);
    if (r == VKT_OK && !session_interrupted()) r = compare(a, &copy, decoded, inferred);
    a->d.vk.DeviceWaitIdle(a->d.handle);
    buffer_destroy(&a->d, &copy);
    free(decoded);
    free(inferred);
    return r;
}

/* ---- in a window ---- */

static void handle_keys(app *a)
{
    char keys[WINDOW_MAX_KEYS];
    const uint32_t n = window_keys(&a->w, keys), textures = a->job.set.n_textures;
    for (uint32_t i = 0; i < n; i++) {
        if (keys[i] == ' ') a->stopped = !a->stopped;
        if (keys[i] == '+') a->texture = (a->texture + 1) % textures;
        if (keys[i] == '-') a->texture = (a->texture + textures - 1) % textures;
        if (keys[i] == 'q') a->quit = true;
    }
}

static void show_title(app *a)
{
    char title[160];
    const char *name = a->job.set.textures[a->texture].name;
    if (a->from_file)
        snprintf(title, sizeof title, "vkt-ntc: %s, %.3f bits a pixel and channel", name, plan_bppc(&a->job.set));
    else
        snprintf(title, sizeof title, "vkt-ntc: %s, %.3f bits a pixel and channel, step %llu, %.2f dB", name,
                 plan_bppc(&a->job.set), (unsigned long long)a->job.t.step, a->psnr);
    window_set_title(&a->w, title);
}

static vkt_result train(app *a)
{
    double loss;
    if (a->from_file || a->stopped) return VKT_OK;
    TRY(ntc_trainer_slices(&a->job.t, (uint64_t)(a->o->budget_ms * 1e6)));
    if (a->f.n % 30 != 0 || a->job.t.under_way) return VKT_OK;
    TRY(ntc_trainer_loss(&a->job.t, &loss));
    a->psnr = loss > 0 ? -10 * log10(loss) : NAN;
    return VKT_OK;
}

/* Calls `train`, then draws one frame. `copy` gets a copy of the frame (NULL: no copy). If window_acquire returns no
 * image, draws nothing and returns VKT_OK. */
static vkt_result one_frame(app *a, const buffer *copy)
{
    frame *now;
    uint32_t image;
    TRY(frames_begin(&a->f, &now));
    TRY(train(a));
    TRY(window_acquire(&a->w, now->acquired, &image));
    if (image == UINT32_MAX) return VKT_OK; /* no image was acquired: now->cmd, still empty, is not submitted */
    const window_image *shown = &a->w.images[image];
    const canvas to = { shown->handle, shown->view, a->w.extent, a->w.format.format, true };
    draw_views(a, now, &to, a->texture);
    canvas_end(&a->d, now->cmd, &to, copy);
    TRY(frames_submit(&a->f, now, now->acquired, shown->drawn));
    show_title(a);
    return window_present(&a->w, image);
}

/* Draws one more frame, and writes it to the screenshot. If one_frame draws nothing, writes nothing. */
static vkt_result last_frame(app *a)
{
    const canvas shown = { .extent = a->w.extent, .format = a->w.format.format, .window = true };
    const uint64_t before = a->f.n;
    buffer copy = { 0 };
    if (!(a->w.usage & VK_IMAGE_USAGE_TRANSFER_SRC_BIT)) {
        complain("%s: images of this window cannot be copied", a->o->screenshot);
        return VKT_E_UNSUPPORTED;
    }
    vkt_result r = canvas_copy_create(&a->d, &shown, &copy);
    if (r == VKT_OK) r = one_frame(a, &copy);
    a->d.vk.DeviceWaitIdle(a->d.handle);
    if (r == VKT_OK && a->f.n > before) r = canvas_copy_write(&shown, &copy, a->o->screenshot);
    buffer_destroy(&a->d, &copy);
    return r;
}

static vkt_result run_window(app *a)
{
    const uint64_t first = a->f.n, wanted = a->o->frames ? first + a->o->frames : UINT64_MAX;
    while (!a->quit && a->f.n < wanted && window_poll(&a->w) && !session_interrupted()) {
        handle_keys(a);
        if (window_is_minimised(&a->w)) {
            window_sleep();
            continue;
        }
        if (a->w.stale) {
            TRY_VK(&a->d.vk, DeviceWaitIdle, a->d.handle);
            TRY(window_renew(&a->w));
        }
        TRY(a->o->screenshot && a->f.n + 1 == wanted ? last_frame(a) : one_frame(a, NULL));
    }
    TRY_VK(&a->d.vk, DeviceWaitIdle, a->d.handle);
    if (!a->s->o.json) return VKT_OK;
    json_t *o = json_pack("{s:I, s:o, s:I}", "steps", (json_int_t)a->job.t.step, "psnr", real_or_null(a->psnr),
                          "frames", (json_int_t)a->f.n);
    return write_results(a->s, o) ? VKT_OK : VKT_E_IO;
}

vkt_result ntc_view(session *s, const ntc_options *o)
{
    app *a = calloc(1, sizeof *a);
    if (!a) return VKT_E_NOMEM;
    a->s = s;
    a->o = o;
    a->psnr = NAN;
    vkt_result r = open_app(a);
    if (r == VKT_OK) r = o->headless ? run_headless(a) : run_window(a);
    close_app(a);
    free(a);
    return r;
}
