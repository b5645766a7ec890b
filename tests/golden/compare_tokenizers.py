#!/usr/bin/env python3
"""Compares our token ids with those of Hugging Face's libraries, for a real vocabulary and many texts:

    pip install tokenizers==0.23.3 transformers==5.24.0 gguf==0.19.0 torch
    cmake --build build --target tokenizer_ids
    python3 tests/golden/compare_tokenizers.py build/tests/tokenizer_ids MODEL.gguf TEXT [STRINGS]

It encodes TEXT, for instance wikitext-2/valid.txt. It also encodes STRINGS random strings of Unicode characters (default:
100,000). For each of the four pre-tokenizers, it makes a tokenizer with the library `tokenizers` and the same vocabulary, and
compares our ids with the ids of this tokenizer. It also compares our ids with the ids of the tokenizer that transformers makes
of the GGUF file. Prints counts. The exit status is 1 if ids differ, except in comparisons whose line says "expected"."""
import hashlib
import os
import random
import struct
import subprocess
import sys
import tempfile
from gguf import GGUFReader
from tokenizers_of import PRE, build, write_vocabulary

SPECIAL = "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u180e\u2000\u200a\u200b\u200c\u200d\u2028\u2029\u202f\u205f\u2060\u3000\ufeff\ufffd"
WORDS = ["'s", "'S", "'\u017f", "'ll", "'LL", "'re", "\u2019s", "the", " a", "  ", "   ", "\r\n", "\n\n", "12", "3456", "\U0001f469\u200d\U0001f4bb"]


def random_string(r):
    """Returns a random string. About two thirds of the strings have one or two kinds of characters. So pre-tokenizers make some
    long pieces."""

    def character(kind):
        if kind == 0:
            return chr(r.randrange(0x20, 0x7F))
        if kind == 1:
            return r.choice(SPECIAL)
        if kind == 2:
            return r.choice(WORDS)
        if kind == 3:
            return chr(r.randrange(0x80, 0x600))
        if kind == 4:
            return chr(r.choice((r.randrange(0x300, 0x370), r.randrange(0x900, 0x1200), r.randrange(0xAC00, 0xD7A4))))
        if kind == 5:
            return chr(r.randrange(0x20))
        while True:
            c = r.randrange(0x110000) if kind == 6 else r.choice((r.randrange(0x10000), r.randrange(0x10000, 0x20000)))
            if not 0xD800 <= c < 0xE000:
                return chr(c)

    kinds = [r.randrange(8) for _ in range(r.choice((1, 2, 8)))]
    return "".join(character(r.choice(kinds)) for _ in range(r.randrange(1, 60)))


def ours(program, vocabulary, texts):
    """The ids of each text, by our program."""
    data = b"".join(struct.pack("<I", len(t)) + t for t in (text.encode() for text in texts))
    out = subprocess.run([program, vocabulary], input=data, stdout=subprocess.PIPE, check=True).stdout
    numbers = struct.unpack("<%dI" % (len(out) // 4), out)
    ids, at = [], 0
    for _ in texts:
        ids.append(list(numbers[at + 1 : at + 1 + numbers[at]]))
        at += 1 + numbers[at]
    assert at == len(numbers)
    return ids


def report(name, texts, got, want, expected=False):
    wrong = [i for i in range(len(texts)) if got[i] != want[i]]
    n = sum(map(len, want))
    print("%s: %d texts, %d ids, %d texts differ%s" % (name, len(texts), n, len(wrong), " (expected)" if expected and wrong else ""))
    for i in [] if expected else wrong[:3]:
        print("   text %d: %a\n   got  %s\n   want %s" % (i, texts[i][:200], got[i][:40], want[i][:40]))
    return bool(wrong) and not expected


def main():
    program, model, path = sys.argv[1:4]
    n = int(sys.argv[4]) if len(sys.argv) > 4 else 100000
    fields = GGUFReader(model).fields
    value = lambda key: fields["tokenizer.ggml." + key].contents()
    tokens, kinds = value("tokens"), value("token_type")
    merges = [tuple(m.split(" ")) for m in value("merges")]
    with open(path, encoding="utf-8", newline="") as f:
        text = f.read()
    r = random.Random(1)
    texts = [random_string(r) for _ in range(n)]
    failed, all_ids = False, {}
    with tempfile.TemporaryDirectory() as folder:
        for pre in PRE:
            vocabulary = os.path.join(folder, pre)
            with open(vocabulary, "wb") as f:
                write_vocabulary(f, pre, tokens, kinds, merges, "-1 -1 -1 -1 0")
            theirs = build(pre, tokens, kinds, merges)
            want = [e.ids for e in theirs.encode_batch([text] + texts, add_special_tokens=False)]
            got = all_ids[pre] = ours(program, vocabulary, [text] + texts)
            failed |= report(pre + ", text, tokenizers", [text], got[:1], want[:1])
            failed |= report(pre + ", random, tokenizers", texts, got[1:], want[1:])
            digest = hashlib.sha256(struct.pack("<%dI" % len(want[0]), *want[0])).hexdigest()
            print("   sha256 of the text's %d ids: %s" % (len(want[0]), digest))
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(os.path.dirname(model), gguf_file=os.path.basename(model))
    want = [theirs.encode(t, add_special_tokens=False) for t in [text] + texts]
    # A GGUF file may name the pre-tokenizer smollm. transformers does not implement smollm, and splits texts as GPT-2 does.
    failed |= report("gpt-2, text, transformers", [text], all_ids["gpt-2"][:1], want[:1])
    failed |= report("gpt-2, random, transformers", texts, all_ids["gpt-2"][1:], want[1:])
    report("smollm, text, transformers", [text], all_ids["smollm"][:1], want[:1], True)
    report("smollm, random, transformers", texts, all_ids["smollm"][1:], want[1:], True)
    sys.exit(failed)


main()
