// mlp_coop.glsl - the part of mlp_shared.comp for kernels with COOP. Subgroups multiply cooperative matrices of f16
// (VK_KHR_cooperative_matrix) and sum in f32. h, dy and weights are rounded to f16. Biases, the loss and the
// gradients of the parameters are f32. For PACKED and PART see abi/mlp_layout.abi.h.
//   Widths are padded to whole matrices. The padding of weights, biases and x is 0, so the padding of products is 0 as well.
//   Shared memory has four parts, in uvec2s (four f16 or two f32):
//     act     [feature][sample]   h[l] or dy[l] of all layers, for the weight gradients, which sum over samples. With FORWARD
//                                 this part does not exist
//     input   [sample][feature]   the left factor of the next product, which sums over features
//     bias    [output]            the bias of the layer
//     stage   [o][k]              the weights of the layer, as `multiply` reads them: k is the summation index. Later, each
//                                 subgroup stores its sums here, and its lanes load them again. The lanes cannot use the sums
//                                 of a cooperative matrix directly, because only the driver knows the lane of each sum
//   In these layouts the summation index of every product is contiguous in both factors. So a matrix is loaded by a few wide
//   loads.
//   With MSE, dy[LAYERS] of a training step is the gradient of the scaled loss. If an element overflows in f16, some
//   gradients are not finite, and the step is skipped. Samples that are not real have x = 0 and dy = 0.
// source: GLSL_KHR_cooperative_matrix; Mueller et al. (2021), section 3.4: networks in shared memory, by matrices of f16
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#include "abi/coop.abi.h"
#include "abi/lanes.abi.h"
layout(constant_id = SUBGROUPS_SPEC) const uint SUBGROUPS = 8;
layout(constant_id = COOP_SPEC_M) const uint COOP_M = 16;
layout(constant_id = COOP_SPEC_N) const uint COOP_N = 16;
layout(constant_id = COOP_SPEC_K) const uint COOP_K = 16;
const uint SAMPLES = MLP_SHARED_SAMPLES, SUBGROUP_LANES = MLP_SHARED_LANES / SUBGROUPS;
const uint LARGER = COOP_M > COOP_N ? COOP_M : COOP_N, UNIT = LARGER > COOP_K ? LARGER : COOP_K;
const uint P0 = (W0 + UNIT - 1) / UNIT * UNIT, P1 = (W1 + UNIT - 1) / UNIT * UNIT, P2 = (W2 + UNIT - 1) / UNIT * UNIT,
           P3 = (W3 + UNIT - 1) / UNIT * UNIT, P4 = (W4 + UNIT - 1) / UNIT * UNIT; // padded widths
const uint P01 = P0 > P1 ? P0 : P1, P23 = P2 > P3 ? P2 : P3, P0123 = P01 > P23 ? P01 : P23, WIDEST = P0123 > P4 ? P0123 : P4;
// A row has padding, so that rows begin in different banks. The padding is 16 bytes, because loads and stores of
// matrices need an alignment of 16 bytes.
const uint ACT_PITCH = SAMPLES / 4 + 2, INPUT_PITCH = WIDEST / 4 + 2, SUMS_PITCH = (COOP_N + 4) / 2;
#ifdef FORWARD
const uint INPUT = 0;
#else
const uint INPUT = (P0 + P1 + P2 + P3 + P4) * ACT_PITCH;
#endif
const uint BIAS = INPUT + SAMPLES * INPUT_PITCH, WEIGHTS = BIAS + WIDEST / 2;
shared uvec2 memory[WEIGHTS + STAGE];
// The sums of a product are DOWN rows of matrices. A row has COOP_M samples and all outputs. A subgroup computes every STEP-th
// matrix of one row, at most OWN matrices. All of them have the same samples, so each matrix of `input` is loaded only once.
const uint DOWN = SAMPLES / COOP_M, STEP = SUBGROUPS / DOWN, OWN = (WIDEST / COOP_N + STEP - 1) / STEP;
// finish_all() distributes blocks of 4 x 4 sums over the lanes. A matrix of sums has BLOCKS blocks and needs SUMS uvec2s of
// `stage`. A subgroup stores AT_ONCE matrices in `stage` before its lanes load blocks. AT_ONCE is above 1 only if a
// matrix has too few blocks for all lanes and `stage` is large enough. Then more lanes get a block.
const uint BLOCKS = COOP_M * COOP_N / 16, SUMS = COOP_M * SUMS_PITCH;
const uint LANES_FOR = SUBGROUP_LANES / BLOCKS, ROOM = STAGE / (SUBGROUPS * SUMS), MOST = LANES_FOR < ROOM ? LANES_FOR : ROOM;
const uint AT_ONCE = MOST < 1 ? 1 : MOST < OWN ? MOST : OWN;
coopmat<float, gl_ScopeSubgroup, COOP_M, COOP_N, gl_MatrixUseAccumulator> sums[OWN];

uint padded(uint l) { return l == 0 ? P0 : l == 1 ? P1 : l == 2 ? P2 : l == 3 ? P3 : P4; }
// Returns the index in memory[] of feature f of h[l] or dy[l].
uint act_at(uint l, uint f)
{
    return ((l > 0 ? P0 : 0) + (l > 1 ? P1 : 0) + (l > 2 ? P2 : 0) + (l > 3 ? P3 : 0) + f) * ACT_PITCH;
}

// Stores v[c] as feature f + c of h[l] or dy[l], for the four samples of vec4 `column` of the block of samples.
void put(const uint l, uint f, uint column, vec4 v[4])
{
    [[unroll]] for (uint j = 0; j < 4; j++)
        memory[INPUT + (4 * column + j) * INPUT_PITCH + f / 4] = narrow(vec4(v[0][j], v[1][j], v[2][j], v[3][j]), STORAGE_F16);
#ifndef FORWARD
    [[unroll]] for (uint c = 0; c < 4; c++) memory[act_at(l, f + c) + column] = narrow(v[c], STORAGE_F16);
#endif
}

void load_x()
{
    for (uint i = lane; i < P0 / 4 * COLUMNS; i += MLP_SHARED_LANES) {
        const uint f = i / COLUMNS * 4, column = i % COLUMNS;
        vec4 v[4];
        [[unroll]] for (uint c = 0; c < 4; c++) {
            v[c] = LOAD4(x_in, min(f + c, W0 - 1) * pc.pitch + loaded(column));
            v[c] = f + c < W0 ? mix(vec4(0), v[c], is_real(column)) : vec4(0);
        }
        put(0, f, column, v);
    }
}

#ifndef FORWARD
// Returns the target of output o (with GRAD: dy) for the four samples of vec4 `column` of the block of samples.
vec4 load_t(uint o, uint column) { return LOAD4(t_in, min(o, width(LAYERS) - 1) * pc.pitch + loaded(column)); }
#endif

#ifdef GRAD
void load_dy()
{
    barrier();
    for (uint i = lane; i < padded(LAYERS) / 4 * COLUMNS; i += MLP_SHARED_LANES) {
        const uint o = i / COLUMNS * 4, column = i % COLUMNS;
        vec4 v[4];
        [[unroll]] for (uint c = 0; c < 4; c++)
            v[c] = o + c < width(LAYERS) ? mix(vec4(0), load_t(o + c, column), is_real(column)) : vec4(0);
        put(LAYERS, o, column, v);
    }
}
#endif

// Copies a matrix of PACKED to `stage`. The matrix has M rows of N numbers.
void stage(const uint M, const uint N, const uint padded_m, const uint padded_n, uint at)
{
    const uint Q = (N + 3) / 4, P = padded_n / 4;
    for (uint i = lane; i < padded_m * P; i += MLP_SHARED_LANES) {
        const uint m = i / P, q = i % P;
        const vec4 w = LOAD4(packed_in, at + min(m, M - 1) * Q + min(q, Q - 1));
        memory[WEIGHTS + m * (P + 2) + q] = narrow(m < M && q < Q ? w : vec4(0), STORAGE_F16);
    }
}

uint own_sample() { return gl_SubgroupID % DOWN * COOP_M; }
// Returns the first output of the subgroup's matrix i. The result may be past the last output.
uint own_output(uint i) { return (gl_SubgroupID / DOWN + i * STEP) * COOP_N; }
uint own(uint M) { return (M / COOP_N + STEP - 1) / STEP; }

// Computes the subgroup's matrices of out[n][o] = sum over k of input[n][k] stage[o][k]. K and M are padded. A subgroup that
// has no matrix i computes the last matrix of its row again, so that no product is in a branch.
void multiply(const uint K, const uint M)
{
    const uint pitch = K / 4 + 2;
    [[unroll]] for (uint i = 0; i < own(M); i++)
        sums[i] = coopmat<float, gl_ScopeSubgroup, COOP_M, COOP_N, gl_MatrixUseAccumulator>(0.0);
    [[unroll]] for (uint k = 0; k < K / 4; k += COOP_K / 4) {
        coopmat<float16_t, gl_ScopeSubgroup, COOP_M, COOP_K, gl_MatrixUseA> a;
        coopMatLoad(a, memory, INPUT + own_sample() * INPUT_PITCH + k, INPUT_PITCH, gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint i = 0; i < own(M); i++) {
            const uint o = min(own_output(i), M - COOP_N);
            coopmat<float16_t, gl_ScopeSubgroup, COOP_K, COOP_N, gl_MatrixUseB> b;
            coopMatLoad(b, memory, WEIGHTS + o * pitch + k, pitch, gl_CooperativeMatrixLayoutColumnMajor);
            sums[i] = coopMatMulAdd(a, b, sums[i]);
        }
    }
}

vec2 floats(uint i) { return uintBitsToFloat(memory[i]); }
uint sums_at() { return WEIGHTS + gl_SubgroupID * AT_ONCE * SUMS; } // index of the subgroup's sums in memory[]

// The values of the parameter `what` of finish().
const uint HIDDEN = 0, LAST = 1, BACK = 2;

// Returns which of four f16 numbers are at most 0.
bvec4 is_off(uvec2 h)
{
    return bvec4(lessThanEqual(unpackFloat2x16(h.x), f16vec2(0.0)), lessThanEqual(unpackFloat2x16(h.y), f16vec2(0.0)));
}

// Completes and stores the sums v[c] of feature f + c. HIDDEN: they become h[l]. LAST: they become y, or with MSE dy[l]. BACK:
// they become dy[l], or dx for l = 0.
void finish(const uint what, const uint l, uint f, uint column, vec4 v[4])
{
    const uint W = width(l);
    [[unroll]] for (uint c = 0; c < 4; c++) {
        if (what != BACK) v[c] += floats(BIAS + (f + c) / 2)[c % 2];
        if (what == HIDDEN) v[c] = mix(v[c], vec4(0), lessThan(v[c], vec4(0)));
#ifndef FORWARD
        if (what == BACK && l > 0) v[c] = mix(v[c], vec4(0), is_off(memory[act_at(l, f + c) + column]));
#endif
#ifdef MSE
        if (what == LAST) {
            const vec4 d = f + c < W ? mix(vec4(0), v[c] - load_t(f + c, column), is_real(column)) : vec4(0);
            loss += d * d;
            v[c] = scale * d;
        }
#endif
    }
#ifdef FORWARD
    const bool is_result = what == LAST;
#else
    const bool is_result = what == BACK && l == 0;
#endif
    if (!is_result) {
        put(l, f, column, v);
        return;
    }
    [[unroll]] for (uint c = 0; c < 4; c++)
        if (f + c < W && first_column + column < pc.pitch)
            result_put((f + c) * pc.pitch + first_column + column, v[c]);
}

// Distributes the sums over the subgroup's lanes, and completes and stores them. A lane gets blocks of four samples of four
// features. All subgroups reach each subgroupBarrier. If only some subgroups did, llvmpipe's results would be wrong.
void finish_all(const uint what, const uint l)
{
    const uint count = own(padded(l));
    [[unroll]] for (uint first = 0; first < count; first += AT_ONCE) {
        [[unroll]] for (uint i = first; i < min(first + AT_ONCE, count); i++)
            coopMatStore(sums[i], memory, sums_at() + (i - first) * SUMS, SUMS_PITCH, gl_CooperativeMatrixLayoutRowMajor);
        subgroupBarrier();
        for (uint b = gl_SubgroupInvocationID; b < AT_ONCE * BLOCKS; b += SUBGROUP_LANES) {
            const uint i = b / BLOCKS, row = b % BLOCKS / (COOP_N / 4) * 4, column = b % (COOP_N / 4) * 4;
            if (own_output(first + i) >= padded(l)) continue;
            vec4 v[4];
            [[unroll]] for (uint j = 0; j < 4; j++) {
                const uint at = sums_at() + i * SUMS + (row + j) * SUMS_PITCH + column / 2;
                const vec4 four = vec4(floats(at), floats(at + 1));
                [[unroll]] for (uint c = 0; c < 4; c++) v[c][j] = four[c];
            }
            finish(what, l, own_output(first + i) + column, (own_sample() + row) / 4, v);
        }
        subgroupBarrier();
    }
}

void forward(const uint l)
{
    stage(width(l), width(l - 1), padded(l), padded(l - 1), rows_at(l));
    for (uint o = 2 * lane; o < padded(l); o += 2 * MLP_SHARED_LANES) {
        const vec2 b = LOAD4(packed_in, bias_at(l) + min(o, width(l) - 1)).xy;
        memory[BIAS + o / 2] = floatBitsToUint(vec2(o < width(l) ? b.x : 0.0, o + 1 < width(l) ? b.y : 0.0));
    }
    barrier();
    multiply(padded(l - 1), padded(l));
    barrier();
    finish_all(l < LAYERS ? HIDDEN : LAST, l);
    barrier();
}

#ifndef FORWARD
// Computes dy[l-1] from dy[l]. For l = 1, the result is dx and goes to MLP_OUT. Begins with a barrier.
void back(const uint l)
{
    barrier();
    stage(width(l - 1), width(l), padded(l - 1), padded(l), cols_at(l));
    barrier();
    multiply(padded(l), padded(l - 1));
    barrier();
    finish_all(BACK, l - 1);
}

void add_to_part(uint at, float v, bool first)
{
    part[at] = first ? v : part[at] + v;
}

// Adds the gradients of layer l to PART. The gradient of the weights is dy[l] h[l-1]^T, and the gradient of the bias is dy[l],
// both summed over the block's samples. If `first` is true, PART has no values yet, and the sums are only stored. Begins with a
// barrier.
void weights(const uint l, bool first)
{
    const uint K = width(l - 1), M = width(l), to = gl_WorkGroupID.x * pc.part + part_at(l);
    const uint ACROSS = padded(l - 1) / COOP_N, count = padded(l) / COOP_M * ACROSS;
    barrier();
    for (uint i = 0; i < count; i += SUBGROUPS) {
        const uint t = min(i + gl_SubgroupID, count - 1), o = t / ACROSS * COOP_M, k = t % ACROSS * COOP_N;
        coopmat<float, gl_ScopeSubgroup, COOP_M, COOP_N, gl_MatrixUseAccumulator> c =
            coopmat<float, gl_ScopeSubgroup, COOP_M, COOP_N, gl_MatrixUseAccumulator>(0.0);
        [[unroll]] for (uint n = 0; n < SAMPLES / 4; n += COOP_K / 4) {
            coopmat<float16_t, gl_ScopeSubgroup, COOP_M, COOP_K, gl_MatrixUseA> a;
            coopmat<float16_t, gl_ScopeSubgroup, COOP_K, COOP_N, gl_MatrixUseB> b;
            coopMatLoad(a, memory, act_at(l, o) + n, ACT_PITCH, gl_CooperativeMatrixLayoutRowMajor);
            coopMatLoad(b, memory, act_at(l - 1, k) + n, ACT_PITCH, gl_CooperativeMatrixLayoutColumnMajor);
            c = coopMatMulAdd(a, b, c);
        }
        coopMatStore(c, memory, sums_at(), SUMS_PITCH, gl_CooperativeMatrixLayoutRowMajor);
        const uint pairs = i + gl_SubgroupID < count ? COOP_M * COOP_N / 2 : 0;
        subgroupBarrier();
        for (uint j = gl_SubgroupInvocationID; j < pairs; j += SUBGROUP_LANES) {
            const uint row = j / (COOP_N / 2), pair = j % (COOP_N / 2), at = to + (o + row) * (K + 1) + k + 2 * pair;
            const vec2 two = floats(sums_at() + row * SUMS_PITCH + pair);
            if (o + row < M && k + 2 * pair < K) add_to_part(at, two.x, first);
            if (o + row < M && k + 2 * pair + 1 < K) add_to_part(at + 1, two.y, first);
        }
        subgroupBarrier();
    }
    for (uint o = lane; o < M; o += MLP_SHARED_LANES) {
        vec4 sum = vec4(0);
        for (uint n = 0; n < COLUMNS; n++) sum += widen(memory[act_at(l, o) + n], STORAGE_F16);
        add_to_part(to + o * (K + 1) + K, (sum.x + sum.y) + (sum.z + sum.w), first);
    }
}
#endif

#ifdef MSE
// Adds the losses of all lanes of the work group, and divides the sum by n. Writes the result to PART, behind the layers.
void put_loss(float n)
{
    const vec2 sum = loss.xy + loss.zw;
    barrier();
    memory[WEIGHTS + lane].x = floatBitsToUint(sum.x + sum.y);
    for (uint k = MLP_SHARED_LANES / 2; k > 0; k /= 2) {
        barrier();
        if (lane < k) memory[WEIGHTS + lane].x = floatBitsToUint(floats(WEIGHTS + lane).x + floats(WEIGHTS + lane + k).x);
    }
    if (lane == 0) part[gl_WorkGroupID.x * pc.part + pc.part - 1] = floats(WEIGHTS).x / n;
}
#endif
