/* data/nfc.c - see nfc.h. First, each character is decomposed. Then each run of combining characters is sorted by
 * combining class. Then neighbours are composed. */
#include "data/nfc.h"

#include "data/unicode_tables.h"

/* The tables have no Hangul syllables: these are computed (the Unicode Standard, section 3.12). */
enum { S_BASE = 0xac00, L_BASE = 0x1100, V_BASE = 0x1161, T_BASE = 0x11a7, L_N = 19, V_N = 21, T_N = 28 };
enum { CHARACTER_MASK = 0x1fffff };
enum { NO_CHARACTER = 0x110000 }; /* NO_CHARACTER + b stands for a byte b that is not UTF-8 */

typedef struct element {
    uint32_t c;
    uint8_t class, mark;
} element;

typedef struct elements {
    const vkt_host *h;
    element *items;
    size_t n, cap;
} elements;

static uint8_t class_of(uint32_t c)
{
    size_t low = 0, high = VKT_COUNT(vkt_combining_classes);
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const uint64_t row = vkt_combining_classes[middle];
        if (c < row >> 32)
            high = middle;
        else if (c > (row >> 8 & 0xffffff))
            low = middle + 1;
        else
            return row & 0xff;
    }
    return 0;
}

/* Returns the element of vkt_decompositions for a character; 0: the character has no decomposition. */
static uint64_t decomposition_of(uint32_t c)
{
    size_t low = 0, high = VKT_COUNT(vkt_decompositions);
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const uint32_t at = (uint32_t)(vkt_decompositions[middle] >> 42);
        if (at == c) return vkt_decompositions[middle];
        if (at < c)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

/* ---- decomposition ---- */

static vkt_result add(elements *e, uint32_t c, uint8_t mark)
{
    VKT_TRY(vkt_grow(e->h, &e->items, e->n, &e->cap, sizeof *e->items));
    e->items[e->n++] = (element){ .c = c, .class = class_of(c), .mark = mark };
    return VKT_OK;
}

static vkt_result decompose(elements *e, uint32_t c, uint8_t mark)
{
    uint32_t later[4], n_later = 0; /* no character decomposes in more than three steps */
    if (c >= S_BASE && c < S_BASE + L_N * V_N * T_N) {
        const uint32_t s = c - S_BASE;
        VKT_TRY(add(e, L_BASE + s / (V_N * T_N), mark));
        VKT_TRY(add(e, V_BASE + s % (V_N * T_N) / T_N, mark));
        return s % T_N ? add(e, T_BASE + s % T_N, mark) : VKT_OK;
    }
    for (uint64_t entry; n_later < VKT_COUNT(later) && (entry = decomposition_of(c));) {
        const uint32_t second = (uint32_t)(entry & CHARACTER_MASK);
        if (second) later[n_later++] = second;
        c = (uint32_t)(entry >> 21 & CHARACTER_MASK);
    }
    VKT_TRY(add(e, c, mark));
    while (n_later) VKT_TRY(add(e, later[--n_later], mark));
    return VKT_OK;
}

static vkt_result decompose_text(elements *e, const char *text, const uint8_t *marks, size_t n)
{
    for (size_t at = 0, bytes; at < n; at += bytes) {
        uint32_t c;
        bytes = vkt_utf8_decode(text + at, n - at, &c);
        if (!bytes) {
            c = NO_CHARACTER + (unsigned char)text[at];
            bytes = 1;
        }
        uint8_t mark = 0;
        for (size_t i = 0; marks && i < bytes; i++) mark |= marks[at + i];
        VKT_TRY(decompose(e, c, mark));
    }
    return VKT_OK;
}

/* ---- order ---- */

/* Sorts elements by class, with a counting sort. Elements of the same class keep their order. */
static void sort_run(element *items, size_t n, element *room)
{
    size_t starts[257] = { 0 };
    for (size_t i = 0; i < n; i++) starts[items[i].class + 1]++;
    for (size_t k = 1; k < VKT_COUNT(starts); k++) starts[k] += starts[k - 1];
    for (size_t i = 0; i < n; i++) room[starts[items[i].class]++] = items[i];
    memcpy(items, room, n * sizeof *items);
}

/* Sorts each run of elements whose class is not 0. `room` has space for all elements. */
static void sort_marks(elements *e, element *room)
{
    for (size_t i = 0; i < e->n;) {
        size_t end = i;
        bool sorted = true;
        for (; end < e->n && e->items[end].class; end++)
            sorted &= end == i || e->items[end - 1].class <= e->items[end].class;
        if (!sorted) sort_run(e->items + i, end - i, room);
        i = VKT_MAX(end, i + 1);
    }
}

/* ---- composition ---- */

/* Returns the character that is composed of a and b; 0: there is none. */
static uint32_t compose(uint32_t a, uint32_t b)
{
    if (a - L_BASE < L_N && b - V_BASE < V_N) return S_BASE + ((a - L_BASE) * V_N + b - V_BASE) * T_N;
    if (a - S_BASE < L_N * V_N * T_N && (a - S_BASE) % T_N == 0 && b - T_BASE - 1 < T_N - 1) return a + b - T_BASE;
    const uint64_t pair = (uint64_t)a << 21 | b;
    size_t low = 0, high = VKT_COUNT(vkt_compositions);
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (vkt_compositions[middle] >> 21 < pair)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == VKT_COUNT(vkt_compositions) || vkt_compositions[low] >> 21 != pair) return 0;
    return (uint32_t)(vkt_compositions[low] & CHARACTER_MASK);
}

/* Composes each starter (a character of class 0) with each later character x, if a composed character exists. A
 * character between the starter and x prevents this if its class is 0, or is not below the class of x. */
static void compose_all(elements *e)
{
    size_t kept = 0, starter = SIZE_MAX;
    for (size_t i = 0; i < e->n; i++) {
        const element x = e->items[i];
        const bool next = starter != SIZE_MAX && kept == starter + 1; /* nothing is between starter and x */
        const bool reached = starter != SIZE_MAX && (next || e->items[kept - 1].class < x.class);
        const uint32_t both = reached ? compose(e->items[starter].c, x.c) : 0;
        if (both) {
            e->items[starter].c = both;
            e->items[starter].mark |= x.mark;
            continue;
        }
        if (x.class == 0) starter = kept;
        e->items[kept++] = x;
    }
    e->n = kept;
}

/* ---- output, and the public functions ---- */

static size_t write_utf8(uint32_t c, char *out)
{
    static const unsigned char first[] = { 0, 0xc0, 0xe0, 0xf0 };
    if (c >= NO_CHARACTER) {
        *out = (char)(unsigned char)(c - NO_CHARACTER);
        return 1;
    }
    const uint32_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3; /* bytes behind the first one */
    out[0] = (char)(first[more] | c >> 6 * more);
    for (uint32_t i = 1; i <= more; i++) out[i] = (char)(0x80 | (c >> 6 * (more - i) & 0x3f));
    return more + 1;
}

static vkt_result write_all(const elements *e, bool marked, vkt_marked *out)
{
    out->text = vkt_alloc_array(e->h, e->n + 1, 4);
    out->marks = marked ? vkt_alloc_array(e->h, e->n + 1, 4) : NULL;
    if (!out->text || (marked && !out->marks)) return vkt_fail_nomem(e->h, "a normalized text", 4 * e->n);
    for (size_t i = 0; i < e->n; i++) {
        const size_t bytes = write_utf8(e->items[i].c, out->text + out->n);
        if (marked) memset(out->marks + out->n, e->items[i].mark, bytes);
        out->n += bytes;
    }
    return VKT_OK;
}

bool vkt_is_nfc(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] >= 0xcc) return false; /* the first byte of U+0300 */
    return true;
}

vkt_result vkt_nfc(const vkt_host *h, const char *text, const uint8_t *marks, size_t n, vkt_marked *out)
{
    elements e = { .h = h };
    *out = (vkt_marked){ .n = 0 };
    vkt_result r = decompose_text(&e, text, marks, n);
    element *room = r == VKT_OK ? vkt_alloc_array(h, e.n + 1, sizeof *room) : NULL;
    if (r == VKT_OK && !room) r = vkt_fail_nomem(h, "a normalized text", e.n * sizeof *room);
    if (r == VKT_OK) {
        sort_marks(&e, room);
        compose_all(&e);
        r = write_all(&e, marks != NULL, out);
    }
    vkt_free(h, room);
    vkt_free(h, e.items);
    if (r != VKT_OK) {
        vkt_free(h, out->text);
        vkt_free(h, out->marks);
        *out = (vkt_marked){ .n = 0 };
    }
    return r;
}
