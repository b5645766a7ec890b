/* train/trace.c - writes one run of the training program as a trace for Chrome and Perfetto.
 *
 * Format: "Trace Event Format" (Google, the JSON object form with complete events, ph "X", times in microseconds). */
#include "train/trainer.h"

#include <math.h>

#include "base/file.h"

/* Adds `s`, escaped for a JSON string (RFC 8259, section 7). The quotes are not added. */
static void add_escaped(vkt_text *out, const char *s)
{
    for (; *s; s++) {
        if ((unsigned char)*s < 0x20)
            vkt_text_add(out, "\\u%04x", (unsigned)*s);
        else
            vkt_text_add(out, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
    }
}

static void trace_text(const vkt_trainer *t, const vkt_kernel_time *k, uint32_t n, vkt_text *out)
{
    vkt_text_add(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    vkt_text_add(out, "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"");
    add_escaped(out, t->params.model.name);
    vkt_text_add(out, ": one training step\"}}");
    for (uint32_t i = 0; i < n; i++) {
        /* Microseconds are written with integers, because the decimal point of %f depends on the locale. */
        const unsigned long long ts = k[i].start_ns, dur = k[i].end_ns - k[i].start_ns;
        vkt_text_add(out,
                     ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"cat\":\"kernel\",\"ts\":%llu.%03llu,\"dur\":%llu.%03llu,"
                     "\"name\":\"",
                     ts / 1000, ts % 1000, dur / 1000, dur % 1000);
        add_escaped(out, k[i].kernel); /* the caller of vkt_custom may choose a name with any characters */
        vkt_text_add(out, "\",\"args\":{\"node\":\"");
        add_escaped(out, k[i].node); /* the name may be from the model, so it may have any characters */
        vkt_text_add(out, "\"}}");
    }
    vkt_text_add(out, "\n]");
    const double host_us = vkt_trainer_host_us_per_step(t);
    if (!isnan(host_us))
        vkt_text_add(out, ",\"otherData\":{\"host_us_per_step\":%.0f,\"data_wait_us_per_step\":%.0f}", host_us,
                     vkt_trainer_data_wait_us_per_step(t));
    vkt_text_add(out, "}\n");
}

/* Runs the training program twice with timestamps. The times are those of the second run. Restores what the runs have
 * changed, even after a failure. */
static vkt_result profiled_steps(vkt_trainer *t, vkt_kernel_time *times, uint32_t room, uint32_t *count)
{
    vkt_snapshot kept;
    vkt_batch b = { 0 };
    vkt_result r = vkt_trainer_snapshot(t, &kept);
    if (r == VKT_OK && t->shards.count) r = vkt_steps_begin(t, 1, 0); /* chooses the samples of this rank */
    if (r == VKT_OK && !t->shards.count) r = vkt_feed_start(&t->feed, 0, (vkt_pass){ 0 });
    if (r == VKT_OK) r = vkt_feed_next(&t->feed, t->program, &b);
    vkt_feed_stop(&t->feed);
    if (r == VKT_OK) {
        for (int warm = 0; warm < 2 && r == VKT_OK; warm++) /* some drivers compile shaders in the first run */
            r = vkt_program_profile(
                t->program, &(vkt_run){ .lr = t->params.lr, .rows = b.rows, .first = b.first, .terms = b.terms }, times,
                room, count);
        const vkt_result back = vkt_trainer_restore(t, &kept);
        if (r == VKT_OK) r = back;
    }
    vkt_snapshot_free(&t->host, &kept);
    return r;
}

vkt_result vkt_trainer_profile(vkt_trainer *t, const char *path)
{
    VKT_WANT(NULL, t);
    VKT_WANT(&t->host, path);
    vkt_plan_info plan;
    vkt_program_plan(t->program, &plan);
    vkt_kernel_time *times = vkt_alloc_array(&t->host, plan.dispatches, sizeof *times);
    if (!times) return vkt_fail_nomem(&t->host, "a profile", plan.dispatches * sizeof *times);
    uint32_t n = 0;
    vkt_text text = { .h = &t->host };
    vkt_result r = profiled_steps(t, times, plan.dispatches, &n);
    if (r == VKT_OK) trace_text(t, times, VKT_MIN(n, plan.dispatches), &text);
    if (r == VKT_OK)
        r = text.failed ? vkt_fail_nomem(&t->host, "a profile", text.len)
                        : vkt_file_write(&t->host, path, text.s, text.len);
    vkt_text_free(&text);
    vkt_free(&t->host, times);
    return r;
}
