// attention_cached.comp - attention of a few queries over a cache of keys and values: y = softmax(scale q k^T) v. Query
// t uses the keys 0 .. past + t, or all keys if the cache has fewer. `past` is a number in device memory. The kernel reads
// only the keys that a query uses, so its time does not depend on the size of the cache. Rows behind these keys never
// enter a sum.
// A work group computes one query of one head. A tile has as many keys as the work group has lanes. Each lane computes the
// score of one key. After that, each group of SPREAD neighbouring lanes adds up the rows of v of its own SPREAD keys,
// times the weights of these keys. A lane of the group computes PARTS vec4s of this sum.
// grid: x over heads and queries with a stride; any number of work groups is right.
// source: Milakov & Gimelshein, Online normalizer calculation for softmax, 2018 (the running maximum)
// Deterministic: the order of additions depends only on the shape, the lanes and the subgroup size.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/attention_cached.abi.h"
#include "lib/explog.glsl"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = ATTENTION_CACHED_SPEC_D4) const uint D4 = 16;
layout(constant_id = ATTENTION_CACHED_SPEC_SPREAD) const uint SPREAD = 8;
#include "lib/lanes.glsl"
VKT_IN4(ATTENTION_CACHED_Q, q4);
VKT_IN4(ATTENTION_CACHED_K, k4);
VKT_IN4(ATTENTION_CACHED_V, v4);
layout(binding = ATTENTION_CACHED_PAST, std430) readonly buffer Past { uint past[]; };
VKT_OUT4(ATTENTION_CACHED_Y, y4)
#define LOWEST uintBitsToFloat(0xff800000u) // -infinity
const uint LANES = gl_WorkGroupSize.x;
const bool ONE = SUBGROUPS == 1;
const uint PARTS = (D4 + SPREAD - 1) / SPREAD, HELD = ONE ? (D4 + LANES - 1) / LANES : 1;
// MAX_PARTS, MAX_HELD: sizes of arrays. Elements that are not used need no registers. MAX_STEPS: a sum over 128 lanes
// by shuffles has 7 iterations.
const uint MAX_PARTS = 8, MAX_HELD = 8, MAX_STEPS = 7;
shared float weight[ATTENTION_CACHED_LANES];
shared vec4 partial[ATTENTION_CACHED_LANES];

// Returns the dot product of q and a row of k. With ONE, lane i holds the vec4s i, i + LANES, .. of q.
float score_of(uint q_at, vec4 q[MAX_HELD], uint k_at)
{
    vec4 s = vec4(0.0);
    [[unroll]] for (uint d = 0; d < D4; d++)
        s += (ONE ? subgroupShuffle(q[d / LANES], d % LANES) : LOAD4(q4, q_at + d)) * LOAD4(k4, k_at + d);
    return (s.x + s.y) + (s.z + s.w);
}

// Adds this lane's part of a tile to its sums. For each of the SPREAD keys of the lane's group, the lane adds its own
// vec4s of the key's row of v, times the weight of the key. w: in lane j, the weight of key j of the tile. n: the
// query uses only the keys 0 .. n - 1, counted from the tile's first key.
void add_rows(float w, uint v_at, uint n, inout vec4 sum[MAX_PARTS])
{
    const uint lane = gl_LocalInvocationID.x, column = lane % SPREAD, first = lane / SPREAD * SPREAD;
    if (!ONE) {
        weight[lane] = w;
        barrier();
    }
    [[unroll]] for (uint i = 0; i < SPREAD; i++) {
        const uint j = first + i, at = v_at + min(j, n - 1) * D4;
        const float of_key = ONE ? subgroupShuffle(w, SPREAD == LANES ? i : j) : weight[j];
        [[unroll]] for (uint p = 0; p < PARTS; p++) {
            const vec4 row = LOAD4(v4, at + min(p * SPREAD + column, D4 - 1));
            sum[p] += of_key * (j < n ? row : vec4(0.0)); // if j >= n, `row` belongs to key n - 1 and may be infinite
        }
    }
    if (!ONE) barrier();
}

// Returns the sum over the lanes that have the same vec4 of a row.
vec4 whole(vec4 v)
{
    if (ONE) {
        [[unroll]] for (uint i = 0; i < MAX_STEPS; i++)
            if (1u << i >= SPREAD && 1u << i < LANES) v += subgroupShuffleXor(v, 1u << i);
        return v;
    }
    const uint lane = gl_LocalInvocationID.x;
    partial[lane] = v;
    barrier();
    v = vec4(0.0);
    for (uint i = lane % SPREAD; i < LANES; i += SPREAD) v += partial[i];
    barrier();
    return v;
}

void attend(uint unit)
{
    const uint lane = gl_LocalInvocationID.x, keys = pc.keys, head = unit / pc.queries, t = unit - head * pc.queries;
    const uint q_at = pc.q0 + unit * D4, plane = head / pc.group * keys * D4, n = min(min(past[0], keys) + t + 1, keys);
    const uint k_at = pc.k0 + plane, v_at = pc.v0 + plane;
    const float scale = pc.scale;
    vec4 q[MAX_HELD], sum[MAX_PARTS];
    [[unroll]] for (uint i = 0; i < HELD && ONE; i++) q[i] = LOAD4(q4, q_at + min(i * LANES + lane, D4 - 1));
    [[unroll]] for (uint p = 0; p < PARTS; p++) sum[p] = vec4(0.0);
    float top = LOWEST, total = 0.0;
    [[dont_unroll]] for (uint tile = 0; tile < n; tile += LANES) {
        const uint s = tile + lane;
        const float product = score_of(q_at, q, k_at + min(s, n - 1) * D4);
        const float score = s < n ? scale * product : LOWEST, most = max(top, max_of_lanes(score));
        const float shift = most == LOWEST ? 0.0 : most; // if all scores so far are -infinity, all weights are 0
        const float w = exp_1ulp(score - shift), down = exp_1ulp(top - shift);
        top = most;
        total = total * down + w;
        [[unroll]] for (uint p = 0; p < PARTS; p++) sum[p] *= down;
        add_rows(w, v_at + tile * D4, n - tile, sum);
    }
    total = sum_of_lanes(total);
    [[unroll]] for (uint p = 0; p < PARTS; p++) {
        const vec4 all = whole(sum[p]) / total;
        const uint column = p * SPREAD + lane;
        if (lane < SPREAD && column < D4) STORE4(y4, pc.y0 + unit * D4 + column, all);
    }
}

void main()
{
    for (uint u = gl_WorkGroupID.x; u < pc.units; u += gl_NumWorkGroups.x) attend(u);
}
