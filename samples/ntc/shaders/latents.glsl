// latents.glsl - functions that read the latents around one texel, and that compute a layer of the network. The results
// equal those of vkt_quantize and vkt_latent_grid. If the network computes a whole block of texels at once, "texel"
// means a block in this file: `texel` is the index of a block, and `scale` is the number of blocks along a side of a
// cell. The shader that includes this file defines FLOAT(i), which reads float i of the parameters.
// All sizes may be specialization constants. This is why the library's vktrain.glsl is not used: in GLSL, two arrays
// have different types if their sizes are different expressions of such constants.

// Along one axis, a grid has `cells` cells of `scale` texels each. Computes the two cells around the centre of a texel. Also
// computes the distance from the centre of the first of these cells to the centre of the texel, in cells (0 to 1). After that,
// a cell outside the grid is replaced by the nearest cell inside.
void latent_cells(uint texel, uint scale, uint cells, out uvec2 cell, out float fraction)
{
    const uint at = 2u * texel + 1u + scale, next = at / (2u * scale);
    cell = uvec2(max(next, 1u) - 1u, min(next, cells - 1u));
    fraction = float(at - next * 2u * scale) / float(2u * scale);
}

// Returns x rounded to 2^bits levels in [0,1], as vkt_quantize without noise does. With bits = 0, returns x.
float quantized(float x, uint bits)
{
    const float steps = float((1u << bits) - 1u);
    return bits == 0u ? x : floor(steps * clamp(x, 0.0, 1.0) + 0.5) / steps;
}

// Reads feature f of four cells: upper left, upper right, lower left, lower right. u has the two columns, v the two rows. The
// grid starts at float `grid` of the parameters; `size` is (scale, rows, columns).
vec4 latents_of(uint grid, uvec3 size, uint bits, uint f, uvec2 u, uvec2 v)
{
    const uint top = grid + (f * size.y + v.x) * size.z, bottom = grid + (f * size.y + v.y) * size.z;
    return vec4(quantized(FLOAT(top + u.x), bits), quantized(FLOAT(top + u.y), bits), quantized(FLOAT(bottom + u.x), bits),
                quantized(FLOAT(bottom + u.y), bits));
}

// LATENTS defines a function that writes the features of a texel (column, row) to y[at], y[at + 1], .. With `corners`, it
// writes four numbers for each feature: the four cells around the texel. Without `corners`, it interpolates these cells
// bilinearly, and writes one number. The function returns the index behind the last element that it wrote.
#define LATENTS(name, N)                                                                                                     \
    uint name(uint grid, uint features, uvec3 size, uint bits, bool corners, uvec2 texel, uint at, inout float y[N])         \
    {                                                                                                                        \
        uvec2 u, v;                                                                                                          \
        float fu, fv;                                                                                                        \
        latent_cells(texel.x, size.x, size.z, u, fu);                                                                        \
        latent_cells(texel.y, size.x, size.y, v, fv);                                                                        \
        for (uint f = 0u; f < features; f++) {                                                                               \
            const vec4 c = latents_of(grid, size, bits, f, u, v);                                                            \
            if (!corners) y[at++] = mix(mix(c.x, c.y, fu), mix(c.z, c.w, fu), fv);                                           \
            for (uint i = 0u; i < 4u && corners; i++) y[at++] = c[i];                                                        \
        }                                                                                                                    \
        return at;                                                                                                           \
    }

// LAYER defines a function that computes y = FUNCTION(W x + b). W is (O,I), row-major, and starts at float `weight` of the
// parameters. b starts at float `bias`.
#define LAYER(name, I, O, FUNCTION)                                                                  \
    void name(uint weight, uint bias, float x[I], out float y[O])                                    \
    {                                                                                                \
        for (uint o = 0u; o < uint(O); o++) {                                                        \
            float s = FLOAT(bias + o);                                                               \
            for (uint i = 0u; i < uint(I); i++) s += FLOAT(weight + o * I + i) * x[i];               \
            y[o] = FUNCTION(s);                                                                      \
        }                                                                                            \
    }
#define RELU(s) max(s, 0.0)
#define IDENTITY(s) (s)
