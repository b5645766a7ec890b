/* record/access.c - writes the inputs of a program and reads its values, for the host. The host can read an activation
 * only if it is kept. */
#include "record/record.h"

static vkt_result check_access(const vkt_program *p, vkt_tensor t, bool write)
{
    const vkt_host *h = &p->ctx->host;
    if (t.id == 0 || t.id >= p->g->n_values) return vkt_fail(h, VKT_E_ARG, "program: that tensor is not of its graph");
    const vkt_value *v = &p->g->values[t.id];
    const vkt_role role = p->g->values[vkt_root(p->g, t)].role;
    const bool readable = v->keep || (role != VKT_ROLE_ACTIVATION && role != VKT_ROLE_SCRATCH);
    if (write ? role == VKT_ROLE_INPUT : readable) return VKT_OK;
    return vkt_fail(h, VKT_E_ARG, "program: '%s' is no %s", v->name, write ? "input" : "kept value: see vkt_keep");
}

vkt_result vkt_check_readable(const vkt_program *p, vkt_tensor t)
{
    return check_access(p, t, false);
}

static vkt_result check_value(const vkt_program *p, vkt_tensor t, uint64_t bytes, bool write)
{
    VKT_TRY(check_access(p, t, write));
    const vkt_host *h = &p->ctx->host;
    const vkt_value *v = &p->g->values[t.id];
    const uint64_t want = vkt_shape_elements(v->shape) * vkt_dtype_bytes(v->dtype);
    if (bytes != want)
        return vkt_fail(h, VKT_E_ARG, "program: '%s': want %llu bytes, got %llu", v->name, (unsigned long long)want,
                        (unsigned long long)bytes);
    return VKT_OK;
}

/* Returns whether the value has layout ROWS, the same type on host and device, and a size that is a multiple of 4
 * bytes. Such a value is copied without a conversion. */
static bool is_plain(const vkt_value *v)
{
    return v->layout == VKT_ROWS && (v->storage == VKT_PRECISION_F32 || v->dtype == VKT_F16) && v->bytes % 4 == 0;
}

vkt_result vkt_program_write(vkt_program *p, vkt_tensor t, const void *data, uint64_t bytes)
{
    VKT_WANT(NULL, p);
    VKT_TRY(check_value(p, t, bytes, true));
    VKT_WANT(&p->ctx->host, data);
    VKT_TRY(vkt_check_idle(p));
    const vkt_value *v = &p->lowered.values[t.id];
    const vkt_range at = vkt_range_of_value(p, t);
    vkt_buffer *buffer = p->inputs[vkt_root(p->g, t)];
    if (is_plain(v)) return vkt_upload(p->ctx, buffer, at.offset_bytes, data, bytes);
    void *physical = vkt_alloc(&p->ctx->host, at.bytes);
    if (!physical) return vkt_fail_nomem(&p->ctx->host, v->name, at.bytes);
    vkt_pack_value(v, data, physical);
    const vkt_result r = vkt_upload(p->ctx, buffer, at.offset_bytes, physical, at.bytes);
    vkt_free(&p->ctx->host, physical);
    return r;
}

vkt_result vkt_program_fetch(vkt_program *p, vkt_tensor t, void *data)
{
    const vkt_value *v = &p->lowered.values[t.id];
    const vkt_range at = vkt_range_of_value(p, t);
    if (is_plain(v)) return vkt_readback(p->ctx, (vkt_buffer *)(uintptr_t)at.buffer, at.offset_bytes, data, v->bytes);
    void *physical = vkt_alloc(&p->ctx->host, at.bytes);
    if (!physical) return vkt_fail_nomem(&p->ctx->host, v->name, at.bytes);
    const vkt_result r = vkt_readback(p->ctx, (vkt_buffer *)(uintptr_t)at.buffer, at.offset_bytes, physical, at.bytes);
    if (r == VKT_OK) vkt_unpack_value(v, physical, data);
    vkt_free(&p->ctx->host, physical);
    return r;
}

vkt_result vkt_program_read(vkt_program *p, vkt_tensor t, void *data, uint64_t bytes)
{
    VKT_WANT(NULL, p);
    VKT_TRY(check_value(p, t, bytes, false));
    VKT_WANT(&p->ctx->host, data);
    return vkt_program_fetch(p, t, data);
}
