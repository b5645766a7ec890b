// direct.glsl - for conv/direct.comp and conv/fused_max_pool.comp: the ROWS K weights of a tile, in the lanes' registers
// (subgroupShuffle hands them round), and an element's sum of K products.
// Needs: strip.glsl, LANES ROWS BIAS, bindings w_in and bias_in, and a push block with rows dst_group w_base w_group w_row w_depth
// w_tap_h w_tap_w bias_base zero.
const uint SHARES = (ROWS * K + LANES - 1) / LANES, BIASES = (ROWS + LANES - 1) / LANES;
float w[SHARES], bias[BIASES];

// Of channels row .. row + ROWS - 1 of the group; those past the last are as that one.
void load_weights(uint group, uint row)
{
    [[unroll]] for (uint i = 0; i < SHARES; i++) {
        const uint mk = i * LANES + gl_SubgroupInvocationID, m = mk / K, k = mk - m * K, tap = k % TAPS;
        w[i] = w_in[pc.w_base + group * pc.w_group + min(row + m, pc.rows - 1) * pc.w_row + k / TAPS * pc.w_depth +
                    tap / KERNEL_W * pc.w_tap_h + tap % KERNEL_W * pc.w_tap_w];
    }
    [[unroll]] for (uint i = 0; i < BIASES; i++)
        bias[i] = BIAS ? bias_in[pc.bias_base + group * pc.dst_group +
                                 min(row + i * LANES + gl_SubgroupInvocationID, pc.rows - 1)]
                       : 0.0;
}

// Of row m, a constant, with what load_taps has loaded. `zero`: see conv/tile.comp.
vec4 product(uint m, uint zero)
{
    vec4 sum = vec4(BIAS ? subgroupShuffle(bias[m / LANES], m % LANES + zero) : 0.0);
    [[unroll]] for (uint k = 0; k < K; k++)
        sum += subgroupShuffle(w[(m * K + k) / LANES], (m * K + k) % LANES + zero) * x[k];
    return sum;
}
