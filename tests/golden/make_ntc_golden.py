#!/usr/bin/env python3
"""Records ntc.safetensors: 24 steps of a small network that decodes textures from latents, with the ops and the
optimizer of vkt-ntc, in PyTorch, in float64 and in float32. Format: README.md.

    python3 tests/golden/make_ntc_golden.py             (seconds)
    python3 tests/golden/make_ntc_golden.py seeds       (minutes: prints the five best of the seeds 0 to 99)

Initial weights, initial latents and texels come from integer arithmetic (`draw`, `image`), so the file does not store them. The
best seeds keep the inputs of ReLU farthest from 0, and the latents farthest from rounding ties.
"""
import os
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import safetensors_file
from make_gpt_golden import snapshot
from make_mnist_golden import deviation, mix
from make_ops_golden import Inside, latent_grid, noise

SEED, STEPS, NOISE_STEPS, KEY = 52, 24, 14, 77
HEIGHT, WIDTH, CHANNELS, HIDDEN, TILE = 20, 28, 4, 16, (8, 12)
LR, NETWORK_FACTOR = 0.05, 0.25
GRIDS = (dict(scale=2, features=2, bits=2, corners=False), dict(scale=4, features=3, bits=4, corners=True))
# Variants of the float32 run. They show how much rounding changes the results (README.md).
VARIANTS = ("no_mkldnn", "reversed_texels", "shuffled_texels", "written_out")


def image():
    """Returns the textures (C,H,W) in [0,1]: waves and noise."""
    u = np.uint32
    c, y, x = (i.astype(u) for i in np.ogrid[0:CHANNELS, 0:HEIGHT, 0:WIDTH])
    phase = ((c + u(3)) * x + (u(2) * c + u(5)) * y) % u(64)
    wave = np.where(phase < 32, phase, u(63) - phase)
    pixel = u(4) * wave + (mix((c * u(HEIGHT) + y) * u(WIDTH) + x) >> u(25))
    return torch.from_numpy(pixel.astype(np.float32) / np.float32(255))


def origin(step):
    """Returns the first texel of a step's tile, as vkt_latent_grid gets it. The whole tile is inside the textures."""
    h = int(mix(np.array([step + 0x50000000], np.uint32))[0])
    return [[h % (HEIGHT - TILE[0] + 1), (h >> 8) % (WIDTH - TILE[1] + 1)]]


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.latents = nn.ParameterList(
            nn.Parameter(torch.empty(g["features"], HEIGHT // g["scale"], WIDTH // g["scale"])) for g in GRIDS)
        inputs = sum(g["features"] * (4 if g["corners"] else 1) for g in GRIDS)
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in ((inputs, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, CHANNELS)))
        self.nearest = []  # each number is the smallest distance of a ReLU's inputs from 0, or of latents from a rounding tie

    def read(self, grid, g, step, written_out):
        a = dict(tile=TILE, factor=g["scale"], corners=g["corners"])
        if g["corners"] or not written_out:
            return latent_grid(grid, origin(step), a)
        cells = latent_grid(grid, origin(step), dict(a, corners=True)).unflatten(1, (g["features"], 2, 2))
        top, left = origin(step)[0]
        v, u = (((2 * torch.arange(o, o + n) + 1 + g["scale"]) % (2 * g["scale"])).to(grid.dtype) / (2 * g["scale"])
                for o, n in ((top, TILE[0]), (left, TILE[1])))
        v, u = v.repeat_interleave(TILE[1])[:, None], u.repeat(TILE[0])[:, None]
        rows = (1 - v)[..., None] * cells[:, :, 0] + v[..., None] * cells[:, :, 1]
        return (1 - u) * rows[..., 0] + u * rows[..., 1]

    def quantize(self, x, i, step):
        """Adds noise, or rounds to levels, as vkt_quantize does. The salt of the noise is a number that differs from node to
        node: the index of the quantize node in the graph. The node that quantizes latents i has the index i."""
        t, levels = Inside.apply(x), 2 ** GRIDS[i]["bits"] - 1
        if step < NOISE_STEPS:
            return t + (noise(x.shape, KEY, step + 1, i).to(x.dtype) - 0.5) / levels
        at = levels * t.detach() + 0.5
        self.nearest.append((at - at.round()).abs()[(t > 0) & (t < 1)].min().item() / levels)
        return t + (at.floor() / levels - t).detach()

    def forward(self, step, order, written_out):
        x = torch.cat([self.read(self.quantize(p, i, step), g, step, written_out)
                       for i, (p, g) in enumerate(zip(self.latents, GRIDS))], 1)[order]
        for layer in self.layers[:-1]:
            x = layer(x)
            self.nearest.append(x.detach().abs().min().item())
            x = F.relu(x)
        return self.layers[-1](x)


def draw(model, seed):
    """Sets each element of all parameters by a hash of the seed, the tensor's index and the element's index. Latents are in
    [0,1). Weights of a layer with n inputs are within +-sqrt(6 / n). Biases are 0."""
    for k, p in enumerate(model.parameters()):
        h = (mix(np.uint32(seed << 24 | k << 16) + np.arange(p.numel(), dtype=np.uint32)) >> np.uint32(8)).astype(np.float32)
        w = h * np.float32(0.5 ** 24)
        if k >= len(GRIDS):
            bound = np.sqrt(6 / p.shape[1]) if p.dim() > 1 else 0
            w = (h - np.float32(1 << 23)) * np.float32(bound / (1 << 23))
        p.data.copy_(torch.from_numpy(w).view(p.shape))


def order_of(variant, step):
    n = TILE[0] * TILE[1]
    if variant == "reversed_texels":
        return torch.arange(n).flip(0)
    if variant == "shuffled_texels":
        return torch.randperm(n, generator=torch.Generator().manual_seed(step))
    return torch.arange(n)


def train(dtype, variant=None, seed=SEED):
    """Returns (losses, final parameters, gradients of the first step, the smallest number of model.nearest)."""
    model, target = Network(), image().to(dtype)
    draw(model, seed)
    model.to(dtype)
    groups = [dict(params=model.latents.parameters()), dict(params=model.layers.parameters(), lr=LR * NETWORK_FACTOR)]
    optimizer, losses, first = torch.optim.Adam(groups, lr=LR, betas=(0.9, 0.99), eps=1e-12), [], None
    with torch.backends.mkldnn.flags(enabled=variant != "no_mkldnn"):
        for s in range(STEPS):
            order = order_of(variant, s)
            optimizer.zero_grad()
            wanted = latent_grid(target, origin(s), dict(tile=TILE, corners=True))[order, ::4]  # corner 0: the texel itself
            loss = F.mse_loss(model(s, order, variant == "written_out"), wanted)
            loss.backward()
            first = first or snapshot((name, p.grad) for name, p in model.named_parameters())
            losses.append(loss.item())
            optimizer.step()
    return np.array(losses), snapshot(model.named_parameters()), first, min(model.nearest)


def main():
    torch.set_num_threads(1)
    if sys.argv[1:] == ["seeds"]:
        for distance, seed in sorted((train(torch.float64, seed=s)[-1], s) for s in range(100))[-5:]:
            print("seed", seed, "distance", distance)
        return
    loss64, final64, grad64, distance = train(torch.float64)
    runs = [train(torch.float32, v) for v in (None,) + VARIANTS]
    t = {"final64/" + name: value for name, value in final64.items()}
    t.update({"grad64/" + name: value for name, value in grad64.items()})
    t["loss64"] = loss64
    t["loss_dev"] = np.stack([np.abs(loss - loss64) for loss, *_ in runs])
    t["final_dev"] = np.stack([deviation(final, final64) for _, final, *_ in runs])
    t["grad_dev"] = np.stack([deviation(grad, grad64) for _, _, grad, _ in runs])
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ntc.safetensors")
    metadata = {"parameters": " ".join(final64), "runs": " ".join(("default",) + VARIANTS), "torch": torch.__version__,
                "numpy": np.__version__}
    print(path, safetensors_file.write(path, t, metadata), "bytes; distance", distance)
    np.set_printoptions(precision=2, linewidth=120)
    print("loss", loss64, "\nloss deviations", t["loss_dev"].max(1))
    print("final", t["final_dev"], "\ngradients", t["grad_dev"])


if __name__ == "__main__":
    main()
