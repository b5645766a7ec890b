/* info/text.c - see text.h. */
#include "info/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/terminal.h"
#include "gpu/gpu.h"

/* ---- tables: the widest cell sets the width of its column; a last column aligned to the left is not padded ---- */

enum { MAX_COLUMNS = 8, CELL_BYTES = 400, LINE = 80 };

typedef struct table {
    char (*cells)[MAX_COLUMNS][CELL_BYTES]; /* NULL: there are no rows, or there was no memory for all of them */
    size_t rows;
    int columns;
    unsigned right; /* bit i: column i is aligned to the right */
    bool no_memory; /* nothing is printed */
} table;

static table table_make(int columns, unsigned right)
{
    return (table){ NULL, 0, columns, right, false };
}

/* Allocates memory for one more row, and clears it. */
static void grow(table *t)
{
    void *more = t->no_memory ? NULL : realloc(t->cells, (t->rows + 1) * sizeof *t->cells);
    t->no_memory = !more;
    if (!more) free(t->cells);
    t->cells = more;
    if (more) memset(t->cells[t->rows], 0, sizeof *t->cells);
}

static void table_print(FILE *out, table *t)
{
    int width[MAX_COLUMNS] = { 0 };
    for (size_t r = 0; t->cells && r < t->rows; r++)
        for (int c = 0; c < t->columns; c++) width[c] = VKT_MAX(width[c], (int)strlen(t->cells[r][c]));
    for (size_t r = 0; t->cells && r < t->rows; r++) {
        char row[MAX_COLUMNS * (CELL_BYTES + 2) + 2];
        size_t n = 0;
        for (int c = 0; c < t->columns; c++) {
            const bool right = t->right >> c & 1, last = c == t->columns - 1;
            n += (size_t)sprintf(row + n, "  %*s", right ? width[c] : last ? 0 : -width[c], t->cells[r][c]);
        }
        while (n && row[n - 1] == ' ') n--;
        strcpy(row + n, "\n");
        terminal_print(out, row);
    }
    free(t->cells);
    t->cells = NULL;
}

static void cell(table *t, int column, const char *fmt, ...) VKT_PRINTF(3, 4);
static void cell(table *t, int column, const char *fmt, ...)
{
    va_list args;
    if (column == 0) grow(t);
    if (!t->cells) return;
    va_start(args, fmt);
    vsnprintf(t->cells[t->rows][column], CELL_BYTES, fmt, args);
    va_end(args);
    t->rows += column == t->columns - 1; /* the last cell ends the row */
}

/* Adds a row of two cells. */
#define ROW(t, name, ...) (cell(t, 0, "%s", name), cell(t, 1, __VA_ARGS__))

/* ---- devices ---- */

const char *info_kind_name(vkt_device_kind kind)
{
    static const char *const names[] = { [VKT_DEVICE_OTHER] = "other",
                                         [VKT_DEVICE_INTEGRATED] = "integrated",
                                         [VKT_DEVICE_DISCRETE] = "discrete",
                                         [VKT_DEVICE_VIRTUAL] = "virtual",
                                         [VKT_DEVICE_CPU] = "cpu" };
    return names[kind];
}

const char *info_version_text(uint32_t version, char text[24])
{
    snprintf(text, 24, "%u.%u.%u", version >> 22 & 0x7f, version >> 12 & 0x3ff, version & 0xfff);
    return text;
}

void info_print_devices(FILE *out, const info_facts *f)
{
    static const char *const heads[] = { "", "#", "device", "driver", "kind", "memory", "subgroup", "usable" };
    char bytes[24];
    if (!f->n_devices) {
        fputs("no Vulkan device was found\n", out);
        return;
    }
    table t = table_make(VKT_COUNT(heads), 1u << 1 | 1u << 5 | 1u << 6);
    for (int c = 0; c < t.columns; c++) cell(&t, c, "%s", heads[c]);
    for (uint32_t i = 0; i < f->n_devices; i++) {
        const vkt_device_info *d = &f->devices[i];
        cell(&t, 0, "%s", f->ctx && vkt_ctx_device(f->ctx)->index == d->index ? "*" : "");
        cell(&t, 1, "%u", d->index);
        cell(&t, 2, "%s", d->name);
        cell(&t, 3, "%s", d->driver);
        cell(&t, 4, "%s", info_kind_name(d->kind));
        cell(&t, 5, "%s", vkt_bytes_text(d->memory_bytes, bytes));
        cell(&t, 6, d->subgroup_size ? "%u" : "-", d->subgroup_size);
        cell(&t, 7, "%s (%s)", d->usable ? "yes" : "no", d->reason);
    }
    table_print(out, &t);
}

/* ---- the chosen device ---- */

static void print_features(FILE *out, const info_facts *f)
{
    const vkt_device_limits *l = &f->limits;
    size_t at = 0;
    fputs("\nrequired (all are there)", out);
    for (uint32_t i = 0; vkt_device_need(i); i++) {
        const char *need = vkt_device_need(i);
        const bool fits = i && at + strlen(need) + 2 < LINE;
        fprintf(out, "%s%s%s", !i ? "" : fits ? ", " : ",", fits ? "" : "\n  ", need);
        at = (fits ? at + 2 : 2) + strlen(need);
    }
    fputs("\n\noptional\n", out);
    const struct {
        const char *name, *what;
        bool there;
    } rows[] = { { "texel loads", "tensors through texel buffers: faster on CPUs", l->max_texel_elements > 0 },
                 { "transfer queue", "uploads run beside computation", l->transfer_queue },
                 { "timestamps", "steps are measured, and long ones split", l->timestamp_ns > 0 },
                 { "memory budget", "the memory limit follows what other programs use", l->memory_budget },
                 { "host memory import", "exchanged data need no copy by the host", l->host_import },
                 { "cooperative matrices", "faster matrix products in f16 and f32-split", l->matrix[0] > 0 },
                 { "bf16 matrices", "faster matrix products in bf16", l->matrix_bf16[0] > 0 } };
    table t = table_make(3, 0);
    for (size_t i = 0; i < VKT_COUNT(rows); i++) {
        cell(&t, 0, "%s", rows[i].name);
        cell(&t, 1, "%s", rows[i].there ? "yes" : "no");
        cell(&t, 2, "%s", rows[i].what);
    }
    table_print(out, &t);
}

static void print_limits(FILE *out, const info_facts *f)
{
    const vkt_device_limits *l = &f->limits;
    char bytes[24];
    fputs("\nlimits\n", out);
    table t = table_make(2, 1u << 1);
    ROW(&t, "cores", "%u", l->cores);
    ROW(&t, "subgroup size", "%u", l->subgroup_size);
    ROW(&t, "invocations of a workgroup", "%u", l->max_workgroup_lanes);
    ROW(&t, "workgroups along an axis", "%u", l->max_workgroups);
    ROW(&t, "shared memory of a workgroup", "%s", vkt_bytes_text(l->shared_bytes, bytes));
    ROW(&t, "one binding", "%s", vkt_bytes_text(l->max_binding_bytes, bytes));
    if (l->max_texel_elements) ROW(&t, "elements of a texel buffer", "%llu", (unsigned long long)l->max_texel_elements);
    ROW(&t, "one allocation", "%s", vkt_bytes_text(l->max_allocation_bytes, bytes));
    if (l->matrix[0])
        ROW(&t, "cooperative matrix, M x N x K", "%u x %u x %u", l->matrix[0], l->matrix[1], l->matrix[2]);
    if (l->matrix_bf16[0])
        ROW(&t, "the same of bfloat16", "%u x %u x %u", l->matrix_bf16[0], l->matrix_bf16[1], l->matrix_bf16[2]);
    if (l->timestamp_ns > 0) ROW(&t, "timestamp period", "%g ns", l->timestamp_ns);
    table_print(out, &t);
}

/* Prints name, value, source (VKT_TRAITS or the device class) and meaning of each trait. */
static void print_traits(FILE *out, const info_facts *f)
{
    const char *cls = vkt_class_name(f->ctx->device_class);
    char value[32];
    fprintf(out, "\ntraits: what kernels are shaped by (VKT_TRAITS=name=value,.. sets single ones)\n");
    table t = table_make(4, 1u << 1);
    for (uint32_t i = 0; i < VKT_TRAIT_COUNT; i++) {
        snprintf(value, sizeof value, "%.10g", vkt_trait_value(f->ctx->limits.traits, i));
        cell(&t, 0, "%s", vkt_trait_name(i));
        cell(&t, 1, "%s", value);
        cell(&t, 2, "%s", vkt_trait_is_set(&f->ctx->traits_set, i) ? "VKT_TRAITS" : cls);
        cell(&t, 3, "%s", vkt_trait_what(i));
    }
    table_print(out, &t);
}

static void print_memory(FILE *out, const info_facts *f)
{
    const vkt_memory_stats *m = &f->memory;
    char bytes[24];
    fputs("\nmemory\n", out);
    table t = table_make(2, 1u << 1);
    ROW(&t, "largest heap of the device", "%s", vkt_bytes_text(vkt_ctx_device(f->ctx)->memory_bytes, bytes));
    if (m->heap_budget_bytes)
        ROW(&t, "for this process, as the driver reports", "%s", vkt_bytes_text(m->heap_budget_bytes, bytes));
    ROW(&t, "memory limit of a context, by default", "%s", vkt_bytes_text(m->cap_bytes, bytes));
    table_print(out, &t);
}

static void file_row(table *t, const char *name, const info_file *file, const char *used)
{
    char bytes[24];
    const char *const states[] = { [INFO_FILE_NONE] = "not there",
                                   [INFO_FILE_USED] = used,
                                   [INFO_FILE_IGNORED] = "ignored: damaged, or of another driver or version",
                                   [INFO_FILE_OFF] = "switched off in the environment" };
    cell(t, 0, "%s", name);
    cell(t, 1, "%s", !file->path ? "-" : file->state ? vkt_bytes_text(file->bytes, bytes) : "");
    cell(t, 2, "%s", file->path ? states[file->state] : "not kept: there is no home directory");
    cell(t, 3, "%s", file->path ? file->path : "");
}

static void print_files(FILE *out, const info_facts *f)
{
    char entries[48];
    fputs("\nfiles\n", out);
    snprintf(entries, sizeof entries, "used: %zu nodes", f->n_tuned);
    table t = table_make(4, 1u << 1);
    file_row(&t, "pipeline cache", &f->pipelines, "used");
    file_row(&t, "tuning", &f->tuning, entries);
    table_print(out, &t);
}

/* ---- variants ---- */

/* Writes the names of the usable variants except the chosen one, for instance "fft16 tile". */
static void others_text(const info_choice *c, char *text, size_t bytes)
{
    size_t n = 0;
    *text = 0;
    for (int v = 0; v < VKT_V_COUNT && n < bytes; v++)
        if (v != (int)c->taken && c->usable >> v & 1)
            n += (size_t)snprintf(text + n, bytes - n, "%s%s", n ? " " : "", vkt_variant_name((vkt_variant)v));
}

static void print_work(FILE *out, const info_work *w)
{
    char others[160];
    terminal_printf(out, "\n%s%s%s\n", w->name, *w->what ? ": " : "", w->what);
    if (!w->n) fputs("  no op has a choice\n", out);
    table t = table_make(5, 1u << 0);
    for (size_t i = 0; i < w->n; i++) {
        const info_choice *c = &w->choices[i];
        others_text(c, others, sizeof others);
        cell(&t, 0, "%ux", c->times);
        cell(&t, 1, "%s", c->op);
        cell(&t, 2, "%s%s", vkt_variant_name(c->taken), c->tuned ? " (tuned)" : "");
        cell(&t, 3, "%s", c->text);
        cell(&t, 4, "%s%s", *others ? "or " : "", others);
    }
    table_print(out, &t);
}

void info_print(FILE *out, const info_facts *f)
{
    const vkt_device_info *d = vkt_ctx_device(f->ctx);
    char version[24];
    info_print_devices(out, f);
    terminal_printf(out, "\ndevice %u: %s, %s, Vulkan %s\n", d->index, d->name, d->driver,
                    info_version_text(d->api_version, version));
    print_features(out, f);
    print_limits(out, f);
    print_traits(out, f);
    print_memory(out, f);
    print_files(out, f);
    terminal_print(
        out, "\nvariants of kernels that ops take, and what they could take instead; 1x: once in a training step; "
             "(..)b: stored with the batch last\n");
    for (int v = 0; v < VKT_V_COUNT; v++)
        if (f->off >> v & 1)
            fprintf(out, "  %s is switched off in the environment\n", vkt_variant_name((vkt_variant)v));
    for (size_t i = 0; i < f->n_works; i++) print_work(out, &f->works[i]);
}
