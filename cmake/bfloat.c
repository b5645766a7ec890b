/* bfloat IN.spv OUT.spv - changes the type float16 of a SPIR-V module to bfloat16 (SPV_KHR_bfloat16).
 *
 * The build runs this program for the entries of kernels.def with VKT_KF_BFLOAT. The shader compilers of most systems
 * do not support GL_EXT_bfloat16 yet. So these shaders call the elements of their cooperative matrices float16, and use
 * float16 nowhere else. In SPIR-V, one instruction declares the type float16. The program changes this instruction,
 * replaces a capability by two others, and adds an extension. It refuses a module in which anything but a type of
 * cooperative matrices uses float16.
 * source: SPIR-V specification 1.6, sections 2.3, 2.4 and 3; SPV_KHR_bfloat16 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { HEADER = 5, MAX_WORDS = 1 << 20 }; /* words */
enum {
    OP_EXTENSION = 10,
    OP_CAPABILITY = 17,
    OP_TYPE_FLOAT = 22,
    OP_TYPE_VECTOR = 23,
    OP_TYPE_STRUCT = 30,
    OP_TYPE_OPAQUE = 31,
    OP_TYPE_POINTER = 32,
    OP_TYPE_FUNCTION = 33, /* `misuses` looks for types inside the types from OP_TYPE_VECTOR to OP_TYPE_FUNCTION, but
                            * not inside OP_TYPE_OPAQUE */
    OP_TYPE_COOPERATIVE_MATRIX = 4456
};
enum { FLOAT16 = 9, BFLOAT16_TYPE = 5116, BFLOAT16_COOPERATIVE_MATRIX = 5118 }; /* capabilities */
enum { ENCODING_BFLOAT16 = 0 };

typedef struct module {
    uint32_t words[MAX_WORDS];
    size_t n;
} module;

static void put(module *m, const uint32_t *words, size_t n)
{
    for (size_t i = 0; i < n && m->n < MAX_WORDS; i++) m->words[m->n++] = words[i];
}

/* Writes an instruction of one operand. */
static void put_one(module *m, uint32_t op, uint32_t operand)
{
    put(m, (const uint32_t[]){ 2u << 16 | op, operand }, 2);
}

static void put_extension(module *m)
{
    static const char name[20] = "SPV_KHR_bfloat16"; /* 4 bytes per word; the text ends with a 0 */
    uint32_t words[1 + sizeof name / 4] = { (uint32_t)(1 + sizeof name / 4) << 16 | OP_EXTENSION };
    memcpy(words + 1, name, sizeof name);
    put(m, words, sizeof words / sizeof words[0]);
}

/* Returns whether the instruction `w` of n words uses the type `id`, which an earlier instruction has declared. A
 * cooperative matrix with elements of this type does not count. If the instruction makes a value, its first operand is
 * the type of the value. If the instruction declares a type, its first operand is the id of the new type, and later
 * operands are the types that the new type contains. Other operands are not compared, because they may be numbers that
 * equal `id` by chance. */
static int misuses(const uint32_t *w, uint32_t n, uint32_t id)
{
    const uint32_t op = w[0] & 0xffff;
    if (n > 1 && w[1] == id) return 1;
    if (op < OP_TYPE_VECTOR || op > OP_TYPE_FUNCTION || op == OP_TYPE_OPAQUE) return 0;
    const int all = op == OP_TYPE_STRUCT || op == OP_TYPE_FUNCTION; /* only these two contain several types */
    const uint32_t first = op == OP_TYPE_POINTER ? 3 : 2; /* a pointer has its storage class before its type */
    for (uint32_t i = first; i < n && (all || i == first); i++)
        if (w[i] == id) return 1;
    return 0;
}

/* Converts the module `in` to `out`. Returns NULL, or a message that says what is wrong with `in`. */
static const char *convert(const module *in, module *out)
{
    uint32_t id = 0, matrices = 0, extensions = 0, n;
    if (in->n <= HEADER || in->words[0] != 0x07230203) return "no SPIR-V module";
    put(out, in->words, HEADER);
    for (size_t at = HEADER; at < in->n; at += n) {
        const uint32_t *w = in->words + at, op = w[0] & 0xffff;
        n = w[0] >> 16;
        if (n == 0 || n > in->n - at) return "no SPIR-V module";
        if (id && misuses(w, n, id)) return "float16 is not only the type of elements of cooperative matrices";
        if (op == OP_TYPE_COOPERATIVE_MATRIX && n > 2) matrices += id && w[2] == id;
        if (op != OP_CAPABILITY && extensions++ == 0) put_extension(out); /* capabilities come first (2.4) */
        if (op == OP_CAPABILITY && w[1] == FLOAT16) {
            put_one(out, OP_CAPABILITY, BFLOAT16_TYPE);
            put_one(out, OP_CAPABILITY, BFLOAT16_COOPERATIVE_MATRIX);
        } else if (op == OP_TYPE_FLOAT && n == 3 && w[2] == 16) {
            id = w[1];
            put(out, (const uint32_t[]){ 4u << 16 | OP_TYPE_FLOAT, id, 16, ENCODING_BFLOAT16 }, 4);
        } else {
            put(out, w, n);
        }
    }
    return matrices ? out->n == MAX_WORDS ? "the module is too large" : NULL : "no cooperative matrix of float16";
}

int main(int argc, char **argv)
{
    static module in, out;
    FILE *f = argc == 3 ? fopen(argv[1], "rb") : NULL;
    if (!f) {
        perror(argc == 3 ? argv[1] : "usage: bfloat IN.spv OUT.spv");
        return 1;
    }
    in.n = fread(in.words, sizeof in.words[0], MAX_WORDS, f);
    fclose(f);
    const char *fault = convert(&in, &out);
    if (fault) {
        fprintf(stderr, "%s: %s\n", argv[1], fault);
        return 1;
    }
    f = fopen(argv[2], "wb");
    if (!f || fwrite(out.words, sizeof out.words[0], out.n, f) != out.n || fclose(f) != 0) {
        perror(argv[2]);
        return 1;
    }
    return 0;
}
