/* base/spirv.c - see spirv.h.
 *
 * A module is a list of instructions: first capabilities, entry points and decorations, then types, constants and
 * variables, and last functions. A type is declared before its variables. So two passes are enough: the first pass
 * collects decorations, and the second pass computes the sizes of types. This file has no recursion, and the number of
 * iterations of each loop is limited. So reading ends for any input. */
#include "base/spirv.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAGIC = 0x07230203, SWAPPED_MAGIC = 0x03022307, HEADER_WORDS = 5, NEWEST = 0x00010600, MAX_IDS = 0x400000 };
enum { VERSION_WITH_INTERFACE = 0x00010400 }; /* since version 1.4, an entry point lists all its variables */
enum {
    OP_ENTRY_POINT = 15,
    OP_EXECUTION_MODE = 16,
    OP_CAPABILITY = 17,
    OP_TYPE_BOOL = 20,
    OP_TYPE_INT = 21,
    OP_TYPE_FLOAT = 22,
    OP_TYPE_VECTOR = 23,
    OP_TYPE_MATRIX = 24,
    OP_TYPE_ARRAY = 28,
    OP_TYPE_STRUCT = 30,
    OP_TYPE_POINTER = 32,
    OP_CONSTANT = 43,
    OP_CONSTANT_COMPOSITE = 44,
    OP_SPEC_CONSTANT = 50,
    OP_SPEC_CONSTANT_COMPOSITE = 51,
    OP_FUNCTION = 54,
    OP_FUNCTION_END = 56,
    OP_VARIABLE = 59,
    OP_DECORATE = 71,
    OP_MEMBER_DECORATE = 72,
    OP_EXECUTION_MODE_ID = 331
};
enum { MODEL_COMPUTE = 5, MODE_LOCAL_SIZE = 17, MODE_LOCAL_SIZE_ID = 38, BUILTIN_WORKGROUP_SIZE = 25 };
enum {
    DECORATION_BUFFER_BLOCK = 3,
    DECORATION_ARRAY_STRIDE = 6,
    DECORATION_MATRIX_STRIDE = 7,
    DECORATION_BUILTIN = 11,
    DECORATION_NON_WRITABLE = 24,
    DECORATION_NON_READABLE = 25,
    DECORATION_BINDING = 33,
    DECORATION_DESCRIPTOR_SET = 34,
    DECORATION_OFFSET = 35
};
enum {
    CLASS_UNIFORM_CONSTANT = 0,
    CLASS_UNIFORM = 2,
    CLASS_WORKGROUP = 4,
    CLASS_PUSH_CONSTANT = 9,
    CLASS_STORAGE_BUFFER = 12
};
#define WHOLE UINT32_MAX /* `member` of a decoration that is for the id itself, not for a member of a struct */

typedef struct decoration {
    uint32_t target, member, kind, value;
} decoration;

/* A type, constant or variable. */
typedef struct definition {
    uint32_t id, op;
    /* Pointer: the type to which it points. Variable: its pointer type. Constant: the low word of its value. */
    uint32_t type;
    uint32_t class;     /* storage class of a pointer or a variable */
    const uint32_t *at; /* the instruction */
    uint32_t n;         /* number of words of the instruction */
    uint64_t bytes;     /* size of a type; saturates */
} definition;

typedef struct reader {
    const vkt_host *h;
    const char *what;
    const uint32_t *words;
    size_t n;
    decoration *decorations; /* sorted by target, member, kind */
    size_t n_decorations, cap_decorations;
    definition *definitions; /* a hash table with open addressing; id 0: a free slot */
    size_t n_definitions, slots;
    uint32_t entry;            /* id of the entry point; 0: not found */
    const uint32_t *interface; /* ids of the entry point's variables; NULL: the module is older than 1.4 */
    uint32_t n_interface;
    uint32_t local_ids[3]; /* ids of the constants in LocalSizeId or in the built-in WorkgroupSize; 0: none */
    vkt_spirv out;
} reader;

const char *vkt_capability_name(vkt_capability c)
{
    static const char *const names[] = {
#define X(NAME, number, name) name,
        VKT_CAPABILITIES(X)
#undef X
    };
    return (unsigned)c < VKT_CAPABILITY_COUNT ? names[c] : "?";
}

static vkt_result malformed(const reader *r, const uint32_t *at, const char *why)
{
    return vkt_fail(r->h, VKT_E_FORMAT, "%s: not a valid SPIR-V module: word %zu: %s", r->what, (size_t)(at - r->words),
                    why);
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return vkt_mul_u64(a, b, &product) ? product : UINT64_MAX;
}

/* ---- instructions ---- */

/* Returns the smallest number of words of a valid instruction `op`, if this file reads the operands of this
 * instruction. For other instructions, the result may be smaller than that number. */
static uint32_t least_words(uint32_t op)
{
    switch (op) {
    case OP_CAPABILITY: return 2;
    case OP_EXECUTION_MODE:
    case OP_EXECUTION_MODE_ID:
    case OP_DECORATE:
    case OP_TYPE_FLOAT:
    case OP_CONSTANT_COMPOSITE:
    case OP_SPEC_CONSTANT_COMPOSITE: return 3;
    case OP_ENTRY_POINT:
    case OP_MEMBER_DECORATE:
    case OP_TYPE_INT:
    case OP_TYPE_VECTOR:
    case OP_TYPE_MATRIX:
    case OP_TYPE_ARRAY:
    case OP_TYPE_POINTER:
    case OP_CONSTANT:
    case OP_SPEC_CONSTANT:
    case OP_VARIABLE: return 4;
    default: return op >= OP_TYPE_BOOL && op <= OP_TYPE_POINTER ? 2 : 1;
    }
}

/* Calls `visit` for each instruction before the first function. Checks the word counts of all instructions, and that
 * functions have an end. */
static vkt_result for_each(reader *r, vkt_result (*visit)(reader *r, const uint32_t *at, uint32_t op, uint32_t n))
{
    bool in_functions = false, is_open = false;
    for (size_t i = HEADER_WORDS; i < r->n;) {
        const uint32_t op = r->words[i] & 0xffff, n = r->words[i] >> 16;
        if (n == 0 || n > r->n - i) return malformed(r, r->words + i, "an instruction ends behind the module");
        if (n < least_words(op)) return malformed(r, r->words + i, "an instruction is too short");
        if (op == OP_FUNCTION || op == OP_FUNCTION_END) {
            if (is_open == (op == OP_FUNCTION))
                return malformed(r, r->words + i, "functions do not begin and end in turns");
            in_functions = true;
            is_open = !is_open;
        }
        if (!in_functions) VKT_TRY(visit(r, r->words + i, op, n));
        i += n;
    }
    return is_open || !in_functions ? malformed(r, r->words + r->n, "the end of a function is missing") : VKT_OK;
}

/* Returns the number of words of a literal string, its NUL included; 0: it has no NUL within n words. */
static uint32_t string_words(const uint32_t *at, uint32_t n)
{
    const char *s = (const char *)at;
    const char *end = memchr(s, 0, (size_t)n * 4);
    return end ? (uint32_t)((end - s) / 4 + 1) : 0;
}

/* ---- first pass: capabilities, entry points, decorations ---- */

static void add_capability(vkt_spirv *out, uint32_t number)
{
    static const uint32_t numbers[] = {
#define X(NAME, number, name) number,
        VKT_CAPABILITIES(X)
#undef X
    };
    uint32_t c = 0;
    while (c < VKT_CAPABILITY_COUNT && numbers[c] != number) c++;
    if (c < VKT_CAPABILITY_COUNT)
        out->capabilities |= 1u << c;
    else if (!out->other)
        out->other = number == UINT32_MAX ? number : number + 1;
}

/* Stores the entry point in *r if it is a compute shader and has the wanted name. */
static vkt_result add_entry(reader *r, const uint32_t *at, uint32_t n, const char *wanted)
{
    const uint32_t used = string_words(at + 3, n - 3);
    if (!used) return malformed(r, at, "a name has no end");
    if (at[1] != MODEL_COMPUTE || strcmp((const char *)(at + 3), wanted) != 0) return VKT_OK;
    if (r->entry) return malformed(r, at, "two entry points have one name");
    r->entry = at[2];
    if (r->words[1] >= VERSION_WITH_INTERFACE) {
        r->interface = at + 3 + used;
        r->n_interface = n - 3 - used;
    }
    return VKT_OK;
}

static vkt_result add_decoration(reader *r, decoration d)
{
    VKT_TRY(vkt_grow(r->h, &r->decorations, r->n_decorations, &r->cap_decorations, sizeof *r->decorations));
    r->decorations[r->n_decorations++] = d;
    return VKT_OK;
}

static bool is_definition(uint32_t op)
{
    return (op >= OP_TYPE_BOOL && op <= OP_TYPE_POINTER) || (op >= OP_CONSTANT && op <= OP_CONSTANT_COMPOSITE) ||
           (op >= OP_SPEC_CONSTANT && op <= OP_SPEC_CONSTANT_COMPOSITE) || op == OP_VARIABLE;
}

static vkt_result first_visit(reader *r, const uint32_t *at, uint32_t op, uint32_t n)
{
    if (op == OP_CAPABILITY) add_capability(&r->out, at[1]);
    if (op == OP_DECORATE) return add_decoration(r, (decoration){ at[1], WHOLE, at[2], n > 3 ? at[3] : 0 });
    if (op == OP_MEMBER_DECORATE) return add_decoration(r, (decoration){ at[1], at[2], at[3], n > 4 ? at[4] : 0 });
    r->n_definitions += is_definition(op);
    return VKT_OK;
}

static int by_target(const void *a, const void *b)
{
    const decoration *x = a, *y = b;
    if (x->target != y->target) return x->target < y->target ? -1 : 1;
    if (x->member != y->member) return x->member < y->member ? -1 : 1;
    return x->kind < y->kind ? -1 : x->kind > y->kind;
}

static const decoration *decoration_of(const reader *r, uint32_t target, uint32_t member, uint32_t kind)
{
    const decoration key = { target, member, kind, 0 };
    return r->n_decorations ? bsearch(&key, r->decorations, r->n_decorations, sizeof key, by_target) : NULL;
}

/* ---- second pass: types, constants, variables ---- */

static definition *slot_of(const reader *r, uint32_t id)
{
    size_t i = (size_t)(id * 2654435761u) & (r->slots - 1);
    while (r->definitions[i].id && r->definitions[i].id != id) i = (i + 1) & (r->slots - 1);
    return &r->definitions[i];
}

/* Returns the definition of an id; NULL if the module has not defined it as a type, constant or variable so far. */
static const definition *find(const reader *r, uint32_t id)
{
    const definition *d = id ? slot_of(r, id) : NULL;
    return d && d->id ? d : NULL;
}

static bool is_number(const definition *d)
{
    return d && (d->op == OP_CONSTANT || d->op == OP_SPEC_CONSTANT);
}

static uint64_t bytes_of(const reader *r, uint32_t type)
{
    const definition *d = find(r, type);
    return d ? d->bytes : 0;
}

/* Returns the size of a struct: the end of the member that ends last. A member without an offset begins at the end of
 * the member before it. */
static uint64_t bytes_of_struct(const reader *r, const definition *d)
{
    uint64_t next = 0, most = 0;
    for (uint32_t i = 0; i + 2 < d->n; i++) {
        const definition *member = find(r, d->at[2 + i]);
        const decoration *offset = decoration_of(r, d->id, i, DECORATION_OFFSET);
        const decoration *stride = decoration_of(r, d->id, i, DECORATION_MATRIX_STRIDE);
        uint64_t bytes = member ? member->bytes : 0;
        if (stride && member && member->op == OP_TYPE_MATRIX) bytes = times(stride->value, member->at[3]);
        next = plus(offset ? offset->value : next, bytes);
        most = VKT_MAX(most, next);
    }
    return most;
}

static uint64_t bytes_of_array(const reader *r, const definition *d)
{
    const definition *length = find(r, d->at[3]);
    const decoration *stride = decoration_of(r, d->id, WHOLE, DECORATION_ARRAY_STRIDE);
    return times(stride ? stride->value : bytes_of(r, d->at[2]), is_number(length) ? length->type : 1);
}

/* Fills in type, class and bytes. Types that are not listed here have size 0. */
static void describe(const reader *r, definition *d)
{
    switch (d->op) {
    case OP_TYPE_BOOL: d->bytes = 4; break;
    case OP_TYPE_INT:
    case OP_TYPE_FLOAT: d->bytes = d->at[2] / 8; break;
    case OP_TYPE_VECTOR:
    case OP_TYPE_MATRIX: d->bytes = times(bytes_of(r, d->at[2]), d->at[3]); break;
    case OP_TYPE_ARRAY: d->bytes = bytes_of_array(r, d); break;
    case OP_TYPE_STRUCT: d->bytes = bytes_of_struct(r, d); break;
    case OP_TYPE_POINTER:
        d->class = d->at[2];
        d->type = d->at[3];
        break;
    case OP_VARIABLE:
        d->class = d->at[3];
        d->type = d->at[1];
        break;
    case OP_CONSTANT:
    case OP_SPEC_CONSTANT: d->type = d->at[3]; break;
    default: break;
    }
}

/* Returns whether the resource, or all members of its block, have the decoration. */
static bool is_decorated(const reader *r, uint32_t variable, const definition *block, uint32_t kind)
{
    bool all = block && block->op == OP_TYPE_STRUCT && block->n > 2;
    if (decoration_of(r, variable, WHOLE, kind)) return true;
    for (uint32_t i = 0; all && i + 2 < block->n; i++) all = decoration_of(r, block->id, i, kind) != NULL;
    return all;
}

static bool is_in_interface(const reader *r, uint32_t id)
{
    bool found = !r->interface;
    for (uint32_t i = 0; i < r->n_interface && !found; i++) found = r->interface[i] == id;
    return found;
}

static vkt_result add_resource(reader *r, const definition *v, const definition *block)
{
    const decoration *set = decoration_of(r, v->id, WHOLE, DECORATION_DESCRIPTOR_SET);
    const decoration *binding = decoration_of(r, v->id, WHOLE, DECORATION_BINDING);
    const bool is_struct = block && block->op == OP_TYPE_STRUCT;
    if (!binding) return malformed(r, v->at, "a resource has no binding");
    if (r->out.n_variables == VKT_SPIRV_VARIABLES)
        return vkt_fail(r->h, VKT_E_UNSUPPORTED, "%s: the shader has more than %d resources", r->what,
                        VKT_SPIRV_VARIABLES);
    const bool is_old =
        v->class == CLASS_UNIFORM && is_struct && decoration_of(r, block->id, WHOLE, DECORATION_BUFFER_BLOCK);
    r->out.variables[r->out.n_variables++] = (vkt_spirv_variable){
        .set = set ? set->value : 0,
        .binding = binding->value,
        .is_buffer = is_struct && (v->class == CLASS_STORAGE_BUFFER || is_old),
        .reads = !is_decorated(r, v->id, block, DECORATION_NON_READABLE),
        .writes = !is_decorated(r, v->id, block, DECORATION_NON_WRITABLE),
    };
    return VKT_OK;
}

static vkt_result add_variable(reader *r, const definition *v)
{
    const definition *pointer = find(r, v->type);
    if (!pointer || pointer->op != OP_TYPE_POINTER) return malformed(r, v->at, "a variable whose type is no pointer");
    const definition *type = find(r, pointer->type);
    const uint64_t bytes = type ? type->bytes : 0;
    if (!is_in_interface(r, v->id)) return VKT_OK;
    switch (v->class) {
    case CLASS_WORKGROUP: r->out.shared_bytes = plus(r->out.shared_bytes, bytes); break;
    case CLASS_PUSH_CONSTANT:
        if (bytes > UINT32_MAX) return malformed(r, v->at, "push constants of more than 4 GiB");
        r->out.push_bytes = VKT_MAX(r->out.push_bytes, (uint32_t)bytes);
        break;
    case CLASS_UNIFORM_CONSTANT:
    case CLASS_UNIFORM:
    case CLASS_STORAGE_BUFFER: return add_resource(r, v, type);
    default: break;
    }
    return VKT_OK;
}

static vkt_result second_visit(reader *r, const uint32_t *at, uint32_t op, uint32_t n)
{
    if (op == OP_EXECUTION_MODE && at[1] == r->entry && at[2] == MODE_LOCAL_SIZE) {
        if (n < 6) return malformed(r, at, "LocalSize has fewer than three numbers");
        memcpy(r->out.local, at + 3, sizeof r->out.local);
    }
    if (op == OP_EXECUTION_MODE_ID && at[1] == r->entry && at[2] == MODE_LOCAL_SIZE_ID) {
        if (n < 6) return malformed(r, at, "LocalSizeId has fewer than three numbers");
        memcpy(r->local_ids, at + 3, sizeof r->local_ids);
    }
    if (!is_definition(op)) return VKT_OK;
    const bool is_type = op <= OP_TYPE_POINTER;
    definition d = { .id = at[is_type ? 1 : 2], .op = op, .at = at, .n = n };
    if (!d.id || find(r, d.id)) return malformed(r, at, "an id is zero, or defined twice");
    describe(r, &d);
    *slot_of(r, d.id) = d;
    if (op == OP_VARIABLE) return add_variable(r, &d);
    const decoration *built_in = decoration_of(r, d.id, WHOLE, DECORATION_BUILTIN);
    if (built_in && built_in->value == BUILTIN_WORKGROUP_SIZE && n == 6 &&
        (op == OP_CONSTANT_COMPOSITE || op == OP_SPEC_CONSTANT_COMPOSITE))
        memcpy(r->local_ids, at + 3, sizeof r->local_ids);
    return VKT_OK;
}

static vkt_result find_local_size(reader *r)
{
    for (int i = 0; i < 3 && r->local_ids[0]; i++) {
        const definition *size = find(r, r->local_ids[i]);
        if (!is_number(size)) return malformed(r, r->words, "the size of a work group is no constant");
        r->out.local[i] = size->type;
    }
    for (int i = 0; i < 3; i++)
        if (!r->out.local[i]) return malformed(r, r->words, "the entry point has no size of its work group");
    return VKT_OK;
}

/* ---- the module ---- */

static vkt_result check_header(const reader *r)
{
    if (r->n < HEADER_WORDS) return malformed(r, r->words, "it is shorter than a header");
    if (r->words[0] == SWAPPED_MAGIC) return malformed(r, r->words, "its bytes are in the other order");
    if (r->words[0] != MAGIC) return malformed(r, r->words, "it does not begin with 0x07230203");
    if (r->words[3] == 0 || r->words[3] > MAX_IDS) return malformed(r, r->words + 3, "want 1 to 4194304 ids");
    if (r->words[1] > NEWEST)
        return vkt_fail(r->h, VKT_E_UNSUPPORTED, "%s: SPIR-V version %u.%u; Vulkan 1.3 has versions up to 1.6", r->what,
                        r->words[1] >> 16 & 0xff, r->words[1] >> 8 & 0xff);
    return VKT_OK;
}

static vkt_result find_entry(reader *r, const char *entry)
{
    for (size_t i = HEADER_WORDS; i < r->n; i += r->words[i] >> 16) /* for_each has checked all word counts */
        if ((r->words[i] & 0xffff) == OP_ENTRY_POINT) VKT_TRY(add_entry(r, r->words + i, r->words[i] >> 16, entry));
    if (r->entry) return VKT_OK;
    return vkt_fail(r->h, VKT_E_NOT_FOUND, "%s: the module has no compute entry point '%s'", r->what, entry);
}

static vkt_result read_all(reader *r, const char *entry)
{
    VKT_TRY(check_header(r));
    VKT_TRY(for_each(r, first_visit));
    VKT_TRY(find_entry(r, entry));
    if (r->n_decorations) qsort(r->decorations, r->n_decorations, sizeof *r->decorations, by_target);
    r->slots = 64;
    while (r->slots < 2 * (r->n_definitions + 1)) r->slots *= 2;
    r->definitions = vkt_alloc_array(r->h, r->slots, sizeof *r->definitions);
    if (!r->definitions) return vkt_fail_nomem(r->h, "a SPIR-V module", r->slots * sizeof *r->definitions);
    VKT_TRY(for_each(r, second_visit));
    return find_local_size(r);
}

vkt_result vkt_spirv_read(const vkt_host *h, const char *what, const uint32_t *words, size_t bytes, const char *entry,
                          vkt_spirv *out)
{
    reader r = { .h = h, .what = what, .words = words, .n = bytes / 4 };
    *out = (vkt_spirv){ .n_variables = 0 };
    if (bytes % 4) return malformed(&r, words, "its size is not a multiple of 4 bytes");
    const vkt_result status = read_all(&r, entry);
    if (status == VKT_OK) *out = r.out;
    vkt_free(h, r.decorations);
    vkt_free(h, r.definitions);
    return status;
}
