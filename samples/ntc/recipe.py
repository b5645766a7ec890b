#!/usr/bin/env python3
"""The training steps of vkt-ntc in PyTorch, to compare the speed: the same grids, network, tile, optimizer and loss.

    python3 samples/ntc/recipe.py [STEPS]

Two grids, 2:F:2 (mean of four cells) and 4:F:4:corners, for 256 x 256 texels of 7 channels and tiles of 128 x 128. Prints steps
per second. The numbers of features are those of vkt-ntc's --bppc 0.5 for this size.
"""
import sys
import time

import torch
import torch.nn.functional as F

SIDE, TILE, CHANNELS, HIDDEN, FINE, COARSE = 256, 128, 7, 32, 4, 4


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, steps):
        return torch.floor(x.clamp(0, 1) * steps + 0.5) / steps

    @staticmethod
    def backward(ctx, dy):
        return dy, None


def quantize(x, bits, noise):
    steps = 2**bits - 1
    return x.clamp(0, 1) + (torch.rand_like(x) - 0.5) / steps if noise else Round.apply(x, steps)


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    torch.manual_seed(1)
    image = torch.rand(CHANNELS, SIDE, SIDE)
    fine = (torch.rand(1, FINE, SIDE // 2, SIDE // 2) * 0.4 + 0.3).requires_grad_()
    coarse = (torch.rand(1, COARSE, SIDE // 4, SIDE // 4) * 0.4 + 0.3).requires_grad_()
    inputs = FINE + 4 * COARSE + 3
    net = torch.nn.Sequential(
        torch.nn.Linear(inputs, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, CHANNELS))
    adam = torch.optim.Adam([{"params": [fine, coarse], "lr": 0.05}, {"params": net.parameters(), "lr": 0.015}],
                            betas=(0.9, 0.99), eps=1e-12)
    axis = torch.arange(SIDE)
    cell = torch.div(2 * axis + 5, 8, rounding_mode="floor")
    first, second = (cell - 1).clamp(min=0), cell.clamp(max=SIDE // 4 - 1)
    place = 2 * ((2 * axis + 5) % 8) / 8 - 1
    v, u = place[:, None].expand(SIDE, SIDE), place[None, :].expand(SIDE, SIDE)
    position = torch.stack([u, v, u * v])

    def step(number):
        tile = number % 4
        y0, x0 = tile // 2 * TILE, tile % 2 * TILE
        rows, columns = slice(y0, y0 + TILE), slice(x0, x0 + TILE)
        noise = number < 0.85 * steps
        a = quantize(fine, 2, noise)
        b = quantize(coarse, 4, noise)[0]
        # The part of the fine grid that the tile reads, and one cell around it, resized.
        y1, x1 = max(y0 // 2 - 1, 0), max(x0 // 2 - 1, 0)
        part = a[:, :, y1 : y0 // 2 + TILE // 2 + 1, x1 : x0 // 2 + TILE // 2 + 1]
        mean = F.interpolate(part, scale_factor=2, mode="bilinear", align_corners=False)[0]
        mean = mean[:, y0 - 2 * y1 : y0 - 2 * y1 + TILE, x0 - 2 * x1 : x0 - 2 * x1 + TILE]
        corners = [b[:, p[rows]][:, :, q[columns]] for p in (first, second) for q in (first, second)]
        x = torch.cat([mean, *corners, position[:, rows, columns]]).reshape(inputs, -1).t()
        loss = F.mse_loss(net(x), image[:, rows, columns].reshape(CHANNELS, -1).t())
        adam.zero_grad()
        loss.backward()
        adam.step()

    for i in range(5):
        step(i)
    start = time.perf_counter()
    for i in range(steps):
        step(i)
    print(f"{steps / (time.perf_counter() - start):.1f} steps/s with {torch.get_num_threads()} threads")


if __name__ == "__main__":
    main()
