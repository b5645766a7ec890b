/* ops/attention.c - scaled dot-product attention, made of other ops: see vktrain/ops.h. */
#include "ops/ops.h"

#include <math.h>

/* Leading dimensions equal, the widths of q and k, the lengths of k and v too. */
static bool fits(vkt_graph *g, vkt_tensor q, vkt_tensor k, vkt_tensor v)
{
    const vkt_shape s = vkt_tensor_shape(g, q), t = vkt_tensor_shape(g, k), u = vkt_tensor_shape(g, v);
    bool ok = s.rank >= 2 && t.rank == s.rank && u.rank == s.rank;
    if (ok) {
        const size_t lead = (s.rank - 2) * sizeof s.dim[0];
        ok = memcmp(s.dim, t.dim, lead) == 0 && memcmp(s.dim, u.dim, lead) == 0 &&
             s.dim[s.rank - 1] == t.dim[s.rank - 1] && t.dim[s.rank - 2] == u.dim[s.rank - 2];
    }
    char st[80], tt[80], ut[80];
    if (!ok)
        vkt_graph_error(g, vkt_fail(&g->host, VKT_E_SHAPE,
                                    "attention: want q (..,T,D), k (..,S,D) and v (..,S,E), got %s, %s and %s",
                                    vkt_shape_text(s, st), vkt_shape_text(t, tt), vkt_shape_text(u, ut)));
    return ok;
}

vkt_tensor vkt_attention(vkt_graph *g, vkt_tensor q, vkt_tensor k, vkt_tensor v, const vkt_attention_params *p)
{
    static const vkt_attention_params defaults;
    if (!p) p = &defaults;
    if (g->status != VKT_OK || !q.id || !k.id || !v.id || !fits(g, q, k, v)) return (vkt_tensor){ 0 };
    q = vkt_to_layout(g, q, VKT_ROWS);
    k = vkt_to_layout(g, k, VKT_ROWS);
    v = vkt_to_layout(g, v, VKT_ROWS);
    const vkt_shape s = vkt_tensor_shape(g, q);
    const float scale = p->scale != 0 ? p->scale : (float)(1 / sqrt((double)s.dim[s.rank - 1]));
    vkt_tensor a = vkt_softmax_of_scores(g, vkt_matmul(g, q, k, false, true), scale, p->causal);
    if (p->dropout != 0) a = vkt_dropout(g, a, p->dropout);
    return vkt_matmul(g, a, v, false, false);
}
