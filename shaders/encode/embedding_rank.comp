// embedding_rank.comp - rank[p] = number of positions before p with the same id as p, for each counted position p
//   start[v] = number of counted positions with an id below v
//   A position (abi/embedding_dw.abi.h) is counted if its id is a row of the table other than pc.padding.
//   A work group is one subgroup. For a range of ids it loops over all positions, one position per lane, and counts the
//   positions of each id: at first, start[v] is the count of id v. At its end, the last dispatch replaces the counts by
//   the numbers above. No other work group counts the ids of this range. Lanes with the same id find each other by
//   shuffles. So ranks follow the order of positions, without atomics, and sums in that order have the same bits in
//   every run. All work groups together need ranges * positions / lanes iterations. This is cheap, because there are
//   few ranges.
// grid: x over ranges with a stride. The positions may need several dispatches (begin, end). Each dispatch continues the counts
// of the previous dispatch.
// Deterministic: each count is changed by one work group only.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "abi/abi.h"
#include "abi/embedding_dw.abi.h"
#include "lib/load.glsl"
layout(local_size_x_id = 0) in;
VKT_WORDS(EMBEDDING_DW_IDS, ids);
layout(binding = EMBEDDING_DW_START, std430) coherent buffer Start { uint start[]; };
layout(binding = EMBEDDING_DW_START, std430) coherent buffer Start4 { uvec4 start4[]; };
layout(binding = EMBEDDING_DW_RANK, std430) writeonly buffer Rank { uint rank[]; };
const uint LANES = gl_WorkGroupSize.x, NONE = 0xffffffffu;

// For each counted position of this dispatch with an id of lo .. hi - 1: adds 1 to the count of the id in `start`, and
// writes the rank of the position. Returns how many counted positions of this dispatch have an id below lo.
uint count(uint lo, uint hi)
{
    const uint lane = gl_LocalInvocationID.x;
    uint below = 0;
    for (uint i = pc.begin; i < pc.end; i += LANES) {
        uint id = LOAD1(ids, min(i + lane, pc.end - 1));
        if (i + lane >= pc.end || id == pc.padding || id >= pc.rows) id = NONE;
        const bool mine = id >= lo && id < hi;
        uint before = 0, equal = 1; // equal: number of lanes with this id; before: number of those lanes before this lane
        [[unroll]] for (uint k = 1; k < LANES; k++) {
            const bool same = subgroupShuffleXor(id, k) == id;
            equal += same ? 1 : 0;
            before += same && (lane ^ k) < lane ? 1 : 0;
        }
        below += id < lo ? 1 : 0;
        const uint seen = start[mine ? id : lo]; // number of positions with this id before this iteration
        if (mine) rank[i + lane] = seen + before;
        subgroupBarrier();
        if (mine && before + 1 == equal) start[id] = seen + equal;
        subgroupBarrier();
    }
    for (uint k = 1; k < LANES; k *= 2) below += subgroupShuffleXor(below, k);
    return below;
}

// For lo <= v < hi, start[v] is the count of id v. Replaces it by the number of all counted positions with an id below
// v, which is `at` for v = lo.
void starts(uint lo, uint hi, uint at)
{
    const uint lane = gl_LocalInvocationID.x;
    for (uint v = lo / 4; v < hi / 4; v += LANES) {
        const uvec4 n = v + lane < hi / 4 ? start4[v + lane] : uvec4(0);
        const uint all = n.x + n.y + n.z + n.w;
        uint sum = all;
        [[unroll]] for (uint k = 1; k < LANES; k *= 2) {
            const uint left = subgroupShuffle(sum, max(lane, k) - k);
            sum += lane >= k ? left : 0;
        }
        const uint first = at + sum - all;
        if (v + lane < hi / 4) start4[v + lane] = first + uvec4(0, n.x, n.x + n.y, all - n.w);
        at += subgroupShuffle(sum, LANES - 1);
    }
}

void main()
{
    const uint lane = gl_LocalInvocationID.x;
    for (uint r = gl_WorkGroupID.x; r < pc.ranges; r += gl_NumWorkGroups.x) {
        const uint lo = r * pc.range, hi = lo + pc.range, so_far = pc.ranges * pc.range + r;
        if (pc.begin == 0)
            for (uint v = lo / 4 + lane; v < hi / 4; v += LANES) start4[v] = uvec4(0);
        subgroupBarrier();
        const uint below = count(lo, hi) + (pc.begin == 0 ? 0 : start[so_far]);
        subgroupBarrier();
        if (lane == 0) start[so_far] = below;
        if (pc.last != 0) starts(lo, hi, below);
    }
}
