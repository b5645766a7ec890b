/* train/predict.c - vkt_predictor: runs the forward pass of a model on a data set, without a trainer. */
#include "train/trainer.h"

struct vkt_predictor {
    vkt_ctx *ctx;
    vkt_host host;
    vkt_evaluator e; /* without a loss */
    vkt_store *store;
};

static vkt_result check(const vkt_host *h, const vkt_predictor_params *p)
{
    if (!p || !p->model.forward || !p->data)
        return vkt_fail(h, VKT_E_ARG, "predictor: want model.forward and data, got %s",
                        !p                  ? "no params"
                        : !p->model.forward ? "no model.forward"
                                            : "no data");
    if ((unsigned)p->precision > VKT_PRECISION_F32_SPLIT)
        return vkt_fail(h, VKT_E_ARG, "predictor: want a vkt_precision, got %d", (int)p->precision);
    return VKT_OK;
}

static vkt_result build_graph(vkt_predictor *q, const vkt_predictor_params *p, const vkt_feed_values *v)
{
    vkt_evaluator *e = &q->e;
    vkt_builder *b = NULL;
    VKT_TRY(vkt_builder_create(e->g, false, &b));
    vkt_tensor x, labels;
    vkt_feed_gather(e->g, &e->feed, *v, &x, &labels);
    e->head.y = p->model.forward(b, x, p->model.user);
    vkt_builder_destroy(&b);
    VKT_TRY(vkt_graph_status(e->g));
    if (!e->head.y.id) return vkt_fail(&q->host, VKT_E_ARG, "predictor: model.forward returned the null tensor");
    e->head.classifies = vkt_tensor_shape(e->g, e->head.y).rank == 2;
    if (e->head.classifies) vkt_keep(e->g, e->classes = vkt_argmax(e->g, e->head.y));
    vkt_keep(e->g, e->head.y);
    return vkt_graph_status(e->g);
}

static vkt_result build(vkt_predictor *q, const vkt_predictor_params *p)
{
    vkt_evaluator *e = &q->e;
    const vkt_feed_params fp = { .batch = VKT_MIN(p->batch ? p->batch : 128, vkt_dataset_rows(p->data)),
                                 .stream = p->stream,
                                 .workers = p->workers };
    VKT_TRY(vkt_feed_create(q->ctx, &q->host, p->data, &fp, &e->feed));
    VKT_TRY(vkt_graph_create(&q->host, &e->g));
    const vkt_feed_values v = vkt_feed_declare(e->g, &e->feed);
    VKT_TRY(build_graph(q, p, &v));
    if (e->g->n_params) VKT_TRY(vkt_store_create(q->ctx, e->g, &q->store));
    if (p->weights && !q->store)
        return vkt_fail(&q->host, VKT_E_ARG, "predictor: want a model with parameters for \"%s\"", p->weights);
    vkt_binding arrays[VKT_FEED_BINDINGS];
    const uint32_t n_arrays = vkt_feed_bind(&e->feed, v, arrays);
    const vkt_program_params pp = {
        .name = "predict", .arrays = arrays, .n_arrays = n_arrays, .precision = p->precision
    };
    VKT_TRY(vkt_program_create(q->ctx, e->g, q->store, &pp, &e->program));
    return p->weights ? vkt_store_load(&q->host, q->store, p->weights) : VKT_OK;
}

vkt_result vkt_predictor_create(vkt_ctx *ctx, const vkt_predictor_params *params, vkt_predictor **out)
{
    VKT_WANT(NULL, out);
    *out = NULL;
    VKT_WANT(NULL, ctx);
    const vkt_host h = vkt_ctx_host(ctx);
    VKT_TRY(check(&h, params));
    vkt_predictor *q = vkt_alloc(&h, sizeof *q);
    if (!q) return vkt_fail_nomem(&h, "a predictor", sizeof *q);
    q->ctx = ctx;
    q->host = h;
    q->e.feed.h = &q->host;
    vkt_result r = build(q, params);
    if (r == VKT_OK)
        *out = q;
    else
        vkt_predictor_destroy(&q);
    return r;
}

void vkt_predictor_destroy(vkt_predictor **pq)
{
    vkt_predictor *q = pq ? *pq : NULL;
    if (!q) return;
    const vkt_host h = q->host;
    vkt_evaluator_clear(&q->e);
    vkt_store_destroy(&q->store);
    vkt_free(&h, q);
    *pq = NULL;
}

uint64_t vkt_predictor_width(const vkt_predictor *p)
{
    if (!p) return 0;
    const vkt_shape s = vkt_tensor_shape(p->e.g, p->e.head.y);
    return s.rank ? vkt_shape_elements(s) / s.dim[0] : 1;
}

vkt_result vkt_predictor_run(vkt_predictor *p, uint32_t first, uint32_t count, uint32_t *classes, float *outputs)
{
    VKT_WANT(NULL, p);
    if (classes && !p->e.head.classifies)
        return vkt_fail(&p->host, VKT_E_STATE, "predict: want outputs (B,K) for classes, the model gives rank %u",
                        vkt_tensor_shape(p->e.g, p->e.head.y).rank);
    return vkt_evaluator_predict(&p->host, &p->e, first, count, classes, outputs);
}

vkt_store *vkt_predictor_store(vkt_predictor *p)
{
    return p ? p->store : NULL;
}
