"""Converts the text of a terminal on standard input to an SVG image on standard output. Draws Braille letters as dots,
because the width of these letters depends on the font."""
import sys
from html import escape

WIDTH, HEIGHT, SIZE, MARGIN = 8.0, 17, 13, 16
BITS = [(0, 0, 0x01), (0, 1, 0x02), (0, 2, 0x04), (1, 0, 0x08), (1, 1, 0x10), (1, 2, 0x20), (0, 3, 0x40), (1, 3, 0x80)]


def is_braille(c):
    return 0x2800 <= ord(c) <= 0x28FF


def dots(c, x, y):
    for column, row, bit in BITS:
        if (ord(c) - 0x2800) & bit:
            at = x + column * WIDTH / 2, y + row * HEIGHT / 4
            yield f'<rect x="{at[0]:.1f}" y="{at[1]:.2f}" width="{WIDTH / 2:.1f}" height="{HEIGHT / 4:.2f}"/>'


lines = [line.rstrip("\n") for line in sys.stdin]
high, wide = len(lines) * HEIGHT + 2 * MARGIN, int(max(map(len, lines)) * WIDTH) + 2 * MARGIN
print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}">')
print(f'<rect width="{wide}" height="{high}" rx="8" fill="#16181d"/>')
print(f'<g fill="#d6d9e0" font-family="ui-monospace,Menlo,Consolas,\'DejaVu Sans Mono\',monospace" font-size="{SIZE}">')
for i, line in enumerate(lines):
    top = MARGIN + i * HEIGHT
    words = "".join(" " if is_braille(c) else c for c in line).rstrip()
    if words:
        length = f' textLength="{len(words) * WIDTH:.0f}" lengthAdjust="spacing"'
        print(f'<text x="{MARGIN}" y="{top + 13}" xml:space="preserve"{length}>{escape(words)}</text>')
    for k, c in enumerate(line):
        if is_braille(c):
            print("".join(dots(c, MARGIN + k * WIDTH, top)), end="")
    print()
print("</g>\n</svg>")
