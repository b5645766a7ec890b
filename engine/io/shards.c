/* io/shards.c - reads an index of safetensors files ("shards") and opens the files: see io/shards.h. */
#include "io/shards.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/paths.h"
#include "io/members.h"

/* A tensor of the set. files[shard] is the tensor's file; names[shard] is the name of this file, if there is an index.
 */
typedef struct listed {
    const char *name;
    size_t shard;
    const vkt_st_entry *tensor;
} listed;

struct vkt_shards {
    vkt_host host;
    char *path;
    char *text; /* the index. The names of tensors and shards are strings in this text. NULL: there is no index */
    size_t text_bytes;
    listed *entries; /* sorted by name */
    size_t n, cap;
    const char **names; /* the names of the n_files shards, in the order in which the index first names them. NULL:
                         * there is no index */
    size_t n_files, cap_files;
    vkt_safetensors **files; /* the n_files open shards; without an index: the single file */
};

static vkt_result malformed(const vkt_shards *s, const char *fmt, ...) VKT_PRINTF(2, 3);
static vkt_result malformed(const vkt_shards *s, const char *fmt, ...)
{
    char why[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    return vkt_fail(&s->host, VKT_E_FORMAT, "\"%s\" is not a sound index of safetensors files: %s", s->path, why);
}

/* The largest number of files that an index may name. All files of a set are open at once. */
enum { MOST_FILES = 10000 };

/* ---- the index ---- */

/* Logs why reading the members of a JSON object failed. Returns VKT_E_NOMEM if no_memory, else VKT_E_FORMAT. */
static vkt_result fail_members(const vkt_shards *s, const vkt_members *w, bool no_memory)
{
    if (no_memory) return vkt_fail_nomem(&s->host, "JSON", w->n);
    return malformed(s, "byte %zu: %s", (size_t)(w->text - s->text) + w->at, w->why);
}

/* Sets *shard to the index of `name` in `names`. Appends the name if it is new. Neighbouring tensors are mostly
 * in the same shard, so the search begins at the last name. */
static vkt_result find_shard(vkt_shards *s, const char *name, size_t *shard)
{
    for (size_t i = s->n_files; i-- > 0;) {
        if (strcmp(s->names[i], name) != 0) continue;
        *shard = i;
        return VKT_OK;
    }
    if (!*name || strpbrk(name, "/\\:")) return malformed(s, "\"%.80s\" is no name of a file in its folder", name);
    if (s->n_files == MOST_FILES) return malformed(s, "it names more than %d files", MOST_FILES);
    VKT_TRY(vkt_grow(&s->host, &s->names, s->n_files, &s->cap_files, sizeof *s->names));
    *shard = s->n_files;
    s->names[s->n_files++] = name;
    return VKT_OK;
}

static vkt_result read_map(vkt_shards *s, const vkt_member *map)
{
    if (*map->value != '{') return malformed(s, "\"weight_map\" is not an object");
    if (s->n > 0) return malformed(s, "a duplicate of \"weight_map\"");
    vkt_members w = vkt_members_of(map->value, map->value_bytes);
    for (vkt_member m = { 0 };;) {
        bool more, no_memory = false;
        if (!vkt_members_next(&w, &m, &more)) return fail_members(s, &w, false);
        if (!more) return VKT_OK;
        VKT_TRY(vkt_grow(&s->host, &s->entries, s->n, &s->cap, sizeof *s->entries));
        listed *e = &s->entries[s->n];
        e->name = vkt_members_text(&w, m.key, m.key_bytes, &no_memory);
        if (!e->name) return fail_members(s, &w, no_memory);
        if (*m.value != '"') return malformed(s, "the file of tensor \"%.80s\" is no text", e->name);
        const char *shard = vkt_members_text(&w, m.value, m.value_bytes, &no_memory);
        if (!shard) return fail_members(s, &w, no_memory);
        VKT_TRY(find_shard(s, shard, &e->shard));
        e->tensor = NULL;
        s->n++;
    }
}

static int by_name(const void *pa, const void *pb)
{
    return strcmp(((const listed *)pa)->name, ((const listed *)pb)->name);
}

static vkt_result sort_entries(vkt_shards *s)
{
    if (s->n > 0) qsort(s->entries, s->n, sizeof *s->entries, by_name);
    for (size_t i = 1; i < s->n; i++)
        if (strcmp(s->entries[i - 1].name, s->entries[i].name) == 0)
            return malformed(s, "a duplicate of the tensor \"%.80s\"", s->entries[i].name);
    return VKT_OK;
}

static vkt_result read_index(vkt_shards *s)
{
    void *text;
    bool has_map = false;
    VKT_TRY(vkt_file_read(&s->host, s->path, VKT_ST_MAX_HEADER_BYTES, &text, &s->text_bytes));
    s->text = text;
    if (s->text_bytes == 0 || *s->text != '{') return malformed(s, "it does not begin with '{'");
    vkt_members w = vkt_members_of(s->text, s->text_bytes);
    for (vkt_member m = { 0 };;) {
        bool more, no_memory = false;
        if (!vkt_members_next(&w, &m, &more)) return fail_members(s, &w, false);
        if (!more) break;
        const char *key = vkt_members_text(&w, m.key, m.key_bytes, &no_memory);
        if (!key) return fail_members(s, &w, no_memory);
        if (strcmp(key, "weight_map") != 0) continue;
        VKT_TRY(read_map(s, &m));
        has_map = true;
    }
    if (!has_map) return malformed(s, "it has no \"weight_map\"");
    return sort_entries(s);
}

/* ---- the files ---- */

/* Opens shard i. Its file is in the folder of the index. */
static vkt_result open_shard(vkt_shards *s, size_t i)
{
    vkt_text path = { .h = &s->host };
    vkt_text_add(&path, "%.*s%s", (int)(vkt_path_name(s->path) - s->path), s->path, s->names[i]);
    const vkt_result r = path.failed ? vkt_fail_nomem(&s->host, "a file name", strlen(s->path))
                                     : vkt_safetensors_open(&s->host, path.s, &s->files[i]);
    vkt_text_free(&path);
    return r;
}

static vkt_result open_listed(vkt_shards *s)
{
    VKT_TRY(read_index(s));
    s->files = vkt_alloc_array(&s->host, s->n_files, sizeof *s->files);
    if (!s->files) return vkt_fail_nomem(&s->host, "a list of files", s->n_files * sizeof *s->files);
    for (size_t i = 0; i < s->n_files; i++) VKT_TRY(open_shard(s, i));
    for (size_t i = 0; i < s->n; i++) {
        listed *e = &s->entries[i];
        e->tensor = vkt_safetensors_find(s->files[e->shard], e->name);
        if (!e->tensor)
            return malformed(s, "\"%.80s\" does not have the tensor \"%.80s\"", s->names[e->shard], e->name);
    }
    return VKT_OK;
}

static vkt_result open_single(vkt_shards *s)
{
    s->files = vkt_alloc(&s->host, sizeof *s->files);
    if (!s->files) return vkt_fail_nomem(&s->host, "a list of files", sizeof *s->files);
    s->n_files = 1;
    VKT_TRY(vkt_safetensors_open(&s->host, s->path, &s->files[0]));
    s->n = vkt_safetensors_count(s->files[0]);
    s->entries = vkt_alloc_array(&s->host, s->n, sizeof *s->entries);
    if (!s->entries) return vkt_fail_nomem(&s->host, "a list of tensors", s->n * sizeof *s->entries);
    for (size_t i = 0; i < s->n; i++) {
        const vkt_st_entry *tensor = vkt_safetensors_entry(s->files[0], i);
        s->entries[i] = (listed){ .name = tensor->name, .tensor = tensor };
    }
    return sort_entries(s);
}

vkt_result vkt_shards_open(const vkt_host *h, const char *path, vkt_shards **out)
{
    *out = NULL;
    VKT_WANT(h, path);
    vkt_shards *s = vkt_alloc(h, sizeof *s);
    if (!s) return vkt_fail_nomem(h, "a set of safetensors files", sizeof *s);
    s->host = *h;
    s->path = vkt_strdup(h, path);
    vkt_result r = s->path ? VKT_OK : vkt_fail_nomem(h, "a file name", strlen(path) + 1);
    if (r == VKT_OK) r = vkt_name_matches("*.json", path) ? open_listed(s) : open_single(s);
    if (r != VKT_OK) vkt_shards_close(&s);
    *out = s;
    return r;
}

void vkt_shards_close(vkt_shards **s)
{
    if (!*s) return;
    const vkt_host h = (*s)->host;
    for (size_t i = 0; (*s)->files && i < (*s)->n_files; i++) vkt_safetensors_close(&(*s)->files[i]);
    vkt_free(&h, (*s)->files);
    vkt_free(&h, (*s)->names);
    vkt_free(&h, (*s)->entries);
    vkt_free(&h, (*s)->text);
    vkt_free(&h, (*s)->path);
    vkt_free(&h, *s);
    *s = NULL;
}

/* ---- entries ---- */

static vkt_shard_entry entry_of(const vkt_shards *s, const listed *e)
{
    return (vkt_shard_entry){ .file = s->files[e->shard], .tensor = e->tensor };
}

size_t vkt_shards_count(const vkt_shards *s)
{
    return s->n;
}

vkt_shard_entry vkt_shards_entry(const vkt_shards *s, size_t i)
{
    return entry_of(s, &s->entries[i]);
}

vkt_shard_entry vkt_shards_find(const vkt_shards *s, const char *name)
{
    const listed *found =
        s->n ? bsearch(&(listed){ .name = name }, s->entries, s->n, sizeof *s->entries, by_name) : NULL;
    return found ? entry_of(s, found) : (vkt_shard_entry){ .file = NULL };
}
