/* ops/product/gemm_sum.c - see gemm.h: adds the slices of a product, and the bias. */
#include "ops/product/gemm.h"

#include "kernel/ids.h"

#include "abi/abi.h"
#include "abi/gemm_sum.abi.h"

void vkt_gemm_sum_emit(vkt_emit *e, const vkt_gemm_sum *s)
{
    const bool biased = s->bias.t.id != 0, wide = (s->n | s->c_base | (biased ? s->columns : 0)) % 4 == 0;
    const vkt_gemm_sum_push push = { .n = s->n, .columns = s->columns, .slices = s->slices, .c_base = s->c_base };
    const vkt_bind bind[] = {
        [GEMM_SUM_PART] = s->part, [GEMM_SUM_C] = s->c, [GEMM_SUM_BIAS] = biased ? s->bias : s->part
    };
    const uint32_t spec[] = { vkt_lanes(e->lim, e->lim->traits->lanes_pack), [GEMM_SUM_SPEC_ACCUMULATE] = s->accumulate,
                              [GEMM_SUM_SPEC_BIAS] = biased };
    vkt_dispatch_add(
        e,
        &(vkt_launch){ .kernel = wide ? VKT_K_GEMM_SUM4 : VKT_K_GEMM_SUM,
                       VKT_LAUNCH_BIND(bind),
                       VKT_LAUNCH_PUSH(push),
                       VKT_LAUNCH_SPEC(spec),
                       .groups = { vkt_groups(wide ? s->n / 4 : s->n, spec[0], e->lim->traits->items_parts), 1, 1 } });
}
