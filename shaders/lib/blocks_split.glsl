// blocks_split.glsl - multiply() of blocks.glsl with COOP and SPLIT: one product of f32 becomes three products of cooperative
// matrices of f16. An operand x is split into two f16, whose sum has 22 bits of x:
//   high = f16(x), low = f16(x - high),   a b = high_a high_b + low_a high_b + high_a low_b     (low_a low_b is left out)
// The range of f16 is small. So both operands are scaled by powers of two, anew for every BLOCKS_SPLIT_K values of k. After
// scaling, the largest finite magnitude in the tile's rows of A is in [2^14, 2^15). The same holds for the tile's columns of B.
// (If all magnitudes of an operand are below 2^-112, its scale is 2^126, and the largest stays below 2^14.) The sums
// of the scaled products are scaled back before they are added to the f32 sums of the tile.
//
// Error of a product a b, apart from the rounding of the sums, which are f32. A, B: the largest finite magnitudes of the two
// operands in the tile, for the same BLOCKS_SPLIT_K values of k. If A and B are 2^-112 or more:
//   |error| <= 2^-21 |a b| + 2^-38 (A |b| + |a| B)
// The first term: for each operand, high + low differs from x by at most 2^-23 |x|, and |low_a low_b| <= 2^-22 |a b|. The
// second term: f16 below 2^-14 are 2^-24 apart, while the largest magnitude is 2^14 or more. (If a device flushes such f16 to
// zero, 2^-27 replaces 2^-38.) So an element may be lost if it is 2^39 times smaller than the largest element of the
// tile's operand, even if the largest element is in another row.
//
// A NaN or an infinity makes each result that depends on it a NaN or an infinity, as in f32. It does not change other results.
// A result that is an infinity in f32 may be a NaN here, because the low part of an infinity is a NaN.
//
// A row of the tile has BLOCKS_SPLIT_K high parts and then BLOCKS_SPLIT_K low parts. SPLIT does not change the size of
// a row, because BLOCKS_SPLIT_K is half of BLOCKS_COOP_K. A lane loads blocks of 4 x 4 elements of A or of B. While the
// subgroups multiply a tile, the lanes load the next tile and find the largest magnitudes of the next tile. So SPLIT
// adds no barrier per tile.
// Deterministic: a maximum does not depend on the order of its operands.
// source: Markidis et al., NVIDIA Tensor Core Programmability, Performance & Precision, IPDPSW 2018 (the split);
//         Ootomo & Yokota, Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak
//         performance, IJHPCA 36(4), 2022 (three products, sums outside of the matrix unit)
// SPLIT_K4: groups of four k in a tile. ALL_A: blocks of 4 x 4 elements of A.
const uint SPLIT_K4 = BLOCKS_SPLIT_K / 4, ALL_A = BM / 4 * SPLIT_K4;
const uint STAGED = (BM + BN) / 4 * SPLIT_K4 / LANES; // blocks that a lane loads for each tile
const uint TWICE_INFINITY = 0xff000000u;
uvec4 staged[4 * STAGED];
// The largest finite magnitudes of A and of B in a tile, in the format of largest_of. Tiles use the elements 0 and 1,
// or 2 and 3, alternately.
shared uint largest[4];

// Returns the position of the i-th block of 4 x 4 elements of an operand: (group of four rows of A or columns of B, k / 4).
// by_k is A_BY_K or B_BY_K. If by_k, the LINEs that four neighbouring lanes load are contiguous along k. Otherwise the
// LINEs that eight neighbouring lanes load are contiguous along the rows of A or the columns of B.
uvec2 block_of(uint i, bool by_k)
{
    return by_k ? uvec2(i / SPLIT_K4, i % SPLIT_K4) : uvec2(i % 8 + i / (8 * SPLIT_K4) * 8, i / 8 % SPLIT_K4);
}

void fetch(uint m, uint n, uint k)
{
    [[unroll]] for (uint t = 0; t < STAGED; t++) {
        const uint i = t * LANES + gl_LocalInvocationID.x;
        if (i < ALL_A) {
            const uvec2 b = block_of(i, A_BY_K);
            [[unroll]] for (uint j = 0; j < 4; j++) staged[4 * t + j] = line_a(m + 4 * b.x, k + 4 * b.y, j);
        } else {
            const uvec2 b = block_of(i - ALL_A, B_BY_K);
            [[unroll]] for (uint j = 0; j < 4; j++) staged[4 * t + j] = line_b(n + 4 * b.x, k + 4 * b.y, j);
        }
    }
}

// Returns the largest magnitude in staged[from .. from + 3], as its f32 bit pattern times 2. The factor removes the
// sign bit, and larger magnitudes still have larger patterns. `finite`: ignores infinities and NaN.
uint largest_of(uint from, bool finite)
{
    uvec4 most = uvec4(0);
    [[unroll]] for (uint j = 0; j < 4; j++) {
        const uvec4 twice = staged[from + j] << 1;
        most = max(most, finite ? mix(twice, uvec4(0), greaterThanEqual(twice, uvec4(TWICE_INFINITY))) : twice);
    }
    return max(max(most.x, most.y), max(most.z, most.w));
}

// Updates largest[at] (A) and largest[at + 1] (B) with the largest finite magnitudes of the staged blocks.
void find_largest(uint at)
{
    [[unroll]] for (uint t = 0; t < STAGED; t++) {
        uint twice = largest_of(4 * t, false);
        if (twice >= TWICE_INFINITY) twice = largest_of(4 * t, true); // this second search is rare
        atomicMax(largest[t * LANES + gl_LocalInvocationID.x < ALL_A ? at : at + 1], twice);
    }
}

// Returns 2^e. -126 <= e <= 127.
float power_of_two(int e) { return uintBitsToFloat(uint(e + 127) << 23); }

// Returns the exponent s of the scale 2^s of an operand. `twice` is the bit pattern of the operand's largest finite
// magnitude, times 2. -113 <= s <= 126, so that both 2^s and 2^-s are normal f32.
int scale_of(uint twice) { return min(14 + 127 - int(twice >> 24), 126); }

// Returns x rounded to the 11 bits of an f16, to nearest, ties to even, but with the range of f32. The function does
// not compute f32(f16(x)), because a compiler may replace that expression by x. A NaN may become any number.
vec4 rounded(vec4 x)
{
    const uvec4 u = floatBitsToUint(x);
    return uintBitsToFloat(u + 0xfffu + (u >> 13 & 1u) & 0xffffe000u);
}

// Stores the staged blocks, scaled by 2^scale.x (A) or 2^scale.y (B).
void put(ivec2 scale)
{
    [[unroll]] for (uint t = 0; t < STAGED; t++) {
        const uint all = t * LANES + gl_LocalInvocationID.x;
        const bool is_a = all < ALL_A, by_k = is_a ? A_BY_K : B_BY_K;
        const uvec2 b = is_a ? block_of(all, A_BY_K) : block_of(all - ALL_A, B_BY_K);
        const uint lanes = is_a ? LANES_M : LANES_N, from = 4 * t;
        const float factor = power_of_two(is_a ? scale.x : scale.y);
        [[unroll]] for (uint j = 0; j < 4; j++) {
            const uvec4 column = uvec4(staged[from][j], staged[from + 1][j], staged[from + 2][j], staged[from + 3][j]);
            precise const vec4 x = uintBitsToFloat(by_k ? staged[from + j] : column) * factor;
            const vec4 high = rounded(x);
            precise const vec4 low = x - high;
            const uint row = b.x / lanes * 4 * lanes + position(b.x % lanes, j, lanes);
            const uint at = (is_a ? 0 : BM * PITCH) + row * PITCH + b.y;
            tile[at] = narrow(high, STORAGE_F16);
            tile[at + SPLIT_K4] = narrow(low, STORAGE_F16);
        }
    }
}

// Multiplies the tile, and adds the products, times back.x * back.y, to the sums.
void multiply_tile(vec2 back)
{
    const uvec2 corner = own_corner();
    [[unroll]] for (uint k4 = 0; k4 < SPLIT_K4; k4 += COOP_K / 4) {
        coopmat<float16_t, gl_ScopeSubgroup, COOP_M, COOP_K, gl_MatrixUseA> high_a[OWN_M], low_a[OWN_M];
        [[unroll]] for (uint i = 0; i < OWN_M; i++) {
            const uint at = (corner.x + i / EACH_M * PART_M + i % EACH_M * COOP_M) * PITCH + k4;
            coopMatLoad(high_a[i], tile, at, PITCH, gl_CooperativeMatrixLayoutRowMajor);
            coopMatLoad(low_a[i], tile, at + SPLIT_K4, PITCH, gl_CooperativeMatrixLayoutRowMajor);
        }
        [[unroll]] for (uint j = 0; j < OWN_N; j++) {
            const uint at = (BM + corner.y + j / EACH_N * PART_N + j % EACH_N * COOP_N) * PITCH + k4;
            coopmat<float16_t, gl_ScopeSubgroup, COOP_K, COOP_N, gl_MatrixUseB> high_b, low_b;
            coopMatLoad(high_b, tile, at, PITCH, gl_CooperativeMatrixLayoutColumnMajor);
            coopMatLoad(low_b, tile, at + SPLIT_K4, PITCH, gl_CooperativeMatrixLayoutColumnMajor);
            [[unroll]] for (uint i = 0; i < OWN_M; i++) {
                coopmat<float, gl_ScopeSubgroup, COOP_M, COOP_N, gl_MatrixUseAccumulator> sum =
                    coopmat<float, gl_ScopeSubgroup, COOP_M, COOP_N, gl_MatrixUseAccumulator>(0.0);
                sum = coopMatMulAdd(low_a[i], high_b, sum); // the small products first
                sum = coopMatMulAdd(high_a[i], low_b, sum);
                sum = coopMatMulAdd(high_a[i], high_b, sum);
                sums[i * OWN_N + j] += sum * back.x * back.y;
            }
        }
    }
}

void multiply(uint m, uint n, uint k, uint end)
{
    uint at = 0;
    clear_sums();
    fetch(m, n, k < end ? k : 0); // k >= end: no products, but the loads must be inside the operands
    if (gl_LocalInvocationID.x < 4) largest[gl_LocalInvocationID.x] = 0;
    barrier();
    find_largest(at);
    barrier();
    [[dont_unroll]] for (; k < end; k += BLOCKS_SPLIT_K) {
        const ivec2 scale = ivec2(scale_of(largest[at]), scale_of(largest[at + 1]));
        // 2^-(scale.x + scale.y) may be outside the range of f32 although the result is inside. So the sums are
        // multiplied by two powers of 2, each with half of the exponent.
        const int half_back = -(scale.x + scale.y) >> 1;
        put(scale);
        barrier();
        if (gl_LocalInvocationID.x < 2) largest[at + gl_LocalInvocationID.x] = 0; // all lanes have read these two maxima
        at = 2 - at;
        if (k + BLOCKS_SPLIT_K < end) fetch(m, n, k + BLOCKS_SPLIT_K);
        multiply_tile(vec2(power_of_two(half_back), power_of_two(-(scale.x + scale.y) - half_back)));
        if (k + BLOCKS_SPLIT_K < end) find_largest(at);
        barrier();
    }
    finish_sums();
}
