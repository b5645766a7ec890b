/* Compares every SPIR-V module with shaders/abi/ and with its entry in kernels.def or tools.def. Needs no device.
 *
 *   - A push block of a module must have the name of a VKT_PUSH block in shaders/abi/, and members with the same types,
 *     offsets and names. (A member without a name is accepted, because optimisers may remove names.)
 *   - The entry must name each binding that the module may read, and each binding that the module may write, because
 *     hazards and barriers follow from the entry.
 *   - The module must not need a capability that a device may lack. There are two exceptions: the capabilities of
 *     cooperative matrices (gpu/coop.c), and 64-bit integers in modules with texel loads (gpu/device.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "abi/coop.abi.h"
#include "abi/lanes.abi.h"
#include "abi/storage.abi.h"
#include "base/base.h"
#include "tools/tools.h"

/* ---- the abi headers as data: a push block's name, then its members ---- */

typedef struct item {
    const char *name;
    char kind; /* 'P' starts a push block; 'u', 'i' and 'f' are types of members */
} item;

#define VKT_PUSH(type, members) { #type, 'P' }, members
#define VKT_U32(name) { #name, 'u' },
#define VKT_I32(name) { #name, 'i' },
#define VKT_F32(name) { #name, 'f' },
static const item abi[] = {
#include "abi_includes.h" /* generated: every shaders/abi/X.abi.h */
    { NULL, 'P' },
};

/* Returns the members of a push block. They end at the next 'P'. NULL: no header has the push block. */
static const item *find_block(const item *table, const char *name)
{
    for (const item *i = table; i->name; i++)
        if (i->kind == 'P' && strcmp(i->name, name) == 0) return i + 1;
    return NULL;
}

/* ---- a small part of SPIR-V; numbers from the SPIR-V specification 1.6, section 3 ---- */

enum {
    OP_NAME = 5,
    OP_MEMBER_NAME = 6,
    OP_CAPABILITY = 17,
    OP_TYPE_INT = 21,
    OP_TYPE_FLOAT = 22,
    OP_TYPE_STRUCT = 30,
    OP_TYPE_POINTER = 32,
    OP_VARIABLE = 59,
    OP_DECORATE = 71,
    OP_MEMBER_DECORATE = 72
};
enum { SPEC_ID = 1, NON_WRITABLE = 24, NON_READABLE = 25, BINDING = 33, DESCRIPTOR_SET = 34, OFFSET = 35 };
enum { UNIFORM_CONSTANT = 0, PUSH_CONSTANT = 9, STORAGE_BUFFER = 12 };
#define NONE UINT32_MAX
#define MAX_MEMBERS 40

typedef struct thing { /* anything that has an id */
    uint32_t op;
    const uint32_t *words; /* the instruction that defines the id */
    const char *name;
    uint32_t binding, set, spec;
    bool non_writable, non_readable;
    uint32_t members; /* number of members of a struct */
    struct {
        const char *name;
        uint32_t offset;
        bool non_writable, non_readable;
    } member[MAX_MEMBERS];
} thing;

typedef struct module {
    uint32_t *words;
    thing *things;
    uint32_t bound;
    uint32_t capability; /* a needed capability that a device may lack; NONE: the module needs no such capability */
    uint32_t flags;      /* flags of the module's entry; see is_for_coop */
    bool texel;          /* has texel loads, so it runs only if shaderInt64 is enabled: gpu/device.c */
} module;

static void decorate(thing *t, const uint32_t *w)
{
    switch (w[2]) {
    case SPEC_ID: t->spec = w[3]; break;
    case BINDING: t->binding = w[3]; break;
    case DESCRIPTOR_SET: t->set = w[3]; break;
    case NON_WRITABLE: t->non_writable = true; break;
    case NON_READABLE: t->non_readable = true; break;
    default: break;
    }
}

static void decorate_member(thing *t, const uint32_t *w)
{
    if (w[2] >= MAX_MEMBERS) return;
    switch (w[3]) {
    case OFFSET: t->member[w[2]].offset = w[4]; break;
    case NON_WRITABLE: t->member[w[2]].non_writable = true; break;
    case NON_READABLE: t->member[w[2]].non_readable = true; break;
    default: break;
    }
}

/* Returns whether every device that gpu/device.c accepts has the capability. The result is true for Shader,
 * SampledBuffer, ImageBuffer, GroupNonUniform, and GroupNonUniform with the suffixes Vote, Arithmetic, Ballot and
 * Shuffle. The result is also true for StorageImageReadWithoutFormat and StorageImageWriteWithoutFormat. Vulkan 1.3
 * allows both capabilities on every device, but a device need not support them for every format. */
static bool every_device_has(uint32_t capability)
{
    return capability == 1 || capability == 46 || capability == 47 || capability == 55 || capability == 56 ||
           (capability >= 61 && capability <= 65);
}

/* Returns whether a module with these flags may need the capability for its cooperative matrices. Only a module with
 * VKT_KF_COOP has cooperative matrices. Such a module may need:
 *   in any case              VulkanMemoryModel, CooperativeMatrixKHR
 *   with VKT_KF_COOP2        StorageBuffer16BitAccess, CooperativeMatrixPerElementOperationsNV
 *   with VKT_KF_BFLOAT       BFloat16TypeKHR, BFloat16CooperativeMatrixKHR
 *   without VKT_KF_BFLOAT    Float16, RoundingModeRTE */
static bool is_for_coop(uint32_t capability, uint32_t flags)
{
    if (!(flags & VKT_KF_COOP)) return false;
    if (capability == 5345 || capability == 6022) return true;
    if (capability == 4433 || capability == 5432) return flags & VKT_KF_COOP2;
    return flags & VKT_KF_BFLOAT ? capability == 5116 || capability == 5118 : capability == 9 || capability == 4467;
}

enum { INT64 = 11 };

static void take(module *m, const uint32_t *w, uint32_t op, uint32_t n)
{
    switch (op) {
    case OP_CAPABILITY:
        if (!every_device_has(w[1]) && !is_for_coop(w[1], m->flags) && !(m->texel && w[1] == INT64))
            m->capability = w[1];
        break;
    case OP_NAME: m->things[w[1]].name = (const char *)&w[2]; break;
    case OP_MEMBER_NAME:
        if (w[2] < MAX_MEMBERS) m->things[w[1]].member[w[2]].name = (const char *)&w[3];
        break;
    case OP_DECORATE: decorate(&m->things[w[1]], w); break;
    case OP_MEMBER_DECORATE: decorate_member(&m->things[w[1]], w); break;
    case OP_TYPE_INT:
    case OP_TYPE_FLOAT:
    case OP_TYPE_STRUCT:
    case OP_TYPE_POINTER:
    case OP_VARIABLE: {
        thing *t = &m->things[op == OP_VARIABLE ? w[2] : w[1]];
        t->op = op;
        t->words = w;
        if (op == OP_TYPE_STRUCT) t->members = n - 2;
        break;
    }
    default: break;
    }
}

static module parse(const vkt_module *spv, uint32_t flags, bool texel)
{
    const vkt_host h = vkt_host_resolve(NULL);
    const size_t bytes = spv->bytes;
    uint32_t *words;
    assert_int_equal(vkt_module_unpack(&h, spv, &words), VKT_OK);
    assert_true(bytes >= 20 && words[0] == 0x07230203);
    module m = { .words = words, .bound = words[3], .capability = NONE, .flags = flags, .texel = texel };
    m.things = calloc(m.bound, sizeof *m.things);
    assert_non_null(m.things);
    for (uint32_t i = 0; i < m.bound; i++) m.things[i].binding = m.things[i].set = m.things[i].spec = NONE;
    for (size_t at = 5; at < bytes / 4; at += words[at] >> 16) {
        assert_true(words[at] >> 16 > 0 && at + (words[at] >> 16) <= bytes / 4);
        take(&m, words + at, words[at] & 0xffff, words[at] >> 16);
    }
    return m;
}

/* ---- faults of a module: `why` gets a text, or stays empty if there is no fault ---- */

#define WHY 200
typedef char reason[WHY];

static void check_push(const module *m, const thing *block, const item *table, reason why)
{
    const item *want = block->name ? find_block(table, block->name) : NULL;
    if (!want) {
        snprintf(why, WHY, "push block \"%s\" is in no abi header", block->name ? block->name : "");
        return;
    }
    uint32_t n = 0;
    while (want[n].kind != 'P') n++;
    if (n != block->members || n > MAX_MEMBERS || n * 4 > 128) {
        snprintf(why, WHY, "%s: %u members in the abi header, %u in the module", block->name, n, block->members);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        const thing *type = &m->things[block->words[2 + i]];
        const char kind = type->op == OP_TYPE_FLOAT ? 'f' : type->op != OP_TYPE_INT ? '?' : type->words[3] ? 'i' : 'u';
        const char *name = block->member[i].name;
        const bool same = kind == want[i].kind && type->words[2] == 32 && block->member[i].offset == 4 * i &&
                          (!name || strcmp(name, want[i].name) == 0); /* optimisers strip names */
        if (same) continue;
        snprintf(why, WHY, "%s, member %u: %s %c in the abi header, %s %c at offset %u in the module", block->name, i,
                 want[i].name, want[i].kind, name ? name : "", kind, block->member[i].offset);
        return;
    }
}

static void check_binding(const module *m, const thing *v, const vkt_kernel_entry *kernel, bool texel, reason why)
{
    const uint32_t storage = v->words[3], bit = v->binding < VKT_MAX_BINDINGS ? 1u << v->binding : 0;
    const thing *block = &m->things[m->things[v->words[1]].words[3]];
    bool read_only = v->non_writable, write_only = v->non_readable;
    if (storage == STORAGE_BUFFER && block->members == 1) { /* glslang decorates the member, not the variable */
        read_only |= block->member[0].non_writable;
        write_only |= block->member[0].non_readable;
    }
    const bool sampled = v->binding == 0 && (kernel->flags & (VKT_KF_SAMPLED | VKT_KF_FETCHED));
    const bool image = sampled || (v->binding == 0 && (kernel->flags & VKT_KF_IMAGE));
    read_only |= sampled;
    const char *fault = NULL;
    if (v->set != 0 || !bit || !((kernel->reads | kernel->writes) & bit))
        fault = "is not in the entry";
    else if ((storage == UNIFORM_CONSTANT) != (image || (texel && (kernel->texels & bit))))
        fault = storage == UNIFORM_CONSTANT ? "is no buffer, but the entry says so"
                                            : "is a buffer, but the entry says otherwise";
    else if (!read_only && !(kernel->writes & bit))
        fault = "may be written, but is not in writes (or not marked readonly)";
    else if (!write_only && !(kernel->reads & bit))
        fault = "may be read, but is not in reads (or not marked writeonly)";
    if (fault) snprintf(why, WHY, "binding %u %s", v->binding, fault);
}

static void check(const vkt_kernel_entry *kernel, bool texel, const item *table, reason why)
{
    const bool coop = (kernel->flags & VKT_KF_COOP) != 0;
    bool lanes = false;
    why[0] = 0;
    const module m = parse(texel ? &kernel->spv_texel : &kernel->spv, kernel->flags, texel);
    if (m.capability != NONE) snprintf(why, WHY, "capability %u, which gpu/device.c does not demand", m.capability);
    for (uint32_t i = 0; i < m.bound && !why[0]; i++) {
        const thing *t = &m.things[i];
        lanes |= t->spec == 0;
        const bool size = coop && (t->spec == COOP_SPEC_M || t->spec == COOP_SPEC_N || t->spec == COOP_SPEC_K);
        /* given: kernel/kernel.c sets the specialisation constant with this id itself, so the id may be VKT_MAX_SPECS
         * or more. */
        const bool given = size || t->spec == STORAGE_SPEC || t->spec == SUBGROUPS_SPEC;
        if (t->spec != NONE && t->spec >= VKT_MAX_SPECS && !given) snprintf(why, WHY, "specialisation id %u", t->spec);
        if (t->op != OP_VARIABLE) continue;
        if (t->words[3] == PUSH_CONSTANT) check_push(&m, &m.things[m.things[t->words[1]].words[3]], table, why);
        if (t->words[3] == UNIFORM_CONSTANT || t->words[3] == STORAGE_BUFFER) check_binding(&m, t, kernel, texel, why);
    }
    if (!lanes && !why[0]) snprintf(why, WHY, "specialisation id 0 is not the size of the work group");
    const vkt_host h = vkt_host_resolve(NULL);
    vkt_free(&h, m.words);
    free(m.things);
}

/* ---- tests ---- */

static void every_module_fits_its_entry_and_abi_header(void **state)
{
    (void)state;
    unsigned bad = 0;
    reason why;
    for (int id = VKT_K_NONE + 1; id < VKT_K_COUNT + VKT_TOOL_COUNT; id++) {
        const vkt_kernel_entry *kernel = vkt_kernel_get((vkt_kernel_id)id);
        assert_int_equal(kernel->texels & ~kernel->reads, 0); /* only bindings that are read can be texel buffers */
        for (int texel = 0; texel <= (kernel->texels != 0); texel++) {
            check(kernel, texel, abi, why);
            if (why[0]) print_error("%s%s: %s\n", kernel->name, texel ? " (texel)" : "", why);
            bad += why[0] != 0;
        }
    }
    assert_int_equal(bad, 0);
}

/* Tests check() itself. Each iteration makes one change to the table of members or to the entry of a module. check()
 * must report each change except the last one, which is harmless. */
static void every_difference_is_found(void **state)
{
    (void)state;
    static const item right[] = { { "vkt_philox_test_push", 'P' },
                                  { "n", 'u' },
                                  { "a", 'u' },
                                  { "b", 'u' },
                                  { "stream", 'u' },
                                  { "key_lo", 'u' },
                                  { "key_hi", 'u' },
                                  { NULL, 'P' } };
    const vkt_kernel_entry *kernel = vkt_kernel_get(VKT_K_PHILOX_TEST);
    reason why;
    check(kernel, false, right, why);
    assert_string_equal(why, "");
    for (int fault = 0; fault < 9; fault++) {
        item table[VKT_COUNT(right) + 1];
        vkt_kernel_entry changed = *kernel;
        memcpy(table, right, sizeof right);
        switch (fault) {
        case 0: table[2].kind = 'f'; break;
        case 1: table[2].kind = 'i'; break;
        case 2: table[1].name = "a", table[2].name = "n"; break;                         /* two members are swapped */
        case 3: table[6] = (item){ NULL, 'P' }; break;                                   /* one member less */
        case 4: table[7] = (item){ "more", 'u' }, table[8] = (item){ NULL, 'P' }; break; /* one member more */
        case 5: table[0].name = "vkt_other_push"; break;
        case 6: changed.writes = 0, changed.reads = 1; break; /* the module's writes would have no barrier */
        case 7: changed.writes = 2; break;
        default: changed.writes = 3, changed.reads = 1; break; /* harmless: the entry has more than the module uses */
        }
        check(&changed, false, table, why);
        assert_int_equal(why[0] != 0, fault != 8);
    }
    const vkt_kernel_entry *texel = vkt_kernel_get(VKT_K_SGD);
    vkt_kernel_entry changed = *texel;
    changed.texels = 1;
    check(&changed, true, abi, why);
    assert_string_equal(why, "binding 1 is no buffer, but the entry says so");
    changed.texels = 1 | 2 | 1u << 3;
    check(&changed, true, abi, why);
    assert_string_equal(why, "binding 3 is a buffer, but the entry says otherwise");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_module_fits_its_entry_and_abi_header),
        cmocka_unit_test(every_difference_is_found),
    };
    vkt_tools_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
