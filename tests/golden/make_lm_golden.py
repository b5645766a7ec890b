#!/usr/bin/env python3
"""Records lm/: tiny language models as GGUF files, and what PyTorch computes with their weights. Format: README.md.

    python3 tests/golden/make_lm_golden.py              (a minute; needs torch and the package gguf)

  llama.gguf, qwen2.gguf, qwen3.gguf   two transformer blocks and a tokenizer each; together, all tensor types the library reads
  llama.safetensors, ...               logits, gradients of adapters, and the losses of a training of the adapters

The networks are written from the formulas: Touvron et al. 2023 (Llama), Su et al. 2021 (rotary embedding), Peng et al. 2023
(YaRN), Zhang & Sennrich 2019 (RMS norm), Ainslie et al. 2023 (grouped-query attention), Hu et al. 2021 (LoRA). The weights
have the names of Hugging Face's transformers. The rows of weights and adapters have the order of transformers. Only llama.gguf
has another order of rows (see `permuted`). The rotary embedding rotates the same pairs as in transformers.
"""
import math
import os
from importlib.metadata import version

import gguf
import numpy as np
import torch
import torch.nn.functional as F
from gguf import GGMLQuantizationType as T

import safetensors_file
from make_mnist_golden import deviation, mix

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lm")
SEED, STEPS, LR = 20261128, 50, 3e-3
ROWS, BATCH, CONTEXT = 14, 4, 24  # four steps an epoch, the last one of 2 rows
RANK, ALPHA = 4, 8.0
IGNORED = 0xffffffff
# Variants of the float32 run. They show how much rounding changes the results (README.md).
VARIANTS = ("no_mkldnn", "reversed_rows", "merged", "written_out")
SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


class Shape:
    """The sizes of a model, and the types of its tensors. `types` has four elements: the types of q, k, v, o, gate, up and down
    in transformer block 0; their types in transformer block 1; the type of the embedding; the type of the output matrix (None:
    the output matrix is the embedding)."""

    def __init__(self, name, width, heads, kv_heads, head, ff, types):
        self.name, self.width, self.heads, self.kv_heads, self.head, self.ff = name, width, heads, kv_heads, head, ff
        self.blocks, self.types = 2, types
        self.eps = 1e-5 if name == "llama" else 1e-6
        self.base = 10000.0 if name == "llama" else 1000000.0
        self.yarn, self.linear = (4.0 if name == "qwen2" else None), (2.0 if name == "qwen3" else 1.0)
        self.first_context = 32  # YaRN is for a model that was trained with this context length


SHAPES = (
    Shape("llama", 96, 4, 2, 24, 128, ((T.Q8_0, T.Q4_0, T.Q4_1, T.F16, T.Q8_0, T.BF16, T.Q4_0),
                                       (T.F32, T.BF16, T.Q8_0, T.Q4_1, T.Q4_0, T.Q8_0, T.F16), T.Q8_0, None)),
    Shape("qwen2", 64, 4, 1, 16, 256, ((T.Q4_0, T.Q8_0, T.F32, T.Q4_1, T.Q4_1, T.Q8_0, T.Q4_K),
                                       (T.Q8_0, T.F16, T.Q4_0, T.BF16, T.F16, T.Q4_1, T.Q6_K), T.Q4_1, T.F16)),
    Shape("qwen3", 64, 4, 2, 32, 256, ((T.Q8_0, T.Q8_0, T.Q8_0, T.Q8_0, T.Q8_0, T.Q8_0, T.Q5_K),
                                       (T.BF16, T.Q4_1, T.F16, T.Q4_0, T.Q8_0, T.Q4_0, T.Q8_0), T.F32, None)))


# ---- the files ----

def byte_letters():
    """Returns the letters of the 256 bytes in byte-level BPE (GPT-2's bytes_to_unicode)."""
    shown = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    hidden = [b for b in range(256) if b not in shown]
    letters = {b: chr(b) for b in shown}
    letters.update({b: chr(256 + i) for i, b in enumerate(hidden)})
    return [letters[b] for b in range(256)]


def vocabulary():
    """Returns tokens and merges: three special tokens, the 256 bytes, and a token for each merge, "th" and "the" for instance."""
    space, tokens = byte_letters()[32], list(SPECIALS) + byte_letters()
    merges = ["t h", "th e", "i n", "a n", "an d", "e r", "o u", f"{space} t", f"{space}t h", f"{space}th e", "o n", "e n", "r e"]
    tokens += [merge.replace(" ", "") for merge in merges]
    return tokens, merges


def random_blocks(rng, qtype, rows, columns):
    """Makes rows of random blocks of Q4_K, Q5_K or Q6_K, because the package cannot quantize to these types. The float16
    scales of the blocks are so small that all weights are within +-1."""
    elements, size = gguf.GGML_QUANT_SIZES[qtype]
    blocks = rng.integers(0, 256, (rows * columns // elements, size), dtype=np.uint8)
    for at in (208,) if qtype == T.Q6_K else (0, 2):
        small = 6e-5 if qtype == T.Q6_K else 3e-4 / (2 if qtype == T.Q5_K else 1)
        scales = (small * (1 + rng.random(len(blocks))) * rng.choice((-1, 1), len(blocks))).astype(np.float16)
        blocks[:, at:at + 2] = scales.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(rows, columns // elements * size)


def permuted(w, heads, head):
    """Puts the rows of a query or key weight in the order that llama.cpp's converter writes: for each head, rows of the first
    half of the head and rows of the second half alternate."""
    return w.reshape(heads, 2, head // 2, -1).swapaxes(1, 2).reshape(w.shape)


class File:
    """Writes a GGUF file and keeps its weights as float32, with the names of transformers."""

    def __init__(self, shape, rng):
        self.s, self.rng, self.weights = shape, rng, {}
        self.w = gguf.GGUFWriter(os.path.join(HERE, shape.name + ".gguf"), shape.name)

    def matrix(self, name, ours, rows, columns, qtype, heads=0):
        if qtype in (T.Q4_K, T.Q5_K, T.Q6_K):
            raw = random_blocks(self.rng, qtype, rows, columns)
        else:
            raw = gguf.quants.quantize((self.rng.standard_normal((rows, columns)) / columns**0.5).astype(np.float32), qtype)
        self.weights[ours] = gguf.quants.dequantize(raw, qtype).astype(np.float32)
        if heads and self.s.name == "llama":
            raw = permuted(raw, heads, self.s.head)
        self.w.add_tensor(name, np.ascontiguousarray(raw), raw_dtype=qtype)

    def vector(self, name, ours, n, centre=1.0):
        x = (centre + 0.1 * self.rng.standard_normal(n)).astype(np.float32)
        self.weights[ours] = x
        self.w.add_tensor(name, x)

    def metadata(self):
        s, w = self.s, self.w
        tokens, merges = vocabulary()
        w.add_name("tiny " + s.name)
        w.add_context_length(128)
        w.add_embedding_length(s.width)
        w.add_block_count(s.blocks)
        w.add_feed_forward_length(s.ff)
        w.add_head_count(s.heads)
        w.add_head_count_kv(s.kv_heads)
        w.add_layer_norm_rms_eps(s.eps)
        w.add_rope_freq_base(s.base)
        w.add_key_length(s.head)
        w.add_value_length(s.head)
        if s.yarn:
            w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
            w.add_rope_scaling_factor(s.yarn)
            w.add_rope_scaling_orig_ctx_len(s.first_context)
        elif s.linear != 1:
            w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
            w.add_rope_scaling_factor(s.linear)
        w.add_tokenizer_model("gpt2")
        w.add_tokenizer_pre("smollm" if s.name == "llama" else "qwen2")
        w.add_token_list(tokens)
        w.add_token_types([3] * len(SPECIALS) + [1] * (len(tokens) - len(SPECIALS)))
        w.add_token_merges(merges)
        w.add_bos_token_id(1)
        w.add_eos_token_id(2)
        w.add_pad_token_id(0)
        w.add_add_bos_token(False)
        return len(tokens)

    def block(self, i):
        s, at, to = self.s, f"blk.{i}.", f"model.layers.{i}."
        q, kv, types = s.heads * s.head, s.kv_heads * s.head, s.types[i]
        self.vector(at + "attn_norm.weight", to + "input_layernorm.weight", s.width)
        self.vector(at + "ffn_norm.weight", to + "post_attention_layernorm.weight", s.width)
        parts = (("attn_q", "self_attn.q_proj", q, s.width, s.heads), ("attn_k", "self_attn.k_proj", kv, s.width, s.kv_heads),
                 ("attn_v", "self_attn.v_proj", kv, s.width, 0), ("attn_output", "self_attn.o_proj", s.width, q, 0),
                 ("ffn_gate", "mlp.gate_proj", s.ff, s.width, 0), ("ffn_up", "mlp.up_proj", s.ff, s.width, 0),
                 ("ffn_down", "mlp.down_proj", s.width, s.ff, 0))
        for (name, ours, rows, columns, heads), qtype in zip(parts, types):
            self.matrix(f"{at}{name}.weight", f"{to}{ours}.weight", rows, columns, qtype, heads)
            if s.name == "qwen2" and ours[-6:] in ("q_proj", "k_proj", "v_proj"):
                self.vector(f"{at}{name}.bias", f"{to}{ours}.bias", rows, 0.0)
            if s.name == "qwen3" and ours[-6:] in ("q_proj", "k_proj"):
                self.vector(f"{at}{name}_norm.weight", f"{to}{ours[:-4]}norm.weight", s.head)

    def write(self):
        s = self.s
        words = self.metadata()
        self.matrix("token_embd.weight", "model.embed_tokens.weight", words, s.width, s.types[2])
        self.vector("output_norm.weight", "model.norm.weight", s.width)
        if s.types[3]:
            self.matrix("output.weight", "lm_head.weight", words, s.width, s.types[3])
        if s.name == "llama":
            self.vector("rope_freqs.weight", "rope_freqs", s.head // 2, 2.0)
        for i in range(s.blocks):
            self.block(i)
        self.w.write_header_to_file()
        self.w.write_kv_data_to_file()
        self.w.write_tensors_to_file()
        self.w.close()
        return words


# ---- the network ----

def frequencies(s, weights):
    """Returns the frequency of each pair of numbers that the rotary embedding rotates, and a factor for sine and cosine. The
    frequencies are computed in float32, as in transformers: this rounding is part of a model's definition. Only the weighted
    mean of two frequencies that YaRN uses is computed in float64."""
    f32 = np.float32
    j = np.arange(0, s.head, 2, dtype=np.int64).astype(f32) / f32(s.head)
    plain = (f32(1) / (torch.tensor(s.base, dtype=torch.float32) ** torch.from_numpy(j))).numpy()
    if s.name == "llama":
        return (plain / weights["rope_freqs"]).astype(np.float64), 1.0
    if not s.yarn:
        return (plain / f32(s.linear)).astype(np.float64), 1.0

    def pair(turns):
        return s.head * math.log(s.first_context / (turns * 2 * math.pi)) / (2 * math.log(s.base))

    first, last = max(math.floor(pair(32)), 0), min(math.ceil(pair(1)), s.head - 1)
    slow = np.clip((np.arange(s.head // 2) - first) / max(last - first, 0.001), 0, 1)
    mixed = plain.astype(np.float64) * (1 - slow) + plain.astype(np.float64) / s.yarn * slow
    return mixed, 0.1 * math.log(s.yarn) + 1


class Network:
    def __init__(self, shape, weights, dtype):
        self.s, self.dtype, self.variant = shape, dtype, None
        self.w = {name: torch.from_numpy(x).to(dtype) for name, x in weights.items()}
        freq, self.length = frequencies(shape, weights)
        angles = torch.arange(CONTEXT, dtype=torch.float64)[:, None] * torch.from_numpy(freq)[None, :]
        angles = torch.cat((angles, angles), 1)
        self.cos, self.sin = (angles.cos() * self.length).to(dtype), (angles.sin() * self.length).to(dtype)
        self.adapters = {}
        for name in self.w:
            if "_proj.weight" in name:
                rows, columns = self.w[name].shape
                base = name[:-len("weight")]
                self.adapters[base + "lora_A.weight"] = (RANK, columns)
                self.adapters[base + "lora_B.weight"] = (rows, RANK)
        self.adapters = {name: torch.from_numpy(draw(k, shape_)).to(dtype).requires_grad_()
                         for k, (name, shape_) in enumerate(self.adapters.items())}

    def linear(self, name, x):
        w, bias = self.w[name + ".weight"], self.w.get(name + ".bias")
        a, b = self.adapters[name + ".lora_A.weight"], self.adapters[name + ".lora_B.weight"]
        if self.variant == "merged":
            return F.linear(x, w + b @ a * (ALPHA / RANK), bias)
        return F.linear(x, w, bias) + F.linear(F.linear(x, a), b) * (ALPHA / RANK)

    def norm(self, name, x):
        if self.variant == "written_out":
            return x / ((x * x).sum(-1, keepdim=True) / x.shape[-1] + self.s.eps).sqrt() * self.w[name + ".weight"]
        return self.w[name + ".weight"] * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.s.eps))

    def rotate(self, x):
        half = self.s.head // 2
        return x * self.cos + torch.cat((-x[..., half:], x[..., :half]), -1) * self.sin

    def attention(self, name, x):
        s, (b, t, _) = self.s, x.shape
        q = self.linear(name + "q_proj", x).view(b, t, s.heads, s.head)
        k = self.linear(name + "k_proj", x).view(b, t, s.kv_heads, s.head)
        v = self.linear(name + "v_proj", x).view(b, t, s.kv_heads, s.head).transpose(1, 2)
        if s.name == "qwen3":
            q, k = self.norm(name + "q_norm", q), self.norm(name + "k_norm", k)
        q, k = self.rotate(q.transpose(1, 2)), self.rotate(k.transpose(1, 2))
        k, v = (z.repeat_interleave(s.heads // s.kv_heads, 1) for z in (k, v))
        scores = (q @ k.transpose(2, 3)) / math.sqrt(s.head)
        scores = scores.masked_fill(torch.ones(t, t).tril() == 0, -math.inf)
        return self.linear(name + "o_proj", (F.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, t, -1))

    def logits(self, ids):
        x = self.w["model.embed_tokens.weight"][ids]
        for i in range(self.s.blocks):
            at = f"model.layers.{i}."
            x = x + self.attention(at + "self_attn.", self.norm(at + "input_layernorm", x))
            h = self.norm(at + "post_attention_layernorm", x)
            h = F.silu(self.linear(at + "mlp.gate_proj", h)) * self.linear(at + "mlp.up_proj", h)
            x = x + self.linear(at + "mlp.down_proj", h)
        x = self.norm("model.norm", x)
        return F.linear(x, self.w.get("lm_head.weight", self.w["model.embed_tokens.weight"]))


def draw(k, shape):
    """Returns the initial values of adapter matrix k. A hash of k and of the element's index gives each number, within +-1/8."""
    h = mix(np.uint32(1 << 24 | k << 16) + np.arange(shape[0] * shape[1], dtype=np.uint32)) >> np.uint32(8)
    return ((h.astype(np.float32) - np.float32(1 << 23)) * np.float32(0.125 / (1 << 23))).reshape(shape)


def samples(words):
    """Returns ids and labels (ROWS,CONTEXT). The first 0 to 8 labels of a row are IGNORED, as if they belonged to a prompt."""
    i, t = np.ogrid[0:ROWS, 0:CONTEXT + 1]
    u = np.uint32
    h = mix(i.astype(u) + u(0x10000000))
    all_ids = (h + t.astype(u) * (u(1) + (h >> u(8)) % u(11))) % u(words)
    labels = np.where(t[:, 1:] > (h >> u(16)) % u(9), all_ids[:, 1:], u(IGNORED))
    return all_ids[:, :-1].astype(np.int64), labels.astype(np.int64)


def loss_of(net, ids, labels):
    ids, labels = torch.from_numpy(ids), torch.from_numpy(labels)
    if net.variant == "reversed_rows":
        ids, labels = ids.flip(0), labels.flip(0)
    z = net.logits(ids)
    return F.cross_entropy(z.reshape(-1, z.shape[-1]), labels.reshape(-1), ignore_index=IGNORED)


def snapshot(named):
    return {name: p.detach().double().numpy().reshape(-1).copy() for name, p in named}


def run(shape, weights, words, dtype, variant=None):
    """Returns the logits of the first sample before the training, the losses of all steps, and the gradients of the first step."""
    net = Network(shape, weights, dtype)
    net.variant = variant
    ids, labels = samples(words)
    losses, first = [], None
    optimizer = torch.optim.Adam(net.adapters.values(), lr=LR)
    with torch.backends.mkldnn.flags(enabled=variant != "no_mkldnn"):
        with torch.no_grad():
            logits = net.logits(torch.from_numpy(ids[:1])).double().numpy()[0]
        for step in range(STEPS):
            at = step * BATCH % (BATCH * math.ceil(ROWS / BATCH))
            optimizer.zero_grad()
            loss = loss_of(net, ids[at:at + BATCH], labels[at:at + BATCH])
            loss.backward()
            first = first or snapshot((name, p.grad) for name, p in net.adapters.items())
            losses.append(loss.item())
            optimizer.step()
    return logits, np.array(losses), first


def record(shape):
    rng = np.random.default_rng(SEED + len(shape.name) + ord(shape.name[-1]))
    file = File(shape, rng)
    words = file.write()
    logits64, loss64, grad64 = run(shape, file.weights, words, torch.float64)
    runs = [run(shape, file.weights, words, torch.float32, v) for v in (None,) + VARIANTS]
    t = {"grad64/" + name: value for name, value in grad64.items()}
    t["logits64"], t["loss64"] = logits64, loss64
    t["logits_dev"] = np.array([np.abs(r[0] - logits64).max() for r in runs])
    t["loss_dev"] = np.stack([np.abs(r[1] - loss64) for r in runs])
    t["grad_dev"] = np.stack([deviation(r[2], grad64) for r in runs])
    metadata = {"parameters": " ".join(grad64), "runs": " ".join(("default",) + VARIANTS), "torch": torch.__version__,
                "numpy": np.__version__, "gguf": version("gguf")}
    path = os.path.join(HERE, shape.name + ".safetensors")
    print(path, safetensors_file.write(path, t, metadata), "bytes;", words, "words")
    np.set_printoptions(precision=3, linewidth=120)
    print("logits", np.abs(logits64).max(), t["logits_dev"], "\nloss", loss64[[0, 1, 2, 3, 46, 47, 48, 49]])
    print("loss deviations", t["loss_dev"].max(1), "\ngradients", max(np.abs(g).max() for g in grad64.values()),
          min(np.abs(g).max() for g in grad64.values()), t["grad_dev"].max(0).min(), t["grad_dev"].max())


def main():
    torch.set_num_threads(1)
    for shape in SHAPES:
        record(shape)


if __name__ == "__main__":
    main()
