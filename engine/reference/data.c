/* reference/data.c - gathers a batch from a table: sample b is row order[first + b] of the table. Sample b is 0 if it
 * is not real (b >= vkt_ref_call.rows), or if the order has no element first + b. */
#include "reference/families.h"

/* Finds the table's row for sample b. Returns false if sample b is not real, or the order has no element first + b. */
static bool row_of(const vkt_ref_call *c, uint32_t b, size_t *row)
{
    if (b >= c->rows || (uint64_t)c->first + b >= vkt_ref_count(c->in[1].shape)) return false;
    *row = c->in[1].u[c->first + b];
    return true;
}

/* Computes out[b,i] = scale[channel] * table[row,i] + shift[channel]. A row of u8 or f16 may be longer than a
 * sample. */
static void rows_forward(const vkt_ref_call *c)
{
    const vkt_gather_attr *a = c->attr;
    const size_t n = vkt_ref_count(a->sample), pitch = c->in[0].shape.dim[1];
    for (uint32_t b = 0; b < a->batch; b++) {
        size_t row = 0;
        const bool is_real = row_of(c, b, &row);
        for (size_t i = 0; i < n; i++) {
            const size_t channel = i / (n / a->channels);
            const double x = is_real ? c->in[0].f[row * pitch + i] : 0;
            c->out[0].f[b * n + i] = is_real ? (double)a->scale[channel] * x + (double)a->shift[channel] : 0;
        }
    }
}

const vkt_ref_op vkt_ref_gather_rows = { "gather_rows", 1, rows_forward, NULL };

static void labels_forward(const vkt_ref_call *c)
{
    const vkt_gather_attr *a = c->attr;
    for (uint32_t b = 0; b < a->batch; b++) {
        size_t row = 0;
        c->out[0].u[b] = row_of(c, b, &row) ? c->in[0].u[row] : 0;
    }
}

const vkt_ref_op vkt_ref_gather_labels = { "gather_labels", 1, labels_forward, NULL };

static void ids_forward(const vkt_ref_call *c)
{
    const vkt_gather_ids_attr *a = c->attr;
    const size_t pitch = c->in[0].shape.dim[1];
    for (uint32_t b = 0; b < a->batch; b++) {
        size_t row = 0;
        const bool is_real = row_of(c, b, &row);
        const uint32_t *words = c->in[0].u + row * pitch;
        for (uint32_t i = 0; i < a->length; i++) {
            const uint32_t id = a->packed ? words[i / 2] >> 16 * (i % 2) & 0xffff : words[i];
            c->out[0].u[(size_t)b * a->length + i] = is_real ? id : 0;
        }
    }
}

const vkt_ref_op vkt_ref_gather_ids = { "gather_ids", 1, ids_forward, NULL };
