/* Tests low-rank adapters of linear layers: which layers get an adapter, what an adapter computes, dropout, merging,
 * errors. */
#include <math.h>

#include "base/base.h"
#include "base/philox.h"
#include "train/rig.h"

#define OK(call) assert_int_equal((call), VKT_OK)

static const char *const all[] = { "*" };
static const vkt_lora_params everywhere = { .targets = all, .n_targets = 1, .rank = 3, .alpha = 6 };

/* A graph with its builder. */
typedef struct net {
    vkt_graph *g;
    vkt_builder *b;
} net;

static net net_make(rig *r, bool training)
{
    net n;
    OK(vkt_graph_create(&r->h, &n.g));
    OK(vkt_builder_create(n.g, training, &n.b));
    return n;
}

static void net_free(net *n)
{
    vkt_builder_destroy(&n->b);
    vkt_graph_destroy(&n->g);
}

/* Makes the linear layer "model.layers.1.self_attn.q_proj" of x (2,4). A `target` that is not NULL is the only target
 * of adapters. */
static vkt_tensor one_layer(net *n, const char *target)
{
    static const char *const scopes[] = { "model", "layers", "1", "self_attn" };
    const vkt_tensor x = vkt_input(n->g, "x", VKT_F32, VKT_ROWS, vkt_shape2(2, 4));
    if (target)
        vkt_builder_set_lora(n->b, &(vkt_lora_params){ .targets = &target, .n_targets = 1, .rank = 2, .alpha = 2 });
    for (size_t i = 0; i < VKT_COUNT(scopes); i++) vkt_nn_push(n->b, scopes[i]);
    const vkt_tensor y = vkt_nn_linear(n->b, "q_proj", x, &(vkt_nn_linear_params){ .out_features = 5 });
    for (size_t i = 0; i < VKT_COUNT(scopes); i++) vkt_nn_pop(n->b);
    return y;
}

static void targets_are_those_of_peft(void **state)
{
    static const struct {
        const char *target;
        bool matches;
    } cases[] = {
        { "q_proj", true },
        { "self_attn.q_proj", true },
        { "model.layers.1.self_attn.q_proj", true },
        { "*", true },
        { "*q_proj", true },
        { "model.*.1.*.q_*", true },
        { "model.layers.1.self_attn.q_proj*", true },
        { "*.self_attn.*", true },
        { "proj", false },
        { "_proj", false },
        { "attn.q_proj", false },
        { "q_proj.weight", false },
        { "k_proj", false },
        { "model.layers.*.k_proj", false },
        { "layers.*", false },
        { "*q_pro", false },
    };
    rig *r = rig_of(state);
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        net n = net_make(r, true);
        assert_true(one_layer(&n, cases[i].target).id != 0);
        const uint64_t plain = 5 * 4 + 5, adapter = 2 * (4 + 5);
        assert_int_equal(vkt_nn_parameters(n.b), plain + (cases[i].matches ? adapter : 0));
        assert_int_equal(vkt_builder_check(n.b), cases[i].matches ? VKT_OK : VKT_E_NOT_FOUND);
        if (!cases[i].matches) vkt_test_error_contains(cases[i].target);
        net_free(&n);
    }
    vkt_test_expect_errors(false);
}

static void each_of_several_targets_must_match(void **state)
{
    static const char *const targets[] = { "q_proj", "v_prj" };
    rig *r = rig_of(state);
    net n = net_make(r, true);
    vkt_builder_set_lora(n.b, &(vkt_lora_params){ .targets = targets, .n_targets = 2 });
    one_layer(&n, NULL);
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_builder_check(n.b), VKT_E_NOT_FOUND);
    vkt_test_error_contains("'v_prj'");
    vkt_test_error_contains("model.layers.1.self_attn.q_proj");
    vkt_test_expect_errors(false);
    vkt_builder_set_lora(n.b, NULL);
    OK(vkt_builder_check(n.b));
    net_free(&n);
}

/* Makes the linear layer "fc". `user` is the only target of adapters. */
static vkt_tensor misspelt_forward(vkt_builder *b, vkt_tensor x, void *user)
{
    const char *const target = user;
    vkt_builder_set_lora(b, &(vkt_lora_params){ .targets = &target, .n_targets = 1 });
    return vkt_nn_linear(b, "fc", vkt_nn_flatten(b, x), &(vkt_nn_linear_params){ .out_features = RIG_CLASSES });
}

static void a_trainer_refuses_a_target_without_a_layer(void **state)
{
    rig *r = rig_of(state);
    vkt_trainer_params p = rig_params(r);
    vkt_trainer *t;
    p.model = (vkt_model){ .forward = misspelt_forward, .user = "fv" };
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_trainer_create(r->ctx, &p, &t), VKT_E_NOT_FOUND);
    vkt_test_error_contains("no linear layer matches the target 'fv'");
    vkt_test_expect_errors(false);
    p.model.user = "fc";
    OK(vkt_trainer_create(r->ctx, &p, &t));
    vkt_trainer_destroy(&t);
}

static void wrong_params_are_refused(void **state)
{
    static const char *const empty[] = { "" };
    const vkt_lora_params cases[] = {
        { .targets = NULL, .n_targets = 1 },
        { .targets = all, .n_targets = 0 },
        { .targets = empty, .n_targets = 1 },
        { .targets = all, .n_targets = 1, .alpha = INFINITY },
        { .targets = all, .n_targets = 1, .alpha = NAN },
        { .targets = all, .n_targets = 1, .dropout = 1 },
        { .targets = all, .n_targets = 1, .dropout = -0.5f },
        { .targets = all, .n_targets = 1, .dropout = NAN },
    };
    rig *r = rig_of(state);
    vkt_test_expect_errors(true);
    for (size_t i = 0; i < VKT_COUNT(cases); i++) {
        net n = net_make(r, true);
        vkt_builder_set_lora(n.b, &cases[i]);
        assert_int_equal(vkt_graph_status(n.g), VKT_E_ARG);
        vkt_test_error_contains("lora: want");
        net_free(&n);
    }
    vkt_test_expect_errors(false);
}

/* ---- numbers ---- */

enum { ROWS = 6, IN = 12, MIDDLE = 9, OUT = 5, RANK = 3 };

/* Makes the linear layers "one" and "two". Weight and bias of "two" are arrays, not parameters. `lora` may be NULL. */
static vkt_tensor two_layers(net *n, vkt_tensor x, vkt_array *weight, vkt_array *bias, const vkt_lora_params *lora)
{
    vkt_builder_set_lora(n->b, lora);
    x = vkt_nn_linear(n->b, "one", x, &(vkt_nn_linear_params){ .out_features = MIDDLE });
    return vkt_nn_linear_quantized(
        n->b, "two", x, &(vkt_nn_linear_quantized_params){ .weight = weight, .out_features = OUT, .bias = bias });
}

/* The input x, and the weights, biases and adapters (A and B) of both layers. Some arrays are larger than needed. */
typedef struct numbers {
    float x[ROWS * IN], weight[2][OUT * IN * MIDDLE], bias[2][MIDDLE], a[2][RANK * IN], b[2][RANK * MIDDLE];
} numbers;

/* Computes y = x W^T + bias + factor (x A^T) B^T in float64. */
static void reference(const double *x, uint32_t in, uint32_t out, const float *w, const float *bias, const float *a,
                      const float *b, double factor, double *y)
{
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t o = 0; o < out; o++) {
            double sum = (double)bias[o];
            for (uint32_t i = 0; i < in; i++) sum += x[r * in + i] * (double)w[o * in + i];
            for (uint32_t k = 0; k < RANK; k++) {
                double low = 0;
                for (uint32_t i = 0; i < in; i++) low += x[r * in + i] * (double)a[k * in + i];
                sum += factor * (double)b[o * RANK + k] * low;
            }
            y[r * out + o] = sum;
        }
}

static void write_by_name(vkt_store *s, const char *name, const float *values)
{
    uint32_t i;
    assert_true(vkt_store_find(s, name, &i));
    OK(vkt_store_write(s, i, VKT_PART_VALUE, values));
}

static void fill(vkt_rng *r, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = vkt_rng_uniform(r, -1, 1);
}

static vkt_array *array_of(rig *r, vkt_shape shape, const float *data)
{
    vkt_array *a;
    OK(vkt_array_create(r->ctx, &(vkt_array_params){ .shape = shape, .data = data }, &a));
    return a;
}

/* Evaluates two_layers with the store's parameters. */
static void evaluate(rig *r, vkt_store *s, vkt_array *weight, vkt_array *bias, const vkt_lora_params *lora,
                     const float *x, float y[ROWS * OUT])
{
    net n = net_make(r, false);
    vkt_program *p;
    const vkt_tensor in = vkt_input(n.g, "x", VKT_F32, VKT_ROWS, vkt_shape2(ROWS, IN));
    const vkt_tensor out = two_layers(&n, in, weight, bias, lora);
    vkt_keep(n.g, out);
    OK(vkt_program_create(r->ctx, n.g, s, NULL, &p));
    OK(vkt_program_write(p, in, x, ROWS * IN * sizeof *x));
    OK(vkt_program_run(p, NULL, NULL));
    OK(vkt_program_read(p, out, y, ROWS * OUT * sizeof *y));
    vkt_program_destroy(&p);
    net_free(&n);
}

/* The graph of two_layers with adapters and a loss, and the values `v` of x, weights, biases and adapters.
 * setting_store makes the store. */
typedef struct setting {
    numbers v;
    vkt_array *weight, *bias;
    net n;
    vkt_tensor x, loss;
    vkt_store *store;
} setting;

static setting *setting_make(rig *r)
{
    setting *s = test_calloc(1, sizeof *s);
    vkt_rng rng = vkt_rng_make(3, VKT_STREAM_TEST, 0, 0);
    fill(&rng, s->v.x, sizeof s->v / sizeof(float));
    s->weight = array_of(r, vkt_shape2(OUT, MIDDLE), s->v.weight[1]);
    s->bias = array_of(r, vkt_shape1(OUT), s->v.bias[1]);
    s->n = net_make(r, true);
    s->x = vkt_input(s->n.g, "x", VKT_F32, VKT_ROWS, vkt_shape2(ROWS, IN));
    const vkt_tensor y = two_layers(&s->n, s->x, s->weight, s->bias, &everywhere);
    s->loss = vkt_mean(s->n.g, vkt_mul(s->n.g, y, y));
    return s;
}

static void setting_store(rig *r, setting *s)
{
    OK(vkt_store_create(r->ctx, s->n.g, &s->store));
    write_by_name(s->store, "one.weight", s->v.weight[0]);
    write_by_name(s->store, "one.bias", s->v.bias[0]);
    write_by_name(s->store, "one.lora_A.weight", s->v.a[0]);
    write_by_name(s->store, "one.lora_B.weight", s->v.b[0]);
    write_by_name(s->store, "two.lora_A.weight", s->v.a[1]);
    write_by_name(s->store, "two.lora_B.weight", s->v.b[1]);
}

static void setting_free(setting *s)
{
    vkt_store_destroy(&s->store);
    vkt_array_destroy(&s->weight);
    vkt_array_destroy(&s->bias);
    net_free(&s->n);
    test_free(s);
}

static void an_adapter_adds_its_product(void **state)
{
    rig *r = rig_of(state);
    setting *s = setting_make(r);
    setting_store(r, s);
    double x[ROWS * IN], middle[ROWS * MIDDLE], want[ROWS * OUT];
    float got[ROWS * OUT];
    for (int i = 0; i < ROWS * IN; i++) x[i] = (double)s->v.x[i];
    const numbers *v = &s->v;
    reference(x, IN, MIDDLE, v->weight[0], v->bias[0], v->a[0], v->b[0], 2, middle); /* alpha / r = 6 / 3 */
    reference(middle, MIDDLE, OUT, v->weight[1], v->bias[1], v->a[1], v->b[1], 2, want);
    evaluate(r, s->store, s->weight, s->bias, &everywhere, v->x, got);
    for (int i = 0; i < ROWS * OUT; i++) assert_true(fabs((double)got[i] - want[i]) <= 1e-4);
    setting_free(s);
}

static void read_all(vkt_store *s, vkt_store_part part, const char *name, float *out)
{
    uint32_t i;
    assert_true(vkt_store_find(s, name, &i));
    OK(vkt_store_read(s, i, part, out));
}

static void a_step_changes_the_adapters_alone(void **state)
{
    static const char *const adapters[] = { "one.lora_A.weight", "one.lora_B.weight", "two.lora_A.weight",
                                            "two.lora_B.weight" };
    rig *r = rig_of(state);
    setting *s = setting_make(r);
    vkt_program *p;
    float now[OUT * IN * MIDDLE];
    OK(vkt_backward(s->n.g, s->loss));
    OK(vkt_update(s->n.g, &(vkt_optimizer){ .kind = VKT_SGD }));
    setting_store(r, s);
    assert_int_equal(vkt_store_count(s->store), 6); /* without weight and bias of "two", which are arrays (vkt_array) */
    OK(vkt_program_create(r->ctx, s->n.g, s->store, NULL, &p));
    OK(vkt_program_write(p, s->x, s->v.x, sizeof s->v.x));
    OK(vkt_program_run(p, &(vkt_run){ .lr = 0.1f }, NULL));
    read_all(s->store, VKT_PART_VALUE, "one.weight", now);
    assert_memory_equal(now, s->v.weight[0], MIDDLE * IN * sizeof *now);
    read_all(s->store, VKT_PART_VALUE, "one.bias", now);
    assert_memory_equal(now, s->v.bias[0], MIDDLE * sizeof *now);
    const float *before[] = { s->v.a[0], s->v.b[0], s->v.a[1], s->v.b[1] };
    const int count[] = { RANK * IN, RANK * MIDDLE, RANK * MIDDLE, RANK * OUT };
    for (int k = 0; k < 4; k++) {
        read_all(s->store, VKT_PART_VALUE, adapters[k], now);
        for (int i = 0; i < count[k]; i++) assert_true(now[i] != before[k][i]);
    }
    vkt_program_destroy(&p);
    setting_free(s);
}

static void initial_values_are_those_of_peft(void **state)
{
    rig *r = rig_of(state);
    setting *s = setting_make(r);
    float a[RANK * IN], b[RANK * MIDDLE], largest = 0;
    OK(vkt_store_create(r->ctx, s->n.g, &s->store));
    OK(vkt_nn_init(s->n.b, s->store, 5));
    read_all(s->store, VKT_PART_VALUE, "one.lora_A.weight", a);
    read_all(s->store, VKT_PART_VALUE, "one.lora_B.weight", b);
    for (int i = 0; i < RANK * IN; i++) largest = fmaxf(largest, fabsf(a[i]));
    for (int i = 0; i < RANK * MIDDLE; i++) assert_true(b[i] == 0);
    const float bound = 1 / sqrtf(IN);
    assert_true(largest <= bound && largest > 0.8f * bound);
    setting_free(s);
}

/* Inputs, A and B are all 1, and the weight of the layer is 0. So an output is the number of inputs that the adapter's
 * dropout keeps, divided by 3/4 in training. In training, most samples lose some inputs. In evaluation, no sample loses
 * any. */
static void dropout_is_active_in_training_only(void **state)
{
    enum { N = 32, SAMPLES = 20 };
    rig *r = rig_of(state);
    const vkt_lora_params p = { .targets = all, .n_targets = 1, .rank = 1, .alpha = 1, .dropout = 0.25f };
    float ones[SAMPLES * N], y[SAMPLES];
    for (int i = 0; i < SAMPLES * N; i++) ones[i] = 1;
    for (int training = 0; training < 2; training++) {
        net n = net_make(r, training);
        vkt_store *store;
        vkt_program *program;
        vkt_builder_set_lora(n.b, &p);
        const vkt_tensor x = vkt_input(n.g, "x", VKT_F32, VKT_ROWS, vkt_shape2(SAMPLES, N));
        const vkt_tensor out =
            vkt_nn_linear(n.b, "fc", x, &(vkt_nn_linear_params){ .out_features = 1, .no_bias = true });
        vkt_keep(n.g, out);
        OK(vkt_store_create(r->ctx, n.g, &store));
        write_by_name(store, "fc.lora_A.weight", ones);
        write_by_name(store, "fc.lora_B.weight", ones);
        OK(vkt_store_set_clock(store, 0, 11));
        OK(vkt_program_create(r->ctx, n.g, store, NULL, &program));
        OK(vkt_program_write(program, x, ones, sizeof ones));
        OK(vkt_program_run(program, NULL, NULL));
        OK(vkt_program_read(program, out, y, sizeof y));
        int differ = 0;
        for (int i = 0; i < SAMPLES; i++) {
            const float kept = y[i] * (training ? 0.75f : 1); /* dropout divides what it keeps by 3/4 */
            assert_true(fabsf(kept - roundf(kept)) < 1e-3f && kept <= N + 1e-3f);
            differ += fabsf(kept - N) > 0.5f;
        }
        assert_true(training ? differ > SAMPLES / 2 : differ == 0);
        vkt_program_destroy(&program);
        vkt_store_destroy(&store);
        net_free(&n);
    }
}

/* ---- merging ---- */

static void a_merged_layer_computes_the_same(void **state)
{
    rig *r = rig_of(state);
    setting *s = setting_make(r);
    setting_store(r, s);
    float with[ROWS * OUT], merged[ROWS * OUT], w[MIDDLE * IN], high[MIDDLE * IN];
    evaluate(r, s->store, s->weight, s->bias, &everywhere, s->v.x, with);
    OK(vkt_lora_merge(s->store, &everywhere));
    read_all(s->store, VKT_PART_VALUE, "one.weight", high);
    for (int o = 0; o < MIDDLE; o++)
        for (int i = 0; i < IN; i++) {
            double want = (double)s->v.weight[0][o * IN + i];
            for (int k = 0; k < RANK; k++) want += 2 * (double)s->v.b[0][o * RANK + k] * (double)s->v.a[0][k * IN + i];
            assert_true(high[o * IN + i] == (float)want);
        }
    /* The weight of layer two is in an array, not in the store. So vkt_lora_merge does not merge this layer. */
    const char *const two[] = { "two" };
    const vkt_lora_params second = { .targets = two, .n_targets = 1, .rank = 3, .alpha = 6 };
    evaluate(r, s->store, s->weight, s->bias, &second, s->v.x, merged);
    for (int i = 0; i < ROWS * OUT; i++) assert_true(fabsf(with[i] - merged[i]) <= 1e-4f);
    OK(vkt_lora_unmerge(s->store, &everywhere));
    read_all(s->store, VKT_PART_VALUE, "one.weight", w);
    for (int i = 0; i < MIDDLE * IN; i++) {
        const float old = s->v.weight[0][i], larger = fmaxf(fabsf(old), fabsf(high[i]));
        assert_true(fabsf(w[i] - old) <= nextafterf(larger, INFINITY) - larger);
    }
    setting_free(s);
}

static void merging_wants_an_adapter_of_this_rank(void **state)
{
    rig *r = rig_of(state);
    setting *s = setting_make(r);
    setting_store(r, s);
    float w[MIDDLE * IN];
    vkt_lora_params other = everywhere;
    other.rank = 4;
    vkt_test_expect_errors(true);
    assert_int_equal(vkt_lora_merge(s->store, &other), VKT_E_SHAPE);
    vkt_test_error_contains("adapter of rank 4");
    other = (vkt_lora_params){ .rank = 3, .alpha = NAN };
    assert_int_equal(vkt_lora_merge(s->store, &other), VKT_E_ARG);
    read_all(s->store, VKT_PART_VALUE, "one.weight", w);
    assert_memory_equal(w, s->v.weight[0], sizeof w);
    net n = net_make(r, true);
    vkt_store *plain;
    one_layer(&n, NULL);
    OK(vkt_store_create(r->ctx, n.g, &plain));
    assert_int_equal(vkt_lora_merge(plain, &everywhere), VKT_E_NOT_FOUND);
    vkt_test_error_contains("no weight with an adapter");
    vkt_test_expect_errors(false);
    vkt_store_destroy(&plain);
    net_free(&n);
    setting_free(s);
}

static void each_failing_allocation_is_an_error(void **state)
{
    rig *r = rig_of(state);
    for (unsigned k = 1, done = 0; !done; k++) {
        net n = net_make(r, true);
        vkt_test_fail_allocation(k);
        one_layer(&n, "q_proj");
        done = !vkt_test_allocation_failed();
        vkt_test_fail_allocation(0);
        assert_int_equal(vkt_graph_status(n.g), done ? VKT_OK : VKT_E_NOMEM);
        net_free(&n);
    }
    setting *s = setting_make(r);
    setting_store(r, s);
    vkt_test_fail_allocation(1);
    assert_int_equal(vkt_lora_merge(s->store, &everywhere), VKT_E_NOMEM);
    vkt_test_fail_allocation(0);
    setting_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(targets_are_those_of_peft),
        rig_test(each_of_several_targets_must_match),
        rig_test(a_trainer_refuses_a_target_without_a_layer),
        rig_test(wrong_params_are_refused),
        rig_test(an_adapter_adds_its_product),
        rig_test(a_step_changes_the_adapters_alone),
        rig_test(initial_values_are_those_of_peft),
        rig_test(dropout_is_active_in_training_only),
        rig_test(a_merged_layer_computes_the_same),
        rig_test(merging_wants_an_adapter_of_this_rank),
        rig_test(each_failing_allocation_is_an_error),
    };
    return cmocka_run_group_tests_name("low-rank adapters", tests, NULL, NULL);
}
