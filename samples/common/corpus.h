/* common/corpus.h - converts a text to ids, one for each character. The text is a file, or is generated. */
#ifndef SAMPLE_CORPUS_H
#define SAMPLE_CORPUS_H

#include <stdio.h>

#include "vktrain/text.h"

typedef struct corpus {
    const char *source; /* the path, or a name for the generated text */
    vkt_alphabet *alphabet;
    uint32_t *ids; /* (n) the ids of the text's characters */
    uint32_t n;
} corpus;

/* Reads the file `path` ("-": standard input), which must be UTF-8. If `path` is NULL, generates sentences from a small
 * grammar, always the same sentences, and says so on stderr. Returns false, with a message on stderr, if it fails.
 * Call corpus_close also after an error. */
bool corpus_open(const char *path, corpus *c);
void corpus_close(corpus *c);
/* Writes the character of an id as UTF-8. Writes control characters, except line ends and tabs, as vkt_printable does.
 */
void corpus_put(const corpus *c, uint32_t id, FILE *to);

#endif
