// attention.glsl - shared by attention.comp, attention_dq.comp and attention_dkv.comp: tiles of scores, and tiles of
// sums over the score columns, in registers
// A subgroup of SG lanes computes a tile of ROWS x 4 SG scores. Each lane holds four neighbouring columns of every row.
// For each output (y, dq, dk or dv), the subgroup also has a tile of sums: ROWS rows of d4 vec4s.
// The scores are a product of two matrices, and so are the sums. The lanes hold different elements of the first matrix,
// and shuffles pass these elements to other lanes.
// For the scores, the first matrix is loaded. For the sums, it has the weights: numbers computed from the scores.
// Each column of the scores is computed from one row of the second matrix. A lane loads one vec4 for each of its four
// columns and transposes the 4 x 4 block.
// If a row of d4 vec4s needs only pc.spread lanes and the subgroup has more, the lanes form groups of pc.spread lanes.
// Then lane i of every group has vec4 i of a row. These lanes add up different score columns, and their partial sums
// are added at the end.
// source: Dao, Fu, Ermon, Rudra & Re, FlashAttention, NeurIPS 2022; Milakov & Gimelshein, Online normalizer calculation for
//         softmax, 2018 (the running maximum)
#define D4 pc.d4
#include "lib/attention_operands.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint SG = 8;
layout(constant_id = ATTENTION_SPEC_ROWS) const uint ROWS = 16;
layout(constant_id = ATTENTION_SPEC_PARTS) const uint PARTS = 1;
const uint COLUMNS = 4 * SG, LANE_ROWS = (ROWS + SG - 1) / SG; // LANE_ROWS: rows of the first matrix that a lane loads
// Maximum sizes of arrays that are parameters of functions. The size of an array parameter cannot be a specialisation
// constant. Unused elements take no registers.
const uint MAX_ROWS = ATTENTION_MAX_ROWS, MAX_SUMS = ATTENTION_MAX_SUMS, MAX_LANE_ROWS = MAX_ROWS / 4;
const uint MAX_STEPS = 7; // steps of a sum over lanes, enough for 128 lanes. With a constant bound, drivers unroll the loops
const bool ROTATE = SG == ATTENTION_ROTATED;

uint row_at(matrix m, uint i)
{
    return m.at + min(i, m.rows - 1) * m.ld;
}

// A head has n tiles. Returns the index of the tile that comes i-th in this order: first, last, second, last but one,
// and so on. With a causal mask, later tiles of queries have more work, and later tiles of keys have less. A CPU driver
// gives neighbouring work groups to one thread, and this order balances the threads.
uint tile_of(uint i, uint n)
{
    return (i & 1u) == 0 ? i / 2 : n - 1 - i / 2;
}

uint zero() // always 0, but with SG = 8 the compiler does not know this: see conv/tile.comp
{
    return SG == 8 ? pc.zero : 0;
}

// Returns the element of `own` that belongs to tile row m, from the lane that holds it.
float of_row(float own[MAX_LANE_ROWS], uint m)
{
    return subgroupShuffle(own[m / SG], m % SG + zero());
}

// Computes s[m][i] = sum over d of a[row + m][d] * b[column + 4 * lane + i][d].
void scores(matrix a, uint row, matrix b, uint column, out vec4 s[MAX_ROWS])
{
    const uint lane = gl_SubgroupInvocationID;
    uint a_at[MAX_LANE_ROWS], b_at[4];
    [[unroll]] for (uint j = 0; j < LANE_ROWS; j++) a_at[j] = row_at(a, row + j * SG + lane);
    [[unroll]] for (uint i = 0; i < 4; i++) b_at[i] = row_at(b, column + 4 * lane + i);
    [[unroll]] for (uint m = 0; m < ROWS; m++) s[m] = vec4(0.0);
    [[dont_unroll]] for (uint k = 0; k < pc.d4; k++) {
        vec4 x[MAX_LANE_ROWS];
        mat4 y;
        [[unroll]] for (uint j = 0; j < LANE_ROWS; j++) x[j] = load(a.of, a_at[j] + k);
        [[unroll]] for (uint i = 0; i < 4; i++) y[i] = load(b.of, b_at[i] + k);
        y = transpose(y);
        [[unroll]] for (uint m = 0; m < ROWS; m++) {
            vec4 v = s[m];
            [[unroll]] for (uint j = 0; j < 4; j++) v += subgroupShuffle(x[m / SG][j], m % SG + zero()) * y[j];
            s[m] = v;
        }
    }
}

// Adds to `sum` the products of the weights of tile columns 4 * k .. 4 * k + 3 with the rows of b for these columns. k
// may differ from lane to lane. Without ROTATE, the weights are in p of lane k. With ROTATE, the weights are in p of
// lane (this lane ^ known).
void add_columns(inout vec4 sum[MAX_SUMS], vec4 p[MAX_ROWS], matrix b, uint column, uint k, uint known)
{
    const uint lane = gl_SubgroupInvocationID;
    vec4 y[4 * PARTS];
    [[unroll]] for (uint j = 0; j < 4; j++) {
        const uint at = row_at(b, column + 4 * k + j);
        const bool is_row = column + 4 * k + j < b.rows; // false: `at` is b's last row, which may be infinite; 0 replaces it
        [[unroll]] for (uint n = 0; n < PARTS; n++) {
            const vec4 row = load(b.of, at + min(n * pc.spread + lane % pc.spread, pc.d4 - 1));
            y[j * PARTS + n] = is_row ? row : vec4(0.0);
        }
    }
    [[unroll]] for (uint m = 0; m < ROWS; m++)
        [[unroll]] for (uint j = 0; j < 4; j++) {
            const float x = ROTATE ? subgroupShuffleXor(p[m][j], known) : subgroupShuffle(p[m][j], k);
            [[unroll]] for (uint n = 0; n < PARTS; n++) sum[m * PARTS + n] += x * y[j * PARTS + n];
        }
}

// Adds to row m of `sum`: the sum over the tile's columns c of p[m][c] * b[column + c]. sum[m * PARTS + n] is vec4
// number n * spread + lane % spread of row m. If several lanes have the same vec4, these lanes add the products of
// different columns, and whole() adds up the sums of the lanes.
// With ROTATE, an iteration reads weights only from the lanes lane ^ 0 .. lane ^ 3. After each iteration, a lane gets
// the weights that lane (lane + 4) % SG had. So the compiler knows the pattern of each shuffle. llvmpipe compiles a
// shuffle with an unknown pattern to a loop over 16 lanes.
void add_product(inout vec4 sum[MAX_SUMS], vec4 p[MAX_ROWS], matrix b, uint column)
{
    const uint lane = gl_SubgroupInvocationID, first = lane / pc.spread, step = SG / pc.spread;
    if (ROTATE)
        [[dont_unroll]] for (uint i = 0; i < pc.spread; i += 4) {
            [[unroll]] for (uint u = 0; u < 4; u++) add_columns(sum, p, b, column, (lane + i) % SG ^ u, u);
            [[unroll]] for (uint m = 0; m < ROWS; m++) p[m] = subgroupShuffle(p[m], (lane + 4) % SG);
        }
    else
        [[dont_unroll]] for (uint i = 0; i < pc.spread; i++) add_columns(sum, p, b, column, first + i * step, 0);
}

// Returns the sum of the partial sums v of the lanes that have the same vec4 of a row.
vec4 whole(vec4 v)
{
    [[unroll]] for (uint i = 0; i < MAX_STEPS; i++)
        if (1u << i < SG) v += pc.spread <= 1u << i ? subgroupShuffleXor(v, 1u << i) : vec4(0.0);
    return v;
}

// Returns true if this lane writes vec4 n * spread + lane of a row.
bool writes(uint n)
{
    return gl_SubgroupInvocationID < pc.spread && n * pc.spread + gl_SubgroupInvocationID < pc.d4;
}
