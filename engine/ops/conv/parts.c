/* ops/conv/parts.c - parts of a convolution: see conv/parts.h. */
#include "ops/conv/parts.h"

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
    const uint64_t in_turn = (groups + e->lim->max_groups - 1) / e->lim->max_groups;
    if (in_turn <= VKT_MAX_ROUNDS / rounds) return true;
    vkt_emit_error(e, vkt_fail(&e->host, VKT_E_UNSUPPORTED, "%s: %llu x %llu rounds are too long for one work group",
                               e->node->op->name, (unsigned long long)in_turn, (unsigned long long)rounds));
    return false;
}

vkt_bind vkt_conv2d_channels(const vkt_emit *e, vkt_tensor t, uint64_t plane, uint64_t first, uint64_t n,
                             uint32_t *base)
{
    const vkt_bind b = vkt_window(e, t, 4 * plane * first, 4 * plane * n, base);
    *base /= 4;
    return b;
}
