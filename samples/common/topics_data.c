/* common/topics_data.c - see topics_data.h. */
#include "common/topics_data.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/find_data.h"
#include "common/message.h"

enum { MADE_TRAIN = 2400, MADE_TEST = 600 };

/* ---- a folder ---- */

/* Finds folder/name.gz or folder/name. Writes the first one that exists to `path`. */
static bool find(const char *folder, const char *name, char path[DATA_PATH])
{
    snprintf(path, DATA_PATH, "%s/%s.gz", folder, name);
    if (access(path, F_OK) == 0) return true;
    snprintf(path, DATA_PATH, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static bool is_corpus(const char *folder)
{
    char path[DATA_PATH];
    return find(folder, "train.tsv", path) && find(folder, "test.tsv", path);
}

/* Returns the parameters for the test set. They have the class names of the training set. */
static vkt_tsv_params as_in(const vkt_texts *train)
{
    return (vkt_tsv_params){ .class_names = vkt_texts_class_names(train), .classes = vkt_texts_classes(train) };
}

static vkt_result read_folder(const vkt_host *host, const char *folder, topics_data *d)
{
    char path[DATA_PATH], classes[DATA_PATH];
    const bool named = find(folder, "classes.txt", classes);
    if (!is_corpus(folder)) {
        complain("want a folder with train.tsv and test.tsv (or .tsv.gz), got '%s'", folder);
        return VKT_E_NOT_FOUND;
    }
    snprintf(d->source, sizeof d->source, "%s", folder);
    find(folder, "train.tsv", path);
    vkt_result r =
        vkt_texts_from_tsv(host, path, &(vkt_tsv_params){ .classes_path = named ? classes : NULL }, &d->train_texts);
    if (r != VKT_OK) return r;
    const vkt_tsv_params p = as_in(d->train_texts);
    find(folder, "test.tsv", path);
    return vkt_texts_from_tsv(host, path, &p, &d->test_texts);
}

/* ---- generated news ---- */

/* Returns a hash of a number. */
static uint32_t mix(uint32_t v)
{
    v *= 2654435761u;
    v ^= v >> 15;
    v *= 2246822519u;
    return v ^ v >> 13;
}

/* Prints word number n: two to four syllables. */
static void put_word(FILE *out, uint32_t n)
{
    uint32_t h = mix(n + 0x40000000u);
    for (uint32_t syllables = 2 + (h >> 30) % 3; syllables > 0; syllables--, h /= 70)
        fprintf(out, "%c%c", "bdfgklmnprstvz"[h % 14], "aeiou"[h / 14 % 5]);
}

/* Prints a line label<TAB>text of 20 to 179 words. On average, one word in five is one of the 30 words of the topic.
 * The other words are common to all topics, and words with low numbers are more frequent. */
static void put_line(FILE *out, uint32_t i)
{
    static const char *const topics[] = { "grain", "trade", "ship", "gold", "coffee", "sugar", "crude", "interest" };
    const uint32_t h = mix(i), topic = (h >> 4) % 8, words = 20 + (h >> 12) % 160;
    fprintf(out, "%s\t", topics[topic]);
    for (uint32_t k = 0; k < words; k++) {
        const uint32_t r = mix(256 * i + k + 0x50000000u);
        if (k) fputc(' ', out);
        put_word(out, r % 5 == 0 ? 30 * topic + (r >> 8) % 30 : 240 + (r >> 4) % 2000 * ((r >> 16) % 2000) / 2000);
    }
    fputs(".\n", out);
}

static vkt_result make_texts(const vkt_host *host, uint32_t first, uint32_t n, const vkt_tsv_params *p, vkt_texts **out)
{
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    for (uint32_t i = first; f && i < first + n; i++) put_line(f, i);
    const bool whole = f && fclose(f) == 0;
    const vkt_result r = whole ? vkt_texts_from_tsv_text(host, "generated news", text, p, out) : VKT_E_NOMEM;
    free(text);
    return r;
}

/* Generates texts. Prints a remark on stderr, also under --quiet, because the results say nothing about Reuters. */
static vkt_result make_up(const vkt_host *host, topics_data *d)
{
    remark("the Reuters corpus was not found: training on generated news");
    d->made_up = true;
    snprintf(d->source, sizeof d->source, "generated news");
    const vkt_result r = make_texts(host, 0, MADE_TRAIN, NULL, &d->train_texts);
    if (r != VKT_OK) return r;
    const vkt_tsv_params p = as_in(d->train_texts);
    return make_texts(host, MADE_TRAIN, MADE_TEST, &p, &d->test_texts);
}

/* ---- open and close ---- */

static vkt_result read_texts(const vkt_host *host, const char *folder, topics_data *d)
{
    if (folder) return read_folder(host, folder, d);
    char room[DATA_PATH];
    folder = find_data("reuters46-keras", is_corpus, room);
    return folder ? read_folder(host, folder, d) : make_up(host, d);
}

vkt_result topics_data_open(const vkt_host *host, const char *folder, uint32_t length, topics_data *out)
{
    const vkt_sequence_params p = { .maxlen = length };
    *out = (topics_data){ 0 };
    vkt_result r = read_texts(host, folder, out);
    if (r == VKT_OK)
        r = vkt_vocab_create(host, NULL, vkt_texts_all(out->train_texts), vkt_texts_rows(out->train_texts),
                             &out->vocab);
    if (r == VKT_OK) r = vkt_dataset_from_texts(out->train_texts, out->vocab, &p, &out->train);
    if (r == VKT_OK) r = vkt_dataset_from_texts(out->test_texts, out->vocab, &p, &out->test);
    if (r != VKT_OK) topics_data_close(out);
    return r;
}

void topics_data_close(topics_data *d)
{
    vkt_dataset_destroy(&d->train);
    vkt_dataset_destroy(&d->test);
    vkt_vocab_destroy(&d->vocab);
    vkt_texts_destroy(&d->train_texts);
    vkt_texts_destroy(&d->test_texts);
}
