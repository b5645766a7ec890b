// attention_coop.glsl - the part of attention_shared.glsl that differs with COOP: subgroups multiply cooperative matrices of
// f16 (VK_KHR_cooperative_matrix), which sum in f32. Scores, weights and sums of the lanes stay f32.
// Operands and weights are rounded to f16. A slice has rows of both operands along the sum's index: ROWS rows of the first one
// and COLUMNS rows of the second one. For sums, the rows of the matrix are transposed on the way, 4 x 4 numbers at a time.
// So both products are the same one: ROWS x COLUMNS numbers. Each subgroup owns EACH_M x EACH_N neighbouring matrices of them.
// Only the driver knows which lane holds which element of a matrix. The results reach their lanes through shared memory.
// A row of a slice has 16 bytes of padding, the alignment that matrices need. Without it, rows would start in the same bank.
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
const uint PAD = ATTENTION_COOP_PAD, PITCH = CHUNKS + PAD, HALF = (ROWS + COLUMNS) * PITCH; // f16vec4s
const uint PART_PITCH = LANES_N + 1; // vec4s
// The matrices of a row of the tile, those of a subgroup, and how many of these lie side by side.
const uint MATRICES_N = COLUMNS / COOP_N, EACH = ROWS / COOP_M * MATRICES_N / SUBGROUPS;
const uint LEAST_N = EACH * COOP_M / ROWS, SQUARE_N = EACH >= 4 ? EACH / 2 : EACH;
const uint EACH_N = SQUARE_N < LEAST_N ? LEAST_N : SQUARE_N > MATRICES_N ? MATRICES_N : SQUARE_N, EACH_M = EACH / EACH_N;
const uint SUMS_B = CHUNKS * LANES_N, FETCH_SUMS = (SUMS_B + LANES - 1) / LANES; // blocks of 4 x 4 numbers of a slice of a sum
const uint FETCHES = FETCH_A + FETCH_B > 4 * FETCH_SUMS ? FETCH_A + FETCH_B : 4 * FETCH_SUMS;
#ifdef GRADIENT
const uint OPERANDS = 3u << 2 * ATTENTION_Q | 3u << 2 * ATTENTION_K | 3u << 2 * ATTENTION_V | 3u << 2 * ATTENTION_DY;
#else
const uint OPERANDS = 3u << 2 * ATTENTION_Q | 3u << 2 * ATTENTION_K | 3u << 2 * ATTENTION_V;
#endif
const bool ROUNDS = (STORAGE & OPERANDS) != (STORAGE_F16 * 0x55555555u & OPERANDS); // false: all operands are stored in f16
shared f16vec4 tile[2 * HALF]; // two halves, each the rows of the first operand and then those of the second one
shared vec4 part[ROWS * PART_PITCH]; // [row][column / 4]
vec4 staged[FETCHES];
uvec2 staged_f16[FETCHES];
#define NUMBERS f16vec4 // four numbers in shared memory
coopmat<float, gl_ScopeSubgroup, COOP_M, COOP_N, gl_MatrixUseAccumulator> products[EACH];

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

// Numbers that are stored in f16 stay as they are. Else they are rounded, when the multiplication of the last slice is done.
void stage(uint t, uint of, uint at)
{
    if (ROUNDS) staged[t] = load(of, at);
    else staged_f16[t] = load_f16(of, at);
}

f16vec4 staged_numbers(uint t)
{
    const uvec2 h = ROUNDS ? narrow(staged[t], STORAGE_F16) : staged_f16[t];
    return f16vec4(unpackFloat2x16(h.x), unpackFloat2x16(h.y));
}

// Stores vec4 c of a row of the slice of the first operand, or of the second one (is_b).
void put(bool is_b, uint row, uint c, f16vec4 v) { tile[half_at + row * PITCH + c + (is_b ? ROWS * PITCH : 0)] = v; }

// Stores the lane's weights, which begin_sums has rounded.
void put_weights(vec4 p[4])
{
    const uint at = half_at + lane_m() * PITCH + lane_n() % CHUNKS;
    [[unroll]] for (uint m = 0; m < 4; m++) tile[at + m * LANES_M * PITCH] = f16vec4(p[m]);
}

// Returns the block (chunk of the columns, vec4 of a row) of a slice of a sum that the lane loads at iteration t.
uvec2 block_of(uint t) { return uvec2(item(t) % CHUNKS, item(t) / CHUNKS); }

// Loads slice i of a sum: 4 rows of b for each block.
void fetch_sums(matrix b, uint column, uint i)
{
    [[unroll]] for (uint t = 0; t < FETCH_SUMS; t++)
        if (is_item(t, SUMS_B))
            [[unroll]] for (uint j = 0; j < 4; j++) {
                const uint from = column + i * SLICE + 4 * block_of(t).x + j;
                stage(4 * t + j, b.of, b.at + min(from, b.rows - 1) * b.ld + min(block_of(t).y, D4 - 1));
            }
}

// Stores the staged rows, transposed. Rows beyond the matrix are 0, because its last row may be infinite.
void put_rows(uint column, uint i)
{
    [[unroll]] for (uint t = 0; t < FETCH_SUMS; t++)
        if (is_item(t, SUMS_B)) {
            f16vec4 v[4];
            [[unroll]] for (uint j = 0; j < 4; j++) {
                const bool is_in = column + i * SLICE + 4 * block_of(t).x + j < pc.others;
                v[j] = is_in ? staged_numbers(4 * t + j) : f16vec4(0.0);
            }
            [[unroll]] for (uint j = 0; j < 4; j++)
                put(true, 4 * block_of(t).y + j, block_of(t).x, f16vec4(v[0][j], v[1][j], v[2][j], v[3][j]));
        }
}

// Returns the position of the subgroup's first matrix.
uvec2 own_corner()
{
    const uint across = MATRICES_N / EACH_N;
    return uvec2(gl_SubgroupID / across * EACH_M * COOP_M, gl_SubgroupID % across * EACH_N * COOP_N);
}

void clear_products()
{
    [[unroll]] for (uint i = 0; i < EACH; i++)
        products[i] = coopmat<float, gl_ScopeSubgroup, COOP_M, COOP_N, gl_MatrixUseAccumulator>(0.0);
}

void multiply_slice()
{
    const uvec2 corner = own_corner();
    [[unroll]] for (uint k = 0; k < SLICE; k += COOP_K) {
        coopmat<float16_t, gl_ScopeSubgroup, COOP_M, COOP_K, gl_MatrixUseA> a[EACH_M];
        [[unroll]] for (uint i = 0; i < EACH_M; i++) {
            const uint m = corner.x + i * COOP_M;
            coopMatLoad(a[i], tile, half_at + m * PITCH + k / 4, PITCH, gl_CooperativeMatrixLayoutRowMajor);
        }
        [[unroll]] for (uint j = 0; j < EACH_N; j++) {
            const uint n = ROWS + corner.y + j * COOP_N;
            coopmat<float16_t, gl_ScopeSubgroup, COOP_K, COOP_N, gl_MatrixUseB> b;
            coopMatLoad(b, tile, half_at + n * PITCH + k / 4, PITCH, gl_CooperativeMatrixLayoutColumnMajor);
            [[unroll]] for (uint i = 0; i < EACH_M; i++)
                products[i * EACH_N + j] = coopMatMulAdd(a[i], b, products[i * EACH_N + j]);
        }
    }
}

void share_products()
{
    const uvec2 corner = own_corner();
    [[unroll]] for (uint i = 0; i < EACH_M; i++)
        [[unroll]] for (uint j = 0; j < EACH_N; j++)
            coopMatStore(products[i * EACH_N + j], part, (corner.x + i * COOP_M) * PART_PITCH + (corner.y + j * COOP_N) / 4,
                         PART_PITCH, gl_CooperativeMatrixLayoutRowMajor);
    barrier();
}

void clear_scores(out vec4 s[4]) { clear_products(); }

// Rounds the weights to 11 bits, to nearest: the high part of a number (Dekker, A Floating-Point Technique for Extending the
// Available Precision, 1971). It is cheaper than `narrow`. Weights below 2^-14 are rounded to a multiple of 2^-24 by `put`.
void begin_sums(inout vec4 p[4])
{
    [[unroll]] for (uint m = 0; m < 4; m++) {
        precise const vec4 c = p[m] * 8193.0, high = c - (c - p[m]);
        p[m] = high;
    }
    clear_products();
}

void multiply_scores(inout vec4 s[4]) { multiply_slice(); }
void multiply_sums(uint at) { multiply_slice(); }

void finish_scores(inout vec4 s[4])
{
    share_products();
    [[unroll]] for (uint m = 0; m < 4; m++) s[m] = part[tile_row(m) * PART_PITCH + lane_n()];
}

void finish_sums(uint at)
{
    share_products();
    [[unroll]] for (uint m = 0; m < 4; m++) sum[at + m] += part[tile_row(m) * PART_PITCH + lane_n()];
}

// Returns the largest v, or the sum of all v, of the lanes that have the same rows.
vec4 over_row(vec4 v, bool is_sum)
{
    barrier(); // `part` was read
    part[lane_n() * LANES_M + lane_m()] = v;
    barrier();
    vec4 r = part[lane_m()];
    [[unroll]] for (uint n = 1; n < LANES_N; n++) {
        const vec4 x = part[n * LANES_M + lane_m()];
        r = is_sum ? r + x : max(r, x);
    }
    return r;
}

void join_shares(uint at) {}
