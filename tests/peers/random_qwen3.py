#!/usr/bin/env python3
"""random_qwen3.py OUT.gguf [BLOCKS] - writes a GGUF file of Qwen3-1.7B's shape with random Q8_0 weights, to measure speed.

Needs gguf and numpy of PyPI. With all 28 blocks of the network, the file has 1.8 GB. It has no tokenizer.
"""

import sys

import gguf
import numpy

WIDTH, FEED_FORWARD, HEADS, KV_HEADS, HEAD, VOCABULARY = 2048, 6144, 16, 8, 128, 151936
random = numpy.random.default_rng(1)


def add(writer, name, rows, columns):
    """Adds a matrix of Q8_0: quantized blocks of a float16 scale and 32 signed bytes. The standard deviation is about 0.02."""
    blocks = numpy.empty((rows, columns // 32, 34), dtype=numpy.uint8)
    blocks[:, :, :2] = numpy.frombuffer(numpy.float16(0.02 / 73).tobytes(), dtype=numpy.uint8)
    blocks[:, :, 2:] = random.integers(1, 256, size=(rows, columns // 32, 32), dtype=numpy.uint8)
    writer.add_tensor(name, blocks.reshape(rows, columns // 32 * 34), raw_dtype=gguf.GGMLQuantizationType.Q8_0)


def main():
    blocks = int(sys.argv[2]) if len(sys.argv) > 2 else 28
    w = gguf.GGUFWriter(sys.argv[1], "qwen3")
    w.add_name("random")
    w.add_block_count(blocks)
    w.add_context_length(40960)
    w.add_embedding_length(WIDTH)
    w.add_feed_forward_length(FEED_FORWARD)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV_HEADS)
    w.add_key_length(HEAD)
    w.add_value_length(HEAD)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_rope_freq_base(1e6)
    add(w, "token_embd.weight", VOCABULARY, WIDTH)
    w.add_tensor("output_norm.weight", numpy.ones(WIDTH, dtype=numpy.float32))
    for i in range(blocks):
        for name, n in (("attn_norm", WIDTH), ("ffn_norm", WIDTH), ("attn_q_norm", HEAD), ("attn_k_norm", HEAD)):
            w.add_tensor(f"blk.{i}.{name}.weight", numpy.ones(n, dtype=numpy.float32))
        for name, rows, columns in (("attn_q", HEADS * HEAD, WIDTH), ("attn_k", KV_HEADS * HEAD, WIDTH),
                                    ("attn_v", KV_HEADS * HEAD, WIDTH), ("attn_output", WIDTH, HEADS * HEAD),
                                    ("ffn_gate", FEED_FORWARD, WIDTH), ("ffn_up", FEED_FORWARD, WIDTH),
                                    ("ffn_down", WIDTH, FEED_FORWARD)):
            add(w, f"blk.{i}.{name}.weight", rows, columns)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


if __name__ == "__main__":
    main()
