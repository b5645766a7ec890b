// blocks_coop.glsl - multiply() of blocks.glsl with COOP: the operands are f16 in shared memory, and subgroups multiply
// them as cooperative matrices (VK_KHR_cooperative_matrix). The sums are f32.
//
// Matrices of A are read by rows, and matrices of B by columns. Both are in shared memory with k contiguous, so that
// the load of a matrix is a few wide loads. If an operand runs along k, a LINE (lib/blocks.glsl) has four elements of a row of
// the tile. Other operands are transposed in registers, in blocks of 4 x 4. An operand that is stored as f16 is copied. An
// operand that is stored as f32 is rounded to nearest, ties to even. The SPIR-V module declares this rounding mode
// (lib/rounding.glsl), so one instruction converts a number.
// With BFLOAT the operands are bf16, and all conversions are integer arithmetic. This source calls the elements of the matrices
// float16_t, and cmake/bfloat.c changes this type in the SPIR-V module to bf16. So nothing else in the kernel may be float16.
// Shared memory has one tile of each operand. While the subgroups multiply these tiles, the lanes load the next tiles
// into registers.
//
// Without COOP2 (see blocks_coop2.glsl), a tile of C has PARTS_M x PARTS_N parts. Each lane has one group of 4 x 4 sums
// in every part. In every part a subgroup owns EACH_M x EACH_N neighbouring matrices. Over all parts it has OWN_M x
// OWN_N matrices. So one read of a matrix of A from shared memory serves OWN_N products.
// Only the driver knows which lane holds which element of a matrix. The sums therefore reach their lanes through shared memory,
// one part after the other. The sums use the memory of the operands' tiles, which are no longer needed then.
//
// The operands' rows in shared memory are rows of A and columns of B. Without COOP2, the rows of an operand that one
// part needs are permuted among themselves (position()). For COOP2, see blocks_coop2.glsl. If an operand does not run
// along k, neighbouring lanes store neighbouring groups of four rows. Without the permutation, the rows that these
// lanes store at the same time would be four apart, and more of them would be in the same banks. A row has 16 bytes of
// padding, so neighbouring rows start in different banks. Each row of a cooperative matrix must start at a multiple of
// 16 bytes.
// source: GLSL_KHR_cooperative_matrix; NVIDIA, CUTLASS, Efficient GEMM in CUDA (2017): tiles of a warp, epilogue in shared
//         memory; SPV_KHR_float_controls: the mode of rounding
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "abi/coop.abi.h"
#include "abi/lanes.abi.h"
layout(constant_id = SUBGROUPS_SPEC) const uint SUBGROUPS = 2;
// Sizes and indices of shared memory are in uvec2s: four f16 or two f32.
const uint K4 = BLOCKS_COOP_K / 4, PITCH = K4 + 2; // PITCH: uvec2s of a row of the tile

// Each of `lanes` lanes has a group of four rows. Returns the position, among all these rows, of row `i` of the group
// of lane `lane`.
uint position(uint lane, uint i, uint lanes) { return i / 2 * 2 * lanes + 2 * lane + i % 2; }

#ifdef COOP2
#include "lib/blocks_coop2.glsl"
#else
layout(constant_id = COOP_SPEC_M) const uint COOP_M = 16;
layout(constant_id = COOP_SPEC_N) const uint COOP_N = 16;
layout(constant_id = COOP_SPEC_K) const uint COOP_K = 16;
const uint PARTS_M = TM / 4, PARTS_N = TN / 4, PART_M = 4 * LANES_M, PART_N = 4 * LANES_N;
// A part consists of cooperative matrices. ROW: matrices side by side in a part. EACH: matrices of a part that one
// subgroup owns, EACH_M below each other and EACH_N side by side.
const uint ROW = PART_N / COOP_N, EACH = PART_M / COOP_M * ROW / SUBGROUPS;
const uint EACH_N = EACH < ROW ? EACH : ROW, EACH_M = EACH / EACH_N;
const uint OWN_M = PARTS_M * EACH_M, OWN_N = PARTS_N * EACH_N; // a subgroup's matrices over all parts

const uint SHARE_M = LANES_M, SHARE_N = LANES_N; // number of lanes whose rows are permuted together: see position()
const uint PITCH_SUMS = (PART_N + 16) / 2; // uvec2s of a row of a part's sums
const uint TILE = (BM + BN) * PITCH, SUMS = PART_M * PITCH_SUMS;
shared uvec2 tile[TILE > SUMS ? TILE : SUMS]; // A [m][k / 4] and then B [n][k / 4]; at the end, the sums of a part [m][n / 2]
coopmat<float, gl_ScopeSubgroup, COOP_M, COOP_N, gl_MatrixUseAccumulator> sums[OWN_M * OWN_N];

// Returns the row and the column, in a part, at which the subgroup's first matrix begins.
uvec2 own_corner()
{
    const uint across = ROW / EACH_N;
    return uvec2(gl_SubgroupID / across * EACH_M * COOP_M, gl_SubgroupID % across * EACH_N * COOP_N);
}

void clear_sums()
{
    [[unroll]] for (uint i = 0; i < OWN_M * OWN_N; i++)
        sums[i] = coopmat<float, gl_ScopeSubgroup, COOP_M, COOP_N, gl_MatrixUseAccumulator>(0.0);
}

void finish_sums()
{
    const uvec2 corner = own_corner(), lane = uvec2(gl_LocalInvocationID.x / LANES_N, gl_LocalInvocationID.x % LANES_N);
    [[unroll]] for (uint i = 0; i < PARTS_M; i++)
        [[unroll]] for (uint j = 0; j < PARTS_N; j++) {
            [[unroll]] for (uint m = 0; m < EACH_M; m++)
                [[unroll]] for (uint n = 0; n < EACH_N; n++)
                    coopMatStore(sums[(i * EACH_M + m) * OWN_N + j * EACH_N + n], tile,
                                 (corner.x + m * COOP_M) * PITCH_SUMS + (corner.y + n * COOP_N) / 2, PITCH_SUMS,
                                 gl_CooperativeMatrixLayoutRowMajor);
            barrier();
            [[unroll]] for (uint m = 0; m < 4; m++) {
                const uint at = position(lane.x, m, LANES_M) * PITCH_SUMS + position(lane.y, 0, LANES_N) / 2;
                acc[(4 * i + m) * TN / 4 + j] = uintBitsToFloat(uvec4(tile[at], tile[at + LANES_N]));
            }
            barrier();
        }
}
#endif

#ifdef SPLIT
#include "lib/blocks_split.glsl"
#else
// Blocks of 4 x 4 elements that a lane loads for each tile. The LINEs of a block keep the number format of their
// binding.
const uint BLOCKS_A = BM / 4 * K4 / LANES, BLOCKS_B = BN / 4 * K4 / LANES;
uvec4 staged[4 * (BLOCKS_A + BLOCKS_B)];

// Returns the position of the i-th block of 4 x 4 elements of an operand: (group of four rows of A or columns of B, k / 4).
// Eight neighbouring lanes load neighbouring LINEs.
uvec2 block_of(uint i, bool by_k) { return by_k ? uvec2(i / K4, i % K4) : uvec2(i % 8 + i / (8 * K4) * 8, i / 8 % K4); }

void fetch(uint m, uint n, uint k)
{
    [[unroll]] for (uint t = 0; t < BLOCKS_A; t++) {
        const uvec2 b = block_of(t * LANES + gl_LocalInvocationID.x, A_BY_K);
        [[unroll]] for (uint j = 0; j < 4; j++) staged[4 * t + j] = line_a(m + 4 * b.x, k + 4 * b.y, j);
    }
    [[unroll]] for (uint t = 0; t < BLOCKS_B; t++) {
        const uvec2 b = block_of(t * LANES + gl_LocalInvocationID.x, B_BY_K);
        [[unroll]] for (uint j = 0; j < 4; j++) staged[4 * (BLOCKS_A + t) + j] = line_b(n + 4 * b.x, k + 4 * b.y, j);
    }
}

// Returns a word with two 16-bit numbers: number i (0 or 1) of a, and number i of b.
#ifdef BFLOAT
uint pair(uint a, uint b, uint i) { return i == 0 ? a & 0xffffu | b << 16 : a >> 16 | b & 0xffff0000u; }
#else
uint pair(uint a, uint b, uint i) { return packFloat2x16(f16vec2(unpackFloat2x16(a)[i], unpackFloat2x16(b)[i])); }
#endif

// Returns row j of the block that begins at staged[from]: its elements at four k, as f16, or with BFLOAT as bf16.
uvec2 row_of(uint from, uint j, bool by_k, bool rounds)
{
    if (rounds && by_k) return narrow(uintBitsToFloat(staged[from + j]), MATRIX_STORAGE);
    const uvec4 a = staged[from], b = staged[from + 1], c = staged[from + 2], d = staged[from + 3];
    if (rounds) return narrow(uintBitsToFloat(uvec4(a[j], b[j], c[j], d[j])), MATRIX_STORAGE);
    return by_k ? staged[from + j].xy : uvec2(pair(a[j / 2], b[j / 2], j % 2), pair(c[j / 2], d[j / 2], j % 2));
}

// Stores block i of an operand. The block begins at staged[from]. `at`: index in tile[] at which the operand begins.
// `lanes`: lanes whose groups of four rows are permuted together.
void put(uint i, uint from, uint at, uint lanes, bool by_k, bool rounds)
{
    const uvec2 b = block_of(i, by_k);
    [[unroll]] for (uint j = 0; j < 4; j++) {
        const uint row = b.x / lanes * 4 * lanes + position(b.x % lanes, j, lanes);
        tile[at + row * PITCH + b.y] = row_of(from, j, by_k, rounds);
    }
}

#ifndef COOP2
void multiply_tile()
{
    const uvec2 corner = own_corner();
    [[unroll]] for (uint k4 = 0; k4 < K4; k4 += COOP_K / 4) {
        coopmat<float16_t, gl_ScopeSubgroup, COOP_M, COOP_K, gl_MatrixUseA> a[OWN_M];
        [[unroll]] for (uint i = 0; i < OWN_M; i++) {
            const uint m = corner.x + i / EACH_M * PART_M + i % EACH_M * COOP_M;
            coopMatLoad(a[i], tile, m * PITCH + k4, PITCH, gl_CooperativeMatrixLayoutRowMajor);
        }
        [[unroll]] for (uint j = 0; j < OWN_N; j++) {
            const uint n = corner.y + j / EACH_N * PART_N + j % EACH_N * COOP_N;
            coopmat<float16_t, gl_ScopeSubgroup, COOP_K, COOP_N, gl_MatrixUseB> b;
            coopMatLoad(b, tile, (BM + n) * PITCH + k4, PITCH, gl_CooperativeMatrixLayoutColumnMajor);
            [[unroll]] for (uint i = 0; i < OWN_M; i++) sums[i * OWN_N + j] = coopMatMulAdd(a[i], b, sums[i * OWN_N + j]);
        }
    }
}
#endif

void multiply(uint m, uint n, uint k, uint end)
{
    clear_sums();
    fetch(m, n, k < end ? k : 0); // k >= end: no products, but the loads must be inside the operands
    [[dont_unroll]] for (; k < end; k += BLOCKS_COOP_K) {
        [[unroll]] for (uint t = 0; t < BLOCKS_A; t++)
            put(t * LANES + gl_LocalInvocationID.x, 4 * t, 0, SHARE_M, A_BY_K, ROUNDS_A);
        [[unroll]] for (uint t = 0; t < BLOCKS_B; t++)
            put(t * LANES + gl_LocalInvocationID.x, 4 * (BLOCKS_A + t), BM * PITCH, SHARE_N, B_BY_K, ROUNDS_B);
        barrier();
        if (k + BLOCKS_COOP_K < end) fetch(m, n, k + BLOCKS_COOP_K);
        multiply_tile();
        barrier();
    }
    finish_sums();
}
#endif
