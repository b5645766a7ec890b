/* nn/init.c - initial values of parameters; train/init.c writes them to a store. */
#include "nn/builder.h"

#include <math.h>

/* The standard deviation of a standard normal variable that is truncated at +-2. It is
 * sqrt(1 - 4 * phi(2) / (2 * Phi(2) - 1)), where phi and Phi are the normal density and distribution function. Like
 * Keras, VKT_INIT_GLOROT_NORMAL divides the wanted standard deviation by this number. */
static const double truncated_std = 0.87962566103423978;

/* The distribution of an initializer: uniform in [a, b), or normal with mean a and deviation b. `truncated`: only
 * numbers from a - 2 * b to a + 2 * b. A deviation of 0 gives the constant a. */
typedef struct spread {
    bool normal, truncated;
    double a, b;
} spread;

static spread spread_of(const vkt_init_row *row)
{
    const double in = row->fan_in ? row->fan_in : 1, out = row->fan_out ? row->fan_out : 1;
    const double a = (double)row->init.a, b = (double)row->init.b;
    double bound = 0;
    switch (row->init.kind) {
    case VKT_INIT_CONSTANT: return (spread){ .normal = true, .a = a };
    case VKT_INIT_UNIFORM: return (spread){ .a = a, .b = b };
    case VKT_INIT_NORMAL: return (spread){ .normal = true, .a = a, .b = b };
    case VKT_INIT_TRUNCATED_NORMAL: return (spread){ .normal = true, .truncated = true, .a = a, .b = b };
    case VKT_INIT_XAVIER_NORMAL: return (spread){ .normal = true, .b = sqrt(2 / (in + out)) };
    case VKT_INIT_KAIMING_NORMAL: return (spread){ .normal = true, .b = sqrt(2 / in) };
    case VKT_INIT_GLOROT_NORMAL:
        return (spread){ .normal = true, .truncated = true, .b = sqrt(2 / (in + out)) / truncated_std };
    case VKT_INIT_ORTHOGONAL: return (spread){ .normal = true, .b = 1 };
    case VKT_INIT_DEFAULT: bound = 1 / sqrt(in); break;
    case VKT_INIT_XAVIER_UNIFORM: bound = sqrt(6 / (in + out)); break;
    case VKT_INIT_KAIMING_UNIFORM: bound = sqrt(6 / in); break;
    }
    return (spread){ .a = -bound, .b = bound };
}

static double draw(const spread *s, vkt_rng *rng)
{
    if (!s->normal) return s->a + (s->b - s->a) * (double)vkt_rng_unit(rng);
    if (s->b == 0) return s->a;
    double z = vkt_rng_normal(rng);
    while (s->truncated && fabs(z) > 2) z = vkt_rng_normal(rng);
    return s->a + s->b * z;
}

/* `count` vectors of `length` floats each, stored in x. Element k of vector i is x[i * next + k * stride]. */
typedef struct vectors {
    float *x;
    uint64_t count, length, next, stride;
} vectors;

static double dot(const vectors *v, uint64_t i, uint64_t j)
{
    const float *a = v->x + i * v->next, *b = v->x + j * v->next;
    double sum = 0;
    for (uint64_t k = 0; k < v->length; k++) sum += (double)a[k * v->stride] * (double)b[k * v->stride];
    return sum;
}

static void scale(const vectors *v, uint64_t i, double by)
{
    for (uint64_t k = 0; k < v->length; k++)
        v->x[i * v->next + k * v->stride] = (float)((double)v->x[i * v->next + k * v->stride] * by);
}

/* Orthonormalizes vectors of normally distributed numbers by Gram and Schmidt's method. The method factors the matrix
 * of the vectors into Q R, where R has a positive diagonal. So all Q are equally likely (Mezzadri 2007). The projection
 * on the earlier vectors is subtracted twice, because one subtraction leaves rounding errors (Giraud et al. 2005). */
static void orthonormalize(const vectors *v)
{
    for (uint64_t i = 0; i < v->count; i++) {
        for (uint64_t iteration = 0; iteration < 2 * i; iteration++) {
            const uint64_t j = iteration % i;
            const double along = dot(v, i, j);
            for (uint64_t k = 0; k < v->length; k++)
                v->x[i * v->next + k * v->stride] -= (float)(along * (double)v->x[j * v->next + k * v->stride]);
        }
        scale(v, i, 1 / sqrt(dot(v, i, i)));
    }
}

void vkt_builder_draw(const vkt_builder *b, size_t i, uint64_t seed, float *out)
{
    const vkt_init_row *row = &b->inits[i];
    const spread s = spread_of(row);
    const vkt_shape shape = vkt_value_of(b->g, row->param)->shape;
    const uint64_t n = vkt_shape_elements(shape), height = shape.rank ? shape.dim[0] : 1, width = n / height;
    vkt_rng rng = vkt_rng_make(seed, VKT_STREAM_INIT, (uint32_t)i, 0);
    for (uint64_t k = 0; k < n; k++) out[k] = (float)draw(&s, &rng);
    if (row->init.kind == VKT_INIT_ORTHOGONAL) {
        const vectors rows = { out, height, width, width, 1 }, columns = { out, width, height, 1, width };
        const vectors *v = height <= width ? &rows : &columns;
        orthonormalize(v);
        for (uint64_t k = 0; k < v->count; k++) scale(v, k, (double)vkt_or_f32(row->init.a, 1));
    }
    for (uint64_t k = 0; k < width && row->zero_row < height; k++) out[row->zero_row * width + k] = 0;
}
