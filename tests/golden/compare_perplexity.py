#!/usr/bin/env python3
"""Computes the perplexity of a text with transformers, in float32. The definition is that of vkt-lora --perplexity.

    python compare_perplexity.py MODEL.gguf TEXT CONTEXT [ADAPTER]     ADAPTER: a folder that PEFT or vkt-lora wrote

It needs torch, transformers, gguf and peft of PyPI. No test runs it.
"""
import math
import os
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main(path, text, context, adapter=None):
    folder, file = os.path.split(os.path.abspath(path))
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)
    if adapter:
        from peft import PeftModel
        model = PeftModel.from_pretrained(model, adapter)
    model.eval()
    with open(text, encoding="utf-8", errors="replace", newline="") as f:  # keeps the ends of lines as they are
        ids = tokenizer(f.read(), add_special_tokens=False)["input_ids"]
    total, counted = 0.0, 0
    with torch.no_grad():
        for at in range(0, len(ids), context):
            window = torch.tensor([ids[at:at + context]])
            n = window.shape[1] - 1
            if n > 0:
                total += model(window, labels=window).loss.item() * n
                counted += n
    print(f"perplexity {math.exp(total / counted):.4f} ({counted} tokens)")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:5])
