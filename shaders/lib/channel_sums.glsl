// channel_sums.glsl - sums of one block of a batch-last channel, by all lanes of a work group: see abi/batch_norm.abi.h
// The including file declares x4, and includes lanes.glsl, channels.glsl and, with SUMS or DX, channel_gradient.glsl.
//   block_statistics    returns (count, mean, sum of (x - mean)^2) of the real elements
//   block_sums          with SUMS or DX, returns (sum of dy, sum of dy * (x - mean) * scale) of the real elements
// source: Chan, Golub & LeVeque, Algorithms for Computing the Sample Variance, 1983, "corrected two-pass"
// Statistics: a first loop over the block computes the mean. A second loop adds up (x - mean)^2, so no large sums are
// subtracted from each other. The second loop reads the block from the cache. This loop also finds the rounding error
// of the mean, which is then removed from the mean and from the sum of squares.
// Deterministic: the order of additions depends only on the shape, the lanes and the subgroup size.
float sum4(vec4 v)
{
    return sum_of_lanes((v.x + v.y) + (v.z + v.w));
}

#if defined(SUMS) || defined(DX)
// Returns the sums over vec4s first .. end - 1 of channel pc.first + c.
vec4 block_sums(uint c, uint first, uint end, uint rows, float mean, float scale)
{
    const uint lane = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x;
    vec4 a = vec4(0.0), b = vec4(0.0);
    for (uint i = first + lane, k = column_of(first + lane); i < end; i += lanes, k = next_column(k)) {
        const vec4 dy = mix(vec4(0.0), gradient_at(c, i), is_real(k, rows));
        a += dy;
        b += dy * (LOAD4(x4, pc.x4 + c * pc.channel4 + i) - mean);
    }
    const float products = sum4(b);
    return vec4(sum4(a), rows == 0u ? 0.0 : products * scale, 0.0, 0.0); // without rows, scale may be infinite
}
#else
vec4 block_statistics(uint x_at, uint first, uint end, uint rows)
{
    const uint lane = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x, column = column_of(first + lane);
    const float n = float(real_before(end, rows) - real_before(first, rows));
    vec4 a = vec4(0.0), b = vec4(0.0);
    for (uint i = first + lane, k = column; i < end; i += lanes, k = next_column(k))
        a += mix(vec4(0.0), LOAD4(x4, x_at + i), is_real(k, rows));
    const float mean = n == 0.0 ? 0.0 : sum4(a) / n;
    a = vec4(0.0);
    for (uint i = first + lane, k = column; i < end; i += lanes, k = next_column(k)) {
        const vec4 d = mix(vec4(0.0), LOAD4(x4, x_at + i) - mean, is_real(k, rows));
        a += d;
        b += d * d;
    }
    const float left = n == 0.0 ? 0.0 : sum4(a) / n;
    return vec4(n, mean + left, sum4(b) - n * left * left, 0.0);
}
#endif
