// embedding_rank.comp - rank[p] = how many positions before p have p's id;  start[v] = how many counted ids are below v
//   A work group, one subgroup, takes a range of ids and walks over all positions, a position a lane: nobody else touches its
//   counts, and lanes with one id find each other by shuffles. So ranks are in the order of positions, without atomics: what is
//   summed in that order has the same bits in every run. Work: ranges * positions / lanes, and the ranges are few.
// grid: x over ranges with a stride. Positions come in several dispatches (begin, end); counts go on from one to the next.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/embedding_dw.abi.h"
layout(local_size_x_id = 0) in;
layout(binding = EMBEDDING_DW_IDS, std430) readonly buffer Ids { uint ids[]; };
layout(binding = EMBEDDING_DW_START, std430) coherent buffer Start { uint start[]; };
layout(binding = EMBEDDING_DW_RANK, std430) writeonly buffer Rank { uint rank[]; };
const uint LANES = gl_WorkGroupSize.x, NONE = 0xffffffffu;

// Counts the ids of lo .. hi - 1; returns how many ids are below lo.
uint count(uint lo, uint hi)
{
    const uint lane = gl_LocalInvocationID.x;
    uint below = 0;
    for (uint i = pc.begin; i < pc.end; i += LANES) {
        uint id = i + lane < pc.end ? ids[i + lane] : NONE;
        if (id == pc.padding || id >= pc.rows) id = NONE;
        const bool mine = id >= lo && id < hi;
        uint before = 0, equal = 1, seen = 0; // in lower lanes, in all lanes, in the turns so far
        for (uint k = 1; k < LANES; k++) {
            const bool same = subgroupShuffleXor(id, k) == id;
            equal += same ? 1 : 0;
            before += same && (lane ^ k) < lane ? 1 : 0;
        }
        below += id < lo ? 1 : 0;
        if (mine) {
            seen = start[id];
            rank[i + lane] = seen + before;
        }
        subgroupBarrier();
        if (mine && before + 1 == equal) start[id] = seen + equal;
        subgroupBarrier();
    }
    for (uint k = 1; k < LANES; k *= 2) below += subgroupShuffleXor(below, k);
    return below;
}

// Makes counts of lo .. hi - 1 starts, the first of which is `at`; returns the next range's.
uint starts(uint lo, uint hi, uint at)
{
    const uint lane = gl_LocalInvocationID.x;
    for (uint v = lo; v < hi; v += LANES) {
        const uint n = v + lane < hi ? start[v + lane] : 0;
        uint sum = n;
        for (uint k = 1; k < LANES; k *= 2) {
            const uint left = subgroupShuffle(sum, max(lane, k) - k);
            sum += lane >= k ? left : 0;
        }
        if (v + lane < hi) start[v + lane] = at + sum - n;
        at += subgroupShuffle(sum, LANES - 1);
    }
    return at;
}

void main()
{
    const uint lane = gl_LocalInvocationID.x;
    for (uint r = gl_WorkGroupID.x; r < pc.ranges; r += gl_NumWorkGroups.x) {
        const uint lo = r * pc.range, hi = min(lo + pc.range, pc.rows), so_far = pc.rows + 1 + r;
        if (pc.begin == 0)
            for (uint v = lo + lane; v < hi; v += LANES) start[v] = 0;
        subgroupBarrier();
        const uint below = count(lo, hi) + (pc.begin == 0 ? 0 : start[so_far]);
        subgroupBarrier();
        if (lane == 0) start[so_far] = below;
        if (pc.last == 0) continue;
        const uint at = starts(lo, hi, below);
        if (hi == pc.rows && lane == 0) start[pc.rows] = at;
    }
}
