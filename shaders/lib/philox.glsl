// philox.glsl - Philox4x32-10, the same bits as engine/base/philox.c (Salmon, Moraes, Dror & Shaw, SC 2011).
uvec4 philox4x32(uvec4 c, uvec2 k)
{
    for (int round = 0; round < 10; round++) {
        uint ah, al, bh, bl;
        umulExtended(0xD2511F53u, c.x, ah, al);
        umulExtended(0xCD9E8D57u, c.z, bh, bl);
        c = uvec4(bh ^ c.y ^ k.x, bl, ah ^ c.w ^ k.y, al);
        k += uvec2(0x9E3779B9u, 0xBB67AE85u);
    }
    return c;
}
