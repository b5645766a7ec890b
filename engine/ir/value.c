/* ir/value.c - shapes, element types, and the physical position of logical elements. */
#include "base/half.h"
#include "ir/ir.h"

#include <stdio.h>

uint64_t vkt_shape_elements(vkt_shape s)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < s.rank; i++) n *= s.dim[i];
    return n;
}

bool vkt_shape_equal(vkt_shape a, vkt_shape b)
{
    return a.rank == b.rank && memcmp(a.dim, b.dim, a.rank * sizeof a.dim[0]) == 0;
}

const char *vkt_shape_text(vkt_shape s, char buf[80])
{
    size_t n = (size_t)snprintf(buf, 80, "(");
    for (uint32_t i = 0; i < s.rank && i < VKT_MAX_RANK && n < 70; i++)
        n += (size_t)snprintf(buf + n, 80 - n, "%s%u", i ? "," : "", s.dim[i]);
    snprintf(buf + n, 80 - n, s.rank > VKT_MAX_RANK ? ",..)" : ")");
    return buf;
}

const char *vkt_index_text(vkt_shape s, uint64_t i, char buf[80])
{
    uint32_t at[VKT_MAX_RANK];
    for (uint32_t d = s.rank; d-- > 0; i /= s.dim[d]) at[d] = (uint32_t)(i % s.dim[d]);
    size_t n = (size_t)snprintf(buf, 80, "[");
    for (uint32_t d = 0; d < s.rank && n < 70; d++) n += (size_t)snprintf(buf + n, 80 - n, "%s%u", d ? "," : "", at[d]);
    snprintf(buf + n, 80 - n, "]");
    return buf;
}

uint32_t vkt_dtype_bytes(vkt_dtype d)
{
    return d == VKT_U8 ? 1 : d == VKT_F16 ? 2 : 4;
}

const char *vkt_dtype_name(vkt_dtype d)
{
    static const char *const names[VKT_DTYPE_COUNT] = {
        [VKT_F32] = "f32", [VKT_U32] = "u32", [VKT_U8] = "u8", [VKT_F16] = "f16"
    };
    return (unsigned)d < VKT_DTYPE_COUNT ? names[d] : "?";
}

uint32_t vkt_element_bytes(const vkt_value *v)
{
    return v->storage == VKT_PRECISION_F32 ? vkt_dtype_bytes(v->dtype) : 2;
}

const char *vkt_element_name(const vkt_value *v)
{
    static const char *const names[] = { [VKT_PRECISION_F16] = "f16", [VKT_PRECISION_BF16] = "bf16" };
    return v->storage == VKT_PRECISION_F32 ? vkt_dtype_name(v->dtype) : names[v->storage];
}

static vkt_phys phys_of(vkt_shape s, vkt_layout layout)
{
    vkt_phys p = { .rank = s.rank ? s.rank : 1, .dim = { 1 }, .stride = { 1 }, .pitch = 1, .elements = 1 };
    if (s.rank == 0) return p;
    for (uint32_t i = 0; i < s.rank; i++) {
        p.logical[i] = layout == VKT_BATCH_LAST ? (i + 1) % s.rank : i;
        p.dim[i] = s.dim[p.logical[i]];
    }
    const uint32_t last = s.rank - 1;
    p.pitch = layout == VKT_BATCH_LAST ? (p.dim[last] + 3) & ~3u : p.dim[last];
    for (uint32_t i = s.rank; i-- > 0;) {
        p.stride[i] = p.elements;
        p.elements *= i == last ? p.pitch : p.dim[i];
    }
    return p;
}

vkt_phys vkt_phys_of(const vkt_value *v)
{
    return phys_of(v->shape, v->layout);
}

bool vkt_physical_bytes(vkt_shape s, vkt_layout layout, vkt_dtype d, uint64_t *bytes)
{
    uint64_t n = vkt_dtype_bytes(d);
    for (uint32_t i = 0; i < s.rank; i++) {
        const uint64_t dim = layout == VKT_BATCH_LAST && i == 0 ? vkt_round_up(s.dim[0], 4) : s.dim[i];
        if (!vkt_mul_u64(n, dim, &n)) return false;
    }
    *bytes = n;
    return n <= (uint64_t)INT64_MAX;
}

/* Returns whether a value is f32 on the host and stored in 16 bits on the device. */
static bool is_converted(const vkt_value *v)
{
    return v->storage != VKT_PRECISION_F32 && v->dtype == VKT_F32;
}

static void store_element(const vkt_value *v, const char *from, char *to)
{
    if (!is_converted(v)) {
        memcpy(to, from, vkt_dtype_bytes(v->dtype));
        return;
    }
    float f;
    memcpy(&f, from, sizeof f);
    const uint16_t h = v->storage == VKT_PRECISION_F16 ? vkt_half_from_f32(f) : vkt_bf16_from_f32(f);
    memcpy(to, &h, sizeof h);
}

static void load_element(const vkt_value *v, const char *from, char *to)
{
    if (!is_converted(v)) {
        memcpy(to, from, vkt_dtype_bytes(v->dtype));
        return;
    }
    uint16_t h;
    memcpy(&h, from, sizeof h);
    const float f = v->storage == VKT_PRECISION_F16 ? vkt_f32_from_half(h) : vkt_f32_from_bf16(h);
    memcpy(to, &f, sizeof f);
}

/* Copies every element from the logical to the physical form, or back. Also converts between f32 and 16 bits
 * (is_converted). */
static void convert(const vkt_value *v, const char *from, char *to, bool to_physical)
{
    const vkt_phys p = vkt_phys_of(v);
    const uint32_t size = vkt_dtype_bytes(v->dtype), stored = vkt_element_bytes(v);
    const uint64_t n = vkt_shape_elements(v->shape);
    uint64_t stride[VKT_MAX_RANK] = { 0 }; /* [logical dimension] */
    for (uint32_t i = 0; i < v->shape.rank; i++) stride[p.logical[i]] = p.stride[i];
    uint32_t at[VKT_MAX_RANK] = { 0 };
    uint64_t e = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (to_physical)
            store_element(v, from + i * size, to + e * stored);
        else
            load_element(v, from + e * stored, to + i * size);
        for (uint32_t d = v->shape.rank; d-- > 0;) {
            e += stride[d];
            if (++at[d] < v->shape.dim[d]) break;
            e -= stride[d] * v->shape.dim[d];
            at[d] = 0;
        }
    }
}

void vkt_pack_value(const vkt_value *v, const void *logical, void *physical)
{
    memset(physical, 0, v->bytes);
    convert(v, logical, physical, true);
}

void vkt_unpack_value(const vkt_value *v, const void *physical, void *logical)
{
    convert(v, physical, logical, false);
}
