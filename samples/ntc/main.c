/* ntc/main.c - vkt-ntc: a neural compressor of textures. All textures of a material are compressed together. The result
 * is grids of trained latents with a few bits each, and a small network. The network computes all channels of 2 x 2
 * texels from the latents around these texels. (Vaidyanathan et al., "Random-Access Neural Compression of Material
 * Textures", SIGGRAPH 2023.)
 *
 *   set        the compressed set of textures, and its file
 *   bc4        BC4 blocks, encoded and decoded
 *   decode     decodes a set on the CPU, without the library
 *   material   reads and writes the images
 *   plan       chooses grids that fit into a file of the wanted size
 *   train      uses the library: trains latents and network
 *   train_bc4  encodes the latents of a training as BC4 blocks
 *   dds        writes latents as block-compressed textures
 *   job        trains on images, for the commands `pack` and `view`
 *   pack       the commands `pack` and `unpack`
 *   render     draws textures, decoded in a fragment shader
 *   view       the command `view` */
#include <stdio.h>
#include <string.h>

#include "common/message.h"
#include "ntc/pack.h"
#include "ntc/set.h"
#include "ntc/view.h"

enum {
    OPT_BPPC = 512,
    OPT_STEPS,
    OPT_GRIDS,
    OPT_HIDDEN,
    OPT_TILE,
    OPT_LR,
    OPT_ROUNDED,
    OPT_CHECKPOINT,
    OPT_EVERY,
    OPT_RESUME,
    OPT_HEADLESS,
    OPT_FRAMES,
    OPT_SCREENSHOT,
    OPT_BUDGET,
    OPT_DDS,
    OPT_BC4
};

static const struct argp_option options[] = {
    { "output", 'o', "PATH", 0, "pack: the file; unpack: the folder", 1 },
    { "bppc", OPT_BPPC, "X", 0, "most bits of the file for each pixel and channel (0.5)", 1 },
    { "steps", OPT_STEPS, "N", 0, "steps of training, each on one tile (10000)", 1 },
    { "grids", OPT_GRIDS, "LIST", 0,
      "grids instead of those chosen for --bppc: SCALE:FEATURES:BITS or SCALE:FEATURES:BITS:corners, with commas "
      "between; SCALE is even",
      1 },
    { "hidden", OPT_HIDDEN, "N", 0, "numbers of a hidden layer (32)", 1 },
    { "tile", OPT_TILE, "N", 0, "texels of a tile along each side, rounded down to a multiple of 8 (128)", 1 },
    { "lr", OPT_LR, "X", 0, "learning rate of the latents at the first step (0.02)", 1 },
    { "rounded", OPT_ROUNDED, "X", 0,
      "share of the steps with rounded latents, at the end (0.15; the last 0.05 are frozen in any case)", 1 },
    { "bc4", OPT_BC4, NULL, 0,
      "pack: latents that BC4 blocks hold exactly; in the last steps only the network is trained, on these latents",
      1 },
    { "dds", OPT_DDS, NULL, 0, "unpack: write the latents as BC4 blocks, too, and decode those: gridN.dds", 1 },
    { "checkpoint", OPT_CHECKPOINT, "FILE", 0, "pack: save the state of the training", 2 },
    { "checkpoint-every", OPT_EVERY, "N", 0, "pack: steps between two checkpoints (500)", 2 },
    { "resume", OPT_RESUME, "FILE", 0, "pack, view: go on from a checkpoint, with the options of its run", 2 },
    { "budget", OPT_BUDGET, "MS", 0, "view: training on the device in each frame of a window (8)", 3 },
    { "headless", OPT_HEADLESS, "N", 0, "view: no window; N steps, then compare shader, library and CPU", 3 },
    { "frames", OPT_FRAMES, "N", 0, "view: close the window after N frames", 3 },
    { "screenshot", OPT_SCREENSHOT, "FILE", 0, "view: write the last frame as PNG; in a window it needs --frames", 3 },
    { 0 }
};

static error_t on_option(int key, char *text, struct argp_state *state)
{
    ntc_options *o = state->input;
    switch (key) {
    case 'o': o->output = text; break;
    case OPT_BPPC: o->bppc = option_number(state, "bppc", text, 0.01, 24); break;
    case OPT_STEPS: o->steps = option_integer(state, "steps", text, 1, 1000000000); break;
    case OPT_GRIDS: o->grids = text; break;
    case OPT_HIDDEN: o->hidden = (uint32_t)option_integer(state, "hidden", text, 4, 128); break;
    case OPT_TILE: o->tile = (uint32_t)option_integer(state, "tile", text, 8, 8192); break;
    case OPT_LR: o->lr = (float)option_number(state, "lr", text, 1e-8, 1); break;
    case OPT_ROUNDED: o->rounded = option_number(state, "rounded", text, 0, 1); break;
    case OPT_CHECKPOINT: o->checkpoint = text; break;
    case OPT_EVERY: o->checkpoint_every = option_integer(state, "checkpoint-every", text, 1, UINT64_MAX); break;
    case OPT_RESUME: o->resume = text; break;
    case OPT_DDS: o->dds = true; break;
    case OPT_BC4: o->bc4 = true; break;
    case OPT_HEADLESS: o->headless = (uint32_t)option_integer(state, "headless", text, 1, 1000000000); break;
    case OPT_FRAMES: o->frames = (uint32_t)option_integer(state, "frames", text, 1, 1000000000); break;
    case OPT_SCREENSHOT: o->screenshot = text; break;
    case OPT_BUDGET: o->budget_ms = option_number(state, "budget", text, 0.1, 1000); break;
    case ARGP_KEY_END:
        if (o->screenshot && !o->headless && !o->frames) argp_error(state, "--screenshot needs --headless or --frames");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct {
    const char *name;
    uint32_t least, most; /* limits for the number of files */
    vkt_result (*run)(session *s, const ntc_options *o);
} commands[] = {
    { "pack", 1, NTC_MAX_TEXTURES, ntc_pack },
    { "unpack", 1, 1, ntc_unpack },
    { "view", 1, NTC_MAX_TEXTURES, ntc_view },
};

/* Finds an option that the user has given, but the command does not use. Returns the name of the option, and sets *of
 * to the commands that use it. Returns NULL if there is no such option. Options with a default value are not
 * checked. */
static const char *unused_option(const train_options *t, const ntc_options *o,
                                 vkt_result (*run)(session *, const ntc_options *), const char **of)
{
    const bool pack = run == ntc_pack, unpack = run == ntc_unpack, view = run == ntc_view;
    const struct {
        bool unused;
        const char *name, *of;
    } all[] = {
        { o->bc4 && !pack, "--bc4", "pack" },
        { o->checkpoint && !pack, "--checkpoint", "pack" },
        { o->dds && !unpack, "--dds", "unpack" },
        { o->output && view, "--output", "pack and unpack" },
        { o->resume && unpack, "--resume", "pack and view" },
        { o->grids && unpack, "--grids", "pack and view" },
        { t->json && unpack, "--json", "pack and view" },
        { o->headless && !view, "--headless", "view" },
        { o->frames && !view, "--frames", "view" },
        { o->screenshot && !view, "--screenshot", "view" },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        *of = all[i].of;
        if (all[i].unused) return all[i].name;
    }
    return NULL;
}

/* Returns the index of the command in `commands`. If the command line is wrong, prints a message and returns -1. */
static int command_of(const train_options *t, const ntc_options *o)
{
    for (int i = 0; t->n_files && i < (int)(sizeof commands / sizeof *commands); i++) {
        if (strcmp(t->files[0], commands[i].name) != 0) continue;
        const char *of, *unused = unused_option(t, o, commands[i].run, &of);
        if (t->n_files - 1 < commands[i].least || t->n_files - 1 > commands[i].most)
            complain_of_usage("%s: want %u to %u files, got %u", commands[i].name, commands[i].least, commands[i].most,
                              t->n_files - 1);
        else if (unused)
            complain_of_usage("%s: %s is an option of %s: leave it out", commands[i].name, unused, of);
        else if (!o->output && commands[i].run != ntc_view)
            complain_of_usage("%s: want an output: -o PATH", commands[i].name);
        else
            return i;
        return -1;
    }
    complain_of_usage("want a command: pack IMAGE... -o FILE, unpack FILE -o FOLDER, view IMAGE..., or view FILE");
    return -1;
}

int main(int argc, char **argv)
{
    static const struct argp more = { .options = options, .parser = on_option };
    ntc_options o = {
        .bppc = 0.5, .steps = 10000, .hidden = 32, .tile = 128, .lr = 0.02f, .rounded = 0.15, .checkpoint_every = 500
    };
    const train_cli cli = { .doc = "Compresses the textures of a material with a small network.",
                            .scope = TRAIN_NOTHING,
                            .arguments = "pack IMAGE... -o FILE\nunpack FILE -o FOLDER\nview IMAGE...\nview FILE",
                            .more = &more,
                            .input = &o };
    session s = { .o = { .seed = 1 } };
    session_begin(&s, &cli, argc, argv);
    const int command = command_of(&s.o, &o);
    if (command < 0) {
        session_end(&s, VKT_OK);
        return 2;
    }
    return session_end(&s, commands[command].run(&s, &o));
}
