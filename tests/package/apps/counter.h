/* counter.h - an allocator that counts its blocks and bytes and has a limit. It has two interfaces:
 * vkt_allocator.resize, and the functions of VkAllocationCallbacks. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan_core.h>

/* The numbers of blocks and bytes in use, and the limit. Any thread may use a counter. */
typedef struct counter {
    atomic_llong blocks, bytes;
    long long limit_bytes;
} counter;

typedef struct header { /* is stored before each block */
    void *start;
    size_t bytes;
} header;

static inline void release(void *user, void *p)
{
    counter *c = user;
    if (!p) return;
    const header was = ((header *)p)[-1];
    atomic_fetch_sub(&c->blocks, 1);
    atomic_fetch_sub(&c->bytes, (long long)was.bytes);
    free(was.start);
}

/* Works like realloc, for any alignment that is a power of two. Returns NULL if the limit would be exceeded. The
 * arguments are those of PFN_vkReallocationFunction. */
static inline void *resize(void *user, void *old, size_t bytes, size_t align, VkSystemAllocationScope scope)
{
    counter *c = user;
    (void)scope;
    if (bytes == 0) return release(c, old), NULL;
    if (align < sizeof(header)) align = sizeof(header);
    if (atomic_fetch_add(&c->bytes, (long long)bytes) + (long long)bytes > c->limit_bytes) {
        atomic_fetch_sub(&c->bytes, (long long)bytes);
        return NULL; /* the old block stays */
    }
    char *start = malloc(bytes + sizeof(header) + align);
    if (!start) {
        atomic_fetch_sub(&c->bytes, (long long)bytes);
        return NULL;
    }
    char *p = start + sizeof(header);
    p += (align - (uintptr_t)p % align) % align;
    ((header *)p)[-1] = (header){ start, bytes };
    atomic_fetch_add(&c->blocks, 1);
    if (old) memcpy(p, old, bytes < ((header *)old)[-1].bytes ? bytes : ((header *)old)[-1].bytes);
    release(c, old);
    return p;
}

static inline void *allocate(void *user, size_t bytes, size_t align, VkSystemAllocationScope scope)
{
    return resize(user, NULL, bytes, align, scope);
}

static inline void *host_resize(void *user, void *old, size_t bytes)
{
    return resize(user, old, bytes, _Alignof(max_align_t), VK_SYSTEM_ALLOCATION_SCOPE_OBJECT);
}
