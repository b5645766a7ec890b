/* nn/init.c - initial values of parameters. */
#include "nn/builder.h"

#include <math.h>

/* Where a kind draws from: uniform in [a, b), or normal with mean a and deviation b. */
typedef struct spread {
    bool normal;
    double a, b;
} spread;

static spread spread_of(const vkt_init_row *row)
{
    const double in = row->fan_in ? row->fan_in : 1, out = row->fan_out ? row->fan_out : 1;
    double bound = 0, std = 0;
    switch (row->init.kind) {
    case VKT_INIT_CONSTANT: return (spread){ true, (double)row->init.a, 0 };
    case VKT_INIT_UNIFORM: return (spread){ false, (double)row->init.a, (double)row->init.b };
    case VKT_INIT_NORMAL: return (spread){ true, (double)row->init.a, (double)row->init.b };
    case VKT_INIT_DEFAULT: bound = 1 / sqrt(in); break;
    case VKT_INIT_XAVIER_UNIFORM: bound = sqrt(6 / (in + out)); break;
    case VKT_INIT_KAIMING_UNIFORM: bound = sqrt(6 / in); break;
    case VKT_INIT_XAVIER_NORMAL: std = sqrt(2 / (in + out)); break;
    case VKT_INIT_KAIMING_NORMAL: std = sqrt(2 / in); break;
    }
    return std > 0 ? (spread){ true, 0, std } : (spread){ false, -bound, bound };
}

static void draw(const vkt_init_row *row, uint32_t number, uint64_t seed, float *out, uint64_t n)
{
    const spread s = spread_of(row);
    vkt_rng rng = vkt_rng_make(seed, VKT_STREAM_INIT, number, 0);
    for (uint64_t i = 0; i < n; i++)
        out[i] = (float)(s.normal ? s.a + (s.b == 0 ? 0 : s.b * vkt_rng_normal(&rng))
                                  : s.a + (s.b - s.a) * (double)vkt_rng_unit(&rng));
}

vkt_result vkt_nn_init(const vkt_builder *b, vkt_store *store, uint64_t seed)
{
    const vkt_host *h = &b->g->host;
    for (size_t i = 0; i < b->n_inits; i++) {
        const vkt_value *v = &b->g->values[b->inits[i].param.id];
        uint32_t at = 0;
        while (at < vkt_store_count(store) && strcmp(vkt_store_name(store, at), v->name) != 0) at++;
        float *values = vkt_alloc(h, v->bytes);
        if (!values) return vkt_fail_nomem(h, v->name, v->bytes);
        draw(&b->inits[i], (uint32_t)i, seed, values, vkt_shape_elements(v->shape));
        const vkt_result r = vkt_store_write(store, at, VKT_PART_VALUE, values);
        vkt_free(h, values);
        if (r != VKT_OK) return r;
    }
    return VKT_OK;
}
