/* nn/encoding.c - encodings of points and positions as layers. */
#include "nn/builder.h"

#include <stdio.h>

vkt_tensor vkt_nn_hash_grid(vkt_builder *b, const char *name, vkt_tensor x, const vkt_nn_hash_grid_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    static const vkt_nn_hash_grid_params none;
    if (!vkt_builder_is_named(b, name) || !vkt_is_usable(b->g, name, x)) return (vkt_tensor){ 0 };
    if (!p) p = &none;
    const vkt_shape s = vkt_tensor_shape(b->g, x);
    const vkt_shape table = vkt_hash_grid_table(&p->grid, s.rank == 2 ? s.dim[1] : 0, NULL);
    char text[80], param[2 * VKT_NAME_MAX];
    if (!table.rank) {
        vkt_graph_error(b->g,
                        vkt_fail(&b->g->host, VKT_E_ARG,
                                 "%s%s: want points (B,2) or (B,3) and a grid that vkt_hash_grid supports, got %s",
                                 b->scope, name, vkt_shape_text(s, text)));
        return (vkt_tensor){ 0 };
    }
    const vkt_init defaults = { VKT_INIT_UNIFORM, -1e-4f, 1e-4f };
    snprintf(param, sizeof param, "%s.table", name);
    const vkt_tensor t = vkt_nn_param(
        b, param, table, p->table_init.kind == VKT_INIT_DEFAULT ? defaults : p->table_init, table.dim[1], table.dim[0]);
    return vkt_builder_note(b, name, "HashGrid", vkt_hash_grid(b->g, x, t, &p->grid));
}

vkt_tensor vkt_nn_frequency(vkt_builder *b, vkt_tensor x, uint32_t frequencies)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "Frequency", vkt_frequency(b->g, x, frequencies));
}

vkt_tensor vkt_nn_rope(vkt_builder *b, vkt_tensor x, const vkt_rope_params *p)
{
    if (!b) return (vkt_tensor){ 0 };
    return vkt_builder_note(b, NULL, "RoPE", vkt_rope(b->g, x, p));
}
