// mlp_lanes.glsl - the part of mlp_shared.comp for kernels without COOP. Each lane multiplies f32 numbers. For PACKED
// see abi/mlp_layout.abi.h.
const uint ROW = MLP_SHARED_ROW; // vec4s of a row of act[]
const uint MAX_OUTPUTS = 4, UNROLL = 4;
shared vec4 act[(W0 + W1 + W2 + W3 + W4) * ROW];
shared vec2 stage[2 * STAGE]; // rows of a matrix of PACKED; at the end the losses of the lanes
vec4 sums[MAX_OUTPUTS];

// Returns the index in act[] of the first row of h[l] or dy[l].
uint act_at(uint l) { return ((l > 0 ? W0 : 0) + (l > 1 ? W1 : 0) + (l > 2 ? W2 : 0) + (l > 3 ? W3 : 0)) * ROW; }

// A lane computes outputs(M) neighbouring outputs of a layer with M outputs, from output first_output(M) on. It computes
// them for four samples of the block: those of vec4 number lane % COLUMNS.
uint outputs(uint M) { return M > MLP_SHARED_LANES / COLUMNS * 2 ? 4 : 2; }
uint first_output(uint M) { return lane / COLUMNS * outputs(M); }

void load_x()
{
    for (uint i = lane; i < W0 * COLUMNS; i += MLP_SHARED_LANES)
        act[i / COLUMNS * ROW + i % COLUMNS] = LOAD4(x_in, i / COLUMNS * pc.pitch + loaded(i % COLUMNS));
}

#ifdef GRAD
void load_dy()
{
    for (uint i = lane; i < width(LAYERS) * COLUMNS; i += MLP_SHARED_LANES)
        act[act_at(LAYERS) + i / COLUMNS * ROW + i % COLUMNS] =
            mix(vec4(0), LOAD4(t_in, i / COLUMNS * pc.pitch + loaded(i % COLUMNS)), is_real(i % COLUMNS));
}
#endif

// Adds to sums[] the products of N rows of the matrix in stage[] with N rows of act[]. A row of the matrix has Q vec4s. w_at:
// index of the lane's first two weights in stage[]. in_at: index of the lane's first vec4 in act[].
void multiply(const uint N, const uint M, const uint Q, uint w_at, uint in_at)
{
    [[unroll]] for (uint k = 0; k < N; k++) {
        const vec4 v = act[in_at + k * ROW];
        [[unroll]] for (uint g = 0; g < outputs(M) / 2; g++) {
            const vec2 w = stage[w_at + 2 * k * Q + g];
            sums[2 * g] += w.x * v;
            sums[2 * g + 1] += w.y * v;
        }
    }
}

// The loops are not unrolled. In an unrolled loop, compilers would move all loads to the start, and Adreno's compiler would
// then spill registers.
void multiply_slice(uint n, const uint M, const uint Q, uint in_at)
{
    uint w_at = first_output(M) / 2;
    [[dont_unroll]] for (uint i = 0; i < n / UNROLL; i++) {
        multiply(UNROLL, M, Q, w_at, in_at);
        w_at += 2 * UNROLL * Q;
        in_at += UNROLL * ROW;
    }
    [[dont_unroll]] for (uint i = 0; i < n % UNROLL; i++) multiply(1, M, Q, w_at + 2 * i * Q, in_at + i * ROW);
}

// Adds to sums[] the products of a matrix of PACKED with K rows of act[]. The matrix begins at index `at` and has K rows of M
// numbers. The rows of act[] begin at index `from`. A barrier precedes the first access to shared memory.
void product(const uint K, const uint M, uint at, uint from)
{
    const uint Q = (M + 3) / 4, slice = min(STAGE / Q, K);
    for (uint k = 0; k < K; k += slice) {
        const uint n = min(slice, K - k);
        barrier();
        for (uint i = lane; i < n * Q; i += MLP_SHARED_LANES) {
            const vec4 w = LOAD4(packed_in, at + k * Q + i);
            stage[2 * i] = w.xy;
            stage[2 * i + 1] = w.zw;
        }
        barrier();
        if (first_output(M) < M) multiply_slice(n, M, Q, from + k * ROW + lane % COLUMNS);
    }
}

// Completes output o of the last layer, whose sum is sums[i]. Writes y, or with MSE dy.
void finish(uint o, uint i)
{
    const uint column = lane % COLUMNS;
#ifdef MSE
    const vec4 d = mix(vec4(0), sums[i] - LOAD4(t_in, o * pc.pitch + loaded(column)), is_real(column));
    loss += d * d;
    act[act_at(LAYERS) + o * ROW + column] = scale * d;
#else
    if (first_column + column < pc.pitch) result_put(o * pc.pitch + first_column + column, sums[i]);
#endif
}

void forward(const uint l)
{
    const uint M = width(l), o = first_output(M);
    [[unroll]] for (uint i = 0; i < outputs(M); i += 2) {
        const vec4 b = LOAD4(packed_in, bias_at(l) + min(o + i, M - 1));
        sums[i] = vec4(b.x);
        sums[i + 1] = vec4(b.y);
    }
    product(width(l - 1), M, cols_at(l), act_at(l - 1));
    [[unroll]] for (uint i = 0; i < outputs(M); i++)
        if (o + i < M) {
            if (l == LAYERS) finish(o + i, i);
            else act[act_at(l) + (o + i) * ROW + lane % COLUMNS] = mix(sums[i], vec4(0), lessThan(sums[i], vec4(0)));
        }
}

#ifndef FORWARD
#include "lib/mlp_shared_back.glsl"
#endif
