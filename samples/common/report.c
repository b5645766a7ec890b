/* common/report.c - see report.h. */
#include "common/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "common/stop.h"

json_t *real_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

/* A float with the digits that it has: 0.01, not 0.0099999997764825821. */
static json_t *short_real(double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.7g", x);
    return json_real(strtod(text, NULL));
}

/* Integers of JSON end at 2^63 here. */
static json_t *big(uint64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    return n <= INT64_MAX ? json_integer((json_int_t)n) : json_string(text);
}

/* JSON is UTF-8: in a text that is not, '?' stands for what is not ASCII. */
static json_t *text_json(const char *text)
{
    json_t *json = json_string(text);
    const size_t n = strlen(text) + 1;
    char *ascii = json ? NULL : malloc(n);
    if (!ascii) return json;
    for (size_t i = 0; i < n; i++) ascii[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
    json = json_string(ascii);
    free(ascii);
    return json;
}

const vkt_epoch_record *best_record(const vkt_trainer *t)
{
    uint32_t n;
    const vkt_epoch_record *r = vkt_trainer_history(t, &n);
    const uint32_t best = vkt_trainer_best_epoch(t);
    return best && best <= n ? &r[best - 1] : NULL;
}

/* ---- what the run was ---- */

static json_t *data_json(const session_data *d)
{
    const vkt_dataset *const sets[] = { d->train, d->validation, d->test };
    uint32_t rows[3];
    for (int i = 0; i < 3; i++) rows[i] = sets[i] ? vkt_dataset_rows(sets[i]) : 0;
    return json_pack("{s:o, s:b, s:I, s:I, s:I, s:b}", "source", text_json(d->source), "made_up", (int)d->made_up,
                     "train", (json_int_t)rows[0], "validation", (json_int_t)rows[1], "test", (json_int_t)rows[2],
                     "test_is_validation", d->test && d->test == d->validation);
}

/* With defaults filled in, which 0 stands for. No setting is below 0: what is stands for a 0 that is no default. */
static json_t *optimizer_json(const vkt_optimizer *o)
{
    static const char *const names[VKT_OPTIMIZER_KIND_COUNT] = {
        [VKT_SGD] = "sgd",     [VKT_ADAM] = "adam",       [VKT_ADAMW] = "adamw",
        [VKT_NADAM] = "nadam", [VKT_RMSPROP] = "rmsprop", [VKT_ADAGRAD] = "adagrad",
    };
    const vkt_optimizer d = vkt_optimizer_preset(o->kind, o->keras ? VKT_PRESET_KERAS3 : VKT_PRESET_TORCH);
    const struct {
        const char *name;
        double value, usual;
    } numbers[] = {
        { "weight_decay", (double)o->weight_decay, (double)d.weight_decay },
        { "momentum", (double)o->momentum, 0 },
        { "dampening", (double)o->dampening, 0 },
        { "alpha", o->alpha, d.alpha },
        { "beta1", o->beta1, d.beta1 },
        { "beta2", o->beta2, d.beta2 },
        { "momentum_decay", o->momentum_decay, d.momentum_decay },
        { "lr_decay", (double)o->lr_decay, 0 },
        { "initial_accumulator", (double)o->initial_accumulator, (double)d.initial_accumulator },
        { "eps", (double)o->eps, (double)d.eps },
        { "clip_norm", (double)o->clip_norm, 0 },
        { "clip_value", (double)o->clip_value, 0 },
    };
    json_t *json =
        json_pack("{s:s, s:s, s:b, s:b, s:b, s:i}", "name", names[o->kind], "formula", o->keras ? "keras" : "torch",
                  "decoupled", o->decoupled || o->kind == VKT_ADAMW, "nesterov", (int)o->nesterov, "centered",
                  (int)o->centered, "micro_batches", o->micro_batches ? (int)o->micro_batches : 1);
    json_object_set_new(json, "amsgrad", json_boolean(o->amsgrad));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_object_set_new(json, numbers[i].name,
                            short_real(fmax(numbers[i].value != 0 ? numbers[i].value : numbers[i].usual, 0)));
    return json;
}

static const char *schedule_name(vkt_schedule_kind kind)
{
    switch (kind) {
    case VKT_SCHEDULE_CONSTANT: return "constant";
    case VKT_SCHEDULE_STEP: return "step";
    case VKT_SCHEDULE_MULTI_STEP: return "multi-step";
    case VKT_SCHEDULE_EXPONENTIAL: return "exponential";
    case VKT_SCHEDULE_COSINE: return "cosine";
    case VKT_SCHEDULE_ONE_CYCLE: return "one-cycle";
    case VKT_SCHEDULE_FUNCTION: return "function";
    case VKT_SCHEDULE_PLATEAU: return "plateau";
    case VKT_SCHEDULE_WARMUP_COSINE: return "warmup-cosine";
    case VKT_SCHEDULE_KIND_COUNT: break;
    }
    return "function";
}

/* The members that every report has. */
static json_t *run_json(const session *s, uint64_t seed)
{
    const vkt_device_info *device = vkt_ctx_device(s->ctx);
    json_t *arguments = json_array();
    char version[32];
    vkt_memory_stats memory;
    for (int i = 1; i < s->argc; i++) json_array_append_new(arguments, text_json(s->argv[i]));
    snprintf(version, sizeof version, "%d.%d.%d", VKT_VERSION_MAJOR, VKT_VERSION_MINOR, VKT_VERSION_PATCH);
    vkt_ctx_memory(s->ctx, &memory);
    return json_pack("{s:s, s:o, s:s, s:s, s:o, s:o, s:o, s:I}", "vktrain", version, "arguments", arguments, "device",
                     device->name, "driver", device->driver, "seed", big(seed), "data",
                     s->data.source ? data_json(&s->data) : json_null(), "stopped_by",
                     stop_signal() ? json_string(stop_name(stop_signal())) : json_null(), "peak_device_bytes",
                     (json_int_t)memory.reserved_peak_bytes);
}

static json_t *settings_json(const session *s)
{
    const train_options *o = &s->o;
    return json_pack("{s:s, s:I, s:o, s:s, s:s, s:o, s:o}", "schema", "vktrain-train-1", "batch", (json_int_t)o->batch,
                     "lr", short_real((double)o->lr), "schedule", schedule_name(s->schedule), "precision",
                     precision_name(o->precision), "ema_decay", short_real(o->ema_decay), "optimizer",
                     optimizer_json(&o->optimizer));
}

/* ---- what came of it ---- */

static json_t *epochs_json(const vkt_trainer *t)
{
    uint32_t n;
    const vkt_epoch_record *r = vkt_trainer_history(t, &n);
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) {
        json_t *epoch = json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "epoch", (json_int_t)r[i].epoch, "train_loss",
                                  real_or_null(r[i].train_loss), "train_acc", real_or_null(r[i].train_acc), "val_loss",
                                  real_or_null(r[i].val_loss), "val_acc", real_or_null(r[i].val_acc), "lr",
                                  real_or_null(r[i].lr), "seconds", real_or_null(r[i].seconds));
        for (uint32_t k = 0; k < r[i].n_metrics; k++)
            json_object_set_new(epoch, r[i].metrics[k].name, real_or_null(r[i].metrics[k].value));
        json_array_append_new(list, epoch);
    }
    return list;
}

static json_t *results_json(const session *s, vkt_trainer *t)
{
    const uint64_t first_ns = vkt_trainer_first_step_ns(t);
    const vkt_epoch_record *best = best_record(t);
    vkt_loss_scale scale = { 0 };
    const bool lost = s->failed == VKT_E_DEVICE_LOST;
    if (!lost && vkt_store_get_loss_scale(vkt_trainer_store(t), &scale) != VKT_OK) return NULL;
    uint32_t n;
    const vkt_epoch_record *r = vkt_trainer_history(t, &n);
    return json_pack("{s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I}", "error",
                     s->error == VKT_OK ? json_null() : json_string(vkt_result_text(s->error)), "parameters",
                     (json_int_t)vkt_trainer_parameters(t), "epochs", epochs_json(t), "final_loss",
                     real_or_null(n ? r[n - 1].train_loss : NAN), "best_epoch",
                     best ? json_integer((json_int_t)best->epoch) : json_null(), "best_val_acc",
                     real_or_null(vkt_trainer_best_accuracy(t)), "test_loss", real_or_null(s->test_loss),
                     "test_accuracy", real_or_null(s->test_accuracy), "ms_per_step",
                     real_or_null(vkt_trainer_ms_per_step(t)), "host_us_per_step",
                     real_or_null(vkt_trainer_host_us_per_step(t)), "data_wait_us_per_step",
                     real_or_null(vkt_trainer_data_wait_us_per_step(t)), "first_step_ms",
                     real_or_null(first_ns ? (double)(first_ns - s->start_ns) * 1e-6 : NAN), "skipped_steps",
                     (json_int_t)scale.skipped);
}

/* ---- the file ---- */

/* Takes both over. */
static bool write_both(const session *s, json_t *run, json_t *object)
{
    const bool whole = run && object && json_object_update(run, object) == 0;
    char *text = whole ? json_dumps(run, JSON_INDENT(2)) : NULL;
    fflush(stdout); /* which may be the same file */
    bool ok = text != NULL;
    if (!ok) complain("no memory for what %s is to hold", s->o.json);
    if (ok) ok = vkt_write_file(&s->host, s->o.json, text, strlen(text)) == VKT_OK;
    free(text);
    json_decref(run);
    json_decref(object);
    return ok;
}

/* {"batch": "128", "data": "#0123..", ..} of lines "name=value". */
static json_t *identity_json(const char *lines)
{
    json_t *all = json_object();
    while (*lines) {
        const size_t n = strcspn(lines, "\n"), name = strcspn(lines, "=\n");
        char key[128];
        snprintf(key, sizeof key, "%.*s", (int)name, lines);
        if (name < n) json_object_set_new(all, key, json_stringn(lines + name + 1, n - name - 1));
        lines += n + (lines[n] == '\n');
    }
    return all;
}

char *options_text(const session *s, vkt_trainer *t)
{
    const char *lines = NULL;
    if (vkt_trainer_identity(t, &lines) != VKT_OK) return NULL;
    json_t *all = run_json(s, vkt_trainer_seed(t)), *settings = settings_json(s);
    json_object_update(all, settings);
    json_object_set_new(all, "schema", json_string("vktrain-options-1"));
    json_object_set_new(all, "epochs", json_integer((json_int_t)s->o.epochs));
    json_object_set_new(all, "identity", identity_json(lines));
    json_object_del(all, "stopped_by");
    json_object_del(all, "peak_device_bytes");
    char *text = json_dumps(all, JSON_INDENT(2));
    json_decref(settings);
    json_decref(all);
    if (!text) complain("no memory for options.json");
    return text;
}

bool write_results(const session *s, json_t *object)
{
    return write_both(s, run_json(s, s->o.seed), object);
}

bool write_report(const session *s, vkt_trainer *t)
{
    json_t *all = settings_json(s), *results = results_json(s, t);
    const bool ok =
        all && results && json_object_update(all, results) == 0 && (!s->more || json_object_update(all, s->more) == 0);
    json_decref(results);
    if (!ok) json_decref(all);
    return write_both(s, run_json(s, vkt_trainer_seed(t)), ok ? all : NULL);
}
