/* train/attach.c - texts that checkpoints and weights files have as metadata "vktrain.text.<name>". */
#include <inttypes.h>

#include "train/trainer.h"

#define PREFIX "vktrain.text."

static char *key_of(const vkt_host *h, const char *name)
{
    char *key = vkt_alloc(h, sizeof PREFIX + strlen(name));
    if (!key) return NULL;
    memcpy(key, PREFIX, sizeof PREFIX - 1);
    memcpy(key + sizeof PREFIX - 1, name, strlen(name));
    return key;
}

/* Frees the text of a metadata item. The trainer owns the text, although the pointer in the item is const. */
static void free_text(const vkt_host *h, const char *text)
{
    vkt_free(h, (void *)(uintptr_t)text);
}

void vkt_attachments_free(const vkt_host *h, vkt_attachments *a)
{
    for (size_t i = 0; i < a->n; i++) {
        free_text(h, a->items[i].key);
        free_text(h, a->items[i].value);
    }
    vkt_free(h, a->items);
    *a = (vkt_attachments){ 0 };
}

vkt_result vkt_attachments_join(const vkt_host *h, const vkt_attachments *a, const vkt_meta *own, size_t n,
                                vkt_meta **all)
{
    *all = vkt_alloc_array(h, n + a->n + 1, sizeof **all);
    if (!*all) return vkt_fail_nomem(h, "metadata", (n + a->n + 1) * sizeof **all);
    if (n) memcpy(*all, own, n * sizeof **all);
    if (a->n) memcpy(*all + n, a->items, a->n * sizeof **all);
    return VKT_OK;
}

vkt_result vkt_trainer_attach(vkt_trainer *t, const char *name, const char *text)
{
    VKT_WANT(NULL, t);
    const vkt_host *h = &t->host;
    vkt_attachments *a = &t->attached;
    if (!name || !*name || !text) return vkt_fail(h, VKT_E_ARG, "attach: want a name and a text, got none");
    VKT_TRY(vkt_meta_check(h, &(vkt_meta){ name, text }));
    VKT_TRY(vkt_grow(h, &a->items, a->n, &a->cap, sizeof *a->items));
    const vkt_meta m = { key_of(h, name), vkt_strdup(h, text) };
    if (!m.key || !m.value) {
        free_text(h, m.key);
        free_text(h, m.value);
        return vkt_fail_nomem(h, "an attachment", strlen(name) + strlen(text));
    }
    size_t i = 0;
    while (i < a->n && strcmp(a->items[i].key, m.key) != 0) i++;
    if (i < a->n) {
        free_text(h, a->items[i].key);
        free_text(h, a->items[i].value);
    } else {
        a->n++;
    }
    a->items[i] = m;
    return VKT_OK;
}

static bool has(const vkt_attachments *a, const char *key)
{
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->items[i].key, key) == 0) return true;
    return false;
}

void vkt_attachments_compare(const vkt_attachments *a, const vkt_safetensors *st, vkt_differences *d)
{
    for (size_t i = 0; i < a->n; i++) {
        const char *was = vkt_safetensors_meta(st, a->items[i].key);
        if (was && strcmp(was, a->items[i].value) != 0)
            vkt_differences_add(d, "attached text \"%.60s\": not the same as in the checkpoint",
                                a->items[i].key + sizeof PREFIX - 1);
    }
}

void vkt_attachments_hash(const vkt_attachments *a, vkt_text *x)
{
    const char *last = "";
    for (;;) {
        const vkt_meta *next = NULL; /* the item with the smallest key that is larger than `last` */
        for (size_t i = 0; i < a->n; i++)
            if (strcmp(a->items[i].key, last) > 0 && (!next || strcmp(a->items[i].key, next->key) < 0))
                next = &a->items[i];
        if (!next) return;
        last = next->key;
        vkt_text_add(x, "attached text \"%s\"=#%016" PRIx64 "\n", last + sizeof PREFIX - 1,
                     vkt_hash(VKT_HASH_START, next->value, strlen(next->value)));
    }
}

vkt_result vkt_attachments_resume(vkt_trainer *t, const vkt_safetensors *st)
{
    for (const char *key = vkt_safetensors_next_meta(st, NULL); key; key = vkt_safetensors_next_meta(st, key))
        if (strncmp(key, PREFIX, sizeof PREFIX - 1) == 0 && key[sizeof PREFIX - 1] && !has(&t->attached, key))
            VKT_TRY(vkt_trainer_attach(t, key + sizeof PREFIX - 1, vkt_safetensors_meta(st, key)));
    return VKT_OK;
}

vkt_result vkt_read_attachment(const vkt_host *host, const char *path, const char *name, char **text)
{
    VKT_WANT(host, text);
    const vkt_host h = vkt_host_resolve(host);
    *text = NULL;
    if (!path || !name) return vkt_fail(&h, VKT_E_ARG, "attachment: want a path and a name, got NULL");
    vkt_safetensors *st;
    VKT_TRY(vkt_safetensors_open(&h, path, &st));
    char *key = key_of(&h, name);
    const char *value = key ? vkt_safetensors_meta(st, key) : NULL;
    vkt_text copy = { .h = &h };
    vkt_result r = VKT_OK;
    if (!key)
        r = vkt_fail_nomem(&h, "an attachment", strlen(name));
    else if (!value)
        r = vkt_fail(&h, VKT_E_NOT_FOUND, "\"%s\" has no text \"%s\"", path, name);
    else {
        vkt_text_add(&copy, "%s", value);
        r = vkt_text_detach(&copy, text);
    }
    vkt_free(&h, key);
    vkt_safetensors_close(&st);
    return r;
}
