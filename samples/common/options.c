/* common/options.c - see options.h. */
#include "common/options.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/message.h"
#include "common/schedules.h"
#include "common/terminal.h"
#include "common/version.h"

/* argp passes an option to this file by its key. Here are the keys of the options that the code below names. Options
 * with the key 0 in `table` get other keys: the option in row i gets OPT_ROW + i (key_of). The keys of a sample
 * program's own options begin at 512. */
enum {
    OPT_EPOCHS = 256,
    OPT_BATCH,
    OPT_LR,
    OPT_OPTIMIZER,
    OPT_SCHEDULE,
    OPT_PRECISION,
    OPT_SEED,
    OPT_PATIENCE,
    OPT_MONITOR,
    OPT_PREDICT,
    OPT_MESSAGES,
    OPT_ROW
};

/* Says which sample programs have an option. */
typedef enum scope {
    TRAINER = 0, /* samples that train with session_trainer */
    TRAINING,    /* samples that train */
    ALL,
    DATA,    /* samples with train_cli.data */
    CLASSES, /* samples with train_cli.classes */
    PREDICT  /* samples with train_cli.predict */
} scope;

/* The type of the member of train_options that an option sets. The type selects how the option's value is read. */
typedef enum kind {
    OTHER = 0, /* on_option has a case for the option */
    TEXT,      /* const char * */
    FLAG,      /* bool, which the option sets to true */
    COUNT,     /* uint32_t, `bound` or more */
    COUNT64,   /* uint64_t, `bound` or more */
    POSITIVE,  /* float above 0 */
    NUMBER,    /* double from 0 to `bound` */
    SIZE       /* uint64_t, such as 512MiB */
} kind;

typedef struct option_row {
    const char *name; /* NULL: the row is a title */
    int key;
    const char *value; /* name of the value in --help; NULL: the option has no value */
    int group;
    scope scope;
    kind kind;
    size_t at; /* offset of the member in train_options */
    double bound;
    const char *help;
} option_row;
#define AT(member) offsetof(train_options, member)

/* To add an option, add a member to train_options and a row to this table. */
static const option_row table[] = {
    { .help = "Device and data", .group = 1 },
    { "device", 'D', "N|NAME", 1, ALL, TEXT, AT(device), 0, "number of --list-devices or a part of the device's name" },
    { "list-devices", 0, 0, 1, ALL, FLAG, AT(list_devices), 0, "print the devices and end" },
    { "memory-limit", 0, "SIZE", 1, ALL, SIZE, AT(memory_limit_bytes), 0,
      "most device memory to hold, for instance 512MiB or 2GiB" },
    { "data", 'd', "PATH", 1, DATA, TEXT, AT(data), 0, "" },
    { "stream", 0, 0, 1, TRAINER, FLAG, AT(stream), 0, "keep the data in host memory and stream it" },
    { .help = "Training", .group = 2 },
    { "epochs", OPT_EPOCHS, "N", 2, TRAINING, COUNT, AT(epochs), 1, "passes over the training set" },
    { "batch", OPT_BATCH, "N", 2, TRAINER, COUNT, AT(batch), 1, "samples per step, or per micro-batch" },
    { "lr", OPT_LR, "X", 2, TRAINING, POSITIVE, AT(lr), 0, "learning rate" },
    { "optimizer", OPT_OPTIMIZER, "NAME", 2, TRAINING, OTHER, 0, 0,
      "adam, keras-adam, adamw, nadam, keras-nadam, rmsprop, adagrad, sgd; momentum or nesterov: sgd with momentum "
      "0.9" },
    { "weight-decay", 0, "X", 2, TRAINER, POSITIVE, AT(weight_decay), 0,
      "L2, or decoupled as adamw has it; instead of the optimizer's own" },
    { "clip-norm", 0, "X", 2, TRAINER, POSITIVE, AT(clip_norm), 0,
      "gradient clipping by global norm: scale all gradients down where their norm is larger than X" },
    { "micro-batches", 0, "N", 2, TRAINER, COUNT, AT(micro_batches), 1,
      "gradient accumulation: add up the gradients of N batches for each step (1)" },
    { "schedule", OPT_SCHEDULE, "NAME", 2, TRAINER, OTHER, 0, 0, schedules_help },
    { "warmup", 0, "N", 2, TRAINER, COUNT, AT(warmup), 1,
      "let the rate rise linearly over the first N steps; with a schedule by epochs, over N epochs" },
    { "find-lr", 0, "FILE", 2, TRAINER, TEXT, AT(find_lr), 0,
      "train 100 steps at most, at rates that rise from a thousandth of --lr to a thousand times it, draw their losses "
      "(.svg or .png), suggest a rate and end" },
    { "recompute", 0, 0, 2, TRAINER, FLAG, AT(recompute), 0,
      "compute cheap activations again instead of keeping them: less memory, more time" },
    { "precision", OPT_PRECISION, "NAME", 2, TRAINER, OTHER, 0, 0,
      "f32 (default); activations stored as f16 (with loss scaling) or bf16; f32-split: f32 by products of f16" },
    { "ema", 0, "DECAY", 2, TRAINER, NUMBER, AT(ema_decay), 0.999999,
      "average the weights over the steps, with 0.999 for instance; what is evaluated and saved is the average" },
    { "class-weights", 0, "LIST|FILE", 2, CLASSES, TEXT, AT(class_weights), 0,
      "how much a row of each class counts in training: numbers with commas, a file of them, or balanced (rare classes "
      "more); validation losses are not weighted" },
    { "label-smoothing", 0, "X", 2, CLASSES, NUMBER, AT(label_smoothing), 0.999,
      "in training, spread this part of each label over all classes (0; 0.1 is usual)" },
    { "seed", OPT_SEED, "N", 2, ALL, OTHER, 0, 0, "seed of all random numbers" },
    { "patience", OPT_PATIENCE, "N", 2, TRAINER, COUNT, AT(patience), 0,
      "stop after N epochs that are no better (0: never)" },
    { "monitor", OPT_MONITOR, "NAME", 2, TRAINER, OTHER, 0, 0,
      "what the best epoch (marked *) is chosen by: accuracy or loss (of the validation set), train_acc or train_loss; "
      "default: the accuracy if there is one, else the loss" },
    { "allow-nonfinite", 0, 0, 2, TRAINER, FLAG, AT(allow_nonfinite), 0,
      "train on when a loss is NaN or infinite (default: stop with status 1)" },
    { .help = "Files", .group = 3 },
    { "run", 0, "DIR", 3, TRAINER, TEXT, AT(run), 0,
      "one folder for all of it: checkpoint, best weights, results, history, plot, options, log and event files for "
      "TensorBoard; the same --run again goes on" },
    { "checkpoint", 0, "FILE", 3, TRAINER, TEXT, AT(checkpoint), 0,
      "full training state, rewritten after every epoch" },
    { "checkpoint-every", 0, "N", 3, TRAINER, COUNT64, AT(checkpoint_every), 1, "and after every so many batches" },
    { "resume", 0, "FILE", 3, TRAINER, TEXT, AT(resume), 0,
      "continue a checkpoint, up to --epochs in total; gives the same bits as one run" },
    { "load", 0, "FILE", 3, TRAINER, TEXT, AT(load), 0, "begin with these weights (safetensors, PyTorch's names)" },
    { "save", 0, "FILE", 3, TRAINER, TEXT, AT(save), 0, "write the best weights at the end (safetensors)" },
    { "json", 0, "FILE", 3, ALL, TEXT, AT(json), 0,
      "write the results as one JSON object; here and below, - is standard output" },
    { "history", 0, "FILE", 3, TRAINER, TEXT, AT(history), 0, "write the epochs as CSV" },
    { "plot", 0, "FILE", 3, TRAINER, TEXT, AT(plot), 0, "draw loss and accuracy (.svg or .png)" },
    { "profile", 0, "FILE", 3, TRAINER, TEXT, AT(profile), 0,
      "write a Chrome/Perfetto trace of one step's GPU kernels" },
    { "confusion", 0, "FILE", 3, CLASSES, TEXT, AT(confusion), 0,
      "write the confusion matrix at the end (.svg, .png or .csv)" },
    { "report", 0, 0, 3, CLASSES, FLAG, AT(report), 0, "print precision, recall and F1 of each class at the end" },
    { "predict", OPT_PREDICT, 0, 3, PREDICT, FLAG, AT(predict), 0, "" },
    { .help = "Several devices (the result does not depend on their number)", .group = 4 },
    { "devices", 0, "LIST", 4, TRAINER, TEXT, AT(devices), 0,
      "train on several devices, named as for --device: 0,1 for instance; 0,0 uses one device twice" },
    { "mpi", 0, 0, 4, TRAINER, FLAG, AT(mpi), 0, "train in several processes: mpirun -n 4 vkt-mnist --mpi" },
    { "shards", 0, "N", 4, TRAINER, COUNT, AT(shards), 1,
      "virtual shards of a batch, a power of two and a multiple of the devices (8 with several devices or --mpi, else "
      "1); the result depends on it" },
    { "bucket", 0, "SIZE", 4, TRAINER, SIZE, AT(bucket_bytes), 0, "gradients exchanged at once (4MiB)" },
    { "messages", OPT_MESSAGES, "NAME", 4, TRAINER, OTHER, 0, 0,
      "how gradients are sent: f32 (default) or bf16, half as long; the result depends on it" },
    { .help = "Other", .group = 9 }, /* groups 5 to 8 of --help are for a sample program's own options */
    { "quiet", 'q', 0, 9, ALL, FLAG, AT(quiet), 0, "print nothing but errors" },
};
enum { ROWS = sizeof table / sizeof *table };

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

/* ---- values: if `text` is not valid, the functions from here to wire() end the program with a message ---- */

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

static float above_zero(struct argp_state *state, const char *option, const char *text)
{
    char *end;
    const float x = strtof(text, &end);
    if (end == text || *end || !isfinite(x) || x <= 0)
        argp_error(state, "--%s: want a number above 0, got '%s'", option, text);
    return x;
}

/* Reads a size in bytes, for instance "512M". Units are K, M, G and T (powers of 1024), also in the form KiB or KB.
 */
static uint64_t size(struct argp_state *state, const char *option, const char *text)
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
        argp_error(state, "--%s: want a size such as 512MiB or 2GiB, got '%s'", option, text);
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
    static const char *const names[] = {
        [VKT_PRECISION_F32] = "f32",
        [VKT_PRECISION_F16] = "f16",
        [VKT_PRECISION_BF16] = "bf16",
        [VKT_PRECISION_F32_SPLIT] = "f32-split",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(text, names[i]) == 0) return (vkt_precision)i;
    argp_error(state, "--precision: want f32, f16, bf16 or f32-split, got '%s'", text);
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

static vkt_wire wire(struct argp_state *state, const char *text)
{
    const bool bf16 = strcmp(text, "bf16") == 0;
    if (!bf16 && strcmp(text, "f32") != 0) argp_error(state, "--messages: want f32 or bf16, got '%s'", text);
    return bf16 ? VKT_WIRE_BF16 : VKT_WIRE_F32;
}

static bool has_option(const train_cli *cli, scope of)
{
    switch (of) {
    case TRAINER: return cli->scope == TRAIN_BY_TRAINER;
    case TRAINING: return cli->scope != TRAIN_NOTHING;
    case DATA: return cli->data != NULL;
    case CLASSES: return cli->classes;
    case PREDICT: return cli->predict != NULL;
    default: return true;
    }
}

/* The state of the parser. */
typedef struct parse {
    train_options *o, defaults; /* defaults: *o before the command line is read */
    const train_cli *cli;
} parse;

/* Writes the default optimizer in parentheses. An optimizer that is in `optimizers` is written by its name. Any other
 * optimizer is written as "sgd" and its settings. */
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

/* Adds the program's default to the help text of --epochs, --batch, --lr, --optimizer, --seed or --patience (only if
 * the default patience is not 0). For --data and --predict, returns the program's own text. For other options, returns
 * `text`. argp frees the result if it is not `text`. */
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

static void check_matrix(const char *path, struct argp_state *state)
{
    const char *dot = path ? strrchr(path, '.') : ".svg";
    if (!dot || (strcasecmp(dot, ".svg") != 0 && strcasecmp(dot, ".png") != 0 && strcasecmp(dot, ".csv") != 0))
        argp_error(state, "--confusion: want a name that ends in .svg, .png or .csv, got '%s'", path);
}

/* Refuses --predict without weights or files, and with options that need a training. */
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

/* With --find-lr, refuses --resume, --predict and the options for output files. The learning rate test writes only its
 * figure. */
static void check_find_lr(const train_options *o, struct argp_state *state)
{
    const char *const others[] = { o->run,     o->checkpoint, o->resume,  o->save,     o->json,
                                   o->history, o->plot,       o->profile, o->confusion };
    for (size_t i = 0; o->find_lr && i < sizeof others / sizeof *others; i++)
        if (others[i] || o->predict)
            argp_error(state, "--find-lr ends before the training: leave out --run, --checkpoint, --resume, --save, "
                              "--json, --history, --plot, --profile, --confusion and --predict");
}

/* Checks all options together, after all are read. Copies the options that any optimizer may have (weight decay, clip
 * norm, micro-batches) to o->optimizer. */
static void finish_options(parse *p, struct argp_state *state)
{
    train_options *o = p->o;
    check_matrix(o->confusion, state);
    check_predict(o, state);
    check_find_lr(o, state);
    if (o->device && o->devices) argp_error(state, "--device: --devices names all of them: leave out --device");
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
    if (o->weight_decay > 0) o->optimizer.weight_decay = o->weight_decay;
    if (o->clip_norm > 0) o->optimizer.clip_norm = o->clip_norm;
    if (o->micro_batches) o->optimizer.micro_batches = o->micro_batches;
}

/* Returns the key of row i: 0 for a title, else the key in the table, or OPT_ROW + i if this key is 0. */
static int key_of(size_t i)
{
    return table[i].key || !table[i].name ? table[i].key : OPT_ROW + (int)i;
}

/* Reads the value of an option into the member that the option sets. Returns false for an option of kind OTHER. */
static bool read_value(const option_row *x, train_options *o, const char *text, struct argp_state *state)
{
    void *at = (char *)o + x->at;
    const char *name = x->name;
    const uint64_t least = (uint64_t)x->bound;
    switch (x->kind) {
    case TEXT: *(const char **)at = text; break;
    case FLAG: *(bool *)at = true; break;
    case COUNT: *(uint32_t *)at = (uint32_t)option_integer(state, name, text, least, UINT32_MAX); break;
    case COUNT64: *(uint64_t *)at = option_integer(state, name, text, least, UINT64_MAX); break;
    case POSITIVE: *(float *)at = above_zero(state, name, text); break;
    case NUMBER: *(double *)at = option_number(state, name, text, 0, x->bound); break;
    case SIZE: *(uint64_t *)at = size(state, name, text); break;
    default: return false;
    }
    return true;
}

static error_t on_option(int key, char *text, struct argp_state *state)
{
    parse *p = state->input;
    train_options *o = p->o;
    for (size_t i = 0; i < ROWS; i++)
        if (key && key_of(i) == key && read_value(&table[i], o, text, state)) return 0;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = p->cli->input; break;
    case OPT_OPTIMIZER: o->optimizer = optimizer(state, text); break;
    case OPT_SCHEDULE:
        if (!schedule_parse(text, &o->schedule))
            argp_error(state,
                       "--schedule: want constant, cosine, one-cycle, plateau, step=N, multi-step=N,N or exponential=X "
                       "with N of 1 or more, rising, and X above 0 and up to 1, got '%s'",
                       text);
        o->has_schedule = true;
        break;
    case OPT_PRECISION: o->precision = precision(state, text); break;
    case OPT_SEED:
        o->seed = option_integer(state, "seed", text, 0, UINT64_MAX);
        o->seed_given = true;
        break;
    case OPT_MESSAGES: o->messages = wire(state, text); break;
    case OPT_MONITOR: o->monitor = monitor(state, text); break;
    case ARGP_KEY_ARG:
        if (o->predict || p->cli->arguments) return ARGP_ERR_UNKNOWN; /* argp then calls on_option with ARGP_KEY_ARGS */
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
    static const struct argp_option version[] = { VERSION_OPTIONS };
    static struct argp_option rows[ROWS + sizeof version / sizeof *version + 1]; /* the options that the program has */
    size_t n = 0;
    for (size_t i = 0; i < ROWS; i++)
        if (!table[i].name || has_option(cli, table[i].scope))
            rows[n++] = (struct argp_option){ .name = table[i].name,
                                              .key = key_of(i),
                                              .arg = table[i].value,
                                              .doc = table[i].help,
                                              .group = table[i].group };
    memcpy(rows + n, version, sizeof version);
    static const struct argp nothing;
    const struct argp_child children[] = { { .argp = cli->more ? cli->more : &nothing }, { 0 } };
    const struct argp parser = { .options = rows,
                                 .parser = on_option,
                                 .args_doc = cli->predict ? "\n--load WEIGHTS --predict FILE..." : cli->arguments,
                                 .doc = cli->doc,
                                 .children = children,
                                 .help_filter = with_default };
    parse p = { .o = o, .defaults = *o, .cli = cli };
    fit_help();
    parse_arguments(&parser, argc, argv, &p);
}
