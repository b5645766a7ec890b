/* common/corpus.c - see corpus.h. */
#include "common/corpus.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/message.h"
#include "common/random.h"
#include "common/read_file.h"

enum { GENERATED_BYTES = 1 << 16, ALTERNATIVES = 8, LONGEST_SENTENCE = 256, MAX_BYTES = 1 << 29 };

/* ---- sentences: a capital letter is replaced by one of its alternatives, any other character stays ---- */

static const char *const grammar['Z' - 'A' + 1][ALTERNATIVES] = {
    ['S' - 'A'] = { "N V N.", "N V N, and N V N.", "if N V N, N V N.", "who V N?" },
    ['N' - 'A'] = { "the O", "the O", "a O", "J", "the O that V J" },
    ['O' - 'A'] = { "B", "A B", "B", "A B", "A, A B" },
    ['A' - 'A'] = { "old", "green", "quiet", "small", "clever", "round" },
    ['B' - 'A'] = { "baker", "river", "cat", "lighthouse", "teacher", "garden", "engine", "moon" },
    ['V' - 'A'] = { "follows", "paints", "remembers", "hides", "answers", "needs" },
    ['J' - 'A'] = { "anna", "bruno", "clara", "david" },
};

/* Appends the text for `symbol` to `text`, which already has *n bytes. Drops bytes that do not fit. */
static void expand(char symbol, uint64_t *seed, char *text, size_t room, size_t *n)
{
    if (!isupper((unsigned char)symbol)) {
        if (*n < room) text[(*n)++] = symbol;
        return;
    }
    const char *const *choices = grammar[symbol - 'A'];
    size_t count = 0;
    while (count < ALTERNATIVES && choices[count]) count++;
    for (const char *c = choices[(size_t)(random_unit(seed) * (float)count)]; *c; c++) expand(*c, seed, text, room, n);
}

static char *make_up(size_t *n)
{
    uint64_t seed = 1;
    char *text = malloc(GENERATED_BYTES);
    *n = 0;
    while (text && *n < GENERATED_BYTES - LONGEST_SENTENCE) {
        expand('S', &seed, text, GENERATED_BYTES, n);
        text[(*n)++] = '\n';
    }
    return text;
}

/* ---- files ---- */

/* Reads a regular file, or standard input for "-". Refuses a device or a FIFO, which may never end. If the file
 * cannot be read, returns NULL, with a message on stderr. */
static char *read_text(const char *path, size_t *n)
{
    struct stat st;
    char why[READ_WHY] = "it is not a regular file";
    const bool other = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
    char *text = other ? NULL : read_file(path, MAX_BYTES, n, why);
    if (!text) complain("%s: cannot be read: %s", path, why);
    return text;
}

/* ---- characters ---- */

void corpus_put(const corpus *c, uint32_t id, FILE *to)
{
    const char *text = vkt_alphabet_character(c->alphabet, id);
    char shown[20];
    fputs(*text == '\n' || *text == '\t' ? text : vkt_printable(text, shown, sizeof shown), to);
}

/* Is the log function of the alphabet. Prints errors with the name of the text in front, and drops other messages. */
static void name_text(void *source, vkt_log_level level, const char *line)
{
    if (level == VKT_LOG_ERROR) complain("%s: %s", (const char *)source, line);
}

static bool take(corpus *c, const char *text, size_t bytes)
{
    const vkt_host host = { .log = name_text, .log_user = (void *)(size_t)c->source };
    if (vkt_alphabet_create(&host, text, bytes, &c->alphabet) != VKT_OK) return false;
    c->ids = malloc(bytes * sizeof *c->ids);
    if (c->ids && vkt_alphabet_encode(c->alphabet, text, bytes, c->ids, UINT32_MAX, &c->n) == VKT_OK) return true;
    complain("no memory for a text of %zu bytes", bytes);
    return false;
}

bool corpus_open(const char *path, corpus *c)
{
    size_t bytes;
    *c = (corpus){ .source = path ? path : "generated sentences" };
    if (!path) remark("no text is given (--data names a file): training on generated sentences");
    char *text = path ? read_text(path, &bytes) : make_up(&bytes);
    if (!text) return false;
    const bool ok = take(c, text, bytes);
    free(text);
    return ok;
}

void corpus_close(corpus *c)
{
    free(c->ids);
    vkt_alphabet_destroy(&c->alphabet);
    *c = (corpus){ .ids = NULL };
}
