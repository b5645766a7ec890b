/* info/options.c - see options.h. */
#include "info/options.h"

#include <argp.h>

#include "common/message.h"
#include "common/outputs.h"
#include "common/version.h"

enum { OPT_LIST_DEVICES = 256, OPT_JSON };

static const char doc[] =
    "What vktrain finds on this machine: the Vulkan devices, what the chosen one can do of what the library makes use "
    "of, its memory, the files that are kept for it, and which variant of its kernels each op takes on it."
    "\vNETWORK is one of the reference networks that vkt-bench --list prints; without one, all of them are shown. A "
    "CASE "
    "is an op on shapes of your own, as in a shapes file of vkt-bench: vkt-info 'matmul (512,64) (64,512)'. Ops that "
    "are not listed have one way to compute. Exit status: 0, 1 where no device can be used or a question has no "
    "answer, 2 an option is "
    "wrong.";

static const struct argp_option table[] = {
    { "device", 'D', "N|NAME", 0, "number or a part of the name of a Vulkan device", 1 },
    { "list-devices", OPT_LIST_DEVICES, 0, 0, "print the devices and end", 1 },
    { "json", OPT_JSON, "FILE", 0, "write everything: docs/info.schema.json; - is standard output", 1 },
    VERSION_OPTIONS,
    { 0 }
};

static error_t on_option(int key, char *text, struct argp_state *state)
{
    info_options *o = state->input;
    switch (key) {
    case 'D': o->device = text; break;
    case OPT_LIST_DEVICES: o->list_devices = true; break;
    case OPT_JSON: o->json = output_path(text); break;
    case ARGP_KEY_ARGS:
        o->work = state->argv + state->next;
        o->n_work = state->argc - state->next;
        break;
    case ARGP_KEY_END:
        if (o->list_devices && (o->json || o->n_work)) argp_error(state, "--list-devices goes alone");
        break;
    default: return version_option(key, state);
    }
    return 0;
}

void info_options_parse(info_options *o, int argc, char **argv)
{
    const struct argp parser = { .options = table, .parser = on_option, .args_doc = "[NETWORK|CASE...]", .doc = doc };
    *o = (info_options){ 0 };
    parse_arguments(&parser, argc, argv, o);
}
