/* view/main.c - vkt-view: training inside a program that owns its Vulkan device and draws frames with it. The network
 * is a hash grid and a small MLP. It computes the colour at a position of an image. A fragment shader draws the image,
 * and reads the published parameters directly in the library's buffers.
 *
 *   graphics/   the parts that any application with Vulkan has. Only two files of graphics/ call the library. device.c
 *               creates a device that fulfils the library's needs, and makes the library's context. rgba_image.c reads
 *               and writes image files
 *   learn       the training with the library. A step is submitted whole, submitted in slices, or recorded
 *   draw, panel the drawing of a frame (panel: its curves and text)
 *   app         the loop over frames, which calls the other parts */
#include <stdio.h>

#include "view/app.h"

enum {
    OPT_IMAGE = 512,
    OPT_HEADLESS,
    OPT_SCREENSHOT,
    OPT_BUDGET,
    OPT_FRAMES,
    OPT_RECORDED,
    OPT_BATCH,
    OPT_SIDE,
    OPT_LR,
    OPT_SAVE,
    OPT_LOAD,
    OPT_KEYS,
    OPT_MAX_PIXELS
};

static const struct argp_option options[] = {
    { "image", OPT_IMAGE, "FILE", 0, "a PNG or JPEG file to learn; else one that the sample draws", 1 },
    { "side", OPT_SIDE, "N", 0, "most pixels along a side of it (256)", 1 },
    { "max-pixels", OPT_MAX_PIXELS, "N", 0, "read a file of up to N pixels (16 million, and 64 for each of its bytes)",
      1 },
    { "batch", OPT_BATCH, "N", 0, "pixels of a step (8192)", 1 },
    { "lr", OPT_LR, "X", 0, "learning rate (0.01)", 1 },
    { "budget", OPT_BUDGET, "MS", 0, "training on the device in each frame (4); arrow keys change it", 1 },
    { "recorded", OPT_RECORDED, 0, 0, "a whole step in each frame's own command buffer, instead of a budget", 1 },
    { "headless", OPT_HEADLESS, "N", 0, "no window: N steps, as fast as they go", 1 },
    { "frames", OPT_FRAMES, "N", 0, "close the window after N frames", 1 },
    { "screenshot", OPT_SCREENSHOT, "FILE", 0, "write the last frame as PNG; in a window it wants --frames", 1 },
    { "save", OPT_SAVE, "FILE", 0, "weights as safetensors: at the end, and by key s (vkt-view.safetensors)", 1 },
    { "load", OPT_LOAD, "FILE", 0, "begin with these weights; key l loads them again (vkt-view.safetensors)", 1 },
    { "keys", OPT_KEYS, "TEXT", 0, "keys that press themselves, one a frame, for demonstrations; + and - are arrows",
      1 },
    { 0 }
};

static error_t on_option(int key, char *text, struct argp_state *state)
{
    view_options *o = state->input;
    switch (key) {
    case OPT_IMAGE: o->image = text; break;
    case OPT_SIDE: o->side = (uint32_t)option_integer(state, "side", text, 16, 2048); break;
    case OPT_MAX_PIXELS: o->max_pixels = option_integer(state, "max-pixels", text, 1, UINT32_MAX); break;
    case OPT_BATCH: o->batch = (uint32_t)option_integer(state, "batch", text, 64, 1 << 20); break;
    case OPT_LR: o->lr = (float)option_number(state, "lr", text, 1e-8, 1); break;
    case OPT_BUDGET: o->budget_ms = option_number(state, "budget", text, 0.1, 1000); break;
    case OPT_RECORDED: o->recorded = true; break;
    case OPT_HEADLESS: o->headless = (uint32_t)option_integer(state, "headless", text, 1, 1000000000); break;
    case OPT_FRAMES: o->frames = (uint32_t)option_integer(state, "frames", text, 1, 1000000000); break;
    case OPT_SCREENSHOT: o->screenshot = text; break;
    case OPT_SAVE: o->save = text; break;
    case OPT_LOAD: o->load = text; break;
    case OPT_KEYS: o->keys = text; break;
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
    view_options o = { .side = 256, .batch = 8192, .lr = 0.01f, .budget_ms = 4 };
    const train_cli cli = {
        .doc = "A network learns an image while it is drawn, on the Vulkan device of this program's own.\v"
               "Keys: space pauses, r begins anew, up and down change the budget, s saves, l loads, q or escape ends.",
        .scope = TRAIN_NOTHING,
        .more = &more,
        .input = &o
    };
    session s = { .o = { .seed = 1 } };
    session_begin(&s, &cli, argc, argv);
    return session_end(&s, view_run(&s, &o));
}
