/* gpu/memory.c - device memory: blocks from the driver, divided among buffers, with a hard cap.
 *
 * A block has one memory type and a list of its free ranges. The list is sorted by offset, and neighbouring ranges are
 * merged. A buffer gets the first free range that fits, over all blocks of its memory type. If no range fits, a new
 * block of a standard size is made. In two cases the new block has the buffer's size instead: the buffer is larger than
 * half of the standard size, or the cap or the driver allows no block of the standard size. The standard size is small
 * for the first blocks, so that a small program reserves little, and larger for later blocks. Blocks without buffers
 * are kept until vkt_ctx_trim, or until new memory does not fit below the cap, or until the driver has no memory for a
 * new block. */
#include "gpu/internal.h"

#define BLOCK_BYTES ((uint64_t)64 << 20)
#define HOST_BLOCK_BYTES ((uint64_t)16 << 20) /* default of block_bytes for memory that is not device-local */
#define SMALLEST_BLOCK_BYTES ((uint64_t)1 << 20)

typedef struct range {
    uint64_t offset, bytes;
} range;

typedef struct block {
    VkDeviceMemory memory; /* VK_NULL_HANDLE: an unused element of the list */
    uint32_t type;
    uint64_t bytes;
    void *mapped; /* NULL if the memory is not host-visible */
    range *holes; /* the free ranges. If the block has n buffers, the array has space for n + 2 ranges or more. So
                   * block_release, which adds a range before it merges neighbours, never allocates */
    size_t n_holes, cap_holes;
    uint32_t buffers;
} block;

struct vkt_memory {
    vkt_memory_stats stats; /* without heap_budget_bytes, which vkt_ctx_memory fills */
    VkPhysicalDeviceMemoryProperties props;
    block *blocks;
    size_t n_blocks, cap_blocks;
    uint32_t others; /* number of buffers with imported memory (shared.c) */
    bool quiet;      /* VKT_E_MEMORY_CAP and VKT_E_DEVICE_MEMORY are not logged */
};

/* ---- budget ---- */

typedef struct heap_room {
    uint64_t size, budget, usage; /* in bytes; budget 0: unknown */
} heap_room;

/* Returns size, budget and usage of the largest device-local heap, in bytes. */
static heap_room main_heap(const vkt_ctx *ctx)
{
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT
    };
    VkPhysicalDeviceMemoryProperties2 props = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
                                                .pNext = ctx->has_memory_budget ? &budget : NULL };
    ctx->vk.GetPhysicalDeviceMemoryProperties2(ctx->phys, &props);
    heap_room room = { 0 };
    for (uint32_t i = 0; i < props.memoryProperties.memoryHeapCount; i++) {
        const VkMemoryHeap *heap = &props.memoryProperties.memoryHeaps[i];
        if ((heap->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) && heap->size > room.size)
            room = (heap_room){ heap->size, budget.heapBudget[i], budget.heapUsage[i] };
    }
    return room;
}

static uint64_t default_cap(const vkt_ctx *ctx)
{
    const heap_room room = main_heap(ctx);
    const uint64_t spare = room.budget > room.usage ? room.budget - room.usage : 0;
    return (room.budget ? spare : room.size) / 5 * 4;
}

vkt_result vkt_memory_create(vkt_ctx *ctx, uint64_t cap_bytes)
{
    vkt_memory *m = ctx->memory = vkt_alloc(&ctx->host, sizeof *m);
    if (!m) return vkt_fail_nomem(&ctx->host, "the memory manager", sizeof *m);
    ctx->vk.GetPhysicalDeviceMemoryProperties(ctx->phys, &m->props);
    m->stats.cap_bytes = cap_bytes ? cap_bytes : default_cap(ctx);
    return VKT_OK;
}

/* ---- blocks ---- */

static void block_free(vkt_ctx *ctx, block *b)
{
    ctx->vk.FreeMemory(ctx->device, b->memory, ctx->allocation);
    vkt_free(&ctx->host, b->holes);
    ctx->memory->stats.reserved_bytes -= b->bytes;
    *b = (block){ 0 };
}

static void log_peaks(const vkt_ctx *ctx)
{
    const vkt_memory_stats *s = &ctx->memory->stats;
    char a[24], b[24], c[24];
    vkt_log_line(&ctx->host, VKT_LOG_DEBUG, "memory: at most %s in use and %s allocated, of a cap of %s",
                 vkt_bytes_text(s->peak_total_bytes, a), vkt_bytes_text(s->reserved_peak_bytes, b),
                 vkt_bytes_text(s->cap_bytes, c));
    for (int i = 0; i < VKT_MEM_CLASS_COUNT; i++)
        if (s->peak_bytes[i])
            vkt_log_line(&ctx->host, VKT_LOG_DEBUG, "memory: at most %s of %s", vkt_bytes_text(s->peak_bytes[i], a),
                         vkt_mem_class_name((vkt_mem_class)i));
}

void vkt_memory_destroy(vkt_ctx *ctx)
{
    vkt_memory *m = ctx->memory;
    if (!m) return;
    uint32_t left = m->others;
    log_peaks(ctx);
    for (size_t i = 0; i < m->n_blocks; i++) {
        left += m->blocks[i].buffers;
        if (m->blocks[i].memory) block_free(ctx, &m->blocks[i]);
    }
    if (left) vkt_log_line(&ctx->host, VKT_LOG_WARN, "a context was destroyed before %u of its buffers", left);
    vkt_free(&ctx->host, m->blocks);
    vkt_free(&ctx->host, m);
    ctx->memory = NULL;
}

uint64_t vkt_ctx_trim(vkt_ctx *ctx)
{
    if (!ctx || vkt_is_forked(ctx)) return 0; /* in a fork, the memory belongs to the parent process */
    vkt_memory *m = ctx->memory;
    const uint64_t before = m->stats.reserved_bytes;
    for (size_t i = 0; i < m->n_blocks; i++)
        if (m->blocks[i].memory && m->blocks[i].buffers == 0) block_free(ctx, &m->blocks[i]);
    return before - m->stats.reserved_bytes;
}

/* Returns the standard size of the next block of a memory type: the sum of the sizes of all blocks of this type, but
 * limited to a smallest and a largest size. */
static uint64_t next_block_bytes(const vkt_ctx *ctx, uint32_t type)
{
    const uint64_t allowed = ctx->limits.max_allocation_bytes / VKT_ALIGN_BYTES * VKT_ALIGN_BYTES;
    const vkt_memory *m = ctx->memory;
    const VkMemoryType *t = &m->props.memoryTypes[type];
    const bool local = (t->propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0;
    const uint64_t of_heap = vkt_round_up(m->props.memoryHeaps[t->heapIndex].size / 16, VKT_ALIGN_BYTES);
    const uint64_t most = ctx->block_bytes ? ctx->block_bytes : local ? BLOCK_BYTES : HOST_BLOCK_BYTES;
    uint64_t sum = 0;
    for (size_t i = 0; i < m->n_blocks; i++)
        if (m->blocks[i].memory && m->blocks[i].type == type) sum += m->blocks[i].bytes;
    sum = vkt_round_up(sum, SMALLEST_BLOCK_BYTES);
    return VKT_MIN(VKT_MAX(VKT_MIN(VKT_MIN(sum, most), of_heap), SMALLEST_BLOCK_BYTES), allowed);
}

/* Makes space for *bytes bytes below the cap. If they do not fit, frees the blocks without buffers. If they still do
 * not fit, reduces *bytes to `need`. Returns whether the final *bytes bytes fit. */
static bool has_room(vkt_ctx *ctx, uint64_t need, uint64_t *bytes)
{
    const vkt_memory_stats *s = &ctx->memory->stats;
    const uint64_t cap = s->cap_bytes;
    if (s->reserved_bytes + *bytes > cap) vkt_ctx_trim(ctx);
    if (s->reserved_bytes + *bytes > cap) *bytes = need;
    return s->reserved_bytes <= cap && *bytes <= cap - s->reserved_bytes;
}

/* Calls has_room. If the bytes do not fit, returns VKT_E_MEMORY_CAP, and logs this unless memory->quiet is set. */
static vkt_result fit_cap(vkt_ctx *ctx, uint64_t need, uint64_t *bytes)
{
    if (has_room(ctx, need, bytes)) return VKT_OK;
    if (ctx->memory->quiet) return VKT_E_MEMORY_CAP;
    const vkt_memory_stats *s = &ctx->memory->stats;
    char c[24], u[24], r[24], w[24];
    return vkt_fail(&ctx->host, VKT_E_MEMORY_CAP,
                    "device memory: want %s more, but %s of the cap of %s are allocated (%s in use)",
                    vkt_bytes_text(need, w), vkt_bytes_text(s->reserved_bytes, r), vkt_bytes_text(s->cap_bytes, c),
                    vkt_bytes_text(s->used_total_bytes, u));
}

/* Allocates the memory of a block, and maps the memory if it is host-visible. If there is no device memory, even
 * after all blocks without buffers are freed, logs nothing and returns VKT_E_DEVICE_MEMORY, because the caller may try
 * a smaller size. */
static vkt_result block_allocate(vkt_ctx *ctx, uint32_t type, uint64_t bytes, block *b)
{
    const VkMemoryAllocateInfo info = { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                        .allocationSize = bytes,
                                        .memoryTypeIndex = type };
    ctx->counters.device_allocs++;
    VkResult r = ctx->vk.AllocateMemory(ctx->device, &info, ctx->allocation, &b->memory);
    if (r == VK_ERROR_OUT_OF_DEVICE_MEMORY && vkt_ctx_trim(ctx) > 0) {
        ctx->counters.device_allocs++;
        r = ctx->vk.AllocateMemory(ctx->device, &info, ctx->allocation, &b->memory);
    }
    if (r != VK_SUCCESS) b->memory = VK_NULL_HANDLE;
    if (r == VK_ERROR_OUT_OF_DEVICE_MEMORY) return VKT_E_DEVICE_MEMORY;
    VKT_TRY(vkt_vk_check(ctx, r, "vkAllocateMemory"));
    b->type = type;
    b->bytes = bytes;
    if (!(ctx->memory->props.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)) return VKT_OK;
    r = ctx->vk.MapMemory(ctx->device, b->memory, 0, VK_WHOLE_SIZE, 0, &b->mapped);
    if (r != VK_SUCCESS) {
        ctx->vk.FreeMemory(ctx->device, b->memory, ctx->allocation);
        b->memory = VK_NULL_HANDLE;
    }
    return vkt_vk_check(ctx, r, "vkMapMemory");
}

static void hold(vkt_memory_stats *s, uint64_t bytes)
{
    s->reserved_bytes += bytes;
    s->reserved_peak_bytes = VKT_MAX(s->reserved_peak_bytes, s->reserved_bytes);
}

/* Creates a block with space for `need` bytes. *index gets its index in the list of blocks. */
static vkt_result block_create(vkt_ctx *ctx, uint32_t type, uint64_t need, size_t *index)
{
    vkt_memory *m = ctx->memory;
    const uint64_t standard = next_block_bytes(ctx, type);
    uint64_t bytes = need > standard / 2 ? need : standard;
    VKT_TRY(fit_cap(ctx, need, &bytes));

    size_t i = 0;
    while (i < m->n_blocks && m->blocks[i].memory) i++;
    if (i == m->n_blocks) {
        VKT_TRY(vkt_grow(&ctx->host, &m->blocks, m->n_blocks, &m->cap_blocks, sizeof *m->blocks));
        m->blocks[m->n_blocks++] = (block){ 0 };
    }
    block b = { 0 };
    VKT_TRY(vkt_grow(&ctx->host, &b.holes, 0, &b.cap_holes, sizeof *b.holes));
    vkt_result r = block_allocate(ctx, type, bytes, &b);
    if (r == VKT_E_DEVICE_MEMORY && bytes > need) r = block_allocate(ctx, type, need, &b);
    if (r != VKT_OK) {
        vkt_free(&ctx->host, b.holes);
        return r;
    }
    b.holes[0] = (range){ 0, b.bytes };
    b.n_holes = 1;
    m->blocks[i] = b;
    hold(&m->stats, b.bytes);
    vkt_name(ctx, VK_OBJECT_TYPE_DEVICE_MEMORY, (uint64_t)b.memory, "block");
    *index = i;
    return VKT_OK;
}

/* Reserves `bytes` bytes in the first hole (free range) that fits; *offset is their start. Returns false if no hole is
 * large enough. *offset and `bytes` are multiples of `align`. */
static bool block_reserve(block *b, uint64_t bytes, uint64_t align, uint64_t *offset)
{
    for (size_t i = 0; i < b->n_holes; i++) {
        range *hole = &b->holes[i];
        const uint64_t start = vkt_round_up(hole->offset, align), skip = start - hole->offset;
        if (hole->bytes < skip || hole->bytes - skip < bytes) continue;
        const range before = { hole->offset, skip };
        const range after = { start + bytes, hole->bytes - skip - bytes };
        const size_t keep = (size_t)(before.bytes > 0) + (size_t)(after.bytes > 0);
        memmove(hole + keep, hole + 1, (b->n_holes - i - 1) * sizeof *hole);
        b->n_holes = b->n_holes - 1 + keep;
        if (before.bytes) *hole++ = before;
        if (after.bytes) *hole = after;
        b->buffers++;
        *offset = start;
        return true;
    }
    return false;
}

static void block_release(block *b, uint64_t offset, uint64_t bytes)
{
    size_t i = 0;
    while (i < b->n_holes && b->holes[i].offset < offset) i++;
    memmove(b->holes + i + 1, b->holes + i, (b->n_holes - i) * sizeof *b->holes);
    b->holes[i] = (range){ offset, bytes };
    b->n_holes++;
    b->buffers--;
    /* Merges the new hole with the hole behind it, then with the hole before it, if there is no gap between them. */
    for (size_t k = i + 1; k-- > (i ? i - 1 : 0);)
        if (k + 1 < b->n_holes && b->holes[k].offset + b->holes[k].bytes == b->holes[k + 1].offset) {
            b->holes[k].bytes += b->holes[k + 1].bytes;
            memmove(b->holes + k + 1, b->holes + k + 2, (b->n_holes - k - 2) * sizeof *b->holes);
            b->n_holes--;
        }
}

/* ---- memory types ---- */

/* The memory types that a buffer may have, and which of them are best. A type must have the properties `required`. The
 * type with the largest score is best. The score is the sum of `local` if the type is device-local, `visible` if it is
 * host-visible, and `cached` if it is host-cached. */
typedef struct memory_preference {
    VkMemoryPropertyFlags required;
    int local, visible, cached;
} memory_preference;

static memory_preference preference_of(const vkt_memory *m, vkt_memory_kind kind)
{
    const VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    if (kind == VKT_MEMORY_DEVICE) return (memory_preference){ VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0, -2, -1 };
    if (kind == VKT_MEMORY_READBACK || kind == VKT_MEMORY_SHARED) return (memory_preference){ host, -1, 0, 2 };
    /* A buffer for uploads prefers host-visible device memory if such memory is plentiful, and else avoids it. The
     * memory is plentiful if its heap has at least half the size of the largest device-local heap. */
    uint64_t largest = 0, seen = 0;
    for (uint32_t i = 0; i < m->props.memoryTypeCount; i++) {
        const VkMemoryType *t = &m->props.memoryTypes[i];
        if (!(t->propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT)) continue;
        const uint64_t size = m->props.memoryHeaps[t->heapIndex].size;
        largest = VKT_MAX(largest, size);
        if ((t->propertyFlags & host) == host) seen = VKT_MAX(seen, size);
    }
    return (memory_preference){ host, seen >= largest / 2 && seen ? 2 : -2, 0, -1 };
}

uint32_t vkt_memory_types(const vkt_ctx *ctx, vkt_memory_kind kind, uint32_t allowed,
                          uint32_t order[VK_MAX_MEMORY_TYPES])
{
    const vkt_memory *m = ctx->memory;
    const memory_preference w = preference_of(m, kind);
    const VkMemoryPropertyFlags plain = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                        VK_MEMORY_PROPERTY_HOST_COHERENT_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    int score[VK_MAX_MEMORY_TYPES];
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->props.memoryTypeCount; i++) {
        const VkMemoryPropertyFlags f = m->props.memoryTypes[i].propertyFlags;
        if (!(allowed >> i & 1) || (f & w.required) != w.required || (f & ~plain)) continue;
        const int s = (f & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT ? w.local : 0) +
                      (f & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT ? w.visible : 0) +
                      (f & VK_MEMORY_PROPERTY_HOST_CACHED_BIT ? w.cached : 0);
        uint32_t at = n++;
        for (; at > 0 && score[at - 1] < s; at--) {
            score[at] = score[at - 1];
            order[at] = order[at - 1];
        }
        score[at] = s;
        order[at] = i;
    }
    return n;
}

/* ---- memory of buffers ---- */

static void count(vkt_memory_stats *s, vkt_mem_class cls, uint64_t bytes)
{
    s->used_bytes[cls] += bytes;
    s->used_total_bytes += bytes;
    s->peak_bytes[cls] = VKT_MAX(s->peak_bytes[cls], s->used_bytes[cls]);
    s->peak_total_bytes = VKT_MAX(s->peak_total_bytes, s->used_total_bytes);
}

static void uncount(vkt_memory_stats *s, vkt_mem_class cls, uint64_t bytes)
{
    s->used_bytes[cls] -= bytes;
    s->used_total_bytes -= bytes;
}

static vkt_result allocate_in_type(vkt_ctx *ctx, uint32_t type, uint64_t bytes, uint64_t align, vkt_buffer *buf)
{
    vkt_memory *m = ctx->memory;
    size_t i = 0;
    bool allocated = false;
    for (; i < m->n_blocks && !allocated; i++) {
        block *b = &m->blocks[i];
        if (!b->memory || b->type != type) continue;
        VKT_TRY(vkt_grow(&ctx->host, &b->holes, b->buffers + 2u, &b->cap_holes, sizeof *b->holes));
        allocated = block_reserve(b, bytes, align, &buf->block_offset);
    }
    if (allocated) {
        i--;
    } else {
        VKT_TRY(block_create(ctx, type, bytes, &i));
        block_reserve(&m->blocks[i], bytes, align, &buf->block_offset);
    }
    buf->block = (uint32_t)i;
    buf->block_bytes = bytes;
    return VKT_OK;
}

vkt_result vkt_memory_allocate(vkt_ctx *ctx, vkt_memory_kind kind, const VkMemoryRequirements *need, vkt_buffer *buf,
                               VkDeviceMemory *memory)
{
    uint32_t order[VK_MAX_MEMORY_TYPES];
    const uint32_t n = vkt_memory_types(ctx, kind, need->memoryTypeBits, order);
    const uint64_t align = VKT_MAX(need->alignment, VKT_ALIGN_BYTES);
    const uint64_t bytes = vkt_round_up(need->size, align);
    vkt_result r = VKT_E_DEVICE_MEMORY;
    for (uint32_t i = 0; i < n && r == VKT_E_DEVICE_MEMORY; i++) r = allocate_in_type(ctx, order[i], bytes, align, buf);
    if (r == VKT_OK) {
        const block *b = &ctx->memory->blocks[buf->block];
        count(&ctx->memory->stats, buf->cls, buf->block_bytes);
        if (kind != VKT_MEMORY_DEVICE) buf->mapped = (char *)b->mapped + buf->block_offset;
        *memory = b->memory;
    }
    if (r != VKT_E_DEVICE_MEMORY || ctx->memory->quiet) return r;
    char want[24], reserved[24];
    return vkt_fail(&ctx->host, r, "the device is out of memory: want %s more, hold %s%s", vkt_bytes_text(bytes, want),
                    vkt_bytes_text(ctx->memory->stats.reserved_bytes, reserved), n ? "" : " (no memory type fits)");
}

VkResult vkt_handle_create(vkt_ctx *ctx, uint64_t bytes, const void *next, VkBuffer *out)
{
    const uint32_t families[] = { ctx->compute.family, ctx->transfer.family };
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .pNext = next,
        .size = bytes,
        .usage = VKT_BUFFER_USAGE,
        .sharingMode = ctx->has_transfer_queue ? VK_SHARING_MODE_CONCURRENT : VK_SHARING_MODE_EXCLUSIVE,
        .queueFamilyIndexCount = ctx->has_transfer_queue ? 2 : 0,
        .pQueueFamilyIndices = families,
    };
    const VkResult r = ctx->vk.CreateBuffer(ctx->device, &info, ctx->allocation, out);
    if (r != VK_SUCCESS) *out = VK_NULL_HANDLE;
    return r;
}

bool vkt_memory_take(vkt_ctx *ctx, vkt_mem_class cls, uint64_t bytes)
{
    vkt_memory *m = ctx->memory;
    if (!has_room(ctx, bytes, &bytes)) return false;
    hold(&m->stats, bytes);
    count(&m->stats, cls, bytes);
    m->others++;
    return true;
}

void vkt_memory_give(vkt_ctx *ctx, vkt_mem_class cls, uint64_t bytes)
{
    vkt_memory *m = ctx->memory;
    m->stats.reserved_bytes -= bytes;
    uncount(&m->stats, cls, bytes);
    m->others--;
}

void vkt_memory_free(vkt_ctx *ctx, vkt_buffer *buf)
{
    if (!buf->block_bytes) return;
    block_release(&ctx->memory->blocks[buf->block], buf->block_offset, buf->block_bytes);
    uncount(&ctx->memory->stats, buf->cls, buf->block_bytes);
}

void vkt_memory_quiet(vkt_ctx *ctx, bool quiet)
{
    ctx->memory->quiet = quiet;
}

uint64_t vkt_memory_used(const vkt_ctx *ctx)
{
    return ctx->memory->stats.used_total_bytes;
}

void vkt_ctx_memory(const vkt_ctx *ctx, vkt_memory_stats *out)
{
    if (!ctx || !out) return;
    *out = ctx->memory->stats;
    if (ctx->has_memory_budget) out->heap_budget_bytes = main_heap(ctx).budget;
}
