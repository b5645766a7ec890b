// positions.glsl - a lane's loop over the positions of a box with up to six dimensions. c[0] is the slowest coordinate, c[5]
// is the fastest. Coordinates before FIRST do not exist.
// position_of converts the index of a position to coordinates by divisions. Divisions are slow, on CPU drivers and on
// GPUs, so a lane calls position_of once. After that, each iteration adds s with carries, where s has the coordinates
// of position gl_WorkGroupSize.x.
// The loops below count up to a constant. Mesa 22.3 does not unroll a loop that counts down to FIRST, and keeps the arrays of
// such a loop in memory.
//   uint c[6] = position_of(u, d);  ...  next_position(c, d, s);     d: sizes of the box; d[FIRST] is not used
#include "abi/positions.abi.h"
layout(constant_id = POSITIONS_SPEC_FIRST) const uint FIRST = 0;

uint[6] position_of(uint u, uint d[6])
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

void next_position(inout uint c[6], uint d[6], uint s[6])
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
