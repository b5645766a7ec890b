/* view/learn.c - see learn.h. */
#include "view/learn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "vktrain/train.h"

enum {
    COLOURS = 3,
    CHECKED = 16384,   /* limit for the pixels of one run of the program `check` */
    AHEAD = 3,         /* limit for steps whose loss is not known yet. If there are more, learn_step waits for a loss */
    MAX_PASSES = 8,    /* limit for passes over all pixels in `order`. After the last pass, the first one repeats */
    MAX_ROWS = 1 << 24 /* limit for the elements of `order`. If one pass has more, `order` has only one pass */
};

/* ---- the data: a sample for each pixel ---- */

static vkt_result make_array(learner *l, const char *name, vkt_dtype dtype, vkt_shape shape, const void *data,
                             vkt_array **out)
{
    return vkt_array_create(l->ctx, &(vkt_array_params){ .dtype = dtype, .shape = shape, .data = data, .name = name },
                            out);
}

/* Makes the array of positions: the centres of the pixels, in (0,1). */
static vkt_result make_positions(learner *l)
{
    float *xy = malloc(2 * (size_t)l->pixels * sizeof *xy);
    for (uint32_t i = 0; xy && i < l->pixels; i++) {
        xy[2 * (size_t)i] = ((float)(i % l->p.width) + 0.5f) / (float)l->p.width;
        xy[2 * (size_t)i + 1] = ((float)(i / l->p.width) + 0.5f) / (float)l->p.height;
    }
    const vkt_result r =
        xy ? make_array(l, "positions", VKT_F32, vkt_shape2(l->pixels, 2), xy, &l->positions) : VKT_E_NOMEM;
    free(xy);
    return r;
}

/* Makes the array of colours. The device fills it from the target image, which the frames also show. */
static vkt_result make_colours(learner *l)
{
    TRY(make_array(l, "colours", VKT_F32, vkt_shape2(l->pixels, COLOURS), NULL, &l->colours));
    const vkt_texture_params p = { .image = l->p.image,
                                   .format = VK_FORMAT_R8G8B8A8_UNORM,
                                   .usage = VK_IMAGE_USAGE_SAMPLED_BIT,
                                   .width = l->p.width,
                                   .height = l->p.height,
                                   .layout = VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL,
                                   .array = l->colours };
    vkt_texture *texture;
    TRY(vkt_texture_adopt(l->ctx, &p, &texture));
    vkt_result r = vkt_texture_read(texture, NULL);
    if (r == VKT_OK) r = vkt_ctx_wait_idle(l->ctx);
    vkt_texture_destroy(&texture);
    return r;
}

static vkt_result make_orders(learner *l)
{
    uint32_t *rows = malloc((size_t)l->passes * l->pixels * sizeof *rows);
    if (!rows) return VKT_E_NOMEM;
    vkt_order_identity(rows, l->pixels);
    vkt_result r = make_array(l, "all", VKT_U32, vkt_shape1(l->pixels), rows, &l->all);
    for (uint32_t i = 0; i < l->passes; i++) vkt_shuffle(rows + i * (size_t)l->pixels, l->pixels, l->p.seed, i + 1);
    if (r == VKT_OK) r = make_array(l, "order", VKT_U32, vkt_shape1(l->passes * l->pixels), rows, &l->order);
    free(rows);
    return r;
}

static vkt_result make_data(learner *l)
{
    TRY(make_positions(l));
    TRY(make_orders(l));
    return make_colours(l);
}

/* ---- the network ---- */

/* Returns a hash grid. The coarsest level has 16 cells along each axis. At the finest level, the number of cells along
 * each axis is the number of pixels along the longer side of the image, but at least 16. */
static vkt_hash_grid_params grid_of(const learn_params *p)
{
    const double finest = p->width > p->height ? p->width : p->height, coarsest = 16;
    return (vkt_hash_grid_params){ .levels = VIEW_LEVELS,
                                   .features = VIEW_FEATURES,
                                   .log2_table_size = 16,
                                   .base_resolution = (uint32_t)coarsest,
                                   .per_level_scale = pow(fmax(finest / coarsest, 1), 1.0 / (VIEW_LEVELS - 1)) };
}

static vkt_tensor encode(const learner *l, vkt_builder *b, vkt_tensor positions)
{
    const vkt_hash_grid_params p = grid_of(&l->p);
    const vkt_shape shape = vkt_hash_grid_table(&p, 2, NULL);
    const vkt_init tiny = { .kind = VKT_INIT_UNIFORM, .a = -1e-4f, .b = 1e-4f };
    return vkt_hash_grid(vkt_builder_graph(b), positions, vkt_nn_param(b, "grid", shape, tiny, 1, 1), &p);
}

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

/* Builds the network: positions (B,2) -> colours (B,3). */
static vkt_tensor network(const learner *l, vkt_builder *b, vkt_tensor positions)
{
    vkt_graph *g = vkt_builder_graph(b);
    const vkt_tensor features = encode(l, b, positions);
    const uint32_t width = vkt_tensor_shape(g, features).dim[1];
    vkt_nn_push(b, "mlp");
    const vkt_mlp_layer layers[] = { layer(b, "0", width, VIEW_HIDDEN), layer(b, "1", VIEW_HIDDEN, VIEW_HIDDEN),
                                     layer(b, "2", VIEW_HIDDEN, COLOURS) };
    vkt_nn_pop(b);
    return vkt_mlp(g, features, layers, 3);
}

/* Builds a graph up to its loss, which is the mean squared error of `batch` pixels. The external value `order` has the
 * indices of n pixels, and selects the pixels. */
static vkt_result begin_graph(const learner *l, uint32_t batch, uint32_t n, learn_graph *out, vkt_tensor *loss)
{
    const vkt_host host = vkt_ctx_host(l->ctx);
    TRY(vkt_graph_create(&host, &out->g));
    TRY(vkt_builder_create(out->g, true, &out->b));
    out->positions = vkt_external(out->g, "positions", VKT_F32, vkt_shape2(l->pixels, 2));
    out->colours = vkt_external(out->g, "colours", VKT_F32, vkt_shape2(l->pixels, COLOURS));
    out->order = vkt_external(out->g, "order", VKT_U32, vkt_shape1(n));
    const vkt_tensor x = vkt_gather_rows(out->g, out->positions, out->order, batch, vkt_shape1(2), NULL, NULL);
    const vkt_tensor t = vkt_gather_rows(out->g, out->colours, out->order, batch, vkt_shape1(COLOURS), NULL, NULL);
    *loss = vkt_mse(out->g, network(l, out->b, x), t);
    return VKT_OK;
}

static vkt_result make_program(learner *l, const char *name, const learn_graph *g, vkt_array *order, vkt_program **out)
{
    const vkt_binding arrays[] = { { g->positions, l->positions }, { g->colours, l->colours }, { g->order, order } };
    const vkt_program_params p = { .name = name, .arrays = arrays, .n_arrays = 3 };
    return vkt_program_create(l->ctx, g->g, l->store, &p, out);
}

static vkt_result make_step(learner *l)
{
    const vkt_optimizer adam = { .kind = VKT_ADAM, .beta2 = 0.99, .eps = 1e-15f };
    vkt_tensor loss;
    TRY(begin_graph(l, l->p.batch, l->passes * l->pixels, &l->train, &loss));
    TRY(vkt_backward(l->train.g, loss));
    TRY(vkt_update(l->train.g, &adam));
    TRY(vkt_publish(l->train.g, 0)); /* a frame can show the last whole step while another step is partly done */
    vkt_report(l->train.g, loss, (vkt_tensor){ 0 });
    TRY(vkt_store_create(l->ctx, l->train.g, &l->store));
    for (uint32_t i = 0; i < (l->p.recorded ? FRAMES_IN_FLIGHT : 1); i++)
        TRY(make_program(l, "train", &l->train, l->order, &l->step[i]));
    return VKT_OK;
}

static vkt_result make_check(learner *l)
{
    vkt_tensor loss;
    TRY(begin_graph(l, l->pixels < CHECKED ? l->pixels : CHECKED, l->pixels, &l->measure, &loss));
    vkt_report(l->measure.g, loss, (vkt_tensor){ 0 });
    return make_program(l, "check", &l->measure, l->all, &l->check);
}

vkt_result learn_create(vkt_ctx *ctx, const learn_params *p, learner *l)
{
    *l = (learner){ .ctx = ctx, .p = *p, .pixels = p->width * p->height };
    if (l->p.batch > l->pixels) l->p.batch = l->pixels;
    l->passes = MAX_ROWS / l->pixels;
    if (l->passes > MAX_PASSES) l->passes = MAX_PASSES;
    if (l->passes == 0) l->passes = 1;
    TRY(make_data(l));
    TRY(make_step(l));
    TRY(make_check(l));
    return learn_reset(l);
}

static void forget_graph(learn_graph *g)
{
    vkt_builder_destroy(&g->b);
    vkt_graph_destroy(&g->g);
}

void learn_destroy(learner *l)
{
    for (uint32_t i = 0; i < FRAMES_IN_FLIGHT; i++) vkt_program_destroy(&l->step[i]);
    vkt_program_destroy(&l->check);
    vkt_store_destroy(&l->store);
    forget_graph(&l->train);
    forget_graph(&l->measure);
    vkt_array_destroy(&l->positions);
    vkt_array_destroy(&l->colours);
    vkt_array_destroy(&l->order);
    vkt_array_destroy(&l->all);
}

static vkt_result find(const learner *l, const char *name, vkt_vk_buffer *out)
{
    for (uint32_t i = 0; i < vkt_store_count(l->store); i++)
        if (strcmp(vkt_store_name(l->store, i), name) == 0) {
            *out = vkt_store_buffer(l->store, i, VKT_PART_PUBLISHED);
            return VKT_OK;
        }
    complain("the network has no parameter '%s'", name);
    return VKT_E_NOT_FOUND;
}

vkt_result learn_shown(const learner *l, vkt_hash_grid_level levels[VIEW_LEVELS],
                       vkt_vk_buffer parameters[VIEW_N_PARAMETERS])
{
    static const char *const names[VIEW_N_PARAMETERS] = { "grid",       "mlp.0.weight", "mlp.0.bias", "mlp.1.weight",
                                                          "mlp.1.bias", "mlp.2.weight", "mlp.2.bias" };
    const vkt_hash_grid_params p = grid_of(&l->p);
    vkt_hash_grid_level all[VKT_HASH_GRID_MAX_LEVELS];
    vkt_hash_grid_table(&p, 2, all);
    memcpy(levels, all, VIEW_LEVELS * sizeof *levels);
    for (int i = 0; i < VIEW_N_PARAMETERS; i++) TRY(find(l, names[i], &parameters[i]));
    return VKT_OK;
}

/* ---- steps ---- */

static void add_loss(learner *l, float loss)
{
    l->recent[l->n_recent++ % LEARN_RECENT] = loss;
    curve_add(&l->loss, (double)loss);
}

/* Waits for the oldest run whose loss is not known, and reads its loss. */
static vkt_result await_run(learner *l)
{
    vkt_metrics m;
    TRY(vkt_program_metrics(l->step[0], l->reported, &m));
    l->reported++;
    add_loss(l, m.loss);
    return VKT_OK;
}

/* Returns the parameters of the next run. The run uses the next batch of `order`. After the last whole batch, the first
 * batch is next. */
static vkt_run run_of(const learner *l)
{
    const uint64_t batches = (uint64_t)l->passes * l->pixels / l->p.batch;
    return (vkt_run){ .lr = l->p.lr, .first = (uint32_t)(l->steps % batches * l->p.batch) };
}

vkt_result learn_step(learner *l)
{
    const vkt_run run = run_of(l);
    TRY(vkt_program_run(l->step[0], &run, NULL));
    l->steps++;
    return l->steps - l->reported > AHEAD ? await_run(l) : VKT_OK;
}

vkt_result learn_slices(learner *l, uint64_t budget_ns, bool finish, uint64_t *used_ns, uint64_t *measured_ns)
{
    vkt_step_progress progress = { .completed = true };
    *used_ns = *measured_ns = 0;
    while (progress.completed && (l->under_way || !finish)) {
        const vkt_run run = run_of(l);
        TRY(vkt_step_budget(l->step[0], &run, NULL, &budget_ns, &progress));
        l->steps += progress.completed;
        l->under_way = progress.slice != 0;
        *used_ns += progress.submitted_ns;
        if (progress.measured_frames != l->measured_frames) *measured_ns = progress.measured_ns;
        l->measured_frames = progress.measured_frames;
    }
    return VKT_OK;
}

vkt_result learn_record(learner *l, const frame *f)
{
    const vkt_run run = run_of(l);
    TRY(vkt_program_record(l->step[f->slot], f->cmd, &run));
    l->has_metrics[f->slot] = true;
    l->steps++;
    return VKT_OK;
}

void learn_barriers(const learner *l, VkMemoryBarrier2 *before, VkMemoryBarrier2 *after)
{
    vkt_program_barriers(l->step[0], before, after);
}

/* ---- losses ---- */

vkt_result learn_collect(learner *l, uint32_t slot)
{
    vkt_metrics m;
    if (l->p.recorded) {
        if (!l->has_metrics[slot]) return VKT_OK;
        l->has_metrics[slot] = false;
        TRY(vkt_program_recorded_metrics(l->step[slot], &m));
        add_loss(l, m.loss);
        return VKT_OK;
    }
    if (l->steps > VKT_RUN_RING && l->reported < l->steps - VKT_RUN_RING) l->reported = l->steps - VKT_RUN_RING;
    while (l->reported < l->steps && vkt_program_done(l->step[0], l->reported)) TRY(await_run(l));
    return VKT_OK;
}

static double decibels(double mse)
{
    return mse > 0 ? -10 * log10(mse) : 0;
}

uint64_t learn_steps(const learner *l)
{
    return l->steps - l->began;
}

double learn_recent_psnr(const learner *l)
{
    const uint64_t n = l->n_recent < LEARN_RECENT ? l->n_recent : LEARN_RECENT;
    double sum = 0;
    for (uint64_t i = 0; i < n; i++) sum += (double)l->recent[i];
    return n ? decibels(sum / (double)n) : 0;
}

vkt_result learn_psnr(learner *l, double *psnr)
{
    const uint32_t most = l->pixels < CHECKED ? l->pixels : CHECKED;
    double sum = 0;
    for (uint32_t first = 0; first < l->pixels; first += most) {
        const uint32_t rows = l->pixels - first < most ? l->pixels - first : most;
        uint64_t index;
        vkt_metrics m;
        TRY(vkt_program_run(l->check, &(vkt_run){ .rows = rows, .first = first }, &index));
        TRY(vkt_program_metrics(l->check, index, &m));
        sum += (double)m.loss * rows;
    }
    *psnr = decibels(sum / l->pixels);
    return VKT_OK;
}

/* ---- parameters ---- */

/* Begins a new training without a change of the parameters: clears Adam's moments and clock, and the losses. */
static vkt_result forget_training(learner *l)
{
    float *zeros = calloc(vkt_store_elements(l->store), sizeof *zeros);
    vkt_result r = zeros ? VKT_OK : VKT_E_NOMEM;
    for (uint32_t i = 0; r == VKT_OK && i < vkt_store_count(l->store); i++) {
        r = vkt_store_write(l->store, i, VKT_PART_MOMENT1, zeros);
        if (r == VKT_OK) r = vkt_store_write(l->store, i, VKT_PART_MOMENT2, zeros);
    }
    free(zeros);
    l->began = l->steps;
    l->n_recent = 0;
    memset(&l->loss, 0, sizeof l->loss);
    return r == VKT_OK ? vkt_store_set_clock(l->store, 0, l->p.seed) : r;
}

vkt_result learn_reset(learner *l)
{
    TRY(vkt_nn_init(l->train.b, l->store, l->p.seed));
    return forget_training(l);
}

vkt_result learn_save(learner *l, const char *path)
{
    const vkt_host host = vkt_ctx_host(l->ctx);
    return vkt_store_save(&host, l->store, VKT_PART_VALUE, path);
}

vkt_result learn_load(learner *l, const char *path)
{
    const vkt_host host = vkt_ctx_host(l->ctx);
    TRY(vkt_store_load(&host, l->store, path));
    return forget_training(l);
}
