// attention.comp - y = softmax(scale * q k^T) v of a tile of queries. For the gradient, the kernel also writes log sum exp of
// each row of scores. The kernel processes one tile of keys after the other, so only one tile of scores exists at a time. If
// the running maximum of a row grows, the row's sums so far are scaled down to the new maximum.
// grid: x over tiles of all heads with a stride, one subgroup per tile.
// source: lib/attention.glsl
// Deterministic: the order in which columns are added does not depend on the grid.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/attention.abi.h"
#include "lib/attention.glsl"
VKT_OUT4(ATTENTION_Y, y);
layout(binding = ATTENTION_LSE, std430) writeonly buffer Lse { float lse[]; };

// Converts s, the products q k^T of one tile of keys, to weights exp(scale * s - top). Keys that a query does not use
// get weight 0. top: the largest scale * s of each row so far. shrink: the factor for the earlier sums of each row.
void weigh(uint row, uint column, inout vec4 s[MAX_ROWS], inout float top[MAX_LANE_ROWS], out float shrink[MAX_LANE_ROWS])
{
    const uint lane = gl_SubgroupInvocationID, key = column + 4 * lane;
    float high[MAX_LANE_ROWS];
    [[unroll]] for (uint j = 0; j < LANE_ROWS; j++) high[j] = top[j];
    [[unroll]] for (uint m = 0; m < ROWS; m++) {
        const uint seen = pc.causal != 0 ? min(row + m + 1, pc.others) : pc.others;
        s[m] = mix(vec4(LOWEST), pc.scale * s[m], lessThan(key + uvec4(0, 1, 2, 3), uvec4(seen)));
        float t = max(max(s[m].x, s[m].y), max(s[m].z, s[m].w));
        [[unroll]] for (uint i = 0; i < MAX_STEPS; i++)
            if (1u << i < SG) t = max(t, subgroupShuffleXor(t, 1u << i));
        high[m / SG] = lane == m % SG ? max(high[m / SG], t) : high[m / SG];
    }
    float zero_at[MAX_LANE_ROWS]; // high, or 0 if all scores are -infinity. In both cases, -infinity - zero_at is not NaN
    [[unroll]] for (uint j = 0; j < LANE_ROWS; j++) {
        zero_at[j] = high[j] == LOWEST ? 0.0 : high[j];
        shrink[j] = exp_1ulp(top[j] - zero_at[j]);
        top[j] = high[j];
    }
    [[unroll]] for (uint m = 0; m < ROWS; m++) s[m] = exp_1ulp(s[m] - of_row(zero_at, m));
}

void attend(uint head, uint row)
{
    const matrix q = matrix_of(OF_Q, pc.q0, head, pc.rows);
    const matrix k = matrix_of(OF_K, pc.k0, kv_head(head), pc.others), v = matrix_of(OF_V, pc.v0, kv_head(head), pc.others);
    const uint lane = gl_SubgroupInvocationID, end = pc.causal != 0 ? min(pc.others, row + ROWS) : pc.others;
    vec4 sum[MAX_SUMS];
    float total[MAX_ROWS], top[MAX_LANE_ROWS];
    [[unroll]] for (uint i = 0; i < ROWS * PARTS; i++) sum[i] = vec4(0.0);
    [[unroll]] for (uint m = 0; m < ROWS; m++) total[m] = 0.0;
    [[unroll]] for (uint j = 0; j < LANE_ROWS; j++) top[j] = LOWEST;
    [[dont_unroll]] for (uint c = 0; c < end; c += COLUMNS) {
        vec4 s[MAX_ROWS];
        float shrink[MAX_LANE_ROWS];
        scores(q, row, k, c, s);
        weigh(row, c, s, top, shrink);
        [[unroll]] for (uint m = 0; m < ROWS; m++) {
            const float down = of_row(shrink, m);
            total[m] = total[m] * down + ((s[m].x + s[m].y) + (s[m].z + s[m].w));
            [[unroll]] for (uint n = 0; n < PARTS; n++) sum[m * PARTS + n] *= down;
        }
        add_product(sum, s, v, c);
    }
    [[unroll]] for (uint m = 0; m < ROWS; m++) {
        [[unroll]] for (uint i = 0; i < MAX_STEPS; i++)
            if (1u << i < SG) total[m] += subgroupShuffleXor(total[m], 1u << i);
        const uint to = pc.y0 + (head / pc.heads * pc.rows + row + m) * pc.heads * pc.d4 + head % pc.heads * pc.d4 + lane;
        [[unroll]] for (uint n = 0; n < PARTS; n++) {
            const vec4 all = whole(sum[m * PARTS + n]) / total[m];
            if (row + m < pc.rows && writes(n)) STORE4(y, to + n * pc.spread, all);
        }
        if (row + m < pc.rows && lane == m % SG)
            lse[pc.lse0 + head * pc.rows + row + m] = top[m / SG] + log_1ulp(total[m]);
    }
}

void main()
{
    const uint tiles = (pc.rows + ROWS - 1) / ROWS;
    for (uint u = gl_WorkGroupID.x; u < pc.units; u += gl_NumWorkGroups.x) attend(u / tiles, tile_of(u % tiles, tiles) * ROWS);
}
