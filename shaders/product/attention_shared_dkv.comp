// attention_shared_dkv.comp - attention_dkv.comp for GPUs: dk and dv of a tile of keys, with tiles in shared memory
// grid: x over tiles of all heads of k and v with a stride.
// source: lib/attention_shared.glsl
// Deterministic: see lib/attention_shared.glsl.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define GRADIENT
#include "abi/abi.h"
#include "abi/attention.abi.h"
const uint SUMS = 2;
#include "lib/attention_shared.glsl"
layout(binding = ATTENTION_LSE, std430) readonly buffer Lse { float lse[]; };
layout(binding = ATTENTION_DELTA, std430) readonly buffer Delta { float delta[]; };
VKT_OUT4(ATTENTION_DK, dk);
VKT_OUT4(ATTENTION_DV, dv);
const uint SCORES = 0, GRADIENTS = 1, PRODUCTS = 2, QUERIES = 3; // values of `step`
const uint SUM_V = 0, SUM_K = 4;
const float UNSEEN = -1.0; // marks a key that a query does not use; weights are never negative
matrix q, k, v, dy;
uint row; // the first row of the tile

void aim(uint step, uint column)
{
    if (step != SCORES && step != PRODUCTS) return;
    if (step == SCORES) aim_a(k, row);
    else aim_a(v, row);
    if (step == SCORES) aim_b(q, column);
    else aim_b(dy, column);
}

void fetch(uint step, uint column, uint i)
{
    if (step == SCORES) fetch_scores(OF_K, OF_Q, i);
    else if (step == GRADIENTS) fetch_sums(dy, column, i);
    else if (step == PRODUCTS) fetch_scores(OF_V, OF_DY, i);
    else fetch_sums(q, column, i);
}

// Returns the indices of the lane's columns in a buffer with one number for each query. The head's numbers begin at `first`.
// A query past the last one gets the index of the last one. With this order of additions, the compiler does not keep `query` of
// weigh() in registers.
uvec4 of_queries(uint first, uint column)
{
    const uvec4 step = tile_columns() - tile_columns().x;
    return min(first + column + tile_columns().x + step, first + pc.others - 1);
}

// Converts scores s to weights. A key that a query does not use has the weight UNSEEN. w: the same weights in the type
// that add_sums() needs, with 0 instead of UNSEEN.
void weigh(uint head, uint column, inout vec4 s[4], out NUMBERS w[4])
{
    const uvec4 query = column + tile_columns(), at = of_queries(pc.lse0 + head * pc.others, column);
    vec4 lse_of;
    [[unroll]] for (uint i = 0; i < 4; i++) lse_of[i] = lse[at[i]];
    [[unroll]] for (uint m = 0; m < OWN; m++) {
        const uvec4 from = uvec4(pc.causal != 0 ? min(row + tile_row(m), pc.others) : 0u);
        const bvec4 seen = lessThan(query - from, pc.others - from); // query - from wraps around if query < from
        const vec4 weight = mix(vec4(0.0), exp_1ulp(pc.scale * s[m] - lse_of), seen);
        w[m] = numbers_of(weight);
        s[m] = mix(vec4(UNSEEN), weight, seen);
    }
}

// Computes ds = p * (t - delta) from the products t = v dy^T. p: the weights that weigh() returned in s. If p is
// UNSEEN, ds is 0.
void differentiate(uint head, uint column, vec4 p[4], vec4 t[4], out NUMBERS ds[4])
{
    const uvec4 at = of_queries(pc.delta0 + head * pc.others, column);
    vec4 delta_of;
    [[unroll]] for (uint i = 0; i < 4; i++) delta_of[i] = delta[at[i]];
    [[unroll]] for (uint m = 0; m < OWN; m++)
        ds[m] = numbers_of(mix(p[m] * (t[m] - delta_of), vec4(0.0), equal(p[m], vec4(UNSEEN))));
}

// Adds the terms of `head`, a head of q, to the sums: p^T dy to SUM_V, and ds^T q to SUM_K (see attention_dkv.comp).
void add_head(uint head)
{
    const uint first = pc.causal != 0 ? row / COLUMNS * COLUMNS : 0u;
    q = matrix_of(OF_Q, pc.q0, head, pc.others);
    dy = matrix_of(OF_DY, pc.dy0, head, pc.others);
    aim(SCORES, first);
    fetch(SCORES, first, 0);
    [[dont_unroll]] for (uint c = first; c < pc.others; c += COLUMNS) {
        vec4 s[4], t[4];
        NUMBERS w[4], ds[4];
        scores(SCORES, c, GRADIENTS, c, s);
        weigh(head, c, s, w);
        set_aside(s);
        add_sums(GRADIENTS, c, PRODUCTS, c, w, SUM_V);
        scores(PRODUCTS, c, QUERIES, c, t);
        take_back(s);
        differentiate(head, c, s, t, ds);
        add_sums(QUERIES, c, SCORES, c + COLUMNS, ds, SUM_K);
    }
}

// Computes a tile of `head`, a head of k and v. If several heads of q read this head, the kernel adds the
// products of all these heads, one head after the other.
void attend(uint head)
{
    k = matrix_of(OF_K, pc.k0, head, pc.rows);
    v = matrix_of(OF_V, pc.v0, head, pc.rows);
    clear_sums();
    [[dont_unroll]] for (uint i = 0; i < pc.group; i++) add_head(head * pc.group + i);
    gather_sums(SUM_V);
    gather_sums(SUM_K);
    [[unroll]] for (uint m = 0; m < OWN; m++) {
        const uint r = row + tile_row(m), to = r * pc.ld + lane_n();
        if (r >= pc.rows || !stores()) continue;
        STORE4(dk, k.at - pc.k0 + pc.dk0 + to, pc.scale * sum[SUM_K + m]);
        STORE4(dv, v.at - pc.v0 + pc.dv0 + to, sum[SUM_V + m]);
    }
}

void main()
{
    const uint tiles = (pc.rows + ROWS - 1) / ROWS;
    [[dont_unroll]] for (uint u = gl_WorkGroupID.x; u < pc.units; u += gl_NumWorkGroups.x) {
        row = u % tiles * ROWS; // with a causal mask, the first tile has the most work, so it comes first
        attend(u / tiles);
        barrier();
    }
}
