#!/usr/bin/env python3
"""Records peft/: a folder of PEFT, written by peft's save_pretrained, with an adapter of a tiny random Llama.

The model has 2 blocks, width 12, feed-forward width 20, 3 query heads and 1 key/value head. The width of a
head is 4. The adapter has rank 2, lora_alpha 6, dropout 0.05, on q_proj, v_proj and down_proj. The tensors are sorted by
name. Element i of tensor t is ((37 t + 11 i) mod 61 - 30) / 64, so a test can compute it.
"""
import os
import shutil

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peft")


def main():
    model = LlamaForCausalLM(LlamaConfig(hidden_size=12, intermediate_size=20, num_hidden_layers=2,
                                         num_attention_heads=3, num_key_value_heads=1, vocab_size=32))
    config = LoraConfig(r=2, lora_alpha=6, lora_dropout=0.05, target_modules=["q_proj", "v_proj", "down_proj"],
                        task_type="CAUSAL_LM", base_model_name_or_path="tiny")
    peft = get_peft_model(model, config)
    with torch.no_grad():
        named = sorted((n, p) for n, p in peft.named_parameters() if "lora_" in n)
        for t, (_, p) in enumerate(named):
            i = torch.arange(p.numel())
            p.copy_((((37 * t + 11 * i) % 61 - 30) / 64).reshape(p.shape))
    peft.save_pretrained(HERE)
    for extra in ("README.md",):
        if os.path.exists(os.path.join(HERE, extra)):
            os.remove(os.path.join(HERE, extra))


if __name__ == "__main__":
    shutil.rmtree(HERE, ignore_errors=True)
    main()
