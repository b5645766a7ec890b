/* common/corpus.c - see corpus.h. */
#include "common/corpus.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/message.h"
#include "common/random.h"
#include "vktrain/core.h"

enum {
    GENERATED_BYTES = 1 << 16,
    ALTERNATIVES = 8,
    LONGEST_SENTENCE = 256,
    MAX_BYTES = 1 << 29,
    NO_CHARACTER = 0x110000
};

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

/* Returns the bytes of an open file, or NULL. */
static char *read_bytes(FILE *f, size_t n)
{
    char *text = malloc(n + 1);
    if (text && fread(text, 1, n, f) == n) return text;
    free(text);
    return NULL;
}

/* Reads a regular file only, because a device or a FIFO may never end. Returns NULL, with a message on stderr, if it
 * fails. */
static char *read_file(const char *path, size_t *n)
{
    struct stat st = { 0 };
    const char *why = NULL;
    char *text = NULL;
    if (stat(path, &st) != 0)
        why = strerror(errno);
    else if (!S_ISREG(st.st_mode))
        why = "it is not a regular file";
    else if (st.st_size >= MAX_BYTES)
        why = "want a text below 512 MiB";
    *n = (size_t)st.st_size;
    errno = EIO; /* for a file that ends too early */
    FILE *f = why ? NULL : fopen(path, "rb");
    if (f) text = read_bytes(f, *n);
    if (!why && !text) why = strerror(errno);
    if (f) fclose(f);
    if (why) complain("%s: cannot be read: %s", path, why);
    return text;
}

/* ---- characters (RFC 3629) ---- */

/* Returns the character at *at and moves *at behind it. Returns NO_CHARACTER if the bytes before `end` are not UTF-8.
 */
static uint32_t decode(const unsigned char **at, const unsigned char *end)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *s = *at;
    const int length = *s < 0x80 ? 1 : *s >> 5 == 6 ? 2 : *s >> 4 == 14 ? 3 : *s >> 3 == 30 ? 4 : 0;
    if (length == 0 || length > end - s) return NO_CHARACTER;
    uint32_t c = length == 1 ? *s : *s & (0x7fu >> length);
    for (int i = 1; i < length; i++) {
        if (s[i] >> 6 != 2) return NO_CHARACTER;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < least[length] || c >= NO_CHARACTER || c >> 11 == 0x1b) return NO_CHARACTER; /* 0x1b: surrogates */
    *at = s + length;
    return c;
}

void corpus_put(const corpus *c, uint32_t id, FILE *to)
{
    const uint32_t u = c->characters[id];
    const int more = u < 0x80 ? 0 : u < 0x800 ? 1 : u < 0x10000 ? 2 : 3; /* bytes behind the first one */
    static const unsigned char mark[] = { 0, 0xc0, 0xe0, 0xf0 };
    char text[5] = { (char)(mark[more] | u >> 6 * more) }, shown[20];
    for (int i = 1; i <= more; i++) text[i] = (char)(0x80 | (u >> 6 * (more - i) & 0x3f));
    fputs(u == '\n' || u == '\t' ? text : vkt_printable(text, shown, sizeof shown), to);
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Replaces each character in `ids` by its number. */
static bool number_characters(corpus *c)
{
    c->characters = malloc(((size_t)c->n + 1) * sizeof *c->characters);
    if (!c->characters) return false;
    memcpy(c->characters, c->ids, c->n * sizeof *c->ids);
    qsort(c->characters, c->n, sizeof *c->characters, by_number);
    for (uint32_t i = 0; i < c->n; i++)
        if (i == 0 || c->characters[i] != c->characters[i - 1]) c->characters[c->size++] = c->characters[i];
    for (uint32_t i = 0; i < c->n; i++) {
        const uint32_t *at = bsearch(&c->ids[i], c->characters, c->size, sizeof *c->characters, by_number);
        c->ids[i] = (uint32_t)(at - c->characters);
    }
    return true;
}

static bool take(corpus *c, const char *text, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + bytes;
    c->ids = malloc((bytes + 1) * sizeof *c->ids);
    while (c->ids && at < end) {
        const uint32_t u = decode(&at, end);
        if (u == NO_CHARACTER) {
            complain("%s: byte %zu is not UTF-8", c->source, (size_t)(at - (const unsigned char *)text));
            return false;
        }
        c->ids[c->n++] = u;
    }
    if (c->ids && number_characters(c)) return true;
    complain("no memory for a text of %zu bytes", bytes);
    return false;
}

bool corpus_open(const char *path, corpus *c)
{
    size_t bytes;
    *c = (corpus){ .source = path ? path : "generated sentences" };
    if (!path) remark("no text is given (--data names a file): training on generated sentences");
    char *text = path ? read_file(path, &bytes) : make_up(&bytes);
    if (!text) return false;
    const bool ok = take(c, text, bytes);
    free(text);
    return ok;
}

void corpus_close(corpus *c)
{
    free(c->ids);
    free(c->characters);
    *c = (corpus){ .ids = NULL };
}

bool corpus_encode(const corpus *c, const char *text, uint32_t *ids, uint32_t room, uint32_t *n)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + strlen(text);
    for (*n = 0; at < end; (*n)++) {
        const uint32_t u = decode(&at, end);
        const uint32_t *found = bsearch(&u, c->characters, c->size, sizeof u, by_number);
        if (!found || *n == room) return false;
        ids[*n] = (uint32_t)(found - c->characters);
    }
    return true;
}
