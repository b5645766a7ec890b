/* Tests vktrain/vktrain.glsl and vktrain.hlsl. Shaders evaluate the networks of embed/networks.def with weights that
 * vkt_store_export has written. The results are compared with a reference in double precision. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/half.h"
#include "embed/shader.h"
#include "embed/shaders/network.h"
#include "networks.spv.h"
#include "support/temp_dir.h"

#define DO(call) assert_int_equal((call), VKT_OK)
#define STORAGE VK_BUFFER_USAGE_STORAGE_BUFFER_BIT

enum { MAX_LAYERS = 5, MAX_WIDTH = 128, GUARD = 64 };
enum { FLOAT = NETWORK_FLOAT, VEC4 = NETWORK_VEC4, HALF = NETWORK_HALF, BFLOAT = NETWORK_BFLOAT };

/* ---- activations in double precision ---- */

static double f_VKT_IDENTITY(double v)
{
    return v;
}
static double f_VKT_RELU(double v)
{
    return v > 0 ? v : 0;
}
static double f_LEAKY_RELU(double v)
{
    return v > 0 ? v : NETWORK_SLOPE * v;
}
static double f_ELU(double v)
{
    return v > 0 ? v : NETWORK_ALPHA * expm1(v);
}
static double f_VKT_GELU(double v)
{
    return 0.5 * v * erfc(-v * sqrt(0.5));
}
static double f_VKT_SIGMOID(double v)
{
    return 1 / (1 + exp(-v));
}
static double f_VKT_GELU_TANH(double v)
{
    return 0.5 * v * (1 + tanh(sqrt(2 / acos(-1.0)) * (v + 0.044715 * v * v * v)));
}
static double f_VKT_SILU(double v)
{
    return v / (1 + exp(-v));
}
static double f_VKT_HARDSWISH(double v)
{
    return v * fmin(fmax(v + 3, 0), 6) / 6;
}
static double f_VKT_TANH(double v)
{
    return tanh(v);
}
static double f_SOFTPLUS(double v)
{
    return NETWORK_BETA * v > NETWORK_THRESHOLD ? v : log1p(exp(NETWORK_BETA * v)) / NETWORK_BETA;
}
static double f_VKT_EXP(double v)
{
    return exp(v);
}

/* ---- the networks ---- */

typedef struct network {
    const char *name;
    const uint32_t *words;
    size_t bytes;
    int stored, bits; /* how parameters are stored; bits of the arithmetic */
    double (*hidden)(double), (*last)(double);
    uint32_t n_widths, width[MAX_LAYERS + 1];
} network;

#define COUNT(...) (sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))
#define NETWORK(name, language, stored, bits, unroll, hidden, last, ...) \
    { #name, name##_spv, sizeof name##_spv, stored, bits, f_##hidden, f_##last, COUNT(__VA_ARGS__), { __VA_ARGS__ } },
static const network networks[] = {
#include "embed/networks.def"
};
#undef NETWORK
enum { N_NETWORKS = sizeof networks / sizeof networks[0] };

static const network *find(const char *name)
{
    for (size_t i = 0; i < N_NETWORKS; i++)
        if (strcmp(networks[i].name, name) == 0) return &networks[i];
    fail_msg("no network %s in embed/networks.def", name);
    return NULL;
}

/* Returns random number i, in [-1, 1). */
static double number(uint32_t i)
{
    return (double)(i * 2654435761u >> 8) / (1 << 23) - 1;
}

/* ---- weights ---- */

typedef struct weights {
    unsigned char *blob; /* as vkt_store_export writes it */
    size_t size;
    uint32_t at[2 * MAX_LAYERS]; /* index of the first element of each parameter: weight 0, bias 0, weight 1, .. */
} weights;

/* Makes a store of the network's parameters. If the network has one layer, its biases put some sums near zero and some
 * into the tails of the activation. In a network of more layers, the sums of a layer are about as large as the inputs
 * of the layer. */
static vkt_store *make_store(const network *n, vkt_ctx *ctx, vkt_graph *g)
{
    static const float biases[] = { 0.1f, -1, 2, -5, 12, -60, 60 };
    static float values[MAX_WIDTH * MAX_WIDTH];
    vkt_store *store;
    char name[16];
    for (uint32_t l = 0; l + 1 < n->n_widths; l++) {
        snprintf(name, sizeof name, "l%u.weight", l);
        vkt_param(g, name, vkt_shape2(n->width[l + 1], n->width[l]));
        snprintf(name, sizeof name, "l%u.bias", l);
        vkt_param(g, name, vkt_shape1(n->width[l + 1]));
    }
    DO(vkt_store_create(ctx, g, &store));
    for (uint32_t p = 0; p < vkt_store_count(store); p++) {
        const vkt_shape s = vkt_store_shape(store, p);
        const uint32_t elements = s.dim[0] * (s.rank > 1 ? s.dim[1] : 1);
        const double scale = s.rank > 1 ? sqrt(3.0 / s.dim[1]) : 0.3;
        for (uint32_t i = 0; i < elements; i++) {
            values[i] = (float)(scale * number(i + 7919 * p + 1));
            if (s.rank == 1 && n->n_widths == 2) values[i] = biases[i % (sizeof biases / sizeof biases[0])];
        }
        DO(vkt_store_write(store, p, VKT_PART_VALUE, values));
    }
    return store;
}

static uint32_t macro(const char *text, const char *name)
{
    char line[96];
    snprintf(line, sizeof line, "#define %s ", name);
    const char *at = strstr(text, line);
    if (!at) fail_msg("no macro %s in:\n%s", name, text);
    return (uint32_t)strtoul(at + strlen(line), NULL, 10);
}

static weights export(const network *n, vkt_ctx *ctx, const vkt_temp_dir *dir)
{
    const vkt_host host = vkt_test_host();
    const vkt_export_params params = { .precision = n->stored == HALF     ? VKT_PRECISION_F16
                                                    : n->stored == BFLOAT ? VKT_PRECISION_BF16
                                                                          : VKT_PRECISION_F32 };
    const char *blob = vkt_temp_dir_file(dir, "net.bin"), *header = vkt_temp_dir_file(dir, "net.h");
    weights w;
    vkt_graph *g;
    void *bytes, *text;
    size_t length;
    DO(vkt_graph_create(&host, &g));
    vkt_store *store = make_store(n, ctx, g);
    DO(vkt_store_export(&host, store, &params, blob, header));
    DO(vkt_file_read(&host, blob, 1u << 24, &bytes, &w.size));
    DO(vkt_file_read(&host, header, 1u << 24, &text, &length));
    for (uint32_t l = 0; l + 1 < n->n_widths; l++) {
        char name[32];
        snprintf(name, sizeof name, "VKT_L%u_WEIGHT", l);
        w.at[2 * l] = macro(text, name);
        snprintf(name, sizeof name, "VKT_L%u_BIAS", l);
        w.at[2 * l + 1] = macro(text, name);
    }
    w.blob = bytes;
    vkt_free(&host, text);
    vkt_store_destroy(&store);
    vkt_graph_destroy(&g);
    return w;
}

static double element(const network *n, const weights *w, uint32_t i)
{
    float f;
    uint16_t half;
    memcpy(&half, w->blob + 2 * i, sizeof half);
    if (n->stored == HALF) return vkt_f32_from_half(half);
    if (n->stored == BFLOAT) return vkt_f32_from_bf16(half);
    memcpy(&f, w->blob + 4 * i, sizeof f);
    return f;
}

/* ---- the reference ---- */

/* Computes y from x. allowed[o] is the largest allowed error of y[o]: the change of y[o] that rounding errors in the
 * sum of the last layer can cause, plus the error of the activation function itself. */
static void reference(const network *n, const weights *w, const double *x, double *y, double *allowed)
{
    double h[MAX_WIDTH], rounding = n->bits == 16 ? 0x1p-8 : 0x1p-20;
    const uint32_t layers = n->n_widths - 1;
    memcpy(h, x, n->width[0] * sizeof h[0]);
    for (uint32_t l = 0; l < layers; l++) {
        double (*f)(double) = l + 1 < layers ? n->hidden : n->last;
        for (uint32_t o = 0; o < n->width[l + 1]; o++) {
            double s = element(n, w, w->at[2 * l + 1] + o), size = fabs(s);
            for (uint32_t i = 0; i < n->width[l]; i++) {
                const double product = element(n, w, w->at[2 * l] + o * n->width[l] + i) * h[i];
                s += product;
                size += fabs(product);
            }
            y[o] = f(s);
            const double e = rounding * size, up = fabs(f(s + e) - y[o]), down = fabs(f(s - e) - y[o]);
            allowed[o] = fmax(up, down) + 4 * 0x1p-20 * fmax(1, fabs(y[o]));
        }
        memcpy(h, y, n->width[l + 1] * sizeof h[0]);
    }
}

/* ---- the shader ---- */

static void compare(const network *n, const weights *w, const float *x, const float *got)
{
    const uint32_t I = n->width[0], O = n->width[n->n_widths - 1];
    double in[MAX_WIDTH], y[MAX_WIDTH], allowed[MAX_WIDTH], most = 0;
    for (uint32_t p = 0; p < NETWORK_POINTS; p++) {
        for (uint32_t i = 0; i < I; i++) in[i] = (double)x[p * I + i];
        reference(n, w, in, y, allowed);
        for (uint32_t o = 0; o < O; o++) {
            most = fmax(most, fabs(y[o]));
            if (!(fabs((double)got[p * O + o] - y[o]) <= allowed[o]))
                fail_msg("%s: point %u, output %u: %.9g, want %.9g within %.3g", n->name, p, o, (double)got[p * O + o],
                         y[o], allowed[o]);
        }
    }
    assert_true(most > 0.1);
    for (uint32_t i = 0; i < GUARD; i++) assert_true(isnan(got[NETWORK_POINTS * O + i]));
}

static void run(const network *n, app *a, vkt_ctx *ctx, const vkt_temp_dir *dir)
{
    const vkt_host host = vkt_test_host();
    const uint32_t I = n->width[0], O = n->width[n->n_widths - 1];
    weights w = export(n, ctx, dir);
    app_buffer parameters = app_buffer_make(a, w.size, STORAGE),
               x = app_buffer_make(a, NETWORK_POINTS * I * 4, STORAGE),
               y = app_buffer_make(a, (NETWORK_POINTS * O + GUARD) * 4, STORAGE),
               at = app_buffer_make(a, sizeof w.at, STORAGE);
    const app_buffer *const bound[] = { &parameters, &x, &y, &at };
    shader s;
    memcpy(parameters.mapped, w.blob, w.size);
    memcpy(at.mapped, w.at, sizeof w.at);
    for (uint32_t i = 0; i < NETWORK_POINTS * I; i++) ((float *)x.mapped)[i] = (float)number(i);
    memset(y.mapped, 0xff, y.bytes); /* NaN */
    shader_open(&s, a, n->words, n->bytes);
    for (uint32_t i = 0; i < SHADER_BINDINGS; i++) shader_bind(&s, i, bound[i]->handle, 0, bound[i]->bytes);
    shader_dispatch(&s, (const char[SHADER_PUSH_BYTES]){ 0 }, (NETWORK_POINTS + NETWORK_LANES - 1) / NETWORK_LANES);
    compare(n, &w, x.mapped, y.mapped);
    shader_close(&s);
    app_buffer_free(a, &parameters);
    app_buffer_free(a, &x);
    app_buffer_free(a, &y);
    app_buffer_free(a, &at);
    vkt_free(&host, w.blob);
}

/* ---- tests ---- */

static void networks_are_as_in_double_precision(void **state)
{
    (void)state;
    app a;
    app_open(&a, NULL);
    vkt_ctx *ctx = app_adopt(&a);
    vkt_temp_dir dir = vkt_temp_dir_make();
    uint32_t left_out = 0;
    for (size_t i = 0; i < N_NETWORKS; i++)
        if (networks[i].bits == 16 && !a.v12.shaderFloat16)
            left_out++;
        else
            run(&networks[i], &a, ctx, &dir);
    if (left_out) print_message("SKIPPED: %u networks with arithmetic in float16: no such device\n", left_out);
    vkt_temp_dir_remove(&dir);
    vkt_ctx_destroy(&ctx);
    app_close(&a);
}

/* The code of a layer is a loop (VKT_UNROLL is 0), so wider layers need no more code. More layers need more code. */
static void wider_networks_have_no_more_code(void **state)
{
    (void)state;
    const network *narrow = find("documented_vec4"), *wide = find("wide");
    assert_int_equal(narrow->n_widths, wide->n_widths);
    assert_true(wide->bytes <= narrow->bytes); /* two widths of `narrow` are not multiples of 4: they need more code */
    assert_true(find("five_layers")->bytes < 3 * narrow->bytes);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, vkt_test_setup, vkt_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(networks_are_as_in_double_precision),
        TEST(wider_networks_have_no_more_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
