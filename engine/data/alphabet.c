/* data/alphabet.c - characters and their ids (vktrain/text.h). */
#include "base/base.h"
#include "vktrain/text.h"

enum { MOST = 0x110000 };

struct vkt_alphabet {
    vkt_host host;
    uint32_t n;
    uint32_t *numbers; /* (n): Unicode code points of the characters, rising */
    char (*texts)[5];  /* (n): the same characters as UTF-8, each with a NUL */
};

/* Marks the characters of a text in a set of bits. Adds the number of different characters to *different.
 * VKT_E_FORMAT: the text is empty or not UTF-8. */
static vkt_result mark(const vkt_host *h, const char *text, size_t n, uint32_t *set, uint32_t *different)
{
    uint32_t c;
    for (size_t at = 0, bytes; at < n; at += bytes) {
        bytes = vkt_utf8_decode(text + at, n - at, &c);
        if (!bytes) return vkt_fail(h, VKT_E_FORMAT, "byte %zu is not UTF-8", at);
        *different += !(set[c / 32] >> c % 32 & 1);
        set[c / 32] |= 1u << c % 32;
    }
    return *different ? VKT_OK : vkt_fail(h, VKT_E_FORMAT, "want a text, it is empty");
}

static void to_utf8(uint32_t u, char out[5])
{
    static const unsigned char first[] = { 0, 0xc0, 0xe0, 0xf0 };
    const int more = u < 0x80 ? 0 : u < 0x800 ? 1 : u < 0x10000 ? 2 : 3; /* bytes behind the first one */
    memset(out, 0, 5);
    out[0] = (char)(first[more] | u >> 6 * more);
    for (int i = 1; i <= more; i++) out[i] = (char)(0x80 | (u >> 6 * (more - i) & 0x3f));
}

static vkt_result fill(vkt_alphabet *a, const uint32_t *set, uint32_t n)
{
    a->numbers = vkt_alloc_array(&a->host, n, sizeof *a->numbers);
    a->texts = vkt_alloc_array(&a->host, n, sizeof *a->texts);
    if (!a->numbers || !a->texts) return vkt_fail_nomem(&a->host, "an alphabet", n * sizeof *a->texts);
    for (uint32_t c = 0; c < MOST; c++)
        if (set[c / 32] >> c % 32 & 1) {
            to_utf8(c, a->texts[a->n]);
            a->numbers[a->n++] = c;
        }
    return VKT_OK;
}

vkt_result vkt_alphabet_create(const vkt_host *host, const char *text, size_t n, vkt_alphabet **out)
{
    VKT_WANT(host, out);
    *out = NULL;
    VKT_WANT(host, text);
    const vkt_host h = vkt_host_resolve(host);
    uint32_t different = 0, *set = vkt_alloc_array(&h, MOST / 32, sizeof *set);
    vkt_alphabet *a = vkt_alloc(&h, sizeof *a);
    vkt_result r = a && set ? mark(&h, text, n, set, &different) : vkt_fail_nomem(&h, "an alphabet", MOST / 8);
    if (a) a->host = h;
    if (r == VKT_OK) r = fill(a, set, different);
    vkt_free(&h, set);
    if (r == VKT_OK)
        *out = a;
    else
        vkt_alphabet_destroy(&a);
    return r;
}

void vkt_alphabet_destroy(vkt_alphabet **pa)
{
    if (!pa || !*pa) return;
    vkt_alphabet *a = *pa;
    const vkt_host h = a->host;
    vkt_free(&h, a->numbers);
    vkt_free(&h, a->texts);
    vkt_free(&h, a);
    *pa = NULL;
}

uint32_t vkt_alphabet_size(const vkt_alphabet *a)
{
    return a ? a->n : 0;
}

const char *vkt_alphabet_character(const vkt_alphabet *a, uint32_t id)
{
    return a && id < a->n ? a->texts[id] : NULL;
}

/* Returns the id of a character; a->n if the alphabet does not have it. */
static uint32_t id_of(const vkt_alphabet *a, uint32_t character)
{
    uint32_t low = 0, high = a->n;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (a->numbers[middle] < character)
            low = middle + 1;
        else
            high = middle;
    }
    return low < a->n && a->numbers[low] == character ? low : a->n;
}

vkt_result vkt_alphabet_encode(const vkt_alphabet *a, const char *text, size_t n, uint32_t *ids, uint32_t capacity,
                               uint32_t *count)
{
    if (count) *count = 0;
    VKT_WANT(NULL, a);
    VKT_WANT(&a->host, text);
    VKT_WANT(&a->host, ids);
    VKT_WANT(&a->host, count);
    uint32_t c;
    for (size_t at = 0, bytes; at < n; at += bytes, ++*count) {
        bytes = vkt_utf8_decode(text + at, n - at, &c);
        const uint32_t id = bytes ? id_of(a, c) : a->n;
        if (id == a->n || *count == UINT32_MAX) return VKT_E_FORMAT;
        if (*count < capacity) ids[*count] = id;
    }
    return VKT_OK;
}
