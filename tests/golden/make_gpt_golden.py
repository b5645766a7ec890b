#!/usr/bin/env python3
"""Records gpt.safetensors: 20 steps of a small transformer in PyTorch, in float64 and in float32. Format: README.md.

    python3 tests/golden/make_gpt_golden.py             (seconds)

Initial weights and tokens come from integer arithmetic (`draw`, `samples`), so the file does not store them.
"""
import math
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import safetensors_file
from make_mnist_golden import deviation, mix

SEED, LR, MIN_LR, WARMUP, STEPS = 1, 3e-3, 3e-4, 4, 20
ROWS, BATCH = 22, 6  # four steps an epoch, the last one of 4 rows
VOCABULARY, CONTEXT, LAYERS, HEADS, WIDTH = 40, 16, 2, 4, 32
# Variants of the float32 run. They show how much rounding changes the results (README.md).
VARIANTS = ("no_mkldnn", "reversed_rows", "shuffled_rows", "written_out")


def samples(first, count):
    """Returns rows of CONTEXT + 1 tokens. A hash of i gives the first token of row i and a step from 1 to 3. Each later
    token is the token before it plus this step, modulo VOCABULARY."""
    u = np.uint32
    i, t = np.ogrid[first:first + count, 0:CONTEXT + 1]
    h = mix(i.astype(u) + u(0x10000000))
    return ((h + t.astype(u) * (u(1) + (h >> u(8)) % u(3))) % u(VOCABULARY)).astype(np.int64)


def batch(first, rows, variant):
    ids = torch.from_numpy(samples(first, rows))
    if variant == "reversed_rows":
        return ids.flip(0)
    if variant == "shuffled_rows":
        return ids[torch.randperm(rows, generator=torch.Generator().manual_seed(first))]
    return ids


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (p.view(b, t, HEADS, d // HEADS).transpose(1, 2) for p in self.c_attn(x).split(d, 2))
        scores = (q @ k.transpose(2, 3)) / math.sqrt(d // HEADS)
        scores = scores.masked_fill(torch.ones(t, t).tril() == 0, -math.inf)
        return self.c_proj((F.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, t, d))


class Norm(nn.LayerNorm):
    written_out = False

    def forward(self, x):
        if not Norm.written_out:
            return super().forward(x)
        x = x - x.mean(-1, keepdim=True)
        return x * ((x * x).mean(-1, keepdim=True) + self.eps).rsqrt() * self.weight + self.bias


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = Norm(WIDTH), Attention(), Norm(WIDTH)
        self.mlp = nn.ModuleDict(dict(c_fc=nn.Linear(WIDTH, 4 * WIDTH), c_proj=nn.Linear(4 * WIDTH, WIDTH)))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp.c_proj(F.gelu(self.mlp.c_fc(self.ln_2(x))))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = nn.ModuleDict(dict(wte=nn.Embedding(VOCABULARY, WIDTH), wpe=nn.Embedding(CONTEXT, WIDTH),
                                              h=nn.ModuleList(Block() for _ in range(LAYERS)), ln_f=Norm(WIDTH)))
        self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        t = self.transformer
        x = t.wte(ids) + t.wpe(torch.arange(ids.shape[1]))
        for block in t.h:
            x = block(x)
        return self.lm_head(t.ln_f(x))


def draw(model):
    """Sets each element of all parameters by a hash of the tensor's index and the element's index. The hash gives a value
    between -1/8 and 1/8. The weights of norms are this value plus 1."""
    for k, (name, p) in enumerate(model.named_parameters()):
        h = mix(np.uint32(SEED << 24 | k << 16) + np.arange(p.numel(), dtype=np.uint32)) >> np.uint32(8)
        w = (h.astype(np.float32) - np.float32(1 << 23)) * np.float32(0.125 / (1 << 23))
        if ".ln_" in name and p.dim() == 1 and name.endswith("weight"):
            w += np.float32(1)
        p.data.copy_(torch.from_numpy(w).view(p.shape))


def optimizer_of(model):
    """Returns optimizer and schedule. Only matrices have weight decay. The rate warms up, then falls along a cosine."""
    groups = [dict(params=[p for p in model.parameters() if p.dim() >= 2], weight_decay=0.1),
              dict(params=[p for p in model.parameters() if p.dim() < 2], weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=(0.9, 0.95))
    rise = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=WARMUP)
    fall = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS - WARMUP, MIN_LR)
    return optimizer, torch.optim.lr_scheduler.SequentialLR(optimizer, [rise, fall], [WARMUP])


def snapshot(named):
    """Returns name -> all elements (float64, exact)."""
    return {name: p.detach().double().numpy().reshape(-1).copy() for name, p in named}


def without_key_bias(params):
    """Returns params, but of each c_attn.bias only the first third: the bias of the queries. The second third is the bias of the
    keys. It adds the same number to all scores of a query, so its gradient is 0 except for rounding. Adam divides this rounding by
    itself, so the result is random. The last third, the bias of the values, is left out, too."""
    return {name: p[:WIDTH] if name.endswith("c_attn.bias") else p for name, p in params.items()}


def train(dtype, variant=None):
    """Returns (losses, rates, final parameters, gradients of the first step)."""
    model = Network()
    draw(model)
    model.to(dtype)
    optimizer, schedule = optimizer_of(model)
    losses, rates, first = [], [], None
    Norm.written_out = variant == "written_out"
    with torch.backends.mkldnn.flags(enabled=variant != "no_mkldnn"):
        for s in range(STEPS):
            row = s * BATCH % (BATCH * math.ceil(ROWS / BATCH))
            ids = batch(row, min(BATCH, ROWS - row), variant)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(ids[:, :-1]).transpose(1, 2), ids[:, 1:])
            loss.backward()
            first = first or snapshot((name, p.grad) for name, p in model.named_parameters())
            losses.append(loss.item())
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
    return np.array(losses), np.array(rates), without_key_bias(snapshot(model.named_parameters())), first


def main():
    torch.set_num_threads(1)
    loss64, rates, final64, grad64 = train(torch.float64)
    runs = [train(torch.float32, v) for v in (None,) + VARIANTS]
    t = {"final64/" + name: value for name, value in final64.items()}
    t.update({"grad64/" + name: value for name, value in grad64.items()})
    t["loss64"], t["lr"] = loss64, rates
    t["loss_dev"] = np.stack([np.abs(loss - loss64) for loss, *_ in runs])
    t["final_dev"] = np.stack([deviation(final, final64) for *_, final, _ in runs])
    t["grad_dev"] = np.stack([deviation(grad, grad64) for *_, grad in runs])
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpt.safetensors")
    metadata = {"parameters": " ".join(final64), "runs": " ".join(("default",) + VARIANTS), "torch": torch.__version__,
                "numpy": np.__version__}
    print(path, safetensors_file.write(path, t, metadata), "bytes")
    np.set_printoptions(precision=2, linewidth=120)
    print("loss", loss64, "\nrates", rates, "\nloss deviations", t["loss_dev"].max(1))
    print("final", t["final_dev"].max(0), "\ngradients", t["grad_dev"].max(0))


if __name__ == "__main__":
    main()
