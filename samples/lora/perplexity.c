/* lora/perplexity.c - see perplexity.h. */
#include "lora/perplexity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "common/read_file.h"
#include "lora/rows.h"

enum { MOST_TEXT = 1 << 30 };

/* The program that computes the mean loss of a batch of rows. */
typedef struct evaluator {
    vkt_graph *g;
    vkt_builder *b;
    vkt_program *p;
    vkt_tensor rows, loss;
    uint32_t batch;
    uint32_t *ids; /* (batch, 2 * context) */
} evaluator;

static vkt_result evaluator_open(const session *s, model *m, vkt_store *store, uint32_t batch, evaluator *e)
{
    const vkt_host host = { .log = message_log, .log_level = VKT_LOG_WARN };
    const vkt_tensor none = { 0 };
    const vkt_lora_params lora = m->lora;
    *e = (evaluator){ .batch = batch, .ids = malloc((size_t)batch * 2 * m->context * sizeof *e->ids) };
    if (!e->ids) return VKT_E_NOMEM;
    vkt_result r = vkt_graph_create(&host, &e->g);
    if (r == VKT_OK) r = vkt_builder_create(e->g, false, &e->b);
    if (r != VKT_OK) return r;
    if (!store) m->lora.n_targets = 0;
    e->rows = vkt_input(e->g, "rows", VKT_U32, VKT_ROWS, vkt_shape2(batch, 2 * m->context));
    e->loss = model_loss(e->b, model_forward(e->b, e->rows, m), e->rows, none, none, m);
    m->lora = lora;
    vkt_keep(e->g, e->loss);
    return vkt_program_create(s->ctx, e->g, store,
                              &(vkt_program_params){ .name = "perplexity", .precision = s->o.precision }, &e->p);
}

static void evaluator_close(evaluator *e)
{
    vkt_program_destroy(&e->p);
    vkt_builder_destroy(&e->b);
    vkt_graph_destroy(&e->g);
    free(e->ids);
}

/* Computes the mean loss of rows [first, first + n) of `all`, and the number of their labels that count. */
static vkt_result run_batch(evaluator *e, const rows *all, uint32_t T, uint32_t first, uint32_t n, double *loss,
                            uint64_t *counted)
{
    const size_t row = 2 * (size_t)T;
    float mean = 0;
    memcpy(e->ids, all->ids + first * row, n * row * sizeof *e->ids);
    for (uint32_t i = n; i < e->batch; i++) /* padding: rows without a label that counts */
        for (uint32_t t = 0; t < row; t++) e->ids[i * row + t] = t < T ? 0 : IGNORED;
    *counted = 0;
    for (size_t i = 0; i < n; i++)
        for (uint32_t t = 0; t < T; t++) *counted += e->ids[i * row + T + t] != IGNORED;
    vkt_result r = vkt_program_write(e->p, e->rows, e->ids, e->batch * row * sizeof *e->ids);
    if (r == VKT_OK) r = vkt_program_run(e->p, &(vkt_run){ .rows = e->batch }, NULL);
    if (r == VKT_OK) r = vkt_program_read(e->p, e->loss, &mean, sizeof mean);
    *loss = (double)mean;
    return r;
}

static vkt_result run_all(const session *s, model *m, vkt_store *store, const rows *all, double *mean)
{
    evaluator e;
    double sum = 0;
    uint64_t n = 0;
    const uint32_t batch = s->o.batch < all->n ? s->o.batch : all->n;
    vkt_result r = evaluator_open(s, m, store, batch, &e);
    for (uint32_t at = 0; r == VKT_OK && at < all->n && !session_interrupted(); at += batch) {
        double loss;
        uint64_t counted;
        r = run_batch(&e, all, m->context, at, all->n - at < batch ? all->n - at : batch, &loss, &counted);
        sum += loss * (double)counted;
        n += counted;
    }
    evaluator_close(&e);
    *mean = session_interrupted() ? (double)NAN : sum / (double)n;
    return r;
}

vkt_result perplexity_of(const session *s, model *m, vkt_store *store, const char *path, double *perplexity,
                         uint64_t *tokens)
{
    char room[1024], why[READ_WHY];
    const char *found = find_file(path, room);
    const rows_params p = { .tokenizer = m->tokenizer, .context = m->context };
    vkt_tokens list = { 0 };
    rows all = { .n = 0 };
    size_t bytes;
    double mean = (double)NAN;
    char *text = read_file(found, MOST_TEXT, &bytes, why);
    if (!text) {
        complain("%s: cannot be read: %s", found, why);
        return VKT_E_IO;
    }
    vkt_result r = vkt_tokenizer_encode(m->tokenizer, text, bytes, 0, &list);
    free(text);
    if (r == VKT_OK && !rows_windows(list.ids, list.n, &p, &all)) r = VKT_E_NOMEM;
    if (r == VKT_OK && all.n == 0) {
        complain("%s: want a text of two tokens or more, got %zu", found, list.n);
        r = VKT_E_FORMAT;
    }
    if (r == VKT_OK) r = run_all(s, m, store, &all, &mean);
    *perplexity = exp(mean);
    *tokens = all.counted;
    rows_free(&all);
    vkt_tokens_release(&list);
    return r;
}
