/* Compares a small network, which decodes textures from latents, with runs that PyTorch recorded (golden/README.md).
 * The ops and the optimizer (Adam) are those of samples/ntc/train.c. The first 14 steps add noise to the latents. The
 * other 10 steps round the latents. */
#include "train/golden.h"

#include <math.h>
#include <stdio.h>

enum { SEED = 52, STEPS = 24, NOISE_STEPS = 14, KEY = 77 };
enum { HEIGHT = 20, WIDTH = 28, CHANNELS = 4, HIDDEN = 16, LAYERS = 3, GRIDS = 2, ROWS = 8, COLUMNS = 12 };
static const float lr = 0.05f, network_factor = 0.25f;

static const struct {
    uint32_t scale, features, bits;
    bool corners;
} grids[GRIDS] = { { 2, 2, 2, false }, { 4, 3, 4, true } };

/* Graph and program of one phase of the training: with noise, or with rounded latents. */
typedef struct phase {
    vkt_graph *g;
    vkt_tensor image, origin;
    vkt_program *program;
} phase;

static vkt_tensor read_tile(const phase *f, vkt_tensor from, uint32_t scale, bool corners)
{
    const vkt_latent_grid_params p = { .tile = { ROWS, COLUMNS }, .scale = scale, .corners = corners };
    return vkt_latent_grid(f->g, from, f->origin, &p);
}

/* Builds the network. In this library, the noise of a quantize node depends on the index of the node in the graph. In
 * PyTorch's runs, the noise depends on the index of the grid (0 or 1). So the quantize nodes are the first nodes of
 * the graph: then both indices are equal. */
static vkt_tensor network(const phase *f, bool noise)
{
    static const uint32_t widths[LAYERS + 1] = { 2 + 4 * 3, HIDDEN, HIDDEN, CHANNELS };
    vkt_tensor latents[GRIDS], inputs[GRIDS];
    vkt_mlp_layer layers[LAYERS];
    char name[24];
    for (uint32_t i = 0; i < GRIDS; i++) {
        const vkt_shape shape = vkt_shape3(grids[i].features, HEIGHT / grids[i].scale, WIDTH / grids[i].scale);
        snprintf(name, sizeof name, "latents.%u", i);
        assert_int_equal(f->g->n_nodes, i);
        latents[i] = vkt_quantize(f->g, vkt_param(f->g, name, shape), grids[i].bits, noise);
    }
    for (uint32_t i = 0; i < GRIDS; i++) inputs[i] = read_tile(f, latents[i], grids[i].scale, grids[i].corners);
    for (uint32_t i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "layers.%u.weight", i);
        layers[i].weight = vkt_param(f->g, name, vkt_shape2(widths[i + 1], widths[i]));
        snprintf(name, sizeof name, "layers.%u.bias", i);
        layers[i].bias = vkt_param(f->g, name, vkt_shape1(widths[i + 1]));
    }
    return vkt_mlp(f->g, vkt_concat(f->g, inputs, GRIDS, 1), layers, LAYERS);
}

static void build(const vkt_host *h, bool noise, phase *f)
{
    const vkt_optimizer adam = {
        .kind = VKT_ADAM, .beta2 = 0.99, .eps = 1e-12f, .groups = { { .lr_factor = network_factor } }
    };
    assert_int_equal(vkt_graph_create(h, &f->g), VKT_OK);
    f->image = vkt_input(f->g, "image", VKT_F32, VKT_ROWS, vkt_shape3(CHANNELS, HEIGHT, WIDTH));
    f->origin = vkt_input(f->g, "origin", VKT_U32, VKT_ROWS, vkt_shape2(1, 2));
    const vkt_tensor y = network(f, noise); /* a variable, because C may evaluate arguments in any order */
    const vkt_tensor loss = vkt_mse(f->g, y, read_tile(f, f->image, 1, false));
    assert_int_equal(vkt_set_group(f->g, "layers.*", 0), VKT_OK);
    assert_int_equal(vkt_backward(f->g, loss), VKT_OK);
    assert_int_equal(vkt_update(f->g, &adam), VKT_OK);
    vkt_report(f->g, loss, (vkt_tensor){ 0 });
}

static void write_image(const phase *f)
{
    static float texels[CHANNELS * HEIGHT * WIDTH];
    for (uint32_t i = 0; i < CHANNELS * HEIGHT * WIDTH; i++) {
        const uint32_t c = i / (HEIGHT * WIDTH), y = i / WIDTH % HEIGHT, x = i % WIDTH;
        const uint32_t at = ((c + 3) * x + (2 * c + 5) * y) % 64, wave = at < 32 ? at : 63 - at;
        texels[i] = (float)(4 * wave + (golden_mix(i) >> 25)) / 255;
    }
    assert_int_equal(vkt_program_write(f->program, f->image, texels, sizeof texels), VKT_OK);
}

/* Sets latents and weights by the formulas of golden/README.md. */
static void write_parameters(vkt_store *store)
{
    for (uint32_t k = 0; k < vkt_store_count(store); k++) {
        const vkt_shape s = vkt_store_shape(store, k);
        const uint32_t n = (uint32_t)vkt_shape_elements(s);
        const double bound = s.rank == 2 ? sqrt(6.0 / s.dim[1]) : 0;
        float *w = test_malloc(n * sizeof *w);
        for (uint32_t e = 0; e < n; e++) {
            const float h = (float)(golden_mix(((uint32_t)SEED << 24 | k << 16) + e) >> 8);
            w[e] = s.rank == 3 ? h * 0x1p-24f : (h - 0x1p23f) * (float)(bound / 0x1p23);
        }
        assert_int_equal(vkt_store_write(store, k, VKT_PART_VALUE, w), VKT_OK);
        test_free(w);
    }
}

/* Runs one step on a tile whose origin depends on `step`. Returns the loss. */
static double run_step(const phase *f, uint32_t step)
{
    const uint32_t h = golden_mix(step + 0x50000000u);
    const uint32_t origin[2] = { h % (HEIGHT - ROWS + 1), (h >> 8) % (WIDTH - COLUMNS + 1) };
    uint64_t run;
    vkt_metrics m;
    assert_int_equal(vkt_program_write(f->program, f->origin, origin, sizeof origin), VKT_OK);
    assert_int_equal(vkt_program_run(f->program, &(vkt_run){ .lr = lr }, &run), VKT_OK);
    assert_int_equal(vkt_program_metrics(f->program, run, &m), VKT_OK);
    return (double)m.loss;
}

static void latents_and_network_follow_the_float64_run(void **state)
{
    rig *r = rig_of(state);
    vkt_safetensors *st = golden_open(&r->h, "ntc");
    phase phases[2];
    vkt_store *store;
    double losses[STEPS];
    for (uint32_t i = 0; i < 2; i++) build(&r->h, i == 0, &phases[i]);
    assert_int_equal(vkt_store_create(r->ctx, phases[0].g, &store), VKT_OK);
    assert_int_equal(vkt_store_set_clock(store, 0, KEY), VKT_OK);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(vkt_program_create(r->ctx, phases[i].g, store, NULL, &phases[i].program), VKT_OK);
        write_image(&phases[i]);
    }
    write_parameters(store);
    for (uint32_t s = 0; s < STEPS; s++) {
        losses[s] = run_step(&phases[s >= NOISE_STEPS], s);
        if (s == 0)
            golden_check_store(st, store, VKT_PART_GRADIENT, "grad64/", (const char *const[]){ "grad_dev", NULL });
    }
    golden_check_losses(st, "loss64", losses, STEPS, (const char *const[]){ "loss_dev", NULL });
    golden_check_store(st, store, VKT_PART_VALUE, "final64/", (const char *const[]){ "final_dev", NULL });
    for (uint32_t i = 0; i < 2; i++) vkt_program_destroy(&phases[i].program);
    vkt_store_destroy(&store);
    for (uint32_t i = 0; i < 2; i++) vkt_graph_destroy(&phases[i].g);
    vkt_safetensors_close(&st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rig_test(latents_and_network_follow_the_float64_run),
    };
    return cmocka_run_group_tests_name("latents of textures against PyTorch", tests, NULL, NULL);
}
