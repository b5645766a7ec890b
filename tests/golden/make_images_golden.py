#!/usr/bin/env python3
"""Records images.safetensors: 20 steps of the network of vkt-images in PyTorch, in float64 and in float32. Format: README.md.

A run has five epochs. An epoch has 3 batches of 32 rows and one batch of 12. A validation follows each epoch, then a
step of ReduceLROnPlateau. Images and initial weights come from integer arithmetic (`images`, `weights`), so the file
does not store them. For a large parameter, the file has sums over its elements (`fold`).

    python3 tests/golden/make_images_golden.py    (a minute)
"""
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import safetensors_file
from make_mnist_golden import VARIANTS, mix

SIDE, CLASSES, BATCH, EPOCHS = 32, 101, 32, 5
ROWS, CHECK = 108, 40  # number of training images; number of validation images, whose indices come next
LR, PLATEAU = 0.001, {"patience": 1, "threshold": 1e-3}
MEAN, STD = (0.4948052, 0.48568845, 0.44682974), (0.24580306, 0.24236229, 0.2603115)
FOLD = 1021


def images(first, count):
    """Returns images first .. first + count - 1, (count, 3, 32, 32) u8, and their labels (count). A label is 0, 1, 4,
    9, .. or 100. Each channel is a triangle wave plus noise. Class and channel give direction and frequency of the
    wave. All arithmetic is in wrapping u32."""
    u = np.uint32
    i, c = np.arange(first, first + count, dtype=u)[:, None, None, None], np.arange(3, dtype=u)[None, :, None, None]
    y, x = np.arange(SIDE, dtype=u)[None, None, :, None], np.arange(SIDE, dtype=u)[None, None, None, :]
    h = mix(i + u(0x20000000))
    root = (h >> u(4)) % u(11)
    kind = mix(u(3) * root + c)
    phase = ((kind & u(15)) * x + (kind >> u(4) & u(15)) * y + (h >> u(20))) % u(64)
    wave = np.where(phase < 32, phase, u(63) - phase)
    noise = mix(((i * u(3) + c) * u(SIDE) + y) * u(SIDE) + x) >> u(25)
    return (u(4) * wave + noise).astype(np.uint8), (root * root).reshape(-1).astype(np.int64)


def weights(number, shape, std):
    """Returns nearly normal numbers with the standard deviation std. The sum of a hash's four bytes, minus its mean, has the
    variance 4 * (256^2 - 1) / 12 = 21845."""
    h = mix(np.arange(np.prod(shape), dtype=np.uint32) + np.uint32(number << 24))
    total = sum((h >> np.uint32(8 * k) & np.uint32(255)).astype(np.int64) for k in range(4)) - 510
    return (total * (std / np.sqrt(21845.0))).astype(np.float32).reshape(shape)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 32, 3), nn.Conv2d(32, 64, 3)
        self.fc1, self.fc2, self.fc3 = nn.Linear(2304, 256), nn.Linear(256, 128), nn.Linear(128, CLASSES)
        with torch.no_grad():
            for number, p in enumerate(self.parameters()):
                p.zero_()  # biases stay 0; weights have Xavier's standard deviation in convolutions, 0.01 in linear layers
                if p.dim() > 1:
                    std = np.sqrt(2 / ((p.shape[0] + p.shape[1]) * 9)) if p.dim() == 4 else 0.01
                    p.copy_(torch.from_numpy(weights(number, tuple(p.shape), std)))

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


def prepare(first, rows, dtype, variant=None):
    pixels, labels = images(first, rows)
    x, t = torch.from_numpy(pixels).to(dtype), torch.from_numpy(labels)
    mean, std = (torch.tensor(v, dtype=torch.float64).view(1, 3, 1, 1) for v in (MEAN, STD))
    if variant == "scale_and_shift":
        x = x * (1 / (255 * std)).to(dtype) - (mean / std).to(dtype)
    else:
        x = (x / 255 - mean.to(dtype)) / std.to(dtype)
    order = torch.arange(rows)
    if variant == "reversed_rows":
        order = order.flip(0)
    if variant == "shuffled_rows":
        order = torch.randperm(rows, generator=torch.Generator().manual_seed(first))
    return x[order], t[order]


def fold(p):
    """Returns at most FOLD sums. Sum k is over the elements whose index is k modulo FOLD. Every element counts, but the file
    stays small."""
    v = p.detach().double().numpy().reshape(-1)
    padded = np.zeros(-(-v.size // FOLD) * FOLD)
    padded[: v.size] = v
    return padded.reshape(-1, FOLD).sum(0)[: v.size]


def snapshot(model, part=lambda p: p):
    return {name: fold(part(p)) for name, p in model.named_parameters()}


def train(dtype, variant=None):
    """Returns two dicts of results. One has loss, val_loss and lr: name -> array. The other has the gradients of the first
    step, the best values and the last momentum of the parameters: kind -> name -> array."""
    model = Network().to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9, dampening=0.1)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **PLATEAU)
    check = prepare(ROWS, CHECK, dtype, variant)
    loss, val_loss, lr, grad, best = [], [], [], None, None
    with torch.backends.mkldnn.flags(enabled=variant != "no_mkldnn"):
        for _ in range(EPOCHS):
            lr.append(optimizer.param_groups[0]["lr"])
            for first in range(0, ROWS, BATCH):
                x, t = prepare(first, min(BATCH, ROWS - first), dtype, variant)
                optimizer.zero_grad()
                batch_loss = F.cross_entropy(model(x), t)
                batch_loss.backward()
                grad = grad or snapshot(model, lambda p: p.grad)
                optimizer.step()
                loss.append(batch_loss.item())
            with torch.no_grad():
                val_loss.append(F.cross_entropy(model(check[0]), check[1]).item())
            if val_loss[-1] == min(val_loss):
                best = snapshot(model)
            plateau.step(val_loss[-1])
    momentum = snapshot(model, lambda p: optimizer.state[p]["momentum_buffer"])
    return {"loss": np.array(loss), "val_loss": np.array(val_loss), "lr": np.array(lr)}, \
           {"grad": grad, "best": best, "momentum": momentum}


def main():
    torch.set_num_threads(2)
    numbers, params = train(torch.float64)
    runs = [train(torch.float32, v) for v in (None,) + VARIANTS]
    t = {name + "64": value for name, value in numbers.items()}
    for kind, of in params.items():
        t.update({"%s64/%s" % (kind, name): value for name, value in of.items()})
        t[kind + "_dev"] = np.array([[np.abs(run[1][kind][name] - of[name]).max() for name in of] for run in runs])
    for name in "loss", "val_loss":
        t[name + "_dev"] = np.stack([np.abs(run[0][name] - numbers[name]) for run in runs])
    assert all((run[0]["lr"] == numbers["lr"]).all() for run in runs)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "images.safetensors")
    metadata = {"runs": " ".join(("default",) + VARIANTS), "torch": torch.__version__, "numpy": np.__version__}
    print(path, safetensors_file.write(path, t, metadata), "bytes")
    np.set_printoptions(precision=3, linewidth=120)
    for name in sorted(t):
        if "/" not in name:
            print(name, t[name], sep="\n")
    for kind, of in params.items():
        print(kind, {name: "%.2g" % np.abs(value).max() for name, value in of.items()})


if __name__ == "__main__":
    main()
