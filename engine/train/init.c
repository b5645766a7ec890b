/* train/init.c - copies initial values from a builder (nn/init.c generates them) to a store. The file is not in nn/,
 * because the store is on a higher layer of the engine. */
#include "nn/builder.h"

vkt_result vkt_nn_init(const vkt_builder *b, vkt_store *store, uint64_t seed)
{
    VKT_WANT(NULL, b);
    const vkt_host *h = &b->g->host;
    VKT_WANT(h, store);
    VKT_TRY(vkt_builder_check(b));
    for (size_t i = 0; i < b->n_inits; i++) {
        const vkt_value *v = vkt_value_of(b->g, b->inits[i].param);
        uint32_t at = 0;
        while (at < vkt_store_count(store) && strcmp(vkt_store_name(store, at), v->name) != 0) at++;
        char want[80];
        if (at == vkt_store_count(store) || !vkt_shape_equal(vkt_store_shape(store, at), v->shape))
            return vkt_fail(h, VKT_E_NOT_FOUND, "init: the store has no parameter '%s' of shape %s", v->name,
                            vkt_shape_text(v->shape, want));
        float *values = vkt_alloc(h, v->bytes);
        if (!values) return vkt_fail_nomem(h, v->name, v->bytes);
        vkt_builder_draw(b, i, seed, values);
        const vkt_result r = vkt_store_write(store, at, VKT_PART_VALUE, values);
        vkt_free(h, values);
        if (r != VKT_OK) return r;
    }
    return VKT_OK;
}
