/* nrc/main.c - vkt-nrc: a path tracer, and a network that learns the light of the scene at the same time (a neural
 * irradiance cache). The path tracer computes one random path for each pixel. The network learns from these noisy
 * images. It has a hash grid in three dimensions and a small MLP, and computes light from a position and a normal.
 * (Müller, Rousselle, Novák & Keller, "Real-time Neural Radiance Caching for Path Tracing", SIGGRAPH 2021. In the
 * paper, paths end in the network. In this program no path ends in the network: the image shows the network's light
 * at the first surface.)
 *
 *   graphics/   the code that any application needs to draw with Vulkan
 *   gbuffer     the images of the scene on the device
 *   render      traces paths into the images and draws views
 *   learn       uses the library: reads images, trains, and writes the network's image
 *   app         the loop over frames, which calls the other parts */
#include <stdio.h>

#include "nrc/app.h"

enum { OPT_HEADLESS = 512, OPT_SCREENSHOT, OPT_BUDGET, OPT_FRAMES, OPT_SIZE, OPT_LR, OPT_REFERENCE, OPT_LIBRARY };

static const struct argp_option options[] = {
    { "size", OPT_SIZE, "WxH", 0, "pixels of a view (320x240)", 1 },
    { "lr", OPT_LR, "X", 0, "learning rate (0.01)", 1 },
    { "budget", OPT_BUDGET, "MS", 0, "training on the device in each frame of a window (4)", 1 },
    { "headless", OPT_HEADLESS, "N", 0, "no window: N frames, each with eight steps of training", 1 },
    { "reference", OPT_REFERENCE, "N", 0, "paths for each pixel of the reference of --headless, a multiple of 16 (256)",
      1 },
    { "library", OPT_LIBRARY, 0, 0, "draw by the library's inference at first, not by the fragment shader (key i)", 1 },
    { "frames", OPT_FRAMES, "N", 0, "close the window after N frames", 1 },
    { "screenshot", OPT_SCREENSHOT, "FILE", 0, "write the last image as PNG; in a window it needs --frames", 1 },
    { 0 }
};

static error_t on_option(int key, char *text, struct argp_state *state)
{
    nrc_options *o = state->input;
    int end = 0;
    switch (key) {
    case OPT_SIZE:
        if (sscanf(text, "%4ux%4u%n", &o->width, &o->height, &end) != 2 || text[end] || o->width < 16 ||
            o->height < 16 || o->width > 2048 || o->height > 2048)
            argp_error(state, "--size: want WIDTHxHEIGHT, each from 16 to 2048, got '%s'", text);
        break;
    case OPT_LR: o->lr = (float)option_number(state, "lr", text, 1e-8, 1); break;
    case OPT_BUDGET: o->budget_ms = option_number(state, "budget", text, 0.1, 1000); break;
    case OPT_HEADLESS: o->headless = (uint32_t)option_integer(state, "headless", text, 1, 1000000000); break;
    case OPT_REFERENCE: o->reference = (uint32_t)option_integer(state, "reference", text, 16, 1 << 20) / 16 * 16; break;
    case OPT_LIBRARY: o->library = true; break;
    case OPT_FRAMES: o->frames = (uint32_t)option_integer(state, "frames", text, 1, 1000000000); break;
    case OPT_SCREENSHOT: o->screenshot = text; break;
    case ARGP_KEY_END:
        if (o->screenshot && !o->headless && !o->frames) argp_error(state, "--screenshot needs --headless or --frames");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp more = { .options = options, .parser = on_option };
    nrc_options o = { .width = 320, .height = 240, .lr = 0.01f, .budget_ms = 4, .reference = 256 };
    const train_cli cli = {
        .doc = "A network learns the light of a scene while a path tracer draws it, on this program's own Vulkan "
               "device.\vThe window shows one random path for each pixel, and the network beside it. "
               "Keys: space stops the camera, i draws by the library's inference and by the fragment shader in turns, "
               "q or escape ends.",
        .scope = TRAIN_NOTHING,
        .more = &more,
        .input = &o
    };
    session s = { .o = { .seed = 1 } };
    session_begin(&s, &cli, argc, argv);
    return session_end(&s, nrc_run(&s, &o));
}
