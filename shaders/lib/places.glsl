// places.glsl - a lane's walk over the places of a box of up to six dimensions, c[0] the slowest coordinate, c[5] the fastest; those
// before FIRST do not exist. Places are taken apart by division once; from then on a lane adds s, the coordinates of place number
// gl_WorkGroupSize.x, with carries: a division by a runtime value is the dearest of all, on CPU drivers as on GPUs.
// Loops count up to a constant: Mesa 22.3 does not unroll one that counts down to FIRST, and keeps its arrays in memory.
//   uint c[6] = place_of(u, d);  ...  next_place(c, d, s);     d: sizes, of which d[FIRST] is not looked at
#include "abi/places.abi.h"
layout(constant_id = PLACES_SPEC_FIRST) const uint FIRST = 0;

uint[6] place_of(uint u, uint d[6])
{
    uint c[6] = uint[](0, 0, 0, 0, 0, 0);
    [[unroll]] for (uint i = 0; i < 5; i++) {
        const uint k = 5 - i;
        if (k <= FIRST) continue;
        c[k] = u % d[k];
        u /= d[k];
    }
    c[FIRST] = u;
    return c;
}

void next_place(inout uint c[6], uint d[6], uint s[6])
{
    uint carry = 0;
    [[unroll]] for (uint i = 0; i < 5; i++) {
        const uint k = 5 - i;
        if (k <= FIRST) continue;
        c[k] += s[k] + carry;
        carry = uint(c[k] >= d[k]);
        c[k] -= carry != 0 ? d[k] : 0;
    }
    c[FIRST] += s[FIRST] + carry;
}
