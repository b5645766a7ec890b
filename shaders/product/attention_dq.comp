// attention_dq.comp - dq of a tile of queries:  dq = scale * ds k,  ds = p * (dy v^T - delta),  p = exp(scale * q k^T - lse)
// The weights p are computed again, one tile of keys after the other. delta is the sum of dy * y over a row, and serves
// every ds of the row. The kernel stores delta for attention_dkv.comp.
// grid: x over tiles of all heads with a stride, one subgroup per tile.
// Deterministic: see attention.comp.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_shuffle : require
#define GRADIENT
#include "abi/abi.h"
#include "abi/attention.abi.h"
#include "lib/attention.glsl"
VKT_IN4(ATTENTION_Y, y4);
layout(binding = ATTENTION_LSE, std430) readonly buffer Lse { float lse[]; };
layout(binding = ATTENTION_DELTA, std430) writeonly buffer Delta { float delta[]; };
VKT_OUT4(ATTENTION_DQ, dq);

float along(uint dy_at, uint y_at)
{
    float sum = 0.0;
    [[dont_unroll]] for (uint k = 0; k < pc.d4; k++) sum += dot(LOAD4(dy4, dy_at + k), LOAD4(y4, y_at + k));
    return sum;
}

void attend(uint head, uint row)
{
    const matrix q = matrix_of(OF_Q, pc.q0, head, pc.rows), dy = matrix_of(OF_DY, pc.dy0, head, pc.rows);
    const matrix k = matrix_of(OF_K, pc.k0, kv_head(head), pc.others), v = matrix_of(OF_V, pc.v0, kv_head(head), pc.others);
    const uint lane = gl_SubgroupInvocationID, end = pc.causal != 0 ? min(pc.others, row + ROWS) : pc.others;
    float lse_of[MAX_LANE_ROWS], delta_of[MAX_LANE_ROWS];
    [[unroll]] for (uint j = 0; j < LANE_ROWS; j++) {
        const uint r = row + j * SG + lane, at = head * pc.rows + min(r, pc.rows - 1);
        lse_of[j] = lse[pc.lse0 + at];
        delta_of[j] = along(row_at(dy, r), row_at(dy, r) - pc.dy0 + pc.y0);
        if (r < pc.rows && j * SG + lane < ROWS) delta[pc.delta0 + at] = delta_of[j];
    }
    vec4 sum[MAX_SUMS];
    [[unroll]] for (uint i = 0; i < ROWS * PARTS; i++) sum[i] = vec4(0.0);
    [[dont_unroll]] for (uint c = 0; c < end; c += COLUMNS) {
        vec4 s[MAX_ROWS], t[MAX_ROWS];
        scores(q, row, k, c, s);
        scores(dy, row, v, c, t);
        [[unroll]] for (uint m = 0; m < ROWS; m++) {
            const uint seen = pc.causal != 0 ? min(row + m + 1, pc.others) : pc.others;
            const vec4 ds = exp_1ulp(pc.scale * s[m] - of_row(lse_of, m)) * (t[m] - of_row(delta_of, m));
            s[m] = mix(vec4(0.0), ds, lessThan(c + 4 * lane + uvec4(0, 1, 2, 3), uvec4(seen)));
        }
        add_product(sum, s, k, c);
    }
    [[unroll]] for (uint m = 0; m < ROWS; m++) {
        const uint to = q.at - pc.q0 + pc.dq0 + (row + m) * pc.ld + lane;
        [[unroll]] for (uint n = 0; n < PARTS; n++) {
            const vec4 all = pc.scale * whole(sum[m * PARTS + n]);
            if (row + m < pc.rows && writes(n)) STORE4(dq, to + n * pc.spread, all);
        }
    }
}

void main()
{
    const uint tiles = (pc.rows + ROWS - 1) / ROWS;
    for (uint u = gl_WorkGroupID.x; u < pc.units; u += gl_NumWorkGroups.x) attend(u / tiles, tile_of(u % tiles, tiles) * ROWS);
}
