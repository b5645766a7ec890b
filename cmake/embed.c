/* embed OUT.h A.spv B.spv B.texel.spv ... - writes the words of each SPIR-V module as a C array.
 *
 * Names are left out, because they are an eighth of a module and no driver needs them. The name of the push block is
 * kept. The first module with a push block of that name also keeps the names of the block's members, because
 * tests/unit/test_abi.c compares them with shaders/abi/.
 *
 * A.spv becomes `static const uint32_t vkt_spv_A[]`; dots in a name become '_'. An argument "A=" or "A.texel=" means a
 * module that does not exist. Its array is one zero, so that a table can name it. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

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
enum { MAX_BLOCKS = 256, BLOCK_NAME = 64 };

typedef struct module {
    uint32_t words[1 << 20];
    size_t n;
    uint32_t push; /* the type id of the push block, to which the first pointer to push constants points; 0: none */
    int is_second; /* an earlier module has a push block of the same name, and keeps the names of its members */
} module;

static size_t length(const module *m, size_t at)
{
    return m->words[at] >> 16;
}

/* Reads a module and finds its push block. Returns 0, or 1 if the file is not a SPIR-V module or is too large. */
static int take(module *m, FILE *in)
{
    m->n = fread(m->words, sizeof m->words[0], sizeof m->words / sizeof m->words[0], in);
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

/* Returns whether an instruction is left out, because only readers need it: the source, and all names except those that
 * are kept. */
static int is_comment(const module *m, size_t at)
{
    const uint32_t op = m->words[at] & 0xffff;
    if (op == OP_NAME) return m->words[at + 1] != m->push;
    if (op == OP_MEMBER_NAME) return m->is_second || m->words[at + 1] != m->push;
    return op == OP_SOURCE || op == OP_SOURCE_EXTENSION;
}

static void put(FILE *out, const uint32_t *words, size_t n)
{
    for (size_t i = 0; i < n; i++) fprintf(out, "0x%x,", (unsigned)words[i]);
    fputc('\n', out);
}

static int embed(FILE *out, const char *path)
{
    static module m;
    char name[256];
    c_name(path, name);
    if (path[strlen(path) - 1] == '=') {
        fprintf(out, "static const uint32_t vkt_spv_%s[] = {0};\n", name);
        return 0;
    }
    FILE *in = fopen(path, "rb");
    if (!in) {
        perror(path);
        return 1;
    }
    const int bad = take(&m, in);
    fclose(in);
    if (bad) {
        fprintf(stderr, "%s: not a SPIR-V module\n", path);
        return 1;
    }
    m.is_second = is_known(&m);
    fprintf(out, "static const uint32_t vkt_spv_%s[] = {\n", name);
    put(out, m.words, HEADER);
    for (size_t at = HEADER; at < m.n; at += length(&m, at))
        if (!is_comment(&m, at)) put(out, m.words + at, length(&m, at));
    fputs("};\n", out);
    return 0;
}

int main(int argc, char **argv)
{
    FILE *out = argc > 1 ? fopen(argv[1], "w") : NULL;
    if (!out) {
        perror(argc > 1 ? argv[1] : "usage: embed OUT.h A.spv ...");
        return 1;
    }
    fputs("/* Written by cmake/embed.c. */\n#include <stdint.h>\n", out);
    int bad = 0;
    for (int i = 2; i < argc; i++) bad |= embed(out, argv[i]);
    return fclose(out) != 0 || bad;
}
