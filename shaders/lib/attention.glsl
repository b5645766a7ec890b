// attention.glsl - what the kernels of attention share: tiles of scores, and of sums over their columns, in registers
// A subgroup has a tile of ROWS rows and 4 SG columns of scores, each lane four neighbouring columns of every row, and a tile of
// ROWS sums of d4 vec4s. Both products are those of gemm_tile.comp: a lane loads a row's next vec4, and its elements go round
// by shuffles. Columns of scores are rows in memory: four vec4s of a lane's four columns are four columns of a 4 x 4 block.
// Where a row of d4 vec4s leaves lanes over (pc.spread < SG), they take other columns of the scores: sums of parts, added at the end.
// source: Dao, Fu, Ermon, Rudra & Re, FlashAttention, NeurIPS 2022; Milakov & Gimelshein, Online normalizer calculation for
//         softmax, 2018 (the running maximum)
#include "lib/explog.glsl"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint SG = 8;
layout(constant_id = ATTENTION_SPEC_ROWS) const uint ROWS = 16;
layout(constant_id = ATTENTION_SPEC_PARTS) const uint PARTS = 1;
const uint COLUMNS = 4 * SG, HELD = (ROWS + SG - 1) / SG; // a number for each row of the tile: HELD a lane, row j SG + lane
// Sizes of arrays that are passed: a specialisation constant cannot be one, and what is not used takes no registers.
const uint MOST_ROWS = ATTENTION_MOST_ROWS, MOST_SUMS = ATTENTION_MOST_SUMS, MOST_HELD = MOST_ROWS / 4;
const uint MOST_STEPS = 7; // subgroups of 128 lanes: loops with a bound that drivers know, so that they unroll what is around them
const bool ROTATE = SG == ATTENTION_ROTATED;
#define LOWEST uintBitsToFloat(0xff800000u)               // -infinity
VKT_IN4(ATTENTION_Q, q4);
VKT_IN4(ATTENTION_K, k4);
VKT_IN4(ATTENTION_V, v4);
#ifdef GRADIENT
VKT_IN4(ATTENTION_DY, dy4);
#endif
const uint OF_Q = 0, OF_K = 1, OF_V = 2, OF_DY = 3;

vec4 load(uint of, uint at)
{
    if (of == OF_Q) return LOAD4(q4, at);
    if (of == OF_K) return LOAD4(k4, at);
#ifdef GRADIENT
    if (of == OF_DY) return LOAD4(dy4, at);
#endif
    return LOAD4(v4, at);
}

// A matrix of one head: row i begins at `at` + i ld.
struct matrix {
    uint of, at, ld, rows;
};

matrix matrix_of(uint of, uint base, uint pair, uint rows)
{
    const uint ld = of == OF_DY ? pc.heads * pc.d4 : pc.ld;
    return matrix(of, base + pair / pc.heads * rows * ld + pair % pc.heads * pc.d4, ld, rows);
}

uint row_at(matrix m, uint i)
{
    return m.at + min(i, m.rows - 1) * m.ld;
}

// Tile i of a head, of n: the first, the last, the second, .. so that any neighbours have as much to do where a mask makes
// tiles longer and longer (a CPU driver gives each thread neighbouring work groups).
uint tile_of(uint i, uint n)
{
    return (i & 1u) == 0 ? i / 2 : n - 1 - i / 2;
}

uint zero() // as in conv/tile.comp
{
    return SG == 8 ? pc.zero : 0;
}

// The number of row m of the tile, which a lane holds.
float of_row(float held[MOST_HELD], uint m)
{
    return subgroupShuffle(held[m / SG], m % SG + zero());
}

// sum over d of a[row + m][d] b[column + 4 lane + i][d]: element i of s[m]
void scores(matrix a, uint row, matrix b, uint column, out vec4 s[MOST_ROWS])
{
    const uint lane = gl_SubgroupInvocationID;
    uint a_at[MOST_HELD], b_at[4];
    [[unroll]] for (uint j = 0; j < HELD; j++) a_at[j] = row_at(a, row + j * SG + lane);
    [[unroll]] for (uint i = 0; i < 4; i++) b_at[i] = row_at(b, column + 4 * lane + i);
    [[unroll]] for (uint m = 0; m < ROWS; m++) s[m] = vec4(0.0);
    [[dont_unroll]] for (uint k = 0; k < pc.d4; k++) {
        vec4 x[MOST_HELD];
        mat4 y;
        [[unroll]] for (uint j = 0; j < HELD; j++) x[j] = load(a.of, a_at[j] + k);
        [[unroll]] for (uint i = 0; i < 4; i++) y[i] = load(b.of, b_at[i] + k);
        y = transpose(y);
        [[unroll]] for (uint m = 0; m < ROWS; m++) {
            vec4 v = s[m];
            [[unroll]] for (uint j = 0; j < 4; j++) v += subgroupShuffle(x[m / SG][j], m % SG + zero()) * y[j];
            s[m] = v;
        }
    }
}

// Adds what columns 4 k .. 4 k + 3 of the tile, of which another lane has the weights p, bring: lane k, or where ROTATE
// this lane ^ known.
void add_columns(inout vec4 sum[MOST_SUMS], vec4 p[MOST_ROWS], matrix b, uint column, uint k, uint known)
{
    const uint lane = gl_SubgroupInvocationID;
    vec4 y[4 * PARTS];
    [[unroll]] for (uint j = 0; j < 4; j++) {
        const uint at = row_at(b, column + 4 * k + j);
        const bool is_row = column + 4 * k + j < b.rows; // else the last row was loaded: 0 times its infinity is NaN
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

// sum[m] += the sum over the tile's columns of p[m][c] b[column + c]: part n of a lane is vec4 n spread + lane % spread of a row
// llvmpipe makes a loop over 16 lanes from a lane number that it does not know. There weights go from each lane to the one four
// further on, and lane ^ 0 .. 3 reaches all of them in turn.
void add_product(inout vec4 sum[MOST_SUMS], vec4 p[MOST_ROWS], matrix b, uint column)
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

// The parts that lanes over have added up.
vec4 whole(vec4 v)
{
    [[unroll]] for (uint i = 0; i < MOST_STEPS; i++)
        if (1u << i < SG) v += pc.spread <= 1u << i ? subgroupShuffleXor(v, 1u << i) : vec4(0.0);
    return v;
}

// Whether this lane writes vec4 n spread + lane of a row.
bool writes(uint n)
{
    return gl_SubgroupInvocationID < pc.spread && n * pc.spread + gl_SubgroupInvocationID < pc.d4;
}
