// mlp_back.glsl - the backward pass of the network of mlp.comp. For PART see abi/mlp_layout.abi.h.

#ifdef GRAD
// Copies dy of the last layer to ACT, with 0 for samples past the batch.
void take_dy(uint tile)
{
    uint o = 0;
    do {
        [[unroll]] for (uint u = 0; u < UNITS; u++)
            sums[u] = mix(VEC(0), LOAD_VEC(t_in, o * pc.pitch + column[u]), real[u]);
        keep(tile, dy_row(LAYERS) + o, 0);
        o++;
    } while (o < width(LAYERS));
    subgroupBarrier();
}
#endif

// Computes dy[l-1] from dy[l]. For l = 1, the result is dx and goes to MLP_OUT.
void back(const uint l, uint tile)
{
    const uint K = width(l), M = width(l - 1), G = K > 64 ? 1 : 2, at = tile_at(tile) + UNITS * lane;
    [[unroll]] for (uint k = 0; k < K; k++)
        [[unroll]] for (uint u = 0; u < UNITS; u++) inputs[UNITS * k + u] = AGAIN(act, at + (dy_row(l) + k) * ROW + u);
    uint i = 0;
    do {
        [[unroll]] for (uint k = 0; k < UNITS * G; k++) sums[k] = VEC(0);
        multiply(K, M, G, cols_at(l), i);
        [[unroll]] for (uint g = 0; g < G; g++)
            if (i + g < M) {
                [[unroll]] for (uint u = 0; u < UNITS; u++) {
                    VEC v = sums[UNITS * g + u];
                    if (l > 1) v = gate(v, AGAIN(act, at + (h_row(max(l, 2) - 1) + i + g) * ROW + u));
                    else if (wanted + u < pc.pitch) result_put((i + g) * pc.pitch + wanted + u, v);
                    sums[UNITS * g + u] = v;
                }
                if (l > 1) keep(tile, dy_row(max(l, 2) - 1) + i + g, g);
            }
        i += G;
    } while (i < M);
    subgroupBarrier();
}

// Returns VEC n of the block's samples in row r of h[l-1], or of dy[l] if `dy` is true.
VEC samples(const uint l, const bool dy, uint r, uint n)
{
    if (!dy && l == 1) return LOAD_VEC(x_in, r * pc.pitch + min(block * TILES * ROW + n, pc.pitch - 1));
    return AGAIN(act, tile_at(n / ROW) + ((dy ? dy_row(l) : h_row(max(l, 2) - 1)) + r) * ROW + n % ROW);
}

// Adds the gradients of layer l, summed over the block's samples, to PART. If `first` is true, PART has no values yet, and the
// sums are only stored. The sums are the matrix dy[l] h[l-1]^T. A row of ones is added below h[l-1], so the last column of
// the matrix is the gradient of the bias. The variables a[] and b[] have the rows of the two factors. If b_dy is true,
// dy[l] is in b[], h[l-1] is in a[], and PART gets the transpose. Otherwise dy[l] is in a[] and h[l-1] is in b[].
void weights(const uint l, bool first)
{
    const uint K = width(l - 1), M = width(l), N = TILES * ROW;
    const bool b_dy = MLP_B_IS_OUTPUT(K, M, LANES);
    const uint A = b_dy ? K + 1 : M, B = b_dy ? M : K + 1, T = min((B + LANES - 1) / LANES, 4u);
    uint to = gl_WorkGroupID.x * pc.part + part_at(l) + lane, b_start = 0;
    do {
        VEC b[4 * TILES * UNITS * LANES];
        [[unroll]] for (uint t = 0; t < T; t++) {
            const uint r = b_start + t * LANES + lane;
            [[unroll]] for (uint n = 0; n < N; n++) {
                b[t * N + n] = samples(l, b_dy, min(r, (b_dy ? M : K) - 1), n);
                if (!b_dy && r == K) b[t * N + n] = VEC(1);
            }
        }
        uint i = 0;
        do {
            VEC a[TILES * UNITS];
            vec4 c = vec4(0);
            [[unroll]] for (uint v = 0; v < TILES * UNITS; v++) {
                a[v] = samples(l, !b_dy, min(i, (b_dy ? K : M) - 1), v * LANES + lane);
                if (b_dy && i == K) a[v] = VEC(1);
            }
            [[unroll]] for (uint n = 0; n < ELEMENTS * N; n++) {
                const uint v = n / ELEMENTS;
                const float s = subgroupShuffle(ELEMENT(a[v / LANES], n % ELEMENTS), v % LANES + zero);
                [[unroll]] for (uint t = 0; t < T; t++) c[t] += s * ELEMENT(b[t * N + v], n % ELEMENTS);
            }
            if (!first) c += AGAIN(part, to);
            part_put(to, c);
            to += LANES;
            i++;
        } while (i < A);
        b_start += 4 * LANES;
    } while (b_start < B);
}
