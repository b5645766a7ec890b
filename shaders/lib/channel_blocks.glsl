// channel_blocks.glsl - combines the results of a channel's blocks, first to last: see abi/batch_norm.abi.h
//   Statistics: a vec4 is (n, mean, M2). n is the number of real elements, and M2 is the sum of (x - mean)^2. In the
//   next line, index a is for `all` (the blocks so far), and index b is for `next` (the next block).
//   n = n_a + n_b, delta = mean_b - mean_a, mean = mean_a + delta * n_b / n, M2 = M2_a + M2_b + delta^2 * n_a * n_b / n
//   SUMS or DX: the blocks' sums are added.
// source: Chan, Golub & LeVeque 1983
vec4 with_block(vec4 all, vec4 next)
{
#if defined(SUMS) || defined(DX)
    return all + next;
#else
    const float n = all.x + next.x, delta = next.y - all.y;
    if (next.x > 0.0)
        all = vec4(n, all.y + delta * (next.x / n), all.z + next.z + delta * delta * (all.x * next.x / n), 0.0);
    return all;
#endif
}

// Returns the biased variance of a channel, from its statistics. Returns 0 if the channel has no real samples.
float variance_of(vec4 all)
{
    return all.x > 0.0 ? all.z / all.x : 0.0;
}
