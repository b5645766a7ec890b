// attention_shared.glsl - shared by the attention kernels for GPUs: tiles of scores, and of sums over the columns of scores.
// The lanes of a work group share the operands, which are in shared memory.
// A work group has one tile of ROWS x COLUMNS scores. A lane has 4 x 4 of them: rows m * LANES_M + lane_m and columns
// n * LANES_N + lane_n. It also has one vec4 of the sums of each of its rows. LANES_N is large enough for this.
// Both products take one slice of their operands after the other, SLICE numbers of the sum's index at a time. While the work
// group multiplies a slice, it loads the next one into registers. It then stores that slice in the other half of shared memory,
// so there is one barrier per slice.
//   scores    the sum over d of a[row][d] * b[column][d]. A slice has CHUNKS vec4s of each row of a and of b, as they are in
//             memory.
//   sums      the sum over columns of p[row][column] * b[column][d]. A slice has the weights p of CHUNKS values of lane_n, 4
//             columns each, and the same rows of b. So a lane stores its weights as whole vec4s.
// A wave reads 16 rows of the second operand at the same time. `swap` permutes the vec4s of a row, so that neighbouring rows
// are in different banks.
// If a row of D4 vec4s needs fewer than LANES_N lanes (ACROSS), the remaining lanes add up different columns (SHARES). These
// partial sums are added at the end.
// No subgroup operations: any subgroup size works. Deterministic: the order of a sum depends on the tile and not on the grid.
// The kernel that includes this file defines
//   void aim(uint step, uint column)              for a product: calls aim_a and aim_b for the tile of columns at `column`.
//                                                 `step` is the kernel's own number of the product or sum.
//   void fetch(uint step, uint column, uint i)    loads slice i of its operands: calls fetch_scores or fetch_sums
// source: Dao, FlashAttention-2, ICLR 2024 (loops, running maximum, weights computed again in the gradients); Volkov & Demmel,
//         Benchmarking GPUs to Tune Dense Linear Algebra, SC 2008 (register tiles)
#include "lib/explog.glsl"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = ATTENTION_SHARED_SPEC_ROWS) const uint ROWS = 64;
layout(constant_id = ATTENTION_SHARED_SPEC_CHUNKS) const uint CHUNKS = 4;
layout(constant_id = ATTENTION_SHARED_SPEC_D4) const uint D4 = 16;
const uint LANES_M = ROWS / 4, LANES_N = ATTENTION_SHARED_LANES_N(D4), LANES = LANES_M * LANES_N;
const uint COLUMNS = 4 * LANES_N, SLICE = 4 * CHUNKS;
const uint SLICES = (D4 + CHUNKS - 1) / CHUNKS; // of a product of scores
const uint ACROSS = D4 <= 4 ? 4 : D4 <= 8 ? 8 : LANES_N, SHARES = LANES_N / ACROSS;
const uint PART_A = ROWS * CHUNKS, SCORES_B = COLUMNS * CHUNKS, SUMS_B = SLICE * ACROSS; // vec4s of a slice
const uint HALF = PART_A + (SCORES_B > SUMS_B ? SCORES_B : SUMS_B);
const uint FETCH_A = (PART_A + LANES - 1) / LANES, FETCH_B = (SCORES_B + LANES - 1) / LANES;
const uint FETCH_SUMS = (SUMS_B + LANES - 1) / LANES, FETCHES = FETCH_A + FETCH_B > FETCH_SUMS ? FETCH_A + FETCH_B : FETCH_SUMS;
#define LOWEST uintBitsToFloat(0xff800000u) // -infinity
VKT_IN4(ATTENTION_Q, q4);
VKT_IN4(ATTENTION_K, k4);
VKT_IN4(ATTENTION_V, v4);
#ifdef GRADIENT
VKT_IN4(ATTENTION_DY, dy4);
#endif
const uint OF_Q = 0, OF_K = 1, OF_V = 2, OF_DY = 3;
shared vec4 tile[2 * HALF];
vec4 staged[FETCHES];
uint at_a[FETCH_A], at_b[FETCH_B]; // see aim_a
vec4 sum[4 * SUMS];
uint half_at = 0; // the half that gets the next slice

void aim(uint step, uint column);
void fetch(uint step, uint column, uint i);

uint lane_m() { return gl_LocalInvocationID.x / LANES_N; }
uint lane_n() { return gl_LocalInvocationID.x % LANES_N; }
uint tile_row(uint m) { return m * LANES_M + lane_m(); }
uint item(uint t) { return t * LANES + gl_LocalInvocationID.x; } // the lane's t-th vec4 of a part with n vec4s
bool is_item(uint t, uint n) { return n % LANES == 0 || item(t) < n; }
uvec4 tile_columns() { return lane_n() + LANES_N * uvec4(0, 1, 2, 3); }

vec4 load(uint of, uint at)
{
    if (of == OF_Q) return LOAD4(q4, at);
    if (of == OF_K) return LOAD4(k4, at);
#ifdef GRADIENT
    if (of == OF_DY) return LOAD4(dy4, at);
#endif
    return LOAD4(v4, at);
}

// A matrix of one head. Row i begins at vec4 at + i * ld.
struct matrix {
    uint of, at, ld, rows;
};

matrix matrix_of(uint of, uint base, uint pair, uint rows)
{
    const uint ld = of == OF_DY ? pc.heads * D4 : pc.ld;
    return matrix(of, base + pair / pc.heads * rows * ld + pair % pc.heads * D4, ld, rows);
}

// Finds the first vec4 of each row of a matrix from which the lane loads. `row`: the first row of a tile. A row beyond the
// matrix is the last one.
void aim_a(matrix a, uint row)
{
    [[unroll]] for (uint t = 0; t < FETCH_A; t++) at_a[t] = a.at + min(row + item(t) / CHUNKS, a.rows - 1) * a.ld;
}

void aim_b(matrix b, uint column)
{
    [[unroll]] for (uint t = 0; t < FETCH_B; t++) at_b[t] = b.at + min(column + item(t) / CHUNKS, b.rows - 1) * b.ld;
}

// Loads slice i of a product: vec4s i * CHUNKS .. of the rows that aim_a and aim_b found.
void fetch_scores(uint of_a, uint of_b, uint i)
{
    const uint x = i * CHUNKS + gl_LocalInvocationID.x % CHUNKS, from = D4 % CHUNKS == 0 ? x : min(x, D4 - 1);
    [[unroll]] for (uint t = 0; t < FETCH_A; t++)
        if (is_item(t, PART_A)) staged[t] = load(of_a, at_a[t] + from);
    [[unroll]] for (uint t = 0; t < FETCH_B; t++)
        if (is_item(t, SCORES_B)) staged[FETCH_A + t] = load(of_b, at_b[t] + from);
}

// Returns the column of the tile that is row `at` of slice i of a sum.
uint column_of(uint at, uint i)
{
    return at % 4 * LANES_N + i * CHUNKS + at / 4;
}

// Loads slice i of a sum: rows of b.
void fetch_sums(matrix b, uint column, uint i)
{
    [[unroll]] for (uint t = 0; t < FETCH_SUMS; t++) {
        const uint from = min(column + column_of(item(t) / ACROSS, i), b.rows - 1) * b.ld, x = item(t) % ACROSS;
        if (is_item(t, SUMS_B)) staged[t] = load(b.of, b.at + from + (D4 == ACROSS ? x : min(x, D4 - 1)));
    }
}

// Returns the permutation of the vec4s of a row: vec4 c is at c ^ swap(row). All rows of a lane have that of lane_m or lane_n.
uint swap(uint row)
{
    return row * CHUNKS / 8 % CHUNKS;
}

// Stores the staged slice i of a product. Numbers beyond the end of a row are 0.
void put_scores(uint i)
{
    const uint c = gl_LocalInvocationID.x % CHUNKS;
    const bool is_in = D4 % CHUNKS == 0 || i * CHUNKS + c < D4;
    [[unroll]] for (uint t = 0; t < FETCH_A + FETCH_B; t++) {
        const bool is_a = t < FETCH_A;
        const uint n = is_a ? t : t - FETCH_A, row = item(n) / CHUNKS;
        if (is_item(n, is_a ? PART_A : SCORES_B))
            tile[half_at + (c ^ swap(row % (is_a ? LANES_M : LANES_N))) + row * CHUNKS + (is_a ? 0 : PART_A)] =
                is_in ? staged[t] : vec4(0.0);
    }
}

// Stores slice i of the weights p, which CHUNKS values of lane_n have, and the staged rows. Rows beyond the matrix are 0,
// because its last row may be infinite.
void put_sums(vec4 p[4], uint column, uint i)
{
    if (column + COLUMNS > pc.others)
        [[unroll]] for (uint t = 0; t < FETCH_SUMS; t++)
            if (column + column_of(item(t) / ACROSS, i) >= pc.others) staged[t] = vec4(0.0);
    [[unroll]] for (uint t = 0; t < FETCH_SUMS; t++)
        if (is_item(t, SUMS_B)) tile[half_at + gl_LocalInvocationID.x + PART_A + t * LANES] = staged[t];
    if (lane_n() / CHUNKS == i)
        [[unroll]] for (uint m = 0; m < 4; m++)
            tile[half_at + lane_m() * CHUNKS + (lane_n() % CHUNKS ^ swap(lane_m())) + m * LANES_M * CHUNKS] = p[m];
}

void multiply_scores(inout vec4 s[4])
{
    const uint a_at = half_at + lane_m() * CHUNKS + swap(lane_m()), b_at = half_at + lane_n() * CHUNKS + swap(lane_n());
    [[dont_unroll]] for (uint c = 0; c < CHUNKS; c++) {
        vec4 a[4];
        [[unroll]] for (uint m = 0; m < 4; m++) a[m] = tile[(a_at ^ c) + m * LANES_M * CHUNKS];
        [[unroll]] for (uint n = 0; n < 4; n++) {
            const vec4 b = tile[(b_at ^ c) + PART_A + n * LANES_N * CHUNKS];
            [[unroll]] for (uint j = 0; j < 4; j++)
                [[unroll]] for (uint m = 0; m < 4; m++) s[m][n] += a[m][j] * b[j];
        }
    }
}

void multiply_sums(uint at)
{
    const uint share = lane_n() / ACROSS, p_at = half_at + lane_m() * CHUNKS + swap(lane_m());
    const uint b_at = half_at + share * 4 * ACROSS + lane_n() % ACROSS;
    [[dont_unroll]] for (uint c = 0; c < CHUNKS; c += SHARES) {
        vec4 p[4];
        [[unroll]] for (uint m = 0; m < 4; m++) p[m] = tile[(p_at ^ (c + share)) + m * LANES_M * CHUNKS];
        [[unroll]] for (uint j = 0; j < 4; j++) {
            const vec4 b = tile[b_at + 4 * c * ACROSS + PART_A + j * ACROSS];
            [[unroll]] for (uint m = 0; m < 4; m++) sum[at + m] += p[m][j] * b;
        }
    }
}

// Computes s[m][n], the products of the lane's rows and columns in the tile of columns that begins at `column`. Its first slice
// is staged. The first slice of the step `next` is staged after it, for the tile of columns at `next_column`.
void scores(uint step, uint column, uint next, uint next_column, out vec4 s[4])
{
    [[unroll]] for (uint m = 0; m < 4; m++) s[m] = vec4(0.0);
    [[dont_unroll]] for (uint i = 0; i < SLICES; i++) {
        put_scores(i);
        barrier();
        if (i + 1 < SLICES) {
            fetch(step, column, i + 1);
        } else {
            aim(next, next_column);
            fetch(next, next_column, 0);
        }
        multiply_scores(s);
        half_at = HALF - half_at;
    }
}

// Adds to sum[at ..] the products of the weights p with rows of the step's operand. Staging is as in `scores`.
void add_sums(uint step, uint column, uint next, uint next_column, vec4 p[4], uint at)
{
    [[dont_unroll]] for (uint i = 0; i < COLUMNS / SLICE; i++) {
        put_sums(p, column, i);
        barrier();
        if (i + 1 < COLUMNS / SLICE) {
            fetch(step, column, i + 1);
        } else {
            aim(next, next_column);
            fetch(next, next_column, 0);
        }
        multiply_sums(at);
        half_at = HALF - half_at;
    }
}

void clear_sums()
{
    [[unroll]] for (uint i = 0; i < 4 * SUMS; i++) sum[i] = vec4(0.0);
}

// Returns the largest v, or the sum of all v, of the lanes that have the same rows.
vec4 over_row(vec4 v, bool is_sum)
{
    tile[half_at + lane_n() * LANES_M + lane_m()] = v;
    barrier();
    vec4 r = tile[half_at + lane_m()];
    [[unroll]] for (uint n = 1; n < LANES_N; n++) {
        const vec4 x = tile[half_at + n * LANES_M + lane_m()];
        r = is_sum ? r + x : max(r, x);
    }
    half_at = HALF - half_at;
    return r;
}

// Adds up the partial sums sum[at ..] of the lanes that have the same numbers. The first of these lanes gets the result.
void join_shares(uint at)
{
    if (SHARES == 1) return;
    barrier();
    [[unroll]] for (uint m = 0; m < 4; m++) tile[m * LANES + gl_LocalInvocationID.x] = sum[at + m];
    barrier();
    if (lane_n() < ACROSS)
        [[unroll]] for (uint m = 0; m < 4; m++)
            [[unroll]] for (uint i = 1; i < SHARES; i++) sum[at + m] += tile[m * LANES + gl_LocalInvocationID.x + i * ACROSS];
}

// Returns true if this lane stores the vec4 lane_n of its rows.
bool stores()
{
    return lane_n() < min(ACROSS, D4);
}
