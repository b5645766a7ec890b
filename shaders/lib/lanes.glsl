// lanes.glsl - sums, maxima and best pairs (better_of) over all lanes of a work group. Every lane gets the result.
// A work group is one full subgroup or several. On CPUs it is usually one subgroup, which is one vector of the CPU.
// Each subgroup reduces by shuffles. Then every lane combines the subgroups' results from shared memory, first to last.
// The number of subgroups is a constant of the pipeline. If it is 1, the driver removes the code for shared memory.
// Deterministic: the order of additions depends only on the number of lanes and on the subgroup size.
// All lanes of the work group must call these functions together.
// source: Harris, Optimizing Parallel Reduction in CUDA (2007), with shuffles instead of shared memory within a subgroup
#include "abi/lanes.abi.h"
layout(constant_id = SUBGROUPS_SPEC) const uint SUBGROUPS = 1;
const uint SUBGROUP_LANES = gl_WorkGroupSize.x / SUBGROUPS;
shared uvec2 subgroup_result[SUBGROUPS_MAX];

// Stores the value of each subgroup's first lane in shared memory. The caller must call barrier() after it has read the values.
void show_subgroups(uvec2 v)
{
    if (gl_SubgroupInvocationID == 0) subgroup_result[gl_SubgroupID] = v;
    barrier();
}

float sum_of_lanes(float v)
{
    for (uint k = SUBGROUP_LANES / 2; k > 0; k /= 2) v += subgroupShuffleXor(v, k);
    if (SUBGROUPS == 1) return v;
    show_subgroups(uvec2(floatBitsToUint(v), 0));
    v = 0.0;
    for (uint s = 0; s < SUBGROUPS; s++) v += uintBitsToFloat(subgroup_result[s].x);
    barrier();
    return v;
}

float max_of_lanes(float v)
{
    for (uint k = SUBGROUP_LANES / 2; k > 0; k /= 2) v = max(v, subgroupShuffleXor(v, k));
    if (SUBGROUPS == 1) return v;
    show_subgroups(uvec2(floatBitsToUint(v), 0));
    for (uint s = 0; s < SUBGROUPS; s++) v = max(v, uintBitsToFloat(subgroup_result[s].x));
    barrier();
    return v;
}

// Returns the pair with the larger x. For equal x, returns the pair with the smaller y.
uvec2 better_of(uvec2 a, uvec2 b)
{
    return b.x > a.x || (b.x == a.x && b.y < a.y) ? b : a;
}

uvec2 best_of_lanes(uvec2 v)
{
    for (uint k = SUBGROUP_LANES / 2; k > 0; k /= 2) v = better_of(v, subgroupShuffleXor(v, k));
    if (SUBGROUPS == 1) return v;
    show_subgroups(v);
    for (uint s = 0; s < SUBGROUPS; s++) v = better_of(v, subgroup_result[s]);
    barrier();
    return v;
}
