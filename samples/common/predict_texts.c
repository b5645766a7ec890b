/* common/predict_texts.c - see predict_texts.h. */
#include "common/predict_texts.h"

#include <stdlib.h>
#include <string.h>

/* Adds one sample. Adds none, and returns VKT_OK, if the text has no word. `note` lists words that the vocabulary
 * lacks. */
static vkt_result add_text(const text_reader *reader, predict_list *list, const char *text)
{
    const uint32_t most = (uint32_t)(strlen(text) / 2 + 2), begin = !reader->sequence.no_start;
    uint32_t *ids = malloc((most + 1) * sizeof *ids), *row = malloc(reader->sequence.maxlen * sizeof *row), n = 0;
    vkt_result r = ids && row ? vkt_vocab_encode(reader->vocab, text, ids + begin, most, &n) : VKT_E_NOMEM;
    if (r != VKT_OK) r = predict_fail(list, r, "there is no memory for its words");
    if (r == VKT_OK && n > 0) {
        uint32_t unknown = 0;
        for (uint32_t i = 0; i < n; i++) unknown += ids[begin + i] == VKT_ID_UNKNOWN;
        ids[0] = begin ? VKT_ID_START : ids[0];
        vkt_pad_sequence(&reader->sequence, ids, n + begin, row);
        r = predict_add(list, row, unknown == n ? "no word of it is in the vocabulary" : NULL);
    }
    free(ids);
    free(row);
    return r;
}

vkt_result text_reader_read(void *user, predict_list *list, const char *path)
{
    const text_reader *reader = user;
    char *bytes;
    size_t n;
    vkt_result r = predict_bytes(list, path, &bytes, &n);
    if (r != VKT_OK) return r;
    if (n > UINT32_MAX || memchr(bytes, 0, n)) {
        r = predict_fail(list, VKT_E_FORMAT, "it is no text: there are zero bytes in it");
    } else if (!reader->lines && strcmp(path, "-") != 0) {
        r = add_text(reader, list, bytes);
    } else {
        char *rest = NULL;
        for (char *line = strtok_r(bytes, "\n", &rest); line && r == VKT_OK; line = strtok_r(NULL, "\n", &rest))
            r = add_text(reader, list, line);
    }
    free(bytes);
    return r;
}
