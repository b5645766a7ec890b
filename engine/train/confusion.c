/* train/confusion.c - writes a confusion matrix (vktrain/metrics.h) as CSV, or as an image (confusion_figure.c). */
#include <stdio.h>
#include <strings.h>

#include "base/file.h"
#include "train/confusion.h"
#include "vktrain/metrics.h"

enum { MAX_IMAGE_CLASSES = 2048 };

/* Adds a field of a CSV line. Puts it into quotes if RFC 4180 requires that. */
static void add_field(vkt_text *t, const char *s)
{
    if (!strpbrk(s, ",\"\r\n")) {
        vkt_text_add(t, "%s", s);
        return;
    }
    vkt_text_add(t, "\"");
    for (; *s; s++) vkt_text_add(t, *s == '"' ? "\"\"" : "%c", *s);
    vkt_text_add(t, "\"");
}

static vkt_result write_csv(const vkt_host *h, const uint64_t *counts, uint32_t classes, const char *const *names,
                            const char *path)
{
    char room[VKT_CONFUSION_NAME_ROOM];
    vkt_text t = { .h = h };
    vkt_text_add(&t, "true \\ predicted");
    for (uint32_t k = 0; k < classes; k++) {
        vkt_text_add(&t, ",");
        add_field(&t, vkt_confusion_name(names, k, room));
    }
    for (uint32_t k = 0; k < classes; k++) {
        vkt_text_add(&t, "\n");
        add_field(&t, vkt_confusion_name(names, k, room));
        for (uint32_t i = 0; i < classes; i++)
            vkt_text_add(&t, ",%llu", (unsigned long long)counts[(size_t)k * classes + i]);
    }
    vkt_text_add(&t, "\n");
    const vkt_result r = t.failed ? vkt_fail_nomem(h, "a CSV text", t.len) : vkt_file_write(h, path, t.s, t.len);
    vkt_text_free(&t);
    return r;
}

vkt_result vkt_confusion_write(const vkt_host *host, const uint64_t *counts, uint32_t classes, const char *const *names,
                               const char *title, const char *path)
{
    const vkt_host h = vkt_host_resolve(host);
    if (!counts || !classes || !path)
        return vkt_fail(&h, VKT_E_ARG, "confusion: want counts and a path, got %s", classes ? "NULL" : "0 classes");
    const char *dot = strrchr(path, '.');
    if (dot && strcasecmp(dot, ".csv") == 0) return write_csv(&h, counts, classes, names, path);
    if (!dot || (strcasecmp(dot, ".svg") != 0 && strcasecmp(dot, ".png") != 0))
        return vkt_fail(&h, VKT_E_ARG, "confusion \"%s\": want a name that ends in .csv, .svg or .png", path);
    if (classes > MAX_IMAGE_CLASSES)
        return vkt_fail(&h, VKT_E_ARG, "confusion \"%s\": want %d classes or fewer in an image, got %u: write .csv",
                        path, MAX_IMAGE_CLASSES, classes);
    return vkt_confusion_draw(&h, counts, classes, names, title, path);
}
