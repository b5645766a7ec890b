/* common/predict_texts.c - see predict_texts.h. */
#include "common/predict_texts.h"

#include <stdlib.h>
#include <string.h>

/* Adds one sample. If the text has no word, adds no sample and returns VKT_OK. */
static vkt_result add_text(const text_reader *reader, predict_list *list, const char *text)
{
    uint32_t *row = malloc(reader->sequence.maxlen * sizeof *row), words = 0, unknown = 0;
    vkt_result r = row ? vkt_vocab_row(reader->vocab, &reader->sequence, text, row, &words, &unknown) : VKT_E_NOMEM;
    if (r != VKT_OK) r = predict_fail(list, r, "there is no memory for its words");
    if (r == VKT_OK && words)
        r = predict_add(list, row, unknown == words ? "no word of it is in the vocabulary" : NULL);
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
        free(bytes);
        return r;
    }
    for (size_t i = 0; i < n; i++)
        if (bytes[i] == '\r') bytes[i] = ' '; /* else '\r' of a line end would be a letter of the last word */
    if (!reader->lines && strcmp(path, "-") != 0) {
        r = add_text(reader, list, bytes);
    } else {
        char *rest = NULL;
        for (char *line = strtok_r(bytes, "\n", &rest); line && r == VKT_OK; line = strtok_r(NULL, "\n", &rest))
            r = add_text(reader, list, line);
    }
    free(bytes);
    return r;
}
