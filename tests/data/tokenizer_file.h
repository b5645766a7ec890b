/* tokenizer_file.h - reads the vocabularies that tests/golden/tokenizers_of.py writes. */
#ifndef VKT_TEST_TOKENIZER_FILE_H
#define VKT_TEST_TOKENIZER_FILE_H

#include "vktrain/tokenizer.h"

/* A vocabulary in memory. */
typedef struct test_vocabulary {
    char *text; /* the file; tokens and merges point into it */
    char *rest; /* the first byte behind the vocabulary */
    vkt_tokenizer_params params;
    vkt_gguf_string *tokens, *merges;
    int32_t *kinds;
    uint32_t ids[4];
} test_vocabulary;

/* Reads a vocabulary. Ends the program if that fails. The caller calls test_vocabulary_free. */
test_vocabulary *test_vocabulary_read(const char *path);
void test_vocabulary_free(test_vocabulary *v);
/* Reads a file, and adds a NUL. Ends the program if that fails. The caller frees the result. */
char *test_read_file(const char *path);
/* Returns the line at *at, and moves *at behind this line. Ends the line with a NUL instead of the newline. Returns
 * NULL if no newline is left. */
char *test_next_line(char **at);
/* Replaces each %XX of a line by the byte XX, and adds a NUL. Returns the number of bytes without the NUL. */
size_t test_unescape(char *line);

#endif
