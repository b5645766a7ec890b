/* train/results.c - settings and results of a trainer as JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/numbers.h"
#include "ops/step/optimizer.h"
#include "train/json.h"
#include "train/trainer.h"

json_t *vkt_json_real(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

/* Returns x rounded to seven significant digits. The float 0.01f becomes 0.01, and not 0.0099999997764825821. */
static json_t *short_real(double x)
{
    char text[32];
    const vkt_numbers locale = vkt_numbers_begin();
    snprintf(text, sizeof text, "%.7g", x);
    const double y = strtod(text, NULL);
    vkt_numbers_end(locale);
    return json_real(y);
}

/* Returns the settings of an optimizer, with its defaults filled in. */
static json_t *optimizer_json(vkt_optimizer o)
{
    vkt_optimizer_fill_in(&o);
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        { "weight_decay", (double)o.weight_decay },
        { "momentum", (double)o.momentum },
        { "dampening", (double)o.dampening },
        { "alpha", o.alpha },
        { "beta1", o.beta1 },
        { "beta2", o.beta2 },
        { "momentum_decay", o.momentum_decay },
        { "lr_decay", (double)o.lr_decay },
        { "initial_accumulator", (double)o.initial_accumulator },
        { "eps", (double)o.eps },
        { "clip_norm", (double)o.clip_norm },
        { "clip_value", (double)o.clip_value },
    };
    json_t *json = json_pack("{s:s, s:s, s:b, s:b, s:b, s:i}", "name", vkt_optimizer_name(o.kind), "formula",
                             o.keras ? "keras" : "torch", "decoupled", (int)o.decoupled, "nesterov", (int)o.nesterov,
                             "centered", (int)o.centered, "micro_batches", (int)o.micro_batches);
    json_object_set_new(json, "amsgrad", json_boolean(o.amsgrad));
    for (size_t i = 0; i < VKT_COUNT(numbers); i++)
        json_object_set_new(json, numbers[i].name, short_real(numbers[i].value));
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

static const char *precision_name(vkt_precision p)
{
    static const char *const names[] = { "f32", "f16", "bf16", "f32-split" }; /* indexed by vkt_precision */
    return names[p];
}

static json_t *epochs_json(const vkt_trainer *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->history.n; i++) {
        const vkt_epoch_record *r = &t->history.records[i];
        json_t *epoch = json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "epoch", (json_int_t)r->epoch, "train_loss",
                                  vkt_json_real(r->train_loss), "train_acc", vkt_json_real(r->train_acc), "val_loss",
                                  vkt_json_real(r->val_loss), "val_acc", vkt_json_real(r->val_acc), "lr",
                                  vkt_json_real(r->lr), "seconds", vkt_json_real(r->seconds));
        for (uint32_t k = 0; k < r->n_metrics; k++)
            json_object_set_new(epoch, r->metrics[k].name, vkt_json_real(r->metrics[k].value));
        json_array_append_new(list, epoch);
    }
    return list;
}

static int add_text(const char *s, size_t n, void *user)
{
    vkt_text *text = user;
    vkt_text_add(text, "%.*s", (int)n, s);
    return text->failed ? -1 : 0;
}

vkt_result vkt_json_give(const vkt_host *h, json_t *object, size_t flags, char **out)
{
    vkt_text text = { .h = h };
    const bool whole = object && json_dump_callback(object, add_text, &text, flags) == 0;
    json_decref(object);
    if (whole) return vkt_text_detach(&text, out);
    vkt_text_free(&text);
    return vkt_fail_nomem(h, "JSON", 0);
}

vkt_result vkt_trainer_settings(const vkt_trainer *t, char **json)
{
    if (json) *json = NULL;
    VKT_WANT(NULL, t);
    VKT_WANT(&t->host, json);
    const vkt_trainer_params *p = &t->params;
    return vkt_json_give(&t->host,
                         json_pack("{s:I, s:o, s:s, s:s, s:o, s:o}", "batch", (json_int_t)t->batch_wanted, "lr",
                                   short_real((double)p->lr), "schedule", schedule_name(p->schedule.kind), "precision",
                                   precision_name(p->precision), "ema_decay", short_real(p->ema_decay), "optimizer",
                                   optimizer_json(p->optimizer)),
                         JSON_INDENT(2), json);
}

vkt_result vkt_trainer_results(const vkt_trainer *t, char **json)
{
    if (json) *json = NULL;
    VKT_WANT(NULL, t);
    VKT_WANT(&t->host, json);
    const vkt_epoch_record *last = t->history.n ? &t->history.records[t->history.n - 1] : NULL;
    const vkt_epoch_record *best = vkt_trainer_best(t);
    return vkt_json_give(
        &t->host,
        json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "parameters", (json_int_t)vkt_trainer_parameters(t),
                  "epochs", epochs_json(t), "final_loss", vkt_json_real(last ? last->train_loss : NAN), "best_epoch",
                  best ? json_integer((json_int_t)best->epoch) : json_null(), "best_val_acc",
                  vkt_json_real(vkt_trainer_best_accuracy(t)), "ms_per_step", vkt_json_real(vkt_trainer_ms_per_step(t)),
                  "host_us_per_step", vkt_json_real(vkt_trainer_host_us_per_step(t)), "data_wait_us_per_step",
                  vkt_json_real(vkt_trainer_data_wait_us_per_step(t))),
        JSON_INDENT(2), json);
}
