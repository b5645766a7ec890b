// attention_shared_dq.comp - attention_dq.comp for GPUs: dq of a tile of queries, and delta, with tiles in shared memory
// grid: x over tiles of all heads with a stride.
// source: lib/attention_shared.glsl
// Deterministic: see lib/attention_shared.glsl.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define GRADIENT
#include "abi/abi.h"
#include "abi/attention.abi.h"
const uint SUMS = 1;
#include "lib/attention_shared.glsl"
VKT_IN4(ATTENTION_Y, y4);
layout(binding = ATTENTION_LSE, std430) readonly buffer Lse { float lse[]; };
layout(binding = ATTENTION_DELTA, std430) writeonly buffer Delta { float delta[]; };
VKT_OUT4(ATTENTION_DQ, dq);
const uint SCORES = 0, PRODUCTS = 1, KEYS = 2; // values of `step`
matrix q, k, v, dy;
uint row; // the first row of the tile
vec4 lse_of, delta_of; // for each row of the lane

void aim(uint step, uint column)
{
    if (step == KEYS) return;
    if (step == SCORES) aim_a(q, row);
    else aim_a(dy, row);
    if (step == SCORES) aim_b(k, column);
    else aim_b(v, column);
}

void fetch(uint step, uint column, uint i)
{
    if (step == SCORES) fetch_scores(OF_Q, OF_K, i);
    else if (step == PRODUCTS) fetch_scores(OF_DY, OF_V, i);
    else fetch_sums(k, column, i);
}

// Sets lse_of and delta_of for the lane's rows. delta is the sum of dy * y over a row, and is stored for
// attention_shared_dkv.comp.
void find_delta(uint head)
{
    vec4 d = vec4(0.0);
    [[unroll]] for (uint m = 0; m < OWN; m++) {
        const uint r = min(row + tile_row(m), pc.rows - 1), at = dy.at + r * dy.ld + lane_n();
        lse_of[m] = lse[pc.lse0 + head * pc.rows + r];
        if (lane_n() < D4) d[m] = dot(LOAD4(dy4, at), LOAD4(y4, at - pc.dy0 + pc.y0));
    }
    delta_of = over_row(d, true);
    [[unroll]] for (uint m = 0; m < OWN; m++) {
        const uint r = row + tile_row(m);
        if (r < pc.rows && lane_n() == 0) delta[pc.delta0 + head * pc.rows + r] = delta_of[m];
    }
}

void attend(uint head)
{
    const uint end = pc.causal != 0 ? min(pc.others, row + ROWS) : pc.others;
    q = matrix_of(OF_Q, pc.q0, head, pc.rows);
    dy = matrix_of(OF_DY, pc.dy0, head, pc.rows);
    k = matrix_of(OF_K, pc.k0, kv_head(head), pc.others);
    v = matrix_of(OF_V, pc.v0, kv_head(head), pc.others);
    clear_sums();
    find_delta(head);
    aim(SCORES, 0);
    fetch(SCORES, 0, 0);
    [[dont_unroll]] for (uint c = 0; c < end; c += COLUMNS) {
        vec4 s[4], t[4];
        NUMBERS ds[4];
        scores(SCORES, c, PRODUCTS, c, s);
        scores(PRODUCTS, c, KEYS, c, t);
        [[unroll]] for (uint m = 0; m < OWN; m++) {
            const uint seen = pc.causal != 0 ? min(row + tile_row(m) + 1, pc.others) : pc.others;
            const vec4 d = exp_1ulp(pc.scale * s[m] - lse_of[m]) * (t[m] - delta_of[m]);
            ds[m] = numbers_of(mix(vec4(0.0), d, lessThan(c + tile_columns(), uvec4(seen))));
        }
        add_sums(KEYS, c, SCORES, c + COLUMNS, ds, 0);
    }
    gather_sums(0);
    [[unroll]] for (uint m = 0; m < OWN; m++) {
        const uint r = row + tile_row(m), to = q.at - pc.q0 + pc.dq0 + r * pc.ld + lane_n();
        if (r < pc.rows && stores()) STORE4(dq, to, pc.scale * sum[m]);
    }
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
