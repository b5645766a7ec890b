/* embed OUT.h A.spv B.spv B.texel.spv ... - writes the words of each SPIR-V module as a C array.
 *
 * A.spv becomes `static const uint32_t vkt_spv_A[]`; dots in a name become '_'. An argument "A.texel=" stands for a
 * module that does not exist: its array is one zero, so that a table can name it. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The file name of a path, as a C name, without what follows its last '.' or '='. */
static void c_name(const char *path, char name[256])
{
    const char *slash = strrchr(path, '/');
    snprintf(name, 256, "%s", slash ? slash + 1 : path);
    char *end = strrchr(name, strchr(name, '=') ? '=' : '.');
    if (end) *end = 0;
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c)) *c = '_';
}

static int embed(FILE *out, const char *path)
{
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
    fprintf(out, "static const uint32_t vkt_spv_%s[] = {", name);
    uint32_t word;
    unsigned n = 0;
    while (fread(&word, sizeof word, 1, in) == 1) fprintf(out, "%s0x%08x,", n++ % 12 ? "" : "\n", (unsigned)word);
    fputs("\n};\n", out);
    fclose(in);
    if (n < 5) fprintf(stderr, "%s: not a SPIR-V module\n", path);
    return n < 5;
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
