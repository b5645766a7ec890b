/* Trains a network of three layers with Adam. The library has only the kernels of such networks, so it must refuse a
 * convolution. The error message must name the op, the missing kernel and the option VKT_KERNELS. */
#include <stdio.h>
#include <string.h>

#include <vktrain/vktrain.h>

enum { ROWS = 256, STEPS = 300 };

#define CHECK(call)                                     \
    do {                                                \
        const vkt_result r_ = (call);                   \
        if (r_ == VKT_OK) break;                        \
        printf("%s: %s\n", #call, vkt_result_name(r_)); \
        return 1;                                       \
    } while (0)

static char last[512]; /* the last error */

static void keep_error(void *user, vkt_log_level level, const char *line)
{
    (void)user;
    if (level == VKT_LOG_ERROR) snprintf(last, sizeof last, "%s", line);
}

static const vkt_host host = { .log = keep_error };

static vkt_tensor layer(vkt_builder *b, const char *name, vkt_tensor x, uint32_t out)
{
    return vkt_nn_linear(b, name, x, &(vkt_nn_linear_params){ .out_features = out });
}

/* Learns y = x0 * x1 from points of a square. */
static int train(vkt_ctx *ctx, float *first, float *final)
{
    static float points[ROWS][2], product[ROWS];
    vkt_graph *g;
    vkt_builder *b;
    vkt_store *store;
    vkt_program *p;
    for (uint32_t i = 0; i < ROWS; i++) {
        points[i][0] = (float)(i % 16) / 7.5f - 1;
        points[i][1] = (float)(i / 16) / 7.5f - 1;
        product[i] = points[i][0] * points[i][1];
    }
    CHECK(vkt_graph_create(NULL, &g));
    CHECK(vkt_builder_create(g, true, &b));
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_ROWS, vkt_shape2(ROWS, 2));
    const vkt_tensor target = vkt_input(g, "target", VKT_F32, VKT_ROWS, vkt_shape2(ROWS, 1));
    const vkt_tensor h = vkt_nn_relu(b, layer(b, "first", x, 48));
    const vkt_tensor y = layer(b, "third", vkt_nn_relu(b, layer(b, "second", h, 48)), 1);
    const vkt_tensor loss = vkt_mse(g, y, target);
    vkt_keep(g, loss);
    CHECK(vkt_backward(g, loss));
    CHECK(vkt_update(g, &(vkt_optimizer){ .kind = VKT_ADAM }));
    CHECK(vkt_store_create(ctx, g, &store));
    CHECK(vkt_nn_init(b, store, 1));
    CHECK(vkt_program_create(ctx, g, store, NULL, &p));
    CHECK(vkt_program_write(p, x, points, sizeof points));
    CHECK(vkt_program_write(p, target, product, sizeof product));
    for (int i = 0; i < STEPS; i++) {
        CHECK(vkt_program_run(p, &(vkt_run){ .lr = 0.01f }, NULL));
        if (i == 0) CHECK(vkt_program_read(p, loss, first, sizeof *first));
    }
    CHECK(vkt_program_read(p, loss, final, sizeof *final));
    vkt_program_destroy(&p);
    vkt_store_destroy(&store);
    vkt_graph_destroy(&g);
    return 0;
}

static int refuses_a_convolution(vkt_ctx *ctx)
{
    vkt_graph *g;
    vkt_program *p = NULL;
    CHECK(vkt_graph_create(&host, &g));
    const vkt_tensor x = vkt_input(g, "x", VKT_F32, VKT_BATCH_LAST, vkt_shape4(4, 1, 8, 8));
    const vkt_tensor w = vkt_input(g, "w", VKT_F32, VKT_ROWS, vkt_shape4(2, 1, 3, 3));
    vkt_keep(g, vkt_conv2d(g, x, w, (vkt_tensor){ 0 }, NULL));
    const vkt_result r = vkt_program_create(ctx, g, NULL, NULL, &p);
    vkt_graph_destroy(&g);
    printf("a convolution: %s, \"%s\"\n", vkt_result_name(r), last);
    return r == VKT_E_UNSUPPORTED && !p && strstr(last, "conv2d") && strstr(last, "CONV2D_TILE") &&
                   strstr(last, "VKT_KERNELS")
               ? 0
               : 1;
}

int main(void)
{
    vkt_ctx *ctx;
    float first = 0, final = 0;
    CHECK(vkt_ctx_create(NULL, &host, &ctx));
    if (train(ctx, &first, &final) || refuses_a_convolution(ctx)) return 1;
    vkt_ctx_destroy(&ctx);
    printf("loss %g, at first %g\n", (double) final, (double)first);
    return first > 0.05f && final < 0.005f ? 0 : 1;
}
