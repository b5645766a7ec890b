/* nrc/learn.c - see learn.h. */
#include "nrc/learn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "vktrain/train.h"

static const double averaging = 0.98; /* published = averaging * published + (1 - averaging) * parameters */

/* ---- the data ---- */

static vkt_result make_column(learner *l, const gbuffer *from, learn_column c, uint32_t which)
{
    const vkt_array_params array = { .dtype = VKT_F32, .shape = vkt_shape2(l->pixels, 3), .name = "image" };
    TRY(vkt_array_create(l->ctx, &array, &l->column[c]));
    const vkt_texture_params texture = { .image = from->image[which].handle,
                                         .format = VK_FORMAT_R32G32B32A32_SFLOAT,
                                         .usage = VK_IMAGE_USAGE_STORAGE_BIT,
                                         .width = from->extent.width,
                                         .height = from->extent.height,
                                         .layout = VK_IMAGE_LAYOUT_GENERAL,
                                         .array = l->column[c] };
    return vkt_texture_adopt(l->ctx, &texture, &l->image[c]);
}

static vkt_result make_order(learner *l)
{
    uint32_t *rows = malloc(l->pixels * sizeof *rows);
    if (!rows) return VKT_E_NOMEM;
    vkt_order_identity(rows, l->pixels);
    vkt_shuffle(rows, l->pixels, l->p.seed, 1);
    const vkt_array_params p = { .dtype = VKT_U32, .shape = vkt_shape1(l->pixels), .data = rows, .name = "order" };
    const vkt_result r = vkt_array_create(l->ctx, &p, &l->order);
    free(rows);
    return r;
}

/* ---- the network ---- */

static const vkt_hash_grid_params grid = {
    .levels = NRC_LEVELS, .features = NRC_FEATURES, .log2_table_size = 14, .base_resolution = 4, .per_level_scale = 1.5
};

static vkt_mlp_layer layer(vkt_builder *b, const char *name, uint32_t in, uint32_t out)
{
    const vkt_init kaiming = { .kind = VKT_INIT_KAIMING_UNIFORM }, zero = { .kind = VKT_INIT_CONSTANT };
    vkt_mlp_layer l;
    vkt_nn_push(b, name);
    l.weight = vkt_nn_param(b, "weight", vkt_shape2(out, in), kaiming, in, out);
    l.bias = vkt_nn_param(b, "bias", vkt_shape1(out), zero, in, out);
    vkt_nn_pop(b);
    return l;
}

/* Builds the network: position (B,3) in [0,1] and normal (B,3) -> light (B,3). */
static vkt_tensor network(vkt_builder *b, vkt_tensor position, vkt_tensor normal)
{
    vkt_graph *g = vkt_builder_graph(b);
    const vkt_init tiny = { .kind = VKT_INIT_UNIFORM, .a = -1e-4f, .b = 1e-4f };
    const vkt_tensor table = vkt_nn_param(b, "grid", vkt_hash_grid_table(&grid, 3, NULL), tiny, 1, 1);
    const vkt_tensor inputs[] = { vkt_hash_grid(g, position, table, &grid), normal };
    const vkt_mlp_layer layers[] = { layer(b, "0", NRC_INPUTS, NRC_HIDDEN), layer(b, "1", NRC_HIDDEN, NRC_HIDDEN),
                                     layer(b, "2", NRC_HIDDEN, 3) };
    return vkt_mlp(g, vkt_concat(g, inputs, 2, 1), layers, 3);
}

static vkt_result begin_graph(const learner *l, bool training, learn_graph *out)
{
    const vkt_host host = vkt_ctx_host(l->ctx);
    const vkt_shape shape = vkt_shape2(l->pixels, 3);
    TRY(vkt_graph_create(&host, &out->g));
    TRY(vkt_builder_create(out->g, training, &out->b));
    out->position = vkt_external(out->g, "position", VKT_F32, shape);
    out->normal = vkt_external(out->g, "normal", VKT_F32, shape);
    out->light = vkt_external(out->g, "light", VKT_F32, shape);
    return VKT_OK;
}

static vkt_tensor gather(const learn_graph *t, vkt_tensor column, uint32_t batch)
{
    return vkt_gather_rows(t->g, column, t->order, batch, vkt_shape1(3), NULL, NULL);
}

static vkt_result make_step(learner *l)
{
    learn_graph *t = &l->train;
    const vkt_optimizer adam = { .kind = VKT_ADAM, .beta2 = 0.99, .eps = 1e-15f };
    const uint32_t batch = l->pixels / LEARN_STEPS;
    TRY(begin_graph(l, true, t));
    t->order = vkt_external(t->g, "order", VKT_U32, vkt_shape1(l->pixels));
    const vkt_tensor y = network(t->b, gather(t, t->position, batch), gather(t, t->normal, batch));
    const vkt_tensor loss = vkt_relative_l2_loss(t->g, y, gather(t, t->light, batch), 0.01f, VKT_LOSS_MEAN);
    TRY(vkt_backward(t->g, loss));
    TRY(vkt_update(t->g, &adam));
    TRY(vkt_publish(t->g, averaging));
    TRY(vkt_store_create(l->ctx, t->g, &l->store));
    TRY(vkt_nn_init(t->b, l->store, l->p.seed));
    const vkt_binding arrays[] = { { t->position, l->column[LEARN_POSITION] },
                                   { t->normal, l->column[LEARN_NORMAL] },
                                   { t->light, l->column[LEARN_LIGHT] },
                                   { t->order, l->order } };
    const vkt_program_params p = { .name = "train", .arrays = arrays, .n_arrays = 4 };
    return vkt_program_create(l->ctx, t->g, l->store, &p, &l->step);
}

static vkt_result make_answer(learner *l)
{
    learn_graph *i = &l->infer;
    TRY(begin_graph(l, false, i));
    vkt_write(i->g, network(i->b, i->position, i->normal), i->light);
    const vkt_binding arrays[] = { { i->position, l->column[LEARN_POSITION] },
                                   { i->normal, l->column[LEARN_NORMAL] },
                                   { i->light, l->column[LEARN_INFERRED] } };
    const vkt_program_params p = { .name = "infer", .arrays = arrays, .n_arrays = 3, .published = true };
    return vkt_program_create(l->ctx, i->g, l->store, &p, &l->answer);
}

vkt_result learn_create(vkt_ctx *ctx, const gbuffer *from, const learn_params *p, learner *l)
{
    static const uint32_t which[] = { [LEARN_POSITION] = NRC_POSITION,
                                      [LEARN_NORMAL] = NRC_NORMAL,
                                      [LEARN_LIGHT] = NRC_LIGHT,
                                      [LEARN_INFERRED] = NRC_INFERRED };
    *l = (learner){ .ctx = ctx, .p = *p, .pixels = from->extent.width * from->extent.height };
    for (uint32_t c = 0; c < LEARN_COLUMNS; c++) TRY(make_column(l, from, c, which[c]));
    TRY(make_order(l));
    TRY(make_step(l));
    return make_answer(l);
}

static void forget_graph(learn_graph *g)
{
    vkt_builder_destroy(&g->b);
    vkt_graph_destroy(&g->g);
}

void learn_destroy(learner *l)
{
    vkt_program_destroy(&l->step);
    vkt_program_destroy(&l->answer);
    vkt_store_destroy(&l->store);
    forget_graph(&l->train);
    forget_graph(&l->infer);
    for (uint32_t c = 0; c < LEARN_COLUMNS; c++) {
        vkt_texture_destroy(&l->image[c]);
        vkt_array_destroy(&l->column[c]);
    }
    vkt_array_destroy(&l->order);
}

/* ---- what the shader reads ---- */

/* Sets *at to the index of a parameter's first float in the published parameters. Index 0 is the first float of the
 * buffer range `first`. */
static vkt_result find(const learner *l, const char *name, const vkt_vk_buffer *first, uint32_t *at)
{
    uint32_t i;
    if (!vkt_store_find(l->store, name, &i)) {
        complain("the network has no parameter '%s'", name);
        return VKT_E_NOT_FOUND;
    }
    *at = (uint32_t)((vkt_store_buffer(l->store, i, VKT_PART_PUBLISHED).offset_bytes - first->offset_bytes) / 4);
    return VKT_OK;
}

vkt_result learn_shown(const learner *l, vkt_hash_grid_level levels[NRC_LEVELS], vkt_vk_buffer *parameters,
                       network_at *at)
{
    vkt_hash_grid_level all[VKT_HASH_GRID_MAX_LEVELS];
    const uint32_t n = vkt_store_count(l->store);
    vkt_hash_grid_table(&grid, 3, all);
    memcpy(levels, all, NRC_LEVELS * sizeof *levels);
    *parameters = vkt_store_buffer(l->store, 0, VKT_PART_PUBLISHED);
    for (uint32_t i = 1; i < n; i++) {
        const vkt_vk_buffer b = vkt_store_buffer(l->store, i, VKT_PART_PUBLISHED);
        parameters->bytes = b.offset_bytes + b.bytes - parameters->offset_bytes;
    }
    TRY(find(l, "grid", parameters, &at->table));
    for (uint32_t i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u.weight", i);
        TRY(find(l, name, parameters, &at->parameter[2 * i]));
        snprintf(name, sizeof name, "%u.bias", i);
        TRY(find(l, name, parameters, &at->parameter[2 * i + 1]));
    }
    return VKT_OK;
}

/* ---- training ---- */

static vkt_result read_images(learner *l)
{
    for (uint32_t c = LEARN_POSITION; c <= LEARN_LIGHT; c++) TRY(vkt_texture_read(l->image[c], NULL));
    return VKT_OK;
}

static vkt_run next_run(const learner *l)
{
    return (vkt_run){ .lr = l->p.lr, .first = l->in_round * (l->pixels / LEARN_STEPS) };
}

static void end_step(learner *l)
{
    l->steps++;
    l->in_round = (l->in_round + 1) % LEARN_STEPS;
}

vkt_result learn_round(learner *l)
{
    TRY(read_images(l));
    do {
        const vkt_run run = next_run(l);
        TRY(vkt_program_run(l->step, &run, NULL));
        end_step(l);
    } while (l->in_round != 0);
    return VKT_OK;
}

vkt_result learn_slices(learner *l, uint64_t budget_ns, uint64_t *measured_ns)
{
    vkt_step_progress progress;
    *measured_ns = 0;
    if (!l->has_images) TRY(read_images(l));
    l->has_images = true;
    do {
        const vkt_run run = next_run(l);
        TRY(vkt_step_budget(l->step, &run, NULL, &budget_ns, &progress));
        if (progress.measured_frames != l->measured_frames) *measured_ns = progress.measured_ns;
        l->measured_frames = progress.measured_frames;
        if (progress.completed) end_step(l);
    } while (progress.completed && l->in_round != 0);
    l->has_images = !progress.completed || l->in_round != 0;
    return VKT_OK;
}

vkt_result learn_infer(learner *l)
{
    TRY(vkt_program_run(l->answer, NULL, NULL));
    return vkt_texture_write(l->image[LEARN_INFERRED], NULL);
}
