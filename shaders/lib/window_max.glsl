// window_max.glsl - the maximum of a pooling window and the index of this maximum, four samples at a time: for
// conv/pool2d.comp, conv/fused_max_pool.comp and conv/pool_shared.comp. Of equal maxima, the first one wins. NaN wins over any
// number. Of several NaNs, the last one wins. PyTorch does the same.
// The includer defines RELU. With RELU, relu is applied to the elements first, and NaN stays NaN. With RELU, a maximum
// of 0 is stored with index 0 (no winner), because the gradient of relu at 0 is 0.
#include "abi/pool_index.abi.h"
// -infinity, the first value of `best`. The first value of `winner` is the index of the window's first element. So this
// element wins if all elements are -infinity.
#define NO_MAXIMUM vec4(uintBitsToFloat(0xff800000u))

void challenge(inout vec4 best, inout uvec4 winner, vec4 e, uvec4 at)
{
    if (RELU) e = mix(e, vec4(0.0), lessThan(e, vec4(0.0))); // -0 stays -0, as in lib/unary.glsl
    const uvec4 magnitude = floatBitsToUint(e) & 0x7fffffffu; // a compiler may remove isnan()
    const bvec4 wins = bvec4(uvec4(greaterThan(e, best)) | uvec4(greaterThan(magnitude, uvec4(0x7f800000u))));
    best = mix(best, e, wins);
    winner = mix(winner, at, wins);
}

// Returns the winner's index as it is stored (abi/pool_index.abi.h).
vec4 index_of(uvec4 winner, vec4 best)
{
    return uintBitsToFloat(RELU ? mix(winner, uvec4(0u), lessThanEqual(best, vec4(0.0))) : winner);
}
