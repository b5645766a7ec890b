/* common/options.c - see options.h. */
#include "common/options.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/message.h"
#include "common/schedules.h"
#include "common/terminal.h"
#include "common/version.h"

enum {
    OPT_LIST_DEVICES = 256,
    OPT_EPOCHS,
    OPT_BATCH,
    OPT_LR,
    OPT_OPTIMIZER,
    OPT_WEIGHT_DECAY,
    OPT_CLIP_NORM,
    OPT_MICRO_BATCHES,
    OPT_SCHEDULE,
    OPT_WARMUP,
    OPT_FIND_LR,
    OPT_RECOMPUTE,
    OPT_PRECISION,
    OPT_EMA,
    OPT_SEED,
    OPT_PATIENCE,
    OPT_MONITOR,
    OPT_ALLOW_NONFINITE,
    OPT_RUN,
    OPT_CHECKPOINT,
    OPT_CHECKPOINT_EVERY,
    OPT_RESUME,
    OPT_LOAD,
    OPT_SAVE,
    OPT_MEMORY_LIMIT,
    OPT_STREAM,
    OPT_JSON,
    OPT_HISTORY,
    OPT_PLOT,
    OPT_PROFILE,
    OPT_PREDICT,
    OPT_CLASS_WEIGHTS,
    OPT_LABEL_SMOOTHING,
    OPT_REPORT,
    OPT_CONFUSION
};

static const struct argp_option table[] = {
    { 0, 0, 0, 0, "Device and data", 1 },
    { "device", 'D', "N|NAME", 0, "number of --list-devices or a part of the device's name", 1 },
    { "list-devices", OPT_LIST_DEVICES, 0, 0, "print the devices and end", 1 },
    { "memory-limit", OPT_MEMORY_LIMIT, "SIZE", 0, "most device memory to hold, for instance 512MiB or 2GiB", 1 },
    { "data", 'd', "PATH", 0, "", 1 },
    { "stream", OPT_STREAM, 0, 0, "keep the data in host memory and stream it", 1 },
    { 0, 0, 0, 0, "Training", 2 },
    { "epochs", OPT_EPOCHS, "N", 0, "passes over the training set", 2 },
    { "batch", OPT_BATCH, "N", 0, "samples per step, or per micro-batch", 2 },
    { "lr", OPT_LR, "X", 0, "learning rate", 2 },
    { "optimizer", OPT_OPTIMIZER, "NAME", 0,
      "adam, keras-adam, adamw, nadam, keras-nadam, rmsprop, adagrad, sgd; momentum or nesterov: sgd with momentum 0.9",
      2 },
    { "weight-decay", OPT_WEIGHT_DECAY, "X", 0, "L2, or decoupled as adamw has it; instead of the optimizer's own", 2 },
    { "clip-norm", OPT_CLIP_NORM, "X", 0,
      "gradient clipping by global norm: scale all gradients down where their norm is larger than X", 2 },
    { "micro-batches", OPT_MICRO_BATCHES, "N", 0,
      "gradient accumulation: add up the gradients of N batches for each step (1)", 2 },
    { "schedule", OPT_SCHEDULE, "NAME", 0, schedules_help, 2 },
    { "warmup", OPT_WARMUP, "N", 0,
      "let the rate rise linearly over the first N steps; with a schedule by epochs, over N epochs", 2 },
    { "find-lr", OPT_FIND_LR, "FILE", 0,
      "train 100 steps at most, at rates that rise from a thousandth of --lr to a thousand times it, draw their losses "
      "(.svg or .png), suggest a rate and end",
      2 },
    { "recompute", OPT_RECOMPUTE, 0, 0,
      "compute cheap activations again instead of keeping them: less memory, more time", 2 },
    { "precision", OPT_PRECISION, "NAME", 0,
      "how activations are stored: f32 (default), f16 (with loss scaling) or bf16", 2 },
    { "ema", OPT_EMA, "DECAY", 0,
      "average the weights over the steps, with 0.999 for instance; what is evaluated and saved is the average", 2 },
    { "class-weights", OPT_CLASS_WEIGHTS, "LIST|FILE", 0,
      "how much a row of each class counts in training: numbers with commas, a file of them, or balanced (rare classes "
      "more); validation losses are not weighted",
      2 },
    { "label-smoothing", OPT_LABEL_SMOOTHING, "X", 0,
      "in training, spread this part of each label over all classes (0; often 0.1)", 2 },
    { "seed", OPT_SEED, "N", 0, "seed of all random numbers", 2 },
    { "patience", OPT_PATIENCE, "N", 0, "stop after N epochs that are no better (0: never)", 2 },
    { "monitor", OPT_MONITOR, "NAME", 0,
      "what the best epoch (marked *) is chosen by: accuracy or loss (of the validation set), train_acc or train_loss; "
      "default: "
      "the accuracy if there is one, else the loss",
      2 },
    { "allow-nonfinite", OPT_ALLOW_NONFINITE, 0, 0,
      "train on when a loss is NaN or infinite (default: stop with status 1)", 2 },
    { 0, 0, 0, 0, "Files", 3 },
    { "run", OPT_RUN, "DIR", 0,
      "one folder for all of it: checkpoint, best weights, results, history, plot, options, log and event files for "
      "TensorBoard; the same --run again goes on",
      3 },
    { "checkpoint", OPT_CHECKPOINT, "FILE", 0, "full training state, rewritten after every epoch", 3 },
    { "checkpoint-every", OPT_CHECKPOINT_EVERY, "N", 0, "and after every so many batches", 3 },
    { "resume", OPT_RESUME, "FILE", 0, "go on from a checkpoint, bit for bit, to --epochs in all", 3 },
    { "load", OPT_LOAD, "FILE", 0, "begin with these weights (safetensors, PyTorch's names)", 3 },
    { "save", OPT_SAVE, "FILE", 0, "write the best weights at the end (safetensors)", 3 },
    { "json", OPT_JSON, "FILE", 0, "write the results as one JSON object; here and below, - is standard output", 3 },
    { "history", OPT_HISTORY, "FILE", 0, "write the epochs as CSV", 3 },
    { "plot", OPT_PLOT, "FILE", 0, "draw loss and accuracy (.svg or .png)", 3 },
    { "profile", OPT_PROFILE, "FILE", 0, "write a Chrome/Perfetto trace of one step's GPU kernels", 3 },
    { "confusion", OPT_CONFUSION, "FILE", 0, "write the confusion matrix at the end (.svg, .png or .csv)", 3 },
    { "report", OPT_REPORT, 0, 0, "print precision, recall and F1 of each class at the end", 3 },
    { "predict", OPT_PREDICT, 0, 0, "", 3 },
    { 0, 0, 0, 0, "Other", 9 }, /* groups 5 to 8 are for the options of a sample */
    { "quiet", 'q', 0, 0, "print nothing but errors", 9 },
    VERSION_OPTIONS,
    { 0 }
};

static const struct {
    const char *name;
    vkt_optimizer value;
} optimizers[] = {
    { "adam", { .kind = VKT_ADAM } },
    { "keras-adam", { .kind = VKT_ADAM, .keras = true } },
    { "adamw", { .kind = VKT_ADAMW } },
    { "nadam", { .kind = VKT_NADAM } },
    { "keras-nadam", { .kind = VKT_NADAM, .keras = true } },
    { "rmsprop", { .kind = VKT_RMSPROP } },
    { "adagrad", { .kind = VKT_ADAGRAD } },
    { "sgd", { .kind = VKT_SGD } },
    { "momentum", { .kind = VKT_SGD, .momentum = 0.9f } },
    { "nesterov", { .kind = VKT_SGD, .momentum = 0.9f, .nesterov = true } },
};

const char *precision_name(vkt_precision p)
{
    static const char *const names[] = {
        [VKT_PRECISION_F32] = "f32", [VKT_PRECISION_F16] = "f16", [VKT_PRECISION_BF16] = "bf16"
    };
    return names[p];
}

/* ---- values: each function ends the program with a message if `text` is not valid ---- */

uint64_t option_integer(struct argp_state *state, const char *option, const char *text, uint64_t least, uint64_t most)
{
    char *end;
    errno = 0;
    const unsigned long long n = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || errno || n < least || n > most)
        argp_error(state, "--%s: want an integer from %llu to %llu, got '%s'", option, (unsigned long long)least,
                   (unsigned long long)most, text);
    return n;
}

double option_number(struct argp_state *state, const char *option, const char *text, double least, double most)
{
    char *end;
    const double x = strtod(text, &end);
    if (end == text || *end || !(x >= least && x <= most))
        argp_error(state, "--%s: want a number from %g to %g, got '%s'", option, least, most, text);
    return x;
}

static uint32_t integer32(struct argp_state *state, const char *option, const char *text, uint32_t least)
{
    return (uint32_t)option_integer(state, option, text, least, UINT32_MAX);
}

static float above_zero(struct argp_state *state, const char *option, const char *text)
{
    char *end;
    const float x = strtof(text, &end);
    if (end == text || *end || !isfinite(x) || x <= 0)
        argp_error(state, "--%s: want a number above 0, got '%s'", option, text);
    return x;
}

/* Reads "512M": a number of bytes, or one with K, M, G, T (powers of 1024, also KiB or KB). */
static uint64_t size(struct argp_state *state, const char *text)
{
    static const char units[] = "KMGT";
    char *end;
    errno = 0;
    uint64_t n = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    const unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    const char *rest = end + (unit != NULL);
    const bool good = !*rest || strcmp(rest, "B") == 0 || (unit && strcmp(rest, "iB") == 0);
    if (!isdigit((unsigned char)text[0]) || errno || !good || n == 0 || n > UINT64_MAX >> shift)
        argp_error(state, "--memory-limit: want a size such as 512MiB or 2GiB, got '%s'", text);
    return n << shift;
}

static vkt_optimizer optimizer(struct argp_state *state, const char *text)
{
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++)
        if (strcmp(text, optimizers[i].name) == 0) return optimizers[i].value;
    char names[160] = "";
    for (size_t i = 0, at = 0; i < sizeof optimizers / sizeof *optimizers && at < sizeof names; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", optimizers[i].name);
    argp_error(state, "--optimizer: want one of %s; got '%s'", names, text);
    return optimizers[0].value;
}

static vkt_precision precision(struct argp_state *state, const char *text)
{
    for (int i = 0; i < 3; i++)
        if (strcmp(text, precision_name((vkt_precision)i)) == 0) return (vkt_precision)i;
    argp_error(state, "--precision: want f32, f16 or bf16, got '%s'", text);
    return VKT_PRECISION_F32;
}

static vkt_monitor monitor(struct argp_state *state, const char *text)
{
    static const struct {
        const char *name;
        vkt_monitor value;
    } monitors[] = { { "accuracy", VKT_MONITOR_VAL_ACC },    { "loss", VKT_MONITOR_VAL_LOSS },
                     { "val_acc", VKT_MONITOR_VAL_ACC },     { "val_loss", VKT_MONITOR_VAL_LOSS },
                     { "train_acc", VKT_MONITOR_TRAIN_ACC }, { "train_loss", VKT_MONITOR_TRAIN_LOSS } };
    for (size_t i = 0; i < sizeof monitors / sizeof *monitors; i++)
        if (strcmp(text, monitors[i].name) == 0) return monitors[i].value;
    argp_error(state, "--monitor: want accuracy, loss, train_acc or train_loss, got '%s'", text);
    return VKT_MONITOR_AUTO;
}

static bool has_option(const train_cli *cli, int key)
{
    switch (key) {
    case 'd': return cli->data != NULL;
    case OPT_PREDICT: return cli->predict != NULL;
    case OPT_CLASS_WEIGHTS:
    case OPT_LABEL_SMOOTHING:
    case OPT_REPORT:
    case OPT_CONFUSION: return cli->classes;
    case 'D':
    case 'q':
    case 'h':
    case 'V':
    case 0: /* a title, or the end */
    case OPT_LIST_DEVICES:
    case OPT_MEMORY_LIMIT:
    case OPT_SEED:
    case OPT_JSON: return true;
    case OPT_EPOCHS:
    case OPT_LR:
    case OPT_OPTIMIZER: return cli->scope != TRAIN_NOTHING;
    default: return cli->scope == TRAIN_BY_TRAINER;
    }
}

/* The state of the parser. */
typedef struct parse {
    train_options *o, defaults; /* defaults: the sample's defaults */
    const train_cli *cli;
    float weight_decay, clip_norm; /* settings of the optimizer, for any --optimizer; 0: not given */
    uint32_t micro_batches;
} parse;

/* Writes the name of a default optimizer. One without a name is SGD. */
static void optimizer_text(const vkt_optimizer *o, char *out, size_t n)
{
    const char *name = NULL;
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++)
        if (memcmp(o, &optimizers[i].value, sizeof *o) == 0) name = optimizers[i].name;
    int at = snprintf(out, n, " (default: %s", name ? name : "sgd");
    if (!name && o->momentum > 0) at += snprintf(out + at, n - (size_t)at, ", momentum %g", (double)o->momentum);
    if (!name && o->dampening > 0) at += snprintf(out + at, n - (size_t)at, ", dampening %g", (double)o->dampening);
    if (!name && o->weight_decay > 0) at += snprintf(out + at, n - (size_t)at, ", L2 %g", (double)o->weight_decay);
    snprintf(out + at, n - (size_t)at, ")");
}

/* Adds the sample's defaults to the text of --help. argp frees the result if it is not `text`. */
static char *with_default(int key, const char *text, void *input)
{
    const parse *p = input;
    const train_options *u = &p->defaults;
    char room[80] = "";
    if (key == OPT_EPOCHS) snprintf(room, sizeof room, " (%u)", u->epochs);
    if (key == OPT_BATCH) snprintf(room, sizeof room, " (%u)", u->batch);
    if (key == OPT_LR) snprintf(room, sizeof room, " (%g)", (double)u->lr);
    if (key == OPT_OPTIMIZER) optimizer_text(&u->optimizer, room, sizeof room);
    if (key == OPT_SEED) snprintf(room, sizeof room, " (%llu)", (unsigned long long)u->seed);
    if (key == OPT_PATIENCE && u->patience) snprintf(room, sizeof room, " (%u)", u->patience);
    if (key == 'd' && p->cli->data)
        text = p->cli->data;
    else if (key == OPT_PREDICT)
        text = p->cli->predict;
    else if (!*room)
        return (char *)(size_t)text;
    const size_t n = strlen(text) + strlen(room) + 1;
    char *out = malloc(n);
    if (out) snprintf(out, n, "%s%s", text, room);
    return out;
}

static const char *matrix_path(struct argp_state *state, const char *text)
{
    const char *dot = strrchr(text, '.');
    if (!dot || (strcasecmp(dot, ".svg") != 0 && strcasecmp(dot, ".png") != 0 && strcasecmp(dot, ".csv") != 0))
        argp_error(state, "--confusion: want a name that ends in .svg, .png or .csv, got '%s'", text);
    return text;
}

/* Refuses --predict without weights, and with options that only a training has. */
static void check_predict(const train_options *o, struct argp_state *state)
{
    if (!o->predict) return;
    if (!o->load) argp_error(state, "--predict needs --load FILE, the weights that --save has written");
    if (o->run) argp_error(state, "--predict does not train: --load %s/best.safetensors instead of --run", o->run);
    if (!o->n_files) argp_error(state, "--predict: want one FILE or more, or - for standard input");
    const char *const training[] = { o->checkpoint, o->resume, o->save, o->history, o->plot, o->profile, o->confusion };
    for (size_t i = 0; i < sizeof training / sizeof *training; i++)
        if (training[i])
            argp_error(state, "--predict does not train: leave out --checkpoint, --resume, --save, --history, --plot, "
                              "--profile and --confusion");
}

/* Returns the member of an option whose value is a text. NULL: the option is of another kind. */
static const char **text_option(train_options *o, int key)
{
    switch (key) {
    case 'D': return &o->device;
    case 'd': return &o->data;
    case OPT_RUN: return &o->run;
    case OPT_CHECKPOINT: return &o->checkpoint;
    case OPT_RESUME: return &o->resume;
    case OPT_LOAD: return &o->load;
    case OPT_SAVE: return &o->save;
    case OPT_JSON: return &o->json;
    case OPT_HISTORY: return &o->history;
    case OPT_PLOT: return &o->plot;
    case OPT_PROFILE: return &o->profile;
    case OPT_CLASS_WEIGHTS: return &o->class_weights;
    default: return NULL;
    }
}

/* Refuses options that --find-lr does not use: it writes only its figure. */
static void check_find_lr(const train_options *o, struct argp_state *state)
{
    const char *const others[] = { o->run,     o->checkpoint, o->resume,  o->save,     o->json,
                                   o->history, o->plot,       o->profile, o->confusion };
    for (size_t i = 0; o->find_lr && i < sizeof others / sizeof *others; i++)
        if (others[i] || o->predict)
            argp_error(state, "--find-lr ends before the training: leave out --run, --checkpoint, --resume, --save, "
                              "--json, --history, --plot, --profile, --confusion and --predict");
}

/* Checks all options together, after all are read. */
static void finish_options(parse *p, struct argp_state *state)
{
    train_options *o = p->o;
    check_predict(o, state);
    check_find_lr(o, state);
    if (o->run && o->checkpoint)
        argp_error(
            state,
            "--checkpoint: --run keeps its checkpoint in %s/checkpoint.ckpt: leave out --checkpoint; --resume FILE "
            "goes on from another one",
            o->run);
    if (o->checkpoint_every && !o->checkpoint && !o->run)
        argp_error(state, "--checkpoint-every needs --checkpoint FILE or --run DIR");
    if (o->resume && o->seed_given) argp_error(state, "--seed: a run that --resume goes on with keeps its seed");
    if (o->resume && o->load) argp_error(state, "--load: a run that --resume goes on with has weights of its own");
    if (p->weight_decay > 0) o->optimizer.weight_decay = p->weight_decay;
    if (p->clip_norm > 0) o->optimizer.clip_norm = p->clip_norm;
    if (p->micro_batches) o->optimizer.micro_batches = p->micro_batches;
}

static error_t on_option(int key, char *text, struct argp_state *state)
{
    parse *p = state->input;
    train_options *o = p->o;
    const char **plain = text_option(o, key);
    if (plain) {
        *plain = text;
        return 0;
    }
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = p->cli->input; break;
    case 'q': o->quiet = true; break;
    case OPT_LIST_DEVICES: o->list_devices = true; break;
    case OPT_MEMORY_LIMIT: o->memory_limit_bytes = size(state, text); break;
    case OPT_STREAM: o->stream = true; break;
    case OPT_EPOCHS: o->epochs = integer32(state, "epochs", text, 1); break;
    case OPT_BATCH: o->batch = integer32(state, "batch", text, 1); break;
    case OPT_LR: o->lr = above_zero(state, "lr", text); break;
    case OPT_OPTIMIZER: o->optimizer = optimizer(state, text); break;
    case OPT_WEIGHT_DECAY: p->weight_decay = above_zero(state, "weight-decay", text); break;
    case OPT_CLIP_NORM: p->clip_norm = above_zero(state, "clip-norm", text); break;
    case OPT_MICRO_BATCHES: p->micro_batches = integer32(state, "micro-batches", text, 1); break;
    case OPT_SCHEDULE:
        if (!schedule_parse(text, &o->schedule))
            argp_error(state,
                       "--schedule: want constant, cosine, one-cycle, plateau, step=N, multi-step=N,N or exponential=X "
                       "with N of 1 "
                       "or more, rising, and X above 0 and up to 1, got '%s'",
                       text);
        o->has_schedule = true;
        break;
    case OPT_WARMUP: o->warmup = integer32(state, "warmup", text, 1); break;
    case OPT_FIND_LR: o->find_lr = text; break;
    case OPT_RECOMPUTE: o->recompute = true; break;
    case OPT_PRECISION: o->precision = precision(state, text); break;
    case OPT_EMA: o->ema_decay = option_number(state, "ema", text, 0, 0.999999); break;
    case OPT_SEED:
        o->seed = option_integer(state, "seed", text, 0, UINT64_MAX);
        o->seed_given = true;
        break;
    case OPT_PATIENCE: o->patience = integer32(state, "patience", text, 0); break;
    case OPT_MONITOR: o->monitor = monitor(state, text); break;
    case OPT_ALLOW_NONFINITE: o->allow_nonfinite = true; break;
    case OPT_CHECKPOINT_EVERY:
        o->checkpoint_every = option_integer(state, "checkpoint-every", text, 1, UINT64_MAX);
        break;
    case OPT_LABEL_SMOOTHING:
        o->label_smoothing = (float)option_number(state, "label-smoothing", text, 0, 0.999);
        break;
    case OPT_REPORT: o->report = true; break;
    case OPT_CONFUSION: o->confusion = matrix_path(state, text); break;
    case OPT_PREDICT: o->predict = true; break;
    case ARGP_KEY_ARG:
        if (o->predict) return ARGP_ERR_UNKNOWN; /* ARGP_KEY_ARGS gets them all */
        argp_error(state, "'%s' is no option: the value of an option goes behind its name, as in --batch 64", text);
        break;
    case ARGP_KEY_ARGS:
        o->files = (const char *const *)(state->argv + state->next);
        o->n_files = (uint32_t)(state->argc - state->next);
        break;
    case ARGP_KEY_END: finish_options(p, state); break;
    default: return version_option(key, state);
    }
    return 0;
}

/* Fits --help to the terminal. argp's layout has 79 columns. On a narrower terminal, explanations go below the options.
 */
static void fit_help(void)
{
    char format[64];
    const uint32_t columns = terminal_columns(stdout);
    if (columns < 24 || columns >= 80) return;
    snprintf(format, sizeof format, "rmargin=%u,opt-doc-col=8,usage-indent=2", columns - 1);
    setenv("ARGP_HELP_FMT", format, 0);
}

void train_options_parse(train_options *o, const train_cli *cli, int argc, char **argv)
{
    enum { ROWS = sizeof table / sizeof *table };
    static struct argp_option rows[ROWS]; /* the options that the sample has */
    size_t n = 0;
    for (size_t i = 0; i < ROWS; i++)
        if (has_option(cli, table[i].key)) rows[n++] = table[i];
    static const struct argp nothing;
    const struct argp_child children[] = { { .argp = cli->more ? cli->more : &nothing }, { 0 } };
    const struct argp parser = { .options = rows,
                                 .parser = on_option,
                                 .args_doc = cli->predict ? "\n--load WEIGHTS --predict FILE..." : NULL,
                                 .doc = cli->doc,
                                 .children = children,
                                 .help_filter = with_default };
    parse p = { .o = o, .defaults = *o, .cli = cli };
    fit_help();
    parse_arguments(&parser, argc, argv, &p);
}
