/* data/idx.c - see idx.h. */
#include "data/idx.h"

#include "data/gz.h"

/* If bytes follow the array, at most about this many of them are read, to report the size of the file. */
#define MAX_SURPLUS (1u << 20)

static vkt_result fail_size(const vkt_gz *r, uint64_t want, uint64_t found, const char *qualifier)
{
    return vkt_fail(r->h, VKT_E_FORMAT, "\"%s\": its IDX header asks for %llu bytes%s, the file has %s%llu",
                    r->file.path, (unsigned long long)want, vkt_gz_is_plain(r) ? "" : " (decompressed)", qualifier,
                    (unsigned long long)found);
}

/* Reads idx->rank and idx->dim, and computes idx->bytes. */
static vkt_result read_header(vkt_gz *r, uint64_t max_bytes, vkt_idx *idx)
{
    uint8_t b[4 + 4 * VKT_COUNT(idx->dim)];
    size_t got;
    VKT_TRY(vkt_gz_read(r, b, 4, &got));
    if (got < 4) return fail_size(r, 4, r->total, "only ");
    if (b[0] != 0 || b[1] != 0)
        return vkt_fail(r->h, VKT_E_FORMAT, "\"%s\" is not IDX: want 00 00 as its first bytes, got %02x %02x",
                        r->file.path, b[0], b[1]);
    if (b[2] != 0x08)
        return vkt_fail(r->h, VKT_E_FORMAT, "\"%s\": want IDX element type 0x08 (u8), got 0x%02x", r->file.path, b[2]);
    if (b[3] < 1 || b[3] > VKT_COUNT(idx->dim))
        return vkt_fail(r->h, VKT_E_FORMAT, "\"%s\": want 1 to 4 IDX dimensions, got %u", r->file.path, b[3]);
    idx->rank = b[3];
    VKT_TRY(vkt_gz_read(r, b + 4, 4 * idx->rank, &got));
    if (got < 4 * idx->rank) return fail_size(r, 4 + 4 * idx->rank, r->total, "only ");
    uint64_t bytes = 1;
    for (uint32_t i = 0; i < VKT_COUNT(idx->dim); i++) {
        const uint8_t *d = b + 4 + 4 * i;
        idx->dim[i] = i < idx->rank ? (uint32_t)d[0] << 24 | (uint32_t)d[1] << 16 | (uint32_t)d[2] << 8 | d[3] : 1;
        if (idx->dim[i] == 0) return vkt_fail(r->h, VKT_E_FORMAT, "\"%s\": IDX dimension %u is 0", r->file.path, i);
        if (!vkt_mul_u64(bytes, idx->dim[i], &bytes) || bytes > VKT_MIN(max_bytes, (uint64_t)PTRDIFF_MAX))
            return vkt_fail(r->h, VKT_E_FORMAT,
                            "\"%s\": its IDX header asks for more than the %llu bytes that are allowed", r->file.path,
                            (unsigned long long)max_bytes);
    }
    idx->bytes = (size_t)bytes;
    return VKT_OK;
}

/* Checks the size of the file before memory is allocated. `want`: bytes of header and elements. */
static vkt_result check_size(const vkt_gz *r, uint64_t want)
{
    if (vkt_gz_is_plain(r)) return r->file.size == want ? VKT_OK : fail_size(r, want, r->file.size, "");
    uint64_t most;
    if (vkt_mul_u64(r->file.size, VKT_DEFLATE_MAX_RATIO, &most) && want > most)
        return fail_size(r, want, most, "at most ");
    return vkt_gz_check_size(r, want);
}

/* Checks that no bytes follow the array. At the end of a compressed file, zlib compares the checksum. If bytes follow
 * the array, stops after about MAX_SURPLUS of them. */
static vkt_result expect_end(vkt_gz *r, uint64_t want)
{
    uint8_t surplus[512];
    size_t got = 1;
    while (got > 0 && r->total <= want + MAX_SURPLUS) VKT_TRY(vkt_gz_read(r, surplus, sizeof surplus, &got));
    if (r->total != want) return fail_size(r, want, r->total, got > 0 ? "at least " : "");
    return vkt_gz_check_end(r);
}

static vkt_result read_array(vkt_gz *r, uint64_t max_bytes, vkt_idx *idx)
{
    VKT_TRY(read_header(r, max_bytes, idx));
    const uint64_t want = r->total + idx->bytes;
    VKT_TRY(check_size(r, want));
    idx->data = vkt_realloc(r->h, NULL, idx->bytes); /* vkt_alloc would also fill the memory with zeros */
    if (!idx->data) return vkt_fail_nomem(r->h, r->file.path, idx->bytes);
    size_t got;
    VKT_TRY(vkt_gz_read(r, idx->data, idx->bytes, &got));
    return got == idx->bytes ? expect_end(r, want) : fail_size(r, want, r->total, "only ");
}

vkt_result vkt_idx_read(const vkt_host *h, const char *path, uint64_t max_bytes, vkt_idx *out)
{
    *out = (vkt_idx){ 0 };
    vkt_gz r;
    VKT_TRY(vkt_gz_open(h, path, &r));
    const vkt_result result = read_array(&r, max_bytes, out);
    vkt_gz_close(&r);
    if (result != VKT_OK) {
        vkt_free(h, out->data);
        *out = (vkt_idx){ 0 };
    }
    return result;
}
