// vktrain/vktrain.glsl - trained networks inside an application's shaders: layers and encodings of ops.h for one point.
// A fragment, compute or any other shader evaluates them inline.
//
// The language is GLSL 4.60. The #include needs GL_GOOGLE_include_directive. This file itself enables
// GL_EXT_control_flow_attributes.
// scripts/inline/generate.awk writes vktrain.glsl and vktrain.hlsl from one text, scripts/inline/vktrain.shader.
//
// The file declares no buffers and no variables. Macros define the functions that depend on sizes. A size may be a
// macro or a constant expression. Inputs, activations and results are arrays of vec4. An array of n numbers has
// VKT_VEC4S(n) elements. The components behind the n numbers may have any value, and nothing reads them.
//
//   layout(std430, binding = 0) readonly buffer Store { float store[]; };   // vkt_store_buffer: all parameters
//   layout(std430, binding = 1) readonly buffer Grid { uvec4 grid[]; };     // levels, from vkt_hash_grid_table
//   #define VKT_FLOAT(i) store[i]
//   #define VKT_LEVEL(l) grid[l]
//   #include "vktrain/vktrain.glsl"
//   VKT_HASH_GRID(encode, 2, 16, 2)
//   VKT_MLP3(color_of, VKT_RELU, VKT_IDENTITY, 32, 64, 64, 3)
//   ..
//   vec4 e[VKT_VEC4S(32)], y[VKT_VEC4S(3)];
//   encode(table_at, uv, e);
//   color_of(uint[](w1_at, b1_at, w2_at, b2_at, w3_at, b3_at), e, y);
//   color = y[0].xyz;
//
// The index of a parameter counts elements from the start of the binding. The index is
//   (vkt_store_buffer(..).offset_bytes - the binding's offset in bytes) / 4
// or a macro of the header that vkt_store_export writes. With parameters and arithmetic in float32, results for finite
// inputs equal those of the ops, except for rounding: additions may have another order, and some functions use the
// device's exp and log.
//
//   VKT_FLOAT(i)   reads element i of the parameters, as a float. You may redefine VKT_FLOAT between two uses of the
//                  macros that define functions.
//   VKT_FLOAT2(i), VKT_FLOAT4(i)
//                  read two or four elements from element i on. By default they use VKT_FLOAT. Define both macros if
//                  one wide load is faster than several VKT_FLOAT. VKT_FLOAT2 reads hash grids of 2 features.
//                  VKT_FLOAT4 reads hash grids of 4 or 8 features, the weights of layers whose number of inputs is a
//                  multiple of 4, and the bias of layers whose number of outputs is a multiple of 4. If all parameters
//                  begin at multiples of 4, i is a multiple of 2 for VKT_FLOAT2 and of 4 for VKT_FLOAT4. In this
//                  case, VKT_FLOAT4(i) may be store4[(i) >> 2], an element of a buffer of vec4. (The parameters of
//                  vkt_store_buffer and of vkt_store_export begin at multiples of 4.)
//   VKT_LEVEL(l)   reads level l of a hash grid: a uvec4 (resolution, mask, first, entries), from a buffer or a
//                  constant array. You may redefine VKT_LEVEL between two uses of the macros that define functions.
//   VKT_UNROLL     selects which loops of layers and encodings are unrolled. Define it before the #include.
//                  0: neither loops over inputs nor loops over outputs are unrolled. The size of the code does not
//                     depend on the widths, so drivers compile the code quickly. This is the default.
//                  1: loops over inputs are unrolled.
//                  2: loops over inputs and outputs are unrolled. The code has one multiplication per weight. For a
//                     network of 1728 weights on RDNA 3, RADV counts the fewest cycles with 2. CPU drivers may need
//                     minutes to compile this code.
#ifndef VKTRAIN_GLSL
#define VKTRAIN_GLSL
#ifndef VKT_KERNEL // kernels of the library use only the functions of the encodings
#ifndef VKT_UNROLL
#define VKT_UNROLL 0
#endif
#extension GL_EXT_control_flow_attributes : require
#define VKT_SHORT_LOOP [[unroll]]
#if VKT_UNROLL > 0
#define VKT_INPUT_LOOP [[unroll]]
#else
#define VKT_INPUT_LOOP [[dont_unroll]]
#endif
#if VKT_UNROLL > 1
#define VKT_OUTPUT_LOOP [[unroll]]
#else
#define VKT_OUTPUT_LOOP [[dont_unroll]]
#endif
#define VKT_VEC4S(n) (((n) + 3) / 4)
#define VKT_PASTE_EXPANDED(a, b) a##b
#define VKT_PASTE(a, b) VKT_PASTE_EXPANDED(a, b)

// With VKT_ARITHMETIC16, layers multiply and add in float16, and arrays have the type f16vec4. The device needs
// shaderFloat16. The shader needs GL_EXT_shader_explicit_arithmetic_types_float16. Each output has four partial sums in
// float16. These sums lose digits if a layer has many inputs. The last I % 4 products of an output, the total of the
// four sums, the bias and the activation are computed in float32.
#ifdef VKT_ARITHMETIC16
#define VKT_REAL4 f16vec4
#else
#define VKT_REAL4 vec4
#endif

// ---- how parameters are stored ----

// For a file of vkt_store_export in float16 or bfloat16, define a macro VKT_WORD(i) that reads word i (32 bits), and
//   #define VKT_FLOAT(i) VKT_HALF(i)      or VKT_BFLOAT(i)
//   #define VKT_FLOAT2(i) VKT_HALF2(i)    or VKT_BFLOAT2(i)
//   #define VKT_FLOAT4(i) VKT_HALF4(i)    or VKT_BFLOAT4(i)
// With these macros, an element is a number of 16 bits, and an index counts such elements.
#define VKT_HALF(i) vkt_two_halfs(VKT_WORD((i) >> 1u) >> 16u * ((i) & 1u)).x
#define VKT_HALF2(i) vkt_two_halfs(VKT_WORD((i) >> 1u))
#define VKT_HALF4(i) VKT_REAL4(vkt_two_halfs(VKT_WORD((i) >> 1u)), vkt_two_halfs(VKT_WORD(((i) >> 1u) + 1u)))
#define VKT_BFLOAT(i) uintBitsToFloat((VKT_WORD((i) >> 1u) >> 16u * ((i) & 1u)) << 16u)
#define VKT_BFLOAT2(i) vkt_four_bfloats(VKT_WORD((i) >> 1u), 0u).xy
#define VKT_BFLOAT4(i) vkt_four_bfloats(VKT_WORD((i) >> 1u), VKT_WORD(((i) >> 1u) + 1u))
#ifdef VKT_ARITHMETIC16
f16vec2 vkt_two_halfs(uint word) { return unpackFloat2x16(word); }
#else
vec2 vkt_two_halfs(uint word) { return unpackHalf2x16(word); }
#endif
vec4 vkt_four_bfloats(uint a, uint b)
{
    return uintBitsToFloat(uvec4(a << 16u, a & 0xffff0000u, b << 16u, b & 0xffff0000u));
}

#ifndef VKT_FLOAT2
#define VKT_FLOAT2(i) vec2(VKT_FLOAT(i), VKT_FLOAT((i) + 1u))
#endif
#ifndef VKT_FLOAT4
#define VKT_FLOAT4(i) VKT_FOUR_FLOATS(i)
#endif
#define VKT_FOUR_FLOATS(i) VKT_REAL4(VKT_FLOAT(i), VKT_FLOAT((i) + 1u), VKT_FLOAT((i) + 2u), VKT_FLOAT((i) + 3u))

// ---- activations: functions of a vec4, component by component ----

// Returns `yes` where c is true, and `no` elsewhere.
vec4 vkt_choose(bvec4 c, vec4 yes, vec4 no) { return mix(no, yes, c); }
#define VKT_LESS(a, b) lessThan(a, b)

// FUNCTION in the macros below is any macro or function of a vec4, for instance one of the following. If a function has
// more parameters, write a macro of one parameter: #define LEAKY(v) VKT_LEAKY_RELU(v, 0.01)
// All activations but IDENTITY, RELU, LEAKY_RELU and HARDSWISH have the errors of the device's exp and log. Results of
// TANH, ELU and SOFTPLUS that are near 0 may have few correct digits: only the absolute error is small.
#define VKT_IDENTITY(v) (v)
#define VKT_RELU(v) max(v, vec4(0.0))
#define VKT_LEAKY_RELU(v, slope) vkt_leaky_relu(v, slope)
#define VKT_ELU(v, alpha) vkt_elu(v, alpha)
#define VKT_GELU(v) vkt_gelu(v)
#define VKT_GELU_TANH(v) vkt_gelu_tanh(v)
#define VKT_SILU(v) vkt_silu(v)
#define VKT_HARDSWISH(v) vkt_hardswish(v)
#define VKT_SIGMOID(v) vkt_sigmoid(v)
#define VKT_TANH(v) vkt_tanh(v)
#define VKT_SOFTPLUS(v, beta, threshold) vkt_softplus(v, beta, threshold)
#define VKT_EXP(v) exp(v)

vec4 vkt_leaky_relu(vec4 v, float slope) { return vkt_choose(VKT_LESS(vec4(0.0), v), v, slope * v); }
vec4 vkt_elu(vec4 v, float alpha)
{
    return vkt_choose(VKT_LESS(vec4(0.0), v), v, alpha * (exp(min(v, vec4(0.0))) - 1.0));
}
// In sigmoid and tanh, exp is at most e^88, so the denominator is finite.
vec4 vkt_sigmoid(vec4 v) { return 1.0 / (1.0 + exp(-max(v, vec4(-88.0)))); }
vec4 vkt_tanh(vec4 v) { return 1.0 - 2.0 / (1.0 + exp(2.0 * min(v, vec4(44.0)))); }
vec4 vkt_silu(vec4 v) { return v * vkt_sigmoid(v); }
vec4 vkt_hardswish(vec4 v) { return v * (clamp(v + 3.0, vec4(0.0), vec4(6.0)) * (1.0 / 6.0)); }
vec4 vkt_gelu_tanh(vec4 v) { return v * vkt_sigmoid(1.59576912160573 * (v + 0.044715 * v * v * v)); }
// Computes x (1 + erf(x / sqrt 2)) / 2. `above` is the probability that a standard normal variable exceeds |x|. The
// function normal_above in shaders/lib/special.glsl has the same polynomial.
vec4 vkt_gelu(vec4 x)
{
    const vec4 t = min(abs(x), vec4(20.0)), v = (t - 2.5) / (t + 2.5);
    vec4 r = v * -6.52969578e-5 - 2.29972606e-4;
    r = 1.28341394e-3 + v * (1.26736312e-3 + v * (2.67419945e-6 + v * r));
    r = 4.60631090e-2 + v * (-8.69975860e-3 + v * (-6.04897811e-3 + v * r));
    r = 4.94659661e-1 + v * (-9.15874893e-2 + v * (-3.77166617e-2 + v * r));
    const vec4 above = exp(-0.5 * t * t) * (r / (1.0 + t));
    return x * vkt_choose(VKT_LESS(x, vec4(0.0)), above, 1.0 - above);
}
vec4 vkt_softplus(vec4 v, float beta, float threshold)
{
    const vec4 z = beta * v, y = max(z, vec4(0.0)) + log(1.0 + exp(-abs(z)));
    return vkt_choose(VKT_LESS(vec4(threshold), z), v, y / beta);
}

// ---- layers ----

// VKT_LAYER defines void name(uint weight, uint bias, vec4 x[VKT_VEC4S(I)], out vec4 y[VKT_VEC4S(O)]). The function
// computes y = FUNCTION(W x + b). W starts at element `weight`. It is (O,I), row-major, as in vkt_mlp and vkt_linear. b
// starts at element `bias`. If `bias` is VKT_NO_BIAS, b is left out.
#define VKT_NO_BIAS 0xffffffffu
#define VKT_LAYER(name, I, O, FUNCTION)                                                         \
    void name(uint weight, uint bias, VKT_REAL4 x[VKT_VEC4S(I)], out VKT_REAL4 y[VKT_VEC4S(O)]) \
    {                                                                                           \
        VKT_LAYER_BODY(weight, bias, x, I, y, O, FUNCTION)                                      \
    }

// VKT_MLP2 to VKT_MLP5 define a network of 2 to 5 layers:
//   void name(uint at[2 * LAYERS], vec4 x[VKT_VEC4S(I)], out vec4 y[VKT_VEC4S(O)])
// `at` has the starts of weight and bias, layer by layer. The hidden layers have the widths H1, H2, .. and the
// activation FUNCTION. The last layer has the activation LAST. You can also define each layer with VKT_LAYER and call
// the layers one after the other. The result is the same, but each call copies its arrays.
#define VKT_MLP2(name, FUNCTION, LAST, I, H1, O)                                    \
    void name(uint at[4], VKT_REAL4 x[VKT_VEC4S(I)], out VKT_REAL4 y[VKT_VEC4S(O)]) \
    {                                                                               \
        VKT_REAL4 h1[VKT_VEC4S(H1)];                                                \
        VKT_LAYER_BODY(at[0], at[1], x, I, h1, H1, FUNCTION)                        \
        VKT_LAYER_BODY(at[2], at[3], h1, H1, y, O, LAST)                            \
    }
#define VKT_MLP3(name, FUNCTION, LAST, I, H1, H2, O)                                \
    void name(uint at[6], VKT_REAL4 x[VKT_VEC4S(I)], out VKT_REAL4 y[VKT_VEC4S(O)]) \
    {                                                                               \
        VKT_REAL4 h1[VKT_VEC4S(H1)], h2[VKT_VEC4S(H2)];                             \
        VKT_LAYER_BODY(at[0], at[1], x, I, h1, H1, FUNCTION)                        \
        VKT_LAYER_BODY(at[2], at[3], h1, H1, h2, H2, FUNCTION)                      \
        VKT_LAYER_BODY(at[4], at[5], h2, H2, y, O, LAST)                            \
    }
#define VKT_MLP4(name, FUNCTION, LAST, I, H1, H2, H3, O)                            \
    void name(uint at[8], VKT_REAL4 x[VKT_VEC4S(I)], out VKT_REAL4 y[VKT_VEC4S(O)]) \
    {                                                                               \
        VKT_REAL4 h1[VKT_VEC4S(H1)], h2[VKT_VEC4S(H2)], h3[VKT_VEC4S(H3)];          \
        VKT_LAYER_BODY(at[0], at[1], x, I, h1, H1, FUNCTION)                        \
        VKT_LAYER_BODY(at[2], at[3], h1, H1, h2, H2, FUNCTION)                      \
        VKT_LAYER_BODY(at[4], at[5], h2, H2, h3, H3, FUNCTION)                      \
        VKT_LAYER_BODY(at[6], at[7], h3, H3, y, O, LAST)                            \
    }
#define VKT_MLP5(name, FUNCTION, LAST, I, H1, H2, H3, H4, O)                                  \
    void name(uint at[10], VKT_REAL4 x[VKT_VEC4S(I)], out VKT_REAL4 y[VKT_VEC4S(O)])          \
    {                                                                                         \
        VKT_REAL4 h1[VKT_VEC4S(H1)], h2[VKT_VEC4S(H2)], h3[VKT_VEC4S(H3)], h4[VKT_VEC4S(H4)]; \
        VKT_LAYER_BODY(at[0], at[1], x, I, h1, H1, FUNCTION)                                  \
        VKT_LAYER_BODY(at[2], at[3], h1, H1, h2, H2, FUNCTION)                                \
        VKT_LAYER_BODY(at[4], at[5], h2, H2, h3, H3, FUNCTION)                                \
        VKT_LAYER_BODY(at[6], at[7], h3, H3, h4, H4, FUNCTION)                                \
        VKT_LAYER_BODY(at[8], at[9], h4, H4, y, O, LAST)                                      \
    }

// VKT_LAYER_BODY has the statements of a layer. Each iteration of the outer loop computes four outputs. vkt_sum[r] has
// four partial sums of output r of the iteration. If O is not a multiple of 4, the last iteration computes the last
// output several times. If I is not a multiple of 4, the last 1 to 3 products come after the loop over inputs.
#define VKT_LAYER_BODY(WEIGHT, BIAS, IN, I, OUT, O, FUNCTION)                                          \
    {                                                                                                  \
        VKT_OUTPUT_LOOP for (uint vkt_o = 0u; vkt_o < uint(VKT_VEC4S(O)); vkt_o++) {                   \
            const uvec4 vkt_row = min(4u * vkt_o + uvec4(0u, 1u, 2u, 3u), uvec4(uint((O) - 1)));       \
            const uvec4 vkt_at = (WEIGHT) + vkt_row * uint(I);                                         \
            VKT_REAL4 vkt_sum[4];                                                                      \
            VKT_SHORT_LOOP for (uint vkt_s = 0u; vkt_s < 4u; vkt_s++) vkt_sum[vkt_s] = VKT_REAL4(0.0); \
            VKT_INPUT_LOOP for (uint vkt_i = 0u; vkt_i < uint((I) / 4); vkt_i++) {                     \
                const VKT_REAL4 vkt_v = IN[vkt_i];                                                     \
                VKT_SHORT_LOOP for (uint vkt_r = 0u; vkt_r < 4u; vkt_r++)                              \
                    vkt_sum[vkt_r] += VKT_ROW4(vkt_at[vkt_r] + 4u * vkt_i, I) * vkt_v;                 \
            }                                                                                          \
            if ((I) % 4 != 0) {                                                                        \
                const vec4 vkt_rest = VKT_ONLY((I) % 4, vec4(IN[VKT_VEC4S(I) - 1]));                   \
                VKT_SHORT_LOOP for (uint vkt_q = 0u; vkt_q < 4u; vkt_q++)                              \
                    vkt_sum[vkt_q] +=                                                                  \
                        VKT_REAL4(VKT_REST4(vkt_at[vkt_q] + uint((I) / 4 * 4), (I) % 4) * vkt_rest);   \
            }                                                                                          \
            vec4 vkt_y = vec4(VKT_TOTAL(vkt_sum[0]), VKT_TOTAL(vkt_sum[1]), VKT_TOTAL(vkt_sum[2]),     \
                              VKT_TOTAL(vkt_sum[3]));                                                  \
            if ((BIAS) != VKT_NO_BIAS) {                                                               \
                if ((O) % 4 == 0)                                                                      \
                    vkt_y += vec4(VKT_FLOAT4((BIAS) + 4u * vkt_o));                                    \
                else                                                                                   \
                    vkt_y += vec4(VKT_FLOAT((BIAS) + vkt_row.x), VKT_FLOAT((BIAS) + vkt_row.y),        \
                                  VKT_FLOAT((BIAS) + vkt_row.z), VKT_FLOAT((BIAS) + vkt_row.w));       \
            }                                                                                          \
            OUT[vkt_o] = VKT_REAL4(FUNCTION(vkt_y));                                                   \
        }                                                                                              \
    }
#define VKT_TOTAL(v) ((float((v).x) + float((v).y)) + (float((v).z) + float((v).w)))
// Reads four weights from element i on. A row of the weight matrix has I weights.
#define VKT_ROW4(i, I) ((I) % 4 == 0 ? VKT_REAL4(VKT_FLOAT4(i)) : VKT_REAL4(VKT_FOUR_FLOATS(i)))
// VKT_ONLY returns the first n components of v, and VKT_REST4 returns n weights from element i on. n is 1 to 3. The
// other components of the result are zero.
#define VKT_ONLY(n, v) vec4((v).x, (n) > 1 ? (v).y : 0.0, (n) > 2 ? (v).z : 0.0, 0.0)
#define VKT_REST4(i, n) \
    vec4(VKT_FLOAT(i), (n) > 1 ? float(VKT_FLOAT((i) + 1u)) : 0.0, (n) > 2 ? float(VKT_FLOAT((i) + 2u)) : 0.0, 0.0)

// VKT_COOPERATIVE_LAYER defines the function of VKT_LAYER with a cooperative vector, for devices that have
// VK_NV_cooperative_vector. The shader needs GL_NV_cooperative_vector and
// GL_EXT_shader_explicit_arithmetic_types_float16. BUFFER is the array of a storage buffer with the contents of a
// file of vkt_store_export in float16. `weight` and `bias` count numbers of 16 bits from the start of this array. The
// number of inputs, I, is a multiple of 8. No test has run this macro so far, because only drivers of GPUs have the
// extension.
#define VKT_COOPERATIVE_LAYER(name, I, O, FUNCTION, BUFFER)                                                   \
    void name(uint weight, uint bias, VKT_REAL4 x[VKT_VEC4S(I)], out VKT_REAL4 y[VKT_VEC4S(O)])               \
    {                                                                                                         \
        coopvecNV<float16_t, I> v;                                                                            \
        coopvecNV<float16_t, O> s;                                                                            \
        VKT_SHORT_LOOP for (uint i = 0u; i < uint(I); i++) v[i] = float16_t(x[i / 4u][i % 4u]);               \
        if (bias == VKT_NO_BIAS)                                                                              \
            coopVecMatMulNV(s, v, gl_ComponentTypeFloat16NV, BUFFER, 2u * weight,                             \
                            gl_ComponentTypeFloat16NV, O, I,                                                  \
                            gl_CooperativeVectorMatrixLayoutRowMajorNV, false, 2u * uint(I));                 \
        else                                                                                                  \
            coopVecMatMulAddNV(s, v, gl_ComponentTypeFloat16NV, BUFFER, 2u * weight,                          \
                               gl_ComponentTypeFloat16NV, BUFFER, 2u * bias, gl_ComponentTypeFloat16NV, O, I, \
                               gl_CooperativeVectorMatrixLayoutRowMajorNV, false, 2u * uint(I));              \
        VKT_SHORT_LOOP for (uint o = 0u; o < uint(VKT_VEC4S(O)); o++) {                                       \
            const uvec4 row = min(4u * o + uvec4(0u, 1u, 2u, 3u), uvec4(uint((O) - 1)));                      \
            y[o] = VKT_REAL4(FUNCTION(vec4(s[row.x], s[row.y], s[row.z], s[row.w])));                         \
        }                                                                                                     \
    }
#endif

// ---- hash grids: vkt_hash_grid ----

// For each of four coordinates, computes the index `cell` of the grid cell, and the position `fraction` (0 to 1) of the
// coordinate inside this cell. Coordinates are clamped to [0,1]. The product of resolution and x is a fixed-point
// number with 32 bits for the fraction, because in fine grids a product of floats would have few digits for `fraction`.
// If x is NaN, `fraction` is NaN.
void vkt_hash_grid_cell(vec4 x, uint resolution, out uvec4 cell, out vec4 fraction)
{
    uvec4 rest;
    umulExtended(uvec4(4294967296.0 * clamp(x, 0.0, 0.99999994)), uvec4(resolution), cell, rest);
    fraction = mix(vec4(rest) / 4294967296.0, vec4(1.0), greaterThanEqual(x, vec4(1.0)));
    fraction = mix(fraction, x, isnan(x));
}

// Returns the index of the entry for corner c, counted from the level's first entry. In two dimensions c.z = 0.
// (Mueller et al. 2022, section 3 and equation 4.)
uint vkt_hash_grid_entry(uvec3 c, uvec4 level)
{
    const uint row = level.x + 1u;
    return level.y == 0u ? c.x + row * (c.y + row * c.z) : (c.x ^ c.y * 2654435761u ^ c.z * 805459861u) & level.y;
}

// VKT_HASH_GRID defines void name(uint table, vecD x, out vec4 y[VKT_VEC4S(LEVELS * F)]). The function computes the
// features y of point x. D is 2 or 3. F is 1, 2, 4 or 8. The table of the hash grid starts at element `table`.
#define VKT_HASH_GRID(name, D, LEVELS, F)                                                          \
    void name(uint table, VKT_PASTE(vec, D) x, out VKT_REAL4 y[VKT_VEC4S((LEVELS) * (F))])         \
    {                                                                                              \
        VKT_OUTPUT_LOOP for (uint q = 0u; q < uint(VKT_VEC4S((LEVELS) * (F))); q++) {              \
            vec4 sum = vec4(0.0);                                                                  \
            VKT_SHORT_LOOP for (uint c = 0u; c < 4u; c += uint((F) < 4 ? (F) : 4)) {               \
                const uint first = min(4u * q + c, uint((LEVELS) * (F) - ((F) < 4 ? (F) : 4)));    \
                const uvec4 level = VKT_LEVEL(first / uint(F));                                    \
                uvec4 cell;                                                                        \
                vec4 fraction;                                                                     \
                vkt_hash_grid_cell(VKT_PASTE(VKT_POINT, D)(x), level.x, cell, fraction);           \
                VKT_INPUT_LOOP for (uint k = 0u; k < 1u << uint(D); k++) {                         \
                    const uvec3 side = uvec3(k, k >> 1u, k >> 2u) & 1u;                            \
                    const float share = VKT_SHARE(x) * VKT_SHARE(y) * VKT_SHARE(z);                \
                    const uint entry = level.z + vkt_hash_grid_entry(cell.xyz + side, level);      \
                    const uint at = table + entry * uint(F) + first % uint(F);                     \
                    const vec4 part = share * VKT_FEATURES(at, F);                                 \
                    sum += c == 0u ? part : c == 1u ? part.wxyz : c == 2u ? part.zwxy : part.yzwx; \
                }                                                                                  \
            }                                                                                      \
            y[q] = VKT_REAL4(sum);                                                                 \
        }                                                                                          \
    }
// Reads four features from element i on. If F is 1 or 2, reads only F features, and zeros follow.
#define VKT_FEATURES(i, F) \
    ((F) == 1 ? vec4(VKT_FLOAT(i), 0.0, 0.0, 0.0) : (F) == 2 ? vec4(VKT_FLOAT2(i), 0.0, 0.0) : vec4(VKT_FLOAT4(i)))
#define VKT_SHARE(axis) (side.axis == 0u ? 1.0 - fraction.axis : fraction.axis)
#define VKT_POINT2(x) vec4(x, 0.0, 0.0)
#define VKT_POINT3(x) vec4(x, 0.0)

// ---- frequencies: vkt_frequency ----

// Computes sin(pi x) and cos(pi x). Let r be x minus the nearest multiple of 1/2, so |r| is at most 1/4. Taylor series
// give sin(pi r) and cos(pi r). The multiple of 1/2 determines whether these two numbers are exchanged or negated. The
// error is at most two ulp. The result is exact if x is a multiple of 1/2. The subtraction of whole periods is exact.
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

// VKT_FREQUENCY defines void name(vecD x, out vec4 y[VKT_VEC4S(2 * D * K)]). The function computes sine and cosine of
// each coordinate of x, at K frequencies. D is 2 to 4.
#define VKT_FREQUENCY(name, D, K)                                                                  \
    void name(VKT_PASTE(vec, D) x, out VKT_REAL4 y[VKT_VEC4S(2 * (D) * (K))])                      \
    {                                                                                              \
        VKT_OUTPUT_LOOP for (uint q = 0u; q < uint(VKT_VEC4S(2 * (D) * (K))); q++) {               \
            const uint a = 2u * q, b = min(a + 1u, uint((D) * (K) - 1)), n = uint(K);              \
            vec4 s, c;                                                                             \
            vkt_sin_cos_pi(vec4(uintBitsToFloat(a % n + 127u << 23u) * x[a / n],                   \
                                uintBitsToFloat(b % n + 127u << 23u) * x[b / n], 0.0, 0.0), s, c); \
            y[q] = VKT_REAL4(vec4(s.x, c.x, s.y, c.y));                                            \
        }                                                                                          \
    }
#endif
