/* peers/finetune.c - compares the fine-tuning of a model with PEFT's: logits, gradients, losses, and files of adapters.
 *
 *   finetune_compare MODEL.gguf FOLDER [--recompute]
 *
 * `finetune.py reference` has written FOLDER. The program prints vktrain's deviations from PyTorch's float64 numbers.
 * For logits and losses, the deviations of PyTorch's float32 numbers are in brackets. --recompute computes each block
 * of the network again for its gradients. At the end FOLDER/ours has the trained adapters. FOLDER/ours.f32 has the
 * logits of the prompts, computed with these adapters. `finetune.py interop` loads FOLDER/ours and FOLDER/ours.f32. No
 * test runs this program, because it needs a model and the files in FOLDER. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/safetensors.h"
#include "vktrain/vktrain.h"

#define OK(call)                                                       \
    do {                                                               \
        const vkt_result ok_r = (call);                                \
        if (ok_r != VKT_OK) {                                          \
            fprintf(stderr, "%s: %s\n", #call, vkt_result_name(ok_r)); \
            exit(1);                                                   \
        }                                                              \
    } while (0)

enum { PROMPTS = 20 };

static const char *const targets[] = { "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj" };
static const vkt_lora_params lora = { .targets = targets, .n_targets = 7, .rank = 8, .alpha = 16 };

typedef struct comparison {
    vkt_ctx *ctx;
    vkt_lm *lm;
    vkt_safetensors *st;
    const char *folder;
    vkt_store *store; /* the adapters */
} comparison;

/* ---- numbers of the reference ---- */

static double *numbers(const comparison *c, const char *name, uint64_t *n)
{
    const vkt_st_entry *e = vkt_safetensors_find(c->st, name);
    if (!e) {
        fprintf(stderr, "reference.safetensors has no '%s'\n", name);
        exit(1);
    }
    double *out = malloc(e->elements * sizeof *out);
    if (e->dtype == VKT_ST_F64) {
        OK(vkt_safetensors_read_raw(c->st, e, out, e->bytes));
    } else {
        float *f = malloc(e->elements * sizeof *f);
        OK(vkt_safetensors_read_f32(c->st, e, f, e->elements));
        for (uint64_t i = 0; i < e->elements; i++) out[i] = (double)f[i];
        free(f);
    }
    *n = e->elements;
    return out;
}

static uint32_t *ids_of(const comparison *c, const char *name, const vkt_st_entry **entry)
{
    const vkt_st_entry *e = *entry = vkt_safetensors_find(c->st, name);
    if (!e || e->dtype != VKT_ST_I32) {
        fprintf(stderr, "reference.safetensors has no '%s' of I32\n", name);
        exit(1);
    }
    uint32_t *out = malloc(e->bytes);
    OK(vkt_safetensors_read_raw(c->st, e, out, e->bytes));
    for (uint64_t i = 0; i < e->elements; i++)
        if (out[i] > INT32_MAX) out[i] = UINT32_MAX; /* PyTorch's label -100: the token does not count */
    return out;
}

/* most: the largest deviation from the float64 numbers. largest: the largest magnitude of the float64 numbers. */
typedef struct deviation {
    double most, largest;
} deviation;

static void add(deviation *d, double got, double want)
{
    d->most = isfinite(got) ? fmax(d->most, fabs(got - want)) : INFINITY;
    d->largest = fmax(d->largest, fabs(want));
}

/* ---- logits of the prompts ---- */

/* Computes the logits of the last token of a prompt. If `store` is not NULL, the network uses the store's adapters. */
static void prompt_logits(const comparison *c, uint32_t prompt, vkt_store *store, float *out)
{
    char name[32];
    const vkt_st_entry *e;
    snprintf(name, sizeof name, "prompt.%u", prompt);
    uint32_t *ids = ids_of(c, name, &e);
    const uint32_t n = (uint32_t)e->elements;
    vkt_graph *g;
    vkt_builder *b;
    vkt_program *p;
    OK(vkt_graph_create(NULL, &g));
    OK(vkt_builder_create(g, false, &b));
    if (store) vkt_builder_set_lora(b, &lora);
    const vkt_tensor x = vkt_input(g, "ids", VKT_U32, VKT_ROWS, vkt_shape2(1, n));
    const vkt_tensor z = vkt_lm_logits(b, c->lm, vkt_slice(g, vkt_lm_hidden(b, c->lm, x, NULL), 1, n - 1, n, 1));
    vkt_keep(g, z);
    OK(vkt_program_create(c->ctx, g, store, NULL, &p));
    OK(vkt_program_write(p, x, ids, n * sizeof *ids));
    OK(vkt_program_run(p, NULL, NULL));
    OK(vkt_program_read(p, z, out, vkt_lm_model(c->lm)->vocabulary * sizeof *out));
    vkt_program_destroy(&p);
    vkt_builder_destroy(&b);
    vkt_graph_destroy(&g);
    free(ids);
}

static void compare_logits(const comparison *c, const char *which, vkt_store *store)
{
    const uint32_t vocabulary = vkt_lm_model(c->lm)->vocabulary;
    char name[64];
    uint64_t n;
    snprintf(name, sizeof name, "f64.%s", which);
    double *exact = numbers(c, name, &n);
    snprintf(name, sizeof name, "f32.%s", which);
    double *torch = numbers(c, name, &n);
    float *ours = malloc(vocabulary * sizeof *ours);
    deviation a = { 0, 0 }, b = { 0, 0 };
    for (uint32_t i = 0; i < PROMPTS; i++) {
        prompt_logits(c, i, store, ours);
        for (uint32_t k = 0; k < vocabulary; k++) {
            add(&a, (double)ours[k], exact[(size_t)i * vocabulary + k]);
            add(&b, torch[(size_t)i * vocabulary + k], exact[(size_t)i * vocabulary + k]);
        }
    }
    printf("%s of %d prompts: %.2e of the largest (%.2e)\n", which, PROMPTS, a.most / a.largest, b.most / b.largest);
    free(exact), free(torch), free(ours);
}

/* ---- gradients of one step, losses of many steps ---- */

typedef struct training {
    vkt_graph *g;
    vkt_builder *b;
    vkt_program *p;
    vkt_tensor ids, labels;
} training;

static void training_open(comparison *c, uint32_t batch, uint32_t context, bool recompute, training *t)
{
    OK(vkt_graph_create(NULL, &t->g));
    OK(vkt_builder_create(t->g, true, &t->b));
    vkt_builder_set_lora(t->b, &lora);
    const vkt_shape shape = vkt_shape2(batch, context);
    t->ids = vkt_input(t->g, "ids", VKT_U32, VKT_ROWS, shape);
    t->labels = vkt_input(t->g, "labels", VKT_U32, VKT_ROWS, shape);
    const vkt_tensor x = vkt_lm_hidden(t->b, c->lm, t->ids, &(vkt_lm_params){ .recompute = recompute });
    const vkt_tensor loss = vkt_lm_loss(t->b, c->lm, x, t->labels);
    OK(vkt_backward(t->g, loss));
    OK(vkt_update(t->g, &(vkt_optimizer){ .kind = VKT_ADAM }));
    vkt_report(t->g, loss, (vkt_tensor){ 0 });
    if (!c->store) OK(vkt_store_create(c->ctx, t->g, &c->store));
    OK(vkt_program_create(c->ctx, t->g, c->store, NULL, &t->p));
}

static void training_close(training *t)
{
    vkt_program_destroy(&t->p);
    vkt_builder_destroy(&t->b);
    vkt_graph_destroy(&t->g);
}

static double step(training *t, const uint32_t *ids, const uint32_t *labels, size_t n, float lr)
{
    uint64_t run;
    vkt_metrics m;
    OK(vkt_program_write(t->p, t->ids, ids, n * sizeof *ids));
    OK(vkt_program_write(t->p, t->labels, labels, n * sizeof *labels));
    OK(vkt_program_run(t->p, &(vkt_run){ .lr = lr }, &run));
    OK(vkt_program_metrics(t->p, run, &m));
    return (double)m.loss;
}

static void load(const comparison *c, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", c->folder, name);
    OK(vkt_peft_load(NULL, c->store, &lora, path));
}

/* Returns the L2 norm of the difference between `exact` and PyTorch's gradient of `parameter` in `run`. Returns NaN if
 * the reference does not have the run. */
static double torch_deviation(const comparison *c, const char *run, const char *parameter, const double *exact)
{
    char name[128];
    uint64_t n;
    double sum = 0;
    snprintf(name, sizeof name, "%s.grad.%s", run, parameter);
    if (!vkt_safetensors_find(c->st, name)) return NAN;
    double *torch = numbers(c, name, &n);
    for (uint64_t k = 0; k < n; k++) sum += pow(torch[k] - exact[k], 2);
    free(torch);
    return sqrt(sum);
}

static double our_deviation(const comparison *c, uint32_t i, const double *exact, uint64_t n)
{
    float *ours = malloc(n * sizeof *ours);
    double sum = 0;
    OK(vkt_store_read(c->store, i, VKT_PART_GRADIENT, ours));
    for (uint64_t k = 0; k < n; k++) sum += pow((double)ours[k] - exact[k], 2);
    free(ours);
    return sqrt(sum);
}

/* Compares the gradients of all adapters. For each gradient, divides vktrain's deviation by the largest deviation of
 * PyTorch's three float32 runs. Prints the largest ratio, and how many ratios are above 4. */
static void compare_gradients(const comparison *c)
{
    static const char *const runs[] = { "f32", "f32_eager", "f32_thread" };
    const uint32_t count = vkt_store_count(c->store);
    double worst = 0;
    uint32_t above = 0;
    for (uint32_t i = 0; i < count; i++) {
        const char *parameter = vkt_store_name(c->store, i);
        char name[128];
        uint64_t n;
        snprintf(name, sizeof name, "f64.grad.%s", parameter);
        double *exact = numbers(c, name, &n), allowed = 0;
        for (int k = 0; k < 3; k++) allowed = fmax(allowed, torch_deviation(c, runs[k], parameter, exact));
        const double ratio = our_deviation(c, i, exact, n) / allowed;
        worst = ratio <= worst ? worst : ratio; /* also NaN */
        above += !(ratio <= 4);
        free(exact);
    }
    printf("gradients of %u matrices: %u deviate more than 4 times as much as float32 PyTorch; the worst %.2f times\n",
           count, above, worst);
}

static void compare_losses(const comparison *c, const double *ours, uint32_t steps)
{
    uint64_t n;
    double *exact = numbers(c, "f64.losses", &n), *torch = numbers(c, "f32.losses", &n);
    deviation a = { 0, 0 }, b = { 0, 0 };
    for (uint32_t i = 0; i < steps; i++) {
        add(&a, ours[i], exact[i]);
        add(&b, torch[i], exact[i]);
    }
    printf("losses of %u steps: %.2e (%.2e); the last one %.6f, in float64 %.6f\n", steps, a.most, b.most,
           ours[steps - 1], exact[steps - 1]);
    free(exact), free(torch);
}

static void train(comparison *c, bool recompute)
{
    const vkt_st_entry *e;
    training t;
    uint64_t one;
    uint32_t *ids = ids_of(c, "ids", &e), *labels = ids_of(c, "labels", &e);
    double *lr = numbers(c, "lr", &one);
    const uint32_t steps = (uint32_t)e->dims[0], batch = (uint32_t)e->dims[1], context = (uint32_t)e->dims[2];
    const size_t n = (size_t)batch * context;
    double *losses = malloc(steps * sizeof *losses);
    training_open(c, batch, context, recompute, &t);
    load(c, "random");
    compare_logits(c, "adapted_logits", c->store);
    step(&t, ids, labels, n, 0);
    compare_gradients(c);
    training_close(&t);
    vkt_store_destroy(&c->store); /* the next training begins with new moments */
    training_open(c, batch, context, recompute, &t);
    load(c, "zero");
    for (uint32_t i = 0; i < steps; i++) losses[i] = step(&t, ids + i * n, labels + i * n, n, (float)lr[0]);
    compare_losses(c, losses, steps);
    training_close(&t);
    free(ids), free(labels), free(lr), free(losses);
}

static void write_ours(const comparison *c)
{
    const uint32_t vocabulary = vkt_lm_model(c->lm)->vocabulary;
    char path[4096];
    snprintf(path, sizeof path, "%s/ours", c->folder);
    OK(vkt_peft_save(NULL, c->store, VKT_PART_VALUE, &(vkt_peft_params){ .lora = lora }, path));
    snprintf(path, sizeof path, "%s/ours.f32", c->folder);
    FILE *f = fopen(path, "wb");
    float *z = malloc(vocabulary * sizeof *z);
    bool written = f != NULL;
    for (uint32_t i = 0; written && i < PROMPTS; i++) {
        prompt_logits(c, i, c->store, z);
        written = fwrite(z, sizeof *z, vocabulary, f) == vocabulary;
    }
    if (!written || fclose(f) != 0) {
        fprintf(stderr, "%s cannot be written\n", path);
        exit(1);
    }
    free(z);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "want MODEL.gguf FOLDER [--recompute]\n");
        return 2;
    }
    comparison c = { .folder = argv[2] };
    char path[4096];
    vkt_gguf *g;
    OK(vkt_ctx_create(NULL, NULL, &c.ctx));
    OK(vkt_gguf_open(NULL, argv[1], &g));
    OK(vkt_lm_create(c.ctx, g, &c.lm));
    vkt_gguf_destroy(&g);
    snprintf(path, sizeof path, "%s/reference.safetensors", c.folder);
    const vkt_host h = vkt_ctx_host(c.ctx);
    OK(vkt_safetensors_open(&h, path, &c.st));
    compare_logits(&c, "logits", NULL);
    train(&c, argc > 3);
    write_ours(&c);
    vkt_safetensors_close(&c.st);
    vkt_store_destroy(&c.store);
    vkt_lm_destroy(&c.lm);
    vkt_ctx_destroy(&c.ctx);
    return 0;
}
