#!/usr/bin/env python3
"""Writes tokenizer_<pre>.txt and chats.txt beside this script:

    pip install tokenizers==0.23.3 jinja2; python3 tests/golden/make_tokenizer_golden.py

tokenizer_<pre>.txt: a small vocabulary, trained by tokenizers (tokenizers_of.py has the format), then `texts N` and N lines
`FLAGS TEXT IDS...`: a text, and its ids from tokenizers (flag 1: special tokens are parsed). chats.txt has for each chat:
`chat FORM FLAGS N` (FORM: a name of TEMPLATES; flag 4: the text ends with the start of an answer; flag 8: enable_thinking is
false), N lines `ROLE CONTENT`, a line with the text that Jinja makes, a line with its ids in the vocabulary of the models that
use the template FORM (`chats_file` chooses the vocabulary), and a line with a mark for each id (1: the id belongs to an answer
of the assistant; 0: it does not)."""
import os
import random
import jinja2
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from tokenizers_of import CONTROL, PRE, USER_DEFINED, build, escape, write_vocabulary

HERE = os.path.dirname(os.path.abspath(__file__))
CHATML = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|im_end|>>"]
LLAMA = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eot_id|>>"]
USER = ["<think>", "</think>"]
TRAINING = """The tokenizer splits a text into pieces, and the pieces into tokens. It's simple, isn't it? They'll say they've
seen it; I'm sure you're right, and he'd agree. In 2024 there were 1234567 of them, in 1999 there were 42 and 007.
    for (int i = 0; i < 10; i++) { x[i] = y[i] + 3.14; }

Größe, Äpfel und Öl: schön süß. Le garçon était déjà à l'école où l'été naît. Ελληνικά και λόγια. Русский язык и слова.
日本語の文章と漢字。中文的句子和字。한국어 문장과 글자. हिन्दी भाषा. العربية. עברית. 😀 👩‍💻 👍🏽 ½ ² Ⅷ ٣٤٥
THE WORDS THE TOKENIZER SAW, THE THE the the ...... ------ !!!??? ((( ))) """

# Strings of several pieces. The training repeats these strings, so that some merges join tokens of two pieces: see train().
BORDERS = ["'Sthe", "'sthe", "'LLama", "'\u017fthe", "\U00011de0.", ".\U00011de0", "'REx", "''t"]


def strings():
    spaces = "\t\n\v\f\r \x1c\x1d\x1e\x1f\x85\xa0\u1680\u180e\u2000\u2003\u200a\u200b\u200c\u200d\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"
    out = ["", " ", "  ", "a", " a", "  a", "a ", "a  ", "a   b", "\n", "\n\n", " \n", "\n ", "a\nb", "a \n b", "a\r\nb", "\r\r\n\n\ra", "a\t\tb"]
    out += ["x" + s + "y" for s in spaces] + [s for s in spaces] + ["a" + s + s + "1" for s in spaces] + ["." + s + "\n" for s in spaces]
    out += ["it's", "IT'S", "'s", "'S's", "we'll We'LL", "I'd've", "x'", "''s", "'\u017f", "a'\u017fb", "\u2019s", "'t're've'm'll'd", "'T'RE'VE'M'LL'D", "'sa 'lla", "'l"]
    out += ["1", "12", "123", "1234", "12345678", " 1", "  1", "a1b22c333", "1a", "3.14", "1,000,000", "\u0663\u0664\u0665\u0666", "\xbd inch", "x \xbd", "\u2167\u2168", "1\u00b22", "\u0967\u0968\u0969\u096a", "2024-01-02 03:04"]
    out += ["日本語の文章", "漢字 かな カナ", "中文,句子。", "한국어 문장", "हिन्दी", "العربية", "עִבְרִית", "ไทยภาษา", "Ελληνικά", "Русский"]
    out += ["😀", "😀😀", "👩\u200d💻", "👩🏽\u200d🚀 👨\u200d👩\u200d👧", "👍🏽", "🇩🇪🇫🇷", "a😀b", "❤\ufe0f"]
    out += ["e\u0301", "\u00e9", "A\u030a\u00c5\u212b", "o\u0302\u0323", "o\u0323\u0302", "\u1112\u1161\u11ab", "\ud55c", "q\u0307\u0323", "a\u0301\u0301\u0301", "a\u0305\u0301", "a\u0323\u0305\u0302", "\u0344", "\u0958", "\u2126", "\uf900", "\u0301a", "\u1100\u1161", "\uac00\u11a8", "\u0915\u093c", "a\u0315\u0300\u05ae\u0062", "\ufb01", "\u1e69", "s\u0307\u0323", "\u0b47\u0b3e", "\U0001d15e"]
    out += ["\0", "a\0b", "\x01\x02\x7f", "\x1b[0m", "\x80\x9f", "\ufffd", "\ufffe\uffff", "\U0010ffff", "\ue000", "\xad"]
    out += ["a\U00010d4a\U00010d4bb", "a\U000105c01", "1\U00010d40", "1\U00011de0.", " \u1c89", "\U00010940a",
            "\U00010d4a\U00010d4b", "\U000105c0", " \U00010d40\U00010d41", "\U0001ccf0", "\U00011de0\U00011de1", "\U00016ff4", "\u1c89\u1c8a", "\U00010940"]
    out += ["a" * 200, "ab" * 120, " " * 150, " " * 70 + "x", "\n" * 100, "1" * 100, "." * 90, "é" * 60, "the" * 50, "ha" * 33 + " " * 33, " \n" * 40]
    out += ["<|endoftext|>", "a<|im_start|>b", " <|im_end|> ", "<|im_end|>>", "<|im_end|>>>", "<|im_end|><|im_end|>", "<|im_end", "<|im_end|", "<<|im_end|>", "a <think> b </think>", "<think>\n</think>", "1<|eot_id|>2", "<|eot_id|>>", "e<|im_end|>\u0301", "  <|im_end|>  \n"]
    out += ["Hello, World!", "HelloWorld", "don't", "foo_bar(baz)", "http://a.b/c?d=e&f", "(a) [b] {c}", "x=1;\n\ty=2;\n", "The tokenizer splits", " whole", "whole", "...\r\n...", "!?\n\n\n x", "-- \n--", "#include <x.h>\n"]
    out += BORDERS
    r = random.Random(7)
    kinds = [lambda: chr(r.randrange(32, 127)), lambda: r.choice(spaces), lambda: chr(r.randrange(0x80, 0x800)), lambda: chr(r.choice([r.randrange(0x800, 0xD800), r.randrange(0x10000, 0x20000)])), lambda: r.choice(["'s", "12", "the", " a", "\r\n", "\u0301"])]
    for _ in range(60):
        chosen = [r.choice(kinds) for _ in range(3)]
        out.append("".join(r.choice(chosen)() for _ in range(r.randrange(2, 24))))
    return out


def train(pre):
    """Returns tokens, kinds and merges. The vocabulary for "smollm" lacks the token of one byte, because SmolLM2's own vocabulary
    lacks the tokens of 21 bytes."""
    control = LLAMA if pre == "llama-bpe" else CHATML
    t = Tokenizer(models.BPE())
    # In this training, texts are not split into pieces, so some merges join the end of one piece to the start of the next
    # piece. If our tokenizer does not split a text at the border of two pieces, it makes such a merge, and its ids differ.
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=256 + 900, initial_alphabet=alphabet, show_progress=False)
    t.train_from_iterator([TRAINING] * 3 + [s for s in strings() if "<|" not in s] + BORDERS * 20, trainer)
    import json

    model = json.loads(t.to_str())["model"]
    learned = sorted(model["vocab"], key=model["vocab"].get)
    merges = [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in model["merges"]]
    if pre == "smollm":
        gone = {alphabet[i] for i in range(0, 256, 37)} - {"".join(m) for m in merges} - {x for m in merges for x in m}
        assert gone
        learned = [x for x in learned if x not in gone]
    # No merges make "Ġwhole". Only "llama-bpe" produces it, because it first looks for the whole piece in the
    # vocabulary (ignore_merges). "Hello" is in the vocabulary twice, because merges make it, too. A text gets the
    # larger id.
    tokens = control + learned + USER + ["Ġwhole", "Hello"]
    kinds = [CONTROL] * len(control) + [1] * len(learned) + [USER_DEFINED] * 2 + [1, 1]
    return tokens, kinds, merges


def vocabulary_file(pre):
    tokens, kinds, merges = train(pre)
    t = build(pre, tokens, kinds, merges)
    lines = []
    for text in strings():
        for special in (1, 0) if "<|" in text else (1,):
            t.encode_special_tokens = not special
            ids = t.encode(text, add_special_tokens=False).ids
            lines.append(b"%d %s %s\n" % (special, escape(text), " ".join(map(str, ids)).encode()))
    t.encode_special_tokens = False
    with open(os.path.join(HERE, "tokenizer_%s.txt" % pre), "wb") as f:
        write_vocabulary(f, pre, tokens, kinds, merges, "0 2 -1 2 1" if pre == "llama-bpe" else "1 2 0 -1 0")
        f.write(b"texts %d\n" % len(lines) + b"".join(lines))
    return t


SYSTEM = "{%% if loop.first and messages[0]['role'] != 'system' %%}{{ '<|im_start|>system\n%s<|im_end|>\n' }}{%% endif %%}"
TURN = "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
ASK = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"


def chatml(system=None):
    return "{% for message in messages %}" + (SYSTEM % system if system else "") + TURN + "{% endfor %}" + ASK


# The chat templates that the models' authors publish, without the parts for tools.
TEMPLATES = {
    "chatml": chatml(),
    "smollm2": chatml("You are a helpful AI assistant named SmolLM, trained by Hugging Face"),
    "qwen2": chatml("You are a helpful assistant."),
    "qwen2.5": chatml("You are Qwen, created by Alibaba Cloud. You are a helpful assistant."),
    "llama3": "{% for message in messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'"
    " + message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = '<|begin_of_text|>' + content %}"
    "{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}",
    "qwen3": """{%- set ns = namespace(question=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.question and message.role == "user" and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.question = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content %}
    {%- if message.role != "assistant" %}
        {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>' + '\n' }}
    {%- else %}
        {%- set thoughts = '' %}
        {%- if '</think>' in content %}
            {%- set thoughts = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or thoughts) %}
            {{- '<|im_start|>' + message.role + '\n<think>\n' + thoughts.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}""",
}
CHATS = [
    [("user", "Hello")],
    [("user", "The words?"), ("assistant", "The tokenizer splits.")],
    [("system", "It's simple."), ("user", "1 + 1 = ?"), ("assistant", "  2\n"), ("user", "\nAnd\t2 + 2?\n\n"), ("assistant", "\n\n4")],
    [("user", "a"), ("assistant", "<think>\nthe words\n</think>\n\nb"), ("user", "c"), ("assistant", "<think>x\n\n</think>\nd")],
    [("user", "a"), ("assistant", "<think>\none</think>b"), ("assistant", "c"), ("assistant", "\nd")],
    [("user", "e"), ("assistant", "e\u0301"), ("user", "<tool_response>7</tool_response>"), ("assistant", "")],
    [("assistant", "a</think>b</think>c")],
    [("user", "\u00e9 \u65e5\u672c 😀"), ("assistant", "e\u0301\u0323 \u1112\u1161\u11ab")],
]


def chats_file(tokenizers):
    env = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    with open(os.path.join(HERE, "chats.txt"), "wb") as f:
        for form, template in TEMPLATES.items():
            family = {"l": "llama-bpe", "q": "qwen2"}.get(form[0], "smollm")
            stop = "<|eot_id|>" if form == "llama3" else "<|im_end|>"
            start = "<|start_header_id|>assistant<|end_header_id|>\n\n" if form == "llama3" else "<|im_start|>assistant\n"
            for chat in CHATS:
                for flags in (0, 4, 12) if form == "qwen3" else (0, 4):
                    messages = [{"role": role, "content": content} for role, content in chat]
                    more = {"enable_thinking": False} if flags & 8 else {}
                    text = env.from_string(template).render(messages=messages, add_generation_prompt=bool(flags & 4), **more)
                    # The answers: each range of the text from the end of `start` to the end of `stop`.
                    answers, at = [], 0
                    while (at := text.find(start, at)) >= 0 and (end := text.find(stop, at)) >= 0:
                        answers.append((at + len(start), end + len(stop)))
                        at = end
                    assert len(answers) == sum(role == "assistant" for role, _ in chat)
                    e = tokenizers[family].encode(text, add_special_tokens=False)
                    marks = [any(a < end and start_ < b for start_, end in answers) for a, b in e.offsets]
                    f.write(b"chat %s %d %d\n" % (form.encode(), flags, len(chat)))
                    for role, content in chat:
                        f.write(role.encode() + b" " + escape(content) + b"\n")
                    f.write(escape(text) + b"\n" + " ".join(map(str, e.ids)).encode() + b"\n")
                    f.write("".join("01"[m] for m in marks).encode() + b"\n")


chats_file({pre: vocabulary_file(pre) for pre in PRE})
