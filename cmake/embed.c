/* embed [-z] OUT.h A.spv B.spv B.texel.spv C.hex ... - writes the words of each SPIR-V module as a C array.
 * embed -x A.spv - prints the words of a module as a .hex file has them: hexadecimal numbers of 8 digits. A line that
 * begins with '#' is a comment in such a file.
 *
 * With -z a module becomes an array of bytes: a raw DEFLATE stream (RFC 1951) of its words. A module that would not
 * become smaller stays an array of words. engine/kernel/module.c reads both kinds of arrays. Each module is a stream of
 * its own, so that a program unpacks only the modules that it uses.
 *
 * Names are left out, because they are an eighth of a module and no driver needs them. Only the name of the push
 * constant block is kept, and the names of the block's members, because tests/unit/test_abi.c compares them with
 * shaders/abi/. If several modules have a push block of the same name, only the first of them keeps the names of the
 * members. (-x keeps these names in each module.)
 *
 * A.spv becomes `static const uint32_t vkt_spv_A[]`, or `static const uint8_t vkt_spv_A[]` if it is compressed. The
 * constant vkt_spv_A_bytes is the size before the compression. Dots in a name become '_'. An argument "A=" or
 * "A.texel=" means a module that does not exist. Its array is one zero, so that a table can name it. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#if EMBED_ZLIB
#define ZLIB_CONST /* next_in points to constant bytes */
#include <zlib.h>
#endif

/* Writes the file name of a path as a C name. Drops the last '=' (or the last '.', if there is no '=') and the text
 * after it. Replaces each character that is not a letter or a digit by '_'. */
static void c_name(const char *path, char name[256])
{
    const char *slash = strrchr(path, '/');
    snprintf(name, 256, "%s", slash ? slash + 1 : path);
    char *end = strrchr(name, strchr(name, '=') ? '=' : '.');
    if (end) *end = 0;
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c)) *c = '_';
}

/* Numbers from the SPIR-V specification 1.6, sections 2.3 and 3. */
enum { HEADER = 5 }; /* words */
enum { OP_SOURCE = 3, OP_SOURCE_EXTENSION = 4, OP_NAME = 5, OP_MEMBER_NAME = 6, OP_TYPE_POINTER = 32 };
enum { PUSH_CONSTANT = 9 };
/* Limits of this program: push blocks, bytes of a block's name, words of a module. */
enum { MAX_BLOCKS = 256, BLOCK_NAME = 64, MAX_WORDS = 1 << 20 };

typedef struct module {
    uint32_t words[MAX_WORDS];
    size_t n;
    uint32_t push; /* id of the push block: the type to which the first pointer to push constants points; 0: none */
    int is_second; /* an earlier module has a push block of the same name, and keeps the names of its members */
} module;

static size_t length(const module *m, size_t at)
{
    return m->words[at] >> 16;
}

/* Reads the words of a .hex file. Reads each line only up to the first text that is not a hexadecimal number. */
static void read_hex(module *m, FILE *in)
{
    char line[256];
    m->n = 0;
    while (fgets(line, sizeof line, in)) {
        unsigned word;
        int used;
        if (line[0] == '#') continue;
        for (const char *at = line; sscanf(at, "%8x%n", &word, &used) == 1 && m->n < MAX_WORDS; at += used)
            m->words[m->n++] = word;
    }
}

/* Reads a module and finds its push block. Returns 0, or 1 if the file is not a SPIR-V module or is too large. */
static int take(module *m, FILE *in, int hex)
{
    if (hex)
        read_hex(m, in);
    else
        m->n = fread(m->words, sizeof m->words[0], MAX_WORDS, in);
    m->push = 0;
    if (m->n <= HEADER || m->words[0] != 0x07230203 || !feof(in)) return 1;
    for (size_t at = HEADER; at < m->n; at += length(m, at)) {
        if (length(m, at) == 0 || length(m, at) > m->n - at) return 1;
        const uint32_t *w = m->words + at;
        if (!m->push && (w[0] & 0xffff) == OP_TYPE_POINTER && w[2] == PUSH_CONSTANT) m->push = w[3];
    }
    return 0;
}

/* Returns 1 if an earlier module had a push block of the same name, else 0. Remembers the name. */
static int is_known(const module *m)
{
    static char names[MAX_BLOCKS][BLOCK_NAME];
    static size_t n;
    for (size_t at = HEADER; at < m->n; at += length(m, at)) {
        const uint32_t *w = m->words + at;
        if ((w[0] & 0xffff) != OP_NAME || w[1] != m->push) continue;
        const char *name = (const char *)&w[2]; /* ends with a 0 (specification, 2.2.1) */
        for (size_t i = 0; i < n; i++)
            if (strncmp(names[i], name, BLOCK_NAME - 1) == 0) return 1;
        if (n < MAX_BLOCKS) snprintf(names[n++], BLOCK_NAME, "%s", name);
    }
    return 0;
}

/* Returns whether an instruction is left out, because no driver needs it: an instruction about the source, or a name.
 * (The head of this file says which names are kept.) */
static int is_comment(const module *m, size_t at)
{
    const uint32_t op = m->words[at] & 0xffff;
    if (op == OP_NAME) return m->words[at + 1] != m->push;
    if (op == OP_MEMBER_NAME) return m->is_second || m->words[at + 1] != m->push;
    return op == OP_SOURCE || op == OP_SOURCE_EXTENSION;
}

/* Removes the instructions for which is_comment returns true. */
static void strip(module *m)
{
    size_t n = HEADER;
    for (size_t at = HEADER, words; at < m->n; at += words) {
        words = length(m, at);
        if (is_comment(m, at)) continue;
        memmove(m->words + n, m->words + at, words * sizeof m->words[0]);
        n += words;
    }
    m->n = n;
}

/* Compresses the words to `out`, which has space for `max` bytes. Returns the number of compressed bytes. Returns 0 if
 * they do not fit, if zlib has no memory, or if this program has no zlib. */
static size_t deflate_words(const module *m, unsigned char *out, size_t max)
{
#if EMBED_ZLIB
    enum { RAW = -15, MOST_MEMORY = 9 }; /* RAW: no header and no checksum. MOST_MEMORY: see memLevel in zlib.h */
    z_stream z = { .next_in = (const Bytef *)m->words, .next_out = out, .avail_out = (uInt)max };
    z.avail_in = (uInt)(m->n * sizeof m->words[0]);
    if (deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, RAW, MOST_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) return 0;
    const int r = deflate(&z, Z_FINISH);
    deflateEnd(&z);
    return r == Z_STREAM_END ? z.total_out : 0;
#else
    (void)m, (void)out, (void)max;
    return 0;
#endif
}

static void put(FILE *out, const char *name, const module *m, int compress)
{
    static unsigned char bytes[sizeof m->words];
    const size_t all = m->n * sizeof m->words[0], n = compress ? deflate_words(m, bytes, all - 1) : 0;
    fprintf(out, "enum { vkt_spv_%s_bytes = %u };\n", name, (unsigned)all);
    fprintf(out, "static const %s vkt_spv_%s[] = {\n", n ? "uint8_t" : "uint32_t", name);
    for (size_t i = 0; i < n; i++) fprintf(out, "%u,", bytes[i]);
    for (size_t i = 0; i < m->n && !n; i++) fprintf(out, "0x%x,", (unsigned)m->words[i]);
    fputs("\n};\n", out);
}

/* Reads the module of a file. Returns 0. On an error, prints a message and returns 1. */
static int open_module(module *m, const char *path)
{
    const char *dot = strrchr(path, '.');
    FILE *in = fopen(path, "rb");
    if (!in) {
        perror(path);
        return 1;
    }
    const int bad = take(m, in, dot && strcmp(dot, ".hex") == 0);
    fclose(in);
    if (bad) fprintf(stderr, "%s: not a SPIR-V module\n", path);
    return bad;
}

static int embed(FILE *out, const char *path, int compress)
{
    static module m;
    char name[256];
    c_name(path, name);
    if (path[strlen(path) - 1] == '=') {
        fprintf(out, "enum { vkt_spv_%s_bytes = 0 };\nstatic const uint32_t vkt_spv_%s[] = { 0 };\n", name, name);
        return 0;
    }
    if (open_module(&m, path)) return 1;
    m.is_second = is_known(&m);
    strip(&m);
    put(out, name, &m, compress);
    return 0;
}

/* Prints a module as hexadecimal numbers, 14 in a line. */
static int print_hex(const char *path)
{
    static module m;
    if (open_module(&m, path)) return 1;
    strip(&m);
    for (size_t i = 0; i < m.n; i++) printf("%08x%c", (unsigned)m.words[i], i % 14 == 13 || i + 1 == m.n ? '\n' : ' ');
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "-x") == 0) return print_hex(argv[2]);
    const int compress = argc > 1 && strcmp(argv[1], "-z") == 0, first = 1 + compress;
#if !EMBED_ZLIB
    if (compress) {
        fputs("embed: -z: this program was built without zlib\n", stderr);
        return 1;
    }
#endif
    FILE *out = argc > first ? fopen(argv[first], "w") : NULL;
    if (!out) {
        perror(argc > first ? argv[first] : "usage: embed [-z] OUT.h A.spv ...");
        return 1;
    }
    fputs("/* Written by cmake/embed.c. */\n#include <stdint.h>\n", out);
    int bad = 0;
    for (int i = first + 1; i < argc; i++) bad |= embed(out, argv[i], compress);
    return fclose(out) != 0 || bad;
}
