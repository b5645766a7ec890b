/* support/host.c - see host.h. Each block of memory has a header before it and guard bytes behind it. The header
 * reveals most double frees and pointers of other allocators. The guard bytes reveal writes right behind the end. No
 * sanitizer is needed. */
#include "support/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define LIVE 0x6c697665u
#define FREED 0x66726565u
#define GUARD_BYTES 8

typedef struct header {
    alignas(max_align_t) size_t bytes;
    unsigned magic; /* LIVE or FREED */
    unsigned epoch; /* how often start_afresh() ran before the allocation; blocks of earlier tests are not counted */
} header;

static const unsigned char guard[GUARD_BYTES] = { 0xa5, 0x5a, 0xa5, 0x5a, 0xa5, 0x5a, 0xa5, 0x5a };

static atomic_ulong allocations;
static atomic_size_t live_blocks, live_bytes, peak_bytes;
static atomic_uint broken_blocks, messages, errors, epoch;
static atomic_uint until_failure; /* n: the n-th allocation from now on fails; 0: no failure is pending */
static atomic_bool failed, quiet;

static pthread_mutex_t text_lock = PTHREAD_MUTEX_INITIALIZER;
static char last_error[1024], ran_on[640]; /* guarded by text_lock */

/* ---- memory ---- */

static bool must_fail(void)
{
    atomic_fetch_add(&allocations, 1);
    unsigned left = atomic_load(&until_failure);
    while (left && !atomic_compare_exchange_weak(&until_failure, &left, left - 1)) continue;
    if (left == 1) atomic_store(&failed, true);
    return left == 1;
}

/* Returns the header of a live, intact block. Otherwise returns NULL and counts the fault. */
static header *checked(void *p)
{
    header *h = (header *)p - 1;
    if (h->magic == LIVE && memcmp((char *)p + h->bytes, guard, GUARD_BYTES) == 0) return h;
    fprintf(stderr, "host memory: block %p was %s\n", p,
            h->magic == LIVE ? "written past its end" : "freed before, or never allocated");
    atomic_fetch_add(&broken_blocks, 1);
    return NULL;
}

static void *count_block(header *h, size_t bytes)
{
    h->bytes = bytes;
    h->magic = LIVE;
    h->epoch = atomic_load(&epoch);
    memcpy((char *)(h + 1) + bytes, guard, GUARD_BYTES);
    atomic_fetch_add(&live_blocks, 1);
    const size_t now = atomic_fetch_add(&live_bytes, bytes) + bytes;
    size_t peak = atomic_load(&peak_bytes);
    while (now > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, now)) continue;
    return h + 1;
}

static void uncount_block(header *h)
{
    h->magic = FREED;
    if (h->epoch != atomic_load(&epoch)) return;
    atomic_fetch_sub(&live_blocks, 1);
    atomic_fetch_sub(&live_bytes, h->bytes);
}

/* Allocates, resizes or frees a block. A resize that succeeds moves the block, so that AddressSanitizer reports uses of
 * the old pointer. */
static void *counting_resize(void *user, void *p, size_t bytes)
{
    (void)user;
    header *old = p ? checked(p) : NULL;
    if (p && !old) return NULL; /* a broken block is not freed; vkt_test_is_clean() reports it */
    if (bytes == 0) {
        if (old) uncount_block(old);
        free(old);
        return NULL;
    }
    if ((!old || bytes > old->bytes) && must_fail()) return NULL;
    if (bytes > SIZE_MAX - sizeof(header) - GUARD_BYTES) return NULL;
    header *h = malloc(sizeof *h + bytes + GUARD_BYTES);
    if (!h) return NULL;
    memset(h + 1, 0xcd, bytes); /* not zero, so that missing initialisation shows */
    if (old) {
        memcpy(h + 1, p, old->bytes < bytes ? old->bytes : bytes);
        uncount_block(old);
        free(old);
    }
    return count_block(h, bytes);
}

void vkt_test_fail_allocation(unsigned n)
{
    atomic_store(&failed, false);
    atomic_store(&until_failure, n);
}

bool vkt_test_allocation_failed(void)
{
    return atomic_load(&failed);
}
unsigned long vkt_test_allocations(void)
{
    return atomic_load(&allocations);
}
size_t vkt_test_live_blocks(void)
{
    return atomic_load(&live_blocks);
}
size_t vkt_test_live_bytes(void)
{
    return atomic_load(&live_bytes);
}
size_t vkt_test_peak_bytes(void)
{
    return atomic_exchange(&peak_bytes, atomic_load(&live_bytes));
}

/* ---- messages ---- */

static void keep_line(void *user, vkt_log_level level, const char *line)
{
    (void)user;
    const bool error = level == VKT_LOG_ERROR;
    const bool validation = error && strncmp(line, "validation: ", 12) == 0;
    const bool provoked = atomic_load(&quiet) || atomic_load(&until_failure) || atomic_load(&failed);
    if (error) {
        atomic_fetch_add(validation ? &messages : &errors, 1);
        pthread_mutex_lock(&text_lock);
        snprintf(last_error, sizeof last_error, "%s", line);
        pthread_mutex_unlock(&text_lock);
    }
    if (validation || !provoked) fprintf(stderr, "vktrain%s: %s\n", error ? " error" : "", line);
}

vkt_host vkt_test_host(void)
{
    return (vkt_host){ .alloc = { .resize = counting_resize }, .log = keep_line, .log_level = VKT_LOG_WARN };
}

unsigned vkt_test_messages(void)
{
    return atomic_load(&messages);
}
unsigned vkt_test_errors(void)
{
    return atomic_load(&errors);
}
void vkt_test_expect_errors(bool expected)
{
    atomic_store(&quiet, expected);
}

const char *vkt_test_last_error(void)
{
    static _Thread_local char copy[sizeof last_error];
    pthread_mutex_lock(&text_lock);
    memcpy(copy, last_error, sizeof copy);
    pthread_mutex_unlock(&text_lock);
    return copy;
}

void vkt_test_error_contains_at(const char *part, const char *file, int line)
{
    const char *text = vkt_test_last_error();
    if (strstr(text, part)) return;
    print_error("want an error that says \"%s\"; the last one is \"%s\"\n", part, text);
    _fail(file, line);
}

void vkt_test_ran_on(const char *device, const char *driver)
{
    char now[sizeof ran_on];
    snprintf(now, sizeof now, "ran on: %s, %s", device, driver);
    pthread_mutex_lock(&text_lock);
    if (strcmp(ran_on, now) != 0) {
        memcpy(ran_on, now, sizeof now);
        puts(ran_on);
        fflush(stdout);
    }
    pthread_mutex_unlock(&text_lock);
}

/* ---- at the end of a test ---- */

static void start_afresh(void)
{
    atomic_fetch_add(&epoch, 1);
    atomic_store(&allocations, 0);
    atomic_store(&live_blocks, 0);
    atomic_store(&live_bytes, 0);
    atomic_store(&peak_bytes, 0);
    atomic_store(&broken_blocks, 0);
    atomic_store(&messages, 0);
    atomic_store(&errors, 0);
    vkt_test_fail_allocation(0);
    atomic_store(&quiet, false);
    pthread_mutex_lock(&text_lock);
    last_error[0] = 0;
    pthread_mutex_unlock(&text_lock);
}

bool vkt_test_is_clean(void)
{
    const unsigned messages_seen = atomic_load(&messages), broken = atomic_load(&broken_blocks);
    const size_t blocks = atomic_load(&live_blocks), bytes = atomic_load(&live_bytes);
    start_afresh();
    if (!messages_seen && !broken && !blocks) return true;
    print_error("%u validation messages, %zu blocks (%zu bytes) not freed, %u broken blocks\n", messages_seen, blocks,
                bytes, broken);
    return false;
}

void vkt_test_clean_at(const char *file, int line)
{
    if (!vkt_test_is_clean()) _fail(file, line);
}

int vkt_test_setup(void **state)
{
    (void)state;
    start_afresh();
    return 0;
}

int vkt_test_teardown(void **state)
{
    (void)state;
    vkt_test_no_messages_and_no_leaks();
    return 0;
}

bool vkt_test_leaves_out(size_t i, size_t n)
{
    return vkt_env_int("VKT_TEST_SEEDS", 4) < 4 && (i + (size_t)vkt_env_int("VKT_TEST_FIRST", 0)) % n != 0;
}
