/* train/identity.c - see identity.h. The comparison of two graphs is in compare.c. */
#include "train/identity.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/numbers.h"
#include "ops/step/optimizer.h"
#include "train/compare.h"

enum { HASHED_BYTES = 64 << 20, FETCHED_ROWS = 256 };

/* ---- data sets ---- */

static uint32_t hashed_rows(const vkt_dataset *d)
{
    const uint64_t fit = VKT_MAX((uint64_t)HASHED_BYTES / vkt_dataset_row_bytes(d), (uint64_t)2);
    const uint64_t most = vkt_dataset_features(d) ? fit : VKT_MIN(fit, (uint64_t)FETCHED_ROWS);
    return (uint32_t)VKT_MIN(most, (uint64_t)vkt_dataset_rows(d));
}

static vkt_result hash_features(const vkt_host *h, const vkt_dataset *d, uint64_t *hash)
{
    const uint64_t n = vkt_dataset_rows(d), k = hashed_rows(d);
    const size_t bytes = vkt_dataset_row_bytes(d);
    const char *all = vkt_dataset_features(d);
    void *room = all ? NULL : vkt_alloc(h, bytes);
    if (!all && !room) return vkt_fail_nomem(h, "a row of the data set", bytes);
    vkt_result r = VKT_OK;
    for (uint64_t i = 0; i < k && r == VKT_OK; i++) {
        const uint64_t row = k == n ? i : i * (n - 1) / (k - 1);
        if (!all) r = vkt_dataset_fetch(d, (uint32_t)row, room);
        if (r == VKT_OK) *hash = vkt_hash(*hash, all ? all + row * bytes : room, bytes);
    }
    vkt_free(h, room);
    return r;
}

static uint64_t hash_labels(const vkt_dataset *d)
{
    const uint32_t *labels = vkt_dataset_labels(d);
    return vkt_hash(VKT_HASH_START, labels, labels ? vkt_dataset_rows(d) * sizeof *labels : 0);
}

static uint64_t hash_targets(const vkt_dataset *d)
{
    const float *targets = vkt_dataset_targets(d);
    const size_t n = targets ? (size_t)vkt_dataset_rows(d) * vkt_dataset_target_width(d) : 0;
    return vkt_hash(VKT_HASH_START, targets, n * sizeof *targets);
}

static uint64_t hash_terms(const vkt_dataset *d)
{
    const uint32_t *terms = vkt_dataset_terms(d);
    return vkt_hash(VKT_HASH_START, terms, terms ? vkt_dataset_rows(d) * sizeof *terms : 0);
}

static uint64_t hash_class_names(const vkt_dataset *d)
{
    uint64_t h = VKT_HASH_START;
    for (uint32_t i = 0; i < vkt_dataset_classes(d); i++) {
        const char *name = vkt_dataset_class_name(d, i);
        h = vkt_hash(h, name ? name : "", name ? strlen(name) + 1 : 0);
    }
    return h;
}

/* Computes the hash of the means and standard deviations of all channels. */
static uint64_t hash_numbers(const vkt_dataset *d, uint32_t channels)
{
    const uint64_t h = vkt_hash(VKT_HASH_START, vkt_dataset_mean(d), channels * sizeof(double));
    return vkt_hash(h, vkt_dataset_std(d), channels * sizeof(double));
}

/* Computes the hash of a validation set: type, shape, labels, targets, terms, features. Means, standard deviations
 * and class names are in the hash only if they are not the same as in the training set `train`. */
static vkt_result hash_set(const vkt_host *h, const vkt_dataset *d, const vkt_dataset *train, uint64_t *hash)
{
    uint32_t shape[5] = { 0, 0, 0, vkt_dataset_rows(d), (uint32_t)vkt_dataset_type(d) };
    vkt_dataset_sample_shape(d, shape);
    const uint64_t parts[] = { hash_labels(d), hash_targets(d) };
    *hash = vkt_hash(vkt_hash(VKT_HASH_START, shape, sizeof shape), parts, sizeof parts);
    const uint64_t terms = hash_terms(d);
    if (vkt_dataset_terms(d)) *hash = vkt_hash(*hash, &terms, sizeof terms);
    const uint64_t rest[] = { hash_numbers(d, shape[0]), hash_class_names(d) };
    if (rest[0] != hash_numbers(train, shape[0]) || rest[1] != hash_class_names(train))
        *hash = vkt_hash(*hash, rest, sizeof rest);
    return hash_features(h, d, hash);
}

/* ---- lines ---- */

static void add_number(vkt_text *x, const char *name, double value, bool single)
{
    char text[32];
    vkt_text_add(x, "%s=%s\n", name, vkt_number_text(value, single, text));
}

static void add_hash(vkt_text *x, const char *name, uint64_t hash)
{
    vkt_text_add(x, "%s=#%016" PRIx64 "\n", name, hash);
}

static void add_list(vkt_text *x, const char *name, const double *values, uint32_t n)
{
    char text[32];
    vkt_text_add(x, "%s=", name);
    for (uint32_t i = 0; i < n; i++) vkt_text_add(x, "%s%s", i ? "," : "", vkt_number_text(values[i], false, text));
    vkt_text_add(x, "\n");
}

static vkt_result add_data(const vkt_trainer *t, vkt_text *x)
{
    static const char *const types[] = {
        [VKT_ROW_U8] = "u8", [VKT_ROW_F32] = "f32", [VKT_ROW_U16] = "u16", [VKT_ROW_U32] = "u32"
    };
    const vkt_dataset *d = t->params.train;
    uint32_t chw[3];
    uint64_t hash = VKT_HASH_START;
    VKT_TRY(hash_features(&t->host, d, &hash));
    vkt_dataset_sample_shape(d, chw);
    vkt_text_add(x, "rows=%u\nsample=%ux%ux%u %s\nclasses=%u\ntargets=%u\n", vkt_dataset_rows(d), chw[0], chw[1],
                 chw[2], types[vkt_dataset_type(d)], vkt_dataset_classes(d), vkt_dataset_target_width(d));
    vkt_text_add(x, "rows that vary=%d\n", vkt_dataset_varies(d));
    add_hash(x, "data", hash);
    add_hash(x, "labels", hash_labels(d));
    add_hash(x, "values of targets", hash_targets(d));
    if (vkt_dataset_terms(d)) add_hash(x, "terms", hash_terms(d));
    add_hash(x, "class names", hash_class_names(d));
    add_list(x, "mean", vkt_dataset_mean(d), chw[0]);
    add_list(x, "std", vkt_dataset_std(d), chw[0]);
    if (t->params.validation) VKT_TRY(hash_set(&t->host, t->params.validation, d, &hash));
    if (t->params.validation)
        add_hash(x, "validation set", hash);
    else
        vkt_text_add(x, "validation set=none\n");
    return VKT_OK;
}

static void add_groups(const vkt_trainer *t, vkt_text *x)
{
    const vkt_optimizer *o = &t->params.optimizer;
    uint64_t groups = vkt_hash(VKT_HASH_START, o->groups, sizeof o->groups), frozen = VKT_HASH_START;
    for (size_t i = 0; i < t->g->n_params; i++) {
        const vkt_value *v = &t->g->values[t->g->params[i]];
        const uint8_t is_frozen = v->frozen;
        groups = vkt_hash(groups, &v->group, sizeof v->group);
        frozen = vkt_hash(frozen, &is_frozen, sizeof is_frozen);
    }
    add_hash(x, "parameter groups", groups);
    add_hash(x, "frozen parameters", frozen);
}

static void add_optimizer(const vkt_trainer *t, vkt_text *x)
{
    const vkt_optimizer *o = &t->params.optimizer;
    const struct {
        const char *name;
        double value;
        bool single;
    } numbers[] = { { "keras", o->keras, false },
                    { "weight_decay", (double)o->weight_decay, true },
                    { "decoupled", o->decoupled, false },
                    { "momentum", (double)o->momentum, true },
                    { "dampening", (double)o->dampening, true },
                    { "nesterov", o->nesterov, false },
                    { "centered", o->centered, false },
                    { "alpha", o->alpha, false },
                    { "beta1", o->beta1, false },
                    { "beta2", o->beta2, false },
                    { "momentum_decay", o->momentum_decay, false },
                    { "lr_decay", (double)o->lr_decay, true },
                    { "initial_accumulator", (double)o->initial_accumulator, true },
                    { "eps", (double)o->eps, true },
                    { "amsgrad", o->amsgrad, false },
                    { "clip_norm", (double)o->clip_norm, true },
                    { "clip_value", (double)o->clip_value, true },
                    { "micro_batches", VKT_MAX(o->micro_batches, 1u), false } };
    vkt_text_add(x, "optimizer=%s\n", vkt_optimizer_name(o->kind));
    for (size_t i = 0; i < VKT_COUNT(numbers); i++) add_number(x, numbers[i].name, numbers[i].value, numbers[i].single);
    add_groups(t, x);
}

/* Adds a schedule, without the numbers that add_rate adds. The function of a VKT_SCHEDULE_FUNCTION is not in the
 * text. */
static void add_schedule(const vkt_schedule *s, vkt_text *x)
{
    static const char *const kinds[VKT_SCHEDULE_KIND_COUNT] = { [VKT_SCHEDULE_CONSTANT] = "constant",
                                                                [VKT_SCHEDULE_STEP] = "step",
                                                                [VKT_SCHEDULE_MULTI_STEP] = "multi-step",
                                                                [VKT_SCHEDULE_EXPONENTIAL] = "exponential",
                                                                [VKT_SCHEDULE_COSINE] = "cosine",
                                                                [VKT_SCHEDULE_ONE_CYCLE] = "one-cycle",
                                                                [VKT_SCHEDULE_FUNCTION] = "function",
                                                                [VKT_SCHEDULE_PLATEAU] = "plateau",
                                                                [VKT_SCHEDULE_WARMUP_COSINE] = "warmup-cosine" };
    const vkt_plateau *p = &s->plateau;
    double milestones[VKT_COUNT(s->milestones)];
    /* vkt_schedule_check checks n_milestones only for VKT_SCHEDULE_MULTI_STEP. */
    const uint32_t n = VKT_MIN(s->n_milestones, (uint32_t)VKT_COUNT(milestones));
    for (uint32_t i = 0; i < n; i++) milestones[i] = s->milestones[i];
    vkt_text_add(x, "schedule=%s%s%s\n", kinds[s->kind], s->linear ? " linear" : "", s->by_epoch ? " by epoch" : "");
    const double numbers[] = {
        s->warmup_from, s->gamma, s->step_size, s->pct_start, s->div_factor, s->final_div_factor
    };
    add_list(x, "schedule's warmup_from, gamma, step_size, pct_start, div_factor, final_div_factor", numbers,
             VKT_COUNT(numbers));
    add_list(x, "schedule's milestones", milestones, n);
    const double plateau[] = { p->form,     p->maximise, p->factor, p->patience, p->threshold,
                               p->absolute, p->cooldown, p->min_lr, p->eps };
    add_list(x, "plateau's form, maximise, factor, patience, threshold, absolute, cooldown, min_lr, eps", plateau,
             VKT_COUNT(plateau));
}

static void add_rate(const vkt_trainer_params *p, vkt_text *x)
{
    add_number(x, "learning rate", (double)p->lr, true);
    add_number(x, "length of the schedule", (double)p->schedule.total, false);
    add_number(x, "warm-up", p->schedule.warmup, false);
    add_number(x, "the schedule's min_lr", p->schedule.min_lr, false);
    if (p->precision == VKT_PRECISION_F32_SPLIT) vkt_text_add(x, "products of f32=split\n");
}

static vkt_result add_run(const vkt_trainer *t, vkt_text *x)
{
    static const char *const precisions[] = { "f32", "f16", "bf16", "f32" }; /* indexed by vkt_precision */
    const vkt_trainer_params *p = &t->params;
    vkt_text_add(x, "shards=%u\nmessages=%s\n", p->dist.shards, p->dist.wire == VKT_WIRE_BF16 ? "bf16" : "f32");
    vkt_text_add(x, "batch=%u\nshuffle=%d\nprecision=%s\n", p->batch, !p->no_shuffle, precisions[p->precision]);
    add_number(x, "ema_decay", p->ema_decay, false);
    add_number(x, "label_smoothing", (double)p->label_smoothing, true);
    add_hash(x, "class_weights", t->class_weights ? t->weights_hash : 0);
    vkt_text_add(x, "metrics=");
    for (uint32_t i = 0; i < p->n_metrics; i++) vkt_text_add(x, "%s%s", i ? "," : "", t->metrics[i].name);
    vkt_text_add(x, "\n");
    VKT_TRY(add_data(t, x));
    add_optimizer(t, x);
    add_schedule(&p->schedule, x);
    return VKT_OK;
}

vkt_result vkt_identity_compute(vkt_trainer *t)
{
    if (t->run_lines) return VKT_OK;
    vkt_text run = { .h = &t->host }, rate = { .h = &t->host };
    const vkt_numbers locale = vkt_numbers_begin();
    vkt_result r = add_run(t, &run);
    add_rate(&t->params, &rate);
    vkt_numbers_end(locale);
    if (r == VKT_OK && (run.failed || rate.failed)) r = vkt_fail_nomem(&t->host, "what identifies this run", 0);
    if (r == VKT_OK) {
        t->run_lines = run.s;
        t->rate_lines = rate.s;
        return VKT_OK;
    }
    vkt_text_free(&run);
    vkt_text_free(&rate);
    return r;
}

vkt_result vkt_trainer_identity(vkt_trainer *t, const char **lines)
{
    VKT_WANT(NULL, t);
    VKT_WANT(&t->host, lines);
    *lines = NULL;
    VKT_TRY(vkt_identity_compute(t));
    *lines = t->run_lines;
    return VKT_OK;
}

/* ---- the graph ---- */

/* Adds a name as one word of ASCII. '_' replaces spaces, which separate words, and commas, which separate the items of
 * a list. '_' also replaces all bytes that are not printable ASCII. */
static void add_word(vkt_text *x, const char *name, size_t n)
{
    char word[VKT_NAME_MAX + 1];
    size_t k = 0;
    for (; k < VKT_MIN(n, (size_t)VKT_NAME_MAX) && name[k]; k++)
        word[k] = (char)(name[k] > ' ' && name[k] <= '~' && name[k] != ',' ? name[k] : '_');
    word[k] = 0;
    vkt_text_add(x, "%s", word);
}

/* Adds the label of a node. A node that reads the parameter conv1.weight has the label "conv1". If a node reads no
 * parameter with a dot in its name, the label is the name of the node's first output, for instance "attention.7", or
 * the op's name if there is no output. */
static void add_label(vkt_text *x, const vkt_node *n)
{
    for (uint32_t i = 0; i < n->n_in; i++) {
        const vkt_value *v = &n->g->values[vkt_root(n->g, n->in[i])]; /* if a parameter is reshaped, v is the parameter
                                                                       * itself */
        const char *dot = v->role == VKT_ROLE_PARAM ? strrchr(v->name, '.') : NULL;
        if (!dot || dot == v->name) continue;
        add_word(x, v->name, (size_t)(dot - v->name));
        return;
    }
    add_word(x, n->n_out ? vkt_node_out(n, 0)->name : n->op->name, VKT_NAME_MAX);
}

static void add_node(vkt_text *x, const vkt_node *n)
{
    vkt_text_add(x, "%s ", n->op->name);
    add_label(x, n);
    vkt_text_add(x, " shape=");
    const vkt_shape s = n->n_out ? vkt_node_out(n, 0)->shape : (vkt_shape){ 0 };
    for (uint32_t i = 0; i < s.rank; i++) vkt_text_add(x, "%s%u", i ? "x" : "", s.dim[i]);
    vkt_text_add(x, " of=");
    for (uint32_t i = 0; i < n->n_in; i++) {
        const vkt_value *v = vkt_node_in(n, i);
        vkt_text_add(x, "%s", i ? "," : "");
        add_word(x, n->in[i].id ? v->name : "-", VKT_NAME_MAX);
        if (v->role == VKT_ROLE_CONST && v->data)
            vkt_text_add(x, "#%016" PRIx64, vkt_hash(VKT_HASH_START, v->data, (size_t)v->bytes));
    }
    if (n->attr && n->op->fields) {
        vkt_text_add(x, " ");
        vkt_attr_text_exact(n->op, n->attr, x);
    }
    vkt_text_add(x, "\n");
}

vkt_result vkt_identity_graph(const vkt_graph *g, vkt_text *out)
{
    const vkt_numbers locale = vkt_numbers_begin();
    for (size_t i = 0; i < g->n_nodes; i++) add_node(out, g->nodes[i]);
    vkt_numbers_end(locale);
    return out->failed ? vkt_fail_nomem(&g->host, "the lines of a graph", out->len) : VKT_OK;
}

/* ---- comparison with a checkpoint ---- */

/* Skips the lines about the graph's parameters. If two graphs differ, these lines usually differ, too. These lines must
 * not count as settings, because vkt_identity_check compares the graphs only if the settings are equal. A message about
 * the nodes of the graphs says more than a message about these lines. */
static const char *skip_parameters(const char *at)
{
    static const char groups[] = "parameter groups=", frozen[] = "frozen parameters=";
    while (strncmp(at, groups, sizeof groups - 1) == 0 || strncmp(at, frozen, sizeof frozen - 1) == 0) {
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    return at;
}

/* Returns whether two texts of settings are equal, apart from the lines about the graph's parameters. */
static bool same_but_parameters(const char *a, const char *b)
{
    for (;;) {
        a = skip_parameters(a);
        b = skip_parameters(b);
        const size_t n = strcspn(a, "\n");
        if (!*a || !*b) return *a == *b;
        if (strcspn(b, "\n") != n || memcmp(a, b, n) != 0) return false;
        a += n + (a[n] == '\n');
        b += n + (b[n] == '\n');
    }
}

vkt_result vkt_identity_check(vkt_trainer *t, const vkt_safetensors *st, const char *path)
{
    VKT_TRY(vkt_identity_compute(t));
    const char *run = vkt_safetensors_meta(st, "vktrain.run"), *rate = vkt_safetensors_meta(st, "vktrain.rate");
    const char *graph = vkt_safetensors_meta(st, "vktrain.graph");
    if (!run || !rate || !graph)
        return vkt_fail(&t->host, VKT_E_FORMAT, "%s does not say which run it is of: want vktrain.run, .rate, .graph",
                        path);
    vkt_differences texts = { .text.h = &t->host }, other = texts, changed = texts;
    vkt_attachments_compare(&t->attached, st, &texts);
    if (!same_but_parameters(run, t->run_lines)) vkt_compare_settings(run, t->run_lines, &other);
    const bool settings = other.n != 0;
    /* Compares the nodes only if the settings are equal. If a setting differs, many nodes may differ only because of
     * it: another batch size, for instance, changes almost every node. */
    if (!settings) vkt_compare_graphs(graph, t->graph_lines, &other);
    const char *network = other.n && !settings ? "the network is another: " : "";
    /* If nothing differs so far, only the parameter groups and the frozen parameters can differ: the graph is equal. */
    if (!texts.n && !other.n) vkt_compare_settings(run, t->run_lines, &other);
    vkt_compare_settings(rate, t->rate_lines, &changed);
    vkt_result r = VKT_OK;
    if (texts.text.failed || other.text.failed || changed.text.failed)
        r = vkt_fail_nomem(&t->host, "a comparison", 0);
    else if (texts.n || other.n)
        r = vkt_fail(&t->host, VKT_E_STATE,
                     "%s is of another run: %s%s%s%s; use the checkpoint's settings, or start without this checkpoint",
                     path, vkt_differences_text(&texts), texts.n && other.n ? "; " : "", network,
                     vkt_differences_text(&other));
    else if (changed.n)
        vkt_log_line(&t->host, VKT_LOG_WARN, "%s goes on with this run's settings: %s", path,
                     vkt_differences_text(&changed));
    vkt_text_free(&texts.text);
    vkt_text_free(&other.text);
    vkt_text_free(&changed.text);
    return r;
}
