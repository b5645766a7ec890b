/* train/state.c - weights and full training state in files.
 *
 * A checkpoint has all state that the rest of the run depends on. It has nothing that differs between equal runs: no
 * times, no names of devices. So two equal runs write the same bytes. The tensors of a checkpoint are:
 *
 *   <name>                       parameters, and states (running   F32
 *                                statistics)
 *   vktrain.best.<name>          the weights of the best epoch     F32, once there is a best epoch
 *   vktrain.moment1.<name>       the first moment                  F32, if the optimizer has it (also moment2, moment3)
 *   vktrain.gradient_sum.<name>  sum of the gradients of the       F32, if a step has several micro-batches and no
 *                                micro-batches so far              shards
 *   vktrain.published.<name>     the averaged parameters           F32, if they exist
 *   vktrain.history              a row for each complete epoch:    F64
 *                                epoch, train_loss, train_acc,
 *                                val_loss, val_acc, lr, and the
 *                                caller's metrics
 *
 * Besides the three keys of every checkpoint (io/checkpoint.h), the metadata are:
 *
 *   vktrain.run, .rate, .graph   see identity.h
 *   vktrain.position             see position_text; floats are hexadecimal (C99), because this form is exact
 *   vktrain.loss_scale           the members of vkt_loss_scale; only with VKT_PRECISION_F16
 *   vktrain.accumulation         number of micro-batches in gradient_sum, number of samples or terms in
 *                                these micro-batches; only if a step has several micro-batches
 *   vktrain.text.<name>          attached texts (attach.c) */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/numbers.h"
#include "io/checkpoint.h"
#include "ops/step/optimizer.h"
#include "record/record.h"
#include "train/identity.h"

enum { HISTORY_COLUMNS = 6, TEXT_ROOM = 1024 };

/* A training state in memory: copies of the store's parts (vkt_store_part), and the list of tensors to write. */
typedef struct state {
    vkt_trainer *t;
    uint32_t n; /* number of parameters and states (running statistics) of the store */
    vkt_blob *blobs;
    size_t n_blobs;
    char (*names)[VKT_WEIGHT_NAME_ROOM];
    float *part[VKT_ARENAS]; /* indexed by vkt_store_part; part[1], the gradient, is not in the state */
    double *history;
    uint32_t n_history;
    vkt_loss_scale scale;
    vkt_accumulation accumulation;
} state;

/* Returns the number of columns of the history. */
static uint32_t columns(const vkt_trainer *t)
{
    return HISTORY_COLUMNS + t->params.n_metrics;
}

const char *vkt_part_prefix(vkt_store_part part)
{
    static const char *const prefixes[VKT_ARENAS] = { "",
                                                      NULL,
                                                      "vktrain.moment1.",
                                                      "vktrain.moment2.",
                                                      "vktrain.moment3.",
                                                      "vktrain.gradient_sum.",
                                                      "vktrain.published." };
    return prefixes[part];
}

static void state_free(state *s)
{
    const vkt_host *h = &s->t->host;
    for (int i = 0; i < VKT_ARENAS; i++) vkt_free(h, s->part[i]);
    vkt_free(h, s->history);
    vkt_free(h, s->names);
    vkt_free(h, s->blobs);
}

static vkt_result state_alloc(vkt_trainer *t, uint32_t n_history, state *s)
{
    const vkt_host *h = &t->host;
    *s = (state){ .t = t, .n = vkt_store_count(t->store), .n_history = n_history };
    const size_t most = (size_t)s->n * VKT_ARENAS + 1, elements = vkt_store_elements(t->store);
    bool ok = (s->blobs = vkt_alloc_array(h, most, sizeof *s->blobs)) != NULL;
    ok = ok && (s->names = vkt_alloc_array(h, most, sizeof *s->names)) != NULL;
    ok = ok && (s->history = vkt_alloc_array(h, n_history + 1, columns(t) * sizeof *s->history)) != NULL;
    for (int i = 0; i < VKT_ARENAS && ok; i++)
        if (vkt_part_prefix((vkt_store_part)i) && vkt_store_has(t->store, (vkt_store_part)i))
            ok = (s->part[i] = vkt_alloc_array(h, elements, sizeof(float))) != NULL;
    if (ok) return VKT_OK;
    state_free(s);
    return vkt_fail_nomem(h, "the training state", elements * sizeof(float));
}

static void add_blob(state *s, const char *prefix, const char *name, vkt_st_dtype dtype, vkt_shape shape,
                     const void *data)
{
    vkt_blob *b = &s->blobs[s->n_blobs];
    snprintf(s->names[s->n_blobs], VKT_WEIGHT_NAME_ROOM, "%s%s", prefix, name);
    *b = (vkt_blob){ .name = s->names[s->n_blobs], .dtype = dtype, .rank = shape.rank, .data = data };
    for (uint32_t i = 0; i < shape.rank; i++) b->dims[i] = shape.dim[i];
    s->n_blobs++;
}

static void add_parts(state *s, const char *prefix, const float *values)
{
    for (uint32_t i = 0; values && i < s->n; i++) {
        const vkt_shape shape = vkt_store_shape(s->t->store, i);
        add_blob(s, prefix, vkt_store_name(s->t->store, i), VKT_ST_F32, shape, values);
        values += vkt_shape_elements(shape);
    }
}

static void position_text(const vkt_trainer *t, char out[TEXT_ROOM])
{
    vkt_position at = t->at;
    const vkt_position *p = &at;
    if (t->diverged) at.batch = 0, at.sums = (vkt_sums){ 0 }; /* a diverged epoch begins again */
    const vkt_numbers locale = vkt_numbers_begin();
    const vkt_plateau_state *l = &p->plateau;
    const double best = isnan(p->best) ? (p->best_epoch ? NAN : -HUGE_VAL) : p->best; /* see parse_position */
    const int n =
        snprintf(out, TEXT_ROOM, "%" PRIu64 " %" PRIu64 " %u %u %a %a %" PRIu64 " %a %u %u %d %a %a %d %u %u %d",
                 t->params.seed, p->t, p->epoch, p->batch, p->sums.loss, p->sums.correct, p->sums.rows, best,
                 p->best_epoch, p->since_best, p->stopped, l->scale, l->best, l->seen, l->bad, l->cooling,
                 (int)p->monitor); /* files have this number: never renumber vkt_monitor */
    if (vkt_dataset_terms(t->params.train)) snprintf(out + n, TEXT_ROOM - (size_t)n, " %" PRIu64, p->sums.terms);
    vkt_numbers_end(locale);
}

static vkt_result loss_scale_text(const vkt_trainer *t, char out[TEXT_ROOM])
{
    vkt_loss_scale l;
    VKT_TRY(vkt_store_get_loss_scale(t->store, &l));
    const vkt_numbers locale = vkt_numbers_begin();
    snprintf(out, TEXT_ROOM, "%a %u %u", (double)l.scale, l.good_steps, l.skipped);
    vkt_numbers_end(locale);
    return VKT_OK;
}

/* Parses the loss scale. Returns false if the text is malformed, or if a store cannot have this scale. Without
 * VKT_PRECISION_F16, ignores the text and sets the scale to 0, which stands for the scale of a new store. */
static bool parse_loss_scale(const vkt_trainer *t, const char *text, vkt_loss_scale *l)
{
    *l = (vkt_loss_scale){ .scale = 0 };
    if (t->params.precision != VKT_PRECISION_F16) return true;
    const vkt_numbers locale = vkt_numbers_begin();
    const int n = text ? sscanf(text, "%a %" SCNu32 " %" SCNu32, &l->scale, &l->good_steps, &l->skipped) : 0;
    vkt_numbers_end(locale);
    return n == 3 && vkt_loss_scale_fits(l);
}

static bool has_micro_batches(const vkt_trainer *t)
{
    return t->params.optimizer.micro_batches > 1;
}

static vkt_result accumulation_text(const vkt_trainer *t, char out[TEXT_ROOM])
{
    vkt_accumulation a;
    VKT_TRY(vkt_store_get_accumulation(t->store, &a));
    snprintf(out, TEXT_ROOM, "%u %u", a.batches, a.rows);
    return VKT_OK;
}

static bool parse_accumulation(const vkt_trainer *t, const char *text, vkt_accumulation *a)
{
    *a = (vkt_accumulation){ 0 };
    if (!has_micro_batches(t)) return true;
    return text && sscanf(text, "%" SCNu32 " %" SCNu32, &a->batches, &a->rows) == 2 &&
           a->batches < t->params.optimizer.micro_batches;
}

/* Parses the position. The number of terms is in the text if the data set has terms. */
static bool parse_position(const char *text, bool has_terms, uint64_t *seed, vkt_position *p)
{
    int stopped = 0, seen = 0, monitor = 0;
    vkt_plateau_state *l = &p->plateau;
    const vkt_numbers locale = vkt_numbers_begin();
    const int n = text ? sscanf(text,
                                "%" SCNu64 " %" SCNu64 " %" SCNu32 " %" SCNu32 " %la %la %" SCNu64 " %la %" SCNu32
                                " %" SCNu32 " %d %la %la %d %" SCNu32 " %" SCNu32 " %d %" SCNu64,
                                seed, &p->t, &p->epoch, &p->batch, &p->sums.loss, &p->sums.correct, &p->sums.rows,
                                &p->best, &p->best_epoch, &p->since_best, &stopped, &l->scale, &l->best, &seen, &l->bad,
                                &l->cooling, &monitor, &p->sums.terms)
                       : 0;
    vkt_numbers_end(locale);
    if (!has_terms) p->sums.terms = p->sums.rows;
    p->stopped = stopped != 0;
    l->seen = seen != 0;
    p->monitor = (vkt_monitor)monitor;
    /* If there is no best epoch, `best` is NaN, and position_text writes it as -inf. */
    if (!p->best_epoch && p->best == -HUGE_VAL) p->best = NAN;
    return n == (has_terms ? 18 : 17) && p->sums.terms >= p->sums.rows && p->epoch >= 1 && stopped >= 0 &&
           stopped <= 1 && l->scale > 0 && monitor >= VKT_MONITOR_AUTO && monitor <= VKT_MONITOR_METRIC;
}

static void history_to_columns(const vkt_history *h, uint32_t width, double *out)
{
    for (size_t i = 0; i < h->n; i++, out += width) {
        const vkt_epoch_record *r = &h->records[i];
        const double row[HISTORY_COLUMNS] = { r->epoch, r->train_loss, r->train_acc, r->val_loss, r->val_acc, r->lr };
        memcpy(out, row, sizeof row);
        for (uint32_t k = 0; k < r->n_metrics; k++) out[HISTORY_COLUMNS + k] = r->metrics[k].value;
    }
}

static vkt_result write_state(vkt_trainer *t, const state *s, const char *path)
{
    char position[TEXT_ROOM], scale[TEXT_ROOM], accumulation[TEXT_ROOM];
    position_text(t, position);
    VKT_TRY(loss_scale_text(t, scale));
    VKT_TRY(accumulation_text(t, accumulation));
    vkt_meta meta[6] = { { "vktrain.run", t->run_lines },
                         { "vktrain.rate", t->rate_lines },
                         { "vktrain.graph", t->graph_lines },
                         { "vktrain.position", position } };
    size_t n = 4;
    if (t->params.precision == VKT_PRECISION_F16) meta[n++] = (vkt_meta){ "vktrain.loss_scale", scale };
    if (has_micro_batches(t)) meta[n++] = (vkt_meta){ "vktrain.accumulation", accumulation };
    vkt_meta *all;
    VKT_TRY(vkt_attachments_join(&t->host, &t->attached, meta, n, &all));
    const vkt_result r = vkt_checkpoint_write(&t->host, path, s->blobs, s->n_blobs, all, n + t->attached.n);
    vkt_free(&t->host, all);
    return r;
}

vkt_result vkt_trainer_checkpoint(vkt_trainer *t, const char *path)
{
    state s;
    VKT_TRY(state_alloc(t, (uint32_t)t->history.n, &s));
    history_to_columns(&t->history, columns(t), s.history);
    add_blob(&s, "", "vktrain.history", VKT_ST_F64, vkt_shape2(s.n_history, columns(t)), s.history);
    vkt_result r = VKT_OK;
    for (int i = 0; i < VKT_ARENAS && r == VKT_OK; i++) {
        if (!s.part[i]) continue;
        r = vkt_trainer_get(t, (vkt_store_part)i, s.part[i]);
        add_parts(&s, vkt_part_prefix((vkt_store_part)i), s.part[i]);
    }
    if (t->at.best_epoch) add_parts(&s, "vktrain.best.", t->best);
    if (r == VKT_OK && !vkt_trainer_is_finite(t, s.part[VKT_PART_VALUE])) r = VKT_E_DIVERGED;
    const bool writes = t->shards.rank == 0; /* the other ranks have the same state */
    if (r == VKT_OK && writes) r = vkt_identity_compute(t);
    if (r == VKT_OK && writes) r = write_state(t, &s, path);
    state_free(&s);
    return r;
}

/* ---- reading ---- */

static vkt_result read_all(const vkt_trainer *t, const vkt_safetensors *st, const char *path, const char *prefix,
                           float *out)
{
    for (uint32_t i = 0; i < vkt_store_count(t->store); i++) {
        const vkt_st_entry *e;
        VKT_TRY(vkt_weights_find(&t->host, t->store, st, path, prefix, i, &e));
        VKT_TRY(vkt_safetensors_read_f32(st, e, out, e->elements));
        out += e->elements;
    }
    return VKT_OK;
}

/* Reads the state of a file to *s, best[], *at and *seed. The state of the trainer does not change. */
static vkt_result read_state(vkt_trainer *t, const vkt_safetensors *st, const char *path, state *s, float *best,
                             vkt_position *at, uint64_t *seed)
{
    VKT_TRY(vkt_identity_check(t, st, path));
    const vkt_st_entry *e = vkt_safetensors_find(st, "vktrain.history");
    const bool has_terms = vkt_dataset_terms(t->params.train) != NULL;
    if (!parse_position(vkt_safetensors_meta(st, "vktrain.position"), has_terms, seed, at) || !e ||
        e->dtype != VKT_ST_F64 || e->elements != (uint64_t)s->n_history * columns(t) ||
        at->batch > vkt_steps_of_epoch(t) || at->epoch != s->n_history + 1 ||
        !parse_loss_scale(t, vkt_safetensors_meta(st, "vktrain.loss_scale"), &s->scale) ||
        !parse_accumulation(t, vkt_safetensors_meta(st, "vktrain.accumulation"), &s->accumulation))
        return vkt_fail(&t->host, VKT_E_FORMAT, "%s: the position, history, loss scale or accumulation is malformed",
                        path);
    VKT_TRY(vkt_safetensors_read_raw(st, e, s->history, e->bytes));
    for (int i = 0; i < VKT_ARENAS; i++)
        if (s->part[i]) VKT_TRY(read_all(t, st, path, vkt_part_prefix((vkt_store_part)i), s->part[i]));
    return at->best_epoch ? read_all(t, st, path, "vktrain.best.", best) : VKT_OK;
}

static vkt_result history_from_columns(const vkt_trainer *t, const state *s, vkt_history *out)
{
    *out = (vkt_history){ .h = &t->host };
    vkt_result r = VKT_OK;
    for (uint32_t i = 0; i < s->n_history && r == VKT_OK; i++) {
        const double *c = s->history + (size_t)i * columns(t);
        vkt_epoch_record e = { .epoch = i + 1,
                               .train_loss = c[1],
                               .train_acc = c[2],
                               .val_loss = c[3],
                               .val_acc = c[4],
                               .lr = c[5],
                               .seconds = NAN,
                               .n_metrics = t->params.n_metrics };
        for (uint32_t k = 0; k < e.n_metrics; k++)
            e.metrics[k] = (vkt_metric_value){ t->metrics[k].name, c[HISTORY_COLUMNS + k] };
        r = vkt_history_add(out, &e);
    }
    if (r != VKT_OK) vkt_history_free(out);
    return r;
}

/* Sets the trainer's state, and attaches those texts of the file that the trainer does not have. */
static vkt_result apply_state(vkt_trainer *t, const vkt_safetensors *st, const state *s, const float *best,
                              const vkt_position *at, uint64_t seed)
{
    vkt_history history;
    VKT_TRY(history_from_columns(t, s, &history));
    vkt_result r = vkt_attachments_resume(t, st);
    if (r == VKT_OK) r = vkt_store_set_loss_scale(t->store, &s->scale);
    if (r != VKT_OK) {
        vkt_history_free(&history);
        return r;
    }
    vkt_history_free(&t->history);
    t->history = history;
    for (int i = 0; i < VKT_ARENAS; i++)
        if (s->part[i]) VKT_TRY(vkt_trainer_put(t, (vkt_store_part)i, s->part[i]));
    memcpy(t->best, best, vkt_store_elements(t->store) * sizeof *best);
    t->at = *at;
    t->shards.broken = false;
    t->owes_checkpoint = t->diverged = false; /* both describe the fit before this resume */
    t->params.seed = seed;
    VKT_TRY(vkt_store_set_clock(t->store, at->t, seed));
    return vkt_store_set_accumulation(t->store, &s->accumulation);
}

vkt_result vkt_trainer_resume(vkt_trainer *t, const char *path)
{
    VKT_WANT(NULL, t);
    VKT_WANT(&t->host, path);
    vkt_safetensors *st;
    VKT_TRY(vkt_checkpoint_open(&t->host, path, &st));
    const vkt_st_entry *e = vkt_safetensors_find(st, "vktrain.history");
    const uint32_t epochs =
        e && e->rank == 2 && e->dims[1] == columns(t) && e->dims[0] < UINT32_MAX / 64 ? (uint32_t)e->dims[0] : 0;
    state s;
    vkt_result r = state_alloc(t, epochs, &s);
    if (r == VKT_OK) {
        vkt_position at = { 0 };
        uint64_t seed = 0;
        float *best = t->weights; /* nothing else uses this memory now */
        r = read_state(t, st, path, &s, best, &at, &seed);
        if (r == VKT_OK) r = apply_state(t, st, &s, best, &at, seed);
        state_free(&s);
    }
    vkt_safetensors_close(&st);
    return r == VKT_OK ? vkt_replicas_follow(t) : r;
}

/* ---- weights alone ---- */

/* Writes `best`, or the weights that the trainer has now if `best` is NULL. */
static vkt_result save(vkt_trainer *t, const float *best, const char *path)
{
    state s;
    VKT_TRY(state_alloc(t, 0, &s));
    vkt_result r = best ? VKT_OK : vkt_trainer_get(t, vkt_trainer_served(t), s.part[0]);
    const float *weights = best ? best : s.part[0];
    if (r == VKT_OK && !vkt_trainer_is_finite(t, weights))
        r = vkt_fail(&t->host, VKT_E_DIVERGED,
                     "%s is not written: not all weights are finite (vkt_store_save writes any)", path);
    add_parts(&s, "", weights);
    vkt_meta *all = NULL;
    if (r == VKT_OK) r = vkt_attachments_join(&t->host, &t->attached, NULL, 0, &all);
    if (r == VKT_OK) r = vkt_safetensors_write(&t->host, path, s.blobs, s.n_blobs, all, t->attached.n);
    vkt_free(&t->host, all);
    state_free(&s);
    return r;
}

vkt_result vkt_trainer_save(vkt_trainer *t, const char *path)
{
    VKT_WANT(NULL, t);
    VKT_WANT(&t->host, path);
    if (t->shards.broken)
        return vkt_fail(&t->host, VKT_E_STATE,
                        "%s is not written: the last fit ended in the middle of a step; resume its checkpoint", path);
    return save(t, NULL, path);
}

vkt_result vkt_trainer_save_best(vkt_trainer *t, const char *path)
{
    return save(t, t->best, path);
}

/* Reads the parameters whose names match `pattern`. `weights` has space for all parameters, in the order of the store.
 * Parameters with other names are not written to `weights`. */
static vkt_result read_matching(const vkt_trainer *t, const vkt_safetensors *st, const char *path, const char *pattern,
                                float *weights)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < vkt_store_count(t->store); i++) {
        const uint64_t n = vkt_shape_elements(vkt_store_shape(t->store, i));
        if (vkt_name_matches(pattern, vkt_store_name(t->store, i))) {
            const vkt_st_entry *e;
            VKT_TRY(vkt_weights_find(&t->host, t->store, st, path, "", i, &e));
            VKT_TRY(vkt_safetensors_read_f32(st, e, weights, n));
            found++;
        }
        weights += n;
    }
    return found ? VKT_OK : vkt_fail(&t->host, VKT_E_NOT_FOUND, "load: no parameter is named '%s'", pattern);
}

static vkt_result write_matching(const vkt_trainer *t, const char *pattern, const float *weights)
{
    for (uint32_t i = 0; i < vkt_store_count(t->store); i++) {
        if (vkt_name_matches(pattern, vkt_store_name(t->store, i)))
            VKT_TRY(vkt_store_write(t->store, i, VKT_PART_VALUE, weights));
        weights += vkt_shape_elements(vkt_store_shape(t->store, i));
    }
    return VKT_OK;
}

/* Resets the optimizer to its initial state, because a diverged run may leave numbers in it that are not finite. */
static vkt_result reset_optimizer(vkt_trainer *t)
{
    static const vkt_store_part parts[] = { VKT_PART_MOMENT1, VKT_PART_MOMENT2, VKT_PART_MOMENT3,
                                            VKT_PART_GRADIENT_SUM };
    vkt_optimizer o = t->params.optimizer;
    vkt_optimizer_fill_in(&o);
    const uint64_t n = vkt_store_elements(t->store);
    for (size_t i = 0; i < VKT_COUNT(parts); i++) {
        const bool sums = o.kind == VKT_ADAGRAD && parts[i] == VKT_PART_MOMENT1;
        if (!vkt_store_has(t->store, parts[i])) continue;
        for (uint64_t k = 0; k < n; k++) t->weights[k] = sums ? o.initial_accumulator : 0;
        VKT_TRY(vkt_trainer_put(t, parts[i], t->weights));
    }
    VKT_TRY(vkt_store_set_loss_scale(t->store, &(vkt_loss_scale){ .scale = 0 }));
    t->at.t = 0;
    return vkt_store_set_clock(t->store, 0, t->params.seed);
}

vkt_result vkt_trainer_load_matching(vkt_trainer *t, const char *path, const char *pattern)
{
    VKT_WANT(NULL, t);
    VKT_WANT(&t->host, path);
    VKT_WANT(&t->host, pattern);
    vkt_safetensors *st;
    VKT_TRY(vkt_safetensors_open(&t->host, path, &st));
    vkt_result r = read_matching(t, st, path, pattern, t->weights);
    /* write_matching replaces the weights, so a checkpoint that an earlier fit owes cannot be written any more. */
    if (r == VKT_OK) t->owes_checkpoint = false;
    if (r == VKT_OK) r = write_matching(t, pattern, t->weights);
    if (r == VKT_OK && t->diverged) r = reset_optimizer(t);
    for (size_t i = 0; r == VKT_OK && i < vkt_safetensors_count(st); i++) {
        const char *name = vkt_safetensors_entry(st, i)->name;
        uint32_t k = 0;
        while (k < vkt_store_count(t->store) && strcmp(vkt_store_name(t->store, k), name) != 0) k++;
        if (k == vkt_store_count(t->store))
            vkt_log_line(&t->host, VKT_LOG_INFO, "%s: '%s' is no parameter of the model", path, name);
    }
    vkt_safetensors_close(&st);
    return r == VKT_OK ? vkt_replicas_follow(t) : r;
}

vkt_result vkt_trainer_load(vkt_trainer *t, const char *path)
{
    VKT_WANT(NULL, t);
    return vkt_trainer_load_matching(t, path, "*");
}
