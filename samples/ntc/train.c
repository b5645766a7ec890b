/* ntc/train.c - see train.h. */
#include "ntc/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/message.h"
#include "graphics/vk.h"
#include "ntc/train_bc4.h"
#include "vktrain/train.h"

static const float network_factor = 0.3f; /* learning rate of the network / learning rate of the latents */
static const double frozen = 0.05;        /* share of the steps, at the end, that train only the network */

/* ---- the data ---- */

static vkt_result make_array(ntc_trainer *t, const char *name, vkt_dtype dtype, vkt_shape shape, const void *data,
                             vkt_array **out)
{
    return vkt_array_create(t->ctx, &(vkt_array_params){ .dtype = dtype, .shape = shape, .data = data, .name = name },
                            out);
}

/* Returns the index below n that is nearest to i. */
static uint32_t nearest(uint32_t i, uint32_t n)
{
    return i < n ? i : n - 1;
}

/* Makes the array of the textures. Its numbers are in [0,1], and its shape is (outputs of the network, rows of blocks,
 * columns of blocks). A block that reaches beyond the images repeats the texels at their edge. */
static vkt_result make_texels(ntc_trainer *t, const uint8_t *texels)
{
    const ntc_set *s = t->set;
    const uint32_t rows = ntc_blocks(s->height), columns = ntc_blocks(s->width);
    const size_t blocks = (size_t)rows * columns;
    float *planes = malloc(blocks * ntc_outputs(s) * sizeof *planes);
    for (uint32_t o = 0; planes && o < ntc_outputs(s); o++)
        for (size_t i = 0; i < blocks; i++) {
            const uint32_t at = o / s->channels, y = (uint32_t)(i / columns) * NTC_BLOCK + at / NTC_BLOCK,
                           x = (uint32_t)(i % columns) * NTC_BLOCK + at % NTC_BLOCK;
            const size_t texel = (size_t)nearest(y, s->height) * s->width + nearest(x, s->width);
            planes[o * blocks + i] = (float)texels[texel * s->channels + o % s->channels] / 255;
        }
    const vkt_shape shape = vkt_shape3(ntc_outputs(s), rows, columns);
    const vkt_result r = planes ? make_array(t, "texels", VKT_F32, shape, planes, &t->texels) : VKT_E_NOMEM;
    free(planes);
    return r;
}

/* Returns the position of block x between two neighbouring cells along an axis: -1 at the centre of the first cell, 1
 * at the centre of the second cell. */
static float place(uint32_t x, uint32_t scale)
{
    return 2 * (float)((2 * x + 1 + scale) % (2 * scale)) / (float)(2 * scale) - 1;
}

/* Makes the array of positions, with the shape (NTC_POSITION, rows of blocks, columns of blocks). */
static vkt_result make_position(ntc_trainer *t)
{
    const ntc_set *s = t->set;
    const uint32_t rows = ntc_blocks(s->height), columns = ntc_blocks(s->width);
    const size_t blocks = (size_t)rows * columns;
    float *planes = malloc(blocks * NTC_POSITION * sizeof *planes);
    const uint32_t scale = ntc_place_scale(s) / NTC_BLOCK;
    for (size_t i = 0; planes && i < blocks; i++) {
        planes[i] = place((uint32_t)(i % columns), scale);
        planes[blocks + i] = place((uint32_t)(i / columns), scale);
        planes[2 * blocks + i] = planes[i] * planes[blocks + i];
    }
    const vkt_shape shape = vkt_shape3(NTC_POSITION, rows, columns);
    const vkt_result r = planes ? make_array(t, "position", VKT_F32, shape, planes, &t->position) : VKT_E_NOMEM;
    free(planes);
    return r;
}

static vkt_result make_data(ntc_trainer *t, const uint8_t *texels)
{
    const ntc_set *s = t->set;
    TRY(make_texels(t, texels));
    TRY(make_position(t));
    TRY(make_array(t, "origin", VKT_U32, vkt_shape2(1, 2), NULL, &t->origin));
    t->columns = (ntc_blocks(s->width) + t->p.tile[1] - 1) / t->p.tile[1];
    t->tiles = t->columns * ((ntc_blocks(s->height) + t->p.tile[0] - 1) / t->p.tile[0]);
    t->order = malloc(t->tiles * sizeof *t->order);
    return t->order ? VKT_OK : VKT_E_NOMEM;
}

/* ---- the network ---- */

void ntc_grid_name(uint32_t i, char name[24])
{
    snprintf(name, 24, "latents.%u", i);
}

void ntc_weight_name(uint32_t i, bool bias, char name[24])
{
    snprintf(name, 24, "%u.%s", i, bias ? "bias" : "weight");
}

static vkt_tensor read_tile(const ntc_trainer *t, const ntc_graph *g, vkt_tensor from, uint32_t scale, bool corners)
{
    const vkt_latent_grid_params p = { .tile = { t->p.tile[0], t->p.tile[1] }, .scale = scale, .corners = corners };
    return vkt_latent_grid(g->g, from, g->origin, &p);
}

/* Returns the latents as the network gets them in a phase. Latents of BC4 blocks have noise until they are frozen; they
 * are never rounded. */
static vkt_tensor quantized(const ntc_graph *g, vkt_tensor latents, const ntc_grid *grid, uint32_t phase)
{
    if (grid->bits) return vkt_quantize(g->g, latents, grid->bits, phase == NTC_NOISE);
    return phase == NTC_FROZEN ? latents : vkt_quantize(g->g, latents, NTC_BC4_NOISE, true);
}

/* Builds the network for the blocks of a tile. The result has the shape (blocks, outputs). */
static vkt_tensor network(const ntc_trainer *t, const ntc_graph *g, uint32_t phase)
{
    const vkt_init middle = { .kind = VKT_INIT_UNIFORM, .a = 0.3f, .b = 0.7f },
                   kaiming = { .kind = VKT_INIT_KAIMING_UNIFORM }, zero = { .kind = VKT_INIT_CONSTANT };
    vkt_tensor inputs[NTC_MAX_GRIDS + 1];
    vkt_mlp_layer layers[NTC_LAYERS];
    char name[24];
    for (uint32_t i = 0; i < t->set->n_grids; i++) {
        const ntc_grid *grid = &t->set->grids[i];
        ntc_grid_name(i, name);
        const vkt_tensor latents =
            vkt_nn_param(g->b, name, vkt_shape3(grid->features, grid->height, grid->width), middle, 1, 1);
        inputs[i] = read_tile(t, g, quantized(g, latents, grid, phase), grid->scale / NTC_BLOCK, grid->corners);
    }
    inputs[t->set->n_grids] = read_tile(t, g, g->position, 1, false);
    for (uint32_t i = 0; i < NTC_LAYERS; i++) {
        const ntc_layer l = ntc_layer_of(t->set, i);
        ntc_weight_name(i, false, name);
        layers[i].weight = vkt_nn_param(g->b, name, vkt_shape2(l.out, l.in), kaiming, l.in, l.out);
        ntc_weight_name(i, true, name);
        layers[i].bias = vkt_nn_param(g->b, name, vkt_shape1(l.out), zero, l.in, l.out);
    }
    return vkt_mlp(g->g, vkt_concat(g->g, inputs, t->set->n_grids + 1, 1), layers, NTC_LAYERS);
}

static vkt_result make_graph(const ntc_trainer *t, uint32_t phase, ntc_graph *g)
{
    const vkt_host host = vkt_ctx_host(t->ctx);
    const ntc_set *s = t->set;
    const vkt_optimizer adam = {
        .kind = VKT_ADAM, .beta2 = 0.95, .eps = 1e-12f, .groups = { { .lr_factor = network_factor } }
    };
    TRY(vkt_graph_create(&host, &g->g));
    TRY(vkt_builder_create(g->g, true, &g->b));
    g->texels =
        vkt_external(g->g, "texels", VKT_F32, vkt_shape3(ntc_outputs(s), ntc_blocks(s->height), ntc_blocks(s->width)));
    g->position =
        vkt_external(g->g, "position", VKT_F32, vkt_shape3(NTC_POSITION, ntc_blocks(s->height), ntc_blocks(s->width)));
    g->origin = vkt_external(g->g, "origin", VKT_U32, vkt_shape2(1, 2));
    const vkt_tensor texels = read_tile(t, g, g->texels, 1, false);
    const vkt_tensor loss = vkt_mse(g->g, network(t, g, phase), texels);
    for (uint32_t i = 0; i < NTC_LAYERS; i++) {
        char pattern[16];
        snprintf(pattern, sizeof pattern, "%u.*", i);
        TRY(vkt_set_group(g->g, pattern, 0));
    }
    if (phase == NTC_FROZEN) TRY(vkt_freeze(g->g, "latents.*"));
    TRY(vkt_backward(g->g, loss));
    TRY(vkt_update(g->g, &adam));
    vkt_report(g->g, loss, (vkt_tensor){ 0 });
    return VKT_OK;
}

static vkt_result make_program(ntc_trainer *t, uint32_t phase)
{
    const ntc_graph *g = &t->graphs[phase];
    const vkt_binding arrays[] = { { g->texels, t->texels }, { g->position, t->position }, { g->origin, t->origin } };
    static const char *const names[NTC_PHASES] = { "noise", "rounded", "frozen" };
    const vkt_program_params p = { .name = names[phase], .arrays = arrays, .n_arrays = 3 };
    return vkt_program_create(t->ctx, g->g, t->store, &p, &t->programs[phase]);
}

vkt_result ntc_trainer_create(vkt_ctx *ctx, const ntc_set *set, const uint8_t *texels, const ntc_params *p,
                              ntc_trainer *t)
{
    *t = (ntc_trainer){ .ctx = ctx, .set = set, .p = *p };
    TRY(make_data(t, texels));
    for (uint32_t i = 0; i < NTC_PHASES; i++) TRY(make_graph(t, i, &t->graphs[i]));
    TRY(vkt_store_create(ctx, t->graphs[0].g, &t->store));
    TRY(vkt_nn_init(t->graphs[0].b, t->store, p->seed));
    TRY(vkt_store_set_clock(t->store, 0, p->seed));
    for (uint32_t i = 0; i < NTC_PHASES; i++) TRY(make_program(t, i));
    return VKT_OK;
}

void ntc_trainer_destroy(ntc_trainer *t)
{
    for (uint32_t i = 0; i < NTC_PHASES; i++) vkt_program_destroy(&t->programs[i]);
    vkt_store_destroy(&t->store);
    for (uint32_t i = 0; i < NTC_PHASES; i++) {
        vkt_builder_destroy(&t->graphs[i].b);
        vkt_graph_destroy(&t->graphs[i].g);
    }
    vkt_array_destroy(&t->texels);
    vkt_array_destroy(&t->position);
    vkt_array_destroy(&t->origin);
    free(t->order);
    t->order = NULL;
}

/* ---- training ---- */

static double first_frozen(const ntc_trainer *t)
{
    return (1 - frozen) * (double)t->p.steps;
}

static uint32_t phase_of(const ntc_trainer *t, uint64_t step)
{
    if ((double)step >= first_frozen(t)) return NTC_FROZEN;
    return (double)step >= (1 - t->p.rounded) * (double)t->p.steps ? NTC_ROUNDED : NTC_NOISE;
}

/* Returns the learning rate of a step. Before the latents are frozen, it falls from p.lr to 2 % of p.lr along half a
 * period of a cosine. While they are frozen, it falls linearly from 20 % to 0.4 % of p.lr. */
static float rate_of(const ntc_trainer *t, uint64_t step)
{
    const double first = first_frozen(t), done = (double)step / first;
    if (phase_of(t, step) != NTC_FROZEN) return (float)(t->p.lr * (0.51 + 0.49 * cos(acos(-1) * done)));
    return (float)(t->p.lr * 0.2 * (1 - 0.98 * ((double)step - first) / ((double)t->p.steps - first)));
}

/* Sets `origin` to the row and the column of a tile's first block. The last tile of a row or column of tiles is moved
 * back if it would end beyond the image. */
static void tile_origin(const ntc_trainer *t, uint32_t tile, uint32_t origin[2])
{
    const uint32_t most[2] = { ntc_blocks(t->set->height) - t->p.tile[0], ntc_blocks(t->set->width) - t->p.tile[1] };
    origin[0] = tile / t->columns * t->p.tile[0];
    origin[1] = tile % t->columns * t->p.tile[1];
    for (uint32_t i = 0; i < 2; i++)
        if (origin[i] > most[i]) origin[i] = most[i];
}

/* Sets `origin` for the tile of a step, as tile_origin does. Each pass over all tiles has its own order. */
static void place_tile(ntc_trainer *t, uint64_t step, uint32_t origin[2])
{
    const uint64_t pass = step / t->tiles;
    if (t->pass != pass + 1) {
        vkt_order_identity(t->order, t->tiles);
        vkt_shuffle(t->order, t->tiles, t->p.seed, (uint32_t)(pass + 1));
        t->pass = pass + 1;
    }
    tile_origin(t, t->order[step % t->tiles], origin);
}

static vkt_result write_tile(ntc_trainer *t)
{
    uint32_t origin[2];
    place_tile(t, t->step, origin);
    return vkt_array_write(t->origin, 0, origin, sizeof origin);
}

/* Encodes the latents of all grids with bits = 0 as BC4 blocks, and replaces the latents by the decoded blocks. */
static vkt_result encode_blocks(ntc_trainer *t)
{
    char name[24];
    for (uint32_t i = 0; i < t->set->n_grids; i++) {
        ntc_grid_name(i, name);
        if (!t->set->grids[i].bits) TRY(ntc_encode_latents(t->store, name, &t->set->grids[i]));
    }
    return VKT_OK;
}

/* Encodes the latents of BC4 blocks before the first step with frozen latents. Writes the origin of the step's tile. */
static vkt_result prepare_step(ntc_trainer *t)
{
    const bool frozen_now = phase_of(t, t->step) == NTC_FROZEN;
    if (frozen_now && (t->step == 0 || phase_of(t, t->step - 1) != NTC_FROZEN)) TRY(encode_blocks(t));
    return write_tile(t);
}

vkt_result ntc_trainer_step(ntc_trainer *t)
{
    if (t->step >= t->p.steps) return VKT_OK;
    TRY(prepare_step(t));
    TRY(vkt_program_run(t->programs[phase_of(t, t->step)], &(vkt_run){ .lr = rate_of(t, t->step) }, &t->run));
    t->has_run = true;
    t->step++;
    return VKT_OK;
}

vkt_result ntc_trainer_slices(ntc_trainer *t, uint64_t budget_ns)
{
    vkt_step_progress progress = { .completed = true };
    while (progress.completed && t->step < t->p.steps) {
        if (!t->under_way) TRY(prepare_step(t));
        const vkt_run run = { .lr = rate_of(t, t->step) };
        TRY(vkt_step_budget(t->programs[phase_of(t, t->step)], &run, NULL, &budget_ns, &progress));
        t->under_way = progress.slice != 0;
        if (!progress.completed) continue;
        t->run = progress.run_index;
        t->has_run = true;
        t->step++;
    }
    return VKT_OK;
}

vkt_result ntc_trainer_loss(ntc_trainer *t, double *loss)
{
    vkt_metrics m;
    *loss = NAN;
    if (!t->has_run) return VKT_OK;
    TRY(vkt_program_metrics(t->programs[phase_of(t, t->step - 1)], t->run, &m));
    *loss = m.loss;
    return VKT_OK;
}

vkt_result ntc_trainer_save(ntc_trainer *t, const char *path)
{
    const vkt_host host = vkt_ctx_host(t->ctx);
    return vkt_store_save_state(&host, t->store, path);
}

vkt_result ntc_trainer_load(ntc_trainer *t, const char *path)
{
    const vkt_host host = vkt_ctx_host(t->ctx);
    uint64_t seed;
    TRY(vkt_store_load_state(&host, t->store, path));
    TRY(vkt_store_get_clock(t->store, &t->step, &seed));
    if (seed != t->p.seed || t->step > t->p.steps) {
        complain("%s: it has step %llu and seed %llu, which do not fit this run", path, (unsigned long long)t->step,
                 (unsigned long long)seed);
        return VKT_E_STATE;
    }
    return VKT_OK;
}

/* ---- the result ---- */

/* Builds the graph that computes a tile without training. */
static vkt_result make_inference(const ntc_trainer *t, ntc_graph *g, vkt_tensor *y)
{
    const vkt_host host = vkt_ctx_host(t->ctx);
    const ntc_set *s = t->set;
    TRY(vkt_graph_create(&host, &g->g));
    TRY(vkt_builder_create(g->g, false, &g->b));
    g->position =
        vkt_external(g->g, "position", VKT_F32, vkt_shape3(NTC_POSITION, ntc_blocks(s->height), ntc_blocks(s->width)));
    g->origin = vkt_external(g->g, "origin", VKT_U32, vkt_shape2(1, 2));
    *y = network(t, g, NTC_FROZEN);
    vkt_keep(g->g, *y);
    return VKT_OK;
}

static vkt_result infer_tile(ntc_trainer *t, vkt_program *p, vkt_tensor y, uint32_t tile, float *values, uint8_t *out)
{
    const uint32_t rows = t->p.tile[0], columns = t->p.tile[1], n = ntc_outputs(t->set);
    uint32_t origin[2];
    tile_origin(t, tile, origin);
    TRY(vkt_array_write(t->origin, 0, origin, sizeof origin));
    TRY(vkt_program_run(p, NULL, NULL));
    TRY(vkt_program_read(p, y, values, (uint64_t)rows * columns * n * sizeof *values));
    for (uint32_t i = 0; i < rows * columns; i++)
        ntc_put_block(t->set, values + (size_t)i * n, origin[1] + i % columns, origin[0] + i / columns, out);
    return VKT_OK;
}

vkt_result ntc_trainer_infer(ntc_trainer *t, uint8_t *out)
{
    ntc_graph g = { 0 };
    vkt_tensor y;
    vkt_program *p = NULL;
    float *values = malloc((size_t)t->p.tile[0] * t->p.tile[1] * ntc_outputs(t->set) * sizeof *values);
    vkt_result r = values ? make_inference(t, &g, &y) : VKT_E_NOMEM;
    if (r == VKT_OK) {
        const vkt_binding arrays[] = { { g.position, t->position }, { g.origin, t->origin } };
        const vkt_program_params params = { .name = "infer", .arrays = arrays, .n_arrays = 2 };
        r = vkt_program_create(t->ctx, g.g, t->store, &params, &p);
    }
    for (uint32_t i = 0; r == VKT_OK && i < t->tiles; i++) r = infer_tile(t, p, y, i, values, out);
    vkt_program_destroy(&p);
    vkt_builder_destroy(&g.b);
    vkt_graph_destroy(&g.g);
    free(values);
    return r;
}

static vkt_result read_parameter(ntc_trainer *t, const char *name, float *out)
{
    uint32_t i;
    return vkt_store_find(t->store, name, &i) ? vkt_store_read(t->store, i, VKT_PART_VALUE, out) : VKT_E_NOT_FOUND;
}

static vkt_result round_latents(ntc_trainer *t, uint32_t i, ntc_grid *to)
{
    const float steps = (float)ntc_steps(to);
    float *values = malloc(ntc_latents(to) * sizeof *values);
    char name[24];
    ntc_grid_name(i, name);
    const vkt_result r = values ? read_parameter(t, name, values) : VKT_E_NOMEM;
    for (size_t k = 0; r == VKT_OK && k < ntc_latents(to); k++)
        to->levels[k] = (uint16_t)floorf(steps * fminf(fmaxf(values[k], 0), 1) + 0.5f);
    free(values);
    return r;
}

static vkt_result write_weights(ntc_trainer *t, const ntc_set *from)
{
    char name[24];
    uint32_t at;
    for (uint32_t i = 0; i < 2 * NTC_LAYERS; i++) {
        const ntc_layer l = ntc_layer_of(from, i / 2);
        ntc_weight_name(i / 2, i % 2, name);
        if (!vkt_store_find(t->store, name, &at)) return VKT_E_NOT_FOUND;
        TRY(vkt_store_write(t->store, at, VKT_PART_VALUE, from->weights + (i % 2 ? l.bias : l.weight)));
    }
    return VKT_OK;
}

vkt_result ntc_trainer_result(ntc_trainer *t, ntc_set *to)
{
    char name[24];
    TRY(encode_blocks(t));
    for (uint32_t i = 0; i < to->n_grids; i++) TRY(round_latents(t, i, &to->grids[i]));
    for (uint32_t i = 0; i < NTC_LAYERS; i++) {
        const ntc_layer l = ntc_layer_of(to, i);
        ntc_weight_name(i, false, name);
        TRY(read_parameter(t, name, to->weights + l.weight));
        ntc_weight_name(i, true, name);
        TRY(read_parameter(t, name, to->weights + l.bias));
    }
    for (size_t i = 0; i < ntc_weights(to); i++) {
        if (!isfinite(to->weights[i])) {
            complain("a weight is not finite: the training has diverged; use a smaller --lr");
            return VKT_E_DIVERGED;
        }
        to->weights[i] = ntc_half(to->weights[i]);
    }
    return write_weights(t, to);
}
