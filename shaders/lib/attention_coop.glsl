// attention_coop.glsl - the part of attention_shared.glsl for kernels with COOP. Subgroups multiply cooperative
// matrices of f16 (VK_KHR_cooperative_matrix). The sums of the products are f32. Each lane holds its scores and weights in f32.
// The operands of a product are rounded to f16. If the weights are an operand, only a copy of them is rounded. ds, the gradient
// of the scores, is computed from weights that are not rounded. The sums of gradients stay in matrices until the tile is
// finished. The sums of y are scaled down when the maximum of a row grows, so they stay in the lanes.
// A slice has ROWS rows of the first operand and COLUMNS rows of the second operand. A row runs along the summation index. For
// sums, the rows of the second operand are transposed before they are stored, 2 x 2 numbers at a time. So scores and sums are
// products of the same form, and a result has ROWS x COLUMNS numbers. Each subgroup computes EACH_M x EACH_N neighbouring
// matrices of a result.
// Only the driver knows which lane holds which element of a matrix. So the results reach their lanes through shared memory, in
// the memory of the slices.
// A row of a slice has 16 bytes of padding, so that rows start in different banks. Each row of a cooperative matrix must start
// at a multiple of 16 bytes.
// source: GLSL_KHR_cooperative_matrix; Dao, FlashAttention-2, ICLR 2024 (weights are rounded to 16 bits)
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "abi/coop.abi.h"
#include "abi/lanes.abi.h"
layout(constant_id = SUBGROUPS_SPEC) const uint SUBGROUPS = 4;
layout(constant_id = COOP_SPEC_M) const uint COOP_M = 16;
layout(constant_id = COOP_SPEC_N) const uint COOP_N = 16;
layout(constant_id = COOP_SPEC_K) const uint COOP_K = 16;
// Sizes and indices of tile[] are in uvec2s: four f16 or two f32.
const uint PAD = ATTENTION_COOP_PAD, PITCH = CHUNKS + PAD, HALF = (ROWS + COLUMNS) * PITCH;
const uint PART_PITCH = 2 * LANES_N + 2, PART = ROWS * PART_PITCH;
// A result consists of cooperative matrices. MATRICES_N: matrices side by side in a result. EACH: matrices of a result
// that one subgroup computes, EACH_M below each other and EACH_N side by side.
const uint MATRICES_N = COLUMNS / COOP_N, EACH = ROWS / COOP_M * MATRICES_N / SUBGROUPS;
const uint LEAST_N = EACH * COOP_M / ROWS, SQUARE_N = EACH >= 4 ? EACH / 2 : EACH;
const uint EACH_N = SQUARE_N < LEAST_N ? LEAST_N : SQUARE_N > MATRICES_N ? MATRICES_N : SQUARE_N, EACH_M = EACH / EACH_N;
// For a slice of a sum, SLICE rows of the second operand are loaded (put_rows transposes them), in blocks of 2 x 2
// numbers: two neighbouring numbers from each of two neighbouring rows. Two f16 numbers are one word. PAIRS: pairs of
// rows in a slice. SUMS_B: blocks in a slice.
const uint PAIRS = SLICE / 2, SUMS_B = PAIRS * 2 * LANES_N, FETCH_SUMS = (SUMS_B + LANES - 1) / LANES;
const uint FETCHES = FETCH_A + FETCH_B > FETCH_SUMS ? FETCH_A + FETCH_B : FETCH_SUMS;
#ifdef GRADIENT
const uint KEPT = SUMS; // number of sums that stay in matrices
const uint OPERANDS = 3u << 2 * ATTENTION_Q | 3u << 2 * ATTENTION_K | 3u << 2 * ATTENTION_V | 3u << 2 * ATTENTION_DY;
#else
const uint KEPT = 0;
const uint OPERANDS = 3u << 2 * ATTENTION_Q | 3u << 2 * ATTENTION_K | 3u << 2 * ATTENTION_V;
#endif
const bool ROUNDS = (STORAGE & OPERANDS) != (STORAGE_F16 * 0x55555555u & OPERANDS); // false: all operands are stored in f16
// tile has two halves. A half has one slice: the rows of the first operand, and then the rows of the second operand.
// share_products() stores a product in tile instead of the slices: [row][column / 2].
shared uvec2 tile[2 * HALF > PART ? 2 * HALF : PART];
shared vec4 of_rows[LANES]; // in over_row(): a number for each row of each lane; in set_aside(): a row of each lane
vec4 staged[FETCHES];
uvec2 staged_f16[FETCHES];
#define NUMBERS uvec2 // four numbers in shared memory
coopmat<float, gl_ScopeSubgroup, COOP_M, COOP_N, gl_MatrixUseAccumulator> products[EACH * (1 + KEPT)];

uvec4 tile_columns() { return 4 * lane_n() + uvec4(0, 1, 2, 3); }

uvec2 load_f16(uint of, uint at)
{
    if (of == OF_Q) return q4_half[at];
    if (of == OF_K) return k4_half[at];
#ifdef GRADIENT
    if (of == OF_DY) return dy4_half[at];
#endif
    return v4_half[at];
}

// Returns word i (0 or 1) of vec4 number `at`, which is stored in f16.
uint load_word(uint of, uint at, uint i)
{
    if (of == OF_Q) return q4_half[at][i];
    if (of == OF_K) return k4_half[at][i];
#ifdef GRADIENT
    if (of == OF_DY) return dy4_half[at][i];
#endif
    return v4_half[at][i];
}

// Loads vec4 number `at` of an operand. If all operands are stored in f16, the vec4 is copied to staged_f16[t].
// Otherwise staged[t] gets the vec4 in f32, and staged_numbers() rounds it to f16 when the slice is stored.
void stage(uint t, uint of, uint at)
{
    if (ROUNDS) staged[t] = load(of, at);
    else staged_f16[t] = load_f16(of, at);
}

// Loads a block of 2 x 2 numbers: the first (i = 0) or last (i = 1) two numbers of vec4 at.x and of vec4 at.y. As in stage(),
// staged_f16[t] or staged[t] gets them.
void stage_block(uint t, uint of, uvec2 at, uint i)
{
    if (ROUNDS) {
        const vec4 a = load(of, at.x), b = load(of, at.y);
        staged[t] = i == 0 ? vec4(a.xy, b.xy) : vec4(a.zw, b.zw);
    } else staged_f16[t] = uvec2(load_word(of, at.x, i), load_word(of, at.y, i));
}

uvec2 staged_numbers(uint t) { return ROUNDS ? narrow(staged[t], STORAGE_F16) : staged_f16[t]; }

// Stores v, which has four numbers, in the slice: at index c of row `row`. With is_b, this is a row of the second
// operand. Otherwise this is a row of the first operand.
void put(bool is_b, uint row, uint c, uvec2 v) { tile[row * PITCH + c + half_at + (is_b ? ROWS * PITCH : 0)] = v; }

// Stores the lane's weights, one vec4 for each of its rows.
void put_weights(uvec2 w[4])
{
    const uint at = lane_m() * PITCH + lane_n() % CHUNKS + half_at;
    [[unroll]] for (uint m = 0; m < OWN; m++) tile[at + m * LANES_M * PITCH] = w[m];
}

// In iteration t of fetch_sums, the lane loads a block from two rows of b: word block_word(t) of each row. The two rows are
// pair number block_pair() of the slice. Neighbouring lanes store words of the same transposed row.
uint block_pair() { return gl_LocalInvocationID.x % PAIRS; }
uint block_word(uint t) { return item_row(t, PAIRS); }

// Loads the lane's blocks of slice i of a sum.
void fetch_sums(matrix b, uint column, uint i)
{
    const uint from = column + i * SLICE + 2 * block_pair();
    const uvec2 at = b.at + min(uvec2(from, from + 1), b.rows - 1) * b.ld;
    [[unroll]] for (uint t = 0; t < FETCH_SUMS; t++)
        if (is_item(t, SUMS_B)) stage_block(t, b.of, at + min(block_word(t) / 2, D4 - 1), block_word(t) % 2);
}

// Returns a word with two f16 numbers: number i (0 or 1) of word h.x, and number i of word h.y.
uint pair(uvec2 h, uint i) { return packFloat2x16(f16vec2(unpackFloat2x16(h.x)[i], unpackFloat2x16(h.y)[i])); }

// Stores the blocks of fetch_sums, transposed. For a row beyond the matrix, fetch_sums has loaded the matrix's last row, which
// may be infinite. So 0 is stored instead.
void put_rows(uint column, uint i)
{
    const uint from = column + i * SLICE + 2 * block_pair();
    const bvec2 is_in = lessThan(uvec2(from, from + 1), uvec2(pc.others));
    [[unroll]] for (uint t = 0; t < FETCH_SUMS; t++)
        if (is_item(t, SUMS_B)) {
            const uvec2 h = mix(uvec2(0), staged_numbers(t), is_in);
            const uint at = (ROWS + 2 * block_word(t)) * PITCH + block_pair() / 2 + half_at;
            tile[at][block_pair() % 2] = pair(h, 0);
            tile[at + PITCH][block_pair() % 2] = pair(h, 1);
        }
}

// Returns the row and the column, in the result, at which the subgroup's first matrix begins.
uvec2 own_corner()
{
    const uint across = MATRICES_N / EACH_N;
    return uvec2(gl_SubgroupID / across * EACH_M * COOP_M, gl_SubgroupID % across * EACH_N * COOP_N);
}

void clear_products(uint first, uint n)
{
    [[unroll]] for (uint i = first; i < first + n; i++)
        products[i] = coopmat<float, gl_ScopeSubgroup, COOP_M, COOP_N, gl_MatrixUseAccumulator>(0.0);
}

void clear_sums()
{
    [[unroll]] for (uint i = 0; i < 4 * SUMS; i++) sum[i] = vec4(0.0);
    clear_products(EACH, EACH * KEPT);
}

// Returns the index in products[] at which the matrices for sum[at ..] begin.
uint first_of(uint at) { return KEPT > 0 ? EACH * (1 + at / 4) : 0; }

// Adds the product of a slice's operands to products[first ..]. Each matrix is loaded where it is first needed, so that only
// few matrices are in registers at once.
void multiply_slice(uint first)
{
    const uvec2 corner = own_corner();
    [[unroll]] for (uint k = 0; k < SLICE; k += COOP_K) {
        coopmat<float16_t, gl_ScopeSubgroup, COOP_M, COOP_K, gl_MatrixUseA> a[EACH_M];
        [[unroll]] for (uint j = 0; j < EACH_N; j++) {
            const uint n = ROWS + corner.y + j * COOP_N;
            coopmat<float16_t, gl_ScopeSubgroup, COOP_K, COOP_N, gl_MatrixUseB> b;
            coopMatLoad(b, tile, half_at + n * PITCH + k / 4, PITCH, gl_CooperativeMatrixLayoutColumnMajor);
            [[unroll]] for (uint i = 0; i < EACH_M; i++) {
                const uint m = corner.x + i * COOP_M, to = first + i * EACH_N + j;
                if (j == 0) coopMatLoad(a[i], tile, half_at + m * PITCH + k / 4, PITCH, gl_CooperativeMatrixLayoutRowMajor);
                products[to] = coopMatMulAdd(a[i], b, products[to]);
            }
        }
    }
}

// Waits until all subgroups have multiplied the last slice. Then stores a product in the shared memory of the slices.
void share_products(uint first)
{
    const uint at = own_corner().x * PART_PITCH + own_corner().y / 2;
    barrier();
    [[unroll]] for (uint i = 0; i < EACH_M; i++)
        [[unroll]] for (uint j = 0; j < EACH_N; j++)
            coopMatStore(products[first + i * EACH_N + j], tile, at + i * COOP_M * PART_PITCH + j * COOP_N / 2, PART_PITCH,
                         gl_CooperativeMatrixLayoutRowMajor);
    barrier();
}

// Returns the four numbers of the product that are in the lane's row m and in its columns.
vec4 own_products(uint m)
{
    const uint at = tile_row(m) * PART_PITCH + 2 * lane_n();
    return uintBitsToFloat(uvec4(tile[at], tile[at + 1]));
}

void clear_scores(out vec4 s[4]) { clear_products(0, EACH); }

void begin_sums()
{
    if (KEPT == 0) clear_products(0, EACH);
}

uvec2 numbers_of(vec4 v) { return narrow(v, STORAGE_F16); }

// set_aside() keeps one of the lane's rows in shared memory until take_back(), so that the lane needs 4 registers less.
// Between the two calls, no other lane uses this memory.
void set_aside(vec4 s[4]) { of_rows[gl_LocalInvocationID.x] = s[3]; }
void take_back(inout vec4 s[4]) { s[3] = of_rows[gl_LocalInvocationID.x]; }

void multiply_scores(inout vec4 s[4]) { multiply_slice(0); }
void multiply_sums(uint at) { multiply_slice(first_of(at)); }

// The lanes must pass a barrier before they store the next slice. With GRADIENT, this barrier is at the end of the function.
// Without GRADIENT, over_row has the barrier, and the kernel calls over_row after the scores.
void finish_scores(inout vec4 s[4])
{
    share_products(0);
    [[unroll]] for (uint m = 0; m < OWN; m++) s[m] = own_products(m);
    if (KEPT > 0) barrier();
}

void finish_sums(uint at)
{
    if (KEPT > 0) return;
    share_products(0);
    [[unroll]] for (uint m = 0; m < OWN; m++) sum[at + m] += own_products(m);
    barrier();
}

// Returns the maximum of v, or with `is_sum` the sum of v, over the lanes that have the same rows.
vec4 over_row(vec4 v, bool is_sum)
{
    of_rows[lane_n() * LANES_M + lane_m()] = v;
    barrier();
    vec4 r = of_rows[lane_m()];
    [[unroll]] for (uint n = 1; n < LANES_N; n++) {
        const vec4 x = of_rows[n * LANES_M + lane_m()];
        r = is_sum ? r + x : max(r, x);
    }
    return r;
}

// Sets sum[at ..] to the sums that are in matrices.
void gather_sums(uint at)
{
    if (KEPT == 0) return;
    share_products(first_of(at));
    [[unroll]] for (uint m = 0; m < OWN; m++) sum[at + m] = own_products(m);
}
