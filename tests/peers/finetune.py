#!/usr/bin/env python3
"""finetune.py - the fine-tuning of a GGUF model by PEFT and transformers, for comparisons with vktrain. No test needs it.

    python3 -m venv venv && venv/bin/pip install torch transformers peft gguf
    venv/bin/python finetune.py reference MODEL.gguf TEXT.jsonl OUT   logits, gradients and losses in f32 and f64
    venv/bin/python finetune.py interop MODEL.gguf OUT                our adapters, loaded by PEFT (see finetune.c)
    venv/bin/python finetune.py perplexity MODEL.gguf TEXT            perplexity of windows of 512 tokens
    venv/bin/python finetune.py speed MODEL.gguf [f32|bf16]           tokens a second, and the peak of memory
    venv/bin/python finetune.py answers MODEL.gguf TEXT.jsonl OUT     trains on questions, and then answers other questions

TEXT.jsonl has `question` and `answer` in each line, as gsm8k. `reference` writes OUT/reference.safetensors and the
folders OUT/zero (adapters as PEFT makes them) and OUT/random (the same A, and a random B). The program finetune_compare
(finetune.c) compares vktrain with OUT/reference.safetensors and these folders. docs/finetune.md has results. `reference`
needs a model of the architecture llama.
"""

import argparse
import json
import math
import os
import re
import resource
import time

import torch
import torch.nn.functional as F
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.models.llama import modeling_llama

TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
RANK, ALPHA = 8, 16
IGNORE = -100
SEED = 1


def exact_norm(self, x):
    """Llama's RMS norm without its conversion to float32."""
    return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


def exact_rope(self, x, position_ids):
    """Llama's rotary embedding in the type of x. The frequencies stay rounded to float32, as in vktrain."""
    angles = position_ids[:, :, None].to(x.dtype) * self.inv_freq.to(x.dtype)[None, None, :]
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos() * self.attention_scaling, angles.sin() * self.attention_scaling


def in_double():
    """Lets the RMS norms and rotary embeddings of Llama compute in the type of their input, instead of float32."""
    modeling_llama.LlamaRMSNorm.forward = exact_norm
    modeling_llama.LlamaRotaryEmbedding.forward = exact_rope


def load(path, dtype=torch.float32, attention="sdpa"):
    folder, name = os.path.split(os.path.abspath(path))
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32,
                                                 attn_implementation=attention)
    model.eval()
    return model.to(dtype)


def tokenizer_of(path):
    folder, name = os.path.split(os.path.abspath(path))
    return AutoTokenizer.from_pretrained(folder, gguf_file=name)


def adapted(model):
    torch.manual_seed(SEED)
    return get_peft_model(model, LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=TARGETS, lora_dropout=0.0,
                                            task_type="CAUSAL_LM"))


def adapters(model):
    """Returns the adapters' parameters by their names without PEFT's prefix."""
    return {n.replace("base_model.model.", "", 1).replace(".default", ""): p
            for n, p in model.named_parameters() if p.requires_grad}


def loss_of(model, ids, labels):
    """Returns the mean loss. Label t is the token that follows token t; -100 does not count."""
    logits = model(input_ids=ids, use_cache=False).logits
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE)


def examples(path):
    return [json.loads(line) for line in open(path, encoding="utf-8")]


def encode(tokenizer, example, context):
    """Returns ids and labels of a question and its answer: only the answer counts."""
    ask = tokenizer.apply_chat_template([{"role": "user", "content": example["question"]}], tokenize=False,
                                        add_generation_prompt=True)
    before = tokenizer(ask, add_special_tokens=False)["input_ids"]
    after = tokenizer(example["answer"] + "<|im_end|>", add_special_tokens=False)["input_ids"]
    ids = (before + after)[:context + 1]
    counts = ([False] * len(before) + [True] * len(after))[:context + 1]
    labels = [t if c else IGNORE for t, c in zip(ids[1:], counts[1:])]
    ids = ids[:-1]
    pad = context - len(ids)
    return ids + [tokenizer.eos_token_id] * pad, labels + [IGNORE] * pad


def batches(tokenizer, lines, steps, batch, context):
    """Returns ids and labels (steps, batch, context) of the first examples that have an answer within the context."""
    rows = []
    for e in lines:
        if len(rows) == steps * batch:
            break
        row = encode(tokenizer, e, context)
        if any(t != IGNORE for t in row[1]):
            rows.append(row)
    ids = torch.tensor([r[0] for r in rows]).reshape(steps, batch, context)
    labels = torch.tensor([r[1] for r in rows]).reshape(steps, batch, context)
    return ids, labels


def set_b(model, seed):
    """Fills each B with normal random numbers of deviation 0.02, so that the gradients of A are not 0."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in adapters(model).items():
            if "lora_B" in name:
                p.copy_(0.02 * torch.randn(p.shape, generator=g, dtype=torch.float32))


def rising_and_falling(steps):
    """Returns the factor of the learning rate at each step, the same as in vkt-lora without --schedule. The factor rises from 1/100
    to 1 over a twentieth of the steps (at most 1,000 steps). Then it falls to 1/10 along a cosine."""
    rise = min(steps // 20, 1000)
    return [0.01 + 0.99 * t / rise if t < rise else 0.1 + 0.9 * (1 + math.cos(math.pi * (t - rise) / (steps - rise))) / 2
            for t in range(steps)]


def trajectory(model, ids, labels, lr, factors=None):
    optimizer = torch.optim.Adam(adapters(model).values(), lr=lr)
    losses = []
    for step, (x, t) in enumerate(zip(ids, labels)):
        optimizer.param_groups[0]["lr"] = lr * (factors[step] if factors else 1)
        optimizer.zero_grad()
        loss = loss_of(model, x, t)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        print(f"step {len(losses)}: {losses[-1]:.6f}", flush=True)
    return torch.tensor(losses, dtype=torch.float64)


def gradients(model, ids, labels, name, out):
    """Adds the gradients of one batch to `out`."""
    loss_of(model, ids, labels).backward()
    for n, p in adapters(model).items():
        out[f"{name}.grad.{n}"] = p.grad.clone()
        p.grad = None


def more_gradients(a, ids, labels, start, out):
    """Adds float32 gradients with other roundings to `out`: with other kernels of attention, and with one thread."""
    for name, attention, threads in (("f32_eager", "eager", 0), ("f32_thread", "sdpa", 1)):
        model = adapted(load(a.model, attention=attention))
        for n, p in adapters(model).items():
            p.data = start[n].clone()
        set_b(model, SEED)
        before = torch.get_num_threads()
        torch.set_num_threads(threads or before)
        gradients(model, ids, labels, name, out)
        torch.set_num_threads(before)


def run_reference(a):
    tokenizer = tokenizer_of(a.model)
    ids, labels = batches(tokenizer, examples(a.text), a.steps, a.batch, a.context)
    words = [torch.tensor([tokenizer(e["question"], add_special_tokens=False)["input_ids"]])
             for e in examples(a.text)[-20:]]
    out = {"ids": ids.int(), "labels": labels.int(), "lr": torch.tensor([a.lr])}
    for i, w in enumerate(words):
        out[f"prompt.{i}"] = w[0].int()
    for dtype, name in ((torch.float32, "f32"), (torch.float64, "f64")):
        if dtype == torch.float64:
            in_double()
        model = load(a.model, dtype)
        assert model.config.model_type == "llama", "in_double knows llama alone"
        with torch.no_grad():
            out[f"{name}.logits"] = torch.stack([model(input_ids=w).logits[0, -1] for w in words])
        model = adapted(model)
        if dtype == torch.float64:
            for n, p in adapters(model).items():  # the float64 run starts with the initial adapters of the float32 run
                p.data = start[n].double()
        else:
            model.save_pretrained(os.path.join(a.out, "zero"))
            start = {n: p.detach().clone() for n, p in adapters(model).items()}
        set_b(model, SEED)
        if dtype == torch.float32:
            model.save_pretrained(os.path.join(a.out, "random"))
        gradients(model, ids[0], labels[0], name, out)
        with torch.no_grad():
            out[f"{name}.adapted_logits"] = torch.stack([model(input_ids=w).logits[0, -1] for w in words])
        for n, p in adapters(model).items():
            p.data = start[n].to(dtype).clone()
        out[f"{name}.losses"] = trajectory(model, ids, labels, a.lr)
        del model
        if dtype == torch.float32:
            more_gradients(a, ids[0], labels[0], start, out)
    save_file({k: v.contiguous() for k, v in out.items()}, os.path.join(a.out, "reference.safetensors"))
    print("loss of the last step", out["f32.losses"][-1].item(), out["f64.losses"][-1].item())


def run_interop(a):
    """Loads the adapters that finetune_compare has saved, and compares the logits of the prompts."""
    ours = torch.from_file(os.path.join(a.out, "ours.f32"), size=os.path.getsize(os.path.join(a.out, "ours.f32")) // 4)
    prompts = load_file(os.path.join(a.out, "reference.safetensors"))
    model = PeftModel.from_pretrained(load(a.model), os.path.join(a.out, "ours"))
    ours = ours.reshape(20, -1)
    with torch.no_grad():
        z = torch.stack([model(input_ids=prompts[f"prompt.{i}"][None].long()).logits[0, -1] for i in range(20)])
    print(f"our adapters in PEFT: logits differ by {(z - ours).abs().max() / z.abs().max():.2e} of the largest")


def run_perplexity(a):
    tokenizer = tokenizer_of(a.model)
    ids = tokenizer(open(a.text, encoding="utf-8").read(), add_special_tokens=False)["input_ids"]
    model = load(a.model)
    total, count = 0.0, 0
    with torch.no_grad():
        for i in range(0, len(ids), a.context):
            w = torch.tensor([ids[i:i + a.context]])
            if w.shape[1] < 2:
                continue
            z = model(input_ids=w, use_cache=False).logits[0, :-1]
            total += F.cross_entropy(z, w[0, 1:], reduction="sum").item()
            count += w.shape[1] - 1
    print(f"perplexity {torch.exp(torch.tensor(total / count, dtype=torch.float64)).item():.6f}  tokens {count}")


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_speed(a):
    dtype = torch.bfloat16 if a.dtype == "bf16" else torch.float32
    model = adapted(load(a.model, dtype))
    model.train()
    optimizer = torch.optim.Adam(adapters(model).values(), lr=2e-4)
    ids = torch.randint(0, 40000, (1, a.context), generator=torch.Generator().manual_seed(SEED))
    labels = torch.roll(ids, -1)
    times = []
    for _ in range(a.steps):
        start = time.perf_counter()
        optimizer.zero_grad()
        loss_of(model, ids, labels).backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    times = sorted(times[2:])
    step = times[len(times) // 2]
    print(f"{a.dtype}: {a.context / step:.1f} tokens/s ({1000 * step:.0f} ms a step, median of {len(times)}), "
          f"peak {peak_mib():.0f} MiB")


def run_answers(a):
    tokenizer = tokenizer_of(a.model)
    tokenizer.padding_side = "left"
    model = load(a.model)
    model = PeftModel.from_pretrained(model, a.adapter) if a.adapter else adapted(model)
    lines = examples(a.text)
    if a.epochs:
        ids, labels = batches(tokenizer, lines[:-a.answers], a.problems // a.batch, a.batch, a.context)
        ids, labels = ids.repeat(a.epochs, 1, 1), labels.repeat(a.epochs, 1, 1)
        trajectory(model, ids, labels, a.lr, rising_and_falling(len(ids)) if a.schedule == "cosine" else None)
        model.save_pretrained(a.out)
    torch.manual_seed(SEED)
    form = re.compile(r"#### (-?[\d,.]*\d)\s*$")
    formed, right, cut = 0, 0, 0
    model.eval()
    unseen = lines[-a.answers:]
    for i in range(0, len(unseen), 8):
        asks = [tokenizer.apply_chat_template([{"role": "user", "content": e["question"]}], tokenize=False,
                                              add_generation_prompt=True) for e in unseen[i:i + 8]]
        x = tokenizer(asks, return_tensors="pt", padding=True, add_special_tokens=False)
        chosen = {"do_sample": True, "temperature": a.temperature, "top_k": 0} if a.temperature else {"do_sample": False}
        y = model.generate(**x, max_new_tokens=a.words, pad_token_id=tokenizer.eos_token_id, **chosen)
        for e, ids in zip(unseen[i:i + 8], y[:, x["input_ids"].shape[1]:]):
            found = form.search(tokenizer.decode(ids, skip_special_tokens=True))
            formed += found is not None
            cut += tokenizer.eos_token_id not in ids
            right += found is not None and found[1].replace(",", "") == form.search(e["answer"])[1].replace(",", "")
    print(f"answers {len(unseen)}  in the form {formed}  right {right}  cut {cut}")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    sub = p.add_subparsers(required=True)
    s = sub.add_parser("reference")
    s.set_defaults(run=run_reference)
    for name in ("model", "text", "out"):
        s.add_argument(name)
    s.add_argument("--steps", type=int, default=50)
    s.add_argument("--batch", type=int, default=1)
    s.add_argument("--context", type=int, default=128)
    s.add_argument("--lr", type=float, default=2e-4)
    s = sub.add_parser("interop")
    s.set_defaults(run=run_interop)
    for name in ("model", "out"):
        s.add_argument(name)
    s = sub.add_parser("perplexity")
    s.set_defaults(run=run_perplexity)
    for name in ("model", "text"):
        s.add_argument(name)
    s.add_argument("--context", type=int, default=512)
    s = sub.add_parser("speed")
    s.set_defaults(run=run_speed)
    s.add_argument("model")
    s.add_argument("dtype", nargs="?", choices=("f32", "bf16"), default="f32")
    s.add_argument("--context", type=int, default=512)
    s.add_argument("--steps", type=int, default=8)
    s = sub.add_parser("answers")
    s.set_defaults(run=run_answers)
    for name in ("model", "text", "out"):
        s.add_argument(name)
    s.add_argument("--adapter", help="begin with this folder of PEFT; with --epochs 0, only answer")
    s.add_argument("--problems", type=int, default=1000)
    s.add_argument("--epochs", type=int, default=1)
    s.add_argument("--answers", type=int, default=200)
    s.add_argument("--words", type=int, default=256)
    s.add_argument("--temperature", type=float, default=0, help="0: always the likeliest token")
    s.add_argument("--batch", type=int, default=4)
    s.add_argument("--context", type=int, default=320)
    s.add_argument("--lr", type=float, default=2e-4)
    s.add_argument("--schedule", choices=("constant", "cosine"), default="cosine")
    a = p.parse_args()
    a.run(a)


if __name__ == "__main__":
    main()
