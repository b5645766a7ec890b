/* matmul.c - vkt-matmul: two large matrix products on a Vulkan device. The result of the second product has 4 GB.
 *
 * C = A B is computed in tiles. The first try is a tile as large as C. Its longer side is halved until the device and
 * the memory cap have room for the tile. One program computes all tiles, and returns only the row sums of each tile.
 * The host computes the row sums too, and compares them. The sum of row i of C is sum_k A[i,k] * (sum_j B[k,j]). If A
 * is (M,K) and B is (K,N), all row sums need about M * K + K * N additions. C itself would need M * K * N. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/message.h"
#include "common/random.h"
#include "common/report.h"
#include "common/session.h"
#include "common/terminal.h"

enum { LARGEST = 1000000, OPT_SIZE = 512 }; /* LARGEST: limit of a side of a matrix */

typedef struct product {
    uint32_t m, k, n; /* (m,k) @ (k,n) */
} product;

static const product reference[] = { { 10000, 200, 10000 }, { 10000, 100, 100000 } };

/* ---- log ---- */

/* If `deferred` is true, an error message is stored in `last` and not printed. `deferred` is true during the search for
 * a tile, because a tile that is too large is not an error. */
typedef struct errors {
    bool deferred;
    char last[512];
} errors;

static void on_line(void *user, vkt_log_level level, const char *line)
{
    errors *e = user;
    if (e->deferred && level == VKT_LOG_ERROR)
        snprintf(e->last, sizeof e->last, "%s", line);
    else
        message_log(NULL, level, line);
}

/* ---- the tile ---- */

/* A tile of C, rows x columns, and the program that computes its row sums. */
typedef struct tile {
    uint32_t rows, columns;
    vkt_graph *g;
    vkt_program *program;
    vkt_tensor a, b, sums;
} tile;

static vkt_result make_tile(vkt_ctx *ctx, uint32_t k, tile *t)
{
    const vkt_host host = vkt_ctx_host(ctx);
    vkt_result r = vkt_graph_create(&host, &t->g);
    if (r != VKT_OK) return r;
    t->a = vkt_input(t->g, "a", VKT_F32, VKT_ROWS, vkt_shape2(t->rows, k));
    t->b = vkt_input(t->g, "b", VKT_F32, VKT_ROWS, vkt_shape2(k, t->columns));
    t->sums = vkt_sum_over(t->g, vkt_matmul(t->g, t->a, t->b, false, false), VKT_AXIS(1), false);
    vkt_keep(t->g, t->sums);
    return vkt_program_create(ctx, t->g, NULL, &(vkt_program_params){ .name = "matmul" }, &t->program);
}

/* Runs the program once on zeros. After that, the transfers have their staging memory, and the driver has compiled the
 * shaders. */
static vkt_result warm_up(const tile *t, uint32_t k)
{
    const size_t a = (size_t)t->rows * k, b = (size_t)k * t->columns, most = a > b ? a : b;
    float *room = calloc(most > t->rows ? most : t->rows, sizeof *room);
    if (!room) complain("no memory for %zu numbers", most);
    vkt_result r = room ? vkt_program_write(t->program, t->a, room, a * sizeof *room) : VKT_E_NOMEM;
    if (r == VKT_OK) r = vkt_program_write(t->program, t->b, room, b * sizeof *room);
    if (r == VKT_OK) r = vkt_program_run(t->program, &(vkt_run){ 0 }, NULL);
    if (r == VKT_OK) r = vkt_program_read(t->program, t->sums, room, t->rows * sizeof *room);
    free(room);
    return r;
}

static void free_tile(tile *t)
{
    vkt_program_destroy(&t->program);
    vkt_graph_destroy(&t->g);
}

/* Returns whether the error `r` means that a tile is too large for the device or for the memory cap. */
static bool is_too_large(vkt_result r)
{
    return r == VKT_E_MEMORY_CAP || r == VKT_E_DEVICE_MEMORY || r == VKT_E_UNSUPPORTED;
}

/* Makes a tile of all of C, and runs its program once. If the tile is too large, halves its longer side and tries
 * again. On failure, returns the last error and prints its message. */
static vkt_result make_largest_tile(vkt_ctx *ctx, errors *e, const product *p, tile *t)
{
    vkt_result r;
    *t = (tile){ .rows = p->m, .columns = p->n };
    e->deferred = true;
    while ((r = make_tile(ctx, p->k, t)) != VKT_OK || (r = warm_up(t, p->k)) != VKT_OK) {
        free_tile(t);
        if (!is_too_large(r) || (t->rows == 1 && t->columns == 1)) break;
        *e->last = 0;
        uint32_t *longer = t->rows > t->columns ? &t->rows : &t->columns;
        *longer = (*longer + 1) / 2;
    }
    e->deferred = false;
    if (r != VKT_OK && *e->last) on_line(e, VKT_LOG_ERROR, e->last);
    return r;
}

/* ---- the operands ---- */

/* The matrices, padded with zeros to whole tiles: A can have more than m rows, B more than n columns. */
typedef struct operands {
    float *a;       /* A, as (R, k). R is m, rounded up to a multiple of t->rows */
    float *b;       /* B, as panels (k, t->columns): the first panel has the first t->columns columns of B, and so on */
    double *wanted; /* (m) sums of C's rows, computed by the host in float64 */
    double *sums;   /* (m) the device's sums */
    float *part;    /* (t->rows) the sums of one tile */
} operands;

static uint32_t tiles_of(uint32_t whole, uint32_t part)
{
    return (whole + part - 1) / part;
}

/* Generates B, then A: numbers uniform in [0,1), row by row. The numbers do not depend on the tile's size. The host's
 * sum of a row of B is exact: its terms are multiples of 2^-24, and a float64 can hold the sum of 2^29 such terms. If
 * there is no memory, prints a message and returns false. */
static bool draw_operands(const product *p, const tile *t, uint64_t seed, operands *o)
{
    const size_t panel = (size_t)p->k * t->columns;
    double *b_rows = calloc(p->k, sizeof *b_rows);
    o->a = calloc((size_t)tiles_of(p->m, t->rows) * t->rows * p->k, sizeof *o->a);
    o->b = calloc(tiles_of(p->n, t->columns) * panel, sizeof *o->b);
    o->wanted = calloc(p->m, sizeof *o->wanted);
    o->sums = calloc(p->m, sizeof *o->sums);
    o->part = calloc(t->rows, sizeof *o->part);
    if (!b_rows || !o->a || !o->b || !o->wanted || !o->sums || !o->part) {
        complain("no memory for the matrices");
        free(b_rows);
        return false;
    }
    for (uint32_t k = 0; k < p->k; k++)
        for (uint32_t j = 0; j < p->n; j++) {
            const float b = random_unit(&seed);
            o->b[j / t->columns * panel + (size_t)k * t->columns + j % t->columns] = b;
            b_rows[k] += (double)b;
        }
    for (uint32_t i = 0; i < p->m; i++)
        for (uint32_t k = 0; k < p->k; k++) {
            const float a = random_unit(&seed);
            o->a[(size_t)i * p->k + k] = a;
            o->wanted[i] += (double)a * b_rows[k];
        }
    free(b_rows);
    return true;
}

static void free_operands(operands *o)
{
    free(o->a);
    free(o->b);
    free(o->wanted);
    free(o->sums);
    free(o->part);
}

/* ---- the run ---- */

typedef struct outcome {
    double host_ms;          /* time to upload the operands, compute all tiles and read back the sums */
    double device_ms;        /* part of host_ms: sum over all tiles of the time from submission to completion */
    double checksum, wanted; /* the sum of all elements of C: `checksum` by the device, `wanted` by the host */
    double worst, allowed;   /* `worst`: the largest relative error of a row sum. `allowed`: the limit for it */
    bool right;              /* no error is above the limit */
} outcome;

static vkt_result run_tile(const tile *t, outcome *out)
{
    const uint64_t start = session_now_ns();
    vkt_result r = vkt_program_run(t->program, &(vkt_run){ 0 }, NULL);
    if (r == VKT_OK) r = vkt_program_wait(t->program);
    out->device_ms += (double)(session_now_ns() - start) * 1e-6;
    return r;
}

/* Computes all tiles: one panel of B after the other, and for each panel all rows of A from top to bottom. */
static vkt_result run_tiles(const product *p, const tile *t, operands *o, outcome *out)
{
    const size_t a_bytes = (size_t)t->rows * p->k * sizeof *o->a, b_bytes = (size_t)p->k * t->columns * sizeof *o->b;
    const uint64_t start = session_now_ns();
    vkt_result r = VKT_OK;
    for (uint32_t j = 0; j < p->n && r == VKT_OK; j += t->columns) {
        r = vkt_program_write(t->program, t->b, o->b + (size_t)p->k * j, b_bytes);
        for (uint32_t i = 0; i < p->m && r == VKT_OK && !session_interrupted(); i += t->rows) {
            r = vkt_program_write(t->program, t->a, o->a + (size_t)i * p->k, a_bytes);
            if (r == VKT_OK) r = run_tile(t, out);
            if (r == VKT_OK) r = vkt_program_read(t->program, t->sums, o->part, t->rows * sizeof *o->part);
            for (uint32_t q = 0; q < t->rows && i + q < p->m; q++) o->sums[i + q] += (double)o->part[q];
        }
    }
    out->host_ms = (double)(session_now_ns() - start) * 1e-6;
    return r;
}

/* Compares the row sums of the device with those of the host. For any order of the additions, each term of a row sum
 * is rounded at most k + n times. Each rounding has a relative error of 2^-24 at most. Roundings go up as often as
 * down, and all terms are positive. So the relative error of the sum grows like sqrt(k + n) 2^-24 (Higham & Mary, "A
 * new approach to probabilistic rounding error analysis", 2019). This is the limit here. If n is large, the device adds
 * the n elements of a row of C in many partial sums. Then a term is rounded far fewer times, and the errors are far
 * below the limit. */
static void check(const product *p, const operands *o, outcome *out)
{
    out->allowed = sqrt((double)p->k + p->n) * 0x1p-24;
    out->right = true;
    for (uint32_t i = 0; i < p->m; i++) {
        const double error = fabs(o->sums[i] - o->wanted[i]);
        out->checksum += o->sums[i];
        out->wanted += o->wanted[i];
        out->right = out->right && error <= out->allowed * o->wanted[i];
        if (error > out->worst * o->wanted[i]) out->worst = error / o->wanted[i];
    }
}

/* ---- results ---- */

static double gflops(const product *p, double ms)
{
    return 2e-6 * p->m * p->k * p->n / ms;
}

static void print_outcome(const product *p, const tile *t, const outcome *o)
{
    printf("        %u tile%s of %ux%u\n", tiles_of(p->m, t->rows) * tiles_of(p->n, t->columns),
           t->rows < p->m || t->columns < p->n ? "s" : "", t->rows, t->columns);
    printf("device  %9.1f ms  %6.1f GFLOP/s\n", o->device_ms, gflops(p, o->device_ms));
    printf("host    %9.1f ms  %6.1f GFLOP/s  with uploads and downloads\n", o->host_ms, gflops(p, o->host_ms));
    terminal_printf(stdout,
                    "sum     %.9g, in double precision %.9g; largest relative error of a row %.1e, allowed %.1e%s\n",
                    o->checksum, o->wanted, o->worst, o->allowed, o->right ? "" : ": WRONG");
}

static json_t *outcome_json(const product *p, const tile *t, const outcome *o)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:o, s:f, s:o, s:f}", "m", (json_int_t)p->m, "k",
                     (json_int_t)p->k, "n", (json_int_t)p->n, "tile_rows", (json_int_t)t->rows, "tile_columns",
                     (json_int_t)t->columns, "device_ms", o->device_ms, "host_ms", o->host_ms, "gflops",
                     gflops(p, o->device_ms), "checksum", real_or_null(o->checksum), "host_checksum", o->wanted,
                     "row_error", real_or_null(o->worst), "row_error_allowed", o->allowed);
}

static vkt_result multiply(const session *s, errors *e, const product *p, json_t *results)
{
    tile t;
    outcome out = { 0 };
    operands o = { 0 };
    if (!s->o.quiet) {
        const double kib = 4.0 / 1024 * p->m * p->n;
        printf("\nproduct %ux%u @ %ux%u, %.1f %s\n", p->m, p->k, p->k, p->n, kib < 1024 ? kib : kib / 1024,
               kib < 1024 ? "KiB" : "MiB");
    }
    vkt_result r = make_largest_tile(s->ctx, e, p, &t);
    if (r == VKT_OK && !draw_operands(p, &t, s->o.seed, &o)) r = VKT_E_NOMEM;
    if (r == VKT_OK) r = run_tiles(p, &t, &o, &out);
    if (r == VKT_OK && !session_interrupted()) {
        check(p, &o, &out);
        if (!s->o.quiet) print_outcome(p, &t, &out);
        json_array_append_new(results, outcome_json(p, &t, &out));
        if (!out.right) complain("the product is wrong");
        if (!out.right) r = VKT_E_DRIVER;
    }
    free_tile(&t);
    free_operands(&o);
    return r;
}

static vkt_result run(const session *s, errors *e, const product *list, size_t n)
{
    json_t *results = json_array();
    vkt_result r = VKT_OK;
    for (size_t i = 0; i < n && r == VKT_OK && !session_interrupted(); i++) r = multiply(s, e, &list[i], results);
    const bool whole = r == VKT_OK && !session_interrupted();
    if (whole && !s->o.quiet) {
        putchar('\n');
        session_print_memory(s);
    }
    if (whole && s->o.json && !write_results(s, json_pack("{s:O}", "products", results))) r = VKT_E_IO;
    json_decref(results);
    return r;
}

/* ---- the command line ---- */

static error_t on_option(int key, char *text, struct argp_state *state)
{
    product *p = state->input;
    if (key != OPT_SIZE) return ARGP_ERR_UNKNOWN;
    char end = 0;
    const bool good = sscanf(text, "%7u,%7u,%7u%c", &p->m, &p->k, &p->n, &end) == 3 && p->m && p->k && p->n &&
                      p->m <= LARGEST && p->k <= LARGEST && p->n <= LARGEST;
    if (!good) argp_error(state, "--size: want M,K,N from 1 to %d, for instance 100,20,300, got '%s'", LARGEST, text);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        { "size", OPT_SIZE, "M,K,N", 0, "one product (M,K) @ (K,N) instead of the two", 1 }, { 0 }
    };
    static const struct argp more = { .options = options, .parser = on_option };
    product one = { 0 };
    errors e = { .deferred = false };
    const train_cli cli = {
        .doc = "Multiplies large matrices on a Vulkan device, in tiles where they do not fit, and checks "
               "the sums of the rows: 10000x200 @ 200x10000 and 10000x100 @ 100x100000.",
        .scope = TRAIN_NOTHING,
        .more = &more,
        .input = &one
    };
    session s = { .o = { .seed = 1 } };
    session_begin(&s, &cli, argc, argv);
    s.host.log = on_line;
    s.host.log_user = &e;
    if (!session_open(&s)) return session_end(&s, VKT_E_NO_DEVICE);
    const bool own = one.m != 0;
    return session_end(&s, run(&s, &e, own ? &one : reference, own ? 1 : sizeof reference / sizeof *reference));
}
