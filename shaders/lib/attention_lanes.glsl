// attention_lanes.glsl - the products of attention_shared.glsl without COOP: each lane multiplies f32 numbers
// Shared memory has rows of the matrices, not columns, and a lane reads vec4s along a row. For a product, the lanes read up to
// LANES_N rows of the second operand at the same time. `swap` permutes the vec4s of a row, so that these loads use different
// banks.
// A row of sums has D4 vec4s, so ACROSS lanes are enough. If ACROSS is less than LANES_N, SHARES lanes have the same vec4 of a
// row. Each of these lanes adds up the products of different scores. Their partial sums are added at the end.
// This file uses no subgroup operations, so any subgroup size works.
const uint ACROSS = D4 <= 4 ? 4 : D4 <= 8 ? 8 : LANES_N, SHARES = LANES_N / ACROSS;
const uint SUMS_B = SLICE * ACROSS, HALF = PART_A + (SCORES_B > SUMS_B ? SCORES_B : SUMS_B);
const uint FETCH_SUMS = (SUMS_B + LANES - 1) / LANES, FETCHES = FETCH_A + FETCH_B > FETCH_SUMS ? FETCH_A + FETCH_B : FETCH_SUMS;
#define NUMBERS vec4 // four numbers in shared memory
shared vec4 tile[2 * HALF];
vec4 staged[FETCHES];

uvec4 tile_columns() { return lane_n() + LANES_N * uvec4(0, 1, 2, 3); }

// Returns the permutation of a row's vec4s: vec4 c is at c ^ swap(row). All rows of a lane have the permutation of the
// lane's first row.
uint swap(uint row)
{
    return row * CHUNKS / 8 % CHUNKS;
}

void stage(uint t, uint of, uint at) { staged[t] = load(of, at); }
vec4 staged_numbers(uint t) { return staged[t]; }

// Stores v in the slice, as vec4 c of row `row`. With is_b, this is a row of the second operand. Otherwise this is a
// row of the first operand.
void put(bool is_b, uint row, uint c, vec4 v)
{
    tile[half_at + (c ^ swap(row % (is_b ? LANES_N : LANES_M))) + row * CHUNKS + (is_b ? PART_A : 0)] = v;
}

// Stores the lane's weights, one vec4 for each of its rows.
void put_weights(vec4 w[4])
{
    const uint at = half_at + lane_m() * CHUNKS + (lane_n() % CHUNKS ^ swap(lane_m()));
    [[unroll]] for (uint m = 0; m < OWN; m++) tile[at + m * LANES_M * CHUNKS] = w[m];
}

// In a sum, each column of the tile belongs to one row of b. Slice i has the rows of b for SLICE of the columns. Returns the
// column that belongs to row `at` of slice i. Rows 4k to 4k + 3 of a slice belong to the four columns of one lane. So the lane
// stores its 4 weights of a row of the tile as one vec4.
uint column_of(uint at, uint i)
{
    return at % 4 * LANES_N + i * CHUNKS + at / 4;
}

// Loads slice i of a sum: rows of b.
void fetch_sums(matrix b, uint column, uint i)
{
    [[unroll]] for (uint t = 0; t < FETCH_SUMS; t++) {
        const uint from = min(column + column_of(item(t) / ACROSS, i), b.rows - 1) * b.ld, x = item(t) % ACROSS;
        if (is_item(t, SUMS_B)) stage(t, b.of, b.at + from + (D4 == ACROSS ? x : min(x, D4 - 1)));
    }
}

// Stores the rows that fetch_sums has loaded. For a row beyond the matrix, fetch_sums has loaded the matrix's last row, which
// may be infinite. So 0 is stored instead.
void put_rows(uint column, uint i)
{
    if (column + COLUMNS > pc.others)
        [[unroll]] for (uint t = 0; t < FETCH_SUMS; t++)
            if (column + column_of(item(t) / ACROSS, i) >= pc.others) staged[t] = vec4(0.0);
    [[unroll]] for (uint t = 0; t < FETCH_SUMS; t++)
        if (is_item(t, SUMS_B)) tile[half_at + gl_LocalInvocationID.x + PART_A + t * LANES] = staged[t];
}

void clear_scores(out vec4 s[4])
{
    [[unroll]] for (uint m = 0; m < OWN; m++) s[m] = vec4(0.0);
}

void clear_sums()
{
    [[unroll]] for (uint i = 0; i < 4 * SUMS; i++) sum[i] = vec4(0.0);
}

vec4 numbers_of(vec4 v) { return v; }
void set_aside(vec4 s[4]) {}
void take_back(inout vec4 s[4]) {}
void begin_sums() {}
void finish_scores(inout vec4 s[4]) {}
void finish_sums(uint at) {}

void multiply_scores(inout vec4 s[4])
{
    const uint a_at = half_at + lane_m() * CHUNKS + swap(lane_m()), b_at = half_at + lane_n() * CHUNKS + swap(lane_n());
    [[dont_unroll]] for (uint c = 0; c < CHUNKS; c++) {
        vec4 a[4];
        [[unroll]] for (uint m = 0; m < OWN; m++) a[m] = tile[(a_at ^ c) + m * LANES_M * CHUNKS];
        [[unroll]] for (uint n = 0; n < 4; n++) {
            const vec4 b = tile[(b_at ^ c) + PART_A + n * LANES_N * CHUNKS];
            [[unroll]] for (uint j = 0; j < 4; j++)
                [[unroll]] for (uint m = 0; m < OWN; m++) s[m][n] += a[m][j] * b[j];
        }
    }
}

void multiply_sums(uint at)
{
    const uint share = SHARES > 1 ? lane_n() / ACROSS : 0, x = SHARES > 1 ? lane_n() % ACROSS : lane_n();
    const uint p_at = half_at + lane_m() * CHUNKS + swap(lane_m());
    uint b_at = half_at + share * 4 * ACROSS + x;
    [[dont_unroll]] for (uint c = 0; c < CHUNKS; c += SHARES) {
        vec4 p[4];
        [[unroll]] for (uint m = 0; m < OWN; m++) p[m] = tile[(p_at ^ (c + share)) + m * LANES_M * CHUNKS];
        [[unroll]] for (uint j = 0; j < 4; j++) {
            const vec4 b = tile[b_at + PART_A + j * ACROSS];
            [[unroll]] for (uint m = 0; m < OWN; m++) sum[at + m] += p[m][j] * b;
        }
        b_at += 4 * ACROSS * SHARES;
    }
}

// Returns the maximum of v, or with `is_sum` the sum of v, over the lanes that have the same rows.
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

// Adds up the partial sums sum[at ..] of the SHARES lanes that have the same vec4s. The first of these lanes gets the result.
void gather_sums(uint at)
{
    if (SHARES == 1) return;
    barrier();
    [[unroll]] for (uint m = 0; m < OWN; m++) tile[m * LANES + gl_LocalInvocationID.x] = sum[at + m];
    barrier();
    if (lane_n() < ACROSS)
        [[unroll]] for (uint m = 0; m < OWN; m++)
            [[unroll]] for (uint i = 1; i < SHARES; i++) sum[at + m] += tile[m * LANES + gl_LocalInvocationID.x + i * ACROSS];
}
