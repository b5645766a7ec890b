#!/usr/bin/env python3
"""Records gguf/: small GGUF files that the PyPI package gguf writes, and values of their tensors, as the package dequantizes
them. If the argument is the path of SmolLM2-135M-Instruct.Q4_1.gguf, the script also records gguf/smollm2.txt: checksums of
the tensors of SmolLM2.

  types.gguf       a tensor of each type that the library reads, and of two that it does not read; metadata of each kind
  values.safetensors   the tensors of types.gguf that the library reads, as float32, by gguf.quants.dequantize
  llama.gguf, qwen2.gguf, qwen3.gguf   tiny language models without a tokenizer
  types.txt        a line for each type of the package: name, number in GGUF files, elements and bytes of a quantized block
  smollm2.txt      a line for each tensor: name, type, dimensions, CRC-32 of its values as float32
"""
import os
import sys
import zlib
from importlib.metadata import version

import gguf
import numpy as np
from gguf import GGMLQuantizationType as T

from safetensors_file import write

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gguf")
SEED = 20261128

# The package cannot quantize to these types, so types.gguf has random blocks of them. The numbers behind a type are the offsets
# of the float16 scales in a block.
SCALES = {T.Q4_K: (0, 2), T.Q5_K: (0, 2), T.Q6_K: (208,)}


def random_blocks(rng, qtype, rows, columns):
    """Makes rows of random blocks. The scales at the offsets in SCALES are float16 numbers from a normal distribution. All other
    bytes are random."""
    elements, size = gguf.GGML_QUANT_SIZES[qtype]
    blocks = rng.integers(0, 256, (rows * columns // elements, size), dtype=np.uint8)
    for at in SCALES.get(qtype, ()):
        scales = (rng.standard_normal(len(blocks)) * 0.01).astype(np.float16)
        blocks[:, at:at + 2] = scales.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(rows, columns // elements * size)


def tensors(rng):
    """Yields name, type, raw array. The ranks are 1 to 4."""
    for qtype, shape in ((T.F32, (3, 5)), (T.F16, (2, 3, 7)), (T.BF16, (2, 1, 3, 5))):
        x = rng.standard_normal(shape).astype(np.float32)
        yield qtype.name, qtype, gguf.quants.quantize(x, qtype)
    for qtype in (T.Q4_0, T.Q4_1, T.Q8_0):
        x = rng.standard_normal((3, 64)).astype(np.float32)
        yield qtype.name, qtype, gguf.quants.quantize(x, qtype)
    for qtype in SCALES:
        yield qtype.name, qtype, random_blocks(rng, qtype, 2, 512)
    yield "one", T.F32, np.array([0.5], dtype=np.float32)


def write_types(rng):
    w = gguf.GGUFWriter(os.path.join(HERE, "types.gguf"), "none")
    w.add_custom_alignment(64)
    w.add_uint8("kind.u8", 255)
    w.add_int8("kind.i8", -128)
    w.add_uint16("kind.u16", 65535)
    w.add_int16("kind.i16", -32768)
    w.add_uint32("kind.u32", 4294967295)
    w.add_int32("kind.i32", -2147483648)
    w.add_float32("kind.f32", 0.1)
    w.add_bool("kind.bool", True)
    w.add_string("kind.text", "täglich\n")
    w.add_uint64("kind.u64", 2**64 - 1)
    w.add_int64("kind.i64", -2**63)
    w.add_float64("kind.f64", 0.1)
    w.add_array("array.i32", [1, -2, 3])
    w.add_array("array.f32", [0.5, -0.25])
    w.add_array("array.bool", [True, False, True])
    w.add_array("array.text", ["a", "", "Ġthe", "é"])
    values = {}
    for name, qtype, raw in tensors(rng):
        w.add_tensor(name, raw, raw_dtype=qtype)
        values[name] = gguf.quants.dequantize(raw, qtype).astype(np.float32)
    w.add_tensor("Q5_0", random_blocks(rng, T.Q5_0, 1, 32), raw_dtype=T.Q5_0)
    w.add_tensor("I32", np.array([7, 8], dtype=np.int32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    write(os.path.join(HERE, "values.safetensors"), values, {"gguf": version("gguf")})


def write_model(rng, arch):
    """Writes a model of one transformer block: width 32, 4 query heads, 2 key/value heads, 64 tokens. The width of a head is 8
    (qwen3: 16)."""
    width, heads, kv_heads, ff, words = 32, 4, 2, 64, 64
    head = 16 if arch == "qwen3" else width // heads
    w = gguf.GGUFWriter(os.path.join(HERE, arch + ".gguf"), arch)
    w.add_name("tiny " + arch)
    w.add_context_length(128)
    w.add_embedding_length(width)
    w.add_block_count(1)
    w.add_feed_forward_length(ff)
    w.add_head_count(heads)
    w.add_head_count_kv(kv_heads)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_rope_freq_base(1000000.0)
    if arch == "qwen3":
        w.add_key_length(head)
        w.add_value_length(head)
    if arch == "qwen2":
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        w.add_rope_scaling_factor(4.0)
        w.add_rope_scaling_orig_ctx_len(32)
    if arch == "llama":
        w.add_vocab_size(words)

    def matrix(name, rows, columns, qtype=T.Q8_0):
        x = (rng.standard_normal((rows, columns)) / columns**0.5).astype(np.float32)
        w.add_tensor(name, gguf.quants.quantize(x, qtype), raw_dtype=qtype)

    def vector(name, n):
        w.add_tensor(name, (1 + 0.1 * rng.standard_normal(n)).astype(np.float32))

    matrix("token_embd.weight", words, width)
    vector("output_norm.weight", width)
    if arch == "qwen3":
        matrix("output.weight", words, width, T.F16)
    if arch == "llama":
        vector("rope_freqs.weight", head // 2)
    vector("blk.0.attn_norm.weight", width)
    vector("blk.0.ffn_norm.weight", width)
    matrix("blk.0.attn_q.weight", heads * head, width)
    matrix("blk.0.attn_k.weight", kv_heads * head, width)
    matrix("blk.0.attn_v.weight", kv_heads * head, width)
    matrix("blk.0.attn_output.weight", width, heads * head)
    matrix("blk.0.ffn_gate.weight", ff, width)
    matrix("blk.0.ffn_up.weight", ff, width)
    matrix("blk.0.ffn_down.weight", width, ff)
    if arch == "qwen2":
        vector("blk.0.attn_q.bias", heads * head)
        vector("blk.0.attn_k.bias", kv_heads * head)
        vector("blk.0.attn_v.bias", kv_heads * head)
    if arch == "qwen3":
        vector("blk.0.attn_q_norm.weight", head)
        vector("blk.0.attn_k_norm.weight", head)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write_type_table():
    with open(os.path.join(HERE, "types.txt"), "w") as f:
        for t, (elements, size) in gguf.GGML_QUANT_SIZES.items():
            f.write(f"{t.name} {t.value} {elements} {size}\n")


def write_checksums(path):
    with open(os.path.join(HERE, "smollm2.txt"), "w") as f:
        for t in gguf.GGUFReader(path).tensors:
            x = gguf.quants.dequantize(t.data, t.tensor_type).astype("<f4")
            dims = "x".join(str(int(d)) for d in t.shape)
            f.write(f"{t.name} {t.tensor_type.name} {dims} {zlib.crc32(x.tobytes()):08x}\n")


if __name__ == "__main__":
    write_type_table()
    write_types(np.random.default_rng(SEED))
    for i, arch in enumerate(("llama", "qwen2", "qwen3")):
        write_model(np.random.default_rng(SEED + 1 + i), arch)
    if len(sys.argv) > 1:
        write_checksums(sys.argv[1])
