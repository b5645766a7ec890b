/* data/image_list.c - see image_list.h. */
#include "data/image_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/paths.h"
#include "base/system.h"
#include "data/csv.h"

void vkt_image_list_free(vkt_image_list *l)
{
    if (!l->h) return;
    for (uint32_t i = 0; i < l->n; i++) vkt_free(l->h, l->paths[i]);
    for (uint32_t i = 0; l->names && i < l->classes; i++) vkt_free(l->h, l->names[i]);
    vkt_free(l->h, l->paths);
    vkt_free(l->h, l->labels);
    vkt_free(l->h, l->names);
    *l = (vkt_image_list){ 0 };
}

/* Appends a path: the first prefix_bytes of `prefix`, then `name`. */
static vkt_result add_path(vkt_image_list *l, const char *prefix, size_t prefix_bytes, const char *name)
{
    if (l->n == UINT32_MAX) return vkt_fail(l->h, VKT_E_ARG, "images: want fewer than 2^32");
    VKT_TRY(vkt_grow(l->h, &l->paths, l->n, &l->cap, sizeof *l->paths));
    const size_t name_bytes = strlen(name) + 1;
    char *path = vkt_realloc(l->h, NULL, prefix_bytes + name_bytes);
    if (!path) return vkt_fail_nomem(l->h, "a file name", prefix_bytes + name_bytes);
    memcpy(path, prefix, prefix_bytes);
    memcpy(path + prefix_bytes, name, name_bytes);
    l->paths[l->n++] = path;
    return VKT_OK;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Copies the number and the names of the classes of the data set `like`. l->names stays NULL if the classes have no
 * names. */
static vkt_result copy_classes(vkt_image_list *l, const vkt_dataset *like)
{
    l->classes = vkt_dataset_classes(like);
    if (!l->classes || !vkt_dataset_class_name(like, 0)) return VKT_OK;
    l->names = vkt_alloc_array(l->h, l->classes, sizeof *l->names);
    if (!l->names) return vkt_fail_nomem(l->h, "class names", l->classes * sizeof *l->names);
    for (uint32_t i = 0; i < l->classes; i++) {
        l->names[i] = vkt_strdup(l->h, vkt_dataset_class_name(like, i));
        if (!l->names[i]) return vkt_fail_nomem(l->h, "a class name", strlen(vkt_dataset_class_name(like, i)) + 1);
    }
    return VKT_OK;
}

/* Sets l->names to the distinct texts, sorted by their bytes. Sets l->classes to the number of names. n >= 1. */
static vkt_result name_classes(vkt_image_list *l, char *const *texts, size_t n)
{
    char **sorted = vkt_alloc_array(l->h, n, sizeof *sorted);
    if (!sorted) return vkt_fail_nomem(l->h, "class names", n * sizeof *sorted);
    memcpy(sorted, texts, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_bytes);
    size_t distinct = 1;
    for (size_t i = 1; i < n; i++)
        if (strcmp(sorted[i], sorted[distinct - 1]) != 0) sorted[distinct++] = sorted[i];
    l->names = vkt_alloc_array(l->h, distinct, sizeof *l->names);
    vkt_result r = l->names ? VKT_OK : vkt_fail_nomem(l->h, "class names", distinct * sizeof *l->names);
    if (l->names) l->classes = (uint32_t)distinct;
    for (size_t i = 0; r == VKT_OK && i < distinct; i++)
        if (!(l->names[i] = vkt_strdup(l->h, sorted[i])))
            r = vkt_fail_nomem(l->h, "a class name", strlen(sorted[i]) + 1);
    vkt_free(l->h, sorted);
    return r;
}

/* A class for a search by name. `name` must be the first member, because by_bytes reads a string pointer at the start
 * of an element. */
typedef struct named {
    const char *name;
    uint32_t number;
} named;

/* Returns the classes sorted by name, for class_of. The caller frees the array, but `l` owns the names. NULL: out of
 * memory. */
static named *index_classes(const vkt_image_list *l)
{
    named *index = vkt_alloc_array(l->h, l->classes, sizeof *index);
    for (uint32_t i = 0; index && i < l->classes; i++) index[i] = (named){ l->names[i], i };
    if (index) qsort(index, l->classes, sizeof *index, by_bytes);
    return index;
}

static bool class_of(const vkt_image_list *l, const named *index, const char *name, uint32_t *out)
{
    const named *found = bsearch(&name, index, l->classes, sizeof *index, by_bytes);
    if (found) *out = found->number;
    return found != NULL;
}

/* ---- tables ---- */

/* The state of reading a table. Labels are texts in the CSV's memory until all classes are known. */
typedef struct table {
    vkt_csv csv;
    vkt_image_list *list;
    const vkt_image_params *p;
    size_t path_column, label_column; /* label_column is SIZE_MAX if there are no labels */
    const char *csv_path;
    size_t folder_bytes; /* length of csv_path without the file's name. This part is the prefix of relative paths */
    char **labels;
    size_t *lines;
    size_t cap, lines_cap;
} table;

/* Finds the columns in the first record, and whether that record is a header. */
static vkt_result find_columns(table *t, bool *header)
{
    const char *path = t->p->path_column ? t->p->path_column : "path";
    const char *label = t->p->label_column ? t->p->label_column : "label";
    t->path_column = vkt_csv_find(&t->csv, path);
    *header = t->path_column != SIZE_MAX;
    if (*header) {
        t->label_column = vkt_csv_find(&t->csv, label);
        return VKT_OK;
    }
    if (t->p->path_column || t->p->label_column || t->csv.n_fields > 2)
        return vkt_csv_fail(&t->csv, "want a header with the columns \"%s\" and \"%s\"%s", path, label,
                            t->csv.n_fields > 2 ? ", or a path and a label alone" : "");
    t->path_column = 0;
    t->label_column = t->csv.n_fields == 2 ? 1 : SIZE_MAX;
    return VKT_OK;
}

static vkt_result read_record(table *t)
{
    vkt_image_list *l = t->list;
    char *path = t->csv.fields[t->path_column];
    if (!*path) return vkt_csv_fail(&t->csv, "want a path, got nothing");
    if (t->label_column != SIZE_MAX) {
        VKT_TRY(vkt_grow(l->h, &t->labels, l->n, &t->cap, sizeof *t->labels));
        VKT_TRY(vkt_grow(l->h, &t->lines, l->n, &t->lines_cap, sizeof *t->lines));
        t->labels[l->n] = t->csv.fields[t->label_column];
        t->lines[l->n] = t->csv.line;
    }
    return add_path(l, t->csv_path, vkt_path_is_absolute(path) ? 0 : t->folder_bytes, path);
}

static vkt_result read_records(table *t)
{
    bool more, header;
    VKT_TRY(vkt_csv_next(&t->csv, &more));
    if (!more)
        return vkt_fail(t->list->h, VKT_E_FORMAT, "%s: want a path and a label per line, it is empty", t->csv_path);
    VKT_TRY(find_columns(t, &header));
    if (header) VKT_TRY(vkt_csv_next(&t->csv, &more));
    while (more) {
        VKT_TRY(read_record(t));
        VKT_TRY(vkt_csv_next(&t->csv, &more));
    }
    if (t->list->n == 0) return vkt_fail(t->list->h, VKT_E_FORMAT, "%s: no line behind its header", t->csv_path);
    return VKT_OK;
}

/* Parses a decimal number below `limit`. Returns false for any other text. */
static bool parse_number(const char *s, uint64_t limit, uint32_t *out)
{
    uint64_t v = 0;
    const char *c = s;
    for (; *c >= '0' && *c <= '9' && v < limit; c++) v = v * 10 + (uint64_t)(*c - '0');
    *out = (uint32_t)v;
    return c > s && *c == 0 && v < limit;
}

static bool all_numbers(const table *t)
{
    uint32_t number;
    for (uint32_t i = 0; i < t->list->n; i++)
        if (!parse_number(t->labels[i], UINT32_MAX, &number)) return false;
    return true;
}

static vkt_result number_label(table *t, const named *index, uint32_t i)
{
    const vkt_image_list *l = t->list;
    const uint64_t limit = l->classes ? l->classes : UINT32_MAX;
    if (index ? class_of(l, index, t->labels[i], &l->labels[i]) : parse_number(t->labels[i], limit, &l->labels[i]))
        return VKT_OK;
    t->csv.line = t->lines[i];
    if (index) return vkt_csv_fail(&t->csv, "\"%s\" is none of the %u classes", t->labels[i], l->classes);
    return vkt_csv_fail(&t->csv, "want a class number below %llu, got \"%s\"", (unsigned long long)limit, t->labels[i]);
}

static vkt_result number_labels(table *t)
{
    vkt_image_list *l = t->list;
    if (!l->classes && !all_numbers(t)) VKT_TRY(name_classes(l, t->labels, l->n));
    l->labels = vkt_alloc_array(l->h, l->n, sizeof *l->labels);
    named *index = l->labels && l->names ? index_classes(l) : NULL;
    if (!l->labels || (l->names && !index)) return vkt_fail_nomem(l->h, "labels", l->n * sizeof *l->labels);
    vkt_result r = VKT_OK;
    for (uint32_t i = 0; r == VKT_OK && i < l->n; i++) r = number_label(t, index, i);
    vkt_free(l->h, index);
    return r;
}

vkt_result vkt_image_list_from_table(const vkt_host *h, const char *csv_path, const vkt_image_params *p,
                                     vkt_image_list *out)
{
    *out = (vkt_image_list){ .h = h };
    table t = { .list = out, .p = p, .csv_path = csv_path };
    t.folder_bytes = (size_t)(vkt_path_name(csv_path) - csv_path);
    vkt_result r = vkt_csv_open(h, csv_path, NULL, &t.csv);
    if (r == VKT_OK) r = read_records(&t);
    if (r == VKT_OK && p->classes_like) r = copy_classes(out, p->classes_like);
    if (r == VKT_OK && t.labels) r = number_labels(&t);
    vkt_csv_close(&t.csv);
    vkt_free(h, t.labels);
    vkt_free(h, t.lines);
    if (r != VKT_OK) vkt_image_list_free(out);
    return r;
}

/* ---- folders ---- */

typedef struct names {
    char **s;
    size_t n, cap;
} names;

static void names_free(const vkt_host *h, names *list)
{
    for (size_t i = 0; i < list->n; i++) vkt_free(h, list->s[i]);
    vkt_free(h, list->s);
}

static bool is_image(const char *name)
{
    static const char *const endings[] = { ".jpg", ".jpeg", ".jpe", ".png" };
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < VKT_COUNT(endings); i++)
        if (strcasecmp(dot, endings[i]) == 0) return true;
    return false;
}

static vkt_result fail_errno(const vkt_host *h, const char *folder, int error)
{
    char text[128];
    return vkt_fail(h, error == ENOENT ? VKT_E_NOT_FOUND : VKT_E_IO, "cannot read the folder \"%s\": %s", folder,
                    vkt_error_text(error, text));
}

/* Finds out whether the entry `name` of `folder` is a folder. A broken link (ENOENT, ENOTDIR) is not a folder. After
 * any other error of the system, this function fails, because the entry may be the folder of a class. */
static vkt_result is_folder(const char *folder, const char *name, vkt_text *path, bool *is)
{
    path->len = 0;
    vkt_text_add(path, "%s/%s", folder, name);
    if (path->failed) return vkt_fail_nomem(path->h, "a file name", strlen(folder) + strlen(name) + 2);
    const int error = vkt_path_is_folder(path->s, is);
    return error && error != ENOENT && error != ENOTDIR ? fail_errno(path->h, path->s, error) : VKT_OK;
}

/* Finds out whether list_folder lists the entry `name`. */
static vkt_result is_wanted(const char *folder, const char *name, bool folders, vkt_text *path, bool *is)
{
    *is = false;
    if (name[0] == '.') return VKT_OK;
    if (folders) return is_folder(folder, name, path, is);
    *is = is_image(name);
    return VKT_OK;
}

/* If `folders` is true, lists the names of the folders in `folder`. Otherwise lists the names that end like the name of
 * an image file. The names are sorted by their bytes. Names that begin with a dot are skipped. */
static vkt_result list_folder(const vkt_host *h, const char *folder, bool folders, names *out)
{
    vkt_folder *entries;
    const int closed = vkt_folder_open(folder, &entries);
    if (closed) return fail_errno(h, folder, closed);
    vkt_text path = { .h = h };
    vkt_result r = VKT_OK;
    while (r == VKT_OK) {
        const char *name;
        const int error = vkt_folder_next(entries, &name);
        if (error) r = fail_errno(h, folder, error);
        if (!name) break;
        bool wanted;
        r = is_wanted(folder, name, folders, &path, &wanted);
        if (r != VKT_OK || !wanted) continue;
        r = vkt_grow(h, &out->s, out->n, &out->cap, sizeof *out->s);
        if (r == VKT_OK && !(out->s[out->n] = vkt_strdup(h, name)))
            r = vkt_fail_nomem(h, "a file name", strlen(name) + 1);
        out->n += r == VKT_OK;
    }
    vkt_folder_close(entries);
    vkt_text_free(&path);
    if (r == VKT_OK && out->n) qsort(out->s, out->n, sizeof *out->s, by_bytes);
    return r;
}

/* Adds the images in `folder`, which ends with a slash. */
static vkt_result add_images(vkt_image_list *l, const char *folder, uint32_t label)
{
    names files = { 0 };
    vkt_result r = list_folder(l->h, folder, false, &files);
    const uint32_t first = l->n;
    for (size_t i = 0; r == VKT_OK && i < files.n; i++) r = add_path(l, folder, strlen(folder), files.s[i]);
    names_free(l->h, &files);
    if (r != VKT_OK || l->n == first) return r;
    uint32_t *labels = vkt_realloc(l->h, l->labels, l->n * sizeof *labels);
    if (!labels) return vkt_fail_nomem(l->h, "labels", l->n * sizeof *labels);
    l->labels = labels;
    for (uint32_t i = first; i < l->n; i++) labels[i] = label;
    return VKT_OK;
}

static vkt_result add_class(vkt_image_list *l, const named *index, const char *folder, const char *name)
{
    uint32_t label;
    if (!class_of(l, index, name, &label))
        return vkt_fail(l->h, VKT_E_FORMAT, "\"%s/%s\" is none of the %u classes", folder, name, l->classes);
    vkt_text path = { .h = l->h };
    vkt_text_add(&path, "%s/%s/", folder, name);
    const vkt_result r =
        path.failed ? vkt_fail_nomem(l->h, "a file name", strlen(folder)) : add_images(l, path.s, label);
    vkt_text_free(&path);
    return r;
}

static vkt_result add_classes(vkt_image_list *l, const char *folder, const vkt_image_params *p, names *found)
{
    VKT_TRY(list_folder(l->h, folder, true, found));
    if (p->classes_like) VKT_TRY(copy_classes(l, p->classes_like));
    if (p->classes_like && !l->names)
        return vkt_fail(l->h, VKT_E_ARG, "images: class folders have names, the classes of classes_like have none");
    if (found->n && !l->names) VKT_TRY(name_classes(l, found->s, found->n));
    named *index = found->n ? index_classes(l) : NULL;
    if (found->n && !index) return vkt_fail_nomem(l->h, "class names", found->n * sizeof *index);
    vkt_result r = VKT_OK;
    for (size_t i = 0; r == VKT_OK && i < found->n; i++) r = add_class(l, index, folder, found->s[i]);
    vkt_free(l->h, index);
    if (r != VKT_OK || l->n) return r;
    return vkt_fail(l->h, VKT_E_NOT_FOUND, "\"%s\": want a folder per class with .jpg, .jpeg or .png files, found none",
                    folder);
}

vkt_result vkt_image_list_from_folders(const vkt_host *h, const char *folder, const vkt_image_params *p,
                                       vkt_image_list *out)
{
    *out = (vkt_image_list){ .h = h };
    names found = { 0 };
    const vkt_result r = add_classes(out, folder, p, &found);
    names_free(h, &found);
    if (r != VKT_OK) vkt_image_list_free(out);
    return r;
}
