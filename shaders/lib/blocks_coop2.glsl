// blocks_coop2.glsl - the part of blocks_coop.glsl for kernels with COOP2. Each subgroup has one matrix of sums, for
// its whole part of the tile (VK_NV_cooperative_matrix2, flexible dimensions). The driver divides this matrix into
// matrices of sizes that the device supports.
//
// The sums stay in the matrix. The including kernel stores them by coopMatPerElementNV, which calls a function with the row,
// the column and the value of an element. sum_row() and sum_column() convert this row and this column to those in the work
// group's tile. So sums do not go through shared memory, and `acc` is not used.
//
// Rows of an operand are permuted in shared memory only if the operand does not run along k. For an operand that runs along k,
// neighbouring lanes store to different banks without a permutation. So, if B runs along k, neighbouring columns of the matrix
// are neighbours in C.
// source: GLSL_NV_cooperative_matrix2
#extension GL_NV_cooperative_matrix2 : require
const uint DOWN = SUBGROUPS >= 64 ? 8 : SUBGROUPS >= 16 ? 4 : SUBGROUPS >= 4 ? 2 : 1; // subgroups one below the other
const uint ACROSS = SUBGROUPS / DOWN; // subgroups side by side
const uint OWN_M = BM / DOWN, OWN_N = BN / ACROSS; // rows and columns of a subgroup
// SHARE_M, SHARE_N: number of lanes whose rows are permuted together (see position()). 1: no permutation.
const uint SHARE_M = A_BY_K ? 1 : 8, SHARE_N = B_BY_K ? 1 : 8;
shared uvec2 tile[(BM + BN) * PITCH]; // A [m][k / 4] and then B [n][k / 4]
coopmat<float, gl_ScopeSubgroup, OWN_M, OWN_N, gl_MatrixUseAccumulator> sums;

// Returns the first row of A and the first column of B, in shared memory, that the subgroup multiplies.
uvec2 own_corner() { return uvec2(gl_SubgroupID / ACROSS * OWN_M, gl_SubgroupID % ACROSS * OWN_N); }

// Returns the row of an operand that is stored as row `at` in shared memory, if the rows of `lanes` lanes are permuted
// together. This is the inverse of position().
uint row_at(uint at, uint lanes)
{
    const uint i = at % (4 * lanes);
    return at - i + 4 * (i % (2 * lanes) / 2) + i / (2 * lanes) * 2 + i % 2;
}

uint sum_row(uint row) { return row_at(own_corner().x + row, SHARE_M); }
uint sum_column(uint column) { return row_at(own_corner().y + column, SHARE_N); }

void clear_sums() { sums = coopmat<float, gl_ScopeSubgroup, OWN_M, OWN_N, gl_MatrixUseAccumulator>(0.0); }
void finish_sums() {}

void multiply_tile()
{
    const uvec2 corner = own_corner();
    [[unroll]] for (uint k4 = 0; k4 < K4; k4 += BLOCKS_COOP2_K / 4) {
        coopmat<float16_t, gl_ScopeSubgroup, OWN_M, BLOCKS_COOP2_K, gl_MatrixUseA> a;
        coopmat<float16_t, gl_ScopeSubgroup, BLOCKS_COOP2_K, OWN_N, gl_MatrixUseB> b;
        coopMatLoad(a, tile, corner.x * PITCH + k4, PITCH, gl_CooperativeMatrixLayoutRowMajor);
        coopMatLoad(b, tile, (BM + corner.y) * PITCH + k4, PITCH, gl_CooperativeMatrixLayoutColumnMajor);
        sums = coopMatMulAdd(a, b, sums);
    }
}
