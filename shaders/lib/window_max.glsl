// window_max.glsl - the maximum of a window, four samples at a time, and which element it is: for pool2d.comp and
// conv/fused_max_pool.comp. The first maximum wins, a NaN wins over any number (the last one: PyTorch). Needs RELU: of max(e, 0), in
// which nobody wins where that is 0, as relu passes no gradient there; a NaN passes.
#include "abi/pool_index.abi.h"
#define NO_MAXIMUM vec4(uintBitsToFloat(0xff800000u)) // -inf: a window of nothing else names its first element

void challenge(inout vec4 best, inout uvec4 winner, vec4 e, uvec4 at)
{
    if (RELU) e = mix(e, vec4(0.0), lessThan(e, vec4(0.0))); // as lib/unary.glsl: -0 stays -0
    const uvec4 magnitude = floatBitsToUint(e) & 0x7fffffffu; // isnan() may be folded away
    const bvec4 wins = bvec4(uvec4(greaterThan(e, best)) | uvec4(greaterThan(magnitude, uvec4(0x7f800000u))));
    best = mix(best, e, wins);
    winner = mix(winner, at, wins);
}

// The winner's index as it is stored.
vec4 index_of(uvec4 winner, vec4 best)
{
    return uintBitsToFloat(RELU ? mix(winner, uvec4(0u), lessThanEqual(best, vec4(0.0))) : winner);
}
