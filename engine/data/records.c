/* data/records.c - reads CSV files as tables of texts (vktrain/table.h). */
#include "data/csv.h"
#include "vktrain/table.h"

struct vkt_records {
    vkt_host host;
    vkt_csv csv; /* owns the texts */
    size_t columns, rows, cap;
    char **names;  /* `columns` of them */
    char **fields; /* rows * columns of them */
};

void vkt_records_destroy(vkt_records **pr)
{
    vkt_records *r = pr ? *pr : NULL;
    if (!r) return;
    const vkt_host h = r->host;
    vkt_csv_close(&r->csv);
    vkt_free(&h, r->names);
    vkt_free(&h, r->fields);
    vkt_free(&h, r);
    *pr = NULL;
}

static vkt_result read_header(vkt_records *r)
{
    bool more;
    VKT_TRY(vkt_csv_next(&r->csv, &more));
    if (!more) return vkt_fail(&r->host, VKT_E_FORMAT, "\"%s\": want a line of names, it is empty", r->csv.name);
    r->columns = r->csv.n_fields;
    r->names = vkt_alloc_array(&r->host, r->columns, sizeof *r->names);
    if (!r->names) return vkt_fail_nomem(&r->host, "names of columns", r->columns * sizeof *r->names);
    memcpy(r->names, r->csv.fields, r->columns * sizeof *r->names);
    return VKT_OK;
}

static vkt_result read_rows(vkt_records *r)
{
    for (;;) {
        bool more;
        VKT_TRY(vkt_csv_next(&r->csv, &more));
        if (!more) return VKT_OK;
        if (r->rows == UINT32_MAX) return vkt_csv_fail(&r->csv, "want fewer than 2^32 rows");
        VKT_TRY(vkt_grow(&r->host, &r->fields, r->rows, &r->cap, r->columns * sizeof *r->fields));
        memcpy(r->fields + r->rows++ * r->columns, r->csv.fields, r->columns * sizeof *r->fields);
    }
}

/* Reads `text`; if it is NULL, reads the file `name`. */
static vkt_result read_records(const vkt_host *host, const char *name, const char *text, char separator,
                               vkt_records **out)
{
    const vkt_host h = vkt_host_resolve(host);
    const vkt_csv_format format = { .separator = separator };
    if (!name) return vkt_fail(&h, VKT_E_ARG, "records: path or name is NULL");
    vkt_records *r = vkt_alloc(&h, sizeof *r);
    if (!r) return vkt_fail_nomem(&h, "records", sizeof *r);
    r->host = h;
    vkt_result result = text ? vkt_csv_open_memory(&r->host, name, text, strlen(text), &format, &r->csv)
                             : vkt_csv_open(&r->host, name, &format, &r->csv);
    if (result == VKT_OK) result = read_header(r);
    if (result == VKT_OK) result = read_rows(r);
    if (result == VKT_OK)
        *out = r;
    else
        vkt_records_destroy(&r);
    return result;
}

vkt_result vkt_records_read(const vkt_host *host, const char *path, char separator, vkt_records **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    return read_records(host, path, NULL, separator, out);
}

vkt_result vkt_records_from_text(const vkt_host *host, const char *name, const char *text, char separator,
                                 vkt_records **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, text);
    return read_records(host, name, text, separator, out);
}

uint32_t vkt_records_rows(const vkt_records *r)
{
    return r ? (uint32_t)r->rows : 0;
}

uint32_t vkt_records_columns(const vkt_records *r)
{
    return r ? (uint32_t)r->columns : 0;
}

const char *vkt_records_name(const vkt_records *r, uint32_t column)
{
    return r && column < r->columns ? r->names[column] : NULL;
}

const char *vkt_records_field(const vkt_records *r, uint32_t row, uint32_t column)
{
    return r && row < r->rows && column < r->columns ? r->fields[row * r->columns + column] : NULL;
}
