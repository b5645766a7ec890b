/* common/corpus.h - a text as numbers of its characters: a file's, or one made up. */
#ifndef SAMPLE_CORPUS_H
#define SAMPLE_CORPUS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct corpus {
    const char *source;   /* the path, or what was made up */
    uint32_t *ids;        /* (n), each below `size` */
    uint32_t *characters; /* (size): the Unicode number of each id, rising */
    uint32_t n, size;
} corpus;

/* Reads `path`, which must be UTF-8; NULL: makes up sentences by a small grammar, the same ones every time, and
 * says so on stderr. False, with a message on stderr, when that cannot be done. corpus_close frees *c in any case. */
bool corpus_open(const char *path, corpus *c);
void corpus_close(corpus *c);
/* The ids of a text: *n of them, at most `room`. False: it has a character that the corpus has not, or is too long. */
bool corpus_encode(const corpus *c, const char *text, uint32_t *ids, uint32_t room, uint32_t *n);
/* Writes the character of an id as UTF-8; control characters but line ends and tabs as vkt_printable has them. */
void corpus_put(const corpus *c, uint32_t id, FILE *to);

#endif
