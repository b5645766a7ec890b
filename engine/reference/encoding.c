/* reference/encoding.c - encodings of points (the hash grid and the frequencies of NeRF), and the rotary position
 * embedding of tokens. */
#include "reference/families.h"

#include <math.h>

/* ---- hash_grid ---- */

/* The grid cell of a point in one grid, and the position of the point in the cell. The grid has `cells` cells along
 * each axis. A point outside of the grid is moved to the edge of the grid. The table stores the entries of this grid
 * from entry `first` on. */
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

/* Returns the index of the table's entry for corner k of the cell. Bit d of k is 1 if the corner is at the far end of
 * the cell along axis d. */
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

/* Returns the weight of corner k in the interpolation: the product of one factor for each axis. The factor of axis
 * `but` is left out. If `but` is dims, no factor is left out. */
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

/* ---- rope ---- */

/* The sizes of x and y. `width` is the number of elements of a head. */
typedef struct rope_form {
    size_t samples, heads, tokens, width;
} rope_form;

static rope_form rope_form_of(const vkt_ref_call *c)
{
    const vkt_rope_attr *a = c->attr;
    const vkt_shape s = c->in[0].shape;
    rope_form f = { s.rank > 2 ? s.dim[0] : 1, 1, s.dim[s.rank - 2], s.dim[s.rank - 1] };
    for (uint32_t i = 1; i + 2 < s.rank; i++) f.heads *= s.dim[i];
    if (a->heads && !a->x_split) f = (rope_form){ s.dim[0], a->heads, s.dim[1], s.dim[2] / a->heads };
    return f;
}

/* Returns the index of element d of head at[1], in sample at[0], at token at[2]. `split`: the tensor is (B,H,T,D); else
 * it is (B,T,H * D). */
static size_t rope_index(const rope_form *f, bool split, const size_t at[3], size_t d)
{
    const size_t b = at[0], h = at[1], t = at[2];
    const size_t row = split ? (b * f->heads + h) * f->tokens + t : (b * f->tokens + t) * f->heads + h;
    return row * f->width + d;
}

/* Returns the angle of pair j at a position. Input 1 has a fraction of 64 bits for each pair. The pair rotates by this
 * fraction of a full rotation from one position to the next. Input 1 stores the high 32 bits of all fractions, then the
 * low 32 bits. Whole rotations are removed from the product of the position and the high 32 bits, because otherwise
 * the sum would lose digits. */
static double rope_angle(const vkt_ref_call *c, uint32_t position, size_t j, size_t pairs)
{
    const double high = (double)(uint32_t)(position * c->in[1].u[j]) * 0x1p-32; /* the product modulo 2^32 is exact */
    return 2 * acos(-1) * (high + (double)position * c->in[1].u[pairs + j] * 0x1p-64);
}

/* Rotates the pairs of `from`, and adds the result to `to`. Elements in no pair, and heads that are not rotated
 * (vkt_rope_attr.rotated), are added as they are. Without `back`, `from` has the shape of x, and `to` has the shape of
 * y. With `back`, `from` has the shape of y, `to` has the shape of x, and the rotation is the inverse. */
static void rope(const vkt_ref_call *c, const double *from, double *to, bool back)
{
    const vkt_rope_attr *a = c->attr;
    const rope_form f = rope_form_of(c);
    const bool apart[] = { a->heads ? a->x_split != 0 : true, a->heads ? a->y_split != 0 : true };
    const size_t pairs = c->in[1].shape.dim[1], rotated = a->heads ? a->rotated : f.heads;
    const double sign = (a->inverse != 0) == back ? 1 : -1;
    size_t at[3];
    for (at[0] = 0; at[0] < f.samples; at[0]++)
        for (at[1] = 0; at[1] < f.heads; at[1]++)
            for (at[2] = 0; at[2] < f.tokens; at[2]++) {
                const bool each = c->n_in > 2 && c->in[2].u && c->in[2].shape.dim[0] > 1;
                const uint32_t first = c->n_in > 2 && c->in[2].u ? c->in[2].u[each ? at[0] : 0] : 0;
                const size_t turned = at[1] < rotated ? pairs : 0;
                for (size_t j = 0; j < turned; j++) {
                    const double angle = rope_angle(c, a->position + first + (uint32_t)at[2], j, pairs);
                    const double cosine = cos(angle), sine = sign * sin(angle);
                    const size_t d[] = { a->halves ? j : 2 * j, a->halves ? pairs + j : 2 * j + 1 };
                    const double u = from[rope_index(&f, apart[back], at, d[0])];
                    const double v = from[rope_index(&f, apart[back], at, d[1])];
                    to[rope_index(&f, apart[!back], at, d[0])] += u * cosine - v * sine;
                    to[rope_index(&f, apart[!back], at, d[1])] += v * cosine + u * sine;
                }
                for (size_t d = 2 * turned; d < f.width; d++)
                    to[rope_index(&f, apart[!back], at, d)] += from[rope_index(&f, apart[back], at, d)];
            }
}

static void rope_forward(const vkt_ref_call *c)
{
    memset(c->out[0].f, 0, vkt_ref_count(c->out[0].shape) * sizeof *c->out[0].f);
    rope(c, c->in[0].f, c->out[0].f, false);
}

static void rope_backward(const vkt_ref_call *c)
{
    rope(c, c->dout[0], c->din[0], true);
}

const vkt_ref_op vkt_ref_rope = { "rope", 1, rope_forward, rope_backward, NULL };
const vkt_ref_op vkt_ref_hash_grid = { "hash_grid", 1, hash_grid_forward, hash_grid_backward, NULL };
const vkt_ref_op vkt_ref_frequency = { "frequency", 1, frequency_forward, frequency_backward, NULL };
