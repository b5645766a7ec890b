// vktrain/vktrain.glsl - trained networks inside an application's shaders: layers and encodings of ops.h for one point, evaluated
// inline by a fragment, compute or any other shader.
//
// GLSL 4.60, without extensions but the one for #include (GL_GOOGLE_include_directive). It declares functions alone; those that
// depend on sizes are made by macros:
//
//   layout(std430, binding = 0) readonly buffer Store { float store[]; };   // of vkt_store_buffer: it has all parameters
//   layout(std430, binding = 1) readonly buffer Grid { uvec4 grid[]; };     // levels as vkt_hash_grid_table tells
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
// Where a parameter lies is counted in floats from the start of the binding: (vkt_store_buffer(..).offset_bytes - the binding's) / 4.
// Results are those of the ops but for the order of additions.
//
//   VKT_FLOAT(i)  how float i of the parameters is read; may be redefined between two uses of the macros below
//   VKT_LEVEL(l)  likewise, level l of a hash grid: a uvec4 (resolution, mask, first, entries), in a buffer or a constant array
//   VKT_LOOP      stands before each loop: nothing, unless defined before, e.g. as [[unroll]] (GL_EXT_control_flow_attributes)
#ifndef VKTRAIN_GLSL
#define VKTRAIN_GLSL
#ifndef VKT_LOOP
#define VKT_LOOP
#endif

// ---- layers ----

// void name(uint weight, uint bias, float x[I], out float y[O]): y = FUNCTION(weight x + bias), weight (O,I) by rows, as in vkt_mlp and
// vkt_linear. VKT_NO_BIAS: there is none. FUNCTION is any macro or function of a float.
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

// Of four coordinates, each in [0,1] or taken to its edge: the cell of a grid, and how far into it, from 0 to 1, the coordinate
// lies. Products of resolution and x are fractions of 2^32: a product of floats would leave `way` without digits in fine grids.
// NaN is handed on by `way`.
void vkt_hash_grid_cell(vec4 x, uint resolution, out uvec4 cell, out vec4 way)
{
    uvec4 rest;
    umulExtended(uvec4(4294967296.0 * clamp(x, 0.0, 0.99999994)), uvec4(resolution), cell, rest);
    way = mix(vec4(rest) / 4294967296.0, vec4(1.0), greaterThanEqual(x, vec4(1.0)));
    way = mix(way, x, isnan(x));
}

// The entry, of those of its level, for a corner of cells; of two dimensions: c.z = 0. (Mueller et al. 2022, section 3 and
// equation 4.)
uint vkt_hash_grid_entry(uvec3 c, uvec4 level)
{
    const uint row = level.x + 1u;
    return level.y == 0u ? c.x + row * (c.y + row * c.z) : (c.x ^ c.y * 2654435761u ^ c.z * 805459861u) & level.y;
}

// void name(uint table, vecD x, out float y[LEVELS * F]), D 2 or 3: features of the table that begins at float `table`.
#define VKT_HASH_GRID(name, D, LEVELS, F)                                                            \
    void name(uint table, vec##D x, out float y[LEVELS * F])                                         \
    {                                                                                                \
        VKT_LOOP for (uint l = 0u; l < uint(LEVELS); l++) {                                          \
            const uvec4 level = VKT_LEVEL(l);                                                        \
            uvec4 cell;                                                                              \
            vec4 way;                                                                                \
            vkt_hash_grid_cell(vec4(x, vec2(0.0)), level.x, cell, way);                              \
            VKT_LOOP for (uint f = 0u; f < uint(F); f++) y[l * F + f] = 0.0;                         \
            VKT_LOOP for (uint k = 0u; k < 1u << D; k++) {                                           \
                const uvec3 side = uvec3(k, k >> 1, k >> 2) & 1u;                                    \
                const vec3 share = mix(1.0 - way.xyz, way.xyz, bvec3(side));                         \
                const uint at = table + (level.z + vkt_hash_grid_entry(cell.xyz + side, level)) * F; \
                VKT_LOOP for (uint f = 0u; f < uint(F); f++)                                         \
                    y[l * F + f] += share.x * share.y * share.z * VKT_FLOAT(at + f);                 \
            }                                                                                        \
        }                                                                                            \
    }

// ---- frequencies: vkt_frequency ----

// sin(pi x) and cos(pi x) by their series, of x within a quarter of a multiple of 1/2: to an ulp or two, and exact where x is a
// multiple of 1/2. Whole periods are taken off without rounding.
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

// void name(vecD x, out float y[2 * D * K]), D from 2 to 4: K frequencies of each coordinate.
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
