// attention_shared.glsl - shared by the attention kernels for GPUs: tiles of scores, and of sums over the columns of scores.
// The lanes of a work group share the operands, which are in shared memory.
// A work group computes a tile of ROWS x COLUMNS scores at a time. A lane has OWN x 4 scores: the rows m * LANES_M +
// lane_m and the columns tile_columns. LANES_N lanes share a row. A row of a sum has D4 vec4s, and D4 <= LANES_N. So
// each of these lanes has at most one vec4 of the row. (With COOP, sums of gradients are in matrices until the tile is
// finished.)
// Arrays of a lane's rows have 4 elements, and with OWN = 2 the last two are not used.
// There are two kinds of products, scores and sums. Both are computed slice by slice. A slice has SLICE values of the summation
// index. While the work group multiplies a slice, it loads the next slice into registers. It then stores the next slice in the
// other half of shared memory, so there is one barrier per slice.
//   scores    the sum over d of a[row][d] * b[column][d]. A slice has CHUNKS vec4s of each row of a and of b.
//   sums      the sum over columns of p[row][column] * b[column][d]. A slice has the weights p of 4 * CHUNKS columns,
//             and the rows of b for these columns. The columns belong to the lanes with CHUNKS neighbouring values of
//             lane_n.
// lib/attention_lanes.glsl multiplies in each lane. With COOP, subgroups multiply cooperative matrices
// (lib/attention_coop.glsl).
// Deterministic: the order of a sum depends on the tile and not on the grid.
// The kernel that includes this file defines
//   void aim(uint step, uint column)              `step` selects one of the kernel's products. For a product of scores,
//                                                 `aim` calls aim_b for the tile of columns at `column`. If the kernel
//                                                 has several products of scores, `aim` also calls aim_a. Otherwise the
//                                                 kernel calls aim_a before its loop. For sums, `aim` does nothing.
//   void fetch(uint step, uint column, uint i)    loads slice i of the step's operands: calls fetch_scores or fetch_sums
// source: Dao, FlashAttention-2, ICLR 2024 (loops, running maximum, weights computed again in the gradients); Volkov & Demmel,
//         Benchmarking GPUs to Tune Dense Linear Algebra, SC 2008 (register tiles)
layout(local_size_x_id = 0) in;
layout(constant_id = ATTENTION_SHARED_SPEC_ROWS) const uint ROWS = 64;
layout(constant_id = ATTENTION_SHARED_SPEC_CHUNKS) const uint CHUNKS = 4;
layout(constant_id = ATTENTION_SHARED_SPEC_D4) const uint D4 = 16;
layout(constant_id = ATTENTION_SHARED_SPEC_OWN) const uint OWN = 4;
const uint LANES_M = ROWS / OWN, LANES_N = ATTENTION_SHARED_LANES_N(D4), LANES = LANES_M * LANES_N;
const uint COLUMNS = 4 * LANES_N, SLICE = 4 * CHUNKS;
const uint SLICES = (D4 + CHUNKS - 1) / CHUNKS; // slices of a product of scores
// PART_A: vec4s of the first operand in a slice. SCORES_B: vec4s of the second operand in a slice of scores.
const uint PART_A = ROWS * CHUNKS, SCORES_B = COLUMNS * CHUNKS;
const uint FETCH_A = (PART_A + LANES - 1) / LANES, FETCH_B = (SCORES_B + LANES - 1) / LANES;
#include "lib/attention_operands.glsl"
uint at_a[FETCH_A], at_b[FETCH_B]; // see aim_a
vec4 sum[4 * SUMS];
uint half_at = 0; // index in tile[] at which the current half begins

void aim(uint step, uint column);
void fetch(uint step, uint column, uint i);

uint lane_m() { return gl_LocalInvocationID.x / LANES_N; }
uint lane_n() { return gl_LocalInvocationID.x % LANES_N; }
uint tile_row(uint m) { return m * LANES_M + lane_m(); }
// A lane loads several items of an operand's slice. An item is a vec4, or for sums with COOP a block of 2 x 2 numbers.
// Returns the index in the slice of the lane's item number t.
uint item(uint t) { return t * LANES + gl_LocalInvocationID.x; }
bool is_item(uint t, uint n) { return n % LANES == 0 || item(t) < n; }
// Returns item(t) / n, for an n that divides LANES. (For every t, item(t) % n is gl_LocalInvocationID.x % n.)
uint item_row(uint t, uint n) { return gl_LocalInvocationID.x / n + t * (LANES / n); }

#ifdef COOP
#include "lib/attention_coop.glsl"
#else
#include "lib/attention_lanes.glsl"
#endif

uint own_vec4() { return gl_LocalInvocationID.x % CHUNKS; } // index, in a row of a slice, of the vec4 that the lane loads
const bool WHOLE = D4 % CHUNKS == 0; // true: each slice has CHUNKS vec4s of a row; false: the last slice has fewer

// Sets at_a[t] for the t-th row of matrix `a` that the lane loads. Without WHOLE, at_a[t] is the index of the row's
// first vec4. With WHOLE, at_a[t] is the index of the row's vec4 number own_vec4(). `row`: the first row of the tile.
// The matrix's last row replaces rows beyond the matrix.
void aim_a(matrix a, uint row)
{
    const uint at = a.at + (WHOLE ? own_vec4() : 0);
    [[unroll]] for (uint t = 0; t < FETCH_A; t++) at_a[t] = at + min(row + item_row(t, CHUNKS), a.rows - 1) * a.ld;
}

void aim_b(matrix b, uint column)
{
    const uint at = b.at + (WHOLE ? own_vec4() : 0);
    [[unroll]] for (uint t = 0; t < FETCH_B; t++) at_b[t] = at + min(column + item_row(t, CHUNKS), b.rows - 1) * b.ld;
}

// Loads slice i of a product of scores: vec4 i * CHUNKS + own_vec4() of each row in at_a and at_b. If a row has no such
// vec4, loads the row's last vec4 instead.
void fetch_scores(uint of_a, uint of_b, uint i)
{
    const uint from = WHOLE ? i * CHUNKS : min(i * CHUNKS + own_vec4(), D4 - 1);
    [[unroll]] for (uint t = 0; t < FETCH_A; t++)
        if (is_item(t, PART_A)) stage(t, of_a, at_a[t] + from);
    [[unroll]] for (uint t = 0; t < FETCH_B; t++)
        if (is_item(t, SCORES_B)) stage(FETCH_A + t, of_b, at_b[t] + from);
}

// Stores slice i of a product of scores, which fetch_scores has loaded. Numbers beyond the end of a row are 0.
void put_scores(uint i)
{
    const uint c = own_vec4();
    const bool is_in = WHOLE || i * CHUNKS + c < D4;
    [[unroll]] for (uint t = 0; t < FETCH_A + FETCH_B; t++) {
        const bool is_b = t >= FETCH_A;
        const uint n = is_b ? t - FETCH_A : t;
        if (is_item(n, is_b ? SCORES_B : PART_A)) put(is_b, item_row(n, CHUNKS), c, is_in ? staged_numbers(t) : NUMBERS(0.0));
    }
}

// Stores slice i of a sum: the weights w of the lanes whose lane_n belongs to the slice, and the rows that fetch_sums loaded.
void put_sums(NUMBERS w[4], uint column, uint i)
{
    put_rows(column, i);
    if (lane_n() / CHUNKS == i) put_weights(w);
}

// Computes s[m][n]: the score of the lane's row m and the lane's column n, in the tile of columns that begins at
// `column`. Before the call, the first slice must be in registers (fetch). After the call, the first slice of the step
// `next` is in registers, for the tile of columns at `next_column`.
void scores(uint step, uint column, uint next, uint next_column, out vec4 s[4])
{
    clear_scores(s);
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
    finish_scores(s);
}

// Adds to the sums the products of the weights w with rows of the step's operand. The sums are sum[at ..], or with COOP
// and GRADIENT the matrices that gather_sums(at) reads. Before the call, the first slice must be in registers. After
// the call, the first slice of the step `next` is in registers, for the tile of columns at `next_column`.
void add_sums(uint step, uint column, uint next, uint next_column, NUMBERS w[4], uint at)
{
    begin_sums();
    [[dont_unroll]] for (uint i = 0; i < COLUMNS / SLICE; i++) {
        put_sums(w, column, i);
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
    finish_sums(at);
}

// Returns true if this lane stores the vec4 lane_n of its rows.
bool stores()
{
    return lane_n() < D4;
}
