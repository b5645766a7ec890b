"""Shared by the two scripts about tokenizers: tokenizers as the models' authors define them, and files of vocabularies.

A file of a vocabulary is text. Its lines: `pre NAME`; `ids BOS EOS UNK PAD ADD_BOS` (-1: none); `tokens N` and N lines
`KIND TOKEN`; `merges N` and N lines `LEFT RIGHT`. In a token, the bytes 0 to 32, the byte 127 and % are written as %XX."""
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
CONTROL, USER_DEFINED = 3, 4


def split(numbers):
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + numbers + r"| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


# The pre-tokenizers in the files tokenizer.json of these models, in this order: openai-community/gpt2,
# HuggingFaceTB/SmolLM2-135M-Instruct, meta-llama/Meta-Llama-3-8B, Qwen/Qwen2-0.5B.
PRE = {
    "gpt-2": GPT2,
    "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), GPT2]),
    "llama-bpe": split("{1,3}"),
    "qwen2": split(""),
}


def build(pre, tokens, kinds, merges):
    """The tokenizer of a vocabulary. `merges` are pairs of tokens."""
    bpe = models.BPE(
        vocab={t: i for i, t in enumerate(tokens)}, merges=merges, fuse_unk=False, ignore_merges=pre == "llama-bpe"
    )
    t = Tokenizer(bpe)
    t.pre_tokenizer = PRE[pre]
    t.decoder = decoders.ByteLevel()
    if pre == "qwen2":
        t.normalizer = normalizers.NFC()
    t.add_special_tokens([AddedToken(x, normalized=False) for x, k in zip(tokens, kinds) if k == CONTROL])
    t.add_tokens([AddedToken(x, normalized=False) for x, k in zip(tokens, kinds) if k == USER_DEFINED])
    return t


def escape(text):
    if isinstance(text, str):
        text = text.encode()
    return "".join("%%%02X" % b if b <= 32 or b == 127 or b == 37 else chr(b) for b in text).encode("latin-1")


def write_vocabulary(f, pre, tokens, kinds, merges, ids):
    f.write(b"pre %s\nids %s\ntokens %d\n" % (pre.encode(), ids.encode(), len(tokens)))
    for token, kind in zip(tokens, kinds):
        f.write(b"%d %s\n" % (kind, escape(token)))
    f.write(b"merges %d\n" % len(merges))
    for left, right in merges:
        f.write(b"%s %s\n" % (escape(left), escape(right)))
