#!/usr/bin/env python3
"""Records mnist_cnn.safetensors: 50 steps of the MNIST network in PyTorch, in float64 and in float32. Format: README.md.

    python3 tests/golden/make_mnist_golden.py            (minutes: PyTorch's float64 convolutions are slow)
    python3 tests/golden/make_mnist_golden.py partial    (seconds: mnist_partial.safetensors, four steps of fewer rows)

All runs start from PyTorch's default random float32 weights for SEED. No run has dropout. All runs of a file use the same
batches. The images come from integer arithmetic (see `samples`), so the file does not store them. README.md explains the choice
of SEED and the other runs.
"""
import os
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import safetensors_file

SEED, LR, STEPS, BATCH, SIDE = 102, 0.01, 50, 128, 28
FULL = [(BATCH * s, BATCH) for s in range(STEPS)]  # (first sample, rows) of each step
# The first sample, 3780, was chosen among multiples of 60, because with it no pooling window is near a tie. In float64
# the two largest elements of each window differ by at least 1.4e-6 of the tensor's largest element. So rounding does
# not decide which of the two is the maximum.
PARTIAL = [(3780, 16), (3796, 16), (3812, 12), (3824, 16)]
PARTIAL_ROWS = 8  # the partial file has only the first PARTIAL_ROWS output channels of conv2.weight
# Variants of the float32 run. They show how much rounding changes the results (README.md).
VARIANTS = ("no_mkldnn", "reversed_rows", "shuffled_rows", "scale_and_shift")

# An image of class k has stripes. The phase of the wave at the pixel (x, y) is ACROSS[k] * x + DOWN[k] * y + a number that
# depends on the sample. The unit is 1/64 of a period.
ACROSS = np.array([9, 0, 7, 7, 14, 4, 14, 4, 12, 12], np.uint32)
DOWN = np.array([0, 9, 7, 57, 4, 14, 60, 50, 12, 52], np.uint32)


def mix(v):
    """Hashes a u32 in two rounds: h = h * (an odd number) modulo 2^32, then h ^= h >> (15 or 13)."""
    h = v * np.uint32(2654435761)
    h ^= h >> np.uint32(15)
    h = h * np.uint32(2246822519)
    return h ^ (h >> np.uint32(13))


def samples(first, count):
    """Returns images (count, 28, 28) u8 and labels (count) of samples first .. first + count - 1. An image is a
    triangle wave of 0 to 124 plus noise of 0 to 127. The class gives direction and frequency of the wave. All
    arithmetic is in wrapping u32."""
    u = np.uint32
    i = np.arange(first, first + count, dtype=u)[:, None, None]
    y, x = np.arange(SIDE, dtype=u)[None, :, None], np.arange(SIDE, dtype=u)[None, None, :]
    h = mix(i + u(0x10000000))
    label = (h >> u(4)) % u(10)
    phase = (ACROSS[label] * x + DOWN[label] * y + (h >> u(20))) % u(64)
    wave = np.where(phase < 32, phase, u(63) - phase)
    noise = mix(i * u(SIDE * SIDE) + y * u(SIDE) + x) >> u(25)
    return (u(4) * wave + noise).astype(np.uint8), label.reshape(-1).astype(np.int64)


def batch(first, rows, dtype, variant):
    pixels, labels = samples(first, rows)
    x, t = torch.from_numpy(pixels).to(dtype).unsqueeze(1), torch.from_numpy(labels)
    x = x * (1 / (255 * 0.3081)) - 0.1307 / 0.3081 if variant == "scale_and_shift" else (x / 255 - 0.1307) / 0.3081
    if variant == "reversed_rows":
        return x.flip(0), t.flip(0)
    if variant == "shuffled_rows":
        order = torch.randperm(rows, generator=torch.Generator().manual_seed(first))
        return x[order], t[order]
    return x, t


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 5)
        self.fc1, self.fc2 = nn.Linear(64, 32), nn.Linear(32, 10)

    def forward(self, x):  # no ReLU after the convolutions
        x = F.max_pool2d(self.conv1(x), 2)
        x = F.max_pool2d(self.conv2(x), 2)
        x = F.adaptive_max_pool2d(x, 1).flatten(1)
        return self.fc2(F.relu(self.fc1(x)))


def snapshot(model, part=lambda p: p):
    """Returns a dict from the name of each parameter p to part(p), as a float64 array. The conversion is exact."""
    return {name: part(p).detach().double().numpy().copy() for name, p in model.named_parameters()}


def train(dtype, steps, variant=None):
    """Returns (losses, final parameters, gradients of the first step)."""
    torch.manual_seed(SEED)
    model = Network().to(dtype)  # PyTorch generates the weights in float32; the conversion to float64 is exact
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)
    losses, first = [], None
    with torch.backends.mkldnn.flags(enabled=variant != "no_mkldnn"):
        for sample, rows in steps:
            x, t = batch(sample, rows, dtype, variant)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), t)
            loss.backward()
            first = first or snapshot(model, lambda p: p.grad)
            optimizer.step()
            losses.append(loss.item())
    return np.array(losses), snapshot(model), first


def deviation(a, b):
    """Returns the largest absolute difference of each parameter, in the order of the network."""
    return np.array([np.abs(a[name] - b[name]).max() for name in a])


def cut(params):
    return {name: p[:PARTIAL_ROWS] if name == "conv2.weight" else p for name, p in params.items()}


def main():
    torch.set_num_threads(2)
    torch.manual_seed(SEED)
    init = snapshot(Network())
    assert sum(p.size for p in init.values()) == 53994
    loss64, final64, grad64 = train(torch.float64, FULL)
    loss32, final32, grad32 = train(torch.float32, FULL)
    others = [train(torch.float32, FULL, v) for v in VARIANTS]

    t = {}
    for name in init:
        t["init/" + name] = init[name].astype(np.float32)
        t["grad64/" + name] = grad64[name]
        t["final64/" + name] = final64[name]
        t["final32/" + name] = final32[name].astype(np.float32)
    t.update({"loss64": loss64, "loss32": loss32})
    t.update({"grad32_dev": deviation(grad32, grad64), "final32_dev": deviation(final32, final64)})
    t["others/loss_dev"] = np.stack([np.abs(loss - loss64) for loss, _, _ in others])
    t["others/final_dev"] = np.stack([deviation(final, final64) for _, final, _ in others])
    t["others/grad_dev"] = np.stack([deviation(grad, grad64) for _, _, grad in others])
    metadata = {"parameters": " ".join(init), "others": " ".join(VARIANTS), "seed": str(SEED), "torch": torch.__version__,
                "numpy": np.__version__}
    write("mnist_cnn.safetensors", t, metadata)
    report(t)


def main_partial():
    torch.set_num_threads(2)
    loss64, final64, _ = train(torch.float64, PARTIAL)
    runs = [train(torch.float32, PARTIAL, v) for v in (None,) + VARIANTS]
    t = {"final64/" + name: np.ascontiguousarray(value) for name, value in cut(final64).items()}
    t["loss64"] = loss64
    t["loss_dev"] = np.stack([np.abs(loss - loss64) for loss, _, _ in runs])
    t["final_dev"] = np.stack([deviation(cut(final), cut(final64)) for _, final, _ in runs])
    write("mnist_partial.safetensors", t, {"runs": " ".join(("default",) + VARIANTS), "seed": str(SEED),
                                           "torch": torch.__version__, "numpy": np.__version__})
    print(t["loss_dev"], t["final_dev"], sep="\n")


def write(name, t, metadata):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    print(path, safetensors_file.write(path, t, metadata), "bytes")


def report(t):
    """Prints the numbers of README.md: the losses, the deviations of float32, and the comparison with the other float32 runs."""
    np.set_printoptions(precision=2, linewidth=120)
    dev = np.abs(t["loss32"] - t["loss64"])
    print("loss", t["loss64"][[0, 4, 9, 19, 29, 39, 49]], "\nloss deviation", dev)
    print("final deviation", t["final32_dev"], "\ngradient deviation", t["grad32_dev"])
    for k, name in enumerate(VARIANTS):
        print("%-16s / default: losses %.1f (%d of %d above 4), parameters %.1f, gradients %.1f" %
              (name, (t["others/loss_dev"][k] / dev).max(), (t["others/loss_dev"][k] > 4 * dev).sum(), STEPS,
               (t["others/final_dev"][k] / t["final32_dev"]).max(), (t["others/grad_dev"][k] / t["grad32_dev"]).max()))


if __name__ == "__main__":
    main_partial() if sys.argv[1:] == ["partial"] else main()
