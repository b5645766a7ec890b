#!/usr/bin/env python3
"""Records resnet.safetensors: 20 steps of ResNet-8 (CIFAR form) in PyTorch, in float64 and in float32. Format: README.md.

    python3 tests/golden/make_resnet_golden.py             (seconds)
    python3 tests/golden/make_resnet_golden.py search N    (searches the first N seeds for SEED; README.md has the reason)

Initial weights and images come from integer arithmetic (`draw`, `samples`), so the file does not store them.
"""
import math
import os
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import safetensors_file
from make_mnist_golden import ACROSS, DOWN, VARIANTS, deviation, mix

SEED = 31
LR, ROWS, BATCH, STEPS, SIDE = 0.05, 37, 8, 20, 12  # five steps an epoch, the last one of 5 rows
KEPT = 128  # the file has the first KEPT elements of each tensor
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def samples(first, count):
    """Returns images (count, 3, SIDE, SIDE) u8 and labels. An image is a triangle wave plus noise, as in
    make_mnist_golden.py. The wave of channel c is shifted by 21 c / 64 of its period."""
    u = np.uint32
    i, c, y, x = np.ogrid[first:first + count, 0:3, 0:SIDE, 0:SIDE]
    i, c, y, x = i.astype(u), c.astype(u), y.astype(u), x.astype(u)
    h = mix(i + u(0x10000000))
    label = (h >> u(4)) % u(10)
    phase = (ACROSS[label] * x + DOWN[label] * y + u(21) * c + (h >> u(20))) % u(64)
    wave = np.where(phase < 32, phase, u(63) - phase)
    noise = mix(((i * u(3) + c) * u(SIDE) + y) * u(SIDE) + x) >> u(25)
    return (u(4) * wave + noise).astype(np.uint8), label.reshape(-1).astype(np.int64)


def batch(first, rows, dtype, variant):
    pixels, labels = samples(first, rows)
    x, t = torch.from_numpy(pixels).to(dtype), torch.from_numpy(labels)
    mean, std = (torch.tensor(v, dtype=torch.float64).view(1, 3, 1, 1) for v in (MEAN, STD))
    if variant == "scale_and_shift":
        x = x * (1 / (255 * std)).to(dtype) - (mean / std).to(dtype)
    else:
        x = (x / 255 - mean.to(dtype)) / std.to(dtype)
    if variant == "reversed_rows":
        return x.flip(0), t.flip(0)
    if variant == "shuffled_rows":
        order = torch.randperm(rows, generator=torch.Generator().manual_seed(first))
        return x[order], t[order]
    return x, t


class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.stride, self.more = stride, out - channels

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        x = F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, self.more // 2, self.more // 2))
        return F.relu(y + x)


class Network(nn.Module):
    def __init__(self, n=1):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(*[Block(16, 16, 1) for _ in range(n)])
        self.layer2 = nn.Sequential(Block(16, 32, 2), *[Block(32, 32, 1) for _ in range(n - 1)])
        self.layer3 = nn.Sequential(Block(32, 64, 2), *[Block(64, 64, 1) for _ in range(n - 1)])
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(F.relu(self.bn1(self.conv1(x))))))
        return self.linear(x.mean((2, 3)))


def draw(model, seed):
    """Sets convolutions and the last layer by a hash of the seed, the tensor's index and the element's index.
    Norms keep their initial values."""
    for k, (name, p) in enumerate(model.named_parameters()):
        if "bn" in name:
            continue
        bound = math.sqrt(6 / (9 * p.shape[0])) if p.dim() == 4 else 0.125
        h = mix(np.uint32(seed << 24 | k << 16) + np.arange(p.numel(), dtype=np.uint32)) >> np.uint32(8)
        w = (h.astype(np.float32) - np.float32(1 << 23)) * np.float32(bound / (1 << 23))
        p.data.copy_(torch.from_numpy(w).view(p.shape))


def snapshot(named):
    """Returns name -> the first KEPT elements (float64, exact)."""
    return {name: p.detach().double().numpy().reshape(-1)[:KEPT].copy() for name, p in named}


def train(dtype, variant=None, seed=SEED):
    """Returns (losses, final parameters and statistics, gradients of the first step)."""
    model = Network()
    draw(model, seed)
    model.to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9, weight_decay=1e-4)
    losses, first = [], None
    with torch.backends.mkldnn.flags(enabled=variant != "no_mkldnn"):
        for s in range(STEPS):
            row = s * BATCH % (BATCH * math.ceil(ROWS / BATCH))
            x, t = batch(row, min(BATCH, ROWS - row), dtype, variant)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), t)
            loss.backward()
            first = first or snapshot((name, p.grad) for name, p in model.named_parameters())
            optimizer.step()
            losses.append(loss.item())
    state = [(name, p) for name, p in model.state_dict().items() if "tracked" not in name]
    return np.array(losses), snapshot(state), first


def margin(seed):
    """Returns the smallest magnitude of an input of a ReLU, over all steps in float64. Near 0, rounding would decide whether a
    gradient passes. (For comparison: at first, outputs of a norm have a standard deviation of 1.)"""
    relu, least = F.relu, [math.inf]

    def watched(x):
        least[0] = min(least[0], x.abs().min().item())
        return relu(x)

    F.relu = watched
    train(torch.float64, seed=seed)
    F.relu = relu
    return least[0]


def main():
    torch.set_num_threads(1)
    loss64, final64, grad64 = train(torch.float64)
    runs = [train(torch.float32, v) for v in (None,) + VARIANTS]
    t = {"final64/" + name: value for name, value in final64.items()}
    t.update({"grad64/" + name: value for name, value in grad64.items()})
    t["loss64"] = loss64
    t["loss_dev"] = np.stack([np.abs(loss - loss64) for loss, _, _ in runs])
    t["final_dev"] = np.stack([deviation(final, final64) for _, final, _ in runs])
    t["grad_dev"] = np.stack([deviation(grad, grad64) for _, _, grad in runs])
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "resnet.safetensors")
    metadata = {"values": " ".join(final64), "gradients": " ".join(grad64), "runs": " ".join(("default",) + VARIANTS),
                "torch": torch.__version__, "numpy": np.__version__}
    print(path, safetensors_file.write(path, t, metadata), "bytes")
    np.set_printoptions(precision=2, linewidth=120)
    print("loss", loss64, "\nloss deviations", t["loss_dev"].max(1), "\nfinal", t["final_dev"].max(1), "\ngradients",
          t["grad_dev"].max(1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["search"]:
        print(sorted(((margin(seed), seed) for seed in range(int(sys.argv[2]))), reverse=True)[:8])
    else:
        main()
