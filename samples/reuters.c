/* reuters.c - vkt-reuters: trains a convolutional network over word sequences to find the topic of newswire stories. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/classes.h"
#include "common/predict_texts.h"
#include "common/session.h"
#include "common/topics_data.h"
#include "vktrain/metrics.h"

#define PROGRAM "vkt-reuters"
enum { OPT_LINES = 512 };
enum { LENGTH = 300, SHOWN = 5, SEARCHED = 1000, SHOWN_BYTES = 38 };

typedef struct sizes {
    uint32_t words, topics;
} sizes;

/* Builds the network: ids (B,300) -> logits (B,topics), with Keras' initial values. The network has 7 V + 115,982
 * parameters if the vocabulary has V ids and there are 46 topics. Flatten puts channels before positions, as in
 * PyTorch. Keras has the opposite order, but that only changes the order of fc's inputs. */
static vkt_tensor forward(vkt_builder *b, vkt_tensor ids, void *user)
{
    const sizes *n = user;
    const vkt_nn_embedding_params table = { .num_embeddings = n->words, .embedding_dim = 7, .channels = true };
    const vkt_pool1d_params halve = { .kernel = 2 };
    vkt_builder_set_preset(b, VKT_PRESET_KERAS3);
    vkt_tensor x = vkt_nn_embedding(b, "embedding", ids, &table);
    x = vkt_nn_conv1d(b, "conv1", x, &(vkt_nn_conv1d_params){ .out_channels = 64, .kernel = 5 });
    x = vkt_nn_relu(b, x);
    x = vkt_nn_max_pool1d(b, x, &halve);
    x = vkt_nn_conv1d(b, "conv2", x, &(vkt_nn_conv1d_params){ .out_channels = 32, .kernel = 3 });
    x = vkt_nn_relu(b, x);
    x = vkt_nn_max_pool1d(b, x, &halve);
    x = vkt_nn_flatten(b, x);
    return vkt_nn_linear(b, "fc", x, &(vkt_nn_linear_params){ .out_features = n->topics });
}

/* ---- a few test texts with their predictions ---- */

/* Prints a text. If its printable form (vkt_printable) has more than SHOWN_BYTES bytes, prints only the beginning, up
 * to the end of a word if possible. */
static void print_start(const char *text)
{
    char room[SHOWN_BYTES + 1];
    const bool truncated = strlen(vkt_printable(text, room, sizeof room)) < strlen(text);
    char *blank = truncated ? strrchr(room, ' ') : NULL;
    if (blank) *blank = 0;
    printf("%s%s\n", room, truncated ? " .." : "");
}

/* Searches the first n stories, and prints up to SHOWN of them. If `right` is true, it prints stories with a right
 * prediction, otherwise stories with a wrong one. */
static void show(const topics_data *d, uint32_t n, const float *logits, bool right, const char *title)
{
    char room[CLASS_NAME_ROOM];
    const uint32_t classes = vkt_dataset_classes(d->test);
    for (uint32_t i = 0, shown = 0; i < n && shown < SHOWN; i++) {
        const uint32_t truth = vkt_dataset_labels(d->test)[i];
        uint32_t guess;
        double probability;
        vkt_likeliest(logits + (size_t)i * classes, classes, 1, &guess, &probability);
        if ((guess == truth) != right) continue;
        if (!shown++) printf("\n%s\n", title);
        printf("  %-13s %3.0f%%  ", class_name(d->test, guess, room), 100 * probability);
        if (!right) printf("[%s] ", class_name(d->test, truth, room));
        print_start(vkt_texts_all(d->test_texts)[i]);
    }
}

static vkt_result show_predictions(vkt_trainer *t, const topics_data *d)
{
    const uint32_t rows = vkt_dataset_rows(d->test), n = rows < SEARCHED ? rows : SEARCHED;
    float *logits = malloc((size_t)n * vkt_dataset_classes(d->test) * sizeof *logits);
    const vkt_result r = logits ? vkt_trainer_predict(t, d->test, 0, n, NULL, logits) : VKT_E_NOMEM;
    if (r == VKT_OK) {
        char title[80];
        snprintf(title, sizeof title, "wrong among the first %u: guess, its probability, [topic]", n);
        show(d, n, logits, true, "correct: topic and its probability");
        show(d, n, logits, false, title);
    }
    free(logits);
    return r;
}

/* ---- the run ---- */

/* Attaches the vocabulary. Predictions with a checkpoint or weights file need the ids of the words. */
static vkt_result attach_vocabulary(vkt_trainer *t, const vkt_vocab *v)
{
    char *text;
    vkt_result r = vkt_vocab_to_text(v, &text);
    if (r != VKT_OK) return r;
    r = vkt_trainer_attach(t, "vocabulary", text);
    vkt_text_release(&text);
    return r;
}

static vkt_result run(session *s, const topics_data *d)
{
    sizes n = { vkt_vocab_size(d->vocab), vkt_dataset_classes(d->train) };
    const vkt_trainer_params p = { .model = { .name = "Reuters network", .forward = forward, .user = &n },
                                   .train = d->train,
                                   .validation = d->test };
    s->scored = d->test;
    s->scored_set = "test";
    vkt_trainer *t = NULL;
    vkt_result r = session_trainer(s, &p, &t);
    if (r == VKT_OK) r = attach_vocabulary(t, d->vocab);
    if (r == VKT_OK) r = vkt_trainer_attach_card(t, PROGRAM, NULL);
    if (r == VKT_OK) r = session_fit(s, NULL, t);
    if (r == VKT_OK && !s->o.quiet && !session_interrupted()) r = show_predictions(t, d);
    vkt_trainer_destroy(&t);
    return r;
}

/* ---- predictions ---- */

static vkt_result read_vocabulary(const session *s, vkt_vocab **out)
{
    char *text;
    *out = NULL;
    vkt_result r = vkt_read_attachment(&s->host, s->o.load, "vocabulary", &text);
    if (r != VKT_OK) return r;
    r = vkt_vocab_from_text(&s->host, s->o.load, text, out);
    vkt_text_release(&text);
    return r;
}

static vkt_result predict(session *s, bool lines)
{
    vkt_card *card;
    vkt_vocab *vocab = NULL;
    vkt_result r = predict_card(s, PROGRAM, &card);
    if (r != VKT_OK) return r;
    r = read_vocabulary(s, &vocab);
    if (r == VKT_OK) {
        sizes n = { vkt_vocab_size(vocab), card->classes };
        text_reader reader = { .vocab = vocab, .sequence = { .maxlen = card->chw[2] }, .lines = lines };
        const predict_kind kind = { .program = PROGRAM,
                                    .type = VKT_ROW_U32,
                                    .forward = forward,
                                    .model = &n,
                                    .read = text_reader_read,
                                    .reader = &reader };
        r = predict_files(s, &kind, card);
    }
    vkt_vocab_destroy(&vocab);
    vkt_card_destroy(&card);
    return r;
}

/* The options of this program. */
typedef struct reuters_options {
    bool lines;
    const train_options *train; /* the common options */
} reuters_options;

static error_t on_option(int key, char *text, struct argp_state *state)
{
    reuters_options *o = state->input;
    (void)text;
    switch (key) {
    case OPT_LINES: o->lines = true; return 0;
    case ARGP_KEY_END:
        if (o->lines && !o->train->predict) argp_error(state, "--lines: is for --predict");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        { "lines", OPT_LINES, 0, 0, "with --predict: every line of a FILE is a story", 3 }, { 0 }
    };
    static const struct argp more = { .options = options, .parser = on_option };
    reuters_options o = { .lines = false };
    const train_cli cli = {
        .doc = "Trains a convolutional network over sequences of 300 words to classify newswire stories by topic "
               "(Reuters-21578, or another set of labelled texts) on a Vulkan device.",
        .data = "folder with train.tsv and test.tsv (label<TAB>text), plain or gzip, and classes.txt, if there is one",
        .classes = true,
        .predict = "print the topic of the story in each FILE (- is standard input, a story a line), with the weights "
                   "of --load",
        .more = &more,
        .input = &o
    };
    session s = {
        .o = { .epochs = 10, .batch = 32, .optimizer = { .kind = VKT_NADAM, .keras = true }, .lr = 0.001f, .seed = 1 }
    };
    o.train = &s.o;
    session_begin(&s, &cli, argc, argv);
    if (!session_open(&s)) return session_end(&s, VKT_E_NO_DEVICE);
    if (s.o.predict) return session_end(&s, predict(&s, o.lines));
    topics_data data = { 0 };
    vkt_result r = topics_data_open(&s.host, s.o.data, LENGTH, &data);
    if (r == VKT_OK)
        session_set_data(&s, &(session_data){ data.source, data.made_up, data.train, data.test, data.test });
    if (r == VKT_OK && !s.o.quiet) printf("words   %u in the vocabulary\n", vkt_vocab_size(data.vocab));
    if (r == VKT_OK) r = run(&s, &data);
    topics_data_close(&data);
    return session_end(&s, r);
}
