// attention_shared.comp - attention.comp for GPUs: y = softmax(scale * q k^T) v of a tile of queries, by tiles in shared memory
// grid: x over tiles of all heads with a stride.
// source: lib/attention_shared.glsl; Milakov & Gimelshein, Online normalizer calculation for softmax, 2018 (running maximum)
// Deterministic: see lib/attention_shared.glsl.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "abi/abi.h"
#include "abi/attention.abi.h"
const uint SUMS = 1;
#include "lib/attention_shared.glsl"
VKT_OUT4(ATTENTION_Y, y);
layout(binding = ATTENTION_LSE, std430) writeonly buffer Lse { float lse[]; };
const uint SCORES = 0, VALUES = 1; // values of `step`
matrix q, k, v;
uint row; // the first row of the tile
vec4 top, total; // for each row of the lane. top: largest scale * s so far; total: sum of weights in the lane's columns

void aim(uint step, uint column)
{
    if (step == SCORES) aim_b(k, column);
}

void fetch(uint step, uint column, uint i)
{
    if (step == SCORES) fetch_scores(OF_Q, OF_K, i);
    else fetch_sums(v, column, i);
}

// Converts the products s = q k^T to weights w = exp(scale * s - top). Keys that a query does not use get weight 0. If
// the maximum of a row grows, the row's earlier sums are scaled down to the new maximum.
void weigh(uint column, vec4 s[4], out NUMBERS w[4])
{
    const uvec4 key = column + tile_columns();
    vec4 high = vec4(LOWEST);
    [[unroll]] for (uint m = 0; m < OWN; m++) {
        const uint seen = pc.causal != 0 ? min(row + tile_row(m) + 1, pc.others) : pc.others;
        s[m] = mix(vec4(LOWEST), pc.scale * s[m], lessThan(key, uvec4(seen)));
        high[m] = max(max(s[m].x, s[m].y), max(s[m].z, s[m].w));
    }
    high = max(top, over_row(high, false));
    const vec4 zero_at = mix(high, vec4(0.0), equal(high, vec4(LOWEST))); // if all scores are -infinity, weights are 0, not NaN
    const vec4 shrink = exp_1ulp(top - zero_at);
    top = high;
    [[unroll]] for (uint m = 0; m < OWN; m++) {
        s[m] = exp_1ulp(s[m] - zero_at[m]);
        total[m] = total[m] * shrink[m] + ((s[m].x + s[m].y) + (s[m].z + s[m].w));
        sum[m] *= shrink[m];
        w[m] = numbers_of(s[m]);
    }
}

void store(uint head)
{
    const vec4 all = over_row(total, true);
    gather_sums(0);
    [[unroll]] for (uint m = 0; m < OWN; m++) {
        const uint r = row + tile_row(m);
        if (r >= pc.rows) continue;
        const uint to = pc.y0 + (head / pc.heads * pc.rows + r) * pc.heads * D4 + head % pc.heads * D4 + lane_n();
        if (stores()) STORE4(y, to, sum[m] / all[m]);
        if (lane_n() == 0) lse[pc.lse0 + head * pc.rows + r] = top[m] + log_1ulp(all[m]);
    }
}

void attend(uint head)
{
    const uint end = pc.causal != 0 ? min(pc.others, row + ROWS) : pc.others;
    q = matrix_of(OF_Q, pc.q0, head, pc.rows);
    k = matrix_of(OF_K, pc.k0, kv_head(head), pc.others);
    v = matrix_of(OF_V, pc.v0, kv_head(head), pc.others);
    clear_sums();
    top = vec4(LOWEST);
    total = vec4(0.0);
    aim_a(q, row);
    aim(SCORES, 0);
    fetch(SCORES, 0, 0);
    [[dont_unroll]] for (uint c = 0; c < end; c += COLUMNS) {
        vec4 s[4];
        NUMBERS w[4];
        scores(SCORES, c, VALUES, c, s);
        weigh(c, s, w);
        add_sums(VALUES, c, SCORES, c + COLUMNS, w, 0);
    }
    store(head);
}

void main()
{
    const uint tiles = (pc.rows + ROWS - 1) / ROWS;
    [[dont_unroll]] for (uint u = gl_WorkGroupID.x; u < pc.units; u += gl_NumWorkGroups.x) {
        row = (tiles - 1 - u % tiles) * ROWS; // with a causal mask, the last tile has the most work, so it comes first
        attend(u / tiles);
        barrier();
    }
}
