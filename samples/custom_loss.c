/* custom_loss.c - finds a line despite outliers, by a loss of its own: two compute shaders (custom_loss.comp). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "vktrain/vktrain.h"

/* glslangValidator -V --vn custom_loss -o custom_loss.spv.h custom_loss.comp makes the array custom_loss[]. */
#include "custom_loss.spv.h"
#include "custom_loss_dx.spv.h" /* custom_loss_dx[], made with -DGRADIENT */

#define CHECK(call) ((call) != VKT_OK ? exit(1) : (void)0) /* the library has printed the reason on stderr */
enum { POINTS = 1000 };

/* The model: y = w x + b. */
static vkt_tensor line(vkt_builder *b, vkt_tensor x, void *user)
{
    (void)user;
    return vkt_nn_linear(b, "line", x, &(vkt_nn_linear_params){ .out_features = 1 });
}

/* Returns the loss: the shader computes one number per row, and vkt_mean computes the mean of these numbers. */
static vkt_tensor robust(vkt_builder *b, vkt_tensor y, vkt_tensor x, vkt_tensor labels, vkt_tensor targets, void *user)
{
    (void)x, (void)labels, (void)user;
    vkt_graph *g = vkt_builder_graph(b);
    const struct {
        uint32_t batch;
        float eps;
    } push = { vkt_tensor_shape(g, y).dim[0], 0.1f };
    const vkt_custom_input inputs[] = { { .tensor = y }, { .tensor = targets, .no_gradient = true } };
    const vkt_custom_output loss = { .shape = vkt_shape1(push.batch) };
    vkt_custom_params p = { .name = "robust", .inputs = inputs, .n_inputs = 2, .outputs = &loss, .n_outputs = 1 };
    p.forward = (vkt_custom_shader){ .spirv = custom_loss,
                                     .spirv_bytes = sizeof custom_loss,
                                     .bind = { VKT_CUSTOM_X(0), VKT_CUSTOM_X(1), VKT_CUSTOM_STEP, VKT_CUSTOM_Y(0) },
                                     .push = &push,
                                     .push_bytes = sizeof push,
                                     .elements = push.batch };
    p.gradient = p.forward;
    p.gradient.spirv = custom_loss_dx;
    p.gradient.spirv_bytes = sizeof custom_loss_dx;
    p.gradient.bind[3] = VKT_CUSTOM_DY(0);
    p.gradient.bind[4] = VKT_CUSTOM_DX(0);
    return vkt_mean(g, vkt_custom(g, &p, NULL));
}

int main(void)
{
    static float x[POINTS], t[POINTS];
    for (int i = 0; i < POINTS; i++) { /* t = 2 x + 1 with a little noise; every seventh point is raised */
        x[i] = 2 * (float)i / POINTS - 1;
        t[i] = 2 * x[i] + 1 + 0.1f * sinf(99.0f * (float)i) + (i % 7 ? 0 : 5 * (1 + x[i]));
    }
    vkt_ctx *ctx;
    vkt_dataset *data;
    CHECK(vkt_ctx_create(NULL, NULL, &ctx));
    const vkt_dataset_params points = { .rows = POINTS, .width = 1, .type = VKT_ROW_F32, .targets = t };
    CHECK(vkt_dataset_from_arrays(NULL, &points, x, &data));
    for (int own = 0; own < 2; own++) {
        vkt_trainer *trainer;
        float w, b;
        vkt_trainer_params p = { .train = data, .batch = 64, .lr = 0.02f };
        p.model = (vkt_model){ .forward = line, .loss = own ? robust : NULL }; /* NULL: the mean squared error */
        CHECK(vkt_trainer_create(ctx, &p, &trainer));
        CHECK(vkt_trainer_fit(trainer, &(vkt_fit_params){ .epochs = 30 }));
        CHECK(vkt_store_read(vkt_trainer_store(trainer), 0, VKT_PART_VALUE, &w));
        CHECK(vkt_store_read(vkt_trainer_store(trainer), 1, VKT_PART_VALUE, &b));
        printf("%-20s y = %.2f x + %.2f\n", own ? "own loss" : "mean squared error", (double)w, (double)b);
        vkt_trainer_destroy(&trainer);
    }
    vkt_ctx_destroy(&ctx);
    vkt_dataset_destroy(&data);
}
