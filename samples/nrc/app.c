/* nrc/app.c - see app.h. */
#include "nrc/app.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/message.h"
#include "common/report.h"
#include "graphics/record.h"
#include "graphics/window.h"
#include "nrc/learn.h"
#include "nrc/render.h"

enum { VIEWS = 3, REFERENCE_SAMPLES = 16 /* paths per pixel in one submission */, SHOWN_EVERY = 20 };

typedef struct app {
    session *s;
    const nrc_options *o;
    bool has_screen;
    device d;
    window w;
    frames f;
    gbuffer p;
    renderer r;
    learner l;
    gpu_image sheet; /* the image to draw on if there is no window */
    uint64_t camera; /* frame number from which the camera's position is computed */
    uint64_t traced; /* number of frames that were traced */
    bool stopped;    /* the camera does not move */
    bool inferred;   /* the library evaluates the network for the window; false: the fragment shader does */
    bool quit;
    times frame_times, measured_times;
    uint64_t frame_start_ns;
} app;

/* ---- opening and closing ---- */

static vkt_result open_device(app *a)
{
    const train_options *t = &a->s->o;
    device_params p = { .program = "vkt-nrc", .name = t->device };
    if (!a->o->headless) {
        a->has_screen = true;
        if (!window_system_begin(&p.surface_extensions, &p.n_surface_extensions)) return VKT_E_NO_DEVICE;
        p.can_present = window_can_present;
    }
    TRY(device_open(&a->s->host, &p, &a->d));
    if (!t->quiet) printf("device  %u: %s, %s\n", a->d.info.index, a->d.info.name, a->d.info.driver);
    return device_adopt(&a->d, &a->s->host, t->memory_limit_bytes, &a->s->ctx);
}

static vkt_result open_renderer(app *a)
{
    const VkExtent2D size = { (a->has_screen ? 2 : VIEWS) * a->o->width, a->o->height };
    VkFormat format = VK_FORMAT_R8G8B8A8_UNORM;
    vkt_hash_grid_level levels[NRC_LEVELS];
    vkt_vk_buffer parameters;
    network_at at;
    if (a->has_screen) {
        TRY(window_open(&a->d, "vkt-nrc", size.width, size.height, &a->w));
        format = a->w.format.format;
    } else
        TRY(sheet_create(&a->d, size, &a->sheet));
    TRY(learn_shown(&a->l, levels, &parameters, &at));
    TRY(gbuffer_bind_network(&a->p, levels, parameters));
    return renderer_create(&a->p, &at, format, &a->r);
}

static vkt_result open_app(app *a)
{
    const learn_params p = { .seed = a->s->o.seed, .lr = a->o->lr };
    TRY(open_device(a));
    TRY(frames_create(&a->d, &a->f));
    TRY(gbuffer_create(&a->d, &a->f, (VkExtent2D){ a->o->width, a->o->height }, &a->p));
    TRY(learn_create(a->s->ctx, &a->p, &p, &a->l));
    return open_renderer(a);
}

static void close_app(app *a)
{
    if (a->d.handle) a->d.vk.DeviceWaitIdle(a->d.handle);
    renderer_destroy(&a->r);
    learn_destroy(&a->l);
    vkt_ctx_destroy(&a->s->ctx);
    gbuffer_destroy(&a->p);
    frames_destroy(&a->f);
    if (a->d.handle) image_destroy(&a->d, &a->sheet);
    window_close(&a->w);
    device_close(&a->d);
    if (a->has_screen) window_system_end();
}

/* ---- the parts of a frame ---- */

/* Records the path tracing of the next frame. The camera has the position of frame number a->camera. */
static void trace_next(app *a, const frame *now)
{
    renderer_trace(&a->r, now->cmd, a->camera, a->traced++, a->s->o.seed);
}

/* Records the drawing of n views side by side on the canvas. */
static void draw_views(const app *a, const frame *now, const canvas *to, const render_view *views, uint32_t n)
{
    const uint32_t width = to->extent.width / n;
    canvas_begin(&a->d, now->cmd, to);
    for (uint32_t i = 0; i < n; i++)
        renderer_draw(&a->r, now->cmd, views[i], (rect){ i * width, 0, width ? width : 1, to->extent.height });
    a->d.vk.CmdEndRendering(now->cmd);
}

static void end_frame_time(app *a)
{
    const uint64_t now = session_now_ns();
    if (a->frame_start_ns) times_add(&a->frame_times, now - a->frame_start_ns);
    a->frame_start_ns = now;
}

/* ---- without a screen ---- */

static vkt_result trace_alone(app *a)
{
    frame *now;
    TRY(frames_begin(&a->f, &now));
    trace_next(a, now);
    return frames_submit(&a->f, now, VK_NULL_HANDLE, VK_NULL_HANDLE);
}

static vkt_result trace_reference(app *a)
{
    const uint32_t parts = a->o->reference / REFERENCE_SAMPLES;
    for (uint32_t i = 0; i < parts && !session_interrupted(); i++) {
        frame *now;
        TRY(frames_begin(&a->f, &now));
        renderer_trace_reference(&a->r, now->cmd, a->camera, REFERENCE_SAMPLES, i, parts);
        TRY(frames_submit(&a->f, now, VK_NULL_HANDLE, VK_NULL_HANDLE));
    }
    return VKT_OK;
}

/* Draws views on the sheet and copies the sheet to the host. */
static vkt_result draw_sheet(app *a, const render_view *views, const buffer *copy)
{
    const canvas sheet = canvas_of_sheet(&a->sheet);
    frame *now;
    TRY(frames_begin(&a->f, &now));
    draw_views(a, now, &sheet, views, VIEWS);
    canvas_end(&a->d, now->cmd, &sheet, copy);
    TRY(frames_submit(&a->f, now, VK_NULL_HANDLE, VK_NULL_HANDLE));
    TRY_VK(&a->d.vk, DeviceWaitIdle, a->d.handle);
    return VKT_OK;
}

/* Returns channel c of a pixel of a view on the sheet. */
static int channel(const app *a, const buffer *copy, uint32_t view, uint32_t x, uint32_t y, uint32_t c)
{
    const uint8_t *rgba = copy->map;
    return rgba[4 * ((size_t)y * a->sheet.extent.width + view * a->o->width + x) + c];
}

/* Returns the PSNR in dB of a view, compared with the view `reference`. */
static double psnr(const app *a, const buffer *copy, uint32_t view, uint32_t reference)
{
    double sum = 0;
    for (uint32_t y = 0; y < a->o->height; y++)
        for (uint32_t x = 0; x < a->o->width; x++)
            for (uint32_t c = 0; c < 3; c++) {
                const double d = (channel(a, copy, view, x, y, c) - channel(a, copy, reference, x, y, c)) / 255.0;
                sum += d * d;
            }
    return sum > 0 ? -10 * log10(sum / (3.0 * a->o->width * a->o->height)) : INFINITY;
}

static int largest_difference(const app *a, const buffer *copy, uint32_t view, uint32_t other)
{
    int most = 0;
    for (uint32_t y = 0; y < a->o->height; y++)
        for (uint32_t x = 0; x < a->o->width; x++)
            for (uint32_t c = 0; c < 3; c++) {
                const int d = abs(channel(a, copy, view, x, y, c) - channel(a, copy, other, x, y, c));
                if (d > most) most = d;
            }
    return most;
}

typedef struct result {
    double noisy, network; /* PSNR in dB, compared with the reference */
    int difference;        /* largest difference between library and fragment shader, in steps of 1/255 */
} result;

static vkt_result report(app *a, const result *r)
{
    const train_options *t = &a->s->o;
    if (!t->quiet) {
        printf("result  one path %.2f dB, network %.2f dB, compared with %u paths a pixel\n", r->noisy, r->network,
               a->o->reference);
        printf("        library and fragment shader differ by at most %d of 255\n", r->difference);
        printf("frames  %.2f ms on average, with %d steps of training each\n", times_mean(&a->frame_times),
               LEARN_STEPS);
        session_print_memory(a->s);
    }
    if (!t->json) return VKT_OK;
    json_t *o =
        json_pack("{s:I, s:o, s:o, s:i, s:i, s:i, s:i}", "steps", (json_int_t)a->l.steps, "psnr_one_path",
                  real_or_null(r->noisy), "psnr_network", real_or_null(r->network), "difference", r->difference,
                  "width", (int)a->o->width, "height", (int)a->o->height, "reference_samples", (int)a->o->reference);
    return write_results(a->s, o) ? VKT_OK : VKT_E_IO;
}

/* Compares the views RENDER_INFERRED and RENDER_NETWORK (render.h). Then compares RENDER_LIGHT and RENDER_NETWORK with
 * RENDER_REFERENCE. The screenshot shows RENDER_LIGHT, RENDER_NETWORK and RENDER_REFERENCE. */
static vkt_result compare(app *a, buffer *copy)
{
    static const render_view both[VIEWS] = { RENDER_INFERRED, RENDER_NETWORK, RENDER_REFERENCE },
                             shown[VIEWS] = { RENDER_LIGHT, RENDER_NETWORK, RENDER_REFERENCE };
    const canvas sheet = canvas_of_sheet(&a->sheet);
    result r;
    TRY(canvas_copy_create(&a->d, &sheet, copy));
    TRY(draw_sheet(a, both, copy));
    r.difference = largest_difference(a, copy, 0, 1);
    TRY(draw_sheet(a, shown, copy));
    r.noisy = psnr(a, copy, 0, 2);
    r.network = psnr(a, copy, 1, 2);
    if (a->o->screenshot) TRY(canvas_copy_write(&sheet, copy, a->o->screenshot));
    return report(a, &r);
}

static vkt_result run_headless(app *a)
{
    buffer copy = { 0 };
    for (uint32_t i = 1; i <= a->o->headless && !session_interrupted(); i++) {
        a->camera = i;
        TRY(trace_alone(a));
        TRY(learn_round(&a->l));
        end_frame_time(a);
        if (i % SHOWN_EVERY == 0 && !a->s->o.quiet) printf("frame %u\n", i);
    }
    TRY(learn_infer(&a->l));
    TRY(trace_reference(a));
    const vkt_result r = session_interrupted() ? VKT_OK : compare(a, &copy);
    a->d.vk.DeviceWaitIdle(a->d.handle);
    buffer_destroy(&a->d, &copy);
    return r;
}

/* ---- in a window ---- */

static void handle_keys(app *a)
{
    char keys[WINDOW_MAX_KEYS];
    const uint32_t n = window_keys(&a->w, keys);
    for (uint32_t i = 0; i < n; i++) {
        if (keys[i] == ' ') a->stopped = !a->stopped;
        if (keys[i] == 'i') a->inferred = !a->inferred;
        if (keys[i] == 'q') a->quit = true;
    }
}

static vkt_result renew(app *a)
{
    TRY_VK(&a->d.vk, DeviceWaitIdle, a->d.handle);
    return window_renew(&a->w);
}

static vkt_result train(app *a)
{
    uint64_t measured_ns = 0;
    TRY(learn_slices(&a->l, (uint64_t)(a->o->budget_ms * 1e6), &measured_ns));
    if (measured_ns) times_add(&a->measured_times, measured_ns);
    return a->inferred ? learn_infer(&a->l) : VKT_OK;
}

/* Trains on the images of an earlier frame, if there is one. After that, traces and draws one frame. `copy` gets a copy
 * of the new frame (NULL: no copy). If the swapchain does not fit the window any more, draws nothing and returns
 * VKT_OK. */
static vkt_result one_frame(app *a, const buffer *copy)
{
    const render_view views[] = { RENDER_LIGHT, a->inferred ? RENDER_INFERRED : RENDER_NETWORK };
    frame *now;
    uint32_t image;
    TRY(frames_begin(&a->f, &now));
    if (a->traced) TRY(train(a));
    TRY(window_acquire(&a->w, now->acquired, &image));
    if (image == UINT32_MAX) return VKT_OK; /* no image was acquired: now->cmd, still empty, is not submitted */
    const window_image *shown = &a->w.images[image];
    const canvas to = { shown->handle, shown->view, a->w.extent, a->w.format.format, true };
    a->camera += !a->stopped;
    trace_next(a, now);
    draw_views(a, now, &to, views, 2);
    canvas_end(&a->d, now->cmd, &to, copy);
    gbuffer_barrier(&a->p,
                    now->cmd); /* the next training waits until this frame has read the images and the parameters */
    TRY(frames_submit(&a->f, now, now->acquired, shown->drawn));
    TRY(window_present(&a->w, image));
    end_frame_time(a);
    return VKT_OK;
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

static vkt_result report_window(app *a)
{
    const train_options *t = &a->s->o;
    if (!t->quiet) {
        printf("result  %llu steps in %llu frames, %.2f ms on average\n", (unsigned long long)a->l.steps,
               (unsigned long long)a->traced, times_mean(&a->frame_times));
        if (a->measured_times.n)
            printf("budget  %g ms; training took %.2f ms in half of the frames, 95 %% are below %.2f ms\n",
                   a->o->budget_ms, times_quantile(&a->measured_times, 0.5), times_quantile(&a->measured_times, 0.95));
        session_print_memory(a->s);
    }
    if (!t->json) return VKT_OK;
    json_t *o = json_pack("{s:I, s:I, s:f, s:f, s:f}", "steps", (json_int_t)a->l.steps, "frames", (json_int_t)a->traced,
                          "budget_ms", a->o->budget_ms, "measured_ms_median", times_quantile(&a->measured_times, 0.5),
                          "measured_ms_p95", times_quantile(&a->measured_times, 0.95));
    return write_results(a->s, o) ? VKT_OK : VKT_E_IO;
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
        if (a->w.stale) TRY(renew(a));
        TRY(a->o->screenshot && a->f.n + 1 == wanted ? last_frame(a) : one_frame(a, NULL));
    }
    TRY_VK(&a->d.vk, DeviceWaitIdle, a->d.handle);
    return report_window(a);
}

static vkt_result run(app *a)
{
    TRY(open_app(a));
    if (!a->s->o.quiet)
        printf("views   %u x %u, %u pixels a step, %llu parameters\n\n", a->o->width, a->o->height,
               a->l.pixels / LEARN_STEPS, (unsigned long long)vkt_store_elements(a->l.store));
    return a->o->headless ? run_headless(a) : run_window(a);
}

vkt_result nrc_run(session *s, const nrc_options *o)
{
    app *a = calloc(1, sizeof *a);
    if (!a) return VKT_E_NOMEM;
    a->s = s;
    a->o = o;
    a->inferred = o->library;
    const vkt_result r = run(a);
    close_app(a);
    free(a);
    return r;
}
