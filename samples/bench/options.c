/* bench/options.c - see options.h. */
#include "bench/options.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "base/variant.h"
#include "common/message.h"
#include "common/outputs.h"
#include "common/version.h"

enum {
    OPT_SHAPES = 256,
    OPT_SIZES,
    OPT_MIN_TIME,
    OPT_JSON,
    OPT_CSV,
    OPT_COMPARE,
    OPT_PLOT,
    OPT_LIST,
    OPT_VARIANT,
    OPT_TUNE,
    OPT_PRECISION,
    OPT_PREFERRED
};

static const char doc[] =
    "Verifies and times every op of vktrain on a Vulkan device, forward and for each gradient, by each variant of its "
    "kernels; whole training steps; and what the device itself can do."
    "\vNames are whole experiments, as in 'conv2d d0 (128,32,13,13)b (64,32,5,5) (64) [tile]', 'step "
    "mnist-b128 train' or 'micro dispatch'; --filter is an extended regular expression that any part of a name may "
    "match. Times are medians; GPU timestamps where the device has them.";

static const struct argp_option table[] = {
    { 0, 0, 0, 0, "What to measure", 1 },
    { "filter", 'f', "REGEX", 0, "only experiments whose name matches", 1 },
    { "sizes", OPT_SIZES, "small|net|large", 0,
      "random small cases; the shapes of the reference networks and whole steps of them (default); big shapes and "
      "steps",
      1 },
    { "shapes", OPT_SHAPES, "FILE", 0, "cases of this file, a line each: see samples/bench/case.h", 1 },
    { "variant", OPT_VARIANT, "NAME", 0, "only by this variant, where there is a choice", 1 },
    { "preferred", OPT_PREFERRED, 0, 0, "only by the variants that the engine chooses", 1 },
    { "precision", OPT_PRECISION, "f32|f16|bf16|f32-split", 0, "in which steps are computed (f32)", 1 },
    { "min-time", OPT_MIN_TIME, "MS", 0, "to spend on each experiment, per clock (100)", 1 },
    { "device", 'D', "N|NAME", 0, "number or a part of the name of a Vulkan device", 1 },
    { "list", OPT_LIST, 0, 0, "print ops, variants, networks and measurements, and end", 1 },
    { 0, 0, 0, 0, "Results", 2 },
    { "json", OPT_JSON, "FILE", 0, "write everything: docs/bench.schema.json; here and for --csv, - is standard output",
      2 },
    { "csv", OPT_CSV, "FILE", 0, "write one line per experiment", 2 },
    { "compare", OPT_COMPARE, "OLD.json", 0, "mark what changed beyond the noise; status 3 when something is slower",
      2 },
    { "plot", OPT_PLOT, "FILE", 0, "draw the roofline (.svg or .png)", 2 },
    { "tune", OPT_TUNE, "NETWORK", 0,
      "time the variants within this network's step (or 'all' of --sizes net) and write the tuning file that programs "
      "read; of the other options, only --precision, --min-time and --device are allowed",
      2 },
    VERSION_OPTIONS,
    { 0 }
};

static bool has_ending(const char *path, const char *ending)
{
    const size_t n = strlen(path), k = strlen(ending);
    return n > k && strcasecmp(path + n - k, ending) == 0;
}

static uint64_t milliseconds(struct argp_state *state, const char *text)
{
    char *end;
    const double x = strtod(text, &end);
    if (end == text || *end || !(x > 0) || x > 1e7) argp_error(state, "--min-time: want ms above 0, got '%s'", text);
    return (uint64_t)(x * 1e6) + 1;
}

static bench_sizes sizes(struct argp_state *state, const char *text)
{
    for (int i = BENCH_SIZES_NET; i <= BENCH_SIZES_LARGE; i++)
        if (strcmp(text, bench_sizes_name((bench_sizes)i)) == 0) return (bench_sizes)i;
    argp_error(state, "--sizes: want small, net or large, got '%s'", text);
    return BENCH_SIZES_NET;
}

static uint64_t variant(struct argp_state *state, const char *text)
{
    vkt_variant v;
    if (!vkt_variant_find(text, &v)) argp_error(state, "--variant: '%s' is no variant; --list prints them", text);
    return (uint64_t)1 << v;
}

static vkt_precision precision(struct argp_state *state, const char *text)
{
    for (int i = VKT_PRECISION_F32; i <= VKT_PRECISION_F32_SPLIT; i++)
        if (strcmp(text, bench_precision_name((vkt_precision)i)) == 0) return (vkt_precision)i;
    argp_error(state, "--precision: want f32, f16, bf16 or f32-split, got '%s'", text);
    return VKT_PRECISION_F32;
}

static const regex_t *regex(struct argp_state *state, const char *text)
{
    static regex_t r; /* static, because bench_options.filter points to it */
    char why[160];
    const int error = regcomp(&r, text, REG_EXTENDED | REG_NOSUB);
    if (error) {
        regerror(error, &r, why, sizeof why);
        argp_error(state, "--filter '%s': %s", text, why);
    }
    return &r;
}

/* Refuses --tune together with an option that it would ignore. */
static void check_tune(struct argp_state *state, const bench_options *o)
{
    const struct {
        const char *name;
        bool given;
    } ignored[] = { { "filter", o->filter != NULL }, { "sizes", o->sizes != BENCH_SIZES_NET },
                    { "shapes", o->shapes != NULL }, { "variant", o->variant != 0 },
                    { "preferred", o->preferred },   { "json", o->json != NULL },
                    { "csv", o->csv != NULL },       { "compare", o->compare != NULL },
                    { "plot", o->plot != NULL } };
    for (size_t i = 0; o->tune && i < VKT_COUNT(ignored); i++)
        if (ignored[i].given) argp_error(state, "--tune has no use for --%s: leave one of them out", ignored[i].name);
}

static error_t on_option(int key, char *text, struct argp_state *state)
{
    bench_options *o = state->input;
    switch (key) {
    case 'f': o->filter = regex(state, text); break;
    case 'D': o->device = text; break;
    case OPT_SHAPES: o->shapes = text; break;
    case OPT_SIZES: o->sizes = sizes(state, text); break;
    case OPT_MIN_TIME: o->min_ns = milliseconds(state, text); break;
    case OPT_JSON: o->json = output_path(text); break;
    case OPT_CSV: o->csv = output_path(text); break;
    case OPT_COMPARE: o->compare = text; break;
    case OPT_PLOT:
        if (!has_ending(text, ".svg") && !has_ending(text, ".png"))
            argp_error(state, "--plot: want a name that ends with .svg or .png, got '%s'", text);
        o->plot = text;
        break;
    case OPT_LIST: o->list = true; break;
    case OPT_VARIANT: o->variant = variant(state, text); break;
    case OPT_TUNE: o->tune = text; break;
    case OPT_PREFERRED: o->preferred = true; break;
    case OPT_PRECISION: o->precision = precision(state, text); break;
    case ARGP_KEY_ARG: argp_error(state, "'%s' is no option", text); break;
    case ARGP_KEY_END: check_tune(state, o); break;
    default: return version_option(key, state);
    }
    return 0;
}

void bench_options_parse(bench_options *o, int argc, char **argv)
{
    const struct argp parser = { .options = table, .parser = on_option, .doc = doc };
    *o = (bench_options){ .min_ns = 100000000, .argc = argc, .argv = argv };
    parse_arguments(&parser, argc, argv, o);
}

const char *bench_sizes_name(bench_sizes s)
{
    static const char *const names[] = {
        [BENCH_SIZES_NET] = "net", [BENCH_SIZES_SMALL] = "small", [BENCH_SIZES_LARGE] = "large"
    };
    return names[s];
}

const char *bench_precision_name(vkt_precision p)
{
    static const char *const names[] = {
        [VKT_PRECISION_F32] = "f32",
        [VKT_PRECISION_F16] = "f16",
        [VKT_PRECISION_BF16] = "bf16",
        [VKT_PRECISION_F32_SPLIT] = "f32-split",
    };
    return names[p];
}
