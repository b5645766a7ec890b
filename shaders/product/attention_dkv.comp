// attention_dkv.comp - dk and dv of a tile of keys:  dk = scale * ds^T q,  dv = p^T dy.  p, ds: see attention_dq.comp
// The rows of the scores are keys. So one tile loops over all queries that use its keys, and no other tile adds to its
// sums. If several heads of q read the same head of k and v, the tile adds the products of all these heads, one
// head after the other.
// grid: x over tiles of all heads of k and v with a stride, one subgroup per tile.
// Deterministic: see attention.comp.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_shuffle : require
#define GRADIENT
#include "abi/abi.h"
#include "abi/attention.abi.h"
#include "lib/attention.glsl"
layout(binding = ATTENTION_LSE, std430) readonly buffer Lse { float lse[]; };
layout(binding = ATTENTION_DELTA, std430) readonly buffer Delta { float delta[]; };
VKT_OUT4(ATTENTION_DK, dk);
VKT_OUT4(ATTENTION_DV, dv);

// Adds the terms of `head`, a head of q, to the sums: p^T dy to sum_v, and ds^T q to sum_k.
void add_head(uint head, matrix k, matrix v, uint row, inout vec4 sum_k[MAX_SUMS], inout vec4 sum_v[MAX_SUMS])
{
    const matrix q = matrix_of(OF_Q, pc.q0, head, pc.others), dy = matrix_of(OF_DY, pc.dy0, head, pc.others);
    const uint lane = gl_SubgroupInvocationID, first = pc.causal != 0 ? row / COLUMNS * COLUMNS : 0u;
    [[dont_unroll]] for (uint c = first; c < pc.others; c += COLUMNS) {
        const uvec4 query = c + 4 * lane + uvec4(0, 1, 2, 3);
        vec4 s[MAX_ROWS], t[MAX_ROWS], lse_of, delta_of;
        [[unroll]] for (uint i = 0; i < 4; i++) {
            const uint at = head * pc.others + min(query[i], pc.others - 1);
            lse_of[i] = lse[pc.lse0 + at];
            delta_of[i] = delta[pc.delta0 + at];
        }
        scores(k, row, q, c, s);
        scores(v, row, dy, c, t);
        [[unroll]] for (uint m = 0; m < ROWS; m++) {
            const vec4 p = exp_1ulp(pc.scale * s[m] - lse_of);
            const uvec4 from = uvec4(pc.causal != 0 ? min(row + m, pc.others) : 0u);
            const bvec4 seen = lessThan(query - from, pc.others - from); // query - from wraps around if query < from
            s[m] = mix(vec4(0.0), p, seen);
            t[m] = mix(vec4(0.0), p * (t[m] - delta_of), seen);
        }
        add_product(sum_v, s, dy, c);
        add_product(sum_k, t, q, c);
    }
}

// Computes a tile of `head`, a head of k and v.
void attend(uint head, uint row)
{
    const matrix k = matrix_of(OF_K, pc.k0, head, pc.rows), v = matrix_of(OF_V, pc.v0, head, pc.rows);
    const uint lane = gl_SubgroupInvocationID;
    vec4 sum_k[MAX_SUMS], sum_v[MAX_SUMS];
    [[unroll]] for (uint i = 0; i < ROWS * PARTS; i++) sum_k[i] = sum_v[i] = vec4(0.0);
    [[dont_unroll]] for (uint i = 0; i < pc.group; i++) add_head(head * pc.group + i, k, v, row, sum_k, sum_v);
    [[unroll]] for (uint m = 0; m < ROWS; m++) {
        const uint to = (row + m) * pc.ld + lane;
        [[unroll]] for (uint n = 0; n < PARTS; n++) {
            const vec4 all_k = pc.scale * whole(sum_k[m * PARTS + n]), all_v = whole(sum_v[m * PARTS + n]);
            if (row + m >= pc.rows || !writes(n)) continue;
            STORE4(dk, k.at - pc.k0 + pc.dk0 + to + n * pc.spread, all_k);
            STORE4(dv, v.at - pc.v0 + pc.dv0 + to + n * pc.spread, all_v);
        }
    }
}

void main()
{
    const uint tiles = (pc.rows + ROWS - 1) / ROWS;
    for (uint u = gl_WorkGroupID.x; u < pc.units; u += gl_NumWorkGroups.x) attend(u / tiles, tile_of(u % tiles, tiles) * ROWS);
}
