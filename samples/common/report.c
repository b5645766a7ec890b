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

/* Makes a JSON integer. A number of 2^63 or more becomes a string, because json_int_t cannot hold it. */
static json_t *big(uint64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    return n <= INT64_MAX ? json_integer((json_int_t)n) : json_string(text);
}

json_t *text_json(const char *text)
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

/* ---- the facts of the run ---- */

static json_t *data_json(const session_data *d)
{
    const vkt_dataset *const sets[] = { d->train, d->validation, d->test };
    uint32_t rows[3];
    for (int i = 0; i < 3; i++) rows[i] = sets[i] ? vkt_dataset_rows(sets[i]) : 0;
    return json_pack("{s:o, s:b, s:I, s:I, s:I, s:b}", "source", text_json(d->source), "made_up", (int)d->made_up,
                     "train", (json_int_t)rows[0], "validation", (json_int_t)rows[1], "test", (json_int_t)rows[2],
                     "test_is_validation", d->test && d->test == d->validation);
}

/* Returns the members that every report has. */
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

/* Returns the JSON object of vkt_trainer_settings or vkt_trainer_results; NULL if that fails. */
static json_t *object_of(vkt_result (*write)(const vkt_trainer *t, char **json), const vkt_trainer *t)
{
    char *text = NULL;
    json_t *object = write(t, &text) == VKT_OK ? json_loads(text, 0, NULL) : NULL;
    vkt_text_release(&text);
    return object;
}

/* ---- the results ---- */

/* Returns the numbers of vkt_dist_stats, with times per step. Returns a JSON null if no step after the first one has
 * exchanged gradients. */
static json_t *ranks_json(const vkt_trainer *t)
{
    vkt_dist_stats d = { 0 };
    vkt_trainer_dist_stats(t, &d);
    if (!d.steps) return json_null();
    const double n = (double)d.steps + 1; /* number of all steps: d.steps does not count the first step */
    json_t *buckets = json_array();
    for (uint32_t i = 0; i < d.buckets && i < VKT_DIST_BUCKETS; i++)
        json_array_append_new(buckets, json_pack("{s:I, s:f}", "bytes", (json_int_t)d.bucket_bytes[i], "ready_ms",
                                                 d.ready_ms[i] / (double)d.steps));
    return json_pack("{s:I, s:I, s:I, s:f, s:f, s:o}", "ranks", (json_int_t)d.ranks, "steps", (json_int_t)d.steps,
                     "sent_bytes", (json_int_t)d.bytes, "exchange_ms_per_step", d.exchange_ms / n,
                     "exposed_ms_per_step", d.exposed_ms / n, "buckets", buckets);
}

/* Returns the trainer's results and the results that the session measured; NULL if that fails. */
static json_t *results_json(const session *s, vkt_trainer *t)
{
    const uint64_t first_ns = vkt_trainer_first_step_ns(t);
    vkt_loss_scale scale = { 0 };
    const bool lost = s->failed == VKT_E_DEVICE_LOST;
    if (!lost && vkt_store_get_loss_scale(vkt_trainer_store(t), &scale) != VKT_OK) return NULL;
    json_t *own = json_pack("{s:o, s:o, s:o, s:o, s:I}", "error",
                            s->error == VKT_OK ? json_null() : json_string(vkt_result_text(s->error)), "test_loss",
                            real_or_null(s->test_loss), "test_accuracy", real_or_null(s->test_accuracy),
                            "first_step_ms", real_or_null(first_ns ? (double)(first_ns - s->start_ns) * 1e-6 : NAN),
                            "skipped_steps", (json_int_t)scale.skipped);
    json_t *all = object_of(vkt_trainer_results, t);
    if (all) json_object_set_new(all, "ranks", ranks_json(t));
    const bool ok = own && all && json_object_update(all, own) == 0;
    json_decref(own);
    if (ok) return all;
    json_decref(all);
    return NULL;
}

/* ---- the file ---- */

/* Adds the members of `object` to `run` and writes `run` to the file of --json. Frees both objects, which may be NULL.
 * Returns false, with a message, if it fails. */
static bool write_both(const session *s, json_t *run, json_t *object)
{
    const bool whole = run && object && json_object_update(run, object) == 0;
    char *text = whole ? json_dumps(run, JSON_INDENT(2)) : NULL;
    fflush(stdout); /* stdout may be the file of --json */
    bool ok = text != NULL;
    if (!ok) complain("no memory for the content of %s", s->o.json);
    if (ok) ok = vkt_write_file(&s->host, s->o.json, text, strlen(text)) == VKT_OK;
    free(text);
    json_decref(run);
    json_decref(object);
    return ok;
}

/* Converts lines "name=value" to an object, for instance {"batch": "128", "data": "#0123.."}. All values are strings.
 */
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
    json_t *all = run_json(s, vkt_trainer_seed(t)), *settings = object_of(vkt_trainer_settings, t);
    const bool whole = settings && json_object_update(all, settings) == 0;
    json_object_set_new(all, "schema", json_string("vktrain-options-1"));
    json_object_set_new(all, "epochs", json_integer((json_int_t)s->o.epochs));
    json_object_set_new(all, "identity", identity_json(lines));
    json_object_del(all, "stopped_by");
    json_object_del(all, "peak_device_bytes");
    char *text = whole ? json_dumps(all, JSON_INDENT(2)) : NULL;
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
    json_t *all = object_of(vkt_trainer_settings, t), *results = results_json(s, t);
    if (all) json_object_set_new(all, "schema", json_string("vktrain-train-1"));
    const bool ok =
        all && results && json_object_update(all, results) == 0 && (!s->more || json_object_update(all, s->more) == 0);
    json_decref(results);
    if (!ok) json_decref(all);
    return write_both(s, run_json(s, vkt_trainer_seed(t)), ok ? all : NULL);
}
