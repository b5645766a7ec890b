/* audit/options.c - see options.h. */
#include "audit/options.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "common/outputs.h"
#include "common/version.h"

enum { OPT_ALL = 256, OPT_SEEDS, OPT_SEED, OPT_EFFORT, OPT_JSON, OPT_LIST };

static const char doc[] =
    "Checks this device: runs every op of a network, forward and backward, and compares it with the same op in double "
    "precision on the CPU, whose gradients are compared with difference quotients."
    "\vNETWORK is one of the reference networks that --list prints; each node of its training step is audited once, on "
    "random numbers at its own shapes, or with a smaller batch where the reference would take too long. Graphs of your "
    "own: vkt_audit_graph in vktrain/audit.h. Errors are printed in percent of the op's tolerance. "
    "Exit status: 0 all is right, 1 something is wrong or could not be run, 2 the command line is.";

static const struct argp_option table[] = {
    { 0, 0, 0, 0, "What to audit", 1 },
    { "all", OPT_ALL, 0, 0, "every op, at random shapes", 1 },
    { "filter", 'f', "REGEX", 0, "with --all: only ops whose name matches (an extended regular expression)", 1 },
    { "seeds", OPT_SEEDS, "N", 0, "with --all: random cases of each op (8)", 1 },
    { "seed", OPT_SEED, "N", 0, "of the random numbers, the first one with --all (1)", 1 },
    { "effort", OPT_EFFORT, "SECONDS", 0,
      "about the time of the reference for a node (1); larger nodes are made smaller", 1 },
    { "device", 'D', "N|NAME", 0, "number or a part of the name of a Vulkan device", 1 },
    { "list", OPT_LIST, 0, 0, "print networks and ops, and end", 1 },
    { 0, 0, 0, 0, "Results", 2 },
    { "json", OPT_JSON, "FILE", 0, "write everything: docs/audit.schema.json; - is standard output", 2 },
    { "quiet", 'q', 0, 0, "print only errors and totals", 2 },
    VERSION_OPTIONS,
    { 0 }
};

static uint64_t count(struct argp_state *state, const char *option, const char *text)
{
    char *end;
    errno = 0;
    const unsigned long long n = strtoull(text, &end, 10);
    if (errno || *text < '0' || *text > '9' || *end || n == 0)
        argp_error(state, "%s: want a whole number above 0, got '%s'", option, text);
    return n;
}

static double seconds(struct argp_state *state, const char *text)
{
    char *end;
    const double x = strtod(text, &end);
    if (end == text || *end || !(x > 0) || x > 1e6)
        argp_error(state, "--effort: want seconds above 0, 1e6 at most, got '%s'", text);
    return x;
}

static const regex_t *regex(struct argp_state *state, const char *text)
{
    static regex_t r; /* static, because audit_options.filter points to it */
    char why[160];
    const int error = regcomp(&r, text, REG_EXTENDED | REG_NOSUB);
    if (error) {
        regerror(error, &r, why, sizeof why);
        argp_error(state, "--filter '%s': %s", text, why);
    }
    return &r;
}

/* Checks the combination of options. */
static void check(struct argp_state *state, const audit_options *o)
{
    if (o->list) return;
    if (!o->all && !o->n_networks) argp_error(state, "want a NETWORK (--list prints them) or --all");
    if (!o->all && (o->filter || o->seeds)) argp_error(state, "--filter and --seeds go with --all");
}

static error_t on_option(int key, char *text, struct argp_state *state)
{
    audit_options *o = state->input;
    switch (key) {
    case 'f': o->filter = regex(state, text); break;
    case 'D': o->device = text; break;
    case 'q': o->quiet = true; break;
    case OPT_ALL: o->all = true; break;
    case OPT_SEEDS: o->seeds = count(state, "--seeds", text); break;
    case OPT_SEED: o->seed = count(state, "--seed", text); break;
    case OPT_EFFORT: o->effort = seconds(state, text); break;
    case OPT_JSON: o->json = output_path(text); break;
    case OPT_LIST: o->list = true; break;
    case ARGP_KEY_ARGS:
        o->networks = state->argv + state->next;
        o->n_networks = state->argc - state->next;
        break;
    case ARGP_KEY_END: check(state, o); break;
    default: return version_option(key, state);
    }
    return 0;
}

void audit_options_parse(audit_options *o, int argc, char **argv)
{
    const struct argp parser = { .options = table, .parser = on_option, .args_doc = "[NETWORK...]", .doc = doc };
    *o = (audit_options){ .seed = 1, .argc = argc, .argv = argv };
    parse_arguments(&parser, argc, argv, o);
    if (!o->seeds) o->seeds = 8;
}
