/* ir/fields.c - attributes of ops as text: see struct vkt_field. */
#include "ir/ir.h"

#include <math.h>
#include <stdlib.h>

#include "base/numbers.h"

static size_t kind_bytes(vkt_field_kind k)
{
    switch (k) {
    case VKT_FIELD_BOOL: return sizeof(bool);
    case VKT_FIELD_U32:
    case VKT_FIELD_F32: return 4;
    case VKT_FIELD_F64: return 8;
    }
    return 0;
}

static double get(const vkt_field *f, const void *attr, uint32_t i)
{
    const char *at = (const char *)attr + f->offset + i * kind_bytes(f->kind);
    bool b;
    uint32_t u;
    float s;
    double d;
    switch (f->kind) {
    case VKT_FIELD_BOOL: return memcpy(&b, at, sizeof b), b;
    case VKT_FIELD_U32: return memcpy(&u, at, sizeof u), u;
    case VKT_FIELD_F32: return memcpy(&s, at, sizeof s), (double)s;
    case VKT_FIELD_F64: return memcpy(&d, at, sizeof d), d;
    }
    return 0;
}

/* Returns f->default_value, rounded to f32 if the member is a float. */
static double default_of(const vkt_field *f)
{
    return f->kind == VKT_FIELD_F32 ? (double)(float)f->default_value : f->default_value;
}

/* Stores x in element i of the member. Returns false if the member cannot have this number: a bool is 0 or 1, a
 * u32 is a whole number from 0 to 2^32 - 1, and a float is finite. */
static bool set(const vkt_field *f, void *attr, uint32_t i, double x)
{
    char *at = (char *)attr + f->offset + i * kind_bytes(f->kind);
    const bool whole = x >= 0 && x <= UINT32_MAX && floor(x) == x, b = x != 0;
    const uint32_t u = whole ? (uint32_t)x : 0;
    const float s = (float)x;
    switch (f->kind) {
    case VKT_FIELD_BOOL: return memcpy(at, &b, sizeof b), whole && x <= 1;
    case VKT_FIELD_U32: return memcpy(at, &u, sizeof u), whole;
    case VKT_FIELD_F32: return memcpy(at, &s, sizeof s), isfinite(s);
    case VKT_FIELD_F64: return memcpy(at, &x, sizeof x), isfinite(x);
    }
    return false;
}

void vkt_attr_defaults(const vkt_op *op, void *attr)
{
    for (const vkt_field *f = op->fields; f && f->name; f++)
        for (uint32_t i = 0; i < f->count; i++) set(f, attr, i, f->default_value);
}

void vkt_attr_text_exact(const vkt_op *op, const void *attr, vkt_text *t)
{
    const char *space = "";
    char number[32];
    for (const vkt_field *f = op->fields; f && f->name; f++) {
        vkt_text_add(t, "%s%s=", space, f->name);
        for (uint32_t i = 0; i < f->count; i++)
            vkt_text_add(t, "%s%s", i ? "," : "", vkt_number_text(get(f, attr, i), f->kind == VKT_FIELD_F32, number));
        space = " ";
    }
}

void vkt_attr_text(const vkt_op *op, const void *attr, vkt_text *t)
{
    const vkt_numbers locale = vkt_numbers_begin();
    const char *space = "";
    for (const vkt_field *f = op->fields; f && f->name; f++) {
        bool is_default = true;
        for (uint32_t i = 0; i < f->count; i++) is_default = is_default && get(f, attr, i) == default_of(f);
        if (is_default) continue;
        const bool whole = f->kind == VKT_FIELD_BOOL || f->kind == VKT_FIELD_U32;
        vkt_text_add(t, "%s%s=", space, f->name);
        for (uint32_t i = 0; i < f->count; i++)
            vkt_text_add(t, whole ? "%s%.0f" : "%s%g", i ? "," : "", get(f, attr, i));
        space = " ";
    }
    vkt_numbers_end(locale);
}

static vkt_result unknown(const vkt_host *h, const vkt_op *op, const char *text)
{
    vkt_text names = { .h = h };
    for (const vkt_field *f = op->fields; f && f->name; f++) vkt_text_add(&names, " %s", f->name);
    const vkt_result r = vkt_fail(h, VKT_E_FORMAT, "%s: '%s' is no attribute; there are:%s", op->name, text,
                                  names.s ? names.s : " none");
    vkt_text_free(&names);
    return r;
}

vkt_result vkt_attr_parse(const vkt_host *h, const vkt_op *op, const char *text, void *attr)
{
    const size_t n = strcspn(text, "=");
    const vkt_field *f = op->fields;
    while (f && f->name && (strlen(f->name) != n || strncmp(f->name, text, n) != 0)) f++;
    if (!f || !f->name || !text[n]) return unknown(h, op, text);
    const char *at = text + n;
    for (uint32_t i = 0; i < f->count; i++) {
        char *end;
        const vkt_numbers locale = vkt_numbers_begin();
        const double x = strtod(at + 1, &end);
        vkt_numbers_end(locale);
        if (end == at + 1 || *end != (i + 1 < f->count ? ',' : 0) || !set(f, attr, i, x))
            return vkt_fail(h, VKT_E_FORMAT, "%s: want '%s=' and %u numbers of its kind, got '%s'", op->name, f->name,
                            f->count, text);
        at = end;
    }
    return VKT_OK;
}
