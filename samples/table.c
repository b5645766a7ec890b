/* table.c - vkt-table: trains a small network to predict a column of any CSV file from the other columns. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "common/predict_tables.h"
#include "common/session.h"
#include "common/table_data.h"
#include "common/terminal.h"

#define PROGRAM "vkt-table"

enum { OPT_TARGET = 512, OPT_TASK, OPT_HIDDEN, OPT_VALIDATION, OPT_MAX_VALUES, OPT_LEAVE_OUT };
enum { MAX_LAYERS = 8, WIDEST = 65536, MOST_LEFT_OUT = 64, NAME_ROOM = 48 };

typedef struct layers {
    uint32_t width[MAX_LAYERS], n, outputs;
} layers;

typedef struct table_options {
    table_data_params data;
    const char *left_out[MOST_LEFT_OUT];
    layers layers;
} table_options;

/* Builds the network: x (B,F) -> (B,outputs). It has linear layers fc1, fc2, .., with relu between them. */
static vkt_tensor forward(vkt_builder *b, vkt_tensor x, void *user)
{
    const layers *l = user;
    char name[8];
    for (uint32_t i = 0; i < l->n; i++) {
        snprintf(name, sizeof name, "fc%u", i + 1);
        x = vkt_nn_relu(b, vkt_nn_linear(b, name, x, &(vkt_nn_linear_params){ .out_features = l->width[i] }));
    }
    snprintf(name, sizeof name, "fc%u", l->n + 1);
    return vkt_nn_linear(b, name, x, &(vkt_nn_linear_params){ .out_features = l->outputs });
}

/* ---- the outcome, on the validation rows ---- */

/* Prints (unless --quiet) the root of the mean squared error of `guess`, in the target's unit. For comparison, prints
 * the error that results if the guess for every row is the mean target. R2 is 1 - (the first error / the second
 * error)^2. Returns the numbers for --json. */
static json_t *regression(const session *s, const table_data *d, const float *guess)
{
    const vkt_column *c = table_target(d->columns);
    const float *y = vkt_dataset_targets(d->check);
    const uint32_t n = vkt_dataset_rows(d->check);
    double error = 0, mean = 0, spread = 0;
    char name[NAME_ROOM];
    for (uint32_t i = 0; i < n; i++) mean += (double)y[i] / n;
    for (uint32_t i = 0; i < n; i++) {
        error += ((double)guess[i] - (double)y[i]) * ((double)guess[i] - (double)y[i]);
        spread += ((double)y[i] - mean) * ((double)y[i] - mean);
    }
    const double rmse = sqrt(error / n) * c->std, r2 = spread > 0 ? 1 - error / spread : NAN;
    if (!s->o.quiet)
        terminal_printf(stdout,
                        "outcome %s is off by %.4g (RMSE over %u rows), R2 %.4f; its mean alone would be off by %.4g\n",
                        vkt_printable(c->name, name, sizeof name), rmse, n, r2, sqrt(spread / n) * c->std);
    return json_pack("{s:f, s:o?}", "rmse", rmse, "r2", isfinite(r2) ? json_real(r2) : NULL);
}

static json_t *classification(const session *s, const table_data *d, const uint32_t *guess)
{
    const uint32_t *labels = vkt_dataset_labels(d->check), n = vkt_dataset_rows(d->check);
    const vkt_column *c = table_target(d->columns);
    uint32_t right = 0, most = 0;
    for (uint32_t i = 0; i < n; i++) right += guess[i] == labels[i];
    for (uint32_t k = 0; k < c->n_values; k++) {
        uint32_t of_class = 0;
        for (uint32_t i = 0; i < n; i++) of_class += labels[i] == k;
        if (of_class > most) most = of_class;
    }
    if (!s->o.quiet)
        terminal_printf(stdout,
                        "outcome %u of %u rows right (%.1f %%); the most frequent class alone would be right in %u\n",
                        right, n, 100.0 * right / n, most);
    return json_pack("{s:f}", "accuracy", (double)right / n);
}

/* Predicts the validation rows with the best weights, prints the result (unless --quiet) and adds it to --json. */
static vkt_result report(session *s, vkt_trainer *t)
{
    const table_data *d = s->user;
    const uint32_t n = vkt_dataset_rows(d->check);
    const vkt_column *target = table_target(d->columns);
    const bool classes = target->use == VKT_COLUMN_VALUES;
    uint32_t *guesses = malloc(n * sizeof *guesses);
    float *outputs = malloc(n * sizeof *outputs);
    vkt_result r = guesses && outputs
                       ? vkt_trainer_predict(t, d->check, 0, n, classes ? guesses : NULL, classes ? NULL : outputs)
                       : VKT_E_NOMEM;
    if (r == VKT_OK) {
        s->more = classes ? classification(s, d, guesses) : regression(s, d, outputs);
        json_object_set_new(s->more, "task", json_string(classes ? "classes" : "regression"));
        json_object_set_new(s->more, "target", json_string(target->name));
    }
    free(guesses);
    free(outputs);
    return r;
}

/* ---- the run ---- */

/* Attaches the data card (vktrain/card.h). It has the widths of the hidden layers, because --predict needs them. */
static vkt_result attach_card(vkt_trainer *t, const layers *l)
{
    char more[32 + MAX_LAYERS * 8] = "{\"hidden\": [";
    for (uint32_t i = 0; i < l->n; i++)
        snprintf(more + strlen(more), sizeof more - strlen(more), "%s%u", i ? "," : "", l->width[i]);
    return vkt_trainer_attach_card(t, PROGRAM, strcat(more, "]}"));
}

static vkt_result run(session *s, table_options *o, table_data *d)
{
    o->layers.outputs = vkt_dataset_classes(d->train) ? vkt_dataset_classes(d->train) : 1;
    const vkt_trainer_params p = { .model = { .name = "table network", .forward = forward, .user = &o->layers },
                                   .train = d->train,
                                   .validation = d->check };
    vkt_trainer *t = NULL;
    s->finish = report;
    s->user = d;
    vkt_result r = session_trainer(s, &p, &t);
    if (r == VKT_OK) r = table_attach(t, d);
    if (r == VKT_OK) r = attach_card(t, &o->layers);
    if (r == VKT_OK) r = session_fit(s, NULL, t);
    vkt_trainer_destroy(&t);
    return r;
}

/* ---- predictions ---- */

static bool layers_from_card(const vkt_card *card, layers *l)
{
    double width[MAX_LAYERS];
    l->n = vkt_card_numbers(card, "hidden", MAX_LAYERS, width);
    for (uint32_t i = 0; i < l->n && l->n <= MAX_LAYERS; i++) {
        if (!(width[i] >= 1 && width[i] <= WIDEST)) return false;
        l->width[i] = (uint32_t)width[i];
    }
    return l->n <= MAX_LAYERS;
}

/* Predicts the rows of the files. The columns and the layers come from the weights file. */
static vkt_result predict_rows(session *s, const vkt_card *card, vkt_columns *columns)
{
    const vkt_column *target = table_target(columns);
    layers l = { .outputs = card->classes ? card->classes : 1 };
    const predict_kind kind = { .program = PROGRAM,
                                .type = VKT_ROW_F32,
                                .forward = forward,
                                .model = &l,
                                .read = table_reader_read,
                                .reader = columns,
                                .mean = target->mean,
                                .deviation = target->std };
    const bool fits = card->chw[0] == 1 && card->chw[1] == 1 && card->chw[2] == vkt_columns_inputs(columns) &&
                      card->classes == (target->use == VKT_COLUMN_VALUES ? target->n_values : 0);
    if (fits && layers_from_card(card, &l)) return session_open(s) ? predict_files(s, &kind, card) : VKT_E_NO_DEVICE;
    complain("%s: its metadata of the table are damaged", s->o.load);
    return VKT_E_FORMAT;
}

static vkt_result predict(session *s, const char *target)
{
    vkt_card *card;
    vkt_columns *columns;
    vkt_result r = predict_card(s, PROGRAM, &card);
    if (r != VKT_OK) return r;
    r = table_columns_of(&s->host, s->o.load, target, &columns);
    if (r == VKT_OK) r = predict_rows(s, card, columns);
    vkt_columns_destroy(&columns);
    vkt_card_destroy(&card);
    return r;
}

static void take_table(session *s, const table_data *d, uint32_t most_values)
{
    session_set_data(s, &(session_data){ d->source, false, d->train, d->check, NULL });
    if (s->o.quiet) return;
    printf("columns, and what they are\n");
    table_print(d->columns, most_values);
    if (d->without_target) printf("  %u of %u rows have no target: left out\n", d->without_target, d->rows);
}

/* ---- the command line ---- */

static void parse_layers(struct argp_state *state, const char *text, layers *l)
{
    char number[16];
    l->n = 0;
    for (const char *at = text; *at; l->n++) {
        const size_t n = strcspn(at, ",");
        if (l->n == MAX_LAYERS || n >= sizeof number)
            argp_error(state, "--hidden: want up to %d numbers, for instance 64,64, got '%s'", MAX_LAYERS, text);
        memcpy(number, at, n);
        number[n] = 0;
        l->width[l->n] = (uint32_t)option_integer(state, "hidden", number, 1, WIDEST);
        at += n + (at[n] == ',');
    }
}

static error_t on_option(int key, char *text, struct argp_state *state)
{
    table_options *o = state->input;
    vkt_columns_params *g = &o->data.guess;
    switch (key) {
    case OPT_TARGET: g->target = text; break;
    case OPT_TASK:
        g->kind = strcmp(text, "classes") == 0 ? VKT_TARGET_CLASSES : VKT_TARGET_NUMBER;
        if (strcmp(text, "classes") != 0 && strcmp(text, "regression") != 0)
            argp_error(state, "--task: want classes or regression, got '%s'", text);
        break;
    case OPT_HIDDEN: parse_layers(state, text, &o->layers); break;
    case OPT_VALIDATION: o->data.check_share = option_number(state, "validation-share", text, 0.001, 0.9); break;
    case OPT_MAX_VALUES: g->most_values = (uint32_t)option_integer(state, "most-values", text, 1, 100000); break;
    case OPT_LEAVE_OUT:
        if (g->n_left_out == MOST_LEFT_OUT) argp_error(state, "--leave-out: want at most %d columns", MOST_LEFT_OUT);
        o->left_out[g->n_left_out++] = text;
        g->left_out = o->left_out;
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        { "target", OPT_TARGET, "COLUMN", 0, "the column to predict (the last one)", 1 },
        { "task", OPT_TASK, "NAME", 0,
          "classes or regression; without it by the target: texts and few whole numbers are classes, others numbers",
          1 },
        { "leave-out", OPT_LEAVE_OUT, "COLUMN", 0, "do not learn from this column; may come again", 1 },
        { "most-values", OPT_MAX_VALUES, "N", 0, "leave out columns of more than N different texts (32)", 1 },
        { "validation-share", OPT_VALIDATION, "X", 0, "part of the rows to check with, by --seed (0.2)", 1 },
        { "hidden", OPT_HIDDEN, "N,N,..", 0, "widths of the hidden layers (64,64); \"\": none", 1 },
        { 0 }
    };
    static const struct argp more = { .options = options, .parser = on_option };
    table_options o = { .data = { .check_share = 0.2, .guess = { .most_values = 32 } },
                        .layers = { .width = { 64, 64 }, .n = 2 } };
    const train_cli cli = {
        .doc =
            "Learns a column of a CSV file from the other columns, on a Vulkan device: numbers are standardised, texts "
            "become a 0 or 1 for each value, gaps are learned as such. With --load or --resume, columns are what they "
            "were.",
        .data = "CSV file with a line of names, plain or gzip, parted by , ; | or tabs (Fisher's irises)",
        .predict =
            "predict the target of each row of the CSV files (- is standard input), with the weights --load FILE: "
            "a class, its probability and the next four, or a number; a file needs a line of names and the "
            "columns that were learned from",
        .more = &more,
        .input = &o
    };
    session s = { .o = { .epochs = 60, .batch = 16, .optimizer = { .kind = VKT_ADAM }, .lr = 0.003f, .seed = 1 } };
    session_begin(&s, &cli, argc, argv);
    if (s.o.predict) return session_end(&s, predict(&s, o.data.guess.target));
    o.data.path = s.o.data;
    o.data.seed = s.o.seed;
    o.data.resumed = s.o.resume;
    o.data.like = s.o.resume ? s.o.resume : s.o.load;
    table_data data;
    vkt_result r = table_data_open(&s.host, &o.data, &data);
    if (r != VKT_OK) return session_end(&s, r);
    if (session_open(&s)) {
        take_table(&s, &data, o.data.guess.most_values);
        r = run(&s, &o, &data);
    } else {
        r = VKT_E_NO_DEVICE;
    }
    table_data_close(&data);
    return session_end(&s, r);
}
