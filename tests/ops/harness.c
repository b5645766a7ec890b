/* ops/harness.c - see harness.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "abi/abi.h"
#include "abi/conv2d_tile.abi.h"
#include "base/half.h"
#include "ops/harness.h"
#include "support/host.h"

#define POISON 0x7fff7fffu /* a quiet NaN; both halves of its bits are quiet NaNs in f16 and in bf16 */

bool harness_open(vkt_ctx **ctx)
{
    const vkt_host h = vkt_test_host();
    const vkt_ctx_params params = { .no_pipeline_cache = true };
    const vkt_result r = vkt_ctx_create(&params, &h, ctx);
#ifndef VKT_REQUIRE_DEVICE
    if (r == VKT_E_NO_LOADER || r == VKT_E_NO_DEVICE) {
        puts("SKIPPED: no Vulkan device");
        return false;
    }
#endif
    assert_int_equal(r, VKT_OK);
    const vkt_device_info *info = vkt_ctx_device(*ctx);
    vkt_test_ran_on(info->name, info->driver);
    return true;
}

vkt_graph *harness_graph(void)
{
    const vkt_host h = vkt_test_host();
    vkt_graph *g = NULL;
    assert_int_equal(vkt_graph_create(&h, &g), VKT_OK);
    return g;
}

void harness_read_f32(vkt_program *p, const vkt_graph *g, vkt_tensor t, float *out)
{
    assert_int_equal(vkt_program_read(p, t, out, vkt_shape_elements(vkt_tensor_shape(g, t)) * sizeof *out), VKT_OK);
}

vkt_ctx *harness_ctx;

int harness_setup(void **state)
{
    (void)state;
    harness_open(&harness_ctx);
    return 0;
}

int harness_teardown(void **state)
{
    (void)state;
    vkt_ctx_destroy(&harness_ctx);
    return vkt_test_is_clean() ? 0 : -1;
}

void harness_forget(vkt_ctx *ctx)
{
    ctx->vk.DeviceWaitIdle(ctx->device);
}

/* ---- views ---- */

static void as_it_is(vkt_limits *lim)
{
    (void)lim;
}

static void without_texels(vkt_limits *lim)
{
    lim->max_texel_elements = 0;
}

static void few_groups(vkt_limits *lim)
{
    lim->max_groups = 7;
}

static void small_bindings(vkt_limits *lim)
{
    lim->max_storage_range_bytes = 16384;
    lim->max_texel_elements = VKT_MIN(lim->max_texel_elements, 100);
}

static void small_storage(vkt_limits *lim)
{
    lim->max_storage_range_bytes = 4096;
}

/* Sets the traits of a class of devices, except for largest_loop and words64. */
static void as_class(vkt_limits *lim, vkt_device_class cls)
{
    static vkt_traits other[VKT_CLASS_COUNT];
    other[cls] = vkt_class_traits[cls];
    other[cls].largest_loop = lim->traits->largest_loop;
    other[cls].words64 = lim->traits->words64;
    lim->traits = &other[cls];
}

void harness_as_gpu(vkt_limits *lim)
{
    as_class(lim, VKT_CLASS_OTHER);
}

/* Sets the traits of a CPU on a GPU, and the traits of a GPU on a CPU. On GPUs, shared_pays is true. */
static void other_kind(vkt_limits *lim)
{
    as_class(lim, lim->traits->shared_pays ? VKT_CLASS_CPU : VKT_CLASS_OTHER);
}

const harness_view harness_views[] = {
    { "as it is", as_it_is },
    { "without texel loads", without_texels },
    { "with 7 groups at most", few_groups, .may_refuse = true, .same_bits = true },
    { "with bindings of 16 KiB", small_bindings, .may_refuse = true },
    { "with storage bindings of 4 KiB", small_storage, .may_refuse = true },
    { "as GPU for CPU or CPU for GPU", other_kind },
};
const size_t harness_n_views = VKT_COUNT(harness_views);
const harness_view harness_half_views[4] = {
    { "stored as bf16", as_it_is, .precision = VKT_PRECISION_BF16 },
    { "stored as f16", as_it_is, .precision = VKT_PRECISION_F16 },
    { "stored as bf16 with bindings of 16 KiB", small_bindings, .may_refuse = true, .precision = VKT_PRECISION_BF16 },
    { "stored as f16 with bindings of 16 KiB", small_bindings, .may_refuse = true, .precision = VKT_PRECISION_F16 },
};
const harness_view harness_split_view = { "by split operands", as_it_is, .force = VKT_V(COOP) | VKT_V(BLOCKS),
                                          .precision = VKT_PRECISION_F32_SPLIT };

/* ---- one program of a subject ---- */

typedef struct rig {
    subject *s;
    const harness_view *view;
    vkt_ctx *ctx;
    vkt_store *store;
    vkt_program *p;
    unsigned char *in[VKT_MAX_IN + VKT_MAX_OUT]; /* physical bytes of s->in[], then of s->dout[], as uploaded */
    harness_report *report;
} rig;

/* All physical bytes of the results of a run: outputs, then gradients. */
typedef struct result {
    unsigned char *raw[VKT_MAX_OUT + VKT_MAX_IN];
    uint64_t work;      /* hash of dispatches: kernels, work groups in y and z, push and specialization constants */
    uint64_t not_taken; /* set of variants that ops could choose but did not choose in the newest run */
} result;

static void complain(rig *r, const char *fmt, ...) VKT_PRINTF(2, 3);
static void complain(rig *r, const char *fmt, ...)
{
    const subject *s = r->s;
    char *at = r->report->text + strlen(r->report->text), *end = r->report->text + sizeof r->report->text;
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    snprintf(at, (size_t)(end - at), "%s %s (%s)\n    %s\n    again: VKT_TEST_OPS=%s VKT_TEST_SEED=%llu\n", s->op->name,
             s->c.text, r->view->name, text, s->op->name, (unsigned long long)s->seed);
    r->report->faults++;
}

static const vkt_value *value_of(const rig *r, vkt_tensor t)
{
    return vkt_lowered_value(&r->p->lowered, t);
}

static side *input_at(subject *s, size_t i)
{
    return i < VKT_MAX_IN ? &s->in[i] : &s->dout[i - VKT_MAX_IN];
}

static side *result_at(subject *s, size_t i)
{
    return i < VKT_MAX_OUT ? &s->out[i] : &s->din[i - VKT_MAX_OUT];
}

/* Reads an element of this storage type as a float. */
static float get_element(vkt_precision storage, const void *at)
{
    uint16_t h;
    float f;
    memcpy(&h, at, sizeof h);
    if (storage == VKT_PRECISION_F32)
        memcpy(&f, at, sizeof f);
    else
        f = storage == VKT_PRECISION_F16 ? vkt_f32_from_half(h) : vkt_f32_from_bf16(h);
    return f;
}

static void put_element(vkt_precision storage, void *at, float f)
{
    const uint16_t h = storage == VKT_PRECISION_F16 ? vkt_half_from_f32(f) : vkt_bf16_from_f32(f);
    if (storage == VKT_PRECISION_F32)
        memcpy(at, &f, sizeof f);
    else
        memcpy(at, &h, sizeof h);
}

/* Calls fn for each physical element of `raw` that is padding of the batch. Does nothing if v->dtype is not VKT_F32. */
static void each_padding(const vkt_value *v, void (*fn)(vkt_precision storage, void *at, void *user), void *raw,
                         void *user)
{
    const vkt_phys phys = vkt_phys_of(v);
    const uint32_t n = phys.dim[phys.rank - 1];
    if (v->layout != VKT_BATCH_LAST || v->dtype != VKT_F32) return;
    for (uint64_t i = 0; i < phys.elements; i++)
        if (i % phys.pitch >= n) fn(v->storage, (char *)raw + i * vkt_element_bytes(v), user);
}

static void put_garbage(vkt_precision storage, void *at, void *user)
{
    float *next = user;
    put_element(storage, at, *next);
    *next = -*next;
}

static void pack_inputs(rig *r)
{
    for (size_t i = 0; i < VKT_COUNT(r->in); i++) {
        const side *v = input_at(r->s, i);
        if (!v->t.id) continue;
        const vkt_value *value = value_of(r, v->t);
        float garbage = 77.0f; /* for the padding; a product of two such numbers is finite in f16, too */
        r->in[i] = calloc(1, vkt_round_up(value->bytes, 4));
        assert_non_null(r->in[i]);
        vkt_pack_value(value, v->data, r->in[i]);
        if (i < VKT_MAX_IN) each_padding(value, put_garbage, r->in[i], &garbage);
    }
}

static void write_inputs(rig *r)
{
    for (size_t i = 0; i < VKT_COUNT(r->in); i++)
        if (r->in[i]) {
            const vkt_tensor t = input_at(r->s, i)->t;
            assert_int_equal(
                vkt_upload(r->ctx, r->p->inputs[t.id], 0, r->in[i], vkt_round_up(value_of(r, t)->bytes, 4)), VKT_OK);
        }
    if (r->store) assert_int_equal(vkt_store_set_clock(r->store, r->s->t, r->s->key), VKT_OK);
}

/* Returns whether the op writes an output to the memory of input t, as an update of parameters does. */
static bool is_written(const rig *r, vkt_tensor t)
{
    for (uint32_t i = 0; i < r->s->n_out; i++)
        if (r->s->op->side_effect && vkt_root(r->s->g, r->s->out[i].t) == t.id) return true;
    return false;
}

static void check_inputs_unharmed(rig *r)
{
    for (size_t i = 0; i < VKT_COUNT(r->in); i++) {
        if (!r->in[i] || is_written(r, input_at(r->s, i)->t)) continue;
        const vkt_tensor t = input_at(r->s, i)->t;
        const uint64_t bytes = vkt_round_up(value_of(r, t)->bytes, 4);
        unsigned char *now = malloc(bytes);
        assert_non_null(now);
        assert_int_equal(vkt_readback(r->ctx, r->p->inputs[t.id], 0, now, bytes), VKT_OK);
        if (memcmp(now, r->in[i], bytes) != 0) complain(r, "the run has changed its input %s", value_of(r, t)->name);
        free(now);
    }
}

static void run(rig *r, result *out)
{
    bool intact;
    const char *bad;
    write_inputs(r);
    assert_int_equal(vkt_program_poison(r->p, POISON), VKT_OK);
    assert_int_equal(vkt_program_run(r->p, &r->s->run, NULL), VKT_OK);
    assert_int_equal(vkt_program_wait(r->p), VKT_OK);
    assert_int_equal(vkt_program_check_guards(r->p, POISON, &intact, &bad), VKT_OK);
    if (!intact) complain(r, "words behind %s were written to", bad);
    check_inputs_unharmed(r);
    for (size_t i = 0; i < VKT_COUNT(out->raw); i++) {
        const side *v = result_at(r->s, i);
        if (!v->t.id) continue;
        const uint64_t bytes = value_of(r, v->t)->bytes;
        out->raw[i] = malloc(bytes);
        assert_non_null(out->raw[i]);
        assert_int_equal(vkt_program_read_raw(r->p, v->t, out->raw[i], bytes), VKT_OK);
    }
}

static void result_free(result *out)
{
    for (size_t i = 0; i < VKT_COUNT(out->raw); i++) free(out->raw[i]);
}

/* ---- checks ---- */

static void check_same_bits(rig *r, const result *a, const result *b, const char *when)
{
    for (size_t i = 0; i < VKT_COUNT(a->raw); i++) {
        const side *v = result_at(r->s, i);
        if (v->t.id && memcmp(a->raw[i], b->raw[i], value_of(r, v->t)->bytes) != 0)
            complain(r, "%s has other bits %s", value_of(r, v->t)->name, when);
    }
}

typedef struct padding {
    bool zero; /* true: the padding must be zero; false: it must be finite */
    uint64_t bad;
} padding;

static void check_element(vkt_precision storage, void *at, void *user)
{
    padding *p = user;
    const float f = get_element(storage, at);
    p->bad += p->zero ? f != 0 : !isfinite(f);
}

static void check_padding(rig *r, const side *v, void *raw, bool gradient)
{
    const vkt_value *value = value_of(r, v->t);
    padding p = { .zero = gradient };
    each_padding(value, check_element, raw, &p);
    if (p.bad)
        complain(r, "%llu padding lanes of %s are not %s", (unsigned long long)p.bad, value->name,
                 gradient ? "zero" : "finite");
}

bool harness_close(const char *what, const float *got, const double *ref, size_t n, double rel_tol, double abs_tol)
{
    const vkt_worst w = vkt_worst_of(got, ref, n, rel_tol, abs_tol);
    if (w.excess <= 1) return true;
    print_error("%s: element %zu of %zu is %.9g, the reference %.9g; allowed: %.3g\n", what, w.at, n, (double)got[w.at],
                ref[w.at], w.allowed);
    return false;
}

static double scale_of(const double *ref, size_t n)
{
    double scale = 0;
    for (size_t i = 0; i < n; i++) scale = fmax(scale, fabs(ref[i]));
    return scale > 0 ? scale : 1;
}

/* Returns whether any value of the subject is stored in 16 bits. */
static bool is_half(const rig *r)
{
    for (size_t i = 0; i < r->s->g->n_values; i++)
        if (r->p->lowered.values[i].storage != VKT_PRECISION_F32) return true;
    return false;
}

/* Returns whether a kernel multiplies cooperative matrices. In 16-bit programs, such a kernel rounds f32 operands. */
static bool multiplies_matrices(const rig *r)
{
    for (size_t i = 0; i < r->p->lowered.n; i++)
        if (vkt_kernel_get((vkt_kernel_id)r->p->lowered.list[i].kernel)->flags & VKT_KF_COOP) return true;
    return false;
}

/* Compares floats with the reference. A value stored in 16 bits may be off by one rounding. If the subject has such a
 * value, each gradient may be off by one more rounding. f16 numbers below 2^-14 are 2^-24 apart, so a rounding is up to
 * 2^-25. Some kernels also round operands that they compute for cooperative matrices: see harness_half_views. */
static void check_floats(rig *r, const side *v, const float *got, bool gradient)
{
    static const double ulps[] = { [VKT_PRECISION_F16] = 0x1p-11, [VKT_PRECISION_BF16] = 0x1p-8 }; /* 1/2 ulp */
    char index[80];
    const bool f16 = r->view->precision == VKT_PRECISION_F16;
    const int roundings = (value_of(r, v->t)->storage != VKT_PRECISION_F32) + (gradient && is_half(r));
    const double rel = (double)r->s->op->rel_tol + (roundings ? roundings * ulps[r->view->precision] : 0);
    const bool rounds = harness_makes_operands(r->s->op) ? is_half(r) : f16 && !harness_may_split(r->s->op);
    double abs = (double)r->s->op->abs_tol + f16 * roundings * 0x1p-25 / scale_of(v->ref.f, side_count(v));
    if (rounds && multiplies_matrices(r)) abs += ulps[r->view->precision];
    const vkt_worst w = vkt_worst_of(got, v->ref.f, side_count(v), rel, abs);
    if (!(w.excess <= 1))
        complain(r, "%s%s is %.9g, the reference %.9g; allowed: %.3g", value_of(r, v->t)->name,
                 vkt_index_text(v->ref.shape, w.at, index), (double)got[w.at], v->ref.f[w.at], w.allowed);
}

static void check_integers(rig *r, const side *v, const uint32_t *got)
{
    char index[80];
    for (size_t i = 0; i < side_count(v); i++)
        if (got[i] != v->ref.u[i]) {
            complain(r, "%s%s is %u, the reference %u", value_of(r, v->t)->name, vkt_index_text(v->ref.shape, i, index),
                     got[i], v->ref.u[i]);
            return;
        }
}

/* Checks an output that the reference does not have. It cannot be compared, but each element must have been written. */
static void check_written(rig *r, const side *v, const uint32_t *got)
{
    for (size_t i = 0; i < side_count(v); i++)
        if (got[i] == POISON) {
            complain(r, "element %zu of %s was not written", i, value_of(r, v->t)->name);
            return;
        }
}

static void check_result(rig *r, size_t i, void *raw)
{
    const side *v = result_at(r->s, i);
    const bool gradient = i >= VKT_MAX_OUT;
    void *got = malloc(side_count(v) * 4);
    assert_non_null(got);
    vkt_unpack_value(value_of(r, v->t), raw, got);
    check_padding(r, v, raw, gradient);
    if (!gradient && i >= r->s->ref->n_out)
        check_written(r, v, got);
    else if (v->ref.u)
        check_integers(r, v, got);
    else
        check_floats(r, v, got, gradient);
    free(got);
}

/* ---- all checks ---- */

static uint64_t hash_work(const vkt_program *p)
{
    uint64_t h = VKT_HASH_START;
    for (size_t i = 0; i < p->lowered.n; i++) {
        const vkt_dispatch *d = &p->lowered.list[i];
        h = vkt_hash(h, &d->kernel, sizeof d->kernel);
        h = vkt_hash(h, &d->groups[1], 2 * sizeof d->groups[1]);
        h = vkt_hash(h, d->push, d->push_bytes);
        h = vkt_hash(h, d->spec, d->n_spec * sizeof d->spec[0]);
    }
    return h;
}

static uint64_t not_taken(const vkt_emit *e)
{
    uint64_t usable = 0, taken = 0;
    for (size_t i = 0; i < e->n_picked; i++) {
        usable |= e->picked[i].usable;
        taken |= (uint64_t)1 << e->picked[i].variant;
    }
    return usable & ~taken;
}

/* Checks that no binding is larger than the view's limit for a texel buffer or a storage buffer. */
static void check_bindings(rig *r, const vkt_limits *lim)
{
    for (size_t i = 0; i < r->p->lowered.n; i++) {
        const vkt_dispatch *d = &r->p->lowered.list[i];
        for (uint32_t k = 0; k < d->n_bind; k++) {
            const bool texel = r->p->pipelines[i]->texels >> k & 1;
            const uint64_t most = texel ? 16 * lim->max_texel_elements : lim->max_storage_range_bytes;
            if (!d->bind[k].t.id || d->bind[k].bytes <= most) continue;
            complain(r, "%s binds %llu bytes of %s, the device %llu", vkt_kernel_get((vkt_kernel_id)d->kernel)->name,
                     (unsigned long long)d->bind[k].bytes, vkt_lowered_value(&r->p->lowered, d->bind[k].t)->name,
                     (unsigned long long)most);
            return;
        }
    }
}

static vkt_result create(rig *r)
{
    const vkt_limits real = r->ctx->limits;
    if (r->s->g->n_params) assert_int_equal(vkt_store_create(r->ctx, r->s->g, &r->store), VKT_OK);
    r->view->change(&r->ctx->limits);
    r->ctx->limits.choices.force = r->view->force;
    vkt_test_expect_errors(r->view->may_refuse);
    const vkt_program_params params = { .precision = r->view->precision };
    const vkt_result status = vkt_program_create_guarded(r->ctx, r->s->g, r->store, &params, &r->p);
    vkt_test_expect_errors(false);
    if (status == VKT_OK) check_bindings(r, &r->ctx->limits);
    r->ctx->limits = real;
    return status;
}

/* Returns whether a convolution is split by source channels and its partial sums are stored in 16 bits. The program of
 * such a subject is not run, because each partial sum adds a rounding error. */
static bool adds_in_half(const rig *r)
{
    bool any = false;
    for (size_t i = 0; i < r->p->lowered.n; i++) {
        const vkt_dispatch *d = &r->p->lowered.list[i];
        any |= d->kernel == VKT_K_CONV2D_TILE_ADD && (d->storage >> 2 * TILE_DST & 3);
    }
    return any;
}

/* Rounds the inputs to their storage type. If a kernel multiplies cooperative matrices, rounds f32 inputs to the type
 * of these matrices instead. Computes the reference from the rounded inputs. */
static void round_inputs(rig *r)
{
    const bool matrices = multiplies_matrices(r);
    r->s->f16 = matrices && r->view->precision == VKT_PRECISION_F16;
    for (size_t i = 0; i < VKT_COUNT(r->in); i++) {
        side *v = input_at(r->s, i);
        vkt_precision storage = v->t.id ? value_of(r, v->t)->storage : VKT_PRECISION_F32;
        if (matrices && v->t.id && value_of(r, v->t)->dtype == VKT_F32) storage = r->view->precision;
        if (storage == VKT_PRECISION_F32 || v->ref.dtype == VKT_F16) continue;
        float *data = v->data;
        for (size_t k = 0; k < side_count(v); k++) {
            uint16_t h;
            put_element(storage, &h, data[k]);
            data[k] = get_element(storage, &h);
            v->ref.f[k] = (double)data[k];
        }
    }
    subject_forward(r->s);
    subject_backward(r->s);
}

/* Computes the reference of the gradients from output 0 as the device stored it in 16 bits, because the kernel of a
 * gradient may read this output. */
static void start_from_stored(rig *r, const result *out)
{
    const vkt_value *value = value_of(r, r->s->out[0].t);
    if (!r->s->op->diff || value->storage == VKT_PRECISION_F32) return;
    const size_t n = side_count(&r->s->out[0]);
    double *y = malloc(n * sizeof *y);
    float *got = malloc(n * sizeof *got);
    assert_true(y && got);
    vkt_unpack_value(value, out->raw[0], got);
    for (size_t i = 0; i < n; i++) y[i] = (double)got[i];
    r->s->stored = y;
    subject_backward(r->s);
    r->s->stored = NULL;
    free(got);
    free(y);
}

/* Runs the subject in a view. In view 0, sets *first. If view->same_bits (harness.h), compares results with *first. */
static void check_view(vkt_ctx *ctx, subject *s, const harness_view *view, result *first, harness_report *report)
{
    rig r = { .s = s, .view = view, .ctx = ctx, .report = report };
    const unsigned messages = vkt_test_messages();
    const vkt_result status = create(&r);
    const bool half = status == VKT_OK && is_half(&r);
    const bool matrices = status == VKT_OK && multiplies_matrices(&r), in_16 = vkt_stores_16_bits(view->precision);
    const bool rounds = status == VKT_OK && (half || (matrices && in_16)) && !adds_in_half(&r);
    report->halves += half && rounds;
    if (rounds) round_inputs(&r);
    *(in_16 ? &report->coops : &report->splits) += matrices && (rounds || !in_16);
    if (status == VKT_OK && (rounds || !in_16)) {
        result one = { .work = 0 }, two = { .work = 0 };
        pack_inputs(&r);
        run(&r, &one);
        run(&r, &two);
        check_same_bits(&r, &one, &two, "in a second run");
        start_from_stored(&r, &one);
        for (size_t i = 0; i < VKT_COUNT(one.raw); i++)
            if (one.raw[i]) check_result(&r, i, one.raw[i]);
        one.work = hash_work(r.p);
        one.not_taken = first->not_taken = not_taken(&r.p->lowered);
        if (view->same_bits && one.work == first->work) check_same_bits(&r, first, &one, "than as it is");
        result_free(&two);
        if (view == harness_views)
            *first = one;
        else
            result_free(&one);
    } else if (status != VKT_OK && !(view->may_refuse && status == VKT_E_UNSUPPORTED)) {
        complain(&r, "the program could not be made: %s", vkt_result_name(status));
    }
    vkt_program_destroy(&r.p);
    vkt_store_destroy(&r.store);
    harness_forget(ctx);
    if (vkt_test_messages() != messages) complain(&r, "the validation layer has something to say");
    for (size_t i = 0; i < VKT_COUNT(r.in); i++) free(r.in[i]);
}

void harness_check(vkt_ctx *ctx, subject *s, harness_report *report)
{
    result first = { .work = 0 };
    const unsigned before = report->faults;
    check_view(ctx, s, &harness_views[0], &first, report);
    uint64_t others = first.not_taken;
    if (report->faults == before)
        check_view(ctx, s, &harness_views[1 + s->seed % (harness_n_views - 1)], &first, report);
    if (report->faults == before && others) {
        for (uint64_t skip = s->seed % (uint64_t)__builtin_popcountll(others); skip; skip--) others &= others - 1;
        const vkt_variant v = (vkt_variant)__builtin_ctzll(others);
        const harness_view other = { vkt_variant_name(v), as_it_is, .force = (uint64_t)1 << v };
        check_view(ctx, s, &other, &first, report);
    }
    if (report->faults == before && harness_needed(ctx->limits.coop.m))
        check_view(ctx, s, &harness_split_view, &first, report);
    harness_view half = harness_half_views[s->seed % 4];
    if (ctx->limits.coop.m) half.force = VKT_V(COOP) | VKT_V(BLOCKS); /* a CPU uses COOP only if COOP is forced */
    if (report->faults == before) check_view(ctx, s, &half, &first, report);
    half.force = harness_needed(ctx->limits.coop2.m) ? VKT_V(COOP2) : 0;
    if (report->faults == before && first.not_taken & half.force) check_view(ctx, s, &half, &first, report);
    result_free(&first);
}

void harness_check_in(vkt_ctx *ctx, subject *s, const harness_view *view, harness_report *report)
{
    result first = { .work = 0 };
    check_view(ctx, s, view, &first, report);
    result_free(&first);
}
