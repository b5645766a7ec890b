/* embed OUT.c A.spv B.texel.spv ... - writes the words of each SPIR-V module as a C array.
 *
 * A.spv becomes `const uint32_t vkt_spv_A[]` with its size in bytes in `vkt_spv_A_bytes`; dots in a name become '_'. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int embed(FILE *out, const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in) {
        perror(path);
        return 1;
    }
    const char *slash = strrchr(path, '/');
    char name[256];
    snprintf(name, sizeof name, "%s", slash ? slash + 1 : path);
    char *end = strrchr(name, '.');
    if (end) *end = 0;
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c)) *c = '_';

    fprintf(out, "extern const uint32_t vkt_spv_%s[];\nextern const size_t vkt_spv_%s_bytes;\n", name, name);
    fprintf(out, "const uint32_t vkt_spv_%s[] = {", name);
    uint32_t word;
    unsigned n = 0;
    while (fread(&word, sizeof word, 1, in) == 1) fprintf(out, "%s0x%08x,", n++ % 12 ? "" : "\n", (unsigned)word);
    fprintf(out, "\n};\nconst size_t vkt_spv_%s_bytes = sizeof vkt_spv_%s;\n", name, name);
    fclose(in);
    if (n < 5) fprintf(stderr, "%s: not a SPIR-V module\n", path);
    return n < 5;
}

int main(int argc, char **argv)
{
    FILE *out = argc > 1 ? fopen(argv[1], "w") : NULL;
    if (!out) {
        perror(argc > 1 ? argv[1] : "usage: embed OUT.c A.spv ...");
        return 1;
    }
    fputs("/* Written by cmake/embed.c from shaders/. */\n#include <stddef.h>\n#include <stdint.h>\n", out);
    int bad = 0;
    for (int i = 2; i < argc; i++) bad |= embed(out, argv[i]);
    return fclose(out) != 0 || bad;
}
