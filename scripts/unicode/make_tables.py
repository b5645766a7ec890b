#!/usr/bin/env python3
"""Writes engine/data/unicode_tables.h:  pip install tokenizers==0.23.3; python3 scripts/unicode/make_tables.py

The tables have the Unicode data of Hugging Face's `tokenizers`, so that our token ids equal the ids of that library.
Parts of the library have different versions of Unicode: its regular expressions have version 16, its pre-tokenizer Digits has
version 17, its normalizer NFC has version 9. The script tests each character with the library. The values of decompositions
and combining classes are from Python's unicodedata. Decompositions and combining classes that the library does not use are left
out."""
import os
import unicodedata
from tokenizers import Regex, normalizers, pre_tokenizers, __version__

CHARACTERS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
OLDEST = "14.0.0"  # the version of Unicode in Debian 12's PCRE2 and in Python 3.11
nfc = normalizers.NFC().normalize_str


def members(pattern):
    """Returns the characters that match `pattern`, a regular expression for one character."""
    split = pre_tokenizers.Split(Regex(pattern), "removed")
    others = set()
    for i in range(0, len(CHARACTERS), 4096):
        for piece, _ in split.pre_tokenize_str("".join(map(chr, CHARACTERS[i : i + 4096]))):
            others.update(map(ord, piece))
    return set(CHARACTERS) - others


def digits():
    split = pre_tokenizers.Digits(individual_digits=True)
    return {c for c in CHARACTERS if len(split.pre_tokenize_str("a" + chr(c))) == 2}


def category(letter):
    return {c for c in CHARACTERS if unicodedata.category(chr(c))[0] == letter}


def ranges(characters):
    out = []
    for c in sorted(characters):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def define(name, characters):
    """Returns the definition of a macro with the ranges of `characters`, for a character class of PCRE2."""
    parts = ["\\\\x{%x}" % a + ("-\\\\x{%x}" % b if b > a else "") for a, b in ranges(characters)]
    lines, line = [], ""
    for part in parts:
        if len(line) + len(part) > 108:
            lines.append(line)
            line = ""
        line += part
    lines.append(line)
    return "#define %s \\\n" % name + " \\\n".join('    "%s"' % line for line in lines) + "\n"


def table(name, values, per_line):
    text = ["0x%xull," % v for v in values]
    lines = [" ".join(text[i : i + per_line]) for i in range(0, len(text), per_line)]
    return "static const uint64_t %s[] = {\n" % name + "\n".join("    " + line for line in lines) + "\n};\n"


def main():
    assert unicodedata.unidata_version == OLDEST, "want Python 3.11: the tables add to Unicode " + OLDEST
    letters, numbers, single = members(r"\p{L}"), members(r"\p{N}"), digits()
    assert not category("L") - letters and not category("N") - numbers and not numbers - single
    decompositions, compositions = [], []
    for c in CHARACTERS:
        parts = unicodedata.decomposition(chr(c))
        if not parts or "<" in parts:
            continue
        codes = [int(p, 16) for p in parts.split()]
        first, second = codes if len(codes) == 2 else (codes[0], 0)
        decomposed = unicodedata.normalize("NFD", chr(c))
        composes = nfc(decomposed) == chr(c)
        if not composes and nfc(chr(c)) == chr(c):
            continue  # the library does not use this decomposition
        assert nfc(chr(c)) == unicodedata.normalize("NFC", chr(c))
        decompositions.append(c << 42 | first << 21 | second)
        if composes:
            compositions.append(first << 42 | second << 21 | c)
    classes = {}
    for c in CHARACTERS:
        k = unicodedata.combining(chr(c))
        if k and (c == 0x345 or nfc("a\u0345" + chr(c)) != "a\u0345" + chr(c) or k > 240):
            classes[c] = k
    rows = []
    for c, k in sorted(classes.items()):
        if rows and rows[-1][1] == c - 1 and rows[-1][2] == k:
            rows[-1][1] = c
        else:
            rows.append([c, c, k])
    path = os.path.join(os.path.dirname(__file__), "../../engine/data/unicode_tables.h")
    with open(path, "w") as f:
        f.write(
            "/* data/unicode_tables.h - the Unicode data of Hugging Face's tokenizers. scripts/unicode/make_tables.py\n"
            " * wrote this file, with tokenizers %s. */\n" % __version__
            + "/* clang-format off */\n#ifndef VKT_UNICODE_TABLES_H\n#define VKT_UNICODE_TABLES_H\n\n#include <stdint.h>\n\n"
            "/* Ranges of characters, for a class of a regular expression. VKT_LETTERS_16 and VKT_NUMBERS_16 are the letters and\n"
            " * numbers of Unicode 16 that Unicode 14 lacks. VKT_NUMBERS_17 are the numbers of Unicode 17 that Unicode 14 lacks.\n"
            " * PCRE2 10.42 knows Unicode 14. */\n"
            + define("VKT_LETTERS_16", letters - category("L"))
            + define("VKT_NUMBERS_16", numbers - category("N"))
            + define("VKT_NUMBERS_17", single - category("N"))
            + "\n/* Canonical decompositions, by rising character: character << 42 | first << 21 | second. `second` is 0 if the\n"
            " * decomposition is one character. Hangul is left out. */\n"
            + table("vkt_decompositions", decompositions, 5)
            + "\n/* Compositions of NFC, sorted: first << 42 | second << 21 | character. "
            "The characters `first` and `second` compose to\n"
            " * `character`. Hangul is left out. */\n"
            + table("vkt_compositions", sorted(compositions), 5)
            + "\n/* Combining classes that are not 0: first << 32 | last << 8 | class. */\n"
            + table("vkt_combining_classes", [a << 32 | b << 8 | k for a, b, k in rows], 5)
            + "\n#endif\n"
        )


main()
