/* nn/init.c - initial values of parameters; train/init.c brings them into a store. */
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

void vkt_builder_draw(const vkt_builder *b, size_t i, uint64_t seed, float *out)
{
    const vkt_init_row *row = &b->inits[i];
    const spread s = spread_of(row);
    const vkt_shape shape = vkt_value_of(b->g, row->param)->shape;
    const uint64_t n = vkt_shape_elements(shape), width = n / shape.dim[0];
    vkt_rng rng = vkt_rng_make(seed, VKT_STREAM_INIT, (uint32_t)i, 0);
    for (uint64_t k = 0; k < n; k++)
        out[k] = (float)(s.normal ? s.a + (s.b == 0 ? 0 : s.b * vkt_rng_normal(&rng))
                                  : s.a + (s.b - s.a) * (double)vkt_rng_unit(&rng));
    for (uint64_t k = 0; k < width && row->zero_row < shape.dim[0]; k++) out[row->zero_row * width + k] = 0;
}
