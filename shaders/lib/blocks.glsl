// blocks.glsl - a BM x BN tile of C[m][n] = sum_k A[m][k] B[k][n]. One work group computes the tile. The operands are in shared
// memory.
// The including kernel defines
//   A_BY_K, B_BY_K                 true if the operand is contiguous along k. In this case, neighbouring lanes load
//                                  neighbouring k, so that their loads hit the same cache lines.
//   ROUNDS_A, ROUNDS_B             with COOP: true if the operand's elements must be rounded to the type of the matrices
//   LINE line_a(uint m, uint k, uint j)   four neighbouring elements of A: row m + j at k .. k + 3 if A_BY_K, else rows
//                                  m .. m + 3 at k + j. Elements past A's end are zero. A LINE is a vec4, or with COOP a uvec4
//                                  of the words as they are stored.
//   LINE line_b(uint n, uint k, uint j)   as line_a, with columns of B instead of rows of A
// The kernel calls multiply(m, n, k, end) for the tile that begins at row m and column n. After the call, acc has the sums over
// k .. end - 1. Each lane has TM rows and TN columns, in groups of four. Row i of the lane is row tile_row(i) of the tile, and
// column j is column tile_column(j). With COOP2 the sums stay in a matrix instead: see blocks_coop2.glsl. tile_at(id, M, N)
// returns the first row and column of tile number id. There are tile_count(M, N) tiles.
//
// An element of A that is read from global memory serves BN columns, and an element of B serves BM rows.
// Without COOP, an element of A that is read from shared memory serves TN columns, and an element of B serves TM rows.
// Without COOP, the work group multiplies BLOCKS_K values of k, and meanwhile loads the next BLOCKS_K values into
// registers. It then stores the next values in the other half of shared memory. So there is one barrier per BLOCKS_K
// values of k.
// A lane's groups of rows are 4 BM / TM rows apart, and its groups of columns are 4 BN / TN columns apart. So lanes
// read neighbouring addresses at the same time. Without COOP, `tile_index` permutes the groups of four rows or columns,
// depending on k. Without this permutation, lanes that store the same group at different k would use the same banks.
// Work groups that run at the same time compute neighbouring tiles within BAND rows of tiles. So they read the same parts of
// both operands, which are then in the cache.
// Without COOP there are no subgroup operations, so any subgroup size works. Deterministic: k ascends in every element.
// With COOP, the operands in shared memory are f16 (with BFLOAT: bf16), and subgroups multiply them: see
// blocks_coop.glsl. That file has its own multiply().
// source: Volkov & Demmel, Benchmarking GPUs to Tune Dense Linear Algebra, SC 2008 (register tiles); Nath, Tomov & Dongarra,
//         An Improved MAGMA GEMM for Fermi GPUs, IJHPCA 24(4), 2010 (tiles in shared memory and in registers; the next
//         tile is loaded into registers);
//         Tillet, Kung & Cox, Triton, MAPL 2019, and its tutorial on matrix multiplication (the order of tiles)
layout(local_size_x_id = BLOCKS_SPEC_LANES) in;
layout(constant_id = BLOCKS_SPEC_BM) const uint BM = 64;
layout(constant_id = BLOCKS_SPEC_BN) const uint BN = 64;
layout(constant_id = BLOCKS_SPEC_TM) const uint TM = 8;
layout(constant_id = BLOCKS_SPEC_TN) const uint TN = 4;
layout(constant_id = BLOCKS_SPEC_WHOLE) const uint WHOLE = 0;
const bool WHOLE_M = (WHOLE & BLOCKS_WHOLE_M) != 0u, WHOLE_N = (WHOLE & BLOCKS_WHOLE_N) != 0u;
const bool WHOLE_K = (WHOLE & BLOCKS_WHOLE_K) != 0u, UNROLLED = (WHOLE & BLOCKS_UNROLLED) != 0u;
const uint LANES_M = BM / TM, LANES_N = BN / TN, LANES = LANES_M * LANES_N;
const uint BAND = 8;
vec4 acc[TM * TN / 4];

uint tile_row(uint i) { return 4 * (i / 4 * LANES_M + gl_LocalInvocationID.x / LANES_N) + i % 4; }
uint tile_column(uint j) { return 4 * (j / 4 * LANES_N + gl_LocalInvocationID.x % LANES_N) + j % 4; }

uint tile_count(uint M, uint N) { return (M + BM - 1) / BM * ((N + BN - 1) / BN); }
uvec2 tile_at(uint id, uint M, uint N)
{
    const uint rows = (M + BM - 1) / BM, columns = (N + BN - 1) / BN, first = id / (BAND * columns) * BAND;
    const uint high = min(rows - first, BAND), i = id - first * columns;
    return uvec2((first + i % high) * BM, i / high * BN);
}

// LINE_OF(v) converts a vec4 to a LINE. LOAD_LINE(slot, name, i) loads elements 4i .. 4i + 3 of VKT_IN4(slot, name).
// ONES(slot) is a LINE of ones, in the number format of binding `slot`.
#ifdef COOP
#define LINE uvec4
#define LINE_OF(v) floatBitsToUint(v)
#define LOAD_LINE(slot, name, i) (STORED_AS(slot) == STORAGE_F32 ? floatBitsToUint(name[i]) : uvec4(name##_half[i], 0u, 0u))
#define ONES_16 (MATRIX_STORAGE == STORAGE_F16 ? 0x3c003c00u : 0x3f803f80u)
#define ONES(slot) uvec4(STORED_AS(slot) == STORAGE_F32 ? 0x3f800000u : ONES_16)
#else
#define LINE vec4
#define LINE_OF(v) (v)
#define LOAD_LINE(slot, name, i) LOAD4(name, i)
#define ONES(slot) vec4(1.0)
#endif
LINE line_a(uint m, uint k, uint j);
LINE line_b(uint n, uint k, uint j);

#ifdef COOP
#include "lib/blocks_coop.glsl"
#else
const uint BLOCKS_A = BM * BLOCKS_K / 16, BLOCKS = BLOCKS_A + BN * BLOCKS_K / 16; // blocks of 4 x 4 elements
const uint ITERATIONS = (BLOCKS + LANES - 1) / LANES;
mat4 staged[ITERATIONS];
const uint PART_A = BM * BLOCKS_K / 4, HALF = PART_A + BN * BLOCKS_K / 4; // vec4s
shared vec4 tile[2 * HALF]; // two halves. A half has A as [k][m / 4], and then B as [k][n / 4]

// A group is four neighbouring rows of A or columns of B. Returns the index of the vec4 of group x4 at k = 4 * k4, in A's or
// B's part of the tile. The part has `width` groups.
uint tile_index(uint k4, uint x4, uint width)
{
    return 4 * k4 * width + (x4 ^ (2 * (k4 & 3) & (width - 1)));
}

// Adds to acc the products for k = 4 * k4 .. 4 * k4 + 3 of the tile.
void multiply_row(uint half_at, uint k4)
{
    [[unroll]] for (uint j = 0; j < 4; j++) {
        vec4 a[TM / 4], b[TN / 4];
        [[unroll]] for (uint i = 0; i < TM / 4; i++)
            a[i] = tile[half_at + tile_index(k4, tile_row(4 * i) / 4, BM / 4) + j * BM / 4];
        [[unroll]] for (uint i = 0; i < TN / 4; i++)
            b[i] = tile[half_at + PART_A + tile_index(k4, tile_column(4 * i) / 4, BN / 4) + j * BN / 4];
        [[unroll]] for (uint m = 0; m < TM; m++)
            [[unroll]] for (uint n = 0; n < TN / 4; n++) acc[m * TN / 4 + n] += a[m / 4][m % 4] * b[n];
    }
}

void multiply_tile(uint half_at)
{
    if (UNROLLED) {
        [[unroll]] for (uint k4 = 0; k4 < BLOCKS_K / 4; k4++) multiply_row(half_at, k4);
    } else {
        [[dont_unroll]] for (uint k4 = 0; k4 < BLOCKS_K / 4; k4++) multiply_row(half_at, k4);
    }
}

// Returns rows x .. x + 3 of A, or columns x .. x + 3 of B, at k .. k + 3. Column j of the mat4 has their elements at k + j.
mat4 block(bool is_a, uint x, uint k)
{
    mat4 v;
    [[unroll]] for (uint j = 0; j < 4; j++) v[j] = is_a ? line_a(x, k, j) : line_b(x, k, j);
    return (is_a ? A_BY_K : B_BY_K) ? transpose(v) : v;
}

// An operand has `width` groups. A block of 4 x 4 elements is one group at four k. Returns (group, k / 4) of block i.
uvec2 block_of(uint i, uint width, bool by_k)
{
    return by_k ? uvec2(i / (BLOCKS_K / 4), i % (BLOCKS_K / 4)) : uvec2(i % width, i / width);
}

void fetch(uint m, uint n, uint k)
{
    [[unroll]] for (uint t = 0; t < ITERATIONS; t++) {
        const uint i = t * LANES + gl_LocalInvocationID.x;
        if (i < BLOCKS_A) {
            const uvec2 b = block_of(i, BM / 4, A_BY_K);
            staged[t] = block(true, m + 4 * b.x, k + 4 * b.y);
        } else if (i < BLOCKS) {
            const uvec2 b = block_of(i - BLOCKS_A, BN / 4, B_BY_K);
            staged[t] = block(false, n + 4 * b.x, k + 4 * b.y);
        }
    }
}

void put(uint half_at)
{
    [[unroll]] for (uint t = 0; t < ITERATIONS; t++) {
        const uint i = t * LANES + gl_LocalInvocationID.x;
        const bool is_a = i < BLOCKS_A;
        const uint width = (is_a ? BM : BN) / 4;
        const uvec2 b = is_a ? block_of(i, width, A_BY_K) : block_of(i - BLOCKS_A, width, B_BY_K);
        const uint to = half_at + (is_a ? 0 : PART_A) + tile_index(b.y, b.x, width);
        if (i < BLOCKS)
            [[unroll]] for (uint j = 0; j < 4; j++) tile[to + j * width] = staged[t][j];
    }
}

void multiply(uint m, uint n, uint k, uint end)
{
    const uint begin = k;
    uint half_at = 0;
    [[unroll]] for (uint i = 0; i < TM * TN / 4; i++) acc[i] = vec4(0);
    [[dont_unroll]] do {
        const bool more = k < end;
        if (more) fetch(m, n, k);
        if (k > begin) multiply_tile(HALF - half_at);
        if (more) put(half_at);
        barrier();
        half_at = HALF - half_at;
        k += BLOCKS_K;
    } while (k < end + BLOCKS_K);
}
#endif
