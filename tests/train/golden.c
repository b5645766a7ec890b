/* train/golden.c - see golden.h. */
#include "train/golden.h"

#include <math.h>
#include <stdio.h>

#define TIMES 4.0
enum { MAX_PARAMS = 128 };
enum { SIDE = GOLDEN_SIDE, CLASSES = GOLDEN_CLASSES };

vkt_safetensors *golden_open(const vkt_host *h, const char *name)
{
    vkt_safetensors *st;
    char path[512];
    snprintf(path, sizeof path, VKT_TEST_DIR "/golden/%s.safetensors", name);
    assert_int_equal(vkt_safetensors_open(h, path, &st), VKT_OK);
    return st;
}

double *golden_numbers(const vkt_safetensors *st, const char *name, uint64_t *n)
{
    const vkt_st_entry *e = vkt_safetensors_find(st, name);
    if (!e) fail_msg("the golden file has no '%s'", name);
    double *d = test_malloc((e->elements + 1) * sizeof *d);
    *n = e->elements;
    if (e->dtype == VKT_ST_F64) {
        assert_int_equal(vkt_safetensors_read_raw(st, e, d, e->bytes), VKT_OK);
        return d;
    }
    float *f = test_malloc((e->elements + 1) * sizeof *f);
    assert_int_equal(vkt_safetensors_read_f32(st, e, f, e->elements), VKT_OK);
    for (uint64_t i = 0; i < e->elements; i++) d[i] = (double)f[i];
    test_free(f);
    return d;
}

uint32_t golden_mix(uint32_t v)
{
    v *= 2654435761u;
    v ^= v >> 15;
    v *= 2246822519u;
    return v ^ v >> 13;
}

static void draw_image(uint32_t i, unsigned char *pixels, uint32_t *label)
{
    static const uint32_t across[CLASSES] = { 9, 0, 7, 7, 14, 4, 14, 4, 12, 12 };
    static const uint32_t down[CLASSES] = { 0, 9, 7, 57, 4, 14, 60, 50, 12, 52 };
    const uint32_t h = golden_mix(i + 0x10000000u);
    *label = (h >> 4) % CLASSES;
    for (uint32_t k = 0; k < 3 * SIDE * SIDE; k++) {
        const uint32_t c = k / (SIDE * SIDE), y = k / SIDE % SIDE, x = k % SIDE;
        const uint32_t phase = (across[*label] * x + down[*label] * y + 21 * c + (h >> 20)) % 64;
        const uint32_t wave = phase < 32 ? phase : 63 - phase;
        pixels[k] = (unsigned char)(4 * wave + (golden_mix(3 * SIDE * SIDE * i + k) >> 25));
    }
}

vkt_dataset *golden_images(const vkt_host *h, uint32_t rows)
{
    static const double mean[] = { 0.485, 0.456, 0.406 }, std[] = { 0.229, 0.224, 0.225 };
    unsigned char *pixels = test_malloc((size_t)rows * 3 * SIDE * SIDE);
    uint32_t *labels = test_malloc(rows * sizeof *labels);
    for (uint32_t i = 0; i < rows; i++) draw_image(i, pixels + (size_t)i * 3 * SIDE * SIDE, &labels[i]);
    const vkt_dataset_params p = { .rows = rows,
                                   .channels = 3,
                                   .height = SIDE,
                                   .width = SIDE,
                                   .labels = labels,
                                   .classes = CLASSES,
                                   .mean = mean,
                                   .std = std };
    vkt_dataset *d;
    assert_int_equal(vkt_dataset_from_arrays(h, &p, pixels, &d), VKT_OK);
    test_free(pixels);
    test_free(labels);
    return d;
}

void golden_start(vkt_trainer *t)
{
    vkt_order_identity(t->feed.host_order, t->feed.n);
    assert_int_equal(vkt_feed_start(&t->feed, 0, (vkt_pass){ 0 }), VKT_OK);
}

double golden_step(vkt_trainer *t, float lr, uint32_t first, uint32_t rows)
{
    uint64_t run;
    vkt_metrics m;
    const vkt_run what = { .lr = lr, .rows = rows, .first = first };
    assert_int_equal(vkt_program_run(vkt_trainer_program(t), &what, &run), VKT_OK);
    assert_int_equal(vkt_program_metrics(vkt_trainer_program(t), run, &m), VKT_OK);
    assert_int_equal(m.rows, rows);
    return (double)m.loss;
}

/* Returns `part` of parameter i in float64. If `fold` is not 0, returns sums instead: sum k is over all
 * elements whose index is k modulo `fold`. *n is the number of elements or sums. Free the result with test_free. */
static double *ours(vkt_store *store, vkt_store_part part, uint32_t i, uint32_t fold, uint64_t *n)
{
    const uint64_t all = vkt_shape_elements(vkt_store_shape(store, i));
    *n = fold ? VKT_MIN(all, fold) : all;
    float *f = test_malloc(all * sizeof *f);
    assert_int_equal(vkt_store_read(store, i, part, f), VKT_OK);
    double *d = test_calloc(*n, sizeof *d);
    for (uint64_t k = 0; k < all; k++) d[k % *n] += (double)f[k];
    test_free(f);
    return d;
}

/* Compares `part` of parameter i, or its sums if `fold` is not 0, with the golden tensor "<prefix><parameter's name>".
 * Returns the largest absolute difference of the numbers that the file has. */
static double deviation(const vkt_safetensors *st, vkt_store *store, vkt_store_part part, const char *prefix,
                        uint32_t i, uint32_t fold)
{
    char name[64];
    uint64_t n, m;
    snprintf(name, sizeof name, "%s%s", prefix, vkt_store_name(store, i));
    double *want = golden_numbers(st, name, &n), *got = ours(store, part, i, fold, &m), worst = 0;
    assert_true(n > 0 && (fold ? n == m : n <= m));
    for (uint64_t k = 0; k < n; k++) {
        const double d = fabs(got[k] - want[k]);
        worst = isfinite(d) ? fmax(worst, d) : INFINITY;
    }
    test_free(want);
    test_free(got);
    return worst;
}

/* Returns the n deviations that give the tolerances. `runs` lists names of golden tensors, and ends with NULL. Such a
 * tensor has n deviations of one float32 run of PyTorch, then n deviations of the next run, and so on. Element i of the
 * result is the largest deviation i of all runs. Free the result with test_free. */
static double *deviations(const vkt_safetensors *st, const char *const *runs, uint64_t n)
{
    double *theirs = test_malloc(n * sizeof *theirs);
    for (uint64_t i = 0; i < n; i++) theirs[i] = 0;
    for (; *runs; runs++) {
        uint64_t all;
        double *d = golden_numbers(st, *runs, &all);
        assert_true(all > 0 && all % n == 0);
        for (uint64_t i = 0; i < all; i++) theirs[i % n] = fmax(theirs[i % n], d[i]);
        test_free(d);
    }
    return theirs;
}

/* Compares the n parameters whose indices are in `which` with the golden file. */
static void check_parameters(const vkt_safetensors *st, vkt_store *store, const uint32_t *which, uint32_t n,
                             vkt_store_part part, const char *prefix, const char *const *runs, uint32_t fold)
{
    double *limit = deviations(st, runs, n), worst = 0;
    int bad = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double d = deviation(st, store, part, prefix, which[i], fold), times = d / limit[i];
        worst = fmax(worst, times);
        if (times <= TIMES) continue;
        print_error("%s%s: off by %.3g, PyTorch's float32 by %.3g\n", prefix, vkt_store_name(store, which[i]), d,
                    limit[i]);
        bad++;
    }
    print_message("%-16s at most %.2f times PyTorch's float32 deviation\n", prefix, worst);
    test_free(limit);
    assert_int_equal(bad, 0);
}

void golden_check_tensors(const vkt_safetensors *st, vkt_trainer *t, vkt_store_part part, const char *prefix,
                          const char *const *runs, uint32_t fold)
{
    uint32_t which[MAX_PARAMS], n = 0;
    assert_true(vkt_store_count(vkt_trainer_store(t)) <= MAX_PARAMS);
    for (uint32_t i = 0; i < vkt_store_count(vkt_trainer_store(t)); i++)
        if (part == VKT_PART_VALUE || !t->g->values[t->g->params[i]].state) which[n++] = i;
    check_parameters(st, vkt_trainer_store(t), which, n, part, prefix, runs, fold);
}

void golden_check_store(const vkt_safetensors *st, vkt_store *store, vkt_store_part part, const char *prefix,
                        const char *const *runs)
{
    uint32_t which[MAX_PARAMS];
    const uint32_t n = vkt_store_count(store);
    assert_true(n <= MAX_PARAMS);
    for (uint32_t i = 0; i < n; i++) which[i] = i;
    check_parameters(st, store, which, n, part, prefix, runs, 0);
}

void golden_check_losses(const vkt_safetensors *st, const char *name, const double *got, uint32_t n,
                         const char *const *runs)
{
    uint64_t stored;
    double *want = golden_numbers(st, name, &stored), *limit = deviations(st, runs, n), worst = 0;
    int bad = 0;
    assert_int_equal(stored, n);
    for (uint32_t i = 0; i < n; i++) {
        double near = limit[i];
        if (i > 0) near = fmax(near, limit[i - 1]);
        if (i + 1 < n) near = fmax(near, limit[i + 1]);
        const double d = fabs(got[i] - want[i]);
        worst = fmax(worst, d / near);
        if (d <= TIMES * near) continue;
        print_error("%s, number %u: off by %.3g, PyTorch's float32 by %.3g\n", name, i, d, near);
        bad++;
    }
    print_message("%-16s at most %.2f times PyTorch's float32 deviation\n", name, worst);
    test_free(want);
    test_free(limit);
    assert_int_equal(bad, 0);
}
