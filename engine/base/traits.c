/* base/traits.c - the table of traits. Sets single traits by name. */
#include "base/traits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/numbers.h"

#define COLUMN(member, value) .member = (value),
const vkt_traits vkt_class_traits[VKT_CLASS_COUNT] = {
#define VKT_TRAIT(kind, name, most, CPU, NVIDIA, AMD, INTEL, MOBILE, OTHER, what) COLUMN(name, CPU)
    [VKT_CLASS_CPU] = {
#include "base/traits.def"
    },
#undef VKT_TRAIT
#define VKT_TRAIT(kind, name, most, CPU, NVIDIA, AMD, INTEL, MOBILE, OTHER, what) COLUMN(name, NVIDIA)
    [VKT_CLASS_NVIDIA] = {
#include "base/traits.def"
    },
#undef VKT_TRAIT
#define VKT_TRAIT(kind, name, most, CPU, NVIDIA, AMD, INTEL, MOBILE, OTHER, what) COLUMN(name, AMD)
    [VKT_CLASS_AMD] = {
#include "base/traits.def"
    },
#undef VKT_TRAIT
#define VKT_TRAIT(kind, name, most, CPU, NVIDIA, AMD, INTEL, MOBILE, OTHER, what) COLUMN(name, INTEL)
    [VKT_CLASS_INTEL] = {
#include "base/traits.def"
    },
#undef VKT_TRAIT
#define VKT_TRAIT(kind, name, most, CPU, NVIDIA, AMD, INTEL, MOBILE, OTHER, what) COLUMN(name, MOBILE)
    [VKT_CLASS_MOBILE] = {
#include "base/traits.def"
    },
#undef VKT_TRAIT
#define VKT_TRAIT(kind, name, most, CPU, NVIDIA, AMD, INTEL, MOBILE, OTHER, what) COLUMN(name, OTHER)
    [VKT_CLASS_OTHER] = {
#include "base/traits.def"
    },
#undef VKT_TRAIT
};

const char *vkt_class_name(vkt_device_class c)
{
    static const char *const names[] = {
        [VKT_CLASS_CPU] = "CPU drivers", [VKT_CLASS_NVIDIA] = "NVIDIA",      [VKT_CLASS_AMD] = "AMD",
        [VKT_CLASS_INTEL] = "Intel",     [VKT_CLASS_MOBILE] = "mobile GPUs", [VKT_CLASS_OTHER] = "other GPUs"
    };
    return (unsigned)c < VKT_COUNT(names) ? names[c] : "?";
}

/* ---- traits by index ---- */

typedef enum kind { LANES, COUNT, OPTION, LOOP, ROWS, FLAG, COST } kind;

static const struct {
    const char *name, *what;
    kind kind;
    double most;
    size_t offset;
} rows[] = {
#define VKT_TRAIT(kind, name, most, CPU, NVIDIA, AMD, INTEL, MOBILE, OTHER, what) \
    { #name, what, kind, most, offsetof(vkt_traits, name) },
#include "base/traits.def"
#undef VKT_TRAIT
};
_Static_assert(VKT_COUNT(rows) == VKT_TRAIT_COUNT, "one row a trait");

const char *vkt_trait_name(uint32_t i)
{
    return rows[i].name;
}

const char *vkt_trait_what(uint32_t i)
{
    return rows[i].what;
}

double vkt_trait_value(const vkt_traits *t, uint32_t i)
{
    const char *at = (const char *)t + rows[i].offset;
    if (rows[i].kind == COST) return *(const double *)(const void *)at;
    return rows[i].kind == FLAG ? *(const bool *)(const void *)at : *(const uint32_t *)(const void *)at;
}

static void set_value(vkt_traits *t, uint32_t i, double x)
{
    char *at = (char *)t + rows[i].offset;
    if (rows[i].kind == COST)
        *(double *)(void *)at = x;
    else if (rows[i].kind == FLAG)
        *(bool *)(void *)at = x != 0;
    else
        *(uint32_t *)(void *)at = (uint32_t)x;
}

static bool is_power_of_two(double x)
{
    return ((uint64_t)x & ((uint64_t)x - 1)) == 0;
}

/* Returns true if the value x is allowed for trait i. Describes all allowed values in `want`. */
static bool is_legal(uint32_t i, double x, uint32_t most_lanes, char want[80])
{
    const kind k = rows[i].kind;
    const double most = k == LANES ? VKT_MIN(rows[i].most, most_lanes) : rows[i].most;
    const double least = k == ROWS ? 4 : k == COUNT ? 1 : k == LOOP ? 1024 : 0;
    const bool whole = x >= 0 && x <= most && x == floor(x);
    if (k == COST) {
        snprintf(want, 80, "a number above 0, at most %g", most);
        return x > 0 && x <= most;
    }
    if (k == LANES || k == ROWS) {
        snprintf(want, 80, "%sa power of two from %u to %.0f", k == LANES ? "0 (one subgroup) or " : "",
                 k == LANES ? 1 : 4, most);
        return whole && is_power_of_two(x) && (k == LANES || x >= least);
    }
    snprintf(want, 80, "%sa whole number from %.0f to %.0f", k == LOOP ? "0 (no limit) or " : "", least, most);
    return whole && (x >= least || (k == LOOP && x == 0));
}

/* ---- setting ---- */

/* Returns whether the name of trait i contains a word of `name`, a text of n bytes. A word has 3 to 31 bytes; '_', '='
 * and blanks separate words. */
static bool is_similar(uint32_t i, const char *name, size_t n)
{
    for (size_t at = 0, end; at < n; at = end + 1) {
        char word[32];
        for (end = at; end < n && !strchr("_= \t", name[end]);) end++;
        if (end - at < 3 || end - at >= sizeof word) continue;
        memcpy(word, name + at, end - at);
        word[end - at] = 0;
        if (strstr(rows[i].name, word)) return true;
    }
    return false;
}

/* Logs an unknown name. Returns VKT_E_ARG, or VKT_E_NOMEM. There are too many traits for one message, so the message
 * lists at most 20 traits with similar names. */
static vkt_result unknown(const vkt_host *h, const char *from, const char *name, size_t n)
{
    vkt_text names = { .h = h };
    uint32_t found = 0;
    for (uint32_t i = 0; i < VKT_TRAIT_COUNT; i++)
        if (is_similar(i, name, n) && found++ < 20)
            vkt_text_add(&names, "%s%s", found > 1 ? ", " : "; similar names: ", rows[i].name);
    if (found > 20) vkt_text_add(&names, ", ...");
    const vkt_result r =
        names.failed
            ? vkt_fail_nomem(h, "a message", 0)
            : vkt_fail(h, VKT_E_ARG, "%s: want name=value of a trait, got \"%.*s\"%s; vkt-info prints all traits", from,
                       (int)VKT_MIN(n, 80), name, names.s ? names.s : "");
    vkt_text_free(&names);
    return r;
}

/* Sets one trait. `item` is "name=value", n bytes without blanks around it. */
static vkt_result set_one(const vkt_host *h, const char *from, const char *item, size_t n, uint32_t most_lanes,
                          vkt_traits *t, vkt_traits_set *set)
{
    const char *equals = memchr(item, '=', n);
    size_t name = equals ? (size_t)(equals - item) : n;
    const char *value = equals ? equals + 1 : item + n, *end = item + n;
    while (name && strchr(" \t", item[name - 1])) name--;
    while (value < end && strchr(" \t", *value)) value++;
    uint32_t i = 0;
    while (i < VKT_TRAIT_COUNT && (strlen(rows[i].name) != name || memcmp(rows[i].name, item, name) != 0)) i++;
    if (i == VKT_TRAIT_COUNT) return unknown(h, from, item, n);
    char digits[32] = "", want[80], *last = digits;
    const size_t length = (size_t)(end - value);
    if (length < sizeof digits) memcpy(digits, value, length);
    const bool plain = strspn(digits, "0123456789.eE+-") == length; /* refuses "nan", "inf", "0x10" */
    const vkt_numbers locale = vkt_numbers_begin();
    const double x = plain ? strtod(digits, &last) : -1;
    vkt_numbers_end(locale);
    if (!is_legal(i, x, most_lanes, want) || last != digits + length || !length)
        return vkt_fail(h, VKT_E_ARG, "%s: want %s=N, %s; got \"%.*s\"", from, rows[i].name, want,
                        (int)VKT_MIN(length, 80), value);
    set_value(t, i, x);
    set->word[i / 64] |= (uint64_t)1 << i % 64;
    return VKT_OK;
}

vkt_result vkt_traits_parse(const vkt_host *h, const char *from, const char *text, uint32_t most_lanes, vkt_traits *t,
                            vkt_traits_set *set)
{
    vkt_traits new = *t;
    vkt_traits_set marks = { { 0 } };
    if (set) marks = *set;
    while (*text) {
        const size_t all = *text == '#' ? 0 : strcspn(text, ",\r\n#");
        size_t n = all;
        while (n && strchr(" \t", *text)) text++, n--;
        const char *item = text;
        text += n;
        while (n && strchr(" \t", item[n - 1])) n--;
        if (n) VKT_TRY(set_one(h, from, item, n, most_lanes, &new, &marks));
        if (*text == '#') text += strcspn(text, "\r\n");
        if (*text) text++;
    }
    *t = new;
    if (set) *set = marks;
    return VKT_OK;
}
