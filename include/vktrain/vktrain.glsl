// vktrain/vktrain.glsl - trained networks inside an application's shaders: layers and encodings of ops.h for one point. A
// fragment, compute or any other shader evaluates them inline.
//
// GLSL 4.60. The only extension is the one for #include (GL_GOOGLE_include_directive). The file declares only functions. Macros
// make the functions that depend on sizes:
//
//   layout(std430, binding = 0) readonly buffer Store { float store[]; };   // vkt_store_buffer: all parameters
//   layout(std430, binding = 1) readonly buffer Grid { uvec4 grid[]; };     // levels, from vkt_hash_grid_table
//   #define VKT_FLOAT(i) store[i]
//   #define VKT_LEVEL(l) grid[l]
//   #include "vktrain/vktrain.glsl"
//   VKT_HASH_GRID(encode, 2, 16, 2)
//   VKT_LAYER(first, 32, 64, VKT_RELU)
//   VKT_LAYER(last, 64, 3, VKT_IDENTITY)
//   ..
//   float e[32], h[64], y[3];
//   encode(table_at, uv, e);
//   first(w1_at, b1_at, e, h);
//   last(w2_at, b2_at, h, y);
//
// The index of a parameter counts floats from the start of the binding:
//   (vkt_store_buffer(..).offset_bytes - the binding's offset in bytes) / 4
// Results equal those of the ops, except for the order of additions.
//
//   VKT_FLOAT(i)  reads float i of the parameters; you may redefine it between two uses of the macros below
//   VKT_LEVEL(l)  reads level l of a hash grid: a uvec4 (resolution, mask, first, entries), from a buffer or a constant array;
//                 you may redefine it in the same way
//   VKT_LOOP      is placed before each loop. It is empty, unless you define it first, e.g. as [[unroll]]
//                 (GL_EXT_control_flow_attributes)
#ifndef VKTRAIN_GLSL
#define VKTRAIN_GLSL
#ifndef VKT_LOOP
#define VKT_LOOP
#endif

// ---- layers ----

// VKT_LAYER defines void name(uint weight, uint bias, float x[I], out float y[O]). It computes y = FUNCTION(weight x + bias).
// The parameters start at floats `weight` and `bias`. The weight is (O,I), row-major, as in vkt_mlp and vkt_linear. If `bias`
// is VKT_NO_BIAS, there is no bias. FUNCTION is any macro or function of a float.
#define VKT_NO_BIAS 0xffffffffu
#define VKT_IDENTITY(s) (s)
#define VKT_RELU(s) max(s, 0.0)
#define VKT_LAYER(name, I, O, FUNCTION)                                                             \
    void name(uint weight, uint bias, float x[I], out float y[O])                                   \
    {                                                                                               \
        VKT_LOOP for (uint o = 0u; o < uint(O); o++) {                                              \
            float s = bias == VKT_NO_BIAS ? 0.0 : VKT_FLOAT(bias + o);                              \
            VKT_LOOP for (uint i = 0u; i < uint(I); i++) s += VKT_FLOAT(weight + o * I + i) * x[i]; \
            y[o] = FUNCTION(s);                                                                     \
        }                                                                                           \
    }

// ---- hash grids: vkt_hash_grid ----

// Computes for four coordinates: the cell of a grid, and `fraction`, the coordinate's position inside the cell (0 to 1).
// Coordinates are clamped to [0,1]. The product of resolution and x is computed in fractions of 2^32: in fine grids a product
// of floats would leave no digits for `fraction`. If x is NaN, `fraction` is NaN.
void vkt_hash_grid_cell(vec4 x, uint resolution, out uvec4 cell, out vec4 fraction)
{
    uvec4 rest;
    umulExtended(uvec4(4294967296.0 * clamp(x, 0.0, 0.99999994)), uvec4(resolution), cell, rest);
    fraction = mix(vec4(rest) / 4294967296.0, vec4(1.0), greaterThanEqual(x, vec4(1.0)));
    fraction = mix(fraction, x, isnan(x));
}

// Returns the index of the entry for corner c, counted from the level's first entry. In two dimensions c.z = 0. (Mueller et
// al. 2022, section 3 and equation 4.)
uint vkt_hash_grid_entry(uvec3 c, uvec4 level)
{
    const uint row = level.x + 1u;
    return level.y == 0u ? c.x + row * (c.y + row * c.z) : (c.x ^ c.y * 2654435761u ^ c.z * 805459861u) & level.y;
}

// VKT_HASH_GRID defines void name(uint table, vecD x, out float y[LEVELS * F]). It computes the features y of point x. D is 2
// or 3. The table of the hash grid starts at float `table`.
#define VKT_HASH_GRID(name, D, LEVELS, F)                                                            \
    void name(uint table, vec##D x, out float y[LEVELS * F])                                         \
    {                                                                                                \
        VKT_LOOP for (uint l = 0u; l < uint(LEVELS); l++) {                                          \
            const uvec4 level = VKT_LEVEL(l);                                                        \
            uvec4 cell;                                                                              \
            vec4 fraction;                                                                           \
            vkt_hash_grid_cell(vec4(x, vec2(0.0)), level.x, cell, fraction);                         \
            VKT_LOOP for (uint f = 0u; f < uint(F); f++) y[l * F + f] = 0.0;                         \
            VKT_LOOP for (uint k = 0u; k < 1u << D; k++) {                                           \
                const uvec3 side = uvec3(k, k >> 1, k >> 2) & 1u;                                    \
                const vec3 share = mix(1.0 - fraction.xyz, fraction.xyz, bvec3(side));               \
                const uint at = table + (level.z + vkt_hash_grid_entry(cell.xyz + side, level)) * F; \
                VKT_LOOP for (uint f = 0u; f < uint(F); f++)                                         \
                    y[l * F + f] += share.x * share.y * share.z * VKT_FLOAT(at + f);                 \
            }                                                                                        \
        }                                                                                            \
    }

// ---- grids of latents: vkt_latent_grid of vkt_quantize ----

// Computes, along one axis, the two cells around the centre of a texel in a grid of `cells` cells of `scale` texels each, and
// the texel's distance from the first cell (0 to 1). Cells outside the grid become the nearest cell inside.
void vkt_latent_cells(uint texel, uint scale, uint cells, out uvec2 cell, out float fraction)
{
    const uint at = 2u * texel + 1u + scale, next = at / (2u * scale);
    cell = uvec2(max(next, 1u) - 1u, min(next, cells - 1u));
    fraction = float(at - next * 2u * scale) / float(2u * scale);
}

// Returns x rounded to 2^bits levels in [0,1], as vkt_quantize without noise. bits = 0: x itself.
float vkt_quantized(float x, uint bits)
{
    const float steps = float((1u << bits) - 1u);
    return bits == 0u ? x : floor(steps * clamp(x, 0.0, 1.0) + 0.5) / steps;
}
#define VKT_LATENT(i, bits) vkt_quantized(VKT_FLOAT(i), bits)

// VKT_LATENT_GRID defines a function that writes `features` features of a texel to y[at] and the elements behind it: the mean
// of the four cells. VKT_LATENT_CORNERS defines one that writes the four cells of each feature. The grid starts at float
// `grid`. size: (scale, rows, columns). texel: (column, row). bits: see vkt_quantized.
#define VKT_LATENT_GRID(name, N)                                                                        \
    void name(uint grid, uint features, uvec3 size, uint bits, uvec2 texel, uint at, inout float y[N])  \
    {                                                                                                   \
        uvec2 u, v;                                                                                     \
        float fu, fv;                                                                                   \
        vkt_latent_cells(texel.x, size.x, size.z, u, fu);                                               \
        vkt_latent_cells(texel.y, size.x, size.y, v, fv);                                               \
        VKT_LOOP for (uint f = 0u; f < features; f++) {                                                 \
            const uint top = grid + (f * size.y + v.x) * size.z, bottom = grid + (f * size.y + v.y) * size.z;\
            const float above = mix(VKT_LATENT(top + u.x, bits), VKT_LATENT(top + u.y, bits), fu);      \
            const float under = mix(VKT_LATENT(bottom + u.x, bits), VKT_LATENT(bottom + u.y, bits), fu);\
            y[at + f] = mix(above, under, fv);                                                          \
        }                                                                                               \
    }
#define VKT_LATENT_CORNERS(name, N)                                                                     \
    void name(uint grid, uint features, uvec3 size, uint bits, uvec2 texel, uint at, inout float y[N])  \
    {                                                                                                   \
        uvec2 u, v;                                                                                     \
        float fu, fv;                                                                                   \
        vkt_latent_cells(texel.x, size.x, size.z, u, fu);                                               \
        vkt_latent_cells(texel.y, size.x, size.y, v, fv);                                               \
        VKT_LOOP for (uint f = 0u; f < features; f++) {                                                 \
            const uint top = grid + (f * size.y + v.x) * size.z, bottom = grid + (f * size.y + v.y) * size.z;\
            y[at + 4u * f] = VKT_LATENT(top + u.x, bits);                                               \
            y[at + 4u * f + 1u] = VKT_LATENT(top + u.y, bits);                                          \
            y[at + 4u * f + 2u] = VKT_LATENT(bottom + u.x, bits);                                       \
            y[at + 4u * f + 3u] = VKT_LATENT(bottom + u.y, bits);                                       \
        }                                                                                               \
    }

// ---- frequencies: vkt_frequency ----

// Computes sin(pi x) and cos(pi x). x is reduced to the distance from the nearest multiple of 1/2, which is at most 1/4, and
// then the series is used. The error is one or two ulp. The result is exact if x is a multiple of 1/2. Whole periods are
// subtracted without rounding.
void vkt_sin_cos_pi(vec4 x, out vec4 sin_pi, out vec4 cos_pi)
{
    const vec4 t = x - 2.0 * round(0.5 * x), quarter = round(2.0 * t), r = t - 0.5 * quarter, u = r * r;
    const vec4 s = r * (3.14159265358979 + u * (-5.16771278004997 + u * (2.55016403987735 + u * (-0.599264529320792 +
                   u * 0.0821458866111282))));
    const vec4 c = 1.0 + u * (-4.93480220054468 + u * (4.05871212641677 + u * (-1.33526276885459 + u * (0.235330630358893 -
                   u * 0.0258068913900141))));
    const bvec4 odd = equal(abs(quarter), vec4(1.0)), half_turn = equal(abs(quarter), vec4(2.0));
    const bvec4 sign = bvec4(uvec4(half_turn) | uvec4(odd) & uvec4(lessThan(quarter, vec4(0.0))));
    sin_pi = mix(s, c, odd);
    sin_pi = mix(sin_pi, -sin_pi, sign);
    cos_pi = mix(c, -s, odd);
    cos_pi = mix(cos_pi, -cos_pi, sign);
}

// VKT_FREQUENCY defines void name(vecD x, out float y[2 * D * K]). It computes sine and cosine of each coordinate of x, at K
// frequencies. D is 2 to 4.
#define VKT_FREQUENCY(name, D, K)                                      \
    void name(vec##D x, out float y[2 * D * K])                        \
    {                                                                  \
        VKT_LOOP for (uint k = 0u; k < uint(K); k++) {                 \
            vec4 p = vec4(0.0), s, c;                                  \
            VKT_LOOP for (uint d = 0u; d < uint(D); d++) p[d] = x[d];  \
            vkt_sin_cos_pi(uintBitsToFloat(k + 127u << 23) * p, s, c); \
            VKT_LOOP for (uint d = 0u; d < uint(D); d++) {             \
                y[2u * (d * K + k)] = s[d];                            \
                y[2u * (d * K + k) + 1u] = c[d];                       \
            }                                                          \
        }                                                              \
    }
#endif
