/* view/app.c - see app.h. */
#include "view/app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/message.h"
#include "common/report.h"
#include "view/draw.h"
#include "view/drawn.h"
#include "view/learn.h"
#include "view/panel.h"
#include "graphics/upload.h"
#include "graphics/window.h"

enum { SHOWN_EVERY = 50 };

static const double least_budget_ms = 0.25, most_budget_ms = 128;

/* The action that a key requests. The action happens between two steps. */
typedef enum request { REQUEST_NONE, REQUEST_RESET, REQUEST_SAVE, REQUEST_LOAD } request;

typedef struct app {
    session *s;
    const view_options *o;
    rgba_image target;
    gpu_image texture; /* the target on the device: the frame shows it, and the training reads it */
    device d;
    bool has_screen;
    window w;
    gpu_image sheet; /* the image to draw on if there is no window */
    frames f;
    renderer a;
    learner l;
    bool paused, quit;
    double budget_ms;
    request request;
    times frame_times, training_times, measured_times;
    /* Time of a frame's training calls. host_times: wall time. cpu_times: CPU time of this thread. */
    times host_times, cpu_times;
    uint64_t frame_start_ns;
} app;

/* ---- opening and closing ---- */

static vkt_result open_device(app *a)
{
    const train_options *t = &a->s->o;
    device_params p = { .program = "vkt-view", .name = t->device };
    if (!a->o->headless) {
        a->has_screen = true;
        if (!window_system_begin(&p.surface_extensions, &p.n_surface_extensions)) return VKT_E_NO_DEVICE;
        p.can_present = window_can_present;
    }
    TRY(device_open(&a->s->host, &p, &a->d));
    if (!t->quiet) printf("device  %u: %s, %s\n", a->d.info.index, a->d.info.name, a->d.info.driver);
    return device_adopt(&a->d, &a->s->host, t->memory_limit_bytes, &a->s->ctx);
}

static vkt_result open_learner(app *a)
{
    const learn_params p = { .width = a->target.width,
                             .height = a->target.height,
                             .image = a->texture.handle,
                             .seed = a->s->o.seed,
                             .batch = a->o->batch,
                             .lr = a->o->lr,
                             .recorded = a->o->recorded };
    TRY(learn_create(a->s->ctx, &p, &a->l));
    return a->o->load ? learn_load(&a->l, a->o->load) : VKT_OK;
}

static vkt_result open_renderer(app *a)
{
    const VkExtent2D size = natural_frame(&a->target);
    renderer_params p = {
        .d = &a->d, .target = &a->target, .texture = &a->texture, .format = VK_FORMAT_R8G8B8A8_UNORM
    };
    TRY(learn_shown(&a->l, p.levels, p.parameters));
    if (a->has_screen) {
        TRY(window_open(&a->d, "vkt-view", size.width, size.height, &a->w));
        p.format = a->w.format.format;
    } else
        TRY(sheet_create(&a->d, size, &a->sheet));
    TRY(renderer_create(&p, &a->a));
    return renderer_set_width(&a->a, a->has_screen ? a->w.extent.width : size.width);
}

static vkt_result open_app(app *a)
{
    TRY(a->o->image ? rgba_image_read(a->o->image, a->o->side, a->o->max_pixels, &a->target)
                    : rgba_image_draw(a->o->side, &a->target));
    TRY(open_device(a));
    TRY(frames_create(&a->d, &a->f));
    TRY(upload_image(&a->d, &a->f, &a->target, &a->texture));
    TRY(open_learner(a));
    return open_renderer(a);
}

static void close_app(app *a)
{
    if (a->d.handle) a->d.vk.DeviceWaitIdle(a->d.handle);
    renderer_destroy(&a->a);
    learn_destroy(&a->l);
    vkt_ctx_destroy(&a->s->ctx);
    frames_destroy(&a->f);
    if (a->d.handle) {
        image_destroy(&a->d, &a->sheet);
        image_destroy(&a->d, &a->texture);
    }
    window_close(&a->w);
    device_close(&a->d);
    if (a->has_screen) window_system_end();
    rgba_image_free(&a->target);
}

/* ---- the parts of a frame ---- */

static vkt_result run_request(app *a)
{
    const request w = a->request;
    if (a->l.under_way) return VKT_OK;
    a->request = REQUEST_NONE;
    switch (w) {
    case REQUEST_RESET: return learn_reset(&a->l);
    case REQUEST_SAVE: return learn_save(&a->l, a->o->save ? a->o->save : "vkt-view.safetensors");
    case REQUEST_LOAD: return learn_load(&a->l, a->o->load ? a->o->load : "vkt-view.safetensors");
    default: return VKT_OK;
    }
}

/* Collects losses, runs the action that a key requested, and submits slices (parts of steps) for this frame. An action
 * waits until no step is partly done. These slices are submitted:
 *   - with --recorded: none, because record_training records whole steps
 *   - while an action waits: only the remaining slices of the step that is partly done, also during a pause
 *   - during a pause: none
 *   - otherwise: as many as fit into the budget */
static vkt_result train(app *a, const frame *now)
{
    uint64_t used_ns = 0, measured_ns = 0;
    TRY(learn_collect(&a->l, now->slot));
    TRY(run_request(a));
    if (!a->o->recorded && (!a->paused || a->request))
        TRY(learn_slices(&a->l, (uint64_t)(a->budget_ms * 1e6), a->request != REQUEST_NONE, &used_ns, &measured_ns));
    times_add(&a->training_times, used_ns);
    if (measured_ns) times_add(&a->measured_times, measured_ns);
    return VKT_OK;
}

static vkt_result record_training(app *a, const frame *now)
{
    return a->o->recorded && !a->paused ? learn_record(&a->l, now) : VKT_OK;
}

/* Records, at the end of a frame, the barrier before the next training. The barrier makes the next training wait until
 * this frame and earlier steps no longer use the parameters. The library's copies wait, too: the actions of run_request
 * read or write the parameters, and a submission of the library does not begin with a barrier. */
static void record_hand_over(const app *a, const frame *now)
{
    VkMemoryBarrier2 before, after;
    learn_barriers(&a->l, &before, &after);
    before.srcStageMask = after.srcStageMask | VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT;
    before.srcAccessMask = after.srcAccessMask;
    before.dstStageMask |= VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT;
    before.dstAccessMask |= VK_ACCESS_2_TRANSFER_READ_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT;
    memory_barrier(&a->d, now->cmd, &before);
}

/* Records the barrier after the training, before the fragment shader reads the parameters. */
static void record_results(const app *a, const frame *now)
{
    VkMemoryBarrier2 before, after;
    learn_barriers(&a->l, &before, &after);
    after.dstStageMask = VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT;
    after.dstAccessMask = VK_ACCESS_2_SHADER_READ_BIT;
    memory_barrier(&a->d, now->cmd, &after);
}

static vkt_result record_drawing(app *a, const frame *now, const canvas *to, const buffer *copy)
{
    const panel_state s = { .device = a->d.info.name,
                            .steps = learn_steps(&a->l),
                            .loss = &a->l.loss,
                            .psnr = learn_recent_psnr(&a->l),
                            .frames = &a->frame_times,
                            .training = &a->training_times,
                            .measured = &a->measured_times,
                            .host = &a->host_times,
                            .budget_ms = a->o->recorded || a->o->headless ? 0 : a->budget_ms,
                            .paused = a->paused };
    TRY(panel_draw(&s, to->extent.width, a->a.upload[now->slot].map));
    record_results(a, now);
    renderer_record(&a->a, now, to);
    canvas_end(&a->d, now->cmd, to, copy);
    record_hand_over(a, now);
    return VKT_OK;
}

static void end_frame_time(app *a)
{
    const uint64_t now = session_now_ns();
    if (a->frame_start_ns) times_add(&a->frame_times, now - a->frame_start_ns);
    a->frame_start_ns = now;
}

/* ---- screenshots ---- */

static vkt_result begin_screenshot(const app *a, const canvas *of, buffer *copy)
{
    if (of->window && !(a->w.usage & VK_IMAGE_USAGE_TRANSFER_SRC_BIT)) {
        complain("%s: images of this window cannot be copied", a->o->screenshot);
        return VKT_E_UNSUPPORTED;
    }
    return canvas_copy_create(&a->d, of, copy);
}

static vkt_result write_screenshot(const app *a, const canvas *of, const buffer *copy)
{
    TRY_VK(&a->d.vk, DeviceWaitIdle, a->d.handle);
    return canvas_copy_write(of, copy, a->o->screenshot);
}

/* ---- without a screen ---- */

static vkt_result record_alone(app *a)
{
    frame *now;
    TRY(frames_begin(&a->f, &now));
    TRY(learn_collect(&a->l, now->slot));
    TRY(record_training(a, now));
    record_hand_over(a, now);
    return frames_submit(&a->f, now, VK_NULL_HANDLE, VK_NULL_HANDLE);
}

static vkt_result train_whole(app *a)
{
    TRY(learn_step(&a->l));
    return learn_collect(&a->l, 0);
}

static vkt_result draw_sheet(app *a)
{
    const canvas sheet = canvas_of_sheet(&a->sheet);
    frame *now;
    buffer copy = { 0 };
    vkt_result r = begin_screenshot(a, &sheet, &copy);
    if (r == VKT_OK) r = frames_begin(&a->f, &now);
    if (r == VKT_OK) r = record_drawing(a, now, &sheet, &copy);
    if (r == VKT_OK) r = frames_submit(&a->f, now, VK_NULL_HANDLE, VK_NULL_HANDLE);
    if (r == VKT_OK) r = write_screenshot(a, &sheet, &copy);
    a->d.vk.DeviceWaitIdle(a->d.handle);
    buffer_destroy(&a->d, &copy);
    return r;
}

static vkt_result run_headless(app *a)
{
    for (uint32_t i = 1; i <= a->o->headless && !session_interrupted(); i++) {
        TRY(a->o->recorded ? record_alone(a) : train_whole(a));
        end_frame_time(a);
        if (i % SHOWN_EVERY == 0 && !a->s->o.quiet) printf("step %-6u %.2f dB\n", i, learn_recent_psnr(&a->l));
    }
    TRY_VK(&a->d.vk, DeviceWaitIdle, a->d.handle);
    return a->o->screenshot ? draw_sheet(a) : VKT_OK;
}

/* ---- in a window ---- */

static void on_key(app *a, char key)
{
    switch (key) {
    case ' ': a->paused = !a->paused; break;
    case 'r': a->request = REQUEST_RESET; break;
    case 's': a->request = REQUEST_SAVE; break;
    case 'l': a->request = REQUEST_LOAD; break;
    case '+':
        if (a->budget_ms < most_budget_ms) a->budget_ms *= 2;
        break;
    case '-':
        if (a->budget_ms > least_budget_ms) a->budget_ms /= 2;
        break;
    case 'q': a->quit = true; break;
    default: break;
    }
}

static void handle_keys(app *a, uint64_t frame_number)
{
    char keys[WINDOW_MAX_KEYS];
    const uint32_t n = window_keys(&a->w, keys);
    for (uint32_t i = 0; i < n; i++) on_key(a, keys[i]);
    if (a->o->keys && frame_number < strlen(a->o->keys)) on_key(a, a->o->keys[frame_number]);
}

static vkt_result renew(app *a)
{
    TRY_VK(&a->d.vk, DeviceWaitIdle, a->d.handle);
    TRY(window_renew(&a->w));
    return a->w.extent.width == a->a.panel.extent.width ? VKT_OK : renderer_set_width(&a->a, a->w.extent.width);
}

typedef struct host_clock {
    uint64_t wall_ns, cpu_ns; /* cpu_ns: CPU time of this thread */
} host_clock;

static host_clock host_now(void)
{
    struct timespec cpu;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    return (host_clock){ session_now_ns(), (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec };
}

static void add_since(host_clock *spent, host_clock start)
{
    const host_clock now = host_now();
    spent->wall_ns += now.wall_ns - start.wall_ns;
    spent->cpu_ns += now.cpu_ns - start.cpu_ns;
}

/* Calls `train`, then draws one frame. `copy` gets a copy of the frame (NULL: no copy). If window_acquire returns no
 * image, draws nothing and returns VKT_OK. */
static vkt_result one_frame(app *a, const buffer *copy)
{
    frame *now;
    uint32_t image;
    TRY(frames_begin(&a->f, &now));
    host_clock spent = { 0 }, start = host_now();
    TRY(train(a, now));
    add_since(&spent, start);
    TRY(window_acquire(&a->w, now->acquired, &image));
    if (image == UINT32_MAX) return VKT_OK; /* no image was acquired: now->cmd, still empty, is not submitted */
    start = host_now();
    TRY(record_training(a, now));
    add_since(&spent, start);
    times_add(&a->host_times, spent.wall_ns);
    times_add(&a->cpu_times, spent.cpu_ns);
    const window_image *shown = &a->w.images[image];
    const canvas to = { shown->handle, shown->view, a->w.extent, a->w.format.format, true };
    TRY(record_drawing(a, now, &to, copy));
    TRY(frames_submit(&a->f, now, now->acquired, shown->drawn));
    TRY(window_present(&a->w, image));
    end_frame_time(a);
    return VKT_OK;
}

static vkt_result last_frame(app *a)
{
    buffer copy = { 0 };
    const uint64_t before = a->f.n;
    vkt_result r = a->w.stale ? renew(a) : VKT_OK;
    const canvas shown = { .extent = a->w.extent, .format = a->w.format.format, .window = true };
    if (r == VKT_OK) r = begin_screenshot(a, &shown, &copy);
    if (r == VKT_OK) r = one_frame(a, &copy);
    if (r == VKT_OK && a->f.n > before) r = write_screenshot(a, &shown, &copy);
    a->d.vk.DeviceWaitIdle(a->d.handle);
    buffer_destroy(&a->d, &copy);
    return r;
}

static vkt_result run_window(app *a)
{
    const uint64_t first = a->f.n, wanted = a->o->frames ? first + a->o->frames : UINT64_MAX;
    while (!a->quit && a->f.n < wanted && window_poll(&a->w) && !session_interrupted()) {
        handle_keys(a, a->f.n - first);
        if (window_is_minimised(&a->w)) {
            window_sleep();
            continue;
        }
        if (a->w.stale) TRY(renew(a));
        if (a->o->screenshot && a->f.n + 1 == wanted)
            TRY(last_frame(a));
        else
            TRY(one_frame(a, NULL));
    }
    TRY_VK(&a->d.vk, DeviceWaitIdle, a->d.handle);
    return VKT_OK;
}

/* ---- results ---- */

static json_t *json_times(const times *t)
{
    return json_pack("{s:f, s:f, s:f}", "mean", times_mean(t), "median", times_quantile(t, 0.5), "p99",
                     times_quantile(t, 0.99));
}

static json_t *json_rect(rect r)
{
    return json_pack("[i,i,i,i]", (int)r.x, (int)r.y, (int)r.width, (int)r.height);
}

static vkt_result report(app *a, double psnr)
{
    const train_options *t = &a->s->o;
    if (!t->quiet) {
        printf("result  PSNR %.2f dB after %llu steps, over all %u pixels\n", psnr,
               (unsigned long long)learn_steps(&a->l), a->l.pixels);
        printf("%s  %.2f ms on average, 99 %% below %.2f ms\n", a->has_screen ? "frames" : "steps ",
               times_mean(&a->frame_times), times_quantile(&a->frame_times, 0.99));
        if (a->has_screen)
            printf(
                "host    %.3f ms of a frame for training, %.3f ms of them on its core; 99 %% below %.3f and %.3f ms\n",
                times_mean(&a->host_times), times_mean(&a->cpu_times), times_quantile(&a->host_times, 0.99),
                times_quantile(&a->cpu_times, 0.99));
        if (a->measured_times.n)
            printf("budget  %g ms; training took %.2f ms in half of the frames, 95 %% are below %.2f ms\n",
                   a->budget_ms, times_quantile(&a->measured_times, 0.5), times_quantile(&a->measured_times, 0.95));
        session_print_memory(a->s);
    }
    if (!t->json) return VKT_OK;
    const arrangement at = arrange(a->has_screen ? a->w.extent : a->sheet.extent, &a->target);
    json_t *o =
        json_pack("{s:I, s:I, s:o, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "steps", (json_int_t)learn_steps(&a->l),
                  "frames", (json_int_t)a->frame_times.n, "psnr", real_or_null(psnr), "budget_ms", a->budget_ms,
                  "frame_ms", json_times(&a->frame_times), "training_ms", json_times(&a->training_times), "measured_ms",
                  json_times(&a->measured_times), "host_ms", json_times(&a->host_times), "host_cpu_ms",
                  json_times(&a->cpu_times), "target", json_rect(at.target), "network", json_rect(at.network));
    return write_results(a->s, o) ? VKT_OK : VKT_E_IO;
}

static vkt_result run(app *a)
{
    double psnr;
    TRY(open_app(a));
    if (!a->s->o.quiet)
        printf("image   %u x %u, %u pixels a step, %llu parameters\n\n", a->target.width, a->target.height,
               a->l.p.batch, (unsigned long long)vkt_store_elements(a->l.store));
    TRY(a->o->headless ? run_headless(a) : run_window(a));
    TRY(learn_psnr(&a->l, &psnr));
    if (a->o->save) TRY(learn_save(&a->l, a->o->save));
    return report(a, psnr);
}

vkt_result view_run(session *s, const view_options *o)
{
    app *a = calloc(1, sizeof *a);
    if (!a) return VKT_E_NOMEM;
    a->s = s;
    a->o = o;
    a->budget_ms = o->budget_ms;
    const vkt_result r = run(a);
    close_app(a);
    free(a);
    return r;
}
