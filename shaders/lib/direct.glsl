// direct.glsl - the products of conv/direct.comp and conv/fused_max_pool.comp, with weights in registers
// The subgroup's lanes hold the ROWS * K weights of a tile. subgroupShuffle passes weights between lanes.
// product() computes one vec4 of the output: bias plus a sum of K products.
// The including shader provides: strip.glsl; LANES, ROWS, BIAS; the bindings w_in and bias_in; a push block with the members
// rows, dst_group, w_base, w_group, w_row, w_depth, w_tap_h, w_tap_w, bias_base and zero.
const uint SHARES = (ROWS * K + LANES - 1) / LANES, BIASES = (ROWS + LANES - 1) / LANES;
float w[SHARES], bias[BIASES];

// Loads weights and biases of output channels row .. row + ROWS - 1 of the convolution group `group`. Channels past the
// last one get the values of the last one.
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

// Returns this lane's vec4 of output channel row + m, where `row` is the argument of load_weights. The function uses the inputs
// that load_taps (strip.glsl) has loaded. m must be a constant after unrolling. `zero`: see conv/tile.comp.
vec4 product(uint m, uint zero)
{
    vec4 sum = vec4(BIAS ? subgroupShuffle(bias[m / LANES], m % LANES + zero) : 0.0);
    [[unroll]] for (uint k = 0; k < K; k++)
        sum += subgroupShuffle(w[(m * K + k) / LANES], (m * K + k) % LANES + zero) * x[k];
    return sum;
}
