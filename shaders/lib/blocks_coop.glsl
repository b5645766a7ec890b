// blocks_coop.glsl - the part of blocks.glsl that differs with COOP: the tile is f16 in shared memory, and subgroups multiply
// it with cooperative matrices (VK_KHR_cooperative_matrix), which sum in f32. Loaders and epilogues stay the same.
// The kernel that includes blocks.glsl defines
//   ROUNDS_A, ROUNDS_B             true: round the operand to f16. false: load_a (load_b) returns values that are f16 already.
//
// A tile has as many parts as a lane has groups of 4 x 4 elements. Part (i, j) holds one group of every lane. In every part a
// subgroup owns EACH_M x EACH_N neighbouring matrices. Over all parts it has OWN_M x OWN_N matrices, as a lane has TM x
// TN elements. So one read of a matrix of A from shared memory serves OWN_N products.
// Only the driver knows which lane holds which element of a matrix. The sums therefore reach their lanes through shared memory,
// one part after the other.
// A tile row in shared memory has 16 bytes of padding, which is the alignment that matrices need. Without it, rows whose length
// is a power of two would start in the same bank.
// source: GLSL_KHR_cooperative_matrix; NVIDIA, CUTLASS, Efficient GEMM in CUDA (2017): tiles of a warp, epilogue in shared
//         memory
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "abi/coop.abi.h"
#include "abi/lanes.abi.h"
layout(constant_id = SUBGROUPS_SPEC) const uint SUBGROUPS = 2;
layout(constant_id = COOP_SPEC_M) const uint COOP_M = 16;
layout(constant_id = COOP_SPEC_N) const uint COOP_N = 16;
layout(constant_id = COOP_SPEC_K) const uint COOP_K = 16;
const uint PARTS_M = TM / 4, PARTS_N = TN / 4, PART_M = 4 * LANES_M, PART_N = 4 * LANES_N;
const uint ROW = PART_N / COOP_N, EACH = PART_M / COOP_M * ROW / SUBGROUPS; // matrices of a part: per row, per subgroup
const uint EACH_N = EACH < ROW ? EACH : ROW, EACH_M = EACH / EACH_N;
const uint OWN_M = PARTS_M * EACH_M, OWN_N = PARTS_N * EACH_N; // a subgroup's matrices over all parts
const uint PAD = 2; // f16vec4s
const uint PITCH_A = BM / 4 + PAD, PITCH_B = BN / 4 + PAD, PART_A = BLOCKS_K * PITCH_A, HALF = PART_A + BLOCKS_K * PITCH_B;
shared f16vec4 tile[2 * HALF]; // two halves, each A [k][m / 4] and then B [k][n / 4]
shared vec4 part[PART_M * PART_N / 4]; // [m][n / 4]
coopmat<float, gl_ScopeSubgroup, COOP_M, COOP_N, gl_MatrixUseAccumulator> sums[OWN_M * OWN_N];

uint tile_index(uint k4, uint x4, uint width) { return 4 * k4 * (width + PAD) + x4; }

// Rounds to nearest, ties to even, as load.glsl does. A plain conversion may round either way, so it is used only for values
// that are f16 already.
void put_vec4(uint at, uint j, uint width, vec4 v, bool is_a)
{
    const uvec2 h = narrow(v, STORAGE_F16);
    const bool rounds = is_a ? ROUNDS_A : ROUNDS_B;
    tile[at + j * (width + PAD)] = rounds ? f16vec4(unpackFloat2x16(h.x), unpackFloat2x16(h.y)) : f16vec4(v);
}

// Returns the position of the subgroup's first matrix in a part.
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

void multiply_tile(uint half_at)
{
    const uvec2 corner = own_corner();
    [[unroll]] for (uint k = 0; k < BLOCKS_K; k += COOP_K) {
        coopmat<float16_t, gl_ScopeSubgroup, COOP_M, COOP_K, gl_MatrixUseA> a[OWN_M];
        [[unroll]] for (uint i = 0; i < OWN_M; i++) {
            const uint m = corner.x + i / EACH_M * PART_M + i % EACH_M * COOP_M;
            coopMatLoad(a[i], tile, half_at + k * PITCH_A + m / 4, PITCH_A, gl_CooperativeMatrixLayoutColumnMajor);
        }
        [[unroll]] for (uint j = 0; j < OWN_N; j++) {
            const uint n = corner.y + j / EACH_N * PART_N + j % EACH_N * COOP_N;
            coopmat<float16_t, gl_ScopeSubgroup, COOP_K, COOP_N, gl_MatrixUseB> b;
            coopMatLoad(b, tile, half_at + PART_A + k * PITCH_B + n / 4, PITCH_B, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint i = 0; i < OWN_M; i++) sums[i * OWN_N + j] = coopMatMulAdd(a[i], b, sums[i * OWN_N + j]);
        }
    }
}

void finish_sums()
{
    const uvec2 corner = own_corner(), lane = uvec2(gl_LocalInvocationID.x / LANES_N, gl_LocalInvocationID.x % LANES_N);
    [[unroll]] for (uint i = 0; i < PARTS_M; i++)
        [[unroll]] for (uint j = 0; j < PARTS_N; j++) {
            [[unroll]] for (uint m = 0; m < EACH_M; m++)
                [[unroll]] for (uint n = 0; n < EACH_N; n++)
                    coopMatStore(sums[(i * EACH_M + m) * OWN_N + j * EACH_N + n], part,
                                 ((corner.x + m * COOP_M) * PART_N + corner.y + n * COOP_N) / 4, PART_N / 4,
                                 gl_CooperativeMatrixLayoutRowMajor);
            barrier();
            [[unroll]] for (uint m = 0; m < 4; m++)
                acc[(4 * i + m) * TN / 4 + j] = part[(4 * lane.x + m) * PART_N / 4 + lane.y];
            barrier();
        }
}
