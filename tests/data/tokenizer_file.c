/* tokenizer_file.c - see tokenizer_file.h. */
#include "data/tokenizer_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void need(int ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "tokenizer_file: %s\n", what);
    exit(1);
}

char *test_next_line(char **at)
{
    char *line = *at, *end = line ? strchr(line, '\n') : NULL;
    if (!end) return NULL;
    *end = 0;
    *at = end + 1;
    return line;
}

size_t test_unescape(char *line)
{
    char *to = line;
    for (const char *from = line; *from; from++) {
        unsigned byte = (unsigned char)*from;
        if (*from == '%') {
            need(sscanf(from + 1, "%2x", &byte) == 1, "want %XX");
            from += 2;
        }
        *to++ = (char)(unsigned char)byte;
    }
    *to = 0;
    return (size_t)(to - line);
}

char *test_read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    need(f != NULL, path);
    size_t n = 0, room = 1 << 16;
    char *text = malloc(room);
    for (size_t got; text && (got = fread(text + n, 1, room - n - 1, f)) > 0;) {
        n += got;
        if (n + 1 == room) text = realloc(text, room *= 2);
    }
    need(text && fclose(f) == 0, path);
    text[n] = 0;
    return text;
}

static uint32_t count_of(char **at, const char *word)
{
    const char *line = test_next_line(at);
    char name[16];
    unsigned n = 0;
    need(line && sscanf(line, "%15s %u", name, &n) == 2 && strcmp(name, word) == 0, word);
    return n;
}

test_vocabulary *test_vocabulary_read(const char *path)
{
    test_vocabulary *v = calloc(1, sizeof *v);
    need(v != NULL, "memory");
    char *at = v->text = test_read_file(path);
    char *line = test_next_line(&at);
    need(line && strncmp(line, "pre ", 4) == 0, "pre");
    v->params.pre = line + 4;
    line = test_next_line(&at);
    int ids[4], add_bos;
    need(line && sscanf(line, "ids %d %d %d %d %d", &ids[0], &ids[1], &ids[2], &ids[3], &add_bos) == 5, "ids");
    const uint32_t **const members[] = { &v->params.bos, &v->params.eos, &v->params.unk, &v->params.pad };
    for (int i = 0; i < 4; i++) {
        v->ids[i] = (uint32_t)ids[i];
        if (ids[i] >= 0) *members[i] = &v->ids[i];
    }
    v->params.add_bos = add_bos != 0;
    v->params.n_tokens = count_of(&at, "tokens");
    v->params.tokens = v->tokens = calloc(v->params.n_tokens, sizeof *v->tokens);
    v->params.kinds = v->kinds = calloc(v->params.n_tokens, sizeof *v->kinds);
    for (uint32_t i = 0; i < v->params.n_tokens; i++) {
        line = test_next_line(&at);
        need(line && line[0] && line[1] == ' ' && v->tokens && v->kinds, "a token");
        v->kinds[i] = line[0] - '0';
        v->tokens[i].text = line + 2;
        v->tokens[i].bytes = test_unescape(line + 2);
    }
    v->params.n_merges = count_of(&at, "merges");
    v->params.merges = v->merges = calloc(v->params.n_merges, sizeof *v->merges);
    for (uint32_t i = 0; i < v->params.n_merges; i++) {
        line = test_next_line(&at);
        need(line && v->merges, "a merge");
        v->merges[i].text = line;
        v->merges[i].bytes = test_unescape(line);
    }
    v->rest = at;
    return v;
}

void test_vocabulary_free(test_vocabulary *v)
{
    free(v->tokens);
    free(v->merges);
    free(v->kinds);
    free(v->text);
    free(v);
}
