/* base/base.h - small functions and macros for all folders of engine/, for instance for host memory, messages and text.
 *
 * `const vkt_host *h` in the engine is a *resolved* host (vkt_host_resolve): its function pointers are not NULL. The
 * `h` of vkt_fail_null and VKT_WANT may also be NULL, or a host that is not resolved. */
#ifndef VKT_BASE_H
#define VKT_BASE_H

#include <stdarg.h>
#include <string.h>

#include "vktrain/core.h"

#define VKT_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define VKT_MIN(a, b) ((a) < (b) ? (a) : (b))
#define VKT_MAX(a, b) ((a) > (b) ? (a) : (b))

/* Evaluates `call`. If its status is not VKT_OK, the function in which the macro stands returns this status. */
#define VKT_TRY(call)                                \
    do {                                             \
        const vkt_result vkt_try_r_ = (call);        \
        if (vkt_try_r_ != VKT_OK) return vkt_try_r_; \
    } while (0)

/* Returns a copy of `host`. In the copy, alloc.resize, log and log_level have default values if they are not set in
 * `host`, or if `host` is NULL. If the environment variable VKT_DEBUG is 1 or more, the log level is VKT_LOG_DEBUG. */
vkt_host vkt_host_resolve(const vkt_host *host);

/* ---- memory: the engine allocates by these functions, so that a test can make the n-th allocation fail ---- */
void *vkt_alloc(const vkt_host *h, size_t bytes);                /* zeroed; NULL when out of memory, nothing logged */
void *vkt_alloc_array(const vkt_host *h, size_t n, size_t size); /* zeroed; NULL also when n * size overflows */
void *vkt_realloc(const vkt_host *h, void *p, size_t bytes);     /* new bytes are not zeroed */
void vkt_free(const vkt_host *h, void *p);                       /* p may be NULL */
char *vkt_strdup(const vkt_host *h, const char *s);

/* Makes room for one more element. The array *items_ptr has room for *cap elements of `size` bytes, and n elements
 * are used. If there is no memory, logs this and returns VKT_E_NOMEM. */
vkt_result vkt_grow(const vkt_host *h, void *items_ptr, size_t n, size_t *cap, size_t size);

/* ---- messages: a line is made printable (vkt_printable), so it may contain any file name ---- */
void vkt_log_line(const vkt_host *h, vkt_log_level level, const char *fmt, ...) VKT_PRINTF(3, 4);
void vkt_log_line_v(const vkt_host *h, vkt_log_level level, const char *fmt, va_list args);
/* Logs an error and returns `r`:  return vkt_fail(h, VKT_E_ARG, "batch: want 1 or more, got %u", n); */
vkt_result vkt_fail(const vkt_host *h, vkt_result r, const char *fmt, ...) VKT_PRINTF(3, 4);
/* Logs that `bytes` bytes for `what` could not be allocated. Returns VKT_E_NOMEM. */
vkt_result vkt_fail_nomem(const vkt_host *h, const char *what, size_t bytes);
/* Logs that `what`, for instance a path, needs a library that this build does not have. Returns VKT_E_UNSUPPORTED.
 * `option` is the CMake option for the library, without VKT_WITH_: vkt_fail_without(h, path, "libpng", "PNG") */
vkt_result vkt_fail_without(const vkt_host *h, const char *what, const char *library, const char *option);
/* Logs that an argument of a public function is NULL. Returns VKT_E_ARG. `h` may be NULL or not resolved. */
vkt_result vkt_fail_null(const vkt_host *h, const char *function, const char *argument);
/* If `pointer` is NULL, logs this, and the function in which the macro stands returns VKT_E_ARG. Public functions use
 * the macro in their first lines, before they allocate anything. */
#define VKT_WANT(h, pointer)                                         \
    do {                                                             \
        if (!(pointer)) return vkt_fail_null(h, __func__, #pointer); \
    } while (0)

/* ---- an allocator that counts allocations, then calls another allocator ---- */
typedef struct vkt_counting {
    vkt_allocator to; /* the allocator that is called */
    uint64_t *n;      /* number of allocations and resizes; any thread may increase it */
} vkt_counting;
/* The function `resize` of an allocator whose `user` is a vkt_counting. */
void *vkt_counting_resize(void *user, void *p, size_t bytes);

/* ---- growing text; a failed allocation sets `failed`, and later appends do nothing ---- */
typedef struct vkt_text {
    const vkt_host *h;
    char *s; /* NUL-terminated once anything was appended; NULL before */
    size_t len, cap;
    bool failed;
} vkt_text;
void vkt_text_add(vkt_text *t, const char *fmt, ...) VKT_PRINTF(2, 3);
void vkt_text_free(vkt_text *t);
/* Moves the text of t to *out, and empties t. The caller frees *out with vkt_text_release. If t's allocator is a
 * vkt_counting, the memory of *out comes directly from the allocator vkt_counting.to. So the text may outlive the
 * vkt_counting. VKT_E_NOMEM, with *out = NULL: there is no memory, or an append failed before. */
vkt_result vkt_text_detach(vkt_text *t, char **out);
/* Writes a size such as "1.21 MiB" or "312 B": IEC units, about three digits. Returns buf. */
const char *vkt_bytes_text(uint64_t bytes, char buf[24]);

/* Reads the first character of a text of n > 0 bytes. Returns the number of bytes of this character, or 0 if the bytes
 * are not UTF-8 (RFC 3629). */
size_t vkt_utf8_decode(const char *text, size_t n, uint32_t *character);

/* Returns whether `name` matches `pattern`: '*' matches any text, and every other character matches itself. */
bool vkt_name_matches(const char *pattern, const char *name);

/* ---- characters ---- */
/* The functions of this part treat only ASCII, in every locale. (The functions of ctype.h depend on the locale: in
 * Turkish, 'i' has no ASCII capital.) */
static inline bool vkt_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static inline bool vkt_is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static inline char vkt_upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}
/* Compares two texts as strcmp does, but takes upper and lower case as equal. */
static inline int vkt_compare_names(const char *a, const char *b)
{
    while (*a && vkt_upper(*a) == vkt_upper(*b)) a++, b++;
    return (unsigned char)vkt_upper(*a) - (unsigned char)vkt_upper(*b);
}

/* ---- numbers of params structs: 0 means `fallback`, VKT_ZERO means 0 ---- */
static inline double vkt_or(double x, double fallback)
{
    return x == 0 ? fallback : x == (double)VKT_ZERO ? 0 : x;
}
static inline float vkt_or_f32(float x, float fallback)
{
    return x == 0 ? fallback : x == VKT_ZERO ? 0 : x;
}

/* ---- small integer helpers ---- */
static inline uint64_t vkt_round_up(uint64_t x, uint64_t multiple)
{
    return (x + multiple - 1) / multiple * multiple;
}
static inline uint32_t vkt_div_up(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}
/* Returns the largest k with 2^k <= n; n is not 0. */
static inline uint32_t vkt_log2(uint32_t n)
{
    return 31u - (uint32_t)__builtin_clz(n);
}
static inline bool vkt_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

/* Computes FNV-1a, 64 bit (Fowler, Noll, Vo; draft-eastlake-fnv). `seed` is VKT_HASH_START, or the hash of the
 * preceding bytes. This hash is for keys, and for the identities of files and data sets. It does not protect against
 * forgery. */
#define VKT_HASH_START 0xcbf29ce484222325ull
uint64_t vkt_hash(uint64_t seed, const void *bytes, size_t n);

/* Returns the time of the monotonic clock, in ns. */
uint64_t vkt_now_ns(void);
/* Returns the CPU time of the calling thread, in ns. */
uint64_t vkt_thread_cpu_ns(void);

/* Returns the decimal integer in the environment variable `name`; `fallback` if it is not set or no integer. */
int64_t vkt_env_int(const char *name, int64_t fallback);
/* Returns the value of $VKT_DEBUG (vktrain/core.h); 0 if it is not set or no integer. */
static inline int64_t vkt_debug_level(void)
{
    return vkt_env_int("VKT_DEBUG", 0);
}
/* The vendor of this CPU, if the CPU has the parts of AVX-512 that LLVM uses for vectors of 512 bits (F, BW, DQ, VL).
 * NONE: the CPU lacks one of these parts or has another vendor, or the system does not save the registers. */
typedef enum vkt_avx512 { VKT_AVX512_NONE, VKT_AVX512_AMD, VKT_AVX512_INTEL } vkt_avx512;
vkt_avx512 vkt_cpu_avx512(void);
/* Returns whether the environment has VKT_NO_<NAME>=1. `name` is in lower case, as for vkt_ctx_disable. */
bool vkt_env_disabled(const char *name);

#endif
