/* ops/conv/parts.c - see parts.h. */
#include "ops/conv/parts.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/conv2d_dw_sum.abi.h"

uint32_t vkt_conv2d_share(uint32_t n, uint64_t most, uint32_t unit)
{
    if (n <= most) return n;
    const uint32_t whole = (uint32_t)most / unit * unit;
    return whole ? (uint32_t)vkt_round_up(vkt_div_up(n, vkt_div_up(n, whole)), unit) : 0;
}

void vkt_conv2d_too_large(vkt_emit *e, const vkt_conv2d_size *z)
{
    const uint32_t *size = z->in[0] * z->in[1] > z->out[0] * z->out[1] ? z->in : z->out;
    vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                               "%s: a channel (%u x %u pixels, %u samples) or its weights do not fit into the %llu "
                               "bytes that this device binds: use smaller batches",
                               e->node->op->name, size[0], size[1], 4 * z->n4,
                               (unsigned long long)e->lim->max_storage_range_bytes));
}

bool vkt_conv2d_is_short(vkt_emit *e, uint64_t groups, uint64_t rounds)
{
    const uint64_t per_group = (groups + e->lim->max_groups - 1) / e->lim->max_groups;
    const uint64_t most = vkt_largest_loop(e->lim);
    if (per_group <= most / rounds) return true;
    vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED,
                               "%s: want at most %llu iterations of a work group on this device, got %llu x %llu: use "
                               "smaller batches or images",
                               e->node->op->name, (unsigned long long)most, (unsigned long long)per_group,
                               (unsigned long long)rounds));
    return false;
}

vkt_bind vkt_conv2d_channels(const vkt_emit *e, vkt_tensor t, uint64_t plane, uint64_t first, uint64_t n,
                             uint32_t *base)
{
    const vkt_bind b = vkt_bind_range(e, t, 4 * plane * first, 4 * plane * n, base);
    *base /= 4;
    return b;
}

/* ---- y and dx ---- */

bool vkt_conv_reaches_out(const vkt_conv_job *j, const vkt_conv_phase *h, const vkt_conv_phase *v)
{
    return vkt_conv_phase_reaches_out(j->z, j->transposed, 0, h) ||
           vkt_conv_phase_reaches_out(j->z, j->transposed, 1, v);
}

vkt_bind vkt_conv_weights(const vkt_emit *e, const vkt_conv_job *j, const vkt_conv_part *p, uint32_t *base)
{
    const bool back = j->transposed;
    const uint32_t taps = j->z->kernel[0] * j->z->kernel[1], o_group = back ? j->depth : j->rows;
    const uint64_t o_step = (uint64_t)(back ? j->rows : j->depth) * taps;
    const uint64_t o = (uint64_t)p->group * o_group + (back ? p->k : p->row), c = back ? p->row : p->k;
    const uint64_t n_o = (p->groups - 1ull) * o_group + (back ? p->depth : p->rows), n_c = back ? p->rows : p->depth;
    return vkt_bind_range(e, j->w, o * o_step + c * taps, (n_o - 1) * o_step + n_c * taps, base);
}

vkt_bind vkt_conv_source(const vkt_emit *e, const vkt_conv_job *j, const vkt_conv_part *p, uint32_t *base)
{
    return vkt_conv2d_channels(e, j->from, j->src_plane, (uint64_t)p->group * j->depth + p->k,
                               (p->groups - 1ull) * j->depth + p->depth, base);
}

static vkt_bind like_destination(const vkt_emit *e, const vkt_conv_job *j, vkt_tensor t, const vkt_conv_part *p,
                                 uint32_t *base)
{
    return vkt_conv2d_channels(e, t, j->dst_plane, (uint64_t)p->group * j->rows + p->row,
                               (p->groups - 1ull) * j->rows + p->rows, base);
}

vkt_bind vkt_conv_destination(const vkt_emit *e, const vkt_conv_job *j, const vkt_conv_part *p, uint32_t *base)
{
    return like_destination(e, j, j->to, p, base);
}

vkt_bind vkt_conv_slope(const vkt_emit *e, const vkt_conv_job *j, const vkt_conv_part *p, uint32_t *base)
{
    return like_destination(e, j, j->slope, p, base);
}

vkt_bind vkt_conv_pack(vkt_emit *e, vkt_conv_job *j, const vkt_conv_part *p, uint32_t mb, bool m_major,
                       vkt_conv2d_pack_push push)
{
    const uint32_t taps = j->z->kernel[0] * j->z->kernel[1], o_step = (j->transposed ? j->rows : j->depth) * taps;
    const uint64_t panel = (uint64_t)taps * p->depth * mb / 4;
    push.vec4s = (uint32_t)panel;
    push.depth = p->depth;
    push.rows = p->rows;
    push.tiles = vkt_div_up(p->rows, mb);
    push.mb4 = mb / 4;
    push.w_group = j->rows * j->depth * taps;
    push.w_row = j->transposed ? taps : o_step;
    push.w_depth = j->transposed ? o_step : taps;
    const uint64_t panels = (uint64_t)push.tiles * p->groups, bytes = 16 * panel * panels;
    if (!j->packed.id) j->packed = vkt_scratch(e, "weights", bytes);
    uint32_t first;
    const vkt_bind w = vkt_conv_weights(e, j, p, &first), packed = { .t = j->packed, .bytes = bytes };
    push.w_base += first;
    const vkt_bind bind[] = { [PACK_W] = w, [PACK_A] = packed };
    const uint32_t spec[] = { vkt_lanes(e->lim, e->lim->traits->lanes_pack), [PACK_SPEC_M_MAJOR] = m_major };
    vkt_dispatch_add(
        e, &(vkt_launch){ .kernel = VKT_K_CONV2D_PACK,
                          VKT_LAUNCH_BIND(bind),
                          VKT_LAUNCH_PUSH(push),
                          VKT_LAUNCH_SPEC(spec),
                          .groups = { vkt_groups(panel, spec[0], e->lim->traits->items_pack), (uint32_t)panels, 1 } });
    return packed;
}

/* ---- dw and db ---- */

void vkt_conv2d_sum_slices(vkt_emit *e, const vkt_conv2d_slices *s, vkt_tensor dw, vkt_tensor db)
{
    const vkt_conv2d_dw_sum_push push = { .weights = (uint32_t)(vkt_lowered_value(e, dw)->bytes / 4),
                                          .biases = db.id ? (uint32_t)(vkt_lowered_value(e, db)->bytes / 4) : 0,
                                          .bias_start = (uint32_t)s->bias_start,
                                          .part = (uint32_t)s->floats,
                                          .slices = s->n };
    const vkt_bind bind[] = {
        [DW_SUM_PART] = VKT_WHOLE(s->t), [DW_SUM_W] = VKT_WHOLE(dw), [DW_SUM_B] = VKT_WHOLE(db.id ? db : dw)
    };
    const uint32_t spec[] = { vkt_lanes(e->lim, e->lim->traits->lanes_pack) };
    const uint32_t vec4s = vkt_div_up(push.weights, 4) + vkt_div_up(push.biases, 4);
    vkt_dispatch_add(e, &(vkt_launch){ .kernel = VKT_K_CONV2D_DW_SUM4,
                                       VKT_LAUNCH_BIND(bind),
                                       VKT_LAUNCH_PUSH(push),
                                       VKT_LAUNCH_SPEC(spec),
                                       .groups = { vkt_groups(vec4s, spec[0], e->lim->traits->items_slices), 1, 1 } });
}
