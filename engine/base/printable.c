/* base/printable.c - makes texts from any file safe to print on a terminal (vktrain/core.h). */
#include "base/base.h"

size_t vkt_utf8_decode(const char *text, size_t n, uint32_t *character)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *s = (const unsigned char *)text;
    const size_t bytes = *s < 0x80 ? 1 : *s >> 5 == 6 ? 2 : *s >> 4 == 14 ? 3 : *s >> 3 == 30 ? 4 : 0;
    if (bytes == 0 || bytes > n) return 0;
    uint32_t c = bytes == 1 ? *s : *s & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if (s[i] >> 6 != 2) return 0; /* this also refuses the NUL at the end of the text */
        c = c << 6 | (s[i] & 0x3f);
    }
    *character = c;
    return c >= least[bytes] && c < 0x110000 && c >> 11 != 0x1b ? bytes : 0; /* 0x1b: surrogates */
}

/* Returns the number of bytes of the character at `s`; 0: it is not UTF-8, or must not reach a terminal. Terminals must
 * not get control characters (C0, C1, DEL), line separators, or marks that change the direction of writing. */
static size_t plain_bytes(const char *s)
{
    uint32_t c = 0;
    const size_t n = vkt_utf8_decode(s, 4, &c);
    const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
    const bool turns =
        (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f || c == 0x61c;
    return control || turns ? 0 : n;
}

char *vkt_printable(const char *text, char *out, size_t room)
{
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;
    if (!out || room == 0) return out;
    for (const char *s = text ? text : ""; *s;) {
        const size_t plain = plain_bytes(s), put = plain ? plain : 4;
        if (put >= room - at) break;
        if (plain)
            memcpy(out + at, s, plain);
        else
            memcpy(out + at, (const char[4]){ '\\', 'x', digits[*s >> 4 & 15], digits[*s & 15] }, 4);
        at += put;
        s += plain ? plain : 1;
    }
    out[at] = 0;
    return out;
}
