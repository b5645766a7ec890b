/* base/base.c - host memory, messages, growing text, environment. */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif

const char *vkt_result_name(vkt_result r)
{
    static const char *const names[] = {
#define VKT_RESULT_NAME(name, text) #name,
        VKT_RESULTS(VKT_RESULT_NAME)
#undef VKT_RESULT_NAME
    };
    return (unsigned)r < VKT_COUNT(names) ? names[r] : "VKT_E_?";
}

const char *vkt_result_text(vkt_result r)
{
    static const char *const texts[] = {
#define VKT_RESULT_TEXT(name, text) text,
        VKT_RESULTS(VKT_RESULT_TEXT)
#undef VKT_RESULT_TEXT
    };
    return (unsigned)r < VKT_COUNT(texts) ? texts[r] : "unknown status";
}

const char *vkt_mem_class_name(vkt_mem_class c)
{
    static const char *const names[] = {
#define VKT_MEM_CLASS_NAME(name, text) text,
        VKT_MEM_CLASSES(VKT_MEM_CLASS_NAME)
#undef VKT_MEM_CLASS_NAME
    };
    return (unsigned)c < VKT_COUNT(names) ? names[c] : "?";
}

static void *default_resize(void *user, void *p, size_t bytes)
{
    (void)user;
    if (bytes == 0) {
        free(p);
        return NULL;
    }
    return realloc(p, bytes);
}

static void default_log(void *user, vkt_log_level level, const char *line)
{
    (void)user;
    static const char *const tags[] = { "", "", "error", "warning", "info", "debug" };
    fprintf(stderr, "vktrain %s: %s\n", tags[(unsigned)level < VKT_COUNT(tags) ? level : 0], line);
}

vkt_host vkt_host_resolve(const vkt_host *host)
{
    vkt_host h = host ? *host : (vkt_host){ 0 };
    if (!h.alloc.resize) h.alloc.resize = default_resize;
    if (!h.log) h.log = default_log;
    if (h.log_level == VKT_LOG_DEFAULT) h.log_level = VKT_LOG_WARN;
    if (vkt_debug_level() >= 1) h.log_level = VKT_LOG_DEBUG;
    return h;
}

void *vkt_alloc(const vkt_host *h, size_t bytes)
{
    void *p = h->alloc.resize(h->alloc.user, NULL, bytes ? bytes : 1);
    if (p) memset(p, 0, bytes);
    return p;
}

void *vkt_alloc_array(const vkt_host *h, size_t n, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? NULL : vkt_alloc(h, bytes);
}

void *vkt_realloc(const vkt_host *h, void *p, size_t bytes)
{
    return h->alloc.resize(h->alloc.user, p, bytes ? bytes : 1);
}

void vkt_free(const vkt_host *h, void *p)
{
    if (p) h->alloc.resize(h->alloc.user, p, 0);
}

char *vkt_strdup(const vkt_host *h, const char *s)
{
    const size_t n = strlen(s) + 1;
    char *copy = vkt_alloc(h, n);
    if (copy) memcpy(copy, s, n);
    return copy;
}

void *vkt_counting_resize(void *user, void *p, size_t bytes)
{
    const vkt_counting *c = user;
    if (bytes) __atomic_fetch_add(c->n, 1, __ATOMIC_RELAXED);
    return c->to.resize(c->to.user, p, bytes);
}

vkt_result vkt_grow(const vkt_host *h, void *items_ptr, size_t n, size_t *cap, size_t size)
{
    if (n < *cap) return VKT_OK;
    const size_t want = *cap ? *cap * 2 : 16;
    size_t bytes;
    if (__builtin_mul_overflow(want, size, &bytes)) return vkt_fail_nomem(h, "a list", SIZE_MAX);
    void *old;
    memcpy(&old, items_ptr, sizeof old);
    void *items = vkt_realloc(h, old, bytes);
    if (!items) return vkt_fail_nomem(h, "a list", bytes);
    memcpy(items_ptr, &items, sizeof items);
    *cap = want;
    return VKT_OK;
}

void vkt_log_line_v(const vkt_host *h, vkt_log_level level, const char *fmt, va_list args)
{
    if (level > h->log_level) return;
    char line[1024], shown[2 * sizeof line];
    vsnprintf(line, sizeof line, fmt, args);
    h->log(h->log_user, level, vkt_printable(line, shown, sizeof shown)); /* the line may contain names from any
                                                                           * source */
}

void vkt_log_line(const vkt_host *h, vkt_log_level level, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vkt_log_line_v(h, level, fmt, args);
    va_end(args);
}

vkt_result vkt_fail(const vkt_host *h, vkt_result r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vkt_log_line_v(h, VKT_LOG_ERROR, fmt, args);
    va_end(args);
    return r;
}

vkt_result vkt_fail_nomem(const vkt_host *h, const char *what, size_t bytes)
{
    return vkt_fail(h, VKT_E_NOMEM, "out of host memory: %zu bytes for %s", bytes, what);
}

vkt_result vkt_fail_without(const vkt_host *h, const char *what, const char *library, const char *option)
{
    return vkt_fail(h, VKT_E_UNSUPPORTED, "\"%s\": vktrain was built without %s (VKT_WITH_%s=OFF)", what, library,
                    option);
}

vkt_result vkt_fail_null(const vkt_host *h, const char *function, const char *argument)
{
    const vkt_host host = vkt_host_resolve(h);
    return vkt_fail(&host, VKT_E_ARG, "%s: want `%s`, got NULL", function, argument);
}

void vkt_text_add(vkt_text *t, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    const int need = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (!t->failed && need >= 0) {
        const size_t want = t->len + (size_t)need + 1;
        if (want > t->cap) {
            const size_t cap = VKT_MAX(want, t->cap * 2 + 256);
            char *s = vkt_realloc(t->h, t->s, cap);
            if (s) {
                t->s = s;
                t->cap = cap;
            } else {
                t->failed = true;
            }
        }
        if (!t->failed) {
            vsnprintf(t->s + t->len, t->cap - t->len, fmt, again);
            t->len += (size_t)need;
        }
    }
    va_end(again);
}

void vkt_text_free(vkt_text *t)
{
    vkt_free(t->h, t->s);
    t->s = NULL;
    t->len = t->cap = 0;
}

/* The allocator of a text that was returned to the caller. It is stored in front of the text, for vkt_text_release. */
typedef union text_owner {
    vkt_allocator alloc;
    max_align_t align;
} text_owner;

vkt_result vkt_text_detach(vkt_text *t, char **out)
{
    const vkt_host *h = t->h;
    const size_t bytes = sizeof(text_owner) + t->len + 1;
    vkt_host lasting = *h; /* without the context's counter: the text may be released after the context */
    while (lasting.alloc.resize == vkt_counting_resize) {
        const vkt_counting *c = lasting.alloc.user;
        lasting.alloc = c->to;
    }
    text_owner *owner = t->failed ? NULL : vkt_alloc(&lasting, bytes);
    if (owner) {
        owner->alloc = lasting.alloc;
        if (t->len) memcpy(owner + 1, t->s, t->len);
    }
    *out = owner ? (char *)(owner + 1) : NULL;
    vkt_text_free(t);
    return owner ? VKT_OK : vkt_fail_nomem(h, "a text", bytes);
}

void vkt_text_release(char **text)
{
    if (!text) return;
    if (!*text) return;
    text_owner *owner = (text_owner *)(void *)*text - 1;
    const vkt_allocator alloc = owner->alloc;
    alloc.resize(alloc.user, owner, 0);
    *text = NULL;
}

const char *vkt_bytes_text(uint64_t bytes, char buf[24])
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    double v = (double)bytes;
    size_t u = 0;
    while (v >= 1000.0 && u + 1 < VKT_COUNT(units)) {
        v /= 1024.0;
        u++;
    }
    if (u == 0)
        snprintf(buf, 24, "%u B", (unsigned)bytes);
    else
        snprintf(buf, 24, "%.*f %s", v < 10 ? 2 : v < 100 ? 1 : 0, v, units[u]);
    return buf;
}

uint64_t vkt_hash(uint64_t seed, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++) seed = (seed ^ p[i]) * 0x100000001b3ull;
    return seed;
}

int64_t vkt_env_int(const char *name, int64_t fallback)
{
    const char *s = getenv(name);
    if (!s || !*s) return fallback;
    char *end;
    const long long v = strtoll(s, &end, 10);
    return *end ? fallback : (int64_t)v;
}

#if defined(__x86_64__) && defined(__GNUC__)
/* Returns whether the CPU has the instructions of `wanted` (bits of ebx in leaf 7 of cpuid), and the system saves their
 * registers. __builtin_cpu_supports of the compiler returns the same, but has 4 KB of code. Source: Intel 64 and IA-32
 * Architectures Software Developer's Manual, volume 1, section 15.2 (detection of AVX-512). */
static bool has_avx512(unsigned wanted)
{
    enum { SAVED = 0xe6 }; /* bits of xcr0: registers of SSE, AVX and AVX-512 */
    unsigned a, b, c, d, saved, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return false;
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    return (saved & SAVED) == SAVED && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & wanted) == wanted;
}
#endif

vkt_avx512 vkt_cpu_avx512(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    unsigned a, b, c, d; /* b, d, c: the vendor's name */
    if (has_avx512(bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL) && __get_cpuid(0, &a, &b, &c, &d))
        return b == signature_AMD_ebx ? VKT_AVX512_AMD : b == signature_INTEL_ebx ? VKT_AVX512_INTEL : VKT_AVX512_NONE;
#endif
    return VKT_AVX512_NONE;
}

bool vkt_env_disabled(const char *name)
{
    char var[64] = "VKT_NO_";
    size_t n = strlen(var);
    for (; *name && n + 1 < sizeof var; name++) var[n++] = vkt_upper(*name);
    var[n] = 0;
    return vkt_env_int(var, 0) == 1;
}

bool vkt_name_matches(const char *pattern, const char *name)
{
    const char *star = NULL, *again = NULL; /* the last '*' of `pattern` so far, and the end of its match in `name` */
    while (*name) {
        if (*pattern == '*') {
            star = pattern++;
            again = name;
        } else if (*pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star + 1;
            name = ++again;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return !*pattern;
}
