// share.glsl - this work group's share [x, y) of n units. A share is contiguous. Its length is a multiple of the
// group's number of lanes, except for the last share that is not empty.
// Neighbouring lanes process neighbouring units, and a group loops over its share without gaps. On a CPU, a stride over the
// whole grid could touch another memory page in every iteration.
//   const uvec2 share = share_of(n);
//   for (uint i = share.x + gl_LocalInvocationID.x; i < share.y; i += gl_WorkGroupSize.x) ...
uvec2 share_of(uint n)
{
    const uint lanes = gl_WorkGroupSize.x, iterations = (n - min(n, 1)) / (gl_NumWorkGroups.x * lanes) + 1;
    const uint first = min(gl_WorkGroupID.x * iterations * lanes, n);
    return uvec2(first, min(first + iterations * lanes, n));
}
