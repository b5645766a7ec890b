/* gpt.c - vkt-gpt: trains a transformer on a text, character by character, on a Vulkan device, and then generates text.
 *
 * The network is a small GPT-2 (vkt_gpt): 3 blocks of width 96, unless options change these numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/corpus.h"
#include "common/message.h"
#include "common/random.h"
#include "common/session.h"
#include "common/terminal.h"
#include "vktrain/models.h"

#define TRY(call)                                                                                     \
    do {                                                                                              \
        const vkt_result try_r = (call);                                                              \
        if (try_r != VKT_OK) return try_r; /* session_end prints the error if there was no message */ \
    } while (0)

/* ---- options ---- */

typedef struct gpt_options {
    vkt_gpt_params model; /* `vocabulary` comes from the text, the other numbers come from options */
    uint32_t characters, top_k;
    double temperature;
    const char *prompt;
} gpt_options;

enum {
    OPT_LAYERS = 512,
    OPT_HEADS,
    OPT_WIDTH,
    OPT_CONTEXT,
    OPT_DROPOUT,
    OPT_SAMPLE,
    OPT_TEMPERATURE,
    OPT_TOP_K,
    OPT_PROMPT
};

static const struct argp_option table[] = {
    { 0, 0, 0, 0, "Network", 5 },
    { "layers", OPT_LAYERS, "N", 0, "transformer blocks (3)", 5 },
    { "heads", OPT_HEADS, "N", 0, "attention heads of a block; they divide --width (4)", 5 },
    { "width", OPT_WIDTH, "N", 0, "size of the embedding of a character (96)", 5 },
    { "context", OPT_CONTEXT, "N", 0, "context length, in characters (64)", 5 },
    { "dropout", OPT_DROPOUT, "P", 0, "dropout probability in training (0)", 5 },
    { 0, 0, 0, 0, "Text generated at the end", 6 },
    { "sample", OPT_SAMPLE, "N", 0, "how many characters to generate (300); 0: none", 6 },
    { "temperature", OPT_TEMPERATURE, "X", 0, "0: always the likeliest character; 1: as likely as learnt (0.8)", 6 },
    { "top-k", OPT_TOP_K, "K", 0, "only the K likeliest characters; 0: all (0)", 6 },
    { "prompt", OPT_PROMPT, "TEXT", 0, "what to go on with, in characters of the text (its first one)", 6 },
    { 0 }
};

static uint32_t whole(struct argp_state *state, const char *option, const char *text, uint32_t least)
{
    return (uint32_t)option_integer(state, option, text, least, 1u << 20);
}

static error_t on_option(int key, char *text, struct argp_state *state)
{
    gpt_options *o = state->input;
    switch (key) {
    case OPT_LAYERS: o->model.layers = whole(state, "layers", text, 1); break;
    case OPT_HEADS: o->model.heads = whole(state, "heads", text, 1); break;
    case OPT_WIDTH: o->model.width = whole(state, "width", text, 1); break;
    case OPT_CONTEXT: o->model.context = whole(state, "context", text, 1); break;
    case OPT_DROPOUT: o->model.dropout = (float)option_number(state, "dropout", text, 0, 1); break;
    case ARGP_KEY_END:
        if (o->model.width % o->model.heads)
            argp_error(state, "--heads: want a divisor of --width %u, got %u", o->model.width, o->model.heads);
        break;
    case OPT_SAMPLE: o->characters = whole(state, "sample", text, 0); break;
    case OPT_TEMPERATURE: o->temperature = option_number(state, "temperature", text, 0, 100); break;
    case OPT_TOP_K: o->top_k = whole(state, "top-k", text, 0); break;
    case OPT_PROMPT: o->prompt = text; break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* ---- the model: a sample has context + 1 characters; the network sees all of them except the last one ---- */

static vkt_tensor forward(vkt_builder *b, vkt_tensor ids, void *user)
{
    const vkt_gpt_params *p = user;
    return vkt_gpt(b, vkt_slice(vkt_builder_graph(b), ids, 1, 0, p->context, 1), p);
}

/* Computes the mean loss of the characters. Each character but the first one of a sample is predicted from the
 * characters before it in the sample. Biases and the weights of norms have no weight decay: they are in parameter group
 * 0, and optimizer.groups[0] is zero. */
static vkt_tensor loss(vkt_builder *b, vkt_tensor z, vkt_tensor ids, vkt_tensor labels, vkt_tensor targets, void *user)
{
    vkt_graph *g = vkt_builder_graph(b);
    (void)labels, (void)targets, (void)user;
    if (!z.id || vkt_set_group(g, "*.bias", 0) != VKT_OK || vkt_set_group(g, "*.ln_*.weight", 0) != VKT_OK)
        return (vkt_tensor){ 0 };
    return vkt_cross_entropy(g, z, vkt_slice(g, ids, 1, 1, VKT_END, 1), NULL);
}

/* ---- the data: the first nine tenths of the text are for training, the rest for validation ---- */

typedef struct texts {
    vkt_dataset *train, *check;
} texts;

/* Makes samples that overlap in one character: the last character of a sample is the first one of the next sample. */
static vkt_result make_rows(const vkt_host *host, const uint32_t *ids, uint32_t n, uint32_t context, vkt_dataset **out)
{
    const uint32_t rows = (n - 1) / context, width = context + 1;
    uint32_t *all = malloc((size_t)rows * width * sizeof *all);
    if (!all) return VKT_E_NOMEM;
    for (uint32_t i = 0; i < rows; i++) memcpy(all + (size_t)i * width, ids + (size_t)i * context, width * sizeof *all);
    const vkt_dataset_params p = { .rows = rows, .width = width, .type = VKT_ROW_U32 };
    const vkt_result r = vkt_dataset_from_arrays(host, &p, all, out);
    free(all);
    return r;
}

static vkt_result split(const vkt_host *host, const corpus *c, uint32_t context, texts *out)
{
    const uint32_t n = c->n - c->n / 10;
    if (c->n / 10 <= context) {
        complain("%s: want %u characters or more for a context of %u, got %u", c->source, 10 * (context + 1), context,
                 c->n);
        return VKT_E_ARG;
    }
    TRY(make_rows(host, c->ids, n, context, &out->train));
    return make_rows(host, c->ids + n, c->n - n, context, &out->check);
}

/* ---- text generation: one run of the network for each character ---- */

typedef struct writer {
    vkt_graph *g;
    vkt_builder *b;
    vkt_program *p;
    vkt_tensor window, z; /* window: (1,T); z: (1,T,V). T is the context length, V the size of the vocabulary */
    uint32_t *ids;        /* (T): the last characters, then zeros */
    float *logits;        /* (T,V) */
    uint32_t n;           /* characters in the window */
} writer;

static vkt_result writer_open(vkt_ctx *ctx, vkt_store *store, const vkt_gpt_params *p, writer *w)
{
    const vkt_host host = { .log_level = VKT_LOG_WARN };
    TRY(vkt_graph_create(&host, &w->g));
    TRY(vkt_builder_create(w->g, false, &w->b));
    w->window = vkt_input(w->g, "window", VKT_U32, VKT_ROWS, vkt_shape2(1, p->context));
    w->z = vkt_gpt(w->b, w->window, p);
    vkt_keep(w->g, w->z);
    w->ids = calloc(p->context, sizeof *w->ids);
    w->logits = malloc((size_t)p->context * p->vocabulary * sizeof *w->logits);
    if (!w->ids || !w->logits) return VKT_E_NOMEM;
    return vkt_program_create(ctx, w->g, store, &(vkt_program_params){ .name = "write" }, &w->p);
}

static void writer_close(writer *w)
{
    vkt_program_destroy(&w->p);
    vkt_builder_destroy(&w->b);
    vkt_graph_destroy(&w->g);
    free(w->ids);
    free(w->logits);
}

static void append(writer *w, const vkt_gpt_params *p, uint32_t id)
{
    if (w->n == p->context) memmove(w->ids, w->ids + 1, --w->n * sizeof *w->ids);
    w->ids[w->n++] = id;
}

/* Counts the logits above z[i]. An equal logit with a smaller index counts, too. */
static uint32_t rank_of(const float *z, uint32_t n, uint32_t i)
{
    uint32_t rank = 0;
    for (uint32_t k = 0; k < n; k++) rank += z[k] > z[i] || (z[k] == z[i] && k < i);
    return rank;
}

/* Returns a random index with the probabilities of softmax(z / temperature). Only the top_k likeliest indices are
 * candidates (top_k 0: all n indices). At temperature 0, returns the likeliest index. */
static uint32_t draw(const float *z, uint32_t n, const gpt_options *o, uint64_t *seed)
{
    const double temperature = o->temperature > 0 ? o->temperature : 1;
    const uint32_t kept = o->temperature == 0 ? 1 : o->top_k && o->top_k < n ? o->top_k : n;
    double most = -INFINITY, sum = 0;
    for (uint32_t i = 0; i < n; i++) most = fmax(most, (double)z[i]);
    for (uint32_t i = 0; i < n; i++)
        if (rank_of(z, n, i) < kept) sum += exp(((double)z[i] - most) / temperature);
    double left = (double)random_unit(seed) * sum;
    uint32_t last = 0; /* the last candidate so far. The result is a candidate even if rounding keeps `left` >= 0 */
    for (uint32_t i = 0; i < n && left >= 0; i++)
        if (rank_of(z, n, i) < kept) {
            left -= exp(((double)z[i] - most) / temperature);
            last = i;
        }
    return last;
}

static vkt_result write_characters(writer *w, const corpus *c, const gpt_options *o, uint64_t seed)
{
    const vkt_gpt_params *p = &o->model;
    const size_t logits = (size_t)p->context * p->vocabulary;
    for (uint32_t i = 0; i < o->characters && !session_interrupted(); i++) {
        TRY(vkt_program_write(w->p, w->window, w->ids, p->context * sizeof *w->ids));
        TRY(vkt_program_run(w->p, &(vkt_run){ .rows = 1 }, NULL));
        TRY(vkt_program_read(w->p, w->z, w->logits, logits * sizeof *w->logits));
        const uint32_t id = draw(w->logits + (size_t)(w->n - 1) * p->vocabulary, p->vocabulary, o, &seed);
        append(w, p, id);
        corpus_put(c, id, stdout);
        fflush(stdout);
    }
    putchar('\n');
    return VKT_OK;
}

static vkt_result sample(const session *s, vkt_trainer *t, const corpus *c, const gpt_options *o,
                         const uint32_t *prompt, uint32_t n)
{
    writer w = { .n = 0 };
    vkt_result r = writer_open(s->ctx, vkt_trainer_store(t), &o->model, &w);
    if (r == VKT_OK) {
        puts("\ngenerated text");
        for (uint32_t i = 0; i < n; i++) {
            append(&w, &o->model, prompt[i]);
            corpus_put(c, prompt[i], stdout);
        }
        r = write_characters(&w, c, o, vkt_trainer_seed(t));
    }
    writer_close(&w);
    return r;
}

/* ---- the run ---- */

/* Attaches the characters in the order of their ids. A checkpoint is valid only for this alphabet, and a program
 * that uses the weights needs the alphabet. */
static vkt_result attach_alphabet(vkt_trainer *t, const corpus *c)
{
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    for (uint32_t id = 0; f && id < vkt_alphabet_size(c->alphabet); id++)
        fputs(vkt_alphabet_character(c->alphabet, id), f);
    vkt_result r = f && fclose(f) == 0 ? VKT_OK : VKT_E_NOMEM;
    if (r == VKT_OK) r = vkt_trainer_attach(t, "alphabet", text);
    free(text);
    return r;
}

/* Returns a schedule. The rate rises from lr / 100 to lr over the first twentieth of all steps, at most 1000 steps.
 * Then it falls to a tenth of lr along a cosine. */
static vkt_schedule schedule(const session *s, uint32_t rows)
{
    const train_options *o = &s->o;
    const uint64_t steps = ranks_steps(&s->ranks, o, rows);
    const uint32_t warmup = (uint32_t)(steps / 20 < 1000 ? steps / 20 : 1000);
    return (vkt_schedule){ .kind = VKT_SCHEDULE_COSINE,
                           .warmup = warmup,
                           .warmup_from = 0.01,
                           .total = steps - warmup,
                           .min_lr = (double)o->lr / 10 };
}

static vkt_result run(session *s, const corpus *c, const texts *data, gpt_options *o)
{
    enum { LONGEST_PROMPT = 1024 };
    uint32_t prompt[LONGEST_PROMPT] = { c->ids[0] }, n = 1;
    if (o->prompt && (vkt_alphabet_encode(c->alphabet, o->prompt, strlen(o->prompt), prompt, LONGEST_PROMPT, &n) ||
                      n == 0 || n > LONGEST_PROMPT)) {
        complain("--prompt: want 1 to %d characters of the text, got '%s'", LONGEST_PROMPT, o->prompt);
        return VKT_E_ARG;
    }
    o->model.vocabulary = vkt_alphabet_size(c->alphabet);
    const vkt_trainer_params p = { .model = { .name = "GPT", .forward = forward, .user = &o->model, .loss = loss },
                                   .train = data->train,
                                   .validation = data->check,
                                   .schedule = schedule(s, vkt_dataset_rows(data->train)) };
    vkt_trainer *t = NULL;
    vkt_result r = session_trainer(s, &p, &t);
    if (r == VKT_OK) r = attach_alphabet(t, c);
    if (r == VKT_OK) r = session_fit(s, NULL, t);
    if (r == VKT_OK && o->characters && !s->o.quiet && !session_interrupted()) r = sample(s, t, c, o, prompt, n);
    vkt_trainer_destroy(&t);
    return r;
}

int main(int argc, char **argv)
{
    static const struct argp more = { .options = table, .parser = on_option };
    gpt_options o = { .model = { .context = 64, .layers = 3, .heads = 4, .width = 96 },
                      .characters = 300,
                      .temperature = 0.8 };
    const train_cli cli = { .doc = "Trains a small transformer to write like a text, character by character, on a "
                                   "Vulkan device, and prints text that it generates.",
                            .data = "a text in UTF-8; without one, sentences generated by a small grammar",
                            .more = &more,
                            .input = &o };
    session s = { .o = { .epochs = 8, .batch = 16, .optimizer = { .kind = VKT_ADAMW }, .lr = 0.002f, .seed = 1 } };
    session_begin(&s, &cli, argc, argv);
    if (!session_open(&s)) return session_end(&s, VKT_E_NO_DEVICE);
    corpus c;
    texts data = { NULL, NULL };
    vkt_result r = corpus_open(s.o.data, &c) ? split(&s.host, &c, o.model.context, &data) : VKT_E_IO;
    s.data = (session_data){ c.source, s.o.data == NULL, data.train, data.check, NULL };
    if (r == VKT_OK && !s.o.quiet)
        terminal_printf(stdout, "data    %s: %u characters, a vocabulary of %u\n", c.source, c.n,
                        vkt_alphabet_size(c.alphabet));
    if (r == VKT_OK) r = run(&s, &c, &data, &o);
    vkt_dataset_destroy(&data.train);
    vkt_dataset_destroy(&data.check);
    corpus_close(&c);
    return session_end(&s, r);
}
