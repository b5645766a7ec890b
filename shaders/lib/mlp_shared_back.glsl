// mlp_shared_back.glsl - the backward pass of the network of mlp_shared.comp, without COOP. For PART see
// abi/mlp_layout.abi.h.

// Computes dy[l-1] from dy[l]. For l = 1, the result is dx and goes to MLP_OUT.
void back(const uint l)
{
    const uint M = width(l - 1), o = first_output(M), column = lane % COLUMNS;
    [[unroll]] for (uint i = 0; i < outputs(M); i++) sums[i] = vec4(0);
    product(width(l), M, rows_at(l), act_at(l));
    [[unroll]] for (uint i = 0; i < outputs(M); i++)
        if (o + i < M) {
            const uint at = act_at(l - 1) + (o + i) * ROW + column;
            if (l > 1) act[at] = mix(sums[i], vec4(0), lessThanEqual(act[at], vec4(0)));
            else if (first_column + column < pc.pitch) result_put((o + i) * pc.pitch + first_column + column, sums[i]);
        }
}

void add_to_part(uint at, float v, bool first)
{
    if (!first) v += part[at];
    part[at] = v;
}

// Adds to c[i][j] the dot product of the vec4s of act[] at indices d_at[i] and h_at[j]. A vec4 has four samples of one row.
void tile(inout vec4 c[4], uvec4 d_at, uvec4 h_at)
{
    const vec4 h0 = act[h_at[0]], h1 = act[h_at[1]], h2 = act[h_at[2]], h3 = act[h_at[3]];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        const vec4 d = act[d_at[i]];
        [[unroll]] for (uint e = 0; e < 4; e++) c[i] += d[e] * vec4(h0[e], h1[e], h2[e], h3[e]);
    }
}

// Adds the gradients of layer l to PART. The gradient of the weights is dy[l] h[l-1]^T, and the gradient of the bias is dy[l],
// both summed over the block's samples. If `first` is true, PART has no values yet, and the sums are only stored. The columns
// of a lane's tile are KT apart, so neighbouring lanes read neighbouring rows of h[l-1]. Begins with a barrier.
void weights(const uint l, bool first)
{
    const uint K = width(l - 1), M = width(l), KT = (K + 3) / 4, to = gl_WorkGroupID.x * pc.part + part_at(l);
    barrier();
    for (uint t = lane; t < (M + 3) / 4 * KT; t += MLP_SHARED_LANES) {
        const uint o = t / KT * 4, k = t % KT;
        vec4 c[4];
        [[unroll]] for (uint i = 0; i < 4; i++) c[i] = vec4(0);
        uvec4 d_at, h_at;
        [[unroll]] for (uint i = 0; i < 4; i++) {
            d_at[i] = act_at(l) + min(o + i, M - 1) * ROW;
            h_at[i] = act_at(l - 1) + min(k + KT * i, K - 1) * ROW;
        }
        [[dont_unroll]] for (uint n = 0; n < COLUMNS / UNROLL; n++) {
            [[unroll]] for (uint u = 0; u < UNROLL; u++) tile(c, d_at + u, h_at + u);
            d_at += UNROLL;
            h_at += UNROLL;
        }
        [[unroll]] for (uint i = 0; i < 4; i++)
            [[unroll]] for (uint j = 0; j < 4; j++)
                if (o + i < M && k + KT * j < K) add_to_part(to + (o + i) * (K + 1) + k + KT * j, c[i][j], first);
    }
    for (uint o = lane; o < M; o += MLP_SHARED_LANES) {
        vec4 sum = vec4(0);
        for (uint n = 0; n < COLUMNS; n++) sum += act[act_at(l) + o * ROW + n];
        add_to_part(to + o * (K + 1) + K, (sum.x + sum.y) + (sum.z + sum.w), first);
    }
}

#ifdef MSE
// Adds the losses of all lanes of the work group, and divides the sum by n. Writes the result to PART, behind the layers.
void put_loss(float n)
{
    const vec2 sum = loss.xy + loss.zw;
    barrier();
    stage[lane] = vec2(sum.x + sum.y, 0);
    for (uint k = MLP_SHARED_LANES / 2; k > 0; k /= 2) {
        barrier();
        if (lane < k) stage[lane].x += stage[lane + k].x;
    }
    if (lane == 0) part[gl_WorkGroupID.x * pc.part + pc.part - 1] = stage[0].x / n;
}
#endif
