/* reference/encoding.c - encodings of points: the hash grid and the frequencies of NeRF. */
#include "reference/families.h"

#include <math.h>

/* ---- hash_grid ---- */

/* The grid cell of a point in one grid, and the point's position in the cell. If the point is outside of the grid along
 * an axis, it is moved to the edge of the grid. */
typedef struct cell {
    uint32_t corner[3], cells;
    double fraction[3];
    bool outside[3];
    size_t first, entries;
    bool hashed;
} cell;

static uint32_t dims_of(const vkt_ref_call *c)
{
    return c->in[0].shape.dim[1];
}

/* Finds the grid cell of point n in grid l. Adds up the entries of the grids before l, because these entries come first
 * in the table. */
static cell find(const vkt_ref_call *c, size_t n, uint32_t l)
{
    const vkt_hash_grid_attr *a = c->attr;
    const uint32_t dims = dims_of(c);
    const double most = ldexp(1, (int)a->log2_table_size);
    cell at = { .first = 0 };
    for (uint32_t i = 0; i <= l; i++) {
        at.cells = (uint32_t)floor(a->base_resolution * pow(a->per_level_scale, i) + 1e-9);
        const double corners = pow(at.cells + 1.0, dims);
        at.first += at.entries;
        at.hashed = corners > most;
        at.entries = at.hashed ? (size_t)most : ((size_t)corners + 7) / 8 * 8;
    }
    for (uint32_t d = 0; d < dims; d++) {
        const double x = c->in[0].f[n * dims + d], p = fmin(fmax(x, 0), 1) * at.cells;
        at.corner[d] = (uint32_t)fmin(floor(p), at.cells - 1.0);
        at.fraction[d] = p - at.corner[d];
        at.outside[d] = x < 0 || x > 1;
    }
    return at;
}

/* Returns the index of the table's entry for corner k of the cell. Bit d of k is 1 if the corner is on the far side of
 * axis d. */
static size_t entry(const cell *at, uint32_t dims, uint32_t k)
{
    static const uint32_t prime[] = { 1, 2654435761u, 805459861u };
    uint32_t hash = 0;
    size_t index = 0, stride = 1;
    for (uint32_t d = 0; d < dims; d++, stride *= at->cells + 1u) {
        const uint32_t corner = at->corner[d] + (k >> d & 1);
        hash ^= corner * prime[d];
        index += corner * stride;
    }
    return at->first + (at->hashed ? hash % at->entries : index);
}

/* Returns the weight of corner k without the factor of axis `but`. If `but` is dims, the weight has all factors. */
static double weight(const cell *at, uint32_t dims, uint32_t k, uint32_t but)
{
    double w = 1;
    for (uint32_t d = 0; d < dims; d++)
        if (d != but) w *= k >> d & 1 ? at->fraction[d] : 1 - at->fraction[d];
    return w;
}

static void hash_grid_forward(const vkt_ref_call *c)
{
    const vkt_hash_grid_attr *a = c->attr;
    const uint32_t dims = dims_of(c), F = a->features;
    for (size_t n = 0; n < c->in[0].shape.dim[0]; n++)
        for (uint32_t l = 0; l < a->levels; l++) {
            const cell at = find(c, n, l);
            for (uint32_t f = 0; f < F; f++) {
                double sum = 0;
                for (uint32_t k = 0; k < 1u << dims; k++)
                    sum += weight(&at, dims, k, dims) * c->in[1].f[entry(&at, dims, k) * F + f];
                c->out[0].f[(n * a->levels + l) * F + f] = sum;
            }
        }
}

static void hash_grid_backward(const vkt_ref_call *c)
{
    const vkt_hash_grid_attr *a = c->attr;
    const uint32_t dims = dims_of(c), F = a->features;
    for (size_t n = 0; n < c->in[0].shape.dim[0]; n++)
        for (uint32_t l = 0; l < a->levels; l++) {
            const cell at = find(c, n, l);
            for (uint32_t k = 0; k < 1u << dims; k++)
                for (uint32_t f = 0; f < F; f++) {
                    const size_t e = entry(&at, dims, k) * F + f;
                    const double dy = c->dout[0][(n * a->levels + l) * F + f];
                    if (c->din[1]) c->din[1][e] += weight(&at, dims, k, dims) * dy;
                    for (uint32_t d = 0; c->din[0] && d < dims; d++)
                        if (!at.outside[d])
                            c->din[0][n * dims + d] +=
                                (k >> d & 1 ? 1.0 : -1.0) * at.cells * weight(&at, dims, k, d) * c->in[1].f[e] * dy;
                }
        }
}

/* ---- frequency ---- */

static void frequency_forward(const vkt_ref_call *c)
{
    const vkt_frequency_attr *a = c->attr;
    for (size_t i = 0; i < vkt_ref_count(c->in[0].shape); i++)
        for (uint32_t k = 0; k < a->frequencies; k++) {
            const double angle = ldexp(acos(-1) * c->in[0].f[i], (int)k);
            c->out[0].f[2 * (i * a->frequencies + k)] = sin(angle);
            c->out[0].f[2 * (i * a->frequencies + k) + 1] = cos(angle);
        }
}

static void frequency_backward(const vkt_ref_call *c)
{
    const vkt_frequency_attr *a = c->attr;
    for (size_t i = 0; i < vkt_ref_count(c->in[0].shape); i++)
        for (uint32_t k = 0; k < a->frequencies; k++) {
            const double rate = ldexp(acos(-1), (int)k), angle = rate * c->in[0].f[i];
            const double *dy = &c->dout[0][2 * (i * a->frequencies + k)];
            c->din[0][i] += rate * (cos(angle) * dy[0] - sin(angle) * dy[1]);
        }
}

const vkt_ref_op vkt_ref_hash_grid = { "hash_grid", 1, hash_grid_forward, hash_grid_backward, NULL };
const vkt_ref_op vkt_ref_frequency = { "frequency", 1, frequency_forward, frequency_backward, NULL };
