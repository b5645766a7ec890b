// fixed.glsl - numbers from 0 to 1 as 64-bit binary fractions (low word, high word). The results have the same bits as
// those of engine/base/fixed.c. If all bits are ones, the number is 1.

// Returns the product, truncated to 64 bits. `a` may be 1, but `b` must be below 1.
uvec2 fixed_mul(uvec2 a, uvec2 b)
{
    if (a == uvec2(0xffffffffu)) return b;
    uint h00, l00, h01, l01, h10, l10, h11, l11, c0, c1, c2, c3;
    umulExtended(a.x, b.x, h00, l00);
    umulExtended(a.x, b.y, h01, l01);
    umulExtended(a.y, b.x, h10, l10);
    umulExtended(a.y, b.y, h11, l11);
    uaddCarry(uaddCarry(l01, l10, c0), h00, c1); // the result needs the carries from the truncated word
    const uint low = uaddCarry(uaddCarry(h01, h10, c2), l11, c3);
    uint c4;
    const uint sum = uaddCarry(low, c0 + c1, c4);
    return uvec2(sum, h11 + c2 + c3 + c4);
}

// Returns 1 - q, exactly, for q in [0,1).
uvec2 fixed_negate(uvec2 q)
{
    if (q == uvec2(0u)) return uvec2(0xffffffffu);
    const uint low = ~q.x + 1u;
    return uvec2(low, ~q.y + (low == 0u ? 1u : 0u));
}

// Returns 1 - q, rounded to the nearest float, ties to even. It uses integers only, so the device's rounding mode has no
// effect.
float fixed_complement(uvec2 q)
{
    if (q == uvec2(0xffffffffu)) return 0.0;
    if (q == uvec2(0u)) return 1.0;
    uvec2 m = fixed_negate(q);
    const int top = m.y != 0u ? 32 + findMSB(m.y) : findMSB(m.x); // 1 - q = 2^(top - 64) * 1.xxx
    const int left = 63 - top;                                    // shift that brings the leading 1 to bit 63
    if (left >= 32) m = uvec2(0u, m.x << (left - 32));
    else if (left > 0) m = uvec2(m.x << left, (m.y << left) | (m.x >> (32 - left)));
    const uint keep = m.y >> 8, rest = m.y & 0xffu;                 // keep 24 bits; the other 8 + 32 bits decide the rounding
    const bool up = rest > 0x80u || (rest == 0x80u && (m.x != 0u || (keep & 1u) != 0u));
    return uintBitsToFloat((uint(top + 63 - 1) << 23) + keep + (up ? 1u : 0u)); // keep's leading 1 adds 1 to the exponent
}

// Returns NAdam's momentum b * (1 - p / 2), with b = beta1 and p = 0.96^(momentum_decay * t).
uvec2 fixed_momentum(uvec2 b, uvec2 p)
{
    const uvec2 half_p = uvec2(p.x >> 1 | p.y << 31, p.y >> 1);
    return fixed_mul(fixed_negate(half_p), b);
}
