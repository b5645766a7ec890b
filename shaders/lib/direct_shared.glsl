// direct_shared.glsl - weights in shared memory, for conv/direct_shared.comp and conv/pool_shared.comp
// ACROSS lanes compute ROWS output channels of ACROSS neighbouring vec4s of a plane. A work group has BLOCKS blocks
// of ACROSS lanes. The blocks compute different channels of the same vec4s. All blocks read the same part of x, so most loads
// come from the cache. All lanes of a block read the same weight at the same time, and shared memory broadcasts it. Shared
// memory holds the weights of CHUNK taps at a time, and the offsets of these taps in x. There are K taps (c,r,s). Each
// output channel has one weight for each tap.
// A lane reads UNROLL vec4s of x per iteration. If K is no multiple of UNROLL, the taps past the last one count as outside of
// the image.
// Include lib/load.glsl before this file. The including shader provides: the bindings w_in, x_in and bias_in; a push
// block with the members rows, dst_group, K, taps, kernel_w, src_height, src_width, offset_h, offset_w, reach_h,
// reach_w, w_group, w_row, w_depth, w_tap_h, w_tap_w, w_base and bias_base.
layout(local_size_x_id = DIRECT_TILES_LANES) in;
layout(constant_id = DIRECT_TILES_LANES) const uint LANES = 128;
layout(constant_id = DIRECT_TILES_ACROSS) const uint ACROSS = 32;
layout(constant_id = DIRECT_TILES_ROWS) const uint ROWS = 4;
layout(constant_id = DIRECT_TILES_CHUNK) const uint CHUNK = 12;
layout(constant_id = DIRECT_TILES_UNROLL) const uint UNROLL = 4;
layout(constant_id = DIRECT_TILES_PAD) const bool PAD = true;
layout(constant_id = DIRECT_TILES_BIAS) const bool BIAS = true;
layout(constant_id = DIRECT_TILES_N4) const uint N4 = 1;
layout(constant_id = DIRECT_TILES_WIDTH) const uint WIDTH = 1;

const uint BLOCKS = LANES / ACROSS;
// STRIDE: floats in weights[] from block to block. With 3 or more rows, loads of 4 weights are aligned. PITCH: floats
// in weights[] from tap to tap. Neighbouring taps are in different banks.
const uint STRIDE = ROWS < 3 ? ROWS : (ROWS + 3) / 4 * 4;
const uint PITCH = BLOCKS * STRIDE + (STRIDE < 4 ? 1 : 4);
const int OUTSIDE = -0x7fffffff - 1;                       // a row that is outside the image for every pixel
// tap_at[i] describes tap i of the chunk. For pixel 0, the tap has index .x in the channels of x that belong to the
// convolution group (in vec4s). The tap is in row .y and in column .z. The weight of the tap has index .w in the
// weights of an output channel.
shared ivec4 tap_at[CHUNK];
shared float weights[CHUNK * PITCH], biases[BLOCKS * STRIDE];
vec4 sum[ROWS];

uint block_of_lane() { return gl_LocalInvocationID.x / ACROSS; }

// Returns the first of the ROWS output channels of a block.
uint first_channel(uint block) { return (gl_WorkGroupID.y * BLOCKS + block) * ROWS; }

// Loads the biases. The lanes must pass a barrier before start_sums(). Channels past the last one get the bias of the
// last one.
void load_biases()
{
    if (BIAS)
        for (uint i = gl_LocalInvocationID.x; i < BLOCKS * STRIDE; i += LANES)
            biases[i] = bias_in[pc.bias_base + gl_WorkGroupID.z * pc.dst_group +
                                min(first_channel(i / STRIDE) + i % STRIDE, pc.rows - 1)];
}

// Loads CHUNK taps, from tap number `first` on, and their weights. All lanes must call this function.
void load_chunk(uint first)
{
    barrier(); // all lanes have used the previous chunk
    for (uint i = gl_LocalInvocationID.x; i < CHUNK; i += LANES) {
        const uint k = min(first + i, pc.K - 1), c = k / pc.taps, tap = k - c * pc.taps;
        const uint r = tap / pc.kernel_w, s = tap - r * pc.kernel_w;
        const int h = pc.offset_h + int(r) * pc.reach_h, v = pc.offset_w + int(s) * pc.reach_w;
        tap_at[i] = ivec4(((int(c * pc.src_height) + h) * int(pc.src_width) + v) * int(N4),
                          first + i < pc.K ? h : OUTSIDE, v, c * pc.w_depth + r * pc.w_tap_h + s * pc.w_tap_w);
    }
    barrier();
    const uint base = pc.w_base + gl_WorkGroupID.z * pc.w_group;
    for (uint i = gl_LocalInvocationID.x; i < CHUNK * BLOCKS * STRIDE; i += LANES) {
        const uint m = i / CHUNK, k = i % CHUNK, channel = min(first_channel(m / STRIDE) + m % STRIDE, pc.rows - 1);
        weights[k * PITCH + m] = w_in[base + channel * pc.w_row + uint(tap_at[k].w)];
    }
    barrier();
}

void start_sums()
{
    [[unroll]] for (uint m = 0; m < ROWS; m++) sum[m] = vec4(BIAS ? biases[block_of_lane() * STRIDE + m] : 0.0);
}

// Returns the vec4 of x that tap i of the chunk reads. A tap with offset 0 would read row h and column v, at index `at` in x.
vec4 load_tap(uint i, int at, int h, int v)
{
    const ivec4 tap = tap_at[i];
    const bool inside = !PAD || uint(h + tap.y) < pc.src_height && uint(v + tap.z) < pc.src_width;
    const vec4 x = LOAD4(x_in, uint(inside ? at + tap.x : 0));
    return inside ? x : vec4(0.0);
}

// Adds the products of the chunk's first `n` taps to the sums.
void add_taps(uint n, int at, int h, int v)
{
    [[dont_unroll]] for (uint i = 0; i < n; i += UNROLL) {
        vec4 x[UNROLL];
        [[unroll]] for (uint u = 0; u < UNROLL; u++) x[u] = load_tap(i + u, at, h, v);
        [[unroll]] for (uint u = 0; u < UNROLL; u++)
            [[unroll]] for (uint m = 0; m < ROWS; m++)
                sum[m] += weights[(i + u) * PITCH + block_of_lane() * STRIDE + m] * x[u];
    }
}
