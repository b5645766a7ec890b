/* Tests the state of a store in files, without a trainer. A resumed run must end with the same bits as an uninterrupted
 * run. Bad files must change nothing. Exported weights must be where the header says. */
#include "train/rig.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/half.h"
#include "io/checkpoint.h"
#include "vktrain/vktrain.h"

#define CHECK(call) assert_int_equal(call, VKT_OK)
enum { BATCH = 7, IN = 5, HIDDEN = 19, OUT = 3 };

/* A network whose dropout depends on the clock and the seed. */
typedef struct net {
    vkt_graph *g;
    vkt_builder *b;
    vkt_store *store;
    vkt_program *p;
    vkt_tensor x, target;
} net;

typedef struct kind {
    vkt_optimizer optimizer;
    vkt_precision precision;
    bool publish, no_update;
} kind;

static void net_make(rig *r, const kind *k, const char *first, net *n)
{
    CHECK(vkt_graph_create(NULL, &n->g));
    CHECK(vkt_builder_create(n->g, !k->no_update, &n->b));
    n->x = vkt_input(n->g, "x", VKT_F32, VKT_ROWS, vkt_shape2(BATCH, IN));
    n->target = vkt_input(n->g, "target", VKT_F32, VKT_ROWS, vkt_shape2(BATCH, OUT));
    vkt_tensor h =
        vkt_nn_relu(n->b, vkt_nn_linear(n->b, first, n->x, &(vkt_nn_linear_params){ .out_features = HIDDEN }));
    h = vkt_nn_dropout(n->b, h, 0.25f);
    const vkt_tensor y = vkt_nn_linear(n->b, "fc2", h, &(vkt_nn_linear_params){ .out_features = OUT });
    if (k->no_update)
        vkt_keep(n->g, y);
    else {
        CHECK(vkt_backward(n->g, vkt_mse(n->g, y, n->target)));
        CHECK(vkt_update(n->g, &k->optimizer));
        if (k->publish) CHECK(vkt_publish(n->g, 0.9));
    }
    CHECK(vkt_store_create(r->ctx, n->g, &n->store));
    CHECK(vkt_nn_init(n->b, n->store, 3));
    CHECK(vkt_store_set_clock(n->store, 0, 77));
    CHECK(vkt_program_create(r->ctx, n->g, n->store, &(vkt_program_params){ .precision = k->precision }, &n->p));
}

static void net_free(net *n)
{
    vkt_program_destroy(&n->p);
    vkt_store_destroy(&n->store);
    vkt_builder_destroy(&n->b);
    vkt_graph_destroy(&n->g);
}

/* Runs the micro-batches [first, last). */
static void steps(net *n, uint32_t first, uint32_t last)
{
    float x[BATCH * IN], target[BATCH * OUT];
    for (uint32_t s = first; s < last; s++) {
        for (uint32_t i = 0; i < BATCH * IN; i++) x[i] = sinf((float)(i + 11 * s));
        for (uint32_t i = 0; i < BATCH * OUT; i++) target[i] = cosf((float)(i + 5 * s));
        CHECK(vkt_program_write(n->p, n->x, x, sizeof x));
        CHECK(vkt_program_write(n->p, n->target, target, sizeof target));
        CHECK(vkt_program_run(n->p, &(vkt_run){ .lr = 0.01f }, NULL));
    }
    CHECK(vkt_program_wait(n->p));
}

/* The state is saved after five runs. With the first of `kinds`, a step has two micro-batches, so five runs are two
 * steps and half of the third. The saved sum of gradients then has one micro-batch. */
static void a_resumed_store_ends_like_one_that_never_stopped(void **state)
{
    rig *r = rig_of(state);
    const kind kinds[] = {
        { .optimizer = { .kind = VKT_ADAM, .micro_batches = 2 } },
        { .optimizer = { .kind = VKT_SGD, .momentum = 0.9f }, .publish = true },
        { .optimizer = { .kind = VKT_RMSPROP, .centered = true, .momentum = 0.5f }, .precision = VKT_PRECISION_F16 },
    };
    const char *half = vkt_temp_dir_file(&r->dir, "half"), *a = vkt_temp_dir_file(&r->dir, "a"),
               *b = vkt_temp_dir_file(&r->dir, "b");
    for (size_t i = 0; i < VKT_COUNT(kinds); i++) {
        net whole, resumed;
        net_make(r, &kinds[i], "fc1", &whole);
        steps(&whole, 0, 5);
        CHECK(vkt_store_save_state(NULL, whole.store, half));
        steps(&whole, 5, 12);
        net_make(r, &kinds[i], "fc1", &resumed);
        steps(&resumed, 0, 2); /* a state that loading must replace */
        CHECK(vkt_store_load_state(NULL, resumed.store, half));
        CHECK(vkt_store_save_state(NULL, resumed.store, b));
        rig_same_file(half, b);
        steps(&resumed, 5, 12);
        CHECK(vkt_store_save_state(NULL, whole.store, a));
        CHECK(vkt_store_save_state(NULL, resumed.store, b));
        rig_same_file(a, b);
        uint64_t t, seed;
        CHECK(vkt_store_get_clock(resumed.store, &t, &seed));
        assert_int_equal(t, kinds[i].optimizer.micro_batches ? 6 : 12);
        assert_int_equal(seed, 77);
        net_free(&whole);
        net_free(&resumed);
    }
}

static float *values_of(vkt_store *s, vkt_store_part part)
{
    float *all = malloc(vkt_store_elements(s) * sizeof *all), *at = all;
    assert_non_null(all);
    for (uint32_t i = 0; i < vkt_store_count(s); i++) {
        CHECK(vkt_store_read(s, i, part, at));
        at += vkt_shape_elements(vkt_store_shape(s, i));
    }
    return all;
}

/* Checks that loading fails with the status `want`. The values, the first moments and the clock must not change. */
static void refuses(rig *r, net *n, const char *path, vkt_result want)
{
    uint64_t t[2], seed[2];
    const uint64_t bytes = vkt_store_elements(n->store) * sizeof(float);
    float *before[2], *after[2];
    CHECK(vkt_store_get_clock(n->store, &t[0], &seed[0]));
    for (int i = 0; i < 2; i++) before[i] = values_of(n->store, i ? VKT_PART_MOMENT1 : VKT_PART_VALUE);
    assert_int_equal(vkt_store_load_state(&r->h, n->store, path), want);
    CHECK(vkt_store_get_clock(n->store, &t[1], &seed[1]));
    for (int i = 0; i < 2; i++) {
        after[i] = values_of(n->store, i ? VKT_PART_MOMENT1 : VKT_PART_VALUE);
        assert_memory_equal(before[i], after[i], bytes);
        free(before[i]);
        free(after[i]);
    }
    assert_true(t[0] == t[1] && seed[0] == seed[1]);
}

static void a_file_that_does_not_fit_changes_nothing(void **state)
{
    rig *r = rig_of(state);
    const kind adam = { .optimizer = { .kind = VKT_ADAM } },
               sgd = { .optimizer = { .kind = VKT_SGD, .momentum = 0.5f } },
               micro = { .optimizer = { .kind = VKT_ADAM, .micro_batches = 2 } },
               plain = { .optimizer = { .kind = VKT_SGD } }, none = { .no_update = true };
    const char *path = vkt_temp_dir_file(&r->dir, "state"), *other = vkt_temp_dir_file(&r->dir, "other");
    net n, m;
    net_make(r, &adam, "fc1", &n);
    steps(&n, 0, 3);
    refuses(r, &n, vkt_temp_dir_file(&r->dir, "missing"), VKT_E_NOT_FOUND);
    net_make(r, &sgd, "fc1", &m);
    CHECK(vkt_store_save_state(NULL, m.store, path));
    refuses(r, &n, path, VKT_E_STATE); /* SGD's buffer is no moment of Adam */
    net_free(&m);
    net_make(r, &plain, "fc1", &m);
    CHECK(vkt_store_save_state(NULL, m.store, path));
    net_free(&m);
    net_make(r, &sgd, "fc1", &m);
    refuses(r, &m, path, VKT_E_NOT_FOUND); /* the file has no momentum buffer */
    net_free(&m);
    net_make(r, &micro, "fc1", &m);
    steps(&m, 0, 3);
    CHECK(vkt_store_save_state(NULL, m.store, path));
    refuses(r, &n, path, VKT_E_STATE); /* saved in the middle of a step of two micro-batches */
    net_free(&m);
    net_make(r, &adam, "fc", &m);
    CHECK(vkt_store_save_state(NULL, m.store, path));
    refuses(r, &n, path, VKT_E_NOT_FOUND); /* the file has "fc" instead of "fc1" */
    net_free(&m);
    CHECK(vkt_store_save(NULL, n.store, VKT_PART_VALUE, path));
    refuses(r, &n, path, VKT_E_FORMAT); /* the file has weights only */

    CHECK(vkt_store_save_state(NULL, n.store, path));
    void *bytes;
    size_t size;
    CHECK(vkt_file_read(&r->h, path, 1u << 24, &bytes, &size));
    CHECK(vkt_file_write(&r->h, other, bytes, size - 1));
    refuses(r, &n, other, VKT_E_FORMAT); /* truncated */
    ((unsigned char *)bytes)[size / 2] ^= 1;
    CHECK(vkt_file_write(&r->h, other, bytes, size));
    refuses(r, &n, other, VKT_E_FORMAT); /* one bit is changed */
    vkt_free(&r->h, bytes);

    const char *const texts[] = { "adam 3 77 0x1.8p+3 0 0 0 0", "adam 3 77 0x1p+3 2000 0 0 0",
                                  "adam 3 77 nan 0 0 0 0" };
    /* In each text, one number is wrong. The number after 77 is a loss scale, which must be a power of two. The next
     * number is good_steps, which must be below 2000. */
    for (size_t i = 0; i < VKT_COUNT(texts); i++) {
        const vkt_blob blob = { .name = "x", .dtype = VKT_ST_F32, .rank = 1, .dims = { 2 }, .data = (float[2]){ 0 } };
        CHECK(vkt_checkpoint_write(&r->h, other, &blob, 1, &(vkt_meta){ "vktrain.store", texts[i] }, 1));
        refuses(r, &n, other, VKT_E_FORMAT);
    }

    net_make(r, &none, "fc1", &m); /* a store for predictions has only values, so it loads only the values */
    CHECK(vkt_store_load_state(NULL, m.store, path));
    float *x = values_of(n.store, VKT_PART_VALUE), *y = values_of(m.store, VKT_PART_VALUE);
    assert_memory_equal(x, y, vkt_store_elements(n.store) * sizeof *x);
    free(x);
    free(y);
    net_free(&m);
    net_free(&n);
}

static void values_that_are_not_finite_are_not_saved(void **state)
{
    rig *r = rig_of(state);
    const char *path = vkt_temp_dir_file(&r->dir, "good"), *copy = vkt_temp_dir_file(&r->dir, "copy");
    net n;
    uint32_t i = 99;
    float bias[OUT] = { 1, NAN, 2 };
    net_make(r, &(kind){ .optimizer = { .kind = VKT_ADAM } }, "fc1", &n);
    CHECK(vkt_store_save_state(NULL, n.store, path));
    CHECK(vkt_store_save_state(NULL, n.store, copy));
    assert_false(vkt_store_find(n.store, "fc2", &i)); /* a part of a name is not found */
    assert_int_equal(i, 99);
    assert_true(vkt_store_find(n.store, "fc2.bias", &i));
    assert_string_equal(vkt_store_name(n.store, i), "fc2.bias");
    CHECK(vkt_store_write(n.store, i, VKT_PART_VALUE, bias));
    assert_int_equal(vkt_store_save_state(&r->h, n.store, path), VKT_E_DIVERGED);
    rig_same_file(path, copy);
    net_free(&n);
}

/* ---- export ---- */

/* Returns the value of a macro in the header. */
static uint64_t macro(const char *text, const char *name)
{
    char line[96];
    snprintf(line, sizeof line, "#define %s ", name);
    const char *at = strstr(text, line);
    if (!at) fail_msg("no macro %s in:\n%s", name, text);
    return strtoull(at + strlen(line), NULL, 10);
}

static float element(const unsigned char *blob, uint64_t i, vkt_precision precision)
{
    float f;
    const uint32_t bytes = precision == VKT_PRECISION_F32 ? 4 : 2;
    uint32_t word = 0;
    for (uint32_t b = 0; b < bytes; b++) word |= (uint32_t)blob[i * bytes + b] << 8 * b;
    if (precision == VKT_PRECISION_F16) return vkt_f32_from_half((uint16_t)word);
    if (precision == VKT_PRECISION_BF16) return vkt_f32_from_bf16((uint16_t)word);
    memcpy(&f, &word, sizeof f);
    return f;
}

static float stored(float f, vkt_precision precision)
{
    if (precision == VKT_PRECISION_F16) return vkt_f32_from_half(vkt_half_from_f32(f));
    return precision == VKT_PRECISION_BF16 ? vkt_f32_from_bf16(vkt_bf16_from_f32(f)) : f;
}

static void exported_weights_are_where_the_header_says(void **state)
{
    rig *r = rig_of(state);
    const char *blob = vkt_temp_dir_file(&r->dir, "net.bin"), *header = vkt_temp_dir_file(&r->dir, "net.h");
    const char *const names[] = { "SKY_FC1_WEIGHT", "SKY_FC1_BIAS", "SKY_FC2_WEIGHT", "SKY_FC2_BIAS" };
    net n;
    net_make(r, &(kind){ .optimizer = { .kind = VKT_ADAM } }, "fc1", &n);
    for (int precision = 0; precision < 3; precision++) {
        const vkt_export_params params = { .precision = (vkt_precision)precision, .prefix = "SKY" };
        void *bytes, *text;
        size_t size, length;
        CHECK(vkt_store_export(NULL, n.store, &params, blob, header));
        CHECK(vkt_file_read(&r->h, blob, 1u << 24, &bytes, &size));
        CHECK(vkt_file_read(&r->h, header, 1u << 24, &text, &length));
        assert_int_equal(size, macro(text, "SKY_ELEMENTS") * (precision ? 2 : 4));
        assert_int_equal(macro(text, "SKY_FC1_WEIGHT_DIM0"), HIDDEN);
        assert_int_equal(macro(text, "SKY_FC1_WEIGHT_DIM1"), IN);
        assert_int_equal(macro(text, "SKY_FC2_BIAS_DIM0"), OUT);
        uint64_t last = 0;
        for (uint32_t i = 0; i < VKT_COUNT(names); i++) {
            float want[HIDDEN * IN];
            const uint64_t first = macro(text, names[i]), count = vkt_shape_elements(vkt_store_shape(n.store, i));
            assert_true(first >= last && first * (precision ? 2 : 4) % 64 == 0);
            for (uint64_t k = last; k < first; k++) assert_true(element(bytes, k, params.precision) == 0); /* a gap */
            CHECK(vkt_store_read(n.store, i, VKT_PART_VALUE, want));
            for (uint64_t k = 0; k < count; k++)
                assert_true(element(bytes, first + k, params.precision) == stored(want[k], params.precision));
            last = first + count;
        }
        vkt_free(&r->h, bytes);
        vkt_free(&r->h, text);
    }
    net_free(&n);
}

static void a_bad_export_is_refused(void **state)
{
    rig *r = rig_of(state);
    const char *blob = vkt_temp_dir_file(&r->dir, "none.bin"), *header = vkt_temp_dir_file(&r->dir, "none.h");
    const struct {
        const char *first;
        vkt_export_params p;
        vkt_result want;
    } cases[] = {
        { "fc1", { .prefix = "1A" }, VKT_E_ARG },
        { "fc1", { .prefix = "" }, VKT_E_ARG },
        { "fc1", { .prefix = "\xc4" }, VKT_E_ARG }, /* a letter in a Latin-1 locale */
        { "fc1", { .prefix = "A__B" }, VKT_E_ARG },
        { "fc1", { .precision = VKT_PRECISION_F32_SPLIT }, VKT_E_ARG },
        { "fc1", { .part = VKT_PART_PUBLISHED }, VKT_E_STATE },
        { "FC2", { .prefix = NULL }, VKT_E_ARG }, /* FC2.weight and fc2.weight give the same macro */
    };
    static const char *const locales[] = { "de_DE.ISO-8859-1", "de_DE.iso88591", "en_US.ISO-8859-1", "C" };
    for (size_t i = 0; !setlocale(LC_CTYPE, locales[i]); i++) continue;
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        net n;
        net_make(r, &(kind){ .optimizer = { .kind = VKT_ADAM } }, cases[i].first, &n);
        assert_int_equal(vkt_store_export(&r->h, n.store, &cases[i].p, blob, header), cases[i].want);
        vkt_file f;
        assert_int_equal(vkt_file_open(&r->h, header, &f), VKT_E_NOT_FOUND); /* nothing was written */
        assert_int_equal(vkt_file_open(&r->h, blob, &f), VKT_E_NOT_FOUND);
        net_free(&n);
    }
    setlocale(LC_CTYPE, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(a_resumed_store_ends_like_one_that_never_stopped),
        rig_test(a_file_that_does_not_fit_changes_nothing),
        rig_test(values_that_are_not_finite_are_not_saved),
        rig_test(exported_weights_are_where_the_header_says),
        rig_test(a_bad_export_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
