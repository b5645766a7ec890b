/* train/store_state.c - the whole training state of a store in a file, without a trainer.
 *
 * The file is a checkpoint (io/checkpoint.h). Its tensors have the names that state.c documents. The file has no best
 * weights and no history. Besides the three metadata keys of every checkpoint, it has one metadata value:
 *
 *   vktrain.store   optimizer ("none": the store has no update), number of steps, seed, loss scale (a hexadecimal float
 *                   of C99, because this form is exact), vkt_loss_scale.good_steps, skipped steps, number of
 *                   micro-batches in the sum of gradients, vkt_accumulation.rows (in most cases: number of samples
 *                   in these micro-batches) */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/numbers.h"
#include "io/checkpoint.h"
#include "ops/step/optimizer.h"
#include "record/record.h"
#include "train/trainer.h"

enum { TEXT_ROOM = 256, OPTIMIZER_ROOM = 16 };

/* The contents of vktrain.store. */
typedef struct numbers {
    char optimizer[OPTIMIZER_ROOM];
    uint64_t t, seed;
    vkt_loss_scale scale;
    vkt_accumulation sum;
} numbers;

/* A copy of all parts of a store (vkt_store_part) except the gradient. `values` has the parts one after the other. The
 * parameters of a part are in the order of the store. */
typedef struct copy {
    const vkt_host *h;
    vkt_store *s;
    uint64_t elements; /* number of elements of one part */
    float *values;
    vkt_store_part parts[VKT_ARENAS];
    uint32_t n_parts;
} copy;

static void copy_free(copy *c)
{
    vkt_free(c->h, c->values);
}

static vkt_result copy_alloc(const vkt_host *h, vkt_store *s, copy *c)
{
    *c = (copy){ .h = h, .s = s, .elements = vkt_store_elements(s) };
    for (int i = 0; i < VKT_ARENAS; i++)
        if (vkt_part_prefix((vkt_store_part)i) && vkt_store_has(s, (vkt_store_part)i))
            c->parts[c->n_parts++] = (vkt_store_part)i;
    c->values = vkt_alloc_array(h, c->n_parts * c->elements, sizeof *c->values);
    return c->values ? VKT_OK : vkt_fail_nomem(h, "the training state", c->n_parts * c->elements * sizeof *c->values);
}

/* Calls `visit` for each parameter of each part. Stops at the first call that fails. */
static vkt_result copy_each(const copy *c, vkt_result (*visit)(const copy *, void *, uint32_t, vkt_store_part, float *),
                            void *user)
{
    float *at = c->values;
    for (uint32_t p = 0; p < c->n_parts; p++)
        for (uint32_t i = 0; i < vkt_store_count(c->s); i++) {
            VKT_TRY(visit(c, user, i, c->parts[p], at));
            at += vkt_shape_elements(vkt_store_shape(c->s, i));
        }
    return VKT_OK;
}

static const char *optimizer_of(const vkt_store *s)
{
    return s->updates ? vkt_optimizer_name(s->kind) : "none";
}

/* ---- saving ---- */

typedef struct tensors {
    vkt_blob *blobs;
    char (*names)[VKT_WEIGHT_NAME_ROOM];
    size_t n;
} tensors;

static vkt_result read_device(const copy *c, void *user, uint32_t i, vkt_store_part part, float *values)
{
    tensors *to = user;
    vkt_blob *b = &to->blobs[to->n];
    const vkt_shape shape = vkt_store_shape(c->s, i);
    VKT_TRY(vkt_store_read(c->s, i, part, values));
    snprintf(to->names[to->n], VKT_WEIGHT_NAME_ROOM, "%s%s", vkt_part_prefix(part), vkt_store_name(c->s, i));
    *b = (vkt_blob){ .name = to->names[to->n++], .dtype = VKT_ST_F32, .rank = shape.rank, .data = values };
    for (uint32_t d = 0; d < shape.rank; d++) b->dims[d] = shape.dim[d];
    return VKT_OK;
}

static vkt_result numbers_get(vkt_store *s, numbers *n)
{
    snprintf(n->optimizer, sizeof n->optimizer, "%s", optimizer_of(s));
    VKT_TRY(vkt_store_get_clock(s, &n->t, &n->seed));
    VKT_TRY(vkt_store_get_loss_scale(s, &n->scale));
    return vkt_store_get_accumulation(s, &n->sum);
}

static void numbers_write(const numbers *n, char out[TEXT_ROOM])
{
    const vkt_numbers locale = vkt_numbers_begin();
    snprintf(out, TEXT_ROOM, "%s %" PRIu64 " %" PRIu64 " %a %u %u %u %u", n->optimizer, n->t, n->seed,
             (double)n->scale.scale, n->scale.good_steps, n->scale.skipped, n->sum.batches, n->sum.rows);
    vkt_numbers_end(locale);
}

static vkt_result write_file(const copy *c, tensors *to, const char *path)
{
    numbers n;
    char text[TEXT_ROOM];
    VKT_TRY(copy_each(c, read_device, to));
    VKT_TRY(numbers_get(c->s, &n));
    for (uint64_t i = 0; i < c->elements; i++) /* checks the first part, which is VKT_PART_VALUE */
        if (!isfinite(c->values[i]))
            return vkt_fail(c->h, VKT_E_DIVERGED, "%s is not written: not all parameters are finite", path);
    numbers_write(&n, text);
    return vkt_checkpoint_write(c->h, path, to->blobs, to->n, &(vkt_meta){ "vktrain.store", text }, 1);
}

vkt_result vkt_store_save_state(const vkt_host *host, vkt_store *s, const char *path)
{
    VKT_WANT(host, s);
    VKT_WANT(host, path);
    const vkt_host h = vkt_host_resolve(host);
    copy c;
    VKT_TRY(copy_alloc(&h, s, &c));
    const size_t most = (size_t)c.n_parts * vkt_store_count(s);
    tensors to = { .blobs = vkt_alloc_array(&h, most, sizeof *to.blobs),
                   .names = vkt_alloc_array(&h, most, sizeof *to.names) };
    const vkt_result r =
        to.blobs && to.names ? write_file(&c, &to, path) : vkt_fail_nomem(&h, "the training state", most);
    vkt_free(&h, to.blobs);
    vkt_free(&h, to.names);
    copy_free(&c);
    return r;
}

/* ---- loading ---- */

typedef struct source {
    const vkt_safetensors *st;
    const char *path;
} source;

static vkt_result read_tensor(const copy *c, void *user, uint32_t i, vkt_store_part part, float *values)
{
    const source *from = user;
    const vkt_st_entry *e;
    VKT_TRY(vkt_weights_find(c->h, c->s, from->st, from->path, vkt_part_prefix(part), i, &e));
    return vkt_safetensors_read_f32(from->st, e, values, e->elements);
}

static vkt_result write_device(const copy *c, void *user, uint32_t i, vkt_store_part part, float *values)
{
    (void)user;
    return vkt_store_write(c->s, i, part, values);
}

static bool numbers_parse(const char *text, numbers *n)
{
    const vkt_numbers locale = vkt_numbers_begin();
    int end = 0;
    sscanf(text, "%15s %" SCNu64 " %" SCNu64 " %a %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32 "%n", n->optimizer,
           &n->t, &n->seed, &n->scale.scale, &n->scale.good_steps, &n->scale.skipped, &n->sum.batches, &n->sum.rows,
           &end);
    vkt_numbers_end(locale);
    return end && !text[end] && n->t <= UINT32_MAX && vkt_loss_scale_fits(&n->scale);
}

/* Reads vktrain.store, and checks that its contents fit the store. */
static vkt_result numbers_read(const copy *c, const source *from, numbers *n)
{
    const char *text = vkt_safetensors_meta(from->st, "vktrain.store");
    *n = (numbers){ .t = 0 };
    if (!text)
        return vkt_fail(
            c->h, VKT_E_FORMAT,
            "%s: want a file of vkt_store_save_state, got a trainer's checkpoint; vkt_store_load reads its weights",
            from->path);
    if (!numbers_parse(text, n))
        return vkt_fail(c->h, VKT_E_FORMAT, "%s: the clock, loss scale or accumulation is malformed", from->path);
    if (!c->s->updates) {
        n->sum = (vkt_accumulation){ 0 };
        return VKT_OK;
    }
    if (strcmp(n->optimizer, optimizer_of(c->s)) != 0)
        return vkt_fail(c->h, VKT_E_STATE,
                        "%s: want the state of %s, got that of %s; vkt_store_load reads the weights alone", from->path,
                        optimizer_of(c->s), n->optimizer);
    if ((n->sum.batches || n->sum.rows) && !vkt_store_has(c->s, VKT_PART_GRADIENT_SUM))
        return vkt_fail(c->h, VKT_E_STATE,
                        "%s: it ends after %u micro-batches of a step, and this store's steps are of one batch each",
                        from->path, n->sum.batches);
    return VKT_OK;
}

static vkt_result read_file(copy *c, const source *from)
{
    numbers n;
    VKT_TRY(numbers_read(c, from, &n));
    VKT_TRY(copy_each(c, read_tensor, (void *)from));
    VKT_TRY(vkt_store_set_loss_scale(c->s, &n.scale));
    VKT_TRY(copy_each(c, write_device, NULL));
    VKT_TRY(vkt_store_set_clock(c->s, n.t, n.seed));
    return vkt_store_set_accumulation(c->s, &n.sum);
}

vkt_result vkt_store_load_state(const vkt_host *host, vkt_store *s, const char *path)
{
    VKT_WANT(host, s);
    VKT_WANT(host, path);
    const vkt_host h = vkt_host_resolve(host);
    source from = { .path = path };
    vkt_safetensors *st;
    copy c;
    VKT_TRY(vkt_checkpoint_open(&h, path, &st));
    from.st = st;
    vkt_result r = copy_alloc(&h, s, &c);
    if (r == VKT_OK) {
        r = read_file(&c, &from);
        copy_free(&c);
    }
    vkt_safetensors_close(&st);
    return r;
}
