/* fuzz/fuzz.c - see fuzz.h. */
#define _GNU_SOURCE /* memfd_create */
#include "fuzz/fuzz.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_BYTES ((size_t)64 << 20)

static size_t live_blocks, live_bytes;
static int file = -1;

/* The header before each block of memory. */
typedef union header {
    size_t bytes;
    max_align_t align;
} header;

static void *resize(void *user, void *p, size_t bytes)
{
    (void)user;
    header *old = p ? (header *)p - 1 : NULL;
    const size_t before = old ? old->bytes : 0;
    if (bytes > MAX_BYTES || live_bytes - before > MAX_BYTES - bytes) return NULL;
    header *h = NULL;
    if (bytes > 0) {
        h = realloc(old, sizeof *h + bytes);
        if (!h) return NULL;
        h->bytes = bytes;
    } else {
        free(old);
    }
    live_blocks += (size_t)(bytes > 0) - (old != NULL);
    live_bytes += bytes - before;
    return h ? h + 1 : NULL;
}

static void log_nothing(void *user, vkt_log_level level, const char *message)
{
    (void)user, (void)level, (void)message;
}

const vkt_host *fuzz_host(void)
{
    static vkt_host h;
    if (!h.alloc.resize) h = vkt_host_resolve(&(vkt_host){ .alloc = { .resize = resize }, .log = log_nothing });
    return &h;
}

const char *fuzz_file(const uint8_t *data, size_t size)
{
    static char path[64];
    if (file >= 0) close(file);
    file = memfd_create("input", MFD_CLOEXEC);
    fuzz_require(file >= 0 && (size == 0 || write(file, data, size) == (ssize_t)size), "no memory file");
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return path;
}

void fuzz_end(void)
{
    if (file >= 0) close(file);
    file = -1;
    fuzz_require(live_blocks == 0, "memory was not freed");
}

void fuzz_require(bool ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "fuzz: %s\n", what);
    abort();
}

void fuzz_status(vkt_result r, bool has_output)
{
    fuzz_require(r == VKT_OK || r == VKT_E_FORMAT || r == VKT_E_UNSUPPORTED || r == VKT_E_NOMEM,
                 "a status that tells nothing of the input");
    fuzz_require((r == VKT_OK) == has_output, "an output behind a failure, or none");
}
